//! Frames: decoding content and bodies.
//!
//! ```text
//! 0      160                                                                  content end               frame end
//! header | streams, 16 each | body rows, 48 each | envelopes, 32 each | payloads | salt bytes | salt bytes | .. zeros
//! ```
//!
//! Frames are made in `prepare`.

use std::collections::HashSet;
use std::sync::Arc;

use rkyv::util::AlignedVec;
use rustc_hash::FxHashMap;

use super::envelope::{DiskEnvelope, DiskRow, ROW_EVENT_OFFSET, check_block};
use super::fields::is_zero;
use super::held::FrameBytes;
use super::{
    BODY_CHUNK_BYTES_MAX, BODY_ROW_BYTES, BodyPlace, BodyRow, DamagedPart, ENVELOPE_BYTES, EVENT_BYTES_MAX,
    Envelope, FRAME_HEADER_BYTES, FRAME_NONCE_BYTES, FRAME_STREAM_BYTES, FrameHeader, Invalid, SALT_BYTES,
    SEAL_BLOCK_BYTES, TAG_BYTES,
};
use crate::ids::{Digest, Micros, Position, Seq, StreamId};

/// How much of a frame's content is checked when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameCheck {
    /// Checksum: finds accidents. Enough for a fold.
    Checksum,
    /// Checksum and digest: finds changes.
    Digest,
}

/// One event in so many of a frame has a mark, so that finding one costs the same in a long frame.
const MARK_STEP: usize = 16;

/// Where in the content the payload of an event begins, and its first row.
#[derive(Debug, Clone, Copy)]
struct PayloadStart {
    payload: usize,
    row: usize,
}

/// A frame without its bodies, checked. Cheap to clone.
#[derive(Clone)]
pub struct Frame {
    header: FrameHeader,
    held: FrameBytes,
    /// Where its events are, of each [`MARK_STEP`] the first; none if there are few.
    marks: Option<Arc<[PayloadStart]>>,
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("header", &self.header).finish_non_exhaustive()
    }
}

impl Frame {
    /// Checks a content against its header and takes it over.
    ///
    /// # Errors
    /// [`DamagedPart::Spine`] if the checksum, the digest (if asked for) or the structure is wrong.
    pub fn new(header: FrameHeader, content: AlignedVec<16>, check: FrameCheck) -> Result<Self, Invalid> {
        Self::checked(header, FrameBytes::all(content), check)
    }

    /// As [`Frame::new`], of bytes that were read at once: the content begins at `start`; bodies follow up to `end`.
    pub(crate) fn within(
        header: FrameHeader,
        read: &Arc<AlignedVec<16>>,
        start: usize,
        end: usize,
        check: FrameCheck,
    ) -> Result<Self, Invalid> {
        let length = usize::try_from(header.content_bytes()).unwrap_or(usize::MAX);
        let content_end = start.saturating_add(length).min(read.len());
        Self::checked(header, FrameBytes::within(read, start..content_end, end), check)
    }

    fn checked(header: FrameHeader, held: FrameBytes, check: FrameCheck) -> Result<Self, Invalid> {
        let content = held.content();
        if content.len() as u64 != header.content_bytes() {
            let (expected, found) = (header.content_bytes(), content.len());
            return wrong(0, format!("{expected} bytes"), format!("{found} bytes"));
        }
        let checksum = crc32c::crc32c(content);
        if checksum != header.content_checksum {
            let expected = format!("checksum {:08x}", header.content_checksum);
            return wrong(0, expected, format!("{checksum:08x}"));
        }
        if check == FrameCheck::Digest && *blake3::hash(content).as_bytes() != header.content_digest.0 {
            return wrong(0, format!("digest {}", header.content_digest), "another");
        }
        let mut frame = Self { header, held, marks: None };
        frame.check_events()?;
        frame.check_rows()?;
        frame.mark();
        Ok(frame)
    }

    /// A frame of this process's own making, which was written as it is. Its content is copied.
    pub(super) fn made(header: FrameHeader, content: &[u8]) -> Self {
        let mut bytes = AlignedVec::with_capacity(content.len());
        bytes.extend_from_slice(content);
        let mut frame = Self { header, held: FrameBytes::all(bytes), marks: None };
        frame.mark();
        frame
    }

    /// Notes where some events are, if there are many.
    fn mark(&mut self) {
        if self.event_count() > MARK_STEP {
            self.marks = Some(self.events().step_by(MARK_STEP).map(|event| event.mark).collect());
        }
    }

    /// Streams, body rows and spine.
    fn content(&self) -> &[u8] {
        self.held.content()
    }

    /// How many events can be read: none of a sealed frame that is not opened.
    fn event_count(&self) -> usize {
        if self.is_closed() { 0 } else { self.header.event_count as usize }
    }

    /// Whether the frame is sealed and was not opened by its key: it has streams and body rows, and no events.
    pub(crate) const fn is_closed(&self) -> bool {
        self.header.is_sealed() && !self.held.is_opened()
    }

    fn row_count(&self) -> usize {
        self.header.row_count as usize
    }

    /// Offset of the body rows in the content. No sum here is longer than a content, as the header says, and below.
    fn rows_start(&self) -> usize {
        let streams = (self.header.stream_count as usize).saturating_mul(FRAME_STREAM_BYTES);
        self.header.block_bytes().saturating_add(streams)
    }

    /// The block at the start of a sealed frame's content.
    pub(crate) fn seal_block(&self) -> Option<&[u8; SEAL_BLOCK_BYTES]> {
        if self.header.is_sealed() { self.content().first_chunk() } else { None }
    }

    /// The random bytes of a sealed frame, at the start of its block.
    fn nonce(&self) -> Option<&[u8; FRAME_NONCE_BYTES]> {
        self.seal_block().and_then(|block| block.first_chunk())
    }

    /// Streams and body rows, which a sealed frame has in plain behind its block; and the sealed spine.
    pub(crate) fn plain_and_spine(&self) -> (&[u8], &[u8]) {
        let start = self.header.block_bytes();
        let end = self.row_at(self.row_count());
        (self.part(start, end.saturating_sub(start)), self.content().get(end..).unwrap_or(&[]))
    }

    /// The frame with its spine opened.
    ///
    /// # Errors
    /// [`DamagedPart::Spine`] if the spine is none of this frame.
    pub(crate) fn opened(self, spine: &[u8]) -> Result<Self, Invalid> {
        let end = self.row_at(self.row_count());
        let mut content = AlignedVec::with_capacity(end.saturating_add(spine.len()));
        content.extend_from_slice(self.part(0, end));
        content.extend_from_slice(spine);
        let mut frame = Self { held: self.held.with_opened(content), ..self };
        frame.check_events()?;
        frame.mark();
        Ok(frame)
    }

    fn row_at(&self, index: usize) -> usize {
        self.rows_start().saturating_add(index.saturating_mul(BODY_ROW_BYTES))
    }

    fn envelope_at(&self, index: usize) -> usize {
        self.row_at(self.row_count()).saturating_add(index.saturating_mul(ENVELOPE_BYTES))
    }

    fn payloads_start(&self) -> usize {
        self.envelope_at(self.event_count())
    }

    /// `length` bytes of the content at an offset; fewer only past its end.
    fn part(&self, at: usize, length: usize) -> &[u8] {
        self.content().get(at..at.saturating_add(length)).unwrap_or(&[])
    }

    /// The stream of this ordinal; a frame was checked to name no others.
    fn stream(&self, ordinal: u16) -> StreamId {
        let at = usize::from(ordinal).saturating_mul(FRAME_STREAM_BYTES);
        let at = self.header.block_bytes().saturating_add(at);
        StreamId(self.part(at, FRAME_STREAM_BYTES).first_chunk().copied().unwrap_or_default())
    }

    fn disk_envelope(&self, index: usize) -> DiskEnvelope {
        DiskEnvelope::decode(self.part(self.envelope_at(index), ENVELOPE_BYTES))
    }

    fn disk_row(&self, index: usize) -> DiskRow {
        DiskRow::decode(self.part(self.row_at(index), BODY_ROW_BYTES))
    }

    fn disk_rows(&self) -> impl Iterator<Item = DiskRow> + '_ {
        (0..self.row_count()).map(|index| self.disk_row(index))
    }

    /// The ordinal of a row's event: finding an event's rows needs nothing else.
    fn row_event(&self, index: usize) -> Option<u16> {
        let at = self.row_at(index).saturating_add(ROW_EVENT_OFFSET);
        self.part(at, 2).first_chunk().copied().map(u16::from_le_bytes)
    }

    fn resolved(&self, row: &DiskRow) -> BodyRow {
        // The stream of an event that is not opened is not known.
        let stream = if self.is_closed() {
            StreamId::STORE
        } else {
            self.stream(self.disk_envelope(row.event.into()).stream)
        };
        row.resolve(&self.header, stream, self.nonce())
    }

    /// Payloads fill the spine behind the envelopes. Each stream is there once, in the order of their first events.
    fn check_events(&self) -> Result<(), Invalid> {
        if self.is_closed() {
            return self.check_streams();
        }
        let mut at = self.payloads_start();
        let mut streams = 0_u32;
        for index in 0..self.event_count() {
            let envelope = self.disk_envelope(index);
            let length = envelope.payload_bytes as usize;
            at = at.saturating_add(length);
            if length > EVENT_BYTES_MAX || at > self.content().len() {
                let found = format!("{length} bytes");
                return wrong(self.envelope_at(index), "a payload within the spine", found);
            }
            let stream = u32::from(envelope.stream);
            if stream > streams || stream >= self.header.stream_count {
                let found = format!("stream {stream}");
                return wrong(self.envelope_at(index), "a stream of the frame, in order", found);
            }
            if stream == streams {
                streams = streams.saturating_add(1);
            }
        }
        if at != self.content().len() {
            return wrong(at, "the end of the payloads", "more bytes");
        }
        if streams != self.header.stream_count {
            return wrong(0, format!("{streams} streams"), format!("{} streams", self.header.stream_count));
        }
        self.check_streams()
    }

    fn check_streams(&self) -> Result<(), Invalid> {
        // The rows begin behind the block.
        let (start, length) =
            (self.header.block_bytes(), self.rows_start().saturating_sub(self.header.block_bytes()));
        let ids = self.part(start, length).chunks_exact(FRAME_STREAM_BYTES);
        let mut seen: HashSet<&[u8]> = HashSet::new();
        if self.header.stream_count > 1 && !ids.into_iter().all(|id| seen.insert(id)) {
            return wrong(0, "each stream once", "one twice");
        }
        Ok(())
    }

    /// Rows are in the order of their events. Their blocks tile the bodies exactly, or repeat one that does.
    fn check_rows(&self) -> Result<(), Invalid> {
        let limits = 1..=BODY_CHUNK_BYTES_MAX;
        let added = if self.header.is_sealed() { TAG_BYTES } else { 0 };
        let stored_limits = 1 + added..=BODY_CHUNK_BYTES_MAX + added;
        let (mut next, mut event) = (0_u64, 0_u16);
        // Built at the first row that repeats another; most frames have none.
        let mut stored: Option<FxHashMap<u32, (Digest, u32, u32, u8)>> = None;
        for (index, row) in self.disk_rows().enumerate() {
            let fail = |expected: &str| wrong(self.row_at(index), expected, "another");
            if row.event < event || u32::from(row.event) >= self.header.event_count {
                return fail("a row of the same or a later event");
            }
            event = row.event;
            if !limits.contains(&(row.bytes as usize))
                || !stored_limits.contains(&(row.stored_bytes as usize))
            {
                return fail("a body within the limits");
            }
            if u64::from(row.offset) == next {
                next = next.saturating_add(row.block_bytes());
                if let Some(stored) = &mut stored {
                    stored.insert(row.offset, row.block());
                }
                continue;
            }
            let stored = stored.get_or_insert_with(|| {
                self.disk_rows().take(index).map(|row| (row.offset, row.block())).collect()
            });
            if stored.get(&row.offset) != Some(&row.block()) {
                return fail("a body of this frame");
            }
        }
        if next != u64::from(self.header.bodies_bytes) {
            let found = format!("rows for {next} bytes");
            return wrong(self.rows_start(), format!("rows for {} bytes", self.header.bodies_bytes), found);
        }
        Ok(())
    }

    /// The seq of the first event.
    pub fn first_seq(&self) -> Seq {
        self.header.first_seq
    }

    /// The seq of the last event.
    pub fn last_seq(&self) -> Seq {
        self.header.last_seq()
    }

    /// Bytes of the content.
    pub(crate) fn content_bytes(&self) -> usize {
        self.content().len()
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

    /// The streams of its events, each once, in the order of their first events.
    pub fn streams(&self) -> impl Iterator<Item = StreamId> + '_ {
        (0..u16::try_from(self.header.stream_count).unwrap_or(u16::MAX)).map(|ordinal| self.stream(ordinal))
    }

    /// Its events, in order.
    pub fn events(&self) -> impl Iterator<Item = EventRef<'_>> {
        self.events_from(0, PayloadStart { payload: self.payloads_start(), row: 0 })
    }

    /// Its events from one on, whose mark is known.
    fn events_from(&self, first: usize, mark: PayloadStart) -> impl Iterator<Item = EventRef<'_>> {
        let PayloadStart { payload: mut payload_at, mut row } = mark;
        (first..self.event_count()).map(move |index| {
            let mark = PayloadStart { payload: payload_at, row };
            let disk = self.disk_envelope(index);
            let length = disk.payload_bytes as usize;
            let payload = self.part(payload_at, length);
            payload_at = payload_at.saturating_add(length);
            while row < self.row_count()
                && self.row_event(row).is_some_and(|event| usize::from(event) == index)
            {
                row += 1;
            }
            let ordinal = u32::try_from(index).unwrap_or(u32::MAX);
            EventRef {
                frame: self,
                seq: self.header.first_seq.plus(ordinal.into()),
                envelope: disk.of(self.stream(disk.stream)),
                payload,
                ordinal,
                mark,
                row_count: row - mark.row,
            }
        })
    }

    /// The event at `seq`, if it is here. Cost: a walk over a few events.
    pub fn event(&self, seq: Seq) -> Option<EventRef<'_>> {
        let index = usize::try_from(seq.0.checked_sub(self.header.first_seq.0)?).ok()?;
        let step = index / MARK_STEP;
        match self.marks.as_ref().and_then(|marks| marks.get(step)) {
            Some(mark) => self.events_from(step * MARK_STEP, *mark).nth(index % MARK_STEP),
            None => self.events().nth(index),
        }
    }

    /// All rows of its events, with their places.
    pub fn rows(&self) -> impl Iterator<Item = BodyRow> + '_ {
        self.disk_rows().map(|row| self.resolved(&row))
    }

    /// The blocks stored in this frame, in order: for each the first row that names it.
    pub fn blocks(&self) -> impl Iterator<Item = BodyRow> + '_ {
        let mut next = 0;
        self.disk_rows().filter_map(move |row| {
            if u64::from(row.offset) != next {
                return None;
            }
            next = next.saturating_add(row.block_bytes());
            Some(self.resolved(&row))
        })
    }

    /// Salt and stored bytes of a body of this frame, if they were read with it. They are not checked.
    pub(crate) fn block_at_hand(&self, row: &BodyRow) -> Option<&[u8]> {
        let position = self.header.position;
        if row.place.segment != position.segment() {
            return None;
        }
        let start = position.offset().checked_add(self.header.bodies_start())?;
        let at = usize::try_from(row.place.offset.checked_sub(start)?).ok()?;
        let length = SALT_BYTES.checked_add(row.stored_bytes as usize)?;
        self.held.bodies().get(at..at.checked_add(length)?)
    }

    /// The same frame in memory of its own, without the bodies that were read with it.
    #[must_use]
    pub(crate) fn alone(&self) -> Self {
        Self { held: self.held.alone(), ..self.clone() }
    }

    /// Checks every body stored in this frame, and the zeros at its end. `bodies` is all that follows the content.
    ///
    /// Calls `damaged` with each row whose bytes do not fit its digest; with a row of no bytes if the end of the frame is not zeros.
    pub fn check_bodies(&self, bodies: &[u8], mut damaged: impl FnMut(BodyRow, Invalid)) {
        let mut failed: FxHashMap<u32, Invalid> = FxHashMap::default();
        let mut next = 0;
        for row in self.disk_rows() {
            let whole = self.resolved(&row);
            if u64::from(row.offset) == next {
                next = next.saturating_add(row.block_bytes());
                let block = bodies.get(row.offset as usize..).unwrap_or(&[]);
                if let Err(mut invalid) = check_block(block, &whole) {
                    invalid.offset = self.header.bodies_start().saturating_add(u64::from(row.offset));
                    failed.insert(row.offset, invalid);
                }
            }
            if let Some(invalid) = failed.get(&row.offset) {
                damaged(whole, invalid.clone());
            }
        }
        let end = bodies.get(self.header.bodies_bytes as usize..);
        // A frame ends behind the start of its bodies.
        let length = self.header.frame_bytes().saturating_sub(self.header.bodies_start());
        if bodies.len() as u64 != length || !end.is_some_and(is_zero) {
            let at = self.header.bodies_start().saturating_add(u64::from(self.header.bodies_bytes));
            let offset = usize::try_from(at).unwrap_or(usize::MAX);
            let invalid =
                Invalid::new(DamagedPart::Rubbish, offset, "zeros up to the frame's end", "other bytes");
            damaged(self.end_row(at), invalid);
        }
    }

    /// A row of no bytes at the end of the bodies.
    fn end_row(&self, at: u64) -> BodyRow {
        let position = self.header.position;
        BodyRow {
            // A frame has at least one event.
            event: self.header.event_count.saturating_sub(1),
            digest: Digest::ZERO,
            bytes: 0,
            stream: StreamId::STORE,
            stored_bytes: 0,
            place: BodyPlace { segment: position.segment(), offset: position.offset().saturating_add(at) },
            codec: 0,
            unit: None,
        }
    }
}

/// An error about the content at an offset.
fn wrong<T>(at: usize, expected: impl Into<String>, found: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid::new(DamagedPart::Spine, FRAME_HEADER_BYTES.saturating_add(at), expected, found))
}

/// One event of a frame, still encoded.
#[derive(Debug, Clone, Copy)]
pub struct EventRef<'a> {
    frame: &'a Frame,
    /// Its seq.
    pub seq: Seq,
    /// Its envelope.
    pub envelope: Envelope,
    /// Its payload.
    pub payload: &'a [u8],
    ordinal: u32,
    mark: PayloadStart,
    row_count: usize,
}

impl EventRef<'_> {
    /// Its envelope as it stands in the spine.
    pub(super) fn envelope_bytes(&self) -> &[u8] {
        self.frame.part(self.frame.envelope_at(self.ordinal as usize), ENVELOPE_BYTES)
    }

    /// Its row `index` as it stands in the body table.
    pub(super) fn row_bytes(&self, index: usize) -> &[u8] {
        self.frame.part(self.frame.row_at(self.mark.row.saturating_add(index)), BODY_ROW_BYTES)
    }

    /// How many bodies (or chunks) it names.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Its row `index`, counted from 0 within the event.
    pub fn row(&self, index: usize) -> Option<BodyRow> {
        let number = self.mark.row.checked_add(index).filter(|_| index < self.row_count)?;
        let row = self.frame.disk_row(number);
        Some(row.resolve(&self.frame.header, self.envelope.stream, self.frame.nonce()))
    }

    /// Its rows in order.
    pub fn rows(&self) -> impl Iterator<Item = BodyRow> + '_ {
        (0..self.row_count).filter_map(|index| self.row(index))
    }
}
