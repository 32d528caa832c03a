//! Seeing what other processes do: the next commit, files that were replaced.
//!
//! All by the tail page, which is read again at growing intervals. Commits of the same handle end a wait at once.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Head, Log, LogError};
use crate::ids::Seq;

/// How long the first pause is, and the longest; doubled each time.
const PAUSE_MIN: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_millis(50);

impl Log {
    /// Waits until something past `after` is durable, at most `limit`. Returns the head either way. Commits of this handle
    /// are seen at once, those of other processes a few milliseconds later, or up to 50 if none came for long.
    ///
    /// # Errors
    /// As [`Log::refresh`].
    pub fn wait_for_commit(&self, after: Seq, limit: Duration) -> Result<Head, LogError> {
        let start = self.clock.elapsed();
        let mut pause = PAUSE_MIN;
        loop {
            // Before the look at the head: a commit after that look rings, and the wait ends at once.
            let seen = self.bell.rung();
            let head = self.refresh()?;
            // Past the limit no time is left.
            let left = limit.saturating_sub(self.clock.since(start));
            if head.seq > after || left.is_zero() {
                return Ok(head);
            }
            self.clock.sleep_until_rung(pause.min(left), &self.bell, seen);
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }

    /// Lets go of files that were replaced, if any were since the last look.
    pub(crate) fn see_generation(&self, generation: u32) {
        if self.generation.swap(generation, Ordering::SeqCst) != generation {
            self.segments.forget();
            if let Some(keys) = self.segments.keys() {
                keys.forget();
            }
        }
    }

    /// The generation of files as it was last seen.
    pub(crate) fn generation(&self) -> u32 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Tells all handles, of any process, that a complete segment was replaced, so that they let go of the old file, whose
    /// space is free only then. They may read on in it until their next look at the head: it says the same.
    pub(crate) fn generation_changed(&self) {
        if let Some(tail) = &self.tail {
            // If this fails, other handles keep the old file, and its space, until they are opened again.
            let _ = tail.raise_generation();
        }
    }
}
