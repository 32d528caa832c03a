//! Waiting for the next commit, of any process.

use std::time::{Duration, Instant};

use super::{Head, Log, LogError};
use crate::ids::Seq;

/// How long the first pause is, and the longest; doubled each time.
const PAUSE_MIN: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_millis(50);

impl Log {
    /// Waits until something past `after` is durable, at most `limit`. Returns the head either way.
    ///
    /// # Errors
    /// As [`Log::refresh`].
    pub fn wait_for_commit(&self, after: Seq, limit: Duration) -> Result<Head, LogError> {
        let started = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            let head = self.refresh()?;
            let left = limit.saturating_sub(started.elapsed());
            if head.seq > after || left.is_zero() {
                return Ok(head);
            }
            std::thread::sleep(pause.min(left));
            pause = pause.saturating_mul(2).min(PAUSE_MAX);
        }
    }
}
