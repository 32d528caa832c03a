//! `acpdb checkpoint push`: asks witnesses to sign that the history only grew since they saw it last.
//!
//! ```text
//! newest checkpoint -- agrees with the log? --> each witness: old size, proof of consistency, note --> answer, checked
//!                                                 409: it saw another size; asked again from there
//! ```
//!
//! Only this command waits for a witness: the log is not locked meanwhile.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use acpdb_engine::Store;
use acpdb_engine::ids::{Micros, Seq};
use acpdb_proof::tree::{consistency_ranges, verify_consistency};
use acpdb_proof::witness::{PolicyMember, Quorum, REQUEST_HASH_COUNT_MAX, request};
use acpdb_proof::{Checkpoint, Hash, Note, WitnessPolicy};
use serde_json::json;

use super::{Code, Failure, Output, describe, head};
use crate::args::Push;
use crate::claims;
use crate::keys;
use crate::tiles;

/// Largest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
/// Most answers of a witness that it saw another size, while other programs push as well.
const ASK_COUNT_MAX: usize = 4;
const SIZE_TYPE: &str = "text/x.tlog.size";

/// A witness's answer.
struct WitnessReply {
    status: u16,
    is_size: bool,
    body: String,
}

pub(crate) fn run(store: &Store, args: &Push, output: &mut Output) -> Result<Code, Failure> {
    let policy = policy_of(&args.policy)?;
    let judged = claims::judge(store, &[])?;
    crate::signing::agreed(&judged)?;
    let seq = args.seq.as_deref().map(head::seq_of).transpose()?;
    let (seq, text) = claims::kept(store, seq)?;
    let unread = |error: acpdb_proof::ProofError| Failure::new(Code::Damage, error.to_string());
    let mut note = Note::parse(&text).map_err(unread)?;
    let found = Checkpoint::parse(note.text_unchecked()).map_err(unread)?;
    let asker = WitnessClient { store, checkpoint: found, agent: agent(Duration::from_secs(args.timeout)) };
    let mut told = Vec::new();
    for member in policy.witnesses() {
        let answered = match &member.url {
            Some(url) => asker.ask(member, url, &note),
            None => Err(Failure::usage("the policy has no address of it")),
        };
        match answered {
            Ok(signed) => {
                note = note.merged(&signed).map_err(unread)?;
                told.push((member, Ok(())));
            }
            Err(failure) => told.push((member, Err(failure))),
        }
    }
    if told.iter().any(|(_, answered)| answered.is_ok()) {
        keep(store, seq, &note)?;
    }
    let quorum = policy.judge(&note);
    tell(seq, &told, &quorum, output)?;
    let worst =
        |code| told.iter().any(|(_, answered)| answered.as_ref().is_err_and(|error| error.code == code));
    Ok(match () {
        () if worst(Code::Damage) => Code::Damage,
        () if worst(Code::LostTail) => Code::LostTail,
        () if quorum.is_enough => Code::Ok,
        () if quorum.signed.is_empty() => Code::Failure,
        () => Code::Partial,
    })
}

/// A policy file.
pub(crate) fn policy_of(path: &Path) -> Result<WitnessPolicy, Failure> {
    let shown = path.display().to_string();
    let text = keys::read(path)?.ok_or_else(|| Failure::not_found(format!("there is no policy {shown}")))?;
    WitnessPolicy::parse(&text).map_err(|error| {
        Failure::usage(format!("{shown}, {error}")).hint("see acpdb checkpoint push --help for its form")
    })
}

/// A policy's verdict on a note, in words.
pub(crate) fn words(quorum: &Quorum) -> String {
    let names = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let signed =
        names(quorum.signed.iter().map(|(name, time)| format!("{name} {}", time_of(*time))).collect());
    let missing = names(quorum.missing.clone());
    format!("needed: {}; signed: {signed}; missing: {missing}", quorum.rule)
}

fn time_of(seconds: u64) -> String {
    describe::time(Micros(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000)))
}

/// Keeps the note with the signatures that others added meanwhile, beside the log and as the checkpoint that was seen last.
fn keep(store: &Store, seq: Seq, note: &Note) -> Result<(), Failure> {
    let same = |text: Option<String>| {
        // A note that is damaged, or of another checkpoint, has no signature to keep; this note takes its place.
        let other = Note::parse(&text?).ok()?;
        // A note of another checkpoint has no signature to keep.
        note.merged(&other).ok()
    };
    let merged = same(claims::note_of(store, seq)?).unwrap_or_else(|| note.clone());
    store.keep_checkpoint(seq, &merged.to_text())?;
    if let Some(merged) = same(keys::pinned(store.id())?.map(|(_, note)| note)) {
        keys::pin(store.id(), &merged.to_text())?;
    }
    Ok(())
}

type Told<'a> = (&'a PolicyMember, Result<(), Failure>);

fn tell(seq: Seq, told: &[Told<'_>], quorum: &Quorum, output: &mut Output) -> Result<(), Failure> {
    if output.json {
        let witnesses: Vec<_> = told
            .iter()
            .map(|(member, answered)| {
                let signed = quorum.signed.iter().find(|(name, _)| *name == member.name);
                let why = answered.as_ref().err().map(|failure| &failure.message);
                let time = signed.map(|(_, time)| time_of(*time));
                json!({ "name": member.name, "url": member.url, "time": time, "failure": why })
            })
            .collect();
        let value = json!({
            "seq": seq, "witnesses": witnesses, "needed": quorum.rule, "missing": quorum.missing,
            "is_enough": quorum.is_enough,
        });
        return output.json_object("acpdb.push/1", &value).map(drop);
    }
    for (member, answered) in told {
        match answered {
            Ok(()) => output.line(format!("{} signed {seq}", member.name))?,
            Err(failure) => {
                output.line(format!("{} did not sign {seq}: {}", member.name, failure.message))?;
                if let Some(hint) = &failure.hint {
                    output.note(hint);
                }
            }
        }
    }
    let verdict = if quorum.is_enough { "enough" } else { "not enough" };
    output.line(format!("{verdict}: {}", words(quorum)))
}

fn agent(longest: Duration) -> ureq::Agent {
    let config = ureq::Agent::config_builder().timeout_global(Some(longest)).http_status_as_error(false);
    // A request that was redirected would show its content to another address.
    config.max_redirects(0).user_agent("acpdb").build().into()
}

/// Plain HTTP is allowed only to this machine: on the way, others could read which stores grow, and answer in place of the witness.
fn check_url(url: &str) -> Result<(), Failure> {
    // A text that is no address is refused below.
    let parsed = url.parse::<ureq::http::Uri>().ok();
    let wrong =
        || Failure::usage(format!("{url} is no address of a witness; it begins with https:// or http://"));
    let parsed = parsed.ok_or_else(wrong)?;
    let host = parsed.host().ok_or_else(wrong)?.trim_matches(['[', ']']);
    let is_here =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    match parsed.scheme_str() {
        Some("https") if cfg!(feature = "https") => Ok(()),
        Some("https") => Err(Failure::usage(format!("{url}: this acpdb was built without https"))
            .hint("build it with --features https, or reach the witness through a port of this machine")),
        Some("http") if is_here => Ok(()),
        Some("http") => {
            Err(Failure::usage(format!("{url}: http is for witnesses of this machine only"))
                .hint("use https"))
        }
        _ => Err(wrong()),
    }
}

struct WitnessClient<'a> {
    store: &'a Store,
    checkpoint: Checkpoint,
    agent: ureq::Agent,
}

impl WitnessClient<'_> {
    /// The note with the signature of a witness.
    fn ask(&self, member: &PolicyMember, url: &str, note: &Note) -> Result<Note, Failure> {
        check_url(url)?;
        let size = self.checkpoint.seq.get();
        let mut old = self.seen_last(member)?;
        for _ in 0..ASK_COUNT_MAX {
            let answer = self.send(url, &request(old, &self.hashes(old)?, note))?;
            match answer.status {
                200 => return accept(member, note, &answer.body),
                // An answer that is no size is reported as strange below.
                409 => match answer.body.trim().parse::<u64>().ok().filter(|_| answer.is_size) {
                    Some(seen) if seen > size => return Err(self.longer(seen)?),
                    Some(seen) if seen != old => old = seen,
                    _ if old == size => {
                        let message = format!("it signed another history up to {}", self.checkpoint.seq);
                        return Err(forked(&message));
                    }
                    _ => return Err(strange("says that it saw another size, and does not say which")),
                },
                422 => {
                    let (old, seq) = (Seq(old), self.checkpoint.seq);
                    return Err(forked(&format!("what it signed up to {old} is not the beginning of {seq}")));
                }
                404 => return Err(unknown("it does not know this store", self.store)),
                403 => return Err(unknown("it does not believe the key of this store", self.store)),
                status => return Err(strange(&format!("answers with status {status}"))),
            }
        }
        Err(strange("says another size each time that it is asked"))
    }

    /// The largest tree before this one that the witness is known to have signed.
    fn seen_last(&self, member: &PolicyMember) -> Result<u64, Failure> {
        let seqs = claims::seqs(self.store)?;
        // A note that is damaged tells nothing of this witness; an older one may.
        for seq in seqs.into_iter().filter(|seq| *seq <= self.checkpoint.seq).rev().take(64) {
            // A note that cannot be parsed tells nothing.
            let note = claims::note_of(self.store, seq)?.and_then(|note| Note::parse(&note).ok());
            if note.is_some_and(|note| matches!(member.key.cosigned(&note), Ok(Some(_)))) {
                return Ok(seq.get());
            }
        }
        Ok(0)
    }

    fn hashes(&self, old: u64) -> Result<Vec<Hash>, Failure> {
        let size = self.checkpoint.seq.get();
        if old == 0 || old == size {
            return Ok(Vec::new());
        }
        let mut ranges = consistency_ranges(old, size).unwrap_or_default();
        // The tree that the witness saw is not known here. But only one list of hashes proves that the signed root grew from it.
        ranges.push(0..old);
        let root = self.checkpoint.root;
        let is_true = |hashes: &[Hash]| {
            hashes
                .split_last()
                .is_some_and(|(first, proof)| verify_consistency(old, size, *first, root, proof))
        };
        let mut hashes = tiles::hashes(self.store, ranges, self.checkpoint.seq, is_true)?;
        hashes.pop();
        if hashes.len() > REQUEST_HASH_COUNT_MAX {
            return Err(Failure::new(Code::Failure, "the proof has more hashes than a witness takes"));
        }
        Ok(hashes)
    }

    /// The failure for a witness that saw a longer history than this checkpoint. If it is longer than the log, the log was set
    /// back.
    fn longer(&self, seen: u64) -> Result<Failure, Failure> {
        let (head, seen) = (self.store.head()?, Seq(seen));
        if seen > head {
            let message =
                format!("it saw events up to {seen}, and the log ends at {head}: the log was set back");
            return Ok(Failure::new(Code::LostTail, message).hint("look for the newer copy of this store"));
        }
        let message =
            format!("it signed up to {seen} already, this checkpoint ends at {}", self.checkpoint.seq);
        Ok(Failure::new(Code::Conflict, message)
            .hint("push a newer checkpoint; acpdb checkpoint sign makes one"))
    }

    fn send(&self, url: &str, body: &str) -> Result<WitnessReply, Failure> {
        let url = format!("{}/add-checkpoint", url.trim_end_matches('/'));
        let failed = |why: String| Failure::new(Code::Failure, format!("cannot ask {url}: {why}"));
        let sent = self.agent.post(&url).header("content-type", "text/plain; charset=utf-8").send(body);
        let mut answer = sent.map_err(|error| failed(error.to_string()))?;
        let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        let is_size =
            kind.is_some_and(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == SIZE_TYPE));
        let mut bytes = Vec::new();
        let read = answer.body_mut().as_reader().take(ANSWER_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.map_err(|error| failed(error.to_string()))?;
        if bytes.len() as u64 > ANSWER_BYTES_MAX {
            return Err(failed("its answer has no end".to_owned()));
        }
        let body = String::from_utf8(bytes).map_err(|_| failed("its answer is no text".to_owned()))?;
        Ok(WitnessReply { status: answer.status().as_u16(), is_size, body })
    }
}

fn accept(member: &PolicyMember, note: &Note, answer: &str) -> Result<Note, Failure> {
    member.key.accept(note, answer).map_err(|error| {
        let failure = Failure::new(Code::Failure, error.to_string());
        failure.hint("nothing of its answer was kept; is it the witness that the key is of?")
    })
}

fn strange(what: &str) -> Failure {
    Failure::new(Code::Failure, format!("it {what}")).hint("it does not speak C2SP tlog-witness as it should")
}

fn forked(message: &str) -> Failure {
    let failure = Failure::new(Code::Damage, format!("{message}: this store was rewritten, or forked"));
    failure.hint("look for the copy whose history the witness signed; acpdb verify compares this one with what was seen here")
}

fn unknown(message: &str, store: &Store) -> Failure {
    let origin = acpdb_proof::origin(store.id());
    let failure = Failure::new(Code::Failure, message);
    failure.hint(format!("give its keeper what acpdb key show prints, the key of {origin}"))
}
