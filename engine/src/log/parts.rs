//! Reading some events of a large frame without the others.
//!
//! ```text
//! part_at(position, seq)   header -> large? -> table of pieces -> one piece -> a frame of a few events
//! parts_of(..)             the same for the events of some streams
//! ```
//!
//! Header, table and pieces each pass their checksum before they are used. Tables are kept, since frames never change once they
//! are durable, and sealing moves their bytes without changing them. A small frame is read whole.

use std::ops::Range;
use std::sync::Arc;

use super::Log;
use super::cursor::Cursor;
use super::error::LogError;
use super::fault::Fault;
use super::files::{POINT_WINDOW_BYTES, SPINE_WINDOW_BYTES, corruption};
use crate::codec::{Frame, FrameCheck, FrameHeader, PieceTable, SegmentHeader};
use crate::ids::{Position, Seq, StreamId};
use crate::locks::steady;

/// Frames that are stepped over by their headers alone, before a look-up asks the tables of the segment.
const STEP_COUNT_MAX: usize = 4096;

/// A small frame, or the table of a large one.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is made")]
enum Found {
    Small(Frame),
    Large(Arc<PieceTable>),
}

/// Whether the caller will ask for the texts of a frame, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    Wanted,
    Unwanted,
}

/// Looks at frames by their positions. Neighbours share what was read: a caller that goes through the log in order keeps one `Looks`.
pub(crate) struct Looks<'a> {
    log: &'a Log,
    cursor: Cursor<'a>,
}

impl Looks<'_> {
    /// The frame, or its parts, with events of `streams` past `after` in the frame at `position`: the frame, or parts of a large one, which may
    /// hold other events, too.
    ///
    /// # Errors
    /// As [`Log::frame_at`].
    pub(crate) fn parts_of(
        &mut self,
        position: Position,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<Vec<Frame>, LogError> {
        let log = self.log;
        match log.found_by(&mut self.cursor, position)? {
            Found::Small(frame) => Ok(vec![frame]),
            Found::Large(table) => {
                let wanted = table.of_streams(streams, after);
                log.met(wanted.iter().map(|pieces| log.part(&mut self.cursor, &table, pieces)).collect())
            }
        }
    }
}

impl Log {
    /// The event at `seq` and some neighbours, if it is durable and of a large frame that was met before. `None` says nothing:
    /// [`Log::locate`] tells.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if these events are damaged.
    pub fn part_holding(&self, seq: Seq) -> Result<Option<Frame>, LogError> {
        let table = steady(&self.tables).holding(seq);
        let Some((pieces, table)) = table.and_then(|table| Some((table.holding(seq)?, table))) else {
            return Ok(None);
        };
        self.met(self.part(&mut self.cursor(), &table, &pieces)).map(Some)
    }

    /// As [`Log::part_holding`] of the first of `seqs`, which rise, and with it those of the others that the same frame holds:
    /// parts in order.
    ///
    /// # Errors
    /// As [`Log::part_holding`].
    pub fn parts_holding(&self, seqs: &[Seq]) -> Result<Vec<Frame>, LogError> {
        let table = seqs.first().and_then(|first| steady(&self.tables).holding(*first));
        let Some(table) = table else { return Ok(Vec::new()) };
        let last = table.header().last_seq();
        let wanted = table.of_seqs(seqs.iter().copied().take_while(|seq| *seq <= last));
        let mut cursor = self.cursor();
        self.met(wanted.iter().map(|pieces| self.part(&mut cursor, &table, pieces)).collect())
    }

    /// A cursor for looks that want no bodies.
    fn cursor(&self) -> Cursor<'_> {
        Cursor::for_looks(&self.segments, SPINE_WINDOW_BYTES)
    }

    /// The frame at `position`, or of a large one the part that holds `seq`; `None` if the frame does not hold it.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no sound frame of this store begins there, or that part of it is damaged.
    pub fn part_at(&self, position: Position, seq: Seq) -> Result<Option<Frame>, LogError> {
        let mut cursor = self.cursor();
        match self.found_by(&mut cursor, position)? {
            Found::Small(frame) => {
                Ok(Some(frame).filter(|frame| (frame.first_seq()..=frame.last_seq()).contains(&seq)))
            }
            Found::Large(table) => {
                table.holding(seq).map(|pieces| self.part(&mut cursor, &table, &pieces)).transpose()
            }
        }
    }

    /// As [`Looks::parts_of`], of one frame.
    ///
    /// # Errors
    /// As [`Log::frame_at`].
    pub fn parts_of(
        &self,
        position: Position,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<Vec<Frame>, LogError> {
        self.looks(Texts::Wanted).parts_of(position, streams, after)
    }

    /// For looks at many frames, one after the other.
    pub(crate) fn looks(&self, texts: Texts) -> Looks<'_> {
        let look_bytes = match texts {
            Texts::Wanted => POINT_WINDOW_BYTES,
            Texts::Unwanted => SPINE_WINDOW_BYTES,
        };
        Looks { log: self, cursor: Cursor::for_looks(&self.segments, look_bytes) }
    }

    /// The frame at `position`, or the part of a large one in which the first event of `stream` is, if it has one.
    ///
    /// # Errors
    /// As [`Log::frame_at`].
    pub fn first_part_of(&self, position: Position, stream: StreamId) -> Result<Frame, LogError> {
        let mut cursor = self.cursor();
        let table = match self.found_by(&mut cursor, position)? {
            Found::Small(frame) => return Ok(frame),
            Found::Large(table) => table,
        };
        // A piece may have the bit of the stream for another's sake.
        for pieces in table.of_streams(&[stream], Seq::ZERO) {
            let part = self.met(self.part(&mut cursor, &table, &pieces))?;
            if part.events().any(|event| event.envelope.stream == stream) {
                return Ok(part);
            }
        }
        self.frame_at(position)
    }

    /// As [`Log::parts_of`], out of a whole frame at hand.
    pub fn parts_in(&self, frame: &Frame, streams: &[StreamId], after: Seq) -> Vec<Frame> {
        let Some(table) = frame.piece_table() else { return vec![frame.clone()] };
        table.of_streams(streams, after).iter().map(|pieces| table.part_of(frame, pieces)).collect()
    }

    /// The frame that holds `seq` or a part of it, found by headers from a known place on. `None`: something on the way is
    /// not as it should be, and has to be looked at closely.
    pub(super) fn stepped_to(&self, seq: Seq, start: Position) -> Result<Option<Frame>, LogError> {
        let head = self.head().position;
        let first = if start.segment() == 0 { SegmentHeader::start(1) } else { start };
        let (mut position, mut cursor) = (first, self.cursor());
        for _ in 0..STEP_COUNT_MAX {
            if position >= head {
                break;
            }
            let header = match cursor.header(position) {
                Ok(header) => header,
                Err(Fault::Error(error)) => return Err(error),
                Err(_) => break,
            };
            if header.first_seq > seq || header.event_count == 0 {
                break;
            }
            if header.last_seq() >= seq {
                return match self.found(&mut cursor, &header) {
                    Ok(Found::Small(frame)) => Ok(Some(frame)),
                    Ok(Found::Large(table)) => {
                        let part = table.holding(seq).map(|pieces| self.part(&mut cursor, &table, &pieces));
                        Ok(part.and_then(Result::ok))
                    }
                    Err(Fault::Error(error)) => Err(error),
                    Err(_) => Ok(None),
                };
            }
            position = header.end();
        }
        Ok(None)
    }

    fn found_by(&self, cursor: &mut Cursor<'_>, position: Position) -> Result<Found, LogError> {
        let known = steady(&self.tables).at(position);
        if let Some(table) = known {
            return Ok(Found::Large(table));
        }
        let found = cursor.header(position).and_then(|header| self.found(cursor, &header));
        found.map_err(|fault| match fault {
            Fault::Error(error) => error,
            fault => LogError::corrupt(corruption(&self.segments, position, fault)),
        })
    }

    fn found(&self, cursor: &mut Cursor<'_>, header: &FrameHeader) -> Result<Found, Fault> {
        if header.piece_count == 0 {
            return cursor.frame(header.position, FrameCheck::Checksum).map(Found::Small);
        }
        let bytes = cursor.spine_part(header.position, 0, PieceTable::bytes_of(header))?;
        let table = PieceTable::decode(header, &bytes)
            .map_err(|invalid| Fault::Invalid(invalid, Some(Box::new(*header))))?;
        let table = Arc::new(table);
        steady(&self.tables).keep(&table);
        Ok(Found::Large(table))
    }

    /// Reads some neighbouring pieces and checks them.
    fn part(
        &self,
        cursor: &mut Cursor<'_>,
        table: &PieceTable,
        pieces: &Range<u32>,
    ) -> Result<Frame, LogError> {
        let position = table.header().position;
        let (start, length) = table.stretch(pieces);
        let read = cursor.spine_part(position, start, length);
        let part =
            read.and_then(|bytes| table.part(pieces, bytes).map_err(|invalid| Fault::Invalid(invalid, None)));
        match part {
            Ok(part) => Ok(self.segments.opened(part)),
            Err(Fault::Error(error)) => Err(error),
            Err(fault) => {
                let mut damage = corruption(&self.segments, position, fault);
                let seqs = table.seqs(pieces);
                (damage.seq_first, damage.seq_last) = (Some(*seqs.start()), Some(*seqs.end()));
                Err(LogError::corrupt(damage))
            }
        }
    }
}
