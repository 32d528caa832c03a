//! The index of what a compaction took, given to the model once: with the start that a host tells behind a compaction, else with a
//! prompt.
//!
//! The rows are those of `acpdb lost` ([`acpdb_query::lost`]). The index is due while at most [`PROMPT_COUNT_MAX`] prompts stand in the log
//! behind the compaction. That it was given is recorded, since not every host records the words of hooks.

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Payload;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::text::tokens::estimate;
use acpdb_engine::{Error, Store};
use acpdb_query::lost::{last_compaction, lost};
use serde_json::json;

use crate::if_there;

/// Most tokens of the index.
pub const TOKENS_MAX: u32 = 800;
/// Prompts that may stand behind a compaction when the index is given, for every host: a command that made it may count as one, and the
/// prompt that the index is given with may be in the log. opencode has two there: the one that was under way, and its own that bids the
/// model go on.
const PROMPT_COUNT_MAX: u32 = 2;
/// The kind of the record that an index was given.
const GIVEN: &str = "acpdb/lost";

/// An index that is due.
#[derive(Debug)]
pub struct LostIndex {
    /// Its words.
    pub text: String,
    /// The record that it was given. It has not the words: where the host does not keep them, they are recorded with it, once.
    pub given: Entry,
}

/// The index that is due in a session; `None` if there is none. Nothing is recorded.
///
/// Cost: a fold of the session (kept by snapshots); if it is due, the texts of what left.
///
/// # Errors
/// If the store cannot be read.
pub fn due(store: &Store, info: &StreamInfo) -> Result<Option<LostIndex>, Error> {
    let session = info.id();
    let Some(view) = if_there(store.view(session))? else { return Ok(None) };
    // Most sessions never lost anything, and most hooks ask about such a session.
    if view.state().departed(view.at()).is_empty() && view.state().served(view.at()).is_empty() {
        return Ok(None);
    }
    let Some(name) = store.stream_name(session)? else { return Ok(None) };
    let Some(last) = last_compaction(store, &view, &name)? else { return Ok(None) };
    let prompts = |at: Seq| view.state().prompt_count(at);
    // The compaction is before the end of the view, and so are its prompts.
    let since = prompts(view.at()).saturating_sub(prompts(last.seq));
    if since > PROMPT_COUNT_MAX || is_given(store, session, last.seq)? {
        return Ok(None);
    }
    let Some(text) = lost(store, &view, &name)?.index(TOKENS_MAX) else { return Ok(None) };
    let raw = json!({"compaction": last.seq, "tokens": estimate(text.as_bytes())}).to_string();
    let given = Entry::host_record(GIVEN, Some(raw.as_bytes().into())).at(Some(store.now()));
    Ok(Some(LostIndex { text, given }))
}

/// The words of the index that is [`due`], for a host that shows them. Durable when it returns: it is recorded as given.
///
/// # Errors
/// If the store cannot be read or written.
pub fn give(store: &Store, info: &StreamInfo) -> Result<Option<String>, Error> {
    let Some(LostIndex { text, given }) = due(store, info)? else { return Ok(None) };
    // Its receipt is for callers that go on from there.
    let _ = store.append(info, vec![given])?;
    Ok(Some(text))
}

/// Whether the index was given behind a compaction.
fn is_given(store: &Store, session: StreamId, compaction: Seq) -> Result<bool, Error> {
    for recorded in store.stream_events(session, compaction, Seq::MAX)? {
        match recorded {
            Ok(recorded) => {
                if matches!(&recorded.event.payload, Payload::HostRecorded(record) if record.record == GIVEN)
                {
                    return Ok(true);
                }
            }
            // Damage may cost the record: then the index is given twice.
            Err(Error::Corrupt { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
