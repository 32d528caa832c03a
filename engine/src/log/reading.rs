//! Reading by seq and by position.

use std::collections::BTreeMap;

use super::cursor::Cursor;
use super::error::{Corruption, LogError};
use super::fault::Fault;
use super::files::{POINT_WINDOW_BYTES, SCAN_WINDOW_BYTES, corruption};
use super::frames::Frames;
use super::{Head, Log};
use crate::codec::{Frame, FrameCheck, FrameHeader, Part, SegmentHeader};
use crate::ids::{Position, Seq};
use crate::locks::steady;

/// Distance between remembered frame positions: a look-up reads at most this much to find its frame. In the segment at the end of
/// the log, which has no tables, nearly each frame is remembered: at most 1 MB.
const MAP_STEP_BYTES: u64 = 2 << 10;
/// The same in older segments.
const OLD_MAP_STEP_BYTES: u64 = 16 << 10;

fn is_near(known: Position, position: Position, step: u64) -> bool {
    // One behind `position` is near as well: it is known already.
    known.segment() == position.segment() && position.offset().saturating_sub(known.offset()) < step
}

/// Forgets most of what is known of segments that are complete now: they have tables.
fn thin(map: &mut BTreeMap<Seq, Position>) {
    let mut last = None;
    map.retain(|_, position| {
        let is_kept = last.is_none_or(|last| !is_near(last, *position, OLD_MAP_STEP_BYTES));
        if is_kept {
            last = Some(*position);
        }
        is_kept
    });
}

impl Log {
    /// Remembers where a frame is.
    pub(super) fn remember(&self, first_seq: Seq, position: Position) {
        let mut map = steady(&self.map);
        let newest = map.last_key_value().map_or(0, |(_, newest)| newest.segment());
        if position.segment() > newest {
            thin(&mut map);
        }
        let step = if position.segment() < newest { OLD_MAP_STEP_BYTES } else { MAP_STEP_BYTES };
        let near =
            map.range(..=first_seq).next_back().is_some_and(|(_, known)| is_near(*known, position, step));
        if !near {
            map.insert(first_seq, position);
        }
    }

    /// The frame that holds `seq`, or of a large frame a part that does, if it is durable and sound. Cost: a few reads near it.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if the frame is damaged.
    pub fn locate(&self, seq: Seq) -> Result<Option<Frame>, LogError> {
        let head = self.head();
        if seq == Seq::ZERO || seq > head.seq {
            return Ok(None);
        }
        let start = self.start_before(seq)?;
        if let Some(found) = self.stepped_to(seq, start)? {
            return Ok(Some(found));
        }
        let mut damage = None;
        for frame in Frames::new(self, start, head, FrameCheck::Checksum, POINT_WINDOW_BYTES) {
            match frame {
                Ok(frame) if frame.header().last_seq() < seq => {}
                Ok(frame) if frame.header().first_seq <= seq => {
                    return Ok(Some(frame));
                }
                Ok(_) => break,
                Err(error @ LogError::Corrupt(_)) => damage = Some(error),
                Err(error) => return Err(error),
            }
        }
        self.met(damage.map_or(Ok(None), Err))
    }

    /// A known place at or before the frame that holds `seq`: of a complete segment its tables', else a remembered one.
    pub(super) fn start_before(&self, seq: Seq) -> Result<Position, LogError> {
        let remembered = steady(&self.map).range(..=seq).next_back().map(|(_, position)| *position);
        let active = self.head().position.segment();
        if let Some(position) = remembered.filter(|position| position.segment() == active) {
            return Ok(position);
        }
        if let Some(complete) = self.complete_segment(seq)? {
            if let Some(position) = self.table_position(complete.number, seq)? {
                return Ok(position);
            }
            let near = remembered.filter(|position| position.segment() == complete.number);
            return Ok(near.unwrap_or(SegmentHeader::start(complete.number)));
        }
        let numbers = self.segments.numbers()?;
        let mut start = Position::default();
        let (mut low, mut high) = (0, numbers.len());
        while low < high {
            let middle = low.midpoint(high);
            let Some(number) = numbers.get(middle) else { break };
            match self.segments.header(*number)? {
                Some(header) if header.first_seq <= seq => {
                    start = SegmentHeader::start(*number);
                    low = middle + 1;
                }
                // A damaged header says nothing: look below it.
                _ => high = middle,
            }
        }
        Ok(start)
    }

    /// The frame at `position`, as an index names it.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no sound frame of this store begins there.
    pub fn frame_at(&self, position: Position) -> Result<Frame, LogError> {
        let mut cursor = Cursor::new(&self.segments, POINT_WINDOW_BYTES);
        match cursor.frame(position, FrameCheck::Checksum) {
            Ok(frame) => Ok(frame),
            Err(Fault::Error(error)) => Err(error),
            Err(fault) => Err(LogError::corrupt(corruption(&self.segments, position, fault))),
        }
    }

    /// The header of the frame at `position`, checked by itself: for its link, without its spine.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no frame of this store begins there.
    pub(crate) fn header_at(&self, position: Position) -> Result<FrameHeader, LogError> {
        let mut cursor = Cursor::new(&self.segments, POINT_WINDOW_BYTES);
        cursor.header(position).map_err(|fault| match fault {
            Fault::Error(error) => error,
            fault => LogError::corrupt(corruption(&self.segments, position, fault)),
        })
    }

    /// Frames from `from` (the start of a frame or segment; the default position is the start of the log) up to
    /// `until`, with damage reported as errors and stepped over.
    ///
    /// Take `until` from [`Log::head`] or [`Log::refresh`]: nothing after the durable head is shown.
    pub fn frames(&self, from: Position, until: Head) -> Frames<'_> {
        let head = self.head();
        let until = if until.position > head.position { head } else { until };
        Frames::new(self, from, until, FrameCheck::Checksum, SCAN_WINDOW_BYTES)
    }

    /// Frames from the one that holds `from` on, up to a place that need not be durable. For callers that hold the write lock.
    pub(super) fn frames_until(&self, from: Seq, until: Head) -> Result<Frames<'_>, LogError> {
        let start = if from.0 <= 1 { Position::default() } else { self.start_before(from)? };
        let window = SCAN_WINDOW_BYTES;
        Ok(Frames::new(self, start, until, FrameCheck::Checksum, window).skip_before(from))
    }

    /// Frames from the one that holds `from` on; earlier events of that frame come along.
    ///
    /// # Errors
    /// As [`Log::locate`], but damage is left to the iterator.
    pub fn frames_from(&self, from: Seq, until: Head) -> Result<Frames<'_>, LogError> {
        let head = self.head();
        self.frames_until(from, if until.position > head.position { head } else { until })
    }

    /// The report of a body that is zeros although no erasure of it is recorded.
    pub(crate) fn zeroed(&self, seq: Seq, position: Position) -> LogError {
        let (segment, offset) = (position.segment(), position.offset());
        LogError::corrupt(Corruption {
            part: Part::BodyZeroed,
            path: self.segments.path(segment),
            segment,
            offset,
            seq_first: Some(seq),
            seq_last: Some(seq),
            expected: "its bytes, or a record of their erasure".to_owned(),
            found: "zeros".to_owned(),
        })
    }
}
