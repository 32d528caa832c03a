//! The queue of a process's commits, and the wait until one is durable.
//!
//! One caller at a time leads: it writes the queued commits as a group.
//!
//! ```text
//! submit -> queue -> no leader? lead : wait
//! lead:  wait for others -> write the group -> [ keep the lead until the group is durable ] -> answer all -> hand on the lead
//! wait:  all here?  no: yield, a few times  ->  still no: yield for a share of a sync's time  ->  go on without them
//! ```
//!
//! The queue has no thread and no timer: a caller that finds no leader leads. A leader that waits for durability keeps the
//! lead meanwhile; the next group grows. A leader that only needs a place in the log hands the lead on right after the write.
//! Such a caller may also take the lead from a leader that waits for durability. Members of its group that need durability wait
//! for it in their own threads.
//!
//! A sync wakes its callers, and most of them commit again. The next leader is faster than they are: without a delay it would
//! take half of them along, and from then on every caller would wait for two syncs. So a leader waits until as many callers are
//! here as were in the last group. The wait is at most half the time of a sync, and at most the time that threads take to wake.
//! After a wait in vain the next one is half as long. A single caller waits for no other. There is no sleep: yielding runs the
//! threads that the leader waits for.
//!
//! # The wait for durability
//!
//! One thread syncs for all threads and processes that wait.
//!
//! ```text
//! thread:   known to be durable? acknowledge : another thread syncs? wait for it : take the in-process lock, then
//! process:  try the sync lock -> read the page, wait for others, sync, publish   : held elsewhere? read the page:
//!                                                                                  durable? done : pause, try again
//! ```
//!
//! Threads of one process wake each other. Processes cannot: they share a page of a file. So one thread of each process reads the
//! page again and again; the pauses follow from how long a sync takes.
//!
//! After each wait the epoch is compared: once a sync has failed, the kernel cannot say which of the written bytes are on the
//! disk.
//!
//! # Models
//!
//! The code is generic over commits, over the steps of a wait and over the primitives (`super::primitives`), so that a model checker
//! runs it with its own threads and its own disk.

use std::time::Duration;

use super::primitives::{
    Arc, AtomicU32, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, PoisonError, yield_now,
};

/// When a caller gets its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// A place in the log.
    Written,
    /// Durability.
    Durable,
}

/// The steps of a group, and the queue's questions about them.
pub(crate) trait Stages {
    type Request;
    type Placed;
    type Failure: Clone;

    /// Writes a group; an answer for each, in order.
    fn write(&self, group: Vec<Self::Request>) -> Vec<Result<Self::Placed, Self::Failure>>;
    /// Waits until a placed commit, and every commit before it, is durable.
    fn settle(&self, placed: &Self::Placed) -> Result<(), Self::Failure>;
    /// Whether `placed` ends after `other`.
    fn is_beyond(&self, placed: &Self::Placed, other: &Self::Placed) -> bool;
    /// The failure of a group whose leader panicked. The outcome of its commits is unknown.
    fn unwound(&self) -> Self::Failure;
    /// Waits a short time until `all_here` says that the expected callers are here.
    fn wait_for_others(&self, all_here: impl FnMut() -> bool);
}

enum QueueProgress<P, F> {
    Wait,
    Lead(u64),
    /// The commit is written; the caller waits for durability itself.
    Written(P),
    Done(Result<P, F>),
}

/// Whether the caller sleeps. Waking a caller that is awake would cost a system call.
type Asleep = bool;

/// One caller's place in the queue.
struct QueueSlot<P, F> {
    progress: Mutex<(QueueProgress<P, F>, Asleep)>,
    changed: Condvar,
    until: Until,
}

impl<P, F> QueueSlot<P, F> {
    fn tell(&self, progress: QueueProgress<P, F>) {
        let asleep = {
            let mut told = locked(&self.progress);
            told.0 = progress;
            told.1
        };
        if asleep {
            self.changed.notify_one();
        }
    }

    /// As [`QueueSlot::tell`], unless its caller has an answer.
    fn tell_unless_told(&self, progress: impl FnOnce() -> QueueProgress<P, F>) {
        let waits = matches!(locked(&self.progress).0, QueueProgress::Wait);
        if waits {
            self.tell(progress());
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    Free,
    /// The leader waits for others, or writes.
    Writing,
    /// The leader has written, and waits for durability.
    Waiting,
}

type Queued<R, P, F> = (R, Arc<QueueSlot<P, F>>);

struct Queue<R, P, F> {
    queued: Vec<Queued<R, P, F>>,
    lead: Lead,
    /// Number of the present lead. Rises whenever another caller takes the lead.
    holder: u64,
    /// How many callers the last group had, with the callers that queued behind it.
    expected: usize,
}

/// The queue.
pub(crate) struct CommitQueue<S: Stages>(Mutex<Queue<S::Request, S::Placed, S::Failure>>);

impl<S: Stages> Default for CommitQueue<S> {
    fn default() -> Self {
        Self(Mutex::new(Queue { queued: Vec::new(), lead: Lead::Free, holder: 0, expected: 0 }))
    }
}

/// Locks, also after another thread panicked with the lock held: each change here is a single assignment, so the data is
/// consistent.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Stages> CommitQueue<S> {
    /// Has `request` written in a group. Returns once the commit is written or durable, as `until` says.
    pub(crate) fn run(&self, stages: &S, request: S::Request, until: Until) -> Result<S::Placed, S::Failure> {
        let slot = Arc::new(QueueSlot {
            progress: Mutex::new((QueueProgress::Wait, false)),
            changed: Condvar::new(),
            until,
        });
        let mut lead = {
            let mut queue = locked(&self.0);
            queue.queued.push((request, Arc::clone(&slot)));
            let free = match queue.lead {
                Lead::Free => true,
                Lead::Waiting => until == Until::Written,
                Lead::Writing => false,
            };
            free.then(|| queue.take_lead())
        };
        loop {
            if let Some(holder) = lead.take() {
                self.lead(stages, holder, until);
            }
            let mut told = locked(&slot.progress);
            let progress = loop {
                match std::mem::replace(&mut told.0, QueueProgress::Wait) {
                    QueueProgress::Wait => {
                        told.1 = true;
                        told = slot.changed.wait(told).unwrap_or_else(PoisonError::into_inner);
                        told.1 = false;
                    }
                    other => break other,
                }
            };
            drop(told);
            match progress {
                QueueProgress::Lead(holder) => lead = Some(holder),
                QueueProgress::Written(placed) => return stages.settle(&placed).map(|()| placed),
                QueueProgress::Done(outcome) => return outcome,
                QueueProgress::Wait => {}
            }
        }
    }

    /// Writes one group, which includes the caller's own request, and passes the lead on.
    fn lead(&self, stages: &S, holder: u64, until: Until) {
        let mut led = Led { queue: self, stages, holder, slots: Vec::new(), ended: false };
        stages.wait_for_others(|| {
            let queue = locked(&self.0);
            queue.queued.len() >= queue.expected
        });
        let group = std::mem::take(&mut locked(&self.0).queued);
        let (requests, slots): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        led.slots = slots;
        let mut carried = Vec::new();
        for (slot, answer) in led.slots.iter().zip(stages.write(requests)) {
            match answer {
                Ok(placed) if slot.until == Until::Durable => carried.push((slot, placed)),
                answer => slot.tell(QueueProgress::Done(answer)),
            }
        }
        let last = carried.iter().map(|(_, placed)| placed);
        let last = last.reduce(|last, next| if stages.is_beyond(next, last) { next } else { last });
        let settled = match last {
            Some(last) if until == Until::Durable => {
                locked(&self.0).lead = Lead::Waiting;
                Some(stages.settle(last))
            }
            _ => None,
        };
        self.hand_on(holder, led.slots.len());
        for (slot, placed) in carried {
            slot.tell(match &settled {
                None => QueueProgress::Written(placed),
                Some(Ok(())) => QueueProgress::Done(Ok(placed)),
                Some(Err(failure)) => QueueProgress::Done(Err(failure.clone())),
            });
        }
        led.ended = true;
    }

    /// Passes the lead to the first waiting caller, unless another caller has taken the lead meanwhile.
    fn hand_on(&self, holder: u64, size: usize) {
        let next = {
            let mut queue = locked(&self.0);
            if queue.holder != holder {
                return;
            }
            let behind = queue.queued.len();
            queue.expected = if size <= 1 && behind == 0 { 0 } else { size.saturating_add(behind) };
            let next = queue.queued.first().map(|(_, slot)| Arc::clone(slot));
            if next.is_none() {
                queue.lead = Lead::Free;
            }
            next.map(|next| (next, queue.take_lead()))
        };
        if let Some((next, holder)) = next {
            next.tell(QueueProgress::Lead(holder));
        }
    }
}

/// A group that is being written. If its leader panics, the members get a failure and the next caller the lead: without that they
/// would wait for ever.
struct Led<'a, S: Stages> {
    queue: &'a CommitQueue<S>,
    stages: &'a S,
    holder: u64,
    slots: Vec<Arc<QueueSlot<S::Placed, S::Failure>>>,
    ended: bool,
}

impl<S: Stages> Drop for Led<'_, S> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        for slot in &self.slots {
            slot.tell_unless_told(|| QueueProgress::Done(Err(self.stages.unwound())));
        }
        self.queue.hand_on(self.holder, self.slots.len());
    }
}

impl<R, P, F> Queue<R, P, F> {
    fn take_lead(&mut self) -> u64 {
        self.lead = Lead::Writing;
        self.holder = self.holder.wrapping_add(1);
        self.holder
    }
}

/// How often a leader yields before it reads the clock.
const YIELD_COUNT_MIN: usize = 8;
/// How often a leader yields at most: the limit for clocks that stand still.
const YIELD_COUNT_MAX: usize = 1000;
/// The longest wait. A thread that was woken runs by then, if it gets a processor at all.
const WAIT_MAX: Duration = Duration::from_micros(100);
/// How many waits in vain halve the next wait.
const HALVING_COUNT_MAX: u32 = 6;
/// After so many waits in vain the count begins anew: more callers may have come since.
const VAIN_COUNT_MAX: u32 = 64;

/// The time of a sync, and whether waiting was of use.
#[derive(Default)]
pub(crate) struct CommitDelay {
    /// How long the last sync took, in nanoseconds.
    sync_time: AtomicU64,
    /// Waits in vain, in a row.
    vain: AtomicU32,
}

impl CommitDelay {
    /// Records how long a sync took.
    pub(crate) fn synced(&self, time: Duration) {
        // A sync of more than 584 years is as long as the longest.
        self.sync_time.store(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long the last sync took.
    pub(crate) fn sync_time(&self) -> Duration {
        Duration::from_nanos(self.sync_time.load(Ordering::Relaxed))
    }

    fn limit(&self) -> Duration {
        let half = self.sync_time() / 2;
        let vain = self.vain.load(Ordering::Relaxed);
        half.min(WAIT_MAX) / (1 << vain.min(HALVING_COUNT_MAX))
    }

    /// Waits until `all_here` says so, or until the limit. `elapsed` is the time since some fixed moment.
    pub(crate) fn wait(&self, mut all_here: impl FnMut() -> bool, elapsed: impl Fn() -> Duration) {
        for _ in 0..YIELD_COUNT_MIN {
            if all_here() {
                return;
            }
            yield_now();
        }
        let (start, limit) = (elapsed(), self.limit());
        for _ in YIELD_COUNT_MIN..YIELD_COUNT_MAX {
            if all_here() {
                self.vain.store(0, Ordering::Relaxed);
                return;
            }
            // If the clock went back, no time has passed.
            if elapsed().saturating_sub(start) >= limit {
                break;
            }
            yield_now();
        }
        let vain = self.vain.load(Ordering::Relaxed);
        self.vain.store((vain + 1) % VAIN_COUNT_MAX, Ordering::Relaxed);
    }
}

// --- the wait for durability -----------------------------------------------------------------------------------------------

/// The state of the log, as the page has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogState {
    /// Everything before this position is durable.
    pub(crate) durable: u64,
    /// Everything before this position is written.
    pub(crate) written: u64,
    /// Rises when a sync has failed.
    pub(crate) epoch: u32,
    /// How many events are written and not durable.
    pub(crate) waiting: u64,
    /// How many events waited when the last sync ended, with the events that the sync covered.
    pub(crate) expected: u64,
}

/// The outcome of one attempt to take the sync lock.
pub(crate) enum LockAttempt<T> {
    Locked(T),
    /// Another process holds the lock.
    HeldElsewhere,
    /// There is no lock here: every process syncs for itself.
    NoLock,
}

/// How a wait for durability ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitOutcome<F> {
    /// Everything before this position is durable.
    Durable(u64),
    /// Nothing is known about the written bytes: for every thread of this process, for good.
    Failed(F),
    /// The page is no longer readable; the caller must look into the log.
    PageLost,
}

/// The steps of a wait for durability: the engine's over files, a model checker's over its own disk.
pub(crate) trait SyncOps {
    /// The sync lock between processes; released when dropped.
    type Lock;
    /// A page as it was read.
    type Page;
    /// Why a sync failed.
    type Failure: Copy;

    /// Reads the page.
    fn look(&self) -> Self::Page;
    /// The state that a page holds; `None` if it holds none.
    fn state(&self, page: &Self::Page) -> Option<LogState>;
    /// The failure to report after a sync failed in another process.
    fn failed_elsewhere(&self) -> Self::Failure;
    /// Tries to take the sync lock. One thread of a process at a time calls this.
    fn try_lock(&self) -> LockAttempt<Self::Lock>;
    /// Syncs the segment and publishes as durable everything that `page`, read before the sync, has as written. Returns
    /// that position. Publishes a failure, too. Works without the lock: that costs one more sync and is safe. One thread of a
    /// process at a time calls this: of two syncs through one open file, the kernel reports a failed write to one only.
    fn sync(&self, lock: Option<&Self::Lock>, page: &Self::Page) -> Result<u64, Self::Failure>;
    /// Pauses. `false`: the wait has lasted too long, go on without the lock.
    fn pause(&self) -> bool;
    /// Waits a short time until `all_here` says that the expected callers are here.
    fn wait_for_others(&self, all_here: impl FnMut() -> bool);
}

/// The part of the log that one write filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The epoch at the time of the write.
    pub(crate) epoch: u32,
}

struct LogEnd<F> {
    /// A thread of this process holds the in-process lock.
    is_held: bool,
    asleep: usize,
    /// Everything before this position is durable, in the epoch of this handle.
    durable: u64,
    failed: Option<F>,
}

/// The in-process sync lock, and the durable position or failure that the threads of this process know of.
pub(crate) struct SyncWait<F>(Mutex<LogEnd<F>>, Condvar);

impl<F> Default for SyncWait<F> {
    fn default() -> Self {
        Self(Mutex::new(LogEnd { is_held: false, asleep: 0, durable: 0, failed: None }), Condvar::new())
    }
}

/// The in-process sync lock; released when dropped.
pub(crate) struct ProcessLock<'a, F: Copy>(&'a SyncWait<F>);

impl<F: Copy> Drop for ProcessLock<'_, F> {
    fn drop(&mut self) {
        let mut known = locked(&self.0.0);
        known.is_held = false;
        let has_waiters = known.asleep > 0;
        drop(known);
        // A wake without waiters would still cost a system call.
        if has_waiters {
            self.0.1.notify_all();
        }
    }
}

impl<F: Copy> SyncWait<F> {
    /// The in-process lock, if no other thread holds it.
    pub(crate) fn try_lock(&self) -> Option<ProcessLock<'_, F>> {
        let mut known = locked(&self.0);
        let is_free = !std::mem::replace(&mut known.is_held, true);
        // Made only if the lock was free: dropping a `ProcessLock` takes the mutex that is held here.
        is_free.then(|| ProcessLock(self))
    }

    /// Waits until `stretch` is durable, or until a failure makes its state unknown.
    pub(crate) fn settle<S: SyncOps<Failure = F>>(&self, ops: &S, stretch: WriteRange) -> WaitOutcome<F> {
        let mut known = locked(&self.0);
        let lock = loop {
            if known.durable >= stretch.end {
                return WaitOutcome::Durable(known.durable);
            }
            if let Some(failure) = known.failed {
                return WaitOutcome::Failed(failure);
            }
            if !known.is_held {
                known.is_held = true;
                break ProcessLock(self);
            }
            known.asleep += 1;
            known = self.1.wait(known).unwrap_or_else(PoisonError::into_inner);
            known.asleep -= 1;
        };
        drop(known);
        let outcome = serve(ops, stretch);
        let mut known = locked(&self.0);
        match outcome {
            WaitOutcome::Durable(durable) => known.durable = known.durable.max(durable),
            WaitOutcome::Failed(failure) => known.failed = Some(failure),
            WaitOutcome::PageLost => {}
        }
        drop(known);
        drop(lock);
        outcome
    }
}

/// The outcome for a stretch, if the page's state decides it.
fn verdict<S: SyncOps>(
    ops: &S,
    state: Option<LogState>,
    stretch: WriteRange,
) -> Option<WaitOutcome<S::Failure>> {
    let state = state?;
    if state.epoch != stretch.epoch {
        return Some(WaitOutcome::Failed(ops.failed_elsewhere()));
    }
    (state.durable >= stretch.end).then_some(WaitOutcome::Durable(state.durable))
}

/// Makes a stretch durable, or waits until another process has made it durable.
pub(crate) fn serve<S: SyncOps>(ops: &S, stretch: WriteRange) -> WaitOutcome<S::Failure> {
    let lock = loop {
        match ops.try_lock() {
            LockAttempt::Locked(lock) => break Some(lock),
            LockAttempt::NoLock => break None,
            LockAttempt::HeldElsewhere => {}
        }
        let page = ops.look();
        if let Some(outcome) = verdict(ops, ops.state(&page), stretch) {
            return outcome;
        }
        // The holder may be a stopped process. Going on without the lock costs one more sync and is safe.
        if !ops.pause() {
            break None;
        }
    };
    // The last sync may have covered this stretch.
    let mut page = ops.look();
    let mut state = ops.state(&page);
    if let Some(outcome) = verdict(ops, state, stretch) {
        return outcome;
    }
    let is_alone = state.is_some_and(|state| state.durable == stretch.start && state.written == stretch.end);
    // Without this wait, callers fall into two groups of half the size, each waiting for two syncs.
    if !is_alone {
        ops.wait_for_others(|| {
            page = ops.look();
            state = ops.state(&page);
            state.is_none_or(|state| state.waiting >= state.expected)
        });
        if let Some(outcome) = verdict(ops, state, stretch) {
            return outcome;
        }
    }
    if state.is_none() {
        return WaitOutcome::PageLost;
    }
    match ops.sync(lock.as_ref(), &page) {
        Ok(durable) if durable >= stretch.end => WaitOutcome::Durable(durable),
        // The page has less than this process wrote: it is not the page from before.
        Ok(_) => WaitOutcome::PageLost,
        Err(failure) => WaitOutcome::Failed(failure),
    }
}
