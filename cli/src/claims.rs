//! Signed claims about a store, compared with its log: the checkpoint that was seen last, and the checkpoints beside the log.
//!
//! The comparison is [`acpdb_proof::claims`]; this module collects the claims and prints them.

use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::{Error, Store};
use acpdb_proof::claims::{CheckpointStatus, Claim, ClaimSource, Claims, Detail, Judged};
use acpdb_proof::{Checkpoint, Hash, VerifierKey};
use serde_json::{Value, json};

use crate::describe;
use crate::failure::{Code, Failure};
use crate::keys;
use crate::verdict::worse;

/// Most checkpoints beside a log that are looked at.
const KEPT_COUNT_MAX: usize = 10_000;

/// The exit code of one claim. A claim that no known key signed was compared with nothing, so it is no success. A wrong clock is a
/// remark: the log is as it was signed.
pub(crate) const fn code_of(standing: CheckpointStatus) -> Code {
    match standing {
        CheckpointStatus::Agrees | CheckpointStatus::Newer => Code::Ok,
        CheckpointStatus::Unproven | CheckpointStatus::Misdated => Code::Partial,
        CheckpointStatus::Ahead | CheckpointStatus::Replayed => Code::LostTail,
        _ => Code::Damage,
    }
}

/// The worst code of all claims: a mismatch is worse than a missing tail, and that is worse than a claim whose key is not known.
pub(crate) fn code(judged: &Judged) -> Code {
    judged.claims.iter().map(|claim| code_of(claim.standing)).fold(Code::Ok, worse)
}

/// A claim in a line.
pub(crate) fn line(claim: &Claim) -> String {
    let seq = claim.seq().map(|seq| format!(" at {seq}")).unwrap_or_default();
    let time = claim.checkpoint.map(|found| format!(", signed {}", time_of(&found))).unwrap_or_default();
    let name = match claim.source {
        ClaimSource::Kept => "checkpoint",
        ClaimSource::SeenLast => "checkpoint that was seen last",
    };
    let standing = match claim.standing {
        CheckpointStatus::Agrees => "agrees",
        CheckpointStatus::Unproven => {
            "proves nothing here: it fits the log, and its key is not known (acpdb key trust KEY makes it known)"
        }
        CheckpointStatus::Ahead => "is ahead: the log was set back",
        CheckpointStatus::Newer => "was signed after this backup was made",
        CheckpointStatus::Replayed => "was replayed: a newer one was seen here",
        CheckpointStatus::Rewritten => "contradicts the log: it was rewritten, or forked",
        CheckpointStatus::Misdated => "agrees; a clock was wrong: an event after it bears an earlier time",
        CheckpointStatus::OtherKey => "is signed with another key",
        CheckpointStatus::OtherStore => "is of another store",
        CheckpointStatus::Damaged => "is damaged",
    };
    let detail = detail(claim).map(|detail| format!(": {detail}")).unwrap_or_default();
    format!("{name}{seq} {standing}{time}{detail}")
}

fn detail(claim: &Claim) -> Option<String> {
    claim.detail.as_ref().map(|detail| match detail {
        Detail::Text(text) => text.clone(),
        Detail::Time(seq, time) => format!("{seq} says {}", describe::time(*time)),
    })
}

/// A claim for programs.
pub(crate) fn value(claim: &Claim) -> Value {
    json!({
        "source": claim.source, "seq": claim.seq(), "time": claim.checkpoint.as_ref().map(time_of),
        "standing": claim.standing, "detail": detail(claim),
    })
}

/// All claims for programs.
pub(crate) fn values(judged: &Judged) -> Vec<Value> {
    judged.claims.iter().map(value).collect()
}

/// Whether one of these keys signed a checkpoint that agrees.
pub(crate) fn is_signed_by(judged: &Judged, keys: &[VerifierKey]) -> bool {
    let mut agreeing = judged.claims.iter().filter(|claim| claim.standing.holds());
    agreeing.any(|claim| claim.note.as_ref().is_some_and(|note| note.signed_by(keys).is_ok()))
}

/// Whether any checkpoint of the store is known here.
pub(crate) fn are_there(store: &Store) -> Result<bool, Failure> {
    Ok(keys::pinned(store.id())?.is_some() || !seqs(store)?.is_empty())
}

/// The failure for a file in the store that acpdb did not put there.
fn strange(error: Error) -> Failure {
    let failure = Failure::from(error).coded(Code::Damage);
    failure.hint("acpdb did not put it there; look at it, move it out of the store, and run this again")
}

/// The seqs of the checkpoints beside the log.
pub(crate) fn seqs(store: &Store) -> Result<Vec<Seq>, Failure> {
    store.checkpoint_seqs().map_err(strange)
}

/// A checkpoint beside the log, unchecked.
pub(crate) fn note_of(store: &Store, seq: Seq) -> Result<Option<String>, Failure> {
    store.kept_checkpoint(seq).map_err(strange)
}

/// Compares all claims; the given keys count as known. Cost: a pass over all events, whose texts are not read.
pub(crate) fn judge(store: &Store, given: &[VerifierKey]) -> Result<Judged, Failure> {
    judge_with(store, given, |_| {})
}

/// As [`judge`]; calls `each` with the hash of each leaf, in order.
pub(crate) fn judge_with(
    store: &Store,
    given: &[VerifierKey],
    each: impl FnMut(Hash),
) -> Result<Judged, Failure> {
    let mut keys = keys::known(store.id())?;
    keys.extend_from_slice(given);
    let pin = keys::pinned(store.id())?.map(|(_, note)| note);
    // A key of the user's own says nothing about a store that others sign.
    let is_signer_known = !given.is_empty() || keys::is_trusted_for(store.id())?;
    let seqs = seqs(store)?;
    // A folder of a stranger may hold any number of checkpoints; the newest cover the most events.
    let seqs = seqs.iter().copied().skip(seqs.len().saturating_sub(KEPT_COUNT_MAX));
    let kept = seqs
        .map(|seq| match note_of(store, seq) {
            Ok(Some(note)) => (seq, Ok(note)),
            Ok(None) => (seq, Err("it was removed while it was read".to_owned())),
            Err(failure) => (seq, Err(failure.message)),
        })
        .collect();
    let head = store.head()?;
    let is_backup = pin.is_some() && keys::is_backup(store)?;
    let claims = Claims { pin, kept, keys, is_signer_known, is_backup };
    let judged = claims.judge_with(store.id(), store.leaves(Seq(1), head)?, each)?;
    if judged.head == head {
        return Ok(judged);
    }
    let found = judged.head;
    Err(Failure::new(Code::Damage, format!("the log can be read up to {found}, and ends at {head}")))
}

/// The time at which a checkpoint was signed, in words.
pub(crate) fn time_of(checkpoint: &Checkpoint) -> String {
    describe::time(Micros(i64::try_from(checkpoint.time).unwrap_or(i64::MAX).saturating_mul(1_000_000)))
}

/// A checkpoint that is kept beside the log; the newest where none is named.
pub(crate) fn kept(store: &Store, seq: Option<Seq>) -> Result<(Seq, String), Failure> {
    let newest = || Ok::<_, Failure>(seqs(store)?.last().copied());
    let seq = match seq {
        Some(seq) => Some(seq),
        None => newest()?,
    };
    let note = seq.map(|seq| note_of(store, seq)).transpose()?.flatten();
    seq.zip(note).ok_or_else(|| {
        let which = seq.map(|seq| format!(" at {seq}")).unwrap_or_default();
        Failure::not_found(format!("no checkpoint was signed{which}")).hint(
            "acpdb checkpoint sign signs all events up to now; acpdb checkpoint show lists what was signed",
        )
    })
}

pub(crate) fn cut(to: Seq) -> Failure {
    let failure = Failure::new(Code::LostTail, format!("the log ends before {to}, up to which was signed"));
    failure.hint("acpdb checkpoint show says what was signed, and what of it is gone")
}

/// The failure for a log that is not the signed one: it proves nothing.
pub(crate) fn rewritten(checkpoint: &Checkpoint) -> Failure {
    let message = format!("events up to {} are not those that were signed", checkpoint.seq);
    Failure::new(Code::Damage, message)
        .hint("acpdb checkpoint show compares all that was signed with the log")
}
