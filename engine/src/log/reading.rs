//! Reading by seq and by position: one frame.

use super::Log;
use super::cursor::Cursor;
use super::error::{Corruption, LogError, sound};
use super::files::{POINT_WINDOW_BYTES, SPINE_WINDOW_BYTES, damaged};
use super::frames::Frames;
use crate::codec::{BodyPlace, Frame, FrameCheck, FrameHeader, Part, SegmentHeader};
use crate::ids::{Position, Seq};

/// Frames that are stepped over by their headers alone, before a look-up reads closely.
const STEP_COUNT_MAX: usize = 4096;

/// Looks at frames by their positions. Neighbours share the bytes that were read: a caller that goes through the log in order keeps
/// one `Looks`. The cursor is made for the first frame that has to be read.
pub(crate) struct Looks<'a> {
    /// Bytes that a look reads at first, if the frame is no neighbour of the one before.
    look_bytes: usize,
    cursor: Option<Cursor<'a>>,
}

impl<'a> Looks<'a> {
    /// For a caller that wants no texts.
    pub(crate) const WITHOUT_TEXTS: Self = Self { look_bytes: SPINE_WINDOW_BYTES, cursor: None };
    /// For a caller that will ask for the texts, too.
    pub(crate) const WITH_TEXTS: Self = Self { look_bytes: POINT_WINDOW_BYTES, cursor: None };

    /// The frame at `position`.
    ///
    /// # Errors
    /// As [`Log::frame_at`].
    pub(crate) fn frame_at(&mut self, log: &'a Log, position: Position) -> Result<Frame, LogError> {
        let look_bytes = self.look_bytes;
        let cursor = self.cursor.get_or_insert_with(|| Cursor::for_looks(&log.segments, look_bytes));
        let frame = cursor.frame(position, FrameCheck::Checksum);
        frame.map_err(|fault| damaged(&log.segments, position, fault))
    }
}

impl Log {
    /// The frame that holds `seq`, if it is durable and sound. Cost: a few reads near it.
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

    /// The frame at `position`.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no sound frame of this store begins there.
    pub fn frame_at(&self, position: Position) -> Result<Frame, LogError> {
        let mut cursor = Cursor::new(&self.segments, POINT_WINDOW_BYTES);
        let frame = cursor.frame(position, FrameCheck::Checksum);
        frame.map_err(|fault| damaged(&self.segments, position, fault))
    }

    /// The header of the frame at `position`, checked by itself: its link is known without reading the spine.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no frame of this store begins there.
    pub(crate) fn header_at(&self, position: Position) -> Result<FrameHeader, LogError> {
        let mut cursor = Cursor::new(&self.segments, POINT_WINDOW_BYTES);
        cursor.header(position).map_err(|fault| damaged(&self.segments, position, fault))
    }

    /// The report of a body that is zeros although no erasure of it is recorded.
    pub(crate) fn zeroed(&self, seq: Seq, place: BodyPlace) -> LogError {
        let BodyPlace { segment, offset } = place;
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

    /// A cursor for looks that want no bodies.
    fn cursor(&self) -> Cursor<'_> {
        Cursor::for_looks(&self.segments, SPINE_WINDOW_BYTES)
    }

    /// The frame at `position`; `None` if it does not hold `seq`.
    ///
    /// # Errors
    /// As [`Log::frame_at`].
    pub(crate) fn frame_with(&self, position: Position, seq: Seq) -> Result<Option<Frame>, LogError> {
        let mut looks = Looks::WITHOUT_TEXTS;
        let frame = looks.frame_at(self, position)?;
        Ok(Some(frame).filter(|frame| (frame.first_seq()..=frame.last_seq()).contains(&seq)))
    }

    /// The frame that holds `seq`, found by following headers from a known place. `None`: something on the way is
    /// wrong, and the caller must look closely.
    pub(super) fn stepped_to(&self, seq: Seq, start: Position) -> Result<Option<Frame>, LogError> {
        let head = self.head().position;
        let first = if start.segment() == 0 { SegmentHeader::start(1) } else { start };
        let (mut position, mut cursor) = (first, self.cursor());
        for _ in 0..STEP_COUNT_MAX {
            if position >= head {
                break;
            }
            let Some(header) = sound(cursor.header(position))? else { break };
            if header.first_seq > seq || header.event_count == 0 {
                break;
            }
            if header.last_seq() >= seq {
                return sound(cursor.frame(header.position, FrameCheck::Checksum));
            }
            position = header.end();
        }
        Ok(None)
    }
}
