//! Appending: many callers, one leader, one write, one sync.
//!
//! ```text
//! caller: prepare -> handoff: lead, or wait
//! leader: gather -> W { page; repair or catch up; conditions; seal; busy; write; written } -> settle -> wake all
//! ```
//!
//! W is given back before the sync, so that while one group waits for the disk another, of any process, is written
//! behind it; one sync then covers both. Without memory that processes share nobody could be told, so there W is kept
//! until the group is durable.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use super::error::LogError;
use super::group::WriteSegment;
use super::handoff::{Stages, Until};
use super::settle::{self, Shore, settle};
use super::tail::{SyncLock, Tail, WriteLock, read_shared};
use super::wait::low_half;
use super::{Appended, Condition, Head, Log, Prepared, Writer, locked};
use crate::codec::{SEGMENT_HEADER_BYTES, word};
use crate::ids::{Position, Seq, StreamId};
use crate::planted::{Bug, is_planted};
use crate::storage::{SharedPage, sync};

/// How long a wait for a wake is at most: the time that the death of whoever syncs can cost.
const WAKE_WAIT: Duration = Duration::from_millis(5);
/// How long whoever has the turn to sync may be stopped before others do without.
const TURN_WAIT: Duration = Duration::from_secs(1);
/// The same for clocks that stand still.
const TURN_WAIT_COUNT: u32 = 1000;
/// How often others are waited for to sync what they wrote.
const REACH_WAIT_COUNT: u32 = 4;

/// A commit on its way into the log.
pub(crate) struct Request {
    pub(crate) prepared: Prepared,
    pub(crate) conditions: Vec<Condition>,
    /// Whether a stream that moved has the commit handed back; otherwise that is only told.
    pub(crate) strict: bool,
}

/// A commit that has its place in the log and may not be durable yet.
#[derive(Clone)]
#[must_use]
pub struct Placed {
    pub(crate) appended: Appended,
    /// The end of what was written together with it.
    pub(crate) end: Position,
    /// What is to be made durable; `None`: it is.
    pub(crate) stretch: Option<Stretch>,
}

/// A stretch of the log that was written at once.
#[derive(Clone)]
pub(crate) struct Stretch {
    pub(crate) start: Position,
    pub(crate) end: Head,
    pub(crate) epoch: u32,
    /// The file it is in.
    pub(crate) segment: Arc<WriteSegment>,
}

impl Placed {
    /// Of two, the one that covers the other once it is durable.
    pub(crate) fn later<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.end > self.end { other } else { self }
    }

    pub(crate) fn into_appended(self) -> Appended {
        self.appended
    }

    /// What was written, and where.
    pub fn appended(&self) -> &Appended {
        &self.appended
    }
}

impl Stages for Log {
    type Request = Request;
    type Placed = Placed;
    type Failure = LogError;

    fn write(&self, group: Vec<Request>) -> Vec<Result<Placed, LogError>> {
        self.write_requests(&mut locked(&self.writer), group)
    }

    fn settle(&self, placed: &Placed) -> Result<(), LogError> {
        self.settle(placed)
    }

    fn is_beyond(&self, placed: &Placed, other: &Placed) -> bool {
        placed.end > other.end
    }

    fn again(&self, failure: &LogError) -> LogError {
        failure.again()
    }

    fn gather(&self, all_here: impl FnMut() -> bool) {
        self.patience.gather(all_here, || self.clock.elapsed());
    }
}

impl Log {
    /// Appends a commit. When it returns `Ok` the commit is durable and visible; otherwise nothing was recorded,
    /// except that after [`LogError::Poisoned`] the next open may find the commit whole.
    ///
    /// Each condition names the newest seq the caller had seen when it decided; if the stream went on since, by
    /// this or another process, the commit is handed back. One flush a commit; commits of other threads and processes
    /// that come at the same time share it.
    ///
    /// # Errors
    /// [`LogError::HeadMoved`], [`LogError::Busy`], [`LogError::NoSpace`], [`LogError::Poisoned`],
    /// [`LogError::Corrupt`], [`LogError::ReadOnly`], [`LogError::Forked`], [`LogError::Io`].
    pub fn append(&self, prepared: Prepared, conditions: &[Condition]) -> Result<Appended, LogError> {
        let request = Request { prepared, conditions: conditions.to_vec(), strict: true };
        Ok(self.submit(request, Until::Durable)?.appended)
    }

    /// Writes a commit and returns once it has its place in the log, without waiting for a sync: not durable, not
    /// visible, and lost in a power cut until [`Log::settle`] returns. Where processes share no memory, it waits for the sync.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn place(&self, prepared: Prepared, conditions: &[Condition]) -> Result<Placed, LogError> {
        let request = Request { prepared, conditions: conditions.to_vec(), strict: true };
        self.submit(request, Until::Written)
    }

    /// Hands a commit to the queue.
    pub(crate) fn submit(&self, request: Request, until: Until) -> Result<Placed, LogError> {
        self.check_process()?;
        let placed = self.queue.run(self, request, until);
        if let Err(LogError::HeadMoved { actual, .. }) = &placed {
            self.reach(*actual)?;
        }
        placed
    }

    /// Waits until `seq`, which is written, is durable: whoever decides again must see why.
    fn reach(&self, seq: Seq) -> Result<(), LogError> {
        for _ in 0..REACH_WAIT_COUNT {
            if self.wait_for_commit(Seq(seq.0.saturating_sub(1)), WAKE_WAIT)?.seq >= seq {
                return Ok(());
            }
        }
        // Whoever wrote it may be gone.
        self.exclusive().map(drop)
    }

    /// Waits until what was placed is durable and visible; syncs if nobody else does.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if a sync failed since it was written: it may be in the log or not.
    pub fn settle(&self, placed: &Placed) -> Result<(), LogError> {
        self.check_process()?;
        placed.stretch.as_ref().map_or(Ok(()), |stretch| self.settle_stretch(stretch))
    }

    /// Waits until a stretch is durable, and shows it.
    pub(crate) fn settle_stretch(&self, stretch: &Stretch) -> Result<(), LogError> {
        let Some((tail, page)) = self.tail.as_ref().and_then(|tail| Some((tail, tail.shared()?))) else {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        };
        let waits = std::cell::Cell::new((0, None));
        let shore = Surf { log: self, tail, page: &**page, segment: &stretch.segment, waits };
        let (start, end) = (stretch.start.0, stretch.end.position.0);
        if !settle(&shore, settle::Stretch { start, end, epoch: stretch.epoch }) {
            self.poisoned.store(true, Ordering::SeqCst);
            return Err(LogError::Poisoned { path: self.storage.path("") });
        }
        Tail::mend_check(&**page);
        self.show(stretch.end);
        Ok(())
    }

    /// Makes a durable end visible to readers of this handle.
    pub(crate) fn show(&self, head: Head) {
        let mut shared = locked(&self.shared);
        if head.position > shared.head.position {
            shared.head = head;
        }
    }

    /// Whether a stream may have moved after `basis` by what this handle has not read. `false` is certain; cheap.
    pub fn may_have_moved(&self, stream: StreamId, basis: Seq) -> bool {
        let Some(tail) = self.tail.as_ref().filter(|tail| tail.shared().is_some()) else { return true };
        if basis < self.opened_at() {
            return true;
        }
        tail.slot(&stream) > basis
    }

    /// Completes the segment that is being written and begins the next one, unless it has no frame yet. Durable.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn begin_segment(&self) -> Result<(), LogError> {
        self.check_process()?;
        let mut writer = locked(&self.writer);
        let tail = self.check_appendable()?;
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        self.catch_up(tail, &mut writer, &page)?;
        if writer.place.position.offset() <= SEGMENT_HEADER_BYTES as u64 {
            return Ok(());
        }
        self.roll(tail, &mut writer)
    }

    /// The log to oneself: nobody else writes, all that is written is durable and visible. For commits that keep finding
    /// that their stream moved.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn exclusive(&self) -> Result<Exclusive<'_>, LogError> {
        self.check_process()?;
        let mut writer = locked(&self.writer);
        let tail = self.check_appendable()?;
        let lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        self.catch_up(tail, &mut writer, &page)?;
        self.make_durable(tail, &mut writer)?;
        Ok(Exclusive { log: self, writer, _lock: lock })
    }
}

/// The log, held by one caller. Give it back soon: no other process can append meanwhile.
pub struct Exclusive<'a> {
    log: &'a Log,
    writer: MutexGuard<'a, Writer>,
    _lock: WriteLock<'a>,
}

impl Exclusive<'_> {
    /// Appends a commit, as [`Log::append`] does, and gives the log back.
    ///
    /// # Errors
    /// As [`Log::append`]; never that a stream moved, if the caller has read up to the head.
    pub fn append(mut self, prepared: Prepared, conditions: &[Condition]) -> Result<Appended, LogError> {
        let request = Request { prepared, conditions: conditions.to_vec(), strict: true };
        let answer = self.log.write_held(&mut self.writer, vec![request]).pop();
        let log = self.log;
        drop(self);
        let placed = answer.unwrap_or_else(|| Err(LogError::ReadOnly { path: log.storage.path("") }))?;
        log.settle(&placed)?;
        Ok(placed.appended)
    }
}

/// What waits for the log to become durable, with the file to sync at hand.
struct Surf<'a> {
    log: &'a Log,
    tail: &'a Tail,
    page: &'a dyn SharedPage,
    segment: &'a WriteSegment,
    /// How often it was waited, and since when.
    waits: std::cell::Cell<(u32, Option<Duration>)>,
}

impl<'a> Shore for Surf<'a> {
    type Turn = SyncLock<'a>;

    fn wake_count(&self) -> u32 {
        low_half(self.page.load(word::WAKE))
    }

    fn epoch(&self) -> u32 {
        low_half(self.page.load(word::WAKE) >> 32)
    }

    fn durable(&self) -> u64 {
        self.page.load(word::DURABLE)
    }

    fn written(&self) -> u64 {
        self.page.load(word::WRITTEN)
    }

    fn waiting(&self) -> (u64, u64) {
        let (written, synced) = (self.page.load(word::WRITTEN_SEQ), self.page.load(word::SYNCED_SEQ));
        (written.saturating_sub(synced), self.page.load(word::SYNC_COUNT))
    }

    fn try_turn(&self, alone: bool) -> Option<SyncLock<'a>> {
        self.tail.try_lock_sync(!alone)
    }

    fn sync(&self, epoch: u32) -> bool {
        if self.epoch() != epoch {
            return false;
        }
        let mut position = Position(self.written());
        // In the next segment: then all of this one was made durable before that began.
        if position.segment() != self.segment.number {
            return true;
        }
        let place = read_shared(self.page).written.filter(|written| written.position >= position);
        let mut place = place.filter(|written| written.position.segment() == self.segment.number);
        let began = self.log.clock.elapsed();
        if sync(&*self.segment.file).is_err() {
            self.tail.poison();
            return false;
        }
        self.log.patience.synced(self.log.clock.elapsed().saturating_sub(began));
        if self.epoch() != epoch {
            return false;
        }
        if is_planted(Bug::CoveredReadLate) {
            (position, place) = (Position(self.written()), read_shared(self.page).written);
        }
        if let Some(place) = place {
            Tail::publish_durable(self.page, &place);
            self.log.show(place);
        } else {
            // Its writer died in the middle of telling where it ends; up to here is durable all the same.
            self.page.fetch_max(word::DURABLE, position.0);
            Tail::mend_check(self.page);
        }
        true
    }

    fn end_turn(&self, turn: SyncLock<'a>) {
        drop(turn);
        self.page.bump_and_wake(word::WAKE);
    }

    fn wait(&self, seen: u32) -> bool {
        let now = self.log.clock.elapsed();
        let (count, since) = self.waits.get();
        let since = since.unwrap_or(now);
        self.waits.set((count.saturating_add(1), Some(since)));
        self.page.wait(word::WAKE, seen, WAKE_WAIT);
        count < TURN_WAIT_COUNT && now.saturating_sub(since) < TURN_WAIT
    }

    fn gather(&self, all_here: impl FnMut() -> bool) {
        self.log.patience.gather(all_here, || self.log.clock.elapsed());
    }
}
