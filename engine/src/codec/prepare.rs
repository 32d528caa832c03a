//! A commit before its place is known: measured, laid out, hashed.
//!
//! A commit is encoded and hashed by its caller, outside every lock; its place in the log is filled in later by
//! [`PreparedFrame::seal`], which hashes 168 bytes. That is why rows of bodies in the same frame hold an offset
//! from the frame's start, while rows of bodies stored earlier hold an absolute position.
//!
//! The picture of a frame is in `frame`.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

use super::envelope::{BodyForm, DiskRow, PayloadForm, salted};
use super::fields::{Put, align16, is_zero};
use super::frame::Frame;
use super::header::link_of;
use super::{
    BODY_CHUNK_BYTES_MAX, BODY_ROW_BYTES, BodyRow, COMMIT_EVENT_COUNT_MAX, ENVELOPE_BYTES, EVENT_BYTES_MAX,
    EncodeError, EncodedBody, EncodedEvent, FRAME_BYTES_MAX, FRAME_HEADER_BYTES, FrameHeader, SALT_BYTES,
    SPINE_BYTES_MAX,
};
use crate::failpoints::failpoint;
use crate::ids::{Digest, Link, Micros, Position, Seq, StoreId, StreamId};

/// A commit, encoded and hashed, that has no place in the log yet.
#[derive(Clone)]
pub struct PreparedFrame {
    bytes: Vec<u8>,
    header: FrameHeader,
    rows: Vec<DiskRow>,
    streams: Vec<(StreamId, u32)>,
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

    /// The frame as readers see it, once it has its place. Cost: a copy of the spine.
    pub(crate) fn made(&self) -> Option<Frame> {
        let spine_end = FRAME_HEADER_BYTES.checked_add(self.header.spine_bytes as usize)?;
        Some(Frame::made(self.header, self.bytes.get(FRAME_HEADER_BYTES..spine_end)?))
    }

    /// How many events it has.
    pub fn event_count(&self) -> u32 {
        self.header.event_count
    }

    /// Each stream it writes to, with the ordinal of the stream's last event.
    pub fn streams(&self) -> &[(StreamId, u32)] {
        &self.streams
    }

    /// The highest position of a body stored earlier that it refers to.
    pub fn last_reference(&self) -> Option<Position> {
        self.rows.iter().filter(|row| !row.in_frame).map(|row| row.row.position).max()
    }

    /// The rows of its body table, as they read once the frame is at `position`.
    pub fn rows_at(&self, position: Position) -> Vec<BodyRow> {
        self.rows.iter().map(|row| row.resolve(position)).collect()
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
            FrameHeader { first_seq, time, time_max, position, durable, store, previous, ..self.header };
        let header = self.header.encode();
        Put(&mut self.bytes).bytes(&header);
        (&self.bytes, link_of(&header))
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
pub(super) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Encodes and hashes a commit. Cost: one copy and one BLAKE3 of everything; do it outside every lock.
///
/// # Errors
/// [`EncodeError::TooLarge`] over any limit of this module, checked before anything is allocated; the other
/// variants for a commit that makes no sense.
pub fn encode_frame(events: &[EncodedEvent]) -> Result<PreparedFrame, EncodeError> {
    let (spine_bytes, bodies_bytes_max) = measure(events)?;
    let mut bytes = Vec::with_capacity(FRAME_HEADER_BYTES + spine_bytes + bodies_bytes_max);
    bytes.resize(FRAME_HEADER_BYTES, 0);
    let rows = place_bodies(events, FRAME_HEADER_BYTES + spine_bytes);
    let mut streams: FxHashMap<StreamId, u32> = FxHashMap::default();
    for (ordinal, event) in events.iter().enumerate() {
        let form = PayloadForm { bytes: narrow(event.payload.len()), flags: 0 };
        bytes.extend_from_slice(&event.envelope.encode(form));
        streams.insert(event.envelope.stream, narrow(ordinal));
    }
    bytes.resize(align16(bytes.len()), 0);
    for event in events {
        bytes.extend_from_slice(&event.payload);
        bytes.resize(align16(bytes.len()), 0);
    }
    for placed in &rows {
        bytes.extend_from_slice(&placed.row.encode());
    }
    debug_assert_eq!(bytes.len(), FRAME_HEADER_BYTES + spine_bytes);
    for placed in &rows {
        match placed.block {
            Block::Stored(salt, body) => {
                bytes.extend_from_slice(salt);
                bytes.extend_from_slice(body);
                bytes.resize(align16(bytes.len()), 0);
            }
            Block::Zeros(length) => bytes.resize(align16(bytes.len() + SALT_BYTES + length), 0),
            Block::Elsewhere => {}
        }
    }
    let mut header = FrameHeader {
        spine_bytes: narrow(spine_bytes),
        bodies_bytes: narrow(bytes.len() - FRAME_HEADER_BYTES - spine_bytes),
        event_count: narrow(events.len()),
        row_count: narrow(rows.len()),
        first_seq: Seq(1),
        time: Micros::default(),
        time_max: Micros::default(),
        position: Position::default(),
        durable: Position::default(),
        store: StoreId::ZERO,
        previous: Link::ZERO,
        spine_digest: Digest::ZERO,
        spine_checksum: 0,
    };
    let rows = rows.into_iter().map(|placed| placed.row).collect();
    let streams = streams.into_iter().collect();
    finish_spine(&bytes, &mut header);
    Ok(PreparedFrame { bytes, header, rows, streams })
}

/// Puts the digest and the checksum of the spine into the header.
fn finish_spine(bytes: &[u8], header: &mut FrameHeader) {
    let spine_end = FRAME_HEADER_BYTES.saturating_add(header.spine_bytes as usize);
    let spine = bytes.get(FRAME_HEADER_BYTES..spine_end).unwrap_or(&[]);
    header.spine_digest = Digest(*blake3::hash(spine).as_bytes());
    header.spine_checksum = crc32c::crc32c(spine);
}

/// Checks every limit; returns the length of the spine and the most that the bodies can take.
fn measure(events: &[EncodedEvent]) -> Result<(usize, usize), EncodeError> {
    if events.is_empty() {
        return Err(EncodeError::NoEvents);
    }
    limit("events of a commit", events.len(), COMMIT_EVENT_COUNT_MAX)?;
    let mut spine = align16(events.len().saturating_mul(ENVELOPE_BYTES));
    let mut bodies = 0_usize;
    for (ordinal, event) in events.iter().enumerate() {
        let payload_bytes = event.payload.len();
        limit("bytes of an event", payload_bytes, EVENT_BYTES_MAX)?;
        let rows_bytes = event.bodies.len().saturating_mul(BODY_ROW_BYTES);
        spine = spine.saturating_add(align16(payload_bytes)).saturating_add(rows_bytes);
        for (row, body) in event.bodies.iter().enumerate() {
            let length = match body {
                EncodedBody::New { bytes, salt, .. } => {
                    if is_zero(salt) {
                        return Err(EncodeError::NoSalt { event: ordinal, row });
                    }
                    bodies = bodies.saturating_add(SALT_BYTES + align16(bytes.len()));
                    bytes.len()
                }
                EncodedBody::Existing { bytes, .. } => *bytes as usize,
                EncodedBody::Lost { bytes, form, .. } => {
                    limit("bytes of a lost body", form.stored_bytes as usize, BODY_CHUNK_BYTES_MAX)?;
                    bodies = bodies.saturating_add(SALT_BYTES + align16(form.stored_bytes as usize));
                    *bytes as usize
                }
            };
            if length == 0 {
                return Err(EncodeError::EmptyBody { event: ordinal, row });
            }
            limit("bytes of a body", length, BODY_CHUNK_BYTES_MAX)?;
        }
    }
    limit("bytes of a commit without its texts", spine, SPINE_BYTES_MAX)?;
    limit(
        "bytes of a commit",
        spine.saturating_add(bodies).saturating_add(FRAME_HEADER_BYTES),
        FRAME_BYTES_MAX,
    )?;
    Ok((spine, bodies))
}

struct Placed<'a> {
    row: DiskRow,
    block: Block<'a>,
}

/// The bytes that a row stores in its frame.
enum Block<'a> {
    /// Salt and bytes.
    Stored(&'a [u8; SALT_BYTES], &'a [u8]),
    /// Zeros for a salt and this many bytes.
    Zeros(usize),
    /// Nothing: another row or an earlier frame has them.
    Elsewhere,
}

/// Gives each body its place, the first at byte `next` of the frame.
fn place_bodies(events: &[EncodedEvent], mut next: usize) -> Vec<Placed<'_>> {
    let mut seen: HashMap<blake3::Hash, (Digest, Position)> = HashMap::new();
    let mut rows = Vec::new();
    for (ordinal, event) in events.iter().enumerate() {
        for body in &event.bodies {
            let event = (narrow(ordinal), event.envelope.stream);
            rows.push(match body {
                EncodedBody::Existing { digest, bytes, position, form } => Placed {
                    row: DiskRow::new(event, (*digest, *bytes), *form, *position, false),
                    block: Block::Elsewhere,
                },
                EncodedBody::Lost { digest, bytes, form } => {
                    let place = Position(next as u64 / Position::GRAIN_BYTES);
                    let stored = form.stored_bytes as usize;
                    next += SALT_BYTES + align16(stored);
                    let row = DiskRow::new(event, (*digest, *bytes), *form, place, true);
                    Placed { row, block: Block::Zeros(stored) }
                }
                EncodedBody::New { bytes, salt, content } => {
                    let content = content.unwrap_or_else(|| blake3::hash(bytes));
                    let shared = seen.get(&content).copied();
                    let (digest, position) = shared.unwrap_or_else(|| {
                        let place = Position(next as u64 / Position::GRAIN_BYTES);
                        (salted(salt, bytes.len(), &content), place)
                    });
                    if shared.is_none() {
                        seen.insert(content, (digest, position));
                        next += SALT_BYTES + align16(bytes.len());
                    }
                    let block = if shared.is_none() { Block::Stored(salt, bytes) } else { Block::Elsewhere };
                    let (length, form) = (narrow(bytes.len()), BodyForm::plain(narrow(bytes.len())));
                    Placed { row: DiskRow::new(event, (digest, length), form, position, true), block }
                }
            });
        }
    }
    rows
}
