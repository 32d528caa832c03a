//! The tail page, the write lock and the sync lock.
//!
//! ```text
//! write lock   a lock on the page's file       covers `written`, `busy`, the slots, `confirmed`
//! sync lock    a lock on a file of its own     covers the durable claims, the epoch and the poison
//! ```
//!
//! The page is a file that is read and written, and never mapped: a mapped file that another program truncates, or a full
//! copy-on-write disk, would end the host with a signal. Each part of the page changes under one lock and with one call. A
//! reader without the lock may read a record that is half old and half new. The record's checksum finds that, and the reader reads again.
//!
//! The write lock alone keeps the log from forking. The sync lock only saves syncs, with one exception: beginning a segment and
//! ending a poisoning take both locks, the write lock first. No code takes the write lock while it holds the sync lock. The
//! durable end is the furthest of `confirmed` and the claims; a process that synced without the sync lock publishes `confirmed` under the
//! write lock.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::commit_queue::{LockAttempt, ProcessLock, SyncWait};
use super::error::LogError;
use super::files::{SYNC, TAIL, read_page};
use crate::codec::{
    Entered, PageCounts, TAIL_BYTES, TailPage, WriteMark, WrittenPlace, busy_record, claim_record, committed,
    place_record, poison_word, settled,
};
use crate::failpoints::failpoint;
use crate::ids::{Position, Seq, StoreId, StreamId};
use crate::storage::{Access, Clock, Storage, StoredFile, sync, write_all};

const WAIT_MIN: Duration = Duration::from_micros(20);
const WAIT_MAX: Duration = Duration::from_millis(1);

/// Why the state of written bytes is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// A sync failed.
    Sync,
    /// The tail or the segment is no longer the file that its name leads to.
    Replaced,
}

pub(crate) struct TailState {
    storage: Arc<dyn Storage>,
    file: Box<dyn StoredFile>,
    /// The sync lock's file; opened at first use.
    sync_file: OnceLock<Box<dyn StoredFile>>,
    /// The in-process sync lock: a lock on a file does not tell threads apart.
    pub(crate) sync_wait: SyncWait<Lost>,
}

impl TailState {
    pub(crate) fn new(storage: Arc<dyn Storage>, file: Box<dyn StoredFile>) -> Self {
        Self { storage, file, sync_file: OnceLock::new(), sync_wait: SyncWait::default() }
    }

    fn path(&self) -> PathBuf {
        self.storage.path(TAIL)
    }

    fn fail(&self, action: &'static str) -> impl Fn(io::Error) -> LogError + '_ {
        move |error| LogError::io(action, self.path(), error)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<(), LogError> {
        write_all(&*self.file, bytes, offset, &mut 0).map_err(self.fail("write"))
    }

    /// Reads the page. Reads again while it is torn.
    pub(crate) fn read(&self) -> Result<TailPage, LogError> {
        read_page(&*self.file).map_err(self.fail("read"))
    }

    /// Whether the page has its full length, so that writing it needs no space.
    pub(crate) fn is_whole(&self) -> Result<bool, LogError> {
        Ok(self.file.len().map_err(self.fail("inspect"))? >= TAIL_BYTES as u64)
    }

    /// Writes the whole page anew and syncs it. Call under the write lock.
    pub(crate) fn write_page(
        &self,
        store: StoreId,
        written: &WrittenPlace,
        counts: PageCounts,
    ) -> Result<(), LogError> {
        self.write(&TailPage::encode(store, written, counts), 0)?;
        self.sync().map_err(self.fail("sync"))
    }

    /// Makes the page durable as it is.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync(&*self.file)
    }

    /// Publishes that this process begins a write up to `end`. Call under the write lock.
    pub(crate) fn begin(&self, end: Position, process: u32) -> Result<(), LogError> {
        self.write(&busy_record(end, process), TailPage::BUSY_OFFSET)
    }

    /// Publishes that the file holds everything up to `written`, how many rows of places there are, the new heads of the written streams, and
    /// that no process is writing. Call under the write lock, with the page as it was read under it.
    pub(crate) fn publish_written<'a>(
        &self,
        page: &mut TailPage,
        written: &WrittenPlace,
        entered: Option<Entered>,
        streams: impl Iterator<Item = (&'a StreamId, &'a Seq)>,
    ) -> Result<(), LogError> {
        for (stream, seq) in streams {
            page.raise_slot(stream, *seq);
        }
        self.write(&committed(written, &page.slots, entered), TailPage::SLOTS_OFFSET)?;
        (page.written, page.entered) = (Some(*written), entered);
        Ok(())
    }

    /// Withdraws [`TailState::begin`]: no process is writing. Call under the write lock.
    pub(crate) fn withdraw(&self) -> Result<(), LogError> {
        self.write(&[0; 16], TailPage::BUSY_OFFSET)
    }

    /// Publishes that everything up to `place` is durable, unless `page`, read under the sync lock, already has it. Call under the
    /// sync lock.
    pub(crate) fn claim(&self, page: &TailPage, place: &WrittenPlace) -> Result<(), LogError> {
        let known = page.durable_end();
        if known.position >= place.position {
            return Ok(());
        }
        let covered = place.seq.since(known.seq);
        let behind = page.written_end().seq.since(place.seq);
        self.write(&claim_record(place, covered.saturating_add(behind)), page.claim_offset)
    }

    /// As [`TailState::claim`], for a caller without the sync lock. Call under the write lock.
    pub(crate) fn confirm_durable(&self, page: &TailPage, place: &WrittenPlace) -> Result<(), LogError> {
        if page.durable.is_some_and(|known| known.position >= place.position) {
            return Ok(());
        }
        self.write(&place_record(place), TailPage::CONFIRMED_OFFSET)
    }

    /// Publishes that everything up to `place` is written and durable, that no process writes, and that any stream may have moved.
    /// Call under the write lock.
    pub(crate) fn publish(&self, page: &mut TailPage, place: &WrittenPlace) -> Result<(), LogError> {
        page.raise_slots(place.seq);
        self.confirm(page, place)
    }

    /// As [`TailState::publish`], when no stream has moved. How many rows of places there are, the next writer finds out. Call under the
    /// write lock.
    pub(crate) fn confirm(&self, page: &mut TailPage, place: &WrittenPlace) -> Result<(), LogError> {
        self.write(&settled(place, &page.slots, None), TailPage::SLOTS_OFFSET)?;
        (page.written, page.entered, page.busy) = (Some(*place), None, WriteMark::Idle);
        page.durable = page.durable.filter(|durable| durable.position > place.position).or(Some(*place));
        Ok(())
    }

    /// Publishes that a sync failed: no process may append, and every waiting process reports it. Call under the sync lock, if it
    /// could be taken.
    pub(crate) fn poison(&self) {
        let Ok(page) = self.read() else { return };
        let poison = poison_word(page.durable_end().position);
        let epoch = if failpoint!(PoisonWithoutEpoch) { page.epoch } else { page.epoch.wrapping_add(1) };
        // One word, so that a reader sees both or neither. If the write fails, this handle refuses appends all the same.
        let _ = self.put_epoch(epoch, poison);
    }

    /// Publishes that unconfirmed events are given up: every process that waits for them reports it. Call under the write lock and the sync lock.
    pub(crate) fn raise_epoch(&self, page: &TailPage) -> Result<u32, LogError> {
        let epoch = page.epoch.wrapping_add(1);
        self.put_epoch(epoch, 0)?;
        Ok(epoch)
    }

    fn put_epoch(&self, epoch: u32, poison: u32) -> Result<(), LogError> {
        let word = u64::from(poison) << 32 | u64::from(epoch);
        self.write(&word.to_le_bytes(), TailPage::EPOCH_OFFSET)
    }

    /// Publishes that the store was recovered after a failed sync. The epoch stays. Call under the write lock and the sync lock.
    pub(crate) fn clear_poison(&self) -> Result<(), LogError> {
        self.write(&[0; 4], TailPage::EPOCH_OFFSET + 4)
    }

    /// Publishes durably that the store's file is about to name a new feature. Call under the write lock.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn raise_upgrades(&self) -> Result<(), LogError> {
        let next = self.read()?.upgrades.wrapping_add(1);
        self.write(&next.to_le_bytes(), TailPage::UPGRADES_OFFSET)?;
        self.sync().map_err(self.fail("sync"))
    }

    /// Raises the generation. Call under the lock of SEAL.
    pub(crate) fn raise_generation(&self) -> Result<(), LogError> {
        let next = self.read()?.generation.wrapping_add(1);
        self.write(&next.to_le_bytes(), TailPage::GENERATION_OFFSET)
    }

    /// Takes the write lock, waiting at most `wait`.
    pub(crate) fn lock(&self, clock: &dyn Clock, wait: Duration) -> Result<WriteLock<'_>, LogError> {
        let taken = retry_for(clock, wait, || self.file.try_lock().map_err(self.fail("lock")))?;
        if !taken {
            return Err(self.busy());
        }
        let lock = WriteLock(self);
        // A lock on a file that was replaced excludes no other process.
        self.check_current()?;
        Ok(lock)
    }

    /// Whether the name still leads to this file.
    pub(crate) fn is_current(&self) -> io::Result<bool> {
        self.file.is_current()
    }

    /// Refuses a store whose files are no longer where their names say: a file opened by its name would be of another store.
    pub(crate) fn check_current(&self) -> Result<(), LogError> {
        let current = self.is_current().map_err(self.fail("inspect"))?;
        if current { Ok(()) } else { Err(LogError::Moved { path: self.path() }) }
    }

    pub(super) fn busy(&self) -> LogError {
        let process = match self.read().map(|page| page.busy) {
            Ok(WriteMark::Writing { process, .. }) => process,
            _ => 0,
        };
        LogError::Busy { process, path: self.storage.path("") }
    }

    /// Takes the in-process sync lock and the sync lock, waiting at most `wait`.
    pub(crate) fn lock_sync(&self, clock: &dyn Clock, wait: Duration) -> Result<SyncLocks<'_>, LogError> {
        let mut taken = None;
        retry_for(clock, wait, || {
            let Some(own) = self.sync_wait.try_lock() else { return Ok(false) };
            let lock = match self.try_lock_sync() {
                LockAttempt::Locked(lock) => Some(lock),
                // Without the lock there are more syncs than needed, and no other harm.
                LockAttempt::NoLock => None,
                LockAttempt::HeldElsewhere => return Ok(false),
            };
            taken = Some(SyncLocks { lock, _own: own });
            Ok(true)
        })?;
        taken.ok_or_else(|| self.busy())
    }

    /// As [`TailState::lock_sync`], for a caller that has to exclude every other sync.
    pub(crate) fn lock_out_syncs(
        &self,
        clock: &dyn Clock,
        wait: Duration,
    ) -> Result<SyncLocks<'_>, LogError> {
        let opened = self.sync_file().map(|_| ());
        opened.map_err(|error| LogError::io("open", self.storage.path(SYNC), error))?;
        let locks = self.lock_sync(clock, wait)?;
        if locks.lock.is_some() { Ok(locks) } else { Err(self.busy()) }
    }

    fn sync_file(&self) -> io::Result<&dyn StoredFile> {
        if let Some(file) = self.sync_file.get() {
            return Ok(&**file);
        }
        let file = self.storage.open(SYNC, Access::Create)?;
        // Another thread may be first: its file does as well.
        Ok(&**self.sync_file.get_or_init(|| file))
    }

    /// Tries to take the sync lock. The caller holds the in-process lock.
    pub(crate) fn try_lock_sync(&self) -> LockAttempt<SyncLock<'_>> {
        let Ok(file) = self.sync_file() else { return LockAttempt::NoLock };
        match file.try_lock() {
            Ok(true) => LockAttempt::Locked(SyncLock(file)),
            Ok(false) => LockAttempt::HeldElsewhere,
            Err(_) => LockAttempt::NoLock,
        }
    }
}

/// Tries until an attempt succeeds or `wait` has passed, with growing pauses.
fn retry_for(
    clock: &dyn Clock,
    wait: Duration,
    mut attempt: impl FnMut() -> Result<bool, LogError>,
) -> Result<bool, LogError> {
    if attempt()? {
        return Ok(true);
    }
    let start = clock.elapsed();
    let mut pause = Duration::ZERO;
    loop {
        if pause.is_zero() {
            std::thread::yield_now();
            pause = WAIT_MIN;
        } else {
            clock.sleep(pause);
            pause = pause.saturating_mul(2).min(WAIT_MAX);
        }
        if attempt()? {
            return Ok(true);
        }
        if clock.since(start) >= wait {
            return Ok(false);
        }
    }
}

/// The write lock; released when dropped.
pub(crate) struct WriteLock<'a>(&'a TailState);

impl Drop for WriteLock<'_> {
    fn drop(&mut self) {
        // If unlocking fails, closing the file still releases the lock.
        let _ = self.0.file.unlock();
    }
}

/// The sync lock; released when dropped.
pub(crate) struct SyncLock<'a>(&'a dyn StoredFile);

impl Drop for SyncLock<'_> {
    fn drop(&mut self) {
        // If unlocking fails, closing the file still releases the lock.
        let _ = self.0.unlock();
    }
}

/// The sync lock and the in-process lock; released in this order when dropped.
pub(crate) struct SyncLocks<'a> {
    lock: Option<SyncLock<'a>>,
    _own: ProcessLock<'a, Lost>,
}
