//! Memory: facts, preferences, decisions and notes, and which of them hold.
//!
//! ```text
//! events of one stream --apply--> MemoryState --at(seq)--> MemoryAt: items, chains, lookups
//!                                                 |
//!        session + project + user + now + texts --+--> MemoryView --> decide
//!                                                                \--> insights
//! ```
//!
//! An item is current while no edge in force leaves it, it is not retracted, and, for session items, its session has
//! not ended and it has not faded below 0.2. Nothing is deleted: a superseded item keeps its place in `all` and in its
//! chain, and a restore releases its edges.
//!
//! State is append-only lists stamped with seqs, so reading at an earlier seq equals a fold of that prefix.
//! A value that depends on the time of day is a function of (item, now). Texts are bodies and never read by the fold, which
//! compares [`value_signature`]s; reads that need a text are given a [`TextSource`].
//!
//! Not here: suggestions from messages (`propose` of `acpdb-query`), checks of commands (`command::memory`).

mod chain;
mod confidence;
mod core;
mod graph;
mod insight;
mod named;
mod op;
mod read;

#[cfg(test)]
mod laws;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use self::core::MemoryCore;
use crate::event::Recorded;
use crate::ids::{BodyId, ItemId, Seq, Signature};
use crate::text::Signer;

pub use self::core::MemoryFacts;
pub(crate) use self::op::MemoryEvent;
pub use self::op::Moment;
pub use self::op::{default_category, default_lifespan, kind_label, lifespan_label, said_by_label};
pub use chain::{MemoryChain, MemoryEdge, MemoryMember};
pub use confidence::Confidence;
pub use graph::MemoryRule;
pub use insight::{MemoryInsights, RepeatedDecision, RepeatedKey, ReturnedValue, SubjectConflict};
pub use named::MemoryNamed;
pub use read::{LIFESPANS_INNER_FIRST, MemoryLayer, MemoryView};
pub use read::{MemoryAt, MemoryItem, MemoryStatus};

/// A source of texts: the body with this id, or `None` if it was erased or is no UTF-8.
pub type TextSource<'a> = &'a dyn Fn(BodyId) -> Option<String>;

/// Signature of a memory value: equal for texts that differ only in case.
pub fn value_signature(signer: &Signer, value: &str) -> Signature {
    signer.folded("memory", value)
}

/// The memory of one stream, at every seq.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct MemoryState {
    /// One fold per branch, with the seq since which it is the active one. Never empty, rising.
    branches: Vec<(Seq, MemoryCore)>,
}

impl Default for MemoryState {
    fn default() -> Self {
        Self { branches: vec![(Seq::ZERO, MemoryCore::default())] }
    }
}

impl MemoryState {
    /// Folds a memory event of this stream; ignores events of other kinds.
    ///
    /// Total. Cost: O(log items), plus O(edges) of the smaller side where a link joins two long chains.
    pub fn apply(&mut self, recorded: &Recorded) {
        if let Some(event) = MemoryEvent::of(recorded) {
            self.fold(&event);
        }
    }

    /// The same, for an event that is known to be about memory.
    pub(crate) fn fold(&mut self, event: &MemoryEvent) {
        if let Some((_, core)) = self.branches.last_mut() {
            core.apply(event);
        }
    }

    /// Shows items again: releases every edge that hides them and takes back a retraction. A dated restore takes back only
    /// edges and retractions that were said before it.
    ///
    /// Items that are no memory of this stream are left out. Items that a session's end hid stay hidden.
    pub fn restored(&mut self, seq: Seq, moment: Moment, items: &[ItemId]) {
        if let Some((_, core)) = self.branches.last_mut() {
            core.restored(seq, moment, items);
        }
    }

    /// The session ended (or, in a project's stream, a newer session of the project began): its session items expire.
    pub fn closed(&mut self, seq: Seq) {
        if let Some((_, core)) = self.branches.last_mut() {
            core.closed(seq);
        }
    }

    /// The stream was rewound: from `seq` on, its memory is `fresh`, the fold of the active branch alone.
    ///
    /// Items that left the branch stay in [`MemoryAt::all`]. Costs nothing if no memory event left the branch.
    pub fn rewound(&mut self, seq: Seq, fresh: Self) {
        let Some((_, fresh)) = fresh.branches.into_iter().next_back() else { return };
        let is_same = (self.branches.last())
            .is_some_and(|(_, core)| (core.last, core.changes) == (fresh.last, fresh.changes));
        if !is_same {
            self.branches.push((seq, fresh));
        }
    }

    /// The memory as of `at`; [`Seq::MAX`] is the head.
    pub fn at(&self, at: Seq) -> MemoryAt<'_> {
        MemoryAt::new(self, at)
    }

    /// Whether the active branch ever recorded an item that ends with its session.
    pub(crate) fn has_session_items(&self) -> bool {
        self.branches.last().is_some_and(|(_, core)| core.has_session_items)
    }

    /// Whether nothing was ever recorded.
    pub fn is_empty(&self) -> bool {
        self.branches.iter().all(|(_, core)| core.rows.is_empty())
    }
}
