//! Texts that are due to be put into a context: a reminder, a reflection, memory.
//!
//! ```text
//! memory:   epoch begins --> block of all that holds --> changes, one block each --> .. --> epoch ends, a new block
//! ```
//!
//! A host asks for them; asking shows nothing. A host that sends one records `Injected`, at the end of the context and
//! never while a call is open. Memory stays as it was at the beginning of its epoch, and changes are appended: texts that
//! were sent before stay the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::entry::{Entry, fact};
use crate::error::Error;
use crate::event::InjectedKind;
use crate::fold::memory::{kind_label, said_by_label};
use crate::ids::{Micros, Seq};
use crate::serve::reminder::{Reflection, Reminder};

use crate::store::session::Session;
use crate::store::{MemoryScope, Receipt, View};

/// A text that is due.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Injection {
    /// Its kind.
    pub what: InjectedKind,
    /// The text.
    pub text: String,
}

impl View {
    /// The todo reminder that is due at the watermark, if one is. A host that shows it records it as injected.
    pub fn reminder_due(&self) -> Option<Reminder> {
        let state = self.state();
        let settings = state.policy(self.at()).reminder;
        state.todos().reminder_due(self.at(), state.turn(self.at()), &settings).map(Reminder::from)
    }

    /// The reflection that is due at the watermark, if automata mode is on and one is.
    pub fn reflection_due(&self) -> Option<Reflection> {
        let state = self.state();
        let settings = state.policy(self.at()).automata;
        let (at, now) = (self.at(), state.turn(self.at()));
        state.todos().is_reflection_due(at, now, &settings).then(|| Reflection::due_in(now))
    }
}

impl Session {
    /// The texts that are due now, in the order in which they are to be sent; none while a call is open.
    ///
    /// Cost: O(the session's memory and open calls).
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn injections(&self) -> Result<Vec<Injection>, Error> {
        if !self.open_calls()?.is_empty() {
            return Ok(Vec::new());
        }
        let view = self.view()?;
        let mut due = Vec::new();
        due.extend(self.memory_due(&view)?.map(|text| Injection { what: InjectedKind::Memory, text }));
        let reminder = view.reminder_due();
        due.extend(reminder.map(|due| Injection { what: InjectedKind::Reminder, text: due.text }));
        let reflection = view.reflection_due();
        due.extend(reflection.map(|due| Injection { what: InjectedKind::Reflection, text: due.text }));
        Ok(due)
    }

    /// Records the due texts as injected; `None` if none is due.
    ///
    /// # Errors
    /// As [`Store::append`](crate::store::Store::append).
    pub fn inject(&self) -> Result<Option<Receipt>, Error> {
        let due = self.injections()?;
        if due.is_empty() {
            return Ok(None);
        }
        let entry = |due: Injection| -> Entry {
            fact::Injected { what: due.what, text: due.text.as_bytes().into() }.into()
        };
        self.append(due.into_iter().map(entry)).map(Some)
    }

    /// The memory block that is due: all items that hold at the beginning of an epoch, later the changes.
    fn memory_due(&self, view: &View) -> Result<Option<String>, Error> {
        let (shown_at, epoch) = {
            let state = view.state();
            let blocks = state.injected(InjectedKind::Memory, view.at());
            let epoch = state.rebases(view.at()).iter().rev().find(|rebase| rebase.items.is_empty());
            (blocks.last().copied(), epoch.map_or(Seq::ZERO, |rebase| rebase.seq))
        };
        let now = self.store().now();
        let current = self.remembered(Seq::MAX, now)?;
        let Some(shown_at) = shown_at.filter(|shown_at| *shown_at > epoch) else {
            if current.is_empty() {
                return Ok(None);
            }
            let mut text = "[memory]\n".to_owned();
            for line in current.values() {
                let _ = writeln!(text, "- {line}");
            }
            return Ok(Some(text));
        };
        let shown = self.remembered(shown_at, now)?;
        let mut text = String::new();
        for (id, line) in &shown {
            if !current.contains_key(id) {
                let _ = writeln!(text, "- no longer: {line}");
            }
        }
        for (id, line) in &current {
            if !shown.contains_key(id) {
                let _ = writeln!(text, "- {line}");
            }
        }
        Ok((!text.is_empty()).then(|| format!("[memory changed]\n{text}")))
    }

    /// The memory as of `at`, by id.
    fn remembered(&self, at: Seq, now: Micros) -> Result<BTreeMap<String, String>, Error> {
        let memory = self.store().memory(&MemoryScope::session(self.id()), at)?;
        let lines = memory.current(now).into_iter().map(|held| {
            let mut line = kind_label(held.kind).to_owned();
            if !held.category.is_empty() {
                let _ = write!(line, " {}", held.category);
            }
            if let Some(key) = &held.key {
                let _ = write!(line, "/{key}");
            }
            if let Some(by) = said_by_label(held.said_by) {
                let _ = write!(line, ", {by}");
            }
            let _ = write!(line, ": {}", held.value.unwrap_or_default()); // An erased text says nothing.
            (held.id, line)
        });
        Ok(lines.collect())
    }
}
