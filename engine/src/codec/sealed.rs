//! The description of a sealed segment: the record in its header and at its end, and the rows of its tables.
//!
//! ```text
//! header 4096 | headers and spines | salts, 16 each | stored bodies, zeros up to 16 | tables | record again
//!  (record at 3840)                                                                   frames, blocks, streams, postings
//! ```
//!
//! The first part, headers and spines, has the same bytes as before the sealing. The tables map each position to its place in the sealed file. Salts
//! and stored bodies are in no digest but their own, so that a body can still be zeroed in place: each block's row holds a checksum of the stored
//! bytes, and the spine holds the digest of the body. A map of a complete segment that is not sealed is the same record (with another magic) and the
//! same tables without blocks.

use super::fields::{Fields, Put, put_trailing_checksum, trailing_checksum};
use super::table::TableShape;
use super::{
    BODY_CHUNK_BYTES_MAX, FRAME_HEADER_BYTES, Invalid, Part, SALT_BYTES, SEGMENT_HEADER_BYTES, align16,
};
use crate::ids::{Position, Seq, StoreId, StreamId};

/// Bytes of the record.
pub(crate) const RECORD_BYTES: usize = 128;
/// Offset of the record in a segment header.
pub(crate) const RECORD_OFFSET: usize = 3840;
/// The digest covers the record up to here.
pub(crate) const DIGESTED_RECORD_BYTES: usize = 92;
/// Separates the digest of a sealed segment from all other digests.
pub(crate) const SEAL_DOMAIN: &[u8; 16] = b"acpdb seal v1\0\0\0";

const SEALED_MAGIC: [u8; 8] = *b"acpdbsl1";
const MAP_MAGIC: [u8; 8] = *b"acpdbmp1";

/// Bytes of a row of the table of frames.
pub(crate) const FRAME_ROW_BYTES: usize = 12;
/// Bytes of a row of the table of blocks.
pub(crate) const BLOCK_ROW_BYTES: usize = 24;
/// Bytes of a row of the table of streams.
pub(crate) const STREAM_ROW_BYTES: usize = 36;
/// Bytes of a posting: the ordinal of a frame in the table of frames.
pub(crate) const POSTING_BYTES: usize = 4;
/// Bytes of a row of postings, which holds two postings.
const POSTING_ROW_BYTES: usize = 8;

/// Longest segment that is sealed: places in a sealed file are 32 bits.
pub(crate) const SEALED_BYTES_MAX: u64 = 1 << 31;

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// A sealed segment; `digest` covers header, spines and tables.
    Sealed,
    /// A map beside a segment; `digest` is the link of the segment's last frame.
    Map,
}

/// The record: sizes of all parts, and the store, segment and seqs that they belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedLayout {
    pub(crate) number: u32,
    pub(crate) store: StoreId,
    /// The end of the segment before it was sealed. For positions the segment still ends there.
    pub(crate) end: Position,
    pub(crate) spines_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) frame_count: u32,
    pub(crate) block_count: u32,
    pub(crate) stream_count: u32,
    pub(crate) posting_count: u32,
    pub(crate) first_seq: Seq,
    pub(crate) last_seq: Seq,
    pub(crate) digest: [u8; 32],
}

impl SealedLayout {
    pub(crate) fn encode(&self, kind: RecordKind) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        Put(&mut bytes)
            .bytes(match kind {
                RecordKind::Sealed => &SEALED_MAGIC,
                RecordKind::Map => &MAP_MAGIC,
            })
            .u32(self.number)
            .u32(1)
            .bytes(self.store.as_bytes())
            .u64(self.end.0)
            .u64(self.spines_bytes)
            .u64(self.stored_bytes)
            .u32(self.frame_count)
            .u32(self.block_count)
            .u32(self.stream_count)
            .u32(self.posting_count)
            .u64(self.first_seq.0)
            .u64(self.last_seq.0)
            .u32(0)
            .bytes(&self.digest);
        put_trailing_checksum(&mut bytes);
        bytes
    }

    /// Reads and checks a record.
    pub(crate) fn decode(bytes: &[u8], kind: RecordKind) -> Result<Self, Invalid> {
        let fail =
            |offset, expected: &str, found: String| Err(Invalid::new(Part::Footer, offset, expected, found));
        let Some(bytes) = bytes.first_chunk::<RECORD_BYTES>() else {
            return fail(0, "128 bytes", format!("{} bytes", bytes.len()));
        };
        let (computed, stored) = trailing_checksum(bytes);
        if computed != stored {
            return fail(124, "a matching checksum", format!("{stored:08x}, not {computed:08x}"));
        }
        let mut fields = Fields(bytes);
        let magic = match kind {
            RecordKind::Sealed => SEALED_MAGIC,
            RecordKind::Map => MAP_MAGIC,
        };
        if fields.array() != magic {
            return fail(0, "the magic of a record", "other bytes".to_owned());
        }
        let number = fields.u32();
        if fields.u32() != 1 {
            return fail(12, "tables of version 1", "another".to_owned());
        }
        let store = StoreId(fields.array());
        let layout = Self {
            number,
            store,
            end: Position(fields.u64()),
            spines_bytes: fields.u64(),
            stored_bytes: fields.u64(),
            frame_count: fields.u32(),
            block_count: fields.u32(),
            stream_count: fields.u32(),
            posting_count: fields.u32(),
            first_seq: Seq(fields.u64()),
            last_seq: Seq(fields.u64()),
            digest: {
                if !fields.zeros(4) {
                    return fail(88, "zeros", "other bytes".to_owned());
                }
                fields.array()
            },
        };
        let least = u64::from(layout.frame_count).saturating_mul(FRAME_HEADER_BYTES as u64);
        let sound = layout.end.segment() == layout.number
            && layout.spines_bytes <= SEALED_BYTES_MAX
            && layout.stored_bytes <= SEALED_BYTES_MAX
            && layout.spines_bytes >= least
            && layout.spines_bytes.is_multiple_of(16)
            && layout.first_seq > Seq::ZERO
            && layout.first_seq <= layout.last_seq
            && u64::from(layout.block_count).saturating_mul(SALT_BYTES as u64) <= SEALED_BYTES_MAX;
        if sound { Ok(layout) } else { fail(32, "sizes within the limits", "others".to_owned()) }
    }

    /// Offset at which headers and spines end and salts begin.
    pub(crate) fn salts_offset(&self) -> u64 {
        (SEGMENT_HEADER_BYTES as u64).saturating_add(self.spines_bytes)
    }

    /// Offset at which stored bodies begin.
    pub(crate) fn stored_offset(&self) -> u64 {
        self.salts_offset().saturating_add(u64::from(self.block_count).saturating_mul(SALT_BYTES as u64))
    }

    /// Offset at which the tables begin.
    pub(crate) fn tables_offset(&self) -> u64 {
        let end = self.stored_offset().saturating_add(self.stored_bytes);
        end.saturating_add(15) & !15
    }

    pub(crate) fn frames(&self) -> TableShape {
        TableShape::new(FRAME_ROW_BYTES, self.frame_count)
    }

    pub(crate) fn blocks(&self) -> TableShape {
        TableShape::new(BLOCK_ROW_BYTES, self.block_count)
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
        let shapes = [self.frames(), self.blocks(), self.streams(), self.postings()];
        shapes.iter().fold(0, |sum, shape| sum.saturating_add(shape.bytes()))
    }

    /// Length of the sealed file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.tables_offset().saturating_add(self.tables_bytes()).saturating_add(RECORD_BYTES as u64)
    }
}

/// One frame: its position, its first seq, and its place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameRow {
    /// Offset of the frame's position, divided by 16.
    pub(crate) grain: u32,
    /// First seq, counted from the segment's first.
    pub(crate) seq: u32,
    /// Offset in the sealed file, divided by 16; in a map the same as `grain`.
    pub(crate) place: u32,
}

impl FrameRow {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        for field in [self.grain, self.seq, self.place] {
            out.extend_from_slice(&field.to_le_bytes());
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes);
        Self { grain: fields.u32(), seq: fields.u32(), place: fields.u32() }
    }
}

/// One block: its position, and the stored bytes of its body. The block's salt has the same ordinal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockRow {
    /// Offset of the salt's position, divided by 16.
    pub(crate) grain: u32,
    /// Length of the body.
    pub(crate) bytes: u32,
    /// Offset of the block's stored bytes, counted from the first stored byte of all. Blocks of equal bodies share stored bytes.
    pub(crate) stored_at: u32,
    /// Count of stored bytes; 0: the body was erased before the segment was sealed.
    pub(crate) stored_bytes: u32,
    /// Checksum of the stored bytes.
    pub(crate) checksum: u32,
    /// The codec that packed the stored bytes.
    pub(crate) codec: u8,
}

impl BlockRow {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        for field in [self.grain, self.bytes, self.stored_at, self.stored_bytes, self.checksum] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&[self.codec, 0, 0, 0]);
    }

    /// The row, or `None` if a field is out of its range.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let row = Self {
            grain: fields.u32(),
            bytes: fields.u32(),
            stored_at: fields.u32(),
            stored_bytes: fields.u32(),
            checksum: fields.u32(),
            codec: fields.u8(),
        };
        let sound =
            fields.zeros(3) && row.bytes as usize <= BODY_CHUNK_BYTES_MAX && row.stored_bytes <= row.bytes;
        sound.then_some(row)
    }

    /// Length of the block before the sealing: salt, body, zeros.
    pub(crate) fn block_bytes(self) -> usize {
        SALT_BYTES.saturating_add(align16(self.bytes as usize))
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

/// The record in a segment's header, if the header says that the segment is sealed.
pub(super) fn in_header(
    header: &[u8],
    store: StoreId,
    number: u32,
    start: Position,
) -> Result<SealedLayout, Invalid> {
    let layout = SealedLayout::decode(header.get(RECORD_OFFSET..).unwrap_or(&[]), RecordKind::Sealed)?;
    if layout.store != store || layout.number != number || layout.end <= start {
        return Err(Invalid::new(Part::Footer, RECORD_OFFSET, "the record of this segment", "another"));
    }
    Ok(layout)
}
