//! An event as the log sees it: an envelope, payload bytes, and rows that name its bodies.

use std::sync::Arc;

use super::fields::{Fields, Put};
use super::{BODY_ROW_BYTES, DIGEST_OF_BODY, DIGEST_OF_STORED, ENVELOPE_BYTES};
use crate::ids::{Digest, Micros, Origin, Position, StreamId};

/// Random bytes beside each body, so that its digest says nothing once it is erased.
pub const SALT_BYTES: usize = 16;
/// The key id of an event or a body that is not encrypted.
pub const NO_KEY: u32 = 0;

/// Stands for the version of an event whose payload has a form that this program does not know: encrypted, say. Like an event of any
/// unknown version, such an event is kept and counted, and no view shows it.
pub(crate) const NEWER_VERSION: u16 = u16::MAX;

/// Stands for "the host gave no time".
const NO_HOST_TIME: i64 = i64::MIN;
/// Stands for the codec of a body whose row says what this program does not know.
const NEWER_CODEC: u8 = u8::MAX;
/// Row flag: the position is an offset from the start of the row's own frame.
pub(super) const ROW_IN_FRAME: u8 = 1;

/// The fields of an event that need no knowledge of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The kind, as `event` numbers it.
    pub kind: u16,
    /// Version of the kind's payload.
    pub version: u16,
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Canonical id of the fact; zero if it has none.
    pub origin: Origin,
    /// When it happened as the host says.
    pub host_time: Option<Micros>,
}

/// The fields of an envelope beside [`Envelope`]: in format 1 nothing but the length of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PayloadForm {
    pub(crate) bytes: u32,
    /// No flag has a meaning yet.
    pub(crate) flags: u8,
    /// How the payload is encrypted; 0 is not at all, the only one so far.
    pub(crate) cipher: u8,
    /// Which key encrypts it.
    pub(crate) key: u32,
}

impl PayloadForm {
    /// Whether this program can read such a payload. What it cannot read it keeps, and says so.
    pub(crate) fn is_known(self) -> bool {
        self.flags == 0 && self.cipher == 0 && self.key == NO_KEY
    }
}

impl Envelope {
    pub(crate) fn encode(&self, payload_bytes: u32) -> [u8; ENVELOPE_BYTES] {
        let mut bytes = [0; ENVELOPE_BYTES];
        Put(&mut bytes)
            .u16(self.kind)
            .u16(self.version)
            .u32(payload_bytes)
            // Flags, cipher, two bytes that are reserved, key.
            .u8(0)
            .u8(0)
            .u16(0)
            .u32(NO_KEY)
            .bytes(self.stream.as_bytes())
            .bytes(self.origin.as_bytes())
            .i64(self.host_time.map_or(NO_HOST_TIME, Micros::get));
        bytes
    }

    /// The envelope, and the form of its payload.
    pub(crate) fn decode(bytes: &[u8]) -> (Self, PayloadForm) {
        let mut fields = Fields(bytes);
        let (kind, version, payload_bytes) = (fields.u16(), fields.u16(), fields.u32());
        let (flags, cipher, reserved) = (fields.u8(), fields.u8(), fields.u16());
        let key = fields.u32();
        let (stream, origin) = (StreamId(fields.array()), Origin(fields.array()));
        let host_time = Some(fields.i64()).filter(|time| *time != NO_HOST_TIME).map(Micros);
        // Reserved bits are flags that have no name yet.
        let flags = if reserved == 0 { flags } else { u8::MAX };
        let form = PayloadForm { bytes: payload_bytes, flags, cipher, key };
        (Self { kind, version, stream, origin, host_time }, form)
    }
}

/// An event ready to be written.
#[derive(Debug, Clone)]
pub struct EncodedEvent {
    /// Its envelope.
    pub envelope: Envelope,
    /// Its payload. Starts at a multiple of 16 in the frame, so archived bytes can be read in place.
    pub payload: Vec<u8>,
    /// Its bodies, in the order the payload numbers them.
    pub bodies: Vec<EncodedBody>,
}

/// A body, new or already in the log. At most [`super::BODY_CHUNK_BYTES_MAX`] bytes and never empty.
#[derive(Clone)]
pub enum EncodedBody {
    /// Stored in this commit; equal new bodies of one commit share one stored copy.
    New {
        /// The bytes.
        bytes: Arc<[u8]>,
        /// Random, not all zeros.
        salt: [u8; SALT_BYTES],
    },
    /// Stored earlier: the row points there.
    Existing {
        /// Digest of the stored body.
        digest: Digest,
        /// Its length.
        bytes: u32,
        /// Where its salt and bytes are.
        position: Position,
    },
    /// Not there any more: its block is zeros, as if it had been erased. Only copies of a store have such, and what came by merge.
    Lost {
        /// Digest of what it was.
        digest: Digest,
        /// Its length.
        bytes: u32,
    },
}

impl std::fmt::Debug for EncodedBody {
    /// Prints lengths, never contents: a body may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::New { bytes, .. } => write!(f, "New({} bytes)", bytes.len()),
            Self::Existing { bytes, position, .. } => write!(f, "Existing({bytes} bytes at {position})"),
            Self::Lost { bytes, .. } => write!(f, "Lost({bytes} bytes)"),
        }
    }
}

/// One row of a frame's body table: where the bytes of one body (or chunk) of one event are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BodyRow {
    /// Ordinal of the event in its frame, from 0.
    pub event: u32,
    /// Digest over salt, length and bytes.
    pub digest: Digest,
    /// Length of the body.
    pub bytes: u32,
    /// Length of what is stored of it in its frame. As long as nothing is packed or encrypted there, that of the body.
    pub stored_bytes: u32,
    /// Where the salt is; the bytes follow it.
    pub position: Position,
    /// How the bytes are packed; 0 is not at all, the only one so far.
    pub codec: u8,
    /// How the bytes are encrypted; 0 is not at all, the only one so far.
    pub cipher: u8,
    /// How the digest is made: 1 is salted BLAKE3 of the body, 2 of what is stored of it.
    pub digest_algorithm: u8,
    /// Which key encrypts it; 0 is none.
    pub key: u32,
}

impl BodyRow {
    /// Whether this program can read such a body.
    pub(crate) fn is_known(&self) -> bool {
        let algorithm = [DIGEST_OF_BODY, DIGEST_OF_STORED].contains(&self.digest_algorithm);
        let plain = self.codec == 0 && self.cipher == 0 && self.key == NO_KEY;
        algorithm && plain && self.stored_bytes == self.bytes
    }
}

/// A row as it is on disk: the position may be an offset within the frame, because a body's row is hashed
/// before the frame has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskRow {
    pub(crate) row: BodyRow,
    /// `row.position` counts from the start of the frame.
    pub(crate) in_frame: bool,
}

impl DiskRow {
    pub(crate) fn new(event: u32, digest: Digest, bytes: u32, position: Position, in_frame: bool) -> Self {
        let row = BodyRow {
            event,
            digest,
            bytes,
            stored_bytes: bytes,
            position,
            codec: 0,
            cipher: 0,
            digest_algorithm: DIGEST_OF_BODY,
            key: NO_KEY,
        };
        Self { row, in_frame }
    }

    pub(crate) fn encode(&self) -> [u8; BODY_ROW_BYTES] {
        let row = &self.row;
        let mut bytes = [0; BODY_ROW_BYTES];
        Put(&mut bytes)
            .bytes(row.digest.as_bytes())
            .u64(row.position.0)
            .u32(row.bytes)
            .u32(row.stored_bytes)
            .u32(row.event)
            .u8(row.codec)
            .u8(row.cipher)
            .u8(row.digest_algorithm)
            .u8(if self.in_frame { ROW_IN_FRAME } else { 0 })
            .u32(row.key);
        bytes
    }

    /// The row. Whether this program can read such a body is for [`BodyRow::is_known`] to say.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes);
        let digest = Digest(fields.array());
        let position = Position(fields.u64());
        let (bytes, stored_bytes, event) = (fields.u32(), fields.u32(), fields.u32());
        let (codec, cipher, digest_algorithm, flags) = (fields.u8(), fields.u8(), fields.u8(), fields.u8());
        let (key, reserved) = (fields.u32(), fields.u32());
        // The body cannot be read without knowing the unknown bits.
        let codec = if flags > ROW_IN_FRAME || reserved != 0 { NEWER_CODEC } else { codec };
        let row =
            BodyRow { event, digest, bytes, stored_bytes, position, codec, cipher, digest_algorithm, key };
        Self { row, in_frame: flags & ROW_IN_FRAME != 0 }
    }
}
