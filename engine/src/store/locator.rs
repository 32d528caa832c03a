//! What a handle knows of where the events of streams are: an index, tables of segments, and the tail that was read.
//!
//! It is asked and kept current by [`locate`](super::locate).

mod segments;
mod tail;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ids::{Position, Seq, StreamId};
use crate::index::{Bypassed, FramePlace, Index, Indexer, Lookup as _};

pub(super) use segments::SegmentFrames;
pub(super) use tail::TailFrames;

/// Pause before an index that could not be opened is tried again: the first and the longest. Each doubles the last.
pub(super) const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Once the tail holds so many places, it forgets those that the index knows.
const FORGET_PLACE_COUNT: usize = 16_384;

/// Finds frames by stream: the index if this handle uses one, tables of segments, and the tail.
#[derive(Debug, Default)]
pub(super) struct Locator {
    /// Whether this handle uses an index.
    pub(super) enabled: bool,
    /// Whether it only looks things up in it; then since when, and for how long others go without.
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

/// A stream's first frame and its newest seq, without decoding an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StreamPlace {
    pub(super) stream: StreamId,
    pub(super) first: FramePlace,
    pub(super) head: Seq,
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

    /// Forgets what the index knows, too, once the tail has grown enough.
    pub(super) fn forget_known(&mut self) {
        if self.tail.place_count() >= self.forget_at {
            self.advance_base();
        }
    }

    /// Moves the base to where the index is, and forgets what lies below.
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
