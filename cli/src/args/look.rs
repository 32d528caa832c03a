//! Sessions in a browser and on the whole terminal.

#[derive(Debug, clap::Args)]
pub(crate) struct Ui {
    /// Where to listen, on this machine only; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4142")]
    pub(crate) listen: std::net::SocketAddr,
    /// Without what looks like a secret (acpdb scan)
    #[arg(long)]
    pub(crate) redact: bool,
}
