//! The log's own bytes, for a copy elsewhere that grows with the log.
//!
//! ```text
//! place + bytes of a segment -- headers, links, digests of contents --> the place behind them
//! ```
//!
//! A piece is whole frames of one segment. The piece that begins a segment has the segment's header in front. Who sends a piece
//! and who receives it check it in the same way: [`follow`]. Bodies are not looked at; they may be erased between two pieces.

use super::cursor::FrameCursor;
use super::error::{Corruption, FrameFault, LogError};
use super::files::{LOG_DIR, SCAN_WINDOW_BYTES, after, continues, damaged, segment_name, segment_start};
use super::recovery_scan::strict;
use super::{Head, Log};
use crate::codec::{
    DamagedPart, FRAME_HEADER_BYTES, FrameHeader, Invalid, SEGMENT_HEADER_BYTES, SegmentHeader,
};
use crate::ids::{Position, StoreId};
use crate::storage::{Access, Storage, StoredFile, bytes_between, sync, write_all};

/// How often a complete segment is read again because bodies of it were erased meanwhile.
const READ_COUNT_MAX: u32 = 4;

/// Whole frames of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPiece {
    /// The place that it continues.
    pub before: Head,
    /// The place behind it.
    pub behind: Head,
    /// The bytes as they lie in the segment.
    pub bytes: Vec<u8>,
}

/// A complete segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Its number.
    pub number: u32,
    /// How often bodies of it were erased.
    pub generation: u32,
    /// Whether its file is sealed.
    pub is_sealed: bool,
    /// Where it ends.
    pub end: Position,
}

/// The offset in its segment at which bytes begin that continue `before` and end in `segment`.
pub fn piece_offset(before: &Head, segment: u32) -> u64 {
    if before.position.segment() == segment { before.position.offset() } else { 0 }
}

/// The place behind bytes of `segment` that continue `before`. Pure.
///
/// # Errors
/// The first thing that is not as it must be: a header, a link, the digest of a content, a frame that is cut.
pub fn follow(store: StoreId, before: &Head, segment: u32, bytes: &[u8]) -> Result<Head, Invalid> {
    follow_while(store, before, segment, bytes, &|_| true).map(|(place, _)| place)
}

/// [`follow`], up to the first frame behind whose end `keeps` does not go. Returns the place before it, and the bytes up to there.
fn follow_while(
    store: StoreId,
    before: &Head,
    segment: u32,
    bytes: &[u8],
    keeps: &dyn Fn(&Head) -> bool,
) -> Result<(Head, usize), Invalid> {
    let (mut place, mut at) = (*before, 0_usize);
    if segment != before.position.segment() {
        let header = SegmentHeader::decode(bytes)?;
        check_segment(store, before, segment, &header)?;
        (place, at) = (segment_start(&header), SEGMENT_HEADER_BYTES);
    }
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let offset =
            |invalid: Invalid| Invalid { offset: invalid.offset.saturating_add(at as u64), ..invalid };
        let header = FrameHeader::decode(rest, store).map_err(offset)?;
        if header.position != place.position {
            let (expected, found) =
                (format!("a frame of {}", place.position), format!("one of {}", header.position));
            return Err(offset(Invalid { part: DamagedPart::FrameMisplaced, offset: 40, expected, found }));
        }
        continues(&place, &header).map_err(offset)?;
        let content = bytes_between(0, header.bodies_start());
        let whole = bytes_between(0, header.frame_bytes());
        let Some(content) = rest.get(FRAME_HEADER_BYTES..content).filter(|_| whole <= rest.len()) else {
            let found = format!("{} bytes", rest.len());
            return Err(offset(Invalid::new(
                DamagedPart::FrameHeader,
                0,
                format!("a frame of {whole} bytes"),
                found,
            )));
        };
        if blake3::hash(content).as_bytes() != header.content_digest.as_bytes() {
            let text = "the content of its digest";
            return Err(offset(Invalid::new(DamagedPart::Spine, FRAME_HEADER_BYTES, text, "another")));
        }
        let behind = after(&header);
        if !keeps(&behind) {
            break;
        }
        place = behind;
        at = at.saturating_add(whole);
    }
    Ok((place, at))
}

fn check_segment(store: StoreId, before: &Head, segment: u32, header: &SegmentHeader) -> Result<(), Invalid> {
    let is_first = segment == 1 && before.position == Position::default();
    let follows = segment == before.position.segment().saturating_add(1)
        && (header.store, header.number) == (store, segment)
        && header.previous_end == before.position
        && header.first_seq == before.seq.next()
        && header.previous == before.link
        && (is_first || header.previous_time == before.time);
    if follows {
        return Ok(());
    }
    let expected = format!("segment {segment} of store {store}, from seq {} on", before.seq.next());
    let found =
        format!("segment {} of store {}, from seq {} on", header.number, header.store, header.first_seq);
    Err(Invalid { part: DamagedPart::SegmentHeader, offset: 12, expected, found })
}

impl Log {
    /// The next frames from `before` on, within one segment and not behind `until`: at most `bytes_max` bytes, or one longer
    /// frame. `None`: there are none. The default place is the beginning of the log.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no sound frame of the log continues `before`; [`LogError::Io`].
    pub fn piece(&self, before: Head, until: Head, bytes_max: usize) -> Result<Option<LogPiece>, LogError> {
        let head = self.head();
        let until = if until.position > head.position { head } else { until };
        if before.position >= until.position {
            return Ok(None);
        }
        let mut cursor = FrameCursor::new(&self.segments, SCAN_WINDOW_BYTES);
        let mut place = before;
        let mut number = before.position.segment();
        if number < until.position.segment()
            && let Some(next) = self.segments.header(number.saturating_add(1))?
            && next.previous_end == before.position
        {
            number = next.number;
            let checked = check_segment(self.store(), &before, number, &next);
            checked.map_err(|invalid| {
                damaged(&self.segments, before.position, FrameFault::Invalid(invalid, None))
            })?;
            place = segment_start(&next);
        }
        let start = piece_offset(&before, number);
        let end = self.segment_end(number, until)?.unwrap_or(until.position);
        let first = place.position;
        while place.position < end {
            let header = strict(&mut cursor, &place, false);
            let header = header.map_err(|fault| damaged(&self.segments, place.position, fault))?;
            if bytes_between(start, header.end().offset()) > bytes_max && place.position > first {
                break;
            }
            place = after(&header);
        }
        let length = bytes_between(start, place.position.offset());
        let bytes = cursor.bytes(number, start, length)?.to_vec();
        let behind = follow(self.store(), &before, number, &bytes);
        let behind = behind.map_err(|invalid| {
            damaged(&self.segments, before.position, FrameFault::Invalid(invalid, None))
        })?;
        Ok(Some(LogPiece { before, behind, bytes }))
    }

    /// Where a segment before that of `until` ends.
    fn segment_end(&self, number: u32, until: Head) -> Result<Option<Position>, LogError> {
        if number >= until.position.segment() {
            return Ok(None);
        }
        let next = self.segments.header(number.saturating_add(1))?;
        Ok(next.map(|next| next.previous_end).filter(|end| end.segment() == number))
    }

    /// Segment `number`, if it is complete and its header and the next one are sound, as they are on disk now.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn segment_facts(&self, number: u32) -> Result<Option<SegmentFacts>, LogError> {
        let Some(end) = self.segment_end(number, self.head())? else { return Ok(None) };
        self.segments.forget_one(number);
        let Some(file) = self.segments.get(number)? else { return Ok(None) };
        // A damaged header says nothing of its segment.
        let Some(header) = file.header.as_ref().ok().filter(|header| !header.generation_torn) else {
            return Ok(None);
        };
        let (generation, is_sealed) = (header.generation, file.sealed.is_some());
        Ok(Some(SegmentFacts { number, generation, is_sealed, end }))
    }

    /// A complete segment, unpacked, of the generation that the bytes themselves name. `None`: it is not complete, or bodies of it
    /// are being erased just now.
    ///
    /// Cost: memory for the segment.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn segment_bytes(&self, number: u32) -> Result<Option<(SegmentFacts, Vec<u8>)>, LogError> {
        for _ in 0..READ_COUNT_MAX {
            let Some(facts) = self.segment_facts(number)? else { return Ok(None) };
            let mut cursor = FrameCursor::new(&self.segments, SCAN_WINDOW_BYTES);
            let bytes = cursor.bytes(number, 0, bytes_between(0, facts.end.offset()))?.to_vec();
            if self.segment_facts(number)? == Some(facts) {
                return Ok(Some((facts, bytes)));
            }
        }
        Ok(None)
    }
}

/// The segments of a store that is being made of pieces.
pub struct CopyTarget<'a> {
    storage: &'a dyn Storage,
    store: StoreId,
    place: Head,
    file: Option<(u32, Box<dyn StoredFile>)>,
}

impl<'a> CopyTarget<'a> {
    /// Makes the folders of a store, without a segment.
    pub(crate) fn new(storage: &'a dyn Storage, store: StoreId) -> Result<Self, LogError> {
        for directory in ["", LOG_DIR] {
            let made = storage.create_dir(directory);
            made.map_err(|error| LogError::io("create", storage.path(directory), error))?;
        }
        Ok(Self { storage, store, place: Head::default(), file: None })
    }

    /// The place behind all that was added.
    pub const fn place(&self) -> Head {
        self.place
    }

    /// Checks bytes of `segment` that continue the place, and writes them. Returns the place behind them.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] for bytes that do not continue the place: nothing was written. [`LogError::Io`], [`LogError::NoSpace`].
    pub fn add(&mut self, segment: u32, bytes: &[u8]) -> Result<Head, LogError> {
        self.add_while(segment, bytes, &|_| true).map(|(behind, _)| behind)
    }

    /// [`CopyTarget::add`], up to the first commit behind whose end `keeps` does not go. Says whether that was all.
    ///
    /// # Errors
    /// As [`CopyTarget::add`].
    pub fn add_while(
        &mut self,
        segment: u32,
        bytes: &[u8],
        keeps: &dyn Fn(&Head) -> bool,
    ) -> Result<(Head, bool), LogError> {
        let name = segment_name(segment);
        let offset = piece_offset(&self.place, segment);
        let followed = follow_while(self.store, &self.place, segment, bytes, keeps);
        let (behind, length) = followed.map_err(|invalid| {
            LogError::corrupt(Corruption {
                part: invalid.part,
                path: self.storage.path(&name),
                segment,
                offset: offset.saturating_add(invalid.offset),
                seq_first: Some(self.place.seq.next()),
                seq_last: None,
                expected: invalid.expected,
                found: invalid.found,
            })
        })?;
        let is_all = length == bytes.len();
        if !is_all && behind.seq == self.place.seq {
            return Ok((self.place, is_all));
        }
        let kept = bytes.get(..length).unwrap_or(bytes);
        let fail = |action| LogError::of(action, &*self.storage, &name);
        if self.file.as_ref().is_none_or(|(number, _)| *number != segment) {
            self.sync()?;
            let file = self.storage.open(&name, Access::CreateNew).map_err(fail("create"))?;
            self.file = Some((segment, file));
        }
        if let Some((_, file)) = &self.file {
            write_all(&**file, kept, offset, &mut 0).map_err(fail("write"))?;
        }
        self.place = behind;
        Ok((behind, is_all))
    }

    /// Makes the segments durable.
    pub(crate) fn sync(&self) -> Result<(), LogError> {
        let Some((number, file)) = &self.file else { return Ok(()) };
        let fail = |path| move |error| LogError::io("sync", path, error);
        sync(&**file).map_err(fail(self.storage.path(&segment_name(*number))))?;
        self.storage.sync_dir(LOG_DIR).map_err(fail(self.storage.path(LOG_DIR)))
    }
}
