//! Changes of keys while the log is open. After a change, no commit is placed that a key seals which is no longer its stream's newest.
//!
//! ```text
//! change   SEAL { files of keys changed, synced -> write lock { generation raised } }
//! commit   generation seen -> keys looked for -> sealed -> write lock { generation changed? keys still the newest? -> written }
//! ```
//!
//! So when a change returns, each commit placed from then on is sealed under the keys that the change left.

use std::io;
use std::sync::Arc;

use super::Log;
use super::error::LogError;
use super::key_folder::key_name;
use super::keys::KeyChain;
use crate::ids::{StreamId, SubjectId};
use crate::locks::steady;
use crate::storage::{KeyRing, Storage};

/// Why a key is not at hand that may be read a moment later.
pub(crate) fn unread() -> io::Error {
    io::Error::other("it could not be read a moment ago; try again")
}

impl Log {
    /// The error of an event whose key could not be read when the event was.
    pub(crate) fn unread_key(&self, stream: StreamId) -> LogError {
        LogError::io("read", self.storage.path(&key_name(stream)), unread())
    }

    /// The error that says why a stream cannot be read, in a store whose key is not at hand.
    pub(crate) fn why_locked(&self, stream: StreamId) -> LogError {
        match self.segments.keys() {
            Some(keys) => keys.why_locked(stream),
            None => LogError::NotAStore { path: self.storage.path("") },
        }
    }

    fn keys_to_change(&self) -> Result<Option<&KeyChain>, LogError> {
        self.check_process()?;
        if self.is_read_only() {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        }
        Ok(self.segments.keys())
    }

    /// Whether the file of the store's own key is here: a copy of a store may have no keys.
    pub(crate) fn has_own_key(&self) -> Result<bool, LogError> {
        let Some(keys) = self.segments.keys() else { return Ok(false) };
        Ok(!matches!(keys.folder.stream(StreamId::STORE)?, Ok(None)))
    }

    /// Wraps all keys anew with another ring. Returns how many were wrapped.
    ///
    /// # Errors
    /// [`LogError::Locked`] if neither ring opens one of them; [`LogError::Io`]. Files that were wrapped anew stay so; the next call goes on.
    pub fn rewrap_keys(&self, to: &Arc<dyn KeyRing>) -> Result<u64, LogError> {
        self.keys_to_change()?.map_or(Ok(0), |keys| keys.rewrap(to))
    }

    /// Gives each of the streams a new key; without a list, each stream of the store. When it returns, no process seals under their older keys any
    /// more. Returns how many got a key.
    ///
    /// # Errors
    /// [`LogError::Locked`] if the ring does not open a stream's newest key; [`LogError::Busy`], [`LogError::Io`]. Streams that got a key keep it.
    pub fn add_keys(&self, streams: Option<&[StreamId]>) -> Result<u64, LogError> {
        let Some(keys) = self.keys_to_change()? else { return Ok(0) };
        let _seal = self.wait_for_seal_lock()?;
        let added = match streams {
            Some(streams) => keys.add_keys(streams),
            None => keys.add_keys(&keys.folder.streams()?),
        };
        // Also if the change stopped half way.
        self.keys_changed()?;
        added
    }

    /// Destroys the keys of a stream, and tells all handles of any process to forget them. Durable when it returns. Call while erasing.
    ///
    /// # Errors
    /// [`LogError::Io`]; called again it goes on.
    pub fn shred_key(&self, stream: StreamId) -> Result<(), LogError> {
        let Some(keys) = self.keys_to_change()? else { return Ok(()) };
        let shredded = keys.shred(stream);
        // Also if the change stopped half way, as below.
        self.keys_changed()?;
        shredded
    }

    /// Destroys the key of a subject. As [`Log::shred_key`].
    ///
    /// # Errors
    /// [`LogError::Io`]; called again it goes on.
    pub fn shred_subject_key(&self, subject: SubjectId) -> Result<(), LogError> {
        let Some(keys) = self.keys_to_change()? else { return Ok(()) };
        let shredded = keys.shred_subject(subject);
        self.keys_changed()?;
        shredded
    }

    /// Tells all handles of all processes that keys changed. When it returns, commits that were sealed under older keys get no place any more. Call
    /// under the lock of SEAL.
    fn keys_changed(&self) -> Result<(), LogError> {
        let Some(tail) = &self.tail else { return Ok(()) };
        // The lock of a file does not tell threads apart. The guarded value is not used, and other handles must learn of a destroyed key even after a
        // panic.
        let _writer = steady(&self.writer);
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        tail.raise_generation()
    }

    /// Whether the key of a stream was destroyed.
    ///
    /// # Errors
    /// [`LogError::Io`] if its file cannot be read.
    pub fn is_shredded(&self, stream: StreamId) -> Result<bool, LogError> {
        self.segments.keys().map_or(Ok(false), |keys| keys.is_shredded(stream))
    }

    /// Copies the files of wrapped keys to a copy of the store. Returns how many.
    ///
    /// # Errors
    /// [`LogError::Io`] and [`LogError::NoSpace`] of either side.
    pub fn copy_keys_to(&self, target: &dyn Storage) -> Result<u64, LogError> {
        self.segments.keys().map_or(Ok(0), |keys| keys.copy_to(target))
    }

    /// Makes the first key of a stream that is about a subject. `name`: the name of the subject, whose key is made if the subject is new and `name`
    /// is given. A stream that has a key is left as it is. Durable when it returns.
    ///
    /// # Errors
    /// [`LogError::SubjectShredded`], [`LogError::Locked`], [`LogError::Io`].
    pub(crate) fn begin_about(
        &self,
        stream: StreamId,
        subject: SubjectId,
        name: Option<&str>,
    ) -> Result<(), LogError> {
        self.keys_to_change()?.map_or(Ok(()), |keys| keys.begin_about(stream, subject, name))
    }
}
