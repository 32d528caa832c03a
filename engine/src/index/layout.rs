//! Rows of the index's two tables: keys and values of one type each, and their bytes.
//!
//! ```text
//! names   (kind, name as it is kept, stream) -> (newest seq of the stream that bears it, checksum)
//! meta    ()                                 -> version, store, watermark, checksum
//! ```
//!
//! The checksum covers key and value: redb itself hands out flipped bits without a word. Long names are cut, see [`NameKey::new`].

use std::cmp::Ordering;

use crate::codec::fields::{FieldReader, Put, put_trailing_checksum, trailing_checksum};
use crate::ids::{Link, Position, Seq, StoreId, StreamId};

use super::{INDEX_VERSION, Identity, NameKind, Watermark};

/// A fault in an index, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexFault(pub(super) String);

impl IndexFault {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

fn damaged(what: &str) -> IndexFault {
    IndexFault(format!("a {what} row is damaged"))
}

/// Bytes of the row about the index.
const META_BYTES: usize = 92;

/// The one row about the index itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Meta {
    pub(super) identity: Identity,
    pub(super) watermark: Watermark,
}

impl Meta {
    pub(super) fn encode(&self) -> [u8; META_BYTES] {
        let Self { identity, watermark } = self;
        let mut bytes = [0; META_BYTES];
        let place = |position: Option<Position>| position.map_or(0, |position| position.0);
        Put(&mut bytes)
            .u32(INDEX_VERSION)
            .u32(identity.format)
            .bytes(identity.store.as_bytes())
            .u64(watermark.seq.0)
            .u64(place(watermark.last))
            .u64(place(watermark.end))
            .bytes(watermark.link.as_bytes());
        put_trailing_checksum(&mut bytes);
        bytes
    }

    /// Reads the row. A row of another version is not looked at further.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, IndexFault> {
        let mut fields = FieldReader(bytes);
        let version = fields.u32();
        if version != INDEX_VERSION && bytes.len() >= 4 {
            return Err(IndexFault(format!("it has version {version}, this program makes {INDEX_VERSION}")));
        }
        let (computed, stored) = trailing_checksum(bytes);
        if bytes.len() != META_BYTES || computed != stored {
            return Err(damaged("meta"));
        }
        let format = fields.u32();
        let identity = Identity { store: StoreId(fields.array()), format };
        let seq = Seq(fields.u64());
        let mut place = || Some(fields.u64()).filter(|place| *place != 0).map(Position);
        let (last, end) = (place(), place());
        let watermark = Watermark { seq, last, end, link: Link(fields.array()) };
        Ok(Self { identity, watermark })
    }
}

/// Names of up to so many bytes are kept whole.
const WHOLE_BYTES_MAX: usize = 19;
/// Bytes that are kept of the beginning of a longer name.
const START_BYTES: usize = 14;
/// Bytes that are kept of the digest of a longer name.
const DIGEST_BYTES: usize = 6;
/// Bytes of a name's value.
const VALUE_BYTES: usize = 12;
/// Most bytes that are kept.
const KEPT_BYTES_MAX: usize = START_BYTES + DIGEST_BYTES;

/// A name of a stream, as a key of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NameKey {
    pub(super) kind: u8,
    length: u8,
    bytes: [u8; KEPT_BYTES_MAX],
    pub(super) stream: StreamId,
}

impl NameKey {
    /// The key of a name: all of it, or of a longer one its beginning and a digest. Call ids and paths are long, and would be most of an index; a
    /// caller that asks for one knows it whole. Two names of a stream that share both parts would be one: one pair in 2^48.
    pub(super) fn new(kind: NameKind, text: &str, stream: StreamId) -> Self {
        let text = text.as_bytes();
        let start = text.get(..START_BYTES).filter(|_| text.len() > WHOLE_BYTES_MAX);
        let Some(start) = start else { return Self::of(kind as u8, text, stream) };
        let digest = blake3::hash(text);
        let kept = [start, digest.as_bytes().get(..DIGEST_BYTES).unwrap_or_default()].concat();
        Self::of(kind as u8, &kept, stream)
    }

    /// A key below all keys of names that begin with `text`.
    pub(super) fn before(kind: NameKind, text: &str) -> Self {
        let text = text.as_bytes();
        Self::of(kind as u8, text.get(..START_BYTES).unwrap_or(text), StreamId([0; 16]))
    }

    /// A key of these parts; what does not fit is left out.
    pub(super) fn of(kind: u8, kept: &[u8], stream: StreamId) -> Self {
        let mut bytes = [0; KEPT_BYTES_MAX];
        bytes.iter_mut().zip(kept).for_each(|(to, from)| *to = *from);
        let length = u8::try_from(kept.len().min(KEPT_BYTES_MAX)).unwrap_or_default();
        Self { kind, length, bytes, stream }
    }

    /// The stored form of the name.
    pub(super) fn kept(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// Whether the name as it is kept begins as `other` is kept.
    pub(super) fn begins_with(&self, other: &Self) -> bool {
        self.kind == other.kind && self.kept().starts_with(other.kept())
    }

    /// Whether the full name, of which only this is kept, may begin with `text`: certain, unless both are longer than the kept part.
    pub(super) fn may_begin(&self, text: &str) -> bool {
        let known = if self.kept().len() > WHOLE_BYTES_MAX { START_BYTES } else { usize::MAX };
        let text = text.as_bytes();
        self.kept().starts_with(text.get(..known).unwrap_or(text))
    }

    /// The key as bytes, in the same order. Zero and one end the name, so a zero within is followed by ff.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(KEPT_BYTES_MAX + 19);
        bytes.push(self.kind);
        for byte in self.kept() {
            bytes.push(*byte);
            if *byte == 0 {
                bytes.push(0xff);
            }
        }
        bytes.extend_from_slice(&[0, 1]);
        bytes.extend_from_slice(self.stream.as_bytes());
        bytes
    }

    /// Reads a key.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, IndexFault> {
        let split = bytes.split_last_chunk::<16>();
        let (name, stream) = split.ok_or_else(|| damaged("name"))?;
        let mut kept = Vec::with_capacity(KEPT_BYTES_MAX);
        let mut rest = name.get(1..).unwrap_or_default().iter();
        while let Some(byte) = rest.next() {
            match (byte, rest.as_slice().first()) {
                (0, Some(1)) => break,
                (0, Some(0xff)) => {
                    rest.next();
                    kept.push(0);
                }
                (byte, _) => kept.push(*byte),
            }
        }
        let key = Self::of(name.first().copied().unwrap_or_default(), &kept, StreamId(*stream));
        if key.encode() == bytes { Ok(key) } else { Err(damaged("name")) }
    }

    /// The row's value: the seq, and a checksum over key and seq.
    pub(super) fn value(&self, seq: Seq) -> [u8; VALUE_BYTES] {
        let mut bytes = [0; VALUE_BYTES];
        Put(&mut bytes).u64(seq.0).u32(self.checksum(seq));
        bytes
    }

    fn checksum(&self, seq: Seq) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&self.encode()), &seq.0.to_le_bytes())
    }

    /// Reads and checks the row's value.
    pub(super) fn seq(&self, value: &[u8]) -> Result<Seq, IndexFault> {
        let mut fields = FieldReader(value);
        let (seq, stored) = (Seq(fields.u64()), fields.u32());
        if value.len() == VALUE_BYTES && stored == self.checksum(seq) {
            Ok(seq)
        } else {
            Err(damaged("name"))
        }
    }
}

impl Ord for NameKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.kind, self.kept(), self.stream).cmp(&(other.kind, other.kept(), other.stream))
    }
}

impl PartialOrd for NameKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
