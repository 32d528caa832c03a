//! Messages that the user took back: `session.revert{messageID, partID}`, and messages that are gone.

use acpdb_engine::entry::{Entry, PointRef, fact};

use super::super::{ImportContext, ImportError, json};
use super::SessionReader;

/// The message that a session is reverted to, and the part, if it is reverted: they and all behind are not sent.
#[derive(Default)]
pub(super) struct RevertPoint {
    to: Option<(String, Option<String>)>,
    /// The first fact of what is reverted.
    first: Option<String>,
}

impl RevertPoint {
    /// Reads the revert of a session's info.
    pub(super) fn of(info: &str) -> Self {
        let [message, part] = json::member(Some(info), "revert")
            .and_then(|revert| json::pick(revert, ["messageID", "partID"]))
            .unwrap_or_default()
            .map(json::owned);
        Self { to: message.map(|message| (message, part)), first: None }
    }

    /// Notes the first fact of a message, or of a part, if that is what is reverted.
    pub(super) fn note(&mut self, id: &str, entries: &[Entry]) {
        let is_it = |(message, part): &(String, Option<String>)| part.as_ref().unwrap_or(message) == id;
        if self.to.as_ref().is_some_and(is_it) && self.first.is_none() {
            self.first = entries.iter().find_map(|entry| entry.origin.clone());
        }
    }
}

impl SessionReader {
    /// Says which messages the session has: those of the list, up to the one that it is reverted to.
    pub(in crate::import) fn present(
        &self,
        ids: impl Iterator<Item = String>,
        context: &mut ImportContext<'_>,
    ) {
        let mut keys = Vec::new();
        for id in ids {
            let reverted = self.undo.to.as_ref().filter(|(message, _)| *message == id);
            match reverted {
                Some((_, None)) => break,
                // A part of it is not.
                Some((_, Some(_))) => {
                    keys.push(id);
                    break;
                }
                None => keys.push(id),
            }
        }
        context.sink.present(&self.stream, keys);
    }

    /// Takes note of the facts of a message: it may be the one that is reverted to.
    pub(in crate::import) fn note(&mut self, id: &str, entries: &[Entry]) {
        self.undo.note(id, entries);
    }

    /// Takes back what is reverted, once it has been told.
    pub(in crate::import) fn revert(
        &self,
        end: u64,
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        let (Some((message, part)), Some(origin)) = (&self.undo.to, &self.undo.first) else { return Ok(()) };
        let name = part.as_ref().unwrap_or(message);
        let rewound = fact::Rewound { to: PointRef::Before(origin.clone()) };
        let entry = Entry::from(rewound).origin(format!("reverted:{name}"));
        context.emit(&self.stream, vec![entry], end)
    }
}
