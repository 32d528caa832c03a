//! How long whoever leads waits for others to join.
//!
//! ```text
//! all here?  no: yield, a few times  ->  still no: yield for a share of a sync's time  ->  go without
//! ```
//!
//! Those whom a sync has just woken want to commit again, and whoever leads next is faster than they are: alone it would take
//! half of them along, and all would wait for two syncs from then on. So it waits for as many as there were; never longer
//! than the sync takes that is saved, nor than threads take to wake up. If they do not come, the next wait is half as long.
//! A single caller is as many as there were, and waits for nobody.
//!
//! No timer, no sleep: yielding lets run those who are waited for. Generic, so that a model checker runs this very code.

use std::time::Duration;

use super::primitives::{AtomicU32, AtomicU64, Ordering, yield_now};

/// How often others are let run without a look at the clock.
const YIELD_COUNT_MIN: usize = 8;
/// The same in all, for clocks that stand still.
const YIELD_COUNT_MAX: usize = 1000;
/// The longest wait: by then threads that were woken run, if they get a processor at all.
const WAIT_MAX: Duration = Duration::from_micros(100);
/// So often a wait that was for nothing halves the next.
const HALVING_COUNT_MAX: u32 = 6;
/// After so many in a row it is tried again: others may have come since.
const VAIN_COUNT_MAX: u32 = 64;

/// What is known about waiting for others.
#[derive(Default)]
pub(crate) struct Patience {
    /// How long the last sync took, in nanoseconds.
    sync_time: AtomicU64,
    /// Waits for nothing, in a row.
    vain: AtomicU32,
}

impl Patience {
    /// A sync took so long.
    pub(crate) fn synced(&self, time: Duration) {
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

    /// Waits until all are here, or long enough. `elapsed`: the time since some fixed moment.
    pub(crate) fn gather(&self, mut all_here: impl FnMut() -> bool, elapsed: impl Fn() -> Duration) {
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
            if elapsed().saturating_sub(start) >= limit {
                break;
            }
            yield_now();
        }
        let vain = self.vain.load(Ordering::Relaxed);
        self.vain.store((vain + 1) % VAIN_COUNT_MAX, Ordering::Relaxed);
    }
}
