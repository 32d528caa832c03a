//! A session as a host uses it: open or resume, append, look, act.

use crate::command::draft::EventDraft;
use crate::command::ingest_state::OpenCall;
use crate::entry::{Entry, StreamInfo};
use crate::error::Error;
use crate::event::Actor;
use crate::ids::{Seq, StreamId};

use super::write::CommandDrafts;
use super::{At, Receipt, Store, Ticket, View};

/// One session (or project) of a store. Cheap to clone; opened in the log by its first append.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// use acpdb_engine::{Entry, Role, Store, StreamInfo};
///
/// let store = Store::builder(folder.path().join("store")).open()?;
/// let session = store.session(StreamInfo::session("my-agent", "run-1"));
/// for call in session.open_calls()? {
///     let _ = session.append([Entry::tool_aborted(&call.call, "the host was restarted")])?;
/// }
/// let receipt = session.append([
///     Entry::step("step-1"),
///     Entry::message("msg-1", Role::User, "what does main do?"),
///     Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
///     Entry::tool_completed("call-1", "fn main() {}"),
/// ])?; // durable and atomic when it returns
/// assert_eq!(receipt.items.len(), 4);
/// let view = session.view()?; // frozen: later appends do not show through it
/// assert_eq!(view.current().len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    store: Store,
    info: StreamInfo,
}

/// The drafts that a decision records, and its answer.
#[doc(hidden)]
pub type Drafts<T> = (Vec<EventDraft>, T);

impl Store {
    /// A stream as this store records it: without the secrets that its redactor takes out, and under a name of the store's
    /// own if the host derived it from a record's bytes; that name means itself. For nearly all streams the same as
    /// `info`.
    #[doc(hidden)]
    pub fn recorded_info(&self, info: &StreamInfo) -> StreamInfo {
        super::redact::stream(self.inner.redactor.as_deref(), self.inner.log.secret(), info)
    }

    /// A handle on one session. Nothing is read or written until it is used.
    #[expect(clippy::needless_pass_by_value, reason = "the handle is made of it")]
    pub fn session(&self, info: StreamInfo) -> Session {
        let info = self.recorded_info(&info);
        Session { store: self.clone(), info }
    }
}

impl Session {
    /// The session's stream.
    pub fn id(&self) -> StreamId {
        self.info.id()
    }

    /// The store that it is in.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Decides what to record in this session, and records it: durable when it returns. `decide` is given the session as it is,
    /// and is called again if another writer came first. Returns its answer, and the last seq if something was recorded.
    ///
    /// # Errors
    /// As [`Store::append`], or those of `decide`.
    #[doc(hidden)]
    pub fn decide<T>(
        &self,
        actor: Actor,
        decide: &mut dyn FnMut(&View) -> Result<Drafts<T>, Error>,
    ) -> Result<(T, Option<Seq>), Error> {
        let stream = self.id();
        let (answer, written) = self.store.inner.decided(&[], &[stream], &mut |_| {
            let (drafts, answer) = decide(&self.view()?)?;
            Ok((vec![CommandDrafts { stream, actor, drafts }], answer))
        })?;
        Ok((answer, written.map(|written| written.last_seq)))
    }

    /// The host's facts about the session.
    pub fn info(&self) -> &StreamInfo {
        &self.info
    }

    /// Records facts as one commit. As [`Store::append`].
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn append(&self, entries: impl IntoIterator<Item = Entry>) -> Result<Receipt, Error> {
        self.store.append(&self.info, entries.into_iter().collect())
    }

    /// Records facts as one commit without waiting for the disk. As [`Store::submit`].
    ///
    /// # Errors
    /// As [`Store::submit`].
    pub fn submit(&self, entries: impl IntoIterator<Item = Entry>) -> Result<Ticket, Error> {
        self.store.submit(&self.info, entries.into_iter().collect())
    }

    /// Calls that were started and have not ended, oldest first: a crash of the host leaves them behind.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn open_calls(&self) -> Result<Vec<OpenCall>, Error> {
        let inner = &self.store.inner;
        let writer = inner.writer_of(self.id());
        let mut writer = inner.lock_writer(&writer)?;
        inner.catch_up(self.id(), &mut writer)?;
        Ok(writer.open_calls())
    }

    /// The events that recorded the facts with these origins, as far as they are known.
    ///
    /// # Errors
    /// If the log cannot be read.
    #[doc(hidden)]
    pub fn events_of(&self, origins: impl IntoIterator<Item = String>) -> Result<Vec<Seq>, Error> {
        let inner = &self.store.inner;
        let writer = inner.writer_of(self.id());
        let mut writer = inner.lock_writer(&writer)?;
        inner.catch_up(self.id(), &mut writer)?;
        let secret = inner.log.secret();
        let events = |origin: String| writer.ingest_state.events_of(secret.origin(&origin));
        Ok(origins.into_iter().flat_map(events).collect())
    }

    /// A frozen view at the head.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing was recorded in it yet.
    pub fn view(&self) -> Result<View, Error> {
        self.view_at(&At::Head)
    }

    /// A frozen view as of `at`.
    ///
    /// # Errors
    /// As [`Session::view`], or if there is no such turn.
    pub fn view_at(&self, at: &At) -> Result<View, Error> {
        self.store.view_at(self.id(), at)
    }
}
