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
#[command(
    after_help = "Verbs that record also make a store if there is none, but only init makes an encrypted one. A store that exists \
    already stays as it is. acpdb help encryption says more."
)]
pub(crate) struct Init {
    /// The folder whose store it is, in DIR/.acpdb [default: this one]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Seal all that it records under one key, wrapped by a key beside your settings or by that of --key-file
    #[arg(long)]
    pub(crate) encrypt: bool,
    /// Wrap that key by a passphrase instead; acpdb help encryption says how to give it
    #[arg(long, requires = "encrypt", conflicts_with = "key_file")]
    pub(crate) passphrase: bool,
    /// Keep the key that wraps it in the system's keyring, in a program that was built with the feature keyring
    #[arg(long, requires = "encrypt", conflicts_with_all = ["key_file", "passphrase"])]
    pub(crate) keyring: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// Also fold everything, and check conclusions and saved folds
    #[arg(long)]
    pub(crate) deep: bool,
    /// Of a URL, as `--db file:///FOLDER`: look at heads and names alone, and read no other object
    #[arg(long, conflicts_with_all = ["deep", "host", "head"])]
    pub(crate) quick: bool,
    /// Check only the bytes of an encrypted store, such as a backup where its key is not kept
    #[arg(long, conflicts_with_all = ["deep", "host"])]
    pub(crate) without_key: bool,
    /// Only print the durable end, or that of the commit which holds an event, in a line to keep elsewhere: a link stands for all up to it
    #[arg(long, value_name = "SEQ", num_args = 0..=1, default_missing_value = "",
        conflicts_with_all = ["deep", "without_key", "expect", "key", "host"])]
    pub(crate) head: Option<String>,
    /// Links kept elsewhere: a line that --head printed, SEQ=LINK, or a file of such lines; may be given several times
    #[arg(long, value_name = "SEQ=LINK|FILE")]
    pub(crate) expect: Vec<String>,
    /// The key that acpdb key show printed for this store, or a file with it: finds another store in the place of this one
    #[arg(long, value_name = "KEY", conflicts_with = "host")]
    pub(crate) key: Option<String>,
    /// Only compare the requests of a session, or of all, with the digests that their host recorded
    #[arg(long, value_name = "SESSION", num_args = 0..=1, default_missing_value = "",
        conflicts_with_all = ["deep", "expect"])]
    pub(crate) host: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writers need not stop. A copy is verified before it gets its name; to restore it, open it. Below a URL a store is kept \
    in pieces that are written once; several stores may be there. An encrypted store goes there as it is, without its key. \
    s3:// and postgres:// need a build with that feature; credentials are those of AWS_* and ~/.aws, or of PG* and ~/.pgpass."
)]
#[expect(clippy::struct_excessive_bools, reason = "switches of one verb, each with a name")]
pub(crate) struct BackupArgs {
    /// A folder that is empty or does not exist, or holds an older backup of this store, whose place the new one takes; or
    /// `file:///FOLDER` on a mounted disk, `s3://BUCKET/PREFIX`, `postgres://HOST/DATABASE/PREFIX`, to ship new events there
    /// [default: the setting backup]
    #[arg(value_name = "DIR|URL")]
    pub(crate) target: Option<PathBuf>,
    /// To a URL: go on until Ctrl-C or SIGTERM
    #[arg(long, conflicts_with_all = ["status", "dry_run"])]
    pub(crate) follow: bool,
    /// With --follow: seconds for which news are collected
    #[arg(long, value_name = "SECONDS", default_value = "1", requires = "follow", value_parser = seconds)]
    pub(crate) every: u32,
    /// Of a URL: say how far it is behind the store, and change nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) status: bool,
    /// To a URL: say the bytes, requests and dollars, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// To a URL: send the wrapped key of an encrypted store, too
    #[arg(long)]
    pub(crate) keys: bool,
    /// To a URL: encrypt each object, which its key alone opens; acpdb help encryption says more
    #[arg(long)]
    pub(crate) encrypt: bool,
    /// To a bucket that keeps no conditions: ship nevertheless; nothing stops a second writer
    #[arg(long)]
    pub(crate) alone: bool,
}

/// Reads seconds, with or without the letter behind them.
fn seconds(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    // Why it is no number is said below: the range is.
    number
        .parse()
        .ok()
        .filter(|seconds| (1..=86_400).contains(seconds))
        .ok_or_else(|| "it has to be from 1 to 86400 seconds".to_owned())
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Whatever fails, there is no store: the folder gets its name once all is there and verified. What is at the URL is only \
    read. With --at '#812' or a time of recording, the store ends with the last commit up to there, and goes on from there by itself; \
    where something was erased since, that is refused. \
    An item of a context is shown again by acpdb context restore."
)]
pub(crate) struct RestoreArgs {
    /// Where acpdb backup shipped to: `file:///FOLDER`, `s3://BUCKET/PREFIX`, `postgres://HOST/DATABASE/PREFIX`
    #[arg(value_name = "URL")]
    pub(crate) url: PathBuf,
    /// A folder that is empty or does not exist, for the store
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The store, by its id or the beginning of it, if several are there
    #[arg(long, value_name = "ID")]
    pub(crate) store: Option<String>,
    /// Say the bytes, requests and dollars, and restore nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The damaged store is only read. Events keep their numbers; a note stands in place of each lost event."
)]
pub(crate) struct Salvage {
    /// A folder that is empty or does not exist, for the new store
    #[arg(long, value_name = "DIR")]
    pub(crate) into: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Doctor {
    #[command(subcommand)]
    pub(crate) act: Option<DoctorAct>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum DoctorAct {
    /// Make the index anew from the log
    Reindex,
    /// Copy everything that verifies from a damaged store to a new one
    Salvage(Salvage),
    /// Rewrite complete segments once, smaller; their contents stay the same
    Seal(Seal),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Info {
    /// Where the bytes are: by kind, by state, by segment
    #[arg(long)]
    pub(crate) space: bool,
    /// The hosts, the sessions that were read of each, and the records that were not understood
    #[arg(long, conflicts_with = "space")]
    pub(crate) hosts: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Seal {
    /// Complete the segment that is being written, and seal it too
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Erased, with zeros in their place: the item's texts (a call's parameters and result, all versions of a message), every equal text \
in the store, and the hosts' records that quote them. --dry-run lists all of them. All else stays readable, the store still \
verifies, and reads of an erased text name the eraser and the reason. If a crash interrupts the erasure, the next verb that writes \
finishes it.

An erased text is not recorded again from any source: a note stands in its place.

Not erased: ids, names of tools, paths, and quotations inside other texts. acpdb scan and acpdb log 'text:WORD' find quotations; \
--from-scan erases all that a scan finds. Copies outside of the store stay, too: backups, exports, the host's own files, overwritten \
blocks that a disk keeps. If a secret leaked, have its issuer withdraw it.")]
// As in `Scan`.
#[command(mut_arg("redact", |arg| arg.hide(true)))]
pub(crate) struct Erase {
    /// The item or event: #seq, short hash, call id or a unique prefix of one
    #[arg(value_name = "ID", required_unless_present = "from_scan", conflicts_with = "from_scan")]
    pub(crate) id: Option<String>,
    /// Every secret that acpdb scan finds, with the same rules; a mark stands in its place, and the rest of a message or result stays
    #[arg(long)]
    pub(crate) from_scan: bool,
    /// With --from-scan: the whole texts that hold one
    #[arg(long, conflicts_with = "id")]
    pub(crate) whole: bool,
    /// Only the bytes of the text from A on and before B; a mark stands in their place, and the rest stays
    #[arg(long, value_name = "A..B", value_parser = span, conflicts_with = "from_scan", requires = "id")]
    pub(crate) span: Option<Span>,
    #[command(flatten)]
    pub(crate) redact: crate::redaction::RedactOptions,
    /// The reason; recorded for good and in plain, so do not repeat the secret
    #[arg(long, value_name = "TEXT", required_unless_present = "dry_run")]
    pub(crate) reason: Option<String>,
    /// The person who asked for it; recorded for good [default: the user's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// List the texts that would be erased, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A stretch of a text, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Span(pub(crate) std::ops::Range<usize>);

fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("{text:?} is no span; write A..B, such as 120..164");
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
    Ok(Span(number(start)?..number(end)?))
}
