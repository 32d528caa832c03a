//! Errors of a log, by the action that the caller can take; and why a read at a position found no frame.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::codec::{BodyPlace, DamagedPart, EncodeError, FrameHeader, Invalid};
use crate::ids::{Seq, StreamId};
use crate::storage::Storage;

/// The one that holds a lock. A program that locks the file and is no writer leaves no number.
fn holder(process: u32) -> String {
    if process == 0 {
        "another program holds the lock of".to_owned()
    } else {
        format!("process {process} is writing to")
    }
}

/// The reason why the log did not do as asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Another process is writing; wait and try again.
    #[error("{} {}; try again", holder(*process), path.display())]
    Busy {
        /// The process, 0 if unknown.
        process: u32,
        /// The store.
        path: PathBuf,
    },
    /// The stream went on since the caller looked; read again and decide again. Nothing was written.
    #[error(
        "stream {stream} is at seq {actual}, not at {expected} as the command assumes; read again and retry"
    )]
    HeadMoved {
        /// The stream.
        stream: StreamId,
        /// The seq the caller had seen.
        expected: Seq,
        /// The stream's newest seq.
        actual: Seq,
    },
    /// A sync failed, here or in another process, or a thread panicked in the middle of a write: unconfirmed events may be lost.
    /// Reads go on; reopen to append.
    #[error("a write or a sync of {} failed; what was acknowledged is safe, reopen the store to append again", path.display())]
    Poisoned {
        /// The store.
        path: PathBuf,
    },
    /// The disk is full. Nothing was recorded; the store stays readable and takes appends once there is space.
    #[error("no space left to {action} {}; free some and retry", path.display())]
    NoSpace {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// The store was opened for reading only, or lies on a read-only disk.
    #[error("{} is open for reading only", path.display())]
    ReadOnly {
        /// The store.
        path: PathBuf,
    },
    /// The commit is over a limit, or makes no sense.
    #[error("the commit cannot be written")]
    Encode(#[from] EncodeError),
    /// The store, or a part of it, was written by a later version of the program; upgrade. Nothing of it is touched.
    #[error("{} {found}, which this program does not know; use a newer acpdb", path.display())]
    NewerFormat {
        /// The store's format version, or the names of unknown features.
        found: String,
        /// The file that says so.
        path: PathBuf,
    },
    /// A newer program upgraded the store while this handle was open; open it again.
    #[error("{} was upgraded while open; open the store again", path.display())]
    Upgraded {
        /// The store.
        path: PathBuf,
    },
    /// The store is damaged: sound parts stay readable, appends are refused.
    #[error(transparent)]
    Corrupt(Box<Corruption>),
    /// The store was made before the first release; its form is read no more. Nothing of it is touched.
    #[error("{} {found}, made before the first release", path.display())]
    FormerFormat {
        /// The store's format version.
        found: String,
        /// The folder of the store.
        path: PathBuf,
    },
    /// The key of the store cannot be had, or one was given that is not needed.
    #[error("{detail}")]
    Locked {
        /// The reason, and what to do.
        detail: String,
    },
    /// There is no store here.
    #[error("{} holds no store", path.display())]
    NotAStore {
        /// The folder without a store.
        path: PathBuf,
    },
    /// The body was erased: its digest stays, its bytes are gone.
    #[error("the body at {place} was erased")]
    Erased {
        /// Where the body was.
        place: BodyPlace,
    },
    /// The store's lock file was replaced while open; reopen.
    #[error("{} was moved or replaced while open; reopen the store", path.display())]
    Moved {
        /// The lock file.
        path: PathBuf,
    },
    /// A file of the store was replaced or cut while a commit was on its way: the commit may be recorded or not; reopen.
    #[error(
        "{} was replaced, cut or removed while the store was open: what was not acknowledged may be recorded or not; \
         reopen the store", path.display()
    )]
    Replaced {
        /// The file.
        path: PathBuf,
    },
    /// This handle was inherited over a fork; a child must open the store itself.
    #[error("this handle belongs to process {owner}; process {process} must open the store itself")]
    Forked {
        /// The process that opened the log.
        owner: u32,
        /// The process that used the handle.
        process: u32,
    },
    /// Any other failure of the storage.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },
}

impl LogError {
    /// An error of the storage; a full disk is told apart.
    pub(crate) fn io(action: &'static str, path: PathBuf, source: io::Error) -> Self {
        let source = Arc::new(source);
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::NoSpace { action, path, source }
            }
            _ => Self::Io { action, path, source },
        }
    }

    /// As [`LogError::io`], of a file of the storage.
    pub(crate) fn of(
        action: &'static str,
        storage: &dyn Storage,
        name: &str,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = storage.path(name);
        move |error| Self::io(action, path, error)
    }

    pub(crate) fn corrupt(corruption: Corruption) -> Self {
        Self::Corrupt(Box::new(corruption))
    }
}

/// A damaged stretch of the store, and the events it costs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} is damaged at byte {offset} of {}: expected {expected}, found {found}", path.display())]
pub struct Corruption {
    /// The damaged part.
    pub part: DamagedPart,
    /// The file.
    pub path: PathBuf,
    /// Its segment, 0 for other files.
    pub segment: u32,
    /// Where the damage begins, in bytes from the start of the file.
    pub offset: u64,
    /// First event it costs, if it costs any.
    pub seq_first: Option<Seq>,
    /// Last event it costs, if it costs any.
    pub seq_last: Option<Seq>,
    /// The expected value.
    pub expected: String,
    /// The found value.
    pub found: String,
}

/// Why there is no frame at a position.
#[derive(Debug)]
pub(crate) enum FrameFault {
    /// Only zeros, or the end of the file.
    Nothing,
    /// Bytes that are no sound frame; the header, if that much is sound.
    Invalid(Invalid, Option<Box<FrameHeader>>),
    /// The storage failed.
    Error(LogError),
}

/// A value that was read; `None` if no sound one is there.
///
/// # Errors
/// If the storage failed.
pub(crate) fn sound<T>(read: Result<T, FrameFault>) -> Result<Option<T>, LogError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(FrameFault::Error(error)) => Err(error),
        Err(FrameFault::Nothing | FrameFault::Invalid(..)) => Ok(None),
    }
}
