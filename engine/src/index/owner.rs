//! The index on disk: its owner, opening it in any state, and leaving it aside when it fails.
//!
//! One process at a time owns the index, by a lock on the empty file `INDEX` beside it, which is held while the file is
//! opened, removed, made anew and used; all other processes are told [`IndexState::Bypassed`] and answer from the log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LockResult, Mutex, OnceLock};

use crate::codec::FrameHeader;
use crate::failpoints::failpoint;
use crate::ids::{Digest, Position, Seq};
use crate::locks::steady;
use crate::log::Log;
use crate::storage::{Access, Storage, StoredFile};

use super::file::IndexTables;
use super::files::{
    INDEX_NAME, IndexOptions, NEW_NAME, NoTable, adopt, lock, lock_with, open_table, open_to_read, remove,
};
use super::layout::{IndexFault, Meta, NameKey};
use super::lookup::{self, NameRows};
use super::memory::MemoryIndex;
use super::rebuild::pack;
use super::rows::{IndexRows, advance};
use super::{Bypassed, Identity, IndexDurability, NameEntry, NameKind, Watermark};

/// The outcome of opening the index.
#[derive(Debug)]
pub enum IndexState {
    /// This process owns it.
    Owner(Arc<Index>),
    /// This process does not use the index.
    Bypassed(Bypassed),
}

impl IndexState {
    /// The index, if this process owns it.
    pub fn owner(self) -> Option<Arc<Index>> {
        match self {
            Self::Owner(index) => Some(index),
            Self::Bypassed(_) => None,
        }
    }
}

/// The index on disk, owned by this process until the last `Arc` of it is dropped.
///
/// The first error or panic of redb, and the first row that is damaged, put the index aside for good: every call from
/// then on is [`Bypassed`], and the file is removed when the index is dropped, so that the next open begins anew.
pub struct Index {
    /// Present until drop.
    table: Option<IndexTables>,
    identity: Identity,
    /// The watermark of committed rows.
    watermark: Mutex<Watermark>,
    turn: Mutex<()>,
    broken: OnceLock<Bypassed>,
    notice: Option<String>,
    options: IndexOptions,
    /// Events added by this owner.
    added_count: AtomicU64,
    /// Whether the file's name is not known to be durable: a power cut would take all of it.
    nameless: AtomicBool,
    storage: Arc<dyn Storage>,
    /// Whether the file stays as it is.
    is_reading: bool,
    /// Last, so that the lock goes when all else is done.
    _lock: Box<dyn StoredFile>,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("watermark", &self.watermark().seq).finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index that lies beside `log`, or begins it anew. An index that knows events which the log does not hold is begun anew as well: the
    /// store was put back from a copy, or the end of its log was taken back and written over.
    pub fn open_for(log: &Log, options: IndexOptions) -> IndexState {
        state_of(Self::try_open(
            log.storage(),
            Identity::of(log),
            &|known| contradiction(log, known),
            options,
        ))
    }

    /// Opens the index that lies beside `log` for look-ups and does not change its file. A missing, damaged or foreign index is not used. No
    /// other process owns the index meanwhile.
    pub fn open_reading_for(log: &Log, options: IndexOptions) -> IndexState {
        let storage = log.storage();
        let opened = || -> Result<Self, IndexFault> {
            let lock = lock_with(&**storage, Access::Read)?;
            let identity = Identity::of(log);
            let opened = adopt(open_to_read(&**storage, options)?, identity)?;
            let opened = compared(opened, &|known| contradiction(log, known))?;
            let mut index = Self::of(opened, identity, storage, lock, options);
            index.is_reading = true;
            Ok(index)
        };
        state_of(opened())
    }

    /// Opens the index of the store in `storage`, or begins it anew.
    ///
    /// `durable` is the log's durable head, and its end: an index that knows more is of another history. A file that is that, damaged, foreign or of
    /// another version is removed, and [`Index::notice`] says so. A file that cannot be opened now stays, and is not used.
    /// Cost: 1 ms or less, plus a check of every page for small files.
    pub fn open(
        storage: &Arc<dyn Storage>,
        identity: Identity,
        durable: (Seq, Position),
        options: IndexOptions,
    ) -> IndexState {
        state_of(Self::try_open(storage, identity, &|known| beyond(durable, known), options))
    }

    /// `contradicts` says why an index is not of the log.
    fn try_open(
        storage: &Arc<dyn Storage>,
        identity: Identity,
        contradicts: Contradicts<'_>,
        options: IndexOptions,
    ) -> Result<Self, IndexFault> {
        let lock = lock(&**storage)?;
        // Left by a process that died while it wrote the index anew.
        let _ = remove(&**storage, NEW_NAME);
        let found = match open_table(&**storage, options) {
            Ok(table) => adopt(table, identity).and_then(|opened| compared(opened, contradicts)),
            Err(NoTable::Damaged(fault)) => Err(fault),
            // It may be whole.
            Err(NoTable::Unreached(fault)) => return Err(fault),
        };
        let (opened, notice) = match found {
            Ok(opened) => (opened, None),
            Err(fault) => {
                remove(&**storage, INDEX_NAME)?;
                let table = open_table(&**storage, options).map_err(IndexFault::from)?;
                (adopt(table, identity)?, Some(format!("the index is rebuilt: {}", fault.0)))
            }
        };
        let mut index = Self::of(opened, identity, storage, lock, options);
        index.notice = notice;
        Ok(index)
    }

    fn of(
        (table, watermark): (IndexTables, Watermark),
        identity: Identity,
        storage: &Arc<dyn Storage>,
        lock: Box<dyn StoredFile>,
        options: IndexOptions,
    ) -> Self {
        Self {
            table: Some(table),
            identity,
            nameless: AtomicBool::new(watermark.seq == Seq::ZERO),
            watermark: Mutex::new(watermark),
            turn: Mutex::new(()),
            broken: OnceLock::new(),
            notice: None,
            options,
            added_count: AtomicU64::new(0),
            storage: Arc::clone(storage),
            is_reading: false,
            _lock: lock,
        }
    }

    /// The reason why the old file had to be removed, if it had to.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// The reason why the index was put aside, if it was.
    pub fn broken(&self) -> Option<&Bypassed> {
        self.broken.get()
    }

    /// Puts the index aside: for a caller that finds it disagrees with the log, by its link or by a place where there
    /// is no such frame.
    pub fn put_aside(&self, reason: &str) {
        // The first reason stays.
        let _ = self.broken.set(Bypassed { reason: format!("the index is put aside: {reason}") });
    }

    /// Adds frames in order, with the watermark in the same transaction. Frames at or below it are skipped; no frames
    /// and [`IndexDurability::Immediate`] makes earlier ones durable.
    ///
    /// With [`IndexDurability::Immediate`] every frame up to the new watermark must be durable in the log, or after a power
    /// cut the index would be ahead of it.
    ///
    /// # Errors
    /// [`Bypassed`] if a frame does not follow the one before it (nothing is added), or if the index is put aside.
    pub fn apply(&self, frames: &[IndexRows], durability: IndexDurability) -> Result<Watermark, Bypassed> {
        let _turn = self.whole(self.turn.lock())?;
        let table = self.table()?;
        let before = self.watermark();
        let (new, watermark) = advance(before, frames)?;
        let changes: BTreeMap<NameKey, Seq> = new.collect();
        if durability == IndexDurability::Immediate && self.nameless.load(Ordering::Relaxed) {
            // If it fails, a power cut costs a rebuild, and the next time it is tried again.
            self.nameless.store(self.storage.sync_dir("").is_err(), Ordering::Relaxed);
        }
        let meta = Meta { identity: self.identity, watermark };
        let rows = |put: &mut dyn FnMut(&NameKey, Seq) -> Result<(), IndexFault>| {
            changes.iter().try_for_each(|(key, seq)| put(key, *seq))
        };
        table.put(&meta, rows, durability, |_, _, _| {}).map_err(|fault| self.fail(&fault))?;
        self.added_count.fetch_add(watermark.seq.since(before.seq), Ordering::Relaxed);
        *steady(&self.watermark) = watermark;
        Ok(watermark)
    }

    /// How far the index has come.
    pub fn watermark(&self) -> Watermark {
        *steady(&self.watermark)
    }

    /// Streams that know `text`, or with `prefix` any name that begins with it; in order of name as it is kept, then of the streams' ids. At most
    /// `limit`.
    ///
    /// Names of 20 bytes and more are kept as their first 14 and a digest: a longer beginning finds all names that share these
    /// 14, and long names are in order of their digest.
    ///
    /// # Errors
    /// [`Bypassed`] if the index is put aside.
    pub fn names(
        &self,
        kind: NameKind,
        text: &str,
        prefix: bool,
        limit: usize,
    ) -> Result<Vec<NameEntry>, Bypassed> {
        self.ask(|rows| lookup::names(rows, kind, text, prefix, limit))
    }

    /// Digest over all rows in order: equal digests mean equal names. Cost: reads everything.
    ///
    /// # Errors
    /// [`Bypassed`] if the index is put aside.
    pub fn digest(&self) -> Result<Digest, Bypassed> {
        Ok(self.ask(lookup::summary)?.0)
    }

    /// The first row in which this index and one in memory differ, for a person; `None` if they are equal.
    ///
    /// Cost: reads everything.
    pub fn difference(&self, other: &MemoryIndex) -> Result<Option<String>, Bypassed> {
        let collected = |rows: &dyn NameRows| {
            let mut all = Vec::new();
            lookup::each(rows, |key, seq| all.push((*key, seq)))?;
            Ok::<_, IndexFault>(all)
        };
        let (found, expected) = (self.ask(collected)?, collected(other)?);
        if self.watermark() != other.watermark() {
            return Ok(Some(format!("it is at {}, not {}", self.watermark().seq, other.watermark().seq)));
        }
        let differs = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        let count = (found.len() != expected.len()).then(|| format!("{} rows", found.len()));
        Ok(differs.map(|(found, _)| format!("{found:?} differs")).or(count))
    }

    /// How many rows it has. Cost: reads everything.
    pub fn row_count(&self) -> Result<u64, Bypassed> {
        self.ask(|rows| {
            let mut count = 0;
            lookup::each(rows, |_, _| count += 1)?;
            Ok(count)
        })
    }

    /// Whether its file is likely much longer than its rows, judged without reading it, and this owner added so large a part that
    /// writing it anew costs little beside making that part.
    fn is_worth_packing(&self) -> bool {
        let added_count = self.added_count.load(Ordering::Relaxed);
        let is_large_part = added_count >= self.watermark().seq.0 / 4;
        self.broken.get().is_none() && is_large_part && added_count >= self.options.pack_event_count_min
    }

    fn table(&self) -> Result<&IndexTables, Bypassed> {
        if let Some(broken) = self.broken.get() {
            return Err(broken.clone());
        }
        self.table.as_ref().ok_or_else(|| Bypassed { reason: "the index is closed".to_owned() })
    }

    fn fail(&self, fault: &IndexFault) -> Bypassed {
        self.broken
            .get_or_init(|| Bypassed { reason: format!("the index is put aside: {}", fault.0) })
            .clone()
    }

    /// The contents of a lock. A panic in the middle of a change may have left them ahead of the table: the index is put aside.
    fn whole<T>(&self, held: LockResult<T>) -> Result<T, Bypassed> {
        held.map_err(|_| self.fail(&IndexFault::new("a thread panicked while it changed it")))
    }

    fn ask<T>(&self, ask: impl FnOnce(&dyn NameRows) -> Result<T, IndexFault>) -> Result<T, Bypassed> {
        let answer = self.table()?.read(ask).map_err(|fault| self.fail(&fault))?;
        answer.ok_or_else(|| self.fail(&IndexFault::new("its table is missing")))
    }
}

#[cfg(test)]
impl Index {
    /// Panics in the middle of a change.
    pub(super) fn panic_in_a_change_for_test(&self) {
        std::thread::scope(|scope| {
            let panicked = scope.spawn(|| {
                let _turn = self.turn.lock().unwrap();
                panic!("in the middle of a change");
            });
            assert!(panicked.join().is_err());
        });
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        let Some(table) = self.table.take() else { return };
        if self.is_reading {
            // Writes of redb at closing are held back, too.
            if self.broken.get().is_none() {
                // The table was opened to be read: there is nothing to lose.
                let _ = table.close();
            } else {
                table.abandon();
            }
            return;
        }
        if self.is_worth_packing() && pack(&*self.storage, &table, self.options).is_ok() {
            // This file has no name any more.
            let _ = table.close();
            return;
        }
        if self.broken.get().is_some() {
            // Closing would write to a file whose contents are not known.
            table.abandon();
        } else if table.close().is_ok() {
            return;
        }
        // If it stays, the next opening finds that it was not closed, and begins anew.
        let _ = remove(&*self.storage, INDEX_NAME);
    }
}

/// The outcome of opening, as the caller sees it.
fn state_of(opened: Result<Index, IndexFault>) -> IndexState {
    match opened {
        Ok(index) => IndexState::Owner(Arc::new(index)),
        Err(fault) => {
            IndexState::Bypassed(Bypassed { reason: format!("the index is not used: {}", fault.0) })
        }
    }
}

/// Says why an index is not of the log, by its watermark.
type Contradicts<'c> = &'c dyn Fn(Watermark) -> Option<String>;

/// The table, if the log holds what it knows.
fn compared(
    (table, watermark): (IndexTables, Watermark),
    contradicts: Contradicts<'_>,
) -> Result<(IndexTables, Watermark), IndexFault> {
    match contradicts(watermark).filter(|_| watermark.seq != Seq::ZERO) {
        None => Ok((table, watermark)),
        Some(why) => {
            // Writes of redb were held back and are dropped. A table that is only let go keeps its file open.
            let _ = table.close();
            Err(IndexFault::new(why))
        }
    }
}

/// Whether an index knows more than a log that ends at `durable`.
fn beyond(durable: (Seq, Position), known: Watermark) -> Option<String> {
    let is_ahead = known.seq > durable.0 || known.end.is_some_and(|end| end > durable.1);
    (is_ahead && !failpoint!(IndexAheadOfLog))
        .then(|| format!("it knows events up to {}, the log ends at {}", known.seq, durable.0))
}

/// Whether an index is of another history than the log, which has another commit at the index's watermark, or none. Frames are indexed once they
/// are durable, so a crash never does this.
fn contradiction(log: &Log, known: Watermark) -> Option<String> {
    let holds = |header: &FrameHeader| {
        header.link() == known.link && header.last_seq() == known.seq && known.end == Some(header.end())
    };
    // The commit may not be confirmed yet, after a crash; but it is there.
    if known.last.is_none_or(|last| log.header_at(last).is_ok_and(|header| holds(&header))) {
        return None;
    }
    // Asked after the index was read: commits of other processes meanwhile are known.
    let head = log.refresh().unwrap_or_else(|_| log.head());
    if let Some(why) = beyond((head.seq, head.position), known) {
        return Some(why);
    }
    // Another commit is there, unless the frame cannot be read.
    let found = log.locate(known.seq).ok().flatten()?.header().link();
    (!failpoint!(IndexAheadOfLog)).then(|| {
        format!("it knows {} with link {}, the log holds it with link {found}", known.seq, known.link)
    })
}
