//! Runs: entries, packs and segments, which all have one form. Pure.

use std::io::Read as _;

use acpdb_engine::codec::{
    FRAME_BYTES_MAX, FieldReader, Put, SEGMENT_HEADER_BYTES, WrittenPlace, place_record,
    put_trailing_checksum, read_place, trailing_checksum,
};
use acpdb_engine::ids::StoreId;
use acpdb_engine::log::piece_offset;

/// Bytes of a header.
pub(crate) const RUN_HEADER_BYTES: usize = 256;
/// Most bytes of a chunk: one frame with the header of its segment.
pub(crate) const CHUNK_BYTES_MAX: u64 = (FRAME_BYTES_MAX + SEGMENT_HEADER_BYTES) as u64;
/// Most bytes of a pack or a segment.
pub(crate) const RUN_BYTES_MAX: u64 = 1 << 30;

const MAGIC: [u8; 8] = *b"acpdbrun";
const FORM: u16 = 1;
/// The fastest level: the bodies of an encrypted store are packed already.
const LEVEL: i32 = 1;
/// Shorter bytes are not packed.
const PACKED_BYTES_MIN: usize = 128;

/// The kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogRunKind {
    Chunk,
    Fence,
    Pack,
    Segment,
}

impl LogRunKind {
    const fn number(self) -> u8 {
        match self {
            Self::Chunk => 1,
            Self::Fence => 2,
            Self::Pack => 3,
            Self::Segment => 4,
        }
    }

    fn of(number: u8) -> Option<Self> {
        [Self::Chunk, Self::Fence, Self::Pack, Self::Segment].into_iter().find(|kind| kind.number() == number)
    }

    const fn bytes_max(self) -> u64 {
        match self {
            Self::Chunk => CHUNK_BYTES_MAX,
            Self::Fence => 0,
            Self::Pack | Self::Segment => RUN_BYTES_MAX,
        }
    }
}

/// Bytes of the log from one place to another, all of one segment, and who wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogRun {
    pub(crate) kind: LogRunKind,
    pub(crate) generation: u32,
    pub(crate) store: StoreId,
    pub(crate) epoch: u64,
    pub(crate) nonce: u64,
    /// Its number, or the first one in it; of a segment the highest epoch up to its end.
    pub(crate) first: u64,
    /// The number behind it; of a segment the number where the chain goes on behind it.
    pub(crate) next: u64,
    pub(crate) before: WrittenPlace,
    pub(crate) behind: WrittenPlace,
    pub(crate) segment: u32,
    pub(crate) bytes: Vec<u8>,
}

/// The reason why an object is no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoRun {
    /// A newer program wrote it.
    Newer,
    /// It is unsound.
    Unsound(&'static str),
}

/// The fields behind the beginning and the form of an object, or of the header of one, whose checksum is right.
pub(crate) fn fields_of(object: &[u8], magic: [u8; 8], form: u16) -> Result<FieldReader<'_>, NoRun> {
    let mut fields = FieldReader(object);
    if fields.array() != magic {
        return Err(NoRun::Unsound("it has another beginning"));
    }
    let (computed, stored) = trailing_checksum(object);
    if computed != stored {
        return Err(NoRun::Unsound("its checksum does not match"));
    }
    if fields.u16() == form { Ok(fields) } else { Err(NoRun::Newer) }
}

impl LogRun {
    /// The object.
    pub(crate) fn encode(&self) -> Vec<u8> {
        // Bytes that cannot be packed are kept as they are.
        let packed =
            (self.bytes.len() >= PACKED_BYTES_MIN).then(|| zstd::bulk::compress(&self.bytes, LEVEL).ok());
        let packed = packed.flatten().filter(|packed| packed.len() < self.bytes.len());
        let (codec, payload) = packed.as_ref().map_or((0, &self.bytes), |packed| (1, packed));
        let mut object = vec![0; RUN_HEADER_BYTES];
        let mut put = Put(&mut object);
        put.bytes(&MAGIC).u16(FORM).u8(self.kind.number()).u8(codec).u32(self.generation);
        put.bytes(self.store.as_bytes()).u64(self.epoch).u64(self.nonce).u64(self.first).u64(self.next);
        put.bytes(&place_record(&self.before)).bytes(&place_record(&self.behind)).u32(self.segment).u32(0);
        put.u64(self.bytes.len() as u64).u64(payload.len() as u64);
        put.bytes(blake3::hash(payload).as_bytes());
        put_trailing_checksum(&mut object);
        object.extend_from_slice(payload);
        object
    }

    /// Reads and checks an object of `store`. The bytes are as long as the places say, and not looked at.
    pub(crate) fn decode(store: StoreId, object: &[u8]) -> Result<Self, NoRun> {
        let unsound = |what| Err(NoRun::Unsound(what));
        let Some((header, payload)) = object.split_first_chunk::<RUN_HEADER_BYTES>() else {
            return unsound("it is too short");
        };
        let mut fields = fields_of(header, MAGIC, FORM)?;
        let (kind, codec, generation) = (LogRunKind::of(fields.u8()), fields.u8(), fields.u32());
        let (Some(kind), 0..=1) = (kind, codec) else { return Err(NoRun::Newer) };
        if StoreId(fields.array()) != store {
            return unsound("it is of another store");
        }
        let (epoch, nonce, first, next) = (fields.u64(), fields.u64(), fields.u64(), fields.u64());
        let places: (_, _) = (read_place(&fields.array::<64>()), read_place(&fields.array::<64>()));
        let (Some(before), Some(behind)) = places else { return unsound("a place of it is none") };
        let segment = fields.u32();
        let mut reserved = fields.zeros(4);
        let (length, packed) = (fields.u64(), fields.u64());
        let digest: [u8; 32] = fields.array();
        reserved &= fields.zeros(4);
        let is_empty = kind == LogRunKind::Fence;
        let spans = if is_empty {
            before == behind && length == 0
        } else {
            let from = piece_offset(&before, segment);
            segment == behind.position.segment()
                && behind.position.offset().checked_sub(from) == Some(length)
                && length > 0
        };
        let counts = match kind {
            LogRunKind::Chunk | LogRunKind::Fence => first.checked_add(1) == Some(next),
            LogRunKind::Pack => first < next,
            LogRunKind::Segment => next > 0 && before.position.segment() != segment,
        };
        if !reserved || !spans || !counts || length > kind.bytes_max() || packed != payload.len() as u64 {
            return unsound("its header contradicts itself");
        }
        if *blake3::hash(payload).as_bytes() != digest {
            return unsound("its digest does not match");
        }
        let Some(bytes) = unpacked(codec, payload, length) else { return unsound("it does not unpack") };
        Ok(Self { kind, generation, store, epoch, nonce, first, next, before, behind, segment, bytes })
    }
}

/// The bytes of a payload, if there are `length` of them.
fn unpacked(codec: u8, payload: &[u8], length: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if codec == 0 {
        bytes.extend_from_slice(payload);
    } else {
        // Memory grows with what comes out: a payload that claims much and holds little costs little. Whatever fails, it does not unpack.
        let decoder = zstd::stream::read::Decoder::with_buffer(payload).ok()?.single_frame();
        // As above.
        decoder.take(length.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    }
    (bytes.len() as u64 == length).then_some(bytes)
}
