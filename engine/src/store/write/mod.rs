//! The way in: entries of hosts and decisions of commands become one commit.
//!
//! ```text
//! entries  -- redact --+                                                                    +-- unlock -> settle
//!                      +-> lock streams -> catch up -> draft, filter -> encode, hash -> place -> observe
//! commands -- decide --+                      ^                                         |
//!                                             +--------- another writer came between ---+
//! ```
//!
//! Streams are locked in order of their ids, so that two commits never wait for each other, and only until the commit has its
//! place in the log: commits of different streams, and of one, share one sync. An ingest state may so know events that are not
//! durable yet; a commit that rests on them lies behind them in the log, and neither is ever there without them. Whether a fact is
//! known is decided under the log's own condition: if the stream moved meanwhile, all is drafted again. There is one retry,
//! `try_until_placed`, for everything that can come between a draft and its place.

mod decisions;
mod entries;
mod filter;
mod place;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::StoreInner;
use super::kept::StreamWriter;
use crate::command::draft::EventDraft;
use crate::command::record;
use crate::entry::StreamInfo;
use crate::error::Error;
use crate::event::Recorded;
use crate::ids::{Seq, StreamId};
use crate::log::{Appended, Condition, Exclusive, PlacedCommit};

pub(super) use decisions::{CommandDrafts, Signers, unsigned};
pub(super) use place::settle_text;

/// How often a commit is drafted while other writers may come between, and again under the write lock, where few can.
const TRY_COUNT_MAX: usize = 16;

/// The drafts of one commit, and the answer to its caller.
pub(super) struct Drafted<T> {
    pub(super) drafts: Vec<EventDraft>,
    pub(super) answer: T,
    /// The seq up to which erased contents were filtered out of the drafts.
    pub(super) until: Seq,
}

/// Makes the drafts of one commit from locked streams, and from the seq that the commit will begin with, if that is certain. `None`:
/// that seq is needed. It is called again for each try.
pub(super) type Drafting<'d, T> =
    dyn FnMut(&mut Streams<'_>, Option<Seq>) -> Result<Option<Drafted<T>>, Error> + 'd;

/// The streams of a commit, locked within this process.
pub(super) struct Streams<'w>(BTreeMap<StreamId, MutexGuard<'w, StreamWriter>>);

impl<'w> Streams<'w> {
    /// Locks the writers of these streams, in order of their ids.
    pub(super) fn lock(
        inner: &StoreInner,
        writers: &'w BTreeMap<StreamId, Arc<Mutex<StreamWriter>>>,
    ) -> Result<Self, Error> {
        let mut guards = BTreeMap::new();
        for (id, writer) in writers {
            guards.insert(*id, inner.lock_writer(writer)?);
        }
        Ok(Self(guards))
    }

    pub(super) fn get(&self, stream: StreamId) -> Option<&StreamWriter> {
        self.0.get(&stream).map(|guard| &**guard)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (StreamId, &StreamWriter)> {
        self.0.iter().map(|(id, guard)| (*id, &**guard))
    }

    /// Brings all of them up to the durable head.
    pub(super) fn catch_up(&mut self, inner: &StoreInner) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|(id, writer)| inner.catch_up(*id, writer))
    }

    /// Makes the commits that they know durable: a decision rests on nothing else.
    pub(super) fn settle_known(&mut self, inner: &StoreInner) -> Result<(), Error> {
        self.0.values_mut().try_for_each(|writer| inner.settle_known(writer))
    }

    /// An error if a stream has an event behind the one that the caller knows as its last.
    fn check_head(&self, expected: Option<(StreamId, Seq)>) -> Result<(), Error> {
        let Some((stream, expected)) = expected else { return Ok(()) };
        match self.get(stream).map(|writer| writer.ingest_state.head) {
            Some(actual) if actual > expected => Err(Error::HeadMoved { stream, expected, actual }),
            _ => Ok(()),
        }
    }

    /// The event that opens a stream, with a new key; `None` if the stream is open. If the event is not recorded, the key is
    /// forgotten.
    pub(super) fn open(&mut self, inner: &StoreInner, id: StreamId, info: &StreamInfo) -> Option<EventDraft> {
        let writer = self.0.get_mut(&id)?;
        if writer.ingest_state.opened || writer.signer.is_some() {
            return None;
        }
        let key = inner.entropy.array::<32>();
        writer.signer = Some(inner.signer_with(&key));
        Some(record::opening(info, key))
    }

    fn signers(&self) -> Signers {
        self.iter().filter_map(|(id, writer)| Some((id, writer.signer.clone()?))).collect()
    }

    /// The conditions of a commit that rests on them: the log must not have moved past their watermarks.
    fn conditions(&self) -> Vec<Condition> {
        self.iter().map(|(stream, writer)| Condition { stream, basis: writer.watermark }).collect()
    }

    /// The key of a stream that was not opened after all must not be used.
    fn forget_unused_keys(&mut self) {
        for writer in self.0.values_mut().filter(|writer| !writer.ingest_state.opened) {
            writer.signer = None;
        }
    }

    /// The latest commit of this handle to any of the streams that may not be durable yet.
    fn placed(&self) -> Option<PlacedCommit> {
        let placed = self.0.values().filter_map(|writer| writer.placed.as_ref());
        placed.reduce(|last, next| last.later(next)).cloned()
    }

    /// Takes note of a commit.
    fn observe(&mut self, drafts: Vec<EventDraft>, placed: &PlacedCommit) {
        let appended = placed.appended();
        let mut seq = appended.first_seq;
        for EventDraft { event, .. } in drafts {
            let recorded = Recorded { seq, recorded_at: appended.time, event };
            if let Some(writer) = self.0.get_mut(&recorded.event.stream) {
                writer.ingest_state.observe(&recorded);
            }
            seq = seq.next();
        }
        for writer in self.0.values_mut() {
            writer.watermark = writer.watermark.max(appended.last_seq());
            writer.placed = Some(placed.bare());
        }
    }
}

impl StoreInner {
    /// Drafts and places one commit, and does both again if another writer came between. Its caller settles it. No commit if there
    /// is nothing to record.
    pub(super) fn place_one<T>(
        &self,
        streams: &mut Streams<'_>,
        drafting: &mut Drafting<'_, T>,
    ) -> Result<(T, Option<PlacedCommit>), Error> {
        self.try_until_placed(streams, |streams, lock| self.attempt(streams, lock, drafting))
    }

    /// The one retry of commits: attempts through the queue, then under the write lock. Under the lock no commit comes between, so the
    /// seqs of this one are certain: for commits whose facts name each other, and for those whose streams keep moving. All others
    /// wait meanwhile.
    fn try_until_placed<T>(
        &self,
        streams: &mut Streams<'_>,
        mut attempt: impl FnMut(&mut Streams<'_>, &mut Option<Exclusive<'_>>) -> Result<CommitAttempt<T>, Error>,
    ) -> Result<T, Error> {
        for _ in 0..TRY_COUNT_MAX {
            match attempt(streams, &mut None)? {
                CommitAttempt::Done(answer) => return Ok(answer),
                CommitAttempt::Again(_) => {}
                CommitAttempt::NeedsSeq => break,
            }
        }
        let mut why = Redraft::StreamMoved;
        for _ in 0..TRY_COUNT_MAX {
            // Before the lock is taken: a wait for durability may have to take it.
            streams.settle_known(self)?;
            match attempt(streams, &mut Some(self.log.exclusive()?))? {
                CommitAttempt::Done(answer) => return Ok(answer),
                CommitAttempt::Again(reason) => why = reason,
                // This attempt had the seq, so it does not ask for one.
                CommitAttempt::NeedsSeq => {}
            }
        }
        Err(Error::Busy { detail: why.detail().to_owned() })
    }

    /// Drafts one commit and asks for its place once.
    fn attempt<T>(
        &self,
        streams: &mut Streams<'_>,
        lock: &mut Option<Exclusive<'_>>,
        drafting: &mut Drafting<'_, T>,
    ) -> Result<CommitAttempt<(T, Option<PlacedCommit>)>, Error> {
        let attempt = self.attempt_open(streams, lock, drafting);
        // A key of a stream that was not opened after all must not be used.
        streams.forget_unused_keys();
        attempt
    }

    fn attempt_open<T>(
        &self,
        streams: &mut Streams<'_>,
        lock: &mut Option<Exclusive<'_>>,
        drafting: &mut Drafting<'_, T>,
    ) -> Result<CommitAttempt<(T, Option<PlacedCommit>)>, Error> {
        streams.catch_up(self)?;
        let drafted = drafting(streams, lock.as_ref().map(Exclusive::next_seq))?;
        let Some(Drafted { drafts, answer, until }) = drafted else { return Ok(CommitAttempt::NeedsSeq) };
        if drafts.is_empty() {
            return Ok(CommitAttempt::Done((answer, None)));
        }
        Ok(match self.place_drafts(lock, &drafts, &streams.conditions(), Some(until))? {
            Ok(placed) => {
                streams.observe(drafts, &placed);
                CommitAttempt::Done((answer, Some(placed)))
            }
            Err(why) => CommitAttempt::Again(why),
        })
    }

    /// Appends events of the store's own stream that rest on nothing, as one commit. Durable when it returns.
    pub(super) fn append_drafts(&self, drafts: &[EventDraft]) -> Result<Appended, Error> {
        let mut none = Streams(BTreeMap::new());
        let placed = self.try_until_placed(&mut none, |_, lock| {
            Ok(self
                .place_drafts(lock, drafts, &[], None)?
                .map_or_else(CommitAttempt::Again, CommitAttempt::Done))
        })?;
        self.settle(&placed)?;
        Ok(placed.into_appended())
    }

    /// Appends the first event of a new store, unless another process was first. Durable when it returns.
    pub(super) fn append_first(&self, draft: EventDraft) -> Result<(), Error> {
        let condition = Condition { stream: draft.event.stream, basis: Seq::ZERO };
        match self.place_drafts(&mut None, &[draft], &[condition], None)? {
            Ok(placed) => self.settle(&placed),
            Err(_) => Ok(()),
        }
    }
}

/// The outcome of one attempt at a commit.
enum CommitAttempt<T> {
    /// The commit has its place, or there was nothing to record.
    Done(T),
    /// Nothing was recorded, and the drafts are to be made anew.
    Again(Redraft),
    /// Its facts name each other: the commit needs the seq that it begins with.
    NeedsSeq,
}

/// Why drafts are made anew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Redraft {
    /// Another writer wrote to one of the streams, so the drafts rest on an old state.
    StreamMoved,
    /// Something was erased: content of the drafts, or a stored body that they name.
    Erased,
}

impl Redraft {
    const fn detail(self) -> &'static str {
        match self {
            Self::StreamMoved => "other processes write to the same session again and again; try again later",
            Self::Erased => "another process erases again and again; try again later",
        }
    }
}
