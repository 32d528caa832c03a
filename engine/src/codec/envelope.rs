//! An event as the log sees it: an envelope, payload bytes, and rows that name its bodies. And bodies: their digest, and their block on
//! disk (salt, bytes).

use std::sync::Arc;

use super::fields::{FieldReader, Put, is_zero};
use super::{
    BODY_ROW_BYTES, DamagedPart, ENVELOPE_BYTES, FRAME_NONCE_BYTES, FrameHeader, Invalid, NONCE_BYTES,
    SALT_BYTES,
};
use crate::ids::{Digest, Micros, Origin, StreamId};

/// The version of an event that is in the form that this program writes.
const KNOWN_VERSION: u16 = 1;
/// Stands for the version of an event whose envelope has a form that this program does not know. Such an event is kept and counted,
/// and no view shows it.
pub(crate) const NEWER_VERSION: u16 = u16::MAX;
/// Envelope flag: the host gave no time.
const NO_HOST_TIME: u8 = 1;
/// Stands for the codec of a body whose row has a value that this program does not know.
const NEWER_CODEC: u8 = u8::MAX;

/// The fields of an event that need no knowledge of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The kind, as `event` numbers it.
    pub kind: u16,
    /// 1; another number stands for a form that this program does not know. It is not stored.
    pub version: u16,
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Canonical id of the fact; zero if it has none.
    pub origin: Origin,
    /// When it happened, as the host says.
    pub host_time: Option<Micros>,
}

impl Envelope {
    /// The envelope as it is on disk: `stream` is the ordinal of its stream in the frame.
    pub(crate) fn encode(&self, stream: u16, payload_bytes: u32) -> [u8; ENVELOPE_BYTES] {
        let mut bytes = [0; ENVELOPE_BYTES];
        let [low, middle, high, _] = payload_bytes.to_le_bytes();
        Put(&mut bytes)
            .u16(self.kind)
            .u16(stream)
            .bytes(&[low, middle, high])
            .u8(if self.host_time.is_none() { NO_HOST_TIME } else { 0 })
            .bytes(self.origin.as_bytes())
            .i64(self.host_time.map_or(0, Micros::get));
        bytes
    }
}

/// An envelope as it is on disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiskEnvelope {
    kind: u16,
    /// Ordinal of its stream in the frame.
    pub(super) stream: u16,
    pub(super) payload_bytes: u32,
    is_known: bool,
    origin: Origin,
    host_time: Option<Micros>,
}

impl DiskEnvelope {
    pub(super) fn decode(bytes: &[u8]) -> Self {
        // The length is known here, so that no field asks again whether it is there.
        let mut fields = FieldReader(bytes.first_chunk::<ENVELOPE_BYTES>().unwrap_or(&[0; ENVELOPE_BYTES]));
        let (kind, stream) = (fields.u16(), fields.u16());
        let [low, middle, high] = fields.array();
        let (flags, origin, time) = (fields.u8(), Origin(fields.array()), fields.i64());
        let has_time = flags & NO_HOST_TIME == 0;
        Self {
            kind,
            stream,
            payload_bytes: u32::from_le_bytes([low, middle, high, 0]),
            is_known: flags & !NO_HOST_TIME == 0 && (has_time || time == 0),
            origin,
            host_time: has_time.then_some(Micros(time)),
        }
    }

    /// The envelope of an event of this stream.
    pub(super) fn of(&self, stream: StreamId) -> Envelope {
        let Self { kind, origin, host_time, .. } = *self;
        let version = if self.is_known { KNOWN_VERSION } else { NEWER_VERSION };
        Envelope { kind, version, stream, origin, host_time }
    }
}

/// An event ready to be written.
#[derive(Debug, Clone)]
pub struct EncodedEvent {
    /// Its envelope.
    pub envelope: Envelope,
    /// Its payload.
    pub payload: Vec<u8>,
    /// Its bodies, in the order the payload numbers them.
    pub bodies: Vec<EncodedBody>,
}

/// A body. At most [`super::BODY_CHUNK_BYTES_MAX`] bytes and never empty.
#[derive(Clone)]
pub enum EncodedBody {
    /// Stored in this commit; equal bodies of one commit share one stored copy.
    New {
        /// The bytes.
        bytes: Arc<[u8]>,
        /// Random, not all zeros.
        salt: [u8; SALT_BYTES],
    },
    /// Not there any more: its block is zeros, as if it had been erased. Such bodies are in copies of a store, and in merged streams.
    Lost {
        /// Digest of the lost body.
        digest: Digest,
        /// Its length.
        bytes: u32,
        /// Length of its stored bytes, for which it has room.
        stored_bytes: u32,
        /// How it was packed.
        codec: u8,
    },
}

impl std::fmt::Debug for EncodedBody {
    /// Prints lengths, never contents: a body may hold secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::New { bytes, .. } => write!(f, "New({} bytes)", bytes.len()),
            Self::Lost { bytes, .. } => write!(f, "Lost({bytes} bytes)"),
        }
    }
}

/// Where the salt of a body is; its bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BodyPlace {
    /// The segment.
    pub segment: u32,
    /// Bytes from the start of the segment.
    pub offset: u64,
}

impl std::fmt::Display for BodyPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}

/// One row of a frame's body table: where the bytes of one body (or chunk) of one event are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BodyRow {
    /// Ordinal of the event in its frame, from 0.
    pub event: u32,
    /// Digest of salt and stored bytes.
    pub digest: Digest,
    /// Length of the body.
    pub bytes: u32,
    /// The stream of its event.
    pub stream: StreamId,
    /// Length of the bytes that its frame stores: the length of the body, if nothing is packed there.
    pub stored_bytes: u32,
    /// Where the salt is; the bytes follow it.
    pub place: BodyPlace,
    /// The codec of the packed bytes; 0: not packed.
    pub codec: u8,
    /// The nonce of the body as a unit of a sealed frame; `None`: its frame is not sealed.
    pub unit: Option<[u8; NONCE_BYTES]>,
}

impl BodyRow {
    /// Whether this program can read such a body as it is stored.
    pub(crate) fn is_known(&self) -> bool {
        // Whether a unit opens, the key says.
        self.unit.is_some() || (self.codec == 0 && self.stored_bytes == self.bytes)
    }
}

/// A row as it is on disk: its place counts from the start of the frame's bodies, because the row is hashed before the frame has a
/// place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskRow {
    pub(crate) digest: Digest,
    pub(crate) offset: u32,
    pub(crate) stored_bytes: u32,
    pub(crate) bytes: u32,
    /// Ordinal of its event in the frame.
    pub(crate) event: u16,
    pub(crate) codec: u8,
}

/// Where in a row the ordinal of its event stands: behind the digest, the offset and two lengths.
pub(super) const ROW_EVENT_OFFSET: usize = 32 + 4 + 4 + 4;

impl DiskRow {
    /// The row with its place in the log, given the header of its frame, the stream of its event, and the nonce of a sealed frame.
    pub(super) fn resolve(
        &self,
        header: &FrameHeader,
        stream: StreamId,
        nonce: Option<&[u8; FRAME_NONCE_BYTES]>,
    ) -> BodyRow {
        let start = header.position.offset().saturating_add(header.bodies_start());
        let place = BodyPlace {
            segment: header.position.segment(),
            offset: start.saturating_add(u64::from(self.offset)),
        };
        let Self { digest, stored_bytes, bytes, event, codec, .. } = *self;
        let unit = nonce.map(|nonce| unit_nonce(nonce, body_unit(self.offset)));
        BodyRow { event: event.into(), digest, bytes, stream, stored_bytes, place, codec, unit }
    }

    /// The fields that two rows of one block have in common.
    pub(super) fn block(&self) -> (Digest, u32, u32, u8) {
        (self.digest, self.stored_bytes, self.bytes, self.codec)
    }

    /// Length of its block: salt and stored bytes.
    pub(super) fn block_bytes(&self) -> u64 {
        SALT_BYTES as u64 + u64::from(self.stored_bytes)
    }

    pub(crate) fn encode(&self) -> [u8; BODY_ROW_BYTES] {
        let mut bytes = [0; BODY_ROW_BYTES];
        Put(&mut bytes)
            .bytes(self.digest.as_bytes())
            .u32(self.offset)
            .u32(self.stored_bytes)
            .u32(self.bytes)
            .u16(self.event)
            .u8(self.codec)
            .u8(0);
        bytes
    }

    /// The row. [`BodyRow::is_known`] says whether this program can read the body.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut fields = FieldReader(bytes.first_chunk::<BODY_ROW_BYTES>().unwrap_or(&[0; BODY_ROW_BYTES]));
        let digest = Digest(fields.array());
        let (offset, stored_bytes, bytes) = (fields.u32(), fields.u32(), fields.u32());
        let (event, codec, flags) = (fields.u16(), fields.u8(), fields.u8());
        // The body cannot be read without knowing the unknown bits.
        let codec = if flags == 0 { codec } else { NEWER_CODEC };
        Self { digest, offset, stored_bytes, bytes, event, codec }
    }
}

/// The number of a body's unit in a sealed frame, by the offset of its salt. The spine has the number 0.
pub(crate) const fn body_unit(offset: u32) -> u32 {
    // Offsets are far below the limit of a frame.
    offset.saturating_add(1)
}

/// The nonce of a unit: the frame's random bytes and the unit's number.
pub(crate) fn unit_nonce(frame: &[u8; FRAME_NONCE_BYTES], number: u32) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    Put(&mut nonce).bytes(frame).u32(number);
    nonce
}

/// Separates body digests from all other digests.
pub const BODY_DOMAIN: &[u8; 16] = b"acpdb body v2\0\0\0";

/// The digest of a body: BLAKE3 of its stored bytes, keyed with salt and domain.
///
/// Without the salt the digest of a short body cannot be guessed, so a body can be erased for good while its
/// digest stays.
pub fn body_digest(salt: &[u8; SALT_BYTES], stored: &[u8]) -> Digest {
    let mut key = [0; blake3::KEY_LEN];
    Put(&mut key).bytes(salt).bytes(BODY_DOMAIN);
    Digest(*blake3::keyed_hash(&key, stored).as_bytes())
}

/// Checks the salt and the stored bytes of a block against its row. Bytes behind the block are not looked at.
///
/// # Errors
/// [`DamagedPart::BodyZeroed`] if salt and bytes are all zero (erased, or a lost sector: only a record of the erasure
/// tells), [`DamagedPart::Body`] if the digest is wrong. Contents are never quoted.
pub fn check_block(block: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    let length = row.stored_bytes as usize;
    let block = block.split_first_chunk::<SALT_BYTES>();
    let Some((salt, stored)) = block.and_then(|(salt, rest)| Some((salt, rest.get(..length)?))) else {
        return Err(Invalid::new(DamagedPart::Body, 0, format!("{length} bytes and a salt"), "too few"));
    };
    compare(salt, stored, row)
}

/// Checks a salt and the bytes of a body, which is stored as it is, against the digest its row names.
///
/// # Errors
/// As [`check_block`]; [`DamagedPart::Newer`] if only a newer program can read the body.
pub fn check_body(salt: &[u8; SALT_BYTES], bytes: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    compare(salt, bytes, row)?;
    if row.is_known() {
        return Ok(());
    }
    Err(Invalid::new(DamagedPart::Newer, 0, "a body of format 3", format!("codec {}", row.codec)))
}

fn compare(salt: &[u8; SALT_BYTES], stored: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    if body_digest(salt, stored) == row.digest {
        return Ok(());
    }
    let (part, found) = if is_zero(salt) && is_zero(stored) {
        (DamagedPart::BodyZeroed, "zeros")
    } else {
        (DamagedPart::Body, "other bytes")
    };
    Err(Invalid::new(part, 0, format!("digest {}", row.digest), found))
}
