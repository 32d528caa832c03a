//! The rows of an index as bytes: one table, one prefix byte per view, a checksum in every value.
//!
//! ```text
//! 00                          meta     identity, watermark, counts
//! 20 stream number            stream   id, first event and frame, counts, head
//! 28 stream id                number   the number of a stream
//! 30 stream number, seq       part     a frame of the stream: position, events, ordinal within the stream
//! 41-45 text, 00, number      name     newest seq that bears it; a byte for each kind
//! f0 seq                      frame    a frame: position, events
//! ```
//!
//! Streams are numbered in order of their first event, which keeps keys short. Numbers in keys are a byte that says how
//! many bytes follow, and these bytes, big-endian: short, and sorted as the numbers are. Numbers of the frequent rows' values are
//! seven bits a byte. Long names are cut, see [`kept_name`]. Frames come last because they only ever grow at the end, which
//! keeps the pages of a B-tree full. All views share a table because a commit pays for each table it touches.
//!
//! The checksum covers key and value: redb itself hands out flipped bits without a word.

use std::borrow::Cow;

use crate::ids::{Link, Position, Seq, StoreId, StreamId};

use super::{FramePlace, INDEX_VERSION, Identity, NameKind, StreamEntry, Watermark};

/// A fault in an index, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault(pub(super) String);

impl Fault {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

pub(super) const META_KEY: [u8; 1] = [0x00];
const STREAM: u8 = 0x20;
const NUMBER: u8 = 0x28;
const PART: u8 = 0x30;
/// Plus the kind.
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
        // Room for most keys, so that a key is not moved as it grows.
        let mut key = Vec::with_capacity(40);
        key.push(prefix);
        Self(key)
    }

    fn value() -> Self {
        Self(Vec::with_capacity(24))
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

    /// Seven bits a byte, the lowest first; the highest bit says that there are more.
    fn number(mut self, mut number: u64) -> Self {
        while number > 0x7f {
            self.0.push(0x80 | low_bits(number));
            number >>= 7;
        }
        self.0.push(low_bits(number));
        self
    }

    /// The count of the bytes that follow, and these bytes.
    fn sorted(self, number: u64) -> Self {
        let bytes = number.to_be_bytes();
        let rest = bytes.get(number.leading_zeros() as usize / 8..).unwrap_or_default();
        self.bytes(&[u8::try_from(rest.len()).unwrap_or(8)]).bytes(rest)
    }

    fn place(self, place: FramePlace) -> Self {
        let count = place.event_count();
        self.number(place.position.0).number(count)
    }

    /// Ends a value with the checksum over `key` and itself.
    fn seal(self, key: Vec<u8>) -> Row {
        let checksum = checksum(&key, &self.0);
        (key, self.u32(checksum).0)
    }
}

fn low_bits(number: u64) -> u8 {
    u8::try_from(number & 0x7f).unwrap_or_default()
}

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), value)
}

/// Reads a key or a value, field by field. A field past the end reads as zeros and is a fault at [`Take::end`].
struct Take<'a> {
    rest: &'a [u8],
    is_short: bool,
    what: &'static str,
}

impl<'a> Take<'a> {
    /// Checks the checksum of a value.
    fn open(key: &[u8], value: &'a [u8], what: &'static str) -> Result<Self, Fault> {
        match value.split_last_chunk::<4>() {
            Some((rest, sum)) if checksum(key, rest) == u32::from_le_bytes(*sum) => {
                Ok(Self { rest, is_short: false, what })
            }
            _ => Err(damaged(what)),
        }
    }

    /// A key, after its prefix. Its value's checksum was checked.
    fn key(key: &'a [u8], what: &'static str) -> Self {
        Self { rest: key.get(1..).unwrap_or_default(), is_short: key.is_empty(), what }
    }

    /// `value`, if all bytes were read and none more.
    fn end<T>(self, value: T) -> Result<T, Fault> {
        if self.rest.is_empty() && !self.is_short { Ok(value) } else { Err(damaged(self.what)) }
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (head, rest) = self.rest.split_at_checked(count).unwrap_or_else(|| {
            self.is_short = true;
            (&[], &[])
        });
        self.rest = rest;
        head
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().unwrap_or([0; N])
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    fn number(&mut self) -> u64 {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array();
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number;
            }
        }
        self.is_short = true;
        number
    }

    fn sorted(&mut self) -> u64 {
        let [count] = self.array();
        let bytes = self.take(usize::from(count));
        self.is_short |= bytes.len() > 8;
        bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn place(&mut self, first_seq: u64) -> FramePlace {
        let position = Position(self.number());
        let count = self.number();
        let last_seq = count.checked_sub(1).and_then(|others| first_seq.checked_add(others));
        // No frame is empty, and none ends behind the last seq there can be.
        self.is_short |= last_seq.is_none();
        // A value that is short is refused as a whole.
        FramePlace { first_seq: Seq(first_seq), last_seq: Seq(last_seq.unwrap_or_default()), position }
    }
}

fn damaged(what: &str) -> Fault {
    Fault(format!("a {what} row is damaged"))
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
        let mut take = Take::open(&META_KEY, value, "meta")?;
        let version = take.u32();
        let format = take.u32();
        let identity = Identity { store: StoreId(take.array()), format };
        let seq = Seq(take.u64());
        let end = Some(take.u64()).filter(|end| *end != 0).map(Position);
        let watermark = Watermark { seq, end, link: Link(take.array()) };
        let meta = Self { version, identity, watermark, stream_count: take.u32(), frame_count: take.u64() };
        take.end(meta)
    }
}

pub(super) fn stream_key(number: u32) -> Vec<u8> {
    Put::key(STREAM).sorted(number.into()).0
}

/// First key after the keys of all streams.
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
    let mut take = Take::open(key, value, "stream")?;
    let stream = StreamId(take.array());
    let first_seq = Seq(take.u64());
    let frame_first_seq = take.u64();
    let first_frame = take.place(frame_first_seq);
    let event_count = take.u64();
    let head = Seq(take.u64());
    let frame_count = take.u32();
    take.end(StreamEntry { stream, first_seq, first_frame, event_count, frame_count, head })
}

pub(super) fn number_key(stream: StreamId) -> Vec<u8> {
    Put::key(NUMBER).bytes(stream.as_bytes()).0
}

pub(super) fn number_row(stream: StreamId, number: u32) -> Row {
    Put::value().u32(number).seal(number_key(stream))
}

pub(super) fn read_number(key: &[u8], value: &[u8]) -> Result<u32, Fault> {
    let mut take = Take::open(key, value, "number")?;
    let number = take.u32();
    take.end(number)
}

pub(super) fn part_key(number: u32, first_seq: Seq) -> Vec<u8> {
    Put::key(PART).sorted(number.into()).sorted(first_seq.0).0
}

/// First key after all parts of a stream.
pub(super) fn parts_end(number: u32) -> Vec<u8> {
    successor(Put::key(PART).sorted(number.into()).0)
}

/// The part that is number `ordinal` (from 0) of its stream.
pub(super) fn part_row(number: u32, ordinal: u32, place: FramePlace) -> Row {
    Put::value().place(place).number(ordinal.into()).seal(part_key(number, place.first_seq))
}

/// First key after all parts of all streams.
pub(super) fn all_parts_end() -> Vec<u8> {
    vec![PART + 1]
}

/// The stream that a part's key names.
pub(super) fn part_number(key: &[u8]) -> u32 {
    u32::try_from(Take::key(key, "part").sorted()).unwrap_or(u32::MAX)
}

/// Ordinal within the stream, and frame.
pub(super) fn read_part(key: &[u8], value: &[u8]) -> Result<(u32, FramePlace), Fault> {
    let mut take = Take::open(key, value, "part")?;
    let mut start = Take::key(key, "part");
    let (_, first_seq) = (start.sorted(), start.sorted());
    let place = take.place(first_seq);
    let ordinal = u32::try_from(take.number()).map_err(|_| damaged("part"))?;
    start.end(())?;
    take.end((ordinal, place))
}

/// Names of up to so many bytes are kept whole.
const WHOLE_BYTES_MAX: usize = 19;
/// Bytes that are kept of the beginning of a longer name.
const START_BYTES: usize = 14;
/// Bytes that are kept of the digest of a longer name.
const DIGEST_BYTES: usize = 6;

/// The stored form of a name: all of it, or its beginning and a digest. Call ids and paths are long, and would be most of an index;
/// a caller that asks for one knows it whole. Two names of a stream that share both parts would be one: one pair in 2^48.
pub(super) fn kept_name(text: &str) -> Cow<'_, [u8]> {
    match text.as_bytes().get(..START_BYTES).filter(|_| text.len() > WHOLE_BYTES_MAX) {
        None => Cow::Borrowed(text.as_bytes()),
        Some(start) => {
            let digest = blake3::hash(text.as_bytes());
            [start, digest.as_bytes().get(..DIGEST_BYTES).unwrap_or_default()].concat().into()
        }
    }
}

/// Zero ends a name, so a zero within is followed by ff. No number of a stream begins with ff, and names, their
/// beginnings and their streams sort as they should.
fn name_start(kind: NameKind, kept: &[u8]) -> Put {
    let mut put = Put::key(NAME + kind as u8);
    if !kept.contains(&0) {
        return put.bytes(kept);
    }
    for byte in kept {
        put.0.push(*byte);
        if *byte == 0 {
            put.0.push(0xff);
        }
    }
    put
}

pub(super) fn name_row(kind: NameKind, text: &str, number: u32, seq: Seq) -> Row {
    let key = name_start(kind, &kept_name(text)).bytes(&[0]).sorted(number.into()).0;
    Put::value().number(seq.0).seal(key)
}

/// The start and the end of the keys of names that are `text`, or with `prefix` begin with it. With `prefix` other names may lie
/// between, too: see [`may_begin`].
pub(super) fn name_range(kind: NameKind, text: &str, prefix: bool) -> (Vec<u8>, Vec<u8>) {
    if prefix {
        let start = text.as_bytes().get(..START_BYTES).unwrap_or(text.as_bytes());
        let from = name_start(kind, start).0;
        let to = successor(from.clone());
        return (from, to);
    }
    let from = name_start(kind, &kept_name(text)).bytes(&[0]).0;
    let to = Put(from.clone()).bytes(&[0xff]).0;
    (from, to)
}

/// Whether the full name, of which only `kept` is stored, may begin with `text`: certain, unless both are longer than the stored part.
pub(super) fn may_begin(kept: &[u8], text: &str) -> bool {
    let known = if kept.len() > WHOLE_BYTES_MAX { START_BYTES } else { usize::MAX };
    let text = text.as_bytes();
    kept.starts_with(text.get(..known).unwrap_or(text))
}

/// The stored form of a name, the number of its stream, and the newest seq.
pub(super) fn read_name(key: &[u8], value: &[u8]) -> Result<(Vec<u8>, u32, Seq), Fault> {
    let mut take = Take::open(key, value, "name")?;
    let mut start = Take::key(key, "name");
    let mut kept = Vec::with_capacity(START_BYTES + DIGEST_BYTES);
    loop {
        match start.array() {
            [0] if start.rest.first() != Some(&0xff) => break,
            [0] => {
                start.take(1);
                kept.push(0);
            }
            [byte] => kept.push(byte),
        }
    }
    let number = u32::try_from(start.sorted()).map_err(|_| damaged("name"))?;
    start.end(())?;
    let seq = Seq(take.number());
    take.end((kept, number, seq))
}

pub(super) fn frame_key(first_seq: Seq) -> Vec<u8> {
    Put::key(FRAME).sorted(first_seq.0).0
}

pub(super) fn frame_row(place: FramePlace) -> Row {
    Put::value().place(place).seal(frame_key(place.first_seq))
}

pub(super) fn read_frame(key: &[u8], value: &[u8]) -> Result<FramePlace, Fault> {
    let mut take = Take::open(key, value, "frame")?;
    let mut start = Take::key(key, "frame");
    let place = take.place(start.sorted());
    start.end(())?;
    take.end(place)
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
