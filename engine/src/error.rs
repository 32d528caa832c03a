//! Errors, by the action that the caller can take.

use std::path::PathBuf;

use crate::codec::{DamagedPart, EncodeError};
use crate::command::Rejection;
use crate::ids::{Seq, StreamId};
use crate::log::LogError;

/// The reason why the store could not do as asked.
///
/// A variant says what to do: wait ([`Error::Busy`], [`Error::Unshipped`]), read again and retry ([`Error::HeadMoved`]), change the request
/// ([`Error::Rejected`], [`Error::NotFound`], [`Error::TooLarge`]), free space ([`Error::NoSpace`]), reopen
/// ([`Error::Poisoned`], [`Error::Replaced`], [`Error::Upgraded`], [`Error::Fenced`]), run `acpdb verify` ([`Error::Corrupt`]), update
/// ([`Error::NewerFormat`]), or look at the
/// file system ([`Error::Io`]).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::{Error, Seq, StreamInfo};
///
/// match store.view(StreamInfo::session("my-agent", "run-2").id()) {
///     Err(Error::NotFound { what, .. }) => assert_eq!(what, "stream"), // change the request
///     Err(Error::Busy { .. }) => println!("wait, and try again"),
///     Err(error) => return Err(error.into()), // names the file, the cause and what to do
///     Ok(view) => println!("seen up to {}", view.at()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Others hold a lock, or go on changing a stream or a file, for longer than this handle waits. Nothing was recorded.
    #[error("the store is busy: {detail}")]
    Busy {
        /// The lock and the process that holds it, or what changes again and again.
        detail: String,
    },
    /// Another writer wrote to the stream first. Nothing was recorded.
    #[error("stream {stream} is at seq {actual}, not {expected}; read again and retry")]
    HeadMoved {
        /// The stream.
        stream: StreamId,
        /// The head the caller expected.
        expected: Seq,
        /// The stream's head.
        actual: Seq,
    },
    /// A command was refused. Nothing was recorded.
    #[error(transparent)]
    Rejected(Box<Rejection>),
    /// There is no such thing.
    #[error("no {what} {name:?} in this store{}", suggestion(nearest.as_deref()))]
    NotFound {
        /// The kind of thing that was looked for: `session`, `item`, `event`.
        what: &'static str,
        /// Its name.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// Several things go by that name.
    #[error("{name:?} names {} things: {}; give more of it, or the seq", candidates.len(), candidates.join(", "))]
    Ambiguous {
        /// The name.
        name: String,
        /// The things that it could mean.
        candidates: Vec<String>,
    },
    /// The commit is over a limit. Split it.
    #[error("too much for one commit: {what} {actual}, of at most {limit}; split it")]
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// How large it is.
        actual: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The disk is full. Nothing was recorded; the store stays readable, and appends again once there is space.
    #[error("no space left for {}; this commit was not recorded; free some and retry", path.display())]
    NoSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The store was opened for reading, or cannot be written.
    #[error("{} cannot be written: {detail}", path.display())]
    ReadOnly {
        /// The path that cannot be written.
        path: PathBuf,
        /// The reason.
        detail: String,
    },
    /// An earlier write could not be made durable. Reads go on; reopen the store to append.
    #[error(
        "the store refuses appends since a write or sync of it failed; open it again to recover what was confirmed"
    )]
    Poisoned,
    /// A file of the store was replaced, cut or removed while a commit was on its way. The commit may be recorded or not.
    /// Reopen the store.
    #[error(
        "{} was replaced, cut or removed while the store was open; what was not acknowledged may be recorded or not", path.display()
    )]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// The handle was made by another process (before a fork). Reopen the store.
    #[error("this handle belongs to process {owner}; open the store again in this one")]
    Forked {
        /// The process that opened it.
        owner: u32,
    },
    /// The store's folder is on a file system whose locks and syncs cannot be relied on. Use a local disk, or insist
    /// with [`Builder::any_file_system`](crate::store::Builder::any_file_system).
    #[error(
        "{} is on {file_system}, where locks and syncs cannot be relied on; use a folder on a local disk, \
         or set {ANY_FILE_SYSTEM_VARIABLE}=1 to use this one all the same", path.display()
    )]
    UntrustedFileSystem {
        /// The folder.
        path: PathBuf,
        /// The file system: `NFS`, `FUSE`, ..
        file_system: String,
    },
    /// There is no store here.
    #[error("{} is not an acpdb store: {detail}", path.display())]
    NotAStore {
        /// The folder.
        path: PathBuf,
        /// The missing part.
        detail: String,
    },
    /// The store, or a part of it, was written by a newer program. Nothing of it is touched.
    #[error("{} {found}, which this program does not know; update acpdb", path.display())]
    NewerFormat {
        /// The file that says so.
        path: PathBuf,
        /// The format version that it has, or the names of the features that it needs.
        found: String,
    },
    /// A newer program upgraded the store while this handle was open. Open it again.
    #[error("{} was upgraded while it was open; open it again", path.display())]
    Upgraded {
        /// The store.
        path: PathBuf,
    },
    /// Recorded bytes are damaged. The rest of the store stays readable.
    #[error("{detail}; run acpdb verify to see what is affected")]
    Corrupt {
        /// The damaged part and its place, in words.
        detail: String,
        /// The same for programs, as far as it is known.
        damage: Box<Damage>,
    },
    /// The bytes asked for were erased; their digest and the record of the erasure stay.
    #[error("{detail}")]
    Erased {
        /// The erased bytes, in words.
        detail: String,
        /// No person wanted them gone: damage took them.
        lost: bool,
    },
    /// A key is needed and cannot be had: it was not given, it is another one, or its file is lost.
    #[error("{detail}")]
    Locked {
        /// The key, and the reason why it cannot be had.
        detail: String,
    },
    /// Another worker took the store over. Commits that were not acknowledged may be kept or not; none that was acknowledged is lost. Open the
    /// store again to take it back.
    #[error(
        "another worker took the store over at epoch {epoch}; what was not acknowledged may be there or not"
    )]
    Fenced {
        /// The epoch of that worker.
        epoch: u64,
    },
    /// Recorded in this folder, and not acknowledged by the remote. The next commit that is acknowledged brings it there, too; so does opening again.
    #[error("recorded here, and not known to be at the remote: {detail}")]
    Unshipped {
        /// The reason.
        detail: String,
    },
    /// The file system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The environment variable that, set to `1`, has the effect of
/// [`Builder::any_file_system`](crate::store::Builder::any_file_system).
pub(crate) const ANY_FILE_SYSTEM_VARIABLE: &str = "ACPDB_ANY_FILE_SYSTEM";

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default()
}

impl From<Rejection> for Error {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(Box::new(rejection))
    }
}

/// Where recorded bytes are damaged, and the events that this costs. Each part is absent if it is not known, or does not apply.
///
/// ```
/// use acpdb_engine::Error;
/// use acpdb_engine::answers::Damage;
///
/// fn lost(error: &Error) -> Option<String> {
///     let Error::Corrupt { damage, .. } = error else { return None };
///     let Damage { path, offset, first_seq, last_seq } = &**damage;
///     Some(format!("{path:?} from byte {offset:?} on: events {first_seq:?} to {last_seq:?}"))
/// }
/// # assert!(lost(&Error::Poisoned).is_none());
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Damage {
    /// The file.
    pub path: Option<PathBuf>,
    /// The offset in the file at which the damage begins, in bytes.
    pub offset: Option<u64>,
    /// First event that it costs.
    pub first_seq: Option<Seq>,
    /// Last event that it costs.
    pub last_seq: Option<Seq>,
}

impl Error {
    /// Damage of one event.
    pub(crate) fn damaged_event(seq: Seq, detail: String) -> Self {
        let damage = Damage { first_seq: Some(seq), last_seq: Some(seq), ..Damage::default() };
        Self::Corrupt { detail, damage: Box::new(damage) }
    }

    /// Damage of a file beside the log, or of one that the log has no place for.
    pub(crate) fn damaged_file(path: Option<PathBuf>, detail: String) -> Self {
        Self::Corrupt { detail, damage: Box::new(Damage { path, ..Damage::default() }) }
    }
}

impl From<LogError> for Error {
    fn from(error: LogError) -> Self {
        let text = error.to_string();
        match error {
            LogError::Busy { .. } => Self::Busy { detail: text },
            LogError::HeadMoved { stream, expected, actual } => Self::HeadMoved { stream, expected, actual },
            LogError::Poisoned { .. } => Self::Poisoned,
            LogError::Replaced { path } => Self::Replaced { path },
            LogError::NoSpace { path, .. } => Self::NoSpace { path },
            LogError::ReadOnly { path } => {
                Self::ReadOnly { path, detail: "it is open for reading only".to_owned() }
            }
            LogError::Encode(EncodeError::TooLarge { what, actual, limit }) => {
                Self::TooLarge { what, actual, limit }
            }
            LogError::NewerFormat { found, path } => Self::NewerFormat { path, found },
            LogError::Upgraded { path } => Self::Upgraded { path },
            LogError::Corrupt(damage) if damage.part == DamagedPart::Newer => {
                Self::NewerFormat { path: damage.path, found: format!("holds {}", damage.found) }
            }
            LogError::FormerFormat { found, path } => Self::NotAStore {
                path,
                detail: format!(
                    "it {found}, of a program before the first release, which is read no more. Nothing in it was touched; `acpdb import` \
                     makes it anew from the hosts, in another folder"
                ),
            },
            LogError::Locked { detail } => Self::Locked { detail },
            LogError::NotAStore { path } => {
                Self::NotAStore { path, detail: "it has no acpdb.json".to_owned() }
            }
            LogError::Forked { owner, .. } => Self::Forked { owner },
            LogError::Erased { .. } => Self::Erased { detail: text, lost: false },
            LogError::Moved { path } => Self::ReadOnly { path, detail: text },
            LogError::Io { action, path, source } => {
                // An error that others wait for, too, is told by its number.
                let same = |source: std::sync::Arc<std::io::Error>| {
                    let number = source.raw_os_error();
                    number.map_or_else(|| source.kind().into(), std::io::Error::from_raw_os_error)
                };
                Self::Io { action, path, source: std::sync::Arc::try_unwrap(source).unwrap_or_else(same) }
            }
            LogError::Corrupt(damage) => Self::Corrupt {
                detail: text,
                damage: Box::new(Damage {
                    path: Some(damage.path),
                    offset: Some(damage.offset),
                    first_seq: damage.seq_first,
                    last_seq: damage.seq_last,
                }),
            },
            LogError::Encode(_) => Self::Corrupt { detail: text, damage: Box::default() },
        }
    }
}
