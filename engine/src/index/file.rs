//! The tables in redb, and the wall around them.
//!
//! redb reports some damage as an error and panics on some; both end here as a [`IndexFault`]. After either, nothing of that
//! database is touched again, not even to close it: see [`IndexTables::abandon`]. Its file is removed by its owner.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, RwLock};

use redb::{
    Builder, Database, Durability as RedbDurability, ReadOnlyTable, ReadableDatabase, TableDefinition,
    TableError,
};

use crate::ids::Seq;
use crate::locks::{steady_read, steady_write};
use crate::storage::StoredFile;

use super::IndexDurability;
use super::backend::{Backend, Met};
use super::layout::{IndexFault, Meta, NameKey};
use super::lookup::{NameRows, Visit};

type Bytes = &'static [u8];

/// Keys and values are bytes: redb compares keys while it writes, and a column that does not decode panics there, and again when the
/// transaction is dropped, which ends the process.
const NAMES: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new("names");
const META: TableDefinition<'static, Bytes, Bytes> = TableDefinition::new("meta");
const META_KEY: Bytes = b"";

/// Takes a row.
type Put<'p> = &'p mut dyn FnMut(&NameKey, Seq) -> Result<(), IndexFault>;

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
pub(super) fn contained<T>(action: impl FnOnce() -> Result<T, IndexFault>) -> Result<T, IndexFault> {
    let outer = CONTAINED.replace(true);
    // The table is abandoned after a panic, so that no later call sees it half changed.
    let result = catch_unwind(AssertUnwindSafe(action));
    CONTAINED.set(outer);
    result.unwrap_or_else(|panic| Err(IndexFault(format!("redb gave up on its file: {}", message(&*panic)))))
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

fn fault(error: impl Into<redb::Error>) -> IndexFault {
    let error = error.into();
    IndexFault(one_line(&error.to_string()))
}

/// The tables, open for reading and writing by this process alone.
#[derive(Debug)]
pub(super) struct IndexTables {
    /// The snapshot that was last read from. It is let go before and after a commit, so that it is never older than the last commit, and
    /// keeps no pages from being used again.
    reading: RwLock<Option<Arc<Snapshot>>>,
    database: Database,
    backend: Backend,
}

impl IndexTables {
    /// Opens the table in the file of `backend`, which is empty or holds such a table. With `check`, checks every page first.
    pub(super) fn open(backend: Backend, cache_bytes: usize, check: bool) -> Result<Self, IndexFault> {
        contained(|| {
            let mut builder = Builder::new();
            let opened = builder.set_cache_size(cache_bytes).create_with_backend(backend.clone());
            let mut database = opened.map_err(fault)?;
            if check && !database.check_integrity().map_err(fault)? {
                return Err(IndexFault::new("its pages do not match their checksums"));
            }
            Ok(Self { reading: RwLock::default(), database, backend })
        })
    }

    /// Begins a table in an empty file that takes another's place only once its maker has synced it: see [`Backend::draft`].
    pub(super) fn draft(file: Box<dyn StoredFile>, cache_bytes: usize, met: Met) -> Result<Self, IndexFault> {
        contained(|| {
            let backend = Backend::draft(file, met);
            let mut builder = Builder::new();
            let opened = builder.set_cache_size(cache_bytes).create_with_backend(backend.clone());
            Ok(Self { reading: RwLock::default(), database: opened.map_err(fault)?, backend })
        })
    }

    /// Puts rows into a table that has none, and the row about the index, in one transaction. `rows` gives them in the order of their keys, each key
    /// once: pages are filled one after the other.
    pub(super) fn fill(
        &self,
        meta: &Meta,
        rows: impl FnOnce(Put<'_>) -> Result<(), IndexFault>,
    ) -> Result<(), IndexFault> {
        contained(|| {
            let transaction = self.database.begin_write().map_err(fault)?;
            {
                let mut table = transaction.open_table(NAMES).map_err(fault)?;
                let mut end = table.upper_bound_mut(Bound::<&[u8]>::Unbounded).map_err(fault)?;
                rows(&mut |key, seq| {
                    end.insert_before(&*key.encode(), key.value(seq).as_slice()).map_err(fault)
                })?;
                end.close().map_err(fault)?;
                put_meta(&transaction, meta)?;
            }
            let committed = transaction.commit().map_err(fault);
            self.let_go();
            committed
        })
    }

    /// Gives back the free space within the file.
    pub(super) fn trim(&mut self) -> Result<(), IndexFault> {
        self.let_go();
        contained(|| match self.database.compact() {
            Ok(_) => Ok(()),
            Err(error) => Err(IndexFault(one_line(&error.to_string()))),
        })
    }

    /// Puts rows into the tables, in one transaction. `each` sees each row and the seq that it replaces.
    pub(super) fn put(
        &self,
        meta: &Meta,
        rows: impl FnOnce(Put<'_>) -> Result<(), IndexFault>,
        durability: IndexDurability,
        mut each: impl FnMut(&NameKey, Seq, Option<Seq>),
    ) -> Result<(), IndexFault> {
        contained(|| {
            self.let_go();
            let mut transaction = self.database.begin_write().map_err(fault)?;
            match durability {
                IndexDurability::None => transaction.set_durability(RedbDurability::None).map_err(fault)?,
                IndexDurability::Immediate => {
                    transaction.set_durability(RedbDurability::Immediate).map_err(fault)?;
                    // Without it the next open after a crash walks the whole file.
                    transaction.set_quick_repair(true);
                    self.backend.let_through().map_err(redb::Error::from).map_err(fault)?;
                }
            }
            {
                let mut table = transaction.open_table(NAMES).map_err(fault)?;
                rows(&mut |key, seq| {
                    let before = table.insert(&*key.encode(), key.value(seq).as_slice()).map_err(fault)?;
                    each(key, seq, before.map(|before| key.seq(before.value())).transpose()?);
                    Ok(())
                })?;
                put_meta(&transaction, meta)?;
            }
            let committed = transaction.commit().map_err(fault);
            self.let_go();
            committed
        })
    }

    /// The row about the index; `None` if there is no table yet.
    pub(super) fn meta(&self) -> Result<Option<Meta>, IndexFault> {
        contained(|| {
            let transaction = self.database.begin_read().map_err(fault)?;
            let table = match transaction.open_table(META) {
                Ok(table) => table,
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                Err(error) => return Err(fault(error)),
            };
            let row = table
                .get(META_KEY)
                .map_err(fault)?
                .ok_or_else(|| IndexFault::new("its first row is missing"))?;
            Meta::decode(row.value()).map(Some)
        })
    }

    /// Asks something of a snapshot; `None` if there is no table yet.
    pub(super) fn read<T>(
        &self,
        ask: impl FnOnce(&dyn NameRows) -> Result<T, IndexFault>,
    ) -> Result<Option<T>, IndexFault> {
        contained(|| self.snapshot()?.map(|snapshot| ask(&*snapshot)).transpose())
    }

    /// The newest snapshot: opening one takes longer than a look-up in it.
    fn snapshot(&self) -> Result<Option<Arc<Snapshot>>, IndexFault> {
        if let Some(known) = &*steady_read(&self.reading) {
            return Ok(Some(Arc::clone(known)));
        }
        // Opened under the lock: a commit meanwhile lets go of it afterwards.
        let mut reading = steady_write(&self.reading);
        let transaction = self.database.begin_read().map_err(fault)?;
        let table = match transaction.open_table(NAMES) {
            Ok(table) => table,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(fault(error)),
        };
        let snapshot = Arc::new(Snapshot { table });
        *reading = Some(Arc::clone(&snapshot));
        Ok(Some(snapshot))
    }

    fn let_go(&self) {
        let before = steady_write(&self.reading).take();
        drop(before);
    }

    /// Closes the file cleanly.
    pub(super) fn close(self) -> Result<(), IndexFault> {
        contained(|| {
            drop(self.reading);
            drop(self.database);
            drop(self.backend);
            Ok(())
        })
    }

    /// Closes a draft and syncs it. Returns the file's length.
    pub(super) fn finish(self) -> Result<u64, IndexFault> {
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

fn put_meta(transaction: &redb::WriteTransaction, meta: &Meta) -> Result<(), IndexFault> {
    let mut table = transaction.open_table(META).map_err(fault)?;
    table.insert(META_KEY, meta.encode().as_slice()).map_err(fault)?;
    Ok(())
}

struct Snapshot {
    table: ReadOnlyTable<Bytes, Bytes>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Snapshot")
    }
}

impl NameRows for Snapshot {
    fn scan(&self, from: &NameKey, visit: Visit<'_>) -> Result<(), IndexFault> {
        let mut before: Option<NameKey> = None;
        for row in self.table.range::<&[u8]>(&*from.encode()..).map_err(fault)? {
            let (key, value) = row.map_err(fault)?;
            let key = NameKey::decode(key.value())?;
            let seq = key.seq(value.value())?;
            // Damaged inner pages can lead anywhere, even around in a circle.
            if key < *from || before.is_some_and(|before| before >= key) {
                return Err(IndexFault::new("its rows are out of order"));
            }
            if !visit(&key, seq)? {
                break;
            }
            before = Some(key);
        }
        Ok(())
    }
}
