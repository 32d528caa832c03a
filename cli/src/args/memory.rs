//! Facts, preferences and decisions.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryAct {
    /// Record a fact, preference, decision or note
    Add(MemoryAdd),
    /// The current value of a preference: KEY or CATEGORY/KEY
    Get(MemoryKey),
    /// Current items
    List(MemoryList),
    /// Let one item take another's place
    Supersede(MemorySupersede),
    /// Say that an item no longer holds
    Retract(MemoryRetract),
    /// Let a superseded or retracted item hold again
    Restore(MemoryKey),
    /// Chains of memory items that superseded each other
    History(MemoryKey),
    /// Memory items that the messages of a session suggest
    Propose(MemoryPropose),
    /// Unstable preferences, reversed decisions, contradicted facts
    Insights,
    /// Read items from a JSONL file
    Import(MemoryImport),
    /// Write items as JSONL
    Export(MemoryList),
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryArgs {
    /// The project [default: the only one]
    #[arg(long, short, global = true, value_parser = super::project::project_name())]
    pub(crate) project: Option<String>,
    #[command(subcommand)]
    pub(crate) act: MemoryAct,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryAdd {
    /// fact, preference, decision or note
    #[arg(value_name = "KIND")]
    pub(crate) kind: String,
    /// The fact, the decision, or for a preference KEY VALUE
    #[arg(value_name = "TEXT", required = true, num_args = 1..)]
    pub(crate) text: Vec<String>,
    /// Category
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// The thing that it is about
    #[arg(long)]
    pub(crate) subject: Option<String>,
    /// 0 to 1
    #[arg(long, default_value = "0.8")]
    pub(crate) confidence: String,
    /// session, project or permanent
    #[arg(long)]
    pub(crate) lifespan: Option<String>,
    /// Why, for a decision
    #[arg(long)]
    pub(crate) rationale: Option<String>,
    /// An alternative that was considered; may be repeated
    #[arg(long = "alternative", value_name = "TEXT")]
    pub(crate) alternatives: Vec<String>,
    /// A file it concerns; may be repeated
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// An item that it supersedes; may be repeated
    #[arg(long = "replaces", value_name = "ID")]
    pub(crate) replaces: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryKey {
    /// KEY, CATEGORY/KEY or an item's id
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryList {
    /// Also items that are no longer current
    #[arg(long)]
    pub(crate) all: bool,
    /// Only this kind
    #[arg(long)]
    pub(crate) kind: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemorySupersede {
    /// The older item
    #[arg(value_name = "OLD")]
    pub(crate) old: String,
    /// The newer item
    #[arg(value_name = "NEW")]
    pub(crate) new: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryRetract {
    /// The item
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryPropose {
    #[command(flatten)]
    pub(crate) session: super::SessionNamed,
    /// Record these proposals: their numbers, or `all`
    #[arg(long, value_name = "N", num_args = 1..)]
    pub(crate) accept: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryImport {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
