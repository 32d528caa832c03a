//! The service that keeps a store current.

use clap::{Subcommand, ValueEnum};

#[derive(Debug, clap::Args)]
pub(crate) struct Service {
    #[command(subcommand)]
    pub(crate) act: ServiceAct,
    /// The service manager [default: that of this system]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) manager: Option<Manager>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceAct {
    /// Write the service's file for this store, and start it
    Install(ServiceInstall),
    /// Whether the service is installed, and whether it runs
    Status,
    /// Stop the service, and remove its file
    Remove,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServiceInstall {
    /// Show the file and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the file, but do not start the service
    #[arg(long)]
    pub(crate) no_start: bool,
    /// Also ship the store to the URL of the setting backup, by a service of its own
    #[arg(long)]
    pub(crate) backup: bool,
    /// Follow this host only; may be given several times
    #[arg(long = "host", value_name = "HOST", value_delimiter = ',', add = crate::complete::formats())]
    pub(crate) hosts: Vec<String>,
}

/// The program that keeps a user's services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Manager {
    /// A user's unit, in ~/.config/systemd/user
    Systemd,
    /// A user's agent of macOS, in ~/Library/LaunchAgents
    Launchd,
}
