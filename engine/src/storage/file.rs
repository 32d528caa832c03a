//! Storage in the files of one directory.
//!
//! Directories are made 0700 and files 0600 whatever the umask allows beyond that. Reads and writes carry their
//! offset (`pread`, `pwrite`), so handles share files without a cursor. The lock is `flock`: it belongs to the
//! open file, dies with the process, and says nothing by existing.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{Access, Storage, StoredFile};

/// The files of one directory.
#[derive(Debug, Clone)]
pub struct FileStorage {
    root: PathBuf,
}

impl FileStorage {
    /// Storage in `root`, which need not exist yet. Touches nothing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Storage for FileStorage {
    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.root.clone() } else { self.root.join(name) }
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>> {
        let path = self.path(name);
        // A link planted in the store's directory must not make us write elsewhere. The flag that does this in
        // one step has no portable value in std; the directory is 0700, so looking first is enough.
        match path.symlink_metadata() {
            Ok(found) if !found.is_file() => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            }
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read).mode(0o600);
        match access {
            Access::Read | Access::Write => {}
            Access::Create => {
                options.create(true);
            }
            Access::CreateNew => {
                options.create_new(true);
            }
            Access::Replace => {
                options.create(true).truncate(true);
            }
        }
        let file = options.open(&path)?;
        let found = file.metadata()?;
        Ok(Box::new(DiskFile { file, identity: (found.dev(), found.ino()), path }))
    }

    fn create_dir(&self, name: &str) -> io::Result<()> {
        let path = self.path(name);
        match DirBuilder::new().mode(0o700).recursive(name.is_empty()).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            result => result,
        }
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in self.path(directory).read_dir()? {
            // Names that are not UTF-8 are not ours.
            names.extend(entry?.file_name().into_string());
        }
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(name))
    }

    fn sync_dir(&self, directory: &str) -> io::Result<()> {
        let path = if directory == ".." {
            match self.root.parent() {
                Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
                Some(parent) => parent.to_owned(),
                None => return Ok(()),
            }
        } else {
            self.path(directory)
        };
        File::open(path)?.sync_all()
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
}
