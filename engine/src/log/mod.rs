//! The log: append whole commits durably, read them forward, find the end again after a crash.
//!
//! ```text
//! prepare (caller's thread) -> queue -> leader: write lock { catch up, conditions, one write } -> one fdatasync -> ack
//! open  -> tail clean? yes: done.  no: write lock { walk from the highest durable claim D to the end E;
//!                                          quarantine and zero what is torn; rewrite and sync [D, E) }
//! read  -> frames up to the durable head; damage is reported and stepped over, never served
//! ```
//!
//! An event is an envelope and opaque bytes here; what it means is decided above. Nothing is acknowledged, and
//! nothing is shown to another handle, before a successful sync covers it. Damage below the highest durable claim
//! is never cut and never repaired: the log opens, refuses appends, and reads around it. `docs/FORMAT.md` has the
//! bytes and the rules of recovery.
//!
//! Complete segments are sealed (`seal`): rewritten once, smaller, under the positions they had. Tables in their footers, or in
//! maps beside those not sealed yet, say which frames hold a stream.
//!
//! Not here: what events mean, which commits are allowed (beyond "did this stream move"), lookups by anything but
//! seq, position and stream.

mod append;
mod backup;
mod bodies;
mod commit_delay;
mod commit_queue;
mod create;
mod durability;
mod erase;
mod error;
mod files;
mod frames;
mod group_commit;
mod lookup;
mod open;
mod parallel_verify;
mod parts;
mod recovery_scan;
mod repair;
mod seal;
mod sealed;
mod segment_tables;
mod space;
mod tail;
#[cfg(test)]
mod tests;
mod verify;
mod wait;
mod witness;

/// What the queue is made of; a model checker puts its own in their place.
mod primitives {
    pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
    pub(super) use std::thread::yield_now;
}

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use crate::codec::Written as Head;
use crate::codec::{
    BodyRow, EncodedEvent, Frame, FrameCheck, FrameHeader, Part, PreparedFrame, SALT_BYTES, SegmentHeader,
    TailPage, encode_frame,
};
use crate::ids::{Micros, Position, Seq, StoreId, StreamId};
use crate::secret::Secret;
use crate::storage::{Bell, Clock, Entropy, Storage, StoredFile};
pub use append::{Exclusive, Placed};
pub(crate) use erase::{ERASED, ERASING};
pub use erase::{ErasedFigures, Erasing};
pub use error::{Corruption, LogError};
pub(crate) use files::is_copy_name;
use files::{Cursor, Fault, POINT_WINDOW_BYTES, Segments};
pub use frames::Frames;
pub use lookup::{TableFrame, TableStream};
pub use seal::{SealFigures, SealOutcome};
pub use segment_tables::CompleteSegment;
pub use space::{KindSpace, LogSpace, SegmentSpace};
use tail::Tail;
pub use verify::{LogReport, Violation};
pub(crate) use witness::{Claim, Place};
pub use witness::{Standing, Witness, WitnessKind};

/// Distance between remembered frame positions: a look-up reads at most this much to find its frame.
const MAP_STEP_BYTES: u64 = 16 << 10;

/// How a log is opened.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// A segment is complete once the next commit would make it longer than this. Default 64 MiB.
    pub segment_bytes_max: u64,
    /// How long to wait for another process that is writing. Default 5 s.
    pub lock_wait: Duration,
    /// Never write, not even to recover. Default `false`.
    pub read_only: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { segment_bytes_max: 64 << 20, lock_wait: Duration::from_secs(5), read_only: false }
    }
}

/// What opening found and did.
#[derive(Debug, Clone)]
#[must_use]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, to be reported as such")]
pub struct Recovery {
    /// The store was made by this open.
    pub created: bool,
    /// The last writer left everything settled; nothing had to be checked.
    pub was_clean: bool,
    /// The log was opened without the right or the wish to write.
    pub read_only: bool,
    /// The durable end.
    pub head: Head,
    /// Bytes of an unfinished write that were (or, if read only, would be) moved to quarantine.
    pub torn_bytes: u64,
    /// Events found written but not confirmed, now confirmed.
    pub confirmed_event_count: u64,
    /// Events found written and not confirmed, which a handle that only reads leaves so and does not show.
    pub unconfirmed_event_count: u64,
    /// An erasure was begun and had not ended when the log was opened; a handle that writes ends it.
    pub was_erasing: bool,
    /// Recovery could not be finished now (the store is busy or the disk full); the next append tries again.
    pub postponed: bool,
    /// Damage that was met; appends are refused. [`Log::verify`] finds all of it.
    pub damage: Option<Corruption>,
}

/// A stream that must not have moved for a commit to be valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The stream.
    pub stream: StreamId,
    /// The newest seq, of any stream, that the caller has seen.
    pub basis: Seq,
}

/// A commit, encoded and hashed, ready for [`Log::append`].
#[derive(Clone)]
pub struct Prepared {
    frame: PreparedFrame,
}

impl Prepared {
    /// Length of its frame.
    pub fn frame_bytes(&self) -> usize {
        self.frame.frame_bytes()
    }

    /// How many events it has.
    pub fn event_count(&self) -> u32 {
        self.frame.event_count()
    }
}

/// A commit that is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Appended {
    /// The seq of its first event.
    pub first_seq: Seq,
    /// How many events it has.
    pub event_count: u32,
    /// When it was recorded.
    pub time: Micros,
    /// Where its frame is.
    pub position: Position,
    /// All rows of its body table, with positions.
    pub rows: Vec<BodyRow>,
    /// Whether a stream had moved that the caller named without insisting on it.
    pub(crate) moved: bool,
}

impl Appended {
    /// The seq of its last event.
    pub fn last_seq(&self) -> Seq {
        Seq(self.first_seq.0.saturating_add(u64::from(self.event_count)).saturating_sub(1))
    }
}

/// What readers share.
struct Shared {
    head: Head,
    damage: Option<Box<Corruption>>,
    /// Damage that reading met after the log was opened.
    met: Option<Box<Corruption>>,
}

/// What the one thread that writes uses.
#[derive(Default)]
struct Writer {
    segment: Option<Arc<group_commit::WriteSegment>>,
    /// The end of the log as last known here.
    place: Head,
    /// Recovery is still to be done.
    postponed: bool,
    /// Newest seq per stream, for events after `moved_from`, but for those in `gaps`.
    moved: HashMap<StreamId, Seq>,
    moved_from: Seq,
    /// What other processes wrote and nobody here has read.
    gaps: Vec<(Head, Position)>,
    /// Seq of the last event that another process wrote.
    foreign: Seq,
    buffer: Vec<u8>,
    append_count: u64,
    /// The page as it was last read under the write lock, or left there.
    page: TailPage,
    /// The epoch when this handle was opened; `None`: it is not known yet.
    epoch: Option<u32>,
}

/// An open log. Usable from any number of threads; other processes may append to the same store.
pub struct Log {
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    options: LogOptions,
    process: u32,
    /// This handle may not write; known once, so that asking needs no lock.
    read_only: bool,
    secret: Secret,
    /// Why the secret cannot be had.
    secret_fault: Option<String>,
    segments: Segments,
    /// What a program has to know to write here, and this one does not.
    newer: Option<String>,
    shared: Mutex<Shared>,
    /// `None`: read only.
    tail: Option<Tail>,
    /// The tail of a handle that only reads.
    reader_tail: Mutex<Option<Box<dyn StoredFile>>>,
    /// Rung when the head has moved.
    bell: Bell,
    writer: Mutex<Writer>,
    queue: commit_queue::CommitQueue<Log>,
    commit_delay: commit_delay::CommitDelay,
    /// A sync failed; only another handle may append again.
    poisoned: AtomicBool,
    /// How far the log was durable when its page was last looked at.
    looked_at: AtomicU64,
    /// The generation of files that was last seen.
    generation: AtomicU32,
    /// How often features had been added when this handle was opened, and those that writing needed then.
    upgrades: AtomicU32,
    writes: Vec<String>,
    /// Tables of pieces of large frames that were met.
    tables: Mutex<parts::Tables>,
    /// Positions of frames by first seq, at least [`MAP_STEP_BYTES`] apart.
    map: Mutex<BTreeMap<Seq, Position>>,
}

/// A thread that panicked while holding a lock left consistent data: all changes here are single assignments.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    /// The id of the store.
    pub fn store(&self) -> StoreId {
        self.segments.store
    }

    /// What keys the store; one that is [missing](Secret::missing) if its file cannot be read.
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Why the store's secret cannot be had, if it cannot.
    pub fn secret_fault(&self) -> Option<&str> {
        self.secret_fault.as_deref()
    }

    /// The storage it lies on, for those who keep other files beside it.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// The clock it was opened with.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The source of randomness it was opened with.
    pub fn entropy(&self) -> &Arc<dyn Entropy> {
        &self.entropy
    }

    /// Fresh salt for a body; never all zeros.
    ///
    /// # Errors
    /// [`LogError::Io`] if the system has no random bytes.
    pub fn salt(&self) -> Result<[u8; SALT_BYTES], LogError> {
        let mut salt = [0; SALT_BYTES];
        let fill = self.entropy.fill(&mut salt);
        fill.map_err(|error| LogError::io("draw random bytes for", self.storage.path(""), error))?;
        if salt == [0; SALT_BYTES] {
            salt = [1; SALT_BYTES];
        }
        Ok(salt)
    }

    /// The durable head as this handle last saw it: own commits are in it when `append` returns, those of other
    /// processes after [`Log::refresh`].
    pub fn head(&self) -> Head {
        locked(&self.shared).head
    }

    /// Whether the log holds, right before a place, the commit that the place says is there.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub(crate) fn holds(&self, place: &Head) -> Result<bool, LogError> {
        recovery_scan::is_anchored(&self.segments, place)
    }

    /// Encodes and hashes a commit in the calling thread.
    ///
    /// # Errors
    /// [`LogError::Encode`] if it is over a limit.
    pub fn prepare(&self, events: &[EncodedEvent]) -> Result<Prepared, LogError> {
        Ok(Prepared { frame: encode_frame(events)? })
    }

    /// Refuses a handle that a child got by `fork`: the child's lock would be the parent's, and giving it back would give back
    /// the parent's. Cost: one system call that does nothing.
    pub(crate) fn check_process(&self) -> Result<(), LogError> {
        let process = self.storage.process();
        if process == self.process { Ok(()) } else { Err(LogError::Forked { owner: self.process, process }) }
    }

    /// Takes note of damage that reading met: appending to a damaged log would bury it.
    pub(crate) fn met<T>(&self, outcome: Result<T, LogError>) -> Result<T, LogError> {
        if let Err(LogError::Corrupt(damage)) = &outcome {
            locked(&self.shared).met.get_or_insert_with(|| damage.clone());
        }
        outcome
    }

    /// Whether this handle may not write.
    fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Remembers where a frame is.
    fn remember(&self, first_seq: Seq, position: Position) {
        let mut map = locked(&self.map);
        let near = map.range(..=first_seq).next_back().is_some_and(|(_, known)| {
            known.segment() == position.segment()
                && position.offset().saturating_sub(known.offset()) < MAP_STEP_BYTES
        });
        if !near {
            map.insert(first_seq, position);
        }
    }

    /// The frame that holds `seq`, or of a large frame a part that does, if it is durable and sound. Cost: a few reads near it.
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

    /// A known place at or before the frame that holds `seq`: of a complete segment its tables', else a remembered one.
    fn start_before(&self, seq: Seq) -> Result<Position, LogError> {
        let remembered = locked(&self.map).range(..=seq).next_back().map(|(_, position)| *position);
        let active = self.head().position.segment();
        if let Some(position) = remembered.filter(|position| position.segment() == active) {
            return Ok(position);
        }
        if let Some(complete) = self.complete_segment(seq)? {
            if let Some(position) = self.table_position(complete.number, seq)? {
                return Ok(position);
            }
            let near = remembered.filter(|position| position.segment() == complete.number);
            return Ok(near.unwrap_or(SegmentHeader::start(complete.number)));
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

    /// The frame at `position`, as an index names it.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no sound frame of this store begins there.
    pub fn frame_at(&self, position: Position) -> Result<Frame, LogError> {
        let mut cursor = Cursor::new(&self.segments, POINT_WINDOW_BYTES);
        match cursor.frame(position, FrameCheck::Checksum) {
            Ok(frame) => Ok(frame),
            Err(Fault::Error(error)) => Err(error),
            Err(fault) => Err(LogError::corrupt(frames::corruption(&self.segments, position, fault))),
        }
    }

    /// The header of the frame at `position`, checked by itself: for its link, without its spine.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if no frame of this store begins there.
    pub(crate) fn header_at(&self, position: Position) -> Result<FrameHeader, LogError> {
        let mut cursor = Cursor::new(&self.segments, POINT_WINDOW_BYTES);
        cursor.header(position).map_err(|fault| match fault {
            Fault::Error(error) => error,
            fault => LogError::corrupt(frames::corruption(&self.segments, position, fault)),
        })
    }

    /// Frames from `from` (the start of a frame or segment; the default position is the start of the log) up to
    /// `until`, with damage reported as errors and stepped over.
    ///
    /// Take `until` from [`Log::head`] or [`Log::refresh`]: nothing after the durable head is shown.
    pub fn frames(&self, from: Position, until: Head) -> Frames<'_> {
        let head = self.head();
        let until = if until.position > head.position { head } else { until };
        Frames::new(self, from, until, FrameCheck::Checksum, files::SCAN_WINDOW_BYTES)
    }

    /// Frames from the one that holds `from` on, up to a place that need not be durable. For callers that hold the write lock.
    fn frames_until(&self, from: Seq, until: Head) -> Result<Frames<'_>, LogError> {
        let start = if from.0 <= 1 { Position::default() } else { self.start_before(from)? };
        let window = files::SCAN_WINDOW_BYTES;
        Ok(Frames::new(self, start, until, FrameCheck::Checksum, window).skip_before(from))
    }

    /// Frames from the one that holds `from` on; earlier events of that frame come along.
    ///
    /// # Errors
    /// As [`Log::locate`], but damage is left to the iterator.
    pub fn frames_from(&self, from: Seq, until: Head) -> Result<Frames<'_>, LogError> {
        let head = self.head();
        self.frames_until(from, if until.position > head.position { head } else { until })
    }

    /// The damage that a body of zeros is where nobody recorded its erasure.
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
}
