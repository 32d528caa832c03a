//! Arguments of the verbs that bring events in.

use std::path::PathBuf;

use crate::redaction::RedactOptions;

#[derive(Debug, Clone, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "switches of one verb, each with a name")]
pub(crate) struct ImportArgs {
    /// Files, folders, or other stores; - for standard input [default: the usual places of every host]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Go on until Ctrl-C or SIGTERM: new lines of hosts are in the store within a second
    #[arg(long)]
    pub(crate) follow: bool,
    /// The usual places of this host only; may be given several times
    #[arg(long = "host", value_name = "HOST", value_delimiter = ',', add = crate::complete::formats())]
    pub(crate) hosts: Vec<String>,
    /// With --follow: also look at all files every so many seconds, for changes that the system does not report
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "follow",
        value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) every: u32,
    /// The format of the files [default: found by looking at each file]
    #[arg(long, value_name = "FORMAT", add = crate::complete::formats())]
    pub(crate) format: Option<String>,
    /// The project whose memory the sessions share
    #[arg(long, value_name = "NAME", value_parser = super::project::project_name())]
    pub(crate) project: Option<String>,
    /// Also take in memory, from files of it and from other stores: later sessions are told of its items. Without this, import shows them
    #[arg(long)]
    pub(crate) memory: bool,
    /// Also set the policy of the other store here: all sessions then follow it. Without this, import shows it
    #[arg(long, conflicts_with = "follow")]
    pub(crate) policy: bool,
    /// Also follow links that lead out of a folder
    #[arg(long)]
    pub(crate) links: bool,
    /// Limits of one file, in place of the usual ones: ratio=500,bytes=4G,record=64M,document=64M,elements=1000000,facts=400000
    #[arg(long, value_name = "NAME=N,..")]
    pub(crate) limits: Vec<String>,
    #[command(flatten)]
    pub(crate) redact: RedactOptions,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "One JSON object a line, one commit each:\n  \
    {\"session\":\"s1\",\"message\":{\"role\":\"user\",\"text\":\"hello\"}}\n  \
    {\"session\":\"s1\",\"turn\":true,\"tool\":{\"call\":\"c1\",\"tool\":\"read\",\"params\":{\"filePath\":\"/a\"},\"output\":\"..\"}}\n  \
    {\"session\":\"s1\",\"events\":[{..},{..}]}   several in one commit\n\n\
    If it was killed, the line that was not acknowledged may be there, whole: look with acpdb log --texts before you send it again.")]
pub(crate) struct Append {
    /// Read from standard input
    #[arg(long, required = true)]
    pub(crate) stdin: bool,
    /// Answer each line: with the last seq of its commit once it is durable, or with refused: and the reason
    #[arg(long)]
    pub(crate) ack: bool,
    #[command(flatten)]
    pub(crate) redact: RedactOptions,
}

// The usual rules always count here, so --redact adds nothing.
#[derive(Debug, clap::Args)]
#[command(mut_arg("redact", |arg| arg.hide(true)))]
pub(crate) struct ScanArgs {
    /// Instead of known forms, these texts, one a line, in all events and in the bytes of all files of the store: proves that one is
    /// gone. - reads standard input, so that no shell keeps them
    #[arg(long = "for", value_name = "FILE", conflicts_with_all = ["session", "redact", "redact_rule"])]
    pub(crate) sought: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) redact: RedactOptions,
}
