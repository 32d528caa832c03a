//! The index's files: their names, the lock that makes a process the owner, and opening a table.
//!
//! One process at a time owns the index. It holds the lock on the empty file `INDEX` while it opens, removes, remakes and uses
//! the table file.

use std::io;
use std::path::PathBuf;

use crate::storage::{Access, Storage, StoredFile};

use super::backend::Backend;
use super::file::IndexTables;
use super::layout::{IndexFault, Meta};
use super::{Bypassed, Identity, IndexDurability, Watermark};

/// A new table, until it replaces the index's file.
pub(super) const NEW_NAME: &str = "index.redb.new";

/// The index's file.
pub const INDEX_NAME: &str = "index.redb";

/// An empty file. The process that holds its lock owns the index.
pub(super) const LOCK_NAME: &str = "INDEX";

/// How to use an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexOptions {
    /// Memory for pages, in bytes. More than 8 MiB gained nothing in measured reads.
    pub cache_bytes: usize,
    /// Files up to this size have every page checked when they are opened.
    pub check_bytes_max: u64,
    /// Memory for rows that a rebuild sorts at once, in bytes. Stores with more are put in by parts, which takes longer.
    pub sort_bytes_max: usize,
    /// If this owner added a quarter of the index, and at least so many events, closing writes the index anew with full pages.
    pub pack_event_count_min: u64,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 16 << 20,
            check_bytes_max: 4 << 20,
            sort_bytes_max: 128 << 20,
            pack_event_count_min: 4096,
        }
    }
}

/// Why an index was not made anew, or not set aside. It stays as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unchanged {
    /// Another process owns the index. Wait.
    #[error("another process holds the index")]
    Held,
    /// The file system refused; the disk may be full.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The log cannot be read, or the proof failed.
    #[error(transparent)]
    Failed(#[from] Bypassed),
}

impl From<IndexFault> for Unchanged {
    fn from(fault: IndexFault) -> Self {
        Self::Failed(fault.into())
    }
}

impl From<Unchanged> for Bypassed {
    fn from(why: Unchanged) -> Self {
        Self { reason: why.to_string() }
    }
}

/// The error for a file on which the file system refused `action`.
pub(super) fn refused(
    storage: &dyn Storage,
    action: &'static str,
    name: &str,
) -> impl FnOnce(io::Error) -> Unchanged {
    let path = storage.path(name);
    move |source| Unchanged::Io { action, path, source }
}

/// As [`lock`], with an error that says what to do if another process has the lock.
pub(super) fn lock_to_change(storage: &dyn Storage) -> Result<Box<dyn StoredFile>, Unchanged> {
    let file = storage.open(LOCK_NAME, Access::Create).map_err(refused(storage, "open", LOCK_NAME))?;
    if file.try_lock().map_err(refused(storage, "lock", LOCK_NAME))? {
        Ok(file)
    } else {
        Err(Unchanged::Held)
    }
}

/// Takes the lock that makes this process the owner of the index.
pub(super) fn lock(storage: &dyn Storage) -> Result<Box<dyn StoredFile>, IndexFault> {
    lock_with(storage, Access::Create)
}

pub(super) fn lock_with(storage: &dyn Storage, access: Access) -> Result<Box<dyn StoredFile>, IndexFault> {
    let file = storage.open(LOCK_NAME, access).map_err(|error| cannot("open", storage, LOCK_NAME, &error))?;
    match file.try_lock() {
        Ok(true) => Ok(file),
        Ok(false) => Err(IndexFault::new("another process holds it")),
        Err(error) => Err(cannot("lock", storage, LOCK_NAME, &error)),
    }
}

/// Whether the index's file exists.
///
/// # Errors
/// [`Unchanged::Io`] if that cannot be told now.
pub(super) fn exists(storage: &dyn Storage) -> Result<bool, Unchanged> {
    match storage.open(INDEX_NAME, Access::Read) {
        Ok(_) => Ok(true),
        Err(error) if is_foreign(&error) || error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(refused(storage, "open", INDEX_NAME)(error)),
    }
}

/// Whether a file could not be opened because it is none of the store's, such as a symbolic link.
fn is_foreign(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

/// Why a table was not opened.
pub(super) enum NoTable {
    /// The file cannot be used now, which says nothing about its contents: it stays.
    Unreached(IndexFault),
    /// The file is damaged or foreign.
    Damaged(IndexFault),
}

impl From<NoTable> for IndexFault {
    fn from(why: NoTable) -> Self {
        let (NoTable::Unreached(fault) | NoTable::Damaged(fault)) = why;
        fault
    }
}

/// Opens the index's file, or makes it.
pub(super) fn open_table(storage: &dyn Storage, options: IndexOptions) -> Result<IndexTables, NoTable> {
    let unreached = |action| move |error| NoTable::Unreached(cannot(action, storage, INDEX_NAME, &error));
    let file = match storage.open(INDEX_NAME, Access::Create) {
        Err(error) if is_foreign(&error) => {
            return Err(NoTable::Damaged(cannot("open", storage, INDEX_NAME, &error)));
        }
        file => file.map_err(unreached("open"))?,
    };
    // Another program may look into the file without owning the index; it is left alone.
    if !file.try_lock().map_err(unreached("lock"))? {
        return Err(NoTable::Unreached(IndexFault::new("another process has its file open")));
    }
    let bytes = file.len().map_err(unreached("look at"))?;
    let backend = Backend::new(file).map_err(unreached("look at"))?;
    IndexTables::open(backend, options.cache_bytes, bytes > 0 && bytes <= options.check_bytes_max)
        .map_err(NoTable::Damaged)
}

/// The table of an existing index, for reading.
pub(super) fn open_to_read(storage: &dyn Storage, options: IndexOptions) -> Result<IndexTables, IndexFault> {
    let cannot = |error| cannot("open", storage, INDEX_NAME, &error);
    let file = storage.open(INDEX_NAME, Access::Read).map_err(cannot)?;
    if !file.try_lock().map_err(cannot)? {
        return Err(IndexFault::new("another process has its file open"));
    }
    let bytes = file.len().map_err(cannot)?;
    if bytes == 0 {
        return Err(IndexFault::new("its file is empty"));
    }
    IndexTables::open(
        Backend::reading(file).map_err(cannot)?,
        options.cache_bytes,
        bytes <= options.check_bytes_max,
    )
}

/// Checks that a table is of this store and version. Begins an empty table. The caller compares it with the log.
pub(super) fn adopt(table: IndexTables, identity: Identity) -> Result<(IndexTables, Watermark), IndexFault> {
    match watermark_of(&table, identity) {
        Ok(watermark) => Ok((table, watermark)),
        Err(fault) => {
            table.abandon();
            Err(fault)
        }
    }
}

fn watermark_of(table: &IndexTables, identity: Identity) -> Result<Watermark, IndexFault> {
    let Some(meta) = table.meta()? else {
        let meta = Meta { identity, watermark: Watermark::default() };
        table.put(&meta, |_| Ok(()), IndexDurability::None, |_, _, _| {})?;
        return Ok(meta.watermark);
    };
    if meta.identity != identity {
        return Err(IndexFault::new("it belongs to another store"));
    }
    Ok(meta.watermark)
}

pub(super) fn remove(storage: &dyn Storage, name: &str) -> Result<(), IndexFault> {
    match storage.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(cannot("remove", storage, name, &error)),
        _ => Ok(()),
    }
}

pub(super) fn cannot(action: &str, storage: &dyn Storage, name: &str, error: &io::Error) -> IndexFault {
    IndexFault(format!("cannot {action} {}: {error}", storage.path(name).display()))
}
