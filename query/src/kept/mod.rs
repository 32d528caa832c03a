//! The data that is kept of a store, so that lists of sessions need not fold each of them, and bills need not read the whole log.
//!
//! ```text
//! aside "sessions":  layout, seq | models, tiers, streams | what the log tells of requests | a row of figures a session
//!
//! list:  kept up to a seq --> events behind it are looked at --> a session that has some, or a policy? its fold
//!                                                           '--> none of it: the row as it is kept
//! ```
//!
//! The kept data lies beside the saved folds and promises as little ([`Store::aside`]): it is whole and of this log or not there,
//! not durable, gone without loss. Verbs that record much leave it behind; verbs that read change nothing, so they only use it. A
//! row is a function of its session's events, of the policy, and of erasures of its texts, so it holds as long as none of these has a new
//! event.
//!
//! No text is in it. A title is read from the log when it is shown, so erasing a text needs nothing here. Names that events spell
//! out (projects, models, ids) are in it, and digests of keys.

pub(crate) mod bytes;
mod layout;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::event::Scope;
use acpdb_engine::ids::{BodyId, Micros, Seq, StreamId, Turn};
use acpdb_engine::{
    At, Error, Store,
    store::{SessionSummary, StreamName},
};

use crate::context::series;
use crate::cost::told::RequestTellings;
use crate::sessions::{ForkPoint, RewindPoint};
use crate::titles::first_prompt;

/// The name under which the kept data is put aside.
pub const NAME: &str = "sessions";
/// So many new events are read as fast as the data that is kept of them.
const NEW_COUNT_MIN: u64 = 256;

/// Calls of a session whose fold may be worth saving.
const LONG_CALL_COUNT: u64 = 2048;

/// The figures that a fold of a session gives, without a text of the session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    pub(crate) project: Option<String>,
    pub(crate) turns: Turn,
    pub(crate) prompts: u32,
    pub(crate) calls: u64,
    pub(crate) superseded: u64,
    pub(crate) tokens: u64,
    pub(crate) tokens_shown: u64,
    pub(crate) tokens_freed: u64,
    pub(crate) first: Seq,
    pub(crate) ended: Option<Micros>,
    pub(crate) tokens_by_turn: Vec<u64>,
    pub(crate) forked_from: Option<ForkPoint>,
    pub(crate) rewinds: Vec<RewindPoint>,
    /// For a subagent: the host's id of the call that started it.
    pub(crate) call: Option<String>,
    /// The text that holds its first prompt, if the prompt was looked for.
    pub(crate) prompt: Option<BodyId>,
}

impl Figures {
    /// Figures of a session as of a view of it; `None` if it began later.
    pub(crate) fn of(
        store: &Store,
        name: &StreamName,
        view: &acpdb_engine::View,
    ) -> Result<Option<Self>, Error> {
        let Some(summary) = store.summary(name.clone(), view)? else { return Ok(None) };
        let (state, at) = (view.state(), view.at());
        let forked_from =
            state.forks(at).last().map(|(_, fork)| ForkPoint { stream: fork.from, at: fork.at });
        let rewinds = state.rewinds(at).iter().map(|(seq, to)| {
            let lost = state.items(*seq).filter(|ix| state.item_id(*ix).is_some_and(|item| item.seq > *to));
            let lost = lost.filter(|ix| !state.is_off_branch(*ix, seq.before()));
            RewindPoint { seq: *seq, to: *to, item_count: lost.count() }
        });
        let rewinds = rewinds.collect();
        let tokens_by_turn = series(state, at);
        let SessionSummary {
            name: _,
            project: _,
            turns,
            prompts,
            calls,
            superseded,
            tokens,
            tokens_shown,
            tokens_freed,
            first,
            ended,
        } = summary;
        Ok(Some(Self {
            // The name is kept as it was recorded: projects may be renamed meanwhile.
            project: state.info(at).and_then(|info| info.project.clone()),
            turns,
            prompts,
            calls,
            superseded,
            tokens,
            tokens_shown,
            tokens_freed,
            first,
            ended,
            tokens_by_turn,
            forked_from,
            rewinds,
            call: state.info(at).and_then(|info| info.parent.as_ref()?.call.clone()),
            prompt: None,
        }))
    }

    /// Whether a look at the session takes so long that its fold may be worth saving: a call is some three events.
    pub const fn is_long(&self) -> bool {
        self.calls >= LONG_CALL_COUNT
    }

    /// The same figures as a summary. Its name has no title yet.
    pub(crate) fn summary(&self, mut name: StreamName) -> SessionSummary {
        if let Some(started) = &mut name.started_by {
            started.call.clone_from(&self.call);
        }
        SessionSummary {
            name,
            project: self.project.clone(),
            turns: self.turns,
            prompts: self.prompts,
            calls: self.calls,
            superseded: self.superseded,
            tokens: self.tokens,
            tokens_shown: self.tokens_shown,
            tokens_freed: self.tokens_freed,
            first: self.first,
            ended: self.ended,
        }
    }
}

/// The data of a store that needs no fold: kept, and read on to a seq.
#[derive(Debug, Default)]
pub(crate) struct StoreData {
    pub(crate) told: RequestTellings,
    /// Figures of sessions that hold as of the seq.
    pub(crate) figures: BTreeMap<StreamId, Figures>,
    /// Whether figures that were kept do not hold any more, though their sessions have no new events.
    is_undone: bool,
    /// The seq up to which data was kept.
    kept_until: Seq,
}

impl StoreData {
    /// Looks at a store as of `to`; `names` are its sessions.
    pub(crate) fn at(store: &Store, to: Seq, names: &[StreamName]) -> Result<Self, Error> {
        let to = to.min(store.head()?);
        let kept = store.aside(NAME).and_then(|bytes| layout::decode(&bytes));
        let (mut told, mut figures) = kept.filter(|(told, _)| told.until <= to).unwrap_or_default();
        let kept_until = told.until;
        let moved = told.read_on(store, names, to)?;
        let is_moved = |stream: &StreamId| moved.streams.contains(stream);
        let still_count = figures.keys().filter(|stream| !is_moved(stream)).count();
        if moved.all {
            figures.clear();
        } else if !figures.is_empty() {
            let erased = moved.erased.iter().map(|seq| Ok(store.event(*seq)?.map(|it| it.event.stream)));
            match erased.collect::<Result<Option<BTreeSet<StreamId>>, Error>>() {
                Ok(Some(erased)) => forget(&mut figures, erased),
                // The stream of an event that cannot be read is not known.
                _ => figures.clear(),
            }
        }
        // Behind the erasures: a fork of a fork is found by way of the fork between, which may have moved.
        figures.retain(|stream, _| !is_moved(stream));
        Ok(Self { told, is_undone: figures.len() < still_count, figures, kept_until })
    }
}

/// Forgets the figures of streams, and of forks of them: these show the items that they share.
fn forget(figures: &mut BTreeMap<StreamId, Figures>, mut streams: BTreeSet<StreamId>) {
    loop {
        let is_fork =
            |figures: &Figures| figures.forked_from.is_some_and(|fork| streams.contains(&fork.stream));
        let known = figures.iter().filter(|(stream, figures)| streams.contains(stream) || is_fork(figures));
        let more: Vec<StreamId> = known.map(|(stream, _)| *stream).collect();
        if more.is_empty() {
            return;
        }
        figures.retain(|stream, _| !more.contains(stream));
        streams.extend(more);
    }
}

/// The seq up to which data is kept of a store.
fn kept_until(store: &Store) -> Seq {
    store.aside(NAME).and_then(|bytes| layout::until(&bytes)).unwrap_or_default()
}

/// Whether so many events are new that [`Keeping`] is worth its cost, for verbs that run often. Cost: the kept data is read.
///
/// # Errors
/// If the log cannot be read.
pub fn is_much_new(store: &Store) -> Result<bool, Error> {
    // An erasure or a repair may leave kept data that is newer than the log: then nothing is new.
    let new = store.head()?.get().saturating_sub(kept_until(store).get());
    Ok(new >= NEW_COUNT_MIN && store.puts_aside())
}

/// The data that is to be kept of a store. Sessions without valid figures have to be folded first, in any order, by several
/// threads.
#[derive(Debug)]
pub struct Keeping {
    store: Store,
    looked: StoreData,
    /// Sessions that are to be folded.
    pub wanting: Vec<StreamName>,
}

impl Keeping {
    /// Looks whether so much is new that it is worth keeping; `None`: not yet.
    ///
    /// Cost: as [`crate::cost::requests`], if there is anything new.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn due(store: &Store) -> Result<Option<Self>, Error> {
        let (kept, head) = (kept_until(store), store.head()?);
        if !store.puts_aside() || kept >= head || kept == Seq::ZERO && head.get() < NEW_COUNT_MIN {
            return Ok(None);
        }
        let keeping = Self::as_of(store, head)?;
        let is_much = head.get().saturating_sub(keeping.looked.kept_until.get()) >= NEW_COUNT_MIN;
        Ok(Some(keeping).filter(|keeping| is_much || keeping.looked.is_undone))
    }

    fn as_of(store: &Store, head: Seq) -> Result<Self, Error> {
        let mut wanting = store.stream_names()?;
        wanting.retain(|name| name.scope == Scope::Session);
        let looked = StoreData::at(store, head, &wanting)?;
        wanting.retain(|name| !looked.figures.contains_key(&name.id));
        Ok(Self { store: store.clone(), looked, wanting })
    }

    /// A session's figures.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn figures(&self, name: &StreamName) -> Result<Option<Figures>, Error> {
        let view = self.store.view_once(name.id, &At::Seq(self.looked.told.until))?;
        let Some(mut figures) = Figures::of(&self.store, name, &view)? else { return Ok(None) };
        figures.prompt = first_prompt(&self.store, name)?.map(|(body, _)| body);
        Ok(Some(figures))
    }

    /// All data as bytes, with the figures that were wanting. `None`: damage was met, so nothing is kept; the damage may be mended.
    pub fn bytes(self, made: Vec<(StreamId, Figures)>) -> Option<Vec<u8>> {
        if !self.store.damage_met().is_empty() {
            return None;
        }
        let StoreData { told, mut figures, .. } = self.looked;
        figures.extend(made);
        let streams: BTreeSet<StreamId> = told.times.keys().copied().collect();
        figures.retain(|stream, _| streams.contains(stream));
        Some(layout::encode(&told, &figures))
    }
}
