//! redb's file on the storage trait, so that the index lies where the log lies: in files, or in a simulation.
//!
//! ```text
//! held back:  redb -> ops in memory (reads look through them)      nothing was indexed for good: dropped at the end
//!                       |  the first durable commit
//! let through:          '-> the file, op by op, syncs in their places; from then on directly
//! ```
//!
//! redb marks its file when it opens it and again when it closes it, with eight syncs for a process that only looks
//! something up. So redb's writes are held back until a commit has to be durable, and then done exactly as redb asked
//! for them, in its order. A process that only reads leaves the file as it was, however the process ends; one that may not
//! write at all holds everything back for good.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use redb::StorageBackend;

use crate::locks::steady;
use crate::storage::{StoredFile, bytes_between, read_up_to, sync, write_all};

/// Most bytes, and most ops, that are held back: then they are let through.
const HELD_BYTES_MAX: usize = 1 << 20;
const HELD_COUNT_MAX: usize = 128;

/// A request of redb.
enum BackendRequest {
    Write { offset: u64, bytes: Vec<u8> },
    Length(u64),
    Sync,
}

struct IndexFile {
    ops: Vec<BackendRequest>,
    bytes: usize,
    length: u64,
}

struct BackendState {
    file: Box<dyn StoredFile>,
    /// `None`: let through.
    held: Mutex<Option<IndexFile>>,
    /// Set for a draft, a file that no process opens before its maker has synced it whole: redb's syncs are left out.
    /// The file system's first error on such a file is kept here.
    draft: Option<Met>,
    /// Whether nothing is ever let through.
    is_reading: bool,
}

/// The file system's own error, kept apart: redb tells it as text, and says only "previous I/O error" afterwards.
#[derive(Clone, Default)]
pub(super) struct Met(Arc<Mutex<Option<io::Error>>>);

impl Met {
    /// Passes a result on, and keeps a copy of the first error.
    pub(super) fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| {
            let again = error
                .raw_os_error()
                .map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error);
            steady(&self.0).get_or_insert(again);
        })
    }

    pub(super) fn take(&self) -> Option<io::Error> {
        steady(&self.0).take()
    }
}

/// The bytes of one database.
#[derive(Clone)]
pub(super) struct Backend(Arc<BackendState>);

impl Backend {
    /// Takes over an open file, whose lock its caller holds.
    pub(super) fn new(file: Box<dyn StoredFile>) -> io::Result<Self> {
        let held = IndexFile { ops: Vec::new(), bytes: 0, length: file.len()? };
        Ok(Self(Arc::new(BackendState {
            file,
            held: Mutex::new(Some(held)),
            draft: None,
            is_reading: false,
        })))
    }

    /// Takes over an open file that stays as it is. Writes of redb are kept in memory, and lost at the end.
    pub(super) fn reading(file: Box<dyn StoredFile>) -> io::Result<Self> {
        let held = IndexFile { ops: Vec::new(), bytes: 0, length: file.len()? };
        Ok(Self(Arc::new(BackendState { file, held: Mutex::new(Some(held)), draft: None, is_reading: true })))
    }

    /// Takes over an empty file that takes another's place only when all is in it and synced by its maker: redb's own
    /// syncs, one or two for each commit, for each growth and for the close, would be waited for in vain.
    pub(super) fn draft(file: Box<dyn StoredFile>, met: Met) -> Self {
        Self(Arc::new(BackendState { file, held: Mutex::new(None), draft: Some(met), is_reading: false }))
    }

    /// Syncs all that was written, through the handle that wrote it: another would not learn of a write that failed behind
    /// its back. Returns the file's length.
    pub(super) fn finish(&self) -> io::Result<u64> {
        self.0.met(sync(&*self.0.file))?;
        self.0.file.len()
    }

    /// Does the ops that were held back, and holds none back any more. If it fails, the rest is tried again the next time.
    pub(super) fn let_through(&self) -> io::Result<()> {
        self.0.let_through(&mut self.held())
    }

    fn held(&self) -> MutexGuard<'_, Option<IndexFile>> {
        steady(&self.0.held)
    }
}

impl BackendState {
    /// Passes a result on; its error is kept for the maker of a draft.
    fn met<T>(&self, result: io::Result<T>) -> io::Result<T> {
        match &self.draft {
            Some(met) => met.note(result),
            None => result,
        }
    }

    fn let_through(&self, held: &mut Option<IndexFile>) -> io::Result<()> {
        if self.is_reading {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is open for reading only"));
        }
        // Every op can be done twice: a write that fails stays in the list with all that follow it.
        for op in held.iter().flat_map(|held| &held.ops) {
            match op {
                BackendRequest::Write { offset, bytes } => write_all(&*self.file, bytes, *offset, &mut 0)?,
                BackendRequest::Length(length) => self.file.set_len(*length)?,
                BackendRequest::Sync => sync(&*self.file)?,
            }
        }
        *held = None;
        Ok(())
    }

    /// Holds an op back, or does it; and lets all through if they are too many.
    fn hold(&self, held: &mut Option<IndexFile>, op: BackendRequest, bytes: usize) -> io::Result<()> {
        if let Some(held) = held {
            held.ops.push(op);
            held.bytes = held.bytes.saturating_add(bytes);
            if held.bytes <= HELD_BYTES_MAX && held.ops.len() <= HELD_COUNT_MAX {
                return Ok(());
            }
        }
        self.let_through(held)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if read_up_to(&*self.file, out, offset)? == out.len() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its file ends early"))
    }
}

impl IndexFile {
    /// The bytes at `offset` as redb knows them.
    fn read(&self, file: &dyn StoredFile, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let end = offset.saturating_add(out.len() as u64);
        if end > self.length {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "its file ends early"));
        }
        let count = read_up_to(file, out, offset)?;
        out.get_mut(count..).unwrap_or_default().fill(0);
        for op in &self.ops {
            match op {
                BackendRequest::Write { offset: start, bytes } => {
                    let from = offset.max(*start);
                    let to = end.min(start.saturating_add(bytes.len() as u64));
                    let within = |base: u64| {
                        let at = |place: u64| bytes_between(base, place);
                        at(from)..at(to)
                    };
                    if from < to
                        && let (Some(out), Some(bytes)) =
                            (out.get_mut(within(offset)), bytes.get(within(*start)))
                    {
                        out.copy_from_slice(bytes);
                    }
                }
                // Truncated bytes come back as zeros, if at all.
                BackendRequest::Length(length) if *length < end => {
                    let kept = bytes_between(offset, *length);
                    out.get_mut(kept..).unwrap_or_default().fill(0);
                }
                BackendRequest::Length(_) | BackendRequest::Sync => {}
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Backend")
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        match &*self.held() {
            Some(held) => Ok(held.length),
            None => self.0.file.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if let Some(held) = &*self.held() {
            return held.read(&*self.0.file, offset, out);
        }
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut held = self.held();
        match &mut *held {
            None => return self.0.met(self.0.file.set_len(length)),
            Some(held) => held.length = length,
        }
        self.0.hold(&mut held, BackendRequest::Length(length), 0)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut held = self.held();
        if held.is_some() {
            return self.0.hold(&mut held, BackendRequest::Sync, 0);
        }
        drop(held);
        if self.0.draft.is_some() { Ok(()) } else { sync(&*self.0.file) }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut held = self.held();
        match &mut *held {
            None => {
                drop(held);
                return self.0.met(write_all(&*self.0.file, bytes, offset, &mut 0));
            }
            Some(held) => held.length = held.length.max(offset.saturating_add(bytes.len() as u64)),
        }
        self.0.hold(&mut held, BackendRequest::Write { offset, bytes: bytes.to_vec() }, bytes.len())
    }
}
