//! `acpdb salvage`: everything that verifies, as a new store.

use acpdb_engine::store::salvage;
use indicatif::ProgressBar;

use super::{Code, Failure, Global, Output, backup, describe, place};
use crate::args::Salvage;

pub(crate) fn run(global: &Global, args: &Salvage, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "salvage")?;
    let folder = place::folder(global, output)?;
    let bar = if output.progress { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
    let done = salvage(&folder, &args.into, &mut |events| bar.set_message(format!("{events} events")));
    bar.finish_and_clear();
    let done = done.map_err(|error| backup::taken(error, "new store"))?;
    // Something is missing: done, but in part.
    let whole = done.lost_events.is_empty() && done.lost_bodies.is_empty();
    let code = if whole { Code::Ok } else { Code::Partial };
    if output.json {
        output.json_line(&done)?;
        return Ok(code);
    }
    let events = describe::count(done.events, "event");
    output.line(format!("{}: {events} copied, as store {}", done.path.display(), done.store))?;
    for (first, last) in &done.lost_events {
        let text = if first == last { format!("event {first}") } else { format!("events {first} to {last}") };
        output
            .line(format!("  lost  {text}: noted in their place, so that all others keep their numbers"))?;
    }
    for body in &done.lost_bodies {
        output.line(format!("  lost  a text of event {}: shown as erased", body.seq))?;
    }
    if done.new_keys > 0 {
        let streams = describe::count(done.new_keys, "stream");
        output.line(format!(
            "  lost  the signature key of {streams}: calls before the damage are not recognised as repeated"
        ))?;
    }
    if whole {
        output.line("Nothing is lost.")?;
    } else {
        output.line("Keep the damaged store: a backup may hold what this one lacks.")?;
    }
    Ok(code)
}
