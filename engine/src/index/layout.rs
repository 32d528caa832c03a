//! The rows of an index as bytes: one table, one prefix byte per view, a checksum in every value.
//!
//! ```text
//! 00                          meta     identity, watermark, counts
//! 20 stream number            stream   id, first event and frame, counts, head
//! 30 stream number, seq       part     a frame of the stream: position, events, ordinal within the stream
//! 40 kind, text, 00, number   name     newest seq that bears it
//! f0 seq                      frame    a frame: position, events
//! ```
//!
//! Streams are numbered in order of their first event, which keeps keys short. Numbers in keys are big-endian so that
//! they sort; numbers in values are little-endian. Frames come last because they only ever grow at the end, which keeps
//! the pages of a B-tree full. All views share a table because a commit pays for each table it touches.
//!
//! The checksum covers key and value: redb itself hands out flipped bits without a word.

use crate::ids::{Link, Position, Seq, StoreId, StreamId};

use super::{FramePlace, INDEX_VERSION, Identity, NameKind, StreamEntry, Watermark};

/// Something in an index is not as it should be, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

impl Fault {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

pub(super) const META_KEY: [u8; 1] = [0x00];
const STREAM: u8 = 0x20;
const PART: u8 = 0x30;
const NAME: u8 = 0x40;
const FRAME: u8 = 0xf0;
/// Above every key.
pub(super) const KEYS_END: [u8; 1] = [0xff];

/// A row, or a range of rows: keys and values are bytes.
pub(super) type Row = (Vec<u8>, Vec<u8>);

/// Builds a key or a value.
struct Put(Vec<u8>);

impl Put {
    fn key(prefix: u8) -> Self {
        Self(vec![prefix])
    }

    fn value() -> Self {
        Self(Vec::with_capacity(80))
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, number: u32) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn u64(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    fn place(self, place: FramePlace) -> Self {
        let count = place.last_seq.0.saturating_sub(place.first_seq.0).saturating_add(1);
        self.u64(place.position.0).u32(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// Ends a value with the checksum over `key` and itself.
    fn seal(self, key: Vec<u8>) -> Row {
        let checksum = checksum(&key, &self.0);
        (key, self.u32(checksum).0)
    }
}

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), value)
}

/// Reads a value, field by field; the checksum and the length were checked.
struct Take<'a>(&'a [u8]);

impl<'a> Take<'a> {
    /// Checks length and checksum of a value.
    fn open(key: &[u8], value: &'a [u8], bytes: usize, what: &str) -> Result<Self, Fault> {
        let damaged = || Fault(format!("a {what} row is damaged"));
        let (body, sum) = value.split_last_chunk::<4>().ok_or_else(damaged)?;
        if body.len() != bytes || checksum(key, body) != u32::from_le_bytes(*sum) {
            return Err(damaged());
        }
        Ok(Self(body))
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *head
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    fn place(&mut self, first_seq: u64) -> FramePlace {
        let position = Position(self.u64());
        let count = u64::from(self.u32());
        let last_seq = Seq(first_seq.saturating_add(count).saturating_sub(1));
        FramePlace { first_seq: Seq(first_seq), last_seq, position }
    }
}

/// The one row about the index itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Meta {
    pub(super) version: u32,
    pub(super) identity: Identity,
    pub(super) watermark: Watermark,
    pub(super) stream_count: u32,
    pub(super) frame_count: u64,
}

impl Meta {
    pub(super) fn row(&self) -> Row {
        let Self { version, identity, watermark, stream_count, frame_count } = self;
        Put::value()
            .u32(*version)
            .u32(identity.format)
            .bytes(identity.store.as_bytes())
            .u64(watermark.seq.0)
            .u64(watermark.end.map_or(0, |end| end.0))
            .bytes(watermark.link.as_bytes())
            .u32(*stream_count)
            .u64(*frame_count)
            .seal(META_KEY.to_vec())
    }

    /// Reads the row. A row of another version is not looked at further.
    pub(super) fn read(value: &[u8]) -> Result<Self, Fault> {
        let version = value.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
        if let Some(version) = version.filter(|version| *version != INDEX_VERSION) {
            return Err(Fault(format!("it has version {version}, this program makes {INDEX_VERSION}")));
        }
        let mut take = Take::open(&META_KEY, value, 84, "meta")?;
        let version = take.u32();
        let format = take.u32();
        let identity = Identity { store: StoreId(take.array()), format };
        let seq = Seq(take.u64());
        let end = Some(take.u64()).filter(|end| *end != 0).map(Position);
        let watermark = Watermark { seq, end, link: Link(take.array()) };
        Ok(Self { version, identity, watermark, stream_count: take.u32(), frame_count: take.u64() })
    }
}

pub(super) fn stream_key(number: u32) -> Vec<u8> {
    Put::key(STREAM).bytes(&number.to_be_bytes()).0
}

/// First key after those of all streams.
pub(super) fn streams_end() -> Vec<u8> {
    vec![STREAM + 1]
}

pub(super) fn stream_row(number: u32, entry: &StreamEntry) -> Row {
    Put::value()
        .bytes(entry.stream.as_bytes())
        .u64(entry.first_seq.0)
        .u64(entry.first_frame.first_seq.0)
        .place(entry.first_frame)
        .u64(entry.event_count)
        .u64(entry.head.0)
        .u32(entry.frame_count)
        .seal(stream_key(number))
}

pub(super) fn read_stream(key: &[u8], value: &[u8]) -> Result<StreamEntry, Fault> {
    let mut take = Take::open(key, value, 64, "stream")?;
    let stream = StreamId(take.array());
    let first_seq = Seq(take.u64());
    let frame_first_seq = take.u64();
    let first_frame = take.place(frame_first_seq);
    let event_count = take.u64();
    let head = Seq(take.u64());
    Ok(StreamEntry { stream, first_seq, first_frame, event_count, frame_count: take.u32(), head })
}

pub(super) fn part_key(number: u32, first_seq: Seq) -> Vec<u8> {
    Put::key(PART).bytes(&number.to_be_bytes()).bytes(&first_seq.0.to_be_bytes()).0
}

/// First key after all parts of a stream.
pub(super) fn parts_end(number: u32) -> Vec<u8> {
    successor(Put::key(PART).bytes(&number.to_be_bytes()).0)
}

/// The part that is number `ordinal` (from 0) of its stream.
pub(super) fn part_row(number: u32, ordinal: u32, place: FramePlace) -> Row {
    Put::value().place(place).u32(ordinal).seal(part_key(number, place.first_seq))
}

/// First key after all parts of all streams.
pub(super) fn all_parts_end() -> Vec<u8> {
    vec![PART + 1]
}

/// The stream that a part's key names.
pub(super) fn part_number(key: &[u8]) -> u32 {
    key.get(1..).and_then(<[u8]>::first_chunk).map_or(u32::MAX, |bytes| u32::from_be_bytes(*bytes))
}

/// Ordinal within the stream, and frame.
pub(super) fn read_part(key: &[u8], value: &[u8]) -> Result<(u32, FramePlace), Fault> {
    let mut take = Take::open(key, value, 16, "part")?;
    let first_seq = key.last_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    let place = take.place(first_seq);
    Ok((take.u32(), place))
}

/// Zero ends a text, so a zero within is followed by ff. No number of a stream begins with ff, and texts, their
/// beginnings and their streams sort as they should.
fn name_start(kind: NameKind, text: &str) -> Put {
    let mut put = Put::key(NAME).bytes(&[kind as u8]);
    for byte in text.bytes() {
        put.0.push(byte);
        if byte == 0 {
            put.0.push(0xff);
        }
    }
    put
}

pub(super) fn name_row(kind: NameKind, text: &str, number: u32, seq: Seq) -> Row {
    let key = name_start(kind, text).bytes(&[0]).bytes(&number.to_be_bytes()).0;
    Put::value().u64(seq.0).seal(key)
}

/// The keys from which and up to which names that are `text`, or begin with it, are found.
pub(super) fn name_range(kind: NameKind, text: &str, prefix: bool) -> (Vec<u8>, Vec<u8>) {
    let start = name_start(kind, text);
    if prefix {
        let to = successor(start.0.clone());
        return (start.0, to);
    }
    let from = start.bytes(&[0]).0;
    let to = Put(from.clone()).bytes(&[0xff]).0;
    (from, to)
}

/// Text, stream number and seq of a name.
pub(super) fn read_name(key: &[u8], value: &[u8]) -> Result<(String, u32, Seq), Fault> {
    let mut take = Take::open(key, value, 8, "name")?;
    let damaged = || Fault::new("a name row is damaged");
    let (start, number) = key.split_last_chunk::<4>().ok_or_else(damaged)?;
    let escaped = start.get(2..start.len().saturating_sub(1)).ok_or_else(damaged)?;
    let mut text = Vec::with_capacity(escaped.len());
    let mut zero = false;
    for byte in escaped {
        if !zero {
            text.push(*byte);
        }
        zero = !zero && *byte == 0;
    }
    let text = String::from_utf8(text).map_err(|_| damaged())?;
    Ok((text, u32::from_be_bytes(*number), Seq(take.u64())))
}

pub(super) fn frame_key(first_seq: Seq) -> Vec<u8> {
    Put::key(FRAME).bytes(&first_seq.0.to_be_bytes()).0
}

pub(super) fn frame_row(place: FramePlace) -> Row {
    Put::value().place(place).seal(frame_key(place.first_seq))
}

pub(super) fn read_frame(key: &[u8], value: &[u8]) -> Result<FramePlace, Fault> {
    let mut take = Take::open(key, value, 12, "frame")?;
    Ok(take.place(key.last_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))))
}

/// The smallest key above all that begin with `key`. Keys begin with less than ff, so there is one.
fn successor(mut key: Vec<u8>) -> Vec<u8> {
    while let Some(last) = key.pop() {
        if let Some(next) = last.checked_add(1) {
            key.push(next);
            break;
        }
    }
    key
}
