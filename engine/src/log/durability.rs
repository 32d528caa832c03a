//! Waiting until a commit is durable. One thread syncs for all threads and processes that wait.
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
//! disk. The code is written over a small trait, so that a model checker runs it with its own threads and its own disk.

use super::primitives::{Condvar, Mutex, MutexGuard, PoisonError};

/// The state of the log, as the page has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    /// Everything before this position is durable.
    pub(crate) durable: u64,
    /// Everything before this position is written.
    pub(crate) written: u64,
    /// Rises when a sync has failed.
    pub(crate) epoch: u32,
    /// How many events are written and not durable.
    pub(crate) waiting: u64,
    /// How many there were when the last sync ended, with those that it covered.
    pub(crate) expected: u64,
}

/// The outcome of one attempt to take the sync lock.
pub(crate) enum Attempt<T> {
    Locked(T),
    /// Another process holds the lock.
    HeldElsewhere,
    /// There is no lock here: every process syncs for itself.
    NoLock,
}

/// How a wait for durability ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome<F> {
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
    fn state(&self, page: &Self::Page) -> Option<State>;
    /// The failure to report after a sync failed in another process.
    fn failed_elsewhere(&self) -> Self::Failure;
    /// Tries to take the sync lock. One thread of a process at a time calls this.
    fn try_lock(&self) -> Attempt<Self::Lock>;
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
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The epoch at the time of the write.
    pub(crate) epoch: u32,
}

struct Known<F> {
    /// A thread of this process holds the in-process lock.
    is_held: bool,
    asleep: usize,
    /// Everything before this position is durable, in the epoch of this handle.
    durable: u64,
    failed: Option<F>,
}

/// The in-process sync lock, and what the threads of this process know about durability.
pub(crate) struct SyncWait<F>(Mutex<Known<F>>, Condvar);

impl<F> Default for SyncWait<F> {
    fn default() -> Self {
        Self(Mutex::new(Known { is_held: false, asleep: 0, durable: 0, failed: None }), Condvar::new())
    }
}

/// The in-process sync lock; released when dropped.
pub(crate) struct ProcessLock<'a, F: Copy>(&'a SyncWait<F>);

impl<F: Copy> Drop for ProcessLock<'_, F> {
    fn drop(&mut self) {
        let mut known = self.0.locked();
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
    /// Locks, also after another thread panicked with the lock held: each change is a single assignment, so the data is
    /// consistent.
    fn locked(&self) -> MutexGuard<'_, Known<F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The in-process lock, if no other thread holds it.
    pub(crate) fn try_lock(&self) -> Option<ProcessLock<'_, F>> {
        let mut known = self.locked();
        let is_free = !std::mem::replace(&mut known.is_held, true);
        // Made only if the lock was free: dropping a `ProcessLock` takes the mutex that is held here.
        is_free.then(|| ProcessLock(self))
    }

    /// Waits until `stretch` is durable, or until a failure makes its state unknown.
    pub(crate) fn settle<S: SyncOps<Failure = F>>(&self, ops: &S, stretch: Stretch) -> Outcome<F> {
        let mut known = self.locked();
        let lock = loop {
            if known.durable >= stretch.end {
                return Outcome::Durable(known.durable);
            }
            if let Some(failure) = known.failed {
                return Outcome::Failed(failure);
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
        let mut known = self.locked();
        match outcome {
            Outcome::Durable(durable) => known.durable = known.durable.max(durable),
            Outcome::Failed(failure) => known.failed = Some(failure),
            Outcome::PageLost => {}
        }
        drop(known);
        drop(lock);
        outcome
    }
}

/// The outcome for a stretch, if the page's state decides it.
fn verdict<S: SyncOps>(ops: &S, state: Option<State>, stretch: Stretch) -> Option<Outcome<S::Failure>> {
    let state = state?;
    if state.epoch != stretch.epoch {
        return Some(Outcome::Failed(ops.failed_elsewhere()));
    }
    (state.durable >= stretch.end).then_some(Outcome::Durable(state.durable))
}

/// Makes a stretch durable, or waits until another process has made it durable.
pub(crate) fn serve<S: SyncOps>(ops: &S, stretch: Stretch) -> Outcome<S::Failure> {
    let lock = loop {
        match ops.try_lock() {
            Attempt::Locked(lock) => break Some(lock),
            Attempt::NoLock => break None,
            Attempt::HeldElsewhere => {}
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
        return Outcome::PageLost;
    }
    match ops.sync(lock.as_ref(), &page) {
        Ok(durable) if durable >= stretch.end => Outcome::Durable(durable),
        // The page has less than this process wrote: it is not the page from before.
        Ok(_) => Outcome::PageLost,
        Err(failure) => Outcome::Failed(failure),
    }
}
