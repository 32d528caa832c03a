//! Files of places compared with the frames, as `verify` passes them.
//!
//! Rows that are not sound are not believed, and are made anew. A row that is sound and says something else than its frame would hide
//! events; so would any difference in the file of a complete segment whose record is right.

use super::Log;
use super::contents::Contents;
use super::error::{Corruption, FrameFault, LogError};
use super::files::{corruption, places_name, segment_begin};
use crate::codec::{DamagedPart, Entered, Frame, PLACE_BYTES, PlaceRow};
use crate::storage::{Access, read_up_to};

/// The segment that the walk is in, and what was found so far.
pub(super) struct PlacesCheck<'a> {
    log: &'a Log,
    entered: Option<Entered>,
    segment: u32,
    /// `None`: a frame of the segment is damaged.
    contents: Option<Contents>,
    pub(super) faults: Vec<Corruption>,
}

impl<'a> PlacesCheck<'a> {
    pub(super) fn new(log: &'a Log, entered: Option<Entered>) -> Self {
        Self { log, entered, segment: 0, contents: None, faults: Vec::new() }
    }

    /// Takes in a sound frame.
    pub(super) fn pass(&mut self, frame: &Frame) -> Result<(), LogError> {
        let segment = frame.position().segment();
        if segment != self.segment {
            self.end()?;
            let header = self.log.segments.header(segment)?;
            (self.segment, self.contents) = (segment, header.map(Contents::begin));
        }
        // Without the key of an encrypted store it is not known which event of a frame is a stream's last.
        let follows = |contents: &Contents| contents.end.position == frame.position();
        self.contents = self.contents.take().filter(|contents| follows(contents) && !frame.is_closed());
        if let Some(contents) = &mut self.contents {
            contents.add(frame);
        }
        Ok(())
    }

    /// Compares the segment that the walk leaves.
    pub(super) fn end(&mut self) -> Result<(), LogError> {
        let (number, segments) = (self.segment, &self.log.segments);
        let Some(contents) = self.contents.take() else { return Ok(()) };
        let next = segments.header(number.saturating_add(1))?;
        let found = match next.filter(|next| next.previous_end == contents.end.position) {
            Some(next) => {
                let Some(file) = segments.places_file(number, &next)? else { return Ok(()) };
                let expected = contents.places();
                let found = file.read(0, 1, (0, u32::try_from(expected.len()).unwrap_or(u32::MAX)))?;
                let differs =
                    |(index, (found, expected)): (usize, (&u8, &u8))| (found != expected).then_some(index);
                let first = found.iter().zip(&expected).enumerate().find_map(differs);
                first.or((found.len() != expected.len()).then_some(found.len()))
            }
            None => self.wrong_row(&contents)?,
        };
        if let Some(offset) = found {
            let mut fault = corruption(segments, segment_begin(number), FrameFault::Nothing);
            (fault.part, fault.path) = (DamagedPart::Places, self.log.storage.path(&places_name(number)));
            fault.offset = offset as u64;
            "places as the frames say; without the file they are made anew".clone_into(&mut fault.expected);
            "others".clone_into(&mut fault.found);
            self.faults.push(fault);
        }
        Ok(())
    }

    /// The offset of the first sound row of the last segment that differs from its frame.
    fn wrong_row(&self, contents: &Contents) -> Result<Option<usize>, LogError> {
        let Some(entered) = self.entered.filter(|entered| entered.end.segment() == self.segment) else {
            return Ok(None);
        };
        let name = places_name(self.segment);
        // A file that is not there says nothing wrong.
        let Ok(file) = self.log.storage.open(&name, Access::Read) else { return Ok(None) };
        let expected = contents.rows();
        let count = expected.len().min((entered.rows as usize).saturating_mul(PLACE_BYTES));
        let mut found = vec![0; count];
        let read = read_up_to(&*file, &mut found, 0);
        found.truncate(read.map_err(|error| LogError::io("read", self.log.storage.path(&name), error))?);
        let rows = found.chunks(PLACE_BYTES).zip(expected.chunks(PLACE_BYTES)).zip(0..);
        let wrong = |((found, expected), number): ((&[u8], &[u8]), u32)| {
            let is_sound = PlaceRow::decode(contents.places_of(), number, found).is_some();
            (is_sound && found != expected).then_some(number as usize * PLACE_BYTES)
        };
        Ok(rows.into_iter().find_map(wrong))
    }
}
