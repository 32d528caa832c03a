//! How a handle uses the index: whether it is open, and when it is tried again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::index::{Bypassed, Index, Indexer};

/// Pauses before an index that could not be opened is tried again: the first and the longest. Each pause is twice the one before.
pub(super) const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// The index as a handle uses it.
#[derive(Debug, Default)]
pub(super) struct IndexUse {
    /// Whether this handle uses an index.
    pub(super) enabled: bool,
    /// Whether the index is open for reading only; `opened`: since when, which limits how long other processes go without it.
    pub(super) is_reading: bool,
    pub(super) opened: Option<Instant>,
    pub(super) index: Option<Arc<Index>>,
    pub(super) indexer: Option<Indexer>,
    /// Why there is no index, in a line.
    pub(super) reason: Option<String>,
    /// When to try to own it again.
    pub(super) retry: Option<IndexRetry>,
    /// When a small store was last looked through for an index that another process made.
    pub(super) looked: Option<Instant>,
}

impl IndexUse {
    pub(super) fn new(enabled: bool, is_reading: bool) -> Self {
        Self { enabled, is_reading, ..Self::default() }
    }

    /// Whether it may be opened now.
    pub(super) fn may_open(&self) -> bool {
        let waits = self.retry.is_some_and(|retry| Instant::now() < retry.at);
        self.enabled && self.index.is_none() && !waits
    }

    /// Leaves the index alone for a while.
    pub(super) fn postpone(&mut self, why: String) {
        self.reason = Some(why);
        self.retry = Some(IndexRetry::after(self.retry));
    }

    pub(super) fn drop_index(&mut self, why: &Bypassed) {
        self.postpone(why.reason.clone());
        (self.opened, self.indexer, self.index) = (None, None, None);
    }
}

/// When an index is tried again.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexRetry {
    at: Instant,
    pause: Duration,
}

impl IndexRetry {
    fn after(last: Option<Self>) -> Self {
        let pause = last.map_or(RETRY_MIN, |last| last.pause.saturating_mul(2).min(RETRY_MAX));
        let now = Instant::now();
        Self { at: now.checked_add(pause).unwrap_or(now), pause }
    }
}
