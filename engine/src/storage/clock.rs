//! Time and randomness as values: all other modules ask one of these.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::ids::Micros;
use crate::locks::steady;

/// A source of time.
pub trait Clock: Send + Sync {
    /// Now, as the wall clock says. May jump either way.
    fn now(&self) -> Micros;
    /// Time since some fixed moment; never runs backwards.
    fn elapsed(&self) -> Duration;
    /// Time since `start`, a moment as [`Clock::elapsed`] gave it. None has passed if `start` is later: a simulated clock may say so.
    fn since(&self, start: Duration) -> Duration {
        // As the text above says.
        self.elapsed().saturating_sub(start)
    }
    /// Lets time pass.
    fn sleep(&self, time: Duration);
    /// As [`Clock::sleep`], but ends early if `bell` was rung since it was `seen`. May end early for no reason, or
    /// sleep on.
    fn sleep_until_rung(&self, time: Duration, bell: &Bell, seen: u64) {
        if bell.rung() == seen {
            self.sleep(time);
        }
    }
}

/// A signal that threads of one process wait for besides time.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl Bell {
    fn locked(&self) -> MutexGuard<'_, (u64, bool)> {
        steady(&self.rung)
    }

    /// How often it was rung.
    pub fn rung(&self) -> u64 {
        self.locked().0
    }

    /// Wakes all waiting threads.
    pub fn ring(&self) {
        let asleep = {
            let mut rung = self.locked();
            rung.0 = rung.0.wrapping_add(1);
            std::mem::take(&mut rung.1)
        };
        // A wake without waiters would still cost a system call.
        if asleep {
            self.changed.notify_all();
        }
    }
}

/// A source of random bytes.
pub trait Entropy: Send + Sync {
    /// Fills `bytes` with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]) -> std::io::Result<()>;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock that counts elapsed time from now on.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Micros {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
        let now = std::time::SystemTime::now();
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        match now.duration_since(std::time::UNIX_EPOCH) {
            Ok(after) => Micros(micros(after)),
            Err(before) => Micros(micros(before.duration()).saturating_neg()),
        }
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn sleep_until_rung(&self, time: Duration, bell: &Bell, seen: u64) {
        let mut rung = bell.locked();
        if rung.0 == seen {
            rung.1 = true;
            drop(bell.changed.wait_timeout(rung, time));
        }
    }
}

/// A clock that moves only when told, or by one microsecond each time it is read.
#[derive(Debug, Default)]
pub struct FixedClock {
    micros: Mutex<i64>,
    step: i64,
}

impl FixedClock {
    /// A clock that stands at `start` and moves on by `step` microseconds at each reading.
    pub fn new(start: Micros, step: i64) -> Self {
        Self { micros: Mutex::new(start.0), step }
    }

    /// Sets the clock, backwards too.
    pub fn set(&self, now: Micros) {
        *self.lock() = now.0;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, i64> {
        steady(&self.micros)
    }

    fn advance(&self, by: i64) -> i64 {
        let mut micros = self.lock();
        let now = *micros;
        *micros = now.saturating_add(by);
        now
    }
}

/// How long a thread that sleeps on a fixed clock stands still.
const REAL_PAUSE: Duration = Duration::from_micros(100);

impl Clock for FixedClock {
    fn now(&self) -> Micros {
        Micros(self.advance(self.step))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(u64::try_from(*self.lock()).unwrap_or(0))
    }

    fn sleep(&self, time: Duration) {
        self.advance(i64::try_from(time.as_micros()).unwrap_or(i64::MAX));
        // Another thread may hold the lock that is waited for, and takes real time to release it: seconds of this clock would pass at once.
        std::thread::sleep(REAL_PAUSE);
    }
}

/// The operating system's random bytes.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        getrandom::fill(bytes).map_err(|error| std::io::Error::other(error.to_string()))
    }
}

/// Bytes that follow from a seed: the same seed, the same bytes.
#[derive(Debug)]
pub struct FixedEntropy {
    state: Mutex<u64>,
}

impl FixedEntropy {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: Mutex::new(seed) }
    }
}

impl Entropy for FixedEntropy {
    fn fill(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        let mut state = steady(&self.state);
        for chunk in bytes.chunks_mut(8) {
            let word = next_random(&mut state).to_le_bytes();
            chunk.iter_mut().zip(word).for_each(|(byte, random)| *byte = random);
        }
        Ok(())
    }
}

/// One step of `SplitMix64` (Steele, Lea, Flood 2014): small, seedable, good enough for tests.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
