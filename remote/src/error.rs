//! The reason why a chain could not be written or read.

use acpdb_engine::Error;
use acpdb_engine::log::LogError;
use acpdb_engine::verify::VerifyReport;

use crate::remote::RemoteError;

/// The reason why a chain could not be written or read. After an error of a chain that writes, take it over again: what is there
/// is found then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// A call of the remote failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// Another writer took the store over. Frames that were not acknowledged are not in the chain, or will be found there.
    #[error("another writer took the store over at epoch {epoch}")]
    Fenced {
        /// The epoch of that writer.
        epoch: u64,
    },
    /// Others change the head all the time; try again later.
    #[error("the head of the store changed at each try to take it over")]
    Contended,
    /// The given bytes do not continue the chain.
    #[error("the chain ends at {there}; what was given continues {given}")]
    NotNext {
        /// The end of the chain.
        there: String,
        /// The place before what was given.
        given: String,
    },
    /// The folder has less than the remote, or another history: it was set back, or two folders went on.
    #[error(
        "the remote has seq {there}, which the store in this folder, at seq {here}, does not hold: it was set back, or is a copy that went on"
    )]
    Diverged {
        /// The last seq of the remote.
        there: u64,
        /// The last seq of the folder.
        here: u64,
    },
    /// An object is not what it must be.
    #[error("{key} is no sound object: {what}")]
    Unsound {
        /// The object.
        key: String,
        /// The fault.
        what: String,
    },
    /// An object that is named is not there.
    #[error("{key} is named and is not there")]
    Missing {
        /// The object.
        key: String,
    },
    /// A newer program wrote the object.
    #[error("{key} was written by a newer acpdb; use that one")]
    Newer {
        /// The object.
        key: String,
    },
    /// There are objects of the store and no head; repair it.
    #[error("store {store} has objects and no head: it was lost")]
    HeadLost {
        /// The store.
        store: String,
    },
    /// The store was shipped without its secret: it can be read, and not taken over.
    #[error("store {store} was shipped without its secret: nothing can be appended to it from there")]
    SecretMissing {
        /// The store.
        store: String,
    },
    /// A URL names no remote.
    #[error(transparent)]
    Url(#[from] RemoteUrlError),
    /// There is no such store at the remote.
    #[error("the remote has no store {store}")]
    NoStore {
        /// The store.
        store: String,
    },
    /// The store has no commit up to the point that was asked for, or does not go so far.
    #[error("the store there has no such point")]
    NoCommit,
    /// Something is longer than the format allows.
    #[error("{what} has a length of {bytes}, more than the limit of {limit}")]
    TooLarge {
        /// The thing.
        what: String,
        /// Its length.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The objects make no sound store; nothing of it was kept.
    #[error("what the remote has is no sound store: {}", told(.0))]
    Damaged(Box<VerifyReport>),
    /// The store in the folder cannot be read or written.
    #[error(transparent)]
    Store(#[from] Error),
}

/// The reason why a URL names no remote. A URL is told in no message that may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteUrlError {
    /// It has no scheme.
    #[error("{typed} is no URL")]
    NoScheme {
        /// The text.
        typed: String,
    },
    /// No backend has this scheme.
    #[error("{scheme}:// URLs are not in this version")]
    Scheme {
        /// The scheme.
        scheme: String,
    },
    /// A folder is named in another form.
    #[error("{typed} has another form than file:///FOLDER")]
    FolderForm {
        /// The URL.
        typed: String,
    },
    /// A `%` stands for no byte.
    #[error("{typed} has a % without two hex digits behind it")]
    Percent {
        /// The URL.
        typed: String,
    },
    /// A user or a password stands in it.
    #[error(
        "a URL with a user or a password in it is refused: credentials are those of the variables AWS_* and of ~/.aws, or PG* and ~/.pgpass"
    )]
    Credentials,
    /// A bucket is named in another form.
    #[error("the URL has another form than s3://BUCKET/PREFIX")]
    BucketForm,
    /// A database is named in another form.
    #[error("the URL has another form than postgres://HOST/DATABASE/PREFIX")]
    DatabaseForm,
    /// The program has no client of databases.
    #[error("this acpdb was built without postgres")]
    WithoutPostgres,
    /// The program has no client of buckets.
    #[error("this acpdb was built without s3")]
    WithoutS3,
}

impl From<LogError> for ChainError {
    fn from(error: LogError) -> Self {
        Self::Store(error.into())
    }
}

/// The first fault that a report has.
fn told(report: &VerifyReport) -> String {
    let violations = report
        .violations
        .iter()
        .map(|found| format!("{} of {}: {}", found.kind, found.path.display(), found.detail));
    let missing = report.missing.map(|(first, last)| format!("events {first} to {last} are missing"));
    violations.chain(missing).chain(report.not_proven.iter().cloned()).next().unwrap_or_default()
}
