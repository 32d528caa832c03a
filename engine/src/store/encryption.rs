//! The key of an encrypted store, from outside: whether there is one, and wrapping it anew.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::log::rewrap_key;
use crate::storage::{FileStorage, KeyRing, Storage, SystemClock, SystemEntropy};
use crate::vault::Rotated;

use super::Store;

impl Store {
    /// Whether the store is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.inner.log.is_encrypted()
    }
}

/// Wraps the key of an encrypted store by another ring; from then on that ring opens the store, and `old` does not.
///
/// The file `key` changes as a whole or not at all, so that the call can be repeated after a kill: [`Rotated::Already`] says that it had ended. The
/// key inside stays. Who had it, or has an older copy of the file `key` with its ring, can still read; against that only a new store helps. Takes
/// the write lock; other handles go on with the key that they have. Durable when it returns.
///
/// # Errors
/// [`Error::Locked`] if the store is not encrypted, or neither ring opens it; [`Error::NotAStore`], [`Error::Busy`], [`Error::Io`].
pub fn rotate_key(folder: &Path, old: &dyn KeyRing, new: &dyn KeyRing) -> Result<Rotated, Error> {
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(folder));
    rotate_key_in(&storage, old, new)
}

/// [`rotate_key`], on any storage.
///
/// # Errors
/// As [`rotate_key`].
pub fn rotate_key_in(
    storage: &Arc<dyn Storage>,
    old: &dyn KeyRing,
    new: &dyn KeyRing,
) -> Result<Rotated, Error> {
    Ok(rewrap_key(storage, &SystemClock::new(), &SystemEntropy, (old, new))?)
}
