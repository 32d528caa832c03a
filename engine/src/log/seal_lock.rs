//! The lock SEAL: under it complete segments change, and the keys of streams.

use std::time::Duration;

use super::Log;
use super::error::LogError;
use super::files::{LOG_DIR, SEAL, segment_number};
use super::repair::zero;
use crate::storage::{Access, StoredFile, sync};

/// How long to wait before the lock is tried again.
const WAIT_MAX: Duration = Duration::from_millis(20);

/// The lock SEAL, given back when dropped.
pub(crate) struct SealLock(Box<dyn StoredFile>);

impl Drop for SealLock {
    fn drop(&mut self) {
        // If unlocking fails the lock still dies with the file.
        let _ = self.0.unlock();
    }
}

impl Log {
    /// Takes SEAL, under which complete segments change; `None` if another process has it. Removes files that an interrupted
    /// sealing left.
    pub(crate) fn seal_lock(&self) -> Result<Option<SealLock>, LogError> {
        self.check_process()?;
        let fail = |action| move |error| LogError::io(action, self.storage.path(SEAL), error);
        let file = self.storage.open(SEAL, Access::Create).map_err(fail("open"))?;
        if !file.try_lock().map_err(fail("lock"))? {
            return Ok(None);
        }
        let lock = SealLock(file);
        let last = self.head().position.segment();
        let names = self.storage.list(LOG_DIR);
        let names = names.map_err(|error| LogError::io("list", self.storage.path(LOG_DIR), error))?;
        // The temporary file of a segment that is being made has a higher number.
        let left = names.iter().filter(|name| {
            let number = name.strip_suffix(".tmp").and_then(segment_number);
            number.is_some_and(|number| number < last)
        });
        for name in left {
            let name = format!("{LOG_DIR}/{name}");
            // It may be a segment with texts that were erased since.
            self.zero_away(&name)?;
        }
        Ok(Some(lock))
    }

    /// Overwrites a file with zeros, durably, and removes it. Call under SEAL.
    pub(super) fn zero_away(&self, name: &str) -> Result<(), LogError> {
        let fail = |action| LogError::of(action, &*self.storage, name);
        let file = self.storage.open(name, Access::Write).map_err(fail("open"))?;
        let length = file.len().map_err(fail("inspect"))?;
        zero(&*file, 0, length).map_err(fail("zero"))?;
        sync(&*file).map_err(fail("sync"))?;
        self.storage.remove(name).map_err(fail("remove"))
    }

    /// Takes the lock of SEAL once it is free.
    pub(super) fn wait_for_seal_lock(&self) -> Result<SealLock, LogError> {
        let start = self.clock.elapsed();
        loop {
            if let Some(lock) = self.seal_lock()? {
                return Ok(lock);
            }
            if self.clock.since(start) >= self.options.lock_wait {
                return Err(LogError::Busy { process: 0, path: self.storage.path("") });
            }
            self.clock.sleep(WAIT_MAX);
        }
    }
}
