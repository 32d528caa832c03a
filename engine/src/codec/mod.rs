//! Bytes on disk and back: frames, bodies, segment headers, the tail page, the checkpoint, the store file.
//!
//! ```text
//! frame   header 160 | streams, 16 each | body rows, 48 each | spine: envelopes, 32 each, payloads | bodies: salt 16 + bytes, each
//! ```
//!
//! One commit is one frame. The content of an event is opaque here: an [`Envelope`] and payload bytes. Everything that
//! is read is checked first: length, checksum, then meaning; reserved bytes must be zero. `docs/FORMAT.md` gives
//! every byte and is the authority; a test compares one frame with its drawing.
//!
//! Pure: no files, clock or randomness (salts come in with the bodies). Nothing here panics on any input, and no
//! allocation is larger than a limit below, even if the bytes claim more.

mod cipher;
#[cfg(any(test, feature = "testing"))]
mod decode;
mod envelope;
pub(crate) mod fields;
mod frame;
mod header;
mod held;
mod invalid;
mod leaf;
mod limits;
mod pages;
pub mod payload;
mod places;
mod prepare;
mod secret_file;
mod seekable;
mod store_file;
#[cfg(test)]
mod tests;

pub use cipher::DataKey;
#[cfg(any(test, feature = "testing"))]
pub use decode::decode_frame;
pub use envelope::{BODY_DOMAIN, body_digest, check_block, check_body};
pub use envelope::{BodyPlace, BodyRow, EncodedBody, EncodedEvent, Envelope};
pub(crate) use envelope::{DiskRow, body_unit, unit_nonce};
pub use fields::{FieldReader, Put, align16, is_zero, put_trailing_checksum, trailing_checksum};
pub use frame::{EventRef, Frame, FrameCheck};
pub use header::{FRAME_MAGIC, FeatureBits, FrameHeader, FramePlace, SegmentHeader};
pub use invalid::{DamagedPart, EncodeError, Invalid};
pub(crate) use leaf::leaf_bytes;
pub use leaf::{LEAF_DOMAIN, LeafEvent, LeafRow};
pub use limits::{
    BODY_CHUNK_BYTES_MAX, BODY_ROW_BYTES, CHECKPOINT_BYTES, CHECKSUM_CRC32C, CIPHER_NONE, CIPHER_XCHACHA,
    COMMIT_EVENT_COUNT_MAX, CONTENT_BYTES_MAX, DIGEST_BLAKE3, ENVELOPE_BYTES, EVENT_BYTES_MAX,
    FORMAT_VERSION, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, FRAME_NONCE_BYTES, FRAME_STREAM_BYTES, NONCE_BYTES,
    SALT_BYTES, SEAL_BLOCK_BYTES, SEALING_BYTES, SEGMENT_HEADER_BYTES, SPINE_BYTES_MAX, STORE_FILE_BYTES_MAX,
    TAG_BYTES, TAIL_BYTES,
};
pub use pages::{
    DurablePoint, Entered, PageCounts, TailPage, WriteMark, WrittenPlace, busy_record, claim_record,
    committed, place_record, poison_word, read_place, settled,
};
pub(crate) use places::{
    ORDINAL_BYTES, PLACE_BYTES, PLACES_RECORD_BYTES, PlaceRow, PlacesOf, PlacesRecord, PlacesStream,
    places_digest, stream_key,
};
pub(crate) use prepare::{FrameParts, SealedParts};
pub use prepare::{PreparedFrame, encode_frame};
pub use secret_file::{SECRET_FILE_BYTES, SecretFile};
pub(crate) use seekable::{
    CHUNK_BYTES, ChunkPacker, ChunkUnpacker, SEAL_HEAD_BYTES, SEEK_FOOTER_BYTES, SealHead, SeekEntry,
    chunk_at, claimed_bytes, decode_seek_table, encode_seek_table, is_sealed, next_chunk_magic,
    packed_bytes_max, seek_table_bytes,
};

pub(crate) use header::{generation_offset, generation_record};
pub(crate) use store_file::ENCRYPTED;
pub use store_file::{StoreFile, StoreFileError};
