//! Storage whose next sync of a segment waits until it is let go, so that a test decides which steps come before that
//! sync.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use acpdb_engine::storage::{Access, SimStorage, Storage, StoredFile};

use super::is_segment;

/// Holds syncs back, or lets them pass.
#[derive(Default)]
pub struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn is_shut(&self) -> MutexGuard<'_, bool> {
        self.is_shut.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs of segments wait from here on.
    pub fn shut(&self) {
        *self.is_shut() = true;
    }

    /// Those that wait go on, and later ones pass.
    pub fn open(&self) {
        *self.is_shut() = false;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut is_shut = self.is_shut();
        while *is_shut {
            is_shut = self.opened.wait(is_shut).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Held {
    inner: SimStorage,
    gate: Arc<Gate>,
}

/// The storage of a process with `gate` before each sync of a segment.
#[must_use]
pub fn held(storage: &SimStorage, gate: &Arc<Gate>) -> Arc<dyn Storage> {
    Arc::new(Held { inner: storage.clone(), gate: Arc::clone(gate) })
}

impl Storage for Held {
    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>> {
        let inner = self.inner.open(name, access)?;
        if !is_segment(name) {
            return Ok(inner);
        }
        Ok(Box::new(File { inner, gate: Arc::clone(&self.gate) }))
    }
    fn create_dir(&self, name: &str) -> io::Result<()> {
        self.inner.create_dir(name)
    }
    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        self.inner.list(directory)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn exchange(&self, left: &str, right: &str) -> io::Result<()> {
        self.inner.exchange(left, right)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
    fn sync_dir(&self, directory: &str) -> io::Result<()> {
        self.inner.sync_dir(directory)
    }
    fn process(&self) -> u32 {
        self.inner.process()
    }
}

struct File {
    inner: Box<dyn StoredFile>,
    gate: Arc<Gate>,
}

impl StoredFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.write_at(bytes, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.inner.set_len(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass();
        self.inner.sync_data()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }
    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }
    fn is_current(&self) -> io::Result<bool> {
        self.inner.is_current()
    }
}
