//! Keys, signed checkpoints and proofs.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyAct {
    /// Make a key to sign with; it is kept beside your settings, readable by you only
    New {
        /// Its name
        #[arg(value_name = "NAME", default_value = "default")]
        name: String,
        /// Keep it under a passphrase, which is asked for whenever it signs
        #[arg(long)]
        passphrase: bool,
        /// Keep it in the system's keyring, in a program that was built with the feature keyring
        #[arg(long, conflicts_with = "passphrase")]
        keyring: bool,
    },
    /// Wrap the key of an encrypted store by another key; sealed events stay as they are
    Rotate {
        /// The new key: a file, made if there is none [default: a new one beside your settings]
        #[arg(long, value_name = "FILE")]
        to: Option<std::path::PathBuf>,
        /// A passphrase instead; acpdb help encryption says how to give it
        #[arg(long, conflicts_with = "to")]
        to_passphrase: bool,
        /// The system's keyring instead, in a program that was built with the feature keyring
        #[arg(long, conflicts_with_all = ["to", "to_passphrase"])]
        to_keyring: bool,
    },
    /// The key that others need to check signatures of this store
    Show {
        /// Its name
        #[arg(value_name = "NAME", default_value = "default")]
        name: String,
    },
    /// Trust the signatures of another person's key, or list the trusted keys
    Trust {
        /// The key, as acpdb key show prints it [default: list the trusted keys]
        #[arg(value_name = "KEY")]
        key: Option<String>,
        /// Trust it no longer
        #[arg(long, requires = "key")]
        remove: bool,
    },
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  acpdb checkpoint sign                all events up to now, with your key\n  \
    acpdb checkpoint show                checkpoints, and whether they still hold\n  \
    acpdb checkpoint export > now.note   for people who remember it\n  \
    acpdb checkpoint push --policy witnesses.txt   others sign that it only grew\n\n\
    A checkpoint is kept beside the log, and the last one seen is remembered beside your settings: if the whole folder is set \
    back, acpdb verify says so. A checkpoint whose key is not known here proves nothing: exit code 8."
)]
pub(crate) struct CheckpointVerb {
    #[command(subcommand)]
    pub(crate) act: CheckpointAct,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointAct {
    /// Sign the history up to now, once it agrees with all that was signed before
    Sign {
        /// The name of the key
        #[arg(long, value_name = "NAME", default_value = "default")]
        key: String,
    },
    /// Signed checkpoints, and whether the log still agrees with them
    Show,
    /// Ask witnesses to sign that the history only grew since they saw it last, as C2SP tlog-witness has it
    Push(Push),
    /// A file that proves one event, or that the history only grew, to people who have no store
    Prove(Prove),
    /// Whether a file proves its claim, without a store; exit code 3 if not, 4 if it is older than a checkpoint seen here
    Check(CheckArgs),
    /// Print a signed checkpoint, as C2SP tlog-checkpoint has it
    Export {
        /// The last event of the checkpoint [default: the newest checkpoint]
        #[arg(value_name = "SEQ")]
        seq: Option<String>,
        /// Write it with its tree into this folder, as C2SP tlog-tiles has it: any file server can serve it
        #[arg(long, value_name = "FOLDER")]
        tiles: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A policy is a file as C2SP tlog-policy has it: witness NAME KEY URL, group NAME 2 NAME NAME NAME, quorum NAME.\n\nExit \
    codes: 0: enough witnesses signed; 8: some signed; 1: none signed; 3: one saw another history; 4: one saw a longer \
    history.\n\nRecording never waits for witnesses."
)]
pub(crate) struct Push {
    /// The last event of the checkpoint [default: the newest checkpoint]
    #[arg(value_name = "SEQ")]
    pub(crate) seq: Option<String>,
    /// Witnesses, and how many are needed
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: PathBuf,
    /// How long to wait for one witness
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) timeout: u64,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A checkpoint has to cover the event: acpdb checkpoint sign. The file shows nothing of other events."
)]
pub(crate) struct Prove {
    /// The event, with its item a call from start to result; or the first and the last of several events
    #[arg(value_name = "SEQ", required_unless_present_any = ["from", "session"], conflicts_with_all = ["from", "to", "session"])]
    pub(crate) seq: Option<String>,
    /// Only this event, and not the others of its item
    #[arg(long, requires = "seq")]
    pub(crate) event: bool,
    /// Show the texts of the events, too
    #[arg(long, conflicts_with = "from")]
    pub(crate) with_body: bool,
    /// An earlier checkpoint: its last event, or a file
    #[arg(long, value_name = "A", conflicts_with = "session")]
    pub(crate) from: Option<String>,
    /// The later checkpoint [default: the newest]
    #[arg(long, value_name = "B", requires = "from")]
    pub(crate) to: Option<String>,
    /// Write the proof to this file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0: the file proves the printed text; 3: it proves nothing, or contradicts a checkpoint seen here; 4: it is \
    a checkpoint older than one seen here.\n\nThe policy is the file of acpdb checkpoint push. docs/check_proof.py does \
    the same without acpdb."
)]
pub(crate) struct CheckArgs {
    /// A file that acpdb checkpoint prove or acpdb checkpoint export wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// A key as acpdb key show prints it, or a file with it [default: yours and those that you trust]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Vec<String>,
    /// A file that names the witnesses that must have signed, too
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The report holds recorded texts: give it only to people who may read them. It says itself which claims it proves, and \
    which it does not.\n\nExit codes: 0: the log agrees with all that was signed; 3, 4, 8: as of acpdb checkpoint show. \
    The report is written in any case."
)]
pub(crate) struct Audit {
    /// One session [default: all]
    #[arg(id = "place", value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Events that were recorded after this time or event
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    #[command(flatten)]
    pub(crate) target: super::ExportTarget,
}
