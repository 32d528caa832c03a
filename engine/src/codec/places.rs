//! Rows of the file of places beside a segment: which frame holds events of which stream.
//!
//! ```text
//! open segment       row 32 | row 32 | ..                                            a row for each stream of a frame, in order
//! complete segment   rows | streams, 32 each, by id | ordinals, 4 each, by stream | record 128
//! ```
//!
//! A row stands for itself: its checksum covers the store, the segment and the row's number. Whether rows are all there is a
//! question of the run that they form.

use super::fields::{FieldReader, Put, put_trailing_checksum, trailing_checksum};
use super::{FrameHeader, FramePlace};
use crate::ids::{Link, Position, Seq, StoreId, StreamId};

/// Bytes of a row, and of a stream's row in a complete segment.
pub(crate) const PLACE_BYTES: usize = 32;
/// Bytes of an ordinal of a row.
pub(crate) const ORDINAL_BYTES: usize = 4;
/// Bytes of the record at the end of a complete segment's file.
pub(crate) const PLACES_RECORD_BYTES: usize = 128;
/// The checksum covers a row up to here.
const COVERED_BYTES: usize = PLACE_BYTES - 4;
const MAGIC: [u8; 8] = *b"acpdbpl1";

/// The first half of a stream's id, by which rows name it.
pub(crate) fn stream_key(stream: StreamId) -> u64 {
    FieldReader(stream.as_bytes()).u64()
}

/// The segment that rows belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacesOf {
    pub(crate) segment: u32,
    pub(crate) first_seq: Seq,
    /// Checksum of the store and the segment.
    base: u32,
}

impl PlacesOf {
    pub(crate) fn new(store: StoreId, segment: u32, first_seq: Seq) -> Self {
        let base = crc32c::crc32c_append(crc32c::crc32c(store.as_bytes()), &segment.to_le_bytes());
        Self { segment, first_seq, base }
    }

    /// The checksum of what stands in a row of this number.
    fn checksum(self, number: u32, covered: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(self.base, &number.to_le_bytes()), covered)
    }

    fn seal(self, number: u32, bytes: &mut [u8; PLACE_BYTES]) {
        if let Some((covered, stored)) = bytes.split_last_chunk_mut::<4>() {
            *stored = self.checksum(number, covered).to_le_bytes();
        }
    }

    /// Whether bytes are a row of this number.
    fn is_sound(self, number: u32, bytes: &[u8]) -> bool {
        let Some((covered, stored)) = bytes.split_last_chunk::<4>() else { return false };
        covered.len() == COVERED_BYTES && self.checksum(number, covered) == u32::from_le_bytes(*stored)
    }

    /// The position of this offset in the segment.
    pub(crate) fn position(self, grain: u32) -> Position {
        Position(u64::from(self.segment) << 32 | u64::from(grain))
    }

    /// The seq that a row gives as counted from the segment's first.
    pub(crate) fn seq(self, relative: u32) -> Seq {
        self.first_seq.plus(u64::from(relative))
    }
}

/// The place of a frame, for one of its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlaceRow {
    /// First half of the stream's id.
    pub(crate) key: u64,
    /// First seq of the frame, counted from the segment's first.
    pub(crate) seq: u32,
    /// Offset of the frame / 16.
    pub(crate) grain: u32,
    /// Length of the frame / 16.
    pub(crate) grains: u32,
    /// Ordinal in the frame of the stream's last event.
    pub(crate) last: u16,
    /// How many rows the frame has, less one.
    pub(crate) others: u16,
    /// Checksum of the frame's header.
    pub(crate) header: u32,
}

impl PlaceRow {
    /// A row as it is on disk.
    pub(crate) fn encode(&self, of: PlacesOf, number: u32) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        Put(&mut bytes)
            .u64(self.key)
            .u32(self.seq)
            .u32(self.grain)
            .u32(self.grains)
            .u16(self.last)
            .u16(self.others)
            .u32(self.header);
        of.seal(number, &mut bytes);
        bytes
    }

    /// A row of this number; `None`: the bytes are none.
    pub(crate) fn decode(of: PlacesOf, number: u32, bytes: &[u8]) -> Option<Self> {
        if !of.is_sound(number, bytes) {
            return None;
        }
        let mut fields = FieldReader(bytes);
        Some(Self {
            key: fields.u64(),
            seq: fields.u32(),
            grain: fields.u32(),
            grains: fields.u32(),
            last: fields.u16(),
            others: fields.u16(),
            header: fields.u32(),
        })
    }

    /// The rows of a frame: for each of its streams, with the ordinal of the stream's last event.
    pub(crate) fn of_frame(
        header: &FrameHeader,
        of: PlacesOf,
        streams: impl ExactSizeIterator<Item = (StreamId, u32)>,
    ) -> impl Iterator<Item = Self> {
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        // Ordinals and counts were checked to fit when the frame was made or read.
        let short = |value: usize| u16::try_from(value).unwrap_or(u16::MAX);
        let row = Self {
            key: 0,
            seq: narrow(header.first_seq.since(of.first_seq)),
            grain: narrow(header.position.0 & u64::from(u32::MAX)),
            grains: narrow(header.frame_bytes() / Position::GRAIN_BYTES),
            last: 0,
            // A frame has at least one stream.
            others: short(streams.len().saturating_sub(1)),
            header: header.checksum(),
        };
        streams.map(move |(stream, last)| Self { key: stream_key(stream), last: short(last as usize), ..row })
    }

    /// Where the frame ends / 16.
    pub(crate) fn end(&self) -> u32 {
        self.grain.saturating_add(self.grains)
    }

    /// The frame, which ends with this seq.
    pub(crate) fn frame(&self, of: PlacesOf, last_seq: Seq) -> FramePlace {
        FramePlace { first_seq: of.seq(self.seq), last_seq, position: of.position(self.grain) }
    }

    /// The seq of the stream's last event in the frame.
    pub(crate) fn head(&self, of: PlacesOf) -> Seq {
        of.seq(self.seq).plus(u64::from(self.last))
    }
}

/// A stream of a complete segment, and its ordinals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacesStream {
    pub(crate) stream: StreamId,
    /// Its first ordinal.
    pub(crate) first: u32,
    /// How many it has.
    pub(crate) count: u32,
    /// Checksum of its ordinals.
    pub(crate) ordinals: u32,
}

impl PlacesStream {
    pub(crate) fn encode(&self, of: PlacesOf, number: u32) -> [u8; PLACE_BYTES] {
        let mut bytes = [0; PLACE_BYTES];
        Put(&mut bytes).bytes(self.stream.as_bytes()).u32(self.first).u32(self.count).u32(self.ordinals);
        of.seal(number, &mut bytes);
        bytes
    }

    pub(crate) fn decode(of: PlacesOf, number: u32, bytes: &[u8]) -> Option<Self> {
        if !of.is_sound(number, bytes) {
            return None;
        }
        let mut fields = FieldReader(bytes);
        let stream = StreamId(fields.array());
        Some(Self { stream, first: fields.u32(), count: fields.u32(), ordinals: fields.u32() })
    }
}

/// The record at the end of a complete segment's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacesRecord {
    pub(crate) segment: u32,
    pub(crate) store: StoreId,
    /// The end of the segment, and the link of its last frame.
    pub(crate) end: Position,
    pub(crate) link: Link,
    pub(crate) rows: u32,
    pub(crate) streams: u32,
    /// First half of the BLAKE3 of all that stands before the record.
    pub(crate) digest: [u8; 16],
}

impl PlacesRecord {
    pub(crate) fn encode(&self) -> [u8; PLACES_RECORD_BYTES] {
        let mut bytes = [0; PLACES_RECORD_BYTES];
        Put(&mut bytes)
            .bytes(&MAGIC)
            .u32(self.segment)
            .u32(self.rows)
            .bytes(self.store.as_bytes())
            .u64(self.end.0)
            .u32(self.streams)
            .skip(4)
            .bytes(self.link.as_bytes())
            .bytes(&self.digest);
        put_trailing_checksum(&mut bytes);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<PLACES_RECORD_BYTES>()?;
        let (computed, stored) = trailing_checksum(bytes);
        let mut fields = FieldReader(bytes);
        if computed != stored || fields.array() != MAGIC {
            return None;
        }
        let (segment, rows, store) = (fields.u32(), fields.u32(), StoreId(fields.array()));
        let (end, streams) = (Position(fields.u64()), fields.u32());
        let mut reserved = fields.zeros(4);
        let (link, digest) = (Link(fields.array()), fields.array());
        reserved &= fields.zeros(28);
        let record = Self { segment, store, end, link, rows, streams, digest };
        (reserved && rows > 0 && streams > 0).then_some(record)
    }

    /// Where the streams begin.
    pub(crate) fn streams_start(&self) -> u64 {
        u64::from(self.rows) * PLACE_BYTES as u64
    }

    /// Where the ordinals begin.
    pub(crate) fn ordinals_start(&self) -> u64 {
        self.streams_start() + u64::from(self.streams) * PLACE_BYTES as u64
    }

    /// Where the record begins.
    pub(crate) fn start(&self) -> u64 {
        self.ordinals_start() + u64::from(self.rows) * ORDINAL_BYTES as u64
    }
}

/// The first half of a digest over all that stands before the record.
pub(crate) fn places_digest(bytes: &[u8]) -> [u8; 16] {
    let digest = blake3::hash(bytes);
    digest.as_bytes().first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of() -> PlacesOf {
        PlacesOf::new(StoreId([5; 16]), 3, Seq(100))
    }

    /// The layouts of `docs/FORMAT.md` 7.1, and no bit that may differ.
    #[test]
    fn rows_are_what_they_were_written_as_or_none() {
        let row =
            PlaceRow { key: 0x0807, seq: 9, grain: 256, grains: 20, last: 2, others: 1, header: 0xabcd };
        let bytes = row.encode(of(), 7);
        let expected =
            [7, 8, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 1, 0, 0, 20, 0, 0, 0, 2, 0, 1, 0, 0xcd, 0xab, 0, 0];
        assert_eq!(bytes[..COVERED_BYTES], expected);
        let mut covered = [5_u8; 16].to_vec();
        covered.extend([3, 0, 0, 0, 7, 0, 0, 0]);
        covered.extend(expected);
        assert_eq!(bytes[COVERED_BYTES..], crc32c::crc32c(&covered).to_le_bytes());
        assert_eq!(PlaceRow::decode(of(), 7, &bytes), Some(row));
        assert_eq!(
            (row.head(of()), of().position(row.end())),
            (Seq(111), Position::new(3, 276 * 16).unwrap())
        );
        let stream = PlacesStream { stream: StreamId([4; 16]), first: 1, count: 2, ordinals: 3 };
        assert_eq!(PlacesStream::decode(of(), 0, &stream.encode(of(), 0)), Some(stream));
        for bit in 0..PLACE_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(PlaceRow::decode(of(), 7, &flipped), None, "bit {bit}");
        }
        let others =
            [PlacesOf::new(StoreId([6; 16]), 3, Seq(100)), PlacesOf::new(StoreId([5; 16]), 4, Seq(100))];
        assert!(others.iter().all(|other| PlaceRow::decode(*other, 7, &bytes).is_none()));
        assert_eq!(PlaceRow::decode(of(), 6, &bytes), None, "a row of another number");
        assert_eq!(PlaceRow::decode(of(), 7, &bytes[..31]), None);
    }

    #[test]
    fn the_record_is_what_it_was_written_as_or_none() {
        let record = PlacesRecord {
            segment: 3,
            store: StoreId([5; 16]),
            end: Position(77),
            link: Link([9; 32]),
            rows: 10,
            streams: 2,
            digest: [1; 16],
        };
        let bytes = record.encode();
        assert_eq!(PlacesRecord::decode(&bytes), Some(record));
        assert_eq!(record.start(), 10 * 36 + 2 * 32);
        for bit in 0..PLACES_RECORD_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(PlacesRecord::decode(&flipped), None, "bit {bit}");
        }
    }
}
