//! The tail page, the write lock W, which is its lock, and the sync lock S.
//!
//! ```text
//! W  writes: takes the next place in the log            changes `written`, `busy`, the slots, `confirmed`
//! S  syncs for all who wait; a file of its own          changes the claims of what is durable; epoch and poison
//! ```
//!
//! The page is a file that is read and written, never memory: a host must not be ended by a signal because somebody cut the
//! file, or because a disk that copies on writing is full. Each part of it has one lock under which it changes, and is written
//! with one call; who reads without the lock may get a record half old and half new, which its checksum tells, and reads
//! again.
//!
//! What the locks are for: W alone keeps the log from forking. S only saves syncs, except that whoever begins a new
//! segment or ends a poisoning holds both, W first; nobody takes W while holding S. What is durable is the furthest of what
//! `confirmed` and the claims say, so whoever had to sync without S tells it under W.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::error::LogError;
use super::files::{SYNC, TAIL};
use super::settle::{OwnTurn, Settling, Turn};
use crate::codec::{
    Busy, PageCounts, TAIL_BYTES, TailPage, Written, busy_record, claim_record, committed, place_record,
    poison_word, settled,
};
use crate::ids::{Position, Seq, StoreId, StreamId};
use crate::planted::{Bug, is_planted};
use crate::storage::{Access, Clock, Storage, StoredFile, read_up_to, sync, write_all};

/// How often a page that looks torn is read again: another process may be in the middle of writing it.
const READ_COUNT_MAX: u32 = 20;
const WAIT_MIN: Duration = Duration::from_micros(20);
const WAIT_MAX: Duration = Duration::from_millis(1);

/// Why nobody can know what became of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// A sync failed.
    Sync,
    /// The tail or the segment is no longer the file that its name leads to.
    Replaced,
}

pub(crate) struct Tail {
    storage: Arc<dyn Storage>,
    file: Box<dyn StoredFile>,
    /// The file of S; opened when it is first needed.
    sync_file: OnceLock<Box<dyn StoredFile>>,
    /// Whose turn it is within this process. A lock on a file does not tell threads apart.
    pub(crate) settling: Settling<Lost>,
}

/// Reads a page; again if it is torn.
pub(crate) fn read_page(file: &dyn StoredFile) -> io::Result<TailPage> {
    let mut page = TailPage::default();
    for round in 0..READ_COUNT_MAX {
        let mut bytes = [0; TailPage::READ_BYTES];
        let count = read_up_to(file, &mut bytes, 0)?;
        page = TailPage::decode(bytes.get(..count).unwrap_or(&[]));
        if count < bytes.len() || !page.is_torn() {
            break;
        }
        if round > 0 {
            std::thread::yield_now();
        }
    }
    Ok(page)
}

impl Tail {
    pub(crate) fn new(storage: Arc<dyn Storage>, file: Box<dyn StoredFile>) -> Self {
        Self { storage, file, sync_file: OnceLock::new(), settling: Settling::default() }
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

    /// Reads the page; again if it is torn.
    pub(crate) fn read(&self) -> Result<TailPage, LogError> {
        read_page(&*self.file).map_err(self.fail("read"))
    }

    /// Whether the page has its full length, so that writing it needs no space.
    pub(crate) fn is_whole(&self) -> Result<bool, LogError> {
        Ok(self.file.len().map_err(self.fail("inspect"))? >= TAIL_BYTES as u64)
    }

    /// Writes the whole page anew and syncs it. Call under W.
    pub(crate) fn write_page(
        &self,
        store: StoreId,
        written: &Written,
        counts: PageCounts,
    ) -> Result<(), LogError> {
        self.write(&TailPage::encode(store, written, counts), 0)?;
        self.sync().map_err(self.fail("sync"))
    }

    /// Makes the page durable as it is.
    pub(crate) fn sync(&self) -> io::Result<()> {
        sync(&*self.file)
    }

    /// Says that a write of this process up to `end` begins. Call under W.
    pub(crate) fn begin(&self, end: Position, process: u32) -> Result<(), LogError> {
        self.write(&busy_record(end, process), TailPage::BUSY_OFFSET)
    }

    /// Says that everything up to `written` is in the file, and what streams it moved to which seq. Nobody is writing any
    /// more. Call under W, with the page as it was read under it.
    pub(crate) fn publish_written<'a>(
        &self,
        page: &mut TailPage,
        written: &Written,
        streams: impl Iterator<Item = (&'a StreamId, &'a Seq)>,
    ) -> Result<(), LogError> {
        for (stream, seq) in streams {
            page.raise_slot(stream, *seq);
        }
        self.write(&committed(written, &page.slots), TailPage::SLOTS_OFFSET)?;
        page.written = Some(*written);
        Ok(())
    }

    /// Says that nobody is writing after all. Call under W.
    pub(crate) fn withdraw(&self) -> Result<(), LogError> {
        self.write(&[0; 16], TailPage::BUSY_OFFSET)
    }

    /// Says that everything up to `place` is durable, if the page, as it was read under S, does not say so. Call under S.
    pub(crate) fn claim(&self, page: &TailPage, place: &Written) -> Result<(), LogError> {
        let known = page.durable.unwrap_or_default();
        if known.position >= place.position {
            return Ok(());
        }
        let covered = place.seq.0.saturating_sub(known.seq.0);
        let behind = page.written.unwrap_or_default().seq.0.saturating_sub(place.seq.0);
        self.write(&claim_record(place, covered.saturating_add(behind)), page.claim_offset)
    }

    /// As [`Tail::claim`], for whoever has no turn. Call under W.
    pub(crate) fn confirm_durable(&self, page: &TailPage, place: &Written) -> Result<(), LogError> {
        if page.durable.is_some_and(|known| known.position >= place.position) {
            return Ok(());
        }
        self.write(&place_record(place), TailPage::CONFIRMED_OFFSET)
    }

    /// Says that everything up to `place` is written and durable, that nobody writes, and that any stream may have moved.
    /// Call under W.
    pub(crate) fn publish(&self, page: &mut TailPage, place: &Written) -> Result<(), LogError> {
        page.raise_slots(place.seq);
        self.confirm(page, place)
    }

    /// The same, when no stream has moved. Call under W.
    pub(crate) fn confirm(&self, page: &mut TailPage, place: &Written) -> Result<(), LogError> {
        self.write(&settled(place, &page.slots), TailPage::SLOTS_OFFSET)?;
        (page.written, page.busy) = (Some(*place), Busy::Idle);
        page.durable = page.durable.filter(|durable| durable.position > place.position).or(Some(*place));
        Ok(())
    }

    /// Says that a sync failed: nobody may append, and whoever waits is told. Call under S, if it is to be had.
    pub(crate) fn poison(&self) {
        let Ok(page) = self.read() else { return };
        let poison = poison_word(page.durable.unwrap_or_default().position);
        let epoch = if is_planted(Bug::PoisonWithoutEpoch) { page.epoch } else { page.epoch.wrapping_add(1) };
        // In one word: whoever sees the one must see the other. If it cannot be written this handle refuses all the same.
        let _ = self.put_epoch(epoch, poison);
    }

    /// Says that what was written is given up: whoever waits for it is told. Call under W and S.
    pub(crate) fn raise_epoch(&self, page: &TailPage) -> Result<u32, LogError> {
        let epoch = page.epoch.wrapping_add(1);
        self.put_epoch(epoch, 0)?;
        Ok(epoch)
    }

    fn put_epoch(&self, epoch: u32, poison: u32) -> Result<(), LogError> {
        let word = u64::from(poison) << 32 | u64::from(epoch);
        self.write(&word.to_le_bytes(), TailPage::EPOCH_OFFSET)
    }

    /// Says that the store was recovered after a failed sync; the epoch stays. Call under W and S.
    pub(crate) fn clear_poison(&self) -> Result<(), LogError> {
        self.write(&[0; 4], TailPage::EPOCH_OFFSET + 4)
    }

    /// Says that the store's file is about to name a new feature, durably. Call under W.
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

    /// Takes W, waiting at most `wait`.
    pub(crate) fn lock(&self, clock: &dyn Clock, wait: Duration) -> Result<WriteLock<'_>, LogError> {
        let taken = patiently(clock, wait, || self.file.try_lock().map_err(self.fail("lock")))?;
        if !taken {
            return Err(self.busy());
        }
        let lock = WriteLock(self);
        // A lock on a file that was replaced keeps nobody out.
        self.check_current()?;
        Ok(lock)
    }

    /// Whether the name still leads to this file.
    pub(crate) fn is_current(&self) -> io::Result<bool> {
        self.file.is_current()
    }

    /// Refuses a store whose files are no longer where their names say: a file opened by its name would be another's.
    pub(crate) fn check_current(&self) -> Result<(), LogError> {
        let current = self.is_current().map_err(self.fail("inspect"))?;
        if current { Ok(()) } else { Err(LogError::Moved { path: self.path() }) }
    }

    fn busy(&self) -> LogError {
        let process = match self.read().map(|page| page.busy) {
            Ok(Busy::Writing { process, .. }) => process,
            _ => 0,
        };
        LogError::Busy { process, path: self.storage.path("") }
    }

    /// Takes this process's turn to sync and S, waiting at most `wait`.
    pub(crate) fn lock_sync(&self, clock: &dyn Clock, wait: Duration) -> Result<SyncTurn<'_>, LogError> {
        let mut turn = None;
        patiently(clock, wait, || {
            let Some(own) = self.settling.try_take() else { return Ok(false) };
            let lock = match self.try_lock_sync() {
                Turn::Mine(lock) => Some(lock),
                // More syncs than needed, nothing worse.
                Turn::None => None,
                Turn::Taken => return Ok(false),
            };
            turn = Some(SyncTurn { _lock: lock, _own: own });
            Ok(true)
        })?;
        turn.ok_or_else(|| self.busy())
    }

    /// Takes S, if no other process has it. Whoever calls has the turn within this process.
    pub(crate) fn try_lock_sync(&self) -> Turn<SyncLock<'_>> {
        if self.sync_file.get().is_none()
            && let Ok(file) = self.storage.open(SYNC, Access::Create)
        {
            let _ = self.sync_file.set(file);
        }
        let Some(file) = self.sync_file.get() else { return Turn::None };
        match file.try_lock() {
            Ok(true) => Turn::Mine(SyncLock(&**file)),
            Ok(false) => Turn::Taken,
            Err(_) => Turn::None,
        }
    }
}

/// Tries until it works or `wait` has passed, more and more slowly.
fn patiently(
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
        if clock.elapsed().saturating_sub(start) >= wait {
            return Ok(false);
        }
    }
}

/// The write lock; given back when dropped.
pub(crate) struct WriteLock<'a>(&'a Tail);

impl Drop for WriteLock<'_> {
    fn drop(&mut self) {
        // If unlocking fails the lock still dies with the file.
        let _ = self.0.file.unlock();
    }
}

/// S; given back when dropped.
pub(crate) struct SyncLock<'a>(&'a dyn StoredFile);

impl Drop for SyncLock<'_> {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// S, and the turn within this process, in this order given back.
pub(crate) struct SyncTurn<'a> {
    _lock: Option<SyncLock<'a>>,
    _own: OwnTurn<'a, Lost>,
}
