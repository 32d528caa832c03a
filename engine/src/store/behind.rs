//! The threads behind a handle.
//!
//! ```text
//! commit placed    -> Settler: one sync for all that wait -> acknowledged
//! segment complete -> Upkeep: places, then seals, in seconds without commits or when many segments wait
//! ```
//!
//! The settler makes placed commits durable. The thread for upkeep starts when this handle's commits complete a segment, and ends when
//! nothing is left to seal. It completes files of places, then seals one segment at a time. It never holds up
//! an append: a complete segment belongs to the sealer alone, and dropping the handle stops the thread between two bodies.
//!
//! A short-lived process never gets that far. If many segments wait, the process seals one of them as it ends, within a time budget.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::ids::Seq;
use crate::locks::steady;
use crate::log::{Log, PlacedCommit, SealOutcome};

use super::acknowledge::{Acknowledge, SettleFailure, kept_elsewhere};

/// Most commits that may wait for the settler.
const WAITING_COUNT_MAX: usize = 1024;
/// How long a commit without a waiting thread may wait for further ones, so that one sync serves them all.
const OS_GATHER: Duration = Duration::from_millis(5);
/// How long the settler sleeps while it gathers. A wake by each commit would cost more than the commit.
const OS_NAP: Duration = Duration::from_millis(1);

/// When an append is acknowledged.
///
/// ```
/// use acpdb_engine::{Durability, Entry, Role, Store, StreamInfo};
///
/// # let folder = tempfile::tempdir()?;
/// let store = Store::builder(folder.path().join("store")).durability(Durability::Os).open()?;
/// let session = store.session(StreamInfo::session("my-agent", "run-1"));
/// let _ = session.append([Entry::message("m1", Role::User, "hello")])?; // survives this process
/// store.sync()?; // survives the machine
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Once the append is on the disk: an acknowledged append survives a crash of the machine. One flush a commit, shared
    /// with all commits that come at the same time.
    #[default]
    Sync,
    /// Once the operating system has the append: an acknowledged append survives the death of the process. A crash of the
    /// machine, or a sync that fails, may lose the newest commits, each as a whole; after the latter the handle is poisoned.
    /// Reads, views and other processes see an append only after the next sync, which follows within milliseconds, or at once with [`Store::sync`]. Commands (discard, restore, tasks) and served
    /// contexts wait for the disk all the same, since they answer from durable events.
    Os,
}

/// The work after each sync.
pub(super) type AfterSync = Box<dyn Fn() + Send>;

/// The outcome of a commit, and the task that waits for it.
#[derive(Default)]
pub(super) struct CommitProgress(Mutex<SettledEnd>);

#[derive(Default)]
pub(super) struct SettledEnd {
    pub(super) outcome: Option<Result<(), SettleFailure>>,
    pub(super) waker: Option<Waker>,
}

impl CommitProgress {
    pub(super) fn known(&self) -> std::sync::MutexGuard<'_, SettledEnd> {
        steady(&self.0)
    }

    fn tell(&self, outcome: Result<(), SettleFailure>) {
        let waker = {
            let mut known = self.known();
            known.outcome = Some(outcome);
            known.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The outcome, if there is one.
    pub(super) fn outcome(&self) -> Option<Result<(), SettleFailure>> {
        self.known().outcome.clone()
    }
}

/// A placed commit that is handed to the settler.
pub(super) struct SettleJob {
    pub(super) placed: PlacedCommit,
    /// The ticket that is told of the outcome. `None`: no thread waits, so the commit may wait for further ones.
    pub(super) progress: Option<Arc<CommitProgress>>,
}

/// The thread that settles placed commits.
#[derive(Default)]
pub(super) struct Settler(Mutex<Option<(SyncSender<SettleJob>, JoinHandle<()>)>>);

impl Settler {
    /// Hands over a job; `false`: the job was not taken, and the caller has to settle it.
    ///
    /// `behind` gives the work after each sync; it is called when the thread starts.
    pub(super) fn hand_over(
        &self,
        log: &Arc<Log>,
        elsewhere: Option<&Arc<dyn Acknowledge>>,
        behind: impl FnOnce() -> AfterSync,
        job: SettleJob,
    ) -> bool {
        let mut running = steady(&self.0);
        if running.is_none() {
            let (sender, receiver) = sync_channel(WAITING_COUNT_MAX);
            let (log, elsewhere, after_sync) = (Arc::clone(log), elsewhere.cloned(), behind());
            let thread = std::thread::Builder::new().name("acpdb-settle".to_owned());
            let Ok(thread) = thread.spawn(move || {
                let settle = |placed: &PlacedCommit| {
                    log.settle(placed)?;
                    kept_elsewhere(elsewhere.as_deref(), placed)
                };
                settle_all(&settle, &*after_sync, &receiver);
            }) else {
                return false;
            };
            *running = Some((sender, thread));
        }
        running.as_ref().is_some_and(|(sender, _)| sender.try_send(job).is_ok())
    }

    /// Settles all jobs that were handed over, and ends the thread.
    pub(super) fn finish(&self) {
        let running = steady(&self.0).take();
        if let Some((sender, thread)) = running {
            drop(sender);
            // A task woken by the settler may have dropped the last handle in the settler's own thread.
            if thread.thread().id() != std::thread::current().id() {
                // If the thread panicked, its jobs are reported as failed.
                let _ = thread.join();
            }
        }
    }
}

fn settle_all(
    settle: &dyn Fn(&PlacedCommit) -> Result<(), SettleFailure>,
    after_sync: &dyn Fn(),
    jobs: &Receiver<SettleJob>,
) {
    while let Ok(first) = jobs.recv() {
        let began = Instant::now();
        let mut is_waited_for = first.progress.is_some();
        // Settling a later job settles the earlier ones.
        let mut group = vec![first];
        while group.len() <= WAITING_COUNT_MAX {
            match jobs.try_recv() {
                Ok(job) => {
                    is_waited_for |= job.progress.is_some();
                    group.push(job);
                }
                Err(TryRecvError::Empty) if !is_waited_for && began.elapsed() < OS_GATHER => {
                    std::thread::sleep(OS_NAP);
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        let last = group.iter().map(|job| &job.placed).reduce(|last, next| last.later(next));
        let all = last.map_or(Ok(()), settle);
        for job in &group {
            if let Some(progress) = &job.progress {
                // A failed sync says nothing about commits that were durable before it.
                progress.tell(match &all {
                    Err(SettleFailure::Log(_)) => settle(&job.placed),
                    all => all.clone(),
                });
            }
        }
        after_sync();
    }
}

/// How often the thread looks for work. A store without commits for that long is idle.
const TICK: Duration = Duration::from_secs(1);
/// If so many cold segments wait, one is sealed beside appends.
const BACKLOG_BUSY: usize = 16;
/// If more cold segments wait, a process seals one of them as it ends.
const BACKLOG_LEAVING: usize = 8;
/// How long that seal may take.
const LEAVING_BUDGET: Duration = Duration::from_secs(2);

/// The background work of a handle.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    enabled: bool,
    thread: Mutex<Option<JoinHandle<()>>>,
    shared: Arc<SettlerState>,
}

#[derive(Debug, Default)]
struct SettlerState {
    stopped: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Upkeep {
    pub(super) fn new(enabled: bool) -> Self {
        Self { enabled, ..Self::default() }
    }

    /// Starts the thread, if upkeep is enabled. Called after a commit that went to another segment than the commit before it.
    pub(super) fn begin(&self, log: &Arc<Log>) {
        if !self.enabled {
            return;
        }
        let mut thread = steady(&self.thread);
        if thread.as_ref().is_some_and(|thread| !thread.is_finished())
            || self.shared.stopped.load(Ordering::Relaxed)
        {
            return;
        }
        let (log, shared) = (Arc::clone(log), Arc::clone(&self.shared));
        // Without a thread the segments wait for another process.
        *thread = std::thread::Builder::new()
            .name("acpdb-seal".to_owned())
            .spawn(move || seal_all(&log, &shared))
            .ok();
    }

    /// Ends the thread; a process that leaves many segments behind seals one. `segment`: the last one that this handle appended to; 0:
    /// none.
    pub(super) fn finish(&self, log: &Log, segment: u32) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        {
            let _held = steady(&self.shared.lock);
            self.shared.changed.notify_all();
        }
        let thread = steady(&self.thread).take();
        if let Some(thread) = thread {
            // The thread stops between two bodies; if it panicked, the old file is still in place.
            let _ = thread.join();
            return;
        }
        if !self.enabled || segment as usize <= BACKLOG_LEAVING {
            return;
        }
        let Ok(waiting) = log.cold() else { return };
        if let Some(first) = waiting.first().filter(|_| waiting.len() > BACKLOG_LEAVING) {
            let began = Instant::now();
            // A segment that is not sealed now is sealed later.
            let _ = log.seal(*first, &|| began.elapsed() > LEAVING_BUDGET);
        }
    }
}

fn seal_all(log: &Log, shared: &SettlerState) {
    let stopped = || shared.stopped.load(Ordering::Relaxed);
    let mut refused: BTreeSet<u32> = BTreeSet::new();
    let mut seen = Seq::ZERO;
    // They are made again when a reader asks for them.
    let _ = log.complete_all_places(BACKLOG_BUSY);
    loop {
        {
            let held = steady(&shared.lock);
            if stopped() {
                return;
            }
            // The thread looks again after a timeout as after a wake.
            let _ = shared.changed.wait_timeout(held, TICK);
        }
        if stopped() {
            return;
        }
        let Ok(mut waiting) = log.cold() else { return };
        waiting.retain(|number| !refused.contains(number));
        let Some(number) = waiting.first().copied() else { return };
        let head = log.head().seq;
        let idle = std::mem::replace(&mut seen, head) == head;
        if !idle && waiting.len() < BACKLOG_BUSY {
            continue;
        }
        match log.seal(number, &stopped) {
            Ok(SealOutcome::Sealed(_) | SealOutcome::Busy) => {}
            Ok(SealOutcome::Stopped) => return,
            // Damaged, or no room: `acpdb doctor seal` says what is wrong.
            Ok(SealOutcome::NotNeeded) | Err(_) => {
                refused.insert(number);
            }
        }
    }
}
