//! Which frames of complete segments hold which streams, by the segments' tables. The segments' frames are not read.
//!
//! Memory holds only the streams, each with its first frame and newest seq. The table on disk answers which frames of a segment
//! hold a stream.

use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::ids::{Seq, StreamId};
use crate::index::FramePlace;
use crate::log::{CompleteSegment, Log, TableFrame};

use super::StreamPlace;

/// The segments, oldest first, and the streams in them.
#[derive(Debug, Default)]
pub(in crate::store) struct SegmentFrames {
    segments: Vec<CompleteSegment>,
    streams: FxHashMap<StreamId, usize>,
    order: Vec<StreamPlace>,
}

fn place(frame: TableFrame) -> FramePlace {
    FramePlace { first_seq: frame.first_seq, last_seq: frame.last_seq, position: frame.position }
}

impl SegmentFrames {
    /// Attaches a segment. `false`: it has no usable tables.
    pub(in crate::store) fn attach(&mut self, log: &Log, segment: CompleteSegment) -> Result<bool, Error> {
        let Some(streams) = log.segment_streams(segment.number)? else { return Ok(false) };
        let mut fresh = Vec::new();
        for stream in streams {
            if let Some(known) = self.streams.get(&stream.stream).and_then(|at| self.order.get_mut(*at)) {
                known.head = known.head.max(stream.last);
                continue;
            }
            let Some(first) = log.segment_frame(segment.number, stream.first)? else { return Ok(false) };
            fresh.push(StreamPlace { stream: stream.stream, first: place(first), head: stream.last });
        }
        for stream in fresh {
            self.streams.insert(stream.stream, self.order.len());
            self.order.push(stream);
        }
        self.segments.push(segment);
        Ok(true)
    }

    /// Frames of `stream` past `after`, oldest first.
    pub(in crate::store) fn frames_of(
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
            found.extend(log.segment_frames_of(segment.number, stream, after)?.into_iter().map(place));
        }
        Ok(found)
    }

    /// All streams, in order of their first event.
    pub(in crate::store) fn streams(&self) -> &[StreamPlace] {
        &self.order
    }
}
