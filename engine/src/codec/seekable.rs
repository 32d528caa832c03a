//! The form of a sealed segment: the bytes of the segment in zstd frames, in the seekable format of zstd.
//!
//! ```text
//! 0      128                                                                          length - 9
//! | head | zstd frame: the segment's header | zstd frames, at most 64 KiB unpacked each | seek table       | footer |
//!  (skippable)                                                                            (skippable)
//! ```
//!
//! Any zstd unpacks such a file into the segment. Here a zstd frame is called a *chunk*, since the log has frames of its own. The seek
//! table says where each chunk is; it is a hint, and can be made anew from the chunks. Each chunk has a checksum of its own.

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, compress_bound, find_frame_compressed_size, get_frame_content_size};

use super::fields::{FieldReader, Put, put_trailing_checksum, trailing_checksum};
use super::{DamagedPart, Invalid, SEGMENT_HEADER_BYTES};
use crate::ids::StoreId;

/// Bytes of the head, a skippable frame.
pub(crate) const SEAL_HEAD_BYTES: usize = 128;
/// Most unpacked bytes of a chunk that is written.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// Most unpacked bytes of a chunk that is read.
pub(crate) const CHUNK_BYTES_MAX: usize = 1 << 20;
/// Bytes at the end of a sealed file that say how long the seek table is.
pub(crate) const SEEK_FOOTER_BYTES: usize = 9;

/// How hard a chunk is packed. Of 41 MB of recorded log, 1 leaves .257, 3 .248 and 5 .239, at 310, 245 and 115 MB a second.
const LEVEL: i32 = 5;
const HEAD_FRAME_MAGIC: u32 = 0x184d_2a5a;
const HEAD_MAGIC: [u8; 8] = *b"acpdbsl2";
const ZSTD_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
const SKIPPABLE_HEADER_BYTES: usize = 8;
const TABLE_FRAME_MAGIC: u32 = 0x184d_2a5e;
const TABLE_MAGIC: u32 = 0x8f92_eab1;
/// Flag of the seek table: entries have checksums.
const TABLE_CHECKSUMS: u8 = 1 << 7;
const ENTRY_BYTES: usize = 12;
/// Most entries of a seek table: the longest segment has half as many chunks of full length.
const ENTRY_COUNT_MAX: usize = 1 << 21;
/// Checksum of no bytes at all, for the head.
const EMPTY_CHECKSUM: u32 = 0x51d8_e999;

/// The first 128 bytes of a sealed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SealHead {
    pub(crate) store: StoreId,
    pub(crate) segment: u32,
    /// How often bodies were erased in the segment.
    pub(crate) generation: u32,
    /// Length of the segment, unpacked.
    pub(crate) length: u64,
    /// BLAKE3 of the segment, unpacked.
    pub(crate) unpacked: [u8; 32],
    /// BLAKE3 of all bytes of the file behind the head.
    pub(crate) packed: [u8; 32],
}

impl SealHead {
    pub(crate) fn encode(&self) -> [u8; SEAL_HEAD_BYTES] {
        let mut bytes = [0; SEAL_HEAD_BYTES];
        Put(&mut bytes)
            .u32(HEAD_FRAME_MAGIC)
            .u32(skippable_length(SEAL_HEAD_BYTES))
            .bytes(&HEAD_MAGIC)
            .bytes(self.store.as_bytes())
            .u32(self.segment)
            .u32(self.generation)
            .u64(self.length)
            .bytes(&self.unpacked)
            .bytes(&self.packed);
        put_trailing_checksum(&mut bytes);
        bytes
    }

    /// Reads and checks a head.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let fail =
            |offset, expected: &str, found| Err(Invalid::new(DamagedPart::Packed, offset, expected, found));
        let Some(bytes) = bytes.first_chunk::<SEAL_HEAD_BYTES>() else {
            return fail(0, "the 128 bytes of a head", format!("{} bytes", bytes.len()));
        };
        let (computed, stored) = trailing_checksum(bytes);
        if computed != stored {
            return fail(124, "a matching checksum", format!("{stored:08x}, not {computed:08x}"));
        }
        let mut fields = FieldReader(bytes);
        let frame = (fields.u32(), fields.u32());
        if frame != (HEAD_FRAME_MAGIC, skippable_length(SEAL_HEAD_BYTES)) || fields.array() != HEAD_MAGIC {
            return fail(0, "the magic of a head", "other bytes".to_owned());
        }
        let head = Self {
            store: StoreId(fields.array()),
            segment: fields.u32(),
            generation: fields.u32(),
            length: fields.u64(),
            unpacked: fields.array(),
            packed: fields.array(),
        };
        if fields.zeros(12) { Ok(head) } else { fail(112, "zeros", "other bytes".to_owned()) }
    }
}

/// Whether a file that begins with these bytes is a sealed segment, its head damaged or not. A raw segment has zeros where the first chunk
/// begins.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(&HEAD_FRAME_MAGIC.to_le_bytes())
        || bytes.get(SEAL_HEAD_BYTES..).is_some_and(|rest| rest.starts_with(&ZSTD_MAGIC))
}

/// One chunk, as the seek table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeekEntry {
    pub(crate) packed: u32,
    pub(crate) unpacked: u32,
    /// The low half of XXH64 of the unpacked bytes; a chunk ends with the same.
    pub(crate) checksum: u32,
}

fn narrow(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn skippable_length(frame_bytes: usize) -> u32 {
    // Every frame has a header.
    narrow(frame_bytes.saturating_sub(SKIPPABLE_HEADER_BYTES))
}

/// Length of the seek table of so many entries, with its footer.
fn table_bytes(entries: usize) -> usize {
    entries.saturating_mul(ENTRY_BYTES).saturating_add(SKIPPABLE_HEADER_BYTES + SEEK_FOOTER_BYTES)
}

/// The seek table of a file with these chunks.
pub(crate) fn encode_seek_table(chunks: &[SeekEntry]) -> Vec<u8> {
    let head = SeekEntry { packed: narrow(SEAL_HEAD_BYTES), unpacked: 0, checksum: EMPTY_CHECKSUM };
    let length = table_bytes(chunks.len().saturating_add(1));
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&TABLE_FRAME_MAGIC.to_le_bytes());
    bytes.extend_from_slice(&skippable_length(length).to_le_bytes());
    for entry in std::iter::once(&head).chain(chunks) {
        for field in [entry.packed, entry.unpacked, entry.checksum] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
    }
    bytes.extend_from_slice(&narrow(chunks.len().saturating_add(1)).to_le_bytes());
    bytes.push(TABLE_CHECKSUMS);
    bytes.extend_from_slice(&TABLE_MAGIC.to_le_bytes());
    bytes
}

/// The length of the seek table that ends with this footer, if it is one.
pub(crate) fn seek_table_bytes(footer: &[u8]) -> Option<usize> {
    let footer = footer.first_chunk::<SEEK_FOOTER_BYTES>()?;
    let mut fields = FieldReader(footer);
    let (count, flags, magic) = (fields.u32(), fields.u8(), fields.u32());
    let is_table = flags == TABLE_CHECKSUMS && magic == TABLE_MAGIC;
    (is_table && (1..=ENTRY_COUNT_MAX).contains(&(count as usize))).then(|| table_bytes(count as usize))
}

/// The chunks that a seek table lists; `None` if it is not one that fits a file of `file_bytes`.
pub(crate) fn decode_seek_table(bytes: &[u8], file_bytes: u64) -> Option<Vec<SeekEntry>> {
    let mut fields = FieldReader(bytes);
    let is_table = fields.u32() == TABLE_FRAME_MAGIC && fields.u32() == skippable_length(bytes.len());
    let end = bytes.len().checked_sub(SEEK_FOOTER_BYTES)?;
    let (rows, rest) = bytes.get(SKIPPABLE_HEADER_BYTES..end)?.as_chunks::<ENTRY_BYTES>();
    let mut chunks = Vec::with_capacity(rows.len());
    let mut sum = 0_u64;
    for row in rows {
        let mut fields = FieldReader(row);
        let entry = SeekEntry { packed: fields.u32(), unpacked: fields.u32(), checksum: fields.u32() };
        let fits = entry.unpacked as usize <= CHUNK_BYTES_MAX
            && entry.packed as usize <= compress_bound((entry.unpacked as usize).max(SEAL_HEAD_BYTES));
        if !fits {
            return None;
        }
        sum = sum.saturating_add(u64::from(entry.packed));
        chunks.push(entry);
    }
    let head = (!chunks.is_empty()).then(|| chunks.remove(0))?;
    let is_whole = sum.saturating_add(bytes.len() as u64) == file_bytes
        && head.packed as usize == SEAL_HEAD_BYTES
        && chunks.first().is_some_and(|first| first.unpacked as usize == SEGMENT_HEADER_BYTES);
    (is_table && rest.is_empty() && is_whole).then_some(chunks)
}

/// The first chunk at the start of `bytes`, which hold all of it; `None` if there is none within the limits.
pub(crate) fn chunk_at(bytes: &[u8]) -> Option<SeekEntry> {
    let unpacked = claimed_bytes(bytes)?;
    // Bytes that are no chunk are passed over.
    let packed = find_frame_compressed_size(bytes).ok()?;
    Some(SeekEntry { packed: narrow(packed), unpacked, checksum: own_checksum(bytes.get(..packed)?) })
}

/// How many bytes a chunk says that it unpacks to, if it is within the limit.
pub(crate) fn claimed_bytes(bytes: &[u8]) -> Option<u32> {
    if !bytes.starts_with(&ZSTD_MAGIC) {
        return None;
    }
    // As above.
    let unpacked = get_frame_content_size(bytes).ok().flatten()?;
    // As above.
    u32::try_from(unpacked).ok().filter(|bytes| *bytes as usize <= CHUNK_BYTES_MAX)
}

/// Where the next chunk may begin in `bytes`.
pub(crate) fn next_chunk_magic(bytes: &[u8]) -> Option<usize> {
    bytes.windows(ZSTD_MAGIC.len()).position(|window| window == ZSTD_MAGIC)
}

/// Most bytes of a chunk.
pub(crate) fn packed_bytes_max() -> usize {
    compress_bound(CHUNK_BYTES_MAX)
}

fn own_checksum(packed: &[u8]) -> u32 {
    packed.last_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Makes chunks.
pub(crate) struct ChunkPacker(Compressor<'static>);

impl ChunkPacker {
    /// `None`: zstd gets no memory.
    pub(crate) fn new() -> Option<Self> {
        // The caller reports it, here and below.
        let mut compressor = Compressor::new(LEVEL).ok()?;
        // As above.
        compressor.set_parameter(CParameter::ChecksumFlag(true)).ok()?;
        Some(Self(compressor))
    }

    /// Packs the bytes of one chunk. `None`: zstd gets no memory.
    pub(crate) fn pack(&mut self, bytes: &[u8]) -> Option<(Vec<u8>, SeekEntry)> {
        // The caller reports it.
        let packed = self.0.compress(bytes).ok()?;
        let entry = SeekEntry {
            packed: narrow(packed.len()),
            unpacked: narrow(bytes.len()),
            checksum: own_checksum(&packed),
        };
        Some((packed, entry))
    }
}

/// Unpacks chunks.
pub(crate) struct ChunkUnpacker(Decompressor<'static>);

impl ChunkUnpacker {
    /// `None`: zstd gets no memory.
    pub(crate) fn new() -> Option<Self> {
        // The caller reports it.
        Decompressor::new().ok().map(Self)
    }

    /// Unpacks a chunk into `out`, which it fills. Says whether it does.
    pub(crate) fn unpack(&mut self, packed: &[u8], out: &mut [u8]) -> bool {
        // The caller reports a chunk that does not unpack.
        self.0.decompress_to_buffer(packed, out).is_ok_and(|count| count == out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> SealHead {
        let store = StoreId([7; 16]);
        SealHead { store, segment: 3, generation: 1, length: 4096, unpacked: [1; 32], packed: [2; 32] }
    }

    #[test]
    fn a_head_is_read_as_written_and_no_flipped_bit_of_it_goes_unseen() {
        let bytes = head().encode();
        assert_eq!(SealHead::decode(&bytes).unwrap(), head());
        assert!(is_sealed(&bytes));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SealHead::decode(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_seek_table_lists_the_chunks_that_the_walk_finds() {
        let mut packer = ChunkPacker::new().unwrap();
        let parts = [vec![0; SEGMENT_HEADER_BYTES], b"some text ".repeat(1000), b"x".to_vec()];
        let (mut file, mut chunks) = (head().encode().to_vec(), Vec::new());
        for part in &parts {
            let (packed, entry) = packer.pack(part).unwrap();
            assert_eq!(chunk_at(&packed), Some(entry));
            let mut out = vec![0; part.len()];
            let mut unpacker = ChunkUnpacker::new().unwrap();
            assert!(unpacker.unpack(&packed, &mut out) && out == *part);
            assert!(!unpacker.unpack(&packed, &mut vec![0; part.len() + 1]));
            file.extend(packed);
            chunks.push(entry);
        }
        let table = encode_seek_table(&chunks);
        file.extend(&table);
        let footer = &table[table.len() - SEEK_FOOTER_BYTES..];
        assert_eq!(seek_table_bytes(footer), Some(table.len()));
        assert_eq!(decode_seek_table(&table, file.len() as u64), Some(chunks));
        assert_eq!(decode_seek_table(&table, file.len() as u64 + 1), None);
        assert_eq!(zstd::stream::decode_all(file.as_slice()).unwrap(), parts.concat());
    }

    #[test]
    fn a_chunk_that_claims_more_than_the_limit_is_none() {
        let mut packer = ChunkPacker::new().unwrap();
        let (packed, _) = packer.pack(&vec![0; CHUNK_BYTES_MAX + 1]).unwrap();
        assert_eq!(chunk_at(&packed), None);
    }
}
