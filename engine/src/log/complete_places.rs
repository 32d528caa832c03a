//! The file of places of a complete segment is made of its frames.

use super::Log;
use super::contents::Contents;
use super::error::LogError;
use super::files::places_name;
use crate::storage::{put_file, sync, write_all};

impl Log {
    /// Whether this handle may make caches.
    pub(super) fn may_write_places(&self) -> bool {
        // Without the key of an encrypted store it is not known which event of a frame is a stream's last.
        !self.options.read_only && !self.is_read_only() && !self.is_closed()
    }

    /// Makes the file of places of a complete segment from its frames. Says whether there is one now; the log needs none.
    pub(super) fn write_places(&self, number: u32) -> Result<bool, LogError> {
        let contents = match Contents::read(&self.segments, number, false, &|| false) {
            Ok(Some(contents)) => contents,
            Ok(None) => return Ok(false),
            Err(refused) => match refused.into_error() {
                None | Some(LogError::Corrupt(_)) => return Ok(false),
                Some(error) => return Err(error),
            },
        };
        Ok(self.put_places(number, &contents))
    }

    /// Writes the file of places of a segment with these contents. Says whether there is one now.
    pub(super) fn put_places(&self, number: u32, contents: &Contents) -> bool {
        let places = contents.places();
        let put = put_file(&*self.storage, &places_name(number), &|file| {
            write_all(file, &places, 0, &mut 0)?;
            sync(file)
        });
        // Without it reading takes longer.
        put.unwrap_or(false)
    }
}
