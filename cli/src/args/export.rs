//! Sessions for other programs.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ExportAct {
    /// One page that needs nothing else: conversation, history, context at any turn, chains, todos, memory; or an index
    Html(ExportPage),
    /// A picture of a session's tokens to show to others (SVG): figures, and no text of the session
    Poster(ExportPoster),
    /// A line of JSON for each item, with its texts, states and reasons
    Jsonl(ExportOf),
    /// Spans by OpenTelemetry's conventions, a line for each session
    OtlpJson(ExportSpans),
    /// A report for people and programs: each act and its actor, hidden and erased items, and how far it is proven
    Audit(super::Audit),
}

/// Where an export goes.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportTarget {
    /// Write to this file; - for standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportPage {
    #[command(flatten)]
    pub(crate) session: super::SessionNamed,
    /// An index of all sessions, with filters and totals
    #[arg(long, conflicts_with_all = ["place", "session"])]
    pub(crate) all: bool,
    /// With --all: also each session's page, in this folder beside the index, which links to them
    #[arg(long, value_name = "FOLDER", requires = "all", requires = "output")]
    pub(crate) pages: Option<String>,
    /// Without texts that look like secrets (acpdb scan)
    #[arg(long)]
    pub(crate) redact: bool,
    /// Also without texts that this pattern matches
    #[arg(long, value_name = "NAME=REGEX")]
    pub(crate) redact_rule: Vec<String>,
    #[command(flatten)]
    pub(crate) target: ExportTarget,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportPoster {
    #[command(flatten)]
    pub(crate) session: super::SessionNamed,
    #[command(flatten)]
    pub(crate) target: ExportTarget,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportOf {
    /// Sessions [default: all]
    #[arg(value_name = "SESSION", add = crate::complete::sessions())]
    pub(crate) sessions: Vec<String>,
    #[command(flatten)]
    pub(crate) target: ExportTarget,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportSpans {
    #[command(flatten)]
    pub(crate) of: ExportOf,
    /// With parameters and results of calls
    #[arg(long)]
    pub(crate) texts: bool,
}
