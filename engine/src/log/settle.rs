//! Waiting until a placed commit is durable: the steps of that wait over the log's files.
//!
//! One process syncs for all that wait, under the sync lock. If the holder of that lock is stopped, other processes sync without it.

use std::sync::Arc;
use std::time::Duration;

use super::commit_queue::{self, LockAttempt, LogState, SyncOps, WaitOutcome};
use super::error::LogError;
use super::files::WriteSegment;
use super::tail::{Lost, SyncLock, TailState};
use super::{Appended, Head, Log};
use crate::codec::{Frame, TailPage};
use crate::failpoints::failpoint;
use crate::ids::Position;
use crate::locks::steady;
use crate::storage::sync;

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

/// A commit that has its place in the log and may not be durable yet.
#[derive(Clone)]
#[must_use]
pub struct PlacedCommit {
    pub(crate) appended: Appended,
    /// Its frame, for readers in this process once it is durable.
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

impl PlacedCommit {
    /// The later of two commits: once it is durable, so is the other.
    pub(crate) fn later<'a>(&'a self, other: &'a Self) -> &'a Self {
        if other.is_beyond(self) { other } else { self }
    }

    /// A copy without the frame: it is held for long, and by each stream of the commit.
    pub(crate) fn bare(&self) -> Self {
        Self { appended: self.appended.clone(), frame: None, stretch: self.stretch.clone() }
    }

    pub(super) fn is_beyond(&self, other: &Self) -> bool {
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

impl Log {
    /// Waits until a stretch is durable. `holds_lock`: the caller holds the write lock.
    pub(super) fn await_stretch(
        &self,
        tail: &TailState,
        stretch: &Stretch,
        holds_lock: bool,
    ) -> WaitOutcome<Lost> {
        let waits = std::cell::Cell::new((0, None));
        let ops = LogSync { log: self, tail, stretch, holds_lock, waits };
        let (start, end) = (stretch.start.0, stretch.end.position.0);
        tail.sync_wait.settle(&ops, commit_queue::WriteRange { start, end, epoch: stretch.epoch })
    }
}

/// The steps of a wait for durability over the log's files.
struct LogSync<'a> {
    log: &'a Log,
    tail: &'a TailState,
    stretch: &'a Stretch,
    /// The caller holds the write lock.
    holds_lock: bool,
    /// How many pauses there were, and the time of the first.
    waits: std::cell::Cell<(u32, Option<Duration>)>,
}

impl LogSync<'_> {
    /// Whether the synced file is still the one that other processes read.
    fn is_in_place(&self) -> std::io::Result<bool> {
        Ok(self.tail.is_current()? && self.stretch.segment.file.is_linked()?)
    }

    /// Publishes a durable place without the sync lock, under the write lock instead. `false`: that lock is held, or the page cannot be written.
    fn publish_under_write_lock(&self, place: &Head) -> bool {
        if self.holds_lock {
            return self.publish_held(place);
        }
        let Ok(_writer) = self.log.writer.try_lock() else { return false };
        self.tail.lock(&*self.log.clock, PUBLISH_WAIT).is_ok_and(|_lock| self.publish_held(place))
    }

    fn publish_held(&self, place: &Head) -> bool {
        let Ok(page) = self.tail.read() else { return false };
        self.state(&page).is_some_and(|state| state.epoch == self.stretch.epoch)
            && self.tail.confirm_durable(&page, place).is_ok()
    }
}

impl Log {
    /// A durable place that is not published yet.
    pub(super) fn unpublished(&self) -> Option<Head> {
        *steady(&self.unpublished)
    }

    /// Publishes a place that was synced and could not be published then. A sync that fails elsewhere gives up all that is not published, so
    /// nothing is acknowledged before.
    pub(super) fn publish_late(&self, tail: &TailState, stretch: &Stretch) -> Result<(), LogError> {
        let Some(place) = self.unpublished() else { return Ok(()) };
        let _writer = self.writer()?;
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        self.publish_held(tail, stretch, &place)
    }

    /// As [`Log::publish_late`], under the write lock.
    pub(super) fn publish_held(
        &self,
        tail: &TailState,
        stretch: &Stretch,
        place: &Head,
    ) -> Result<(), LogError> {
        let page = tail.read()?;
        if page.store != Some(self.segments.store) || page.epoch != stretch.epoch {
            return Err(self.lost(Lost::Sync));
        }
        tail.confirm_durable(&page, place)?;
        steady(&self.unpublished).take_if(|known| known.position <= place.position);
        Ok(())
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

    fn state(&self, page: &TailPage) -> Option<LogState> {
        page.store.filter(|store| *store == self.log.segments.store)?;
        let (written, durable) = (page.written_end(), page.durable_end());
        Some(LogState {
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

    fn try_lock(&self) -> LockAttempt<SyncLock<'a>> {
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
            let page = self.tail.read().map_err(|_| Lost::Sync)?;
            let state = self.state(&page).ok_or(Lost::Replaced)?;
            if state.epoch != self.stretch.epoch {
                return Err(Lost::Sync);
            }
            if state.durable >= place.position.0 {
                return Ok(state.durable);
            }
        }
        match self.is_in_place() {
            Ok(true) => {}
            Ok(false) => return Err(Lost::Replaced),
            // No one knows whether other processes will read it.
            Err(_) => return Err(Lost::Sync),
        }
        let is_published = match lock {
            Some(_) => self.tail.claim(page, &place).is_ok(),
            None => self.publish_under_write_lock(&place),
        };
        if is_published {
            self.log.show(place);
        } else {
            // The callers that wait for it publish it, without the lock that is held here.
            let mut unpublished = steady(&self.log.unpublished);
            *unpublished = unpublished.filter(|known| known.position > place.position).or(Some(place));
        }
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
