//! What the engine's code runs on here: processes that share a page and a file, and a disk that keeps what was synced.
//!
//! Each step stands for one of `engine/src/log/{append,group,tail}.rs` of the same name, cut down to what matters for
//! order: positions are numbers, a frame is one of them, and the file's content is how many of them it holds.

use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::thread::yield_now;

use shuttle::rand::Rng as _;
use std::time::Duration;

use crate::gather::Patience;
use crate::handoff::{Handoff, Stages, Until};
use crate::settle::{Shore, Stretch, settle};

/// A rule that is broken on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// What a sync covers is looked up after it.
    CoveredReadLate,
    /// What is durable is told before the sync.
    ToldBeforeSync,
    /// Whoever ends a turn wakes nobody.
    NoWake,
    /// Others are woken before the turn is given back.
    WokenTooEarly,
    /// A failed sync is told to those who append, not to those who wait.
    PoisonWithoutEpoch,
    /// `written` is told before the bytes are in the file.
    WrittenToldEarly,
    /// Who syncs asks whether a sync failed since his turn came, not since he wrote. So it was once.
    EpochReadLate,
    /// Who has waited too long syncs without a turn of his process. So it was once.
    SyncedOutOfTurn,
}

impl Flaw {
    pub(crate) const ALL: [Self; 8] = [
        Self::CoveredReadLate,
        Self::ToldBeforeSync,
        Self::NoWake,
        Self::WokenTooEarly,
        Self::PoisonWithoutEpoch,
        Self::WrittenToldEarly,
        Self::EpochReadLate,
        Self::SyncedOutOfTurn,
    ];

    pub(crate) fn needs_a_failing_sync(self) -> bool {
        matches!(self, Self::PoisonWithoutEpoch | Self::EpochReadLate | Self::SyncedOutOfTurn)
    }
}

/// All that processes share.
pub(crate) struct World {
    flaw: Option<Flaw>,
    failing_sync: Option<u64>,
    /// Whether those who wait find now and then that it has been too long, as behind a process that was stopped.
    impatient: bool,
    /// The page.
    wake: AtomicU32,
    epoch: AtomicU32,
    poisoned: AtomicBool,
    written: AtomicU64,
    durable: AtomicU64,
    synced: AtomicU64,
    covered: AtomicU64,
    /// Sleepers on the page, as a futex has them.
    sleep: (Mutex<()>, Condvar),
    /// W, and what was written under it.
    frames: Mutex<Vec<u64>>,
    /// S.
    sync_lock: AtomicBool,
    /// What the file holds, and what would be there after a power cut.
    file: AtomicU64,
    disk: AtomicU64,
    /// Failed write-backs; whoever had the file open is told once by a sync.
    errors: AtomicU64,
    syncs: AtomicU64,
    is_over: AtomicBool,
}

impl World {
    pub(crate) fn new(flaw: Option<Flaw>, failing_sync: Option<u64>, impatient: bool) -> Self {
        Self {
            flaw,
            failing_sync,
            impatient,
            wake: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            poisoned: AtomicBool::new(false),
            written: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            covered: AtomicU64::new(0),
            sleep: (Mutex::new(()), Condvar::new()),
            frames: Mutex::new(Vec::new()),
            sync_lock: AtomicBool::new(false),
            file: AtomicU64::new(0),
            disk: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    fn bump_and_wake(&self) {
        let _asleep = self.sleep.0.lock().unwrap();
        self.wake.fetch_add(1, SeqCst);
        self.sleep.1.notify_all();
    }

    /// Sleeps unless the count has risen since. No time-out: who misses a wake sleeps for ever, and that is noticed.
    fn wait(&self, seen: u32) {
        let mut asleep = self.sleep.0.lock().unwrap();
        while self.wake.load(SeqCst) == seen {
            asleep = self.sleep.1.wait(asleep).unwrap();
        }
    }

    /// Nobody writes any more; followers may stop waiting.
    pub(crate) fn end(&self) {
        self.is_over.store(true, SeqCst);
        self.bump_and_wake();
    }

    pub(crate) fn sync_count(&self) -> u64 {
        self.syncs.load(SeqCst)
    }

    /// What must hold at the end: a log without gaps or repeats, all of it durable unless a sync failed.
    pub(crate) fn check(&self) {
        let frames = self.frames.lock().unwrap();
        let mut ids = frames.clone();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), frames.len(), "a commit is in the log twice: {frames:?}");
        assert_eq!(frames.len() as u64, self.written.load(SeqCst));
        let (durable, disk) = (self.durable.load(SeqCst), self.disk.load(SeqCst));
        assert!(durable <= disk, "durable up to {durable}, and {disk} is on the disk");
        if !self.poisoned.load(SeqCst) {
            assert_eq!(durable, self.written.load(SeqCst), "somebody was acknowledged too early");
        }
    }
}

/// Who follows the log: sees it grow up to `all`, and never more than is on the disk.
pub(crate) fn follow(world: &World, all: u64) {
    loop {
        let seen = world.wake.load(SeqCst);
        // Asked before the look at the head: what came before it was over is seen.
        let is_over = world.is_over.load(SeqCst);
        let head = world.durable.load(SeqCst);
        assert!(head <= world.disk.load(SeqCst), "{head} is shown and not on the disk");
        if head >= all || is_over {
            return;
        }
        world.wait(seen);
    }
}

/// One process: its queue, its turn to sync, its open file.
pub(crate) struct Process {
    world: Arc<World>,
    queue: Handoff<Self>,
    patience: Patience,
    turn: AtomicBool,
    poisoned: AtomicBool,
    errors_seen: AtomicU64,
    /// Somebody has waited too long, and asks next.
    is_late: std::sync::Mutex<bool>,
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
            queue: Handoff::default(),
            patience: Patience::default(),
            turn: AtomicBool::new(false),
            poisoned: AtomicBool::new(false),
            errors_seen: AtomicU64::new(0),
            is_late: std::sync::Mutex::new(false),
        })
    }

    /// Commits, and checks what it is told.
    pub(crate) fn commit(&self, id: u64, until: Until) {
        let Ok(place) = self.queue.run(self, id, until) else { return };
        assert_eq!(place.id, id, "the answer of another");
        assert_eq!(self.world.frames.lock().unwrap()[usize::try_from(place.at).unwrap()], id, "out of order");
        if until == Until::Durable || Stages::settle(self, &place).is_ok() {
            let disk = self.world.disk.load(SeqCst);
            assert!(
                disk >= place.end,
                "{id} is acknowledged, ends at {}, and {disk} is on the disk",
                place.end
            );
        }
    }

    fn poison(&self) {
        let world = &*self.world;
        world.poisoned.store(true, SeqCst);
        if world.flaw != Some(Flaw::PoisonWithoutEpoch) {
            world.epoch.fetch_add(1, SeqCst);
        }
        world.bump_and_wake();
    }

    /// `fdatasync`: covers what is in the file when it begins. After a failure the pages count as clean, and are not on
    /// the disk; every open file is told once.
    fn fdatasync(&self) -> bool {
        let world = &*self.world;
        let in_file = world.file.load(SeqCst);
        yield_now();
        if world.failing_sync == Some(world.syncs.fetch_add(1, SeqCst)) {
            world.errors.fetch_add(1, SeqCst);
        }
        let errors = world.errors.load(SeqCst);
        if errors == 0 {
            world.disk.fetch_max(in_file, SeqCst);
        }
        self.patience.synced(Duration::ZERO);
        self.errors_seen.swap(errors, SeqCst) == errors
    }
}

impl Stages for Process {
    type Request = u64;
    type Placed = Place;
    type Failure = ();

    fn write(&self, group: Vec<u64>) -> Vec<Result<Place, ()>> {
        let world = &*self.world;
        let mut frames = world.frames.lock().unwrap();
        // In this order, as the page is read: poison is told before the epoch, so whoever sees the new one sees that, too.
        let epoch = world.epoch.load(SeqCst);
        if self.poisoned.load(SeqCst) || world.poisoned.load(SeqCst) {
            return group.iter().map(|_| Err(())).collect();
        }
        let start = frames.len() as u64;
        let end = start + group.len() as u64;
        frames.extend(&group);
        if world.flaw == Some(Flaw::WrittenToldEarly) {
            world.written.store(end, SeqCst);
        }
        world.file.store(end, SeqCst);
        world.written.store(end, SeqCst);
        (start..).zip(group).map(|(at, id)| Ok(Place { id, at, start, end, epoch })).collect()
    }

    fn settle(&self, placed: &Place) -> Result<(), ()> {
        let (start, end, epoch) = (placed.start, placed.end, placed.epoch);
        if settle(self, Stretch { start, end, epoch }) {
            return Ok(());
        }
        self.poisoned.store(true, SeqCst);
        Err(())
    }

    fn is_beyond(&self, placed: &Place, other: &Place) -> bool {
        placed.end > other.end
    }

    fn again(&self, (): &()) {}

    fn gather(&self, all_here: impl FnMut() -> bool) {
        self.patience.gather(all_here, Duration::default);
    }
}

/// The process's turn, and S if others were asked.
pub(crate) struct Turn {
    own: bool,
    shared: bool,
}

impl Shore for Process {
    type Turn = Turn;

    fn wake_count(&self) -> u32 {
        self.world.wake.load(SeqCst)
    }

    fn epoch(&self) -> u32 {
        self.world.epoch.load(SeqCst)
    }

    fn durable(&self) -> u64 {
        self.world.durable.load(SeqCst)
    }

    fn written(&self) -> u64 {
        self.world.written.load(SeqCst)
    }

    fn waiting(&self) -> (u64, u64) {
        let world = &*self.world;
        let waiting = world.written.load(SeqCst).saturating_sub(world.synced.load(SeqCst));
        (waiting, world.covered.load(SeqCst))
    }

    fn try_turn(&self, alone: bool) -> Option<Turn> {
        let is_late = std::mem::take(&mut *self.is_late.lock().unwrap());
        if is_late && self.world.flaw == Some(Flaw::SyncedOutOfTurn) {
            return Some(Turn { own: false, shared: false });
        }
        if self.turn.swap(true, SeqCst) {
            return None;
        }
        if !alone && self.world.sync_lock.swap(true, SeqCst) {
            self.turn.store(false, SeqCst);
            return None;
        }
        Some(Turn { own: true, shared: !alone })
    }

    fn sync(&self, epoch: u32) -> bool {
        let world = &*self.world;
        if world.flaw != Some(Flaw::EpochReadLate) && self.epoch() != epoch {
            return false;
        }
        let epoch = self.epoch();
        let mut position = self.written();
        if world.flaw == Some(Flaw::ToldBeforeSync) {
            world.durable.fetch_max(position, SeqCst);
        }
        if !self.fdatasync() {
            self.poison();
            return false;
        }
        if self.epoch() != epoch {
            return false;
        }
        if world.flaw == Some(Flaw::CoveredReadLate) {
            position = self.written();
        }
        if world.durable.fetch_max(position, SeqCst) < position {
            let synced = world.synced.load(SeqCst);
            world.covered.store(world.written.load(SeqCst).max(position).saturating_sub(synced), SeqCst);
            world.synced.store(position, SeqCst);
        }
        true
    }

    fn end_turn(&self, turn: Turn) {
        if self.world.flaw == Some(Flaw::WokenTooEarly) {
            self.world.bump_and_wake();
            yield_now();
        }
        if turn.shared {
            self.world.sync_lock.store(false, SeqCst);
        }
        if turn.own {
            self.turn.store(false, SeqCst);
        }
        if !matches!(self.world.flaw, Some(Flaw::NoWake | Flaw::WokenTooEarly)) {
            self.world.bump_and_wake();
        }
    }

    fn wait(&self, seen: u32) -> bool {
        if self.world.impatient && shuttle::rand::thread_rng().gen_ratio(1, 4) {
            *self.is_late.lock().unwrap() = true;
            yield_now();
            return false;
        }
        self.world.wait(seen);
        true
    }

    fn gather(&self, all_here: impl FnMut() -> bool) {
        self.patience.gather(all_here, Duration::default);
    }
}
