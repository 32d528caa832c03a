//! `acpdb doctor salvage`: everything that verifies, as a new store.

use std::io::ErrorKind;

use acpdb_engine::Error;
use acpdb_engine::store::{Salvaged, salvage_with};
use indicatif::ProgressBar;

use super::{Code, EscapeLevel, Failure, Global, Output, describe, store_path};
use crate::args::Salvage;
use crate::rings;

pub(crate) fn run(global: &Global, args: &Salvage, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "salvage")?;
    let folder = store_path::folder(global, output)?;
    let bar = if output.progress { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let keys = rings::used(rings::of_store(&folder, global.key_file.as_deref())?);
    let progress = &mut |events| bar.set_message(format!("{events} events"));
    let done = salvage_with(&folder, &args.into, &keys, progress);
    bar.finish_and_clear();
    let done = done.map_err(failed)?;
    // A copy of a store that was found and is not the user's own stays one.
    if global.db.is_some() || crate::own_stores::is_own(&folder) {
        store_path::enter(&done.path, output);
    }
    // If events or texts are missing, or may be, the salvage is done in part.
    let code = if done.is_whole() { Code::Ok } else { Code::Partial };
    if output.json {
        output.json_line(&done)?;
        return Ok(code);
    }
    tell(&done, output)?;
    Ok(code)
}

/// Makes a folder that does not fit a usage error with the next step.
fn failed(error: Error) -> Failure {
    match &error {
        Error::Io { source, .. } if source.kind() == ErrorKind::InvalidInput => {
            Failure::from(error).coded(Code::Usage).hint("name a folder beside it")
        }
        _ => Failure::taken(error, "new store"),
    }
}

/// Most lost texts that are named.
const NAMED_COUNT_MAX: usize = 10;

fn tell(done: &Salvaged, output: &mut Output) -> Result<(), Failure> {
    let events = describe::count(done.events, "event");
    let shown = super::escape(&done.path.display().to_string(), EscapeLevel::Line).into_owned();
    output.line(format!("{shown}: {events} copied, as store {}", done.store))?;
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
        let name = output.recorded(&witness.name, EscapeLevel::Line);
        output.line(format!("  lost  perhaps what {name} tells of: {found}"))?;
    }
    if !done.source_head_is_known {
        output.line(format!(
            "  lost  perhaps events behind {}: nothing that can be read says where the log ended",
            done.source_head
        ))?;
    }
    if done.is_whole() {
        return output.line("Nothing is lost.");
    }
    if !done.lost_events.is_empty() {
        let into = store_path::quoted(&done.path);
        output
            .line("Events that are lost here and not elsewhere come back, each at the end of its session:")?;
        output.line(format!("  acpdb --db {into} import OTHER   from another store that has them"))?;
        output.line(format!("  acpdb --db {into} import         from the files of hosts"))?;
    }
    output.line("If a backup has more, use a copy of it, and import into it what came later.")?;
    output.line("Keep the damaged store: this can be done again.")
}
