//! Two headers: the header of a frame, with the link that binds it to all frames before it; and the header of a segment file, with
//! the part of the log that the file holds, and the end of the part before.

use super::fields::{FieldReader, Put, is_zero, put_trailing_checksum, trailing_checksum};
use super::{
    BODY_ROW_BYTES, CHECKSUM_CRC32C, CIPHER_NONE, CIPHER_XCHACHA, COMMIT_EVENT_COUNT_MAX, CONTENT_BYTES_MAX,
    DIGEST_BLAKE3, DamagedPart, ENVELOPE_BYTES, FORMAT_VERSION, FRAME_BYTES_MAX, FRAME_HEADER_BYTES,
    FRAME_STREAM_BYTES, Invalid, SEAL_BLOCK_BYTES, SEGMENT_HEADER_BYTES, SPINE_BYTES_MAX, TAG_BYTES,
};
use crate::ids::{Digest, Link, Micros, Position, Seq, StoreId};

/// First bytes of a frame.
pub const FRAME_MAGIC: [u8; 4] = *b"ACPF";
/// Version of the frame.
const FRAME_VERSION: u8 = 2;
/// BLAKE3 and CRC-32C.
const ALGORITHMS: u8 = 1;
/// Separates links from all other digests.
const LINK_DOMAIN: &[u8; 16] = b"acpdb link v2\0\0\0";
/// The link covers the header up to here: all but the checksum.
const LINKED_BYTES: usize = FRAME_HEADER_BYTES - 4;
/// Reserved bytes before the tag.
const RESERVED_BYTES: usize = 4;
/// The tag covers the header up to here: all before it.
const TAGGED_BYTES: usize = LINKED_BYTES - TAG_BYTES;

/// The header of a frame: the facts of a commit that are known before its content is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// How many events, at least 1.
    pub event_count: u32,
    /// How many streams its events belong to, at least 1.
    pub stream_count: u32,
    /// How many rows the body table has.
    pub row_count: u32,
    /// Length of the spine: envelopes and payloads.
    pub spine_bytes: u32,
    /// Length of the bodies.
    pub bodies_bytes: u32,
    /// CRC-32C of the content.
    pub content_checksum: u32,
    /// The seq of the first event; the others follow.
    pub first_seq: Seq,
    /// Where the frame is.
    pub position: Position,
    /// Everything before this position was durable when the frame was written.
    pub durable: Position,
    /// When all its events were recorded, as the clock said. Seqs alone give the order.
    pub time: Micros,
    /// The highest time of this frame and of all before it. Clocks are set back; this never goes back.
    pub time_max: Micros,
    /// The link of the frame before; zero in the first frame of a store.
    pub previous: Link,
    /// BLAKE3 of the content.
    pub content_digest: Digest,
    /// The cipher that spine and bodies are sealed with; 0: none.
    pub cipher: u8,
    /// Binds a sealed frame to its place; zeros without a cipher.
    pub tag: u128,
    /// The store it belongs to. The header has it in its checksum only.
    pub store: StoreId,
}

impl FrameHeader {
    /// The header as it is on disk.
    pub fn encode(&self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        let mut put = Put(&mut bytes);
        put.bytes(&FRAME_MAGIC).u8(FRAME_VERSION).u8(ALGORITHMS).u8(0).u8(self.cipher);
        put.u32(self.event_count).u32(self.stream_count).u32(self.row_count);
        put.u32(self.spine_bytes).u32(self.bodies_bytes).u32(self.content_checksum);
        put.u64(self.first_seq.0).u64(self.position.0).u64(self.durable.0);
        put.i64(self.time.0).i64(self.time_max.0);
        put.bytes(self.previous.as_bytes()).bytes(self.content_digest.as_bytes());
        put.skip(RESERVED_BYTES).bytes(&self.tag.to_le_bytes());
        put_frame_checksum(&mut bytes, self.store);
        bytes
    }

    /// Reads and checks a header of this store; `bytes` may go on after it.
    ///
    /// # Errors
    /// [`DamagedPart::FrameHeader`] for bytes that are no header of a frame of this store, [`DamagedPart::Newer`] for a header with a right
    /// checksum and a value that this program does not know: it is sound, and was written by a newer program.
    pub fn decode(bytes: &[u8], store: StoreId) -> Result<Self, Invalid> {
        let fail = |offset, expected: &str, found: String| {
            Err(Invalid::new(DamagedPart::FrameHeader, offset, expected, found))
        };
        let Some(bytes) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else {
            return fail(0, "160 bytes", format!("{} bytes", bytes.len()));
        };
        let mut fields = FieldReader(bytes);
        if fields.array() != FRAME_MAGIC {
            return fail(0, "the frame magic", "other bytes".to_owned());
        }
        let (computed, stored) = frame_checksum(bytes, store);
        if computed != stored {
            let found = format!("{stored:08x}, not {computed:08x}");
            return fail(156, "a matching checksum for this store", found);
        }
        let (version, algorithms) = (fields.u8(), fields.u8());
        let (flags, cipher) = (fields.u8(), fields.u8());
        let reserved = bytes.get(TAGGED_BYTES - RESERVED_BYTES..TAGGED_BYTES).is_some_and(is_zero);
        let tag = u128::from_le_bytes(FieldReader(bytes.get(TAGGED_BYTES..).unwrap_or(&[])).array());
        let is_known = match cipher {
            CIPHER_NONE => tag == 0,
            cipher => cipher == CIPHER_XCHACHA,
        };
        if (version, algorithms, flags) != (FRAME_VERSION, ALGORITHMS, 0) || !is_known || !reserved {
            let found =
                format!("version {version}, algorithms {algorithms}, flags {flags:#04x}, cipher {cipher}");
            return Err(Invalid::new(
                DamagedPart::Newer,
                4,
                "a frame of version 2 with a cipher and flags that are known",
                found,
            ));
        }
        let header = Self {
            event_count: fields.u32(),
            stream_count: fields.u32(),
            row_count: fields.u32(),
            spine_bytes: fields.u32(),
            bodies_bytes: fields.u32(),
            content_checksum: fields.u32(),
            first_seq: Seq(fields.u64()),
            position: Position(fields.u64()),
            durable: Position(fields.u64()),
            time: Micros(fields.i64()),
            time_max: Micros(fields.i64()),
            previous: Link(fields.array()),
            content_digest: Digest(fields.array()),
            cipher,
            tag,
            store,
        };
        header.check_sizes()?;
        Ok(header)
    }

    fn check_sizes(&self) -> Result<(), Invalid> {
        let wide = |value: u32| u64::from(value);
        let sound = self.event_count > 0
            && self.event_count as usize <= COMMIT_EVENT_COUNT_MAX
            && (1..=self.event_count).contains(&self.stream_count)
            && self.is_spine_within()
            && self.content_bytes() <= CONTENT_BYTES_MAX as u64
            && self.frame_bytes() <= FRAME_BYTES_MAX as u64
            && self.time <= self.time_max
            && self.first_seq.0 > 0
            && self.first_seq.0.checked_add(wide(self.event_count)).is_some()
            && self.durable <= self.position;
        if sound {
            return Ok(());
        }
        let found = format!(
            "events {}, streams {}, rows {}, spine {}, bodies {}, first seq {}",
            self.event_count,
            self.stream_count,
            self.row_count,
            self.spine_bytes,
            self.bodies_bytes,
            self.first_seq
        );
        Err(Invalid::new(DamagedPart::FrameHeader, 8, "sizes within the limits", found))
    }

    /// Envelopes fit into the spine. A sealed one is packed, and its own length is known to the key alone.
    fn is_spine_within(&self) -> bool {
        let bytes = self.spine_bytes as usize;
        if self.is_sealed() {
            return (TAG_BYTES + 1..=SPINE_BYTES_MAX + TAG_BYTES).contains(&bytes);
        }
        u64::from(self.event_count) * ENVELOPE_BYTES as u64 <= bytes as u64 && bytes <= SPINE_BYTES_MAX
    }

    /// Whether spine and bodies are sealed.
    pub const fn is_sealed(&self) -> bool {
        self.cipher != CIPHER_NONE
    }

    /// The tag that a key of tags puts into this header: it covers the store and all of the header before the tag.
    pub(crate) fn tag_under(&self, key: &[u8; 32]) -> u128 {
        let header = self.encode();
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(self.store.as_bytes()).update(header.get(..TAGGED_BYTES).unwrap_or(&header));
        let mut tag = [0; TAG_BYTES];
        hasher.finalize_xof().fill(&mut tag);
        u128::from_le_bytes(tag)
    }

    /// Length of what stands before the streams: the block of a sealed frame.
    pub(crate) const fn block_bytes(&self) -> usize {
        if self.is_sealed() { SEAL_BLOCK_BYTES } else { 0 }
    }

    /// Length of the content: streams, body rows and spine; at most [`CONTENT_BYTES_MAX`] once decoded.
    pub fn content_bytes(&self) -> u64 {
        self.block_bytes() as u64
            + u64::from(self.stream_count) * FRAME_STREAM_BYTES as u64
            + u64::from(self.row_count) * BODY_ROW_BYTES as u64
            + u64::from(self.spine_bytes)
    }

    /// Offset of the bodies in the frame.
    pub fn bodies_start(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + self.content_bytes()
    }

    /// Length of the whole frame with the zeros at its end; at most [`FRAME_BYTES_MAX`] once decoded.
    pub fn frame_bytes(&self) -> u64 {
        (self.bodies_start() + u64::from(self.bodies_bytes)).next_multiple_of(Position::GRAIN_BYTES)
    }

    /// The seq of the last event.
    pub fn last_seq(&self) -> Seq {
        self.first_seq.plus(u64::from(self.event_count)).before()
    }

    /// Where the frame ends and the next one begins.
    pub fn end(&self) -> Position {
        Position(self.position.0.saturating_add(self.frame_bytes() / Position::GRAIN_BYTES))
    }

    /// The checksum of the header as it is on disk.
    pub(crate) fn checksum(&self) -> u32 {
        let (computed, _) = frame_checksum(&self.encode(), self.store);
        computed
    }

    /// Whether `bytes` begin with a header of this store that says it belongs at `position`, in any version of the format. Its length,
    /// its checksum and its position stay where they are in all versions, so that no program takes a newer program's frame for torn
    /// bytes.
    pub fn is_newer_at(bytes: &[u8], position: Position, store: StoreId) -> bool {
        bytes.get(40..48) == Some(&position.0.to_le_bytes())
            && Self::decode(bytes, store).is_err_and(|invalid| invalid.part == DamagedPart::Newer)
    }

    /// The link of this frame: BLAKE3(domain, store id, header without its checksum). Position, previous link and the digest of the
    /// content are header fields, so one flipped bit anywhere before changes it.
    pub fn link(&self) -> Link {
        link_of(&self.encode(), self.store)
    }
}

/// The link of the frame with this encoded header.
pub(crate) fn link_of(header: &[u8; FRAME_HEADER_BYTES], store: StoreId) -> Link {
    let mut message = [0; LINK_DOMAIN.len() + 16 + LINKED_BYTES];
    let linked = header.get(..LINKED_BYTES).unwrap_or(header);
    Put(&mut message).bytes(LINK_DOMAIN).bytes(store.as_bytes()).bytes(linked);
    Link(*blake3::hash(&message).as_bytes())
}

/// The crc32c of the store's id and of all of a header but its last four bytes, and the value of these four.
fn frame_checksum(header: &[u8; FRAME_HEADER_BYTES], store: StoreId) -> (u32, u32) {
    let (covered, stored) = header.split_last_chunk::<4>().unwrap_or((header, &[0; 4]));
    let of_store = crc32c::crc32c(store.as_bytes());
    (crc32c::crc32c_append(of_store, covered), u32::from_le_bytes(*stored))
}

/// Fills in the checksum of a header.
pub(super) fn put_frame_checksum(header: &mut [u8; FRAME_HEADER_BYTES], store: StoreId) {
    let (checksum, _) = frame_checksum(header, store);
    if let Some(stored) = header.last_chunk_mut::<4>() {
        *stored = checksum.to_le_bytes();
    }
}

const MAGIC: [u8; 8] = *b"acpdbseg";
/// Flag: the bytes after the end of the segment before were given up after a failed sync.
const ABANDONED: u8 = 1;

/// A frame and the events it holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FramePlace {
    /// First seq of the frame.
    pub first_seq: Seq,
    /// Last seq of the frame.
    pub last_seq: Seq,
    /// Where it is.
    pub position: Position,
}

impl FramePlace {
    /// How many events the frame holds.
    pub const fn event_count(&self) -> u64 {
        self.last_seq.next().since(self.first_seq)
    }
}

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
    /// The features that reading and writing the store need, as of this segment.
    pub features: FeatureBits,
    /// How often bodies were erased in this segment.
    pub generation: u32,
    /// The last record of the generation is torn: the erasure was interrupted and is to be taken up again.
    pub generation_torn: bool,
}

/// Features as bits. The names are in the store file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FeatureBits {
    /// A program that does not know all of these must not read.
    pub needs: u64,
    /// A program that does not know all of these must not write.
    pub writes: u64,
}

/// The store is encrypted.
const ENCRYPTED: u64 = 1;
/// The features that this program knows how to read.
const NEEDS_KNOWN: u64 = ENCRYPTED;

impl FeatureBits {
    /// The features of a store, encrypted or not.
    pub(crate) const fn of(is_encrypted: bool) -> Self {
        Self { needs: if is_encrypted { ENCRYPTED } else { 0 }, writes: 0 }
    }

    /// Whether the store is encrypted.
    pub(crate) const fn is_encrypted(self) -> bool {
        self.needs & ENCRYPTED != 0
    }
}

/// Where the two records of the generation are: outside of the bytes that the header's checksum covers, since they change in place.
const GENERATION_OFFSET: usize = 3968;
/// Bytes of both.
const GENERATION_BYTES: usize = 2 * GENERATION_RECORD_BYTES;
/// A generation, and a checksum over the segment's number and it.
const GENERATION_RECORD_BYTES: usize = 8;

/// Where the record of a generation goes. Odd and even ones take turns, so that a torn record leaves the other.
pub(crate) const fn generation_offset(generation: u32) -> u64 {
    let turn = generation as usize % 2;
    (GENERATION_OFFSET + turn * GENERATION_RECORD_BYTES) as u64
}

/// The newest generation in both records, and whether one of them is no record.
fn generations(number: u32, bytes: &[u8; GENERATION_BYTES]) -> (u32, bool) {
    let (mut newest, mut torn) = (0, false);
    for (turn, record) in (0_u32..).zip(bytes.chunks_exact(GENERATION_RECORD_BYTES)) {
        let generation = FieldReader(record).u32();
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

/// The header without its generation: the header's checksum is made of these bytes.
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
            .u8(u8::from(self.abandoned) * ABANDONED)
            .skip(5)
            .u64(self.features.needs)
            .u64(self.features.writes);
        put_trailing_checksum(&mut bytes);
        let at = usize::try_from(generation_offset(self.generation)).unwrap_or(GENERATION_OFFSET);
        if let Some(record) = bytes.get_mut(at..) {
            Put(record).bytes(&generation_record(self.number, self.generation));
        }
        bytes
    }

    /// The version of a sound header of a form that is read no more; `None`: it is none.
    pub(crate) fn former(bytes: &[u8]) -> Option<u32> {
        let bytes = bytes.first_chunk::<SEGMENT_HEADER_BYTES>()?;
        let mut fields = FieldReader(bytes);
        let (magic, version): ([u8; 8], u32) = (fields.array(), fields.u32());
        let (computed, stored) = trailing_checksum(&without_generation(bytes));
        (magic == MAGIC && computed == stored && version < FORMAT_VERSION).then_some(version)
    }

    /// Reads and checks a header.
    ///
    /// # Errors
    /// [`DamagedPart::SegmentHeader`] for bytes that are no header, [`DamagedPart::Newer`] for a sound header with a value that this program does
    /// not know.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let fail = |offset, expected: &str, found: String| {
            Err(Invalid::new(DamagedPart::SegmentHeader, offset, expected, found))
        };
        let Some(bytes) = bytes.first_chunk::<SEGMENT_HEADER_BYTES>() else {
            return fail(0, "4096 bytes", format!("{} bytes", bytes.len()));
        };
        let mut fields = FieldReader(bytes);
        if fields.array() != MAGIC {
            return fail(0, "the segment magic", "other bytes".to_owned());
        }
        let (computed, stored) = trailing_checksum(&without_generation(bytes));
        if computed != stored {
            return fail(4092, "a matching checksum", format!("{stored:08x}, not {computed:08x}"));
        }
        let version = fields.u32();
        let newer = |offset, expected: &str, found: String| {
            Err(Invalid::new(DamagedPart::Newer, offset, expected, found))
        };
        if version != FORMAT_VERSION {
            return newer(8, "format version 3", format!("version {version}"));
        }
        let number = fields.u32();
        let store = StoreId(fields.array());
        let (first_seq, previous_end) = (Seq(fields.u64()), Position(fields.u64()));
        let (previous_time, previous) = (Micros(fields.i64()), Link(fields.array()));
        let algorithms = (fields.u8(), fields.u8());
        let flags = fields.u8();
        let mut rest = fields.zeros(5);
        let features = FeatureBits { needs: fields.u64(), writes: fields.u64() };
        rest &= fields.zeros(GENERATION_OFFSET - 112);
        let record: [u8; GENERATION_BYTES] = fields.array();
        rest &= fields.zeros(SEGMENT_HEADER_BYTES - GENERATION_OFFSET - GENERATION_BYTES - 4);
        let (generation, generation_torn) = generations(number, &record);
        if features.needs & !NEEDS_KNOWN != 0 {
            return newer(96, "features that are known", format!("features {:#x}", features.needs));
        }
        if algorithms != (DIGEST_BLAKE3, CHECKSUM_CRC32C) || flags > ABANDONED || !rest {
            return newer(88, "the algorithms and flags of format 3, and zeros", "others".to_owned());
        }
        if number == 0 || first_seq == Seq::ZERO || previous_end >= Self::start(number) {
            return fail(12, "numbers from 1", format!("segment {number}, {first_seq}"));
        }
        let abandoned = flags & ABANDONED != 0;
        Ok(Self {
            store,
            number,
            first_seq,
            previous_end,
            previous_time,
            previous,
            abandoned,
            features,
            generation,
            generation_torn,
        })
    }
}
