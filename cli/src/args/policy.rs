//! The rules of what supersedes what.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyAct {
    /// The policy in force: on a terminal its preset and the keys that differ from it, else every key
    Show(PolicyShow),
    /// Change the policy for later events: a preset, a TOML file, or key=value pairs
    Set(PolicySetArgs),
    /// Take the policy from the configuration of a pruning plug-in
    Import(PolicyImport),
    /// The presets
    Presets,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyShow {
    /// Every key, also on a terminal
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicyImport {
    /// The plug-in's configuration: JSON, with comments or without
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) file: String,
    /// Show the policy, but do not set it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicySetArgs {
    /// PRESET, FILE.toml, or KEY=VALUE..
    #[arg(value_name = "WHAT", required = true, num_args = 1.., add = crate::complete::presets())]
    pub(crate) what: Vec<String>,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
}
