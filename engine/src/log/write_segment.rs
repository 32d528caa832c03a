//! The segment that commits are written to.

use std::sync::atomic::{AtomicU64, Ordering};

use super::error::LogError;
use super::files::segment_name;
use crate::storage::{Access, Storage, StoredFile};

/// The segment that is being written.
pub(crate) struct WriteSegment {
    pub(crate) number: u32,
    pub(crate) file: Box<dyn StoredFile>,
    /// Its length, at least.
    pub(super) length: AtomicU64,
}

impl WriteSegment {
    pub(crate) fn open(storage: &dyn Storage, number: u32) -> Result<Self, LogError> {
        let name = segment_name(number);
        match storage.open(&name, Access::Write) {
            Ok(file) => Ok(Self { number, file, length: AtomicU64::new(0) }),
            Err(error) => Err(LogError::io("open", storage.path(&name), error)),
        }
    }

    /// Cuts off preallocated zeros. If it fails they just stay.
    pub(crate) fn give_back(&self, end: u64) {
        if self.file.len().is_ok_and(|length| length > end) {
            self.length.store(0, Ordering::Relaxed);
            // Zeros that stay cost space alone.
            let _ = self.file.set_len(end);
        }
    }
}
