//! Lessons of a memory's history: keys that waver, values that came back, decisions that were reversed.
//!
//! Pure reads; nothing is stored. An edge counts unless it closes a circle; a released one counts too, since the change
//! of mind was real. An equal value recorded again is no change of mind.

use std::collections::{BTreeMap, BTreeSet};

use super::core::MemoryLookup;
use super::graph::{Ix, Nx};
use super::read::{MemoryAt, MemoryItem, MemoryStatus};
use crate::event::{Lifespan, MemoryKind};
use crate::ids::{Micros, Signature};

/// Supersessions from which on a key, subject or decision counts as unstable.
pub(super) const UNSTABLE_COUNT: usize = 2;
/// Age from which on an item should have been reinforced: 30 days, in microseconds.
const UNCONFIRMED_AGE: i64 = 30 * 24 * 3_600_000_000;

/// A preference that changed [`UNSTABLE_COUNT`] times or more.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct RepeatedKey {
    /// Its scope.
    pub lifespan: Lifespan,
    /// Its category.
    pub category: String,
    /// Its key.
    pub key: String,
    /// How often a value gave way to another.
    pub supersessions: usize,
    /// Ids of its items, in the order of recording.
    pub items: Vec<String>,
}

/// A preference went from a value to others and back.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ReturnedValue {
    /// Its category.
    pub category: String,
    /// Its key.
    pub key: String,
    /// Id of the item that had the value before.
    pub before: String,
    /// Id of the item that brought it back.
    pub again: String,
}

/// A decision that was replaced, and its replacement too.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct RepeatedDecision {
    /// Id of the decision that ends the chain.
    pub last: String,
    /// How many supersessions led to it.
    pub supersessions: usize,
    /// Ids of the chain's members, oldest first.
    pub items: Vec<String>,
}

/// A subject on which one fact took another's place.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct SubjectConflict {
    /// Category of the facts.
    pub category: String,
    /// The subject, lower-cased.
    pub subject: String,
    /// How often a fact gave way to another.
    pub supersessions: usize,
    /// Ids of its facts, in the order of recording.
    pub items: Vec<String>,
}

/// Lessons of a memory's history, as of a seq.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct MemoryInsights {
    /// Preferences that changed twice or more.
    pub unstable: Vec<RepeatedKey>,
    /// Values that came back.
    pub returned: Vec<ReturnedValue>,
    /// Decisions reversed twice or more.
    pub reversed: Vec<RepeatedDecision>,
    /// Subjects whose facts were contradicted.
    pub contradicted: Vec<SubjectConflict>,
    /// Ids of current items older than 30 days that were never reinforced.
    pub unconfirmed: Vec<String>,
}

impl<'a> MemoryAt<'a> {
    /// Lessons of this stream's history. Lists are ordered by scope, category and key; ids by recording.
    ///
    /// Cost: O(items + edges), times a logarithm. Decisions that lead to the ends of several chains count for each.
    pub fn insights(&self, now: Micros) -> MemoryInsights {
        let mut insights = MemoryInsights { reversed: self.reversed(), ..MemoryInsights::default() };
        let mut slots: Vec<_> = self.core.slots().collect();
        slots.sort_unstable_by_key(|(place, _)| *place);
        for (place, slot) in slots {
            match place {
                MemoryLookup::Key(lifespan, category, key) => {
                    insights.returned.extend(self.returned(category, key, &slot.items));
                    let supersessions = self.changes(&slot.items);
                    if supersessions >= UNSTABLE_COUNT {
                        insights.unstable.push(RepeatedKey {
                            lifespan: *lifespan,
                            category: category.clone(),
                            key: key.clone(),
                            supersessions,
                            items: self.ids(&slot.items),
                        });
                    }
                }
                MemoryLookup::Subject(MemoryKind::Fact, _, category, subject) => {
                    let supersessions = self.changes(&slot.items);
                    if supersessions > 0 {
                        insights.contradicted.push(SubjectConflict {
                            category: category.clone(),
                            subject: subject.clone(),
                            supersessions,
                            items: self.ids(&slot.items),
                        });
                    }
                }
                MemoryLookup::Subject(..) | MemoryLookup::Category(..) | MemoryLookup::Value(..) => {}
            }
        }
        insights.unconfirmed = (self.current(now))
            .filter(|item| item.reinforced().is_none())
            // Times further apart than the clock can tell are old enough.
            .filter(|item| now.0.saturating_sub(item.facts().created.0) > UNCONFIRMED_AGE)
            .map(|item| item.id().to_owned())
            .collect();
        insights
    }

    /// Whether a preference's key has changed so often that an agent should ask before it changes the key again.
    pub fn is_unstable_key(&self, lifespan: Lifespan, category: &str, key: &str) -> bool {
        self.is_unstable(&MemoryLookup::Key(lifespan, category.to_owned(), key.to_owned()))
    }

    /// The same for a fact's or decision's subject.
    pub fn is_unstable_subject(
        &self,
        kind: MemoryKind,
        lifespan: Lifespan,
        category: &str,
        subject: &str,
    ) -> bool {
        self.is_unstable(&MemoryLookup::subject(kind, lifespan, category, subject))
    }

    fn is_unstable(&self, place: &MemoryLookup) -> bool {
        self.core.slot(place).is_some_and(|slot| self.changes(&slot.items) >= UNSTABLE_COUNT)
    }

    fn ids(&self, items: &[Ix]) -> Vec<String> {
        self.seen(items).map(|item| item.id().to_owned()).collect()
    }

    fn seen<'s>(&'s self, items: &'s [Ix]) -> impl Iterator<Item = MemoryItem<'a>> + 's {
        items.iter().filter_map(|ix| self.item_at(*ix))
    }

    /// How many of these items gave way to an item with another value.
    fn changes(&self, items: &[Ix]) -> usize {
        self.seen(items).filter(|item| self.gave_way(item)).count()
    }

    fn gave_way(&self, item: &MemoryItem<'a>) -> bool {
        let value = item.facts().record.value_signature;
        let edges = item.node().map_or(&[][..], |node| &node.out);
        let edges = edges.iter().filter_map(|ex| self.core.graph.edge(*ex));
        edges.take_while(|edge| edge.seq <= self.seq()).any(|edge| {
            let newer = self.of_node(edge.new);
            !edge.closes_cycle && newer.is_none_or(|newer| newer.facts().record.value_signature != value)
        })
    }

    /// Values of a key that come again after another one, each with the item that had the value before.
    fn returned(&self, category: &str, key: &str, items: &[Ix]) -> Vec<ReturnedValue> {
        let mut last_with: BTreeMap<Signature, &str> = BTreeMap::new();
        let mut previous = None;
        let mut found = Vec::new();
        for item in self.seen(items) {
            let value = item.facts().record.value_signature;
            if previous != Some(value)
                && let Some(before) = last_with.get(&value)
            {
                found.push(ReturnedValue {
                    category: category.to_owned(),
                    key: key.to_owned(),
                    before: (*before).to_owned(),
                    again: item.id().to_owned(),
                });
            }
            last_with.insert(value, item.id());
            previous = Some(value);
        }
        found
    }

    /// Decisions that end a chain of [`UNSTABLE_COUNT`] supersessions or more.
    fn reversed(&self) -> Vec<RepeatedDecision> {
        let mut into: BTreeMap<Nx, Vec<Nx>> = BTreeMap::new();
        let mut replaced = BTreeSet::new();
        for edge in self.core.graph.edges().iter().take_while(|edge| edge.seq <= self.seq()) {
            let ends = [edge.old, edge.new].map(|nx| self.core.graph.node(nx).and_then(|node| node.item));
            let are_decisions = ends.iter().all(|ix| {
                ix.and_then(|ix| self.item_at(ix)).is_some_and(|item| item.kind() == MemoryKind::Decision)
            });
            if are_decisions && !edge.closes_cycle {
                into.entry(edge.new).or_default().push(edge.old);
                replaced.insert(edge.old);
            }
        }
        // Nothing replaces a chain's end. Each walk covers the decisions that lead to one end.
        let mut found = Vec::new();
        for end in into.keys().filter(|nx| !replaced.contains(nx)) {
            let mut seen = BTreeSet::new();
            let mut stack = vec![*end];
            while let Some(nx) = stack.pop() {
                if seen.insert(nx) {
                    stack.extend(into.get(&nx).into_iter().flatten());
                }
            }
            let Some(last) = self.of_node(*end) else { continue };
            if seen.len() > UNSTABLE_COUNT {
                let mut items: Vec<_> = seen.iter().filter_map(|nx| self.of_node(*nx)).collect();
                items.sort_by_key(|item| (item.facts().created, item.facts().seq));
                found.push(RepeatedDecision {
                    last: last.id().to_owned(),
                    supersessions: seen.len() - 1,
                    items: items.into_iter().map(|item| item.id().to_owned()).collect(),
                });
            }
        }
        found
    }

    fn of_node(&self, nx: Nx) -> Option<MemoryItem<'a>> {
        self.core.graph.node(nx).and_then(|node| self.item_at(node.item?))
    }

    /// Counts items by their standing, in the order of `Standing`. The sum is the number of items ever recorded.
    pub fn counts(&self, now: Micros) -> BTreeMap<MemoryStatus, usize> {
        let mut counts = BTreeMap::new();
        for item in self.all() {
            *counts.entry(item.standing(now)).or_default() += 1;
        }
        counts
    }
}
