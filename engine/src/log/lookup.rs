//! Look-ups in the tables of complete segments: which frame holds a seq or a stream.
//!
//! ```text
//! segment n, sealed or not: n.map beside it            else: nothing, read the frames
//! ```
//!
//! Every page is checked before it is used. If one is damaged, the caller is told that there is no table. A table only says where to look: frames and bodies check themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use super::error::{Fault, LogError};
use crate::codec::{
    FENCE_KEY_BYTES, FRAME_ROW_BYTES, FramePlace, FrameRow, Invalid, MapRecord, PAGE_ROW_COUNT,
    POSTING_BYTES, Part, STREAM_ROW_BYTES, StreamRow, TableShape, checked,
};
use crate::ids::{Position, Seq, StreamId};
use crate::locks::steady;
use crate::storage::{StoredFile, bytes_between, read_up_to};

/// An open file and its name, for errors.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a dyn StoredFile,
    pub(crate) path: &'a Path,
}

/// Most bytes that are read without asking for the file's length first.
const UNASKED_BYTES_MAX: usize = 64 << 10;

/// Pages of one table that are kept, some 1.5 KiB each.
const PAGE_SLOT_COUNT: usize = 128;

/// Exactly `length` bytes at `offset`.
pub(crate) fn exactly(file: Source<'_>, offset: u64, length: usize) -> Result<Vec<u8>, Fault> {
    let missing = |found: u64| {
        let invalid = Invalid::new(
            Part::Packed,
            0,
            format!("{length} bytes at {offset}"),
            format!("a file of {found}"),
        );
        Fault::Invalid(invalid, None)
    };
    let failed = |action| move |error| Fault::Error(LogError::io(action, file.path.to_owned(), error));
    // A length from the disk may lie: no more memory than the file can fill. Little is not worth a question: one body is
    // three short reads, and asking first doubles its calls to the system.
    if length > UNASKED_BYTES_MAX {
        let size = file.file.len().map_err(failed("inspect"))?;
        if offset.saturating_add(length as u64) > size {
            return Err(missing(size));
        }
    }
    let mut bytes = vec![0; length];
    let count = read_up_to(file.file, &mut bytes, offset).map_err(failed("read"))?;
    if count < length {
        return Err(missing(file.file.len().map_err(failed("inspect"))?));
    }
    Ok(bytes)
}

fn damaged(found: &str) -> Fault {
    Fault::Invalid(Invalid::new(Part::Packed, 0, "sound tables", found), None)
}

/// A page's number, and its bytes.
type ReadPage = (usize, Arc<[u8]>);

/// One table of a file.
#[derive(Debug)]
pub(crate) struct Table {
    shape: TableShape,
    start: u64,
    fence: OnceLock<Vec<[u8; FENCE_KEY_BYTES]>>,
    /// Checked pages, each in the slot of its number until a later page takes the slot: the bodies of one session lie on few pages,
    /// though callers ask for them in another order. The file is complete, so its tables do not change.
    read: Mutex<BTreeMap<usize, ReadPage>>,
}

impl Table {
    pub(crate) fn new(shape: TableShape, start: u64) -> Self {
        Self { shape, start, fence: OnceLock::new(), read: Mutex::default() }
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.shape.bytes())
    }

    pub(crate) fn row_count(&self) -> u32 {
        self.shape.row_count
    }

    /// The rows of a page.
    fn page(&self, file: Source<'_>, page: usize) -> Result<Arc<[u8]>, Fault> {
        let held = || steady(&self.read);
        let slot = page % PAGE_SLOT_COUNT;
        if let Some((number, rows)) = held().get(&slot)
            && *number == page
        {
            return Ok(Arc::clone(rows));
        }
        let (offset, bytes) = self.shape.page(page);
        let read = exactly(file, self.start.saturating_add(offset), bytes)?;
        let rows: Arc<[u8]> = checked(&read).ok_or_else(|| damaged("a damaged page"))?.into();
        held().insert(slot, (page, Arc::clone(&rows)));
        Ok(rows)
    }

    fn fence(&self, file: Source<'_>) -> Result<&[[u8; FENCE_KEY_BYTES]], Fault> {
        if let Some(fence) = self.fence.get() {
            return Ok(fence);
        }
        let mut keys = Vec::with_capacity(self.shape.page_count());
        if self.shape.row_count > 0 {
            let (offset, bytes) = self.shape.fence();
            let read = exactly(file, self.start.saturating_add(offset), bytes)?;
            if let Some(fence) = checked(&read) {
                let (whole, _) = fence.as_chunks::<FENCE_KEY_BYTES>();
                keys.extend_from_slice(whole);
            } else {
                for page in 0..self.shape.page_count() {
                    let rows = self.page(file, page)?;
                    let first = rows.first_chunk::<FENCE_KEY_BYTES>().copied();
                    keys.push(first.ok_or_else(|| damaged("an empty page"))?);
                }
            }
        }
        Ok(self.fence.get_or_init(|| keys))
    }

    /// The ordinal of the first row whose key is at least `wanted`, and that row. `key` makes a key of a row's first 8 bytes.
    fn lower_bound(
        &self,
        file: Source<'_>,
        wanted: u64,
        key: fn(&[u8]) -> u64,
    ) -> Result<Option<(u32, Vec<u8>)>, Fault> {
        let fence = self.fence(file)?;
        // If the key is before the first row, the first page is searched.
        let mut page = fence.partition_point(|first| key(first) < wanted).saturating_sub(1);
        while page < self.shape.page_count() {
            let rows = self.page(file, page)?;
            let row_at = |index: usize| {
                let start = index.checked_mul(self.shape.row_bytes)?;
                rows.get(start..start.checked_add(self.shape.row_bytes)?)
            };
            let (mut index, mut end) = (0, PAGE_ROW_COUNT);
            while index < end {
                let middle = index.midpoint(end);
                if row_at(middle).is_some_and(|row| key(row) < wanted) {
                    index = middle + 1;
                } else {
                    end = middle;
                }
            }
            if let Some(row) = row_at(index) {
                let ordinal = page.saturating_mul(PAGE_ROW_COUNT).saturating_add(index);
                return Ok(Some((u32::try_from(ordinal).unwrap_or(u32::MAX), row.to_vec())));
            }
            page += 1;
        }
        Ok(None)
    }

    /// The row at an ordinal.
    fn row(&self, file: Source<'_>, ordinal: u32) -> Result<Option<Vec<u8>>, Fault> {
        if ordinal >= self.shape.row_count {
            return Ok(None);
        }
        let (page, index) = (ordinal as usize / PAGE_ROW_COUNT, ordinal as usize % PAGE_ROW_COUNT);
        let rows = self.page(file, page)?;
        let start = index.saturating_mul(self.shape.row_bytes);
        Ok(rows.get(start..start.saturating_add(self.shape.row_bytes)).map(<[u8]>::to_vec))
    }

    /// All rows from ordinal `from` on, `count` of them, in one read.
    pub(crate) fn rows(&self, file: Source<'_>, from: u32, count: u32) -> Result<Vec<u8>, Fault> {
        let end = from.saturating_add(count).min(self.shape.row_count);
        if from >= end {
            return Ok(Vec::new());
        }
        let (first, last) = (from as usize / PAGE_ROW_COUNT, (end - 1) as usize / PAGE_ROW_COUNT);
        let (start, _) = self.shape.page(first);
        let (stop, bytes) = self.shape.page(last);
        let length = bytes_between(start, stop.saturating_add(bytes as u64));
        let read = exactly(file, self.start.saturating_add(start), length)?;
        let mut out = Vec::with_capacity(read.len());
        for page in first..=last {
            let (offset, bytes) = self.shape.page(page);
            let at = bytes_between(start, offset);
            let page_bytes = read.get(at..at.saturating_add(bytes)).unwrap_or(&[]);
            out.extend_from_slice(checked(page_bytes).ok_or_else(|| damaged("a damaged page"))?);
        }
        let skip = (from as usize % PAGE_ROW_COUNT).saturating_mul(self.shape.row_bytes);
        out.drain(..skip.min(out.len()));
        out.truncate(((end - from) as usize).saturating_mul(self.shape.row_bytes));
        Ok(out)
    }
}

fn first_half(row: &[u8]) -> u64 {
    row.first_chunk::<4>().map_or(0, |key| u64::from(u32::from_le_bytes(*key)))
}

fn second_half(row: &[u8]) -> u64 {
    row.get(4..8).and_then(|key| key.first_chunk::<4>()).map_or(0, |key| u64::from(u32::from_le_bytes(*key)))
}

fn stream_key(row: &[u8]) -> u64 {
    row.first_chunk::<8>().map_or(0, |key| u64::from_be_bytes(*key))
}

/// The tables of one complete segment, in its map.
#[derive(Debug)]
pub(crate) struct Tables {
    record: MapRecord,
    frames: Table,
    streams: Table,
    postings: Table,
}

/// A stream, as the table of a segment has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableStream {
    /// The stream.
    pub stream: StreamId,
    /// Its first event in the segment.
    pub first: Seq,
    /// Its last event in the segment.
    pub last: Seq,
    /// The number of its events in the segment.
    pub event_count: u32,
}

impl Tables {
    /// The tables of a record that begin at byte `start` of their file.
    pub(crate) fn new(record: MapRecord, start: u64) -> Self {
        let frames = Table::new(record.frames(), start);
        let streams = Table::new(record.streams(), frames.end());
        let postings = Table::new(record.postings(), streams.end());
        Self { record, frames, streams, postings }
    }

    fn seq(&self, delta: u32) -> Seq {
        self.record.first_seq.plus(u64::from(delta))
    }

    fn frame(&self, row: FrameRow, next: Option<FrameRow>) -> FramePlace {
        let last = next.map_or(self.record.last_seq, |next| self.seq(next.seq).before());
        let position = u64::from(self.record.number) << 32 | u64::from(row.grain);
        FramePlace { first_seq: self.seq(row.seq), last_seq: last, position: Position(position) }
    }

    /// The position of the frame that holds `seq`.
    pub(crate) fn holding(&self, file: Source<'_>, seq: Seq) -> Result<Option<Position>, Fault> {
        let Some(delta) = seq.0.checked_sub(self.record.first_seq.0) else { return Ok(None) };
        if seq > self.record.last_seq {
            return Ok(None);
        }
        let after = self.frames.lower_bound(file, delta.saturating_add(1), second_half)?;
        let after = after.map_or(self.frames.row_count(), |(ordinal, _)| ordinal);
        let row = after.checked_sub(1).map(|ordinal| self.frames.row(file, ordinal)).transpose()?.flatten();
        Ok(row.map(|row| self.frame(FrameRow::decode(&row), None).position))
    }

    /// The frame that holds `seq`.
    pub(crate) fn frame_of(&self, file: Source<'_>, seq: Seq) -> Result<Option<FramePlace>, Fault> {
        let Some(position) = self.holding(file, seq)? else { return Ok(None) };
        let Some((ordinal, row)) = self.frames.lower_bound(file, position.0 & 0xffff_ffff, first_half)?
        else {
            return Ok(None);
        };
        let next = self.frames.row(file, ordinal.saturating_add(1))?;
        Ok(Some(self.frame(FrameRow::decode(&row), next.map(|next| FrameRow::decode(&next)))))
    }

    fn stream_row(&self, file: Source<'_>, stream: StreamId) -> Result<Option<StreamRow>, Fault> {
        let wanted = stream_key(stream.as_bytes());
        let Some((ordinal, row)) = self.streams.lower_bound(file, wanted, stream_key)? else {
            return Ok(None);
        };
        let mut row = StreamRow::decode(&row);
        let mut ordinal = ordinal;
        // Ids that begin alike stand side by side.
        while row.stream != stream {
            if stream_key(row.stream.as_bytes()) != wanted {
                return Ok(None);
            }
            ordinal = ordinal.saturating_add(1);
            let Some(next) = self.streams.row(file, ordinal)? else { return Ok(None) };
            row = StreamRow::decode(&next);
        }
        Ok(Some(row))
    }

    /// The frames that hold events of `stream` past `after`, in order.
    pub(crate) fn frames_of(
        &self,
        file: Source<'_>,
        stream: StreamId,
        after: Seq,
    ) -> Result<Vec<FramePlace>, Fault> {
        let Some(row) = self.stream_row(file, stream)?.filter(|row| self.seq(row.last) > after) else {
            return Ok(Vec::new());
        };
        let odd = row.posting % 2;
        let pairs = odd.saturating_add(row.posting_count).div_ceil(2);
        let postings = self.postings.rows(file, row.posting / 2, pairs)?;
        let postings =
            postings.chunks_exact(POSTING_BYTES).skip(odd as usize).take(row.posting_count as usize);
        let ordinals = postings.map(|bytes| u32::try_from(first_half(bytes)));
        let ordinals: Vec<u32> =
            ordinals.collect::<Result<_, _>>().map_err(|_| damaged("a posting beyond 32 bits"))?;
        let (Some(first), Some(last)) = (ordinals.first().copied(), ordinals.last().copied()) else {
            return Ok(Vec::new());
        };
        if last < first {
            return Err(damaged("postings out of order"));
        }
        let count = (last - first).saturating_add(2);
        let rows = self.frames.rows(file, first, count)?;
        let row_at = |ordinal: u32| {
            let start = (ordinal.checked_sub(first)? as usize).checked_mul(FRAME_ROW_BYTES)?;
            rows.get(start..start.checked_add(FRAME_ROW_BYTES)?).map(FrameRow::decode)
        };
        let mut found = Vec::with_capacity(ordinals.len());
        for ordinal in ordinals {
            let row = row_at(ordinal).ok_or_else(|| damaged("postings of no frame"))?;
            let frame = self.frame(row, row_at(ordinal.saturating_add(1)));
            if frame.last_seq > after {
                found.push(frame);
            }
        }
        Ok(found)
    }

    /// All streams that have events here, in the order of their first events here.
    pub(crate) fn streams(&self, file: Source<'_>) -> Result<Vec<TableStream>, Fault> {
        let rows = self.streams.rows(file, 0, u32::MAX)?;
        let mut streams: Vec<TableStream> = rows
            .chunks_exact(STREAM_ROW_BYTES)
            .map(|row| {
                let row = StreamRow::decode(row);
                let (first, last) = (self.seq(row.first), self.seq(row.last));
                TableStream { stream: row.stream, first, last, event_count: row.event_count }
            })
            .collect();
        streams.sort_unstable_by_key(|stream| stream.first);
        Ok(streams)
    }
}

/// A map open for reading.
pub(crate) struct MapFile {
    pub(crate) file: Box<dyn StoredFile>,
    pub(crate) path: PathBuf,
    pub(crate) tables: Tables,
}
