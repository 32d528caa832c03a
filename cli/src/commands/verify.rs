//! `acpdb verify`: every digest, link and witness checked, in words and with an exit code.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use acpdb_engine::ItemId;
use acpdb_engine::ids::StoreId;
use acpdb_engine::keys::KeyUse;
use acpdb_engine::log::{Witness, WitnessKind, WitnessStatus};
use acpdb_engine::store::{VerifyOptions, verify_store};
use acpdb_engine::verify::{Verdict, VerifyReport};
use acpdb_proof::VerifierKey;
use acpdb_proof::claims::Judged;

use super::{Code, Failure, Global, Output, describe, head, remote_url, store_path};
use crate::args::Verify;
use crate::claims;
use crate::rings;
use crate::verdict::{code_of, is_erasure, is_only_erasures, worse};

pub(crate) fn run(global: &Global, args: &Verify, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "verify")?;
    if global.named.iter().any(|named| remote_url::scheme(named).is_some()) {
        return super::verify_remote::run(global, args, output);
    }
    if args.quick {
        let failure = Failure::usage("--quick is for a URL");
        return Err(failure.hint("acpdb --db file:///FOLDER verify --quick"));
    }
    if let Some(seq) = &args.head {
        return head::run(global, seq, output);
    }
    if let Some(session) = &args.host {
        return super::verify_host::run(global, session, output);
    }
    let folder = store_path::folder(global, output)?;
    let mut kept = Vec::new();
    for text in &args.expect {
        let path = Path::new(text);
        kept.extend(if path.is_file() { head::expected_in(path)? } else { head::expected_lines(text)? });
    }
    let expected = kept.iter().map(|(expected, _)| *expected).collect();
    let key_file = global.key_file.as_deref();
    let ring = if args.without_key { None } else { rings::of_store(&folder, key_file)? };
    let keys = if args.without_key { KeyUse::Bytes } else { rings::used(ring.clone()) };
    let report = {
        let _spinner = super::progress::spinner("verifying", output);
        verify_store(&folder, &VerifyOptions { deep: args.deep, expected, keys })?
    };
    if report.verdict() == Verdict::Unreadable {
        return unreadable(&report, &folder, output);
    }
    if let Some((expected, Some(store))) =
        kept.iter().find(|(_, store)| store.is_some_and(|id| id != report.store))
    {
        let found = report.store;
        return Err(Failure::usage(format!(
            "the link of {} is of store {store}, this is {found}",
            expected.seq
        )));
    }
    let given = args.key.as_deref().map_or_else(|| Ok(Vec::new()), |key| given(key, report.store))?;
    // The reason why signed checkpoints cannot be compared is told after all findings.
    let (signed, unread) = match signed(&report, &folder, ring.as_ref(), &given) {
        Ok(signed) => (signed, None),
        Err(failure) => (None, Some(failure)),
    };
    let code = worse(code_of(&report), signed.as_ref().map_or(Code::Ok, claims::code));
    // Without this, deleting all notes would make a check with `--key` pass.
    let is_unsigned = !given.is_empty()
        && unread.is_none()
        && !signed.as_ref().is_some_and(|judged| claims::is_signed_by(judged, &given));
    let code = if is_unsigned { worse(code, Code::Partial) } else { code };
    if output.json {
        let signed = signed.as_ref().map(claims::values).unwrap_or_default();
        output.json_line(&Verified { report: &report, signed: &signed })?;
        return unread.map_or(Ok(code), Err);
    }
    print(&report, &folder, output)?;
    for claim in signed.iter().flat_map(|judged| &judged.claims) {
        output.line(format!("  {:<10} {}", "signed", claims::line(claim)))?;
    }
    if is_unsigned {
        output.line(format!(
            "  {:<10} no checkpoint here agrees that was signed with the key that was given",
            "signed"
        ))?;
    }
    advise(&report, &folder, output)?;
    unread.map_or(Ok(code), Err)
}

/// Says that a store cannot be read: whether it is sound is not known.
fn unreadable(report: &VerifyReport, folder: &Path, output: &mut Output) -> Result<Code, Failure> {
    if output.json {
        output.json_line(&Verified { report, signed: &[] })?;
        return Ok(Code::Locked);
    }
    output.line(format!("{}: {}", folder.display(), output.paint(describe::BAD, "cannot be read")))?;
    for why in &report.not_proven {
        output.line(format!("  {:<10} {why}", "unread"))?;
    }
    if report.frames > 0 {
        output.line(format!("  {:<10} {}", "checked", checked(report)))?;
        let store = store_path::quoted(folder);
        output.line(format!(
            "What to do: give the key (acpdb help encryption), or check the bytes alone: acpdb --db {store} verify --without-key"
        ))?;
        return Ok(Code::Locked);
    }
    output.line(
        "What to do: see whether this user may read the folder and its files, and whether the disk is sound.",
    )?;
    Ok(Code::Locked)
}

/// How much was checked.
fn checked(report: &VerifyReport) -> String {
    format!(
        "{} in {}, {}, {}",
        describe::count(report.events, "event"),
        describe::count(report.frames, "frame"),
        describe::count(report.bodies, "body"),
        describe::bytes(report.bytes)
    )
}

/// The answer for programs.
#[derive(serde::Serialize)]
struct Verified<'a> {
    #[serde(flatten)]
    report: &'a VerifyReport,
    signed: &'a [serde_json::Value],
}

/// The given keys, one of which has to be for this store.
fn given(key: &str, store: StoreId) -> Result<Vec<VerifierKey>, Failure> {
    let keys = crate::keys::verifiers(key)?;
    if keys.iter().any(|key| key.name() == acpdb_proof::origin(store)) {
        return Ok(keys);
    }
    let names: Vec<&str> = keys.iter().map(VerifierKey::name).collect();
    let message = format!("it is of another store: this is {store}, the key is for {}", names.join(", "));
    Err(Failure::new(Code::Damage, message).hint("look for the folder that was here before"))
}

/// Signed checkpoints, compared with a log that is sound in itself.
pub(super) fn signed(
    report: &VerifyReport,
    folder: &Path,
    ring: Option<&rings::Ring>,
    given: &[VerifierKey],
) -> Result<Option<Judged>, Failure> {
    if matches!(report.verdict(), Verdict::Damaged) && !report.violations.is_empty() {
        return Ok(None);
    }
    let builder = acpdb_engine::Store::builder(folder).registry(acpdb_hosts::registry()).read_only();
    // Events of an encrypted store are compared with signed checkpoints only where its key is at hand.
    let store = match ring {
        Some(ring) => builder.keys(Arc::clone(ring)).open(),
        None => builder.open(),
    };
    match store {
        Ok(store) if claims::are_there(&store)? => claims::judge(&store, given).map(Some),
        // The report has told why the log cannot be opened.
        _ => Ok(None),
    }
}

/// Whether links that were kept elsewhere contradict this log.
fn is_inconsistent(report: &VerifyReport) -> bool {
    let mut found = report.contradicting().filter(|witness| witness.kind == WitnessKind::Expected);
    found.any(|witness| witness.standing == WitnessStatus::Forked)
}

fn print(report: &VerifyReport, folder: &Path, output: &mut Output) -> Result<(), Failure> {
    let line = |name: &str, text: String| format!("  {name:<10} {text}");
    let verdict = match report.verdict() {
        Verdict::Sound => output.paint(describe::GOOD, "sound"),
        Verdict::Damaged if !report.violations.is_empty() => output.paint(describe::BAD, "damaged"),
        Verdict::Damaged if is_inconsistent(report) => {
            output.paint(describe::BAD, "inconsistent with links that were kept")
        }
        Verdict::Damaged if report.has_no_tail() && report.saved.is_empty() => {
            output.paint(describe::BAD, "the log is sound, and the file that says where it ends is gone")
        }
        Verdict::Damaged => {
            output.paint(describe::BAD, "the log is sound, and what is saved beside it is not")
        }
        Verdict::Unreadable => output.paint(describe::BAD, "cannot be read"),
        Verdict::TailLost => output.paint(describe::BAD, "acknowledged events are missing"),
        Verdict::Contradicted if is_only_erasures(report) => {
            output.paint(describe::BAD, "sound, but what was erased can be read")
        }
        Verdict::Contradicted => output.paint(describe::BAD, "sound, but what this program concludes is not"),
    };
    output.line(format!("{}: {verdict}", folder.display()))?;
    output.line(line("head", format!("#{}  link {}", report.head_seq.get(), report.head_link)))?;
    output.line(line("checked", checked(report)))?;
    if report.torn_bytes > 0 {
        let text = format!(
            "{} of an unfinished write at the end: never acknowledged, no damage",
            describe::bytes(report.torn_bytes)
        );
        output.line(line("torn", text))?;
    }
    for text in witnesses(report) {
        output.line(line("witness", text))?;
    }
    for violation in &report.violations {
        let events = match (violation.seq_first, violation.seq_last) {
            (Some(first), Some(last)) if first != last => format!("; costs events {first} to {last}"),
            (Some(first), _) => format!("; costs event {first}"),
            _ => String::new(),
        };
        let place = format!("{} at byte {}", violation.path.display(), violation.offset);
        output
            .line(line("damage", format!("{} of {place}: {}{events}", violation.kind, violation.detail)))?;
    }
    if let Some((first, last)) = report.missing {
        output
            .line(line("missing", format!("events {first} to {last} were acknowledged and are not there")))?;
    }
    for saved in &report.saved {
        let text = format!("{} of stream {}: {}", saved.path.display(), saved.stream, saved.detail);
        output.line(line("forged", text))?;
    }
    for contradiction in &report.contradictions {
        let item = contradiction.item.map(|item| format!("{item}: ")).unwrap_or_default();
        let name = if is_erasure(contradiction) { "erased" } else { "fold" };
        output.line(line(
            name,
            format!("{item}{} (invariant {})", contradiction.detail, contradiction.invariant),
        ))?;
    }
    if acpdb_engine::store::erasure_is_pending(folder) {
        output.line(line("erasure", store_path::ERASING.to_owned()))?;
    }
    for note in &report.not_proven {
        output.line(line("not proven", note.clone()))?;
    }
    Ok(())
}

/// The items of which a text that is on record as erased can be read, each once.
fn again(report: &VerifyReport) -> impl Iterator<Item = ItemId> {
    let items: BTreeSet<ItemId> = report
        .contradictions
        .iter()
        .filter(|found| is_erasure(found))
        .filter_map(|found| found.item)
        .collect();
    items.into_iter()
}

/// Each witness in a line; headers of segments that agree have one line.
fn witnesses(report: &VerifyReport) -> Vec<String> {
    let is_sound_header = |witness: &&Witness| {
        witness.kind == WitnessKind::Segment
            && matches!(witness.standing, WitnessStatus::Agrees | WitnessStatus::Behind)
    };
    let mut headers = report.witnesses.iter().filter(is_sound_header).count();
    let mut lines = Vec::new();
    for witness in &report.witnesses {
        if is_sound_header(&witness) {
            match std::mem::take(&mut headers) {
                0 => {}
                1 => lines.push("1 header of a segment agrees (seq, position, link)".to_owned()),
                count => lines.push(format!("{count} headers of segments agree (seq, position, link)")),
            }
        // A record of the tail page that is only behind the newest one adds nothing.
        } else if witness.kind != WitnessKind::Tail || witness.standing != WitnessStatus::Behind {
            lines.push(of_witness(witness));
        }
    }
    lines
}

fn of_witness(witness: &Witness) -> String {
    let name = match witness.kind {
        WitnessKind::Expected => "the link that was kept",
        _ => witness.name.as_str(),
    };
    let seq = witness.seq.map(|seq| format!(" at {seq}")).unwrap_or_default();
    let standing = match witness.standing {
        WitnessStatus::Behind => "agrees, and is behind".to_owned(),
        standing => standing.to_string(),
    };
    let seq = if matches!(witness.standing, WitnessStatus::Absent) { String::new() } else { seq };
    let mut text = format!("{name} {standing}{seq}");
    if !witness.compared.is_empty() {
        text.push_str(&format!(" ({})", witness.compared.join(", ")));
    }
    if let Some(detail) = &witness.detail {
        text.push_str(": ");
        text.push_str(detail);
    }
    text
}

/// Says which verbs work, and the remedy.
fn advise(report: &VerifyReport, folder: &Path, output: &mut Output) -> Result<(), Failure> {
    let (folder, store) = (folder.display(), store_path::quoted(folder));
    let lines: Vec<String> = match report.verdict() {
        Verdict::Sound => return Ok(()),
        Verdict::Contradicted if is_only_erasures(report) => vec![
            "Works: everything. A file of the log was put back that is older than the erasure.".to_owned(),
            "What to do: erase each again:".to_owned(),
        ]
        .into_iter()
        .chain(again(report).map(|item| {
            format!("  acpdb --db {store} erase '{item}' --by NAME --reason 'the file of an older copy was put back'")
        }))
        .collect(),
        Verdict::Contradicted => vec![
            "Works: everything; nothing that was recorded is damaged or lost.".to_owned(),
            format!("What to do: report the lines above, at {}/issues.", env!("CARGO_PKG_REPOSITORY")),
        ],
        _ if !report.violations.is_empty() || report.missing.is_some() => vec![
            if report.lost_texts_alone() {
                "Works: everything else, appending too. Does not: erasing.".to_owned()
            } else {
                "Works: reading everything else (acpdb log, list, context, history). Does not: appending.".to_owned()
            },
            "What to do:".to_owned(),
            format!("  1. copy {folder} elsewhere, before anything else"),
            format!("  2. make a new store of it: acpdb --db {store} doctor salvage --into NEW"),
            "     or, if a backup has more, use a copy of it, and import into it what came later".to_owned(),
        ],
        _ if is_inconsistent(report) => vec![
            "The log is sound in itself, and is not the one whose link was kept.".to_owned(),
            "What to do: find the copy that holds that link; whatever is only in this one was written later, or by \
             another program."
                .to_owned(),
        ],
        Verdict::TailLost => vec![
            "The log is sound in itself, and ends before an event whose link was kept.".to_owned(),
            "What to do: look for a newer copy of the store.".to_owned(),
        ],
        Verdict::Unreadable => return Ok(()),
        Verdict::Damaged if report.has_no_tail() && report.saved.is_empty() => vec![
            "Works: everything. Events that came after the last one here may be lost: nothing else says where the log ended.".to_owned(),
            "What to do: look for the file tail, in a backup or on the disk; without it".to_owned(),
            format!("  acpdb --db {store} doctor seal   makes one, like every verb that writes, from what is there"),
        ],
        Verdict::Damaged => vec![
            "Works: everything, once those files are gone; the log is whole.".to_owned(),
            "What to do: keep a copy of them if you want to know who wrote them, and remove them; they are made \
             anew from the log."
                .to_owned(),
        ],
    };
    lines.into_iter().try_for_each(|line| output.line(line))
}
