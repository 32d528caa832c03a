//! Acts of a thread on keys: of sessions, of subjects, and the ring around all of them.

use acpdb_engine::entry::{Entry, Fact, PointRef, fact};
use acpdb_engine::event::Role;
use acpdb_engine::{Error, Store};

use super::board::Post;
use super::diary::{Line, Note};
use super::thread::{Hand, seqs};
use super::weather::SKY;
use super::{ABOUT, KIN, session, told};
use crate::support::events;

/// Subjects that have sessions at a time.
const SUBJECT_COUNT: usize = 2;

impl Hand<'_> {
    /// Other keys for later events.
    pub(super) fn rotates_data_keys(&mut self) -> Result<(), String> {
        if !self.member.setting.encrypted {
            return self.reads();
        }
        let stream = if self.dice.one_in(3) { None } else { Some(session(&self.session()).id()) };
        let store = self.store();
        self.member.begins(self.thread, "rotate keys");
        match store.rotate_data_keys(stream) {
            Ok(_) | Err(Error::NotFound { .. } | Error::Busy { .. }) => Ok(()),
            Err(error) if self.is_stale(&error)? => Ok(()),
            Err(error) => Err(format!("rotate keys: {} ({error:?})", told(&error))),
        }
    }

    /// Another ring around all keys. Other threads may do the same at the same time, or take up what a killed one left.
    pub(super) fn rotates_ring(&mut self) -> Result<(), String> {
        let setting = &self.member.setting;
        let board = &self.member.board;
        let from = board.rings()?.done;
        let to = from + 1;
        let Some(ring) = setting.ring(to) else { return self.reads() };
        self.member.begins(self.thread, "rotate ring");
        let mark = SKY.mark();
        let locked = |error: &Error, by: u32| -> Result<bool, String> {
            Ok(matches!(error, Error::Locked { .. }) && board.rings()?.begun >= by)
        };
        let store = match setting.builder(&self.member.folder, &mut self.dice, from).open() {
            Ok(store) => store,
            Err(error) if locked(&error, to)? || SKY.excuses(mark, &error) => return Ok(()),
            Err(error) => return Err(format!("open with ring {from}: {}", told(&error))),
        };
        board.post(&Post::RingBegun(to))?;
        match store.rotate_keys(&ring) {
            Ok(_) => board.post(&Post::RingDone(to))?,
            Err(error) if locked(&error, to + 1)? => return Ok(()),
            Err(error) if SKY.excuses(mark, &error) => return self.member.ends_rotation(),
            Err(error) => return Err(format!("rotate ring: {} ({error:?})", told(&error))),
        }
        drop(store);
        match setting.builder(&self.member.folder, &mut self.dice, from).open() {
            Err(Error::Locked { .. }) => {}
            Err(error) if SKY.excuses(mark, &error) => {}
            opened => return Err(format!("ring {from} opens the store, which has ring {to}: {opened:?}")),
        }
        let opened = setting.builder(&self.member.folder, &mut self.dice, to).open();
        let read = opened.and_then(|store| {
            let all = events(&store)?;
            for body in all.iter().flat_map(crate::support::texts_of) {
                match store.body(body) {
                    Ok(_) | Err(Error::Erased { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        match read {
            Ok(()) => Ok(()),
            Err(error) if locked(&error, to + 1)? || SKY.excuses(mark, &error) => Ok(()),
            Err(error) => Err(format!("ring {to}, which wraps all keys: {} ({error:?})", told(&error))),
        }
    }

    /// The subject with this number that has sessions now.
    fn subject(&mut self) -> Result<String, String> {
        let number = self.dice.below(SUBJECT_COUNT);
        let begins = format!("{number}.");
        let mut gone = self.member.board.posts()?.into_iter().filter_map(|post| match post {
            Post::SubjectGone(name) => name.strip_prefix(&begins)?.parse::<u32>().ok(),
            _ => None,
        });
        let next = gone.by_ref().max().map_or(0, |last| last + 1);
        Ok(format!("{number}.{next}"))
    }

    fn is_going(&self, subject: &str) -> Result<bool, String> {
        Ok(self.member.board.posts()?.contains(&Post::SubjectGoes(subject.to_owned())))
    }

    /// A message in a session about a subject, or in one that goes on from it.
    pub(super) fn speaks_about(&mut self) -> Result<(), String> {
        if !self.member.setting.encrypted {
            return self.say();
        }
        let (subject, tag) = (self.subject()?, self.tag());
        let about = format!("{ABOUT}{subject} {}", self.dice.below(2));
        let text = self.text(&tag);
        let said = Line::new(&about, "message_recorded", text.clone());
        let message = Entry::message("", Role::User, &text);
        if self.dice.one_in(4) {
            let from = session(&about).id();
            let Some(at) = self.does("head", |store| store.view(from).map(|view| view.at()))? else {
                return Ok(());
            };
            let name = format!("{KIN}{subject} {tag}");
            let forked = Entry::from(Fact::Forked(fact::Forked { from, at: PointRef::Seq(at) }));
            let entries = vec![forked.origin(format!("fork:{tag}")), message];
            let lines = vec![Line::new(&name, "forked", ""), Line::new(&name, "message_recorded", text)];
            return self.says_about(&subject, &name, entries, lines);
        }
        self.says_about(&subject, &about, vec![message], vec![said])
    }

    fn says_about(
        &mut self,
        subject: &str,
        name: &str,
        entries: Vec<Entry>,
        lines: Vec<Line>,
    ) -> Result<(), String> {
        let mut is_gone = false;
        let info = session(name);
        let done = self.records("about", lines, |store| {
            let done = store.append(&info, entries).map(|receipt| seqs(&receipt));
            is_gone = matches!(done, Err(Error::Erased { .. }));
            done
        })?;
        if is_gone && !self.is_going(subject)? {
            return Err(format!("{name} was refused as shredded, and no thread shreds {subject}"));
        }
        // A refusal because of other keys is no fault.
        let _ = done;
        Ok(())
    }

    /// Shreds a subject: all sessions about it at once.
    pub(super) fn shreds_subject(&mut self) -> Result<(), String> {
        if !self.member.setting.encrypted {
            return self.shreds();
        }
        let (subject, reason) = (self.subject()?, self.tag());
        let store = self.store();
        self.member.begins(self.thread, "shred subject");
        self.diary.note(&Note::Erases(reason.clone(), Vec::new()))?;
        self.diary.note(&Note::ShredsSubject(subject.clone()))?;
        self.member.board.post(&Post::SubjectGoes(subject.clone()))?;
        match store.shred_subject(&subject, "crowd", &reason) {
            Ok(_) => {
                self.diary.note(&Note::ShreddedSubject(subject.clone()))?;
                self.member.board.post(&Post::SubjectGone(subject.clone()))?;
            }
            // It has no session yet, others seal or erase, or others shredded it.
            Err(Error::NotFound { .. } | Error::Busy { .. } | Error::Erased { .. }) => return Ok(()),
            Err(error) if self.is_stale(&error)? => return Ok(()),
            Err(error) => return Err(format!("shred subject: {} ({error:?})", told(&error))),
        }
        for name in [format!("{ABOUT}{subject} 0"), format!("{ABOUT}{subject} late")] {
            let lines = vec![Line::new(&name, "message_recorded", "too late")];
            let entries = vec![Entry::message("", Role::User, "too late")];
            let is_done = self.records("shredded", lines, |store| {
                store.append(&session(&name), entries).map(|receipt| seqs(&receipt))
            })?;
            if is_done {
                return Err(format!("{name} took a message after its subject was shredded"));
            }
        }
        let Some(known) = self.does("subjects", Store::subjects)? else { return Ok(()) };
        if known.iter().any(|known| known.name == subject) {
            return Err(format!("subject {subject} was shredded, and is told"));
        }
        Ok(())
    }
}
