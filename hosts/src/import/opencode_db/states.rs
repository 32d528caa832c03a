//! Earlier states of opencode's parts, which its table `event` keeps and the tables of parts and messages no longer have.
//!
//! ```text
//! event message.part.updated.N   {sessionID, part:{id, ..}, time}     a state of a part, whole
//! event message.updated.N        {sessionID, info:{id, ..}}           a state of a message
//! ```
//!
//! The table only grows, also where a message is taken back and its rows are gone. A state is kept, as a record about its
//! part, if it says something that its newest state does not: an output or a text that was replaced, or anything of a part
//! that is gone. States on the way to the newest (a call that begins, a text that grows) are not kept: they would double
//! each session.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use acpdb_engine::entry::{Entry, StreamInfo, fact};

use super::super::{ImportContext, ImportError, json, millis, wire};
use super::{SessionRows, text, unreadable};
use crate::sqlite::Database;

/// Beginnings of the types of events that tell of parts and messages.
pub(super) const KINDS: &[&str] = &[PART, MESSAGE];
const PART: &str = "message.part.updated";
const MESSAGE: &str = "message.updated";

/// The content of a state that another may lack: both fields as they stand in JSON, for one program writes them alike.
/// Outputs are long, and only compared as a whole: their length and digest will do.
#[derive(Default)]
struct Says {
    text: Box<str>,
    output: Option<(usize, blake3::Hash)>,
}

impl Says {
    fn of(text: Option<&str>, state: Option<&str>) -> Self {
        let [output, error] =
            state.and_then(|state| json::pick(state, ["output", "error"])).unwrap_or_default();
        let said = |value: Option<&str>| value.is_some_and(|value| value.starts_with('"'));
        let output = output.filter(|_| said(output)).or(error.filter(|_| said(error)));
        let output = output.filter(|output| *output != "\"\"");
        let text = text.and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
        Self {
            text: text.unwrap_or_default().into(),
            output: output.map(|output| (output.len(), blake3::hash(output.as_bytes()))),
        }
    }

    /// Whether the other state says everything that this one says.
    fn is_in(&self, other: &Self) -> bool {
        other.text.starts_with(&*self.text) && (self.output.is_none() || self.output == other.output)
    }
}

/// Records earlier states of a session's parts.
pub(super) fn import(
    rows: &SessionRows,
    database: &Database<'_>,
    session: &str,
    stream: &Arc<StreamInfo>,
    end: u64,
    context: &mut ImportContext<'_>,
) -> Result<(), ImportError> {
    let Some((table, data)) = rows.events.table() else { return Ok(()) };
    let [own, kind] = table.places(["id", "type"]);
    let messages = rows.messages.of(session);
    let present: HashSet<&str> = messages
        .iter()
        .flat_map(|message| rows.parts.of(rows.messages.id(message)).iter().map(|part| rows.parts.id(part)))
        .chain(messages.iter().map(|message| rows.messages.id(message)))
        .collect();
    // From the newest on: later content is then known when an earlier state is met.
    let mut later: BTreeMap<String, Says> = BTreeMap::new();
    let mut found = Vec::new();
    for row in rows.events.of(session).iter().rev() {
        let event = database.row_at(table, row.place()).map_err(unreadable)?.unwrap_or_default();
        let kind = text(&event, kind).unwrap_or_default();
        let is_part = kind.starts_with(PART);
        if !is_part && !kind.starts_with(MESSAGE) {
            continue;
        }
        let name = if is_part { "part" } else { "info" };
        let Some([about, at]) = text(&event, Some(data)).and_then(|data| json::pick(data, [name, "time"]))
        else {
            continue;
        };
        let Some([id, said, state]) = about.and_then(|about| json::pick(about, ["id", "text", "state"]))
        else {
            continue;
        };
        let Some(id) = json::owned(id) else { continue };
        let says = if is_part { Says::of(said, state) } else { Says::default() };
        let is_said = later.get(&id).map_or(present.contains(id.as_str()), |later| says.is_in(later));
        if is_said {
            later.entry(id).or_insert(says);
            continue;
        }
        let record = if is_part { "earlier/part" } else { "earlier/message" };
        let fact = fact::HostRecorded { record: record.to_owned(), about: Some(id.clone()), raw: None };
        let wire = wire::build(about.unwrap_or_default().as_bytes(), &[]);
        let own = text(&event, own).unwrap_or_default();
        found.push(Entry::from(fact).origin(format!("state:{own}")).at(millis(at)).wire(wire));
        later.insert(id, says);
    }
    for entry in found.into_iter().rev() {
        context.report.records += 1;
        context.emit(stream, vec![entry], end)?;
    }
    Ok(())
}
