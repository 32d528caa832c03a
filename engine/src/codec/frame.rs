//! Whole frames: decoding spine and bodies.
//!
//! ```text
//! 0      160           160 + 48 n                                 spine end
//! header | envelopes   | payloads, each padded to 16 | body rows  | salt bytes pad | salt bytes pad | ..
//! ```
//!
//! How one is made is in `prepare`.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use rkyv::util::AlignedVec;
use rustc_hash::FxHashMap;

use super::body::check_block;
use super::envelope::DiskRow;
use super::fields::{align16, is_zero};
use super::prepare::{narrow, resolve};
use super::{
    BODY_CHUNK_BYTES_MAX, BODY_ROW_BYTES, BodyRow, ENVELOPE_BYTES, EVENT_BYTES_MAX, Envelope,
    FRAME_HEADER_BYTES, FrameHeader, Invalid, Part, SALT_BYTES,
};
use crate::ids::{Digest, Micros, Position, Seq};

/// How much of a frame's spine is checked when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameCheck {
    /// Checksum: finds accidents. What a fold needs.
    Checksum,
    /// Checksum and digest: finds changes.
    Digest,
}

/// A frame without its bodies, checked: all its events, or a [part](super::Outline) of them. Cheap to clone.
#[derive(Clone)]
pub struct Frame {
    header: FrameHeader,
    /// The spine, or pieces of it.
    bytes: Arc<AlignedVec<16>>,
    span: Span,
    /// Of one with many events.
    places: Option<Arc<OnceLock<Vec<EventPlace>>>>,
}

/// Which events are here, and where in the bytes at hand their envelopes, payloads and rows begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Ordinal of the first event in the frame.
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) envelopes: usize,
    pub(super) payloads: usize,
    pub(super) rows: usize,
    pub(super) row_count: usize,
}

/// Where the payload of an event begins in the spine, and its rows in the table.
#[derive(Debug, Clone, Copy, Default)]
struct EventPlace {
    payload: u32,
    first_row: u32,
}

/// Events up to this ordinal are found by walking: most frames are small, and never need a table.
const WALK_COUNT_MAX: u32 = 16;

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("header", &self.header).finish_non_exhaustive()
    }
}

impl Frame {
    /// Checks a spine against its header and takes it over.
    ///
    /// # Errors
    /// [`Part::Spine`] if the checksum, the digest (if asked for) or the structure is wrong.
    pub fn new(header: FrameHeader, spine: AlignedVec<16>, check: FrameCheck) -> Result<Self, Invalid> {
        let fail = |offset: usize, expected: String, found: String| {
            Err(Invalid::new(Part::Spine, FRAME_HEADER_BYTES.saturating_add(offset), expected, found))
        };
        if spine.len() != header.spine_bytes as usize {
            return fail(0, format!("{} bytes", header.spine_bytes), format!("{} bytes", spine.len()));
        }
        let checksum = crc32c::crc32c(&spine);
        if checksum != header.spine_checksum {
            return fail(0, format!("checksum {:08x}", header.spine_checksum), format!("{checksum:08x}"));
        }
        if check == FrameCheck::Digest && *blake3::hash(&spine).as_bytes() != header.spine_digest.0 {
            return fail(0, format!("digest {}", header.spine_digest), "another".to_owned());
        }
        let rows_bytes = (header.row_count as usize).saturating_mul(BODY_ROW_BYTES);
        let rows_start = spine.len().saturating_sub(rows_bytes);
        let span = Span {
            first: 0,
            count: header.event_count,
            envelopes: 0,
            payloads: (header.event_count as usize).saturating_mul(ENVELOPE_BYTES),
            rows: rows_start,
            row_count: header.row_count as usize,
        };
        let frame = Self::of(header, Arc::new(spine), span);
        let payloads_end = frame.check_payloads()?;
        if payloads_end != rows_start {
            return fail(payloads_end, "body rows after the payloads".to_owned(), "other bytes".to_owned());
        }
        frame.check_rows()?;
        Ok(frame)
    }

    /// A frame of checked bytes.
    pub(super) fn of(header: FrameHeader, bytes: Arc<AlignedVec<16>>, span: Span) -> Self {
        let places = (span.count > WALK_COUNT_MAX).then(Arc::default);
        Self { header, bytes, span, places }
    }

    /// The bytes at hand, and what is where in them.
    pub(super) fn parts(&self) -> (&Arc<AlignedVec<16>>, Span) {
        (&self.bytes, self.span)
    }

    fn check_payloads(&self) -> Result<usize, Invalid> {
        let mut at = self.span.payloads;
        for ordinal in 0..self.header.event_count as usize {
            let (_, length) = self.envelope(ordinal);
            let (end, next) = (at.saturating_add(length), at.saturating_add(align16(length)));
            let padding = self.bytes.get(end..next).filter(|_| next <= self.span.rows);
            if length > EVENT_BYTES_MAX || !padding.is_some_and(is_zero) {
                let offset = FRAME_HEADER_BYTES + ordinal * ENVELOPE_BYTES;
                return Err(Invalid::new(
                    Part::Spine,
                    offset,
                    "a payload within the spine",
                    format!("{length} bytes"),
                ));
            }
            at = next;
        }
        Ok(at)
    }

    /// Rows are in the order of their events; those in the frame tile the bodies exactly, or repeat one that does.
    fn check_rows(&self) -> Result<(), Invalid> {
        let bodies_start = FRAME_HEADER_BYTES + self.bytes.len();
        let mut next = bodies_start as u64;
        // Built at the first row that repeats another; most frames have none.
        let mut stored: Option<FxHashMap<Position, (Digest, u32)>> = None;
        let mut event = 0;
        for index in 0..self.header.row_count as usize {
            let fail = |expected: &str| {
                let offset = FRAME_HEADER_BYTES + self.span.rows + index * BODY_ROW_BYTES;
                Err(Invalid::new(Part::Spine, offset, expected, "another"))
            };
            let Some(disk) = self.disk_row(index) else { return fail("a body row of format 1") };
            let row = disk.row;
            if row.event < event || row.event >= self.header.event_count {
                return fail("a row of the same or a later event");
            }
            event = row.event;
            if row.bytes == 0 || row.bytes as usize > BODY_CHUNK_BYTES_MAX {
                return fail("a body within the limits");
            }
            if !disk.in_frame {
                if row.position >= self.header.position {
                    return fail("a body stored before this frame");
                }
            } else if row.position.0.checked_mul(Position::GRAIN_BYTES) == Some(next) {
                if let Some(stored) = &mut stored {
                    stored.insert(row.position, (row.digest, row.bytes));
                }
                next = next.saturating_add((SALT_BYTES + align16(row.bytes as usize)) as u64);
            } else {
                let stored = stored.get_or_insert_with(|| {
                    let earlier =
                        (0..index).filter_map(|index| self.disk_row(index)).filter(|disk| disk.in_frame);
                    earlier.map(|disk| (disk.row.position, (disk.row.digest, disk.row.bytes))).collect()
                });
                if stored.get(&row.position) != Some(&(row.digest, row.bytes)) {
                    return fail("a body of this frame");
                }
            }
        }
        if next != self.header.frame_bytes() {
            let found = format!("rows up to byte {next}");
            return Err(Invalid::new(
                Part::Spine,
                FRAME_HEADER_BYTES + self.span.rows,
                "rows for all bodies",
                found,
            ));
        }
        Ok(())
    }

    /// The envelope of an event, counted from the first that is here, and the length of its payload.
    fn envelope(&self, index: usize) -> (Envelope, usize) {
        let at = self.span.envelopes.saturating_add(index.saturating_mul(ENVELOPE_BYTES));
        let (envelope, length) = Envelope::decode(self.bytes.get(at..).unwrap_or(&[]));
        (envelope, length as usize)
    }

    /// A row, counted from the first that is here.
    fn disk_row(&self, index: usize) -> Option<DiskRow> {
        let at = self.span.rows.saturating_add(index.saturating_mul(BODY_ROW_BYTES));
        DiskRow::decode(self.bytes.get(at..at.saturating_add(BODY_ROW_BYTES))?)
    }

    /// Whether all events of the frame are here.
    pub fn is_whole(&self) -> bool {
        self.span.count == self.header.event_count
    }

    /// The seq of the first event that is here.
    pub fn first_seq(&self) -> Seq {
        Seq(self.header.first_seq.0.saturating_add(u64::from(self.span.first)))
    }

    /// The seq of the last event that is here.
    pub fn last_seq(&self) -> Seq {
        Seq(self.first_seq().0.saturating_add(u64::from(self.span.count)).saturating_sub(1))
    }

    /// Bytes of the spine that are here.
    pub(crate) fn spine_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The frame's header.
    pub fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// Where the frame is.
    pub fn position(&self) -> Position {
        self.header.position
    }

    /// When its events were recorded.
    pub fn time(&self) -> Micros {
        self.header.time
    }

    /// Its events that are here, in order.
    pub fn events(&self) -> impl Iterator<Item = EventRef<'_>> {
        self.placed().map(|(_, event)| event)
    }

    /// The events that are here, each with where its payload begins.
    pub(super) fn placed(&self) -> impl Iterator<Item = (usize, EventRef<'_>)> {
        let (first, first_seq) = (self.span.first, self.first_seq());
        let (mut payload_at, mut row) = (self.span.payloads, 0);
        (0..self.span.count).map(move |index| {
            let (envelope, length) = self.envelope(index as usize);
            let start = payload_at;
            let payload = self.bytes.get(start..start.saturating_add(length)).unwrap_or(&[]);
            payload_at = start.saturating_add(align16(length));
            let (first_row, ordinal) = (row, first.saturating_add(index));
            while row < self.span.row_count
                && self.disk_row(row).is_some_and(|disk| disk.row.event == ordinal)
            {
                row += 1;
            }
            let seq = Seq(first_seq.0.saturating_add(u64::from(index)));
            (start, EventRef { frame: self, seq, envelope, payload, first_row, row_count: row - first_row })
        })
    }

    /// The event at `seq`, if it is here. Cost: O(1), after one walk through a large frame.
    pub fn event(&self, seq: Seq) -> Option<EventRef<'_>> {
        let index = usize::try_from(seq.0.checked_sub(self.first_seq().0)?).ok()?;
        let places = match &self.places {
            Some(places) if index >= WALK_COUNT_MAX as usize => places.get_or_init(|| self.event_places()),
            _ => return self.events().nth(index),
        };
        let place = places.get(index)?;
        let (envelope, length) = self.envelope(index);
        let payload_at = place.payload as usize;
        let payload = self.bytes.get(payload_at..payload_at.saturating_add(length))?;
        let first_row = place.first_row as usize;
        let end = places.get(index + 1).map_or(self.span.row_count, |next| next.first_row as usize);
        let row_count = end.saturating_sub(first_row);
        Some(EventRef { frame: self, seq, envelope, payload, first_row, row_count })
    }

    fn event_places(&self) -> Vec<EventPlace> {
        let place = |(payload, event): (usize, EventRef<'_>)| EventPlace {
            payload: narrow(payload),
            first_row: narrow(event.first_row),
        };
        self.placed().map(place).collect()
    }

    /// All rows of its events that are here, with absolute positions.
    pub fn rows(&self) -> impl Iterator<Item = BodyRow> + '_ {
        (0..self.span.row_count)
            .filter_map(|index| self.disk_row(index))
            .map(|row| resolve(&row, self.header.position))
    }

    /// The blocks stored in this frame, in order: for each the first row that names it. Of a whole frame.
    pub fn blocks(&self) -> impl Iterator<Item = BodyRow> + '_ {
        debug_assert!(self.is_whole(), "a part does not know where the bodies begin");
        let mut next = FRAME_HEADER_BYTES + self.header.spine_bytes as usize;
        (0..self.span.row_count).filter_map(move |index| {
            let disk = self.disk_row(index).filter(|disk| disk.in_frame)?;
            if disk.row.position.0.checked_mul(Position::GRAIN_BYTES) != Some(next as u64) {
                return None;
            }
            next = next.saturating_add(SALT_BYTES + align16(disk.row.bytes as usize));
            Some(resolve(&disk, self.header.position))
        })
    }

    /// Checks every body stored in this frame, which is whole. `bodies` is all that follows the spine.
    ///
    /// Calls `damaged` with each row whose bytes are not what its digest says.
    pub fn check_bodies(&self, bodies: &[u8], mut damaged: impl FnMut(BodyRow, Invalid)) {
        let spine_end = FRAME_HEADER_BYTES + self.header.spine_bytes as usize;
        let start = self.header.position.offset().saturating_add(spine_end as u64);
        self.check_blocks(
            |row, length| {
                let at = usize::try_from(row.position.offset().saturating_sub(start)).unwrap_or(usize::MAX);
                Ok(bodies.get(at..at.saturating_add(length)).unwrap_or(&[]))
            },
            &mut damaged,
        );
    }

    /// As [`Frame::check_bodies`], for blocks that `block` fetches: salt, body and zeros, given a row and their length.
    pub(crate) fn check_blocks<B: AsRef<[u8]>>(
        &self,
        mut block: impl FnMut(&BodyRow, usize) -> Result<B, Invalid>,
        damaged: &mut impl FnMut(BodyRow, Invalid),
    ) {
        let mut failed: HashMap<Position, Invalid> = HashMap::new();
        let start = self.header.position.offset();
        let mut blocks = self.blocks().peekable();
        for index in 0..self.span.row_count {
            let Some(disk) = self.disk_row(index).filter(|disk| disk.in_frame) else { continue };
            let row = resolve(&disk, self.header.position);
            if blocks.next_if(|next| next.position == row.position).is_some() {
                let length = SALT_BYTES + align16(row.bytes as usize);
                let checked =
                    block(&row, length).and_then(|block| check_block(block.as_ref(), row.bytes, &row.digest));
                if let Err(mut invalid) = checked {
                    invalid.offset = row.position.offset().saturating_sub(start);
                    failed.insert(row.position, invalid);
                }
            }
            if let Some(invalid) = failed.get(&row.position) {
                damaged(row, invalid.clone());
            }
        }
    }
}

/// One event of a frame, still encoded.
#[derive(Debug, Clone, Copy)]
pub struct EventRef<'a> {
    frame: &'a Frame,
    /// Its seq.
    pub seq: Seq,
    /// Its envelope.
    pub envelope: Envelope,
    /// Its payload, at an address that is a multiple of 16.
    pub payload: &'a [u8],
    /// Its first row, counted from the first that is here.
    pub(super) first_row: usize,
    row_count: usize,
}

impl EventRef<'_> {
    /// How many bodies (or chunks) it names.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Its row `index`, counted from 0 within the event.
    pub fn row(&self, index: usize) -> Option<BodyRow> {
        let disk =
            self.frame.disk_row(self.first_row.checked_add(index)?).filter(|_| index < self.row_count)?;
        Some(resolve(&disk, self.frame.header.position))
    }

    /// Its rows in order.
    pub fn rows(&self) -> impl Iterator<Item = BodyRow> + '_ {
        (0..self.row_count).filter_map(|index| self.row(index))
    }
}

/// Decodes one whole frame from the start of `bytes` and checks everything, bodies included.
///
/// Takes any bytes: this is what fuzzing calls.
///
/// # Errors
/// [`Invalid`] names the first thing that is wrong.
pub fn decode_frame(bytes: &[u8]) -> Result<Frame, Invalid> {
    let header = FrameHeader::decode(bytes)?;
    let length = usize::try_from(header.frame_bytes()).unwrap_or(usize::MAX);
    let spine_end = FRAME_HEADER_BYTES + header.spine_bytes as usize;
    let (Some(spine), Some(bodies)) =
        (bytes.get(FRAME_HEADER_BYTES..spine_end), bytes.get(spine_end..length))
    else {
        return Err(Invalid::new(
            Part::FrameHeader,
            8,
            format!("{length} bytes"),
            format!("{} bytes", bytes.len()),
        ));
    };
    let mut aligned = AlignedVec::with_capacity(spine.len());
    aligned.extend_from_slice(spine);
    let frame = Frame::new(header, aligned, FrameCheck::Digest)?;
    let mut first = None;
    frame.check_bodies(bodies, |_, invalid| first = first.take().or(Some(invalid)));
    first.map_or(Ok(frame), Err)
}
