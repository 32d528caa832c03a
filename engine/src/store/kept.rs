//! Values that a handle keeps in memory: folds of streams, and ingest states to append to them; frames; and salts.
//!
//! All of them are held within bounds, and made anew when they are gone. The stream that was unused for longest goes first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use crate::codec::Frame;
use crate::command::ingest_state::IngestState;
use crate::fold::World;
use crate::ids::{Position, Seq, StreamId};
use crate::locks::renewed;
use crate::log::PlacedCommit;
use crate::text::Signer;

/// The folder in which folds and ingest states of streams are saved.
pub(super) const FOLDER: &str = "snap";
/// Cost of one value beside its events.
const COST_BYTES: u64 = 4 << 10;

/// Values of streams, as many as fit. A value that a caller uses stays, so the bound may be exceeded by the values that callers hold.
#[derive(Debug)]
pub(super) struct Bounded<V> {
    bytes_max: u64,
    bytes: u64,
    turn: u64,
    all: FxHashMap<StreamId, LoadedStreams<V>>,
}

#[derive(Debug)]
struct LoadedStreams<V> {
    value: Arc<V>,
    bytes: u64,
    used: u64,
}

impl<V> Bounded<V> {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, turn: 0, all: FxHashMap::default() }
    }

    /// The value of a stream, made if there is none. `is_usable` says whether the present value can be used on; if not, it is
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
        let kept = LoadedStreams { value: Arc::clone(&value), bytes: COST_BYTES, used: self.turn };
        let before = self.all.insert(stream, kept);
        // The bytes that a value takes off were added when it was kept, here and below.
        self.bytes =
            self.bytes.saturating_add(COST_BYTES).saturating_sub(before.map_or(0, |kept| kept.bytes));
        value
    }

    /// Notes the bytes that the events in a value take.
    pub(super) fn weigh(&mut self, stream: StreamId, event_bytes: u64) {
        let Some(kept) = self.all.get_mut(&stream) else { return };
        let bytes = COST_BYTES.saturating_add(event_bytes);
        // As above.
        self.bytes = self.bytes.saturating_sub(kept.bytes).saturating_add(bytes);
        kept.bytes = bytes;
    }

    /// Takes values out, the longest unused first, if there are too many: a quarter more than has to go, so that it is done
    /// rarely. Values that are in use, or that may not leave, stay.
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
            // A caller takes a value only while this is locked, as it is now.
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
}

#[cfg(test)]
impl<V> Bounded<V> {
    pub(super) fn figures_for_test(&self) -> (usize, u64) {
        (self.all.len(), self.bytes)
    }
}

/// A world of some streams, folded up to a watermark.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a finding of its own")]
pub(super) struct Loaded {
    pub(super) world: World,
    /// Streams it folds; `None`: all.
    pub(super) streams: Option<Vec<StreamId>>,
    /// Whether it looks at the beginnings of all other sessions, which end memory that lasts as long as a session. Only
    /// if there is such memory: it costs a frame for each session of the store.
    pub(super) beginnings: bool,
    /// Whether sessions are folded without the memory of their projects: for figures about items.
    pub(super) bare: bool,
    /// It goes on from an earlier fold, and is to be begun anew if it meets an erasure.
    pub(super) is_resumed: bool,
    /// Damaged events were left out.
    pub(super) has_gaps: bool,
    pub(super) watermark: Seq,
    /// Events that went into it, and how many of them a snapshot holds.
    pub(super) event_count: u64,
    pub(super) saved_count: u64,
}

/// The place of a stream's newest fold, which views share. Later events are folded into it while no view holds it, else into a
/// copy, which shares the states of all streams without new events.
#[derive(Debug)]
pub(super) struct FoldSlot {
    stream: StreamId,
    newest: Mutex<Arc<Loaded>>,
}

impl FoldSlot {
    pub(super) fn new(stream: StreamId) -> Self {
        Self { stream, newest: Mutex::new(Arc::new(Loaded::of(stream))) }
    }

    /// The newest fold, and the right to replace it. After a panic it may be half folded: it is begun anew.
    pub(super) fn lock(&self) -> MutexGuard<'_, Arc<Loaded>> {
        renewed(&self.newest, |fold| *fold = Arc::new(Loaded::of(self.stream)))
    }

    /// Whether a view holds the newest fold: dropping the slot would free nothing.
    pub(super) fn is_shared(&self) -> bool {
        self.newest.try_lock().is_ok_and(|newest| Arc::strong_count(&newest) > 1)
    }
}

/// Bytes that an event takes in a fold, about.
const FOLD_EVENT_BYTES: u64 = 300;

impl Loaded {
    /// The empty fold of a session.
    pub(super) fn of(stream: StreamId) -> Self {
        Self { streams: Some(vec![StreamId::STORE, stream]), ..Self::default() }
    }

    /// The fold, ready for use, after it was read from an archive. `None` if it is none that was saved.
    pub(super) fn revived(self) -> Option<Self> {
        let (world, saved_count) = (self.world.revived()?, self.event_count);
        let is_whole = self.streams.is_some() && !self.has_gaps && !self.bare;
        is_whole.then_some(Self { world, saved_count, is_resumed: true, ..self })
    }

    /// Bytes that its events take in memory, about.
    pub(super) fn event_bytes(&self) -> u64 {
        self.event_count.saturating_mul(FOLD_EVENT_BYTES)
    }
}

/// The state that one handle needs to append to a stream.
#[derive(Default)]
pub(super) struct StreamWriter {
    pub(super) ingest_state: IngestState,
    pub(super) signer: Option<Signer>,
    pub(super) watermark: Seq,
    /// The last commit of this handle to the stream, durable or not.
    pub(super) placed: Option<PlacedCommit>,
    /// How many of the ingest state's events the saved one holds.
    pub(super) saved_count: u64,
}

/// Bytes that an event takes in an ingest state, about.
const WRITER_EVENT_BYTES: u64 = 120;

impl StreamWriter {
    /// Bytes that its events take in memory, about.
    pub(super) const fn event_bytes(&self) -> u64 {
        self.ingest_state.event_count.saturating_mul(WRITER_EVENT_BYTES)
    }

    /// Calls that have not ended, oldest first.
    pub(super) fn open_calls(&self) -> Vec<crate::command::ingest_state::OpenCall> {
        self.ingest_state.open_calls().into_iter().cloned().collect()
    }
}

/// Most bytes of the spines of frames that are kept, however much memory there is.
const FRAMES_BYTES_MAX: usize = 16 << 20;
/// Cost of a frame beside its spine.
const FRAME_COST_BYTES: usize = 512;

/// Frames kept in memory, for point reads and for the next fold.
///
/// A bounded number of bytes is kept; when the cache is full, everything goes. A kept frame was checked when it was read, and
/// frames never change, so nothing has to be looked up again. Large frames push nothing out: a few of them would fill the
/// cache. Bodies that were read with a frame are not kept: any process may erase
/// them meanwhile.
#[derive(Debug, Default)]
pub(super) struct FrameCache {
    by_seq: BTreeMap<Seq, Frame>,
    by_position: FxHashMap<Position, Seq>,
    bytes: usize,
    /// Most bytes of spines that are kept.
    bytes_max: usize,
}

/// A frame is large if it takes this share of the cache.
const LARGE_SHARE: usize = 16;

impl FrameCache {
    /// A cache of at most so many bytes.
    pub(super) fn new(bytes_max: u64) -> Self {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(FRAMES_BYTES_MAX);
        Self { bytes_max, ..Self::default() }
    }

    /// Forgets all frames.
    pub(super) fn forget_all(&mut self) {
        *self = Self { bytes_max: self.bytes_max, ..Self::default() };
    }

    /// The frame that holds `seq`, if it is kept.
    pub(super) fn holding(&self, seq: Seq) -> Option<Frame> {
        let (_, frame) = self.by_seq.range(..=seq).next_back()?;
        (seq <= frame.last_seq()).then(|| frame.clone())
    }

    /// The frame at `position`, if it is kept.
    pub(super) fn at(&self, position: Position) -> Option<Frame> {
        self.by_seq.get(self.by_position.get(&position)?).cloned()
    }

    /// Keeps a frame that was asked for.
    pub(super) fn keep(&mut self, frame: &Frame) {
        if cost(frame) > self.bytes_max / LARGE_SHARE {
            self.keep_if_room(frame);
            return;
        }
        let frame = frame.alone();
        self.make_room(cost(&frame));
        self.insert(frame);
    }

    /// Keeps a frame that was read on the way, if there is room: it pushes nothing out.
    pub(super) fn keep_if_room(&mut self, frame: &Frame) {
        if self.bytes.saturating_add(cost(frame)) <= self.bytes_max {
            self.insert(frame.alone());
        }
    }

    fn make_room(&mut self, bytes: usize) {
        if self.bytes.saturating_add(bytes) > self.bytes_max {
            self.forget_all();
        }
    }

    fn insert(&mut self, frame: Frame) {
        let (seq, bytes) = (frame.first_seq(), cost(&frame));
        self.by_position.insert(frame.position(), seq);
        let before = self.by_seq.insert(seq, frame);
        self.count(bytes, before.as_ref());
    }

    fn count(&mut self, bytes: usize, before: Option<&Frame>) {
        self.bytes = self.bytes.saturating_add(bytes);
        // The cost of a frame is the same as when it was kept.
        self.bytes = self.bytes.saturating_sub(before.map_or(0, cost));
    }
}

fn cost(frame: &Frame) -> usize {
    frame.content_bytes().saturating_add(FRAME_COST_BYTES)
}

/// A keyed stream of random bytes from one seed of the operating system; each call gives new ones. Cheap, and the same for the same seed.
#[derive(Debug)]
pub(super) struct Salts {
    seed: [u8; 32],
    count: AtomicU64,
}

impl Salts {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: AtomicU64::new(0) }
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&self) -> [u8; N] {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [0; N];
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(&count.to_le_bytes());
        hasher.finalize_xof().fill(&mut bytes);
        bytes
    }

    /// The next salt of a body; never all zeros, which stands for an erased one.
    pub(super) fn salt(&self) -> [u8; 16] {
        loop {
            let salt = self.array::<16>();
            if salt != [0; 16] {
                return salt;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_gives_other_bytes_and_a_seed_repeats_them() {
        let (one, two) = (Salts::new([1; 32]), Salts::new([1; 32]));
        let first = one.salt();
        assert_ne!(first, one.salt());
        assert_eq!(first, two.salt());
    }
}
