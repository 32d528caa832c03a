//! Storage in the files of one directory.
//!
//! Directories are made 0700 and files 0600 whatever the umask allows beyond that. Reads and writes carry their
//! offset (`pread`, `pwrite`), so handles share files without a cursor. The lock is `flock`: it belongs to the
//! open file, dies with the process, and says nothing by existing.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::beneath::Beneath;
use super::{Access, Storage, StoredFile};

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

    fn remove(&self, name: &str) -> io::Result<()> {
        self.enter_to_write()?.remove(name)
    }

    fn sync_dir(&self, directory: &str) -> io::Result<()> {
        if directory != ".." {
            return self.enter()?.sync_dir(directory);
        }
        match self.root.parent() {
            // `x/..` would be the folder of what `x` leads to; the name that was made is in this one.
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
