//! A leader's work under the write lock: catch up with the end of the log, check conditions, write a group.
//!
//! No other process can move the end meanwhile. So every decision about a commit's place is made here, and the work is short:
//! bytes were encoded and hashed before; each frame still needs a header and one link. Frames of other processes are not
//! read: the page has the end of the log and the streams that may have moved. They are decoded only for a condition on a
//! stream that may have moved.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::commit_queue::WaitOutcome;
use super::cursor::FrameCursor;
use super::error::{FrameFault, LogError, sound};
use super::files::{SCAN_WINDOW_BYTES, WriteSegment, after, grain_of, segment_name, segment_start};
use super::recovery_scan::{is_anchored, strict};
use super::repair::{rewrite, zero};
use super::settle::{PlacedCommit, Stretch};
use super::tail::TailState;
use super::{Appended, Condition, Head, LeaderState, Log, Prepared};
use crate::codec::{
    Entered, FrameCheck, PlaceRow, SEGMENT_HEADER_BYTES, TailPage, WriteMark, WrittenPlace, is_zero,
};
use crate::failpoints::failpoint;
use crate::ids::{Position, Seq, StreamId};
use crate::locks::steady;
use crate::storage::{Access, read_up_to, sync, write_all};

/// Files grow by zeros ahead, an eighth of their length within these bounds: extending at every commit costs an
/// extra device write each, one long preallocation breaks the sizes of small stores.
const GROW_BYTES_MIN: u64 = 64 << 10;
const GROW_BYTES_MAX: u64 = 1 << 20;
/// A frame this large is written from where it is, not copied into the group's buffer.
const COPY_BYTES_MAX: u64 = 1 << 20;
/// Bytes behind the end of the log that are looked at before it is taken for the end: no frame begins with zeros.
const END_BYTES: usize = 16;
/// Stretches of other processes that are remembered apart, unread.
const GAP_COUNT_MAX: usize = 256;

impl Log {
    /// The tail, if appends are allowed here.
    pub(super) fn check_appendable(&self) -> Result<&TailState, LogError> {
        if let Some(found) = &self.newer {
            let path = self.storage.path(super::files::STORE_FILE);
            return Err(LogError::NewerFormat { found: found.clone(), path });
        }
        if self.poisoned.load(Ordering::SeqCst) {
            return Err(LogError::Poisoned { path: self.storage.path("") });
        }
        {
            let shared = steady(&self.shared);
            if let Some(damage) = shared.damage.as_ref().or(shared.met.as_ref()) {
                return Err(LogError::Corrupt(damage.clone()));
            }
        }
        self.tail.as_ref().ok_or_else(|| LogError::ReadOnly { path: self.storage.path("") })
    }

    /// Takes the write lock and writes a group; an answer for each request, in order.
    pub(super) fn write_requests(
        &self,
        writer: &mut LeaderState,
        group: Vec<CommitRequest>,
    ) -> Vec<Result<PlacedCommit, LogError>> {
        let held = self.check_appendable().and_then(|tail| {
            let lock = tail.lock(&*self.clock, self.options.lock_wait)?;
            let page = tail.read()?;
            self.catch_up(tail, writer, &page)?;
            Ok(lock)
        });
        match held {
            Ok(_lock) => self.write_held(writer, group),
            Err(error) => group.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Writes a group. Call under the write lock, caught up.
    pub(super) fn write_held(
        &self,
        writer: &mut LeaderState,
        group: Vec<CommitRequest>,
    ) -> Vec<Result<PlacedCommit, LogError>> {
        let mut answers: Vec<Option<Result<PlacedCommit, LogError>>> = group.iter().map(|_| None).collect();
        let mut rest = group.into_iter().enumerate().peekable();
        let mut failure = None;
        while failure.is_none() && rest.peek().is_some() {
            let mut run = CommitGroup::new(writer.place);
            while let Some((index, request)) =
                rest.next_if(|(_, request)| run.fits(request, self.options.segment_bytes_max))
            {
                match self.admit(writer, &run, &request) {
                    Ok(()) => run.add(index, request),
                    Err(error) => answers.get_mut(index).into_iter().for_each(|answer| {
                        *answer = Some(Err(error.clone()));
                    }),
                }
            }
            let done = self.check_appendable().and_then(|tail| {
                if run.requests.is_empty() {
                    return if rest.peek().is_some() { self.roll(tail, writer) } else { Ok(()) };
                }
                self.write_run(tail, writer, &mut run).map(|placed| {
                    for (index, placed) in placed {
                        if let Some(answer) = answers.get_mut(index) {
                            *answer = Some(Ok(placed));
                        }
                    }
                })
            });
            failure = done.err();
        }
        let failure = failure.unwrap_or_else(|| LogError::ReadOnly { path: self.storage.path("") });
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(failure.clone()))).collect()
    }

    /// Brings the writer to the end of the log; repairs a dead writer's unfinished end. Call under the write lock.
    pub(super) fn catch_up(
        &self,
        tail: &TailState,
        writer: &mut LeaderState,
        page: &TailPage,
    ) -> Result<(), LogError> {
        let own = page.store == Some(self.segments.store);
        self.check_upgrades(page)?;
        // A sync that failed since this handle was opened may have lost bytes that it takes for written.
        let other_epoch =
            writer.epoch.is_some_and(|epoch| own && epoch != page.epoch) && !failpoint!(EpochUnread);
        if own && !writer.postponed && (page.poisoned || other_epoch) {
            self.poisoned.store(true, Ordering::SeqCst);
            return Err(LogError::Poisoned { path: self.storage.path("") });
        }
        writer.page = *page;
        let trusted = own && !writer.postponed && page.busy == WriteMark::Idle && page.durable.is_some();
        // A page that went back in time was not written by us: look at the log itself.
        let written = page.written.filter(|written| trusted && written.position >= writer.place.position);
        let target = match written {
            Some(written) if self.ends_at(writer, &written)? => written,
            _ => self.repair_behind(tail, writer, page)?,
        };
        if target.position == writer.place.position {
            if target.link == writer.place.link {
                return Ok(());
            }
            return Err(self.fork_found(&target, &writer.place));
        }
        if writer.gaps.len() >= GAP_COUNT_MAX
            && let Some((_, until)) = writer.gaps.last_mut()
        {
            *until = target.position;
        } else {
            writer.gaps.push((writer.place, target.position));
        }
        writer.foreign = target.seq;
        writer.place = target;
        Ok(())
    }

    /// Repairs the end of the log for a handle that is open. Call under the write lock.
    fn repair_behind(
        &self,
        tail: &TailState,
        writer: &mut LeaderState,
        page: &TailPage,
    ) -> Result<WrittenPlace, LogError> {
        let known = self.head();
        let repaired = self.repair(tail, page, writer.epoch)?;
        writer.postponed = false;
        (writer.segment, writer.places) = (None, None);
        writer.epoch = Some(repaired.epoch);
        writer.page = tail.read()?;
        if repaired.place.position < known.position {
            // Events that this handle saw as durable are gone: these are not the files that it opened.
            self.poisoned.store(true, Ordering::SeqCst);
            return Err(LogError::Moved { path: self.segments.path(repaired.place.position.segment()) });
        }
        Ok(repaired.place)
    }

    /// Whether the log ends at `written`, as the page says. The page may be an older copy, put back by another program: frames
    /// behind its end must not be overwritten. Before this handle first writes to a segment, the segment's unconfirmed part must be
    /// sound, because it will be written again as it is. Call under the write lock.
    fn ends_at(&self, writer: &LeaderState, written: &WrittenPlace) -> Result<bool, LogError> {
        let number = written.position.segment();
        let fail = |error| LogError::io("read", self.segments.path(number), error);
        if let Some(segment) = writer.segment.as_ref().filter(|segment| segment.number == number) {
            let mut next = [0; END_BYTES];
            read_up_to(&*segment.file, &mut next, written.position.offset()).map_err(fail)?;
            return Ok(is_zero(&next));
        }
        let mut cursor = FrameCursor::new(&self.segments, SCAN_WINDOW_BYTES);
        if !failpoint!(RewriteUnchecked) {
            let durable = writer.page.durable.filter(|durable| durable.position.segment() == number);
            let mut place = match durable.filter(|durable| durable.position <= written.position) {
                Some(durable) => durable,
                None => match self.segments.header(number)? {
                    Some(header) => segment_start(&header),
                    None => return Ok(false),
                },
            };
            if !is_anchored(&self.segments, &place)? {
                return Ok(false);
            }
            while place.position < written.position {
                let Some(header) = sound(strict(&mut cursor, &place, true))? else { return Ok(false) };
                place = after(&header);
            }
            if place != *written {
                return Ok(false);
            }
        }
        Ok(is_zero(cursor.bytes(number, written.position.offset(), END_BYTES)?))
    }

    /// Makes all written commits durable and visible. Call under the write lock, caught up.
    pub(super) fn make_durable(&self, tail: &TailState, writer: &mut LeaderState) -> Result<(), LogError> {
        let end = writer.place;
        if tail.read()?.durable.is_some_and(|durable| durable.position == end.position) {
            self.show(end);
            return Ok(());
        }
        let segment = self.write_segment(tail, writer)?;
        let epoch = writer.page.epoch;
        let stretch = Stretch { start: Position::default(), end, epoch, segment };
        match self.await_stretch(tail, &stretch, true) {
            WaitOutcome::Durable(_) => {
                if let Some(place) = self.unpublished() {
                    self.publish_held(tail, &stretch, &place)?;
                }
            }
            WaitOutcome::Failed(lost) => return Err(self.lost(lost)),
            // Another program cut the page since it was read under this lock. The page is made anew once all written commits are durable.
            WaitOutcome::PageLost => {
                let page = tail.read()?;
                let found = self.repair_behind(tail, writer, &page)?;
                if found != end {
                    return Err(self.fork_found(&end, &found));
                }
            }
        }
        self.show(end);
        Ok(())
    }

    fn fork_found(&self, page: &WrittenPlace, log: &WrittenPlace) -> LogError {
        let fault = FrameFault::Nothing;
        let mut damage = super::files::corruption(&self.segments, page.position, fault);
        damage.part = crate::codec::DamagedPart::Forked;
        damage.expected = format!("link {} after {}", page.link, page.seq);
        damage.found = format!("link {} after {}", log.link, log.seq);
        LogError::corrupt(damage)
    }

    /// Refuses a request if a stream that its conditions name has moved, `run` included.
    fn admit(
        &self,
        writer: &mut LeaderState,
        run: &CommitGroup,
        request: &CommitRequest,
    ) -> Result<(), LogError> {
        for condition in &request.conditions {
            let queued = run.streams.get(&condition.stream).copied();
            let newest = match queued.filter(|newest| *newest > condition.basis) {
                Some(newest) => Some(newest),
                None => self.newest_after(condition, writer)?,
            };
            if let Some(actual) = newest {
                let (stream, expected) = (condition.stream, condition.basis);
                return Err(LogError::HeadMoved { stream, expected, actual });
            }
        }
        Ok(())
    }

    /// The newest event of a stream, if it is after the condition's basis.
    fn newest_after(&self, condition: &Condition, writer: &mut LeaderState) -> Result<Option<Seq>, LogError> {
        let known = |writer: &LeaderState| {
            writer.moved.get(&condition.stream).copied().filter(|newest| *newest > condition.basis)
        };
        if let Some(newest) = known(writer) {
            return Ok(Some(newest));
        }
        if condition.basis < writer.moved_from {
            return self.newest_before(condition, writer);
        }
        if writer.foreign <= condition.basis || writer.gaps.is_empty() {
            return Ok(None);
        }
        // A slot counts for events that were written while this handle was open.
        if writer.page.slot(&condition.stream) <= condition.basis {
            return Ok(None);
        }
        // A gap that cannot be read now is read by the next commit that asks: without it, streams that moved would not be known.
        while let Some((from, until)) = writer.gaps.first().copied() {
            let moved = &mut writer.moved;
            self.walk_to(from, until, |frame| {
                for event in frame.events() {
                    let newest = moved.entry(event.envelope.stream).or_default();
                    *newest = event.seq.max(*newest);
                }
            })?;
            writer.gaps.remove(0);
        }
        Ok(known(writer))
    }

    /// The newest event of a stream after the condition's basis, among the events written before and since this handle was
    /// opened.
    fn newest_before(&self, condition: &Condition, writer: &LeaderState) -> Result<Option<Seq>, LogError> {
        let mut newest = None;
        for frame in self.frames_until(condition.basis.next(), writer.place, FrameCheck::Checksum)? {
            for event in frame?.events() {
                if event.seq > condition.basis && event.envelope.stream == condition.stream {
                    newest = Some(event.seq);
                }
            }
        }
        Ok(newest)
    }

    /// The segment where the log ends, opened for writing. Call under the write lock.
    ///
    /// A sync through this file covers all written bytes. Bytes that other processes wrote before it was opened, and that may not be
    /// durable, are written again: the error of their failed write-back may have been told to another process.
    pub(super) fn write_segment(
        &self,
        tail: &TailState,
        writer: &mut LeaderState,
    ) -> Result<Arc<WriteSegment>, LogError> {
        let number = writer.place.position.segment();
        if let Some(segment) = writer.segment.as_ref().filter(|segment| segment.number == number) {
            return Ok(Arc::clone(segment));
        }
        tail.check_current()?;
        let segment = Arc::new(WriteSegment::open(&*self.storage, number)?);
        let durable = writer.page.durable_end().position;
        if durable < writer.place.position {
            let start = if durable.segment() == number { durable.offset() } else { 0 };
            rewrite(&*segment.file, start.max(SEGMENT_HEADER_BYTES as u64), writer.place.position.offset())
                .map_err(|error| LogError::io("rewrite the end of", self.segments.path(number), error))?;
        }
        writer.segment = Some(Arc::clone(&segment));
        Ok(segment)
    }

    /// Completes the segment and begins the next. Call under the write lock.
    pub(super) fn roll(&self, tail: &TailState, writer: &mut LeaderState) -> Result<(), LogError> {
        let place = writer.place;
        let segment = self.write_segment(tail, writer)?;
        tail.check_current()?;
        let turn = tail.lock_sync(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        // Another thread's sync may have failed before this thread had its turn. That thread was told so; through the same file the next
        // sync would not be told.
        if page.epoch != writer.page.epoch {
            self.poisoned.store(true, Ordering::SeqCst);
            return Err(LogError::Poisoned { path: self.storage.path("") });
        }
        segment.give_back(place.position.offset());
        if page.durable.is_none_or(|durable| durable.position < place.position) {
            if sync(&*segment.file).is_err() {
                return Err(self.sync_failed(tail));
            }
            tail.claim(&page, &place)?;
        }
        let next = crate::codec::SegmentHeader::start(place.position.segment().saturating_add(1));
        // The busy mark stays if anything here fails: the new segment may exist or not, and repair finds out.
        tail.begin(next, self.process)?;
        let start = self.start_segment(&place, false)?;
        tail.confirm(&mut writer.page, &start)?;
        drop(turn);
        writer.place = start;
        (writer.segment, writer.places) = (None, None);
        self.show(start);
        Ok(())
    }

    /// Writes a run of commits with one write. Call under the write lock.
    fn write_run(
        &self,
        tail: &TailState,
        writer: &mut LeaderState,
        run: &mut CommitGroup,
    ) -> Result<Vec<(usize, PlacedCommit)>, LogError> {
        let start = writer.place;
        let segment = self.write_segment(tail, writer)?;
        // A clock may be set back; its time is recorded as it is, and seqs alone give the order.
        let time = self.clock.now();
        let highest = time.max(start.time);
        let durable = writer.page.durable_end().position;
        let mut place = start;
        let mut appended = Vec::with_capacity(run.requests.len());
        writer.buffer.clear();
        // One commit that needs no zeros behind it is written from where it is.
        let has_room =
            start.position.offset().saturating_add(run.bytes) <= segment.length.load(Ordering::Relaxed);
        let single = run.requests.len() == 1 && (has_room || run.bytes > COPY_BYTES_MAX);
        for (index, request) in &mut run.requests {
            let frame = &mut request.prepared.frame;
            let (first_seq, event_count) = (place.seq.next(), frame.event_count());
            let position = place.position;
            let store = self.segments.store;
            let (bytes, link) = frame.seal(first_seq, (time, highest), position, durable, store, place.link);
            let grains = bytes.len() as u64 / Position::GRAIN_BYTES;
            if !single {
                writer.buffer.extend_from_slice(bytes);
            }
            place = WrittenPlace {
                position: Position(position.0.saturating_add(grains)),
                seq: place.seq.plus(u64::from(event_count)),
                time: highest,
                link,
                last_frame: grain_of(position),
            };
            let placed = Appended { first_seq, event_count, time, position };
            // A sealed frame is read from the log, where its key opens it.
            let made = (!frame.is_sealed()).then(|| Box::new(frame.made()));
            appended.push((*index, placed, made));
        }
        self.write_bytes(tail, writer, &segment, (&start, &place), run, single)?;
        let entered = self.enter_run(writer, (&start, &place), run);
        if let Err(error) = tail.publish_written(&mut writer.page, &place, entered, run.streams.iter()) {
            let (from, until) = (start.position.offset(), place.position.offset());
            return Err(self.undo(tail, segment.number, (from, until), error));
        }
        let stretch = Stretch { start: start.position, end: place, epoch: writer.page.epoch, segment };
        writer.place = place;
        writer.moved.extend(run.streams.drain());
        let placed = |appended, frame| PlacedCommit { appended, frame, stretch: stretch.clone() };
        Ok(appended.into_iter().map(|(index, appended, frame)| (index, placed(appended, frame))).collect())
    }

    /// Writes the rows of places of a run; the log goes on without them.
    fn enter_run(
        &self,
        writer: &mut LeaderState,
        ends: (&WrittenPlace, &WrittenPlace),
        run: &CommitGroup,
    ) -> Option<Entered> {
        // A header that cannot be read costs the rows alone.
        let of = self.places_of(ends.0.position.segment()).ok().flatten()?;
        let mut rows = Vec::with_capacity(run.requests.len());
        for (_, request) in &run.requests {
            let frame = &request.prepared.frame;
            rows.extend(PlaceRow::of_frame(frame.header(), of, frame.streams().iter().copied()));
        }
        self.enter_places(writer, ends, of, &rows)
    }

    /// Puts the run's bytes into the file, with zeros ahead if it has to grow.
    fn write_bytes(
        &self,
        tail: &TailState,
        writer: &mut LeaderState,
        segment: &WriteSegment,
        (start, place): (&WrittenPlace, &WrittenPlace),
        run: &CommitGroup,
        single: bool,
    ) -> Result<(), LogError> {
        let fail = |action| move |error| LogError::io(action, self.segments.path(segment.number), error);
        let offset = start.position.offset();
        let frames_end = offset.saturating_add(run.bytes);
        let mut length = segment.length.load(Ordering::Relaxed);
        if frames_end > length {
            length = segment.file.len().map_err(fail("inspect"))?;
            let step = (length / 8).clamp(GROW_BYTES_MIN, GROW_BYTES_MAX);
            // A handle that appends once leaves no zeros behind.
            if !single && frames_end > length && run.bytes <= step && writer.append_count > 0 {
                let bytes = writer.buffer.len().saturating_add(usize::try_from(step).unwrap_or(0));
                writer.buffer.resize(bytes, 0);
            }
        }
        writer.append_count = writer.append_count.saturating_add(1);
        tail.begin(place.position, self.process)?;
        let bytes = match run.requests.first() {
            Some((_, request)) if single => request.prepared.frame.bytes(),
            _ => &writer.buffer,
        };
        let mut done = 0;
        let written = write_all(&*segment.file, bytes, offset, &mut done);
        segment.length.store(length.max(offset.saturating_add(done as u64)), Ordering::Relaxed);
        match written {
            // A failed call may have written any part. A full disk reports how much it took.
            Err(error) if done == 0 && error.kind() == io::ErrorKind::StorageFull => {
                // If this fails the page still says busy, and the next writer repairs.
                let _ = tail.withdraw();
                Err(fail("append to")(error))
            }
            Err(error) if (done as u64) < run.bytes => {
                Err(self.undo(tail, segment.number, (offset, frames_end), fail("append to")(error)))
            }
            _ => Ok(()),
        }
    }

    /// After a failed write: zeros the written bytes, so that none of them can be taken for a commit, not after a power cut either.
    /// Uses an open file of its own: a failed write-back is told once to each open file, and the callers that wait for earlier commits
    /// must be told of their failure.
    fn undo(&self, tail: &TailState, number: u32, (start, end): (u64, u64), error: LogError) -> LogError {
        let undone = self.storage.open(&segment_name(number), Access::Write).and_then(|file| {
            zero(&*file, start, end.min(file.len()?))?;
            if failpoint!(UndoUnsynced) { Ok(()) } else { sync(&*file) }
        });
        if undone.is_err() || self.drop_places(number).is_err() {
            return self.sync_failed(tail);
        }
        // If this fails the page still says busy, and the next writer repairs.
        let _ = tail.withdraw();
        error
    }
}

/// A commit on its way into the log.
pub(crate) struct CommitRequest {
    pub(crate) prepared: Prepared,
    pub(crate) conditions: Vec<Condition>,
}

/// Commits that are written together.
struct CommitGroup {
    /// Each request with its number in the group.
    requests: Vec<(usize, CommitRequest)>,
    start: WrittenPlace,
    bytes: u64,
    seq: Seq,
    /// Newest seq per stream, as if the run were written.
    streams: HashMap<StreamId, Seq>,
}

impl CommitGroup {
    fn new(start: Head) -> Self {
        Self { requests: Vec::new(), start, bytes: 0, seq: start.seq, streams: HashMap::new() }
    }

    /// Whether a commit fits in the segment; the first one of a segment always does.
    fn fits(&self, request: &CommitRequest, segment_bytes_max: u64) -> bool {
        let end = self.start.position.offset().saturating_add(self.bytes);
        let frame = request.prepared.frame_bytes() as u64;
        end <= SEGMENT_HEADER_BYTES as u64 || end.saturating_add(frame) <= segment_bytes_max
    }

    fn add(&mut self, index: usize, request: CommitRequest) {
        let frame = &request.prepared.frame;
        self.bytes = self.bytes.saturating_add(frame.frame_bytes() as u64);
        for (stream, last) in frame.streams() {
            let seq = Seq(self.seq.0.saturating_add(1).saturating_add(u64::from(*last)));
            self.streams.insert(*stream, seq);
        }
        self.seq = Seq(self.seq.0.saturating_add(u64::from(frame.event_count())));
        self.requests.push((index, request));
    }
}
