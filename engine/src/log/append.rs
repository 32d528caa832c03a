//! Appending: many callers, one leader, one write, one sync.
//!
//! ```text
//! caller: prepare -> commit queue: lead, or wait
//! leader: wait for others -> write lock { page; repair or catch up; conditions; link; busy; write; written } -> settle -> wake all
//! ```
//!
//! The write lock is released before the sync. So while one group waits for the disk, another group, of any process, is written
//! behind it, and one sync covers both.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use super::commit_queue::{self, Attempt, Outcome, Stages, State, SyncOps, Until};
use super::error::LogError;
use super::files::{TAIL, WriteSegment};
use super::handle::is_anchored;
use super::tail::{Lost, SyncLock, Tail, WriteLock};
use super::{Appended, Condition, Head, Log, Prepared, Writer};
use crate::codec::{Frame, SEGMENT_HEADER_BYTES, TailPage};
use crate::failpoints::failpoint;
use crate::ids::{Position, Seq};
use crate::storage::sync;

/// How long to wait for another process to make its commit durable, before this process does it.
const REACH_WAIT: Duration = Duration::from_millis(5);
/// How long the holder of the sync lock may be stopped before other processes sync without the lock.
const SYNC_LOCK_WAIT: Duration = Duration::from_secs(1);
/// The same as a count of pauses, for clocks that stand still.
const SYNC_LOCK_WAIT_COUNT: u32 = 1000;
/// How long a process that synced without the sync lock waits for the write lock, to publish.
const PUBLISH_WAIT: Duration = Duration::from_millis(1);
/// Pauses between reads of the page: at first only yields, then a share of a sync's time within these bounds.
const PAUSE_YIELD_COUNT: u32 = 2;
const PAUSE_SHARE: u32 = 4;
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(1);
/// How often [`REACH_WAIT`] is waited for.
const REACH_WAIT_COUNT: u32 = 4;

/// A commit on its way into the log.
pub(crate) struct Request {
    pub(crate) prepared: Prepared,
    pub(crate) conditions: Vec<Condition>,
    /// `true`: a moved stream refuses the commit. `false`: the answer only reports it.
    pub(crate) strict: bool,
}

/// A commit that has its place in the log and may not be durable yet.
#[derive(Clone)]
#[must_use]
pub struct Placed {
    pub(crate) appended: Appended,
    /// Its frame, for readers in this process once it is durable, unless it is large or sealed.
    pub(crate) frame: Option<Box<Frame>>,
    /// The group that the commit was written in; it becomes durable as a whole.
    pub(crate) stretch: Stretch,
}

/// The part of the log that one write filled.
#[derive(Clone)]
pub(crate) struct Stretch {
    pub(crate) start: Position,
    pub(crate) end: Head,
    pub(crate) epoch: u32,
    /// The segment that holds it.
    pub(crate) segment: Arc<WriteSegment>,
}

impl Placed {
    /// The later of two commits: once it is durable, so is the other.
    pub(crate) fn later<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.is_beyond(self) { other } else { self }
    }

    /// Its place alone, without its frame and its rows: to be held for long, and by each stream of the commit.
    pub(crate) fn bare(&self) -> Self {
        let Appended { first_seq, event_count, time, position, moved, .. } = self.appended;
        let appended = Appended { first_seq, event_count, time, position, rows: Vec::new(), moved };
        Self { appended, frame: None, stretch: self.stretch.clone() }
    }

    fn is_beyond(&self, other: &Self) -> bool {
        self.stretch.end.position > other.stretch.end.position
    }

    pub(crate) fn into_appended(self) -> Appended {
        self.appended
    }

    /// The written commit and its place.
    pub fn appended(&self) -> &Appended {
        &self.appended
    }
}

impl Stages for Log {
    type Request = Request;
    type Placed = Placed;
    type Failure = LogError;

    fn write(&self, group: Vec<Request>) -> Vec<Result<Placed, LogError>> {
        match self.writer() {
            Ok(mut writer) => self.write_requests(&mut writer, group),
            Err(error) => group.iter().map(|_| Err(error.again())).collect(),
        }
    }

    fn settle(&self, placed: &Placed) -> Result<(), LogError> {
        self.settle(placed)
    }

    fn is_beyond(&self, placed: &Placed, other: &Placed) -> bool {
        placed.is_beyond(other)
    }

    fn again(&self, failure: &LogError) -> LogError {
        failure.again()
    }

    fn unwound(&self) -> LogError {
        self.lost(Lost::Sync)
    }

    fn wait_for_others(&self, all_here: impl FnMut() -> bool) {
        self.commit_delay.wait(all_here, || self.clock.elapsed());
    }
}

impl Log {
    /// Appends a commit. When it returns `Ok` the commit is durable and visible; otherwise nothing was recorded,
    /// except that after [`LogError::Poisoned`] the next open may find the commit whole.
    ///
    /// Each condition names the newest seq that the caller had seen when it decided. If the stream has moved since, by
    /// this or another process, the commit is refused. Cost: one sync, shared with commits of other threads and processes
    /// that arrive at the same time.
    ///
    /// # Errors
    /// [`LogError::HeadMoved`], [`LogError::Busy`], [`LogError::NoSpace`], [`LogError::Poisoned`],
    /// [`LogError::Corrupt`], [`LogError::ReadOnly`], [`LogError::Forked`], [`LogError::Io`].
    pub fn append(&self, prepared: Prepared, conditions: &[Condition]) -> Result<Appended, LogError> {
        let request = Request { prepared, conditions: conditions.to_vec(), strict: true };
        Ok(self.submit(request, Until::Durable)?.appended)
    }

    /// Writes a commit and returns once it has its place in the log, without waiting for a sync. Until [`Log::settle`]
    /// returns, the commit is not visible, and a power cut loses it.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn place(&self, prepared: Prepared, conditions: &[Condition]) -> Result<Placed, LogError> {
        let request = Request { prepared, conditions: conditions.to_vec(), strict: true };
        self.submit(request, Until::Written)
    }

    /// As [`Log::place`], if that takes no waiting: no other writer is at it, nothing of others has to be read first, and the segment has
    /// room.
    ///
    /// # Errors
    /// [`LogError::Busy`] if it would have to wait: nothing was recorded. Else as [`Log::append`].
    pub(crate) fn place_at_once(
        &self,
        prepared: Prepared,
        conditions: &[Condition],
    ) -> Result<Placed, LogError> {
        self.check_process()?;
        let tail = self.check_appendable()?;
        let Ok(mut writer) = self.writer.try_lock() else { return Err(tail.busy()) };
        let Some(_lock) = tail.lock_at_once()? else { return Err(tail.busy()) };
        let page = tail.read()?;
        let request = Request { prepared, conditions: conditions.to_vec(), strict: true };
        if !self.is_at_rest(&writer, &page) || !self.has_room(&writer, &request) {
            return Err(tail.busy());
        }
        self.catch_up(tail, &mut writer, &page)?;
        let answer = self.write_held(&mut writer, vec![request]).pop();
        answer.unwrap_or_else(|| Err(tail.busy()))
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

    /// Waits until a written `seq` is durable: a caller that decides again must see the events that moved its stream.
    fn reach(&self, seq: Seq) -> Result<(), LogError> {
        for _ in 0..REACH_WAIT_COUNT {
            if self.wait_for_commit(seq.before(), REACH_WAIT)?.seq >= seq {
                return Ok(());
            }
        }
        // The process that wrote it may have ended.
        self.exclusive().map(drop)
    }

    /// Waits until a placed commit is durable and visible. Syncs if no other caller does.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if a sync failed since the write, [`LogError::Replaced`] if the store's files were replaced. In
    /// both cases the commit may be in the log or not.
    pub fn settle(&self, placed: &Placed) -> Result<(), LogError> {
        self.check_process()?;
        let Some(tail) = &self.tail else {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        };
        match self.await_stretch(tail, &placed.stretch, false) {
            Outcome::Durable(_) => self.show(placed.stretch.end),
            Outcome::Failed(lost) => return Err(self.lost(lost)),
            Outcome::PageLost if self.is_kept(&placed.stretch) => {}
            Outcome::PageLost => return Err(self.lost(Lost::Replaced)),
        }
        Ok(())
    }

    /// Waits until a stretch is durable. `holds_lock`: the caller holds the write lock.
    pub(super) fn await_stretch(&self, tail: &Tail, stretch: &Stretch, holds_lock: bool) -> Outcome<Lost> {
        let waits = std::cell::Cell::new((0, None));
        let ops = LogSync { log: self, tail, stretch, holds_lock, waits };
        let (start, end) = (stretch.start.0, stretch.end.position.0);
        tail.sync_wait.settle(&ops, commit_queue::Stretch { start, end, epoch: stretch.epoch })
    }

    /// The state of the writer. A panic in the middle of a write may have left it other than the log is: then this handle writes no
    /// more.
    pub(super) fn writer(&self) -> Result<MutexGuard<'_, Writer>, LogError> {
        self.writer.lock().map_err(|_| self.lost(Lost::Sync))
    }

    /// Poisons this handle: the state of its writes is unknown, so it writes no more.
    pub(super) fn lost(&self, lost: Lost) -> LogError {
        self.poisoned.store(true, Ordering::SeqCst);
        match lost {
            Lost::Sync => LogError::Poisoned { path: self.storage.path("") },
            Lost::Replaced => LogError::Replaced { path: self.storage.path(TAIL) },
        }
    }

    /// Whether a stretch is durable in the log, when the page cannot be read: makes the page anew from the log, then compares.
    fn is_kept(&self, stretch: &Stretch) -> bool {
        let Ok(held) = self.exclusive() else { return false };
        let is_reached =
            held.writer.epoch == Some(stretch.epoch) && held.writer.place.position >= stretch.end.position;
        is_reached && is_anchored(&self.segments, &stretch.end).unwrap_or(false)
    }

    /// Completes the current segment and begins the next one, unless the current one has no frame yet. Durable.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn begin_segment(&self) -> Result<(), LogError> {
        self.check_process()?;
        let mut writer = self.writer()?;
        let tail = self.check_appendable()?;
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        self.catch_up(tail, &mut writer, &page)?;
        if writer.place.position.offset() <= SEGMENT_HEADER_BYTES as u64 {
            return Ok(());
        }
        self.roll(tail, &mut writer)
    }

    /// Takes the write lock, and makes every written event durable and visible. For commits whose stream keeps moving.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn exclusive(&self) -> Result<Exclusive<'_>, LogError> {
        self.check_process()?;
        let mut writer = self.writer()?;
        let tail = self.check_appendable()?;
        let lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        self.catch_up(tail, &mut writer, &page)?;
        self.make_durable(tail, &mut writer)?;
        Ok(Exclusive { log: self, writer, _lock: lock })
    }
}

/// The write lock, held by one caller. Release it soon: no other process can append meanwhile.
pub struct Exclusive<'a> {
    log: &'a Log,
    writer: MutexGuard<'a, Writer>,
    _lock: WriteLock<'a>,
}

impl Exclusive<'_> {
    /// Appends a commit, as [`Log::append`] does, and releases the lock.
    ///
    /// # Errors
    /// As [`Log::append`]. A caller that has read up to the head never gets [`LogError::HeadMoved`].
    pub fn append(mut self, prepared: Prepared, conditions: &[Condition]) -> Result<Appended, LogError> {
        let log = self.log;
        let placed = self.place(prepared, conditions);
        drop(self);
        let placed = placed?;
        log.settle(&placed)?;
        Ok(placed.appended)
    }

    /// Writes a commit, as [`Log::place`] does, and keeps the lock.
    ///
    /// # Errors
    /// As [`Exclusive::append`].
    pub fn place(&mut self, prepared: Prepared, conditions: &[Condition]) -> Result<Placed, LogError> {
        let request = Request { prepared, conditions: conditions.to_vec(), strict: true };
        let answer = self.log.write_held(&mut self.writer, vec![request]).pop();
        answer.unwrap_or_else(|| Err(LogError::ReadOnly { path: self.log.storage.path("") }))
    }

    /// The seq that the next commit begins with.
    pub fn next_seq(&self) -> Seq {
        self.writer.place.seq.next()
    }
}

/// The steps of a wait for durability over the log's files.
struct LogSync<'a> {
    log: &'a Log,
    tail: &'a Tail,
    stretch: &'a Stretch,
    /// The caller holds the write lock.
    holds_lock: bool,
    /// How many pauses there were, and the time of the first.
    waits: std::cell::Cell<(u32, Option<Duration>)>,
}

impl LogSync<'_> {
    /// Whether the synced file is still the one that other processes read.
    fn is_in_place(&self) -> bool {
        let is_current = self.tail.is_current().unwrap_or(false);
        is_current && self.stretch.segment.file.is_linked().unwrap_or(false)
    }

    /// Publishes a durable place without the sync lock, under the write lock instead. If that lock is held, the next process
    /// that syncs publishes.
    fn publish_under_write_lock(&self, place: &Head) {
        if self.holds_lock {
            return self.publish_held(place);
        }
        let Ok(_writer) = self.log.writer.try_lock() else { return };
        // As the text above says: else the next process that syncs publishes.
        if let Ok(_lock) = self.tail.lock(&*self.log.clock, PUBLISH_WAIT) {
            self.publish_held(place);
        }
    }

    fn publish_held(&self, place: &Head) {
        let Ok(page) = self.tail.read() else { return };
        if self.state(&page).is_some_and(|state| state.epoch == self.stretch.epoch) {
            // As above.
            let _ = self.tail.confirm_durable(&page, place);
        }
    }
}

impl<'a> SyncOps for LogSync<'a> {
    type Lock = SyncLock<'a>;
    type Page = TailPage;
    type Failure = Lost;

    fn look(&self) -> TailPage {
        // An unreadable page counts as empty. A caller that needs the page reads it again and reports the error.
        self.tail.read().unwrap_or_default()
    }

    fn state(&self, page: &TailPage) -> Option<State> {
        page.store.filter(|store| *store == self.log.segments.store)?;
        let (written, durable) = (page.written_end(), page.durable_end());
        Some(State {
            durable: durable.position.0,
            written: written.position.0,
            epoch: page.epoch,
            waiting: written.seq.since(durable.seq),
            expected: page.waiting,
        })
    }

    fn failed_elsewhere(&self) -> Lost {
        Lost::Sync
    }

    fn try_lock(&self) -> Attempt<SyncLock<'a>> {
        self.tail.try_lock_sync()
    }

    fn sync(&self, lock: Option<&SyncLock<'a>>, page: &TailPage) -> Result<u64, Lost> {
        let segment = &*self.stretch.segment;
        // Its writer may have died before it published the end; this stretch is written all the same. If the page names the
        // next segment, this one was made durable before that one began.
        let covered = |page: &TailPage| {
            let written = page.written.filter(|written| written.position.segment() == segment.number);
            written.filter(|written| written.position > self.stretch.end.position).unwrap_or(self.stretch.end)
        };
        let mut place = covered(page);
        let began = self.log.clock.elapsed();
        if sync(&*segment.file).is_err() {
            self.tail.poison();
            return Err(Lost::Sync);
        }
        self.log.commit_delay.synced(self.log.clock.since(began));
        if failpoint!(CoveredReadLate) {
            place = covered(&self.look());
        }
        if lock.is_none() {
            // Meanwhile another process may have given up the unconfirmed events.
            let page = self.look();
            let state = self.state(&page).ok_or(Lost::Replaced)?;
            if state.epoch != self.stretch.epoch {
                return Err(Lost::Sync);
            }
            if state.durable >= place.position.0 {
                return Ok(state.durable);
            }
        }
        if !self.is_in_place() {
            return Err(Lost::Replaced);
        }
        // The stretch is durable even if publishing fails; then the next sync publishes it.
        match lock {
            Some(_) => drop(self.tail.claim(page, &place)),
            None => self.publish_under_write_lock(&place),
        }
        self.log.show(place);
        Ok(place.position.0)
    }

    fn pause(&self) -> bool {
        let now = self.log.clock.elapsed();
        let (count, since) = self.waits.get();
        let since = since.unwrap_or(now);
        self.waits.set((count.saturating_add(1), Some(since)));
        if count < PAUSE_YIELD_COUNT {
            std::thread::yield_now();
        } else {
            let share = self.log.commit_delay.sync_time() / PAUSE_SHARE;
            self.log.clock.sleep(share.clamp(PAUSE_MIN, PAUSE_MAX));
        }
        // `now` was read after `since`.
        count < SYNC_LOCK_WAIT_COUNT && now.saturating_sub(since) < SYNC_LOCK_WAIT
    }

    fn wait_for_others(&self, all_here: impl FnMut() -> bool) {
        self.log.commit_delay.wait(all_here, || self.log.clock.elapsed());
    }
}
