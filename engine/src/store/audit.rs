//! A check of a whole store: the log, its witnesses, and the folds and ingest states saved beside it.
//!
//! ```text
//! links kept elsewhere -> verify walks the log -> deep: each saved fold and ingest state, made anew and compared
//! ```
//!
//! A program that can write to the folder can change a saved fold and its digest together. Nothing inside the file shows it; the log does.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::command::ingest_state::SavedIngestState;
use crate::error::Error;
use crate::fold::World;
use crate::ids::{Link, Micros, Position, Seq, StoreId, StreamId};
use crate::log::LogError;
use crate::storage::{FileStorage, Storage, list_if_there};
use crate::vault::KeyUse;
use crate::verify::{Expected, SavedFault, Verdict, VerifyReport, verify_expecting};

use super::Store;
use super::kept::{FOLDER, Loaded, StreamWriter};
use super::saved::{Footing, SavedName, read};

/// Number of points at which a saved fold is compared with a fold made anew: its end, and others spread over its events.
const POINT_COUNT: u64 = 8;

/// How a store is checked.
#[derive(Clone, Default)]
pub struct VerifyOptions {
    /// Also fold all events, and check conclusions and saved files against the log.
    pub deep: bool,
    /// Links that were kept elsewhere.
    pub expected: Vec<Expected>,
    /// The key of an encrypted store. Without it the store cannot be read, whatever its bytes are: [`Verdict::Unreadable`]; with [`KeyUse::Bytes`]
    /// only the bytes are asked for. A deep check needs it.
    pub keys: KeyUse,
}

/// Checks the store in a folder as it lies there, with the files saved beside its log. Opens the store for reading only; a
/// live writer is not disturbed.
///
/// Cost: one pass over the log at about the speed of BLAKE3; deep, also a fold of all streams, and a fold for each saved
/// session.
///
/// # Errors
/// [`Error::NotAStore`], [`Error::NewerFormat`] or [`Error::Io`]; [`Error::Locked`] if a key is needed or was given in vain. Damage is in the report.
pub fn verify_store(folder: &Path, options: &VerifyOptions) -> Result<VerifyReport, Error> {
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(folder).read_only());
    verify_store_in(&storage, options)
}

/// [`verify_store`], on any storage.
///
/// # Errors
/// As [`verify_store`].
pub fn verify_store_in(storage: &Arc<dyn Storage>, options: &VerifyOptions) -> Result<VerifyReport, Error> {
    let mut report = verify_expecting(Arc::clone(storage), options.deep, &options.keys, &options.expected)?;
    if options.deep && report.verdict() != Verdict::Unreadable {
        match saved_faults(storage, &report) {
            Ok(faults) => report.add_saved(faults),
            Err(error) => return VerifyReport::of_error(error, report.store),
        }
    }
    Ok(report)
}

/// Whether two folds show the same in every stream, at their end and at points before it. Two folds of the same events may
/// differ in their bytes, since their lookup tables have no order.
fn shows_the_same(left: &World, right: &World, end: Seq) -> bool {
    let streams = |world: &World| world.streams().map(|(stream, _)| stream).collect::<Vec<_>>();
    if left.head() != right.head() || streams(left) != streams(right) {
        return false;
    }
    let step = (end.0 / POINT_COUNT).max(1);
    // Never past the beginning: `POINT_COUNT` steps are at most the whole.
    let points = (0..POINT_COUNT).map(|point| Seq(end.0.saturating_sub(point.saturating_mul(step))));
    let points: Vec<Seq> = points.filter(|at| *at > Seq::ZERO).collect();
    left.streams().all(|(stream, state)| {
        let other = right.stream(stream);
        other.is_some_and(|other| points.iter().all(|at| state.digest(*at) == other.digest(*at)))
    })
}

/// The streams of which something is saved beside the log.
fn streams_in(storage: &dyn Storage) -> Result<BTreeSet<StreamId>, LogError> {
    let names = list_if_there(storage, FOLDER);
    let names = names.map_err(|error| LogError::io("list", storage.path(FOLDER), error))?;
    let stream = |name: &String| StreamId::from_hex(name.strip_suffix(".ingest").unwrap_or(name));
    Ok(names.iter().filter_map(stream).collect())
}

/// Saved folds and ingest states that the log bears out by their links, but that differ from ones made anew from the log. Others are not used, and
/// are made anew: they are caches.
fn saved_faults(storage: &Arc<dyn Storage>, report: &VerifyReport) -> Result<Vec<SavedFault>, Error> {
    let mut faults = Vec::new();
    let streams = streams_in(&**storage)?;
    if streams.is_empty() {
        return Ok(faults);
    }
    let builder = Store::builder(storage.path("")).storage(Arc::clone(storage)).read_only();
    let store = match builder.index(false).snapshots(false).open() {
        // The report tells of it.
        Err(_) if !report.violations.is_empty() => return Ok(faults),
        opened => opened?,
    };
    // A file that is missing, cannot be read or was changed by accident is not used.
    let borne_out = |name: &SavedName| {
        // As above.
        let saved = read(&**storage, store.id(), name).ok()??;
        store.inner.bears_out(saved.footing).then_some(saved)
    };
    for stream in streams {
        let (fold, ingest_state) = (SavedName::fold(stream), SavedName::ingest_state(stream));
        let found = [
            (
                &fold,
                match borne_out(&fold) {
                    Some(saved) => store.fold_fault(saved.footing, saved.value(), stream)?,
                    None => None,
                },
            ),
            (
                &ingest_state,
                match borne_out(&ingest_state) {
                    Some(saved) => store.ingest_state_fault(saved.footing, saved.value().as_ref(), stream)?,
                    None => None,
                },
            ),
        ];
        for (name, detail) in found {
            faults.extend(detail.map(|detail| SavedFault { stream, path: storage.path(&name.path), detail }));
        }
    }
    Ok(faults)
}

/// The words for a saved value whose digest holds, and that is another than the one that the log gives.
fn differs(is_same: bool, footing: Footing) -> Option<String> {
    (!is_same).then(|| format!("its digest holds, and it is not what the log up to {} gives", footing.seq))
}

impl Store {
    /// The fault of a stream's saved fold, if it differs from a fold of the log.
    fn fold_fault(
        &self,
        footing: Footing,
        saved: Option<Loaded>,
        stream: StreamId,
    ) -> Result<Option<String>, Error> {
        let anew = self.inner.fold_anew(stream, footing.seq)?;
        if anew.has_gaps {
            return Ok(None);
        }
        let sorted = |streams: &Option<Vec<StreamId>>| {
            // `None`: not known yet, taken as no stream.
            let mut streams = streams.clone().unwrap_or_default();
            streams.sort_unstable();
            streams
        };
        let is_same = saved.and_then(Loaded::revived).is_some_and(|saved| {
            sorted(&saved.streams) == sorted(&anew.streams)
                && saved.beginnings == anew.beginnings
                && saved.watermark == footing.seq
                && shows_the_same(&saved.world, &anew.world, footing.seq)
        });
        Ok(differs(is_same, footing))
    }

    /// The fault of a stream's saved ingest state, if it differs from one made from the log.
    fn ingest_state_fault(
        &self,
        footing: Footing,
        saved: Option<&SavedIngestState>,
        stream: StreamId,
    ) -> Result<Option<String>, Error> {
        let mut writer = StreamWriter::default();
        match self.inner.observe_until(stream, &mut writer, footing.seq) {
            // Damage of the log is in the report already.
            Err(Error::Corrupt { .. }) => return Ok(None),
            read => read?,
        }
        Ok(differs(saved == Some(&writer.ingest_state.save()), footing))
    }
}

/// The durable end of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct HeadPlace {
    /// The store.
    pub store: StoreId,
    /// The last durable event.
    pub seq: Seq,
    /// The link of the commit that holds this event. The link stands for everything up to that commit.
    pub link: Link,
    /// The end of that commit in the log.
    pub position: Position,
    /// When that commit was recorded.
    pub time: Micros,
}

impl Store {
    /// The durable end, or the commit that holds `seq`; `None` if the log ends before it.
    ///
    /// Cost: a few reads.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if that commit is damaged; [`Error::Io`].
    #[doc(hidden)]
    pub fn head_place(&self, seq: Option<Seq>) -> Result<Option<HeadPlace>, Error> {
        let log = &self.inner.log;
        let head = log.refresh()?;
        let store = self.id();
        let Some(seq) = seq else {
            if log.holds(&head)? {
                let (seq, link, position, time) = (head.seq, head.link, head.position, head.time);
                return Ok(Some(HeadPlace { store, seq, link, position, time }));
            }
            return self.head_place(Some(head.seq));
        };
        // If an index knows the commit's place, the log need not be searched.
        let Some(frame) = self.inner.frame_of(seq)? else { return Ok(None) };
        let header = frame.header();
        let (last, link, position) = (header.last_seq(), header.link(), header.end());
        Ok(Some(HeadPlace { store, seq: last, link, position, time: header.time }))
    }
}

#[cfg(test)]
mod tests;
