//! The open log: its options, its state, and the types of a commit. Also the changes by other processes: a wait for their next commit,
//! files and keys that they replaced.
//!
//! Changes are seen by the tail page, which is read again at growing intervals. Commits of the same handle end a wait at once.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use zeroize::Zeroizing;

use super::commit_queue::{CommitDelay, CommitQueue};
use super::error::{Corruption, LogError};
use super::files::{Segments, TAIL, WriteSegment, read_page};
use super::places_state::{PlacesState, PlacesWriter};
use super::recovery_scan::is_anchored;
use super::tail::{Lost, TailState};
use crate::codec::{BodyPlace, PreparedFrame, SALT_BYTES, TailPage, WrittenPlace as Head};
use crate::ids::{Micros, Position, Seq, StoreId, StreamId};
use crate::locks::steady;
use crate::secret::Secret;
use crate::storage::{Access, Bell, Clock, Entropy, Storage, StoredFile};
use crate::vault::KeyUse;

/// How a log is opened.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// A segment is complete once the next commit would make it longer than this. Default 64 MiB.
    pub segment_bytes_max: u64,
    /// How long to wait for another process that is writing. Default 5 s.
    pub lock_wait: Duration,
    /// Never write, not even to recover. Default `false`.
    pub read_only: bool,
    /// The key of an encrypted store. Default: none.
    pub keys: KeyUse,
    /// The id and the secret of a store that is made. Default: random ones.
    pub identity: Option<(StoreId, Zeroizing<[u8; 32]>)>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes_max: 64 << 20,
            lock_wait: Duration::from_secs(5),
            read_only: false,
            keys: KeyUse::None,
            identity: None,
        }
    }
}

/// The outcome of opening.
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
    /// Events found written and not confirmed. A handle that only reads leaves them so and does not show them.
    pub unconfirmed_event_count: u64,
    /// An erasure was begun and had not ended when the log was opened; a handle that writes ends it.
    pub was_erasing: bool,
    /// Recovery could not be finished now (the store is busy or the disk full); the next append tries again.
    pub postponed: bool,
    /// Damage that was met; appends are refused. `verify` finds all of it.
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
    pub(super) frame: PreparedFrame,
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
}

impl Appended {
    /// The seq of its last event.
    pub fn last_seq(&self) -> Seq {
        self.first_seq.plus(u64::from(self.event_count)).before()
    }
}

/// State that readers share.
pub(super) struct ReadState {
    pub(super) head: Head,
    pub(super) damage: Option<Box<Corruption>>,
    /// Damage that reading met after the log was opened.
    pub(super) met: Option<Box<Corruption>>,
}

/// State of the leader.
#[derive(Default)]
pub(super) struct LeaderState {
    pub(super) segment: Option<Arc<WriteSegment>>,
    /// The file of places beside it.
    pub(super) places: Option<PlacesWriter>,
    /// The end of the log as last known here.
    pub(super) place: Head,
    /// Recovery is still to be done.
    pub(super) postponed: bool,
    /// Newest seq per stream, for events after `moved_from`, except events in `gaps`.
    pub(super) moved: HashMap<StreamId, Seq>,
    pub(super) moved_from: Seq,
    /// Ranges that other processes wrote and this handle has not read.
    pub(super) gaps: Vec<(Head, Position)>,
    /// Seq of the last event that another process wrote.
    pub(super) foreign: Seq,
    pub(super) buffer: Vec<u8>,
    pub(super) append_count: u64,
    /// The page as it was last read under the write lock, or left there.
    pub(super) page: TailPage,
    /// The epoch when this handle was opened; `None`: it is not known yet.
    pub(super) epoch: Option<u32>,
}

/// An open log. Usable from any number of threads; other processes may append to the same store.
pub struct Log {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) options: LogOptions,
    pub(super) process: u32,
    /// This handle may not write; known once, so that asking needs no lock.
    pub(super) read_only: bool,
    pub(super) secret: Secret,
    /// The reason why the secret cannot be had.
    pub(super) secret_fault: Option<String>,
    pub(super) segments: Segments,
    /// A feature that writing needs and this program does not know.
    pub(super) newer: Option<String>,
    pub(super) shared: Mutex<ReadState>,
    /// `None`: read only.
    pub(super) tail: Option<TailState>,
    /// The tail of a handle that only reads.
    pub(super) reader_tail: Mutex<Option<Box<dyn StoredFile>>>,
    /// Rung when the head has moved.
    pub(super) bell: Bell,
    pub(super) writer: Mutex<LeaderState>,
    pub(super) queue: CommitQueue<Log>,
    pub(super) commit_delay: CommitDelay,
    /// A place that is durable, and is not published yet.
    pub(super) unpublished: Mutex<Option<Head>>,
    /// A sync failed; only another handle may append again.
    pub(super) poisoned: AtomicBool,
    /// The durable position when the page was last looked at.
    pub(super) looked_at: AtomicU64,
    /// The generation of files that was last seen.
    pub(super) generation: AtomicU32,
    /// How often features had been added when this handle was opened, and the features that writing needed then.
    pub(super) upgrades: AtomicU32,
    pub(super) writes: Vec<String>,
    /// Bodies whose erasure is on record and was not carried out when this handle looked; whether there are any.
    pub(super) withheld: RwLock<BTreeSet<BodyPlace>>,
    pub(super) withholds: AtomicBool,
    /// Where frames are.
    pub(super) places: Mutex<PlacesState>,
    /// Damage that was met while places were looked for, and was not told of.
    pub(super) places_damage: Mutex<Vec<String>>,
    /// Rows of places were not as the page says: the next commit writes them anew.
    pub(super) places_broken: AtomicBool,
}

impl Log {
    /// The id of the store.
    pub fn store(&self) -> StoreId {
        self.segments.store
    }

    /// Whether the store is encrypted.
    pub const fn is_encrypted(&self) -> bool {
        self.segments.vault.is_encrypted()
    }

    /// Whether the store is encrypted and was opened without its key: frames have no events, and bodies do not open.
    pub(crate) const fn is_closed(&self) -> bool {
        self.segments.vault.is_closed()
    }

    /// The store's secret; a [missing](Secret::missing) one if its file cannot be read.
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The reason why the store's secret cannot be had, if it cannot.
    pub fn secret_fault(&self) -> Option<&str> {
        self.secret_fault.as_deref()
    }

    /// The storage that the log lies on. Other modules keep files beside the log.
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
        steady(&self.shared).head
    }

    /// Whether the log holds, right before a place, the commit that the place says is there.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails.
    pub fn holds(&self, place: &Head) -> Result<bool, LogError> {
        is_anchored(&self.segments, place)
    }

    /// Refuses a handle that a child got by `fork`: the child's lock would be the parent's, and a release of it would release
    /// the parent's lock. Cost: one system call that does nothing.
    pub(crate) fn check_process(&self) -> Result<(), LogError> {
        let process = self.storage.process();
        if process == self.process { Ok(()) } else { Err(LogError::Forked { owner: self.process, process }) }
    }

    /// Takes note of damage that reading met: appending to a damaged log would bury it.
    pub(crate) fn met<T>(&self, outcome: Result<T, LogError>) -> Result<T, LogError> {
        if let Err(LogError::Corrupt(damage)) = &outcome {
            steady(&self.shared).met.get_or_insert_with(|| damage.clone());
        }
        outcome
    }

    /// The state of the writer. A panic in the middle of a write may have left it different from the log: then this handle writes no
    /// more.
    pub(super) fn writer(&self) -> Result<MutexGuard<'_, LeaderState>, LogError> {
        self.writer.lock().map_err(|_| self.lost(Lost::Sync))
    }

    /// Poisons this handle: the state of its writes is unknown, so it writes no more.
    pub(super) fn lost(&self, lost: Lost) -> LogError {
        self.poisoned.store(true, Ordering::SeqCst);
        match lost {
            Lost::Sync => LogError::Poisoned { path: self.storage.path("") },
            Lost::Replaced => LogError::Replaced { path: self.storage.path(TAIL) },
        }
    }

    /// Marks the store as poisoned after a failed sync.
    pub(super) fn sync_failed(&self, tail: &TailState) -> LogError {
        self.poisoned.store(true, Ordering::SeqCst);
        tail.poison();
        LogError::Poisoned { path: self.storage.path("") }
    }

    /// Whether this handle may not write.
    pub(super) fn is_read_only(&self) -> bool {
        self.read_only
    }
}

/// How long the first pause is, and the longest; doubled each time.
const PAUSE_MIN: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_millis(50);

impl Log {
    /// Waits until something past `after` is durable, at most `limit`. Returns the head either way. Commits of this handle
    /// are seen at once, commits of other processes a few milliseconds later, or up to 50 if none came for long.
    ///
    /// # Errors
    /// As [`Log::refresh`].
    pub fn wait_for_commit(&self, after: Seq, limit: Duration) -> Result<Head, LogError> {
        let start = self.clock.elapsed();
        let mut pause = PAUSE_MIN;
        loop {
            // Before the look at the head: a commit after that look rings, and the wait ends at once.
            let seen = self.bell.rung();
            let head = self.refresh()?;
            // Past the limit no time is left.
            let left = limit.saturating_sub(self.clock.since(start));
            if head.seq > after || left.is_zero() {
                return Ok(head);
            }
            self.clock.sleep_until_rung(pause.min(left), &self.bell, seen);
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }

    /// Lets go of files that were replaced, if any were since the last look.
    pub(crate) fn see_generation(&self, generation: u32) {
        if self.generation.swap(generation, Ordering::SeqCst) != generation {
            self.segments.forget();
        }
    }

    /// Tells all handles, of any process, that a complete segment was replaced, so that they let go of the old file, whose
    /// space is free only then. They may read on in the old file until their next look at the head: both files say the same.
    pub(crate) fn generation_changed(&self) {
        if let Some(tail) = &self.tail {
            // If this fails, other handles keep the old file, and its space, until they are opened again.
            let _ = tail.raise_generation();
        }
    }

    /// Refuses to go on if a newer program named a feature since this handle was opened.
    pub(super) fn check_upgrades(&self, page: &TailPage) -> Result<(), LogError> {
        let own = page.store == Some(self.segments.store);
        if own && page.upgrades != self.upgrades.load(Ordering::SeqCst) {
            return Err(LogError::Upgraded { path: self.storage.path("") });
        }
        Ok(())
    }

    /// A feature that writing needs and this program does not know. Reading is allowed.
    pub fn newer(&self) -> Option<&str> {
        self.newer.as_deref()
    }

    /// Reads the tail page, of a handle that may write or not.
    pub(crate) fn read_page(&self) -> Result<TailPage, LogError> {
        if let Some(tail) = &self.tail {
            return tail.read();
        }
        let mut known = steady(&self.reader_tail);
        // Another file may have its name by now.
        let current = known.take().filter(|file| file.is_current().unwrap_or(false));
        let file = match current.map_or_else(|| self.storage.open(TAIL, Access::Read), Ok) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TailPage::default()),
            Err(error) => return Err(LogError::io("open", self.storage.path(TAIL), error)),
        };
        let page = read_page(&*file).map_err(|error| LogError::io("read", self.storage.path(TAIL), error));
        *known = Some(file);
        page
    }

    /// Looks for commits of other processes that became durable, and returns the head.
    ///
    /// # Errors
    /// [`LogError::Corrupt`] if their commits do not continue the log; the head stays where it was.
    pub fn refresh(&self) -> Result<Head, LogError> {
        self.check_process()?;
        let head = self.head();
        if steady(&self.shared).damage.is_some() {
            return Ok(head);
        }
        let page = self.read_page()?;
        let durable = page.durable_end().position.0;
        let is_news = self.looked_at.swap(durable, Ordering::Relaxed) != durable;
        // A page without news may be the page of a file that was replaced: no news ever gets into that page, since a writer
        // looks at the name first.
        if !is_news && let Some(tail) = &self.tail {
            tail.check_current()?;
        }
        if page.store != Some(self.segments.store) {
            return Ok(head);
        }
        self.check_upgrades(&page)?;
        self.see_generation(page.generation);
        if let Some(durable) = page.durable {
            self.show(durable);
        }
        Ok(self.head())
    }

    /// Moves the head that readers of this handle see.
    pub(crate) fn show(&self, head: Head) {
        let mut shared = steady(&self.shared);
        if head.position > shared.head.position {
            shared.head = head;
            drop(shared);
            self.bell.ring();
        }
    }
}
