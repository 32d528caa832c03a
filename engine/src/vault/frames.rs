//! The two doors of the room: a commit before it has its place, and a frame that was read.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::units::{FrameSeal, StoreKey};
use crate::codec::fields::FieldReader;
use crate::codec::{
    BodyRow, DamagedPart, DiskRow, EncodeError, FRAME_HEADER_BYTES, FRAME_NONCE_BYTES, Frame, FrameParts,
    Invalid, PreparedFrame, SALT_BYTES, SPINE_BYTES_MAX, SealedParts, body_digest, is_zero,
};

/// How the frames of a store are read.
#[derive(Clone, Default)]
pub(crate) enum Vault {
    /// The store is not encrypted.
    #[default]
    Plain,
    /// The store is encrypted, and its key was not given: only stored bytes are looked at.
    Closed,
    /// The store is encrypted, and this is its key.
    Open(Arc<StoreKey>),
}

impl std::fmt::Debug for Vault {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Closed => "Closed",
            Self::Open(_) => "Open(..)",
        })
    }
}

impl Vault {
    /// Whether the store is encrypted.
    pub(crate) const fn is_encrypted(&self) -> bool {
        !matches!(self, Self::Plain)
    }

    /// Whether the store is encrypted and its key was not given.
    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self, Self::Closed)
    }

    /// The key, if the store has one and it was given.
    pub(crate) fn key(&self) -> Option<&StoreKey> {
        if let Self::Open(key) = self { Some(key) } else { None }
    }

    /// A frame that was read and whose digests are right, with its spine opened, if it is sealed and the key was given.
    ///
    /// # Errors
    /// [`DamagedPart::Spine`] if another key sealed it, if it stands at another place than its writer gave it, or if it is sealed in a store that is
    /// not encrypted, or the other way round: only a holder of the key can put a frame into an encrypted store.
    pub(crate) fn open(&self, frame: Frame) -> Result<Frame, Invalid> {
        let fail = |expected: &str, found: &str| {
            Err(Invalid::new(DamagedPart::Spine, FRAME_HEADER_BYTES, expected, found))
        };
        match (self, frame.header().is_sealed()) {
            (Self::Plain, false) | (Self::Closed, true) => return Ok(frame),
            (Self::Plain, true) => return fail("a frame as it is", "a sealed one"),
            (_, false) => return fail("a sealed frame", "one that is not sealed"),
            (Self::Open(_), true) => {}
        }
        let (Some(key), Some(block)) = (self.key(), frame.seal_block()) else {
            return fail("a sealed frame", "one without its block");
        };
        let mut fields = FieldReader(block);
        let nonce: [u8; FRAME_NONCE_BYTES] = fields.array();
        let (key_id, spine_bytes): ([u8; 8], u32) = (fields.array(), fields.u32());
        if key_id != key.id() {
            return fail("a frame under the store's key", "one under another");
        }
        let header = frame.header();
        let tag = header.tag_under(&key.tag_key());
        // In the same time for every tag.
        if tag ^ header.tag != 0 {
            return fail("a tag of the store's key for this place", "another tag");
        }
        let (plain, sealed) = frame.plain_and_spine();
        let opened = if spine_bytes as usize <= SPINE_BYTES_MAX {
            key.frame(nonce).open_spine(plain, spine_bytes, sealed)
        } else {
            None
        };
        let Some(spine) = opened else { return fail("a spine that the store's key opens", "another") };
        frame.opened(&spine)
    }

    /// The bytes of a body, from its stored bytes, whose digest is right.
    ///
    /// # Errors
    /// [`DamagedPart::Body`] if the key does not open it.
    pub(crate) fn body(&self, row: &BodyRow, stored: &[u8]) -> Result<Vec<u8>, Invalid> {
        let Some(nonce) = &row.unit else { return Ok(stored.to_vec()) };
        let opened = self.key().and_then(|key| key.open_body(nonce, (row.codec, row.bytes), stored));
        opened
            .ok_or_else(|| Invalid::new(DamagedPart::Body, 0, "a body that the store's key opens", "another"))
    }
}

impl StoreKey {
    /// Seals a commit before it has its place. `nonce`: random bytes, drawn for this commit alone.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`] if it is over a limit once it is sealed.
    pub(crate) fn seal(
        &self,
        frame: PreparedFrame,
        nonce: [u8; FRAME_NONCE_BYTES],
    ) -> Result<PreparedFrame, EncodeError> {
        let FrameParts { streams, rows, spine, bodies } = frame.parts();
        let seal = self.frame(nonce);
        let mut plain = streams.to_vec();
        let mut sealed = Vec::with_capacity(bodies.len());
        let mut placed: FxHashMap<u32, DiskRow> = FxHashMap::default();
        for row in &rows {
            let known = placed.get(&row.offset).copied();
            let of_key = known.map_or_else(|| sealed_block(&seal, row, bodies, &mut sealed), Ok)?;
            placed.insert(row.offset, of_key);
            plain.extend_from_slice(&DiskRow { event: row.event, ..of_key }.encode());
        }
        let (block, spine) = seal.spine(&plain, spine).ok_or_else(too_large)?;
        let (spine_bytes, tag_key) = (spine.len(), self.tag_key());
        let content = [&block[..], &plain, &spine].concat();
        frame.sealed(SealedParts { content, spine_bytes, bodies: sealed, tag_key })
    }
}

/// The refusal of a unit that is over its limit.
fn too_large() -> EncodeError {
    let limit = super::UNIT_BYTES_MAX as u64;
    EncodeError::TooLarge { what: "bytes of a body", actual: limit.saturating_add(1), limit }
}

/// Puts the block of a row behind those that are sealed, and returns the row as it is then.
fn sealed_block(
    seal: &FrameSeal<'_>,
    row: &DiskRow,
    bodies: &[u8],
    sealed: &mut Vec<u8>,
) -> Result<DiskRow, EncodeError> {
    let narrow = |length: usize| u32::try_from(length).map_err(|_| too_large());
    let offset = narrow(sealed.len())?;
    let length = SALT_BYTES.saturating_add(row.stored_bytes as usize);
    let block = bodies.get(row.offset as usize..).and_then(|rest| rest.get(..length));
    let block = block.unwrap_or(&[]);
    let stored = block.split_first_chunk::<SALT_BYTES>().filter(|(salt, _)| !is_zero(*salt));
    let Some((salt, body)) = stored else {
        // A lost body: its block is zeros, and its row says what it was.
        sealed.extend_from_slice(block);
        return Ok(DiskRow { offset, ..*row });
    };
    let unit = seal.body(offset, body).ok_or_else(too_large)?;
    sealed.extend_from_slice(salt);
    sealed.extend_from_slice(&unit.stored);
    let (digest, stored_bytes) = (body_digest(salt, &unit.stored), narrow(unit.stored.len())?);
    Ok(DiskRow { digest, offset, stored_bytes, codec: unit.codec, ..*row })
}
