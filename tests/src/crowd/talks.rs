//! Messages that a thread records piece by piece.

use acpdb_engine::event::Report;
use acpdb_engine::{PartEntry, Session, Store};

use super::diary::Line;
use super::thread::{Hand, seqs};
use super::{session, told};

impl Hand<'_> {
    /// A message in pieces, in a session of its own or in a shared one: ended, given up, or left open.
    pub(super) fn talks(&mut self) -> Result<(), String> {
        let is_own = self.dice.one_in(2);
        let own = format!("talk {} {}", self.member.number, self.thread);
        let name = if is_own { own } else { self.session() };
        let (store, key) = (self.store(), self.tag());
        let talk = store.session(session(&name));
        if is_own && !self.left.is_empty() && self.dice.one_in(3) {
            return self.gives_up(&store, &talk, &name);
        }
        let mut message = talk.message(key.clone());
        let mut count = 0;
        for piece in 0..=self.dice.below(4) {
            let text = self.text(&format!("{key}.{piece}"));
            let label = if count == 0 { "message_recorded" } else { "message_continued" };
            let lines = vec![Line::new(&name, label, text.clone())];
            let is_done = self.records_on(&store, "push", lines, |_| {
                message.push(PartEntry::text(&text)).map(|receipt| seqs(&receipt))
            })?;
            count += usize::from(is_done);
            self.number += 1;
        }
        if is_own && count > 0 && self.is_open(&store, &talk, &key)? == Some(false) {
            return Err(format!("{name} has no open message {key}"));
        }
        let is_ended = match self.dice.below(3) {
            0 => {
                let lines = vec![Line::new(&name, "message_finished", "")];
                self.records_on(&store, "finish message", lines, |_| {
                    message.finish(Report::default(), []).map(|receipt| seqs(&receipt))
                })?
            }
            1 if count > 0 => {
                let lines = vec![Line::new(&name, "message_abandoned", "")];
                self.records_on(&store, "abandon message", lines, |_| {
                    message.abandon().map(|receipt| seqs(&receipt))
                })?
            }
            _ => false,
        };
        if is_own && count > 0 && !is_ended {
            self.left.push(key.clone());
        }
        if is_own && is_ended && self.is_open(&store, &talk, &key)? == Some(true) {
            return Err(format!("{name} has the message {key}, which ended, as open"));
        }
        Ok(())
    }

    /// Takes its own session up again, as after a crash, and gives up the messages that it left open.
    fn gives_up(&mut self, store: &Store, talk: &Session, name: &str) -> Result<(), String> {
        let resumed = match store.sync().and_then(|()| talk.open_or_resume()) {
            Ok(resumed) => resumed,
            Err(error) if self.is_stale(&error) => return Ok(()),
            Err(error) => return Err(format!("resume: {} ({error:?})", told(&error))),
        };
        if resumed.is_new || resumed.messages != self.left {
            return Err(format!("{name} left {:?} open, and is taken up with {resumed:?}", self.left));
        }
        let lines = self.left.iter().map(|_| Line::new(name, "message_abandoned", "")).collect();
        let is_done = self.records_on(store, "give up", lines, |_| {
            talk.give_up(&resumed, "crowd").map(|receipt| seqs(&receipt))
        })?;
        if is_done {
            self.left.clear();
        }
        Ok(())
    }

    /// Whether a message is open. `None`: the keys are wrapped by another ring by now.
    fn is_open(&mut self, store: &Store, talk: &Session, key: &str) -> Result<Option<bool>, String> {
        // Views show durable events alone.
        match store.sync().and_then(|()| talk.open_messages()) {
            Ok(open) => Ok(Some(open.iter().any(|open| open == key))),
            Err(error) if self.is_stale(&error) => Ok(None),
            Err(error) => Err(format!("open messages: {} ({error:?})", told(&error))),
        }
    }
}
