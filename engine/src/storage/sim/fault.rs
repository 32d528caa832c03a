//! Faults that tests put into the simulated machine.

use std::io;

/// How a simulated process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// It is killed: page cache and other processes live on.
    Kill,
    /// The machine loses power.
    Power,
}

/// The kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Reads and listings fail.
    ReadError,
    /// Writes and changes of length fail.
    WriteError,
    /// Writes that make a file longer, new files and directories find no space; part of a write succeeds first.
    NoSpace,
    /// Syncs of files fail and lose pending bytes.
    SyncError,
    /// Syncs of files return success and do nothing.
    SyncLies,
    /// Syncs of directories fail.
    SyncDirError,
    /// Renames and removals fail.
    RenameError,
    /// Opening files fails.
    OpenError,
    /// Locking fails (not: is refused).
    LockError,
    /// Questions about a file (its length, the file that its name leads to) fail.
    InspectError,
    /// Reads and writes do less than asked.
    Short,
    /// Reads, writes and syncs are interrupted every other time.
    Interrupted,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::ReadError,
        Self::WriteError,
        Self::NoSpace,
        Self::SyncError,
        Self::SyncLies,
        Self::SyncDirError,
        Self::RenameError,
        Self::OpenError,
        Self::LockError,
        Self::InspectError,
        Self::Short,
        Self::Interrupted,
    ];

    pub(super) fn error(self) -> io::Error {
        match self {
            Self::NoSpace => io::ErrorKind::StorageFull.into(),
            Self::Interrupted => io::ErrorKind::Interrupted.into(),
            _ => io::Error::other("simulated input/output error"),
        }
    }
}

/// A fault that is planted in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// From which matching operation on, counted from 0 after planting.
    pub after: u64,
    /// Only that one, or all from there on.
    pub once: bool,
}

pub(super) fn dead() -> io::Error {
    io::Error::other("the simulated process is dead")
}
