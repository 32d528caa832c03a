//! The contents of a complete segment, found by walking it: what its map says, and where it is cut when it is sealed.

use std::collections::BTreeMap;

use super::Log;
use super::cursor::Cursor;
use super::error::{Fault, LogError};
use super::files::{SCAN_WINDOW_BYTES, Segments, after, continues, damaged, grain_of, segment_start};
use crate::codec::{
    CHUNK_BYTES, FRAME_ROW_BYTES, Frame, FrameCheck, FrameRow, Invalid, MapRecord, Part,
    SEGMENT_HEADER_BYTES, STREAM_ROW_BYTES, SegmentHeader, StreamRow, Written, encode_table,
};
use crate::ids::StreamId;

/// The contents of a segment, found by walking it.
pub(crate) struct Contents {
    pub(super) header: SegmentHeader,
    pub(super) end: Written,
    frames: Vec<FrameRow>,
    streams: BTreeMap<StreamId, StreamContents>,
    /// Where chunks may begin: at commits, and where a commit is longer than a chunk, within it.
    cuts: Vec<u64>,
}

#[derive(Default)]
struct StreamContents {
    first: u32,
    last: u32,
    event_count: u32,
    frames: Vec<u32>,
}

/// Why a segment was not rewritten.
pub(crate) enum Refused {
    Stopped,
    Error(LogError),
}

impl Refused {
    pub(crate) fn into_error(self) -> Option<LogError> {
        match self {
            Self::Stopped => None,
            Self::Error(error) => Some(error),
        }
    }
}

impl From<LogError> for Refused {
    fn from(error: LogError) -> Self {
        Self::Error(error)
    }
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Contents {
    /// Walks a complete segment and checks it, bodies only with `bodies`. `None`: not complete, or without frames.
    pub(crate) fn read(
        segments: &Segments,
        number: u32,
        bodies: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, Refused> {
        let (Some(header), Some(next)) =
            (segments.header(number)?, segments.header(number.saturating_add(1))?)
        else {
            return Ok(None);
        };
        let (start, end) = (segment_start(&header), next.previous_end);
        if end.segment() != number || end <= start.position {
            return Ok(None);
        }
        let mut found =
            Self { header, end: start, frames: Vec::new(), streams: BTreeMap::new(), cuts: Vec::new() };
        let mut cursor = Cursor::new(segments, SCAN_WINDOW_BYTES);
        while found.end.position < end {
            if stop() {
                return Err(Refused::Stopped);
            }
            let position = found.end.position;
            let frame = cursor.frame(position, FrameCheck::Digest).and_then(|frame| {
                continues(&found.end, frame.header()).map_err(|invalid| Fault::Invalid(invalid, None))?;
                Ok(frame)
            });
            let frame = frame.map_err(|fault| damaged(segments, position, fault))?;
            if bodies {
                let mut fault = None;
                cursor.check_bodies(&frame, |_, invalid| {
                    if invalid.part != Part::BodyZeroed {
                        fault.get_or_insert(invalid);
                    }
                })?;
                if let Some(invalid) = fault {
                    return Err(damaged(segments, position, Fault::Invalid(invalid, None)).into());
                }
            }
            found.add(&frame);
        }
        if found.end.position != end || found.end.link != next.previous {
            let invalid = Invalid {
                part: Part::Link,
                offset: 0,
                expected: format!("link {} at the end of segment {number}", next.previous),
                found: found.end.link.to_string(),
            };
            return Err(damaged(segments, end, Fault::Invalid(invalid, None)).into());
        }
        Ok(Some(found))
    }

    fn add(&mut self, frame: &Frame) {
        let header = frame.header();
        let ordinal = narrow(self.frames.len() as u64);
        let first = header.first_seq.since(self.header.first_seq);
        self.frames.push(FrameRow { grain: grain_of(header.position), seq: narrow(first) });
        self.cut(header.position.offset(), header.bodies_start(), header.frame_bytes());
        for event in frame.events() {
            let delta = narrow(event.seq.since(self.header.first_seq));
            let known = self.streams.entry(event.envelope.stream).or_default();
            if known.event_count == 0 {
                known.first = delta;
            }
            known.last = delta;
            known.event_count = known.event_count.saturating_add(1);
            if known.frames.last() != Some(&ordinal) {
                known.frames.push(ordinal);
            }
        }
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

    /// The map of the segment.
    pub(crate) fn map(&self) -> Vec<u8> {
        let postings: usize = self.streams.values().map(|stream| stream.frames.len()).sum();
        let record = MapRecord {
            number: self.header.number,
            store: self.header.store,
            end: self.end.position,
            frame_count: narrow(self.frames.len() as u64),
            stream_count: narrow(self.streams.len() as u64),
            posting_count: narrow(postings as u64),
            first_seq: self.header.first_seq,
            last_seq: self.end.seq,
            link: self.end.link,
        };
        let mut out = record.encode().to_vec();
        let mut rows = Vec::with_capacity(self.frames.len().saturating_mul(FRAME_ROW_BYTES));
        self.frames.iter().for_each(|row| row.encode(&mut rows));
        out.extend(encode_table(FRAME_ROW_BYTES, &rows));
        rows.clear();
        let mut postings = Vec::new();
        let mut posting = 0;
        for (stream, known) in &self.streams {
            let posting_count = narrow(known.frames.len() as u64);
            let row = StreamRow {
                stream: *stream,
                first: known.first,
                last: known.last,
                event_count: known.event_count,
                posting,
                posting_count,
            };
            row.encode(&mut rows);
            posting = posting.saturating_add(posting_count);
            known.frames.iter().for_each(|frame| postings.extend_from_slice(&frame.to_le_bytes()));
        }
        out.extend(encode_table(STREAM_ROW_BYTES, &rows));
        postings.resize(postings.len().next_multiple_of(8), 0);
        out.extend(encode_table(8, &postings));
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
