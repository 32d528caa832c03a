//! Numbers of format 3: versions, algorithms, lengths and limits. They depend on nothing, so that every file of the format may use them.

/// Version of the whole format, in the store file and segment headers.
pub const FORMAT_VERSION: u32 = 3;
/// BLAKE3, the only digest of format 3.
pub const DIGEST_BLAKE3: u8 = 1;
/// CRC-32C, the only checksum of format 3.
pub const CHECKSUM_CRC32C: u8 = 1;

/// Bytes of a frame header.
pub const FRAME_HEADER_BYTES: usize = 160;
/// Bytes of one stream's id in a frame.
pub const FRAME_STREAM_BYTES: usize = 16;
/// Bytes of one row of the body table.
pub const BODY_ROW_BYTES: usize = 48;
/// Bytes of one event's envelope.
pub const ENVELOPE_BYTES: usize = 32;
/// Random bytes beside each body, so that its digest says nothing once it is erased.
pub const SALT_BYTES: usize = 16;
/// Bytes of a nonce. It is random: a counter would repeat after a store was put back from a backup.
pub const NONCE_BYTES: usize = 24;
/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;
/// Random bytes of a sealed frame. With the number of a unit they are the nonce of that unit.
pub const FRAME_NONCE_BYTES: usize = NONCE_BYTES - 4;
/// Bytes of the block at the start of a sealed frame's content.
pub const SEAL_BLOCK_BYTES: usize = 32;
/// The cipher of a frame that is not sealed.
pub const CIPHER_NONE: u8 = 0;
/// XChaCha20-Poly1305, the only cipher of format 3.
pub const CIPHER_XCHACHA: u8 = 1;
/// Bytes that sealing adds.
pub const SEALING_BYTES: usize = NONCE_BYTES + TAG_BYTES;
/// Bytes of a segment header; the first frame follows at this offset.
pub const SEGMENT_HEADER_BYTES: usize = 4096;
/// Bytes of the tail page.
pub const TAIL_BYTES: usize = 4096;
/// Bytes of the checkpoint file.
pub const CHECKPOINT_BYTES: usize = 128;

/// Longest frame: header, content and bodies.
pub const FRAME_BYTES_MAX: usize = 64 << 20;
/// Longest spine of a frame: its envelopes and payloads.
pub const SPINE_BYTES_MAX: usize = 8 << 20;
/// Longest content of a frame: streams, rows and spine. A look at one event reads all of it.
pub const CONTENT_BYTES_MAX: usize = 16 << 20;
/// Longest payload of one event.
pub const EVENT_BYTES_MAX: usize = 1 << 20;
/// Longest body in one row; longer ones are lists of rows.
pub const BODY_CHUNK_BYTES_MAX: usize = 16 << 20;
/// Most events in one commit.
pub const COMMIT_EVENT_COUNT_MAX: usize = 65_536;
/// Longest store file that is read.
pub const STORE_FILE_BYTES_MAX: usize = 4096;

const _: () = assert!(FRAME_HEADER_BYTES.is_multiple_of(16) && SEGMENT_HEADER_BYTES.is_multiple_of(16));
const _: () = assert!(COMMIT_EVENT_COUNT_MAX - 1 <= u16::MAX as usize && EVENT_BYTES_MAX < 1 << 24);
const _: () = assert!(BODY_CHUNK_BYTES_MAX + SALT_BYTES + EVENT_BYTES_MAX < FRAME_BYTES_MAX);
// A commit of one event with one body costs this much beside its payload and its body.
const _: () =
    assert!(FRAME_HEADER_BYTES + FRAME_STREAM_BYTES + ENVELOPE_BYTES + BODY_ROW_BYTES + SALT_BYTES <= 272);
