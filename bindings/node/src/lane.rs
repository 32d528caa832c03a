//! The order of acts that record: they are done in the order of the calls, on any threads of the pool.
//!
//! ```text
//! call -> queue (main thread) ... a thread of the pool takes its turn -> does all that is queued, in order -> the next
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use acpdb_bindings::Fault;

use crate::job::caught;

/// Most works that one thread does in its turn, if fewer were queued before.
const WORKS_MAX: usize = 256;

/// The lane of one store.
#[derive(Default)]
pub(crate) struct Lane {
    queue: Mutex<VecDeque<Box<dyn FnOnce() + Send>>>,
    turn: Mutex<()>,
}

impl Lane {
    /// Queues `work`; the returned function waits for it and returns its result.
    pub(crate) fn queued<T: Send + 'static, W: FnOnce() -> Result<T, Fault> + Send + 'static>(
        self: &Arc<Self>,
        work: W,
    ) -> impl FnOnce() -> Result<T, Fault> + Send + use<T, W> {
        let slot = Arc::new(Mutex::new(None));
        let filled = Arc::clone(&slot);
        let work = Box::new(move || {
            let done = caught(work);
            *filled.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        });
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(work);
        let lane = Arc::clone(self);
        move || {
            lane.run();
            let done = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
            done.unwrap_or_else(|| Err(Fault::closed()))
        }
    }

    /// Does the queued work, in order. When it returns, all work that was queued before the call is done.
    pub(crate) fn run(&self) {
        let before = self.queue.lock().unwrap_or_else(PoisonError::into_inner).len();
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..before.max(WORKS_MAX) {
            let next = self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(work) = next else { break };
            work();
        }
        drop(turn);
    }
}
