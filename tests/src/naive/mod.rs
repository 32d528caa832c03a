//! A second implementation of the default rules, as plain and slow as can be, to compare the engine with.
//!
//! ```text
//! recorded events --> active branch (a rewind cuts it) --> told again from the beginning, call after call --> edges
//! ```
//!
//! It shares no code with the engine's fold and keeps no table: every question is answered by looking at every call
//! again, and a rewind tells the whole story anew. It reads the tool and the parameters of a call, not the signatures
//! and keys that the engine computed from them.
//!
//! It knows the rules repeat, file matrix, todo, same turn, failed and pending, protection of tools, files and turns,
//! pins, compaction, clearing by the host, restore and rewind. It does not know quiet steps and the optional rules.

pub mod compare;
mod session;

pub use session::{Mutation, NaiveEdge, edges};
