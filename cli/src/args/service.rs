//! The service that keeps a store current.

use clap::{Subcommand, ValueEnum};

#[derive(Debug, clap::Args)]
pub(crate) struct Service {
    #[command(subcommand)]
    pub(crate) act: ServiceAct,
    /// The system's keeper of services [default: that of this system]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) manager: Option<Manager>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceAct {
    /// Write the service's file for this store, and start it
    Install(ServiceInstall),
    /// Whether the service is installed, and whether it runs
    Status,
    /// Stop the service, and take its file away
    Remove,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServiceInstall {
    /// Show the file and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the file, and leave it to you to start it
    #[arg(long)]
    pub(crate) no_start: bool,
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
