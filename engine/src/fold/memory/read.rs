//! Reading one stream's memory as of a seq.

use std::collections::BTreeMap;
use std::fmt;

use super::MemoryState;
use super::confidence::{Confidence, micros_between, rate_per_hour};
use super::core::{Core, MemoryFacts, Place, Row};
use super::graph::{Ix, Node};
use crate::event::{Body, Lifespan, MemoryKind};
use crate::ids::{BodyId, ItemId, Micros, Seq, Signature};

/// Where an item stands: exactly one of these at any seq and time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It holds.
    Current,
    /// Another item took its place.
    Superseded,
    /// It no longer holds, and nothing took its place.
    Retracted,
    /// Its session ended, or it is a session's and has faded.
    Expired,
    /// It was recorded on a branch that was left.
    OffBranch,
}

impl Standing {
    /// Its name, as in JSON.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Superseded => "superseded",
            Self::Retracted => "retracted",
            Self::Expired => "expired",
            Self::OffBranch => "off_branch",
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// The memory of one stream as of one seq. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAt<'a> {
    state: &'a MemoryState,
    pub(super) core: &'a Core,
    at: Seq,
}

impl<'a> MemoryAt<'a> {
    pub(super) fn new(state: &'a MemoryState, at: Seq) -> Self {
        static EMPTY: std::sync::LazyLock<Core> = std::sync::LazyLock::new(Core::default);
        let core = state.branches.iter().rev().find(|(since, _)| *since <= at).map(|(_, core)| core);
        Self { state, core: core.unwrap_or(&EMPTY), at }
    }

    /// The seq read at.
    pub const fn seq(&self) -> Seq {
        self.at
    }

    pub(super) fn item_at(&self, ix: Ix) -> Option<MemoryItem<'a>> {
        MemoryItem::of(self.core, ix, self.at, false)
    }

    fn items(self, list: Vec<Ix>) -> impl Iterator<Item = MemoryItem<'a>> {
        list.into_iter().filter_map(move |ix| self.item_at(ix))
    }

    /// Everything recorded by then, in the order of recording, whatever became of it.
    pub fn all(&self) -> Vec<MemoryItem<'a>> {
        let mut items = BTreeMap::new();
        for (since, core) in &self.state.branches {
            let is_active = std::ptr::eq(core, self.core);
            if *since > self.at || is_active {
                continue;
            }
            let found = (0..core.count_at(self.at))
                .filter_map(|ix| MemoryItem::of(core, u32::try_from(ix).ok()?, self.at, true));
            items.extend(found.map(|item| (item.facts().seq, item)));
        }
        let active = (0..self.core.count_at(self.at)).filter_map(|ix| self.item_at(u32::try_from(ix).ok()?));
        if items.is_empty() {
            return active.collect();
        }
        items.extend(active.map(|item| (item.facts().seq, item)));
        items.into_values().collect()
    }

    /// What holds at `now`, in the order of recording. Cost: O(items that hold) at the head.
    pub fn current(self, now: Micros) -> impl Iterator<Item = MemoryItem<'a>> {
        let list = if self.at >= self.core.last {
            self.core.live()
        } else {
            let all = 0..u32::try_from(self.core.count_at(self.at)).unwrap_or(u32::MAX);
            all.filter(|ix| self.core.is_current(*ix, self.at)).collect::<Vec<_>>()
        };
        self.items(list).filter(move |item| item.standing(now) == Standing::Current)
    }

    /// The item with this id (the newest, if the id was recorded again).
    pub fn by_id(&self, id: &str) -> Option<MemoryItem<'a>> {
        self.core.by_id(id, self.at).and_then(|ix| self.item_at(ix))
    }

    /// The item that this event recorded, if it is on the active branch.
    pub fn by_item(&self, item: ItemId) -> Option<MemoryItem<'a>> {
        self.core.ix_of(item).and_then(|ix| self.item_at(ix))
    }

    /// The preference that holds for a category and key, within one scope. Cost: O(log n).
    pub fn by_key(
        &self,
        lifespan: Lifespan,
        category: &str,
        key: &str,
        now: Micros,
    ) -> Option<MemoryItem<'a>> {
        self.holder(&Place::Key(lifespan, category.to_owned(), key.to_owned()), now)
    }

    /// The fact or decision that holds on a subject (any case), within one scope: of several the newest.
    pub fn by_subject(
        &self,
        kind: MemoryKind,
        lifespan: Lifespan,
        category: &str,
        subject: &str,
        now: Micros,
    ) -> Option<MemoryItem<'a>> {
        self.holder(&Place::subject(kind, lifespan, category, subject), now)
    }

    /// What holds on a subject (any case) within one scope, in the order of recording.
    pub fn on_subject(
        self,
        kind: MemoryKind,
        lifespan: Lifespan,
        category: &str,
        subject: &str,
        now: Micros,
    ) -> impl DoubleEndedIterator<Item = MemoryItem<'a>> + use<'a> {
        self.currently(&Place::subject(kind, lifespan, category, subject), now)
    }

    /// What holds in a category, in the order of recording. Cost: O(result) at the head.
    pub fn in_category(
        self,
        kind: MemoryKind,
        category: &str,
        now: Micros,
    ) -> impl DoubleEndedIterator<Item = MemoryItem<'a>> + use<'a> {
        self.currently(&Place::Category(kind, category.to_owned()), now)
    }

    /// What holds and has this value, in the order of recording. Cost: O(result) at the head.
    pub fn with_value(
        self,
        value: Signature,
        now: Micros,
    ) -> impl DoubleEndedIterator<Item = MemoryItem<'a>> + use<'a> {
        self.currently(&Place::Value(value), now)
    }

    /// How many items of a kind were recorded up to the head: new ids count on from here.
    pub fn recorded_count(&self, kind: MemoryKind) -> u32 {
        self.core.kind_count(kind)
    }

    fn holder(&self, place: &Place, now: Micros) -> Option<MemoryItem<'a>> {
        let holder = self.item_at(self.core.holder(place, self.at)?)?;
        if holder.standing(now) == Standing::Current {
            return Some(holder);
        }
        // The holder has faded; another of the place may not have.
        self.currently(place, now).next_back()
    }

    fn currently(
        self,
        place: &Place,
        now: Micros,
    ) -> impl DoubleEndedIterator<Item = MemoryItem<'a>> + use<'a> {
        let list = self.core.current_in(place, self.at);
        list.into_iter()
            .filter_map(move |ix| self.item_at(ix))
            .filter(move |item| item.standing(now) == Standing::Current)
    }
}

/// One item as of one seq. Cheap to copy.
#[derive(Clone, Copy)]
pub struct MemoryItem<'a> {
    pub(super) core: &'a Core,
    row: &'a Row,
    at: Seq,
    off_branch: bool,
}

impl fmt::Debug for MemoryItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryItem")
            .field("facts", self.facts())
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl<'a> MemoryItem<'a> {
    pub(super) fn of(core: &'a Core, ix: Ix, at: Seq, off_branch: bool) -> Option<Self> {
        let row = core.row(ix).filter(|row| row.facts.seq <= at)?;
        Some(Self { core, row, at, off_branch })
    }

    pub(super) fn node(&self) -> Option<&'a Node> {
        self.core.graph.node(self.row.node)
    }

    pub(super) fn nx(&self) -> u32 {
        self.row.node
    }

    /// What was recorded.
    pub fn facts(&self) -> &'a MemoryFacts {
        &self.row.facts
    }

    /// Its id within its stream.
    pub fn id(&self) -> &'a str {
        &self.facts().record.id
    }

    /// Its place in the log: unique in the store.
    pub fn item(&self) -> ItemId {
        ItemId::first(self.facts().seq)
    }

    /// What it is.
    pub fn kind(&self) -> MemoryKind {
        self.facts().record.kind
    }

    /// Its category.
    pub fn category(&self) -> &'a str {
        &self.facts().record.category
    }

    /// A preference's key.
    pub fn key(&self) -> Option<&'a str> {
        self.facts().record.key.as_deref()
    }

    /// What a fact or decision is about, if recorded.
    pub fn subject(&self) -> Option<&'a str> {
        self.facts().record.subject.as_deref()
    }

    /// How long it lives.
    pub fn lifespan(&self) -> Lifespan {
        self.facts().record.lifespan
    }

    /// The body of its value.
    pub fn value(&self) -> BodyId {
        self.body(self.facts().record.value)
    }

    /// The id of a body that its record names.
    pub fn body(&self, body: Body) -> BodyId {
        body.id(self.facts().seq)
    }

    /// Recorded confidence plus reinforcements by then, without decay.
    pub fn confirmed(&self) -> Confidence {
        let gained = self.node().and_then(|node| node.reinforced_at(self.at)).map_or(0, |entry| entry.gained);
        Confidence::from_hundredths(gained.saturating_add(self.facts().record.confidence.min(100).into()))
    }

    /// When it was last reinforced, if ever.
    pub fn reinforced(&self) -> Option<Micros> {
        self.node()?.reinforced_at(self.at).map(|entry| entry.at)
    }

    /// How sure it is at `now`: [`Self::confirmed`] less what the hours since have taken.
    pub fn confidence(&self, now: Micros) -> Confidence {
        let facts = self.facts();
        let since = self.reinforced().map_or(facts.created, |at| at.max(facts.created));
        let rate = rate_per_hour(facts.record.kind, &facts.record.category, facts.record.lifespan);
        let confirmed = self.confirmed();
        confirmed.decayed(micros_between(since, now), rate)
    }

    /// Where it stands at `now`.
    pub fn standing(&self, now: Micros) -> Standing {
        let Some(node) = self.node() else { return Standing::OffBranch };
        if self.off_branch {
            Standing::OffBranch
        } else if node.hidden_by_at(self.at) > 0 {
            Standing::Superseded
        } else if node.retracted_at(self.at) {
            Standing::Retracted
        } else if self.core.session_over(self.facts(), self.at)
            || self.lifespan() == Lifespan::Session && self.confidence(now) < Confidence::SESSION_MIN
        {
            Standing::Expired
        } else {
            Standing::Current
        }
    }

    /// Whether it was retracted by then (and not restored since), whatever else became of it.
    pub fn is_retracted(&self) -> bool {
        self.node().is_some_and(|node| node.retracted_at(self.at))
    }
}
