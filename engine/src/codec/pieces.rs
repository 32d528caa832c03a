//! The table of pieces of a large frame: so that a few of its events can be read without the others.
//!
//! ```text
//! spine of up to 16 events    | envelopes | payloads | rows |
//! spine of more               | table | envelopes, payloads, rows of 8 events | of the next 8 | ..
//! a row of the table          where the piece ends: byte of the spine, event, body row | checksum | streams, 64 bits
//! ```
//!
//! The checksum of a frame's header covers the table alone, and the table has the checksum of each piece. Reading one event takes
//! the header, the table and one piece; each is checked before use. A stream sets one bit of 64 in each piece that
//! holds events of it: a piece without the bit has none, a piece with it may.
//!
//! Not here: reading files. Pieces are named by their numbers, bytes by offsets in the spine.

use std::ops::{Range, RangeInclusive};

use super::fields::{Fields, Put, align16};
use super::header::{stream_bit, table_bytes};
use super::held::Span;
use super::{
    BODY_ROW_BYTES, ENVELOPE_BYTES, FRAME_HEADER_BYTES, FrameHeader, Invalid, PIECE_ROW_BYTES, Part,
};
use crate::ids::{Seq, StreamId};

/// A frame of more events than this has a table of pieces; fewer are read together.
pub(super) const SINGLE_EVENT_COUNT_MAX: usize = 16;
/// Most events of a piece: enough that neighbours come along, few enough that one event is cheap.
pub(super) const PIECE_EVENT_COUNT_MAX: usize = 8;
/// A piece this long takes no further event.
pub(super) const PIECE_BYTES_FULL: usize = 16 << 10;
/// Pieces that are left out between two that are wanted only if there are more of them: reading them costs less than going
/// to the next.
const GAP_PIECE_COUNT: u32 = 4;

/// The end of a piece, its checksum, and the streams in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PieceRow {
    /// Offset in the spine of the first byte after it.
    pub(super) spine_end: u32,
    /// Ordinal of the first event after it.
    pub(super) event_end: u32,
    /// Number of the first body row after it.
    pub(super) row_end: u32,
    /// CRC-32C of its bytes.
    pub(super) checksum: u32,
    /// One bit for each stream that has events in it.
    pub(super) streams: u64,
}

impl PieceRow {
    pub(super) fn encode(&self) -> [u8; PIECE_ROW_BYTES] {
        let mut bytes = [0; PIECE_ROW_BYTES];
        Put(&mut bytes)
            .u32(self.spine_end)
            .u32(self.event_end)
            .u32(self.row_end)
            .u32(self.checksum)
            .u64(self.streams);
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let mut fields = Fields(bytes);
        Self {
            spine_end: fields.u32(),
            event_end: fields.u32(),
            row_end: fields.u32(),
            checksum: fields.u32(),
            streams: fields.u64(),
        }
    }
}

/// The places of the parts of a piece that begins at `start` of the bytes in memory.
fn span(start: usize, bytes: usize, events: Range<u32>, row_count: u32) -> Span {
    // A table is refused if a piece in it ends before it begins, or is too short for its rows.
    let count = events.end.saturating_sub(events.start);
    let rows_bytes = (row_count as usize).saturating_mul(BODY_ROW_BYTES);
    let envelopes_bytes = align16((count as usize).saturating_mul(ENVELOPE_BYTES));
    Span {
        first: events.start,
        count,
        envelopes: start,
        payloads: start.saturating_add(envelopes_bytes),
        // As above.
        rows: start.saturating_add(bytes).saturating_sub(rows_bytes),
        row_count: row_count as usize,
    }
}

/// The table of a frame, checked.
#[derive(Debug)]
pub struct PieceTable {
    header: FrameHeader,
    rows: Vec<PieceRow>,
}

impl PieceTable {
    /// Length of a frame's table, 0 if it has none.
    pub fn bytes_of(header: &FrameHeader) -> usize {
        table_bytes(header.piece_count as usize)
    }

    /// Reads and checks a table: the first [`PieceTable::bytes_of`] bytes of a spine.
    ///
    /// # Errors
    /// [`Part::Spine`] if its checksum or its content is wrong.
    pub fn decode(header: &FrameHeader, bytes: &[u8]) -> Result<Self, Invalid> {
        let fail = |row: usize, expected: &str, found: String| {
            let offset = FRAME_HEADER_BYTES.saturating_add(row.saturating_mul(PIECE_ROW_BYTES));
            Err(Invalid::new(Part::Spine, offset, expected, found))
        };
        let length = Self::bytes_of(header);
        let Some(table) = bytes.get(..length).filter(|_| header.piece_count > 0) else {
            return fail(0, "a table of pieces", format!("{} bytes", bytes.len()));
        };
        let checksum = crc32c::crc32c(table);
        if checksum != header.spine_checksum {
            return fail(0, &format!("checksum {:08x}", header.spine_checksum), format!("{checksum:08x}"));
        }
        let mut rows = Vec::with_capacity(header.piece_count as usize);
        let mut before =
            PieceRow { spine_end: u32::try_from(length).unwrap_or(u32::MAX), ..PieceRow::default() };
        for (number, bytes) in
            table.chunks_exact(PIECE_ROW_BYTES).take(header.piece_count as usize).enumerate()
        {
            let row = PieceRow::decode(bytes);
            let fits = row.spine_end.is_multiple_of(16)
                && row.event_end > before.event_end
                && row.row_end >= before.row_end
                && row.spine_end.checked_sub(before.spine_end).is_some_and(|length| {
                    let events = u64::from(row.event_end - before.event_end);
                    let body_rows = u64::from(row.row_end - before.row_end);
                    let least = events
                        .saturating_mul(ENVELOPE_BYTES as u64)
                        .saturating_add(body_rows.saturating_mul(BODY_ROW_BYTES as u64));
                    u64::from(length) >= least
                });
            if !fits {
                return fail(number, "a piece behind the one before", format!("{row:?}"));
            }
            rows.push(row);
            before = row;
        }
        let ends = (header.spine_bytes, header.event_count, header.row_count);
        if (before.spine_end, before.event_end, before.row_end) != ends {
            return fail(rows.len(), "pieces up to the end of the spine", format!("{before:?}"));
        }
        Ok(Self { header: *header, rows })
    }

    /// The header of the frame.
    pub fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// Memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>().saturating_add(self.rows.capacity().saturating_mul(size_of::<PieceRow>()))
    }

    fn count(&self) -> u32 {
        u32::try_from(self.rows.len()).unwrap_or(u32::MAX)
    }

    /// Where piece `number` begins.
    fn start(&self, number: u32) -> PieceRow {
        match number.checked_sub(1) {
            Some(before) => self.rows.get(before as usize).copied().unwrap_or_default(),
            None => PieceRow {
                spine_end: u32::try_from(Self::bytes_of(&self.header)).unwrap_or(u32::MAX),
                ..PieceRow::default()
            },
        }
    }

    fn ordinal(&self, seq: Seq) -> Option<u32> {
        let ordinal = u32::try_from(seq.0.checked_sub(self.header.first_seq.0)?).ok()?;
        (ordinal < self.header.event_count).then_some(ordinal)
    }

    /// The piece that holds `seq`, if the frame does.
    pub fn holding(&self, seq: Seq) -> Option<Range<u32>> {
        let ordinal = self.ordinal(seq)?;
        let number = u32::try_from(self.rows.partition_point(|row| row.event_end <= ordinal)).ok()?;
        (number < self.count()).then(|| number..number.saturating_add(1))
    }

    /// The pieces that hold these events, in order, near ones together. `seqs` rise; seqs of other frames are left out.
    pub fn of_seqs(&self, seqs: impl Iterator<Item = Seq>) -> Vec<Range<u32>> {
        merged(seqs.filter_map(|seq| self.holding(seq)))
    }

    /// The pieces that may hold events of any of `streams` past `after`, in order, near ones together.
    pub fn of_streams(&self, streams: &[StreamId], after: Seq) -> Vec<Range<u32>> {
        let bits = streams.iter().fold(0, |bits, stream| bits | stream_bit(stream));
        let skipped = after.next().since(self.header.first_seq);
        let wanted = (0_u32..)
            .zip(&self.rows)
            .filter(|(_, row)| row.streams & bits != 0 && u64::from(row.event_end) > skipped);
        merged(wanted.map(|(number, _)| number..number.saturating_add(1)))
    }

    /// The first and the last seq of some pieces.
    pub fn seqs(&self, pieces: &Range<u32>) -> RangeInclusive<Seq> {
        let seq = |ordinal: u32| self.header.first_seq.plus(u64::from(ordinal));
        let (start, end) = (self.start(pieces.start), self.start(pieces.end));
        seq(start.event_end)..=seq(end.event_end).before()
    }

    /// Offset in the spine and length of some neighbouring pieces.
    pub fn stretch(&self, pieces: &Range<u32>) -> (usize, usize) {
        let (start, end) = (self.start(pieces.start).spine_end, self.start(pieces.end).spine_end);
        // Pieces follow one another.
        (start as usize, end.saturating_sub(start) as usize)
    }

    /// Where the parts of some pieces are in bytes that begin at offset `from` of the spine.
    pub(super) fn spans(&self, pieces: &Range<u32>, from: usize) -> Vec<Span> {
        let span_of = |number: u32| {
            let (start, end) = (self.start(number), self.start(number.saturating_add(1)));
            // `from` is where the first of them begins, and each ends behind the one before.
            let at = (start.spine_end as usize).saturating_sub(from);
            // As above.
            let bytes = end.spine_end.saturating_sub(start.spine_end) as usize;
            // As above.
            let rows = end.row_end.saturating_sub(start.row_end);
            span(at, bytes, start.event_end..end.event_end, rows)
        };
        pieces.clone().map(span_of).collect()
    }

    /// All pieces of a whole spine.
    pub(super) fn all_spans(&self) -> Vec<Span> {
        self.spans(&(0..self.count()), 0)
    }

    /// Compares pieces with their checksums; `bytes` are the bytes of these pieces, one after the other.
    pub(super) fn check(&self, pieces: &Range<u32>, bytes: &[u8]) -> Result<(), Invalid> {
        let from = self.stretch(pieces).0;
        for number in pieces.clone() {
            let (start, length) = self.stretch(&(number..number.saturating_add(1)));
            // `from` is where the first of them begins.
            let at = start.saturating_sub(from);
            let found = bytes.get(at..at.saturating_add(length)).map(crc32c::crc32c);
            let expected = self.rows.get(number as usize).map(|row| row.checksum);
            if found.is_none() || found != expected {
                return Err(Invalid::new(
                    Part::Spine,
                    FRAME_HEADER_BYTES.saturating_add(start),
                    format!("{length} bytes with checksum {:08x}", expected.unwrap_or(0)),
                    found.map_or("fewer bytes".to_owned(), |found| format!("{found:08x}")),
                ));
            }
        }
        Ok(())
    }
}

/// Ranges that begin in order, near ones as one.
fn merged(wanted: impl Iterator<Item = Range<u32>>) -> Vec<Range<u32>> {
    let mut merged: Vec<Range<u32>> = Vec::new();
    for run in wanted {
        match merged.last_mut() {
            Some(last) if run.start <= last.end.saturating_add(GAP_PIECE_COUNT) => {
                last.end = last.end.max(run.end);
            }
            _ => merged.push(run),
        }
    }
    merged
}

#[cfg(test)]
mod tests;
