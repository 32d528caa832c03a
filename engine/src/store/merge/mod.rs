//! Merging: adds the events that another store holds and this one does not.
//!
//! ```text
//! source --once--> Outline: the history of each stream by ids
//!                     |  plan: against the histories of this store
//!                     v
//!                  where each stream goes: on at its end, into a branch, nowhere new
//! source --again--> parcels --adopt--> drafts --place--> log      seqs of what is named are known by then
//! ```
//!
//! The plan holds for the streams as they were: if another writer records in one of them meanwhile, the plan is made again. Events
//! that are here already are skipped by id, so the next merge ends an interrupted one.

mod gone;
mod lineage;
mod otherwise;
mod outline;
mod pack;
mod plan;
mod take;
mod waiting;

use crate::error::Error;
use crate::event::BodyAddress;
use crate::ids::{ItemId, Seq, StoreId, StreamId};
use crate::travel::Piece;

use super::{EraseReport, Store};

pub use outline::Outline;

/// Takes pieces. An error ends the telling.
pub type Take<'t> = &'t mut dyn FnMut(Piece) -> Result<(), Error>;

/// A source of parcels. It is asked twice at least, and tells the same each time.
pub trait ParcelSource {
    /// Tells everything, in the order of its log.
    ///
    /// # Errors
    /// Those of `take`, and those of reading.
    fn tell(&mut self, take: Take<'_>) -> Result<(), Error>;

    /// The histories in it.
    ///
    /// # Errors
    /// As [`ParcelSource::tell`].
    fn outline(&mut self) -> Result<Outline, Error> {
        let mut outline = Outline::default();
        self.tell(&mut |piece| {
            outline.observe(&piece);
            Ok(())
        })?;
        Ok(outline)
    }
}

impl ParcelSource for Store {
    fn tell(&mut self, take: Take<'_>) -> Result<(), Error> {
        self.parcels(None, Seq::MAX, take).map(drop)
    }

    fn outline(&mut self) -> Result<Outline, Error> {
        let mut outline = Outline::of(&self.inner.lineages(Seq::MAX, None)?, self.id());
        for subject in self.subjects()? {
            outline.subjects.extend(subject.streams.iter().map(|stream| (*stream, subject.name.clone())));
        }
        Ok(outline)
    }
}

/// Options of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MergeOptions {
    /// Erase here the texts that the other store erased.
    pub erase: bool,
}

/// A session that both stores went on with.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Branched {
    /// The session that it is a branch of.
    pub session: String,
    /// The session that was made of the other store's events.
    pub branch: String,
    /// The last event that both have; absent if they only share the name.
    pub from: Option<Seq>,
}

/// A text that the other store erased and this one holds.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ErasedThere {
    /// The event here.
    pub item: ItemId,
    /// Its session.
    pub session: String,
    /// Whether it was erased here, too.
    pub done: bool,
    #[serde(skip)]
    bodies: Vec<BodyAddress>,
}

/// A fact that the two stores were told in different words, and neither was told again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ToldOtherwise {
    /// The event here, which stays as it is.
    pub item: ItemId,
    /// Its session.
    pub session: String,
}

/// The report of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[must_use]
pub struct MergeReport {
    /// The other store, if its pieces named it.
    pub source: Option<StoreId>,
    /// Events that were recorded, those that begin sessions included.
    pub events_new: u64,
    /// Events that were here already.
    pub events_known: u64,
    /// Streams that are new here: sessions, projects, the user.
    pub streams_new: u64,
    /// Sessions that went on here with events of the other store.
    pub continued: Vec<String>,
    /// Sessions that both went on with.
    pub branches: Vec<Branched>,
    /// Texts that the other store erased and this one holds.
    pub erased_there: Vec<ErasedThere>,
    /// Messages and calls that the other store has in other words; at most 100. Each store keeps its own.
    pub told_otherwise: Vec<ToldOtherwise>,
    /// How many there were.
    pub told_otherwise_count: u64,
    /// Sessions of the other store that were shredded here, are about a subject that was shredded here, or came from such a session: nothing
    /// of them is recorded.
    pub shredded_here: Vec<String>,
    /// Texts that arrived without their bytes: erased there, damaged there, or erased here before.
    pub texts_lost: u64,
    /// Secrets that were taken out on the way in.
    pub redacted: u64,
    /// Whether the store's policy is now the other's, which is newer.
    pub policy_taken: bool,
    /// Events that could not be merged, each in a line; at most 100.
    pub left_out: Vec<String>,
    /// How many there were.
    pub left_out_count: u64,
    /// First seq that was recorded.
    pub first_seq: Option<Seq>,
    /// Last seq that was recorded.
    pub last_seq: Option<Seq>,
}

/// How many of a kind a report names; it counts the others.
const NAMED_MAX: usize = 100;

impl MergeReport {
    fn leave_out(&mut self, what: impl Into<String>) {
        self.left_out_count += 1;
        if self.left_out.len() < NAMED_MAX {
            self.left_out.push(what.into());
        }
    }
}

/// How often a merge is planned anew because another writer recorded in one of its streams.
const PLAN_COUNT_MAX: usize = 16;

impl Store {
    /// Adds the events that `source` has and this store has not. Sessions that both went on with become branches; nothing is lost.
    ///
    /// A session that was shredded here does not come back: the report names it.
    ///
    /// Merging again adds nothing, and so does merging a store with itself or with its copy. Durable when it returns. Events
    /// recorded before an error stay, and the next merge adds the rest.
    ///
    /// Cost: two passes over the source, one over the spines of this store, a look at each message and call that both have, and 50 bytes
    /// of memory an event of either.
    ///
    /// # Errors
    /// Those of the source, and as [`Store::commit`].
    pub fn merge(&self, source: &mut dyn ParcelSource, options: MergeOptions) -> Result<MergeReport, Error> {
        self.inner.check_writable()?;
        let outline = source.outline()?;
        let mut report = MergeReport { source: outline.source(), ..MergeReport::default() };
        for _ in 0..PLAN_COUNT_MAX {
            match self.inner.merge_once(source, &outline, &mut report) {
                Err(Error::HeadMoved { .. }) => {
                    // Recorded events stay; the rest is looked at again.
                    (report.events_known, report.left_out_count) = (0, 0);
                    report.left_out.clear();
                    report.erased_there.clear();
                }
                Err(error) => return Err(error),
                Ok(()) => {
                    if options.erase {
                        self.erase_too(&mut report)?;
                    }
                    return Ok(report);
                }
            }
        }
        let head = self.head()?;
        Err(Error::HeadMoved { stream: StreamId::STORE, expected: head, actual: head })
    }

    fn erase_too(&self, report: &mut MergeReport) -> Result<(), Error> {
        let reason = report.source.map_or_else(
            || "erased where it was merged from".to_owned(),
            |source| format!("erased in store {source}"),
        );
        for erased in &mut report.erased_there {
            let _: EraseReport = self.erase_bodies(&erased.bodies, "merge", &reason)?;
            erased.done = true;
        }
        Ok(())
    }
}
