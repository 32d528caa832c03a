//! The queue of a process's commits, and who writes and syncs them.
//!
//! ```text
//! submit -> queue -> nobody leads? lead : wait
//! lead:  gather -> write all that wait -> [ keep the lead, wait until it is durable ] -> answer all -> hand on the lead
//! ```
//!
//! There is no thread of its own and no timer: whoever finds no leader leads. A leader who waits for durability keeps the
//! lead so long, which makes the next group the larger. One who only wants a place in the log hands it on right after
//! the write, may take it from a leader who is only waiting, and leaves those of its group who want more to wait for
//! themselves.
//!
//! Generic over what a commit is and over the primitives (`super::primitives`), so that a model checker runs this very
//! code.

use super::primitives::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// A place in the log.
    Written,
    /// Durability.
    Durable,
}

/// What is done with a group.
pub(crate) trait Stages {
    type Request;
    type Placed;
    type Failure;

    /// Writes a group; an answer for each, in order.
    fn write(&self, group: Vec<Self::Request>) -> Vec<Result<Self::Placed, Self::Failure>>;
    /// Waits until what was placed, and all before it, is durable.
    fn settle(&self, placed: &Self::Placed) -> Result<(), Self::Failure>;
    /// Whether a place is beyond another.
    fn is_beyond(&self, placed: &Self::Placed, other: &Self::Placed) -> bool;
    /// The same failure once more.
    fn again(&self, failure: &Self::Failure) -> Self::Failure;
    /// Waits until all are here who are expected, not for long.
    fn gather(&self, all_here: impl FnMut() -> bool);
}

enum Turn<P, F> {
    Wait,
    Lead(u64),
    /// Written; durability is still to be waited for.
    Written(P),
    Done(Result<P, F>),
}

/// Whether the caller sleeps; a wake that nobody needs is a system call.
type Asleep = bool;

/// One caller's place in the queue.
struct Slot<P, F> {
    turn: Mutex<(Turn<P, F>, Asleep)>,
    changed: Condvar,
    until: Until,
}

impl<P, F> Slot<P, F> {
    fn tell(&self, turn: Turn<P, F>) {
        let asleep = {
            let mut told = locked(&self.turn);
            told.0 = turn;
            told.1
        };
        if asleep {
            self.changed.notify_one();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lead {
    Free,
    /// Somebody gathers or writes.
    Writing,
    /// Somebody has written, and waits for durability.
    Waiting,
}

type Queued<R, P, F> = (R, Arc<Slot<P, F>>);

struct Queue<R, P, F> {
    queued: Vec<Queued<R, P, F>>,
    lead: Lead,
    /// Whose lead it is: rises when it changes hands.
    holder: u64,
    /// How many callers the last group and those behind it were.
    expected: usize,
}

/// The queue.
pub(crate) struct Handoff<S: Stages>(Mutex<Queue<S::Request, S::Placed, S::Failure>>);

impl<S: Stages> Default for Handoff<S> {
    fn default() -> Self {
        Self(Mutex::new(Queue { queued: Vec::new(), lead: Lead::Free, holder: 0, expected: 0 }))
    }
}

/// A thread that panicked while holding a lock left consistent data: all changes here are single assignments.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Stages> Handoff<S> {
    /// Has `request` written, together with others, and returns when it is what the caller waits for.
    pub(crate) fn run(&self, stages: &S, request: S::Request, until: Until) -> Result<S::Placed, S::Failure> {
        let slot = Arc::new(Slot { turn: Mutex::new((Turn::Wait, false)), changed: Condvar::new(), until });
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
            let mut turn = locked(&slot.turn);
            let turn = loop {
                match std::mem::replace(&mut turn.0, Turn::Wait) {
                    Turn::Wait => {
                        turn.1 = true;
                        turn = slot.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
                        turn.1 = false;
                    }
                    other => break other,
                }
            };
            match turn {
                Turn::Lead(holder) => lead = Some(holder),
                Turn::Written(placed) => return stages.settle(&placed).map(|()| placed),
                Turn::Done(outcome) => return outcome,
                Turn::Wait => {}
            }
        }
    }

    /// Writes one group, which includes the caller's own request, and hands the lead on.
    fn lead(&self, stages: &S, holder: u64, until: Until) {
        stages.gather(|| {
            let queue = locked(&self.0);
            queue.queued.len() >= queue.expected
        });
        let group = std::mem::take(&mut locked(&self.0).queued);
        let size = group.len();
        let (requests, slots): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let mut carried = Vec::new();
        for (slot, answer) in slots.into_iter().zip(stages.write(requests)) {
            match answer {
                Ok(placed) if slot.until == Until::Durable => carried.push((slot, placed)),
                answer => slot.tell(Turn::Done(answer)),
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
        self.hand_on(holder, size);
        for (slot, placed) in carried {
            slot.tell(match &settled {
                None => Turn::Written(placed),
                Some(Ok(())) => Turn::Done(Ok(placed)),
                Some(Err(failure)) => Turn::Done(Err(stages.again(failure))),
            });
        }
    }

    /// Passes the lead to whoever waits first, unless it was taken meanwhile.
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
            next.tell(Turn::Lead(holder));
        }
    }
}

impl<R, P, F> Queue<R, P, F> {
    fn take_lead(&mut self) -> u64 {
        self.lead = Lead::Writing;
        self.holder = self.holder.wrapping_add(1);
        self.holder
    }
}
