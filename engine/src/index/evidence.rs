//! An index that is ahead of the log: evidence that the log was rolled back.
//!
//! ```text
//! index: "#812 ends at 1:40960 with link ab.."      log: that commit is there? -> nothing to say, however far it is confirmed
//!                                                        another one, or none  -> evidence: kept as it is, told, not used
//! ```
//!
//! Frames are indexed only once they are durable, so a crash never puts an index ahead of the log. Putting an
//! older copy in the place of a store does, and so does cutting records off. A person must say which it was: until then the file
//! is neither removed nor replaced, and answers come from the log.

use std::io;

use crate::failpoints::failpoint;
use crate::ids::{Position, Seq};
use crate::log::Log;
use crate::storage::{Access, Storage};

use super::backend::Backend;
use super::file::Table;
use super::files::{self, INDEX_NAME, IndexOptions, LOCK_NAME, Unchanged, cannot};
use super::layout::Fault;
use super::lookup;
use super::{FramePlace, Identity, Watermark};

/// An index's claims about the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Testimony {
    /// The identity of its store.
    pub identity: Identity,
    /// How far it had come.
    pub watermark: Watermark,
    /// Its newest frame, if it has any.
    pub newest: Option<FramePlace>,
}

/// An index that knows events which the log does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Evidence {
    /// How far the index had come.
    pub watermark: Watermark,
    /// Where the log ends.
    pub head: Seq,
    /// How the index is ahead of the log, in one line.
    pub detail: String,
}

/// The answer of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexWitness {
    /// There is no index, or an empty file.
    Absent,
    /// Another process owns the index.
    InUse,
    /// The index cannot be read, for this reason.
    Unreadable(String),
    /// Its claims.
    Says(Testimony),
}

/// Says whether a testimony is evidence.
pub(super) type Judge<'j> = &'j dyn Fn(&Testimony) -> Option<Evidence>;

/// Reads the claims of a table; `None` if the table is empty.
pub(super) fn testimony(table: &Table) -> Result<Option<Testimony>, Fault> {
    table.read(|rows| {
        let meta = rows.meta()?;
        let newest = match meta.watermark.seq {
            Seq::ZERO => None,
            seq => {
                let missing = || Fault::new("its newest frame is missing");
                Some(lookup::place_of(rows, seq)?.ok_or_else(missing)?)
            }
        };
        Ok(Testimony { identity: meta.identity, watermark: meta.watermark, newest })
    })
}

/// Asks the index in `storage`, without adopting, changing or making anything.
pub(super) fn ask(storage: &dyn Storage, options: IndexOptions) -> IndexWitness {
    let open = || storage.open(INDEX_NAME, Access::Read);
    // Locked by a handle of its own: one that redb gave up on is never closed.
    let (file, locked) = match (open(), open()) {
        (Ok(file), Ok(locked)) => (file, locked),
        (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            return IndexWitness::Absent;
        }
        (Err(error), _) | (_, Err(error)) => {
            return IndexWitness::Unreadable(cannot("open", storage, INDEX_NAME, &error).0);
        }
    };
    // Without its lock file no process owns it.
    let lock = storage.open(LOCK_NAME, Access::Read).ok();
    if lock.as_ref().is_some_and(|lock| !matches!(lock.try_lock(), Ok(true))) {
        return IndexWitness::InUse;
    }
    if !matches!(locked.try_lock(), Ok(true)) {
        return IndexWitness::InUse;
    }
    if matches!(file.len(), Ok(0)) {
        return IndexWitness::Absent;
    }
    // Each row has a checksum of its own, so that pages need not be checked first.
    let backend = Backend::new(file).map_err(|error| cannot("look at", storage, INDEX_NAME, &error));
    let opened = backend.and_then(|backend| Table::open(backend, options.cache_bytes, false));
    let found = opened.and_then(|table| match testimony(&table) {
        Ok(found) => {
            // Writes of redb were held back and are dropped.
            let _ = table.close();
            Ok(found)
        }
        Err(fault) => {
            table.abandon();
            Err(fault)
        }
    });
    match found {
        Ok(Some(said)) => IndexWitness::Says(said),
        Ok(None) => IndexWitness::Absent,
        Err(fault) => IndexWitness::Unreadable(fault.0),
    }
}

/// Whether an index's claims about this store are evidence, by the durable end of the log.
pub(super) fn beyond(identity: Identity, durable: (Seq, Position), said: &Testimony) -> Option<Evidence> {
    let Watermark { seq, end, .. } = said.watermark;
    let is_ahead = seq > durable.0 || end.is_some_and(|end| end > durable.1);
    if said.identity != identity || !is_ahead || failpoint!(IndexAheadOfLog) {
        return None;
    }
    let detail = format!("the index knows events up to {seq}, the log ends at {}", durable.0);
    Some(Evidence { watermark: said.watermark, head: durable.0, detail })
}

/// Whether an index's claims about this store are evidence, by the log's frame at the index's newest place.
pub(super) fn beside(log: &Log, said: &Testimony) -> Option<Evidence> {
    let (identity, watermark) = (Identity::of(log), said.watermark);
    if said.identity != identity || watermark.seq == Seq::ZERO {
        return None;
    }
    // Asked after the index was read: commits of other processes meanwhile are known.
    let head = log.refresh().unwrap_or_else(|_| log.head());
    let at_place = said.newest.map(|newest| log.header_at(newest.position));
    if let Some(Ok(header)) = &at_place
        && header.link() == watermark.link
        && header.last_seq() == watermark.seq
        && watermark.end == Some(header.end())
    {
        // The commit may not be confirmed yet, after a crash; but it is there.
        return None;
    }
    if let Some(evidence) = beyond(identity, (head.seq, head.position), said) {
        return Some(evidence);
    }
    // Below the head: another commit is there, unless the frame cannot be read.
    let found = match log.locate(watermark.seq) {
        Ok(Some(frame)) => frame.header().link(),
        Ok(None) | Err(_) => return None,
    };
    if failpoint!(IndexAheadOfLog) {
        return None;
    }
    let (seq, link) = (watermark.seq, watermark.link);
    let detail = format!("the index knows {seq} with link {link}, the log holds it with link {found}");
    Some(Evidence { watermark, head: head.seq, detail })
}

/// Renames an index that is evidence, so that no program opens it. Call when a person has explained the difference.
///
/// Returns the name.
///
/// # Errors
/// [`Unchanged`] if another process owns the index, or the name cannot be changed; then it stays as it is.
pub fn set_aside(storage: &dyn Storage) -> Result<String, Unchanged> {
    let _lock = files::lock_to_change(storage)?;
    let names = storage.list("").map_err(files::refused(storage, "list", ""))?;
    let name = (0..=u32::MAX)
        .map(|count| format!("{INDEX_NAME}.evidence-{count}"))
        .find(|name| !names.contains(name))
        .ok_or_else(|| Fault::new("there is no name left for it"))?;
    let renamed = storage.rename(INDEX_NAME, &name).and_then(|()| storage.sync_dir(""));
    renamed.map_err(files::refused(storage, "rename", INDEX_NAME))?;
    Ok(name)
}
