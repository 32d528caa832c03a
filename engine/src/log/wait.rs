//! Seeing what other processes do: the next commit, files that were replaced.
//!
//! All by the tail page. Where processes share it as memory, looking is a few loads, and whoever waits for a commit sleeps
//! until a sync is done; where not, the page is read again at growing intervals.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::tail::{durable_shared, map};
use super::{Head, Log, LogError};
use crate::codec::word;
use crate::ids::{Position, Seq};
use crate::storage::SharedPage;

/// How long the first pause is, and the longest; doubled each time.
const PAUSE_MIN: Duration = Duration::from_micros(500);
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// How long to sleep on the page at a time: a process without shared memory wakes nobody.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// The low half of a word of the page.
pub(crate) fn low_half(word: u64) -> u32 {
    u32::try_from(word & 0xffff_ffff).unwrap_or(0)
}

impl Log {
    /// Waits until something past `after` is durable, at most `limit`. Returns the head either way.
    ///
    /// # Errors
    /// As [`Log::refresh`].
    pub fn wait_for_commit(&self, after: Seq, limit: Duration) -> Result<Head, LogError> {
        let start = self.clock.elapsed();
        let mut pause = PAUSE_MIN;
        loop {
            let page = self.shared_page();
            // Before the look at the head: a commit after that look changes it, and the wait ends at once.
            let seen = page.map(|page| low_half(page.load(word::WAKE)));
            let head = self.refresh()?;
            let left = limit.saturating_sub(self.clock.elapsed().saturating_sub(start));
            if head.seq > after || left.is_zero() {
                return Ok(head);
            }
            if let (Some(page), Some(seen)) = (page, seen) {
                page.wait(word::WAKE, seen, left.min(SLEEP_MAX));
            } else {
                self.clock.sleep(pause.min(left));
                pause = pause.saturating_mul(2).min(PAUSE_MAX);
            }
        }
    }

    /// Ends the waits of this store's followers, in all processes that share memory; they look again and go on.
    pub fn wake_followers(&self) {
        // A reader changes nothing, not even this word; its own followers look again before long.
        if let Some(page) = self.shared_page().filter(|_| !self.is_read_only()) {
            page.bump_and_wake(word::WAKE);
        }
    }

    /// The page, if it is shared memory here; for readers, too.
    pub(crate) fn shared_page(&self) -> Option<&dyn SharedPage> {
        match &self.tail {
            Some(tail) => tail.shared().map(|page| &**page),
            None => self.reader_page.get_or_init(|| map(&*self.storage)).as_deref(),
        }
    }

    /// The durable position, if it moved past `head`: one look at shared memory.
    pub(crate) fn durable_past(page: &dyn SharedPage, head: Position) -> Option<Position> {
        durable_shared(page).filter(|durable| *durable > head)
    }

    /// Lets go of files that were replaced, if any were since the last look.
    pub(crate) fn see_generation(&self, generation: u32) {
        if self.generation.swap(generation, Ordering::SeqCst) != generation {
            self.segments.forget();
        }
    }

    /// Tells all handles, of any process, that a complete segment was replaced, so that they let go of the old file, whose
    /// space is free only then. They may read on in it until their next look at the head: it says the same.
    pub(crate) fn generation_changed(&self) {
        if let Some(tail) = &self.tail {
            let _ = tail.raise_generation();
        }
    }
}
