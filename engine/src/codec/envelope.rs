//! An event as the log sees it: an envelope, payload bytes, and rows that name its bodies. And bodies: their digest, and their block on
//! disk (salt, bytes, zero padding).

use std::sync::Arc;

use super::fields::{Fields, Put, is_zero};
use super::{BODY_ROW_BYTES, DIGEST_OF_BODY, ENVELOPE_BYTES, Invalid, Part, SALT_BYTES};
use crate::ids::{Digest, Micros, Origin, Position, StreamId};

/// Stands for the version of an event whose payload has a form that this program does not know. Like an event of any
/// unknown version, such an event is kept and counted, and no view shows it.
pub(crate) const NEWER_VERSION: u16 = u16::MAX;

/// The codec of a body that is stored as it is.
const CODEC_NONE: u8 = 0;
/// Stands for "the host gave no time".
const NO_HOST_TIME: i64 = i64::MIN;
/// Stands for the codec of a body whose row has a value that this program does not know.
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
    /// When it happened, as the host says.
    pub host_time: Option<Micros>,
}

/// The fields of an envelope beside [`Envelope`]: the length of the payload, and its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PayloadForm {
    pub(crate) bytes: u32,
    /// No flag has a meaning yet.
    pub(crate) flags: u8,
}

impl PayloadForm {
    /// Whether this program can read such a payload. It keeps other payloads, and says so.
    pub(crate) fn is_known(self) -> bool {
        self.flags == 0
    }
}

impl Envelope {
    pub(crate) fn encode(&self, form: PayloadForm) -> [u8; ENVELOPE_BYTES] {
        let mut bytes = [0; ENVELOPE_BYTES];
        Put(&mut bytes)
            .u16(self.kind)
            .u16(self.version)
            .u32(form.bytes)
            .u8(form.flags)
            // Reserved.
            .bytes(&[0; 7])
            .bytes(self.stream.as_bytes())
            .bytes(self.origin.as_bytes())
            .i64(self.host_time.map_or(NO_HOST_TIME, Micros::get));
        bytes
    }

    /// The envelope, and the form of its payload.
    pub(crate) fn decode(bytes: &[u8]) -> (Self, PayloadForm) {
        // The length is known here, so that no field asks again whether it is there.
        let mut fields = Fields(bytes.first_chunk::<ENVELOPE_BYTES>().unwrap_or(&[0; ENVELOPE_BYTES]));
        let (kind, version, payload_bytes) = (fields.u16(), fields.u16(), fields.u32());
        let (flags, reserved) = (fields.u8(), fields.array::<7>());
        let (stream, origin) = (StreamId(fields.array()), Origin(fields.array()));
        let host_time = Some(fields.i64()).filter(|time| *time != NO_HOST_TIME).map(Micros);
        // Reserved bits are flags that have no name yet.
        let flags = if reserved == [0; 7] { flags } else { u8::MAX };
        let form = PayloadForm { bytes: payload_bytes, flags };
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
        /// BLAKE3 of the bytes, if the caller knows it.
        content: Option<blake3::Hash>,
    },
    /// Stored earlier: the row points there.
    Existing {
        /// Digest of the stored body.
        digest: Digest,
        /// Its length.
        bytes: u32,
        /// Where its salt and bytes are.
        position: Position,
        /// The form of the stored bytes.
        form: BodyForm,
    },
    /// Not there any more: its block is zeros, as if it had been erased. Such bodies are in copies of a store.
    Lost {
        /// Digest of the lost body.
        digest: Digest,
        /// Its length.
        bytes: u32,
        /// The form of its stored bytes, which says how much room it has.
        form: BodyForm,
    },
}

/// The stored form of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BodyForm {
    /// Length of the stored bytes.
    pub stored_bytes: u32,
    /// How the body is packed.
    pub codec: u8,
    /// How the digest is made.
    pub digest_algorithm: u8,
}

impl BodyForm {
    /// The form of a body that is not packed.
    pub const fn plain(bytes: u32) -> Self {
        Self { stored_bytes: bytes, codec: CODEC_NONE, digest_algorithm: DIGEST_OF_BODY }
    }
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
    /// The stream of its event.
    pub stream: StreamId,
    /// Length of the bytes that its frame stores: the length of the body, if nothing is packed there.
    pub stored_bytes: u32,
    /// Where the salt is; the bytes follow it.
    pub position: Position,
    /// The codec of the packed bytes; 0: not packed.
    pub codec: u8,
    /// How the digest is made: 1 is salted BLAKE3 of the body.
    pub digest_algorithm: u8,
}

impl BodyRow {
    /// Whether this program can read such a body as it is stored.
    pub(crate) fn is_known(&self) -> bool {
        self.digest_algorithm == DIGEST_OF_BODY && self.codec == CODEC_NONE && self.stored_bytes == self.bytes
    }

    /// The form of the stored bytes.
    pub fn form(&self) -> BodyForm {
        let Self { stored_bytes, codec, digest_algorithm, .. } = *self;
        BodyForm { stored_bytes, codec, digest_algorithm }
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

/// Where in a row the ordinal of its event stands: behind digest, position and two lengths.
pub(super) const ROW_EVENT_OFFSET: usize = 32 + 8 + 4 + 4;

impl DiskRow {
    /// The row with its place in the log, given the position of its frame.
    pub(super) fn resolve(&self, frame: Position) -> BodyRow {
        let offset = if self.in_frame { frame.0 } else { 0 };
        BodyRow { position: Position(self.row.position.0.saturating_add(offset)), ..self.row }
    }

    pub(crate) fn new(
        (event, stream): (u32, StreamId),
        (digest, bytes): (Digest, u32),
        form: BodyForm,
        position: Position,
        in_frame: bool,
    ) -> Self {
        let BodyForm { stored_bytes, codec, digest_algorithm } = form;
        let row = BodyRow { event, digest, bytes, stream, stored_bytes, position, codec, digest_algorithm };
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
            // Reserved, and eight bytes more behind the flags.
            .u8(0)
            .u8(row.digest_algorithm)
            .u8(if self.in_frame { ROW_IN_FRAME } else { 0 });
        bytes
    }

    /// The row; the stream is not in it. [`BodyRow::is_known`] says whether this program can read the body.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes.first_chunk::<BODY_ROW_BYTES>().unwrap_or(&[0; BODY_ROW_BYTES]));
        let digest = Digest(fields.array());
        let position = Position(fields.u64());
        let (bytes, stored_bytes, event) = (fields.u32(), fields.u32(), fields.u32());
        let (codec, other, digest_algorithm, flags) = (fields.u8(), fields.u8(), fields.u8(), fields.u8());
        let reserved = fields.u64();
        // The body cannot be read without knowing the unknown bits.
        let codec = if flags > ROW_IN_FRAME || other != 0 || reserved != 0 { NEWER_CODEC } else { codec };
        let stream = StreamId::STORE;
        let form = BodyForm { stored_bytes, codec, digest_algorithm };
        let Self { row, .. } = Self::new((event, stream), (digest, bytes), form, position, false);
        Self { row, in_frame: flags & ROW_IN_FRAME != 0 }
    }
}

/// Separates body digests from all other digests.
pub const BODY_DOMAIN: &[u8; 16] = b"acpdb body v1\0\0\0";
/// The digest of a body: BLAKE3(domain, salt, length as u64, BLAKE3(bytes)).
///
/// Without the salt the digest of a short body cannot be guessed, so a body can be erased for good while its
/// digest stays.
pub fn body_digest(salt: &[u8; SALT_BYTES], bytes: &[u8]) -> Digest {
    salted(salt, bytes.len(), &blake3::hash(bytes))
}

/// [`body_digest`] when BLAKE3 of the bytes is known.
pub(crate) fn salted(salt: &[u8; SALT_BYTES], length: usize, content: &blake3::Hash) -> Digest {
    // Hashed in one piece: feeding a hasher costs as much again as these two blocks.
    let mut message = [0; BODY_DOMAIN.len() + SALT_BYTES + 8 + blake3::OUT_LEN];
    let length = u64::try_from(length).unwrap_or(u64::MAX);
    Put(&mut message).bytes(BODY_DOMAIN).bytes(salt).u64(length).bytes(content.as_bytes());
    Digest(*blake3::hash(&message).as_bytes())
}

/// Checks the salt and bytes of a block against its row.
///
/// `block` is the salt, the stored bytes of the body, and any padding that was read with them.
///
/// # Errors
/// [`Part::BodyZeroed`] if salt and bytes are all zero (erased, or a lost sector: only a record of the erasure
/// tells), [`Part::Body`] if the digest or the padding is wrong, [`Part::Newer`] if only a newer program can tell.
/// Contents are never quoted.
pub fn check_block(block: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    let fail = |part, expected: String, found: &str| Err(Invalid::new(part, 0, expected, found));
    let length = usize::try_from(row.stored_bytes).unwrap_or(usize::MAX);
    let Some((salt, rest)) = block.split_first_chunk::<SALT_BYTES>() else {
        return fail(Part::Body, format!("{length} bytes and a salt"), "too few");
    };
    let Some((bytes, padding)) = rest.split_at_checked(length) else {
        return fail(Part::Body, format!("{length} bytes"), "too few");
    };
    match check_stored(salt, bytes, row) {
        Ok(()) if !is_zero(padding) => fail(Part::Body, "zeros after the body".to_owned(), "other bytes"),
        checked => checked,
    }
}

/// Checks a salt and the stored bytes of a body against the digest that its row names.
fn check_stored(salt: &[u8; SALT_BYTES], stored: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    if row.is_known() {
        return check_body(salt, stored, row);
    }
    if stored.len() != row.stored_bytes as usize {
        let (expected, found) = (format!("{} bytes", row.stored_bytes), format!("{} bytes", stored.len()));
        return Err(Invalid::new(Part::Body, 0, expected, found));
    }
    if is_zero(salt) && is_zero(stored) {
        return Err(Invalid::new(Part::BodyZeroed, 0, format!("digest {}", row.digest), "zeros"));
    }
    Err(newer(row))
}

/// The report that a body has a form which this program does not know.
pub(crate) fn newer(row: &BodyRow) -> Invalid {
    let found = format!("codec {}, digest {}", row.codec, row.digest_algorithm);
    Invalid::new(Part::Newer, 0, "a body of format 2", found)
}

/// Checks a salt and the bytes of a body against the digest its row names.
///
/// # Errors
/// As [`check_block`].
pub fn check_body(salt: &[u8; SALT_BYTES], bytes: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    if !row.is_known() {
        return Err(newer(row));
    }
    compare(salted(salt, bytes.len(), &blake3::hash(bytes)), salt, bytes, row)
}

fn compare(computed: Digest, salt: &[u8; SALT_BYTES], bytes: &[u8], row: &BodyRow) -> Result<(), Invalid> {
    if computed == row.digest {
        return Ok(());
    }
    let (part, found) = if is_zero(salt) && is_zero(bytes) {
        (Part::BodyZeroed, "zeros")
    } else {
        (Part::Body, "other bytes")
    };
    Err(Invalid::new(part, 0, format!("digest {}", row.digest), found))
}
