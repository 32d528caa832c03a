//! Sessions in a browser and on the whole terminal.

#[derive(Debug, clap::Args)]
pub(crate) struct Ui {
    /// Where to listen, on this machine only; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    /// Without texts that look like secrets (acpdb scan)
    #[arg(long)]
    pub(crate) redact: bool,
}

/// Hosts whose sessions can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ResumeIn {
    /// Claude Code
    ClaudeCode,
    /// Codex
    Codex,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "With --at, the session is written as it was then. The old session stays as it is: the new one has an id of its own."
)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    pub(crate) session: super::SessionNamed,
    /// The host that goes on [default: the session's own]
    #[arg(long = "in", value_name = "HOST")]
    pub(crate) host: Option<ResumeIn>,
    /// The folder in which it goes on [default: that of the session]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<std::path::PathBuf>,
    /// Items that are superseded, discarded or distilled show their placeholder
    #[arg(long)]
    pub(crate) pruned: bool,
    /// Id of the new session, a UUID [default: a random one]
    #[arg(long, value_name = "ID", value_parser = uuid)]
    pub(crate) id: Option<String>,
    /// Write to this file; - for standard output [default: where the host looks for sessions]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<std::path::PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Only say which files would be written
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// An id in the form that hosts take: it becomes a part of a path.
fn uuid(text: &str) -> Result<String, String> {
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid = text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && text.split('-').all(is_hex);
    if is_uuid {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("a UUID is expected, 8-4-4-4-12 hex digits".to_owned())
    }
}
