//! Which item took which item's place: nodes, edges, and the search that keeps them free of circles.
//!
//! ```text
//! old --edge--> new      many to many; either end may be a name that no item has (yet): dangling
//! ```
//!
//! Lists only grow. An edge has the seq at which it came about and, at most once, the seq at which a restore released
//! it; a node has the number of edges that hide it, stamped at each change. So any earlier seq reads alike.
//! `core` decides which edges there should be.

use std::collections::{BTreeMap, BTreeSet};

use super::op::Moment;
use crate::fold::number::{Name, pushed};
use crate::fold::stamped::last_until;
use crate::ids::{BodyId, Micros, Seq};

/// Number of a node.
pub(super) type Nx = u32;
/// Number of an edge.
pub(super) type Ex = u32;
/// Number of an item, in the order of recording.
pub(super) type Ix = u32;

/// Why one item took another's place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum MemoryRule {
    /// A newer preference of the same category and key.
    Key,
    /// Stated: by the newer item, by the older, or by an event of its own.
    Link,
    /// The same id was recorded again.
    Revised,
}

impl MemoryRule {
    /// Its name, as in JSON.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Link => "link",
            Self::Revised => "revised",
        }
    }
}

/// An edge as stored.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct StoredEdge {
    pub(super) seq: Seq,
    /// When the edge was said.
    pub(super) said: Micros,
    pub(super) old: Nx,
    pub(super) new: Nx,
    pub(super) rule: MemoryRule,
    pub(super) reason: Option<BodyId>,
    pub(super) closes_cycle: bool,
    pub(super) released: Option<Seq>,
}

/// A reinforcement: the sum of all reinforcements up to and including it.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct Reinforced {
    pub(super) seq: Seq,
    /// The latest time of all so far.
    pub(super) at: Micros,
    /// Hundredths gained by all so far.
    pub(super) gained: u32,
    /// A person was among those who said it again.
    pub(super) by_person: bool,
}

/// A name, and the item that has it once it is recorded.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct NameNode {
    pub(super) id: Name,
    /// The node before it with the same id.
    pub(super) previous: Option<Nx>,
    pub(super) item: Option<Ix>,
    pub(super) out: Vec<Ex>,
    pub(super) into: Vec<Ex>,
    /// How many edges hide it, from each seq on.
    pub(super) hidden_by: Vec<(Seq, u32)>,
    pub(super) retracted: Vec<(Seq, bool)>,
    /// When the newest word on its retraction was said.
    pub(super) retraction_said: Micros,
    /// When it was restored last.
    pub(super) restored: Option<Micros>,
    pub(super) reinforced: Vec<Reinforced>,
}

impl NameNode {
    /// How many edges hide it at `at`.
    pub(super) fn hidden_by_at(&self, at: Seq) -> u32 {
        last_at(&self.hidden_by, at).unwrap_or(0)
    }

    /// Whether it is retracted at `at`.
    pub(super) fn retracted_at(&self, at: Seq) -> bool {
        last_at(&self.retracted, at).unwrap_or(false)
    }

    /// The reinforcements up to `at`, together.
    pub(super) fn reinforced_at(&self, at: Seq) -> Option<Reinforced> {
        last_until(&self.reinforced, at, |entry| entry.seq).copied()
    }
}

/// The value of the last entry stamped at most `at`. The list rises by seq.
pub(super) fn last_at<T: Copy>(list: &[(Seq, T)], at: Seq) -> Option<T> {
    last_until(list, at, |(seq, _)| *seq).map(|(_, value)| *value)
}

/// Appends a stamped value; a second one of the same seq replaces the first.
pub(super) fn push_at<T>(list: &mut Vec<(Seq, T)>, seq: Seq, value: T) {
    match list.last_mut() {
        Some((newest, old)) if *newest == seq => *old = value,
        _ => list.push((seq, value)),
    }
}

/// All nodes and edges of one stream.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct Graph {
    nodes: Vec<NameNode>,
    edges: Vec<StoredEdge>,
    /// Newest edge between two nodes.
    #[rkyv(with = rkyv::with::AsVec)]
    between: BTreeMap<(Nx, Nx), Ex>,
}

impl Graph {
    pub(super) fn node(&self, nx: Nx) -> Option<&NameNode> {
        self.nodes.get(nx as usize)
    }

    pub(super) fn node_mut(&mut self, nx: Nx) -> Option<&mut NameNode> {
        self.nodes.get_mut(nx as usize)
    }

    pub(super) fn edge(&self, ex: Ex) -> Option<&StoredEdge> {
        self.edges.get(ex as usize)
    }

    pub(super) fn edges(&self) -> &[StoredEdge] {
        &self.edges
    }

    pub(super) fn add_node(&mut self, id: Name, previous: Option<Nx>) -> Nx {
        pushed(&mut self.nodes, NameNode { id, previous, ..NameNode::default() })
    }

    /// Adds `edge` unless it is there and unreleased. True if it hides its old end from now on.
    ///
    /// An edge that would close a circle is marked, whatever the caller said, and hides nothing. An edge that is dated before the old
    /// end's last restore is released at once.
    pub(super) fn add_edge(&mut self, mut edge: StoredEdge, is_dated: bool) -> bool {
        let known = self.between.get(&(edge.old, edge.new)).and_then(|ex| self.edge(*ex));
        // An edge that closed a circle hides nothing; said again once the circle is gone, it holds.
        let holds = |known: &StoredEdge| {
            known.released.is_none() && (!known.closes_cycle || self.leads_to(edge.new, edge.old))
        };
        if known.is_some_and(holds) {
            return false;
        }
        edge.closes_cycle = self.leads_to(edge.new, edge.old);
        let restored = self.node(edge.old).and_then(|node| node.restored);
        if is_dated && restored.is_some_and(|restored| edge.said < restored) {
            edge.released = Some(edge.seq);
        }
        let (seq, old, new, hides) =
            (edge.seq, edge.old, edge.new, !edge.closes_cycle && edge.released.is_none());
        let ex = pushed(&mut self.edges, edge);
        self.between.insert((old, new), ex);
        if let Some(node) = self.node_mut(new) {
            node.into.push(ex);
        }
        if let Some(node) = self.node_mut(old) {
            node.out.push(ex);
            if hides {
                let count = node.hidden_by_at(Seq::MAX).saturating_add(1);
                push_at(&mut node.hidden_by, seq, count);
            }
        }
        hides
    }

    /// Releases the edges that leave `nx`: they hide nothing from `seq` on. A dated restore leaves edges alone that were said after it.
    pub(super) fn release(&mut self, seq: Seq, moment: Moment, nx: Nx) {
        let Some(node) = self.nodes.get_mut(nx as usize) else { return };
        let mut hidden_by: u32 = 0;
        for ex in &node.out {
            let Some(edge) = self.edges.get_mut(*ex as usize).filter(|edge| edge.released.is_none()) else {
                continue;
            };
            if moment.is_dated && moment.at < edge.said {
                hidden_by = hidden_by.saturating_add(u32::from(!edge.closes_cycle));
            } else {
                edge.released = Some(seq);
            }
        }
        node.restored = node.restored.max(Some(moment.at));
        if node.hidden_by_at(Seq::MAX) != hidden_by {
            push_at(&mut node.hidden_by, seq, hidden_by);
        }
    }

    /// Whether the edges in force lead from `from` to `to` (a node leads to itself).
    ///
    /// Searched from both ends by turns, one edge at a time: cost is that of the side that is exhausted first, so a
    /// fresh item costs nothing however long the chain is that it joins.
    pub(super) fn leads_to(&self, from: Nx, to: Nx) -> bool {
        if from == to {
            return true;
        }
        let edges = |nx: Nx, ahead: bool| {
            self.node(nx).map_or(&[][..], |node| if ahead { &node.out } else { &node.into }).iter()
        };
        let mut sides = [(true, from), (false, to)]
            .map(|(ahead, nx)| (ahead, vec![edges(nx, ahead)], BTreeSet::from([nx])));
        loop {
            let [(ahead, open, seen), (_, _, met)] = &mut sides;
            let Some(rest) = open.last_mut() else { return false };
            let Some(ex) = rest.next() else {
                open.pop();
                sides.reverse();
                continue;
            };
            let edge = self.edge(*ex).filter(|edge| edge.released.is_none() && !edge.closes_cycle);
            if let Some(next) = edge.map(|edge| if *ahead { edge.new } else { edge.old }) {
                if met.contains(&next) {
                    return true;
                }
                if seen.insert(next) {
                    open.push(edges(next, *ahead));
                }
            }
            sides.reverse();
        }
    }
}
