//! Which frames of the tail hold which streams, in memory.
//!
//! Filled once from envelopes and then with each new frame. It holds positions only, so it cannot be wrong about an event's
//! content; the log checks each frame that is read at a position.

use rustc_hash::FxHashMap;

use crate::codec::Frame;
use crate::ids::{Seq, StreamId};
use crate::index::FramePlace;

/// The frames of one stream.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct StreamPlaces {
    /// Its frames, oldest first.
    pub(in crate::store) frames: Vec<FramePlace>,
    /// Its newest seq.
    pub(in crate::store) head: Seq,
}

/// Frames by stream, up to a watermark.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct TailFrames {
    /// Everything up to this seq is in here.
    pub(in crate::store) watermark: Seq,
    streams: FxHashMap<StreamId, StreamPlaces>,
    /// Streams in order of their first event.
    order: Vec<StreamId>,
    place_count: usize,
}

impl TailFrames {
    /// An empty tail that begins after `watermark`.
    pub(in crate::store) fn after(watermark: Seq) -> Self {
        Self { watermark, ..Self::default() }
    }

    /// Adds the next frame. Skips a frame below the watermark.
    pub(in crate::store) fn observe(&mut self, frame: &Frame) {
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
            // Of events of one stream in a row the last says it all.
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
    pub(in crate::store) const fn place_count(&self) -> usize {
        self.place_count
    }

    /// Forgets frames that end at or before `base`. Cost: all places that stay.
    pub(in crate::store) fn forget(&mut self, base: Seq) {
        self.streams.retain(|_, places| {
            places.frames.retain(|place| place.last_seq > base);
            places.frames.shrink_to_fit();
            !places.frames.is_empty()
        });
        self.order.retain(|stream| self.streams.contains_key(stream));
        self.place_count = self.streams.values().map(|places| places.frames.len()).sum();
    }

    /// The frames of a stream.
    pub(in crate::store) fn stream(&self, stream: StreamId) -> Option<&StreamPlaces> {
        self.streams.get(&stream)
    }

    /// All streams, in order of their first event.
    pub(in crate::store) fn streams(&self) -> &[StreamId] {
        &self.order
    }

    /// Frames that hold events of any of `streams` past `after`, oldest first, each once.
    pub(in crate::store) fn frames_of(&self, streams: &[StreamId], after: Seq) -> Vec<FramePlace> {
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
