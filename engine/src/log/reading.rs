//! Reading by seq and by position: one frame.

use super::cursor::FrameCursor;
use super::error::{Corruption, LogError, sound};
use super::files::{POINT_WINDOW_BYTES, SCAN_WINDOW_BYTES, SPINE_WINDOW_BYTES, damaged};
use super::frames::Frames;
use super::{Head, Log};
use crate::codec::{BodyPlace, DamagedPart, Frame, FrameCheck, FrameHeader, SegmentHeader};
use crate::ids::{Position, Seq};

/// Looks at frames by their positions. Neighbours share the bytes that were read: a caller that goes through the log in order keeps
/// one `Looks`. The cursor is made for the first frame that has to be read.
pub(crate) struct Looks<'a> {
    /// Bytes that a look reads at first, if the frame is no neighbour of the one before.
    look_bytes: usize,
    cursor: Option<FrameCursor<'a>>,
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
        let cursor = self.cursor.get_or_insert_with(|| FrameCursor::for_looks(&log.segments, look_bytes));
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
        let at = if start.segment() == 0 { SegmentHeader::start(1) } else { start };
        let mut cursor = FrameCursor::for_looks(&self.segments, SPINE_WINDOW_BYTES);
        let found = sound(cursor.frame(at, FrameCheck::Checksum))?;
        if let Some(frame) = found.filter(|frame| (frame.first_seq()..=frame.last_seq()).contains(&seq)) {
            return Ok(Some(frame));
        }
        // Something on the way is wrong.
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
        let mut cursor = FrameCursor::new(&self.segments, POINT_WINDOW_BYTES);
        let frame = cursor.frame(position, FrameCheck::Checksum);
        frame.map_err(|fault| damaged(&self.segments, position, fault))
    }

    /// The header of the frame at `position`, checked by itself: its link is known without reading the spine.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no frame of this store begins there.
    pub(crate) fn header_at(&self, position: Position) -> Result<FrameHeader, LogError> {
        let mut cursor = FrameCursor::new(&self.segments, POINT_WINDOW_BYTES);
        cursor.header(position).map_err(|fault| damaged(&self.segments, position, fault))
    }

    /// The report of a body that is zeros although no erasure of it is recorded.
    pub(crate) fn zeroed(&self, seq: Seq, place: BodyPlace) -> LogError {
        let BodyPlace { segment, offset } = place;
        LogError::corrupt(Corruption {
            part: DamagedPart::BodyZeroed,
            path: self.segments.path(segment),
            segment,
            offset,
            seq_first: Some(seq),
            seq_last: Some(seq),
            expected: "its bytes, or a record of their erasure".to_owned(),
            found: "zeros".to_owned(),
        })
    }

    /// Frames from the one that holds `from` on, up to a place that need not be durable. For callers that hold the write lock, or need
    /// unconfirmed events, too.
    pub(crate) fn frames_until(
        &self,
        from: Seq,
        until: Head,
        check: FrameCheck,
    ) -> Result<Frames<'_>, LogError> {
        let start = if from.0 <= 1 { Position::default() } else { self.start_before(from)? };
        Ok(Frames::new(self, start, until, check, SCAN_WINDOW_BYTES).skip_before(from))
    }

    /// Frames from the one that holds `from` on; earlier events of that frame come along.
    ///
    /// # Errors
    /// As [`Log::locate`], but damage is left to the iterator.
    pub fn frames_from(&self, from: Seq, until: Head) -> Result<Frames<'_>, LogError> {
        let head = self.head();
        let until = if until.position > head.position { head } else { until };
        self.frames_until(from, until, FrameCheck::Checksum)
    }
}
