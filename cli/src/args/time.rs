//! Time travel: points, differences, branches.

#[derive(Debug, clap::Args)]
#[command(after_help = "Points: #812, t12, -3t, a time, \"10m ago\", @compact-1, @rewind-1, head")]
pub(crate) struct Diff {
    /// The first point
    #[arg(value_name = "A", allow_hyphen_values = true)]
    pub(crate) from: String,
    /// The second point
    #[arg(value_name = "B", allow_hyphen_values = true, default_value = "head")]
    pub(crate) to: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Blame {
    /// A file, or an item: #seq, short hash, call id
    #[arg(value_name = "FILE|ID", add = crate::complete::items())]
    pub(crate) what: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RewindArgs {
    /// The last point that stays: #seq, t12, -1t, a time
    #[arg(value_name = "TO", allow_hyphen_values = true)]
    pub(crate) to: String,
    /// Only say how many items would leave, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Fork {
    /// The session to go on from: its id, a unique prefix, or `latest`
    #[arg(id = "place", value_name = "SESSION", add = crate::complete::sessions())]
    pub(crate) session: String,
    /// Id of the new session [default: the old session's id with a number]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Its title [default: "fork of", the old title and the turn]
    #[arg(long)]
    pub(crate) title: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UndoArgs {
    /// The act: #seq of a discard, distill, restore, pin or unpin [default: the next one]
    #[arg(value_name = "ACT")]
    pub(crate) act: Option<String>,
    /// Apply an act again that was undone [default: the one undone last]
    #[arg(long)]
    pub(crate) redo: bool,
    /// Only name the acts, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
