//! The machine under the engine's code here: processes that share a page and a file, and a disk that keeps the synced
//! bytes.
//!
//! Each step stands for one of `engine/src/log/{append,group,tail}.rs` of the same name, cut down to its effect on order:
//! positions are numbers, a frame is one of them, and the file's content is how many of them it holds. The page is words
//! that are read and written one by one; a record is two that agree.

use std::collections::HashMap;
use std::time::Duration;

use shuttle::rand::Rng as _;
use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread::yield_now;

use crate::commit_queue::{
    CommitDelay, CommitQueue, LockAttempt, LogState, Stages, SyncOps, SyncWait, Until, WaitOutcome,
    WriteRange, serve,
};

/// A rule that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The position that a sync covers is looked up after it.
    CoveredReadLate,
    /// The durable position is told before the sync.
    ToldBeforeSync,
    /// A failed sync is told to callers that append, not to callers that wait.
    PoisonWithoutEpoch,
    /// `written` is told before the bytes are in the file.
    WrittenToldEarly,
    /// No process asks whether a sync failed since it wrote.
    EpochUnread,
    /// Threads of one process sync at once. So it was once, for threads that had waited too long.
    SyncedWithoutLock,
    /// A thread without a turn claims the durable position as if it had one.
    ClaimedWithoutLock,
    /// There is one claim of the durable position, written over while others read it.
    OneClaim,
    /// A fact that is known from a commit that is not durable is acknowledged at once. So it was once.
    KnownTooEarly,
}

impl Flaw {
    pub(crate) const ALL: [Self; 9] = [
        Self::CoveredReadLate,
        Self::ToldBeforeSync,
        Self::PoisonWithoutEpoch,
        Self::WrittenToldEarly,
        Self::EpochUnread,
        Self::SyncedWithoutLock,
        Self::ClaimedWithoutLock,
        Self::OneClaim,
        Self::KnownTooEarly,
    ];

    pub(crate) fn needs_a_failing_sync(self) -> bool {
        matches!(self, Self::PoisonWithoutEpoch | Self::EpochUnread | Self::SyncedWithoutLock)
    }

    pub(crate) fn needs_impatience(self) -> bool {
        matches!(self, Self::SyncedWithoutLock | Self::ClaimedWithoutLock)
    }
}

/// A record of the page: a number and its check, written one after the other.
#[derive(Default)]
struct Record(AtomicU64, AtomicU64);

impl Record {
    fn put(&self, value: u64) {
        self.0.store(value, SeqCst);
        self.1.store(value, SeqCst);
    }

    fn get(&self) -> Option<u64> {
        let (value, check) = (self.0.load(SeqCst), self.1.load(SeqCst));
        (value == check).then_some(value)
    }
}

/// The page as it was read.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    written: Option<u64>,
    durable: u64,
    /// The claim that says less.
    next_claim: usize,
    epoch: u32,
    expected: u64,
}

/// All that processes share.
pub(crate) struct World {
    flaw: Option<Flaw>,
    failing_sync: Option<u64>,
    /// Whether waiting callers find now and then that it has been too long, as behind a process that was stopped.
    impatient: bool,
    /// The page.
    epoch: AtomicU32,
    poisoned: AtomicBool,
    written: Record,
    confirmed: Record,
    claims: [Record; 2],
    covered: AtomicU64,
    /// W, and the commits written under it.
    frames: Mutex<Vec<u64>>,
    /// S.
    sync_lock: AtomicBool,
    /// The position in the file, and that on the disk, which a power cut leaves.
    file: AtomicU64,
    disk: AtomicU64,
    /// Held while a write-back ends: the loss of bytes and the record of the loss are one step, as a kernel notes an
    /// error before it lets go of the callers that wait for the same bytes.
    write_back: Mutex<()>,
    /// Failed write-backs; a process that had the file open is told once by a sync. The bytes that they lost stay lost until
    /// the log is opened again, in a file of another number.
    errors: AtomicU64,
    is_lost: AtomicBool,
    file_number: AtomicU64,
    syncs: AtomicU64,
    is_over: AtomicBool,
}

impl World {
    pub(crate) fn new(flaw: Option<Flaw>, failing_sync: Option<u64>, impatient: bool) -> Self {
        Self {
            flaw,
            failing_sync,
            impatient,
            epoch: AtomicU32::new(0),
            poisoned: AtomicBool::new(false),
            written: Record::default(),
            confirmed: Record::default(),
            claims: [Record::default(), Record::default()],
            covered: AtomicU64::new(0),
            frames: Mutex::new(Vec::new()),
            sync_lock: AtomicBool::new(false),
            file: AtomicU64::new(0),
            disk: AtomicU64::new(0),
            write_back: Mutex::new(()),
            errors: AtomicU64::new(0),
            is_lost: AtomicBool::new(false),
            file_number: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// No process writes any more; followers may stop waiting.
    pub(crate) fn end(&self) {
        self.is_over.store(true, SeqCst);
    }

    pub(crate) fn sync_count(&self) -> u64 {
        self.syncs.load(SeqCst)
    }

    fn look(&self) -> Page {
        let written = (0..4).find_map(|_| self.written.get());
        let [first, second] = [self.claims[0].get(), self.claims[1].get()];
        let next_claim = usize::from(first > second);
        let claims = [self.confirmed.get(), first, second];
        let durable = claims.into_iter().flatten().max().unwrap_or(0);
        Page {
            written,
            durable,
            next_claim,
            epoch: self.epoch.load(SeqCst),
            expected: self.covered.load(SeqCst),
        }
    }

    fn claim(&self, page: &Page, position: u64) {
        if page.durable >= position {
            return;
        }
        self.covered.store(page.written.unwrap_or(position).max(position) - page.durable, SeqCst);
        let claim = if self.flaw == Some(Flaw::OneClaim) { 0 } else { page.next_claim };
        self.claims[claim].put(position);
    }

    /// Opens the log again after a failed sync: commits that were not confirmed are given up. `None`: nothing failed
    /// yet.
    pub(crate) fn reopen(world: &Arc<Self>) -> Option<Arc<Process>> {
        if !world.poisoned.load(SeqCst) {
            return None;
        }
        let mut frames = world.frames.lock().unwrap();
        if world.sync_lock.swap(true, SeqCst) {
            return None;
        }
        let durable = world.look().durable;
        frames.truncate(usize::try_from(durable).unwrap());
        {
            let _one = world.write_back.lock().unwrap();
            world.file_number.fetch_add(1, SeqCst);
            world.file.store(durable, SeqCst);
            world.disk.store(durable, SeqCst);
            world.is_lost.store(false, SeqCst);
        }
        world.written.put(durable);
        world.confirmed.put(durable);
        world.poisoned.store(false, SeqCst);
        let process = Process::new(world);
        world.sync_lock.store(false, SeqCst);
        Some(process)
    }

    /// Checks the rules at the end: a log without gaps or repeats, all of it durable unless a sync failed.
    pub(crate) fn check(&self) {
        let frames = self.frames.lock().unwrap();
        let mut ids = frames.clone();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), frames.len(), "a commit is in the log twice: {frames:?}");
        let page = self.look();
        assert_eq!(Some(frames.len() as u64), page.written);
        let disk = self.disk.load(SeqCst);
        assert!(page.durable <= disk, "durable up to {}, and {disk} is on the disk", page.durable);
        if self.failing_sync.is_none() && !self.impatient {
            assert_eq!(Some(page.durable), page.written, "a process was acknowledged too early");
        }
    }
}

/// A follower of the log: sees it grow up to `all`, never shrink, and never more than is on the disk.
pub(crate) fn follow(world: &World, all: u64) {
    let mut last = 0;
    loop {
        // Asked before the look at the head, so that the look sees every step before the end.
        let is_over = world.is_over.load(SeqCst);
        let head = world.look().durable;
        assert!(head <= world.disk.load(SeqCst), "{head} is shown and not on the disk");
        assert!(head >= last, "{last} was shown, and now {head}");
        last = head;
        if head >= all || is_over {
            return;
        }
        yield_now();
    }
}

/// One process: its queue, its turn to sync, its open file, its knowledge.
pub(crate) struct Process {
    world: Arc<World>,
    queue: CommitQueue<Self>,
    sync_wait: SyncWait<()>,
    commit_delay: CommitDelay,
    poisoned: AtomicBool,
    epoch: u32,
    file_number: u64,
    errors_seen: AtomicU64,
    /// Where the facts are that this process recorded.
    known: Mutex<HashMap<u64, Place>>,
}

/// Where a group lies.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    id: u64,
    /// The place of this commit.
    at: u64,
    start: u64,
    end: u64,
    epoch: u32,
}

impl Process {
    pub(crate) fn new(world: &Arc<World>) -> Arc<Self> {
        Arc::new(Self {
            world: Arc::clone(world),
            queue: CommitQueue::default(),
            sync_wait: SyncWait::default(),
            commit_delay: CommitDelay::default(),
            poisoned: AtomicBool::new(false),
            epoch: world.epoch.load(SeqCst),
            file_number: world.file_number.load(SeqCst),
            errors_seen: AtomicU64::new(world.errors.load(SeqCst)),
            known: Mutex::default(),
        })
    }

    /// Commits, and checks the answer.
    pub(crate) fn commit(&self, id: u64, until: Until) {
        let Ok(place) = self.queue.run(self, id, until) else { return };
        assert_eq!(place.id, id, "the answer of another");
        if until == Until::Durable || Stages::settle(self, &place).is_ok() {
            self.check_acknowledged(&place);
        }
    }

    /// Records a fact unless it is known, as the store does: under the lock of its stream up to its place in the log.
    pub(crate) fn record(&self, fact: u64) {
        let place = {
            let mut known = self.known.lock().unwrap();
            match known.get(&fact) {
                Some(place) => Ok(place.clone()),
                None => self.queue.run(self, fact, Until::Written).inspect(|place| {
                    known.insert(fact, place.clone());
                }),
            }
        };
        let Ok(place) = place else { return };
        if self.world.flaw == Some(Flaw::KnownTooEarly) || Stages::settle(self, &place).is_ok() {
            self.check_acknowledged(&place);
        }
    }

    /// An acknowledged commit is in the log, at its acknowledged place, and on the disk.
    fn check_acknowledged(&self, place: &Place) {
        let disk = self.world.disk.load(SeqCst);
        let Place { id, at, end, .. } = place;
        assert!(disk >= *end, "{id} is acknowledged, ends at {end}, and {disk} is on the disk");
        let frames = self.world.frames.lock().unwrap();
        assert_eq!(frames.get(usize::try_from(*at).unwrap()), Some(id), "acknowledged, and not in the log");
    }

    fn poison(&self) {
        let world = &*self.world;
        world.poisoned.store(true, SeqCst);
        if world.flaw != Some(Flaw::PoisonWithoutEpoch) {
            world.epoch.fetch_add(1, SeqCst);
        }
    }

    /// `fdatasync`: covers the bytes in the file when it begins. After a failure the pages count as clean, and are not
    /// on the disk; every open file is told once.
    fn fdatasync(&self) -> bool {
        let world = &*self.world;
        let in_file = world.file.load(SeqCst);
        yield_now();
        let _one = world.write_back.lock().unwrap();
        let is_own = world.file_number.load(SeqCst) == self.file_number;
        if is_own && world.failing_sync == Some(world.syncs.fetch_add(1, SeqCst)) {
            world.is_lost.store(true, SeqCst);
            world.errors.fetch_add(1, SeqCst);
        }
        let errors = world.errors.load(SeqCst);
        if is_own && !world.is_lost.load(SeqCst) {
            world.disk.fetch_max(in_file, SeqCst);
        }
        self.commit_delay.synced(Duration::ZERO);
        self.errors_seen.swap(errors, SeqCst) == errors
    }

    fn reads_epoch(&self) -> bool {
        self.world.flaw != Some(Flaw::EpochUnread)
    }
}

impl Stages for Process {
    type Request = u64;
    type Placed = Place;
    type Failure = ();

    fn write(&self, group: Vec<u64>) -> Vec<Result<Place, ()>> {
        let world = &*self.world;
        let mut frames = world.frames.lock().unwrap();
        let is_other = self.reads_epoch() && world.epoch.load(SeqCst) != self.epoch;
        if self.poisoned.load(SeqCst) || world.poisoned.load(SeqCst) || is_other {
            return group.iter().map(|_| Err(())).collect();
        }
        let start = frames.len() as u64;
        let end = start + group.len() as u64;
        frames.extend(&group);
        if world.flaw == Some(Flaw::WrittenToldEarly) {
            world.written.put(end);
        }
        world.file.store(end, SeqCst);
        world.written.put(end);
        (start..).zip(group).map(|(at, id)| Ok(Place { id, at, start, end, epoch: self.epoch })).collect()
    }

    fn settle(&self, placed: &Place) -> Result<(), ()> {
        let stretch = WriteRange { start: placed.start, end: placed.end, epoch: placed.epoch };
        let wait = Wait { process: self, world: &self.world, stretch };
        let is_hasty =
            self.world.flaw == Some(Flaw::SyncedWithoutLock) && shuttle::rand::thread_rng().gen_ratio(1, 4);
        let outcome = if is_hasty { serve(&wait, stretch) } else { self.sync_wait.settle(&wait, stretch) };
        if matches!(outcome, WaitOutcome::Durable(_)) {
            return Ok(());
        }
        self.poisoned.store(true, SeqCst);
        Err(())
    }

    fn is_beyond(&self, placed: &Place, other: &Place) -> bool {
        placed.end > other.end
    }

    fn unwound(&self) {}

    fn wait_for_others(&self, all_here: impl FnMut() -> bool) {
        self.commit_delay.wait(all_here, Duration::default);
    }
}

/// The sync lock; released when dropped.
pub(crate) struct SyncLock<'a>(&'a World);

impl Drop for SyncLock<'_> {
    fn drop(&mut self) {
        self.0.sync_lock.store(false, SeqCst);
    }
}

/// A wait for a stretch.
struct Wait<'a> {
    process: &'a Process,
    world: &'a World,
    stretch: WriteRange,
}

impl<'a> SyncOps for Wait<'a> {
    type Lock = SyncLock<'a>;
    type Page = Page;
    type Failure = ();

    fn look(&self) -> Page {
        self.world.look()
    }

    fn state(&self, page: &Page) -> Option<LogState> {
        let written = page.written.unwrap_or(0);
        Some(LogState {
            durable: page.durable,
            written,
            epoch: if self.process.reads_epoch() { page.epoch } else { self.process.epoch },
            waiting: written.saturating_sub(page.durable),
            expected: page.expected,
        })
    }

    fn failed_elsewhere(&self) {}

    fn try_lock(&self) -> LockAttempt<SyncLock<'a>> {
        if self.world.sync_lock.swap(true, SeqCst) {
            LockAttempt::HeldElsewhere
        } else {
            LockAttempt::Locked(SyncLock(self.world))
        }
    }

    fn sync(&self, lock: Option<&SyncLock<'a>>, page: &Page) -> Result<u64, ()> {
        let (world, stretch) = (self.world, self.stretch);
        let covered =
            |page: &Page| page.written.filter(|written| *written > stretch.end).unwrap_or(stretch.end);
        let mut position = covered(page);
        if world.flaw == Some(Flaw::ToldBeforeSync) {
            world.claim(page, position);
        }
        if !self.process.fdatasync() {
            self.process.poison();
            return Err(());
        }
        if world.flaw == Some(Flaw::CoveredReadLate) {
            position = covered(&world.look());
        }
        match lock {
            Some(_) => world.claim(page, position),
            None if world.flaw == Some(Flaw::ClaimedWithoutLock) => world.claim(page, position),
            None => {
                // Under the write lock.
                let _frames = world.frames.lock().unwrap();
                let page = world.look();
                if self.process.reads_epoch() && page.epoch != stretch.epoch {
                    return Err(());
                }
                if page.durable < position {
                    world.confirmed.put(position);
                }
            }
        }
        Ok(position)
    }

    fn pause(&self) -> bool {
        // A waiting thread may sleep while much happens: a sync that fails, and the log opened again.
        let is_long = self.world.failing_sync.is_some() && shuttle::rand::thread_rng().gen_ratio(1, 6);
        (0..if is_long { 200 } else { 1 }).for_each(|_| yield_now());
        !(self.world.impatient && shuttle::rand::thread_rng().gen_ratio(1, 4))
    }

    fn wait_for_others(&self, all_here: impl FnMut() -> bool) {
        self.process.commit_delay.wait(all_here, Duration::default);
    }
}
