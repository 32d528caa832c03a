//! Whole stores: the tour, checks.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Keep the imported session in this store instead of a temporary one
    #[arg(long, value_name = "PATH")]
    pub(crate) keep: Option<PathBuf>,
    /// Use the bundled session even if there are real ones
    #[arg(long)]
    pub(crate) bundled: bool,
    /// A session file to tour
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// Fold everything too, and check what was concluded
    #[arg(long)]
    pub(crate) deep: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  acpdb backup ~/backups/acpdb-today\n  \
    acpdb --db ~/backups/acpdb-today verify      a backup is a store\n\n\
    Writers need not stop. The copy is verified before it is called a backup; opening it is restoring it.")]
pub(crate) struct Backup {
    /// A folder that is empty or does not exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  acpdb verify                     what is damaged\n  \
    acpdb salvage --into ./saved     everything else, as a new store\n\n\
    The damaged store is only read. Events keep their numbers; lost ones are noted in their places.")]
pub(crate) struct Salvage {
    /// A folder that is empty or does not exist, for the new store
    #[arg(long, value_name = "DIR")]
    pub(crate) into: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Info {
    /// Where the bytes are: by kind, by state, by segment
    #[arg(long)]
    pub(crate) space: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Seal {
    /// Complete the segment that is being written, and seal it too
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Erase {
    /// The item: #seq, short hash, call id or a unique prefix of one
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Why; recorded for good
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Only look in this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}
