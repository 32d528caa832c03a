//! A check of a whole store: the log, its witnesses, and the folds and ingest states saved beside it.
//!
//! ```text
//! headers under snap/ -> claims \
//! links kept elsewhere -> claims -> verify walks the log -> deep: each saved fold and ingest state, made anew and compared
//! ```
//!
//! A program that can write to the folder can change a saved fold and its digest together. Nothing inside the file shows it; the log does.

use std::path::Path;
use std::sync::Arc;

use crate::command::ingest_state::IngestState;
use crate::error::Error;
use crate::fold::World;
use crate::ids::{Link, Micros, Position, Seq, StoreId, StreamId};
use crate::log::{Claim, LogError, Place, Standing, Witness, WitnessKind};
use crate::storage::{FileStorage, Storage};
use crate::verify::{Expected, Report, SavedFault, verify_claims};

use super::Store;
use super::kept::{FOLDER, Loaded, StreamWriter};
use super::snapshot_file::{Footing, Section, open};
use super::{saved_fold, saved_ingest_state};

/// Number of points at which a saved fold is compared with a fold made anew: its end, and others spread over its events.
const POINT_COUNT: u64 = 8;

/// How a store is checked.
#[derive(Clone, Default)]
pub struct VerifyOptions {
    /// Also fold all events, and check conclusions and saved files against the log.
    pub deep: bool,
    /// Links that were kept elsewhere.
    pub expected: Vec<Expected>,
}

/// Checks the store in a folder as it lies there, with the files saved beside its log. Opens the store for reading only; a
/// live writer is not disturbed.
///
/// Cost: one pass over the log at about the speed of BLAKE3; deep, also a fold of all streams, and a fold for each saved
/// session.
///
/// # Errors
/// [`Error::NotAStore`], [`Error::NewerFormat`] or [`Error::Io`]. Damage is in the report.
pub fn verify_store(folder: &Path, options: &VerifyOptions) -> Result<Report, Error> {
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(folder).read_only());
    verify_store_in(&storage, options)
}

/// [`verify_store`], on any storage.
///
/// # Errors
/// As [`verify_store`].
pub fn verify_store_in(storage: &Arc<dyn Storage>, options: &VerifyOptions) -> Result<Report, Error> {
    let mut report = verify_claims(Arc::clone(storage), options.deep, |store| {
        let (mut claims, told) = saved_claims(&**storage, store);
        claims.extend(options.expected.iter().map(|expected| Claim::expected(expected.seq, expected.link)));
        (claims, told)
    })?;
    if options.deep {
        let faults = saved_faults(storage, &report)?;
        report.add_saved(faults);
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

/// The files beside the log; none if there is no such folder.
fn names_in(storage: &dyn Storage) -> Result<Vec<String>, LogError> {
    match storage.list(FOLDER) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|error| LogError::io("list", storage.path(FOLDER), error)),
    }
}

/// The kind of witness that a section is in a report.
const fn kind_of(section: Section) -> WitnessKind {
    match section {
        Section::IngestState => WitnessKind::IngestState,
        Section::Fold => WitnessKind::Snapshot,
    }
}

/// The claims of the snapshots' sections about the log.
pub(super) fn saved_claims(storage: &dyn Storage, store: StoreId) -> (Vec<Claim>, Vec<Witness>) {
    let (mut claims, mut told) = (Vec::new(), Vec::new());
    let names = match names_in(storage) {
        Ok(names) => names,
        Err(error) => {
            let witness = Witness::new(WitnessKind::Snapshot, FOLDER.to_owned());
            told.push(witness.standing(Standing::NotCompared, error.to_string()));
            Vec::new()
        }
    };
    for name in names {
        let Some(stream) = StreamId::from_hex(&name) else { continue };
        let witness = |section| Witness::new(kind_of(section), format!("{FOLDER}/{name}"));
        let footings = footings_in(storage, &name, store, stream);
        if footings.is_empty() {
            let detail = "no sound header of this store and this version of acpdb; not used";
            told.push(witness(Section::Fold).standing(Standing::Damaged, detail));
        }
        for (section, Footing { seq, position, link }) in footings {
            claims.push(Claim::new(witness(section), Place::Start(position), seq, Some(link)));
        }
    }
    (claims, told)
}

/// The footings of the sections of a file.
fn footings_in(
    storage: &dyn Storage,
    name: &str,
    store: StoreId,
    stream: StreamId,
) -> Vec<(Section, Footing)> {
    let header = open(storage, &format!("{FOLDER}/{name}"), store, stream).map(|(_, header)| header);
    let footing = |section| Some((section, header.as_ref()?.entry(section)?.footing));
    // In the order of a report.
    [Section::Fold, Section::IngestState].into_iter().filter_map(footing).collect()
}

/// Saved folds and ingest states that the log bears out by their links, but that differ from ones made anew from the log.
fn saved_faults(storage: &Arc<dyn Storage>, report: &Report) -> Result<Vec<SavedFault>, Error> {
    let borne_out = |witness: &&Witness| {
        matches!(witness.kind, WitnessKind::Snapshot | WitnessKind::IngestState)
            && matches!(witness.standing, Standing::Agrees | Standing::Behind)
    };
    let mut faults = Vec::new();
    let mut store = None;
    for witness in report.witnesses.iter().filter(borne_out) {
        let Some(name) = witness.name.strip_prefix(FOLDER).and_then(|name| name.strip_prefix('/')) else {
            continue;
        };
        let Some(stream) = StreamId::from_hex(name) else { continue };
        if store.is_none() {
            let builder = Store::builder(storage.path("")).storage(Arc::clone(storage)).read_only();
            store = Some(builder.index(false).snapshots(false).open()?);
        }
        let Some(store) = &store else { continue };
        let Some((file, header)) = open(&**storage, &witness.name, store.id(), stream) else { continue };
        let found = match witness.kind {
            WitnessKind::IngestState => {
                let saved = saved_ingest_state::read_saved(storage, &*file, &header, stream);
                store.ingest_state_fault(saved, stream)?
            }
            // A file that cannot be read is not used.
            _ => store.snapshot_fault(saved_fold::read_saved(&*file, &header).ok().flatten(), stream)?,
        };
        if let Some(detail) = found {
            faults.push(SavedFault { stream, path: storage.path(&witness.name), detail });
        }
    }
    Ok(faults)
}

impl Store {
    /// The fault of a stream's saved fold, if its digest holds and it differs from a fold of the log.
    fn snapshot_fault(
        &self,
        saved: Option<(Footing, Loaded)>,
        stream: StreamId,
    ) -> Result<Option<String>, Error> {
        let inner = &self.inner;
        // A fold changed by accident fails its digest at opening, and costs nothing.
        let Some((footing, saved)) = saved else { return Ok(None) };
        let anew = inner.fold_anew(stream, footing.seq)?;
        if anew.has_gaps {
            return Ok(None);
        }
        let sorted = |streams: &Option<Vec<StreamId>>| {
            // `None`: not known yet, taken as no stream.
            let mut streams = streams.clone().unwrap_or_default();
            streams.sort_unstable();
            streams
        };
        let is_same = sorted(&saved.streams) == sorted(&anew.streams)
            && saved.beginnings == anew.beginnings
            && shows_the_same(&saved.world, &anew.world, footing.seq);
        Ok((!is_same).then(|| {
            format!("its digest holds, and it is not what a fold of the log up to {} is", footing.seq)
        }))
    }

    /// The fault of a stream's saved ingest state, if its digests hold and it differs from one made from the log.
    fn ingest_state_fault(
        &self,
        saved: Option<(Footing, IngestState)>,
        stream: StreamId,
    ) -> Result<Option<String>, Error> {
        // Rows changed by accident fail their digests, here as at a lookup of a row.
        let saved = saved.and_then(|(footing, ingest_state)| Some((footing, ingest_state.save()?)));
        let Some((footing, saved)) = saved else { return Ok(None) };
        let mut writer = StreamWriter::default();
        match self.inner.observe_until(stream, &mut writer, footing.seq) {
            // Damage of the log is in the report already.
            Err(Error::Corrupt { .. }) => return Ok(None),
            read => read?,
        }
        let Some(anew) = writer.ingest_state.save() else { return Ok(None) };
        let is_same = saved.root.as_slice() == anew.root.as_slice() && saved.rows == anew.rows;
        Ok((!is_same)
            .then(|| format!("its digests hold, and it is not what the events up to {} are", footing.seq)))
    }
}

impl Store {
    /// Gives another name to an index that is evidence, and to saved folds and ingest states that contradict the log, after a person
    /// has said that the contradiction is explained. The next handle makes new ones. Returns the new names.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Busy`] if another process holds the index; [`Error::Io`].
    #[cfg_attr(not(feature = "internals"), doc(hidden))]
    pub fn discard_evidence(&self) -> Result<Vec<String>, Error> {
        self.inner.check_writable()?;
        let mut names = Vec::new();
        if self.index_evidence().is_some() {
            names.push(self.inner.set_index_aside()?);
        }
        names.extend(self.set_saved_aside()?);
        Ok(names)
    }

    /// Renames snapshots with a link that the log contradicts. No reader opens them under the new names.
    fn set_saved_aside(&self) -> Result<Vec<String>, Error> {
        let inner = &self.inner;
        let storage = inner.log.storage();
        let mut names = Vec::new();
        for name in names_in(&**storage)? {
            let Some(stream) = StreamId::from_hex(&name) else { continue };
            let is_borne_out = |(_, footing): &(Section, Footing)| {
                inner.footing_at(footing.position).is_some_and(|(known, _)| known == *footing)
            };
            if footings_in(&**storage, &name, self.id(), stream).iter().all(is_borne_out) {
                continue;
            }
            let (old, new) = (format!("{FOLDER}/{name}"), format!("{FOLDER}/{name}.evidence"));
            storage.rename(&old, &new).map_err(|source| Error::Io {
                action: "rename",
                path: storage.path(&old),
                source,
            })?;
            names.push(new);
        }
        Ok(names)
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
    #[cfg_attr(not(feature = "internals"), doc(hidden))]
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
