//! Sealing: a complete segment is packed, and takes the place of the old file under the same name.
//!
//! ```text
//! SEAL { read and check the old file -> n.seg.tmp -> sync -> read it back and compare all of it -> rename -> sync directory }
//! ```
//!
//! The sealed file unpacks to the segment, byte for byte, so links, positions and digests stay valid. A crash at any step leaves the
//! old file or the new one, and perhaps a temporary file that the next holder of SEAL removes. Handles that have the old file open read
//! on in it. A damaged segment is not sealed, so that no guess becomes permanent.

use super::Log;
use super::contents::{Contents, RewriteRefusal};
use super::cursor::FrameCursor;
use super::error::{FrameFault, LogError};
use super::files::{LOG_DIR, SCAN_WINDOW_BYTES, corruption, damaged, segment_begin, segment_name};
use super::seal_writer::{SealWriter, first_difference};
use crate::codec::{DamagedPart, Invalid};
use crate::storage::{Access, bytes_between};

/// A segment whose newest event is older than this is cold: it is sealed without being asked.
const COLD_MICROS: i64 = 24 * 3600 * 1_000_000;

/// The outcome of sealing one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[must_use]
pub enum SealOutcome {
    /// The segment is sealed now.
    Sealed(SealFigures),
    /// The segment was sealed before, or is not complete, or has no events.
    NotNeeded,
    /// Another process is sealing or erasing, or an erasure has not ended.
    Busy,
    /// Sealing was told to stop before the end; nothing changed.
    Stopped,
}

/// Figures of sealing one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct SealFigures {
    /// The segment.
    pub segment: u32,
    /// Length of the file before.
    pub bytes_before: u64,
    /// Length of the file now.
    pub bytes_after: u64,
}

impl Log {
    /// Those of [`Log::unsealed`] whose newest event is older than a day.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn cold(&self) -> Result<Vec<u32>, LogError> {
        let now = self.clock.now();
        let mut found = self.unsealed()?;
        let mut failed = None;
        found.retain(|number| match self.segments.header(number.saturating_add(1)) {
            // A clock that was set back makes nothing cold.
            Ok(next) => next.is_some_and(|next| now.0.saturating_sub(next.previous_time.0) > COLD_MICROS),
            Err(error) => {
                failed = Some(error);
                false
            }
        });
        failed.map_or(Ok(found), Err)
    }

    /// Seals one segment if it is complete. `stop` is asked now and then; once it says so nothing is changed.
    ///
    /// Durable when it returns. Cost: three passes over the segment, half a second for 64 MiB; memory for its places.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if the segment is damaged (it stays as it is), [`LogError::ReadOnly`], [`LogError::NoSpace`],
    /// [`LogError::Io`].
    pub fn seal(&self, number: u32, stop: &dyn Fn() -> bool) -> Result<SealOutcome, LogError> {
        if self.options.read_only || self.is_read_only() {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        }
        // Its units are packed before they are sealed; noise does not get shorter.
        if number >= self.head().position.segment() || self.is_encrypted() {
            return Ok(SealOutcome::NotNeeded);
        }
        let Some(_lock) = self.seal_lock()? else { return Ok(SealOutcome::Busy) };
        // Texts that are on record as erased are zeroed first: what is packed would have to be packed again.
        if self.is_erasing()? {
            return Ok(SealOutcome::Busy);
        }
        self.segments.forget_one(number);
        let old = self.segments.get(number)?;
        let Some(old) = old.filter(|file| file.sealed.is_none() && file.header.is_ok()) else {
            return Ok(SealOutcome::NotNeeded);
        };
        let name = segment_name(number);
        let temporary = format!("{name}.tmp");
        let bytes_before =
            old.file.len().map_err(|error| LogError::io("inspect", old.path.clone(), error))?;
        drop(old);
        let made = self.write_sealed(number, &temporary, stop);
        let bytes_after = match made {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(SealOutcome::NotNeeded),
            Err(refused) => {
                // If it stays, the next holder of the lock removes it.
                let _ = self.storage.remove(&temporary);
                return match refused {
                    RewriteRefusal::Stopped => Ok(SealOutcome::Stopped),
                    RewriteRefusal::Error(error) => Err(error),
                };
            }
        };
        let fail = |action, name: &str| LogError::of(action, &*self.storage, name);
        self.storage.rename(&temporary, &name).map_err(fail("rename", &temporary))?;
        self.storage.sync_dir(LOG_DIR).map_err(fail("sync", LOG_DIR))?;
        self.segments.forget_one(number);
        self.generation_changed();
        Ok(SealOutcome::Sealed(SealFigures { segment: number, bytes_before, bytes_after }))
    }

    /// Writes the sealed form of a segment to a temporary file, syncs it, reads it back and compares. Returns its length.
    fn write_sealed(
        &self,
        number: u32,
        temporary: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<u64>, RewriteRefusal> {
        let fail = |action| {
            let path = self.storage.path(temporary);
            move |error| RewriteRefusal::Error(LogError::io(action, path, error))
        };
        let Some(contents) = Contents::read(&self.segments, number, true, stop)? else { return Ok(None) };
        if contents.header.generation_torn {
            let invalid =
                Invalid::new(DamagedPart::SegmentHeader, 0, "how often bodies were erased", "other bytes");
            return Err(
                damaged(&self.segments, segment_begin(number), FrameFault::Invalid(invalid, None)).into()
            );
        }
        let file = self.storage.open(temporary, Access::Replace).map_err(fail("create"))?;
        let mut writer = SealWriter::new(&*file).map_err(fail("write"))?;
        let mut cursor = FrameCursor::new(&self.segments, SCAN_WINDOW_BYTES);
        let mut begin = 0;
        for end in contents.chunk_ends() {
            if stop() {
                return Err(RewriteRefusal::Stopped);
            }
            let bytes = cursor.bytes(number, begin, bytes_between(begin, end))?;
            writer.chunk(bytes).map_err(fail("write"))?;
            begin = end;
        }
        writer.finish(self.segments.store, number, contents.header.generation).map_err(fail("write"))?;
        drop(file);
        let length = contents.end.position.offset();
        self.compare(number, temporary, length, |at, count| {
            if stop() {
                return Ok(Vec::new());
            }
            cursor.bytes(number, at, count).map(<[u8]>::to_vec)
        })
        .map_err(|error| if stop() { RewriteRefusal::Stopped } else { error.into() })?;
        let next = self.segments.header(number.saturating_add(1))?;
        // A file of places that is missing is made while all is at hand.
        let places = next.map(|next| self.segments.places_file(number, &next)).transpose()?.flatten();
        if places.is_none() {
            self.put_places(number, &contents);
        }
        let made = self.storage.open(temporary, Access::Read).map_err(fail("open"))?;
        Ok(Some(made.len().map_err(fail("inspect"))?))
    }

    /// Reads a new file as any reader would, and compares all of it with what it must say.
    pub(super) fn compare(
        &self,
        number: u32,
        temporary: &str,
        length: u64,
        expected: impl FnMut(u64, usize) -> Result<Vec<u8>, LogError>,
    ) -> Result<(), LogError> {
        let made = self.segments.open_named(number, temporary.to_owned())?;
        let differs = |what: String| {
            let invalid = Invalid::new(DamagedPart::Packed, 0, what, "another");
            let mut damage =
                corruption(&self.segments, segment_begin(number), FrameFault::Invalid(invalid, None));
            damage.path = self.storage.path(temporary);
            Err(LogError::corrupt(damage))
        };
        let Some(made) = made.filter(|made| made.header.is_ok()) else {
            return differs("a segment".to_owned());
        };
        if !self.segments.check_packed(number, &made)?.is_empty() {
            return differs("a whole file".to_owned());
        }
        match first_difference(&made, length, expected)? {
            None => Ok(()),
            Some(at) => differs(format!("the bytes of the segment from {at} on")),
        }
    }
}
