//! Writing rows of places: with each commit, and once more when a segment is complete.
//!
//! ```text
//! write lock { frame | rows, at the place that the page's count names | written, count }
//! ```
//!
//! Rows come after their frame and before the page says that the frame is written, so no reader believes a row of a frame that is not there. They
//! are a cache: an error fails no commit. The count stays then, and the next writer finds where the rows end and writes the rest. A file with rows
//! of frames that were dropped is removed before the next append: a later frame at the same place could make such a row look right.

use std::sync::atomic::Ordering;

use super::error::LogError;
use super::files::{LOG_DIR, SCAN_WINDOW_BYTES, places_name};
use super::frames::Frames;
use super::place_run::PlaceRun;
use super::places_state::PlacesWriter;
use super::{LeaderState, Log};
use crate::codec::{Entered, FrameCheck, PLACE_BYTES, PlaceRow, PlacesOf, WrittenPlace};
use crate::failpoints::failpoint;
use crate::storage::{Access, write_all};

impl Log {
    /// The rows' segment, if its header is sound.
    pub(super) fn places_of(&self, number: u32) -> Result<Option<PlacesOf>, LogError> {
        let header = self.segments.header(number)?;
        Ok(header.map(|header| PlacesOf::new(self.store(), number, header.first_seq)))
    }

    /// Writes the rows of frames that were written from `start` on. Returns the count for the page. Call under the write lock.
    pub(super) fn enter_places(
        &self,
        writer: &mut LeaderState,
        (start, end): (&WrittenPlace, &WrittenPlace),
        of: PlacesOf,
        rows: &[PlaceRow],
    ) -> Option<Entered> {
        let before = writer.page.entered;
        let kept = before.filter(|before| before.end.segment() == of.segment);
        let is_broken = self.places_broken.swap(false, Ordering::Relaxed);
        let counted = kept.map_or(0, |kept| kept.rows);
        // The rows are a cache, here and below.
        let Ok(rows_max) = self.open_places(writer, of.segment, counted) else { return kept };
        let is_known =
            |known: &Entered| known.end == start.position && u64::from(known.rows) <= rows_max && !is_broken;
        let known = match before.filter(is_known) {
            Some(known) => known,
            // As above.
            None => match self.fill_places(writer, start) {
                Ok(Some(known)) => known,
                Ok(None) | Err(_) => return kept,
            },
        };
        let numbered = (known.rows..).zip(rows);
        let bytes: Vec<u8> = numbered.flat_map(|(number, row)| row.encode(of, number)).collect();
        if self.write_rows(writer, &bytes, known.rows).is_err() {
            writer.places = None;
            return Some(known);
        }
        let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        Some(Entered { end: end.position, rows: known.rows.saturating_add(count) })
    }

    /// Opens the file of places of a segment for writing. Returns how many rows it may have at most. If rows stand behind the counted ones, a power cut
    /// took their frames, and the file goes.
    fn open_places(&self, writer: &mut LeaderState, number: u32, counted: u32) -> Result<u64, LogError> {
        let name = places_name(number);
        let fail = |action| {
            let path = self.storage.path(&name);
            move |error| LogError::io(action, path, error)
        };
        // Another process may have removed the file, in a repair.
        if let Some(open) = writer.places.take().filter(|open| open.number == number)
            && open.file.is_linked().map_err(fail("inspect"))?
        {
            writer.places = Some(open);
            return Ok(u64::MAX);
        }
        let open = || self.storage.open(&name, Access::Create).map_err(fail("open"));
        let mut file = open()?;
        let mut length = file.len().map_err(fail("inspect"))?;
        if length > u64::from(counted).saturating_mul(PLACE_BYTES as u64) {
            self.drop_places(number)?;
            file = open()?;
            length = 0;
        }
        writer.places = Some(PlacesWriter { number, file });
        Ok(length / PLACE_BYTES as u64)
    }

    fn write_rows(&self, writer: &LeaderState, bytes: &[u8], first: u32) -> Result<(), LogError> {
        let Some(open) = &writer.places else { return Ok(()) };
        let fail = |error| LogError::io("write", self.storage.path(&places_name(open.number)), error);
        let offset = u64::from(first).saturating_mul(PLACE_BYTES as u64);
        let offset = if failpoint!(PlacesAppended) { open.file.len().map_err(fail)? } else { offset };
        write_all(&*open.file, bytes, offset, &mut 0).map_err(fail)
    }

    /// Finds where the rows end, and writes those that are missing up to `start`. `None`: frames are damaged.
    fn fill_places(&self, writer: &LeaderState, start: &WrittenPlace) -> Result<Option<Entered>, LogError> {
        let number = start.position.segment();
        let Some(of) = self.places_of(number)? else { return Ok(None) };
        let mut run = PlaceRun::new(of);
        if let Some(entered) = writer.page.entered {
            self.read_rows(&mut run, entered, start.position)?;
        }
        let sound = run.row_count();
        if run.end() < start.position {
            let from = run.end();
            for frame in Frames::new(self, from, *start, FrameCheck::Checksum, SCAN_WINDOW_BYTES) {
                match frame {
                    Ok(frame) => run.push(&frame),
                    Err(LogError::Corrupt(_)) => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
        }
        if run.end() != start.position {
            return Ok(None);
        }
        let bytes = run.encode(sound);
        if !bytes.is_empty() {
            self.write_rows(writer, &bytes, u32::try_from(sound).unwrap_or(u32::MAX))?;
        }
        Ok(Some(Entered { end: start.position, rows: u32::try_from(run.row_count()).unwrap_or(u32::MAX) }))
    }

    /// Removes the file of places of a segment, durably. Call under the write lock.
    pub(super) fn drop_places(&self, number: u32) -> Result<(), LogError> {
        if failpoint!(PlacesUnrepaired) {
            return Ok(());
        }
        let name = places_name(number);
        match self.storage.remove(&name) {
            Ok(()) => self.places_broken.store(true, Ordering::Relaxed),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(LogError::io("remove", self.storage.path(&name), error)),
        }
        self.storage
            .sync_dir(LOG_DIR)
            .map_err(|error| LogError::io("sync", self.storage.path(LOG_DIR), error))
    }

    /// Makes files of places of complete segments that are missing, oldest first, at most `count` of them.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn complete_all_places(&self, count: usize) -> Result<(), LogError> {
        for number in self.unsealed()?.into_iter().take(count) {
            let Some(next) = self.segments.header(number.saturating_add(1))? else { continue };
            let is_missing = self.segments.places_file(number, &next)?.is_none();
            if is_missing && self.may_write_places() && self.write_places(number)? {
                // Rows that are held in memory are needed no more.
                self.segments.forget_places(number);
            }
        }
        Ok(())
    }
}
