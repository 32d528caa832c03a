//! Where frames are: the file `n.places` beside each segment, and what is read of it.
//!
//! ```text
//! segment n, complete    n.places: rows in order, streams by id, record     asked by halving, each row checked as it is read
//! the last segment       n.places: rows that grow with each commit          read once, then what is new
//! rows missing           the frames themselves are read, and written there by the next writer
//! ```
//!
//! This is the one answer to which frames hold a stream, and which frame holds a seq. That no row names a stream proves nothing by itself: only
//! a run of rows without a break, from the segment's start on, does, since offset and length of a frame lead to the rows of the next. The rows
//! are believed up to the count that the tail page names. A complete segment's record names the link of its end, as the next segment does.
//! A places file may be deleted at any time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use super::error::LogError;
use super::files::{Segments, places_name};
use super::place_run::PlaceRun;
use super::{Head, Log};
use crate::codec::{
    Entered, FramePlace, ORDINAL_BYTES, PLACE_BYTES, PLACES_RECORD_BYTES, PlaceRow, PlacesOf, PlacesRecord,
    PlacesStream, SegmentHeader,
};
use crate::failpoints::failpoint;
use crate::ids::{Position, Seq, StreamId};
use crate::locks::renewed;
use crate::storage::{Access, StoredFile, read_up_to};

/// Rows that are read at a time by a search.
const WINDOW_ROW_COUNT: u32 = 128;
/// Most complete segments whose rows are held in memory, since they have no sound file.
const RUN_COUNT_MAX: usize = 8;

/// A stream's first frame and its newest seq.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamPlace {
    /// The stream.
    pub stream: StreamId,
    /// The frame of its first event.
    pub first: FramePlace,
    /// Its newest event.
    pub head: Seq,
}

/// A complete segment: its number and its seqs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompleteSegment {
    /// Its number.
    pub number: u32,
    /// Seq of its first event.
    pub first_seq: Seq,
    /// Seq of its last event.
    pub last_seq: Seq,
}

/// What a handle knows of places.
#[derive(Default)]
pub(super) struct Places {
    /// The rows of the last segment.
    run: Option<PlaceRun>,
    /// The streams of all segments before `listed`, in order of their first events, and where each stands.
    listed: u32,
    streams: Vec<StreamPlace>,
    at: FxHashMap<StreamId, usize>,
    /// First frames that were asked for.
    firsts: FxHashMap<StreamId, FramePlace>,
    /// Damage that was met and not told of.
    damage: Vec<String>,
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

    /// These rows; `None`: one of them is not sound.
    fn rows(&self, from: u32, count: u32) -> Result<Option<Vec<PlaceRow>>, LogError> {
        let count = count.min(self.record.rows.saturating_sub(from));
        let bytes = self.read(0, PLACE_BYTES, (from, count))?;
        let rows = bytes.chunks(PLACE_BYTES).zip(from..);
        let rows: Option<Vec<_>> =
            rows.map(|(bytes, number)| PlaceRow::decode(self.of, number, bytes)).collect();
        Ok(rows.filter(|rows| rows.len() == count as usize))
    }

    /// These streams; `None`: one of their rows is not sound.
    fn stream_rows(&self, from: u32, count: u32) -> Result<Option<Vec<PlacesStream>>, LogError> {
        let count = count.min(self.record.streams.saturating_sub(from));
        let bytes = self.read(self.record.streams_start(), PLACE_BYTES, (from, count))?;
        let rows = bytes.chunks(PLACE_BYTES).zip(from..);
        let rows: Option<Vec<_>> =
            rows.map(|(bytes, number)| PlacesStream::decode(self.of, number, bytes)).collect();
        Ok(rows.filter(|rows| rows.len() == count as usize))
    }

    /// The ordinals of a stream's rows.
    fn ordinals(&self, stream: &PlacesStream) -> Result<Option<Vec<u32>>, LogError> {
        let count = stream.count.min(self.record.rows);
        let bytes = self.read(self.record.ordinals_start(), ORDINAL_BYTES, (stream.first, count))?;
        if crc32c::crc32c(&bytes) != stream.ordinals || stream.count == 0 {
            return Ok(None);
        }
        let (ordinals, _) = bytes.as_chunks::<ORDINAL_BYTES>();
        Ok(Some(ordinals.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()))
    }

    /// The row of a stream; the inner `None`: the segment has no event of it. Its neighbours are checked, too: without that a garbled row
    /// would hide the stream.
    fn stream(&self, stream: StreamId) -> Result<Option<Option<PlacesStream>>, LogError> {
        let (mut low, mut high) = (0, self.record.streams);
        while high.saturating_sub(low) > WINDOW_ROW_COUNT {
            let middle = low.midpoint(high);
            let Some(row) = self.stream_rows(middle, 1)?.and_then(|rows| rows.first().copied()) else {
                return Ok(None);
            };
            if row.stream < stream {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        let from = low.saturating_sub(1);
        let rows = self.stream_rows(from, high.saturating_sub(from).saturating_add(1))?;
        Ok(rows.map(|rows| rows.into_iter().find(|row| row.stream == stream)))
    }

    /// The frame of a row of this number.
    fn frame(&self, number: u32, row: &PlaceRow) -> Result<Option<FramePlace>, LogError> {
        let mut last = row.head(self.of);
        if row.others > 0 {
            let from = number.saturating_sub(row.others.into());
            let count = u32::from(row.others).saturating_mul(2).saturating_add(1);
            let Some(rows) = self.rows(from, count)? else { return Ok(None) };
            let heads = rows.iter().filter(|other| other.grain == row.grain).map(|other| other.head(self.of));
            last = heads.fold(last, Seq::max);
        }
        Ok(Some(row.frame(self.of, last)))
    }

    fn frames_of(&self, stream: StreamId, after: Seq) -> Result<Option<Vec<FramePlace>>, LogError> {
        let mut found = Vec::new();
        let Some(stream) = self.stream(stream)? else { return Ok(None) };
        let Some(ordinals) = stream.as_ref().map(|stream| self.ordinals(stream)).transpose()? else {
            return Ok(Some(found));
        };
        let Some(ordinals) = ordinals else { return Ok(None) };
        let (Some(first), Some(last)) = (ordinals.first(), ordinals.last()) else { return Ok(None) };
        // Rows of one stream mostly lie together.
        let count = last.saturating_sub(*first).saturating_add(1);
        let is_dense = count as usize <= ordinals.len().saturating_mul(16);
        let rows = if is_dense { self.rows(*first, count)? } else { Some(Vec::new()) };
        let Some(rows) = rows else { return Ok(None) };
        for number in &ordinals {
            let at = number.checked_sub(*first).and_then(|at| rows.get(at as usize).copied());
            let row = match at {
                Some(row) => Some(row),
                None => self.rows(*number, 1)?.and_then(|rows| rows.first().copied()),
            };
            let Some(row) = row else { return Ok(None) };
            let Some(frame) = self.frame(*number, &row)? else { return Ok(None) };
            if frame.last_seq > after {
                found.push(frame);
            }
        }
        Ok(Some(found))
    }

    /// The first frame of a stream here, and its newest seq; the inner `None`: it has none.
    fn span(&self, stream: StreamId) -> Result<Option<Option<(FramePlace, Seq)>>, LogError> {
        match self.stream(stream)? {
            None => Ok(None),
            Some(None) => Ok(Some(None)),
            Some(Some(stream)) => Ok(self.span_of(&stream)?.map(Some)),
        }
    }

    fn span_of(&self, stream: &PlacesStream) -> Result<Option<(FramePlace, Seq)>, LogError> {
        let Some(ordinals) = self.ordinals(stream)? else { return Ok(None) };
        let ends = ordinals.first().zip(ordinals.last());
        let Some((first, last)) = ends else { return Ok(None) };
        let row =
            |number: u32| Ok::<_, LogError>(self.rows(number, 1)?.and_then(|rows| rows.first().copied()));
        let (Some(first_row), Some(last_row)) = (row(*first)?, row(*last)?) else { return Ok(None) };
        Ok(self.frame(*first, &first_row)?.map(|frame| (frame, last_row.head(self.of))))
    }

    /// The frame that holds a seq of this segment. Seqs rise evenly, so a guess mostly needs one read.
    fn frame_of(&self, seq: Seq) -> Result<Option<FramePlace>, LogError> {
        let wanted = u32::try_from(seq.since(self.of.first_seq)).unwrap_or(u32::MAX);
        let (mut low, mut high) = (0, self.record.rows);
        let mut is_guess = true;
        while low < high {
            let all = u64::from(self.record.rows);
            let guess = u64::from(wanted).saturating_mul(all) / u64::from(self.seqs).max(1);
            let guess = if is_guess { u32::try_from(guess).unwrap_or(u32::MAX) } else { low.midpoint(high) };
            is_guess = false;
            let from = guess.saturating_sub(WINDOW_ROW_COUNT / 2).clamp(low, high.saturating_sub(1));
            let Some(rows) = self.rows(from, WINDOW_ROW_COUNT.min(high.saturating_sub(from)))? else {
                return Ok(None);
            };
            let behind = rows.partition_point(|row| row.seq <= wanted);
            let Some(row) = behind.checked_sub(1).and_then(|at| rows.get(at)) else {
                high = from;
                continue;
            };
            let end = from.saturating_add(u32::try_from(rows.len()).unwrap_or(u32::MAX));
            if behind == rows.len() && end < high {
                // The next row may hold it, or this one.
                let Some(next) = self.rows(end, 1)?.and_then(|rows| rows.first().copied()) else {
                    return Ok(None);
                };
                if next.seq <= wanted {
                    low = end;
                    continue;
                }
            }
            let number = from.saturating_add(u32::try_from(behind).unwrap_or(u32::MAX)).saturating_sub(1);
            return self.frame(number, row);
        }
        Ok(None)
    }

    /// All rows.
    fn all(&self) -> Result<Option<PlaceRun>, LogError> {
        let bytes = self.read(0, PLACE_BYTES, (0, self.record.rows))?;
        let mut run = PlaceRun::new(self.of);
        run.take(&bytes, self.record.end);
        Ok(Some(run).filter(|run| run.end() == self.record.end))
    }

    fn streams(&self) -> Result<Option<Vec<StreamPlace>>, LogError> {
        let Some(rows) = self.stream_rows(0, self.record.streams)? else { return Ok(None) };
        let Some(run) = self.all()? else { return Ok(None) };
        let ordinals = self.read(self.record.ordinals_start(), ORDINAL_BYTES, (0, self.record.rows))?;
        let (ordinals, _) = ordinals.as_chunks::<ORDINAL_BYTES>();
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let last = row.first.saturating_add(row.count).saturating_sub(1);
            let at = |ordinal: u32| ordinals.get(ordinal as usize).map(|bytes| u32::from_le_bytes(*bytes));
            let ends = at(row.first).zip(at(last));
            let Some((first, head)) = ends.and_then(|(first, last)| run.span(first, last)) else {
                return Ok(None);
            };
            found.push(StreamPlace { stream: row.stream, first, head });
        }
        found.sort_unstable_by_key(|place| (place.first, place.stream));
        Ok(Some(found))
    }
}

impl CompletePlaces {
    fn frames_of(&self, stream: StreamId, after: Seq) -> Result<Option<Vec<FramePlace>>, LogError> {
        match self {
            Self::File(file) => file.frames_of(stream, after),
            Self::Run(run) => Ok(Some(run.frames_of(&[stream], after))),
        }
    }

    fn frame_of(&self, seq: Seq) -> Result<Option<Option<FramePlace>>, LogError> {
        match self {
            Self::File(file) => Ok(file.frame_of(seq)?.map(Some)),
            Self::Run(run) => Ok(Some(run.frame_of(seq))),
        }
    }

    fn span(&self, stream: StreamId) -> Result<Option<Option<(FramePlace, Seq)>>, LogError> {
        match self {
            Self::File(file) => file.span(stream),
            Self::Run(run) => Ok(Some(run.span_of(stream))),
        }
    }

    fn all(&self, after: Seq) -> Result<Option<Vec<FramePlace>>, LogError> {
        match self {
            Self::File(file) => Ok(file.all()?.map(|run| run.frames(after))),
            Self::Run(run) => Ok(Some(run.frames(after))),
        }
    }
}

impl Segments {
    /// The file of places of segment `number`, which ends as `next` says; `None`: there is none to be used.
    pub(crate) fn places_file(
        &self,
        number: u32,
        next: &SegmentHeader,
    ) -> Result<Option<PlacesFile>, LogError> {
        let Some(header) = self.header(number)? else { return Ok(None) };
        let name = places_name(number);
        // The log answers without a file that cannot be read.
        let Ok(file) = self.storage.open(&name, Access::Read) else { return Ok(None) };
        // As above.
        let Ok(length) = file.len() else { return Ok(None) };
        let Some(start) = length.checked_sub(PLACES_RECORD_BYTES as u64) else { return Ok(None) };
        let mut bytes = [0; PLACES_RECORD_BYTES];
        // As above.
        let Ok(_) = read_up_to(&*file, &mut bytes, start) else { return Ok(None) };
        let record = PlacesRecord::decode(&bytes).filter(|record| {
            record.segment == number
                && record.store == self.store
                && record.end == next.previous_end
                && record.link == next.previous
                && record.start() == start
        });
        let of = PlacesOf::new(self.store, number, header.first_seq);
        let seqs = u32::try_from(next.first_seq.since(header.first_seq)).unwrap_or(u32::MAX);
        let path = self.storage.path(&name);
        Ok(record.map(|record| PlacesFile { file, path, of, record, seqs }))
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

impl Log {
    /// The complete segment that holds `seq`, if the segment and the one after it have sound headers.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn complete_segment(&self, seq: Seq) -> Result<Option<CompleteSegment>, LogError> {
        let last = self.head().position.segment();
        let (mut low, mut high) = (1_u32, last);
        // The first segment that begins after `seq`; a damaged header ends the search without an answer.
        while low < high {
            let middle = low.midpoint(high);
            match self.segments.header(middle)? {
                Some(header) if header.first_seq <= seq => low = middle.saturating_add(1),
                Some(_) => high = middle,
                None => return Ok(None),
            }
        }
        // 0 is no segment, and is passed over.
        for number in [low.saturating_sub(1), low] {
            if number == 0 || number >= last {
                continue;
            }
            let (Some(header), Some(next)) =
                (self.segments.header(number)?, self.segments.header(number.saturating_add(1))?)
            else {
                return Ok(None);
            };
            if header.first_seq <= seq && seq < next.first_seq && next.previous_end.segment() == number {
                let last_seq = next.first_seq.before();
                return Ok(Some(CompleteSegment { number, first_seq: header.first_seq, last_seq }));
            }
        }
        Ok(None)
    }

    /// Whether this handle may make caches.
    pub(super) fn may_write_places(&self) -> bool {
        // Without the key of an encrypted store it is not known which event of a frame is a stream's last.
        !self.options.read_only && !self.is_read_only() && !self.is_closed()
    }

    /// The places of a complete segment. A file that is missing is made if this handle may write.
    pub(super) fn complete_places(&self, number: u32) -> Result<Arc<CompletePlaces>, LogError> {
        if let Some(places) = self.segments.known_places(number) {
            return Ok(places);
        }
        if let Some(next) = self.segments.header(number.saturating_add(1))? {
            let mut file = self.segments.places_file(number, &next)?;
            if file.is_none() && self.may_write_places() && self.write_places(number)? {
                file = self.segments.places_file(number, &next)?;
            }
            if let Some(file) = file {
                let places = Arc::new(CompletePlaces::File(file));
                self.segments.keep_places(number, &places);
                return Ok(places);
            }
        }
        self.walked_places(number)
    }

    /// The places of a complete segment as its frames say.
    fn walked_places(&self, number: u32) -> Result<Arc<CompletePlaces>, LogError> {
        let head = self.head();
        let until = match self.segments.header(number.saturating_add(1))? {
            Some(next) if next.previous_end.segment() == number => {
                Head { position: next.previous_end, seq: next.first_seq.before(), ..Head::default() }
            }
            _ => {
                let end = SegmentHeader::start(number.saturating_add(1));
                Head { position: end.min(head.position), ..head }
            }
        };
        let mut run = self.empty_run(number)?;
        self.walk_frames(&mut run, until)?;
        let places = Arc::new(CompletePlaces::Run(run));
        self.segments.keep_places(number, &places);
        Ok(places)
    }

    /// Asks the places of a complete segment. If its file is not sound, it is made anew, and the frames are asked.
    fn ask_places<T>(
        &self,
        number: u32,
        question: impl Fn(&CompletePlaces) -> Result<Option<T>, LogError>,
    ) -> Result<Option<T>, LogError> {
        let places = self.complete_places(number)?;
        if let Some(answer) = question(&places)? {
            return Ok(Some(answer));
        }
        self.segments.forget_one(number);
        if self.may_write_places() {
            self.write_places(number)?;
        }
        question(&*self.walked_places(number)?)
    }

    /// A run without rows.
    fn empty_run(&self, number: u32) -> Result<PlaceRun, LogError> {
        let header = self.segments.header(number)?;
        // Frames can be read without the header of their segment.
        let first_seq = header.map_or(Seq(1), |header| header.first_seq);
        Ok(PlaceRun::new(PlacesOf::new(self.store(), number, first_seq)))
    }

    /// Adds the frames from the run's end up to `until`. Damaged ones are left out, and told of.
    fn walk_frames(&self, run: &mut PlaceRun, until: Head) -> Result<(), LogError> {
        for frame in self.frames(run.end(), until) {
            match frame {
                Ok(frame) => run.push(&frame),
                Err(error @ LogError::Corrupt(_)) => run.miss(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        run.reach(until.position);
        Ok(())
    }

    /// Reads rows of the last segment behind the run's end, as many as the page says there are.
    pub(super) fn read_rows(
        &self,
        run: &mut PlaceRun,
        entered: Entered,
        until: Position,
    ) -> Result<(), LogError> {
        let number = run.of().segment;
        let have = u32::try_from(run.row_count()).unwrap_or(u32::MAX);
        let rows = if failpoint!(PlacesUncounted) { u32::MAX } else { entered.rows };
        let count = rows.saturating_sub(have);
        if entered.end.segment() != number || count == 0 {
            return Ok(());
        }
        let name = places_name(number);
        // The frames answer if there is no file, or it cannot be read.
        let Ok(file) = self.storage.open(&name, Access::Read) else { return Ok(()) };
        // As above.
        let Ok(length) = file.len() else { return Ok(()) };
        let start = u64::from(have).saturating_mul(PLACE_BYTES as u64);
        let most = length.saturating_sub(start);
        let wanted = u64::from(count).saturating_mul(PLACE_BYTES as u64).min(most);
        let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(0)];
        // As above.
        let Ok(read) = read_up_to(&*file, &mut bytes, start) else { return Ok(()) };
        bytes.truncate(read);
        run.take(&bytes, until);
        Ok(())
    }

    /// Brings the rows of the last segment up to the durable head.
    fn advance_places(&self, places: &mut Places) -> Result<(), LogError> {
        let head = self.head();
        let number = head.position.segment();
        let run = match &mut places.run {
            Some(run) if run.of().segment == number => run,
            run => run.insert(self.empty_run(number)?),
        };
        if run.end() >= head.position {
            return Ok(());
        }
        let page = self.read_page()?;
        let own = page.store == Some(self.store());
        if let Some(entered) = page.entered.filter(|_| own) {
            self.read_rows(run, entered, head.position)?;
            if run.end() < entered.end.min(head.position) {
                // The next commit of this handle writes the rest.
                self.places_broken.store(true, Ordering::Relaxed);
            }
        }
        if run.end() < head.position && !failpoint!(PlacesRunUnchecked) {
            self.walk_frames(run, head)?;
        }
        run.reach(head.position);
        places.damage.append(&mut run.take_damage());
        Ok(())
    }

    /// What is known of places, up to the durable head.
    fn with_places<T>(
        &self,
        question: impl FnOnce(&mut Places, u32) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let mut places = renewed(&self.places, |places| *places = Places::default());
        self.advance_places(&mut places)?;
        let number = places.run.as_ref().map_or(0, |run| run.of().segment);
        question(&mut places, number)
    }

    /// Takes up a frame that this handle wrote and that is durable. One that does not follow is read when it is needed.
    pub(crate) fn enter_own(&self, frame: &crate::codec::Frame) -> bool {
        let Ok(mut places) = self.places.try_lock() else { return false };
        let run = places.run.as_mut().filter(|run| run.end() == frame.position());
        run.map(|run| run.push(frame)).is_some()
    }

    /// Damage that was met while frames were looked for, each place in a line, once.
    pub(crate) fn take_places_damage(&self) -> Vec<String> {
        let mut places = renewed(&self.places, |places| *places = Places::default());
        std::mem::take(&mut places.damage)
    }

    /// Complete segments, newest first, below `number`, that may hold events past `after`.
    fn complete_past(&self, number: u32, after: Seq) -> Result<Vec<u32>, LogError> {
        let mut found = Vec::new();
        for before in (1..number).rev() {
            let next = self.segments.header(before.saturating_add(1))?;
            if next.is_some_and(|next| next.first_seq.before() <= after) {
                break;
            }
            found.push(before);
        }
        Ok(found)
    }

    /// Frames that may hold events of `streams` past `after`, oldest first, each once, and the seq up to which these are all.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails. Damaged frames may be left out: [`Log::take_places_damage`].
    pub fn frames_of(&self, streams: &[StreamId], after: Seq) -> Result<(Vec<FramePlace>, Seq), LogError> {
        let (number, newest, watermark) = self.with_places(|places, number| {
            let run = places.run.as_ref();
            let newest = run.map(|run| run.frames_of(streams, after)).unwrap_or_default();
            Ok((number, newest, self.head().seq))
        })?;
        let mut found = Vec::new();
        for complete in self.complete_past(number, after)?.into_iter().rev() {
            for stream in streams {
                // Without an answer there is damage, which was told of.
                let frames = self.ask_places(complete, |places| places.frames_of(*stream, after))?;
                found.extend(frames.unwrap_or_default());
            }
        }
        found.extend(newest);
        if !found.is_sorted_by(|left, right| left < right) {
            found.sort_unstable();
            found.dedup();
        }
        Ok((found, watermark))
    }

    /// Frames that hold the newest `count` events of a stream, oldest first; perhaps more of them.
    ///
    /// # Errors
    /// As [`Log::frames_of`].
    pub fn last_frames_of(&self, stream: StreamId, count: usize) -> Result<Vec<FramePlace>, LogError> {
        let (number, mut found) = self.with_places(|places, number| {
            let run = places.run.as_ref();
            Ok((number, run.map(|run| run.frames_of(&[stream], Seq::ZERO)).unwrap_or_default()))
        })?;
        for complete in self.complete_past(number, Seq::ZERO)? {
            if found.len() >= count {
                break;
            }
            let frames = self.ask_places(complete, |places| places.frames_of(stream, Seq::ZERO))?;
            found.splice(0..0, frames.unwrap_or_default()).for_each(drop);
        }
        // Fewer than were asked for: none is too many.
        let surplus = found.len().saturating_sub(count);
        found.drain(..surplus);
        Ok(found)
    }

    /// All frames with events past `after`, in order, and the seq up to which these are all.
    ///
    /// # Errors
    /// As [`Log::frames_of`].
    pub fn all_frames(&self, after: Seq) -> Result<(Vec<FramePlace>, Seq), LogError> {
        let (number, newest, watermark) = self.with_places(|places, number| {
            let run = places.run.as_ref();
            Ok((number, run.map(|run| run.frames(after)).unwrap_or_default(), self.head().seq))
        })?;
        let mut found = Vec::new();
        for complete in self.complete_past(number, after)?.into_iter().rev() {
            let frames = self.ask_places(complete, |places| places.all(after))?;
            found.extend(frames.unwrap_or_default());
        }
        found.extend(newest);
        Ok((found, watermark))
    }

    /// The frame that holds a seq, if it is durable and its place is known.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn place_of(&self, seq: Seq) -> Result<Option<FramePlace>, LogError> {
        if seq == Seq::ZERO || seq > self.head().seq {
            return Ok(None);
        }
        if let Some(complete) = self.complete_segment(seq)? {
            return Ok(self.ask_places(complete.number, |places| places.frame_of(seq))?.flatten());
        }
        self.with_places(|places, _| Ok(places.run.as_ref().and_then(|run| run.frame_of(seq))))
    }

    /// One stream; `None` if it has no events.
    ///
    /// # Errors
    /// As [`Log::frames_of`].
    pub fn stream_place(&self, stream: StreamId) -> Result<Option<StreamPlace>, LogError> {
        let (number, newest, known) = self.with_places(|places, number| {
            let newest = places.run.as_mut().and_then(|run| run.span_now(stream));
            Ok((number, newest, places.firsts.get(&stream).copied()))
        })?;
        let complete = || self.complete_past(number, Seq::ZERO);
        let mut first = known;
        if first.is_none() {
            for number in complete()?.into_iter().rev() {
                if let Some((place, _)) = self.ask_places(number, |places| places.span(stream))?.flatten() {
                    first = Some(place);
                    break;
                }
            }
        }
        let Some(first) = first.or(newest.map(|(first, _)| first)) else { return Ok(None) };
        let mut head = newest.map(|(_, head)| head);
        if head.is_none() {
            for number in complete()? {
                if let Some((_, newest)) = self.ask_places(number, |places| places.span(stream))?.flatten() {
                    head = Some(newest);
                    break;
                }
            }
        }
        self.with_places(|places, _| {
            places.firsts.insert(stream, first);
            Ok(())
        })?;
        Ok(head.map(|head| StreamPlace { stream, first, head }))
    }

    /// All streams, in order of their first event.
    ///
    /// # Errors
    /// As [`Log::frames_of`].
    pub fn stream_places(&self) -> Result<Vec<StreamPlace>, LogError> {
        self.with_places(|places, number| {
            for complete in places.listed.max(1)..number {
                let streams = self.complete_streams(complete)?;
                for place in streams {
                    places.list(place);
                }
                places.listed = complete.saturating_add(1);
            }
            let newest = match &mut places.run {
                Some(run) => run.streams(self)?,
                None => Vec::new(),
            };
            let mut found = places.streams.clone();
            for place in newest {
                match places.at.get(&place.stream).and_then(|at| found.get_mut(*at)) {
                    Some(known) => known.head = known.head.max(place.head),
                    None => found.push(place),
                }
            }
            Ok(found)
        })
    }

    fn complete_streams(&self, number: u32) -> Result<Vec<StreamPlace>, LogError> {
        if let CompletePlaces::File(file) = &*self.complete_places(number)?
            && let Some(streams) = file.streams()?
        {
            return Ok(streams);
        }
        let mut run = self.empty_run(number)?;
        if let CompletePlaces::Run(walked) = &*self.walked_places(number)? {
            run = walked.clone();
        }
        run.streams(self)
    }

    /// A known position at or before the frame that holds `seq`.
    pub(super) fn start_before(&self, seq: Seq) -> Result<Position, LogError> {
        if let Some(place) = self.place_of(seq)? {
            return Ok(place.position);
        }
        if let Some(complete) = self.complete_segment(seq)? {
            return Ok(SegmentHeader::start(complete.number));
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
}

impl Places {
    fn list(&mut self, place: StreamPlace) {
        if let Some(known) = self.at.get(&place.stream).and_then(|at| self.streams.get_mut(*at)) {
            known.head = known.head.max(place.head);
            return;
        }
        self.at.insert(place.stream, self.streams.len());
        self.streams.push(place);
    }
}

#[cfg(test)]
impl Log {
    /// Up to where the places of frames are known.
    pub(crate) fn places_end_for_test(&self) -> Position {
        let places = renewed(&self.places, |places| *places = Places::default());
        places.run.as_ref().map(PlaceRun::end).unwrap_or_default()
    }

    /// Panics in the middle of a change of what is known of places.
    pub(crate) fn panic_with_places_for_test(&self) {
        let mut places = self.places.lock().unwrap();
        places.listed = 99;
        if let Some(run) = &mut places.run {
            run.reach(Position(u64::MAX));
        }
        panic!("in the middle of a change");
    }
}
