//! Storage that breaks one rule of the commit protocol from below, as a bug above it would.
//!
//! Each acts as the engine would if it forgot a step; the engine itself is as shipped.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use acpdb_engine::storage::{Access, SimStorage, Storage, StoredFile};

use super::is_segment;

/// A step of the protocol that is left out or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sabotage {
    /// Segments are not synced.
    SkipSync,
    /// A segment is synced when something is asked of it after the acknowledgement.
    AckBeforeSync,
    /// A segment is synced after the tail was changed.
    PublishBeforeSync,
    /// Directories are not synced.
    NoDirectorySync,
    /// A torn end is not zeroed.
    NoTailCut,
    /// Bytes that are written again unchanged do not become dirty, so that no sync writes them.
    NoRewrite,
    /// Torn ends are cut off instead of zeroed, and nothing is synced for it.
    CutByTruncation,
}

/// Syncs that are owed, by file.
type Owed = Arc<Mutex<BTreeMap<String, Arc<dyn StoredFile>>>>;

struct Saboteur {
    inner: SimStorage,
    sabotage: Sabotage,
    owed: Owed,
}

/// The storage of a process, sabotaged or as it is.
#[must_use]
pub fn sabotaged(storage: &SimStorage, sabotage: Option<Sabotage>) -> Arc<dyn Storage> {
    match sabotage {
        None => Arc::new(storage.clone()),
        Some(sabotage) => Arc::new(Saboteur { inner: storage.clone(), sabotage, owed: Owed::default() }),
    }
}

fn pay(owed: &Owed) -> io::Result<()> {
    let owed = std::mem::take(&mut *owed.lock().unwrap_or_else(PoisonError::into_inner));
    owed.values().try_for_each(|file| file.sync_data())
}

impl Storage for Saboteur {
    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>> {
        let inner = self.inner.open(name, access)?;
        let again = if is_segment(name) && access != Access::Read {
            self.inner.open(name, Access::Write).ok().map(Arc::from)
        } else {
            None
        };
        let (sabotage, owed) = (self.sabotage, self.owed.clone());
        Ok(Box::new(File { inner, again, name: name.to_owned(), sabotage, owed }))
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
        if self.sabotage == Sabotage::NoDirectorySync { Ok(()) } else { self.inner.sync_dir(directory) }
    }
    fn process(&self) -> u32 {
        self.inner.process()
    }
}

struct File {
    inner: Box<dyn StoredFile>,
    /// Another handle on the same file, to sync it later.
    again: Option<Arc<dyn StoredFile>>,
    name: String,
    sabotage: Sabotage,
    owed: Owed,
}

impl StoredFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if is_segment(&self.name) {
            let is_zeroing = bytes.iter().all(|byte| *byte == 0) && offset < self.inner.len()?;
            match self.sabotage {
                Sabotage::NoTailCut if is_zeroing => return Ok(bytes.len()),
                Sabotage::CutByTruncation if is_zeroing => {
                    self.inner.set_len(offset)?;
                    return Ok(bytes.len());
                }
                Sabotage::NoRewrite => {
                    let mut present = vec![0; bytes.len()];
                    if self.inner.read_at(&mut present, offset)? == bytes.len() && present == bytes {
                        return Ok(bytes.len());
                    }
                }
                Sabotage::AckBeforeSync => pay(&self.owed)?,
                _ => {}
            }
        }
        let written = self.inner.write_at(bytes, offset);
        if self.name == "tail" && self.sabotage == Sabotage::PublishBeforeSync {
            pay(&self.owed)?;
        }
        written
    }
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.inner.set_len(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        if !is_segment(&self.name) {
            return self.inner.sync_data();
        }
        match self.sabotage {
            Sabotage::SkipSync => Ok(()),
            Sabotage::AckBeforeSync | Sabotage::PublishBeforeSync => {
                let Some(file) = self.again.clone() else { return self.inner.sync_data() };
                self.owed.lock().unwrap_or_else(PoisonError::into_inner).insert(self.name.clone(), file);
                Ok(())
            }
            _ => self.inner.sync_data(),
        }
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
