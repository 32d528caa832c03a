//! Frames and parts of frames: decoding spine and bodies.
//!
//! ```text
//! 0      160                                                            spine end
//! header | envelopes         | payloads, each padded to 16 | body rows  | salt bytes pad | salt bytes pad | ..
//! ```
//!
//! Frames are made in `prepare`.

use std::collections::HashMap;
use std::sync::Arc;

use rkyv::util::AlignedVec;
use rustc_hash::FxHashMap;

use super::envelope::check_block;
use super::envelope::{DiskRow, NEWER_VERSION, PayloadForm, ROW_EVENT_OFFSET};
use super::fields::{align16, is_zero};
use super::held::{Held, Span};
use super::{
    BODY_CHUNK_BYTES_MAX, BODY_ROW_BYTES, BodyRow, ENVELOPE_BYTES, EVENT_BYTES_MAX, Envelope,
    FRAME_HEADER_BYTES, FrameHeader, Invalid, Part, SALT_BYTES,
};
use crate::ids::{Digest, Micros, Position, Seq, StreamId};

/// How much of a frame's spine is checked when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameCheck {
    /// Checksum: finds accidents. Enough for a fold.
    Checksum,
    /// Checksum and digest: finds changes.
    Digest,
}

/// One event in so many of a frame has a mark, so that finding one costs the same in a long frame.
const MARK_STEP: usize = 16;

/// Where the payload of an event begins, and its first row.
#[derive(Debug, Clone, Copy)]
struct Mark {
    payload: usize,
    row: usize,
}

/// A frame without its bodies, checked. Cheap to clone.
#[derive(Clone)]
pub struct Frame {
    header: FrameHeader,
    held: Held,
    span: Span,
    /// Where the events of a whole frame are, of each [`MARK_STEP`] the first; none if there are few.
    marks: Option<Arc<[Mark]>>,
}

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
        Self::checked(header, Held::all(spine), check)
    }

    /// As [`Frame::new`], of bytes that were read at once: the spine begins at `start`, a multiple of 16; bodies follow up to `end`.
    pub(crate) fn within(
        header: FrameHeader,
        read: &Arc<AlignedVec<16>>,
        start: usize,
        end: usize,
        check: FrameCheck,
    ) -> Result<Self, Invalid> {
        let spine_end = start.saturating_add(header.spine_bytes as usize).min(read.len());
        Self::checked(header, Held::within(read, start..spine_end, end), check)
    }

    fn checked(header: FrameHeader, held: Held, check: FrameCheck) -> Result<Self, Invalid> {
        let spine = held.spine();
        let fail = |offset: usize, expected: String, found: String| {
            Err(Invalid::new(Part::Spine, FRAME_HEADER_BYTES.saturating_add(offset), expected, found))
        };
        if spine.len() != header.spine_bytes as usize {
            return fail(0, format!("{} bytes", header.spine_bytes), format!("{} bytes", spine.len()));
        }
        let checksum = crc32c::crc32c(spine);
        if checksum != header.spine_checksum {
            return fail(0, format!("checksum {:08x}", header.spine_checksum), format!("{checksum:08x}"));
        }
        let span = only_span(&header, spine.len());
        if check == FrameCheck::Digest && *blake3::hash(spine).as_bytes() != header.spine_digest.0 {
            return fail(0, format!("digest {}", header.spine_digest), "another".to_owned());
        }
        let mut frame = Self::of(header, held, span);
        frame.check_payloads()?;
        frame.check_rows()?;
        frame.mark();
        Ok(frame)
    }

    /// A frame of this process's own making, which was written as it is. Its spine is copied.
    pub(super) fn made(header: FrameHeader, spine: &[u8]) -> Self {
        let mut bytes = AlignedVec::with_capacity(spine.len());
        bytes.extend_from_slice(spine);
        let span = only_span(&header, spine.len());
        Self::of(header, Held::all(bytes), span)
    }

    /// A frame of checked bytes.
    fn of(header: FrameHeader, held: Held, span: Span) -> Self {
        Self { header, held, span, marks: None }
    }

    /// The spine.
    fn spine(&self) -> &[u8] {
        self.held.spine()
    }

    /// Salt and stored bytes of a body of this frame, if they were read with it. They are not checked.
    pub(crate) fn block_at_hand(&self, row: &BodyRow) -> Option<&[u8]> {
        let spine_bytes = self.header.spine_bytes as usize;
        if self.spine().len() != spine_bytes || row.position.segment() != self.header.position.segment() {
            return None;
        }
        let at = row.position.offset().checked_sub(self.header.position.offset())?;
        let start = usize::try_from(at).ok()?.checked_sub(FRAME_HEADER_BYTES + spine_bytes)?;
        let length = SALT_BYTES.checked_add(row.stored_bytes as usize)?;
        self.held.bodies().get(start..start.checked_add(length)?)
    }

    /// The same frame in memory of its own, without the bodies that were read with it.
    #[must_use]
    pub(crate) fn alone(&self) -> Self {
        Self { held: self.held.alone(), ..self.clone() }
    }

    fn spans(&self) -> &[Span] {
        std::slice::from_ref(&self.span)
    }

    /// Payloads follow each other from the envelopes to the rows, with zeros between.
    fn check_payloads(&self) -> Result<(), Invalid> {
        let fail = |at: usize, expected: &str, found: String| {
            Err(Invalid::new(Part::Spine, FRAME_HEADER_BYTES.saturating_add(at), expected, found))
        };
        for span in self.spans() {
            let envelopes_end =
                span.envelopes.saturating_add((span.count as usize).saturating_mul(ENVELOPE_BYTES));
            let gap = self.spine().get(envelopes_end..span.payloads).filter(|_| span.payloads <= span.rows);
            if !gap.is_some_and(is_zero) {
                return fail(envelopes_end, "envelopes and zeros within the spine", "other bytes".to_owned());
            }
            let mut at = span.payloads;
            for index in 0..span.count as usize {
                let (_, form) = self.envelope(span, index);
                let length = form.bytes as usize;
                let (end, next) = (at.saturating_add(length), at.saturating_add(align16(length)));
                let padding = self.spine().get(end..next).filter(|_| next <= span.rows);
                if length > EVENT_BYTES_MAX || !padding.is_some_and(is_zero) {
                    let offset = span.envelopes + index * ENVELOPE_BYTES;
                    return fail(offset, "a payload within the spine", format!("{length} bytes"));
                }
                at = next;
            }
            if at != span.rows {
                return fail(at, "body rows after the payloads", "other bytes".to_owned());
            }
        }
        Ok(())
    }

    /// Notes where some events are, if there are many.
    fn mark(&mut self) {
        if let [span] = self.spans()
            && span.count as usize > MARK_STEP
        {
            let marks = self.events_of(span).step_by(MARK_STEP).map(|event| event.mark);
            self.marks = Some(marks.collect());
        }
    }

    fn wrong_row(span: &Span, index: usize, expected: &str) -> Result<(), Invalid> {
        let offset = FRAME_HEADER_BYTES + span.rows + index * BODY_ROW_BYTES;
        Err(Invalid::new(Part::Spine, offset, expected, "another"))
    }

    /// Checks one row alone.
    fn check_row(&self, disk: &DiskRow) -> Result<(), &'static str> {
        let row = &disk.row;
        let limits = 1..=BODY_CHUNK_BYTES_MAX;
        if !limits.contains(&(row.bytes as usize))
            || !(1..=BODY_CHUNK_BYTES_MAX).contains(&(row.stored_bytes as usize))
        {
            return Err("a body within the limits");
        }
        if !disk.in_frame {
            let is_earlier = row.position < self.header.position;
            return if is_earlier { Ok(()) } else { Err("a body stored before this frame") };
        }
        let spine_end = FRAME_HEADER_BYTES as u64 + u64::from(self.header.spine_bytes);
        let start = row.position.0.checked_mul(Position::GRAIN_BYTES);
        let fits = start.is_some_and(|start| {
            start >= spine_end && start.saturating_add(block_bytes(row)) <= self.header.frame_bytes()
        });
        if fits { Ok(()) } else { Err("a body of this frame") }
    }

    /// Rows are in the order of their events; rows of bodies in the frame tile the bodies exactly, or repeat one that does.
    fn check_rows(&self) -> Result<(), Invalid> {
        let mut next = FRAME_HEADER_BYTES as u64 + u64::from(self.header.spine_bytes);
        // Built at the first row that repeats another; most frames have none.
        let mut stored: Option<FxHashMap<Position, (Digest, u32, u32)>> = None;
        let named = |disk: &DiskRow| (disk.row.digest, disk.row.bytes, disk.row.stored_bytes);
        let mut count = 0_usize;
        for span in self.spans() {
            let mut event = span.first;
            for (index, disk) in self.disk_rows_of(span).enumerate() {
                let row = disk.row;
                if row.event < event || row.event >= span.end() {
                    return Self::wrong_row(span, index, "a row of the same or a later event");
                }
                event = row.event;
                self.check_row(&disk).or_else(|expected| Self::wrong_row(span, index, expected))?;
                count = count.saturating_add(1);
                if !disk.in_frame {
                    continue;
                }
                if row.position.0.checked_mul(Position::GRAIN_BYTES) == Some(next) {
                    if let Some(stored) = &mut stored {
                        stored.insert(row.position, named(&disk));
                    }
                    next = next.saturating_add(block_bytes(&row));
                    continue;
                }
                let stored = stored.get_or_insert_with(|| {
                    let earlier = self.disk_rows().take(count - 1).filter(|disk| disk.in_frame);
                    earlier.map(|disk| (disk.row.position, named(&disk))).collect()
                });
                if stored.get(&row.position) != Some(&named(&disk)) {
                    return Self::wrong_row(span, index, "a body of this frame");
                }
            }
        }
        if next != self.header.frame_bytes() {
            let found = format!("rows up to byte {next}");
            let offset = FRAME_HEADER_BYTES + self.header.spine_bytes as usize;
            return Err(Invalid::new(Part::Spine, offset, "rows for all bodies", found));
        }
        Ok(())
    }

    /// The envelope of an event, counted from the first of its span, and the form of its payload.
    fn envelope(&self, span: &Span, index: usize) -> (Envelope, PayloadForm) {
        let at = span.envelopes.saturating_add(index.saturating_mul(ENVELOPE_BYTES));
        Envelope::decode(self.spine().get(at..).unwrap_or(&[]))
    }

    /// A row, counted from the first of its span.
    fn disk_row(&self, span: &Span, index: usize) -> DiskRow {
        let at = span.rows.saturating_add(index.saturating_mul(BODY_ROW_BYTES));
        let mut disk =
            DiskRow::decode(self.spine().get(at..at.saturating_add(BODY_ROW_BYTES)).unwrap_or(&[]));
        // A row of an event before its span is refused when the frame is checked; until then it counts to the first.
        let event = disk.row.event.saturating_sub(span.first) as usize;
        let stream = span.envelopes.saturating_add(event.saturating_mul(ENVELOPE_BYTES)).saturating_add(16);
        let stream = self.spine().get(stream..).and_then(<[u8]>::first_chunk);
        disk.row.stream = StreamId(stream.copied().unwrap_or_default());
        disk
    }

    /// The ordinal of a row's event: finding an event's rows needs nothing else.
    fn row_event(&self, span: &Span, index: usize) -> Option<u32> {
        let at = span.rows.checked_add(index.checked_mul(BODY_ROW_BYTES)?)?.checked_add(ROW_EVENT_OFFSET)?;
        self.spine().get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
    }

    fn disk_rows_of<'a>(&'a self, span: &'a Span) -> impl Iterator<Item = DiskRow> + 'a {
        (0..span.row_count).map(move |index| self.disk_row(span, index))
    }

    fn disk_rows(&self) -> impl Iterator<Item = DiskRow> + '_ {
        self.spans().iter().flat_map(|span| self.disk_rows_of(span))
    }

    /// Whether all events of the frame are here.
    pub fn is_whole(&self) -> bool {
        let count: u64 = self.spans().iter().map(|span| u64::from(span.count)).sum();
        count == u64::from(self.header.event_count)
    }

    /// The seq of the first event that is here.
    pub fn first_seq(&self) -> Seq {
        let first = self.spans().first().map_or(0, |span| span.first);
        self.header.first_seq.plus(u64::from(first))
    }

    /// The seq of the last event that is here.
    pub fn last_seq(&self) -> Seq {
        let end = self.spans().last().map_or(0, Span::end);
        self.header.first_seq.plus(u64::from(end)).before()
    }

    /// Bytes of the spine.
    pub(crate) fn spine_bytes(&self) -> usize {
        self.spine().len()
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
        self.spans().iter().flat_map(|span| self.events_of(span))
    }

    fn events_of<'a>(&'a self, span: &'a Span) -> impl Iterator<Item = EventRef<'a>> {
        self.events_from(span, 0, Mark { payload: span.payloads, row: 0 })
    }

    /// The events of a span from one on, whose mark is known.
    fn events_from<'a>(
        &'a self,
        span: &'a Span,
        first: u32,
        mark: Mark,
    ) -> impl Iterator<Item = EventRef<'a>> {
        let Mark { payload: mut payload_at, mut row } = mark;
        (first..span.count).map(move |index| {
            let mark = Mark { payload: payload_at, row };
            let (mut envelope, form) = self.envelope(span, index as usize);
            let (start, length) = (payload_at, form.bytes as usize);
            let payload = self.spine().get(start..start.saturating_add(length)).unwrap_or(&[]);
            payload_at = start.saturating_add(align16(length));
            let ordinal = span.first.saturating_add(index);
            if !form.is_known() {
                envelope.version = NEWER_VERSION;
            }
            while row < span.row_count && self.row_event(span, row) == Some(ordinal) {
                row += 1;
            }
            let seq = self.header.first_seq.plus(u64::from(ordinal));
            let row_count = row - mark.row;
            EventRef { frame: self, seq, envelope, payload, span, mark, row_count }
        })
    }

    /// The event at `seq`, if it is here. Cost: a walk over a few events.
    pub fn event(&self, seq: Seq) -> Option<EventRef<'_>> {
        let ordinal = u32::try_from(seq.0.checked_sub(self.header.first_seq.0)?).ok()?;
        let spans = self.spans();
        let span = spans.get(spans.partition_point(|span| span.end() <= ordinal))?;
        let index = ordinal.checked_sub(span.first)?;
        let step = index as usize / MARK_STEP;
        match self.marks.as_ref().and_then(|marks| marks.get(step)) {
            Some(mark) => {
                let first = u32::try_from(step * MARK_STEP).ok()?;
                self.events_from(span, first, *mark).nth(index.checked_sub(first)? as usize)
            }
            None => self.events_of(span).nth(index as usize),
        }
    }

    /// All rows of its events that are here, with absolute positions.
    pub fn rows(&self) -> impl Iterator<Item = BodyRow> + '_ {
        self.disk_rows().map(|row| row.resolve(self.header.position))
    }

    /// The blocks stored in this frame, in order: for each the first row that names it. Of a whole frame.
    pub fn blocks(&self) -> impl Iterator<Item = BodyRow> + '_ {
        debug_assert!(self.is_whole(), "a part does not know where the bodies begin");
        let mut next = FRAME_HEADER_BYTES as u64 + u64::from(self.header.spine_bytes);
        self.disk_rows().filter(|disk| disk.in_frame).filter_map(move |disk| {
            if disk.row.position.0.checked_mul(Position::GRAIN_BYTES) != Some(next) {
                return None;
            }
            next = next.saturating_add(block_bytes(&disk.row));
            Some(disk.resolve(self.header.position))
        })
    }

    /// Checks every body stored in this frame, which is whole. `bodies` is all that follows the spine.
    ///
    /// Calls `damaged` with each row whose bytes do not fit its digest.
    pub fn check_bodies(&self, bodies: &[u8], mut damaged: impl FnMut(BodyRow, Invalid)) {
        let spine_end = FRAME_HEADER_BYTES + self.header.spine_bytes as usize;
        let start = self.header.position.offset().saturating_add(spine_end as u64);
        self.check_blocks(
            |row, length| {
                let at = row.position.offset().checked_sub(start).and_then(|at| usize::try_from(at).ok());
                Ok(at.and_then(|at| bodies.get(at..at.saturating_add(length))).unwrap_or(&[]))
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
        for disk in self.disk_rows().filter(|disk| disk.in_frame) {
            let row = disk.resolve(self.header.position);
            if blocks.next_if(|next| next.position == row.position).is_some() {
                let length = SALT_BYTES + align16(row.stored_bytes as usize);
                let checked = block(&row, length).and_then(|block| check_block(block.as_ref(), &row));
                if let Err(mut invalid) = checked {
                    // A body of this frame is behind its start.
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

/// Where everything is in a spine.
fn only_span(header: &FrameHeader, spine_bytes: usize) -> Span {
    let rows_bytes = (header.row_count as usize).saturating_mul(BODY_ROW_BYTES);
    Span {
        first: 0,
        count: header.event_count,
        envelopes: 0,
        payloads: align16((header.event_count as usize).saturating_mul(ENVELOPE_BYTES)),
        // A header is refused whose spine is too short for its rows.
        rows: spine_bytes.saturating_sub(rows_bytes),
        row_count: header.row_count as usize,
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
    /// The events that it stands among, and its first row there.
    span: &'a Span,
    mark: Mark,
    row_count: usize,
}

impl EventRef<'_> {
    /// Its ordinal in the frame.
    fn ordinal(&self) -> u32 {
        u32::try_from(self.seq.since(self.frame.header.first_seq)).unwrap_or(u32::MAX)
    }

    /// Its envelope as it stands in the spine.
    pub(super) fn envelope_bytes(&self) -> &[u8] {
        // An event is made from its own span.
        let index = (self.ordinal() as usize).saturating_sub(self.span.first as usize);
        let at = self.span.envelopes.saturating_add(index.saturating_mul(ENVELOPE_BYTES));
        self.frame.spine().get(at..at.saturating_add(ENVELOPE_BYTES)).unwrap_or(&[])
    }

    /// Its row `index` as it stands in the spine.
    pub(super) fn row_bytes(&self, index: usize) -> &[u8] {
        let number = self.mark.row.saturating_add(index);
        let at = self.span.rows.saturating_add(number.saturating_mul(BODY_ROW_BYTES));
        self.frame.spine().get(at..at.saturating_add(BODY_ROW_BYTES)).unwrap_or(&[])
    }

    /// How many bodies (or chunks) it names.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Its row `index`, counted from 0 within the event.
    pub fn row(&self, index: usize) -> Option<BodyRow> {
        let number = self.mark.row.checked_add(index).filter(|_| index < self.row_count)?;
        Some(self.frame.disk_row(self.span, number).resolve(self.frame.header.position))
    }

    /// Its rows in order.
    pub fn rows(&self) -> impl Iterator<Item = BodyRow> + '_ {
        (0..self.row_count).filter_map(|index| self.row(index))
    }
}

/// Length of a block: salt, stored bytes of a body, zeros.
fn block_bytes(row: &BodyRow) -> u64 {
    (SALT_BYTES + align16(row.stored_bytes as usize)) as u64
}
