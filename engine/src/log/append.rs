//! Appending: many callers, one leader, one write, one sync.
//!
//! ```text
//! caller: prepare -> commit queue: lead, or wait
//! leader: wait for others -> write lock { page; repair or catch up; conditions; link; busy; write; written } -> settle -> wake all
//! ```
//!
//! The write lock is released before the sync. So while one group waits for the disk, another group, of any process, is written
//! behind it, and one sync covers both. When a handle is closed, the checkpoint witnesses the end of the log, and preallocated space is given
//! back.

use std::sync::MutexGuard;
use std::time::Duration;

use super::commit_queue::{Stages, Until, WaitOutcome};
use super::error::LogError;
use super::files::CHECKPOINT;
use super::group_commit::CommitRequest;
use super::recovery_scan::{CheckpointFile, is_anchored, read_checkpoint};
use super::settle::{PlacedCommit, Stretch};
use super::tail::{Lost, WriteLock};
use super::{Appended, Condition, LeaderState, Log, Prepared};
use crate::codec::{DurablePoint, SEGMENT_HEADER_BYTES, WriteMark, WrittenPlace};
use crate::ids::Seq;
use crate::storage::write_file;

/// How long to wait for another process to make its commit durable, before this process does it.
const REACH_WAIT: Duration = Duration::from_millis(5);
/// How often [`REACH_WAIT`] is waited for.
const REACH_WAIT_COUNT: u32 = 4;

impl Stages for Log {
    type Request = CommitRequest;
    type Placed = PlacedCommit;
    type Failure = LogError;

    fn write(&self, group: Vec<CommitRequest>) -> Vec<Result<PlacedCommit, LogError>> {
        match self.writer() {
            Ok(mut writer) => self.write_requests(&mut writer, group),
            Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    fn settle(&self, placed: &PlacedCommit) -> Result<(), LogError> {
        self.settle(placed)
    }

    fn is_beyond(&self, placed: &PlacedCommit, other: &PlacedCommit) -> bool {
        placed.is_beyond(other)
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
        let request = CommitRequest { prepared, conditions: conditions.to_vec() };
        Ok(self.submit(request, Until::Durable)?.appended)
    }

    /// Writes a commit and returns once it has its place in the log, without waiting for a sync. Until [`Log::settle`]
    /// returns, the commit is not visible, and a power cut loses it.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn place(&self, prepared: Prepared, conditions: &[Condition]) -> Result<PlacedCommit, LogError> {
        let request = CommitRequest { prepared, conditions: conditions.to_vec() };
        self.submit(request, Until::Written)
    }

    /// Hands a commit to the queue.
    pub(crate) fn submit(&self, request: CommitRequest, until: Until) -> Result<PlacedCommit, LogError> {
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
    pub fn settle(&self, placed: &PlacedCommit) -> Result<(), LogError> {
        self.check_process()?;
        let Some(tail) = &self.tail else {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        };
        match self.await_stretch(tail, &placed.stretch, false) {
            WaitOutcome::Durable(_) => {
                self.publish_late(tail, &placed.stretch).map_err(|_| self.lost(Lost::Sync))?;
                self.show(placed.stretch.end);
            }
            WaitOutcome::Failed(lost) => return Err(self.lost(lost)),
            WaitOutcome::PageLost => match self.is_kept(&placed.stretch) {
                Ok(true) => {}
                // The files are in their places, and could not be read, or the commit was given up after a failed sync.
                Err(LogError::Io { .. } | LogError::Poisoned { .. }) => return Err(self.lost(Lost::Sync)),
                Ok(false) | Err(_) => return Err(self.lost(Lost::Replaced)),
            },
        }
        Ok(())
    }

    /// Whether a stretch is durable in the log, when the page cannot be read: makes the page anew from the log, then compares.
    fn is_kept(&self, stretch: &Stretch) -> Result<bool, LogError> {
        let held = self.exclusive()?;
        let is_reached =
            held.writer.epoch == Some(stretch.epoch) && held.writer.place.position >= stretch.end.position;
        Ok(is_reached && is_anchored(&self.segments, &stretch.end)?)
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
        Ok(Exclusive { log: self, _lock: lock, writer })
    }

    /// Ends the use of this handle: gives back preallocated space and writes the checkpoint that witnesses the end.
    ///
    /// Everything acknowledged is durable without it; after it, `verify` notices the loss of any event.
    ///
    /// # Errors
    /// [`LogError::Busy`], [`LogError::NoSpace`], [`LogError::Io`]; the log is sound all the same.
    pub fn close(self) -> Result<(), LogError> {
        self.write_checkpoint()
    }

    /// The work of [`Log::close`], for a handle that stays open.
    ///
    /// # Errors
    /// As [`Log::close`].
    pub fn write_checkpoint(&self) -> Result<(), LogError> {
        self.check_process()?;
        let mut writer = self.writer()?;
        let writer = &mut *writer;
        let Ok(tail) = self.check_appendable() else { return Ok(()) };
        let is_witnessed = |place: &WrittenPlace| {
            let checkpoint = read_checkpoint(&self.segments)?;
            let reaches = |known: DurablePoint| known.written.position >= place.position;
            Ok::<_, LogError>(matches!(checkpoint, CheckpointFile::Sound(known) if reaches(known)))
        };
        // Another program may hold the lock for long: where there is nothing to write it is not waited for.
        let page = tail.read()?;
        if page.store == Some(self.segments.store)
            && let Some(place) = page.clean()
            && is_witnessed(place)?
        {
            return Ok(());
        }
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        // If another process left things unsettled, its recovery will write the next checkpoint. But a page that says nothing
        // is made anew here: without page and checkpoint readers would miss the last acknowledged events.
        let is_unsettled = page.busy != WriteMark::Idle || page.written.is_none() || page.poisoned;
        if page.store == Some(self.segments.store) && is_unsettled || writer.postponed {
            return Ok(());
        }
        self.catch_up(tail, writer, &page)?;
        self.make_durable(tail, writer)?;
        let place = writer.place;
        if is_witnessed(&place)? {
            return Ok(());
        }
        self.write_segment(tail, writer)?.give_back(place.position.offset());
        let checkpoint = DurablePoint { store: self.segments.store, written: place };
        write_file(&*self.storage, CHECKPOINT, &checkpoint.encode())
            .map_err(|error| LogError::io("write", self.storage.path(CHECKPOINT), error))
    }
}

/// The write lock, held by one caller. Release it soon: no other process can append meanwhile.
pub struct Exclusive<'a> {
    log: &'a Log,
    // Fields are dropped in this order. The lock of a file does not tell threads apart: another thread of this handle, let in before the lock is
    // given back, would take it at once, and lose it to this thread's unlocking.
    _lock: WriteLock<'a>,
    writer: MutexGuard<'a, LeaderState>,
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
    pub fn place(&mut self, prepared: Prepared, conditions: &[Condition]) -> Result<PlacedCommit, LogError> {
        let request = CommitRequest { prepared, conditions: conditions.to_vec() };
        let answer = self.log.write_held(&mut self.writer, vec![request]).pop();
        answer.unwrap_or_else(|| Err(LogError::ReadOnly { path: self.log.storage.path("") }))
    }

    /// The seq that the next commit begins with.
    pub fn next_seq(&self) -> Seq {
        self.writer.place.seq.next()
    }
}
