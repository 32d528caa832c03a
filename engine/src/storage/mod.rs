//! Durable bytes behind one small trait, and the only places that read the clock or draw random bytes.
//!
//! ```text
//! log, index --> Storage (names) --> StoredFile (bytes, lock)
//!                  |- FileStorage   files of one directory
//!                  '- SimStorage    a simulated world with crashes and faults (tests, feature `testing`)
//! ```
//!
//! Names are relative, `/`-separated and made by the engine, never by a host: `tail`, `log/000000000001.seg`.
//! The trait promises as little as a disk does: reads and writes may be short or interrupted, unsynced bytes
//! may be lost in any part and any order, and a name is durable only once its directory was synced. Processes that read and
//! write the same bytes at once may see some of them old and some new, but for 8 aligned ones. Nothing is ever mapped into
//! memory: if a file is truncated by another program, or a disk is full or gone, a call returns an error and no signal ends the process.
//! Functions here loop over short calls; the order of syncs is the caller's business.

mod beneath;
mod clock;
mod file_system;
mod key_ring;
mod memory;
#[cfg(any(test, feature = "testing"))]
mod sim;
#[cfg(test)]
mod tests;

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use beneath::Beneath;

pub use beneath::Access;
pub use clock::{Bell, Clock, Entropy, FixedClock, FixedEntropy, SystemClock, SystemEntropy};
pub use file_system::{effective_user, free_bytes, untrusted};
pub use key_ring::{FileKeyRing, KeyRing, PASSPHRASE_BYTES_MIN, PassphraseKeyRing, RawKeyRing};
pub(crate) use memory::expect_filled;
#[cfg(any(test, feature = "testing"))]
pub use sim::{Crash, Fault, FaultKind, Moment, Part, SimClock, SimStorage, SimWorld};

/// The files of one store.
pub trait Storage: Send + Sync {
    /// The path of a name, for messages and for callers that need a real path.
    fn path(&self, name: &str) -> PathBuf;
    /// Opens a file, and only a regular one. No part of the name is followed if it is a symbolic link; a file opened for
    /// writing has one name and belongs to the user or to the store's owner.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>>;
    /// Makes a directory, readable by its owner only; no error if it exists. `""` is the store's own.
    fn create_dir(&self, name: &str) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;
    /// Puts a file under another name, in place of the file that has that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Lets two files change names in one step: at no time is one of the names without a file. [`io::ErrorKind::Unsupported`] where the
    /// file system cannot.
    fn exchange(&self, _left: &str, _right: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Takes the name of a regular file away.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes the names of a directory durable. `""` is the store's own, `".."` the one it lies in.
    fn sync_dir(&self, directory: &str) -> io::Result<()>;
    /// Number of the calling process.
    fn process(&self) -> u32;
}

/// An open file.
pub trait StoredFile: Send + Sync {
    /// Reads at `offset`; may be short; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at `offset`; may be short.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Whether it has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// The first byte at or after `offset` that may be anything but a zero which was never written; `None`: none to the end
    /// of the file. The bytes between are a hole and take no room. Where holes are not known the answer is `offset` itself.
    fn data_from(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok((offset < self.len()?).then_some(offset))
    }
    /// Cuts or extends with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes bytes and length durable; the name only by [`Storage::sync_dir`].
    fn sync_data(&self) -> io::Result<()>;
    /// Takes the file's exclusive lock if it is free. It dies with the process and with this handle.
    fn try_lock(&self) -> io::Result<bool>;
    /// Gives the lock back.
    fn unlock(&self) -> io::Result<()>;
    /// Whether the name it was opened by still names this file, so that a lock on it means something.
    fn is_current(&self) -> io::Result<bool>;
    /// Whether any name still names this file; cheaper than [`StoredFile::is_current`].
    fn is_linked(&self) -> io::Result<bool> {
        self.is_current()
    }
}

/// Bytes from one offset to another, as a length in memory; 0 if `end` is not behind `start`. A length that memory cannot have is
/// the longest one: a read of it ends with the file, and no slice has it.
pub(crate) fn bytes_between(start: u64, end: u64) -> usize {
    usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX)
}

/// Reads until `buffer` is full or the file ends; returns how much was read.
pub fn read_up_to(file: &dyn StoredFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0_usize;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(count) => done = done.saturating_add(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all of `bytes`. On an error `done` says how much was written before it.
pub fn write_all(file: &dyn StoredFile, bytes: &[u8], offset: u64, done: &mut usize) -> io::Result<()> {
    *done = 0;
    while let Some(rest) = bytes.get(*done..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, offset.saturating_add(*done as u64)) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *done = done.saturating_add(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Syncs, again after an interruption. Any other failure is final: unsynced bytes may be lost.
pub fn sync(file: &dyn StoredFile) -> io::Result<()> {
    loop {
        match file.sync_data() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The names in a folder; none if there is no folder.
pub fn list_if_there(storage: &dyn Storage, folder: &str) -> io::Result<Vec<String>> {
    match storage.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

/// Reads a whole small file, or `None` if there is none. More than `bytes_max` is an error.
pub fn read_file(storage: &dyn Storage, name: &str, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let file = match storage.open(name, Access::Read) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let length = usize::try_from(file.len()?).unwrap_or(usize::MAX);
    if length > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{length} bytes, at most {bytes_max} expected"),
        ));
    }
    let mut bytes = vec![0; length];
    let count = read_up_to(&*file, &mut bytes, 0)?;
    bytes.truncate(count);
    Ok(Some(bytes))
}

/// Puts a whole file in place: temporary file, sync, rename, sync of the directory. In every case the name
/// holds the old bytes or the new ones. Durable when it returns. The caller holds a lock: two at once would write one temporary file.
pub fn write_file(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    let file = storage.open(&temporary, Access::Replace)?;
    let put = || {
        write_all(&*file, bytes, 0, &mut 0)?;
        sync(&*file)?;
        storage.rename(&temporary, name)
    };
    put().inspect_err(|_| give_back(storage, &*file, &temporary))?;
    drop(file);
    storage.sync_dir(name.rsplit_once('/').map_or("", |(directory, _)| directory))
}

/// Puts a file in place that `fill` writes, for callers without a lock. In any case the name holds nothing, an old file or this one.
/// `false`: another process or thread is putting one there. Durable only if `fill` syncs, and the directory is synced after it.
pub fn put_file(
    storage: &dyn Storage,
    name: &str,
    fill: &dyn Fn(&dyn StoredFile) -> io::Result<()>,
) -> io::Result<bool> {
    let temporary = format!("{name}.tmp");
    let file = storage.open(&temporary, Access::Create)?;
    if !file.try_lock()? || !file.is_current()? {
        return Ok(false);
    }
    let put = || {
        file.set_len(0)?;
        fill(&*file)?;
        storage.rename(&temporary, name)
    };
    put().inspect_err(|_| give_back(storage, &*file, &temporary))?;
    Ok(true)
}

/// Removes a temporary file that could not be put in place. On a full disk, the space that it took is the space that commits need.
pub fn give_back(storage: &dyn Storage, file: &dyn StoredFile, temporary: &str) {
    // The caller reports the error that came before.
    let _ = file.set_len(0);
    // A file that stays is replaced by the next attempt.
    let _ = storage.remove(temporary);
}

// --- the files of one directory ----------------------------------------------------------------------------------------------

// Directories are made 0700 and files 0600, even if the umask allows more. Reads and writes carry their
// offset (`pread`, `pwrite`), so handles share files without a cursor. The lock is `flock`: it belongs to the
// open file, dies with the process, and says nothing by existing.

/// The files of one directory.
#[derive(Debug, Clone)]
pub struct FileStorage {
    root: PathBuf,
    read_only: bool,
}

impl FileStorage {
    /// Storage in `root`, which need not exist yet. Touches nothing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), read_only: false }
    }

    /// The same, for reading: refuses every change of a file, a name or a time, for every caller.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn enter(&self) -> io::Result<Beneath> {
        Beneath::new(&self.root)
    }

    /// Enters the directory to change something in it.
    fn enter_to_write(&self) -> io::Result<Beneath> {
        if !self.read_only {
            return self.enter();
        }
        let on_disk = self.enter().is_ok_and(|beneath| beneath.is_on_read_only_disk());
        Err(if on_disk {
            io::ErrorKind::ReadOnlyFilesystem.into()
        } else {
            io::Error::new(io::ErrorKind::PermissionDenied, "the store is open for reading only")
        })
    }
}

impl Storage for FileStorage {
    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>> {
        let beneath = if access == Access::Read { self.enter() } else { self.enter_to_write() };
        let file = beneath?.file(name, access)?;
        let found = file.metadata()?;
        Ok(Box::new(DiskFile { file, identity: (found.dev(), found.ino()), path: self.path(name) }))
    }

    fn create_dir(&self, name: &str) -> io::Result<()> {
        if !name.is_empty() {
            return self.enter_to_write()?.create_dir(name);
        }
        if self.read_only {
            return self.enter_to_write().map(|_| ());
        }
        match DirBuilder::new().mode(0o700).recursive(true).create(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.root.is_dir() => Ok(()),
            result => result,
        }
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let mut names = self.enter()?.list(directory)?;
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.enter_to_write()?.rename(from, to)
    }

    fn exchange(&self, left: &str, right: &str) -> io::Result<()> {
        self.enter_to_write()?.exchange(left, right)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.enter_to_write()?.remove(name)
    }

    fn sync_dir(&self, directory: &str) -> io::Result<()> {
        if directory != ".." {
            return self.enter()?.sync_dir(directory);
        }
        match self.root.parent() {
            // If `x` is a link, `x/..` would be the folder of its target; the name that was made is in this folder.
            Some(parent) => Beneath::new(parent)?.sync_dir(""),
            None => Ok(()),
        }
    }

    fn process(&self) -> u32 {
        std::process::id()
    }
}

#[derive(Debug)]
struct DiskFile {
    file: File,
    /// Device and inode, which an open file keeps.
    identity: (u64, u64),
    path: PathBuf,
}

impl StoredFile for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn is_linked(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.nlink() > 0)
    }

    fn is_current(&self) -> io::Result<bool> {
        match self.path.symlink_metadata() {
            Ok(found) => Ok((found.dev(), found.ino()) == self.identity),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn data_from(&self, offset: u64) -> io::Result<Option<u64>> {
        #[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
        match rustix::fs::seek(&self.file, rustix::fs::SeekFrom::Data(offset)) {
            // This moves the file's own cursor, which no code uses.
            Ok(place) => return Ok(Some(place)),
            Err(rustix::io::Errno::NXIO) => return Ok(None),
            // A file system that knows of no holes.
            Err(_) => {}
        }
        Ok((offset < self.len()?).then_some(offset))
    }
}
