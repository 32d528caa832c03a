//! A commit before its place is known: measured, laid out, hashed.
//!
//! A commit is encoded and hashed by its caller, outside every lock; its place in the log is filled in later by
//! [`PreparedFrame::seal`], which hashes 188 bytes. That is why rows hold offsets from the start of the frame's bodies.
//!
//! The picture of a frame is in `frame`.

use std::collections::HashMap;

use rustc_hash::FxHashMap;
use zeroize::Zeroizing;

use super::envelope::{DiskRow, body_digest};
use super::fields::{Put, align16, is_zero};
use super::frame::Frame;
use super::header::link_of;
use super::{
    BODY_CHUNK_BYTES_MAX, BODY_ROW_BYTES, BodyRow, CIPHER_NONE, CIPHER_XCHACHA, COMMIT_EVENT_COUNT_MAX,
    CONTENT_BYTES_MAX, ENVELOPE_BYTES, EVENT_BYTES_MAX, EncodeError, EncodedBody, EncodedEvent,
    FRAME_BYTES_MAX, FRAME_HEADER_BYTES, FRAME_STREAM_BYTES, FrameHeader, SALT_BYTES, SPINE_BYTES_MAX,
};
use crate::failpoints::failpoint;
use crate::ids::{Digest, Link, Micros, Position, Seq, StoreId, StreamId};

/// A commit, encoded and hashed, that has no place in the log yet.
#[derive(Clone)]
pub struct PreparedFrame {
    bytes: Vec<u8>,
    header: FrameHeader,
    streams: Vec<(StreamId, u32)>,
    /// The key of the tag in a sealed frame's header.
    tag_key: Option<Zeroizing<[u8; 32]>>,
}

impl PreparedFrame {
    /// Length of the frame.
    pub fn frame_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Its bytes, with the place it was last given.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The frame as readers see it, once it has its place. Cost: a copy of the content.
    pub(crate) fn made(&self) -> Frame {
        let end = usize::try_from(self.header.bodies_start()).unwrap_or(usize::MAX);
        Frame::made(self.header, self.bytes.get(FRAME_HEADER_BYTES..end).unwrap_or(&[]))
    }

    /// Its header, with the place it was last given.
    pub(crate) const fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// How many events it has.
    pub fn event_count(&self) -> u32 {
        self.header.event_count
    }

    /// Each stream it writes to, with the ordinal of the stream's last event.
    pub fn streams(&self) -> &[(StreamId, u32)] {
        &self.streams
    }

    /// The rows of its body table, as they read at the place it was last given.
    pub fn rows(&self) -> Vec<BodyRow> {
        self.made().rows().collect()
    }

    /// Gives the frame its place, its time and the highest time so far, and returns its bytes and its link. May be called again.
    pub fn seal(
        &mut self,
        first_seq: Seq,
        (time, time_max): (Micros, Micros),
        position: Position,
        durable: Position,
        store: StoreId,
        previous: Link,
    ) -> (&[u8], Link) {
        let is_wrong = failpoint!(WrongPreviousLink) && first_seq.0.is_multiple_of(3);
        let previous = if is_wrong { Link::ZERO } else { previous };
        self.header =
            FrameHeader { first_seq, position, durable, time, time_max, previous, store, ..self.header };
        if let Some(key) = &self.tag_key {
            self.header.tag = self.header.tag_under(key);
        }
        let header = self.header.encode();
        Put(&mut self.bytes).bytes(&header);
        (&self.bytes, link_of(&header, store))
    }
}

/// A frame in parts, for the room that seals it.
pub(crate) struct FrameParts<'a> {
    pub(crate) streams: &'a [u8],
    pub(crate) rows: Vec<DiskRow>,
    pub(crate) spine: &'a [u8],
    pub(crate) bodies: &'a [u8],
}

/// The parts of a frame after they were sealed.
pub(crate) struct SealedParts {
    /// Block, streams, rows and spine.
    pub(crate) content: Vec<u8>,
    pub(crate) spine_bytes: usize,
    pub(crate) bodies: Vec<u8>,
    pub(crate) tag_key: Zeroizing<[u8; 32]>,
}

impl PreparedFrame {
    /// Its parts, before it is sealed.
    pub(crate) fn parts(&self) -> FrameParts<'_> {
        let length = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let behind = self.bytes.get(FRAME_HEADER_BYTES..);
        let behind = behind.and_then(|behind| behind.split_at_checked(length(self.header.content_bytes())));
        // This program laid the frame out, so each part is there.
        let (content, rest) = behind.unwrap_or_default();
        let streams = (self.header.stream_count as usize).saturating_mul(FRAME_STREAM_BYTES);
        // As above.
        let (streams, rest_of_content) = content.split_at_checked(streams).unwrap_or_default();
        let rows = (self.header.row_count as usize).saturating_mul(BODY_ROW_BYTES);
        // As above.
        let (rows, spine) = rest_of_content.split_at_checked(rows).unwrap_or_default();
        FrameParts {
            streams,
            rows: rows.chunks_exact(BODY_ROW_BYTES).map(DiskRow::decode).collect(),
            spine,
            bodies: rest.get(..self.header.bodies_bytes as usize).unwrap_or(&[]),
        }
    }

    /// The same commit with sealed parts.
    ///
    /// # Errors
    /// [`EncodeError::TooLarge`]: sealing adds a few bytes to each unit.
    pub(crate) fn sealed(self, parts: SealedParts) -> Result<Self, EncodeError> {
        let SealedParts { content, spine_bytes, bodies, tag_key } = parts;
        limit("bytes of a commit without its texts", content.len(), CONTENT_BYTES_MAX)?;
        let most = FRAME_HEADER_BYTES.saturating_add(content.len()).saturating_add(bodies.len());
        limit("bytes of a commit", align16(most), FRAME_BYTES_MAX)?;
        let header = FrameHeader {
            spine_bytes: narrow(spine_bytes),
            bodies_bytes: narrow(bodies.len()),
            content_checksum: crc32c::crc32c(&content),
            content_digest: Digest(*blake3::hash(&content).as_bytes()),
            cipher: CIPHER_XCHACHA,
            ..self.header
        };
        let mut bytes = Vec::with_capacity(align16(most));
        bytes.resize(FRAME_HEADER_BYTES, 0);
        bytes.extend_from_slice(&content);
        bytes.extend_from_slice(&bodies);
        bytes.resize(align16(most), 0);
        debug_assert_eq!(bytes.len() as u64, header.frame_bytes());
        Ok(Self { bytes, header, streams: self.streams, tag_key: Some(tag_key) })
    }

    /// Whether readers of this process can take it as it was made.
    pub(crate) const fn is_sealed(&self) -> bool {
        self.header.is_sealed()
    }
}

fn limit(what: &'static str, actual: usize, limit: usize) -> Result<(), EncodeError> {
    let wide = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    if actual <= limit {
        Ok(())
    } else {
        Err(EncodeError::TooLarge { what, actual: wide(actual), limit: wide(limit) })
    }
}

/// Lengths on disk are 32 bits; everything here is under [`FRAME_BYTES_MAX`] by then.
fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Ordinals on disk are 16 bits: a commit has at most [`COMMIT_EVENT_COUNT_MAX`] events, and no more streams.
fn ordinal(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Encodes and hashes a commit. Cost: one copy and one BLAKE3 of everything; do it outside every lock.
///
/// # Errors
/// [`EncodeError::TooLarge`] over any limit of this module, checked before anything is allocated; the other
/// variants for a commit that makes no sense.
pub fn encode_frame(events: &[EncodedEvent]) -> Result<PreparedFrame, EncodeError> {
    let CommitSizes { spine_bytes, row_count, bodies_bytes_max } = measure(events)?;
    let (streams, ordinals) = streams_of(events);
    let content_bytes = streams
        .len()
        .saturating_mul(FRAME_STREAM_BYTES)
        .saturating_add(row_count.saturating_mul(BODY_ROW_BYTES))
        .saturating_add(spine_bytes);
    limit("bytes of a commit without its texts", content_bytes, CONTENT_BYTES_MAX)?;
    let most = content_bytes.saturating_add(bodies_bytes_max).saturating_add(FRAME_HEADER_BYTES);
    limit("bytes of a commit", align16(most), FRAME_BYTES_MAX)?;
    let mut bytes = Vec::with_capacity(align16(most));
    bytes.resize(FRAME_HEADER_BYTES, 0);
    for (stream, _) in &streams {
        bytes.extend_from_slice(stream.as_bytes());
    }
    let (rows, blocks, bodies_bytes) = place_bodies(events);
    for row in &rows {
        bytes.extend_from_slice(&row.encode());
    }
    for (event, stream) in events.iter().zip(&ordinals) {
        bytes.extend_from_slice(&event.envelope.encode(*stream, narrow(event.payload.len())));
    }
    for event in events {
        bytes.extend_from_slice(&event.payload);
    }
    let content = bytes.get(FRAME_HEADER_BYTES..).unwrap_or(&[]);
    debug_assert_eq!(content.len(), content_bytes);
    let header = FrameHeader {
        event_count: narrow(events.len()),
        stream_count: narrow(streams.len()),
        row_count: narrow(rows.len()),
        spine_bytes: narrow(spine_bytes),
        bodies_bytes,
        content_checksum: crc32c::crc32c(content),
        first_seq: Seq(1),
        position: Position::default(),
        durable: Position::default(),
        time: Micros::default(),
        time_max: Micros::default(),
        previous: Link::ZERO,
        content_digest: Digest(*blake3::hash(content).as_bytes()),
        cipher: CIPHER_NONE,
        tag: 0,
        store: StoreId::ZERO,
    };
    for block in blocks {
        match block {
            PreparedBody::Stored(salt, body) => {
                bytes.extend_from_slice(salt);
                bytes.extend_from_slice(body);
            }
            PreparedBody::Zeros(length) => bytes.resize(bytes.len().saturating_add(SALT_BYTES + length), 0),
        }
    }
    bytes.resize(align16(bytes.len()), 0);
    debug_assert_eq!(bytes.len() as u64, header.frame_bytes());
    Ok(PreparedFrame { bytes, header, streams, tag_key: None })
}

/// The streams in the order of their first events, each with the ordinal of its last event; and for each event the ordinal of its
/// stream.
fn streams_of(events: &[EncodedEvent]) -> (Vec<(StreamId, u32)>, Vec<u16>) {
    let mut streams: Vec<(StreamId, u32)> = Vec::new();
    let mut known: FxHashMap<StreamId, usize> = FxHashMap::default();
    let mut ordinals = Vec::with_capacity(events.len());
    for (number, event) in events.iter().enumerate() {
        let stream = event.envelope.stream;
        let at = *known.entry(stream).or_insert_with(|| {
            streams.push((stream, 0));
            streams.len() - 1
        });
        if let Some((_, last)) = streams.get_mut(at) {
            *last = narrow(number);
        }
        ordinals.push(ordinal(at));
    }
    (streams, ordinals)
}

/// Sizes of a commit.
struct CommitSizes {
    spine_bytes: usize,
    row_count: usize,
    /// The most that the bodies can take.
    bodies_bytes_max: usize,
}

/// Checks the limits of events and bodies.
fn measure(events: &[EncodedEvent]) -> Result<CommitSizes, EncodeError> {
    if events.is_empty() {
        return Err(EncodeError::NoEvents);
    }
    limit("events of a commit", events.len(), COMMIT_EVENT_COUNT_MAX)?;
    let mut spine_bytes = events.len().saturating_mul(ENVELOPE_BYTES);
    let (mut row_count, mut bodies_bytes_max) = (0_usize, 0_usize);
    for (event, EncodedEvent { payload, bodies, .. }) in events.iter().enumerate() {
        limit("bytes of an event", payload.len(), EVENT_BYTES_MAX)?;
        spine_bytes = spine_bytes.saturating_add(payload.len());
        row_count = row_count.saturating_add(bodies.len());
        for (row, body) in bodies.iter().enumerate() {
            let (length, stored) = match body {
                EncodedBody::New { salt, .. } if is_zero(salt) => {
                    return Err(EncodeError::NoSalt { event, row });
                }
                EncodedBody::New { bytes, .. } => (bytes.len(), bytes.len()),
                EncodedBody::Lost { bytes, stored_bytes, .. } => (*bytes as usize, *stored_bytes as usize),
            };
            if length == 0 || stored == 0 {
                return Err(EncodeError::EmptyBody { event, row });
            }
            limit("bytes of a body", length.max(stored), BODY_CHUNK_BYTES_MAX)?;
            bodies_bytes_max = bodies_bytes_max.saturating_add(SALT_BYTES).saturating_add(stored);
        }
    }
    limit("bytes of a commit without its texts", spine_bytes, SPINE_BYTES_MAX)?;
    Ok(CommitSizes { spine_bytes, row_count, bodies_bytes_max })
}

/// Length and bytes, which equal bodies have in common.
type Content<'a> = (usize, Option<&'a [u8]>);

/// The bytes of a body in its frame.
enum PreparedBody<'a> {
    /// Salt and bytes.
    Stored(&'a [u8; SALT_BYTES], &'a [u8]),
    /// Zeros for a salt and this many bytes.
    Zeros(usize),
}

/// Gives each body its place; equal ones share one. Returns the rows, the blocks in order, and the length of all blocks.
fn place_bodies(events: &[EncodedEvent]) -> (Vec<DiskRow>, Vec<PreparedBody<'_>>, u32) {
    let mut lengths: FxHashMap<usize, u32> = FxHashMap::default();
    for body in events.iter().flat_map(|event| &event.bodies) {
        if let EncodedBody::New { bytes, .. } = body {
            let count = lengths.entry(bytes.len()).or_default();
            *count = count.saturating_add(1);
        }
    }
    let mut seen: HashMap<Content<'_>, (Digest, u32)> = HashMap::new();
    let (mut rows, mut blocks, mut next) = (Vec::new(), Vec::new(), 0_u32);
    for (number, event) in events.iter().enumerate() {
        let event_ordinal = ordinal(number);
        for body in &event.bodies {
            // Within the limit of a frame.
            let mut put = |block, length: usize| {
                blocks.push(block);
                let offset = next;
                next = next.saturating_add(narrow(SALT_BYTES.saturating_add(length)));
                offset
            };
            rows.push(match body {
                EncodedBody::New { bytes, salt } => {
                    // Most bodies are alone with their length, and need not be compared.
                    let may_be_equal = lengths.get(&bytes.len()).is_some_and(|count| *count > 1);
                    let content = Some(&**bytes).filter(|_| may_be_equal && !failpoint!(DedupeByLength));
                    let (digest, offset) = *seen.entry((bytes.len(), content)).or_insert_with(|| {
                        (body_digest(salt, bytes), put(PreparedBody::Stored(salt, bytes), bytes.len()))
                    });
                    let length = narrow(bytes.len());
                    DiskRow {
                        digest,
                        offset,
                        stored_bytes: length,
                        bytes: length,
                        event: event_ordinal,
                        codec: 0,
                    }
                }
                EncodedBody::Lost { digest, bytes, stored_bytes, codec } => {
                    let length = *stored_bytes as usize;
                    let offset = put(PreparedBody::Zeros(length), length);
                    DiskRow {
                        digest: *digest,
                        offset,
                        stored_bytes: *stored_bytes,
                        bytes: *bytes,
                        event: event_ordinal,
                        codec: *codec,
                    }
                }
            });
        }
    }
    (rows, blocks, next)
}
