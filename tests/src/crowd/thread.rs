//! A thread of a round: acts by a seed, on the handles that it shares with others.

use acpdb_engine::ids::ItemId;
use acpdb_engine::locks::steady;
use acpdb_engine::{Error, Receipt, Store, View};

use super::diary::{Diary, Line, Note};
use super::member::Member;
use super::weather::SKY;
use super::{SESSION_COUNT, told};
use crate::soak::Dice;

/// A message of this thread, that it may erase.
pub(super) struct Own {
    pub(super) item: ItemId,
    pub(super) text: String,
}

/// A view, and what it showed when it was made.
pub(super) struct Held {
    pub(super) view: View,
    pub(super) digest: [u8; 32],
}

/// A thread with its diary.
pub struct Hand<'a> {
    pub(super) member: &'a Member,
    pub(super) thread: usize,
    pub(super) dice: Dice,
    pub(super) diary: Diary,
    pub(super) number: u32,
    pub(super) own: Vec<Own>,
    pub(super) held: Option<Held>,
    /// Messages that it left open in its own session.
    pub(super) left: Vec<String>,
    pub(super) copies: usize,
    /// The place of the handle that it used last.
    pub(super) at: usize,
    /// That handle is poisoned.
    pub(super) stale: bool,
    /// The sky when it began its act.
    mark: u64,
}

/// An act's outcome: the first and the last seq, if anything was recorded.
pub(super) type Done = Result<Option<(u64, u64)>, Error>;

impl<'a> Hand<'a> {
    /// A thread of a process.
    ///
    /// # Errors
    /// If it can have no diary.
    pub fn new(member: &'a Member, thread: usize, seed: u64) -> Result<Self, String> {
        let diary = Diary::new(&member.folder, member.number, thread)?;
        Ok(Self {
            member,
            thread,
            dice: Dice::new(seed),
            diary,
            number: 0,
            own: Vec::new(),
            held: None,
            left: Vec::new(),
            copies: 0,
            at: 0,
            stale: false,
            mark: 0,
        })
    }

    /// Does all its acts.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn play(mut self) -> Result<(), String> {
        for _ in 0..self.member.setting.acts {
            self.act().map_err(|wrong| format!("thread {}, act {}: {wrong}", self.thread, self.number))?;
        }
        Ok(())
    }

    /// A handle, of those that the process shares.
    pub(super) fn store(&mut self) -> Store {
        let place = self.dice.below(self.member.setting.handles);
        self.at = place;
        steady(self.member.handle(place)).clone()
    }

    /// Whether an error comes of bad weather. A handle that is poisoned is opened anew before the next act.
    pub(super) fn is_stale(&mut self, error: &Error) -> bool {
        self.stale |= matches!(error, Error::Poisoned);
        SKY.excuses(self.mark, error)
    }

    /// Whether calls could fail since this act began.
    pub(super) fn was_bad(&self) -> bool {
        SKY.was_bad(self.mark)
    }

    /// The name of this act, part of all its texts.
    pub(super) fn tag(&self) -> String {
        format!("p{}t{}n{}", self.member.number, self.thread, self.number)
    }

    pub(super) fn text(&mut self, mark: &str) -> String {
        let length = if self.dice.one_in(24) { 9000 } else { self.dice.pick(&[12, 60, 300, 700, 1900], 12) };
        let filler = char::from(b'a' + u8::try_from(self.dice.below(26)).unwrap_or(0));
        format!("{mark} says {}", String::from(filler).repeat(length))
    }

    pub(super) fn session(&mut self) -> String {
        format!("s{}", self.dice.below(SESSION_COUNT))
    }

    pub(super) fn act(&mut self) -> Result<(), String> {
        self.number += 1;
        self.mark = SKY.mark();
        if std::mem::take(&mut self.stale) {
            self.reopens(self.at)?;
        }
        match self.dice.below(64) {
            0..7 | 41..47 => self.say(),
            7..10 => self.says_everywhere(),
            10..12 => self.revises_itself(),
            12..16 => self.tells_shared(),
            16..18 => self.submits(),
            18..21 => self.calls(),
            21..24 => self.finishes(),
            24..27 => self.acts_on_context(),
            27 => self.rewinds(),
            28 => self.forks(),
            29 => self.sets_policy(),
            30 | 31 => self.erases(),
            32 => self.begins_session(),
            33 => self.remembers(),
            34 => self.seals(),
            35 => self.indexes(),
            36 => self.saves(),
            37 => self.verifies(),
            38 | 39 => self.copies(),
            40 => {
                let place = self.dice.below(self.member.setting.handles);
                self.reopens(place)
            }
            47 => self.writes_page(),
            48..51 => self.erases_span(),
            51..53 => self.talks(),
            53 if self.dice.one_in(2) => self.proves(),
            53 => self.signs(),
            54..57 => self.looks_for_gone(),
            _ => self.reads(),
        }
    }

    /// Tries one commit, and notes its outcome.
    pub(super) fn records(
        &mut self,
        act: &str,
        lines: Vec<Line>,
        run: impl FnOnce(&Store) -> Done,
    ) -> Result<bool, String> {
        let store = self.store();
        self.records_on(&store, act, lines, run)
    }

    /// As [`Hand::records`], with the handle that was used last.
    pub(super) fn records_on(
        &mut self,
        store: &Store,
        act: &str,
        lines: Vec<Line>,
        run: impl FnOnce(&Store) -> Done,
    ) -> Result<bool, String> {
        self.member.begins(self.thread, act);
        let number = self.number;
        self.diary.note(&Note::Tries { act: act.to_owned(), number, lines })?;
        match run(store) {
            Ok(seqs) => {
                let (first, last) = seqs.unwrap_or_default();
                self.diary.note(&Note::Recorded(number, first, last))?;
                Ok(true)
            }
            Err(error) if self.may_fail(act, &error) => {
                self.refuses(number, &error)?;
                Ok(false)
            }
            Err(error) => Err(format!("{act}: {} ({error:?})", told(&error))),
        }
    }

    /// Notes that a commit was not made, or may have been.
    pub(super) fn refuses(&mut self, number: u32, error: &Error) -> Result<(), String> {
        let note = if matches!(error, Error::Poisoned) { Note::Unsure } else { Note::Refused };
        self.diary.note(&note(number, told(error)))
    }

    /// The errors that are no fault.
    pub(super) fn may_fail(&mut self, act: &str, error: &Error) -> bool {
        match error {
            // An act on something that is not there, or not any more.
            Error::Rejected(_) | Error::NotFound { .. } => {
                matches!(act, "context" | "rewind" | "policy" | "serve")
            }
            // Facts of others went first, as often as one tries. Commits of facts never end so.
            Error::HeadMoved { .. } => matches!(act, "context" | "rewind" | "policy" | "serve"),
            error => self.is_stale(error),
        }
    }

    /// Does something that records nothing.
    pub(super) fn does<T>(
        &mut self,
        act: &str,
        run: impl FnOnce(&Store) -> Result<T, Error>,
    ) -> Result<Option<T>, String> {
        let store = self.store();
        self.member.begins(self.thread, act);
        self.diary.note(&Note::Did(act.to_owned()))?;
        match run(&store) {
            Ok(done) => Ok(Some(done)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) if self.is_stale(&error) => Ok(None),
            Err(error) => Err(format!("{act}: {} ({error:?})", told(&error))),
        }
    }
}

/// The seqs of a commit, if it recorded anything.
pub(super) fn seqs(receipt: &Receipt) -> Option<(u64, u64)> {
    (receipt.event_count > 0).then(|| (receipt.first_seq.get(), receipt.last_seq.get()))
}
