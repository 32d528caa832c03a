//! Reading memory as of a seq: of one stream, and of several seen as one: a session's, its project's, its user's.

use std::collections::BTreeMap;
use std::fmt;

use super::confidence::{Confidence, micros_between, rate_per_hour};
use super::core::{MemoryCore, MemoryFacts, MemoryItemRow, MemoryLookup};
use super::graph::{Ix, NameNode};
use super::{MemoryState, TextSource};
use crate::event::{Actor, Body, Lifespan, MemoryKind};
use crate::ids::{BodyId, ItemId, Micros, Seq, Signature, StreamId};
use crate::text::Signer;

/// The standing of an item: exactly one of these at any seq and time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryStatus {
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

impl MemoryStatus {
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

impl fmt::Display for MemoryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// The memory of one stream as of one seq. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct MemoryAt<'a> {
    state: &'a MemoryState,
    pub(super) core: &'a MemoryCore,
    at: Seq,
}

impl<'a> MemoryAt<'a> {
    pub(super) fn new(state: &'a MemoryState, at: Seq) -> Self {
        static EMPTY: std::sync::LazyLock<MemoryCore> = std::sync::LazyLock::new(MemoryCore::default);
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

    /// All items recorded by then, in the order of recording, whatever their standing.
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

    /// The items that hold at `now`, in the order of recording. Cost: O(items that hold) at the head.
    pub fn current(self, now: Micros) -> impl Iterator<Item = MemoryItem<'a>> {
        let list = if self.at >= self.core.last {
            self.core.live()
        } else {
            let all = 0..u32::try_from(self.core.count_at(self.at)).unwrap_or(u32::MAX);
            all.filter(|ix| self.core.is_current(*ix, self.at)).collect::<Vec<_>>()
        };
        self.items(list).filter(move |item| item.standing(now) == MemoryStatus::Current)
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
        self.holder(&MemoryLookup::Key(lifespan, category.to_owned(), key.to_owned()), now)
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
        self.holder(&MemoryLookup::subject(kind, lifespan, category, subject), now)
    }

    /// The items that hold on a subject (any case) within one scope, in the order of recording.
    pub fn on_subject(
        self,
        kind: MemoryKind,
        lifespan: Lifespan,
        category: &str,
        subject: &str,
        now: Micros,
    ) -> impl DoubleEndedIterator<Item = MemoryItem<'a>> + use<'a> {
        self.currently(&MemoryLookup::subject(kind, lifespan, category, subject), now)
    }

    /// The items that hold in a category, in the order of recording. Cost: O(result) at the head.
    pub fn in_category(
        self,
        kind: MemoryKind,
        category: &str,
        now: Micros,
    ) -> impl DoubleEndedIterator<Item = MemoryItem<'a>> + use<'a> {
        self.currently(&MemoryLookup::Category(kind, category.to_owned()), now)
    }

    /// The items that hold and have this value, in the order of recording. Cost: O(result) at the head.
    pub fn with_value(
        self,
        value: Signature,
        now: Micros,
    ) -> impl DoubleEndedIterator<Item = MemoryItem<'a>> + use<'a> {
        self.currently(&MemoryLookup::Value(value), now)
    }

    /// How many items of a kind were recorded up to the head: new ids count on from here.
    pub fn recorded_count(&self, kind: MemoryKind) -> u32 {
        self.core.kind_count(kind)
    }

    fn holder(&self, place: &MemoryLookup, now: Micros) -> Option<MemoryItem<'a>> {
        let holder = self.item_at(self.core.holder(place, self.at)?)?;
        if holder.standing(now) == MemoryStatus::Current {
            return Some(holder);
        }
        // The holder has faded; another of the place may not have.
        self.currently(place, now).next_back()
    }

    fn currently(
        self,
        place: &MemoryLookup,
        now: Micros,
    ) -> impl DoubleEndedIterator<Item = MemoryItem<'a>> + use<'a> {
        let list = self.core.current_in(place, self.at);
        list.into_iter()
            .filter_map(move |ix| self.item_at(ix))
            .filter(move |item| item.standing(now) == MemoryStatus::Current)
    }
}

/// One item as of one seq. Cheap to copy.
#[derive(Clone, Copy)]
pub struct MemoryItem<'a> {
    pub(super) core: &'a MemoryCore,
    row: &'a MemoryItemRow,
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
    pub(super) fn of(core: &'a MemoryCore, ix: Ix, at: Seq, off_branch: bool) -> Option<Self> {
        let row = core.row(ix).filter(|row| row.facts.seq <= at)?;
        Some(Self { core, row, at, off_branch })
    }

    pub(super) fn node(&self) -> Option<&'a NameNode> {
        self.core.graph.node(self.row.node)
    }

    pub(super) fn nx(&self) -> u32 {
        self.row.node
    }

    /// The recorded facts.
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

    /// Its kind.
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

    /// The subject of a fact or decision, if recorded.
    pub fn subject(&self) -> Option<&'a str> {
        self.facts().record.subject.as_deref()
    }

    /// Its lifespan.
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

    /// Who stands behind it: who recorded it, or a person who said the same later.
    pub fn said_by(&self) -> Actor {
        let entry = self.node().and_then(|node| node.reinforced_at(self.at));
        if entry.is_some_and(|entry| entry.by_person) { Actor::User } else { self.facts().actor }
    }

    /// When it was last reinforced, if ever.
    pub fn reinforced(&self) -> Option<Micros> {
        self.node()?.reinforced_at(self.at).map(|entry| entry.at)
    }

    /// Its confidence at `now`: [`Self::confirmed`] less the decay since it was created or last reinforced.
    pub fn confidence(&self, now: Micros) -> Confidence {
        let facts = self.facts();
        let since = self.reinforced().map_or(facts.created, |at| at.max(facts.created));
        let rate = rate_per_hour(facts.record.kind, &facts.record.category, facts.record.lifespan);
        let confirmed = self.confirmed();
        confirmed.decayed(micros_between(since, now), rate)
    }

    /// Its standing at `now`.
    pub fn standing(&self, now: Micros) -> MemoryStatus {
        let Some(node) = self.node() else { return MemoryStatus::OffBranch };
        if self.off_branch {
            MemoryStatus::OffBranch
        } else if node.hidden_by_at(self.at) > 0 {
            MemoryStatus::Superseded
        } else if node.retracted_at(self.at) {
            MemoryStatus::Retracted
        } else if self.core.session_over(self.facts(), self.at)
            || self.lifespan() == Lifespan::Session && self.confidence(now) < Confidence::SESSION_MIN
        {
            MemoryStatus::Expired
        } else {
            MemoryStatus::Current
        }
    }

    /// Whether it was retracted by then (and not restored since), whatever its standing.
    pub fn is_retracted(&self) -> bool {
        self.node().is_some_and(|node| node.retracted_at(self.at))
    }
}

/// Scopes, the one that shadows the others first.
pub const LIFESPANS_INNER_FIRST: [Lifespan; 3] = [Lifespan::Session, Lifespan::Project, Lifespan::Permanent];

/// The memory of one stream, as part of a view.
#[derive(Clone, Debug)]
pub struct MemoryLayer<'a> {
    /// The stream.
    pub stream: StreamId,
    /// Items of this lifespan are recorded here: a session's stream has session items, and so on.
    pub records: Lifespan,
    /// Its memory.
    pub memory: &'a MemoryState,
    /// Signs texts with the stream's key.
    pub signer: Signer,
    /// No event after this is seen, whatever the view's seq: a fork sees its parent up to the fork. Else [`Seq::MAX`].
    pub until: Seq,
}

impl MemoryLayer<'_> {
    /// Whether items can be recorded in it: not so in the layer of a fork's parent.
    pub fn is_writable(&self) -> bool {
        self.until == Seq::MAX
    }
}

/// Memory as a session sees it, as of one seq and one time.
///
/// Layers come innermost first: the session, its project, its user. A stream may hold items of any lifespan; the scope
/// of an item is its lifespan. Of preferences with one category and key, that of the innermost scope holds and shadows
/// the others, without an edge; within a scope, the one that was recorded or restored last.
#[derive(Clone)]
pub struct MemoryView<'a> {
    layers: Vec<MemoryLayer<'a>>,
    at: Seq,
    now: Micros,
    texts: TextSource<'a>,
}

impl<'a> MemoryView<'a> {
    /// A view of these layers, innermost first.
    pub fn new(layers: Vec<MemoryLayer<'a>>, at: Seq, now: Micros, texts: TextSource<'a>) -> Self {
        Self { layers, at, now, texts }
    }

    /// The time of the view.
    pub const fn now(&self) -> Micros {
        self.now
    }

    /// The layers, innermost first.
    pub fn layers(&self) -> &[MemoryLayer<'a>] {
        &self.layers
    }

    /// Each stream with its memory as of the view's seq, innermost first.
    pub fn streams(&self) -> impl Iterator<Item = (&MemoryLayer<'a>, MemoryAt<'a>)> {
        self.layers.iter().map(|layer| (layer, layer.memory.at(self.at.min(layer.until))))
    }

    /// The memory of one stream.
    pub fn stream(&self, stream: StreamId) -> Option<(&MemoryLayer<'a>, MemoryAt<'a>)> {
        self.streams().find(|(layer, _)| layer.stream == stream)
    }

    /// The value of an item as text; `None` if it was erased.
    pub fn text(&self, item: &MemoryItem<'_>) -> Option<String> {
        let value = item.value();
        if value.chunks == 0 { Some(String::new()) } else { (self.texts)(value) }
    }

    /// Everything ever recorded, with its stream, in the order of recording.
    pub fn all(&self) -> Vec<(StreamId, MemoryItem<'a>)> {
        let mut items: Vec<_> = self
            .streams()
            .flat_map(|(layer, memory)| memory.all().into_iter().map(|item| (layer.stream, item)))
            .collect();
        items.sort_by_key(|(_, item)| item.item());
        items
    }

    /// The items that hold, each with its stream, in the order of recording; shadowed preferences left out.
    pub fn current(&self) -> Vec<(StreamId, MemoryItem<'a>)> {
        let mut items: Vec<_> = self
            .streams()
            .flat_map(|(layer, memory)| memory.current(self.now).map(|item| (layer.stream, item)))
            .filter(|(_, item)| !self.is_shadowed(item))
            .collect();
        items.sort_by_key(|(_, item)| item.item());
        items
    }

    /// Whether another preference of the same category and key holds instead of this one, though no edge says so.
    pub fn is_shadowed(&self, item: &MemoryItem<'_>) -> bool {
        let Some(key) = item.key().filter(|_| item.kind() == MemoryKind::Preference) else { return false };
        item.standing(self.now) == MemoryStatus::Current
            && self.by_key(item.category(), key).is_some_and(|(_, holder)| holder.item() != item.item())
    }

    /// The preference that holds for a category and key.
    pub fn by_key(&self, category: &str, key: &str) -> Option<(StreamId, MemoryItem<'a>)> {
        LIFESPANS_INNER_FIRST.into_iter().find_map(|lifespan| self.by_key_in(lifespan, category, key))
    }

    /// The preference that holds for a category and key within one scope.
    pub fn by_key_in(
        &self,
        lifespan: Lifespan,
        category: &str,
        key: &str,
    ) -> Option<(StreamId, MemoryItem<'a>)> {
        self.find(|memory| memory.by_key(lifespan, category, key, self.now))
    }

    /// The fact or decision that holds on a subject (any case) within one scope; of several the newest.
    pub fn by_subject(
        &self,
        kind: MemoryKind,
        lifespan: Lifespan,
        category: &str,
        subject: &str,
    ) -> Option<(StreamId, MemoryItem<'a>)> {
        self.find(|memory| memory.by_subject(kind, lifespan, category, subject, self.now))
    }

    /// The item with this id, of the innermost stream that has one.
    pub fn by_id(&self, id: &str) -> Option<(StreamId, MemoryItem<'a>)> {
        self.find(|memory| memory.by_id(id))
    }

    /// The item that this event recorded.
    pub fn by_item(&self, item: ItemId) -> Option<(StreamId, MemoryItem<'a>)> {
        self.find(|memory| memory.by_item(item))
    }

    /// The items that hold in a category, over all scopes, newest first.
    pub fn in_category(&self, kind: MemoryKind, category: &str) -> Vec<(StreamId, MemoryItem<'a>)> {
        self.gather(|memory, _| memory.in_category(kind, category, self.now).collect())
    }

    /// The items that hold and have this value (any case), over all scopes, newest first.
    pub fn with_value(&self, value: &str) -> Vec<(StreamId, MemoryItem<'a>)> {
        self.gather(|memory, signer| {
            memory.with_value(super::value_signature(signer, value), self.now).collect()
        })
    }

    fn find(
        &self,
        read: impl Fn(&MemoryAt<'a>) -> Option<MemoryItem<'a>>,
    ) -> Option<(StreamId, MemoryItem<'a>)> {
        self.streams().find_map(|(layer, memory)| Some((layer.stream, read(&memory)?)))
    }

    fn gather(
        &self,
        read: impl Fn(MemoryAt<'a>, &Signer) -> Vec<MemoryItem<'a>>,
    ) -> Vec<(StreamId, MemoryItem<'a>)> {
        let mut found: Vec<_> = self
            .streams()
            .flat_map(|(layer, memory)| {
                read(memory, &layer.signer).into_iter().map(|item| (layer.stream, item))
            })
            .collect();
        found.sort_by_key(|(_, item)| std::cmp::Reverse((item.facts().created, item.item())));
        found
    }
}
