//! The fold: events add up to a state. Pure; no IO, no clock, no randomness, no threads.
//!
//! ```text
//! World --one a stream--> State = Facts (recorded, immutable)
//!   |                           + Core (the present, as the rules need it)
//!   |                           + History (everything concluded, as intervals)    <- every read takes `at: Seq`
//!   |                           + todos, tasks, memory (the same, for their own)
//!   +-- the store's policy
//! ```
//!
//! [`World::apply`] is total: every event that decodes can be folded. Its cost is that of the changes that the event makes.
//!
//! **Time.** Nothing is deleted; a read at `w` sees the state that held at `w` and equals a fold of the events up to `w`.
//!
//! **Rewind.** `Rewound {to}` takes the history back by ending and beginning intervals, all stamped with the rewind's
//! seq. The present is made anew: the operations of the active branch up to `to` are folded into a fresh core with a
//! history that is thrown away, and into fresh todos, tasks and memory, which `rewound(seq, fresh)` adopts. Items that left
//! the branch never come back, whichever point a later rewind names.
//!
//! **Fork.** A fork begins with its parent's facts, the operations of the parent's active branch up to its point and
//! the conclusions from them, at their own seqs. A read before the fork's own beginning shows the parent.

mod apply;
mod claims;
pub mod eviction;
mod facts;
mod figures;
mod history;
pub mod memory;
mod names;
mod number;
mod op;
pub mod policy;
mod policy_values;
mod read;
mod rules;
mod snapshot;
mod stamped;
mod state;
mod step;
pub mod task;
#[cfg(test)]
mod tests;
pub mod todo;
mod world;

pub use facts::ItemKind;
pub use history::{RuleKind, ShortenKind};
pub use number::Ix;
pub use policy::{HideInput, Policy, PolicyError, PolicyKey, policy_keys};
#[cfg(any(test, feature = "testing"))]
pub use read::ShortenedView;
pub use read::{
    CHAIN_MEMBER_COUNT_MAX, CauseView, Chain, ChainMember, EdgeView, Explanation, FaceState, FaceView,
    HashForm, ItemHeader, ItemView, KindStats, PartView, PendingItem, Placeholder, Protection, Render,
    Rested, ServedChange, ServedPlace, Stats, StatsKind, TurnTokens, Visibility, render,
};
pub use state::Status;
pub use state::{State, StreamFacts};
pub use world::World;
