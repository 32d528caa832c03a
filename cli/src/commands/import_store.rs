//! `acpdb import STORE`: the sessions, acts and memory of another store.

use std::path::{Path, PathBuf};

use acpdb_engine::Store;
use acpdb_engine::event::Payload;
use acpdb_engine::fold::Policy;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::store::StoreImport;
use serde::Serialize;
use serde_json::Value;

use super::{Code, Failure, Output, describe, store_path};
use crate::args::ImportArgs;

/// An imported store, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct ImportedStore {
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    path: PathBuf,
    #[serde(flatten)]
    report: StoreImport,
    /// Its policy, if it differs from the one here.
    policy: Option<OtherPolicy>,
}

/// The parts of another store that are taken besides sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakenParts {
    pub(crate) memory: bool,
    pub(crate) policy: bool,
}

/// The policy of another store.
#[derive(Debug, Serialize)]
struct OtherPolicy {
    /// How it differs from its preset.
    changed: Value,
    /// The event that sets it here, if it was taken.
    seq: Option<Seq>,
    /// The event that set it here before: one that was known is not taken again.
    known: Option<Seq>,
}

/// The named folders that are stores, and the other paths.
pub(crate) fn split(args: &ImportArgs) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
    let (stores, files): (Vec<_>, Vec<_>) =
        args.paths.iter().cloned().partition(|path| path.join("acpdb.json").is_file());
    if let Some(store) = stores.first() {
        let store = store.display();
        if args.follow {
            return Err(Failure::usage(format!(
                "{store} is a store, and only files of hosts can be followed"
            )));
        }
        if args.format.is_some() {
            return Err(
                Failure::usage(format!("{store} is a store, and has no format")).hint("leave out --format")
            );
        }
    }
    if args.policy && stores.is_empty() {
        each_there(&args.paths)?;
        let refused = Failure::usage("--policy sets the policy of another store, and no store is named");
        return Err(
            refused.hint("acpdb import STORE --policy; acpdb policy import FILE takes one from a file")
        );
    }
    Ok((stores, files))
}

/// Shows the policy of the other store if it differs from the one here, and sets it here if that is asked for.
fn policy(
    source: &Store,
    store: &Store,
    is_wanted: bool,
    output: &Output,
) -> Result<Option<OtherPolicy>, Failure> {
    let other = source.policy(None, Seq::MAX)?;
    if *other == *store.policy(None, Seq::MAX)? {
        return Ok(None);
    }
    let mut found = OtherPolicy { changed: other.compact(), seq: None, known: known(store, &other)? };
    let text = found.changed.to_string();
    let shown = output.recorded(&text, super::EscapeLevel::Line);
    // A program has it in the answer.
    let note = |text: String| {
        if !output.json {
            output.note(text);
        }
    };
    match found.known {
        Some(seq) if is_wanted => note(format!(
            "its policy was set here before, by {seq}, and is not set again; acpdb policy set does it: {shown}"
        )),
        Some(_) => {}
        None if is_wanted => {
            note(format!("its policy is set here: {shown}"));
            let why = format!("from store {}", source.id());
            found.seq = Some(store.set_policy(None, &other, Some(&why))?);
        }
        None => note(format!("its policy is another one, and --policy sets it here: {shown}")),
    }
    Ok(Some(found))
}

/// The event that last set this policy for the whole store.
fn known(store: &Store, policy: &Policy) -> Result<Option<Seq>, Failure> {
    let mut last = None;
    for event in store.stream_events(StreamId::STORE, Seq(1), Seq::MAX)? {
        // Damage is told of by other verbs.
        let Ok(event) = event else { continue };
        if let Payload::PolicySet(set) = &event.event.payload
            && Policy::from_json(&set.policy).is_ok_and(|set| set == *policy)
        {
            last = Some(event.seq);
        }
    }
    Ok(last)
}

/// Opens another store, for reading only.
pub(crate) fn open(path: &Path, output: &mut Output) -> Result<Store, Failure> {
    let source = store_path::other(path)?.read_only().open()?;
    store_path::report_end(&source, output);
    Ok(source)
}

impl ImportedStore {
    /// Imports a store.
    pub(crate) fn of(
        path: &Path,
        source: &Store,
        store: &Store,
        taken: TakenParts,
        output: &Output,
    ) -> Result<Self, Failure> {
        let report = if taken.memory { store.import_with_memory(source)? } else { store.import(source)? };
        let policy = policy(source, store, taken.policy, output)?;
        Ok(Self { path: path.to_owned(), report, policy })
    }

    /// The exit code: events that were left out are damage.
    pub(crate) fn code(all: &[Self]) -> Code {
        if all.iter().any(|it| it.report.left_out_count > 0) { Code::Damage } else { Code::Ok }
    }

    /// Says what came in, and what did not.
    pub(crate) fn say(&self, output: &mut Output) -> Result<(), Failure> {
        let Self { path, report, policy } = self;
        let has_policy = policy.as_ref().is_some_and(|policy| policy.seq.is_some());
        let new = match report.events_new {
            0 => "nothing new".to_owned(),
            count => format!("{} recorded", describe::count(count, "event")),
        };
        let known = describe::count(report.events_known, "fact");
        output.line(format!("{} (store {}): {new}, {known} known", path.display(), report.source))?;
        if report.streams_new > 0 {
            let streams = describe::count(report.streams_new, "stream");
            output.line(format!("  {streams} new here: sessions, projects, the user"))?;
        }
        let not_taken: Vec<String> = [
            (report.memories, "item of memory", "items of memory"),
            (if has_policy { 0 } else { report.policies }, "policy", "policies"),
            (report.erasures, "erasure", "erasures"),
            (report.contexts, "record of a sent context", "records of sent contexts"),
            (report.unreadable, "event that cannot be read here", "events that cannot be read here"),
            (report.acts_lost, "act on items that are not here", "acts on items that are not here"),
        ]
        .into_iter()
        .filter(|(count, _, _)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
        .collect();
        if !not_taken.is_empty() {
            output.line(format!("  not taken: {}", not_taken.join(", ")))?;
        }
        if report.memories > 0 {
            let other = store_path::quoted(path);
            output.note(format!(
                "later sessions would be told of its memory: acpdb --db {other} memory shows it, and import --memory takes it"
            ));
        }
        if report.texts_erased > 0 {
            let texts = describe::count(report.texts_erased, "text");
            output.note(format!("{texts} were erased there: the word for it came in their place"));
        }
        if report.other_words > 0 {
            let facts = describe::count(report.other_words, "fact");
            output.note(format!("{facts} have other words there: this store keeps its own"));
        }
        for left in &report.left_out {
            output.left_out(left);
        }
        // No more are named than there are.
        let more = report.left_out_count.saturating_sub(report.left_out.len() as u64);
        if more > 0 {
            output.left_out(&format!("{more} more"));
        }
        Ok(())
    }
}

/// The failure if no path is there: one message, and no sums.
pub(super) fn some_there(paths: &[PathBuf]) -> Result<(), Failure> {
    if paths.iter().any(|path| path.symlink_metadata().is_ok()) {
        return Ok(());
    }
    each_there(paths)
}

/// The failure that names each path that is not there.
fn each_there(paths: &[PathBuf]) -> Result<(), Failure> {
    let is_gone = |path: &&PathBuf| path.symlink_metadata().is_err();
    let gone: Vec<String> = paths.iter().filter(is_gone).map(|path| path.display().to_string()).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let is = if gone.len() == 1 { "is" } else { "are" };
    Err(Failure::not_found(format!("{} {is} not there", gone.join(", "))))
}
