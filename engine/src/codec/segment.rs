//! The header of a segment file: which part of the log it holds and what came before it.

use super::fields::{Fields, Put, is_zero, put_trailing_checksum, trailing_checksum};
use super::sealed::{RECORD_BYTES, RECORD_OFFSET, RecordKind, SealedLayout, in_header};
use super::{CHECKSUM_CRC32C, DIGEST_BLAKE3, FORMAT_VERSION, Invalid, Part, SEGMENT_HEADER_BYTES};
use crate::ids::{Link, Micros, Position, Seq, StoreId};

const MAGIC: [u8; 8] = *b"acpdbseg";
/// Flag: what the segment before holds after its end was given up after a failed sync.
const ABANDONED: u8 = 1;
/// Flag: the segment is sealed; the record says how.
const SEALED: u8 = 2;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The store it belongs to.
    pub store: StoreId,
    /// Its number, from 1.
    pub number: u32,
    /// The seq its first event has.
    pub first_seq: Seq,
    /// Where the segment before ends; zero for the first.
    pub previous_end: Position,
    /// Time of the last frame before it.
    pub previous_time: Micros,
    /// Link of the last frame before it; zero for the first.
    pub previous: Link,
    /// The segment before may hold unconfirmed bytes after its end.
    pub abandoned: bool,
    /// How the file is laid out, if the segment is sealed.
    pub sealed: Option<SealedLayout>,
    /// The features that reading and writing the store need, as of this segment.
    pub features: FeatureBits,
    /// How often bodies were erased in this segment.
    pub generation: u32,
    /// The last record of that is torn: the erasure was interrupted and is to be taken up again.
    pub generation_torn: bool,
}

/// Features as bits; none has a meaning yet. The names are in the store file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeatureBits {
    /// A program that does not know all of these must not read.
    pub needs: u64,
    /// A program that does not know all of these must not write.
    pub writes: u64,
}

/// Where the two records of the generation are: outside of what the header's checksum covers, since they change in place.
const GENERATION_OFFSET: usize = 3968;
/// Bytes of both.
const GENERATION_BYTES: usize = 2 * GENERATION_RECORD_BYTES;
/// A generation, and a checksum over the segment's number and it.
const GENERATION_RECORD_BYTES: usize = 8;

/// Where the record of a generation goes. Odd and even ones take turns, so that one that is torn leaves the other.
pub(crate) const fn generation_offset(generation: u32) -> u64 {
    let turn = generation as usize % 2;
    (GENERATION_OFFSET + turn * GENERATION_RECORD_BYTES) as u64
}

/// The newest generation in both records, and whether one of them is no record.
fn generations(number: u32, bytes: &[u8; GENERATION_BYTES]) -> (u32, bool) {
    let (mut newest, mut torn) = (0, false);
    for (turn, record) in (0_u32..).zip(bytes.chunks_exact(GENERATION_RECORD_BYTES)) {
        let generation = Fields(record).u32();
        if is_zero(record) {
            continue;
        }
        if generation % 2 == turn && record == generation_record(number, generation) {
            newest = newest.max(generation);
        } else {
            torn = true;
        }
    }
    (newest, torn)
}

/// The record of a generation as it is on disk.
pub(crate) fn generation_record(number: u32, generation: u32) -> [u8; GENERATION_RECORD_BYTES] {
    let mut bytes = [0; GENERATION_RECORD_BYTES];
    if generation > 0 {
        let mut message = [0; 8];
        Put(&mut message).u32(number).u32(generation);
        Put(&mut bytes).u32(generation).u32(crc32c::crc32c(&message));
    }
    bytes
}

/// The header without its generation, of which its checksum is made.
fn without_generation(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> [u8; SEGMENT_HEADER_BYTES] {
    let mut bytes = *bytes;
    if let Some(record) = bytes.get_mut(GENERATION_OFFSET..).and_then(|rest| rest.get_mut(..GENERATION_BYTES))
    {
        record.fill(0);
    }
    bytes
}

impl SegmentHeader {
    /// Where its first frame is.
    pub fn start(number: u32) -> Position {
        // The length of a header is a multiple of 16, so there is such a position.
        Position::new(number, SEGMENT_HEADER_BYTES as u64).unwrap_or_default()
    }

    /// The header as it is on disk.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; SEGMENT_HEADER_BYTES];
        Put(&mut bytes)
            .bytes(&MAGIC)
            .u32(FORMAT_VERSION)
            .u32(self.number)
            .bytes(self.store.as_bytes())
            .u64(self.first_seq.0)
            .u64(self.previous_end.0)
            .i64(self.previous_time.0)
            .bytes(self.previous.as_bytes())
            .u8(DIGEST_BLAKE3)
            .u8(CHECKSUM_CRC32C)
            .u8((u8::from(self.abandoned) * ABANDONED) | (u8::from(self.sealed.is_some()) * SEALED))
            .skip(5)
            .u64(self.features.needs)
            .u64(self.features.writes);
        if let (Some(sealed), Some(record)) = (&self.sealed, bytes.get_mut(RECORD_OFFSET..)) {
            Put(record).bytes(&sealed.encode(RecordKind::Sealed));
        }
        put_trailing_checksum(&mut bytes);
        let at = usize::try_from(generation_offset(self.generation)).unwrap_or(GENERATION_OFFSET);
        if let Some(record) = bytes.get_mut(at..) {
            Put(record).bytes(&generation_record(self.number, self.generation));
        }
        bytes
    }

    /// Reads and checks a header.
    ///
    /// # Errors
    /// [`Part::SegmentHeader`] for bytes that are no header, [`Part::Newer`] for a sound one that says what this program does not
    /// know.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let fail = |offset, expected: &str, found: String| {
            Err(Invalid::new(Part::SegmentHeader, offset, expected, found))
        };
        let Some(bytes) = bytes.first_chunk::<SEGMENT_HEADER_BYTES>() else {
            return fail(0, "4096 bytes", format!("{} bytes", bytes.len()));
        };
        let mut fields = Fields(bytes);
        if fields.array() != MAGIC {
            return fail(0, "the segment magic", "other bytes".to_owned());
        }
        let (computed, stored) = trailing_checksum(&without_generation(bytes));
        if computed != stored {
            return fail(4092, "a matching checksum", format!("{stored:08x}, not {computed:08x}"));
        }
        let version = fields.u32();
        let newer =
            |offset, expected: &str, found: String| Err(Invalid::new(Part::Newer, offset, expected, found));
        if version != FORMAT_VERSION {
            return newer(8, "format version 1", format!("version {version}"));
        }
        let number = fields.u32();
        let store = StoreId(fields.array());
        let (first_seq, previous_end) = (Seq(fields.u64()), Position(fields.u64()));
        let (previous_time, previous) = (Micros(fields.i64()), Link(fields.array()));
        let algorithms = (fields.u8(), fields.u8());
        let flags = fields.u8();
        let is_sealed = flags & SEALED != 0;
        let mut rest = fields.zeros(5);
        let features = FeatureBits { needs: fields.u64(), writes: fields.u64() };
        rest &= fields.zeros(RECORD_OFFSET - 112);
        if is_sealed {
            fields.skip(RECORD_BYTES);
        } else {
            rest &= fields.zeros(RECORD_BYTES);
        }
        let record: [u8; GENERATION_BYTES] = fields.array();
        rest &= fields.zeros(SEGMENT_HEADER_BYTES - GENERATION_OFFSET - GENERATION_BYTES - 4);
        let (generation, generation_torn) = generations(number, &record);
        if features.needs != 0 {
            return newer(96, "features that are known", format!("features {:#x}", features.needs));
        }
        if algorithms != (DIGEST_BLAKE3, CHECKSUM_CRC32C) || flags > ABANDONED | SEALED || !rest {
            return newer(88, "the algorithms and flags of format 1, and zeros", "others".to_owned());
        }
        if number == 0 || first_seq == Seq::ZERO || previous_end >= Self::start(number) {
            return fail(12, "numbers from 1", format!("segment {number}, {first_seq}"));
        }
        let abandoned = flags & ABANDONED != 0;
        let sealed =
            if is_sealed { Some(in_header(bytes, store, number, Self::start(number))?) } else { None };
        Ok(Self {
            store,
            number,
            first_seq,
            previous_end,
            previous_time,
            previous,
            abandoned,
            sealed,
            features,
            generation,
            generation_torn,
        })
    }
}
