//! The places of a complete segment: its file, asked by halving, or its rows in memory.
//!
//! ```text
//! rows in order | streams by id | ordinals | record
//! ```
//!
//! Each row is checked when it is looked at.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::LogError;
use super::place_run::{PlaceRun, StreamPlace};
use crate::codec::{
    FramePlace, ORDINAL_BYTES, PLACE_BYTES, PLACES_RECORD_BYTES, PlaceRow, PlacesOf, PlacesRecord,
    PlacesStream, SegmentHeader,
};
use crate::ids::{Seq, StreamId};
use crate::storage::{Access, Storage, StoredFile, read_up_to};

/// Rows that are read at a time.
const WINDOW_ROW_COUNT: u32 = 128;
/// Most complete segments whose rows are held in memory, since they have no sound file.
const RUN_COUNT_MAX: usize = 8;

/// Why places give no answer.
pub(super) enum PlacesFault {
    /// The file is not sound where it was read: the frames answer.
    Unsound,
    /// The storage failed.
    Log(LogError),
}

impl From<LogError> for PlacesFault {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// The places of a complete segment.
pub(crate) enum CompletePlaces {
    File(PlacesFile),
    Run(PlaceRun),
}

/// A complete segment's file.
pub(crate) struct PlacesFile {
    pub(super) file: Box<dyn StoredFile>,
    path: PathBuf,
    pub(super) of: PlacesOf,
    pub(super) record: PlacesRecord,
    /// Seqs of the segment.
    seqs: u32,
}

/// Rows that were read together. Each is checked when it is looked at.
struct RowWindow {
    of: PlacesOf,
    /// Number of the first.
    from: u32,
    bytes: Vec<u8>,
}

impl RowWindow {
    /// The numbers of its rows.
    fn numbers(&self) -> Range<u32> {
        let count = u32::try_from(self.bytes.len() / PLACE_BYTES).unwrap_or(u32::MAX);
        self.from..self.from.saturating_add(count)
    }

    /// The row of this number, if it is among them.
    fn row(&self, number: u32) -> Result<PlaceRow, PlacesFault> {
        let (rows, _) = self.bytes.as_chunks::<PLACE_BYTES>();
        let bytes = number.checked_sub(self.from).and_then(|at| rows.get(at as usize));
        bytes.and_then(|bytes| PlaceRow::decode(self.of, number, bytes)).ok_or(PlacesFault::Unsound)
    }

    /// The number of the first row of which this is true, else that behind them. It is true of all rows behind one of which it is. The rows on
    /// both sides of the answer were looked at.
    fn first_where(&self, is: impl Fn(&PlaceRow) -> bool) -> Result<u32, PlacesFault> {
        let Range { start: mut low, end: mut high } = self.numbers();
        while low < high {
            let middle = low.midpoint(high);
            if is(&self.row(middle)?) {
                high = middle;
            } else {
                low = middle.saturating_add(1);
            }
        }
        Ok(low)
    }
}

impl PlacesFile {
    /// `count` rows of `bytes` each, from row `from` of the part that begins at `start`; fewer where the file ends.
    pub(super) fn read(
        &self,
        start: u64,
        bytes: usize,
        (from, count): (u32, u32),
    ) -> Result<Vec<u8>, LogError> {
        let mut read = vec![0; bytes.saturating_mul(count as usize)];
        let offset = start.saturating_add(u64::from(from).saturating_mul(bytes as u64));
        let count = read_up_to(&*self.file, &mut read, offset);
        read.truncate(count.map_err(|error| LogError::io("read", self.path.clone(), error))?);
        Ok(read)
    }

    /// Rows of this count from this number on, read together.
    fn window(&self, from: u32, count: u32) -> Result<RowWindow, PlacesFault> {
        // Past the end there are none.
        let count = count.min(self.record.rows.saturating_sub(from));
        let bytes = self.read(0, PLACE_BYTES, (from, count))?;
        if bytes.len() != PLACE_BYTES.saturating_mul(count as usize) {
            return Err(PlacesFault::Unsound);
        }
        Ok(RowWindow { of: self.of, from, bytes })
    }

    /// These streams.
    fn stream_rows(&self, from: u32, count: u32) -> Result<Vec<PlacesStream>, PlacesFault> {
        // As above.
        let count = count.min(self.record.streams.saturating_sub(from));
        let bytes = self.read(self.record.streams_start(), PLACE_BYTES, (from, count))?;
        let rows = bytes.chunks(PLACE_BYTES).zip(from..);
        let rows: Option<Vec<_>> =
            rows.map(|(bytes, number)| PlacesStream::decode(self.of, number, bytes)).collect();
        rows.filter(|rows| rows.len() == count as usize).ok_or(PlacesFault::Unsound)
    }

    /// The row of this number.
    fn row(&self, number: u32) -> Result<PlaceRow, PlacesFault> {
        self.window(number, 1)?.row(number)
    }

    /// The ordinals of a stream's rows.
    fn ordinals(&self, stream: &PlacesStream) -> Result<Vec<u32>, PlacesFault> {
        let count = stream.count.min(self.record.rows);
        let bytes = self.read(self.record.ordinals_start(), ORDINAL_BYTES, (stream.first, count))?;
        if crc32c::crc32c(&bytes) != stream.ordinals || stream.count == 0 {
            return Err(PlacesFault::Unsound);
        }
        let (ordinals, _) = bytes.as_chunks::<ORDINAL_BYTES>();
        Ok(ordinals.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
    }

    /// The row of a stream; `None`: the segment has no event of it. Its neighbours are checked, too: without that a garbled row would hide the
    /// stream.
    fn stream(&self, stream: StreamId) -> Result<Option<PlacesStream>, PlacesFault> {
        let (mut low, mut high) = (0, self.record.streams);
        // `low` never passes `high`.
        while high.saturating_sub(low) > WINDOW_ROW_COUNT {
            let middle = low.midpoint(high);
            let row = self.stream_rows(middle, 1)?.first().copied().ok_or(PlacesFault::Unsound)?;
            if row.stream < stream {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        // The first row has no neighbour before it.
        let from = low.saturating_sub(1);
        // `from` is not behind `high`.
        let rows = self.stream_rows(from, high.saturating_sub(from).saturating_add(1))?;
        Ok(rows.into_iter().find(|row| row.stream == stream))
    }

    /// The frame of a row of this number.
    fn frame(&self, number: u32, row: &PlaceRow) -> Result<FramePlace, PlacesFault> {
        let mut last = row.head(self.of);
        if row.others > 0 {
            // Row 0 has none before it.
            let from = number.saturating_sub(row.others.into());
            let window = self.window(from, u32::from(row.others).saturating_mul(2).saturating_add(1))?;
            for other in window.numbers() {
                let other = window.row(other)?;
                if other.grain == row.grain {
                    last = last.max(other.head(self.of));
                }
            }
        }
        Ok(row.frame(self.of, last))
    }

    /// Frames of a stream past `after`, but only the newest `count_max` rows of the stream.
    fn frames_of(
        &self,
        stream: StreamId,
        after: Seq,
        count_max: usize,
    ) -> Result<Vec<FramePlace>, PlacesFault> {
        let mut found = Vec::new();
        let Some(stream) = self.stream(stream)? else { return Ok(found) };
        let ordinals = self.ordinals(&stream)?;
        // Fewer than were asked for: none is too many.
        let surplus = ordinals.len().saturating_sub(count_max);
        let mut rest = ordinals.get(surplus..).unwrap_or_default();
        while let Some(first) = rest.first() {
            // They rise, and rows of one stream mostly lie near each other.
            let near = rest.partition_point(|number| number.saturating_sub(*first) < WINDOW_ROW_COUNT);
            let (near, later) = rest.split_at_checked(near).unwrap_or((rest, &[]));
            rest = later;
            // As above.
            let count = near.last().map_or(1, |last| last.saturating_sub(*first).saturating_add(1));
            let window = self.window(*first, count)?;
            for number in near {
                let frame = self.frame(*number, &window.row(*number)?)?;
                if frame.last_seq > after {
                    found.push(frame);
                }
            }
        }
        Ok(found)
    }

    /// The first frame of a stream here, and its newest seq.
    fn span(&self, stream: StreamId) -> Result<Option<(FramePlace, Seq)>, PlacesFault> {
        let Some(stream) = self.stream(stream)? else { return Ok(None) };
        let ordinals = self.ordinals(&stream)?;
        let ends = ordinals.first().zip(ordinals.last());
        let (first, last) = ends.ok_or(PlacesFault::Unsound)?;
        let (row, last) = (self.row(*first)?, self.row(*last)?);
        Ok(Some((self.frame(*first, &row)?, last.head(self.of))))
    }

    /// The frame that holds a seq of this segment. Seqs rise evenly, so a guess mostly needs one read.
    fn frame_of(&self, seq: Seq) -> Result<Option<FramePlace>, PlacesFault> {
        let wanted = u32::try_from(seq.since(self.of.first_seq)).unwrap_or(u32::MAX);
        let (mut low, mut high) = (0, self.record.rows);
        let mut is_guess = true;
        while low < high {
            let all = u64::from(self.record.rows);
            let guess = u64::from(wanted).saturating_mul(all) / u64::from(self.seqs).max(1);
            // A guess past the end is cut to it.
            let guess = if is_guess { u32::try_from(guess).unwrap_or(u32::MAX) } else { low.midpoint(high) };
            is_guess = false;
            // `high` is above `low`.
            let from = guess.saturating_sub(WINDOW_ROW_COUNT / 2).clamp(low, high.saturating_sub(1));
            // As above.
            let window = self.window(from, WINDOW_ROW_COUNT.min(high.saturating_sub(from)))?;
            let behind = window.first_where(|row| row.seq > wanted)?;
            let Some(number) = behind.checked_sub(1).filter(|number| *number >= from) else {
                high = from;
                continue;
            };
            // The next row may hold it, or this one.
            if behind == window.numbers().end && behind < high && self.row(behind)?.seq <= wanted {
                low = behind;
                continue;
            }
            return self.frame(number, &window.row(number)?).map(Some);
        }
        Ok(None)
    }

    /// All rows.
    fn all(&self) -> Result<PlaceRun, PlacesFault> {
        let bytes = self.read(0, PLACE_BYTES, (0, self.record.rows))?;
        let mut run = PlaceRun::new(self.of);
        run.take(&bytes, self.record.end);
        if run.end() == self.record.end { Ok(run) } else { Err(PlacesFault::Unsound) }
    }

    /// The streams, in order of their first events.
    pub(super) fn streams(&self) -> Result<Vec<StreamPlace>, PlacesFault> {
        let rows = self.stream_rows(0, self.record.streams)?;
        let run = self.all()?;
        let ordinals = self.read(self.record.ordinals_start(), ORDINAL_BYTES, (0, self.record.rows))?;
        let (ordinals, _) = ordinals.as_chunks::<ORDINAL_BYTES>();
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            // A stream has at least one row.
            let last = row.first.saturating_add(row.count).saturating_sub(1);
            let at = |ordinal: u32| ordinals.get(ordinal as usize).map(|bytes| u32::from_le_bytes(*bytes));
            let ends = at(row.first).zip(at(last));
            let span = ends.and_then(|(first, last)| run.span(first, last));
            let (first, head) = span.ok_or(PlacesFault::Unsound)?;
            found.push(StreamPlace { stream: row.stream, first, head });
        }
        found.sort_unstable_by_key(|place| (place.first, place.stream));
        Ok(found)
    }
}

impl CompletePlaces {
    /// Frames of a stream past `after`.
    pub(super) fn frames_of(&self, stream: StreamId, after: Seq) -> Result<Vec<FramePlace>, PlacesFault> {
        match self {
            Self::File(file) => file.frames_of(stream, after, usize::MAX),
            Self::Run(run) => Ok(run.frames_of(&[stream], after)),
        }
    }

    /// The newest `count` frames of a stream; perhaps more of them.
    pub(super) fn last_frames_of(
        &self,
        stream: StreamId,
        count: usize,
    ) -> Result<Vec<FramePlace>, PlacesFault> {
        match self {
            Self::File(file) => file.frames_of(stream, Seq::ZERO, count),
            Self::Run(run) => Ok(run.last_frames_of(stream, count)),
        }
    }

    /// The frame that holds a seq.
    pub(super) fn frame_of(&self, seq: Seq) -> Result<Option<FramePlace>, PlacesFault> {
        match self {
            Self::File(file) => file.frame_of(seq),
            Self::Run(run) => Ok(run.frame_of(seq)),
        }
    }

    /// The first frame of a stream, and its newest seq.
    pub(super) fn span(&self, stream: StreamId) -> Result<Option<(FramePlace, Seq)>, PlacesFault> {
        match self {
            Self::File(file) => file.span(stream),
            Self::Run(run) => Ok(run.span_of(stream)),
        }
    }

    /// All frames past `after`.
    pub(super) fn all(&self, after: Seq) -> Result<Vec<FramePlace>, PlacesFault> {
        match self {
            Self::File(file) => Ok(file.all()?.frames(after)),
            Self::Run(run) => Ok(run.frames(after)),
        }
    }
}

impl PlacesFile {
    /// The file of this name, if it is of the segment with this header, which ends as `next` says.
    pub(super) fn open(
        storage: &dyn Storage,
        name: &str,
        header: &SegmentHeader,
        next: &SegmentHeader,
    ) -> Option<Self> {
        // The log answers without a file that cannot be read, here and below.
        let file = storage.open(name, Access::Read).ok()?;
        // As above.
        let start = file.len().ok()?.checked_sub(PLACES_RECORD_BYTES as u64)?;
        let mut bytes = [0; PLACES_RECORD_BYTES];
        // As above.
        read_up_to(&*file, &mut bytes, start).ok()?;
        let record = PlacesRecord::decode(&bytes).filter(|record| {
            record.segment == header.number
                && record.store == header.store
                && record.end == next.previous_end
                && record.link == next.previous
                && record.start() == start
        })?;
        let of = PlacesOf::new(header.store, header.number, header.first_seq);
        // A segment has fewer events than fit into 32 bits.
        let seqs = u32::try_from(next.first_seq.since(header.first_seq)).unwrap_or(u32::MAX);
        Some(Self { file, path: storage.path(name), of, record, seqs })
    }
}

/// Keeps the places of complete segments, within bounds.
pub(super) fn keep_places(
    known: &mut BTreeMap<u32, Arc<CompletePlaces>>,
    number: u32,
    places: Arc<CompletePlaces>,
    count_max: usize,
) {
    let is_run = |places: &Arc<CompletePlaces>| matches!(**places, CompletePlaces::Run(_));
    if is_run(&places) {
        let runs: Vec<u32> =
            known.iter().filter(|(_, known)| is_run(known)).map(|(number, _)| *number).collect();
        if let Some(first) = runs.first().filter(|_| runs.len() >= RUN_COUNT_MAX) {
            known.remove(first);
        }
    }
    if known.len() >= count_max {
        known.pop_first();
    }
    known.insert(number, places);
}
