//! Where a handle finds the events of streams: in an index, in tables of segments, and in the tail that was read.
//!
//! ```text
//! complete segments   the streams, each with its first frame and newest seq; tables on disk say which frames hold them
//! tail                positions of frames, filled once from envelopes and then with each new frame
//! ```
//!
//! [`locate`](super::locate) asks the locator and keeps it current. The frames of complete segments are not read. The tail holds positions
//! only, so it cannot be wrong about an event's content; the log checks each frame that is read at a position.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::codec::{Frame, FramePlace};
use crate::error::Error;
use crate::ids::{Position, Seq, StreamId};
use crate::index::{Bypassed, Index, Indexer, Lookup as _, StreamEntry};
use crate::log::{CompleteSegment, Log};

/// Pauses before an index that could not be opened is tried again: the first and the longest. Each pause is twice the one before.
pub(super) const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Once the tail holds so many places, it forgets those that the index knows.
const FORGET_PLACE_COUNT: usize = 16_384;

/// Finds frames by stream: the index if this handle uses one, tables of segments, and the tail.
#[derive(Debug, Default)]
pub(super) struct Locator {
    /// Whether this handle uses an index.
    pub(super) enabled: bool,
    /// Whether the index is open for reading only; `opened`: since when, which limits how long other processes go without it.
    pub(super) is_reading: bool,
    pub(super) opened: Option<Instant>,
    pub(super) index: Option<Arc<Index>>,
    pub(super) indexer: Option<Indexer>,
    /// Why there is no index, in a line.
    pub(super) reason: Option<String>,
    /// When to try to own it again.
    pub(super) retry: Option<Retry>,
    /// When a small store was last looked through for an index that another process made.
    pub(super) looked: Option<Instant>,
    /// The index answers up to here.
    pub(super) base: Seq,
    /// Complete segments after the base, known by their tables.
    pub(super) segments: SegmentFrames,
    pub(super) tail: TailFrames,
    /// Once the tail holds so many places, the base moves.
    forget_at: usize,
    /// End of the last frame in the tail, if all frames up to it were sound. Reading goes on here.
    pub(super) resume: Option<Position>,
}

/// Why a question has no answer.
pub(super) enum Unanswered {
    /// The index failed: the question may be asked again without it.
    Index(Bypassed),
    Log(Error),
}

impl From<Bypassed> for Unanswered {
    fn from(why: Bypassed) -> Self {
        Self::Index(why)
    }
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        Self::Log(error)
    }
}

/// A stream's first frame and its newest seq, without decoding an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StreamPlace {
    pub(super) stream: StreamId,
    pub(super) first: FramePlace,
    pub(super) head: Seq,
}

impl From<StreamEntry> for StreamPlace {
    fn from(entry: StreamEntry) -> Self {
        Self { stream: entry.stream, first: entry.first_frame, head: entry.head }
    }
}

impl Locator {
    pub(super) fn new(enabled: bool, is_reading: bool) -> Self {
        Self { enabled, is_reading, forget_at: FORGET_PLACE_COUNT, ..Self::default() }
    }

    /// Leaves the index alone for a while.
    pub(super) fn postpone(&mut self, why: String) {
        self.reason = Some(why);
        self.retry = Some(Retry::after(self.retry));
    }

    /// Forgets places that the index knows, too, once the tail has grown enough.
    pub(super) fn forget_known(&mut self) {
        if self.tail.place_count() >= self.forget_at {
            self.advance_base();
        }
    }

    /// Moves the base up to the index's watermark, and forgets the frames below.
    pub(super) fn advance_base(&mut self) {
        let Some(index) = &self.index else { return };
        let base = index.watermark().seq.min(self.tail.watermark);
        if base > self.base {
            self.base = base;
            self.tail.forget(base);
        }
        // An index that is far behind is not asked at each commit.
        self.forget_at = self.tail.place_count().saturating_mul(2).max(FORGET_PLACE_COUNT);
    }

    pub(super) fn drop_index(&mut self, why: &Bypassed) {
        self.postpone(why.reason.clone());
        self.opened = None;
        self.indexer = None;
        self.index = None;
        self.base = Seq::ZERO;
        self.segments = SegmentFrames::default();
        self.tail = TailFrames::default();
        self.forget_at = FORGET_PLACE_COUNT;
        self.resume = None;
    }

    /// Frames that may hold events of `streams` past `after`, oldest first.
    pub(super) fn frames_of(
        &self,
        log: &Log,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<Vec<FramePlace>, Unanswered> {
        let mut found = Vec::new();
        if after < self.base
            && let Some(index) = &self.index
        {
            for stream in streams {
                let known = index.frames_of(*stream, after)?;
                found.extend(known.into_iter().filter(|place| place.last_seq <= self.base));
            }
        }
        let past = after.max(self.base);
        for stream in streams {
            found.extend(self.segments.frames_of(log, *stream, past)?);
        }
        found.extend(self.tail.frames_of(streams, past));
        if !found.is_sorted_by(|left, right| left < right) {
            found.sort_unstable();
            found.dedup();
        }
        Ok(found)
    }

    /// Frames that hold the newest `count` events of a stream, oldest first; perhaps more of them.
    pub(super) fn last_frames_of(
        &self,
        log: &Log,
        stream: StreamId,
        count: usize,
    ) -> Result<Vec<FramePlace>, Unanswered> {
        let mut found = self.tail.frames_of(&[stream], self.base);
        // The frames of the tail are enough, or all frames before them are looked at.
        if found.len() < count {
            found.splice(0..0, self.segments.frames_of(log, stream, self.base)?).for_each(drop);
        }
        if found.len() < count
            && let Some(index) = &self.index
        {
            let mut known = index.last_frames_of(stream, count)?;
            known.retain(|place| place.last_seq <= self.base);
            found.splice(0..0, known).for_each(drop);
        }
        found.sort_unstable();
        found.dedup();
        // Fewer than were asked for: none is too many.
        let surplus = found.len().saturating_sub(count);
        found.drain(..surplus);
        Ok(found)
    }

    /// One stream; `None` if it has no events.
    pub(super) fn stream(&self, stream: StreamId) -> Result<Option<StreamPlace>, Bypassed> {
        let known = self.index.as_ref().map(|index| index.stream(stream)).transpose()?.flatten();
        // Streams that the index knows beyond the base are in the tail, too.
        let known = known.filter(|entry| entry.first_seq <= self.base).map(StreamPlace::from);
        let complete = self.segments.stream(stream).filter(|place| place.head > self.base);
        let fresh = self.tail.stream(stream).and_then(|places| {
            Some(StreamPlace { stream, first: *places.frames.first()?, head: places.head })
        });
        // The first entry of a stream has its beginning, and any of them its end.
        let all = [known, complete, fresh].into_iter().flatten();
        Ok(all.reduce(|first, next| StreamPlace { head: first.head.max(next.head), ..first }))
    }

    /// All streams, in order of their first event.
    pub(super) fn streams(&self) -> Result<Vec<StreamPlace>, Bypassed> {
        let mut found: Vec<StreamPlace> = Vec::new();
        let mut known = FxHashMap::default();
        if let Some(index) = &self.index {
            for entry in index.streams()? {
                // Streams that the index knows beyond the base are in the tail, too.
                if entry.first_seq <= self.base {
                    known.insert(entry.stream, found.len());
                    found.push(entry.into());
                }
            }
        }
        for place in self.segments.streams().iter().filter(|place| place.head > self.base) {
            if let Some(old) = known.get(&place.stream).and_then(|at: &usize| found.get_mut(*at)) {
                old.head = old.head.max(place.head);
            } else {
                known.insert(place.stream, found.len());
                found.push(*place);
            }
        }
        for stream in self.tail.streams() {
            let Some(fresh) = self.tail.stream(*stream) else { continue };
            if let Some(old) = known.get(stream).and_then(|place| found.get_mut(*place)) {
                old.head = old.head.max(fresh.head);
            } else if let Some(first) = fresh.frames.first() {
                found.push(StreamPlace { stream: *stream, first: *first, head: fresh.head });
            }
        }
        Ok(found)
    }
}

/// When an index is tried again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    pub(super) at: Instant,
    pause: Duration,
}

impl Retry {
    fn after(last: Option<Self>) -> Self {
        let pause = last.map_or(RETRY_MIN, |last| last.pause.saturating_mul(2).min(RETRY_MAX));
        let now = Instant::now();
        Self { at: now.checked_add(pause).unwrap_or(now), pause }
    }
}

/// The segments, oldest first, and the streams in them.
#[derive(Debug, Default)]
pub(super) struct SegmentFrames {
    segments: Vec<CompleteSegment>,
    streams: FxHashMap<StreamId, usize>,
    order: Vec<StreamPlace>,
}

impl SegmentFrames {
    /// Attaches a segment. `false`: it has no usable tables.
    pub(super) fn attach(&mut self, log: &Log, segment: CompleteSegment) -> Result<bool, Error> {
        let Some(streams) = log.segment_streams(segment.number)? else { return Ok(false) };
        let mut fresh = Vec::new();
        for stream in streams {
            if let Some(known) = self.streams.get(&stream.stream).and_then(|at| self.order.get_mut(*at)) {
                known.head = known.head.max(stream.last);
                continue;
            }
            let Some(first) = log.segment_frame(segment.number, stream.first)? else { return Ok(false) };
            fresh.push(StreamPlace { stream: stream.stream, first, head: stream.last });
        }
        for stream in fresh {
            self.streams.insert(stream.stream, self.order.len());
            self.order.push(stream);
        }
        self.segments.push(segment);
        Ok(true)
    }

    /// Frames of `stream` past `after`, oldest first.
    pub(super) fn frames_of(
        &self,
        log: &Log,
        stream: StreamId,
        after: Seq,
    ) -> Result<Vec<FramePlace>, Error> {
        let mut found = Vec::new();
        let known = self.streams.get(&stream).and_then(|at| self.order.get(*at));
        let Some(known) = known.filter(|known| known.head > after) else { return Ok(found) };
        let from = after.max(known.first.first_seq.before());
        let first = self.segments.partition_point(|segment| segment.last_seq <= from);
        for segment in self.segments.get(first..).unwrap_or_default() {
            if segment.first_seq > known.head {
                break;
            }
            found.extend(log.segment_frames_of(segment.number, stream, after)?);
        }
        Ok(found)
    }

    pub(super) fn stream(&self, stream: StreamId) -> Option<StreamPlace> {
        self.streams.get(&stream).and_then(|at| self.order.get(*at)).copied()
    }

    /// All streams, in order of their first event.
    pub(super) fn streams(&self) -> &[StreamPlace] {
        &self.order
    }
}

/// The frames of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamPlaces {
    /// Its frames, oldest first.
    pub(super) frames: Vec<FramePlace>,
    /// Its newest seq.
    pub(super) head: Seq,
}

/// Frames by stream, up to a watermark.
#[derive(Clone, Debug, Default)]
pub(super) struct TailFrames {
    /// Everything up to this seq is in here.
    pub(super) watermark: Seq,
    streams: FxHashMap<StreamId, StreamPlaces>,
    /// Streams in order of their first event.
    order: Vec<StreamId>,
    place_count: usize,
}

impl TailFrames {
    /// An empty tail that begins after `watermark`.
    pub(super) fn after(watermark: Seq) -> Self {
        Self { watermark, ..Self::default() }
    }

    /// Adds the next frame. Skips a frame below the watermark.
    pub(super) fn observe(&mut self, frame: &Frame) {
        let header = frame.header();
        if header.last_seq() <= self.watermark {
            return;
        }
        let place = FramePlace {
            first_seq: header.first_seq,
            last_seq: header.last_seq(),
            position: header.position,
        };
        let mut events = frame.events().map(|event| (event.envelope.stream, event.seq)).peekable();
        while let Some((stream, seq)) = events.next() {
            // Of events of one stream in a row only the last is needed.
            if events.peek().is_some_and(|(next, _)| *next == stream) {
                continue;
            }
            let places = self.streams.entry(stream).or_default();
            if places.frames.is_empty() {
                self.order.push(stream);
            }
            places.head = seq;
            if places.frames.last() != Some(&place) {
                places.frames.push(place);
                self.place_count = self.place_count.saturating_add(1);
            }
        }
        self.watermark = header.last_seq();
    }

    /// How many places it holds, of all streams, at 24 bytes each.
    pub(super) const fn place_count(&self) -> usize {
        self.place_count
    }

    /// Forgets frames that end at or before `base`. Cost: all places that stay.
    pub(super) fn forget(&mut self, base: Seq) {
        self.streams.retain(|_, places| {
            places.frames.retain(|place| place.last_seq > base);
            places.frames.shrink_to_fit();
            !places.frames.is_empty()
        });
        self.order.retain(|stream| self.streams.contains_key(stream));
        self.place_count = self.streams.values().map(|places| places.frames.len()).sum();
    }

    /// The frames of a stream.
    pub(super) fn stream(&self, stream: StreamId) -> Option<&StreamPlaces> {
        self.streams.get(&stream)
    }

    /// All streams, in order of their first event.
    pub(super) fn streams(&self) -> &[StreamId] {
        &self.order
    }

    /// Frames that hold events of any of `streams` past `after`, oldest first, each once.
    pub(super) fn frames_of(&self, streams: &[StreamId], after: Seq) -> Vec<FramePlace> {
        let mut places: Vec<FramePlace> = Vec::new();
        for stream in streams {
            let Some(known) = self.streams.get(stream) else { continue };
            let from = known.frames.partition_point(|place| place.last_seq <= after);
            places.extend(known.frames.get(from..).unwrap_or_default());
        }
        if streams.len() > 1 {
            places.sort_unstable();
            places.dedup();
        }
        places
    }
}
