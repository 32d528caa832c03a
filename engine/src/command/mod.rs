//! Commands, and how facts become events.

pub mod context;
pub mod draft;
pub mod ingest_state;
pub mod memory;
mod named;
mod range;
pub mod record;
pub mod target;
pub mod task;
pub mod validate;

pub use context::{Command, Decision, TextSource, decide};
pub use named::ContextRejection;
pub use range::range_ends;
pub use target::{ContextAction, Target};

/// Why a command was refused. Nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// A command on the context.
    #[error(transparent)]
    Context(#[from] ContextRejection),
    /// A memory command.
    #[error(transparent)]
    Memory(#[from] memory::MemoryRejection),
    /// A task update.
    #[error(transparent)]
    Task(#[from] task::TaskRejection),
    /// A policy.
    #[error(transparent)]
    Policy(#[from] crate::fold::PolicyError),
    /// A request that cannot be read.
    #[error("{0}")]
    Malformed(String),
}
