//! An event as a proof commits to it: the same bytes for ever, even if its frame moves or bodies are erased.
//!
//! ```text
//! domain 16 | store 16 | seq 8 | recorded time 8 | stream 16 | envelope 32 | rows 4 | rows, 42 each | payload
//! ```
//!
//! A leaf is taken from the content of a frame, which neither an erasure nor a seal changes. Numbers of the frame are not in it: the
//! ordinal of the stream in the envelope, which reads 0; and of each row of the body table the offset of the salt and the ordinal of the
//! event. Bodies are there by their salted digests alone.

use super::envelope::DiskEnvelope;
use super::fields::{FieldReader, Put};
use super::frame::{EventRef, Frame};
use super::{ENVELOPE_BYTES, Envelope, SALT_BYTES, body_digest};
use crate::ids::{Digest, Micros, Seq, StoreId, StreamId};

/// Begins every leaf.
pub const LEAF_DOMAIN: &[u8; 16] = b"acpdb event v2\0\0";
/// A row of the body table without its place.
const ROW_BYTES: usize = 42;
const HEAD_BYTES: usize = 16 + 16 + 8 + 8 + 16 + ENVELOPE_BYTES + 4;

/// The bytes of a leaf.
pub(crate) fn leaf_bytes(store: StoreId, frame: &Frame, event: &EventRef<'_>) -> Vec<u8> {
    let rows = event.row_count();
    let mut bytes = vec![0; HEAD_BYTES + rows * ROW_BYTES];
    let envelope = event.envelope_bytes();
    let mut put = Put(&mut bytes);
    put.bytes(LEAF_DOMAIN)
        .bytes(store.as_bytes())
        .u64(event.seq.get())
        .i64(frame.time().get())
        .bytes(event.envelope.stream.as_bytes())
        .bytes(envelope.get(..2).unwrap_or_default())
        .u16(0)
        .bytes(envelope.get(4..).unwrap_or_default())
        .u32(u32::try_from(rows).unwrap_or(u32::MAX));
    for index in 0..rows {
        let row = event.row_bytes(index);
        let part = |from: usize, to: usize| row.get(from..to).unwrap_or_default();
        put.bytes(part(0, 32)).bytes(part(36, 44)).bytes(part(46, 48));
    }
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
    /// Its payload.
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
    /// Whether [`body_digest`] of the body makes this digest: nothing is packed or of a newer form.
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
        let mut fields = FieldReader(head);
        let domain: [u8; 16] = fields.array();
        let (store, seq, time) = (StoreId(fields.array()), Seq(fields.u64()), Micros(fields.i64()));
        let stream = StreamId(fields.array());
        let envelope = DiskEnvelope::decode(&fields.array::<ENVELOPE_BYTES>());
        let rows = fields.u32() as usize;
        let (rows, payload) = rest.split_at_checked(rows.checked_mul(ROW_BYTES)?)?;
        if domain != *LEAF_DOMAIN || envelope.stream != 0 || payload.len() != envelope.payload_bytes as usize
        {
            return None;
        }
        let rows = rows.chunks_exact(ROW_BYTES).map(|row| {
            let mut fields = FieldReader(row);
            let (digest, stored, bytes) = (Digest(fields.array()), fields.u32(), fields.u32());
            LeafRow { digest, bytes, is_plain: stored == bytes && fields.array() == [0, 0] }
        });
        Some(Self { store, seq, time, envelope: envelope.of(stream), payload, rows: rows.collect() })
    }
}
