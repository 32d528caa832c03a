//! The contents of a complete segment, found by walking it: what its file of places says, and where it is cut when it is sealed.

use std::collections::BTreeMap;

use super::Log;
use super::cursor::FrameCursor;
use super::error::{FrameFault, LogError};
use super::files::{SCAN_WINDOW_BYTES, Segments, after, continues, damaged, segment_start};
use super::place_run::PlaceRun;
use crate::codec::{
    CHUNK_BYTES, DamagedPart, Frame, FrameCheck, Invalid, ORDINAL_BYTES, PlacesOf, PlacesRecord,
    PlacesStream, SEGMENT_HEADER_BYTES, SegmentHeader, WrittenPlace, places_digest,
};
use crate::ids::StreamId;

/// The contents of a segment, found by walking it.
pub(crate) struct Contents {
    pub(super) header: SegmentHeader,
    pub(super) end: WrittenPlace,
    run: PlaceRun,
    /// By stream, the numbers of its rows.
    streams: BTreeMap<StreamId, Vec<u32>>,
    /// Where chunks may begin: at commits, and where a commit is longer than a chunk, within it.
    cuts: Vec<u64>,
}

/// Why a segment was not rewritten.
pub(crate) enum RewriteRefusal {
    Stopped,
    Error(LogError),
}

impl RewriteRefusal {
    pub(crate) fn into_error(self) -> Option<LogError> {
        match self {
            Self::Stopped => None,
            Self::Error(error) => Some(error),
        }
    }
}

impl From<LogError> for RewriteRefusal {
    fn from(error: LogError) -> Self {
        Self::Error(error)
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Contents {
    /// The contents of a segment of which no frame was passed yet.
    pub(super) fn begin(header: SegmentHeader) -> Self {
        let run = PlaceRun::new(PlacesOf::new(header.store, header.number, header.first_seq));
        Self { header, end: segment_start(&header), run, streams: BTreeMap::new(), cuts: Vec::new() }
    }

    /// The segment that rows belong to, and the rows as they are on disk.
    pub(super) const fn places_of(&self) -> PlacesOf {
        self.run.of()
    }

    pub(super) fn rows(&self) -> Vec<u8> {
        self.run.encode(0)
    }

    /// Walks a complete segment and checks it, bodies only with `bodies`. `None`: not complete, or without frames.
    pub(crate) fn read(
        segments: &Segments,
        number: u32,
        bodies: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, RewriteRefusal> {
        let (Some(header), Some(next)) =
            (segments.header(number)?, segments.header(number.saturating_add(1))?)
        else {
            return Ok(None);
        };
        let mut found = Self::begin(header);
        let end = next.previous_end;
        if end.segment() != number || end <= found.end.position {
            return Ok(None);
        }
        let mut cursor = FrameCursor::new(segments, SCAN_WINDOW_BYTES);
        while found.end.position < end {
            if stop() {
                return Err(RewriteRefusal::Stopped);
            }
            let position = found.end.position;
            let frame = cursor.frame(position, FrameCheck::Digest).and_then(|frame| {
                continues(&found.end, frame.header())
                    .map_err(|invalid| FrameFault::Invalid(invalid, None))?;
                Ok(frame)
            });
            let frame = frame.map_err(|fault| damaged(segments, position, fault))?;
            if bodies {
                let mut fault = None;
                cursor.check_bodies(&frame, |_, invalid| {
                    if invalid.part != DamagedPart::BodyZeroed {
                        fault.get_or_insert(invalid);
                    }
                })?;
                if let Some(invalid) = fault {
                    return Err(damaged(segments, position, FrameFault::Invalid(invalid, None)).into());
                }
            }
            found.add(&frame);
        }
        if found.end.position != end || found.end.link != next.previous {
            let invalid = Invalid {
                part: DamagedPart::Link,
                offset: 0,
                expected: format!("link {} at the end of segment {number}", next.previous),
                found: found.end.link.to_string(),
            };
            return Err(damaged(segments, end, FrameFault::Invalid(invalid, None)).into());
        }
        Ok(Some(found))
    }

    /// Adds the next frame.
    pub(super) fn add(&mut self, frame: &Frame) {
        let header = frame.header();
        let first = narrow(self.run.row_count() as u64);
        for (number, stream) in (first..).zip(frame.streams()) {
            self.streams.entry(stream).or_default().push(number);
        }
        self.run.push(frame);
        self.cut(header.position.offset(), header.bodies_start(), header.frame_bytes());
        self.end = after(header);
    }

    /// Notes where chunks may begin in a frame: a frame that is longer than a chunk is cut before its bodies, and every so many bytes.
    fn cut(&mut self, start: u64, bodies_start: u64, frame_bytes: u64) {
        self.cuts.push(start);
        if frame_bytes <= CHUNK_BYTES as u64 {
            return;
        }
        let bodies = start.saturating_add(bodies_start);
        for (from, to) in [(start, bodies), (bodies, start.saturating_add(frame_bytes))] {
            let inside = (from..to).step_by(CHUNK_BYTES).filter(|cut| *cut > start);
            self.cuts.extend(inside);
        }
    }

    /// Where chunks end: as many pieces as fit are one chunk. The header is one alone.
    pub(super) fn chunk_ends(&self) -> Vec<u64> {
        let end = self.end.position.offset();
        let mut ends = Vec::new();
        let (mut begin, mut last) = (0, SEGMENT_HEADER_BYTES as u64);
        for cut in self.cuts.iter().copied().chain([end]) {
            // They rise.
            if begin == 0 || cut.saturating_sub(begin) > CHUNK_BYTES as u64 {
                if last > begin {
                    ends.push(last);
                }
                begin = last;
            }
            last = cut;
        }
        if last > begin {
            ends.push(last);
        }
        ends
    }

    /// The file of places of the segment.
    pub(crate) fn places(&self) -> Vec<u8> {
        let of = self.run.of();
        let mut out = self.run.encode(0);
        let mut ordinals = Vec::new();
        for (number, (stream, rows)) in (0..).zip(&self.streams) {
            let bytes: Vec<u8> = rows.iter().flat_map(|row| row.to_le_bytes()).collect();
            let row = PlacesStream {
                stream: *stream,
                first: narrow((ordinals.len() / ORDINAL_BYTES) as u64),
                count: narrow(rows.len() as u64),
                ordinals: crc32c::crc32c(&bytes),
            };
            out.extend_from_slice(&row.encode(of, number));
            ordinals.extend_from_slice(&bytes);
        }
        out.extend_from_slice(&ordinals);
        let record = PlacesRecord {
            segment: self.header.number,
            store: self.header.store,
            end: self.end.position,
            link: self.end.link,
            rows: narrow(self.run.row_count() as u64),
            streams: narrow(self.streams.len() as u64),
            digest: places_digest(&out),
        };
        out.extend_from_slice(&record.encode());
        out
    }
}

impl Log {
    /// Numbers of the segments that are complete and not sealed, rising.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn unsealed(&self) -> Result<Vec<u32>, LogError> {
        // Those of an encrypted store are never packed.
        if self.is_encrypted() {
            return Ok(Vec::new());
        }
        let last = self.head().position.segment();
        let mut found = Vec::new();
        for number in self.segments.numbers()?.into_iter().filter(|number| *number < last) {
            if self.segments.get(number)?.is_some_and(|file| file.sealed.is_none()) {
                found.push(number);
            }
        }
        Ok(found)
    }
}
