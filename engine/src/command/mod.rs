//! What may be asked, and how facts become events.

pub mod bodies;
pub mod draft;
pub mod ledger;
pub mod memory;
pub mod record;
mod revision;
pub mod task;

/// Why a command was refused. Nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// A memory command.
    #[error(transparent)]
    Memory(#[from] memory::MemoryRejection),
    /// A task update.
    #[error(transparent)]
    Task(#[from] task::TaskRejection),
    /// The context tool.
    #[error("{0}")]
    Context(String),
    /// A policy.
    #[error("{0}")]
    Policy(String),
}
