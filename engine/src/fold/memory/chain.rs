//! Chains: an item, all items that it superseded, and all items that superseded it.

use std::collections::{BTreeMap, BTreeSet};

use super::core::MemoryCore;
use super::graph::{Ex, MemoryRule, Nx, StoredEdge};
use super::read::{MemoryAt, MemoryItem};
use crate::ids::{BodyId, ItemId, Micros, Seq};

/// One item took another's place, as of a seq.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct MemoryEdge {
    /// The seq at which it came about.
    pub seq: Seq,
    /// When it was said.
    #[serde(skip)]
    pub said: Micros,
    /// Id of the older item.
    pub old: String,
    /// The older item; absent while nothing of that id is recorded.
    pub old_item: Option<ItemId>,
    /// Id of the newer item.
    pub new: String,
    /// The newer item; absent while nothing of that id is recorded.
    pub new_item: Option<ItemId>,
    /// The rule that made it.
    pub rule: MemoryRule,
    /// The reason given, if one was.
    #[serde(skip)]
    pub reason: Option<BodyId>,
    /// It would close a circle: kept, but it hides nothing.
    pub closes_cycle: bool,
    /// When a restore released it, if one did: it hides nothing since.
    pub released: Option<Seq>,
}

impl MemoryEdge {
    /// Whether it hides its older end.
    pub const fn hides(&self) -> bool {
        !self.closes_cycle && self.released.is_none()
    }

    /// Whether one of its ends is not recorded.
    #[cfg(any(test, feature = "testing"))]
    pub const fn is_dangling(&self) -> bool {
        self.old_item.is_none() || self.new_item.is_none()
    }
}

/// A member of a chain.
#[derive(Clone, Debug)]
pub struct MemoryMember<'a> {
    /// Its id.
    pub id: String,
    /// The item; absent if it is only named by an edge.
    pub item: Option<MemoryItem<'a>>,
}

/// An item and the items that are linked with it, oldest first.
#[derive(Clone, Debug, Default)]
pub struct MemoryChain<'a> {
    /// Each older member stands before those that took its place.
    pub members: Vec<MemoryMember<'a>>,
    /// The edges between them, in the order in which they came about.
    pub edges: Vec<MemoryEdge>,
}

impl<'a> MemoryAt<'a> {
    /// The chain through an item: all items that it superseded, itself, all items that superseded it. Released edges included.
    ///
    /// Cost: O(members + edges), times a logarithm.
    pub fn chain(&self, item: &MemoryItem<'a>) -> MemoryChain<'a> {
        let core = item.core;
        let mut nodes = BTreeSet::from([item.nx()]);
        let mut edges = BTreeSet::new();
        for ahead in [true, false] {
            let mut stack = vec![item.nx()];
            let mut seen = BTreeSet::new();
            while let Some(nx) = stack.pop() {
                if !seen.insert(nx) {
                    continue;
                }
                nodes.insert(nx);
                for (ex, edge) in self.edges_of(core, nx, ahead) {
                    edges.insert(ex);
                    stack.push(if ahead { edge.new } else { edge.old });
                }
            }
        }
        let rows: Vec<&StoredEdge> = edges.iter().filter_map(|ex| core.graph.edge(*ex)).collect();
        let members = self.oldest_first(core, &nodes, &rows);
        MemoryChain {
            members: members.into_iter().map(|nx| self.member(core, nx)).collect(),
            edges: rows.into_iter().map(|edge| self.edge(core, edge)).collect(),
        }
    }

    /// Edges that leave an item (to the items that superseded it), in the order in which they came about.
    pub fn superseded_by(&self, item: &MemoryItem<'a>) -> Vec<MemoryEdge> {
        self.edges_of(item.core, item.nx(), true).map(|(_, edge)| self.edge(item.core, edge)).collect()
    }

    /// Edges that lead to an item (from the items that it superseded), in the order in which they came about.
    pub fn supersedes(&self, item: &MemoryItem<'a>) -> Vec<MemoryEdge> {
        self.edges_of(item.core, item.nx(), false).map(|(_, edge)| self.edge(item.core, edge)).collect()
    }

    /// All edges, in the order in which they came about.
    pub fn edges(&self) -> Vec<MemoryEdge> {
        let rows = self.core.graph.edges().iter().take_while(|edge| edge.seq <= self.seq());
        rows.map(|edge| self.edge(self.core, edge)).collect()
    }

    /// Edges with an end that is not recorded by then.
    #[cfg(any(test, feature = "testing"))]
    pub fn dangling(&self) -> Vec<MemoryEdge> {
        self.edges().into_iter().filter(MemoryEdge::is_dangling).collect()
    }

    /// Whether edges in force lead from one id to another, at the head: superseding the other way would close a circle.
    pub fn leads_to(&self, from: &MemoryItem<'a>, to: &MemoryItem<'a>) -> bool {
        self.core.graph.leads_to(from.nx(), to.nx())
    }

    fn edges_of<'c>(
        &self,
        core: &'c MemoryCore,
        nx: Nx,
        ahead: bool,
    ) -> impl Iterator<Item = (Ex, &'c StoredEdge)> {
        let node = core.graph.node(nx);
        let list = node.map_or(&[][..], |node| if ahead { &node.out } else { &node.into });
        let at = self.seq();
        list.iter()
            .filter_map(move |ex| core.graph.edge(*ex).map(|edge| (*ex, edge)))
            .take_while(move |(_, edge)| edge.seq <= at)
    }

    fn member(&self, core: &'a MemoryCore, nx: Nx) -> MemoryMember<'a> {
        let node = core.graph.node(nx);
        MemoryMember {
            id: node.map(|node| core.ids.text(node.id).to_owned()).unwrap_or_default(),
            item: node.and_then(|node| {
                MemoryItem::of(core, node.item?, self.seq(), !std::ptr::eq(core, self.core))
            }),
        }
    }

    fn edge(&self, core: &'a MemoryCore, edge: &StoredEdge) -> MemoryEdge {
        let end = |nx| {
            let member = self.member(core, nx);
            let item = member.item.map(|item| item.item());
            (member.id, item)
        };
        let ((old, old_item), (new, new_item)) = (end(edge.old), end(edge.new));
        MemoryEdge {
            seq: edge.seq,
            said: edge.said,
            old,
            old_item,
            new,
            new_item,
            rule: edge.rule,
            reason: edge.reason,
            closes_cycle: edge.closes_cycle,
            released: edge.released.filter(|released| *released <= self.seq()),
        }
    }

    /// Sorts nodes so that older ends of edges come first; among equals, by time, then by number.
    ///
    /// Edges that close circles or were released do not count, so there is always a next one.
    fn oldest_first(&self, core: &'a MemoryCore, nodes: &BTreeSet<Nx>, edges: &[&StoredEdge]) -> Vec<Nx> {
        let at = self.seq();
        let mut waiting: BTreeMap<Nx, usize> = nodes.iter().map(|nx| (*nx, 0)).collect();
        let mut after: BTreeMap<Nx, Vec<Nx>> = BTreeMap::new();
        for edge in edges.iter().filter(|edge| !edge.closes_cycle && edge.released.is_none_or(|seq| seq > at))
        {
            *waiting.entry(edge.new).or_default() += 1;
            after.entry(edge.old).or_default().push(edge.new);
        }
        let age = |nx: Nx| {
            let row =
                core.graph.node(nx).and_then(|node| core.row(node.item?)).filter(|row| row.facts.seq <= at);
            (row.map(|row| (row.facts.created, row.facts.seq)), nx)
        };
        let mut ready: BTreeSet<_> =
            waiting.iter().filter(|(_, count)| **count == 0).map(|(nx, _)| age(*nx)).collect();
        let mut sorted = Vec::with_capacity(nodes.len());
        while let Some((_, nx)) = ready.pop_first() {
            sorted.push(nx);
            for next in after.get(&nx).into_iter().flatten() {
                if let Some(count) = waiting.get_mut(next) {
                    *count -= 1;
                    if *count == 0 {
                        ready.insert(age(*next));
                    }
                }
            }
        }
        sorted
    }
}
