//! What a handle keeps of streams in memory, within a bound: the longest unused goes first.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::ids::StreamId;

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
