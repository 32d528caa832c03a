//! The exchanges that are under way, and whether they still pass through acpdb's own work.
//!
//! ```text
//! exchange --begins--> under way --recorded, or not to be recorded--> over     the end of a run waits for these
//! a bug in the proxy's own work --> blind: from now on bytes go through, and nothing is recorded or changed
//! a request waited for the store at length --> those of the next minute wait a tenth of a second
//! ```

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use acpdb_engine::locks::steady;

use super::identity::RequestIdentity;

/// Sessions that are remembered by name.
const SEEN_COUNT_MAX: usize = 64;

/// A wait for the store that is a long one.
const LATE: Duration = Duration::from_secs(1);
/// The longest wait of a request, while the store was late a short while ago.
const SHORT_WAIT: Duration = Duration::from_millis(100);
/// How long that counts.
const MINUTE: Duration = Duration::from_secs(60);

/// The exchanges of one or several proxies of a process.
#[derive(Debug, Default)]
pub struct Flow {
    under_way: Mutex<u64>,
    ended: Condvar,
    count: AtomicU64,
    is_blind: AtomicBool,
    seen: Mutex<Vec<RequestIdentity>>,
    late_since: Mutex<Option<Instant>>,
}

/// An exchange under way; it is over when this is dropped.
#[derive(Debug)]
pub struct Passing(Arc<Flow>);

impl Drop for Passing {
    fn drop(&mut self) {
        let mut under_way = steady(&self.0.under_way);
        // It was counted when it began.
        *under_way = under_way.saturating_sub(1);
        self.0.ended.notify_all();
    }
}

impl Flow {
    /// An exchange begins.
    #[must_use]
    pub fn begin(self: &Arc<Self>) -> Passing {
        *steady(&self.under_way) += 1;
        self.count.fetch_add(1, Ordering::SeqCst);
        Passing(Arc::clone(self))
    }

    /// The exchanges so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Waits until no exchange is under way, at most so long. `false`: one still is.
    pub fn wait(&self, longest: Duration) -> bool {
        let until = Instant::now() + longest;
        let mut under_way = steady(&self.under_way);
        while *under_way > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let woken = self.ended.wait_timeout(under_way, left);
            under_way = match woken {
                Ok((under_way, _)) => under_way,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        true
    }

    /// Passes bytes on blindly from now on. `true`: it did not so far.
    pub fn go_blind(&self) -> bool {
        !self.is_blind.swap(true, Ordering::SeqCst)
    }

    /// Whether bytes are passed on blindly.
    pub fn is_blind(&self) -> bool {
        self.is_blind.load(Ordering::SeqCst)
    }

    /// The longest wait of a request that begins now: `longest`, unless the store was late within the last minute.
    pub fn patience(&self, longest: Duration, now: Instant) -> Duration {
        let late =
            steady(&self.late_since).is_some_and(|since| now.saturating_duration_since(since) < MINUTE);
        if late { SHORT_WAIT.min(longest) } else { longest }
    }

    /// Notes how long a request waited, and whether the store was written for it: then it was not late, however long the work took. A
    /// request that ended soon without the store says nothing of it. After a minute the store is waited for at length again.
    pub fn waited(&self, wait: Duration, was_had: bool, now: Instant) {
        let mut since = steady(&self.late_since);
        if was_had {
            *since = None;
        } else if wait >= LATE && since.is_none_or(|since| now.saturating_duration_since(since) >= MINUTE) {
            *since = Some(now);
        }
    }

    /// Notes the session of an exchange.
    pub fn saw(&self, identity: &RequestIdentity) {
        let mut seen = steady(&self.seen);
        if !seen.contains(identity) && seen.len() < SEEN_COUNT_MAX {
            seen.push(identity.clone());
        }
    }

    /// The sessions of all exchanges so far, in the order in which they were first seen.
    pub fn seen(&self) -> Vec<RequestIdentity> {
        steady(&self.seen).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Behind a store that another program held, each request of a task took three seconds longer.
    #[test]
    fn requests_do_not_wait_again_for_a_store_that_was_late() {
        let (flow, long) = (Flow::default(), Duration::from_secs(3));
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(flow.patience(long, at(0)), long);
        flow.waited(Duration::from_millis(20), true, at(0));
        assert_eq!(flow.patience(long, at(0)), long);
        flow.waited(long, false, at(3));
        assert_eq!(flow.patience(long, at(4)), SHORT_WAIT);
        // Those that follow do not make the minute longer.
        flow.waited(SHORT_WAIT, false, at(50));
        assert_eq!((flow.patience(long, at(62)), flow.patience(long, at(63))), (SHORT_WAIT, long));
        flow.waited(long, false, at(64));
        flow.waited(Duration::from_millis(20), true, at(65));
        assert_eq!(flow.patience(long, at(66)), long);
    }

    /// A request that was pruned slowly made the next ones go on as they were; one that the store has no part in, such as one without tools,
    /// made them wait at length again.
    #[test]
    fn only_the_store_itself_says_that_it_is_late() {
        let (long, soon) = (Duration::from_secs(3), Duration::from_millis(1));
        for (is_late, wait, was_had, expected) in [
            (false, LATE, true, false),
            (false, long, true, false),
            (false, soon, false, false),
            (false, LATE, false, true),
            (true, soon, false, true),
            (true, SHORT_WAIT, false, true),
            (true, soon, true, false),
            (true, long, true, false),
        ] {
            let (flow, now) = (Flow::default(), Instant::now());
            if is_late {
                flow.waited(long, false, now);
            }
            flow.waited(wait, was_had, now);
            assert_eq!(flow.patience(long, now) < long, expected, "{is_late} {wait:?} {was_had}");
        }
    }

    #[test]
    fn the_end_waits_for_exchanges_under_way_and_not_for_ever() {
        let flow = Arc::new(Flow::default());
        assert!(flow.wait(Duration::ZERO), "nothing is under way");
        let (one, other) = (flow.begin(), flow.begin());
        assert!(!flow.wait(Duration::ZERO), "two are");
        drop(one);
        let ending = std::thread::spawn(move || drop(other));
        assert!(flow.wait(Duration::from_secs(60)));
        ending.join().unwrap();
        assert_eq!((flow.count(), flow.go_blind(), flow.go_blind(), flow.is_blind()), (2, true, false, true));
    }
}
