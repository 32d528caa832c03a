//! A commit is made ready in the caller's thread: encoded and hashed.

use super::error::LogError;
use super::{Log, Prepared};
use crate::codec::{EncodedEvent, encode_frame};

impl Log {
    /// Encodes and hashes a commit in the calling thread.
    ///
    /// # Errors
    /// [`LogError::Encode`] if the commit is over a limit.
    pub fn prepare(&self, events: &[EncodedEvent]) -> Result<Prepared, LogError> {
        Ok(Prepared { frame: encode_frame(events)? })
    }
}
