//! The record at the start of a map, and the rows of its tables.
//!
//! ```text
//! record 128 | frames | streams | postings
//! ```
//!
//! A map says where frames and streams are in a complete segment. It is made of the segment, and may be deleted at any time.

use super::fields::{Fields, Put, put_trailing_checksum, trailing_checksum};
use super::table::TableShape;
use super::{Invalid, Part};
use crate::ids::{Link, Position, Seq, StoreId, StreamId};

/// Bytes of the record.
pub(crate) const RECORD_BYTES: usize = 128;

const MAP_MAGIC: [u8; 8] = *b"acpdbmp2";

/// Bytes of a row of the table of frames.
pub(crate) const FRAME_ROW_BYTES: usize = 8;
/// Bytes of a row of the table of streams.
pub(crate) const STREAM_ROW_BYTES: usize = 36;
/// Bytes of a posting: the ordinal of a frame in the table of frames.
pub(crate) const POSTING_BYTES: usize = 4;
/// Bytes of a row of postings, which holds two postings.
const POSTING_ROW_BYTES: usize = 8;

/// The record: sizes of all tables, and the store, segment and seqs that they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapRecord {
    pub(crate) number: u32,
    pub(crate) store: StoreId,
    /// The end of the segment.
    pub(crate) end: Position,
    pub(crate) frame_count: u32,
    pub(crate) stream_count: u32,
    pub(crate) posting_count: u32,
    pub(crate) first_seq: Seq,
    pub(crate) last_seq: Seq,
    /// Link of the segment's last frame.
    pub(crate) link: Link,
}

impl MapRecord {
    pub(crate) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        Put(&mut bytes)
            .bytes(&MAP_MAGIC)
            .u32(self.number)
            .u32(self.frame_count)
            .bytes(self.store.as_bytes())
            .u64(self.end.0)
            .u32(self.stream_count)
            .u32(self.posting_count)
            .u64(self.first_seq.0)
            .u64(self.last_seq.0)
            .bytes(self.link.as_bytes());
        put_trailing_checksum(&mut bytes);
        bytes
    }

    /// Reads and checks a record.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let fail =
            |offset, expected: &str, found: String| Err(Invalid::new(Part::Packed, offset, expected, found));
        let Some(bytes) = bytes.first_chunk::<RECORD_BYTES>() else {
            return fail(0, "128 bytes", format!("{} bytes", bytes.len()));
        };
        let (computed, stored) = trailing_checksum(bytes);
        if computed != stored {
            return fail(124, "a matching checksum", format!("{stored:08x}, not {computed:08x}"));
        }
        let mut fields = Fields(bytes);
        if fields.array() != MAP_MAGIC {
            return fail(0, "the magic of a map", "other bytes".to_owned());
        }
        let (number, frame_count) = (fields.u32(), fields.u32());
        let record = Self {
            number,
            frame_count,
            store: StoreId(fields.array()),
            end: Position(fields.u64()),
            stream_count: fields.u32(),
            posting_count: fields.u32(),
            first_seq: Seq(fields.u64()),
            last_seq: Seq(fields.u64()),
            link: Link(fields.array()),
        };
        let sound = record.end.segment() == record.number
            && record.first_seq > Seq::ZERO
            && record.first_seq <= record.last_seq
            && fields.zeros(28);
        if sound { Ok(record) } else { fail(32, "seqs and an end of this segment", "others".to_owned()) }
    }

    pub(crate) fn frames(&self) -> TableShape {
        TableShape::new(FRAME_ROW_BYTES, self.frame_count)
    }

    pub(crate) fn streams(&self) -> TableShape {
        TableShape::new(STREAM_ROW_BYTES, self.stream_count)
    }

    /// The shape of the postings, two in a row.
    pub(crate) fn postings(&self) -> TableShape {
        TableShape::new(POSTING_ROW_BYTES, self.posting_count.div_ceil(2))
    }

    /// Length of all tables.
    pub(crate) fn tables_bytes(&self) -> u64 {
        let shapes = [self.frames(), self.streams(), self.postings()];
        shapes.iter().fold(0, |sum, shape| sum.saturating_add(shape.bytes()))
    }
}

/// One frame: its position and its first seq.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameRow {
    /// Offset of the frame's position, divided by 16.
    pub(crate) grain: u32,
    /// First seq, counted from the segment's first.
    pub(crate) seq: u32,
}

impl FrameRow {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        for field in [self.grain, self.seq] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes);
        Self { grain: fields.u32(), seq: fields.u32() }
    }
}

/// One stream: its events in this segment, and its postings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamRow {
    pub(crate) stream: StreamId,
    /// First and last seq, counted from the segment's first.
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) event_count: u32,
    /// The stream's postings: the ordinal of the first, and their count.
    pub(crate) posting: u32,
    pub(crate) posting_count: u32,
}

impl StreamRow {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.stream.as_bytes());
        for field in [self.first, self.last, self.event_count, self.posting, self.posting_count] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes);
        Self {
            stream: StreamId(fields.array()),
            first: fields.u32(),
            last: fields.u32(),
            event_count: fields.u32(),
            posting: fields.u32(),
            posting_count: fields.u32(),
        }
    }
}
