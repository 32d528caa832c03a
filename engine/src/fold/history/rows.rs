//! The rows of [`History`](super::History): causes, edges, orders, totals, each with the interval in which it holds.

use super::super::number::{Ix, NONE};
use crate::event::Face;
use crate::failpoints::failpoint;
use crate::ids::{Seq, Turn};

/// The rule that made an edge, by the number of its label. The rule's file holds its names and texts.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub struct RuleKind(u8);

impl RuleKind {
    pub(crate) const fn numbered(number: u8) -> Self {
        Self(number)
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }
}

/// A rule that shortens faces, by its number. The rule's file holds its names and texts.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub struct ShortenKind(u8);

impl ShortenKind {
    pub(crate) const fn numbered(number: u8) -> Self {
        Self(number)
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }
}

/// The part that a face plays in an eviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) enum Evicted {
    /// An output of the task.
    Output,
    /// The first hidden part of an assistant message.
    Assistant,
    /// A further hidden part: nothing stands in its place.
    Dropped,
    /// An older output of the task while it is active.
    Rolling,
}

/// Why a face is not shown whole, or another fact about an item that holds for a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) enum Cause {
    Erased {
        /// Damage took the bytes; no person wanted them gone.
        lost: bool,
    },
    OffBranch,
    Left,
    Cleared {
        act: u32,
    },
    Distilled {
        act: u32,
        at: u32,
    },
    Evicted {
        eviction: u32,
        how: Evicted,
        last: bool,
    },
    Superseded {
        edge: u32,
    },
    Discarded {
        act: u32,
        at: u32,
    },
    Shortened {
        rule: ShortenKind,
        /// Another rule may take the rest later; the shortening rule says so.
        leaves_some: bool,
    },
    /// Not a cause: the call's result.
    Answered {
        finish: u32,
    },
    /// Not a cause: the face as rewritten by the host.
    Revised {
        revision: u32,
    },
    /// Not a cause: the rules leave the item alone.
    Pinned,
}

impl Cause {
    /// Place in the order of precedence; `None` for a fact that hides nothing.
    pub(crate) fn rank(self) -> Option<u8> {
        Some(match self {
            Self::Erased { .. } => 0,
            Self::OffBranch => 1,
            Self::Left => 2,
            Self::Cleared { .. } => 3,
            Self::Distilled { .. } => 4,
            // A completed task's placeholder carries the summary, so it goes before that of rolling prune.
            Self::Evicted { how: Evicted::Rolling, .. } => 6,
            Self::Evicted { .. } => 5,
            Self::Superseded { .. } => 7,
            Self::Discarded { .. } => 8,
            // Another rule may take the rest later: then that rule shows.
            Self::Shortened { leaves_some: true, .. } => 10,
            Self::Shortened { .. } => 9,
            Self::Answered { .. } | Self::Revised { .. } | Self::Pinned => return None,
        })
    }

    /// Whether a restore ends it.
    pub(crate) const fn is_restorable(self) -> bool {
        matches!(
            self,
            Self::Distilled { .. }
                | Self::Evicted { .. }
                | Self::Superseded { .. }
                | Self::Discarded { .. }
                | Self::Shortened { .. }
        )
    }
}

/// Whether `at` lies before the end of an interval; one without an end has [`Seq::MAX`], which is also the head.
pub(crate) fn is_before(at: Seq, end: Seq) -> bool {
    end == Seq::MAX || at < end
}

/// One cause of one face, from `since` until just before `until`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CauseRow {
    pub(crate) ix: Ix,
    pub(crate) face: Face,
    pub(crate) cause: Cause,
    pub(crate) since: Seq,
    pub(crate) until: Seq,
    /// The seq of a rewind that undid the cause, as if it had never been.
    pub(crate) undone: Seq,
    /// Turn in which the cause began.
    pub(crate) turn: Turn,
    pub(super) prev: u32,
}

impl CauseRow {
    pub(crate) fn holds(&self, at: Seq) -> bool {
        let is_late = failpoint!(WatermarkOffByOne) && self.since == at;
        self.since <= at && is_before(at, self.until) && !is_late
    }
}

/// Old item, new item, and the rule between them.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct EdgeRow {
    /// The edge's place among all edges.
    pub(crate) number: u32,
    pub(crate) old: Ix,
    /// The superseding item; [`NONE`] where an event without an item superseded.
    pub(crate) new: u32,
    pub(crate) kind: RuleKind,
    /// Index of the superseder's key that met the old one's, or [`NONE`].
    pub(crate) key: u32,
    /// The event that made the edge.
    pub(crate) seq: Seq,
    pub(crate) turn: Turn,
    /// Whether the old call's input is shortened too.
    pub(crate) hide_input: bool,
    pub(crate) since: Seq,
    pub(crate) released: Seq,
    pub(crate) undone: Seq,
    /// The edge's place in the order in which edges came about. An edge that a rewind brings back keeps it.
    pub(crate) rank: u32,
    /// The edge before it with the same old item, and with the same new one; [`NONE`] without any.
    pub(super) next_of_old: u32,
    pub(super) next_of_new: u32,
}

impl EdgeRow {
    /// An edge that begins now. [`History::supersede`](super::History::supersede) gives it its numbers.
    pub(crate) const fn new(
        old: Ix,
        new: u32,
        kind: RuleKind,
        key: u32,
        seq: Seq,
        turn: Turn,
        hide_input: bool,
    ) -> Self {
        Self {
            number: NONE,
            old,
            new,
            kind,
            key,
            seq,
            turn,
            hide_input,
            since: seq,
            released: Seq::MAX,
            undone: Seq::MAX,
            rank: NONE,
            next_of_old: NONE,
            next_of_new: NONE,
        }
    }

    pub(crate) fn exists(&self, at: Seq) -> bool {
        self.since <= at && is_before(at, self.undone)
    }
}

/// The order of the context from `since` on: these items, then those recorded from `from` on.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Order {
    pub(crate) since: Seq,
    pub(crate) list: Vec<Ix>,
    pub(crate) from: Ix,
}

/// Tokens after an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct TokenTotal {
    pub(crate) seq: Seq,
    /// Faces in the context, as recorded.
    pub(crate) whole: u64,
    /// Faces in the context, as shown.
    pub(crate) shown: u64,
    /// All faces ever recorded.
    pub(crate) recorded: u64,
}

/// A change of a file that no call shows.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct FileTouch {
    pub(crate) seq: Seq,
    pub(crate) until: Seq,
}
