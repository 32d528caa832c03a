//! Frames kept in memory for point reads and for the next fold.
//!
//! A bounded number of bytes; when it is full, everything goes. What is kept was checked when it was read, and frames
//! never change, so nothing has to be looked up again.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::codec::Frame;
use crate::ids::{Position, Seq};

/// Most bytes of spines that are kept.
const BYTES_MAX: usize = 16 << 20;
/// What a frame costs beside its spine.
const FRAME_COST_BYTES: usize = 512;

/// The cache.
#[derive(Debug, Default)]
pub(super) struct FrameCache {
    by_seq: BTreeMap<Seq, Frame>,
    by_position: FxHashMap<Position, Seq>,
    bytes: usize,
}

impl FrameCache {
    /// The frame that holds `seq`, if it is kept.
    pub(super) fn holding(&self, seq: Seq) -> Option<Frame> {
        let (_, frame) = self.by_seq.range(..=seq).next_back()?;
        (seq <= frame.header().last_seq()).then(|| frame.clone())
    }

    /// The frame at `position`, if it is kept.
    pub(super) fn at(&self, position: Position) -> Option<Frame> {
        self.by_seq.get(self.by_position.get(&position)?).cloned()
    }

    /// Keeps a frame that was asked for.
    pub(super) fn keep(&mut self, frame: &Frame) {
        if self.bytes.saturating_add(cost(frame)) > BYTES_MAX {
            *self = Self::default();
        }
        self.insert(frame);
    }

    /// Keeps a frame that was come across, if there is room: it pushes nothing out.
    pub(super) fn keep_if_room(&mut self, frame: &Frame) {
        if self.bytes.saturating_add(cost(frame)) <= BYTES_MAX {
            self.insert(frame);
        }
    }

    fn insert(&mut self, frame: &Frame) {
        let seq = frame.header().first_seq;
        self.by_position.insert(frame.position(), seq);
        let before = self.by_seq.insert(seq, frame.clone());
        self.bytes = self.bytes.saturating_add(cost(frame));
        self.bytes = self.bytes.saturating_sub(before.as_ref().map_or(0, cost));
    }
}

fn cost(frame: &Frame) -> usize {
    (frame.header().spine_bytes as usize).saturating_add(FRAME_COST_BYTES)
}
