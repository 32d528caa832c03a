//! Earlier states of opencode's parts: what its table `event` keeps, and the tables of parts and messages no longer have.
//!
//! ```text
//! event message.part.updated.N   {sessionID, part:{id, ..}, time}     a state of a part, whole
//! event message.updated.N        {sessionID, info:{id, ..}}           a state of a message
//! ```
//!
//! The table only grows, also where a message is taken back and its rows are gone. A state is kept, as a record about its part,
//! if it says something that its newest state does not: an output or a text that was replaced, or anything of what is gone.
//! States on the way to the newest (a call that begins, a text that grows) are not: they would double each session.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use acpdb_engine::entry::{Entry, Fact, StreamInfo};

use super::super::{Context, ImportError, json, millis, wire};
use super::{Rows, text, unreadable};
use crate::sqlite::Database;

/// What a state says that another may lack.
#[derive(PartialEq, Eq, Default)]
struct Says {
    text: String,
    output: String,
}

impl Says {
    fn of(part: &str) -> Self {
        let [text, state] = json::pick(part, ["text", "state"]).unwrap_or_default();
        let [output, error] =
            state.and_then(|state| json::pick(state, ["output", "error"])).unwrap_or_default();
        let output = json::owned(output).or_else(|| json::owned(error));
        Self { text: json::owned(text).unwrap_or_default(), output: output.unwrap_or_default() }
    }

    /// Whether all that this says the other says as well.
    fn is_in(&self, other: &Self) -> bool {
        other.text.starts_with(&self.text) && (self.output.is_empty() || self.output == other.output)
    }
}

/// Records earlier states of a session's parts.
pub(super) fn import(
    rows: &Rows,
    database: &Database<'_>,
    session: &str,
    stream: &Arc<StreamInfo>,
    end: u64,
    context: &mut Context<'_>,
) -> Result<(), ImportError> {
    let Some((table, data)) = &rows.events.table else { return Ok(()) };
    let [kind] = table.places(["type"]);
    let messages = rows.messages.of(session);
    let present: HashSet<&str> = messages
        .iter()
        .flat_map(|message| rows.parts.of(&message.id).iter().map(|part| part.id.as_str()))
        .chain(messages.iter().map(|message| message.id.as_str()))
        .collect();
    // From the newest: what was said later is known when an earlier state is met.
    let mut later: BTreeMap<String, Says> = BTreeMap::new();
    let mut found = Vec::new();
    for row in rows.events.of(session).iter().rev() {
        let event = database.row_at(table, row.place.0).map_err(unreadable)?.unwrap_or_default();
        let kind = text(&event, kind).unwrap_or_default();
        let part = kind.starts_with("message.part.updated");
        if !part && !kind.starts_with("message.updated") {
            continue;
        }
        let Some([state, at]) = text(&event, Some(*data))
            .and_then(|data| json::pick(data, [if part { "part" } else { "info" }, "time"]))
        else {
            continue;
        };
        let Some(id) = json::owned(json::member(state, "id")) else { continue };
        let says = if part { Says::of(state.unwrap_or_default()) } else { Says::default() };
        let is_said = later.get(&id).map_or(present.contains(id.as_str()), |later| says.is_in(later));
        if is_said {
            later.entry(id).or_insert(says);
            continue;
        }
        let record = if part { "earlier/part" } else { "earlier/message" };
        let fact = Fact::HostRecorded { record: record.to_owned(), about: Some(id.clone()), raw: None };
        let wire = wire::build(state.unwrap_or_default().as_bytes(), &[]);
        found.push(Entry::from(fact).origin(format!("state:{}", row.id)).at(millis(at)).wire(wire));
        later.insert(id, says);
    }
    for entry in found.into_iter().rev() {
        context.report.records += 1;
        context.emit(stream, vec![entry], end)?;
    }
    Ok(())
}
