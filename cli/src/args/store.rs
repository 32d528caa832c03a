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
#[command(after_help = "\
Zeroed where they lie: the item's texts (a call's parameters and result, all versions of a message), every text in the store
that is equal to one of them, and the hosts' records that quote them. --dry-run lists what that is. All else stays readable,
the store still verifies, and reads of what is gone say who erased it and why. If a crash interrupts it, the next command
that opens the store ends it.

Not covered: ids, names of tools, keys (paths, addresses, patterns, command lines), titles, short digests, and quotations
inside other texts: acpdb scan and acpdb log 'text:WORD' find those, to be erased one by one. Nor copies outside of the store: backups, exports, the
host's own files, what a disk keeps of overwritten blocks. A secret that leaked should be withdrawn by its issuer.

Examples:
  acpdb erase '#297' --dry-run
  acpdb erase r_3d86c --reason 'API key'")]
pub(crate) struct Erase {
    /// The item or event: #seq, short hash, call id or a unique prefix of one
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Why; recorded for good, so do not repeat the secret
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    pub(crate) reason: Option<String>,
    /// Who asked for it; recorded for good [default: the user's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// List what would be erased, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Only look in this session
    #[arg(long, short, value_name = "ID", add = crate::complete::sessions())]
    pub(crate) session: Option<String>,
}
