//! The program itself: settings, completion, pages of the manual.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAct {
    /// Every setting, its value and its meaning
    List,
    /// The value of a setting
    Get {
        /// The setting
        #[arg(value_name = "KEY", add = crate::complete::settings())]
        key: String,
    },
    /// Set a setting for all runs to come
    Set {
        /// The setting
        #[arg(value_name = "KEY", add = crate::complete::settings())]
        key: String,
        /// Its value
        #[arg(value_name = "VALUE")]
        value: String,
    },
    /// Go back to the default
    Unset {
        /// The setting
        #[arg(value_name = "KEY", add = crate::complete::settings())]
        key: String,
    },
    /// The file that settings are kept in
    Path,
    /// Allow hooks a store that you did not make here, and every command one of another user
    Trust(Trust),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// The store's folder, or the one that its .acpdb/ lies in
    #[arg(value_name = "PATH", required_unless_present_any = ["list", "remove"])]
    #[arg(conflicts_with_all = ["list", "remove"])]
    pub(crate) path: Option<PathBuf>,
    /// List the trusted stores
    #[arg(long, conflicts_with = "remove")]
    pub(crate) list: bool,
    /// Trust it no longer
    #[arg(long, value_name = "PATH")]
    pub(crate) remove: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The folder to write the pages to
    #[arg(value_name = "DIR", required_unless_present_any = ["reference", "schemas"])]
    pub(crate) folder: Option<PathBuf>,
    /// Print the reference of all commands as Markdown instead
    #[arg(long, hide = true, conflicts_with = "folder")]
    pub(crate) reference: bool,
    /// Print a JSON Schema a line for each shape that --json prints
    #[arg(long, conflicts_with_all = ["folder", "reference"])]
    pub(crate) schemas: bool,
}
