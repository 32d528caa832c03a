//! `acpdb verify`: every digest and link checked, in words and with an exit code.

use acpdb_engine::verify::Verdict;

use super::describe;
use crate::args::{Global, Verify};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

pub(crate) fn run(global: &Global, args: &Verify, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "verify")?;
    let folder = place::folder(global, output)?;
    let report = {
        let _spinner = super::progress::spinner("verifying", output);
        acpdb_engine::verify::verify_folder(&folder, args.deep)?
    };
    let code = match report.verdict() {
        Verdict::Sound => Code::Ok,
        Verdict::Damaged => Code::Damage,
        Verdict::TailLost => Code::LostTail,
    };
    if output.json {
        output.json_line(&report)?;
        return Ok(code);
    }
    let line = |name: &str, text: String| format!("  {name:<10} {text}");
    let verdict = match report.verdict() {
        Verdict::Sound => output.paint(describe::GOOD, "sound"),
        Verdict::Damaged => output.paint(describe::BAD, "damaged"),
        Verdict::TailLost => output.paint(describe::BAD, "acknowledged events are missing"),
    };
    output.line(format!("{}: {verdict}", folder.display()))?;
    output.line(line("head", format!("#{}  link {}", report.head_seq.get(), report.head_link)))?;
    output.line(line(
        "checked",
        format!(
            "{} in {}, {}, {}",
            describe::count(report.events, "event"),
            describe::count(report.frames, "frame"),
            describe::count(report.bodies, "body").replace("bodys", "bodies"),
            describe::bytes(report.bytes)
        ),
    ))?;
    if report.torn_bytes > 0 {
        let text = format!(
            "{} of an unfinished write at the end: never acknowledged, no damage",
            describe::bytes(report.torn_bytes)
        );
        output.line(line("torn", text))?;
    }
    for witness in &report.witnesses {
        let seq = witness.seq.map(|seq| format!(" at {seq}")).unwrap_or_default();
        output.line(line("witness", format!("{} agrees{seq}", witness.name)))?;
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
    for contradiction in &report.contradictions {
        let item = contradiction.item.map(|item| format!("{item}: ")).unwrap_or_default();
        output.line(line(
            "fold",
            format!("{item}{} (invariant {})", contradiction.detail, contradiction.invariant),
        ))?;
    }
    if acpdb_engine::store::erasure_is_pending(&folder) {
        output.line(line("erasure", place::ERASING.to_owned()))?;
    }
    for note in &report.not_proven {
        output.line(line("not proven", note.clone()))?;
    }
    if code != Code::Ok {
        let folder = folder.display();
        output.line(
            "Works: reading everything else (acpdb log, list, context, history). Does not: appending.",
        )?;
        output.line("What to do:")?;
        output.line(format!("  1. copy {folder} elsewhere, before anything else"))?;
        output.line("  2. restore a backup if you have one: it is a store, open it with --db")?;
        output.line(format!(
            "  3. else save the rest as a new store: acpdb --db {folder} salvage --into NEW"
        ))?;
    }
    Ok(code)
}
