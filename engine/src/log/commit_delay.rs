//! How long a leader waits for other callers before it writes or syncs a group.
//!
//! ```text
//! all here?  no: yield, a few times  ->  still no: yield for a share of a sync's time  ->  go on without them
//! ```
//!
//! A sync wakes its callers, and most of them commit again. The next leader is faster than they are: without a delay it would
//! take half of them along, and from then on every caller would wait for two syncs. So a leader waits until as many callers are
//! here as were in the last group. The wait is at most half the time of a sync, and at most the time that threads take to wake.
//! After a wait in vain the next one is half as long. A single caller waits for no other.
//!
//! There is no timer and no sleep: yielding runs the threads that the leader waits for. The code is generic, so that a model
//! checker runs it.

use std::time::Duration;

use super::primitives::{AtomicU32, AtomicU64, Ordering, yield_now};

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
            // A clock that went back has waited for no time.
            if elapsed().saturating_sub(start) >= limit {
                break;
            }
            yield_now();
        }
        let vain = self.vain.load(Ordering::Relaxed);
        self.vain.store((vain + 1) % VAIN_COUNT_MAX, Ordering::Relaxed);
    }
}
