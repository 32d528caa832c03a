//! A session taken up again, and messages that come in piece by piece.
//!
//! ```text
//! open_or_resume -> Resumed { calls and messages that a crash left open }
//! message(key) -> push, push, ..  -> finish (with the calls it asks for, in the same commit)  |  abandon
//! ```
//!
//! Each piece is durable when `push` returns, and bears an origin made of the message's key and its number, so pieces that
//! are told again after a crash are not recorded twice. Dropping a handle ends nothing: the message stays open, and
//! the process that resumes the session finds it.

use rustc_hash::FxHashSet;

use crate::command::ingest_state::OpenCall;
use crate::entry::{Entry, Fact, PartEntry, fact};
use crate::error::Error;
use crate::event::{Report, Role};

use super::{Receipt, Session};

/// Open calls and messages that a host finds when it takes up a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "what a crash left open is still open"]
pub struct Resumed {
    /// The session was opened just now: nothing was ever recorded in it.
    pub is_new: bool,
    /// Calls without a result, oldest first.
    pub calls: Vec<OpenCall>,
    /// Keys of the assistant's messages that were begun and neither finished nor abandoned, oldest first.
    pub messages: Vec<String>,
}

/// A message of the assistant under way.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::PartEntry;
/// use acpdb_engine::event::Report;
///
/// let mut message = session.message("m1");
/// for piece in ["It prints ", "a line."] {
///     let _ = message.push(PartEntry::text(piece))?; // what came survives a crash
/// }
/// let _ = message.finish(Report::default(), [])?;
/// assert_eq!(session.view()?.current().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a message that is not finished stays open"]
pub struct MessageStream {
    session: Session,
    key: String,
    count: u32,
}

impl Session {
    /// Opens the session if it is new; else tells the calls and messages that its last host left open. Durable when it returns.
    ///
    /// Cost: one commit for a new session; else a fold of it (kept).
    ///
    /// # Errors
    /// As [`Session::append`].
    pub fn open_or_resume(&self) -> Result<Resumed, Error> {
        let receipt = self.append([])?;
        if receipt.event_count > 0 {
            return Ok(Resumed { is_new: true, ..Resumed::default() });
        }
        Ok(Resumed { is_new: false, calls: self.open_calls()?, messages: self.open_messages()? })
    }

    /// Ends the calls and messages that a crash left open: calls are aborted for this reason, messages abandoned. One commit, if any.
    ///
    /// # Errors
    /// As [`Session::append`].
    pub fn give_up(&self, resumed: &Resumed, why: &str) -> Result<Receipt, Error> {
        let calls = resumed.calls.iter().map(|call| Entry::tool_aborted(&call.call, why));
        let messages =
            resumed.messages.iter().map(|key| Entry::from(fact::MessageAbandoned { key: key.clone() }));
        self.append(calls.chain(messages))
    }

    /// Keys of the assistant's messages in the context that were begun and neither finished nor abandoned, oldest first.
    ///
    /// Only hosts that finish their messages learn something from it. Cost: a fold of the session (kept).
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing was recorded yet.
    pub fn open_messages(&self) -> Result<Vec<String>, Error> {
        // A call that is open is known before its sync, too.
        self.store().inner.sync()?;
        let view = self.view()?;
        let (state, at) = (view.state(), view.at());
        let finished: FxHashSet<&str> =
            state.message_reports(at).iter().map(|(_, report)| report.key.as_str()).collect();
        let mut open: Vec<String> = Vec::new();
        for ix in state.current(at) {
            let Some(item) = state.item_header(ix, at) else { continue };
            let key = item.message.filter(|_| item.role == Role::Assistant);
            if let Some(key) = key.filter(|key| !finished.contains(&**key))
                && open.last().is_none_or(|last| **last != *key)
            {
                open.push(key.to_string());
            }
        }
        Ok(open)
    }

    /// A message of the assistant that comes in piece by piece. Nothing is recorded before its first piece.
    pub fn message(&self, key: impl Into<String>) -> MessageStream {
        MessageStream { session: self.clone(), key: key.into(), count: 0 }
    }
}

impl MessageStream {
    /// Its key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Records the next part. Durable when it returns.
    ///
    /// # Errors
    /// As [`Session::append`]; the part was not recorded then and may be pushed again.
    pub fn push(&mut self, part: PartEntry) -> Result<Receipt, Error> {
        let key = self.key.clone();
        let origin = format!("msg:{key}/{}", self.count);
        let entry = if self.count == 0 {
            Entry::message_parts(key, Role::Assistant, vec![part])
        } else {
            fact::MessageContinued { key, parts: vec![part] }.into()
        };
        let receipt = self.session.append([entry.origin(origin)])?;
        self.count = self.count.saturating_add(1);
        Ok(receipt)
    }

    /// Ends the message with the provider's report about it, and records the calls it asks for in the same commit: so a
    /// crash never leaves an answer whose calls are forgotten.
    ///
    /// Calls that name no message are put into this one.
    ///
    /// # Errors
    /// As [`Session::append`]; the message is open still.
    pub fn finish(self, report: Report, calls: impl IntoIterator<Item = Entry>) -> Result<Receipt, Error> {
        let report = fact::MessageFinished { key: self.key.clone(), report };
        let origin = format!("msg:{}:finish", self.key);
        let calls = calls.into_iter().map(|call| match &call.fact {
            Fact::ToolStarted(fact::ToolStarted { message: None, .. }) => call.in_message(&self.key),
            _ => call,
        });
        // A message of nothing but calls has no part that opened it.
        self.session.append(std::iter::once(Entry::from(report).origin(origin)).chain(calls))
    }

    /// Gives the message up: its parts leave the context. For an answer that broke off and is asked for again.
    ///
    /// # Errors
    /// As [`Session::append`].
    pub fn abandon(self) -> Result<Receipt, Error> {
        if self.count == 0 {
            return Ok(Receipt::default());
        }
        self.session.append([fact::MessageAbandoned { key: self.key.clone() }.into()])
    }
}
