//! Appending: many callers, one leader, one write, one sync.
//!
//! ```text
//! caller: prepare -> handoff: lead, or wait
//! leader: gather -> W { page; repair or catch up; conditions; seal; busy; write; written } -> settle -> wake all
//! ```
//!
//! W is given back before the sync, so that while one group waits for the disk another, of any process, is written
//! behind it; one sync then covers both.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use super::error::LogError;
use super::files::TAIL;
use super::group::WriteSegment;
use super::handoff::{Stages, Until};
use super::settle::{self, Outcome, Shore, State, Turn};
use super::survey::is_anchored;
use super::tail::{Lost, SyncLock, Tail, WriteLock};
use super::{Appended, Condition, Head, Log, Prepared, Writer, locked};
use crate::codec::{SEGMENT_HEADER_BYTES, TailPage};
use crate::ids::{Position, Seq};
use crate::planted::{Bug, is_planted};
use crate::storage::sync;

/// How long to wait for what others wrote to become durable before doing it oneself.
const REACH_WAIT: Duration = Duration::from_millis(5);
/// How long whoever has the turn to sync may be stopped before others do without.
const TURN_WAIT: Duration = Duration::from_secs(1);
/// The same for clocks that stand still.
const TURN_WAIT_COUNT: u32 = 1000;
/// How long whoever did without a turn waits for W to tell what is durable.
const TELL_WAIT: Duration = Duration::from_millis(1);
/// So often others are let run before time passes in pauses between looks at the page: of a share of a sync's time.
const PAUSE_YIELD_COUNT: u32 = 2;
const PAUSE_SHARE: u32 = 4;
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(1);
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
    /// What was written together with it, and is to be made durable.
    pub(crate) stretch: Stretch,
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
        if other.is_beyond(self) { other } else { self }
    }

    fn is_beyond(&self, other: &Self) -> bool {
        self.stretch.end.position > other.stretch.end.position
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
        placed.is_beyond(other)
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
    /// visible, and lost in a power cut until [`Log::settle`] returns.
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
            if self.wait_for_commit(Seq(seq.0.saturating_sub(1)), REACH_WAIT)?.seq >= seq {
                return Ok(());
            }
        }
        // Whoever wrote it may be gone.
        self.exclusive().map(drop)
    }

    /// Waits until what was placed is durable and visible; syncs if nobody else does.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if a sync failed since it was written, [`LogError::Replaced`] if the store's files are others
    /// now: it may be in the log or not.
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

    /// Waits until a stretch is durable. `holds_lock`: the caller has W.
    pub(super) fn await_stretch(&self, tail: &Tail, stretch: &Stretch, holds_lock: bool) -> Outcome<Lost> {
        let waits = std::cell::Cell::new((0, None));
        let surf = Surf { log: self, tail, stretch, holds_lock, waits };
        let (start, end) = (stretch.start.0, stretch.end.position.0);
        tail.settling.settle(&surf, settle::Stretch { start, end, epoch: stretch.epoch })
    }

    /// What became of this handle's writes cannot be known: it writes no more.
    pub(super) fn lost(&self, lost: Lost) -> LogError {
        self.poisoned.store(true, Ordering::SeqCst);
        match lost {
            Lost::Sync => LogError::Poisoned { path: self.storage.path("") },
            Lost::Replaced => LogError::Replaced { path: self.storage.path(TAIL) },
        }
    }

    /// Whether a stretch is in the log, durable, when the page that should say so says nothing: that is made anew from the
    /// log, and the log is asked.
    fn is_kept(&self, stretch: &Stretch) -> bool {
        let Ok(held) = self.exclusive() else { return false };
        let is_reached =
            held.writer.epoch == Some(stretch.epoch) && held.writer.place.position >= stretch.end.position;
        is_reached && is_anchored(&self.segments, &stretch.end).unwrap_or(false)
    }

    /// Makes a durable end visible to readers of this handle.
    pub(crate) fn show(&self, head: Head) {
        let mut shared = locked(&self.shared);
        if head.position > shared.head.position {
            shared.head = head;
            drop(shared);
            self.bell.ring();
        }
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
    stretch: &'a Stretch,
    /// Whoever waits has W.
    holds_lock: bool,
    /// How often it was waited, and since when.
    waits: std::cell::Cell<(u32, Option<Duration>)>,
}

impl Surf<'_> {
    /// Whether a file that was synced is the one that others read.
    fn is_in_place(&self) -> bool {
        let is_current = self.tail.is_current().unwrap_or(false);
        is_current && self.stretch.segment.file.is_linked().unwrap_or(false)
    }

    /// Tells what is durable without a turn, which takes W instead. If that is not to be had others find out for
    /// themselves.
    fn tell_under_lock(&self, place: &Head) {
        if self.holds_lock {
            return self.tell_held(place);
        }
        let Ok(_writer) = self.log.writer.try_lock() else { return };
        if let Ok(_lock) = self.tail.lock(&*self.log.clock, TELL_WAIT) {
            self.tell_held(place);
        }
    }

    fn tell_held(&self, place: &Head) {
        let Ok(page) = self.tail.read() else { return };
        if self.state(&page).is_some_and(|state| state.epoch == self.stretch.epoch) {
            let _ = self.tail.confirm_durable(&page, place);
        }
    }
}

impl<'a> Shore for Surf<'a> {
    type Turn = SyncLock<'a>;
    type Page = TailPage;
    type Failure = Lost;

    fn look(&self) -> TailPage {
        // What cannot be read says nothing; whoever needs it then reads it again, and reports why it cannot be.
        self.tail.read().unwrap_or_default()
    }

    fn state(&self, page: &TailPage) -> Option<State> {
        page.store.filter(|store| *store == self.log.segments.store)?;
        let (written, durable) = (page.written.unwrap_or_default(), page.durable.unwrap_or_default());
        Some(State {
            durable: durable.position.0,
            written: written.position.0,
            epoch: page.epoch,
            waiting: written.seq.0.saturating_sub(durable.seq.0),
            expected: page.waiting,
        })
    }

    fn failed_elsewhere(&self) -> Lost {
        Lost::Sync
    }

    fn try_turn(&self) -> Turn<SyncLock<'a>> {
        self.tail.try_lock_sync()
    }

    fn sync(&self, turn: Option<&SyncLock<'a>>, page: &TailPage) -> Result<u64, Lost> {
        let segment = &*self.stretch.segment;
        // Its writer may have died in the middle of telling where it ends; up to here it is written all the same. In the
        // next segment: then all of this one was made durable before that began.
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
        self.log.patience.synced(self.log.clock.elapsed().saturating_sub(began));
        if is_planted(Bug::CoveredReadLate) {
            place = covered(&self.look());
        }
        if turn.is_none() {
            // Others may have gone on meanwhile as far as to give up what was not confirmed.
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
        // It is durable whether or not this can be told; if not, whoever syncs next will.
        match turn {
            Some(_) => drop(self.tail.claim(page, &place)),
            None => self.tell_under_lock(&place),
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
            let share = self.log.patience.sync_time() / PAUSE_SHARE;
            self.log.clock.sleep(share.clamp(PAUSE_MIN, PAUSE_MAX));
        }
        count < TURN_WAIT_COUNT && now.saturating_sub(since) < TURN_WAIT
    }

    fn gather(&self, all_here: impl FnMut() -> bool) {
        self.log.patience.gather(all_here, || self.log.clock.elapsed());
    }
}
