//! The fold of memory events: items, what hides them, and the indexes that lookups use.
//!
//! ```text
//! MemoryRecorded -> item + stated links + key rule      MemoryReinforced, MemoryRetracted -> stamped on the name
//! MemorySuperseded -> one link                          restored, closed -> stamped
//! ```
//!
//! Links, reinforcements and retractions may come before the item that they name: they wait on its name. The `live`
//! sets know the newest state only; they make lookups at the head cost what they return. Earlier seqs read the
//! stamped lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::graph::{EdgeRow, Graph, Ix, MemoryRule, Nx, Reinforced, last_at, number, push_at};
use crate::event::{Actor, Body, Lifespan, MemoryKind, MemoryRecorded, Payload, Recorded};
use crate::fold::few::Few;
use crate::ids::{BodyId, ItemId, Micros, Seq, Signature};

/// What was recorded about an item. Never changes.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct MemoryFacts {
    /// The event that recorded it.
    pub seq: Seq,
    /// When that was.
    pub recorded_at: Micros,
    /// When it came about: the record's own time, else the host's, else `recorded_at`; never after `recorded_at`.
    pub created: Micros,
    /// Who said so.
    pub actor: Actor,
    /// The record. Texts are bodies of the event at `seq`.
    pub record: MemoryRecorded,
}

/// What a place can be looked up by, besides ids.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Place {
    /// Preferences of one scope, category and key.
    Key(Lifespan, String, String),
    /// Facts or decisions of one scope, category and subject (case folded).
    Subject(MemoryKind, Lifespan, String, String),
    /// Items of a kind and category.
    Category(MemoryKind, String),
    /// Items with this value.
    Value(Signature),
}

impl Place {
    /// The place of a subject, any case.
    pub(super) fn subject(kind: MemoryKind, lifespan: Lifespan, category: &str, subject: &str) -> Self {
        Self::Subject(kind, lifespan, category.to_owned(), fold_subject(subject))
    }
}

/// A subject as subjects are compared: trimmed, lower-cased.
pub(super) fn fold_subject(subject: &str) -> String {
    subject.trim().to_lowercase()
}

/// The items of one place.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// All, in the order of recording.
    pub(super) items: Vec<Ix>,
    /// Those current at the head, with the seq since when.
    pub(super) live: BTreeSet<(Seq, Ix)>,
    /// Which one holds from each seq on: of the current ones that shown (recorded or restored) last.
    pub(super) holders: Vec<(Seq, Option<Ix>)>,
}

/// An item and what of it moves.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) facts: Arc<MemoryFacts>,
    pub(super) node: Nx,
    live_since: Option<Seq>,
}

/// The fold of one branch of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Core {
    pub(super) graph: Graph,
    pub(super) rows: Vec<Row>,
    /// In no order: sort before anything of it is shown.
    pub(super) slots: FxHashMap<Place, Slot>,
    /// All that is current at the head.
    pub(super) live: BTreeSet<Ix>,
    live_session: BTreeSet<Ix>,
    /// Whether there ever was an item that ends with its session.
    pub(super) has_session_items: bool,
    /// Newest node of each id.
    by_id: FxHashMap<Arc<str>, Few<Nx>>,
    closes: Vec<Seq>,
    kind_counts: [u32; 4],
    /// Seq of the last change, and how many there were: equal in two folds only if they folded the same events.
    pub(super) last: Seq,
    pub(super) changes: u64,
}

impl Core {
    /// Folds a memory event; ignores all others.
    pub(super) fn apply(&mut self, recorded: &Recorded) {
        let seq = recorded.seq;
        match &recorded.event.payload {
            Payload::MemoryRecorded(record) => self.record(recorded, record),
            Payload::MemorySuperseded(link) => {
                let (old, new) = (self.name(&link.old), self.name(&link.new));
                self.link(seq, old, new, MemoryRule::Link, body_id(seq, link.reason));
            }
            Payload::MemoryReinforced(event) => {
                let nx = self.name(&event.id);
                let at = event.at.or(recorded.event.host_time).unwrap_or(recorded.recorded_at);
                let at = at.min(recorded.recorded_at);
                if let Some(node) = self.graph.node_mut(nx) {
                    let before = node.reinforced.last();
                    let entry = Reinforced {
                        seq,
                        at: before.map_or(at, |before| before.at.max(at)),
                        gained: before.map_or(0, |before| before.gained).saturating_add(event.amount.into()),
                    };
                    node.reinforced.push(entry);
                }
            }
            Payload::MemoryRetracted(event) => {
                let nx = self.name(&event.id);
                if let Some(node) = self.graph.node_mut(nx) {
                    push_at(&mut node.retracted, seq, true);
                }
                self.refresh(seq, nx);
            }
            _ => return,
        }
        self.changed(seq);
    }

    /// Shows items again: releases their edges and takes back a retraction.
    pub(super) fn restored(&mut self, seq: Seq, items: &[ItemId]) {
        for item in items {
            let Some(row) = self.ix_of(*item).and_then(|ix| self.row(ix)) else { continue };
            let nx = row.node;
            self.graph.release(seq, nx);
            if let Some(node) = self.graph.node_mut(nx)
                && node.retracted_at(Seq::MAX)
            {
                push_at(&mut node.retracted, seq, false);
            }
            self.refresh(seq, nx);
            self.changed(seq);
        }
    }

    /// The session ended: its session items with it.
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

    fn record(&mut self, recorded: &Recorded, record: &MemoryRecorded) {
        let seq = recorded.seq;
        let id = if record.id.is_empty() { seq.to_string() } else { record.id.clone() };
        let before = self.name(&id);
        let nx = if self.graph.node(before).is_some_and(|node| node.item.is_some()) {
            self.new_name(&id)
        } else {
            before
        };
        let created = record.created.or(recorded.event.host_time).unwrap_or(recorded.recorded_at);
        let facts = Arc::new(MemoryFacts {
            seq,
            recorded_at: recorded.recorded_at,
            created: created.min(recorded.recorded_at),
            actor: recorded.event.stamp.actor,
            record: MemoryRecorded { id, ..record.clone() },
        });
        let ix = number(self.rows.len());
        for place in places(&facts.record) {
            self.slots.entry(place).or_default().items.push(ix);
        }
        if let Some(count) = self.kind_counts.get_mut(record.kind as usize) {
            *count += 1;
        }
        self.has_session_items |= facts.record.lifespan == Lifespan::Session;
        self.rows.push(Row { facts: Arc::clone(&facts), node: nx, live_since: None });
        if let Some(node) = self.graph.node_mut(nx) {
            node.item = Some(ix);
        }
        if nx != before {
            self.link(seq, before, nx, MemoryRule::Revised, None);
        }
        for old in &record.replaces {
            let old = self.name(old);
            self.link(seq, old, nx, MemoryRule::Link, None);
        }
        for new in &record.superseded_by {
            let new = self.name(new);
            self.link(seq, nx, new, MemoryRule::Link, None);
        }
        self.refresh(seq, nx);
        self.key_rule(ix, nx, &facts);
    }

    /// A newer preference takes the place of the current one with the same scope, category and key.
    ///
    /// Newer is what came about later, so that an import in any order ends alike; of two of one time, the one recorded
    /// later. An item that arrives superseded or retracted takes nobody's place.
    fn key_rule(&mut self, ix: Ix, nx: Nx, facts: &MemoryFacts) {
        let Some(place) = key_place(&facts.record) else { return };
        if self.row(ix).is_none_or(|row| row.live_since.is_none()) {
            return;
        }
        let Some(slot) = self.slots.get(&place) else { return };
        let others: Vec<(Nx, Micros)> = (slot.live.iter())
            .filter(|(_, other)| *other != ix)
            .filter_map(|(_, other)| self.row(*other).map(|row| (row.node, row.facts.created)))
            .collect();
        for (other, created) in others {
            let (old, new) = if created <= facts.created { (other, nx) } else { (nx, other) };
            self.link(facts.seq, old, new, MemoryRule::Key, None);
        }
    }

    fn link(&mut self, seq: Seq, old: Nx, new: Nx, rule: MemoryRule, reason: Option<BodyId>) {
        let edge = EdgeRow { seq, old, new, rule, reason, closes_cycle: false, released: None };
        if self.graph.add_edge(edge) {
            self.refresh(seq, old);
        }
    }

    /// The newest node with this id, made if there is none.
    fn name(&mut self, id: &str) -> Nx {
        match self.by_id.get(id).and_then(|nodes| nodes.as_slice().last()) {
            Some(nx) => *nx,
            None => self.new_name(id),
        }
    }

    fn new_name(&mut self, id: &str) -> Nx {
        let id: Arc<str> = id.into();
        let nx = self.graph.add_node(Arc::clone(&id));
        self.by_id.entry(id).or_default().push(nx);
        nx
    }

    /// Brings the sets of what is current in line with what is stamped.
    fn refresh(&mut self, seq: Seq, nx: Nx) {
        let Some(ix) = self.graph.node(nx).and_then(|node| node.item) else { return };
        let is_current = self.is_current(ix, Seq::MAX);
        let Some(row) = self.rows.get_mut(ix as usize) else { return };
        let since = row.live_since;
        if since.is_some() == is_current {
            return;
        }
        row.live_since = is_current.then_some(seq);
        let facts = Arc::clone(&row.facts);
        if is_current {
            self.live.insert(ix);
            if facts.record.lifespan == Lifespan::Session {
                self.live_session.insert(ix);
            }
        } else {
            self.live.remove(&ix);
            self.live_session.remove(&ix);
        }
        for place in places(&facts.record) {
            let has_holder = matches!(place, Place::Key(..) | Place::Subject(..));
            let slot = self.slots.entry(place).or_default();
            match since {
                Some(since) => slot.live.remove(&(since, ix)),
                None => slot.live.insert((seq, ix)),
            };
            if has_holder {
                push_at(&mut slot.holders, seq, slot.live.last().map(|(_, ix)| *ix));
            }
        }
    }

    pub(super) fn row(&self, ix: Ix) -> Option<&Row> {
        self.rows.get(ix as usize)
    }

    /// Unhidden, not retracted, session not over; whether a session item has faded is not asked.
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
        let nodes = self.by_id.get(id)?;
        nodes
            .as_slice()
            .iter()
            .rev()
            .filter_map(|nx| self.graph.node(*nx)?.item)
            .find(|ix| self.row(*ix).is_some_and(|row| row.facts.seq <= at))
    }

    /// The item that the event at `item.seq` recorded.
    pub(super) fn ix_of(&self, item: ItemId) -> Option<Ix> {
        if item.part != 1 {
            return None;
        }
        self.rows.binary_search_by_key(&item.seq, |row| row.facts.seq).ok().map(number)
    }

    /// Number of items recorded by `at`.
    pub(super) fn count_at(&self, at: Seq) -> usize {
        self.rows.partition_point(|row| row.facts.seq <= at)
    }

    /// Items of a kind recorded so far.
    pub(super) fn kind_count(&self, kind: MemoryKind) -> u32 {
        self.kind_counts.get(kind as usize).copied().unwrap_or(0)
    }

    /// Those of a place that are current at `at`, in the order of recording.
    ///
    /// Cost: what is returned, at the head; for earlier seqs, all items of the place.
    pub(super) fn current_in(&self, place: &Place, at: Seq) -> Vec<Ix> {
        let Some(slot) = self.slots.get(place) else { return Vec::new() };
        if at >= self.last {
            let mut items: Vec<Ix> = slot.live.iter().map(|(_, ix)| *ix).collect();
            items.sort_unstable();
            return items;
        }
        slot.items.iter().copied().filter(|ix| self.is_current(*ix, at)).collect()
    }

    /// The one item of a place that holds at `at`.
    pub(super) fn holder(&self, place: &Place, at: Seq) -> Option<Ix> {
        last_at(&self.slots.get(place)?.holders, at).flatten()
    }
}

/// The id of an optional body.
pub(super) fn body_id(seq: Seq, body: Option<Body>) -> Option<BodyId> {
    body.map(|body| body.id(seq))
}

fn key_place(record: &MemoryRecorded) -> Option<Place> {
    let key = record.key.as_deref().filter(|key| !key.is_empty())?;
    (record.kind == MemoryKind::Preference)
        .then(|| Place::Key(record.lifespan, record.category.clone(), key.to_owned()))
}

fn places(record: &MemoryRecorded) -> impl Iterator<Item = Place> {
    let subject = record.subject.as_deref().filter(|subject| !subject.trim().is_empty());
    [
        Some(Place::Category(record.kind, record.category.clone())),
        Some(Place::Value(record.value_signature)),
        key_place(record),
        subject.map(|subject| Place::subject(record.kind, record.lifespan, &record.category, subject)),
    ]
    .into_iter()
    .flatten()
}
