//! Texts that are due to be put into a context: a reminder, a reflection, a notice of its size, memory.
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

use acpdb_engine::entry::{Entry, fact};
use acpdb_engine::event::InjectedKind;
use acpdb_engine::fold::memory::{kind_label, said_by_label};
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::text::words::entry;
use acpdb_engine::{Error, MemoryScope, Receipt, Session, View};

use crate::reminder::{Reflection, Reminder};
use crate::size_notice::SizeNotice;

/// A text that is due.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Injection {
    /// Its kind.
    pub what: InjectedKind,
    /// The text.
    pub text: String,
}

impl Injection {
    /// The texts that are due now, in the order in which they are to be sent; none while a call is open.
    ///
    /// Cost: O(the session's memory and open calls).
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn due(session: &Session) -> Result<Vec<Self>, Error> {
        if !session.open_calls()?.is_empty() {
            return Ok(Vec::new());
        }
        let view = session.view()?;
        let mut due = Vec::new();
        due.extend(memory_due(session, &view)?.map(|text| Self { what: InjectedKind::Memory, text }));
        let reminder = Reminder::due(&view);
        due.extend(reminder.map(|due| Self { what: InjectedKind::Reminder, text: due.text }));
        let reflection = Reflection::due(&view);
        due.extend(reflection.map(|due| Self { what: InjectedKind::Reflection, text: due.text }));
        let notice = SizeNotice::due(&view);
        due.extend(notice.map(|due| Self { what: InjectedKind::Size, text: due.text }));
        Ok(due)
    }
}

/// Records the texts that are due in a session as injected; `None` if none is due.
///
/// # Errors
/// As [`Store::append`](acpdb_engine::Store::append).
pub fn inject(session: &Session) -> Result<Option<Receipt>, Error> {
    let due = Injection::due(session)?;
    if due.is_empty() {
        return Ok(None);
    }
    let entry = |due: Injection| -> Entry {
        fact::Injected { what: due.what, text: due.text.as_bytes().into() }.into()
    };
    session.append(due.into_iter().map(entry)).map(Some)
}

/// The memory block that is due: all items that hold at the beginning of an epoch, later the changes.
fn memory_due(session: &Session, view: &View) -> Result<Option<String>, Error> {
    let (shown_at, epoch) = {
        let state = view.state();
        let blocks = state.injected(InjectedKind::Memory, view.at());
        let epoch = state.rebases(view.at()).iter().rev().find(|rebase| rebase.items.is_empty());
        (blocks.last().copied(), epoch.map_or(Seq::ZERO, |rebase| rebase.seq))
    };
    let now = session.store().now();
    let current = remembered(session, Seq::MAX, now)?;
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
    let shown = remembered(session, shown_at, now)?;
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
fn remembered(session: &Session, at: Seq, now: Micros) -> Result<BTreeMap<String, String>, Error> {
    let memory = session.store().memory(&MemoryScope::session(session.id()), at)?;
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
        (held.id, entry(&line))
    });
    Ok(lines.collect())
}
