//! The public handle: open, append, read, view, verify.
//!
//! ```text
//! Entry, Command -> write (draft, decide) -> log (one write, one sync) -> ack
//!                                              |
//! View (folds, pinned at a seq)  <-------------+--> index, in the background
//! ```
//!
//! A [`Store`] is cheap to clone and may be used from any thread; any number of processes may open the same folder. The
//! log is the truth: everything kept here (index, ingest states, folds) can be thrown away and made again.

mod acknowledge;
mod aside;
mod audit;
mod backup;
mod batch;
mod behind;
mod builder;
mod cleaning;
mod commands;
#[cfg(test)]
mod commands_tests;
mod encryption;
mod erase;
mod erase_parts;
mod erasure_list;
mod erasures;
mod events;
mod fetch;
mod find;
mod folds;
mod footing;
mod former;
mod handle;
mod identity;
mod import;
mod index_use;
mod info;
mod kept;
mod leaves;
mod locate;
mod memory;
mod own_list;
mod projects;
mod redact;
mod routes;
mod salvage;
mod saved;
mod saving;
mod scan;
mod session;
mod session_message;
mod settling;
mod space;
mod spelling;
mod stores;
mod subscribe;
#[cfg(test)]
mod tests;
mod ticket;
#[cfg(test)]
mod ticket_tests;
mod transaction;
mod unfinished;
mod unnamed;
mod view;
mod wanted;
mod write;
mod writers;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::entry::{Entry, StreamInfo};
use crate::error::Error;
use crate::event::{Body, Recorded};
use crate::ids::{BodyId, Origin, Seq, StreamId};

#[doc(hidden)]
pub use acknowledge::{Acknowledge, Unacknowledged};
pub use audit::{HeadPlace, VerifyOptions, verify_store, verify_store_in};
pub use backup::Backup;
#[doc(hidden)]
pub use backup::copy_from_pieces;
pub use batch::{Atomicity, Batch, Receipt};
pub use behind::Durability;
pub use builder::Builder;
pub use commands::ActReply;
pub use encryption::{rotate_key, rotate_key_in};
pub use erase::{ERASE_REASON_BYTES_MAX, EraseReport, ErasedContent, ErasedWhy, erasure_is_pending};
#[doc(hidden)]
pub use erase_parts::Stretches;
pub use erasure_list::Erasure;
pub use handle::Store;
pub use identity::{StoreIdentity, identity_of, is_store};
pub use import::StoreImport;
pub use info::{SessionSummary, StartedBy, StoreInfo, StreamName};
pub use leaves::{Leaf, Leaves, SaltedBody};
pub use memory::{Memory, MemoryReceipt, MemoryScope, Remembered};
pub use own_list::OwnList;
pub use redact::Redactor;
pub use salvage::{Salvaged, salvage, salvage_storage, salvage_with};
pub use scan::Events;
pub use scan::Glimpse;
pub use session::{Drafts, Session};
pub use session_message::{MessageStream, Resumed};
pub use space::{SealReport, Space, StateSpace};
#[doc(hidden)]
pub use spelling::Params;
pub use stores::{StoreFork, StoreMember, Stores, stores_in};
pub use subscribe::{Commit, Subscription};
pub use ticket::Ticket;
pub use transaction::Transaction;
pub use view::{At, ShownFace, View};

use handle::StoreInner;
use scan::{LogFrames, LogSource};

impl Store {
    /// Records facts of one stream as one commit, opening the stream if it is new. Durable when it returns, unless the
    /// store was opened with [`Durability::Os`].
    ///
    /// Memory goes to the stream of its lifespan: a session's facts for a project to that project's, permanent ones to the
    /// user's. Facts whose origin is known with the same content are skipped; with other content they become revisions. If
    /// another process wrote to the stream meanwhile, known facts are looked up again: nothing is recorded twice.
    ///
    /// # Errors
    /// Nothing was recorded: [`Error::TooLarge`] over a limit, [`Error::Busy`] when the lock cannot be had, [`Error::NoSpace`],
    /// [`Error::ReadOnly`], [`Error::Upgraded`].
    ///
    /// It is unknown whether the facts were recorded: [`Error::Poisoned`] (the disk did not say that the bytes are safe),
    /// [`Error::Replaced`].
    /// Open the store again and repeat the call: facts with an origin that were recorded are skipped.
    ///
    /// [`Error::Io`] and [`Error::Corrupt`] while reading the known facts of the stream: nothing was recorded.
    pub fn append(&self, stream: &StreamInfo, entries: Vec<Entry>) -> Result<Receipt, Error> {
        self.commit(&[Batch { stream: stream.clone(), entries }], Atomicity::One)
    }

    /// Records facts of several streams. With [`Atomicity::Split`] a large import becomes several commits.
    ///
    /// In a split commit a fact that refers to another one of the same call by origin (a rewind, a replaced order) begins a new commit too.
    ///
    /// # Errors
    /// As [`Store::append`]; after an error of a split commit, the commits before it stand, and the whole call may be
    /// repeated: recorded facts are skipped.
    pub fn commit(&self, batches: &[Batch], atomicity: Atomicity) -> Result<Receipt, Error> {
        let routed = batches.iter().any(Batch::is_moved).then(|| self.routed(batches)).transpose()?;
        let (receipt, placed) = self.inner.commit(routed.as_deref().unwrap_or(batches), atomicity, None)?;
        self.complete(placed)?;
        Ok(receipt)
    }

    /// All events from `from` to `to`, both included, in order.
    ///
    /// # Errors
    /// If the log cannot be read on. Damage inside it comes as items of the iterator.
    pub fn events(&self, from: Seq, to: Seq) -> Result<Events, Error> {
        let inner = &self.inner;
        let until = inner.log.refresh()?;
        // Another process may have erased something since, and been killed before the bytes were gone.
        inner.newest_erasure()?;
        let log = LogSource::new(Arc::clone(inner), from, until);
        Ok(self.events_of(LogFrames::Log(log), None, from, to))
    }

    /// Events of one stream from `from` to `to`, both included, in order.
    ///
    /// # Errors
    /// As [`Store::events`].
    pub fn stream_events(&self, stream: StreamId, from: Seq, to: Seq) -> Result<Events, Error> {
        self.events_of_streams(vec![stream], from, to)
    }

    /// As [`Store::stream_events`], of several streams: their events in order of seq.
    ///
    /// # Errors
    /// As [`Store::events`].
    #[doc(hidden)]
    pub fn events_of_streams(&self, mut streams: Vec<StreamId>, from: Seq, to: Seq) -> Result<Events, Error> {
        streams.sort_unstable();
        let after = from.before();
        let (mut places, _) = self.inner.frames_of(&streams, after)?;
        // As above.
        self.inner.newest_erasure()?;
        places.retain(|place| place.first_seq <= to);
        let inner = Arc::clone(&self.inner);
        let source = LogFrames::Places { inner, places: places.into() };
        Ok(self.events_of(source, Some(streams), from, to))
    }

    /// The newest `count` events of one stream, oldest first; fewer if it has no more. Other streams are not read, and nothing is
    /// folded.
    ///
    /// Cost: the frames that hold them.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
    /// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
    /// use acpdb_engine::{Entry, Role};
    ///
    /// for number in 0..9 {
    ///     let _ = session.append([Entry::message(format!("m{number}"), Role::User, "go on")])?;
    /// }
    /// let newest = store.last_events(session.id(), 3)?;
    /// assert_eq!(newest.len(), 3);
    /// assert_eq!(newest.last().map(|event| event.seq), Some(store.head()?));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`] if one of them is damaged.
    pub fn last_events(&self, stream: StreamId, count: usize) -> Result<Vec<Recorded>, Error> {
        self.newest_events(stream, count)?.collect()
    }

    /// As [`Store::last_events`], one at a time, each with its texts at hand: [`Events::body`] reads most of them with the event.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
    /// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
    /// use acpdb_engine::Entry;
    /// use acpdb_engine::event::Payload;
    ///
    /// let _ = session.append([Entry::tool_completed("call-1", "42"), Entry::tool_completed("call-2", "43")])?;
    /// let mut newest = store.newest_events(session.id(), 2)?.kinds(&["tool_call_finished"]);
    /// let mut outputs = Vec::new();
    /// while let Some(event) = newest.next() {
    ///     let event = event?;
    ///     if let Payload::ToolCallFinished(end) = &event.event.payload {
    ///         for part in &end.output {
    ///             outputs.push(newest.body(part.body.id(event.seq))?);
    ///         }
    ///     }
    /// }
    /// assert_eq!(outputs, [b"42", b"43"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the frame of one of them is damaged.
    pub fn newest_events(&self, stream: StreamId, count: usize) -> Result<Events, Error> {
        self.newest_holding(stream, count, scan::HELD_COUNT_MAX)
    }

    fn newest_holding(&self, stream: StreamId, count: usize, held_max: usize) -> Result<Events, Error> {
        let (source, from) = scan::newest(Arc::clone(&self.inner), (stream, count), held_max)?;
        Ok(self.events_of(source, Some(vec![stream]), from, Seq::MAX))
    }

    fn events_of(&self, source: LogFrames, streams: Option<Vec<StreamId>>, from: Seq, to: Seq) -> Events {
        let picked = std::collections::VecDeque::new();
        Events {
            inner: Arc::clone(&self.inner),
            source,
            frame: None,
            picked,
            streams,
            from,
            to,
            wanted: None,
            kinds: None,
            looked_at: 0,
        }
    }

    /// The event at `seq`, if there is one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is damaged.
    pub fn event(&self, seq: Seq) -> Result<Option<Recorded>, Error> {
        self.inner.event(seq)
    }

    /// The bytes of a body, checked against their digest.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if they are damaged or erased.
    pub fn body(&self, id: BodyId) -> Result<Vec<u8>, Error> {
        self.inner.body(id)
    }

    /// The bytes of many bodies, in the order of `ids`, each as from [`Store::body`].
    ///
    /// Cost: a fraction of asking one by one: neighbours are read together, and digests are checked on two threads.
    pub fn bodies(&self, ids: &[BodyId]) -> Vec<Result<Vec<u8>, Error>> {
        self.inner.bodies(ids)
    }

    /// How many bodies (chunks of long ones counted) an event has; 0 if there is no such event.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is damaged.
    #[doc(hidden)]
    pub fn body_count(&self, seq: Seq) -> Result<u32, Error> {
        let frame = self.inner.frame_of(seq)?;
        let count = frame.and_then(|frame| frame.event(seq).map(|event| event.row_count()));
        Ok(count.and_then(|count| u32::try_from(count).ok()).unwrap_or_default())
    }

    /// The host's own record that an event came from, byte for byte; `None` if the event has no wire form.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a body it needs is damaged.
    #[doc(hidden)]
    pub fn record(&self, recorded: &Recorded) -> Result<Option<Vec<u8>>, Error> {
        let Some(template) = recorded.event.stamp.wire else { return Ok(None) };
        let stream = recorded.event.stream;
        let mut known: Option<FxHashMap<Origin, (Seq, Body)>> = None;
        let bytes = self.inner.body(template.id(recorded.seq))?;
        let names_records = crate::event::wire::pieces(&bytes).is_ok_and(|pieces| {
            pieces.iter().any(|piece| matches!(piece, crate::event::wire::TemplatePiece::Record(_)))
        });
        if names_records {
            let mut newest = FxHashMap::default();
            for event in self.stream_events(stream, Seq(1), Seq::MAX)? {
                let event = event?;
                if let Some(wire) = event.event.stamp.wire {
                    newest.insert(event.event.origin, (event.seq, wire));
                }
            }
            known = Some(newest);
        }
        let newest = |origin: Origin| known.as_ref().and_then(|known| known.get(&origin).copied());
        self.inner.wire(recorded.seq, template, &newest).map(Some)
    }

    /// Gives back space reserved ahead and leaves a checkpoint. Called when the last handle is dropped, too; then errors
    /// have nowhere to go.
    ///
    /// # Errors
    /// If the checkpoint cannot be written, nothing recorded is at risk; [`Error::Poisoned`] as [`Store::sync`].
    pub fn close(&self) -> Result<(), Error> {
        self.sync()?;
        self.inner.log.write_checkpoint().map_err(Error::from)
    }
}
