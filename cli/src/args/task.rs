//! Todos and tasks.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum TodoAct {
    /// The list
    List,
    /// Entries in progress for too long
    Stuck,
    /// The list at each of its changes
    History,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskAct {
    /// The tasks of a session
    List,
    /// Change tasks, as JSON on standard input: {"tasks":[{"id":..,"status":..}]}
    Update,
    /// The items that a completed task hid, as recorded
    Archive(TaskArchiveArgs),
    /// Summaries, facts and decisions of the session, as a note to work from
    Scratchpad,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TaskArchiveArgs {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: String,
}
