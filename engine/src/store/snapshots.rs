//! A handle's uses of snapshots: it reads them, writes them, and writes them without being asked.
//!
//! A file that holds an erased text is emptied before it is removed: another program may have it open.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::snapshot_file::snapshot_name;
use crate::ids::{StoreId, StreamId};
use crate::locks::steady;
use crate::storage::{Access, Storage, give_back};

/// How a handle uses snapshots.
#[derive(Clone, Copy)]
pub(super) struct Uses {
    /// Opens sessions from them.
    pub(super) reads: bool,
    /// May write and remove them.
    pub(super) writes: bool,
    /// Writes them without being asked, in a thread of its own. Not on storage that is given: a simulated world has no
    /// threads that it does not know of.
    pub(super) by_itself: bool,
}

/// Writes and reads snapshots.
pub(super) struct Snapshots {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) store: StoreId,
    pub(super) uses: Uses,
    pub(super) running: Mutex<Option<JoinHandle<()>>>,
}

impl Snapshots {
    pub(super) fn new(storage: Arc<dyn Storage>, store: StoreId, uses: Uses) -> Self {
        Self { storage, store, uses, running: Mutex::default() }
    }

    /// Whether snapshots are written without being asked for.
    pub(super) const fn are_kept(&self) -> bool {
        self.uses.writes && self.uses.by_itself
    }

    /// Waits for the thread that writes, if there is one.
    pub(super) fn finish(&self) {
        let running = steady(&self.running).take();
        if let Some(thread) = running {
            // If it panicked, there is one saved fold less.
            let _ = thread.join();
        }
    }

    /// Empties and removes a file that may hold an erased text: another program may have it open.
    pub(super) fn empty(&self, stream: StreamId) {
        let name = snapshot_name(stream);
        if self.uses.writes
            && let Ok(file) = self.storage.open(&name, Access::Write)
        {
            // An erasure removes it, too. If it stays, it is refused again.
            give_back(&*self.storage, &*file, &name);
        }
    }

    pub(super) fn forget(&self, stream: StreamId) {
        if self.uses.writes {
            // If it stays, it is refused again.
            let _ = self.storage.remove(&snapshot_name(stream));
        }
    }
}
