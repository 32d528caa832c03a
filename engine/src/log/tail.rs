//! The tail page, the write lock W, which is its lock, and the sync lock S.
//!
//! ```text
//! W  writes: takes the next place in the log            changes `written`, `busy`, the slots
//! S  syncs for all who wait; a file of its own          changes `durable`, `synced`; poison
//! ```
//!
//! The page is memory that processes share where the platform has that, and is read and written as a file where not; both
//! at once work, since a file and its maps are one memory. Without shared memory nobody can be woken, so a writer keeps W
//! until its own sync is done.
//!
//! What the locks are for: W alone keeps the log from forking. S only saves syncs, except that whoever begins a new
//! segment or ends a poisoning holds both, W first; nobody takes W while holding S.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::error::LogError;
use super::files::{SYNC, TAIL};
use crate::codec::{
    Busy, TAIL_BYTES, TailPage, Written, busy_record, check_word, poison_word, slots, state_records, word,
    written_record,
};
use crate::ids::{Position, Seq, StoreId, StreamId};
use crate::planted::{Bug, is_planted};
use crate::storage::{Access, Clock, SharedPage, Storage, StoredFile, read_up_to, sync, write_all};

/// How often a page that looks torn is read again: another process may be in the middle of writing it.
const READ_COUNT_MAX: u32 = 20;
const WAIT_MIN: Duration = Duration::from_micros(20);
const WAIT_MAX: Duration = Duration::from_millis(1);
/// How much of the page is read to decode it: all but the slots.
const READ_BYTES: usize = word::SLOTS * 8;
/// From the written record to the word of poison.
const POISON_BYTES: usize = (word::POISONED - word::WRITTEN) * 8 + 4;
const LOW_HALF: u64 = 0xffff_ffff;

pub(crate) struct Tail {
    storage: Arc<dyn Storage>,
    file: Box<dyn StoredFile>,
    page: OnceLock<Arc<dyn SharedPage>>,
    /// The file of S; opened when it is first needed. `None`: there can be none.
    sync_file: OnceLock<Option<Box<dyn StoredFile>>>,
    /// Whether a thread of this process syncs. A lock on a file does not tell threads apart.
    turn: AtomicBool,
}

/// The page of a store, shared as memory; `None` if there is no such thing or the page is not whole.
pub(crate) fn map(storage: &dyn Storage) -> Option<Arc<dyn SharedPage>> {
    // Whatever stands in the way: reading and writing the file does as well, and reports it if it matters.
    storage.map_page(TAIL).ok().flatten()
}

/// Reads a page from memory; again if it is torn.
pub(crate) fn read_shared(page: &dyn SharedPage) -> TailPage {
    read_again(|bytes| {
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(0..) {
            chunk.copy_from_slice(&page.load(word).to_le_bytes());
        }
        Ok::<_, std::convert::Infallible>(bytes.len())
    })
    .unwrap_or_default()
}

fn read_again<E>(mut read: impl FnMut(&mut [u8; READ_BYTES]) -> Result<usize, E>) -> Result<TailPage, E> {
    let mut page = TailPage::default();
    for round in 0..READ_COUNT_MAX {
        let mut bytes = [0; READ_BYTES];
        let count = read(&mut bytes)?;
        page = TailPage::decode(bytes.get(..count).unwrap_or(&[]));
        let torn = page.written.is_none() || page.durable.is_none() || page.busy == Busy::Torn;
        if count < bytes.len() || !torn {
            break;
        }
        if round > 0 {
            std::thread::yield_now();
        }
    }
    Ok(page)
}

fn store_bytes(page: &dyn SharedPage, first: usize, bytes: &[u8]) {
    let (words, _) = bytes.as_chunks::<8>();
    for (word, bytes) in (first..).zip(words) {
        page.store(word, u64::from_le_bytes(*bytes));
    }
}

/// The durable position that a page claims, if its check word agrees.
pub(crate) fn durable_shared(page: &dyn SharedPage) -> Option<Position> {
    let durable = page.load(word::DURABLE);
    (durable != 0 && page.load(word::DURABLE_CHECK) == check_word(durable)).then_some(Position(durable))
}

impl Tail {
    pub(crate) fn new(storage: Arc<dyn Storage>, file: Box<dyn StoredFile>) -> Self {
        let tail = Self {
            storage,
            file,
            page: OnceLock::new(),
            sync_file: OnceLock::new(),
            turn: AtomicBool::new(false),
        };
        tail.map();
        tail
    }

    fn map(&self) {
        if self.page.get().is_none()
            && self.is_whole().unwrap_or(false)
            && let Some(page) = map(&*self.storage)
        {
            let _ = self.page.set(page);
        }
    }

    /// The page as memory, if it is shared.
    pub(crate) fn shared(&self) -> Option<&Arc<dyn SharedPage>> {
        self.page.get()
    }

    fn path(&self) -> PathBuf {
        self.storage.path(TAIL)
    }

    fn fail(&self, action: &'static str) -> impl Fn(std::io::Error) -> LogError + '_ {
        move |error| LogError::io(action, self.path(), error)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<(), LogError> {
        write_all(&*self.file, bytes, offset, &mut 0).map_err(self.fail("write"))
    }

    /// Reads the page; again if it is torn.
    pub(crate) fn read(&self) -> Result<TailPage, LogError> {
        match self.shared() {
            Some(page) => Ok(read_shared(&**page)),
            None => read_again(|bytes| read_up_to(&*self.file, bytes, 0)).map_err(self.fail("read")),
        }
    }

    /// Whether the page has its full length, so that writing it needs no space.
    pub(crate) fn is_whole(&self) -> Result<bool, LogError> {
        Ok(self.file.len().map_err(self.fail("inspect"))? >= TAIL_BYTES as u64)
    }

    /// Writes the whole page and syncs it. Call under W.
    pub(crate) fn write_page(&self, store: StoreId, written: &Written) -> Result<(), LogError> {
        self.write(&TailPage::encode(store, written), 0)?;
        self.sync().map_err(self.fail("sync"))?;
        self.map();
        Ok(())
    }

    /// Makes the page durable as it is.
    pub(crate) fn sync(&self) -> std::io::Result<()> {
        sync(&*self.file)
    }

    /// Says that a write of this process up to `end` begins. Call under W.
    pub(crate) fn begin(&self, end: Position, process: u32) -> Result<(), LogError> {
        let bytes = busy_record(end, process);
        match self.shared() {
            Some(page) => store_bytes(&**page, word::BUSY, &bytes),
            None => self.write(&bytes, TailPage::BUSY_OFFSET)?,
        }
        Ok(())
    }

    /// Says that everything up to `written` is in the file, and what streams it moved to which seq. Nobody is writing any
    /// more. Call under W, only if the page is shared: others must be able to say that it is durable.
    pub(crate) fn publish_written<'a>(
        page: &dyn SharedPage,
        written: &Written,
        streams: impl Iterator<Item = (&'a StreamId, &'a Seq)>,
    ) {
        // Before `written`: whoever sees that must see these.
        for (stream, seq) in streams {
            page.fetch_max(TailPage::slot_word(TailPage::slot_of(stream)), seq.0);
        }
        store_bytes(page, word::WRITTEN, &written_record(written));
        page.store(word::BUSY, 0);
        page.store(word::BUSY + 1, 0);
    }

    /// Says that nobody is writing after all. Call under W.
    pub(crate) fn withdraw(&self) -> Result<(), LogError> {
        match self.shared() {
            Some(page) => store_bytes(&**page, word::BUSY, &[0; 16]),
            None => self.write(&[0; 16], TailPage::BUSY_OFFSET)?,
        }
        Ok(())
    }

    /// Says that everything up to `place` is durable.
    pub(crate) fn publish_durable(page: &dyn SharedPage, place: &Written) {
        let before = page.fetch_max(word::DURABLE, place.position.0);
        Self::mend_check(page);
        if before < place.position.0 {
            let covered = place.seq.0.saturating_sub(page.load(word::SYNCED_SEQ));
            let behind = page.load(word::WRITTEN_SEQ).saturating_sub(place.seq.0);
            page.store(word::SYNC_COUNT, covered.saturating_add(behind));
            store_bytes(page, word::SYNCED, &written_record(place));
        }
    }

    /// Makes the check word agree with the durable position; somebody may have died between the two.
    pub(crate) fn mend_check(page: &dyn SharedPage) {
        loop {
            let durable = page.load(word::DURABLE);
            if page.load(word::DURABLE_CHECK) != check_word(durable) {
                page.store(word::DURABLE_CHECK, check_word(durable));
            }
            if page.load(word::DURABLE) == durable {
                return;
            }
        }
    }

    /// Says that everything up to `place` is written and durable, that nobody writes, and which streams moved: all of
    /// them, if that is not known. Call under W.
    pub(crate) fn publish<'a>(
        &self,
        place: &Written,
        streams: Option<&mut dyn Iterator<Item = (&'a StreamId, &'a Seq)>>,
    ) -> Result<(), LogError> {
        if let Some(page) = self.shared() {
            if let Some(streams) = streams {
                Self::publish_written(&**page, place, streams);
            } else {
                store_bytes(&**page, word::SLOTS, &slots(place.seq));
                Self::publish_written(&**page, place, std::iter::empty());
            }
            Self::publish_durable(&**page, place);
            page.bump_and_wake(word::WAKE);
            return Ok(());
        }
        match streams {
            Some(streams) => {
                for (stream, seq) in streams {
                    self.write(&seq.0.to_le_bytes(), TailPage::slot_offset(TailPage::slot_of(stream)))?;
                }
            }
            None => self.write(&slots(place.seq), TailPage::SLOTS_OFFSET)?,
        }
        self.write(&state_records(place), TailPage::STATE_OFFSET)
    }

    /// The newest seq that a stream may have; more if another one shares its slot.
    pub(crate) fn slot(&self, stream: &StreamId) -> Seq {
        let slot = TailPage::slot_of(stream);
        if let Some(page) = self.shared() {
            return Seq(page.load(TailPage::slot_word(slot)));
        }
        let mut bytes = [0; 8];
        match read_up_to(&*self.file, &mut bytes, TailPage::slot_offset(slot)) {
            Ok(8) => Seq(u64::from_le_bytes(bytes)),
            _ => Seq::MAX,
        }
    }

    /// Says that a sync failed: nobody may append, and whoever waits is told.
    pub(crate) fn poison(&self) {
        if let Some(page) = self.shared() {
            // Poison first: whoever sees the new epoch must see that.
            let poison = u64::from(poison_word(Position(page.load(word::DURABLE))));
            change(&**page, word::POISONED, |word| (word & !LOW_HALF) | poison);
            if !is_planted(Bug::PoisonWithoutEpoch) {
                change(&**page, word::WAKE, |word| word.wrapping_add(LOW_HALF + 1));
            }
            page.bump_and_wake(word::WAKE);
            return;
        }
        // In one write with what is durable: if the power fails, one must not be kept without the other, or what was
        // acknowledged would be given up as unconfirmed.
        let mut bytes = [0; POISON_BYTES];
        let page = self.read().unwrap_or_default();
        let Ok(count) = read_up_to(&*self.file, &mut bytes, TailPage::STATE_OFFSET) else { return };
        if count == bytes.len()
            && let Some((_, flags)) = bytes.split_last_chunk_mut::<8>()
        {
            let (epoch, poisoned) = flags.split_at_mut(4);
            let durable = page.durable.unwrap_or_default();
            let raised = <[u8; 4]>::try_from(&*epoch).map_or(0, u32::from_le_bytes).wrapping_add(1);
            epoch.copy_from_slice(&raised.to_le_bytes());
            poisoned.copy_from_slice(&poison_word(durable).to_le_bytes());
            // If the page cannot be written this handle still refuses appends.
            let _ = self.write(&bytes, TailPage::STATE_OFFSET);
        }
    }

    /// Says that the store was recovered after a failed sync; the epoch stays. Call under W and S.
    pub(crate) fn clear_poison(&self) -> Result<(), LogError> {
        match self.shared() {
            Some(page) => change(&**page, word::POISONED, |word| word & !LOW_HALF),
            None => self.write(&[0; 4], TailPage::EPOCH_OFFSET + 4)?,
        }
        Ok(())
    }

    /// Raises the generation. Without shared memory two at once may count as one, which is enough.
    pub(crate) fn raise_generation(&self) -> Result<(), LogError> {
        if let Some(page) = self.shared() {
            change(&**page, word::POISONED, |word| word.wrapping_add(LOW_HALF + 1));
            return Ok(());
        }
        let next = self.read()?.generation.wrapping_add(1);
        self.write(&next.to_le_bytes(), TailPage::EPOCH_OFFSET + 8)
    }

    /// Takes W, waiting at most `wait`.
    pub(crate) fn lock(&self, clock: &dyn Clock, wait: Duration) -> Result<WriteLock<'_>, LogError> {
        let taken = patiently(clock, wait, || self.file.try_lock().map_err(self.fail("lock")))?;
        if !taken {
            return Err(self.busy());
        }
        let lock = WriteLock(self);
        // A folder that was moved takes its lock along; whoever opens a file by its name asks again.
        if self.file.is_linked().map_err(self.fail("inspect"))? {
            return Ok(lock);
        }
        Err(LogError::Moved { path: self.path() })
    }

    /// Refuses a store whose files are no longer where their names say: a file opened by its name would be another's.
    pub(crate) fn check_current(&self) -> Result<(), LogError> {
        let current = self.file.is_current().map_err(self.fail("inspect"))?;
        if current { Ok(()) } else { Err(LogError::Moved { path: self.path() }) }
    }

    fn busy(&self) -> LogError {
        let process = match self.read().map(|page| page.busy) {
            Ok(Busy::Writing { process, .. }) => process,
            _ => 0,
        };
        LogError::Busy { process, path: self.storage.path("") }
    }

    /// Takes S, waiting at most `wait`.
    pub(crate) fn lock_sync(&self, clock: &dyn Clock, wait: Duration) -> Result<SyncLock<'_>, LogError> {
        let mut lock = None;
        patiently(clock, wait, || {
            lock = self.try_lock_sync(true);
            Ok(lock.is_some())
        })?;
        lock.ok_or_else(|| self.busy())
    }

    /// Takes this process's turn to sync, and S if `shared`; `None` if somebody else has it.
    pub(crate) fn try_lock_sync(&self, shared: bool) -> Option<SyncLock<'_>> {
        if self.turn.swap(true, Ordering::SeqCst) {
            return None;
        }
        let mut lock = SyncLock { tail: self, file: None };
        if shared {
            let file = self.sync_file.get_or_init(|| self.storage.open(SYNC, Access::Create).ok());
            // Without the file there is no S, and whoever wants to sync does: more syncs, nothing worse.
            if let Some(file) = file {
                if !file.try_lock().unwrap_or(true) {
                    return None;
                }
                lock.file = Some(&**file);
            }
        }
        Some(lock)
    }
}

/// Changes a word in one step.
fn change(page: &dyn SharedPage, word: usize, to: impl Fn(u64) -> u64) {
    let mut known = page.load(word);
    while let Err(newer) = page.compare_exchange(word, known, to(known)) {
        known = newer;
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

/// The turn to sync; given back when dropped. Wake whoever waits after that.
pub(crate) struct SyncLock<'a> {
    tail: &'a Tail,
    file: Option<&'a dyn StoredFile>,
}

impl Drop for SyncLock<'_> {
    fn drop(&mut self) {
        if let Some(file) = self.file {
            let _ = file.unlock();
        }
        self.tail.turn.store(false, Ordering::SeqCst);
    }
}
