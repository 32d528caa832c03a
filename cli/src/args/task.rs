//! Todos and tasks.

use clap::Subcommand;

use super::SessionOption;

#[derive(Debug, Subcommand)]
pub(crate) enum TodoAct {
    /// The list
    List(SessionOption),
    /// Entries in progress for too long
    Stuck(SessionOption),
    /// The list at each of its changes
    History(SessionOption),
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskAct {
    /// The tasks of a session
    List(SessionOption),
    /// Change tasks, as JSON on standard input: {"tasks":[{"id":..,"status":..}]}
    Update(SessionOption),
    /// The items that a completed task hid, as recorded
    Archive(TaskArchiveArgs),
    /// Summaries, facts and decisions of the session, as a note to work from
    Scratchpad(SessionOption),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TaskArchiveArgs {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) session: SessionOption,
}
