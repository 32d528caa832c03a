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

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cursor::FrameCursor;
use super::error::LogError;
use super::files::{POINT_WINDOW_BYTES, damaged, places_name};
use super::place_run::{PlaceRun, StreamPlace};
use super::places_file::{CompletePlaces, PlacesFault};
use super::places_state::PlacesState;
use super::{Head, Log};
use crate::codec::{Entered, FrameCheck, FramePlace, PLACE_BYTES, PlacesOf, SegmentHeader};
use crate::failpoints::failpoint;
use crate::ids::{Position, Seq, StreamId};
use crate::locks::{renewed, steady};
use crate::storage::{Access, read_up_to};

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
    fn ask_places<T: Default>(
        &self,
        number: u32,
        question: impl Fn(&CompletePlaces) -> Result<T, PlacesFault>,
    ) -> Result<T, LogError> {
        match question(&*self.complete_places(number)?) {
            Ok(answer) => return Ok(answer),
            Err(PlacesFault::Log(error)) => return Err(error),
            Err(PlacesFault::Unsound) => self.segments.forget_places(number),
        }
        if self.may_write_places() {
            self.write_places(number)?;
        }
        match question(&*self.walked_places(number)?) {
            Ok(answer) => Ok(answer),
            // Rows in memory are sound.
            Err(PlacesFault::Unsound) => Ok(T::default()),
            Err(PlacesFault::Log(error)) => Err(error),
        }
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
                Err(error @ LogError::Corrupt(_)) => {
                    run.miss();
                    self.tell_damage(&error);
                }
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
        // No more than there are: none is read.
        let count = rows.saturating_sub(have);
        // Rows count seqs from the segment's first, which its header names.
        let is_told = self.segments.header(number)?.is_some();
        if entered.end.segment() != number || count == 0 || !is_told {
            return Ok(());
        }
        let name = places_name(number);
        // The frames answer if there is no file, or it cannot be read.
        let Ok(file) = self.storage.open(&name, Access::Read) else { return Ok(()) };
        // As above.
        let Ok(length) = file.len() else { return Ok(()) };
        let start = u64::from(have).saturating_mul(PLACE_BYTES as u64);
        // As above.
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
    fn advance_places(&self, places: &mut PlacesState) -> Result<(), LogError> {
        let head = self.head();
        let number = head.position.segment();
        if let Some(run) = places.run.take_if(|run| run.of().segment != number) {
            self.retire_run(run)?;
        }
        let run = match &mut places.run {
            Some(run) => run,
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
        Ok(())
    }

    /// Keeps the rows of a segment that is complete now, until its file is.
    fn retire_run(&self, mut run: PlaceRun) -> Result<(), LogError> {
        let number = run.of().segment;
        let Some(next) = self.segments.header(number.saturating_add(1))? else { return Ok(()) };
        if next.previous_end.segment() == number && run.is_whole() {
            let seq = next.first_seq.before();
            self.walk_frames(&mut run, Head { position: next.previous_end, seq, ..Head::default() })?;
            self.segments.keep_places(number, &Arc::new(CompletePlaces::Run(run)));
        }
        Ok(())
    }

    /// Asks the places of the last segment, brought up to the durable head.
    fn with_places<T>(
        &self,
        question: impl FnOnce(&mut PlacesState, u32) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let mut places = renewed(&self.places, |places| *places = PlacesState::default());
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
        std::mem::take(&mut *steady(&self.places_damage))
    }

    fn tell_damage(&self, damage: &LogError) {
        let line = damage.to_string();
        let mut told = steady(&self.places_damage);
        if !told.contains(&line) {
            told.push(line);
        }
    }

    /// The streams of a run. Damage that is met is told of.
    fn streams_of(&self, run: &mut PlaceRun) -> Result<Vec<StreamPlace>, LogError> {
        run.streams(&|position| {
            let mut cursor = FrameCursor::new(&self.segments, POINT_WINDOW_BYTES);
            let frame = cursor.frame(position, FrameCheck::Checksum);
            frame.map_err(|fault| damaged(&self.segments, position, fault)).inspect_err(|error| {
                if matches!(error, LogError::Corrupt(_)) {
                    self.tell_damage(error);
                }
            })
        })
    }

    /// Segments from `from` on and below `number`, rising: those that exist, and the first of each gap between them, so that it is told of. A
    /// number may lie.
    fn earlier(&self, from: u32, number: u32) -> Result<Vec<u32>, LogError> {
        let (mut found, mut expected) = (Vec::new(), from.max(1));
        let numbers = if expected < number { self.segments.numbers()? } else { Vec::new() };
        for exists in numbers.into_iter().filter(|exists| (from..number).contains(exists)) {
            found.extend((exists > expected).then_some(expected));
            found.push(exists);
            expected = exists.saturating_add(1);
        }
        found.extend((expected < number).then_some(expected));
        Ok(found)
    }

    /// Complete segments, newest first, below `number`, that may hold events past `after`.
    fn complete_past(&self, number: u32, after: Seq) -> Result<Vec<u32>, LogError> {
        let begins_after = |number: u32| {
            let header = self.segments.header(number)?;
            Ok::<_, LogError>(header.is_some_and(|header| header.first_seq.before() <= after))
        };
        let mut found = Vec::new();
        if begins_after(number)? {
            return Ok(found);
        }
        for earlier in self.earlier(1, number)?.into_iter().rev() {
            if begins_after(earlier.saturating_add(1))? {
                break;
            }
            found.push(earlier);
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
            // Without a run there is no segment.
            let newest = run.map(|run| run.frames_of(streams, after)).unwrap_or_default();
            Ok((number, newest, self.head().seq))
        })?;
        let mut found = Vec::new();
        for complete in self.complete_past(number, after)?.into_iter().rev() {
            for stream in streams {
                found.extend(self.ask_places(complete, |places| places.frames_of(*stream, after))?);
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
            // As above.
            Ok((number, run.map(|run| run.last_frames_of(stream, count)).unwrap_or_default()))
        })?;
        for complete in self.complete_past(number, Seq::ZERO)? {
            // As above.
            let missing = count.saturating_sub(found.len());
            if missing == 0 {
                break;
            }
            let frames = self.ask_places(complete, |places| places.last_frames_of(stream, missing))?;
            found.splice(0..0, frames).for_each(drop);
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
            // As above.
            Ok((number, run.map(|run| run.frames(after)).unwrap_or_default(), self.head().seq))
        })?;
        let mut found = Vec::new();
        for complete in self.complete_past(number, after)?.into_iter().rev() {
            found.extend(self.ask_places(complete, |places| places.all(after))?);
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
            return self.ask_places(complete.number, |places| places.frame_of(seq));
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
                if let Some((place, _)) = self.ask_places(number, |places| places.span(stream))? {
                    first = Some(place);
                    break;
                }
            }
        }
        let Some(first) = first.or(newest.map(|(first, _)| first)) else { return Ok(None) };
        let mut head = newest.map(|(_, head)| head);
        if head.is_none() {
            for number in complete()? {
                if let Some((_, newest)) = self.ask_places(number, |places| places.span(stream))? {
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
            for complete in self.earlier(places.listed, number)? {
                let streams = self.complete_streams(complete)?;
                for place in streams {
                    places.list(place);
                }
                places.listed = complete.saturating_add(1);
            }
            let newest = match &mut places.run {
                Some(run) => self.streams_of(run)?,
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
        if let CompletePlaces::File(file) = &*self.complete_places(number)? {
            match file.streams() {
                Ok(streams) => return Ok(streams),
                Err(PlacesFault::Log(error)) => return Err(error),
                Err(PlacesFault::Unsound) => {}
            }
        }
        let mut run = self.empty_run(number)?;
        if let CompletePlaces::Run(walked) = &*self.walked_places(number)? {
            run = walked.clone();
        }
        self.streams_of(&mut run)
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

#[cfg(test)]
impl Log {
    /// Up to where the places of frames are known.
    pub(crate) fn places_end_for_test(&self) -> Position {
        let places = renewed(&self.places, |places| *places = PlacesState::default());
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
