//! The current context and the acts on it.

use clap::Subcommand;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct ContextArgs {
    #[command(flatten)]
    pub(crate) session: super::SessionNamed,
    /// Only the newest N items
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Only its size: the turn, items, tokens
    #[arg(long, conflicts_with_all = ["last", "full", "format", "served"])]
    pub(crate) summary: bool,
    /// Whole texts, not their beginnings
    #[arg(long)]
    pub(crate) full: bool,
    /// The context as the host had it, instead of the one that acpdb would show
    #[arg(long, conflicts_with_all = ["served", "mode"])]
    pub(crate) recorded: bool,
    /// The context that was sent through acpdb: the very bytes that were sent last (before --at, if given); their digest is checked
    #[arg(long, conflicts_with_all = ["last", "full", "format"])]
    pub(crate) served: bool,
    #[command(flatten)]
    pub(crate) export: super::ExportOptions,
    #[command(subcommand)]
    pub(crate) act: Option<ContextAct>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextAct {
    #[expect(clippy::doc_markdown, reason = "it is the text of --help")]
    /// Hide calls and messages: by hash (r_a1b2c), range (#12..#40), pattern ("start...end"), #seq or call id
    Discard(Targets),
    /// Hide calls and messages, or a range of them, behind summaries: TARGET=SUMMARY
    Distill(Targets),
    /// Show hidden items again
    Restore(RestoreTargets),
    /// Keep items even if a rule would hide them
    Pin(Targets),
    /// Let the rules decide about pinned items again
    Unpin(Targets),
    /// Whether a provider accepts the body of a request; exit code 1 if not
    Lint(super::Lint),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Targets {
    /// The items to act on
    #[arg(value_name = "TARGET", add = crate::complete::items())]
    pub(crate) targets: Vec<String>,
    /// Read {"action":..,"targets":[[target, summary?]..]} from standard input
    #[arg(long, conflicts_with = "targets")]
    pub(crate) stdin: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreTargets {
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Pin them, so that no rule hides them again
    #[arg(long)]
    pub(crate) pin: bool,
}
