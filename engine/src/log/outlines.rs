//! Large frames that were checked once, and reading a few of their events again alone.
//!
//! ```text
//! frame_at(position)  large? --> its outline is kept
//! part_holding(seq)   outline known? --> three short reads, one checksum --> a frame of a few events
//! parts_of(..)        the same for the events of some streams
//! ```
//!
//! Frames never change once they are durable, and sealing moves their bytes without changing them, so an outline holds for
//! as long as the log is open. Each piece that is read is compared with the checksum in the outline, which was taken from
//! bytes that had passed the frame's own. Without an outline the whole frame is read, as ever.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::error::LogError;
use super::files::{Cursor, Fault, POINT_WINDOW_BYTES};
use super::{Log, frames, locked};
use crate::codec::{Frame, Outline, Pieces};
use crate::ids::{Position, Seq, StreamId};

/// Spines from this length on are not read again as a whole: reading and checking one takes longer than finding a few
/// events of it.
pub(crate) const LARGE_SPINE_BYTES: usize = 32 << 10;
/// Most memory for outlines: of some 2 million events in large commits.
const BYTES_MAX: usize = 8 << 20;

/// Outlines by where their frames begin.
#[derive(Default)]
pub(super) struct Outlines {
    by_seq: BTreeMap<Seq, Arc<Outline>>,
    by_position: FxHashMap<Position, Seq>,
    bytes: usize,
}

impl Outlines {
    fn holding(&self, seq: Seq) -> Option<Arc<Outline>> {
        let (_, outline) = self.by_seq.range(..=seq).next_back()?;
        (seq <= outline.header().last_seq()).then(|| Arc::clone(outline))
    }

    fn at(&self, position: Position) -> Option<Arc<Outline>> {
        self.by_seq.get(self.by_position.get(&position)?).cloned()
    }

    /// Keeps an outline; if there are too many, all others go.
    fn keep(&mut self, outline: Outline) {
        let bytes = outline.memory_bytes();
        if self.bytes.saturating_add(bytes) > BYTES_MAX {
            *self = Self::default();
        }
        let (seq, position) = (outline.header().first_seq, outline.header().position);
        self.by_position.insert(position, seq);
        let before = self.by_seq.insert(seq, Arc::new(outline));
        self.bytes = self.bytes.saturating_add(bytes);
        self.bytes = self.bytes.saturating_sub(before.map_or(0, |outline| outline.memory_bytes()));
    }
}

/// Whether a frame is one that is read again in parts.
pub(crate) fn is_large(frame: &Frame) -> bool {
    frame.header().spine_bytes as usize >= LARGE_SPINE_BYTES
}

impl Log {
    /// Takes note of a frame that was read and checked as a whole.
    pub(super) fn outline(&self, frame: &Frame) {
        if is_large(frame)
            && locked(&self.outlines).at(frame.position()).is_none()
            && let Some(outline) = Outline::of(frame)
        {
            locked(&self.outlines).keep(outline);
        }
    }

    /// The event at `seq` and some neighbours, if it is durable, of a large frame, and that has been read before.
    /// `None` says nothing: [`Log::locate`] tells.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if these events are not what they were.
    pub fn part_holding(&self, seq: Seq) -> Result<Option<Frame>, LogError> {
        let outline = locked(&self.outlines).holding(seq);
        let Some((outline, pieces)) = outline.and_then(|outline| {
            let pieces = outline.holding(seq)?;
            Some((outline, pieces))
        }) else {
            return Ok(None);
        };
        self.met(self.part(&outline, &pieces)).map(Some)
    }

    /// As [`Log::part_holding`] of the first of `seqs`, which rise, and with it those of the others that the same frame holds:
    /// parts in order.
    ///
    /// # Errors
    /// As [`Log::part_holding`].
    pub fn parts_holding(&self, seqs: &[Seq]) -> Result<Vec<Frame>, LogError> {
        let outline = seqs.first().and_then(|first| locked(&self.outlines).holding(*first));
        let Some(outline) = outline else { return Ok(Vec::new()) };
        let last = outline.header().last_seq();
        let wanted = outline.of_seqs(seqs.iter().copied().take_while(|seq| *seq <= last));
        self.met(wanted.iter().map(|pieces| self.part(&outline, pieces)).collect())
    }

    /// What holds events of `streams` past `after` in the frame at `position`: the frame, or parts of a large one, which may
    /// hold other events, too. Cost: of a large frame that has been read before, what it holds of these streams.
    ///
    /// # Errors
    /// As [`Log::frame_at`].
    pub fn parts_of(
        &self,
        position: Position,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<Vec<Frame>, LogError> {
        let known = locked(&self.outlines).at(position);
        if let Some(outline) = known {
            let wanted = outline.of_streams(streams, after);
            return self.met(wanted.iter().map(|pieces| self.part(&outline, pieces)).collect());
        }
        let frame = self.frame_at(position)?;
        Ok(self.parts_in(&frame, streams, after))
    }

    /// The frame at `position`, or the part of it in which the first event of `stream` is, if it has one.
    ///
    /// # Errors
    /// As [`Log::frame_at`].
    pub fn first_part_of(&self, position: Position, stream: StreamId) -> Result<Frame, LogError> {
        let outline = locked(&self.outlines).at(position);
        match outline.and_then(|outline| Some((outline.first_of(stream)?, outline))) {
            Some((pieces, outline)) => self.met(self.part(&outline, &pieces)),
            None => self.frame_at(position),
        }
    }

    /// As [`Log::parts_of`], out of a frame at hand.
    pub fn parts_in(&self, frame: &Frame, streams: &[StreamId], after: Seq) -> Vec<Frame> {
        let known = is_large(frame).then(|| locked(&self.outlines).at(frame.position())).flatten();
        let Some(outline) = known else { return vec![frame.clone()] };
        let wanted = outline.of_streams(streams, after);
        wanted.iter().map(|pieces| outline.part_of(frame, pieces)).collect()
    }

    /// Reads the pieces of some events and checks them.
    fn part(&self, outline: &Outline, pieces: &Pieces) -> Result<Frame, LogError> {
        let position = outline.header().position;
        let mut cursor = Cursor::new(&self.segments, POINT_WINDOW_BYTES);
        let read = cursor.spine_pieces(position, pieces);
        let part = read
            .and_then(|bytes| outline.part(pieces, bytes).map_err(|invalid| Fault::Invalid(invalid, None)));
        match part {
            Ok(part) => Ok(part),
            Err(Fault::Error(error)) => Err(error),
            Err(fault) => {
                let mut damage = frames::corruption(&self.segments, position, fault);
                let seqs = outline.seqs(pieces);
                (damage.seq_first, damage.seq_last) = (Some(*seqs.start()), Some(*seqs.end()));
                Err(LogError::corrupt(damage))
            }
        }
    }
}
