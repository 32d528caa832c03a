//! redb's file on the storage trait, so that the index lies where the log lies: in files, or in a simulation.

use std::fmt;
use std::io;

use redb::StorageBackend;

use crate::storage::{StoredFile, read_up_to, sync, write_all};

/// The bytes of one database.
pub(super) struct Backend(Box<dyn StoredFile>);

impl Backend {
    /// Takes over an open file, whose lock its caller holds.
    pub(super) const fn new(file: Box<dyn StoredFile>) -> Self {
        Self(file)
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Backend")
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if read_up_to(&*self.0, out, offset)? == out.len() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its file ends early"))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        sync(&*self.0)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        write_all(&*self.0, bytes, offset, &mut 0)
    }
}
