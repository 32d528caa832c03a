//! The one table in redb, and the wall around it.
//!
//! redb reports some damage as an error and panics on some; both end here as a [`Fault`]. After either, nothing of that
//! database is touched again, not even to close it: see [`Table::abandon`]. Its file is removed by its owner.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, RwLock};

use redb::{
    Builder, Database, Durability as RedbDurability, ReadOnlyTable, ReadableDatabase, TableDefinition,
    TableError,
};

use crate::locks::{steady_read, steady_write};
use crate::storage::StoredFile;

use super::Durability;
use super::backend::{Backend, Met};
use super::heads::Changes;
use super::layout::{Fault, META_KEY, Meta, Row};
use super::lookup::{self, Sorted, Visit};

const TABLE: TableDefinition<'static, &'static [u8], &'static [u8]> = TableDefinition::new("acpdb");

/// Takes a row: key and value.
type Put<'p> = &'p mut dyn FnMut(&[u8], &[u8]) -> Result<(), Fault>;

thread_local! {
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread, now, would be caught and answered by leaving the index aside.
///
/// For a program's panic hook: such a panic needs no message, since the index reports its outcome.
pub fn panic_is_contained() -> bool {
    CONTAINED.get()
}

/// Runs `action` so that a panic in it becomes a fault.
pub(super) fn contained<T>(action: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let outer = CONTAINED.replace(true);
    // The table is abandoned after a panic, so that no later call sees it half changed.
    let result = catch_unwind(AssertUnwindSafe(action));
    CONTAINED.set(outer);
    result.unwrap_or_else(|panic| Err(Fault(format!("redb gave up on its file: {}", message(&*panic)))))
}

/// The first line of a panic's message.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    one_line(text)
}

fn one_line(text: &str) -> String {
    // No line: an empty one.
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

fn fault(error: impl Into<redb::Error>) -> Fault {
    let error = error.into();
    Fault(one_line(&error.to_string()))
}

/// The table, open for reading and writing by this process alone.
#[derive(Debug)]
pub(super) struct Table {
    /// The snapshot that was last read from. It is let go before and after a commit, so that it is never older than the last commit, and
    /// keeps no pages from being used again.
    reading: RwLock<Option<Arc<Snapshot>>>,
    database: Database,
    backend: Backend,
}

impl Table {
    /// Opens the table in the file of `backend`, which is empty or holds such a table. With `check`, checks every page first.
    pub(super) fn open(backend: Backend, cache_bytes: usize, check: bool) -> Result<Self, Fault> {
        contained(|| {
            let mut builder = Builder::new();
            let opened = builder.set_cache_size(cache_bytes).create_with_backend(backend.clone());
            let mut database = opened.map_err(fault)?;
            if check && !database.check_integrity().map_err(fault)? {
                return Err(Fault::new("its pages do not match their checksums"));
            }
            Ok(Self { reading: RwLock::default(), database, backend })
        })
    }

    /// Begins a table in an empty file that takes another's place only once its maker has synced it: see [`Backend::draft`].
    pub(super) fn draft(file: Box<dyn StoredFile>, cache_bytes: usize, met: Met) -> Result<Self, Fault> {
        contained(|| {
            let backend = Backend::draft(file, met);
            let mut builder = Builder::new();
            let opened = builder.set_cache_size(cache_bytes).create_with_backend(backend.clone());
            Ok(Self { reading: RwLock::default(), database: opened.map_err(fault)?, backend })
        })
    }

    /// Puts rows into a table that has none, in one transaction. `rows` gives them in the order of their keys, each key
    /// once: pages are filled one after the other.
    pub(super) fn fill(&self, rows: impl FnOnce(Put<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
        contained(|| {
            let transaction = self.database.begin_write().map_err(fault)?;
            {
                let mut table = transaction.open_table(TABLE).map_err(fault)?;
                let mut end = table.upper_bound_mut(Bound::<&[u8]>::Unbounded).map_err(fault)?;
                rows(&mut |key, value| end.insert_before(key, value).map_err(fault))?;
                end.close().map_err(fault)?;
            }
            let committed = transaction.commit().map_err(fault);
            self.let_go();
            committed
        })
    }

    /// Gives back the free space within the file.
    pub(super) fn trim(&mut self) -> Result<(), Fault> {
        self.let_go();
        contained(|| match self.database.compact() {
            Ok(_) => Ok(()),
            Err(error) => Err(Fault(one_line(&error.to_string()))),
        })
    }

    /// Puts rows into the table, in one transaction.
    pub(super) fn commit(&self, changes: &Changes, durability: Durability) -> Result<(), Fault> {
        let rows = |put: Put<'_>| changes.iter().try_for_each(|(key, value)| put(key, value));
        self.put(rows, durability, |_, _, _| {})
    }

    /// Puts rows into the table, in one transaction. `each` sees each row and the value that it replaces.
    pub(super) fn put(
        &self,
        rows: impl FnOnce(Put<'_>) -> Result<(), Fault>,
        durability: Durability,
        mut each: impl FnMut(&[u8], &[u8], Option<&[u8]>),
    ) -> Result<(), Fault> {
        contained(|| {
            self.let_go();
            let mut transaction = self.database.begin_write().map_err(fault)?;
            match durability {
                Durability::None => transaction.set_durability(RedbDurability::None).map_err(fault)?,
                Durability::Immediate => {
                    transaction.set_durability(RedbDurability::Immediate).map_err(fault)?;
                    // Without it the next open after a crash walks the whole file.
                    transaction.set_quick_repair(true);
                    self.backend.let_through().map_err(redb::Error::from).map_err(fault)?;
                }
            }
            {
                let mut table = transaction.open_table(TABLE).map_err(fault)?;
                rows(&mut |key, value| {
                    let before = table.insert(key, value).map_err(fault)?;
                    each(key, value, before.as_ref().map(redb::AccessGuard::value));
                    Ok(())
                })?;
            }
            let committed = transaction.commit().map_err(fault);
            self.let_go();
            committed
        })
    }

    /// Asks something of a snapshot; `None` if there is no table yet.
    pub(super) fn read<T>(
        &self,
        ask: impl FnOnce(&dyn Sorted) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        contained(|| self.snapshot()?.map(|snapshot| ask(&*snapshot)).transpose())
    }

    /// The newest snapshot: opening one takes longer than a look-up in it.
    fn snapshot(&self) -> Result<Option<Arc<Snapshot>>, Fault> {
        if let Some(known) = &*steady_read(&self.reading) {
            return Ok(Some(Arc::clone(known)));
        }
        // Opened under the lock: a commit meanwhile lets go of it afterwards.
        let mut reading = steady_write(&self.reading);
        let transaction = self.database.begin_read().map_err(fault)?;
        let table = match transaction.open_table(TABLE) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(fault(error)),
        };
        let snapshot = Arc::new(Snapshot { table, meta: OnceLock::new() });
        *reading = Some(Arc::clone(&snapshot));
        Ok(Some(snapshot))
    }

    fn let_go(&self) {
        let before = steady_write(&self.reading).take();
        drop(before);
    }

    /// Closes the file cleanly.
    pub(super) fn close(self) -> Result<(), Fault> {
        contained(|| {
            drop(self.reading);
            drop(self.database);
            drop(self.backend);
            Ok(())
        })
    }

    /// Closes a draft and syncs it. Returns the file's length.
    pub(super) fn finish(self) -> Result<u64, Fault> {
        contained(|| {
            drop(self.reading);
            drop(self.database);
            self.backend.finish().map_err(redb::Error::from).map_err(fault)
        })
    }

    /// Leaves the database as it is, open until the process ends: to close it is to write to it, and a second panic
    /// while the first unwinds would end the process. Costs a file handle, once for each damaged index.
    pub(super) fn abandon(self) {
        std::mem::forget(self);
    }
}

struct Snapshot {
    table: ReadOnlyTable<&'static [u8], &'static [u8]>,
    meta: OnceLock<Meta>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl Sorted for Snapshot {
    fn meta(&self) -> Result<Meta, Fault> {
        if let Some(known) = self.meta.get() {
            return Ok(*known);
        }
        let value = self.get(&META_KEY)?.ok_or_else(lookup::no_meta)?;
        let meta = Meta::read(&value)?;
        Ok(*self.meta.get_or_init(|| meta))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.table.get(key).map_err(fault)?.map(|value| value.value().to_vec()))
    }

    fn scan(&self, from: &[u8], to: &[u8], visit: Visit<'_>) -> Result<(), Fault> {
        let (mut before, mut is_first) = (Vec::new(), true);
        for row in self.table.range::<&[u8]>(from..to).map_err(fault)? {
            let (key, value) = row.map_err(fault)?;
            // Damaged inner pages can lead anywhere, even around in a circle.
            if (!is_first && before.as_slice() >= key.value()) || key.value() < from {
                return Err(Fault::new("its rows are out of order"));
            }
            if !visit(key.value(), value.value())? {
                break;
            }
            is_first = false;
            before.clear();
            before.extend_from_slice(key.value());
        }
        Ok(())
    }

    fn scan_back(&self, from: &[u8], to: &[u8], visit: Visit<'_>) -> Result<(), Fault> {
        let (mut after, mut is_first) = (Vec::new(), true);
        for row in self.table.range::<&[u8]>(from..to).map_err(fault)?.rev() {
            let (key, value) = row.map_err(fault)?;
            if (!is_first && after.as_slice() <= key.value()) || key.value() < from {
                return Err(Fault::new("its rows are out of order"));
            }
            if !visit(key.value(), value.value())? {
                break;
            }
            is_first = false;
            after.clear();
            after.extend_from_slice(key.value());
        }
        Ok(())
    }

    fn last(&self, from: &[u8], to: &[u8]) -> Result<Option<Row>, Fault> {
        let row =
            self.table.range::<&[u8]>(from..=to).map_err(fault)?.next_back().transpose().map_err(fault)?;
        Ok(row.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())))
    }
}
