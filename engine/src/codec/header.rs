//! The header of a frame, and the link that binds it to all frames before it.

use super::fields::{Fields, Put, is_zero, put_trailing_checksum, trailing_checksum};
use super::{
    BODY_ROW_BYTES, CHECKSUM_CRC32C, COMMIT_EVENT_COUNT_MAX, DIGEST_BLAKE3, ENVELOPE_BYTES, FORMAT_VERSION,
    FRAME_BYTES_MAX, FRAME_HEADER_BYTES, Invalid, PIECE_ROW_BYTES, Part,
};
use crate::ids::{Digest, Link, Micros, Position, Seq, StoreId};

/// First bytes of a frame.
pub const FRAME_MAGIC: [u8; 4] = *b"ACPF";
/// Separates links from all other digests.
const LINK_DOMAIN: &[u8; 16] = b"acpdb link v1\0\0\0";
/// The link covers the header up to here: all but the two checksums.
const LINKED_BYTES: usize = 152;

/// The header of a frame: what is known of a commit before its spine is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the spine, a multiple of 16.
    pub spine_bytes: u32,
    /// Length of the bodies, a multiple of 16.
    pub bodies_bytes: u32,
    /// How many events, at least 1.
    pub event_count: u32,
    /// How many rows the body table has.
    pub row_count: u32,
    /// The seq of the first event; the others follow.
    pub first_seq: Seq,
    /// When all its events were recorded, as the clock said. Order is that of seqs.
    pub time: Micros,
    /// The highest time of this frame and of all before it. Clocks are set back; this never goes back.
    pub time_max: Micros,
    /// Where the frame is.
    pub position: Position,
    /// Everything before this position was durable when the frame was written.
    pub durable: Position,
    /// The store it belongs to.
    pub store: StoreId,
    /// The link of the frame before; zero in the first frame of a store.
    pub previous: Link,
    /// BLAKE3 of the spine.
    pub spine_digest: Digest,
    /// How many pieces the spine is cut into; 0 if it is one.
    pub piece_count: u32,
    /// CRC-32C of the spine; of its table of pieces if it has one.
    pub spine_checksum: u32,
}

impl FrameHeader {
    /// The header as it is on disk.
    pub fn encode(&self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        let mut put = Put(&mut bytes);
        put.bytes(&FRAME_MAGIC).u8(1).u8(DIGEST_BLAKE3).u8(CHECKSUM_CRC32C).u8(0);
        put.u32(self.spine_bytes).u32(self.bodies_bytes).u32(self.event_count).u32(self.row_count);
        put.u64(self.first_seq.0).i64(self.time.0).u64(self.position.0).u64(self.durable.0);
        put.bytes(self.store.as_bytes()).bytes(self.previous.as_bytes()).bytes(self.spine_digest.as_bytes());
        put.u32(self.piece_count).skip(4).i64(self.time_max.0).u32(self.spine_checksum);
        put_trailing_checksum(&mut bytes);
        bytes
    }

    /// Reads and checks a header; `bytes` may go on after it.
    ///
    /// # Errors
    /// [`Part::FrameHeader`] for bytes that are no frame header, [`Part::Newer`] for one that has its checksum and says
    /// what this program does not know: it is sound, and was written by a newer program.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        let fail = |offset, expected: &str, found: String| {
            Err(Invalid::new(Part::FrameHeader, offset, expected, found))
        };
        let Some(bytes) = bytes.first_chunk::<FRAME_HEADER_BYTES>() else {
            return fail(0, "160 bytes", format!("{} bytes", bytes.len()));
        };
        let mut fields = Fields(bytes);
        if fields.array() != FRAME_MAGIC {
            return fail(0, "the frame magic", "other bytes".to_owned());
        }
        let (computed, stored) = trailing_checksum(bytes);
        if computed != stored {
            return fail(156, "a matching checksum", format!("{stored:08x}, not {computed:08x}"));
        }
        let algorithms = (fields.u8(), fields.u8(), fields.u8());
        let flags = fields.u8();
        let reserved = bytes.get(140..144).is_some_and(is_zero);
        if algorithms != (1, DIGEST_BLAKE3, CHECKSUM_CRC32C) || flags != 0 || !reserved {
            let (version, digest, checksum) = algorithms;
            let found = format!("version {version}, algorithms {digest} and {checksum}, flags {flags:#04x}");
            return Err(Invalid::new(
                Part::Newer,
                4,
                "a frame of version 1 with flags that are known",
                found,
            ));
        }
        let header = Self {
            spine_bytes: fields.u32(),
            bodies_bytes: fields.u32(),
            event_count: fields.u32(),
            row_count: fields.u32(),
            first_seq: Seq(fields.u64()),
            time: Micros(fields.i64()),
            time_max: bytes.get(144..).map_or(Micros::default(), |rest| Micros(Fields(rest).i64())),
            position: Position(fields.u64()),
            durable: Position(fields.u64()),
            store: StoreId(fields.array()),
            previous: Link(fields.array()),
            spine_digest: Digest(fields.array()),
            piece_count: fields.u32(),
            spine_checksum: {
                fields.skip(12);
                fields.u32()
            },
        };
        header.check_sizes()?;
        Ok(header)
    }

    fn check_sizes(&self) -> Result<(), Invalid> {
        let wide = |value: u32| u64::from(value);
        let fixed = wide(self.event_count) * ENVELOPE_BYTES as u64
            + wide(self.row_count) * BODY_ROW_BYTES as u64
            + wide(self.piece_count) * PIECE_ROW_BYTES as u64;
        let sound = self.event_count > 0
            && self.event_count as usize <= COMMIT_EVENT_COUNT_MAX
            && self.spine_bytes.is_multiple_of(16)
            && self.bodies_bytes.is_multiple_of(16)
            && self.piece_count <= self.event_count
            && self.time <= self.time_max
            && fixed <= wide(self.spine_bytes)
            && self.frame_bytes() <= FRAME_BYTES_MAX as u64
            && self.first_seq.0 > 0
            && self.first_seq.0.checked_add(wide(self.event_count)).is_some()
            && self.durable <= self.position;
        if sound {
            return Ok(());
        }
        let found = format!(
            "spine {}, bodies {}, events {}, rows {}, first seq {}",
            self.spine_bytes, self.bodies_bytes, self.event_count, self.row_count, self.first_seq
        );
        Err(Invalid::new(Part::FrameHeader, 8, "sizes within the limits", found))
    }

    /// Length of the whole frame; at most [`FRAME_BYTES_MAX`] once decoded.
    pub fn frame_bytes(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.spine_bytes) + u64::from(self.bodies_bytes)
    }

    /// The seq of the last event.
    pub fn last_seq(&self) -> Seq {
        self.first_seq.plus(u64::from(self.event_count)).before()
    }

    /// Where the frame ends and the next one begins.
    pub fn end(&self) -> Position {
        Position(self.position.0.saturating_add(self.frame_bytes() / Position::GRAIN_BYTES))
    }

    /// Whether `bytes` begin with a header of this store that says it belongs at `position`, whatever version of the format it is
    /// of. These fields stay where they are in all versions, so that no program takes what a newer one wrote for torn bytes.
    pub fn is_newer_at(bytes: &[u8], position: Position, store: StoreId) -> bool {
        let field = |at: usize, length: usize| bytes.get(at..at.saturating_add(length)).unwrap_or(&[]);
        field(40, 8) == position.0.to_le_bytes()
            && field(56, 16) == store.as_bytes()
            && Self::decode(bytes).is_err_and(|invalid| invalid.part == Part::Newer)
    }

    /// The link of this frame: BLAKE3(domain, header without its checksums). Store id, position, previous link
    /// and spine digest are header fields, so one flipped bit anywhere before changes it.
    pub fn link(&self) -> Link {
        link_of(&self.encode())
    }
}

/// The link of the frame with this encoded header.
pub(crate) fn link_of(header: &[u8; FRAME_HEADER_BYTES]) -> Link {
    let mut message = [0; LINK_DOMAIN.len() + LINKED_BYTES];
    Put(&mut message).bytes(LINK_DOMAIN).bytes(header.get(..LINKED_BYTES).unwrap_or(header));
    Link(*blake3::hash(&message).as_bytes())
}

const _: () = assert!(FORMAT_VERSION == 1);
