//! What may be asked, and how facts become events.

pub mod bodies;
pub mod context;
pub mod draft;
pub mod ledger;
pub mod memory;
pub mod record;
mod revision;
pub mod task;

pub use context::{Command, ContextAction, Decision, Rejection, Target, TextSource, decide};
