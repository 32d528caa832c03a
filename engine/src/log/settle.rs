//! Waiting until a commit is durable: one syncs, for all processes and threads that wait.
//!
//! ```text
//! this process: known to be durable? acknowledge : another thread is at it? wait for it : be the one
//!   the one: my turn to sync? look, gather, sync, tell : look at the page -> durable? done : pause, again
//! ```
//!
//! Threads of one process wake each other. Processes cannot: what they share is a page of a file, so the one thread of
//! each that waits looks at it again and again, at distances that follow from how long a sync takes.
//!
//! Whatever is waited for, the epoch is compared after it: once a sync has failed nobody can know what became of bytes that
//! were written before. Written over a small trait, so that a model checker can run the same code with threads and a disk
//! of its own.

use super::primitives::{Condvar, Mutex, MutexGuard, PoisonError};

/// What the page says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    /// Everything before this is durable.
    pub(crate) durable: u64,
    /// Everything before this is written.
    pub(crate) written: u64,
    /// Rises when a sync has failed.
    pub(crate) epoch: u32,
    /// How many are written and wait.
    pub(crate) waiting: u64,
    /// How many did when the last sync ended, those included that it covered.
    pub(crate) expected: u64,
}

/// Whether there is a turn to be had.
pub(crate) enum Turn<T> {
    Mine(T),
    /// Another process has it.
    Taken,
    /// There are no turns here: everybody syncs.
    None,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome<F> {
    /// Everything before this is durable.
    Durable(u64),
    /// Nobody can know: for every thread of this process, for good.
    Failed(F),
    /// The page does not say anything any more; the log does.
    PageLost,
}

/// What all who wait for the log to become durable share.
pub(crate) trait Shore {
    /// The turn to sync among processes, given back when dropped.
    type Turn;
    /// What was read of the page.
    type Page;
    /// Why a sync did not make durable what it was to.
    type Failure: Copy;

    /// Reads the page.
    fn look(&self) -> Self::Page;
    /// What it says; `None`: nothing.
    fn state(&self, page: &Self::Page) -> Option<State>;
    /// A sync failed in another process.
    fn failed_elsewhere(&self) -> Self::Failure;
    /// The turn among processes. Only called by one thread of a process at a time.
    fn try_turn(&self) -> Turn<Self::Turn>;
    /// Syncs all that is written, and tells that all is durable which `page`, read before, says is written. Returns how
    /// far that is. If it fails, that was told. Without a turn, too: it costs a sync, and nothing else. Only called by one
    /// thread of a process at a time: of two syncs at once through one file, only one is told that writing failed.
    fn sync(&self, turn: Option<&Self::Turn>, page: &Self::Page) -> Result<u64, Self::Failure>;
    /// Lets some time pass. `false`: it has been far too long already.
    fn pause(&self) -> bool;
    /// Waits until all are here who are expected, not for long.
    fn gather(&self, all_here: impl FnMut() -> bool);
}

/// A stretch of the log that one write put there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The epoch when it was written.
    pub(crate) epoch: u32,
}

struct Known<F> {
    /// A thread of this process is at it.
    is_taken: bool,
    asleep: usize,
    /// What is durable, in the epoch of this handle.
    durable: u64,
    failed: Option<F>,
}

/// The turn within a process, and what its threads know.
pub(crate) struct Settling<F>(Mutex<Known<F>>, Condvar);

impl<F> Default for Settling<F> {
    fn default() -> Self {
        Self(Mutex::new(Known { is_taken: false, asleep: 0, durable: 0, failed: None }), Condvar::new())
    }
}

/// The turn within a process; given back when dropped.
pub(crate) struct OwnTurn<'a, F: Copy>(&'a Settling<F>);

impl<F: Copy> Drop for OwnTurn<'_, F> {
    fn drop(&mut self) {
        let mut known = self.0.locked();
        known.is_taken = false;
        let is_waited_for = known.asleep > 0;
        drop(known);
        // A wake that nobody needs is a system call.
        if is_waited_for {
            self.0.1.notify_all();
        }
    }
}

impl<F: Copy> Settling<F> {
    /// A thread that panicked while holding the lock left consistent data: all changes are single assignments.
    fn locked(&self) -> MutexGuard<'_, Known<F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn within this process, if no other thread has it.
    pub(crate) fn try_take(&self) -> Option<OwnTurn<'_, F>> {
        let mut known = self.locked();
        let is_free = !std::mem::replace(&mut known.is_taken, true);
        // Made only if it is free: dropping a turn gives it back, and takes the mutex that is held here.
        is_free.then(|| OwnTurn(self))
    }

    /// Waits until `stretch` is durable, or until nobody can know whether it is.
    pub(crate) fn settle<S: Shore<Failure = F>>(&self, shore: &S, stretch: Stretch) -> Outcome<F> {
        let mut known = self.locked();
        let turn = loop {
            if known.durable >= stretch.end {
                return Outcome::Durable(known.durable);
            }
            if let Some(failure) = known.failed {
                return Outcome::Failed(failure);
            }
            if !known.is_taken {
                known.is_taken = true;
                break OwnTurn(self);
            }
            known.asleep += 1;
            known = self.1.wait(known).unwrap_or_else(PoisonError::into_inner);
            known.asleep -= 1;
        };
        drop(known);
        let outcome = serve(shore, stretch);
        let mut known = self.locked();
        match outcome {
            Outcome::Durable(durable) => known.durable = known.durable.max(durable),
            Outcome::Failed(failure) => known.failed = Some(failure),
            Outcome::PageLost => {}
        }
        drop(known);
        drop(turn);
        outcome
    }
}

/// What a page says of a stretch, if it decides.
fn verdict<S: Shore>(shore: &S, state: Option<State>, stretch: Stretch) -> Option<Outcome<S::Failure>> {
    let state = state?;
    if state.epoch != stretch.epoch {
        return Some(Outcome::Failed(shore.failed_elsewhere()));
    }
    (state.durable >= stretch.end).then_some(Outcome::Durable(state.durable))
}

/// Makes a stretch durable, or waits until another process has.
pub(crate) fn serve<S: Shore>(shore: &S, stretch: Stretch) -> Outcome<S::Failure> {
    let turn = loop {
        match shore.try_turn() {
            Turn::Mine(turn) => break Some(turn),
            Turn::None => break None,
            Turn::Taken => {}
        }
        let page = shore.look();
        if let Some(outcome) = verdict(shore, shore.state(&page), stretch) {
            return outcome;
        }
        // Whoever has the turn may be a process that was stopped. Going without costs a sync and nothing else.
        if !shore.pause() {
            break None;
        }
    };
    // The one before may have covered this one.
    let mut page = shore.look();
    let mut state = shore.state(&page);
    if let Some(outcome) = verdict(shore, state, stretch) {
        return outcome;
    }
    let is_alone = state.is_some_and(|state| state.durable == stretch.start && state.written == stretch.end);
    // Without this those whom the last sync let go on and the others settle into two waves of half the size.
    if !is_alone {
        shore.gather(|| {
            page = shore.look();
            state = shore.state(&page);
            state.is_none_or(|state| state.waiting >= state.expected)
        });
        if let Some(outcome) = verdict(shore, state, stretch) {
            return outcome;
        }
    }
    if state.is_none() {
        return Outcome::PageLost;
    }
    match shore.sync(turn.as_ref(), &page) {
        Ok(durable) if durable >= stretch.end => Outcome::Durable(durable),
        // The page says less than this process wrote: it is not the page that it was.
        Ok(_) => Outcome::PageLost,
        Err(failure) => Outcome::Failed(failure),
    }
}
