//! Making the index anew from the log, into another file, and proving that file before it takes the index's place.
//!
//! The proof: a tally of all rows that were put in, kept while they are put in, equals the tally of all rows that are read
//! back at the end. One thread reads the log and makes rows, another sorts them and fills the table's pages one after the
//! other, in one transaction if all rows fit into memory. Nothing is synced before all is there: see [`IndexTables::draft`].
//!
//! [`pack`] does the same with the rows of an index that grew: random names leave pages half full and the file two or
//! three times as long as its rows.

use crate::ids::{Digest, Seq};
use crate::storage::{Access, Storage, StoredFile};

use super::backend::Met;
use super::file::IndexTables;
use super::files::{self, INDEX_NAME, IndexOptions, NEW_NAME, Unchanged, refused};
use super::layout::{IndexFault, Meta, NameKey};
use super::lookup::{self, RowDigest};
use super::rows::{IndexRows, advance, rows_of};
use super::{Bypassed, FrameSource, Identity, IndexDurability, Watermark};

/// Frames that are made into rows at once, and how many such batches may wait.
const BATCH_BYTES_MAX: usize = 4 << 20;
const BATCH_COUNT_MAX: usize = 2;
/// Memory for pages meanwhile.
const CACHE_BYTES: usize = 32 << 20;

/// How the index that was there compares with the rebuilt one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LiveComparison {
    /// There was no index.
    Absent,
    /// The index ended at another seq, so there was nothing to compare.
    Elsewhere {
        /// The seq it knew.
        seq: Seq,
    },
    /// The index was equal, row by row.
    Equal,
    /// The index was damaged, of another version or store, or differed.
    Different,
}

/// The outcome of a rebuild.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a rebuild says whether the old index was right"]
pub struct Rebuilt {
    /// Events indexed: the durable head when the rebuild began.
    pub event_count: u64,
    /// Frames indexed.
    pub frame_count: u64,
    /// Rows written.
    pub row_count: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Digest over all rows.
    pub digest: Digest,
    /// How the old index compared.
    pub live: LiveComparison,
}

/// Makes the index in `storage` anew from `source` and replaces the one that is there, once it is proven and on disk.
///
/// No process may own the index meanwhile, this one included. Cost: 2 to 4 us an event, one sync of the file and one of the
/// folder, and memory for all rows up to [`IndexOptions::sort_bytes_max`].
///
/// # Errors
/// [`Unchanged`] if another process owns it, the log cannot be read, the disk is full, or the proof fails; the index that was
/// there stays.
pub fn reindex(
    storage: &dyn Storage,
    identity: Identity,
    source: &dyn FrameSource,
    options: IndexOptions,
) -> Result<Rebuilt, Unchanged> {
    let _lock = files::lock_to_change(storage)?;
    let durable = source.durable_head();
    files::remove(storage, NEW_NAME)?;
    let result = build(storage, identity, source, durable.0, options).and_then(|mut rebuilt| {
        rebuilt.live = compare(storage, identity, options, &rebuilt);
        take_place(storage)?;
        Ok(rebuilt)
    });
    if result.is_err() {
        // The next rebuild writes over it.
        let _ = files::remove(storage, NEW_NAME);
    }
    result
}

/// Builds, proves and syncs an index in the file [`NEW_NAME`], which does not exist.
fn build(
    storage: &dyn Storage,
    identity: Identity,
    source: &dyn FrameSource,
    head: Seq,
    options: IndexOptions,
) -> Result<Rebuilt, Unchanged> {
    draft(storage, options, |table| fill(table, identity, source, head, options))
        .map(|(rebuilt, bytes)| Rebuilt { bytes, ..rebuilt })
}

/// Makes a table in the file [`NEW_NAME`], which does not exist, and syncs it. Also returns the file's length.
fn draft<T>(
    storage: &dyn Storage,
    options: IndexOptions,
    make: impl FnOnce(&IndexTables) -> Result<T, Bypassed>,
) -> Result<(T, u64), Unchanged> {
    let file = storage.open(NEW_NAME, Access::Create).map_err(refused(storage, "open", NEW_NAME))?;
    let met = Met::default();
    let made = draft_in(file, options, met.clone(), make);
    // The storage's own error, such as a full disk, is worth more than the one that redb made of it.
    made.map_err(|bypassed| match met.take() {
        Some(source) => refused(storage, "write", NEW_NAME)(source),
        None => bypassed.into(),
    })
}

fn draft_in<T>(
    file: Box<dyn StoredFile>,
    options: IndexOptions,
    met: Met,
    make: impl FnOnce(&IndexTables) -> Result<T, Bypassed>,
) -> Result<(T, u64), Bypassed> {
    let mut table = IndexTables::draft(file, options.cache_bytes.max(CACHE_BYTES), met)?;
    let made = make(&table).and_then(|made| {
        table.trim()?;
        Ok(made)
    });
    match made {
        Ok(made) => Ok((made, table.finish()?)),
        Err(error) => {
            table.abandon();
            Err(error)
        }
    }
}

/// Puts the draft where the index was.
fn take_place(storage: &dyn Storage) -> Result<(), Unchanged> {
    let renamed = storage.rename(NEW_NAME, INDEX_NAME).and_then(|()| storage.sync_dir(""));
    renamed.map_err(refused(storage, "replace", INDEX_NAME))
}

/// Writes the rows of `table`, which is the index, into a file of their own with full pages, and puts it where the index
/// was. `table` is of no use any more if that succeeds, and as it was if not.
///
/// Its caller holds the lock that makes it the owner. Cost: about 1 us a row, one sync of the file and one of the folder.
pub(super) fn pack(
    storage: &dyn Storage,
    table: &IndexTables,
    options: IndexOptions,
) -> Result<(), Bypassed> {
    files::remove(storage, NEW_NAME)?;
    let packed = draft(storage, options, |packed| {
        let mut put = RowDigest::default();
        let meta = table.meta()?.ok_or_else(missing)?;
        packed.fill(&meta, |next| {
            let read = table.read(|rows| {
                let mut failed = None;
                lookup::each(rows, |key, seq| {
                    put.add(key, seq);
                    failed = failed.take().or_else(|| next(key, seq).err());
                })?;
                failed.map_or(Ok(()), Err)
            })?;
            read.ok_or_else(missing)
        })?;
        prove(packed, &put)
    });
    let result = packed.and_then(|_| take_place(storage));
    if result.is_err() {
        // The next rebuild writes over it.
        let _ = files::remove(storage, NEW_NAME);
    }
    Ok(result?)
}

fn missing() -> IndexFault {
    IndexFault::new("the table of the rebuilt index is missing")
}

/// Reads all rows back: they must be the rows that were put in. Returns their digest.
fn prove(table: &IndexTables, put: &RowDigest) -> Result<Digest, Bypassed> {
    let (digest, found) = table.read(lookup::summary)?.ok_or_else(missing)?;
    if found != *put {
        return Err(IndexFault::new("the rebuilt index is not what was put into it").into());
    }
    Ok(digest)
}

fn fill(
    table: &IndexTables,
    identity: Identity,
    source: &dyn FrameSource,
    head: Seq,
    options: IndexOptions,
) -> Result<Rebuilt, Bypassed> {
    let (mut tally, mut rows, mut is_empty) = (RowDigest::default(), Vec::new(), true);
    let (mut watermark, mut frame_count) = (Watermark::default(), 0);
    let mut flush = |rows: &mut Vec<(NameKey, Seq)>, watermark| -> Result<(), Bypassed> {
        let meta = Meta { identity, watermark };
        rows.sort_unstable();
        // Of each key the newest row stays.
        rows.reverse();
        rows.dedup_by_key(|(key, _)| *key);
        rows.reverse();
        let mut sorted = std::mem::take(rows).into_iter();
        if std::mem::take(&mut is_empty) {
            table.fill(&meta, |next| {
                sorted.try_for_each(|(key, seq)| {
                    tally.add(&key, seq);
                    next(&key, seq)
                })
            })?;
            return Ok(());
        }
        table.put(
            &meta,
            |next| sorted.try_for_each(|(key, seq)| next(&key, seq)),
            IndexDurability::Immediate,
            |key, seq, before| {
                tally.add(key, seq);
                if let Some(before) = before {
                    tally.take_away(key, before);
                }
            },
        )?;
        Ok(())
    };
    each_batch(source, head, |batch| {
        let (new, reached) = advance(watermark, &batch)?;
        rows.extend(new);
        (watermark, frame_count) = (reached, frame_count + batch.len() as u64);
        let bytes = rows.len().saturating_mul(size_of::<(NameKey, Seq)>());
        if bytes > options.sort_bytes_max { flush(&mut rows, watermark) } else { Ok(()) }
    })?;
    flush(&mut rows, watermark)?;
    Ok(Rebuilt {
        event_count: head.0,
        frame_count,
        row_count: tally.count(),
        bytes: 0,
        digest: prove(table, &tally)?,
        live: LiveComparison::Absent,
    })
}

/// Rows of all frames up to `head`, in order, made by a thread of their own.
fn each_batch(
    source: &dyn FrameSource,
    head: Seq,
    mut apply: impl FnMut(Vec<IndexRows>) -> Result<(), Bypassed>,
) -> Result<(), Bypassed> {
    let (send, batches) = std::sync::mpsc::sync_channel(BATCH_COUNT_MAX);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let failed = make_rows(source, head, |batch| send.send(Ok(batch)).is_ok()).err();
            // If the receiver is gone, no thread needs the error.
            let _ = failed.map(|failed| send.send(Err(failed)));
        });
        // Dropping the receiver at an error ends the other thread, too.
        batches.into_iter().try_for_each(|batch| apply(batch?))
    })
}

/// Reads frames up to `head` and gives their rows to `next`, until it wants no more.
fn make_rows(
    source: &dyn FrameSource,
    head: Seq,
    mut next: impl FnMut(Vec<IndexRows>) -> bool,
) -> Result<(), Bypassed> {
    let (mut end, mut seq) = (None, Seq::ZERO);
    let secret = source.secret();
    while seq < head {
        let frames = source.frames_after(end, BATCH_BYTES_MAX)?;
        let mut known = frames.iter().filter(|frame| frame.header().last_seq() <= head);
        let rows: Vec<IndexRows> = known.clone().map(|frame| rows_of(frame, &secret)).collect();
        let Some(last) = known.next_back() else {
            return Err(
                IndexFault(format!("the log has no frame after {seq}, expected all up to {head}")).into()
            );
        };
        (end, seq) = (Some(last.header().end()), last.header().last_seq());
        if !next(rows) {
            return Ok(());
        }
    }
    Ok(())
}

/// Compares the index that is there with the rebuilt one.
fn compare(
    storage: &dyn Storage,
    identity: Identity,
    options: IndexOptions,
    rebuilt: &Rebuilt,
) -> LiveComparison {
    if matches!(files::exists(storage), Ok(false)) {
        return LiveComparison::Absent;
    }
    let Ok(table) = files::open_table(storage, options) else {
        return LiveComparison::Different;
    };
    let Ok((table, watermark)) = files::adopt(table, identity) else { return LiveComparison::Different };
    let seq = watermark.seq;
    let Ok(digest) = table.read(|rows| Ok(lookup::summary(rows)?.0)) else {
        table.abandon();
        return LiveComparison::Different;
    };
    // An error at closing does not matter: the index is about to be replaced.
    let _ = table.close();
    if digest == Some(rebuilt.digest) && seq.0 == rebuilt.event_count {
        LiveComparison::Equal
    } else if seq.0 == rebuilt.event_count {
        LiveComparison::Different
    } else {
        LiveComparison::Elsewhere { seq }
    }
}
