//! Appending: many callers, one leader, one write, one sync.
//!
//! ```text
//! caller: prepare -> push to queue -> lead, or wait
//! leader: gather -> W { page; repair or catch up; conditions; seal; busy; write; fdatasync; publish } -> wake all
//! ```
//!
//! There is no writer thread and no timer. Whoever finds no leader leads: it takes all that wait, and before that
//! yields a few times while fewer wait than the last group had (otherwise callers settle into two waves of half
//! the size, each waiting for two flushes).

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::error::LogError;
use super::files::segment_name;
use super::repair::zero;
use super::tail::Tail;
use super::{Appended, Condition, Head, Log, Prepared, Writer, locked};
use crate::codec::{SEGMENT_HEADER_BYTES, TailPage, Written};
use crate::ids::{Position, Seq, StreamId};
use crate::storage::{Access, Storage, StoredFile, sync, write_all};

/// Most times a leader yields so that others can join its group.
const GATHER_YIELD_COUNT_MAX: usize = 8;
/// Files grow by zeros ahead, an eighth of their length within these bounds: extending at every commit costs an
/// extra device write each, one long preallocation breaks the sizes of small stores.
const GROW_BYTES_MIN: u64 = 64 << 10;
const GROW_BYTES_MAX: u64 = 1 << 20;
/// A frame this large is written from where it is, not copied into the group's buffer.
const COPY_BYTES_MAX: u64 = 1 << 20;

type Outcome = Result<Appended, LogError>;

enum Turn {
    Wait,
    Lead,
    Done(Outcome),
}

/// One caller's place in the queue.
struct Slot {
    turn: Mutex<Turn>,
    changed: Condvar,
}

struct Request {
    prepared: Prepared,
    conditions: Vec<Condition>,
    slot: Arc<Slot>,
}

#[derive(Default)]
struct Waiting {
    requests: Vec<Request>,
    has_leader: bool,
    /// How many callers the last group and those behind it were.
    expected: usize,
}

/// Commits that wait for a leader.
#[derive(Default)]
pub(crate) struct Queue(Mutex<Waiting>);

/// The segment that is being written.
pub(crate) struct WriteSegment {
    pub(crate) number: u32,
    file: Box<dyn StoredFile>,
}

impl WriteSegment {
    pub(crate) fn open(storage: &dyn Storage, number: u32) -> Result<Self, LogError> {
        let name = segment_name(number);
        match storage.open(&name, Access::Write) {
            Ok(file) => Ok(Self { number, file }),
            Err(error) => Err(LogError::io("open", storage.path(&name), error)),
        }
    }

    /// Cuts off preallocated zeros. If it fails they just stay.
    pub(crate) fn give_back(&self, end: u64) {
        if self.file.len().is_ok_and(|length| length > end) {
            let _ = self.file.set_len(end);
        }
    }
}

impl Log {
    /// Appends a commit. When it returns `Ok` the commit is durable and visible; otherwise nothing was recorded,
    /// except that after [`LogError::Poisoned`] the next open may find the commit whole.
    ///
    /// Each condition names the newest seq the caller had seen when it decided; if the stream went on since, by
    /// this or another process, the commit is handed back.
    ///
    /// # Errors
    /// [`LogError::HeadMoved`], [`LogError::Busy`], [`LogError::NoSpace`], [`LogError::Poisoned`],
    /// [`LogError::Corrupt`], [`LogError::ReadOnly`], [`LogError::Forked`], [`LogError::Io`].
    pub fn append(&self, prepared: Prepared, conditions: &[Condition]) -> Outcome {
        self.check_process()?;
        let slot = Arc::new(Slot { turn: Mutex::new(Turn::Wait), changed: Condvar::new() });
        let request = Request { prepared, conditions: conditions.to_vec(), slot: slot.clone() };
        let leads = {
            let mut waiting = locked(&self.queue.0);
            waiting.requests.push(request);
            !std::mem::replace(&mut waiting.has_leader, true)
        };
        if leads {
            self.lead();
        }
        let mut turn = locked(&slot.turn);
        loop {
            match std::mem::replace(&mut *turn, Turn::Wait) {
                Turn::Done(outcome) => return outcome,
                Turn::Lead => {
                    drop(turn);
                    self.lead();
                    turn = locked(&slot.turn);
                }
                Turn::Wait => turn = slot.changed.wait(turn).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Writes one group, which includes the caller's own commit, and hands the lead on.
    fn lead(&self) {
        let mut yields = 0;
        let group = loop {
            let mut waiting = locked(&self.queue.0);
            if waiting.requests.len() >= waiting.expected || yields >= GATHER_YIELD_COUNT_MAX {
                break std::mem::take(&mut waiting.requests);
            }
            drop(waiting);
            yields += 1;
            std::thread::yield_now();
        };
        let group_size = group.len();
        let outcomes = self.write_requests(group);
        let next = {
            let mut waiting = locked(&self.queue.0);
            waiting.expected = group_size.saturating_add(waiting.requests.len());
            if group_size <= 1 && waiting.requests.is_empty() {
                waiting.expected = 0;
            }
            let next = waiting.requests.first().map(|request| request.slot.clone());
            waiting.has_leader = next.is_some();
            next
        };
        if let Some(next) = next {
            *locked(&next.turn) = Turn::Lead;
            next.changed.notify_one();
        }
        for (slot, outcome) in outcomes {
            *locked(&slot.turn) = Turn::Done(outcome);
            slot.changed.notify_one();
        }
    }

    fn write_requests(&self, group: Vec<Request>) -> Vec<(Arc<Slot>, Outcome)> {
        let mut writer = locked(&self.writer);
        let mut outcomes = Vec::with_capacity(group.len());
        let mut group = group.into_iter().peekable();
        let failed = self.write_group(&mut writer, &mut group, &mut outcomes).err();
        if let Some(error) = failed {
            outcomes.extend(group.map(|request| (request.slot, Err(error.again()))));
        }
        outcomes
    }

    /// Writes requests in runs of what fits in one segment, one sync each. On an error the rest is left in `group`.
    fn write_group(
        &self,
        writer: &mut Writer,
        group: &mut std::iter::Peekable<std::vec::IntoIter<Request>>,
        outcomes: &mut Vec<(Arc<Slot>, Outcome)>,
    ) -> Result<(), LogError> {
        if writer.poisoned {
            return Err(LogError::Poisoned { path: self.storage.path("") });
        }
        if let Some(damage) = &locked(&self.shared).damage {
            return Err(LogError::Corrupt(damage.clone()));
        }
        // Taken out for the time being, so that the lock on it does not hold the rest of the writer.
        let Some(tail) = writer.tail.take() else {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        };
        let result = self.write_locked(&tail, writer, group, outcomes);
        writer.tail = Some(tail);
        result
    }

    fn write_locked(
        &self,
        tail: &Tail,
        writer: &mut Writer,
        group: &mut std::iter::Peekable<std::vec::IntoIter<Request>>,
        outcomes: &mut Vec<(Arc<Slot>, Outcome)>,
    ) -> Result<(), LogError> {
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        self.catch_up(tail, writer, &page)?;
        while group.peek().is_some() {
            let mut run = Run::new(writer.place);
            while let Some(request) =
                group.next_if(|request| run.fits(request, self.options.segment_bytes_max))
            {
                match self.admit(writer, &run, &request) {
                    Ok(()) => run.add(request),
                    Err(error) => outcomes.push((request.slot, Err(error))),
                }
            }
            if run.requests.is_empty() {
                if group.peek().is_some() {
                    self.roll(tail, writer)?;
                }
                continue;
            }
            match self.write_run(tail, writer, &mut run) {
                Ok(appended) => {
                    outcomes.extend(
                        run.requests
                            .into_iter()
                            .zip(appended)
                            .map(|(request, appended)| (request.slot, Ok(appended))),
                    );
                }
                Err(error) => {
                    outcomes
                        .extend(run.requests.into_iter().map(|request| (request.slot, Err(error.again()))));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Brings the writer to the end of the log: repairs what a dead writer left, reads what others wrote.
    fn catch_up(&self, tail: &Tail, writer: &mut Writer, page: &TailPage) -> Result<(), LogError> {
        if page.poisoned && !writer.postponed {
            writer.poisoned = true;
            return Err(LogError::Poisoned { path: self.storage.path("") });
        }
        let own = page.store == Some(self.segments.store);
        let target = match page.clean().filter(|_| own && !writer.postponed) {
            // A page that went back in time was not written by us: look at the log itself.
            Some(written) if written.position >= writer.place.position => *written,
            _ => {
                let repaired = self.repair(tail, page)?;
                writer.postponed = false;
                writer.epoch = repaired.epoch;
                repaired.place
            }
        };
        writer.epoch = page.epoch;
        if target.position == writer.place.position {
            if target.link == writer.place.link {
                return Ok(());
            }
            return Err(self.fork_found(&target, &writer.place));
        }
        let (place, moved) = (writer.place, &mut writer.moved);
        let reached = self.walk_to(place, target.position, |frame| {
            for event in frame.events() {
                moved.insert(event.envelope.stream, event.seq);
            }
        })?;
        if reached.link != target.link || reached.seq != target.seq {
            return Err(self.fork_found(&target, &reached));
        }
        writer.place = target;
        self.show(target);
        Ok(())
    }

    fn fork_found(&self, page: &Written, log: &Written) -> LogError {
        let fault = super::files::Fault::Nothing;
        let mut damage = super::frames::corruption(&self.segments, page.position, fault);
        damage.part = crate::codec::Part::Forked;
        damage.expected = format!("link {} after {}", page.link, page.seq);
        damage.found = format!("link {} after {}", log.link, log.seq);
        LogError::corrupt(damage)
    }

    /// Makes a durable end visible to readers of this handle.
    fn show(&self, head: Head) {
        let mut shared = locked(&self.shared);
        if head.position > shared.head.position {
            shared.head = head;
        }
    }

    /// Whether a commit's conditions hold behind `run`.
    fn admit(&self, writer: &Writer, run: &Run, request: &Request) -> Result<(), LogError> {
        if request.prepared.frame.last_reference().is_some_and(|reference| reference >= writer.place.position)
        {
            // It names bytes that are not in the log; no state of this log can have led to it.
            return Err(LogError::Encode(crate::codec::EncodeError::NoSuchBody));
        }
        for condition in &request.conditions {
            let newest =
                run.streams.get(&condition.stream).or_else(|| writer.moved.get(&condition.stream)).copied();
            let newest = match newest {
                Some(newest) if newest > condition.basis => Some(newest),
                _ if condition.basis >= writer.moved_from => None,
                _ => self.newest_before(condition, writer)?,
            };
            if let Some(actual) = newest {
                let (stream, expected) = (condition.stream, condition.basis);
                return Err(LogError::HeadMoved { stream, expected, actual });
            }
        }
        Ok(())
    }

    /// The newest event of a stream after the condition's basis among those written before this handle was opened.
    fn newest_before(&self, condition: &Condition, writer: &Writer) -> Result<Option<Seq>, LogError> {
        let mut newest = None;
        for frame in self.frames_from(condition.basis.next(), writer.place)? {
            for event in frame?.events() {
                if event.seq > condition.basis && event.envelope.stream == condition.stream {
                    newest = Some(event.seq);
                }
            }
        }
        Ok(newest)
    }

    /// Completes the segment that is being written and begins the next one, unless it has no frame yet. Durable.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn begin_segment(&self) -> Result<(), LogError> {
        self.check_process()?;
        let mut writer = locked(&self.writer);
        if writer.poisoned {
            return Err(LogError::Poisoned { path: self.storage.path("") });
        }
        if let Some(damage) = &locked(&self.shared).damage {
            return Err(LogError::Corrupt(damage.clone()));
        }
        let Some(tail) = writer.tail.take() else {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        };
        let result = (|| {
            let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
            let page = tail.read()?;
            self.catch_up(&tail, &mut writer, &page)?;
            if writer.place.position.offset() <= SEGMENT_HEADER_BYTES as u64 {
                return Ok(());
            }
            self.roll(&tail, &mut writer)
        })();
        writer.tail = Some(tail);
        result
    }

    /// Completes the segment and begins the next.
    fn roll(&self, tail: &Tail, writer: &mut Writer) -> Result<(), LogError> {
        let place = writer.place;
        if let Some(segment) = &writer.segment
            && segment.number == place.position.segment()
        {
            segment.give_back(place.position.offset());
        }
        let next = crate::codec::SegmentHeader::start(place.position.segment().saturating_add(1));
        // Stays set if anything here fails: the new segment may exist or not, and repair finds out.
        tail.begin(next)?;
        let start = self.start_segment(&place, false)?;
        tail.publish(&start, writer.epoch)?;
        writer.place = start;
        writer.segment = None;
        self.show(start);
        Ok(())
    }

    /// Writes a run of commits: one write, one sync.
    fn write_run(&self, tail: &Tail, writer: &mut Writer, run: &mut Run) -> Result<Vec<Appended>, LogError> {
        let start = writer.place;
        let number = start.position.segment();
        if writer.segment.as_ref().is_none_or(|segment| segment.number != number) {
            writer.segment = Some(WriteSegment::open(&*self.storage, number)?);
        }
        let Some(segment) = &writer.segment else {
            return Err(LogError::ReadOnly { path: self.storage.path("") });
        };
        let time = self.clock.now().max(start.time);
        let mut place = start;
        let mut appended = Vec::with_capacity(run.requests.len());
        writer.buffer.clear();
        let single = run.requests.len() == 1 && run.bytes > COPY_BYTES_MAX;
        for request in &mut run.requests {
            let frame = &mut request.prepared.frame;
            let (first_seq, event_count) = (place.seq.next(), frame.event_count());
            let position = place.position;
            let store = self.segments.store;
            let (bytes, link) = frame.seal(first_seq, time, position, start.position, store, place.link);
            let grains = bytes.len() as u64 / Position::GRAIN_BYTES;
            if !single {
                writer.buffer.extend_from_slice(bytes);
            }
            place = Written {
                position: Position(position.0.saturating_add(grains)),
                seq: Seq(place.seq.0.saturating_add(u64::from(event_count))),
                time,
                link,
                last_frame: u32::try_from(position.offset() / Position::GRAIN_BYTES).unwrap_or(0),
            };
            let rows = frame.rows_at(position);
            appended.push(Appended { first_seq, event_count, time, position, rows });
        }
        let offset = start.position.offset();
        let frames_end = offset.saturating_add(run.bytes);
        let io = |action| move |error| LogError::io(action, self.segments.path(number), error);
        let length = segment.file.len().map_err(io("inspect"))?;
        let step = (length / 8).clamp(GROW_BYTES_MIN, GROW_BYTES_MAX);
        // A handle that appends once leaves no zeros behind.
        if !single && frames_end > length && run.bytes <= step && writer.append_count > 0 {
            let bytes = writer.buffer.len().saturating_add(usize::try_from(step).unwrap_or(0));
            writer.buffer.resize(bytes, 0);
        }
        writer.append_count = writer.append_count.saturating_add(1);
        tail.begin(place.position)?;
        let bytes = match run.requests.first() {
            Some(request) if single => request.prepared.frame.bytes(),
            _ => &writer.buffer,
        };
        let mut done = 0;
        if let Err(error) = write_all(&*segment.file, bytes, offset, &mut done)
            && (done as u64) < run.bytes
        {
            return Err(self.undo(tail, segment, &start, (frames_end, writer.epoch), io("append to")(error)));
        }
        if sync(&*segment.file).is_err() {
            writer.poisoned = true;
            return Err(self.sync_failed(tail, &start, writer.epoch));
        }
        // The commits are durable whether or not this succeeds; if not, the next writer repairs.
        let _ = tail.publish(&place, writer.epoch);
        writer.place = place;
        for appended in &appended {
            self.remember(appended.first_seq, appended.position);
        }
        writer.moved.extend(run.streams.drain());
        self.show(place);
        Ok(appended)
    }

    /// After a failed write: zeros what was written, so that nothing of it can be taken for a commit.
    fn undo(
        &self,
        tail: &Tail,
        segment: &WriteSegment,
        start: &Written,
        (end, epoch): (u64, u32),
        error: LogError,
    ) -> LogError {
        let undone = segment
            .file
            .len()
            .and_then(|length| zero(&*segment.file, start.position.offset(), end.min(length)));
        match undone {
            Ok(()) => {
                // If this fails the page still says busy, and the next writer repairs.
                let _ = tail.publish(start, epoch);
                error
            }
            Err(_) => self.sync_failed(tail, start, epoch),
        }
    }
}

/// Commits that are written together.
struct Run {
    requests: Vec<Request>,
    start: Written,
    bytes: u64,
    seq: Seq,
    /// Newest seq per stream, as if the run were written.
    streams: HashMap<StreamId, Seq>,
}

impl Run {
    fn new(start: Written) -> Self {
        Self { requests: Vec::new(), start, bytes: 0, seq: start.seq, streams: HashMap::new() }
    }

    /// Whether a commit fits in the segment; the first one of a segment always does.
    fn fits(&self, request: &Request, segment_bytes_max: u64) -> bool {
        let end = self.start.position.offset().saturating_add(self.bytes);
        let frame = request.prepared.frame_bytes() as u64;
        end <= SEGMENT_HEADER_BYTES as u64 || end.saturating_add(frame) <= segment_bytes_max
    }

    fn add(&mut self, request: Request) {
        let frame = &request.prepared.frame;
        self.bytes = self.bytes.saturating_add(frame.frame_bytes() as u64);
        for (stream, last) in frame.streams() {
            let seq = Seq(self.seq.0.saturating_add(1).saturating_add(u64::from(*last)));
            self.streams.insert(*stream, seq);
        }
        self.seq = Seq(self.seq.0.saturating_add(u64::from(frame.event_count())));
        self.requests.push(request);
    }
}
