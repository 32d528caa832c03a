//! A write that rests on what it read: a closure, and the head of the stream that it saw.
//!
//! ```text
//! closure(transaction) -> view at the head -> entries -> one commit, if the stream has no event behind the head that was seen
//!       ^                                                                     |
//!       +------------------------ another writer came between ----------------+
//! ```

use crate::entry::{Entry, StreamInfo};
use crate::error::Error;
use crate::ids::{Seq, StreamId};

use super::view::View;
use super::write::Streams;
use super::{Atomicity, Batch, Receipt, Session, Store, Ticket};

/// How often a closure runs. In each round one of the writers comes through, so only hundreds of them at one stream meet the limit.
const RUN_COUNT_MAX: usize = 256;

/// One run of a closure of [`Store::write`]: it reads the stream, and adds facts.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::{Entry, Role};
///
/// // Two processes that number their messages never give one number twice.
/// let (number, receipt) = session.write(|transaction| {
///     let number = transaction.view()?.map_or(0, |view| view.history().len());
///     transaction.record(Entry::message(format!("m{number}"), Role::User, "hello"));
///     Ok(number)
/// })?;
/// assert_eq!((number, receipt.event_count), (0, 2)); // the session's opening, and the message
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction<'s> {
    store: &'s Store,
    stream: StreamId,
    /// The watermark of the view that the closure was given.
    seen: Option<Seq>,
    /// The head that the closure stated.
    stated: Option<Seq>,
    entries: Vec<Entry>,
}

impl Transaction<'_> {
    /// The stream at its head; absent if it is new. A closure that asks for it runs again if another writer comes before its commit.
    ///
    /// # Errors
    /// As [`Store::view`], except that a new stream is no error.
    pub fn view(&mut self) -> Result<Option<View>, Error> {
        let inner = &self.store.inner;
        // Commits of this handle that are not durable yet are in no view.
        let writers = inner.writers_of(std::iter::once(self.stream));
        let mut streams = Streams::lock(inner, &writers)?;
        streams.catch_up(inner)?;
        streams.settle_known(inner)?;
        drop(streams);
        match self.store.view(self.stream) {
            Ok(view) => {
                self.seen.get_or_insert(view.at());
                Ok(Some(view))
            }
            Err(Error::NotFound { .. }) => {
                self.seen = Some(Seq::ZERO);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// States the last seq of the stream that the caller knows ([`Receipt::last_seq`], [`View::at`], 0 for a stream that is new). If
    /// the stream has a later event, nothing is recorded and the write ends with [`Error::HeadMoved`].
    pub fn expect(&mut self, head: Seq) {
        self.stated = Some(head);
    }

    /// Adds a fact. All facts of a run are one commit.
    pub fn record(&mut self, entry: impl Into<Entry>) {
        self.entries.push(entry.into());
    }
}

impl Store {
    /// Runs a closure that reads one stream and records facts in it, and commits these facts if no other writer came between; else runs
    /// it again. The receipt stands beside the closure's answer. Durable when it returns, as [`Store::append`].
    ///
    /// The closure may run many times, so it must do nothing that counts twice. If all of its facts are known already, nothing
    /// is recorded, whatever the head is: a write that is repeated after a lost answer succeeds. Memory goes to the stream of its
    /// lifespan, and the condition holds for the stream that is named here.
    ///
    /// Cost: as [`Store::append`], and a fold of what is new if the closure asks for the view.
    ///
    /// # Errors
    /// The closure's own. [`Error::HeadMoved`] if the closure stated a head that the stream has left. [`Error::Busy`] if other writers came
    /// between 256 times. Else as [`Store::append`].
    pub fn write<T>(
        &self,
        stream: &StreamInfo,
        mut write: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<(T, Receipt), Error> {
        let id = stream.id();
        for _ in 0..RUN_COUNT_MAX {
            let mut transaction =
                Transaction { store: self, stream: id, seen: None, stated: None, entries: Vec::new() };
            let answer = write(&mut transaction)?;
            let Transaction { seen, stated, entries, .. } = transaction;
            let batches = [Batch { stream: stream.clone(), entries }];
            let routed = if batches[0].is_moved() { Some(self.routed(&batches)?) } else { None };
            let batches = routed.as_deref().unwrap_or(&batches);
            let expected = seen.into_iter().chain(stated).min().map(|head| (id, head));
            match self.inner.commit(batches, Atomicity::One, expected) {
                Ok((receipt, placed)) => {
                    self.complete(placed)?;
                    return Ok((answer, receipt));
                }
                Err(Error::HeadMoved { stream, actual, .. }) => {
                    if let Some(expected) = stated.filter(|stated| actual > *stated) {
                        return Err(Error::HeadMoved { stream, expected, actual });
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(Error::Busy { detail: "other writers write to the same session again and again".to_owned() })
    }
}

impl Session {
    /// Runs a closure that reads the session and records facts in it. As [`Store::write`].
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn write<T>(
        &self,
        write: impl FnMut(&mut Transaction<'_>) -> Result<T, Error>,
    ) -> Result<(T, Receipt), Error> {
        self.store().write(self.info(), write)
    }

    /// Records facts as one commit, if the session has no event behind `head`. As [`Transaction::expect`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
    /// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
    /// use acpdb_engine::{Entry, Error, Role, Seq};
    ///
    /// let first = session.append_expecting(Seq::ZERO, [Entry::message("m1", Role::User, "hello")])?;
    /// let late = session.append_expecting(Seq::ZERO, [Entry::message("m2", Role::User, "hello?")]);
    /// assert!(matches!(late, Err(Error::HeadMoved { actual, .. }) if actual == first.last_seq));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::HeadMoved`] names both heads; nothing was recorded. Else as [`Store::append`].
    pub fn append_expecting(
        &self,
        head: Seq,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<Receipt, Error> {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let ((), receipt) = self.write(|transaction| {
            transaction.expect(head);
            transaction.entries.extend(entries.iter().cloned());
            Ok(())
        })?;
        Ok(receipt)
    }

    /// As [`Session::append_expecting`], without waiting for the disk: as [`Session::submit`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
    /// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
    /// use acpdb_engine::{Entry, Error, Role, Seq};
    ///
    /// let ticket = session.submit_expecting(Seq::ZERO, [Entry::message("m1", Role::User, "hello")])?;
    /// let late = session.submit_expecting(Seq::ZERO, [Entry::message("m2", Role::User, "hello?")]);
    /// assert!(matches!(late, Err(Error::HeadMoved { .. })));
    /// assert_eq!(ticket.wait()?.event_count, 2); // the session's opening, and the message
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Session::append_expecting`].
    pub fn submit_expecting(
        &self,
        head: Seq,
        entries: impl IntoIterator<Item = Entry>,
    ) -> Result<Ticket, Error> {
        let (store, stream) = (self.store(), self.info().clone());
        let condition = Some((stream.id(), head));
        store.submit_if(Batch { stream, entries: entries.into_iter().collect() }, condition)
    }
}
