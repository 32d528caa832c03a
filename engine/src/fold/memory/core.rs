//! The fold of memory events: items, the edges that hide them, and the indexes that lookups use.
//!
//! ```text
//! MemoryRecorded -> item + stated links + key rule      MemoryReinforced, MemoryRetracted -> stamped on the name
//! MemorySuperseded -> one link                          restored, closed -> stamped
//! ```
//!
//! Links, reinforcements and retractions may come before the item that they name: they wait on its name. The `live`
//! sets know the newest state only; with them a lookup at the head costs as much as its result. Earlier seqs read the
//! stamped lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::graph::{Graph, Ix, MemoryRule, Nx, Reinforced, StoredEdge, last_at, push_at};
use super::op::{MemoryEvent, MemoryWhat, Moment};
use crate::event::{Actor, Body, Lifespan, MemoryKind, MemoryRecorded};
use crate::fold::names::StringTable;
use crate::fold::number::{Interned, index};
use crate::ids::{BodyId, ItemId, Micros, Seq, Signature};

/// The recorded facts about an item. They never change.
#[derive(Clone, PartialEq, Debug, serde::Serialize, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct MemoryFacts {
    /// The event that recorded it.
    pub seq: Seq,
    /// When it was recorded.
    pub recorded_at: Micros,
    /// When it came about: the record's own time, else the host's, else `recorded_at`; never after `recorded_at`.
    pub created: Micros,
    /// The actor that recorded it.
    pub actor: Actor,
    /// The record. Texts are bodies of the event at `seq`.
    #[rkyv(with = rkyv::with::Unshare)]
    pub record: Arc<MemoryRecorded>,
}

/// A group of items that can be looked up, besides by ids.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub(super) enum MemoryLookup {
    /// Preferences of one scope, category and key.
    Key(Lifespan, String, String),
    /// Facts or decisions of one scope, category and subject (case folded).
    Subject(MemoryKind, Lifespan, String, String),
    /// Items of a kind and category.
    Category(MemoryKind, String),
    /// Items with this value.
    Value(Signature),
}

impl MemoryLookup {
    /// The place of a subject, any case.
    pub(super) fn subject(kind: MemoryKind, lifespan: Lifespan, category: &str, subject: &str) -> Self {
        Self::Subject(kind, lifespan, category.to_owned(), fold_subject(subject))
    }
}

/// A subject in the form that is compared: trimmed, lower-cased.
pub(super) fn fold_subject(subject: &str) -> String {
    subject.trim().to_lowercase()
}

/// The items of one place.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct MemorySlot {
    /// All, in the order of recording.
    pub(super) items: Vec<Ix>,
    /// Items that are current at the head, each with the seq since which it is.
    #[rkyv(with = rkyv::with::AsVec)]
    live: BTreeSet<(Seq, Ix)>,
    /// The item that holds from each seq on: the current one that was shown (recorded or restored) last.
    pub(super) holders: Vec<(Seq, Option<Ix>)>,
}

/// Most places that an item is found at.
const PLACE_COUNT_MAX: usize = 4;

/// An item and its values that change.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct MemoryItemRow {
    #[rkyv(with = rkyv::with::Unshare)]
    pub(super) facts: Arc<MemoryFacts>,
    pub(super) node: Nx,
    live_since: Option<Seq>,
    /// The slots in which it is found; [`NOWHERE`] fills the rest.
    slots: [u32; PLACE_COUNT_MAX],
}

/// No slot.
const NOWHERE: u32 = u32::MAX;

/// The fold of one branch of one stream.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct MemoryCore {
    pub(super) graph: Graph,
    pub(super) rows: Vec<MemoryItemRow>,
    /// In the order of first use: sort them before any is shown.
    places: Interned<MemoryLookup>,
    /// One a place.
    slots: Vec<MemorySlot>,
    /// Items that are current at the head.
    #[rkyv(with = rkyv::with::AsVec)]
    live: BTreeSet<Ix>,
    #[rkyv(with = rkyv::with::AsVec)]
    live_session: BTreeSet<Ix>,
    /// Whether there ever was an item that ends with its session.
    pub(super) has_session_items: bool,
    pub(super) ids: StringTable,
    /// The newest node of each id.
    newest: Vec<Nx>,
    closes: Vec<Seq>,
    kind_counts: [u32; 4],
    /// Seq of the last change, and how many there were: equal in two folds only if they folded the same events.
    pub(super) last: Seq,
    pub(super) changes: u64,
}

impl MemoryCore {
    /// Folds a memory event.
    pub(super) fn apply(&mut self, event: &MemoryEvent) {
        let seq = event.seq;
        match &event.what {
            MemoryWhat::Recorded(record) => self.record(event, record),
            MemoryWhat::Superseded(link) => {
                let (old, new) = (self.name(&link.old), self.name(&link.new));
                self.link(seq, event.moment(), (old, new), MemoryRule::Link, body_id(seq, link.reason));
            }
            MemoryWhat::Reinforced(reinforced) => {
                let nx = self.name(&reinforced.id);
                let at = reinforced.at.or(event.host_time).unwrap_or(event.recorded_at);
                let at = at.min(event.recorded_at);
                if let Some(node) = self.graph.node_mut(nx) {
                    let before = node.reinforced.last();
                    let gained = before.map_or(0, |before| before.gained);
                    let entry = Reinforced {
                        seq,
                        at: before.map_or(at, |before| before.at.max(at)),
                        gained: gained.saturating_add(reinforced.amount.into()),
                        by_person: event.actor == Actor::User
                            || before.is_some_and(|before| before.by_person),
                    };
                    node.reinforced.push(entry);
                }
            }
            MemoryWhat::Retracted(retracted) => {
                let nx = self.name(&retracted.id);
                let moment = event.moment();
                self.retract(seq, moment, nx);
                for nx in self.of_key(&retracted.id, moment.at) {
                    self.retract(seq, moment, nx);
                }
            }
        }
        self.changed(seq);
    }

    fn retract(&mut self, seq: Seq, moment: Moment, nx: Nx) {
        if let Some(node) = self.graph.node_mut(nx)
            && !(moment.is_dated && node.restored.is_some_and(|restored| moment.at < restored))
        {
            push_at(&mut node.retracted, seq, true);
            node.retraction_said = node.retraction_said.max(moment.at);
        }
        self.refresh(seq, nx);
    }

    /// The values of a key that hold and came about by `at`, if a name is `category/key` and no item's: who told that the key was
    /// removed did not know of which value.
    fn of_key(&self, name: &str, at: Micros) -> Vec<Nx> {
        let Some((category, key)) = name.split_once('/') else { return Vec::new() };
        let place = MemoryLookup::Key(Lifespan::Project, category.to_owned(), key.to_owned());
        let items = self.slot(&place).into_iter().flat_map(|slot| &slot.live);
        let rows = items.filter_map(|(_, ix)| self.row(*ix)).filter(|row| row.facts.created <= at);
        rows.map(|row| row.node).collect()
    }

    /// All places with their items, in no order that means anything.
    pub(super) fn slots(&self) -> impl Iterator<Item = (&MemoryLookup, &MemorySlot)> {
        self.places.iter().zip(&self.slots)
    }

    /// The items of a place.
    pub(super) fn slot(&self, place: &MemoryLookup) -> Option<&MemorySlot> {
        self.slots.get(self.places.find(place)? as usize)
    }

    /// The slot of a place, made if there is none.
    fn slot_at(&mut self, place: MemoryLookup) -> u32 {
        let slot = self.places.number(place);
        if self.slots.len() <= slot as usize {
            self.slots.push(MemorySlot::default());
        }
        slot
    }

    /// All items that are current at the head, in the order of recording.
    pub(super) fn live(&self) -> Vec<Ix> {
        self.live.iter().copied().collect()
    }

    /// Shows items again: releases their edges and takes back a retraction, if those were said before.
    pub(super) fn restored(&mut self, seq: Seq, moment: Moment, items: &[ItemId]) {
        for item in items {
            let Some(row) = self.ix_of(*item).and_then(|ix| self.row(ix)) else { continue };
            let nx = row.node;
            self.graph.release(seq, moment, nx);
            if let Some(node) = self.graph.node_mut(nx)
                && node.retracted_at(Seq::MAX)
                && !(moment.is_dated && moment.at <= node.retraction_said)
            {
                push_at(&mut node.retracted, seq, false);
            }
            self.refresh(seq, nx);
            self.changed(seq);
        }
    }

    /// The session ended: its session items end with it.
    pub(super) fn closed(&mut self, seq: Seq) {
        if self.rows.is_empty() {
            return;
        }
        self.closes.push(seq);
        let nodes: Vec<Nx> =
            self.live_session.iter().filter_map(|ix| self.row(*ix)).map(|row| row.node).collect();
        for nx in nodes {
            self.refresh(seq, nx);
        }
        self.changed(seq);
    }

    fn changed(&mut self, seq: Seq) {
        self.last = seq;
        self.changes += 1;
    }

    fn record(&mut self, event: &MemoryEvent, record: &Arc<MemoryRecorded>) {
        let seq = event.seq;
        let before = self.name(&record.id);
        let nx = if self.graph.node(before).is_some_and(|node| node.item.is_some()) {
            self.new_name(&record.id)
        } else {
            before
        };
        let created = record.created.or(event.host_time).unwrap_or(event.recorded_at);
        let facts = Arc::new(MemoryFacts {
            seq,
            recorded_at: event.recorded_at,
            created: created.min(event.recorded_at),
            actor: event.actor,
            record: Arc::clone(record),
        });
        let ix = index(self.rows.len());
        let slots = self.slots_of(record);
        for slot in slots {
            if let Some(slot) = self.slots.get_mut(slot as usize) {
                slot.items.push(ix);
            }
        }
        if let Some(count) = self.kind_counts.get_mut(record.kind as usize) {
            *count += 1;
        }
        self.has_session_items |= facts.record.lifespan == Lifespan::Session;
        self.rows.push(MemoryItemRow { facts: Arc::clone(&facts), node: nx, live_since: None, slots });
        if let Some(node) = self.graph.node_mut(nx) {
            node.item = Some(ix);
        }
        if nx != before {
            self.link(seq, event.moment(), (before, nx), MemoryRule::Revised, None);
        }
        for old in &record.replaces {
            let old = self.name(old);
            self.link(seq, event.moment(), (old, nx), MemoryRule::Link, None);
        }
        for new in &record.superseded_by {
            let new = self.name(new);
            self.link(seq, event.moment(), (nx, new), MemoryRule::Link, None);
        }
        self.refresh(seq, nx);
        if let Some(said) = self.key_removed(record).filter(|said| *said >= facts.created) {
            self.retract(seq, Moment { at: said, ..event.moment() }, nx);
        }
        self.key_rule(ix, nx, &facts, event.moment());
    }

    /// When it was told that a record's key was removed, whatever its value ([`Self::of_key`]).
    fn key_removed(&self, record: &MemoryRecorded) -> Option<Micros> {
        let key = key_of(record).filter(|_| record.lifespan == Lifespan::Project)?;
        let nx = *self.newest.get(self.ids.find(&format!("{}/{key}", record.category))?.at())?;
        let node = self.graph.node(nx)?;
        (node.item.is_none() && node.retracted_at(Seq::MAX)).then_some(node.retraction_said)
    }

    /// A newer preference takes the place of the current one with the same scope, category and key.
    ///
    /// The newer item is the one that came about later, so that an import in any order ends alike; of two of one time, the one
    /// recorded later. An item that arrives superseded takes no item's place, nor does one that was retracted before it came about. One
    /// that arrives behind newer ones has its place between those that came about before and after it.
    fn key_rule(&mut self, ix: Ix, nx: Nx, facts: &MemoryFacts, moment: Moment) {
        let once_held = || {
            let node = self.graph.node(nx).filter(|node| node.hidden_by_at(Seq::MAX) == 0);
            node.is_some_and(|node| node.retracted_at(Seq::MAX) && node.retraction_said > facts.created)
        };
        let Some(row) = self.row(ix).filter(|row| row.live_since.is_some() || once_held()) else { return };
        if key_of(&facts.record).is_none() {
            return;
        }
        let Some(slot) = self.slots.get(row.slots[KEY_SLOT] as usize) else { return };
        let place = |other: &Ix| self.row(*other).map(|row| (row.facts.created, *other, row.node));
        let is_before = |other: &(Micros, Ix, Nx)| other.0 <= facts.created;
        let live: Vec<_> = slot
            .live
            .iter()
            .map(|(_, other)| other)
            .filter(|other| **other != ix)
            .filter_map(place)
            .collect();
        let mut pairs: Vec<(Nx, Nx, Micros)> =
            live.iter().filter(|other| is_before(other)).map(|other| (other.2, nx, facts.created)).collect();
        let all = || slot.items.iter().filter(|other| **other != ix).filter_map(place);
        // One that came about later took its place, even if it holds no more.
        if let Some(after) = all().filter(|other| !is_before(other)).min() {
            let is_retracted = |nx| self.graph.node(nx).is_some_and(|node| node.retracted_at(Seq::MAX));
            let before = all().filter(is_before).max().filter(|before| !is_retracted(before.2));
            pairs.extend(before.filter(|_| pairs.is_empty()).map(|before| (before.2, nx, facts.created)));
            pairs.push((nx, after.2, after.0));
        }
        for (old, new, came) in pairs {
            let said = Moment { at: moment.at.max(came), ..moment };
            self.link(facts.seq, said, (old, new), MemoryRule::Key, None);
        }
    }

    fn link(
        &mut self,
        seq: Seq,
        moment: Moment,
        (old, new): (Nx, Nx),
        rule: MemoryRule,
        reason: Option<BodyId>,
    ) {
        let said = moment.at;
        let edge = StoredEdge { seq, said, old, new, rule, reason, closes_cycle: false, released: None };
        if self.graph.add_edge(edge, moment.is_dated) {
            self.refresh(seq, old);
        }
    }

    /// The newest node with this id, made if there is none.
    fn name(&mut self, id: &str) -> Nx {
        let known = self.ids.find(id).and_then(|name| self.newest.get(name.at()));
        known.copied().unwrap_or_else(|| self.new_name(id))
    }

    fn new_name(&mut self, id: &str) -> Nx {
        let id = self.ids.intern(id);
        let nx = self.graph.add_node(id, self.newest.get(id.at()).copied());
        match self.newest.get_mut(id.at()) {
            Some(newest) => *newest = nx,
            None => self.newest.push(nx),
        }
        nx
    }

    /// Brings the sets of current items in line with the stamped lists.
    fn refresh(&mut self, seq: Seq, nx: Nx) {
        let Some(ix) = self.graph.node(nx).and_then(|node| node.item) else { return };
        let is_current = self.is_current(ix, Seq::MAX);
        let Some(row) = self.rows.get_mut(ix as usize) else { return };
        let since = row.live_since;
        if since.is_some() == is_current {
            return;
        }
        row.live_since = is_current.then_some(seq);
        let (slots, is_session) = (row.slots, row.facts.record.lifespan == Lifespan::Session);
        let sets = [Some(&mut self.live), is_session.then_some(&mut self.live_session)];
        for set in sets.into_iter().flatten() {
            if is_current {
                set.insert(ix)
            } else {
                set.remove(&ix)
            };
        }
        for number in slots {
            let Some(slot) = self.slots.get_mut(number as usize) else { continue };
            match since {
                Some(since) => slot.live.remove(&(since, ix)),
                None => slot.live.insert((seq, ix)),
            };
            let place = self.places.get(number);
            if matches!(place, Some(MemoryLookup::Key(..) | MemoryLookup::Subject(..))) {
                push_at(&mut slot.holders, seq, slot.live.last().map(|(_, ix)| *ix));
            }
        }
    }

    /// The slots of an item: by category, by value, by key, by subject.
    fn slots_of(&mut self, record: &MemoryRecorded) -> [u32; PLACE_COUNT_MAX] {
        let (kind, lifespan, category) = (record.kind, record.lifespan, &record.category);
        let by_key =
            key_of(record).map(|key| MemoryLookup::Key(lifespan, category.to_string(), key.to_owned()));
        let subject = record.subject.as_deref().filter(|subject| !subject.trim().is_empty());
        let by_subject = subject.map(|subject| MemoryLookup::subject(kind, lifespan, category, subject));
        [
            self.slot_at(MemoryLookup::Category(kind, category.to_string())),
            self.slot_at(MemoryLookup::Value(record.value_signature)),
            by_key.map_or(NOWHERE, |place| self.slot_at(place)),
            by_subject.map_or(NOWHERE, |place| self.slot_at(place)),
        ]
    }

    pub(super) fn row(&self, ix: Ix) -> Option<&MemoryItemRow> {
        self.rows.get(ix as usize)
    }

    /// Whether an item is not hidden, not retracted, and its session not over. Fading does not count here.
    pub(super) fn is_current(&self, ix: Ix, at: Seq) -> bool {
        let Some(row) = self.row(ix) else { return false };
        let Some(node) = self.graph.node(row.node) else { return false };
        row.facts.seq <= at
            && node.hidden_by_at(at) == 0
            && !node.retracted_at(at)
            && !self.session_over(&row.facts, at)
    }

    /// Whether the item was a session's and that session has ended by `at`.
    pub(super) fn session_over(&self, facts: &MemoryFacts, at: Seq) -> bool {
        facts.record.lifespan == Lifespan::Session && {
            let first_after = self.closes.partition_point(|close| *close <= facts.seq);
            self.closes.get(first_after).is_some_and(|close| *close <= at)
        }
    }

    /// The item an id names at `at`: the newest recorded by then.
    pub(super) fn by_id(&self, id: &str, at: Seq) -> Option<Ix> {
        let newest = self.newest.get(self.ids.find(id)?.at()).copied();
        // A list that was forged may lead in a circle.
        let before = |nx: &Nx| self.graph.node(*nx)?.previous.filter(|previous| previous < nx);
        std::iter::successors(newest, before)
            .filter_map(|nx| self.graph.node(nx)?.item)
            .find(|ix| self.row(*ix).is_some_and(|row| row.facts.seq <= at))
    }

    /// The item that the event at `item.seq` recorded.
    pub(super) fn ix_of(&self, item: ItemId) -> Option<Ix> {
        if item.part != 1 {
            return None;
        }
        self.rows.binary_search_by_key(&item.seq, |row| row.facts.seq).ok().map(index)
    }

    /// Number of items recorded by `at`.
    pub(super) fn count_at(&self, at: Seq) -> usize {
        self.rows.partition_point(|row| row.facts.seq <= at)
    }

    /// Items of a kind recorded so far.
    pub(super) fn kind_count(&self, kind: MemoryKind) -> u32 {
        self.kind_counts.get(kind as usize).copied().unwrap_or(0)
    }

    /// The items of a place that are current at `at`, in the order of recording.
    ///
    /// Cost: O(result) at the head; O(all items of the place) for earlier seqs.
    pub(super) fn current_in(&self, place: &MemoryLookup, at: Seq) -> Vec<Ix> {
        let Some(slot) = self.slot(place) else { return Vec::new() };
        if at >= self.last {
            let mut items: Vec<Ix> = slot.live.iter().map(|(_, ix)| *ix).collect();
            items.sort_unstable();
            return items;
        }
        slot.items.iter().copied().filter(|ix| self.is_current(*ix, at)).collect()
    }

    /// The one item of a place that holds at `at`.
    pub(super) fn holder(&self, place: &MemoryLookup, at: Seq) -> Option<Ix> {
        last_at(&self.slot(place)?.holders, at).flatten()
    }
}

/// The id of an optional body.
pub(super) fn body_id(seq: Seq, body: Option<Body>) -> Option<BodyId> {
    body.map(|body| body.id(seq))
}

/// Index of the key's slot among an item's slots.
const KEY_SLOT: usize = 2;

/// The key of a preference.
fn key_of(record: &MemoryRecorded) -> Option<&str> {
    record.key.as_deref().filter(|key| record.kind == MemoryKind::Preference && !key.is_empty())
}
