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
//! memory: if a file is truncated by another program, or a disk is full or gone, a call returns an error and no signal ends the process. Helpers here
//! loop over short calls; the order of syncs is the caller's business.

mod beneath;
mod clock;
mod file;
mod file_system;
mod key_ring;
mod memory;
#[cfg(any(test, feature = "testing"))]
mod sim;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;

pub use clock::{Bell, Clock, Entropy, FixedClock, FixedEntropy, SystemClock, SystemEntropy};
pub use file::FileStorage;
pub use file_system::{effective_user, free_bytes, untrusted};
pub use key_ring::{FileKeyRing, KeyRing, PASSPHRASE_BYTES_MIN, PassphraseKeyRing, RawKeyRing};
pub(crate) use memory::expect_filled;
#[cfg(any(test, feature = "testing"))]
pub use sim::{Crash, Fault, FaultKind, Moment, Part, SimClock, SimStorage, SimWorld};

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For reading; must exist.
    Read,
    /// For reading and writing; must exist.
    Write,
    /// For reading and writing; made if it does not exist.
    Create,
    /// For reading and writing; must not exist.
    CreateNew,
    /// For reading and writing; emptied if it exists, made if not.
    Replace,
}

/// The files of one store.
pub trait Storage: Send + Sync {
    /// Where a name is, for messages and for those who need a real path.
    fn path(&self, name: &str) -> PathBuf;
    /// Opens a file, and only a regular one. No part of the name is followed if it is a symbolic link; what is opened for
    /// writing has one name and is the user's or the store's owner's.
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>>;
    /// Makes a directory, readable by its owner only; no error if it exists. `""` is the store's own.
    fn create_dir(&self, name: &str) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;
    /// Puts a file under another name, in place of what has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
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
    /// of the file. What lies between is a hole and takes no room. Where holes are not known it is `offset` itself.
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

/// Syncs, again after an interruption. Any other failure is final: what was not synced may be lost.
pub fn sync(file: &dyn StoredFile) -> io::Result<()> {
    loop {
        match file.sync_data() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
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

/// Puts a whole file in place: temporary file, sync, rename, sync of the directory. Whatever happens, the name
/// holds the old bytes or the new ones. Durable when it returns.
pub fn write_file(storage: &dyn Storage, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = format!("{name}.tmp");
    let file = storage.open(&temporary, Access::Replace)?;
    write_all(&*file, bytes, 0, &mut 0)?;
    sync(&*file)?;
    drop(file);
    storage.rename(&temporary, name)?;
    storage.sync_dir(name.rsplit_once('/').map_or("", |(directory, _)| directory))
}
