//! `acpdb salvage`: everything that verifies, as a new store.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::Error;
use acpdb_engine::store::{SalvageOptions, Salvaged, salvage};
use indicatif::ProgressBar;

use super::{Code, Escape, Failure, Global, Output, backup, describe, store_path};
use crate::args::Salvage;
use crate::lazy_ring::Ring;
use crate::rings;

pub(crate) fn run(global: &Global, args: &Salvage, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "salvage")?;
    let folder = store_path::folder(global, output)?;
    let bar = if output.progress { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let mut ring = rings::of(&folder, global.key_file.as_deref())?;
    let mut options = SalvageOptions { backups: args.backup.clone(), keys: Vec::new() };
    let folders = || std::iter::once(folder.as_path()).chain(args.backup.iter().map(PathBuf::as_path));
    let keys_with = |ring: &Ring| [vec![Arc::clone(ring)], rings::all_kept(folders())].concat();
    options.keys = ring.as_ref().map(keys_with).unwrap_or_default();
    let run = |options: &SalvageOptions| {
        salvage(&folder, &args.into, options, &mut |events| bar.set_message(format!("{events} events")))
    };
    let mut done = run(&options);
    // A store that lost all of its keys may have them in a backup. Nothing was made yet.
    if matches!(done, Err(Error::Locked { .. })) && ring.is_none() {
        for backup in &args.backup {
            if ring.is_none() {
                ring = rings::of(backup, global.key_file.as_deref())?;
            }
        }
        if let Some(ring) = &ring {
            options.keys = keys_with(ring);
            done = run(&options);
        }
    }
    bar.finish_and_clear();
    let done = done.map_err(|error| failed(error, args))?;
    // If events or texts are missing, or may be, the salvage is done in part.
    let code = if done.is_whole() { Code::Ok } else { Code::Partial };
    if output.json {
        output.json_line(&done)?;
        return Ok(code);
    }
    tell(&done, args, output)?;
    if let Some(ring) = &ring {
        output.line(format!("The same key opens the new store: {}.", ring.name()))?;
    }
    Ok(code)
}

/// Makes a folder that does not fit a usage error with the next step.
fn failed(error: Error, args: &Salvage) -> Failure {
    let is_of =
        |path: &Path| *path != *args.into && args.backup.iter().any(|backup| path.starts_with(backup));
    match &error {
        Error::Io { path, source, .. } if source.kind() == ErrorKind::InvalidInput => {
            let hint = if is_of(path) {
                "leave it out; only a backup of the damaged store can fill its gaps"
            } else {
                "name a folder beside it"
            };
            Failure::from(error).coded(Code::Usage).hint(hint)
        }
        Error::Io { path, source, .. }
            if source.kind() == ErrorKind::AlreadyExists
                && path.as_os_str().to_string_lossy().trim_end_matches('/').ends_with(".partial") =>
        {
            let hint = "a salvage that was interrupted left it, or one is at work; remove it if none is";
            Failure::from(error).coded(Code::Usage).hint(hint)
        }
        Error::NotAStore { path, .. } | Error::Io { path, .. } if is_of(path) => {
            Failure::from(error).hint("--backup names a folder that acpdb backup made")
        }
        _ => backup::taken(error, "new store"),
    }
}

/// Most lost texts, and files of keys from a backup, that are named.
const NAMED_COUNT_MAX: usize = 10;

fn tell(done: &Salvaged, args: &Salvage, output: &mut Output) -> Result<(), Failure> {
    let events = describe::count(done.events, "event");
    output.line(format!("{}: {events} copied, as store {}", done.path.display(), done.store))?;
    let has_keys = !done.keys_from_backups.is_empty();
    if has_keys {
        let files = describe::count(done.keys_from_backups.len() as u64, "file");
        let named: Vec<&str> =
            done.keys_from_backups.iter().take(NAMED_COUNT_MAX).map(String::as_str).collect();
        output.line(format!("  found {files} of keys in a backup: {}", named.join(", ")))?;
    }
    let has_events = done.events_from_backups > 0 || done.bodies_from_backups > 0;
    if has_events {
        let events = describe::count(done.events_from_backups, "event");
        let texts = describe::count(done.bodies_from_backups, "text");
        output.line(format!("  found {events} and {texts} in a backup, each put in its place"))?;
    }
    for (first, last) in &done.lost_events {
        let text = if first == last { format!("event {first}") } else { format!("events {first} to {last}") };
        output
            .line(format!("  lost  {text}: noted in their place, so that all others keep their numbers"))?;
    }
    for body in done.lost_bodies.iter().take(NAMED_COUNT_MAX) {
        output.line(format!("  lost  a text of event {}: a note stands in its place", body.seq))?;
    }
    if let Some(rest) = done.lost_bodies.get(NAMED_COUNT_MAX..).filter(|rest| !rest.is_empty()) {
        let texts = describe::count(rest.len() as u64, "more text");
        output.line(format!("  lost  {texts}; --json names the event of each"))?;
    }
    for lost in &done.lost_keys {
        // The file's name is made of hex digits, so it needs no escape.
        let why = output.recorded(&lost.why, Escape::Line);
        output.line(format!("  lost  the events that {} opens: {why}", lost.file))?;
    }
    if done.new_keys > 0 {
        let streams = describe::count(done.new_keys, "stream");
        output.line(format!(
            "  lost  the signature key of {streams}: calls before the damage are not recognised as repeated"
        ))?;
    }
    if done.has_new_secret {
        output.line(
            "  lost  the store's secret: a recording that was imported before is imported a second time",
        )?;
    }
    for witness in &done.contradicting {
        // A witness without a detail about the log's own value is ahead of the log.
        let found = witness.detail.clone().unwrap_or_default();
        let name = output.recorded(&witness.name, Escape::Line);
        output.line(format!("  lost  perhaps what {name} tells of: {found}"))?;
    }
    if !done.source_head_is_known {
        output.line(format!(
            "  lost  perhaps events behind {}: nothing that can be read says where the log ended",
            done.source_head
        ))?;
    }
    for (first, last) in &done.unconfirmed_events {
        let events =
            if first == last { format!("event {first} is") } else { format!("events {first} to {last} are") };
        output.line(format!(
            "  note  {events} of a backup, and nothing in the damaged store confirms that: right, unless that folder was written to by \
             itself"
        ))?;
    }
    if (has_events || has_keys) && (!done.lost_events.is_empty() || !done.source_head_is_known) {
        output.line("  note  an erasure may be among what is lost: see whether a text is back that you erased after the backup")?;
    }
    if done.is_whole() {
        return output.line("Nothing is lost.");
    }
    if !done.lost_keys.is_empty() {
        output.line(
            "Put the files of keys back from a copy of the folder keys, or give a backup that has it, and salvage again.",
        )?;
    }
    if !done.lost_events.is_empty() {
        let into = store_path::quoted(&done.path);
        output
            .line("Events that are lost here and not elsewhere come back, each at the end of its session:")?;
        output.line(format!("  acpdb --db {into} import   from the files of hosts"))?;
    }
    if args.backup.is_empty() {
        output.line("A backup of the damaged store gives back what it still has, each in its place:")?;
        output.line("  acpdb salvage --into ANOTHER --backup BACKUP")?;
    }
    output.line("Keep the damaged store: this can be done again.")
}
