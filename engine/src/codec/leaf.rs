//! An event as a proof commits to it: the same bytes for ever, even if its frame moves or bodies are erased.
//!
//! ```text
//! domain 16 | store 16 | seq 8 | recorded time 8 | envelope 56 | rows 4 | rows, 52 each | payload
//! ```
//!
//! A leaf is taken from the spine, which neither an erasure nor a seal changes. Each row of the body table is there without its place: the
//! position of the row's salt (8 bytes), the ordinal of its event in the frame (4) and the flag for a body of the same frame. Bodies are
//! there by their salted digests alone.

use super::fields::{Fields, Put};
use super::frame::{EventRef, Frame};
use super::{ENVELOPE_BYTES, Envelope, SALT_BYTES, body_digest, envelope};
use crate::ids::{Digest, Micros, Seq, StoreId};

/// Begins every leaf.
pub const LEAF_DOMAIN: &[u8; 16] = b"acpdb event v1\0\0";
/// A row of the body table without its place.
const ROW_BYTES: usize = 52;
const HEAD_BYTES: usize = 16 + 16 + 8 + 8 + ENVELOPE_BYTES + 4;

/// The bytes of a leaf.
pub(crate) fn leaf_bytes(store: StoreId, frame: &Frame, event: &EventRef<'_>) -> Vec<u8> {
    let rows = event.row_count();
    let mut bytes = vec![0; HEAD_BYTES + rows * ROW_BYTES];
    let mut put = Put(&mut bytes);
    put.bytes(LEAF_DOMAIN)
        .bytes(store.as_bytes())
        .u64(event.seq.get())
        .i64(frame.time().get())
        .bytes(event.envelope_bytes())
        .u32(u32::try_from(rows).unwrap_or(u32::MAX));
    for index in 0..rows {
        let row = event.row_bytes(index);
        let part = |from: usize, to: usize| row.get(from..to).unwrap_or_default();
        put.bytes(part(0, 32)).bytes(part(40, 48)).bytes(part(52, 55));
        put.u8(part(55, 56).first().copied().unwrap_or_default() & !envelope::ROW_IN_FRAME);
        put.bytes(part(56, 64));
    }
    // As it stands in the spine: a proof is made and checked without a key.
    bytes.extend_from_slice(event.payload);
    bytes
}

/// The contents of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafEvent<'a> {
    /// The store it is of.
    pub store: StoreId,
    /// Its seq.
    pub seq: Seq,
    /// When it was recorded.
    pub time: Micros,
    /// Its envelope.
    pub envelope: Envelope,
    /// Its payload, as its kind and version archive it.
    pub payload: &'a [u8],
    /// Its bodies, in order.
    pub rows: Vec<LeafRow>,
}

/// A body in a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeafRow {
    /// Digest of the body.
    pub digest: Digest,
    /// Length of the body.
    pub bytes: u32,
    /// Whether [`body_digest`] makes this digest: nothing is packed, encrypted or of a newer form.
    pub is_plain: bool,
}

impl LeafRow {
    /// Whether these are the salt and the bytes of the body.
    pub fn is_of(&self, salt: &[u8; SALT_BYTES], body: &[u8]) -> bool {
        self.is_plain && self.bytes as usize == body.len() && body_digest(salt, body) == self.digest
    }
}

impl<'a> LeafEvent<'a> {
    /// Reads a leaf. `None`: the bytes are not exactly one leaf.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let mut fields = Fields(head);
        let domain: [u8; 16] = fields.array();
        let (store, seq, time) = (StoreId(fields.array()), Seq(fields.u64()), Micros(fields.i64()));
        let envelope: [u8; ENVELOPE_BYTES] = fields.array();
        let rows = fields.u32() as usize;
        let (envelope, form) = Envelope::decode(&envelope);
        let (rows, payload) = rest.split_at_checked(rows.checked_mul(ROW_BYTES)?)?;
        if domain != *LEAF_DOMAIN || payload.len() != form.bytes as usize {
            return None;
        }
        let rows = rows.chunks_exact(ROW_BYTES).map(|row| {
            let mut fields = Fields(row);
            let (digest, bytes, stored) = (Digest(fields.array()), fields.u32(), fields.u32());
            let is_plain = stored == bytes && fields.array() == [0, 0, 1, 0] && fields.u64() == 0;
            LeafRow { digest, bytes, is_plain }
        });
        Some(Self { store, seq, time, envelope, payload, rows: rows.collect() })
    }
}
