//! A commit is made ready in the caller's thread: encoded, hashed, and sealed if the store is encrypted.

use super::error::LogError;
use super::{Log, Prepared};
use crate::codec::{EncodedEvent, FRAME_NONCE_BYTES, encode_frame};

impl Log {
    /// Encodes and hashes a commit in the calling thread.
    ///
    /// # Errors
    /// [`LogError::Encode`] if the commit is over a limit; [`LogError::Io`] if the system has no random bytes for a sealed one.
    pub fn prepare(&self, events: &[EncodedEvent]) -> Result<Prepared, LogError> {
        let frame = encode_frame(events)?;
        let frame = match self.segments.vault.key() {
            Some(key) => {
                let mut nonce = [0; FRAME_NONCE_BYTES];
                let drawn = self.entropy.fill(&mut nonce);
                drawn.map_err(|error| LogError::io("draw random bytes for", self.storage.path(""), error))?;
                key.seal(frame, nonce)?
            }
            None => frame,
        };
        Ok(Prepared { frame })
    }
}
