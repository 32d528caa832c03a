//! Rows of places in memory, in order: those of the last segment, and of a complete one whose file is missing or unsound.

use rustc_hash::FxHashMap;

use super::error::LogError;
use crate::codec::{Frame, FramePlace, PLACE_BYTES, PlaceRow, PlacesOf, SegmentHeader, stream_key};
use crate::ids::{Position, Seq, StreamId};

/// A stream's first frame and its newest seq.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamPlace {
    /// The stream.
    pub stream: StreamId,
    /// The frame of its first event.
    pub first: FramePlace,
    /// Its newest event.
    pub head: Seq,
}

/// A row, and the last seq of its frame, counted from the segment's first.
#[derive(Clone, Copy)]
struct RunRow {
    row: PlaceRow,
    last: u32,
}

/// A stream's first and last row.
#[derive(Clone, Copy)]
struct StreamSpan {
    first: u32,
    last: u32,
    /// Its id, once a frame was asked for it.
    id: Option<StreamId>,
}

/// Rows in order, without a break from the segment's start on, except where frames are damaged.
#[derive(Clone)]
pub(crate) struct PlaceRun {
    of: PlacesOf,
    rows: Vec<RunRow>,
    /// Everything before it is in the rows.
    end: Position,
    /// How many of the rows are in the list of streams.
    listed: usize,
    spans: FxHashMap<u64, StreamSpan>,
    /// Streams in order of their first rows.
    order: Vec<u64>,
    /// Frames are missing.
    has_gaps: bool,
}

fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The rows of a frame. If its events cannot be read, each stream counts as having the last of them.
pub(super) fn rows_of(frame: &Frame, of: PlacesOf) -> Vec<PlaceRow> {
    let streams: Vec<StreamId> = frame.streams().collect();
    // A frame has at least one event.
    let last = frame.header().event_count.saturating_sub(1);
    let mut lasts: FxHashMap<StreamId, u32> = FxHashMap::default();
    if streams.len() > 1 {
        lasts.extend((0..).zip(frame.events()).map(|(ordinal, event)| (event.envelope.stream, ordinal)));
    }
    // As above.
    let streams = streams.into_iter().map(|stream| (stream, lasts.get(&stream).copied().unwrap_or(last)));
    PlaceRow::of_frame(frame.header(), of, streams).collect()
}

impl PlaceRun {
    pub(crate) fn new(of: PlacesOf) -> Self {
        Self {
            of,
            rows: Vec::new(),
            end: SegmentHeader::start(of.segment),
            listed: 0,
            spans: FxHashMap::default(),
            order: Vec::new(),
            has_gaps: false,
        }
    }

    pub(crate) const fn of(&self) -> PlacesOf {
        self.of
    }

    pub(crate) const fn end(&self) -> Position {
        self.end
    }

    pub(crate) fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// The rows from one on, as they are on disk.
    pub(crate) fn encode(&self, from: usize) -> Vec<u8> {
        let rows = self.rows.iter().enumerate().skip(from);
        rows.flat_map(|(number, row)| row.row.encode(self.of, narrow(number))).collect()
    }

    /// Everything before `end` was looked at.
    pub(crate) fn reach(&mut self, end: Position) {
        self.end = self.end.max(end);
    }

    /// A frame is damaged and has no row.
    pub(crate) fn miss(&mut self) {
        self.has_gaps = true;
    }

    /// Whether all frames up to its end have their rows.
    pub(crate) const fn is_whole(&self) -> bool {
        !self.has_gaps
    }

    /// Adds a frame.
    pub(crate) fn push(&mut self, frame: &Frame) {
        self.push_rows(&rows_of(frame, self.of));
    }

    fn push_rows(&mut self, rows: &[PlaceRow]) {
        let lasts = rows.iter().map(|row| row.seq.saturating_add(row.last.into()));
        // Without rows nothing is added.
        let last = lasts.max().unwrap_or_default();
        self.rows.extend(rows.iter().map(|row| RunRow { row: *row, last }));
        if let Some(row) = rows.first() {
            self.end = self.of.position(row.end());
        }
    }

    /// Takes rows from their bytes as long as they go on without a break: sound, all rows of a frame, and each frame where the one before
    /// ends. Rows of frames that end behind `until` are left.
    pub(crate) fn take(&mut self, bytes: &[u8], until: Position) {
        let mut rest = bytes;
        loop {
            let number = self.rows.len();
            let row_at = |index: usize| {
                let start = index.checked_mul(PLACE_BYTES)?;
                let bytes = rest.get(start..start.checked_add(PLACE_BYTES)?)?;
                PlaceRow::decode(self.of, narrow(number.saturating_add(index)), bytes)
            };
            let Some(first) = row_at(0) else { return };
            let count = usize::from(first.others).saturating_add(1);
            let next = self.rows.last().map_or(0, |row| row.last.saturating_add(1));
            let follows = self.of.position(first.grain) == self.end && first.grains > 0 && first.seq == next;
            if !follows || self.of.position(first.end()) > until {
                return;
            }
            let same = |row: &PlaceRow| PlaceRow { key: first.key, last: first.last, ..*row } == first;
            let rows: Option<Vec<PlaceRow>> = (0..count).map(|index| row_at(index).filter(same)).collect();
            let Some(rows) = rows else { return };
            self.push_rows(&rows);
            rest = rest.get(count.saturating_mul(PLACE_BYTES)..).unwrap_or_default();
        }
    }

    fn frame(&self, row: &RunRow) -> FramePlace {
        row.row.frame(self.of, self.of.seq(row.last))
    }

    /// The rows of frames that end past `after`.
    fn past(&self, after: Seq) -> &[RunRow] {
        let from = self.rows.partition_point(|row| self.of.seq(row.last) <= after);
        self.rows.get(from..).unwrap_or_default()
    }

    /// Frames that hold events of any of `streams` past `after`, oldest first, each once.
    pub(crate) fn frames_of(&self, streams: &[StreamId], after: Seq) -> Vec<FramePlace> {
        let keys: Vec<u64> = streams.iter().map(|stream| stream_key(*stream)).collect();
        let mut found: Vec<FramePlace> = Vec::new();
        for row in self.past(after).iter().filter(|row| keys.contains(&row.row.key)) {
            let frame = self.frame(row);
            if found.last() != Some(&frame) {
                found.push(frame);
            }
        }
        found
    }

    /// The newest `count` frames that hold events of a stream, oldest first.
    pub(crate) fn last_frames_of(&self, stream: StreamId, count: usize) -> Vec<FramePlace> {
        let key = stream_key(stream);
        // A frame has one row of a stream.
        let newest = self.rows.iter().rev().filter(|row| row.row.key == key).take(count);
        let mut found: Vec<FramePlace> = newest.map(|row| self.frame(row)).collect();
        found.reverse();
        found
    }

    /// All frames past `after`.
    pub(crate) fn frames(&self, after: Seq) -> Vec<FramePlace> {
        let mut found: Vec<FramePlace> = self.past(after).iter().map(|row| self.frame(row)).collect();
        found.dedup();
        found
    }

    /// The frame that holds a seq.
    pub(crate) fn frame_of(&self, seq: Seq) -> Option<FramePlace> {
        let row = self.past(seq.before()).first()?;
        Some(self.frame(row)).filter(|frame| frame.first_seq <= seq)
    }

    /// The frame of one row, and the newest seq of the stream of another.
    pub(crate) fn span(&self, first: u32, last: u32) -> Option<(FramePlace, Seq)> {
        let (first, last) = (self.rows.get(first as usize)?, self.rows.get(last as usize)?);
        Some((self.frame(first), last.row.head(self.of)))
    }

    /// The first frame of a stream, and its newest seq.
    pub(crate) fn span_of(&self, stream: StreamId) -> Option<(FramePlace, Seq)> {
        let key = stream_key(stream);
        let first = self.rows.iter().find(|row| row.row.key == key)?;
        let last = self.rows.iter().rfind(|row| row.row.key == key)?;
        Some((self.frame(first), last.row.head(self.of)))
    }

    /// As [`PlaceRun::span_of`], from the list of streams, which it brings up to date.
    pub(crate) fn span_now(&mut self, stream: StreamId) -> Option<(FramePlace, Seq)> {
        self.list();
        let span = self.spans.get(&stream_key(stream))?;
        self.span(span.first, span.last)
    }

    fn list(&mut self) {
        for (number, row) in self.rows.iter().enumerate().skip(self.listed) {
            let number = narrow(number);
            let span = self.spans.entry(row.row.key).or_insert_with(|| {
                self.order.push(row.row.key);
                StreamSpan { first: number, last: number, id: None }
            });
            span.last = number;
        }
        self.listed = self.rows.len();
    }

    /// The streams in order of their first events. Rows have half of a stream's id; its first frame has all of it.
    pub(crate) fn streams(
        &mut self,
        read: &dyn Fn(Position) -> Result<Frame, LogError>,
    ) -> Result<Vec<StreamPlace>, LogError> {
        self.list();
        let mut found = Vec::with_capacity(self.order.len());
        for key in &self.order {
            let Some(span) = self.spans.get_mut(key) else { continue };
            if span.id.is_none() {
                let rows = self.rows.get(span.first as usize..).unwrap_or_default();
                for row in rows.iter().filter(|row| row.row.key == *key) {
                    match read(self.of.position(row.row.grain)) {
                        Ok(frame) => span.id = frame.streams().find(|stream| stream_key(*stream) == *key),
                        // A damaged frame tells nothing; the next one does.
                        Err(LogError::Corrupt(_)) => continue,
                        Err(error) => return Err(error),
                    }
                    break;
                }
            }
            let span = *span;
            if let Some(stream) = span.id
                && let Some((first, head)) = self.span(span.first, span.last)
            {
                found.push(StreamPlace { stream, first, head });
            }
        }
        Ok(found)
    }
}
