//! Arguments of the verbs that run beside an agent.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use acpdb_hosts::export::Format;
use acpdb_live::{AttachMode, Host};

/// Hosts in the order of the help: what each is, and the short name that people type.
const HOSTS: [(Host, &str, &[&str]); 8] = [
    (Host::ClaudeCode, "Claude Code", &["claude"]),
    (Host::Codex, "Codex", &[]),
    (Host::GeminiCli, "Gemini CLI", &["gemini"]),
    (Host::CopilotCli, "Copilot CLI", &["copilot"]),
    (Host::Opencode, "opencode", &[]),
    (Host::Pi, "Pi", &[]),
    (Host::Cursor, "Cursor", &[]),
    (Host::VsCode, "The chat of VS Code", &["code"]),
];

/// How far acpdb may act in a host.
const MODES: [(AttachMode, &str); 3] = [
    (AttachMode::Record, "Record, and say nothing"),
    (AttachMode::Suggest, "Also give open todos, decisions and preferences, and reminders that are due"),
    (
        AttachMode::Prune,
        "Also keep results away from the model that it has elsewhere, or that are superseded",
    ),
];

/// A host that acpdb can be attached to: all of them, or those that take a plug-in.
fn host(is_meant: fn(Host) -> bool) -> impl TypedValueParser<Value = Host> {
    let hosts = HOSTS.into_iter().filter(move |(host, ..)| is_meant(*host));
    let values = hosts.map(|(host, about, short)| PossibleValue::new(host.name()).help(about).aliases(short));
    PossibleValuesParser::new(values)
        .try_map(|name| Host::from_name(&name).ok_or_else(|| format!("no host is called {name}")))
}

fn mode() -> impl TypedValueParser<Value = AttachMode> {
    PossibleValuesParser::new(MODES.map(|(mode, about)| PossibleValue::new(mode.name()).help(about)))
        .try_map(|name| AttachMode::from_name(&name).ok_or_else(|| format!("no mode is called {name}")))
}

#[derive(Debug, clap::Args)]
pub(crate) struct Attach {
    /// The host [default with --status: all]
    #[arg(value_name = "HOST", value_parser = host(|_| true), required_unless_present = "status")]
    pub(crate) host: Option<Host>,
    #[command(flatten)]
    pub(crate) reach: AttachReach,
    /// The mode in which acpdb acts there
    #[arg(long, value_name = "MODE", value_parser = mode(), default_value = "record")]
    pub(crate) mode: AttachMode,
    /// Also set acpdb's status line (Claude Code), if there is none
    #[arg(long)]
    pub(crate) statusline: bool,
    /// Show the change, but do not make it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Whether it works: where it is attached, the last events, errors, versions
    #[arg(long, conflicts_with_all = ["dry_run", "mode", "statusline"])]
    pub(crate) status: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Detach {
    /// The host
    #[arg(value_name = "HOST", value_parser = host(|_| true))]
    pub(crate) host: Host,
    #[command(flatten)]
    pub(crate) reach: AttachReach,
    /// Show the change, but do not make it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Default, clap::Args)]
pub(crate) struct AttachReach {
    /// In this project's settings
    #[arg(long, conflicts_with = "user")]
    pub(crate) project: bool,
    /// In your own settings, for all projects [default, if the host has such settings]
    #[arg(long)]
    pub(crate) user: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    /// The host whose event it is
    #[arg(value_name = "HOST", value_parser = host(|_| true))]
    pub(crate) host: Host,
    /// The mode in which acpdb acts
    #[arg(long, value_name = "MODE", value_parser = mode(), default_value = "record")]
    pub(crate) mode: AttachMode,
    /// The event, if the host's JSON does not name it
    #[arg(long, value_name = "NAME")]
    pub(crate) event: Option<String>,
    /// Give up after so many milliseconds, and let the host go on
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) deadline: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Plugin {
    /// The host whose plug-in asks
    #[arg(value_name = "HOST", value_parser = host(Host::takes_plugin))]
    pub(crate) host: Host,
    /// The mode in which acpdb acts
    #[arg(long, value_name = "MODE", value_parser = mode(), default_value = "record")]
    pub(crate) mode: AttachMode,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StepArgs {
    /// The session: its id, the beginning of one, or latest
    #[arg(id = "place", value_name = "SESSION", add = crate::complete::sessions())]
    pub(crate) session: String,
    /// The provider's form
    #[arg(long, value_name = "FORMAT", value_parser = super::request::format())]
    pub(crate) format: Format,
    /// The step's key: the same key again begins no new step [default: step-N, with the next turn as N]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Most tokens of all items together
    #[arg(long, value_name = "N")]
    pub(crate) tokens_max: Option<u64>,
    /// Record due texts (reminder, reflection, memory) as injected, and send them
    #[arg(long)]
    pub(crate) inject: bool,
    /// Set no marks for the cache in the body (anthropic)
    #[arg(long)]
    pub(crate) no_breakpoints: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Mcp {
    /// Let the model read sessions of all projects in the store, and not only those of this folder
    #[arg(long)]
    pub(crate) all_projects: bool,
    /// Serve on this address over HTTP, at /mcp [default: 127.0.0.1:4142; port 0 takes a free one]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:4142")]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// The token that clients have to show; better in the variable, since others see arguments. With one, other machines may be let in [default: made
    /// once, in keys/mcp.token beside your settings, for programs of yours on this machine]
    #[arg(long, value_name = "TOKEN", env = "ACPDB_MCP_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

/// How a proxy treats requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyMode {
    /// Pass them on byte for byte
    Record,
    /// Send the context that acpdb serves: superseded, discarded and repeated results show their placeholders
    Prune,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProxyArgs {
    /// The provider's address, beginning with its scheme
    #[arg(value_name = "URL")]
    pub(crate) upstream: String,
    /// How it treats requests
    #[arg(long, value_name = "MODE", default_value = "record")]
    pub(crate) mode: ProxyMode,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4141")]
    pub(crate) listen: std::net::SocketAddr,
    /// The token that clients have to show; better in the variable, since others see arguments. With one, other machines may be let in [default: made
    /// once, in keys/proxy.token beside your settings, for programs of yours on this machine]
    #[arg(long, value_name = "TOKEN", env = "ACPDB_PROXY_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// How far acpdb acts: prune sends requests without superseded results
    #[arg(long, value_name = "MODE", value_parser = mode(), default_value = "record")]
    pub(crate) mode: AttachMode,
    /// The provider's address [default: as your environment says, else the provider's own]
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// The variable by which the program finds its provider [default: those that acpdb knows]
    #[arg(long, value_name = "NAME")]
    pub(crate) variable: Option<String>,
    /// The program, such as claude, codex or gemini, and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<std::ffi::OsString>,
    /// Wait for the end of a run, and go on for one that is killed
    #[arg(long, hide = true)]
    pub(crate) successor: bool,
}
