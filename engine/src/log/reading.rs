//! Reading by seq and by position: a frame, or some events of a large one without the others.
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
use super::error::{Corruption, Fault, LogError, sound};
use super::files::{POINT_WINDOW_BYTES, SPINE_WINDOW_BYTES, corruption, damaged};
use super::frames::Frames;
use crate::codec::{Frame, FrameCheck, FrameHeader, FramePlace, Part, PieceTable, SegmentHeader};
use crate::ids::{Position, Seq, StreamId};
use crate::locks::steady;

/// Frames that are stepped over by their headers alone, before a look-up asks the tables of the segment.
const STEP_COUNT_MAX: usize = 4096;

/// Pieces that are read together in the search for a stream's first event.
const FIRST_PIECE_COUNT: u32 = 4;

/// A small frame, or the table of a large one.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is made")]
enum Found {
    Small(Frame),
    Large(Arc<PieceTable>),
}

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

    /// The events of `streams` past `after` in the frame at `position`: the whole frame, or parts of a large one. They may hold other
    /// events, too.
    ///
    /// # Errors
    /// As [`Log::frame_at`].
    pub(crate) fn parts_of(
        &mut self,
        log: &'a Log,
        position: Position,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<Vec<Frame>, LogError> {
        let look_bytes = self.look_bytes;
        let cursor = self.cursor.get_or_insert_with(|| Cursor::for_looks(&log.segments, look_bytes));
        match log.found_by(cursor, position)? {
            Found::Small(frame) => Ok(vec![frame]),
            Found::Large(table) => {
                let wanted = table.of_streams(streams, after);
                log.met(wanted.iter().map(|pieces| log.part(cursor, &table, pieces)).collect())
            }
        }
    }
}

impl Log {
    /// The frame that holds `seq`, or the part of a large frame that holds it, if it is durable and sound. Cost: a few reads near it.
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

    /// The frames of a complete segment that hold events of `stream` past `after`. Without usable tables all its frames are
    /// read.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails. Damaged frames are left out.
    pub fn segment_frames_of(
        &self,
        segment: u32,
        stream: StreamId,
        after: Seq,
    ) -> Result<Vec<FramePlace>, LogError> {
        if let Some(tables) = self.tables(segment)?
            && let Some(frames) = tables.ask(|source, tables| tables.frames_of(source, stream, after))?
        {
            return Ok(frames);
        }
        let mut until = self.head();
        if let Some(next) = self.segments.header(segment.saturating_add(1))? {
            until.position = until.position.min(next.previous_end);
            until.seq = until.seq.min(next.first_seq.before());
        }
        let mut found = Vec::new();
        for frame in self.frames(SegmentHeader::start(segment), until) {
            let frame = match frame {
                Ok(frame) => frame,
                Err(LogError::Corrupt(_)) => continue,
                Err(error) => return Err(error),
            };
            let header = frame.header();
            if header.last_seq() > after && frame.events().any(|event| event.envelope.stream == stream) {
                let (first_seq, last_seq) = (header.first_seq, header.last_seq());
                found.push(FramePlace { first_seq, last_seq, position: header.position });
            }
        }
        Ok(found)
    }

    /// The frame at `position`, as an index names it.
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

    /// The event at `seq` and some neighbours, if the event is durable and in a large frame that was read before. `None` decides
    /// nothing: ask [`Log::locate`].
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

    /// As [`Log::part_holding`] for the first of `seqs`, and for those of the other `seqs` that the same frame holds: parts in order.
    /// `seqs` rise.
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

    /// The frame at `position`, or the part of a large frame that holds `seq`; `None` if the frame does not hold `seq`.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no sound frame of this store begins there, or if that part of it is damaged.
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
        let mut looks = Looks::WITH_TEXTS;
        looks.parts_of(self, position, streams, after)
    }

    /// The frame at `position`, or some events of a large frame with the first one of `stream`, if there is one.
    ///
    /// # Errors
    /// As [`Log::frame_at`].
    pub fn first_part_of(&self, position: Position, stream: StreamId) -> Result<Frame, LogError> {
        let mut cursor = self.cursor();
        let table = match self.found_by(&mut cursor, position)? {
            Found::Small(frame) => return Ok(frame),
            Found::Large(table) => table,
        };
        for pieces in table.of_streams(&[stream], Seq::ZERO) {
            // A piece may have the stream's bit because of another stream, so the first event may be further on. It rarely is.
            for start in pieces.clone().step_by(FIRST_PIECE_COUNT as usize) {
                let few = start..pieces.end.min(start.saturating_add(FIRST_PIECE_COUNT));
                let part = self.met(self.part(&mut cursor, &table, &few))?;
                if part.events().any(|event| event.envelope.stream == stream) {
                    return Ok(part);
                }
            }
        }
        self.frame_at(position)
    }

    /// As [`Log::parts_of`], from a whole frame in memory.
    pub fn parts_in(&self, frame: &Frame, streams: &[StreamId], after: Seq) -> Vec<Frame> {
        let Some(table) = frame.piece_table() else { return vec![frame.clone()] };
        table.of_streams(streams, after).iter().map(|pieces| table.part_of(frame, pieces)).collect()
    }

    /// The frame that holds `seq` or a part of it, found by following headers from a known place. `None`: something on the way is
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
                return Ok(match sound(self.found(&mut cursor, &header))? {
                    Some(Found::Small(frame)) => Some(frame),
                    Some(Found::Large(table)) => {
                        let part = table.holding(seq).map(|pieces| self.part(&mut cursor, &table, &pieces));
                        part.and_then(Result::ok)
                    }
                    None => None,
                });
            }
            position = header.end();
        }
        Ok(None)
    }

    /// The pieces of a damaged frame that are sound, in order; none if the frame's table is damaged or missing.
    ///
    /// Each piece passes its checksum, as for any other look at a part of a frame. The digest covers the whole frame, and says
    /// nothing of a part.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub(crate) fn sound_parts(&self, header: &FrameHeader) -> Result<Vec<Frame>, LogError> {
        let mut cursor = self.cursor();
        let Some(Found::Large(table)) = sound(self.found(&mut cursor, header))? else {
            return Ok(Vec::new());
        };
        let mut parts = Vec::new();
        for piece in 0..header.piece_count {
            match self.part(&mut cursor, &table, &(piece..piece.saturating_add(1))) {
                Ok(part) => parts.push(part),
                // The caller reports the damage of the frame.
                Err(LogError::Corrupt(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(parts)
    }

    fn found_by(&self, cursor: &mut Cursor<'_>, position: Position) -> Result<Found, LogError> {
        let known = steady(&self.tables).at(position);
        if let Some(table) = known {
            return Ok(Found::Large(table));
        }
        let found = cursor.header(position).and_then(|header| self.found(cursor, &header));
        found.map_err(|fault| damaged(&self.segments, position, fault))
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
