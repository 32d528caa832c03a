//! What a handle keeps of streams in memory: their folds, and what it knows of each to append to it.
//!
//! Both are held within a bound: the longest unused goes first.

use std::sync::{Arc, RwLock, RwLockReadGuard};

use rustc_hash::FxHashMap;

use crate::command::ingest_state::IngestState;
use crate::error::Error;
use crate::fold::World;
use crate::ids::{Position, Seq, StreamId};
use crate::log::Placed;
use crate::text::Signer;

/// What one of them costs beside its events.
const COST_BYTES: u64 = 4 << 10;

/// Values of streams, as many as fit. One that is in use outside stays, so the bound may be exceeded by what callers hold.
#[derive(Debug)]
pub(super) struct Bounded<V> {
    bytes_max: u64,
    bytes: u64,
    turn: u64,
    all: FxHashMap<StreamId, Kept<V>>,
}

#[derive(Debug)]
struct Kept<V> {
    value: Arc<V>,
    bytes: u64,
    used: u64,
}

impl<V> Bounded<V> {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, turn: 0, all: FxHashMap::default() }
    }

    /// The value of a stream, made if there is none. `is_usable` says whether the one that is there can be used on; if not, it is
    /// replaced.
    pub(super) fn of(
        &mut self,
        stream: StreamId,
        is_usable: impl FnOnce(&V) -> bool,
        make: impl FnOnce() -> V,
    ) -> Arc<V> {
        self.turn = self.turn.saturating_add(1);
        if let Some(kept) = self.all.get_mut(&stream)
            && is_usable(&kept.value)
        {
            kept.used = self.turn;
            return Arc::clone(&kept.value);
        }
        let value = Arc::new(make());
        let kept = Kept { value: Arc::clone(&value), bytes: COST_BYTES, used: self.turn };
        let before = self.all.insert(stream, kept);
        // What one takes off was put on when it was kept, here and below.
        self.bytes =
            self.bytes.saturating_add(COST_BYTES).saturating_sub(before.map_or(0, |kept| kept.bytes));
        value
    }

    /// Takes note of what the events in a value take.
    pub(super) fn weigh(&mut self, stream: StreamId, event_bytes: u64) {
        let Some(kept) = self.all.get_mut(&stream) else { return };
        let bytes = COST_BYTES.saturating_add(event_bytes);
        // As above.
        self.bytes = self.bytes.saturating_sub(kept.bytes).saturating_add(bytes);
        kept.bytes = bytes;
    }

    /// Takes values out, the longest unused first, if there are too many: a quarter more than has to go, so that it is done
    /// rarely. Those that are in use, or that may not leave, stay.
    pub(super) fn surplus(&mut self, may_leave: impl Fn(&V) -> bool) -> Vec<(StreamId, Arc<V>)> {
        if self.bytes <= self.bytes_max {
            return Vec::new();
        }
        let mut order: Vec<(u64, StreamId)> =
            self.all.iter().map(|(stream, kept)| (kept.used, *stream)).collect();
        order.sort_unstable();
        let goal = self.bytes_max / 4 * 3;
        let mut gone = Vec::new();
        for (_, stream) in order {
            if self.bytes <= goal {
                break;
            }
            // Who uses one took it while this was locked, as it is now.
            let leaves = self.all.get(&stream).is_some_and(|kept| {
                kept.used != self.turn && Arc::strong_count(&kept.value) == 1 && may_leave(&kept.value)
            });
            if leaves && let Some(kept) = self.all.remove(&stream) {
                // As above.
                self.bytes = self.bytes.saturating_sub(kept.bytes);
                gone.push((stream, kept.value));
            }
        }
        gone
    }

    pub(super) fn list(&self) -> Vec<(StreamId, Arc<V>)> {
        self.all.iter().map(|(stream, kept)| (*stream, Arc::clone(&kept.value))).collect()
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
impl<V> Bounded<V> {
    pub(super) fn figures_for_test(&self) -> (usize, u64) {
        (self.all.len(), self.bytes)
    }
}

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
const FOLD_EVENT_BYTES: u64 = 300;

impl Loaded {
    /// What its events take in memory, about.
    pub(super) fn event_bytes(&self) -> u64 {
        self.event_count.saturating_mul(FOLD_EVENT_BYTES)
    }
}

/// What one handle knows of a stream, to append to it.
#[derive(Default)]
pub(super) struct StreamWriter {
    pub(super) ingest_state: IngestState,
    pub(super) signer: Option<Signer>,
    pub(super) watermark: Seq,
    /// The last commit of this handle to it, durable or not.
    pub(super) placed: Option<Placed>,
    /// How many of the ingest state's events a saved one holds.
    pub(super) saved_count: u64,
    /// Digest of the saved ingest state that was taken up last.
    pub(super) restored: Option<[u8; 32]>,
}

/// What an event takes in an ingest state, about.
const WRITER_EVENT_BYTES: u64 = 120;

impl StreamWriter {
    /// What its events take in memory, about. Those that a file holds are read from there.
    pub(super) fn event_bytes(&self) -> u64 {
        let saved = if self.restored.is_some() { self.saved_count } else { 0 };
        // What was saved is a part of what is known.
        self.ingest_state.event_count.saturating_sub(saved).saturating_mul(WRITER_EVENT_BYTES)
    }

    /// Calls that have not ended, oldest first.
    pub(super) fn open_calls(&self) -> Vec<crate::command::ingest_state::OpenCall> {
        self.ingest_state.open_calls().into_iter().cloned().collect()
    }
}
