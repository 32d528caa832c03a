//! What is kept of a large frame once it was checked as a whole, so that a few of its events can be read again alone.
//!
//! ```text
//! spine     | envelopes ............ | payloads .................... | rows ............... |
//! block k        |  8 of them |            |  theirs  |                    | theirs |
//! outline   for each block: where its payloads and rows begin, one checksum over its three pieces; which blocks a stream is in
//! ```
//!
//! A frame's checksum covers all its events. A commit of thousands is thus read whole for one of them, once: what was checked
//! then is noted here, block by block, and whatever is read later is compared with that before it is used. A block costs 12
//! bytes of memory where its events take thousands.
//!
//! Not here: reading. Blocks are named by ordinals, pieces by offsets in the spine.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use rkyv::util::AlignedVec;
use rustc_hash::FxHashMap;

use super::frame::Span;
use super::{BODY_ROW_BYTES, ENVELOPE_BYTES, FRAME_HEADER_BYTES, Frame, FrameHeader, Invalid, Part};
use crate::ids::{Seq, StreamId};

/// Events of a block: enough that neighbours come along, few enough that one event is cheap.
const BLOCK_EVENT_COUNT: u32 = 8;
/// Blocks that are left out between two that are wanted only if there are more of them: reading them costs less than going
/// to the next.
const GAP_BLOCK_COUNT: u32 = 4;

/// Where the payloads and rows of a block begin, and the checksum of its pieces.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    payload: u32,
    row: u32,
    checksum: u32,
}

/// Blocks that hold events of a stream.
#[derive(Debug, Clone)]
struct Runs {
    stream: StreamId,
    blocks: Vec<Range<u32>>,
}

/// The outline of a checked frame.
#[derive(Debug)]
pub struct Outline {
    header: FrameHeader,
    /// All blocks, and where they end.
    blocks: Vec<Block>,
    /// By stream.
    streams: Vec<Runs>,
}

/// Neighbouring blocks of a frame, and where their pieces are in its spine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    blocks: Range<u32>,
    /// Offset in the spine and length: of envelopes, payloads, rows.
    pub stretches: [(usize, usize); 3],
}

impl Pieces {
    /// Bytes of all pieces.
    pub fn bytes(&self) -> usize {
        self.stretches.iter().map(|(_, length)| length).sum()
    }
}

impl Outline {
    /// The outline of a frame, which is whole. Cost: one checksum of its spine.
    pub fn of(frame: &Frame) -> Option<Self> {
        if !frame.is_whole() {
            return None;
        }
        let (bytes, span) = frame.parts();
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut blocks =
            Vec::with_capacity((span.count.div_ceil(BLOCK_EVENT_COUNT) as usize).saturating_add(1));
        let mut streams: FxHashMap<StreamId, Vec<Range<u32>>> = FxHashMap::default();
        for (ordinal, (payload, event)) in (0_u32..).zip(frame.placed()) {
            let block = ordinal / BLOCK_EVENT_COUNT;
            if ordinal.is_multiple_of(BLOCK_EVENT_COUNT) {
                blocks.push(Block { payload: narrow(payload), row: narrow(event.first_row), checksum: 0 });
            }
            let runs = streams.entry(event.envelope.stream).or_default();
            match runs.last_mut() {
                Some(last) if last.end > block => {}
                Some(last) if last.end == block => last.end = block.saturating_add(1),
                _ => runs.push(block..block.saturating_add(1)),
            }
        }
        blocks.push(Block { payload: narrow(span.rows), row: narrow(span.row_count), checksum: 0 });
        let mut streams: Vec<Runs> =
            streams.into_iter().map(|(stream, blocks)| Runs { stream, blocks }).collect();
        streams.sort_unstable_by_key(|runs| runs.stream);
        let mut outline = Self { header: *frame.header(), blocks, streams };
        for block in 0..outline.block_count() {
            let pieces = outline.pieces(block..block.saturating_add(1))?;
            let mut sum = 0;
            for (start, length) in pieces.stretches {
                sum = crc32c::crc32c_append(sum, bytes.get(start..start.checked_add(length)?)?);
            }
            outline.blocks.get_mut(block as usize)?.checksum = sum;
        }
        Some(outline)
    }

    fn block_count(&self) -> u32 {
        u32::try_from(self.blocks.len().saturating_sub(1)).unwrap_or(0)
    }

    /// The header of the frame.
    pub fn header(&self) -> &FrameHeader {
        &self.header
    }

    /// Memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let runs: usize = self.streams.iter().map(|runs| runs.blocks.capacity()).sum();
        size_of::<Self>()
            .saturating_add(self.blocks.capacity().saturating_mul(size_of::<Block>()))
            .saturating_add(self.streams.capacity().saturating_mul(size_of::<Runs>()))
            .saturating_add(runs.saturating_mul(size_of::<Range<u32>>()))
    }

    /// The block that holds `seq`, if the frame does.
    pub fn holding(&self, seq: Seq) -> Option<Pieces> {
        let ordinal = u32::try_from(seq.0.checked_sub(self.header.first_seq.0)?).ok()?;
        let block = ordinal / BLOCK_EVENT_COUNT;
        self.pieces(block..block.checked_add(1)?).filter(|_| ordinal < self.header.event_count)
    }

    /// The blocks that hold these events, in order, near ones together. `seqs` rise; those of other frames are left out.
    pub fn of_seqs(&self, seqs: impl Iterator<Item = Seq>) -> Vec<Pieces> {
        let blocks = seqs.filter_map(|seq| self.holding(seq).map(|pieces| pieces.blocks));
        self.merged(blocks)
    }

    /// The block with the first event of a stream, if the frame has one.
    pub fn first_of(&self, stream: StreamId) -> Option<Pieces> {
        let at = self.streams.binary_search_by_key(&stream, |runs| runs.stream).ok()?;
        let first = self.streams.get(at)?.blocks.first()?.start;
        self.pieces(first..first.checked_add(1)?)
    }

    /// The blocks that hold events of any of `streams` past `after`, in order, near ones together.
    pub fn of_streams(&self, streams: &[StreamId], after: Seq) -> Vec<Pieces> {
        let skipped = after.0.saturating_add(1).saturating_sub(self.header.first_seq.0);
        let first = u32::try_from(skipped).unwrap_or(u32::MAX) / BLOCK_EVENT_COUNT;
        let mut wanted: Vec<Range<u32>> = Vec::new();
        for stream in streams {
            if let Ok(at) = self.streams.binary_search_by_key(stream, |runs| runs.stream)
                && let Some(runs) = self.streams.get(at)
            {
                let rest = runs.blocks.iter().filter(|run| run.end > first);
                wanted.extend(rest.map(|run| run.start.max(first)..run.end));
            }
        }
        wanted.sort_unstable_by_key(|run| run.start);
        self.merged(wanted.into_iter())
    }

    /// Runs of blocks that begin in order, near ones as one.
    fn merged(&self, wanted: impl Iterator<Item = Range<u32>>) -> Vec<Pieces> {
        let mut merged: Vec<Range<u32>> = Vec::new();
        for run in wanted {
            match merged.last_mut() {
                Some(last) if run.start <= last.end.saturating_add(GAP_BLOCK_COUNT) => {
                    last.end = last.end.max(run.end);
                }
                _ => merged.push(run),
            }
        }
        merged.into_iter().filter_map(|run| self.pieces(run)).collect()
    }

    /// The first and the last seq of some blocks.
    pub fn seqs(&self, pieces: &Pieces) -> RangeInclusive<Seq> {
        let events = self.events(&pieces.blocks);
        let seq = |ordinal: u32| Seq(self.header.first_seq.0.saturating_add(u64::from(ordinal)));
        seq(events.start)..=seq(events.end.saturating_sub(1))
    }

    /// Where the pieces of some blocks are.
    fn pieces(&self, blocks: Range<u32>) -> Option<Pieces> {
        let events = self.events(&blocks);
        let (from, to) = (self.blocks.get(blocks.start as usize)?, self.blocks.get(blocks.end as usize)?);
        let rows_start = self.blocks.last()?.payload as usize;
        let stretch = |from: u32, to: u32, bytes: usize, start: usize| {
            let offset = start.saturating_add((from as usize).saturating_mul(bytes));
            (offset, (to.saturating_sub(from) as usize).saturating_mul(bytes))
        };
        let stretches = [
            stretch(events.start, events.end, ENVELOPE_BYTES, 0),
            stretch(from.payload, to.payload, 1, 0),
            stretch(from.row, to.row, BODY_ROW_BYTES, rows_start),
        ];
        Some(Pieces { blocks, stretches })
    }

    /// Ordinals of the events of some blocks.
    fn events(&self, blocks: &Range<u32>) -> Range<u32> {
        let first = blocks.start.saturating_mul(BLOCK_EVENT_COUNT);
        first..blocks.end.saturating_mul(BLOCK_EVENT_COUNT).min(self.header.event_count)
    }

    /// The events of some blocks. `bytes` are their pieces, one after the other.
    ///
    /// # Errors
    /// [`Part::Spine`] if they are not what they were when the frame was checked.
    pub fn part(&self, pieces: &Pieces, bytes: AlignedVec<16>) -> Result<Frame, Invalid> {
        let [(at, envelopes), (_, payloads), _] = pieces.stretches;
        let wrong = |at: usize, expected: String, found: String| {
            Err(Invalid::new(Part::Spine, FRAME_HEADER_BYTES.saturating_add(at), expected, found))
        };
        if bytes.len() != pieces.bytes() {
            return wrong(at, format!("{} bytes", pieces.bytes()), format!("{} bytes", bytes.len()));
        }
        // Where the next block's envelopes, payloads and rows begin.
        let mut starts = [0, envelopes, envelopes.saturating_add(payloads)];
        for block in pieces.blocks.clone() {
            let known = self.pieces(block..block.saturating_add(1)).zip(self.blocks.get(block as usize));
            let Some((own, known)) = known else { return wrong(at, "a block".to_owned(), "none".to_owned()) };
            let mut sum = 0;
            for (start, (_, length)) in starts.iter_mut().zip(own.stretches) {
                let end = start.saturating_add(length);
                sum = crc32c::crc32c_append(sum, bytes.get(*start..end).unwrap_or(&[]));
                *start = end;
            }
            if sum != known.checksum {
                let (expected, found) = (format!("checksum {:08x}", known.checksum), format!("{sum:08x}"));
                return wrong(own.stretches[1].0, expected, found);
            }
        }
        let span = self.span(pieces, [0, envelopes, envelopes.saturating_add(payloads)]);
        Ok(Frame::of(self.header, Arc::new(bytes), span))
    }

    /// The events of some blocks, out of the frame that this is the outline of. No bytes are copied.
    pub fn part_of(&self, frame: &Frame, pieces: &Pieces) -> Frame {
        let (bytes, _) = frame.parts();
        let [(envelopes, _), (payloads, _), (rows, _)] = pieces.stretches;
        Frame::of(self.header, Arc::clone(bytes), self.span(pieces, [envelopes, payloads, rows]))
    }

    fn span(&self, pieces: &Pieces, [envelopes, payloads, rows]: [usize; 3]) -> Span {
        let events = self.events(&pieces.blocks);
        let row_count = pieces.stretches[2].1 / BODY_ROW_BYTES;
        Span {
            first: events.start,
            count: events.end.saturating_sub(events.start),
            envelopes,
            payloads,
            rows,
            row_count,
        }
    }
}

#[cfg(test)]
mod tests;
