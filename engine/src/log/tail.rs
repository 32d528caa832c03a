//! The tail page and the write lock W, which is its lock.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::error::LogError;
use super::files::TAIL;
use crate::codec::{Busy, TAIL_BYTES, TailPage, Written, busy_record, state_records};
use crate::ids::{Position, StoreId};
use crate::storage::{Clock, Storage, StoredFile, read_up_to, sync, write_all};

/// How often a page that looks torn is read again: another process may be in the middle of writing it.
const READ_COUNT_MAX: u32 = 20;
const WAIT_MIN: Duration = Duration::from_micros(20);
const WAIT_MAX: Duration = Duration::from_millis(1);

pub(crate) struct Tail {
    storage: Arc<dyn Storage>,
    file: Box<dyn StoredFile>,
}

impl Tail {
    pub(crate) fn new(storage: Arc<dyn Storage>, file: Box<dyn StoredFile>) -> Self {
        Self { storage, file }
    }

    fn path(&self) -> PathBuf {
        self.storage.path(TAIL)
    }

    fn fail(&self, action: &'static str) -> impl Fn(std::io::Error) -> LogError + '_ {
        move |error| LogError::io(action, self.path(), error)
    }

    /// Reads the page; again if it is torn.
    pub(crate) fn read(&self) -> Result<TailPage, LogError> {
        let mut page = TailPage::default();
        for round in 0..READ_COUNT_MAX {
            let mut bytes = [0; 256];
            let count = read_up_to(&*self.file, &mut bytes, 0).map_err(self.fail("read"))?;
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

    /// Whether the page has its full length, so that writing it needs no space.
    pub(crate) fn is_whole(&self) -> Result<bool, LogError> {
        Ok(self.file.len().map_err(self.fail("inspect"))? >= TAIL_BYTES as u64)
    }

    /// Writes the whole page and syncs it.
    pub(crate) fn write_page(&self, store: StoreId, written: &Written) -> Result<(), LogError> {
        let bytes = TailPage::encode(store, written);
        write_all(&*self.file, &bytes, 0, &mut 0).map_err(self.fail("write"))?;
        sync(&*self.file).map_err(self.fail("sync"))
    }

    /// Makes the page durable as it is.
    pub(crate) fn sync(&self) -> std::io::Result<()> {
        sync(&*self.file)
    }

    /// Says that everything up to `written` is durable and nobody is writing. Call under W.
    pub(crate) fn publish(&self, written: &Written, epoch: u32) -> Result<(), LogError> {
        let bytes = state_records(written, epoch, false);
        write_all(&*self.file, &bytes, TailPage::STATE_OFFSET, &mut 0).map_err(self.fail("write"))
    }

    /// Says that a sync failed. `durable` is what was confirmed before. Call under W.
    pub(crate) fn poison(&self, durable: &Written, epoch: u32) -> Result<(), LogError> {
        let bytes = state_records(durable, epoch, true);
        write_all(&*self.file, &bytes, TailPage::STATE_OFFSET, &mut 0).map_err(self.fail("write"))
    }

    /// Says that a write up to `end` begins. Call under W.
    pub(crate) fn begin(&self, end: Position) -> Result<(), LogError> {
        let bytes = busy_record(end, self.storage.process());
        write_all(&*self.file, &bytes, TailPage::BUSY_OFFSET, &mut 0).map_err(self.fail("write"))
    }

    /// Takes W, waiting at most `wait`.
    pub(crate) fn lock(&self, clock: &dyn Clock, wait: Duration) -> Result<WriteLock<'_>, LogError> {
        let start = clock.elapsed();
        let mut pause = Duration::ZERO;
        loop {
            if self.file.try_lock().map_err(self.fail("lock"))? {
                let lock = WriteLock(self);
                if self.file.is_current().map_err(self.fail("inspect"))? {
                    return Ok(lock);
                }
                return Err(LogError::Moved { path: self.path() });
            }
            if clock.elapsed().saturating_sub(start) >= wait {
                let process = match self.read()?.busy {
                    Busy::Writing { process, .. } => process,
                    Busy::Idle | Busy::Torn => 0,
                };
                return Err(LogError::Busy { process, path: self.storage.path("") });
            }
            if pause.is_zero() {
                std::thread::yield_now();
                pause = WAIT_MIN;
            } else {
                clock.sleep(pause);
                pause = pause.saturating_mul(2).min(WAIT_MAX);
            }
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
