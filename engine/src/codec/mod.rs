//! Bytes on disk and back: frames, bodies, segment headers, the tail page, the checkpoint, the store file.
//!
//! ```text
//! frame   header 160 | spine: envelopes 56 each, payloads, body rows 64 each | bodies: salt 16 + bytes, each
//! ```
//!
//! One commit is one frame. What an event says is opaque here: an [`Envelope`] and payload bytes. Everything that
//! is read is checked first: length, checksum, then meaning; reserved bytes must be zero. `docs/FORMAT.md` gives
//! every byte and is the authority; a test compares one frame with its drawing.
//!
//! Pure: no files, clock or randomness (salts come in with the bodies). Nothing here panics on any input, and no
//! allocation is larger than a limit below, whatever the bytes claim.

mod body;
mod cipher;
mod compress;
mod envelope;
mod fields;
mod frame;
mod header;
mod key_file;
mod leaf;
mod opened;
mod pages;
pub mod payload;
pub mod peek;
mod pieces;
mod prepare;
mod sealed;
mod secret_file;
mod segment;
mod store_file;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use body::check_stored;
pub use body::{BODY_DOMAIN, body_digest, check_block, check_body, split_chunks};
pub(crate) use cipher::body_context;
pub use cipher::{CIPHER_XCHACHA20_POLY1305, DataKey, FIRST_KEY, NONCE_BYTES, SEALING_BYTES, TAG_BYTES};
pub(crate) use compress::{CODEC_NONE, Packer, unpack};
pub use compress::{DICTIONARY_1, DICTIONARY_1_DIGEST};
pub use envelope::{BodyForm, BodyRow, EncodedBody, EncodedEvent, Envelope, NO_KEY, SALT_BYTES, SealedBody};
pub use fields::{align16, is_zero};
pub use frame::{EventRef, Frame, FrameCheck, decode_frame};
pub use header::{FRAME_MAGIC, FrameHeader};
pub use key_file::{KEY_FILE_BYTES, KeyFile, WRAPPED_BYTES_MAX};
pub(crate) use leaf::leaf_bytes;
pub use leaf::{LEAF_DOMAIN, LeafEvent, LeafRow};
pub use opened::{KeyFound, Sight};
pub use pages::{
    Busy, Checkpoint, PageCounts, TailPage, Written, busy_record, claim_record, committed, place_record,
    poison_word, settled,
};
pub use pieces::PieceTable;
pub use prepare::{PayloadSeal, PreparedFrame, encode_frame, encode_sealed_frame};
pub use sealed::SealedLayout;
pub(crate) use sealed::{
    BLOCK_ROW_BYTES, BlockRow, DIGESTED_RECORD_BYTES, FRAME_ROW_BYTES, FrameRow, POSTING_BYTES, RECORD_BYTES,
    RECORD_OFFSET, RecordKind, SEAL_DOMAIN, SEALED_BYTES_MAX, STREAM_ROW_BYTES, StreamRow,
};
pub use secret_file::{SECRET_FILE_BYTES, SecretFile};
pub use segment::{FeatureBits, SegmentHeader};
pub(crate) use segment::{generation_offset, generation_record};
pub use store_file::{StoreFile, StoreFileError};
pub(crate) use table::{FENCE_KEY_BYTES, PAGE_ROW_COUNT, TableShape, checked, encode_table};

/// Version of the whole format, in the store file, segment headers and frames.
pub const FORMAT_VERSION: u32 = 1;
/// BLAKE3, the only digest of format 1.
pub const DIGEST_BLAKE3: u8 = 1;
/// How the digest of a body is made: salted BLAKE3 of the body.
pub const DIGEST_OF_BODY: u8 = 1;
/// How the digest of a body is made: salted BLAKE3 of what is stored of it, which can be checked without a key.
pub const DIGEST_OF_STORED: u8 = 2;
/// CRC-32C, the only checksum of format 1.
pub const CHECKSUM_CRC32C: u8 = 1;

/// Bytes of a frame header.
pub const FRAME_HEADER_BYTES: usize = 160;
/// Bytes of one event's envelope.
pub const ENVELOPE_BYTES: usize = 56;
/// Bytes of one row of the body table.
pub const BODY_ROW_BYTES: usize = 64;
/// Bytes of one row of a frame's table of pieces.
pub const PIECE_ROW_BYTES: usize = 24;
/// Bytes of a segment header; the first frame follows at this offset.
pub const SEGMENT_HEADER_BYTES: usize = 4096;
/// Bytes of the tail page.
pub const TAIL_BYTES: usize = 4096;
/// Bytes of the checkpoint file.
pub const CHECKPOINT_BYTES: usize = 128;

/// Longest frame: header, spine and bodies.
pub const FRAME_BYTES_MAX: usize = 64 << 20;
/// Longest payload of one event.
pub const EVENT_BYTES_MAX: usize = 1 << 20;
/// Longest body in one row; longer ones are lists of rows, see [`split_chunks`].
pub const BODY_CHUNK_BYTES_MAX: usize = 16 << 20;
/// Longest stored form of a body: one that is sealed and could not be packed.
pub(crate) const STORED_BYTES_MAX: usize = BODY_CHUNK_BYTES_MAX + SEALING_BYTES;
/// Most events in one commit.
pub const COMMIT_EVENT_COUNT_MAX: usize = 65_536;
/// Longest store file that is read.
pub const STORE_FILE_BYTES_MAX: usize = 4096;

const _: () = assert!(FRAME_HEADER_BYTES.is_multiple_of(16) && ENVELOPE_BYTES.is_multiple_of(8));
const _: () = assert!(BODY_ROW_BYTES.is_multiple_of(16) && SEGMENT_HEADER_BYTES.is_multiple_of(16));
const _: () = assert!(BODY_CHUNK_BYTES_MAX + SALT_BYTES + EVENT_BYTES_MAX < FRAME_BYTES_MAX);
// A commit of one event with one body costs this much beside its payload and its body.
const _: () = assert!(FRAME_HEADER_BYTES + ENVELOPE_BYTES + 8 + BODY_ROW_BYTES + SALT_BYTES <= 304);

/// Bytes that are not what they should be, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} is invalid at byte {offset}: expected {expected}, found {found}")]
pub struct Invalid {
    /// The damaged part.
    pub part: Part,
    /// Where, in bytes from the start of what was decoded.
    pub offset: u64,
    /// The expected value.
    pub expected: String,
    /// The found value.
    pub found: String,
}

impl Invalid {
    pub(crate) fn new(
        part: Part,
        offset: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let offset = u64::try_from(offset).unwrap_or(u64::MAX);
        Self { part, offset, expected: expected.into(), found: found.into() }
    }
}

/// The parts of a store that can be damaged. Their names are an interface (`verify --json`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// `acpdb.json`.
    StoreFile,
    /// `secret`, or the wrapped key of a stream.
    Secret,
    /// `checkpoint`.
    Checkpoint,
    /// The tail page.
    Tail,
    /// A segment file that should be there.
    SegmentMissing,
    /// The header of a segment.
    SegmentHeader,
    /// The header of a frame.
    FrameHeader,
    /// A sound frame that belongs to another place: copied, swapped or inserted.
    FrameMisplaced,
    /// A frame that does not continue the one before it.
    Link,
    /// Envelopes, payloads or body rows of a frame.
    Spine,
    /// The bytes or the salt of a body.
    Body,
    /// A body of zeros without a record that it was erased.
    BodyZeroed,
    /// The tables of a sealed segment.
    Footer,
    /// Bytes after the end of a complete segment.
    Rubbish,
    /// Acknowledged events that are not there.
    Missing,
    /// A witness that names another link than the log has.
    Forked,
    /// Sound bytes that say what this program does not know: a newer one wrote them.
    Newer,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::StoreFile => "store file",
            Self::Secret => "secret",
            Self::Checkpoint => "checkpoint",
            Self::Tail => "tail page",
            Self::SegmentMissing => "segment file",
            Self::SegmentHeader => "segment header",
            Self::FrameHeader => "frame header",
            Self::FrameMisplaced => "place of a frame",
            Self::Link => "link",
            Self::Spine => "spine",
            Self::Body => "body",
            Self::BodyZeroed => "zeroed body",
            Self::Footer => "footer",
            Self::Rubbish => "end of segment",
            Self::Missing => "end of the log",
            Self::Forked => "history",
            Self::Newer => "newer format",
        })
    }
}

/// A commit that cannot be written as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Something is over its limit; split the commit or chunk the body.
    #[error("{what} has {actual}, the limit is {limit}")]
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// How large it is.
        actual: u64,
        /// How large it may be.
        limit: u64,
    },
    /// A commit must hold at least one event.
    #[error("a commit needs at least one event")]
    NoEvents,
    /// A body that is said to be in the log already lies beyond its end.
    #[error("the commit refers to a body beyond the end of the log")]
    NoSuchBody,
    /// Empty bodies need no row.
    #[error("body {row} of event {event} is empty; an empty body has no row")]
    EmptyBody {
        /// Ordinal of the event in the commit.
        event: usize,
        /// Ordinal of the body in the event.
        row: usize,
    },
    /// A salt of zeros stands for an erased body.
    #[error("body {row} of event {event} has no salt")]
    NoSalt {
        /// Ordinal of the event in the commit.
        event: usize,
        /// Ordinal of the body in the event.
        row: usize,
    },
}
