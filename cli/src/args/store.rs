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
