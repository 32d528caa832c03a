//! A fold in memory: a world of some streams, and how far it goes.

use std::sync::{RwLock, RwLockReadGuard};

use crate::error::Error;
use crate::fold::World;
use crate::ids::{Position, Seq, StreamId};

/// A world of some streams, folded up to a watermark.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) world: World,
    /// Streams it folds; `None`: all.
    pub(super) streams: Option<Vec<StreamId>>,
    /// Whether it looks at the beginnings of all other sessions, which end what a session remembered for its own length.
    /// Only where something is: it costs a frame for each session of the store.
    pub(super) beginnings: bool,
    /// Sessions without the memory of their projects: for figures about items.
    pub(super) bare: bool,
    /// Damaged events were left out.
    pub(super) has_gaps: bool,
    pub(super) watermark: Seq,
    /// Of what was saved: where the log goes on behind it.
    pub(super) end: Option<Position>,
    /// Events that went into it, and how many of them a snapshot holds.
    pub(super) event_count: u64,
    pub(super) saved_count: u64,
}

/// Access to a fold, unless a panic left it half folded.
pub(super) fn whole(shared: &RwLock<Loaded>) -> Result<RwLockReadGuard<'_, Loaded>, Error> {
    shared.read().map_err(|_| half_folded())
}

/// The next call folds anew.
pub(super) fn half_folded() -> Error {
    Error::Busy { detail: "another thread panicked while it folded this session; ask again".to_owned() }
}

/// What an event takes in a fold, about.
const EVENT_BYTES: u64 = 300;

impl Loaded {
    /// What its events take in memory, about.
    pub(super) fn event_bytes(&self) -> u64 {
        self.event_count.saturating_mul(EVENT_BYTES)
    }
}
