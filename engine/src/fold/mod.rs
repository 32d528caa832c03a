//! The fold: what the events add up to. Pure; no IO, no clock, no randomness, no threads.
//!
//! ```text
//! World --one a stream--> State = Facts (what was recorded, immutable)
//!   |                           + Core (the present, as the rules need it)
//!   |                           + History (everything concluded, as intervals)    <- every read takes `at: Seq`
//!   |                           + todos, tasks, memory (the same, for their own)
//!   +-- the store's policy
//! ```
//!
//! [`World::apply`] is total: whatever decodes can be folded. Its cost is what the event changes.
//!
//! **Time.** Nothing is deleted; a read at `w` sees what held at `w` and equals a fold of the events up to `w`.
//!
//! **Rewind.** `Rewound {to}` takes the history back by ending and beginning intervals, all stamped with the rewind's
//! seq. The present is made anew: the operations of the active branch up to `to` are folded into a fresh core with a
//! history that is thrown away, and into fresh todos, tasks and memory, which `rewound(seq, fresh)` adopts. What left
//! the branch never comes back, whatever a later rewind names.
//!
//! **Fork.** A fork begins with its parent's facts, the operations of the parent's active branch up to its point and
//! what was concluded from them, at their own seqs. Read before its own beginning, it shows the parent.

pub mod archive;
mod claims;
mod core;
pub mod eviction;
mod facts;
mod history;
mod idle;
mod intake;
pub mod memory;
mod names;
mod op;
pub mod policy;
mod policy_keys;
mod protect;
mod read;
pub mod reminder;
mod rules;
pub mod serving;
mod snapshot;
mod state;
mod table;
pub mod task;
mod task_eviction;
#[cfg(test)]
mod tests;
pub mod todo;
pub mod validate;
mod world;

pub use self::core::Status;
pub use facts::{ItemKind, Ix};
pub use history::{RuleKind, ShortenKind};
pub(crate) use intake::Place;
pub use policy::{HideInput, Policy, PolicyError};
pub use policy_keys::{PolicyKey, policy_keys};
pub use read::*;
pub(crate) use snapshot::{LAYOUT_VERSION, Pieces, TAKEN_BYTES_MAX};
pub use state::{Change, Effects, State, StreamFacts};
pub use world::World;
