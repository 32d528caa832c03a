//! The way in: what hosts tell and what commands decide becomes one commit.
//!
//! ```text
//! entries  -- redact, draft --+                                                      +-- unlock -> settle
//!                             +-> lock streams -> catch up -> drafts -> encode, hash -> place -> observe
//! commands -- decide ---------+                      ^                                 |
//!                                                    +-- a stream moved, or an erasure-+
//! ```
//!
//! Streams are locked in order of their ids, so that two commits never wait for each other, and only until the commit has
//! its place in the log: commits of different streams, and of one, share one sync. An ingest state may so know events that
//! are not durable yet; a commit that rests on them lies behind them in the log, and neither is ever there without them.
//! Whether a fact is known is decided under the log's own condition: if the stream moved meanwhile, all is drafted again.

mod decisions;
mod entries;
mod place;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use place::Door;

use super::behind::{AfterSync, Durability, Job};
use super::kept::StreamWriter;
use super::{Inner, Store};
use crate::command::draft::EventDraft;
use crate::command::record;
use crate::entry::StreamInfo;
use crate::error::Error;
use crate::event::Recorded;
use crate::ids::{Seq, StreamId};
use crate::locks::steady;
use crate::log::{Condition, Placed};
use crate::secret::Withheld;

pub(super) use decisions::{Recording, Signers, unsigned};
pub(super) use place::settle_text;

/// How often a commit is drafted again because another process wrote to its streams, before it takes the write lock.
const RETRY_COUNT_MAX: usize = 16;

/// What one commit records, and what its caller is told of it.
pub(super) struct Drafted<T> {
    pub(super) drafts: Vec<EventDraft>,
    pub(super) answer: T,
}

/// Makes the drafts of one commit from locked streams, from what was erased, and from the seq that the commit will begin
/// with, where that is certain. `None`: that seq is needed.
type Drafting<'d, T> =
    &'d mut dyn FnMut(&mut Streams<'_>, &Withheld, Option<Seq>) -> Result<Option<Drafted<T>>, Error>;

/// Hears of each event of a commit: its number there, the event, and its rows whose bytes are gone.
type Told<'t> = &'t mut dyn FnMut(usize, &Recorded, &[(u32, u32)]);

/// The streams of a commit, locked within this process.
pub(super) struct Streams<'w>(BTreeMap<StreamId, MutexGuard<'w, StreamWriter>>);

impl<'w> Streams<'w> {
    /// Locks the writers of these streams, in order of their ids.
    pub(super) fn lock(
        inner: &Inner,
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
    pub(super) fn catch_up(&mut self, inner: &Inner) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|(id, writer)| inner.catch_up(*id, writer))
    }

    /// Makes durable what is known of them: a decision rests on nothing else.
    fn settle_known(&mut self, inner: &Inner) -> Result<(), Error> {
        self.0.values_mut().try_for_each(|writer| inner.settle_known(writer))
    }

    /// The event that opens a stream, with a new key; `None` if the stream is open. If the event is not recorded, the key is
    /// forgotten.
    pub(super) fn open(&mut self, inner: &Inner, id: StreamId, info: &StreamInfo) -> Option<EventDraft> {
        self.open_with(inner, (id, info), || inner.entropy.array::<32>())
    }

    /// As `open`, with a key of the caller's.
    pub(super) fn open_with(
        &mut self,
        inner: &Inner,
        (id, info): (StreamId, &StreamInfo),
        key: impl FnOnce() -> [u8; 32],
    ) -> Option<EventDraft> {
        let writer = self.0.get_mut(&id)?;
        if writer.ingest_state.opened || writer.signer.is_some() {
            return None;
        }
        let key = key();
        writer.signer = Some(inner.signer_with(&key));
        Some(record::opening(info, key))
    }

    fn signers(&self) -> Signers {
        self.iter().filter_map(|(id, writer)| Some((id, writer.signer.clone()?))).collect()
    }

    /// What the log must not have moved past for a commit that rests on them.
    fn conditions(&self) -> Vec<Condition> {
        self.iter().map(|(stream, writer)| Condition { stream, basis: writer.watermark }).collect()
    }

    /// Whether all drafts rest on pages that passed their digests.
    fn are_sound(&self) -> bool {
        self.0.values().all(|writer| writer.ingest_state.is_sound())
    }

    /// The key of a stream that was not opened after all must not be used.
    pub(super) fn forget_unused_keys(&mut self) {
        for writer in self.0.values_mut().filter(|writer| !writer.ingest_state.opened) {
            writer.signer = None;
        }
    }

    /// The latest commit of this handle to any of them that may not be durable yet.
    fn placed(&self) -> Option<Placed> {
        let placed = self.0.values().filter_map(|writer| writer.placed.as_ref());
        placed.reduce(|last, next| last.later(next)).cloned()
    }

    /// Takes note of a commit; `told` hears of each of its events.
    pub(super) fn observe(&mut self, drafts: Vec<EventDraft>, placed: &Placed, told: Told<'_>) {
        let appended = placed.appended();
        let mut seq = appended.first_seq;
        for (index, EventDraft { event, lost, .. }) in drafts.into_iter().enumerate() {
            let recorded = Recorded { seq, recorded_at: appended.time, event };
            if let Some(writer) = self.0.get_mut(&recorded.event.stream) {
                writer.ingest_state.observe(&recorded);
            }
            told(index, &recorded, &lost);
            seq = seq.next();
        }
        for writer in self.0.values_mut() {
            writer.watermark = writer.watermark.max(appended.last_seq());
            writer.placed = Some(placed.bare());
        }
        self.forget_unused_keys();
    }

    /// Places drafts on condition that none of the streams moved.
    pub(super) fn place(
        &mut self,
        inner: &Inner,
        drafts: &[EventDraft],
        known: &(Withheld, Seq),
    ) -> Result<Placed, Error> {
        self.place_by(inner, &mut Door::Queue, drafts, known)
    }

    fn place_by(
        &mut self,
        inner: &Inner,
        door: &mut Door<'_>,
        drafts: &[EventDraft],
        known: &(Withheld, Seq),
    ) -> Result<Placed, Error> {
        let placed = inner.place_drafts(door, drafts, &self.conditions(), Some(known));
        placed.inspect_err(|_| self.forget_unused_keys())
    }
}

impl Inner {
    /// Drafts and places one commit, and does both again if one of the streams moved between. Its caller settles it. No
    /// commit if nothing is to be recorded.
    fn place_one<T>(
        &self,
        streams: &mut Streams<'_>,
        draft: Drafting<'_, T>,
    ) -> Result<(T, Option<Placed>), Error> {
        let mut retry_count = 0;
        while retry_count < RETRY_COUNT_MAX {
            match self.attempt(streams, &mut Door::Queue, draft) {
                Err(Error::HeadMoved { .. }) => retry_count += 1,
                Ok(Attempt::Unsound) => {}
                Ok(Attempt::Done(answer, placed)) => return Ok((answer, placed)),
                Ok(Attempt::NeedsSeq) => break,
                Err(error) => return Err(error),
            }
        }
        self.place_held(streams, draft)
    }

    /// As `place_one`, under the write lock: no other commit comes between, so the seqs of this one are certain. For commits
    /// whose facts name each other, and for those whose streams keep moving. All others wait meanwhile.
    fn place_held<T>(
        &self,
        streams: &mut Streams<'_>,
        draft: Drafting<'_, T>,
    ) -> Result<(T, Option<Placed>), Error> {
        loop {
            // Before the lock is taken: a wait for durability may have to take it.
            streams.settle_known(self)?;
            let mut door = Door::Held(self.log.exclusive()?);
            match self.attempt(streams, &mut door, draft)? {
                Attempt::Done(answer, placed) => return Ok((answer, placed)),
                // The seq was given, so it was a page that failed its digest; the state is made anew.
                Attempt::Unsound | Attempt::NeedsSeq => {}
            }
        }
    }

    fn attempt<T>(
        &self,
        streams: &mut Streams<'_>,
        door: &mut Door<'_>,
        draft: Drafting<'_, T>,
    ) -> Result<Attempt<T>, Error> {
        streams.catch_up(self)?;
        let known = self.withheld()?;
        let next = door.next_seq();
        let drafted = draft(streams, &known.0, next).inspect_err(|_| streams.forget_unused_keys())?;
        if !streams.are_sound() {
            // What was drafted rests on answers that were none. Nothing was recorded; they are asked again.
            streams.forget_unused_keys();
            return Ok(Attempt::Unsound);
        }
        let Some(Drafted { drafts, answer }) = drafted else {
            streams.forget_unused_keys();
            return Ok(Attempt::NeedsSeq);
        };
        if drafts.is_empty() {
            streams.forget_unused_keys();
            return Ok(Attempt::Done(answer, None));
        }
        let placed = streams.place_by(self, door, &drafts, &known)?;
        streams.observe(drafts, &placed, &mut |_, _, _| {});
        Ok(Attempt::Done(answer, Some(placed)))
    }
}

/// What became of one attempt at a commit.
enum Attempt<T> {
    /// It has its place, or there was nothing to record.
    Done(T, Option<Placed>),
    /// It rested on pages that failed their digests.
    Unsound,
    /// Its facts name each other.
    NeedsSeq,
}

impl Inner {
    /// Hands a commit to the thread behind; `false`: it cannot be, and the caller has to see to it.
    pub(super) fn hand_over(self: &Arc<Self>, job: Job) -> bool {
        let behind = || -> AfterSync {
            let inner = Arc::downgrade(self);
            Box::new(move || {
                if let Some(inner) = inner.upgrade() {
                    inner.after_sync();
                }
            })
        };
        self.settler.hand_over(&self.log, behind, job)
    }

    /// Waits until what was placed, and all before it, is durable.
    pub(super) fn settle(&self, placed: &Placed) -> Result<(), Error> {
        self.log.settle(placed)?;
        if let Some(frame) = &placed.frame {
            self.take_own_frame(frame);
        }
        self.after_sync();
        Ok(())
    }

    /// See [`Store::sync`].
    pub(super) fn sync(&self) -> Result<(), Error> {
        let last = self.unsettled().clone();
        last.map_or(Ok(()), |placed| self.settle(&placed))
    }

    /// The last commit that was acknowledged before its sync.
    pub(super) fn unsettled(&self) -> MutexGuard<'_, Option<Placed>> {
        steady(&self.unsettled)
    }

    /// Work that may be late, for what has become durable.
    pub(super) fn after_sync(&self) {
        self.nudge_index();
        let segment = self.log.head().position.segment();
        let before = self.segment.swap(segment, Ordering::Relaxed);
        // A handle's first commit completes nothing.
        if before != segment && before != 0 {
            self.upkeep.begin(&self.log);
            self.let_go_of_segments();
        }
    }

    /// Forgets the places of commits that are durable: each holds the file that its segment was written to, which is to go once the
    /// segment is sealed.
    fn let_go_of_segments(&self) {
        let head = self.log.head().seq;
        for (_, writer) in steady(&self.writers).list() {
            // One that is in use forgets its place when it is used again.
            if let Ok(mut writer) = writer.try_lock()
                && writer.watermark <= head
            {
                writer.placed = None;
            }
        }
    }
}

impl Store {
    /// Ends a commit as this handle's durability asks.
    pub(super) fn complete(&self, placed: Option<Placed>) -> Result<(), Error> {
        let Some(placed) = placed else { return Ok(()) };
        match self.inner.durability {
            Durability::Sync => self.inner.settle(&placed),
            Durability::Os => {
                // What another thread was told of meanwhile may lie behind it.
                let mut unsettled = self.inner.unsettled();
                *unsettled = Some(unsettled.as_ref().map_or(&placed, |known| known.later(&placed)).bare());
                drop(unsettled);
                let job = Job { placed: placed.clone(), progress: None };
                if self.inner.hand_over(job) { Ok(()) } else { self.inner.settle(&placed) }
            }
        }
    }
}
