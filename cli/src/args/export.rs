//! Sessions for other programs.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  acpdb export html SESSION -o session.html    a page to look at and to hand on\n  \
    acpdb export html latest --at t12 > then.html\n\n\
    Files hold what was recorded, secrets included: look with `acpdb scan` before you hand one on."
)]
pub(crate) struct Export {
    #[command(subcommand)]
    pub(crate) act: ExportAct,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportAct {
    /// One page that needs nothing else: history, context at any turn, chains, todos, memory
    Html(ExportPage),
}

/// Where an export goes.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// Write to this file; - for standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportPage {
    /// The session [default: the only or newest one]
    #[arg(value_name = "SESSION", add = crate::complete::sessions())]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
}
