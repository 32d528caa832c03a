//! `acpdb merge OTHER-STORE`, and the merge by `import` of a file from `export jsonl`: adds the new events here.

use std::path::{Path, PathBuf};

use acpdb_engine::store::{MergeOptions, MergeReport, VerifyOptions, verify_store};
use serde::Serialize;

use super::lines::one_line;
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::Merge;

/// Most places of damage that are named; `acpdb verify` names all.
const DAMAGE_COUNT_MAX: usize = 8;

pub(crate) fn run(global: &Global, args: &Merge, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "merge")?;
    let folder = other_folder(&args.store);
    if !folder.join("acpdb.json").is_file() {
        let failure = Failure::not_found(format!("{} is no store", args.store.display()));
        return Err(failure.hint(if args.store.is_file() {
            format!("what `export jsonl` wrote is read by: acpdb import {}", store_path::quoted(&args.store))
        } else {
            "name the folder with acpdb.json in it, or the project's folder above .acpdb".to_owned()
        }));
    }
    let mut other = store_path::builder(&folder, global)?.read_only().open()?;
    store_path::report_end(&other, output);
    let store = store_path::open_redacting(global, &args.redact, output)?;
    let report = store.merge(&mut other, MergeOptions { erase: args.erase })?;
    crate::kept::leave(&store);
    store.close()?;
    if output.json {
        output.json_object("acpdb.merge/1", &Merged { path: &args.store, report: &report })?;
    } else {
        say(&args.store, &report, output)?;
    }
    if report.texts_lost > 0 {
        tell_of_damage(&folder, output);
    }
    Ok(code(&report))
}

/// Lists the damage of a store from which texts came without their bytes: they may be erased or damaged, and damaged texts are no
/// success.
fn tell_of_damage(folder: &Path, output: &Output) {
    match verify_store(folder, &VerifyOptions::default()) {
        Ok(found) => {
            for violation in found.violations.iter().take(DAMAGE_COUNT_MAX) {
                let place = format!("{} at byte {}", violation.path.display(), violation.offset);
                output.left_out(&format!("{} of {place}: {}", violation.kind, violation.detail));
            }
        }
        Err(error) => output.warn(format!("whether texts are damaged there is not known: {error}")),
    }
}

/// The store's folder: the named one, or `.acpdb` in it.
fn other_folder(named: &Path) -> PathBuf {
    let inside = named.join(store_path::FOLDER);
    if !named.join("acpdb.json").is_file() && inside.join("acpdb.json").is_file() {
        inside
    } else {
        named.to_owned()
    }
}

/// The result of a merge, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct Merged<'a> {
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    pub(crate) path: &'a Path,
    #[serde(flatten)]
    pub(crate) report: &'a MergeReport,
}

/// The exit code of a merge. Only verified events are merged; a part that was left out counts as damage.
pub(crate) fn code(report: &MergeReport) -> Code {
    if report.left_out_count > 0 { Code::Damage } else { Code::Ok }
}

/// Prints the result of a merge.
pub(crate) fn say(path: &Path, report: &MergeReport, output: &mut Output) -> Result<(), Failure> {
    let new = match report.events_new {
        0 => "nothing new".to_owned(),
        count => format!("{} new", describe::count(count, "event")),
    };
    let known = describe::count(report.events_known, "event");
    output.line(format!("{}: {new}, {known} known", path.display()))?;
    if report.streams_new > 0 {
        // A branch may be of a session that was here before.
        let others = report.streams_new.saturating_sub(report.branches.len() as u64);
        if others > 0 {
            output.line(format!(
                "  {} new here: sessions, projects, the user",
                describe::count(others, "stream")
            ))?;
        }
    }
    for name in &report.continued {
        output.line(format!("  {} goes on", one_line(name)))?;
    }
    for branch in &report.branches {
        let from = branch
            .from
            .map_or_else(|| "only the name is the same".to_owned(), |seq| format!("from {seq} on"));
        output.line(format!(
            "  {} went on in both stores: what the other has is {} ({from})",
            one_line(&branch.session),
            one_line(&branch.branch)
        ))?;
    }
    if report.policy_taken {
        output.line("  the store's policy is the other's, which was set later")?;
    }
    if report.redacted > 0 {
        output.line(format!("  {} taken out", describe::count(report.redacted, "secret")))?;
    }
    if report.texts_lost > 0 {
        output.note(format!(
            "{} came without their bytes: erased or damaged there, or erased here before",
            describe::count(report.texts_lost, "text")
        ));
    }
    for erased in &report.erased_there {
        let item = erased.item;
        if erased.done {
            let session = one_line(&erased.session);
            output.line(format!("  {item} of {session} was erased there, and is erased here now"))?;
        } else {
            output.warn(format!(
                "{item} of {} was erased there and is still here: acpdb erase '{item}' --reason 'erased elsewhere', or \
                 merge with --erase",
                erased.session
            ));
        }
    }
    for session in &report.shredded_here {
        output.note(format!(
            "{session} is left out: it, its subject or a session that it came from was shredded here"
        ));
    }
    for told in &report.told_otherwise {
        output.note(format!(
            "{} of {} has other words there: each store keeps its own",
            told.item, told.session
        ));
    }
    let more = report.told_otherwise_count - report.told_otherwise.len() as u64;
    if more > 0 {
        output.note(format!("{more} more have other words there"));
    }
    for left in &report.left_out {
        output.warn(format!("left out: {left}"));
    }
    let more = report.left_out_count - report.left_out.len() as u64;
    if more > 0 {
        output.warn(format!("left out: {more} more of this kind"));
    }
    Ok(())
}
