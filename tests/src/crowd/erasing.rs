//! Acts of a thread that erase its own messages.

use acpdb_engine::Error;
use acpdb_engine::entry::Entry;
use acpdb_engine::event::Role;

use super::board::Post;
use super::diary::{Line, Note};
use super::thread::{Hand, seqs};
use super::{GONE_BYTES, session, told};

impl Hand<'_> {
    /// Erases a message of its own.
    pub(super) fn erases(&mut self) -> Result<(), String> {
        if self.own.is_empty() {
            return Ok(());
        }
        let own = self.own.swap_remove(self.dice.below(self.own.len()));
        let (store, reason) = (self.store(), self.tag());
        self.member.begins(self.thread, "erase");
        self.diary.note(&Note::Erases(reason.clone(), vec![own.text.clone()]))?;
        match store.erase(own.item, "crowd", &reason) {
            Ok(report) if report.recorded.is_none() => Err(format!("erase: nothing was hit: {report:?}")),
            Ok(_) => {
                self.diary.note(&Note::Erased(reason))?;
                let beginning = own.text.get(..GONE_BYTES).unwrap_or(&own.text).to_owned();
                self.member.board.post(&Post::TextGone(beginning))
            }
            // Others seal or erase; or it was acknowledged before a sync, and other handles do not see it yet.
            Err(Error::Busy { .. } | Error::NotFound { .. }) => Ok(()),
            Err(error) if self.is_stale(&error) => Ok(()),
            Err(error) => Err(format!("erase: {} ({error:?})", told(&error))),
        }
    }

    /// Begins a session of its own.
    pub(super) fn begins_session(&mut self) -> Result<(), String> {
        let tag = self.tag();
        let (name, text) = (format!("own {tag}"), self.text(&tag));
        let entries = vec![Entry::message("", Role::User, &text)];
        let lines = vec![Line::new(&name, "message_recorded", text)];
        let info = session(&name);
        self.records("own", lines, |store| store.append(&info, entries).map(|receipt| seqs(&receipt)))?;
        Ok(())
    }
}
