//! Making the index anew from the log, into another file, and proving it before it takes its place.
//!
//! The proof: the rows are computed a second time, in memory, and both give the same digest. With more events than fit
//! into memory that is done part by part of the keys, each with one more pass over the log.

use crate::ids::{Digest, Position, Seq};
use crate::storage::{Access, Storage, sync};

use super::file::Table;
use super::heads::Heads;
use super::layout::Fault;
use super::lookup;
use super::memory::MemoryIndex;
use super::owner::{self, INDEX_NAME, IndexOptions};
use super::rows::{Rows, rows_of};
use super::{Bypassed, Durability, FrameSource, Identity};

/// Events whose rows are held in memory at once, to prove a rebuilt index.
const PART_EVENT_COUNT: u64 = 200_000;
/// Events per transaction.
const COMMIT_EVENT_COUNT: u64 = 4096;
/// Transactions until one goes to disk: others keep their pages in memory and free none.
const FLUSH_COMMIT_COUNT: u64 = 4;
/// The rebuilt index, until it is proven.
const NEW_NAME: &str = "index.redb.new";
/// Most bytes of frames that are read at once.
const READ_BYTES_MAX: usize = 4 << 20;

/// How the index that was there compares with the rebuilt one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LiveComparison {
    /// There was none.
    Absent,
    /// It ended at another seq, so there was nothing to compare.
    Elsewhere {
        /// The seq it knew.
        seq: Seq,
    },
    /// It was equal, row by row.
    Equal,
    /// It was damaged, of another version or store, or differed.
    Different,
}

/// What a rebuild did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "a rebuild says whether the old index was right"]
pub struct Rebuilt {
    /// Events indexed: the durable head when the rebuild began.
    pub event_count: u64,
    /// Frames indexed.
    pub frame_count: u64,
    /// Streams found.
    pub stream_count: u64,
    /// Rows written.
    pub row_count: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Digest over all rows.
    pub digest: Digest,
    /// What was there before.
    pub live: LiveComparison,
}

/// Makes the index in `storage` anew from `source` and replaces the one that is there, once it is proven and on disk.
///
/// Nobody may own the index meanwhile, this process included. Cost: 3 to 8 us an event for each of two passes or more.
///
/// # Errors
/// [`Bypassed`] if another owns it, the log cannot be read, the disk is full, or the proof fails; the index that was
/// there stays.
pub fn reindex(
    storage: &dyn Storage,
    identity: Identity,
    source: &dyn FrameSource,
    options: IndexOptions,
) -> Result<Rebuilt, Bypassed> {
    replace(storage, identity, source, options)
        .map_err(|bypassed| Bypassed { reason: format!("the index cannot be rebuilt: {bypassed}") })
}

fn replace(
    storage: &dyn Storage,
    identity: Identity,
    source: &dyn FrameSource,
    options: IndexOptions,
) -> Result<Rebuilt, Bypassed> {
    let _lock = owner::lock(storage)?;
    let durable = source.durable_head();
    owner::remove(storage, NEW_NAME)?;
    let result = build(storage, identity, source, durable.0, options).and_then(|mut rebuilt| {
        rebuilt.live = compare(storage, identity, durable, options, &rebuilt);
        let cannot = |error| owner::cannot("replace", storage, INDEX_NAME, &error);
        storage.rename(NEW_NAME, INDEX_NAME).and_then(|()| storage.sync_dir("")).map_err(cannot)?;
        Ok(rebuilt)
    });
    if result.is_err() {
        let _ = owner::remove(storage, NEW_NAME);
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
) -> Result<Rebuilt, Bypassed> {
    let in_use = || Fault(format!("{} is in use", storage.path(NEW_NAME).display()));
    let table = owner::open_table(storage, NEW_NAME, options)?.ok_or_else(in_use)?;
    match fill(&table, identity, source, head) {
        Ok(rebuilt) => {
            table.close()?;
            let synced = storage.open(NEW_NAME, Access::Write).and_then(|file| {
                sync(&*file)?;
                file.len()
            });
            let bytes = synced.map_err(|error| owner::cannot("sync", storage, NEW_NAME, &error))?;
            Ok(Rebuilt { bytes, ..rebuilt })
        }
        Err(error) => {
            table.abandon();
            Err(error)
        }
    }
}

fn fill(table: &Table, identity: Identity, source: &dyn FrameSource, head: Seq) -> Result<Rebuilt, Bypassed> {
    let mut heads = Heads::new(identity);
    let (key, value) = heads.meta().row();
    table.commit(&[(key, value)].into(), Durability::None)?;
    let mut commit_count = 0_u64;
    each_batch(source, head, |batch| {
        commit_count += 1;
        let due = commit_count.is_multiple_of(FLUSH_COMMIT_COUNT);
        let durability = if due { Durability::Immediate } else { Durability::None };
        Ok(table.commit(&heads.absorb(batch)?, durability)?)
    })?;
    table.commit(&heads.absorb(&[])?, Durability::Immediate)?;
    let part_count = u32::try_from(head.0.div_ceil(PART_EVENT_COUNT)).unwrap_or(u32::MAX).clamp(1, 256);
    let missing = || Fault::new("the table of the rebuilt index is missing");
    let built = table.read(|rows| lookup::digests(rows, part_count))?.ok_or_else(missing)?;
    for (part, built) in (0..).zip(&built) {
        let mut twin = MemoryIndex::with_part(identity, part, part_count);
        each_batch(source, head, |batch| twin.apply(batch).map(drop))?;
        if lookup::digest(twin.rows())? != *built {
            return Err(Fault::new("the rebuilt index is not what the log says").into());
        }
    }
    let (mut row_count, mut digest) = (0, Digest::default());
    table.read(|rows| {
        rows.each(&mut |_, _| row_count += 1)?;
        digest = lookup::digest(rows)?;
        Ok(())
    })?;
    let meta = heads.meta();
    Ok(Rebuilt {
        event_count: head.0,
        frame_count: meta.frame_count,
        stream_count: u64::from(meta.stream_count),
        row_count,
        bytes: 0,
        digest,
        live: LiveComparison::Absent,
    })
}

/// Rows of all frames up to `head`, in batches of one transaction.
fn each_batch(
    source: &dyn FrameSource,
    head: Seq,
    mut apply: impl FnMut(&[Rows]) -> Result<(), Bypassed>,
) -> Result<(), Bypassed> {
    let (mut end, mut seq) = (None, Seq::ZERO);
    let (mut batch, mut batch_count) = (Vec::new(), 0);
    while seq < head {
        let frames = source.frames_after(end, READ_BYTES_MAX)?;
        let before = seq;
        for frame in frames.iter().filter(|frame| frame.header().last_seq() <= head) {
            (end, seq) = (Some(frame.header().end()), frame.header().last_seq());
            let rows = rows_of(frame);
            batch_count += rows.event_count();
            batch.push(rows);
            if batch_count >= COMMIT_EVENT_COUNT {
                apply(&batch)?;
                batch.clear();
                batch_count = 0;
            }
        }
        if seq == before {
            return Err(Fault(format!("the log has no frame after {seq}, expected all up to {head}")).into());
        }
    }
    if batch.is_empty() { Ok(()) } else { apply(&batch) }
}

/// Compares the index that is there with what was rebuilt.
fn compare(
    storage: &dyn Storage,
    identity: Identity,
    durable: (Seq, Position),
    options: IndexOptions,
    rebuilt: &Rebuilt,
) -> LiveComparison {
    if !owner::exists(storage, INDEX_NAME) {
        return LiveComparison::Absent;
    }
    let Ok(Some(table)) = owner::open_table(storage, INDEX_NAME, options) else {
        return LiveComparison::Different;
    };
    let Ok((table, heads)) = owner::adopt(table, identity, durable) else { return LiveComparison::Different };
    let seq = heads.watermark().seq;
    let Ok(digest) = table.read(lookup::digest) else {
        table.abandon();
        return LiveComparison::Different;
    };
    // How well it closes is of no interest: it is about to be replaced.
    let _ = table.close();
    if digest == Some(rebuilt.digest) {
        LiveComparison::Equal
    } else if seq.0 == rebuilt.event_count {
        LiveComparison::Different
    } else {
        LiveComparison::Elsewhere { seq }
    }
}
