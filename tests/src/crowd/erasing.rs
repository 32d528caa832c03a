//! Acts of a thread that erase its own messages and shred its own sessions.

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
            Err(error) if self.is_stale(&error)? => Ok(()),
            Err(error) => Err(format!("erase: {} ({error:?})", told(&error))),
        }
    }

    /// Begins a session of its own, or shreds one.
    pub(super) fn shreds(&mut self) -> Result<(), String> {
        let tag = self.tag();
        if !self.member.setting.encrypted || self.victims.is_empty() || self.dice.one_in(2) {
            let (name, text) = (format!("own {tag}"), self.text(&tag));
            let entries = vec![Entry::message("", Role::User, &text)];
            let lines = vec![Line::new(&name, "message_recorded", text)];
            let info = session(&name);
            self.victims.push(name);
            self.records("own", lines, |store| store.append(&info, entries).map(|receipt| seqs(&receipt)))?;
            return Ok(());
        }
        let name = self.victims.swap_remove(self.dice.below(self.victims.len()));
        let store = self.store();
        self.member.begins(self.thread, "shred");
        self.diary.note(&Note::Erases(tag.clone(), Vec::new()))?;
        self.diary.note(&Note::Shreds(name.clone()))?;
        match store.shred(session(&name).id(), "crowd", &tag) {
            Ok(_) => {
                self.diary.note(&Note::Shredded(name.clone()))?;
                self.member.board.post(&Post::SessionGone(name.clone()))?;
            }
            // As for an erasure.
            Err(Error::Busy { .. } | Error::NotFound { .. }) => return Ok(()),
            Err(error) if self.is_stale(&error)? => return Ok(()),
            Err(error) => return Err(format!("shred: {} ({error:?})", told(&error))),
        }
        let entries = vec![Entry::message("", Role::User, "too late")];
        let lines = vec![Line::new(&name, "message_recorded", "too late")];
        let is_done = self
            .records("shredded", lines, |store| store.append(&session(&name), entries).map(|it| seqs(&it)))?;
        if is_done { Err(format!("{name} took a message after it was shredded")) } else { Ok(()) }
    }
}
