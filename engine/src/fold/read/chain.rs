//! Chains of items that superseded each other, and the edges between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{FaceState, HashForm};
use crate::event::Face;
use crate::fold::history::{Cause, EdgeRow, RuleKind, is_before};
use crate::fold::number::{Ix, NONE};
use crate::fold::state::State;
use crate::ids::{ItemId, Seq, Turn};

/// Most members of a chain that are gathered.
pub const CHAIN_MEMBER_COUNT_MAX: usize = 10_000;

/// An edge at a watermark.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct EdgeView {
    /// The older item.
    pub old: ItemId,
    /// The newer one; absent where an event without an item superseded.
    pub new: Option<ItemId>,
    /// The rule.
    pub rule: RuleKind,
    /// The key by which they met, as the newer one gave it.
    pub key: Option<Arc<str>>,
    /// The event with which the edge came about.
    pub seq: Seq,
    /// The turn in which it came about.
    pub turn: Turn,
    /// Shown again on request: the edge hides nothing any more.
    pub released: bool,
    /// Tokens by which it makes the context shorter, at the watermark.
    pub tokens_freed: u64,
}

/// An item in a chain.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ChainMember {
    /// The item.
    pub item: ItemId,
    /// Its place in the order of recording.
    #[serde(skip)]
    pub ix: Ix,
    /// Its turn.
    pub turn: Turn,
    /// Name of the tool.
    pub tool: Option<Arc<str>>,
    /// The host's id of the call.
    pub call: Option<Arc<str>>,
    /// Its hash.
    pub hash: Option<String>,
    /// How its content is shown.
    pub state: FaceState,
}

/// Everything that is connected with an item by supersession.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// let chain = session.view()?.chain(item).ok_or("it is there")?;
/// assert_eq!(chain.members.len(), 1); // nothing superseded it yet
/// assert!(chain.edges.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Chain {
    /// The item that was asked for.
    pub item: ItemId,
    /// Its members, oldest first, the item among them.
    pub members: Vec<ChainMember>,
    /// The edges between them, in the order in which they came about.
    pub edges: Vec<EdgeView>,
    /// There are more members than 10,000; the rest is left out.
    pub is_cut: bool,
}

/// Items that are connected, oldest first, and the numbers of the edges between them.
struct Linked {
    items: BTreeSet<Ix>,
    edges: BTreeSet<u32>,
    is_cut: bool,
}

impl State {
    /// The chain of an item at `at`: the items that it superseded, directly or through others, and those that superseded it.
    ///
    /// Cost: O(members and edges).
    pub fn chain(&self, ix: Ix, at: Seq) -> Option<Chain> {
        let item = self.facts.item(ix).filter(|item| item.id.seq <= at)?.id;
        let Linked { items, edges, is_cut } = self.linked(ix, at);
        let members = items.into_iter().filter_map(|ix| self.member(ix, at)).collect();
        let edges = self.in_order(edges.into_iter().filter_map(|number| self.history.edge(number)), at);
        Some(Chain { item, members, edges, is_cut })
    }

    /// The items of the chain of an item at `at`, oldest first: as [`State::chain`], without their details. Empty if the item
    /// is not there yet.
    pub fn chain_items(&self, ix: Ix, at: Seq) -> Vec<Ix> {
        let is_there = self.facts.item(ix).is_some_and(|item| item.id.seq <= at);
        let found = is_there.then(|| self.linked(ix, at));
        found.into_iter().flat_map(|found| found.items).collect()
    }

    /// The items and edges that are connected with an item at `at`.
    fn linked(&self, ix: Ix, at: Seq) -> Linked {
        let mut found = BTreeSet::from([ix]);
        let mut numbers = BTreeSet::new();
        let mut is_cut = false;
        for back in [true, false] {
            let mut open = vec![ix];
            while let Some(member) = open.pop() {
                let edges: Vec<&EdgeRow> = if back {
                    self.history.edges_of_new(member).collect()
                } else {
                    self.history.edges_of_old(member).collect()
                };
                for edge in edges.into_iter().filter(|edge| edge.exists(at)) {
                    let next = if back { edge.old.0 } else { edge.new };
                    if next != NONE && found.len() >= CHAIN_MEMBER_COUNT_MAX && !found.contains(&Ix(next)) {
                        is_cut = true;
                        continue;
                    }
                    numbers.insert(edge.number);
                    if next != NONE && found.insert(Ix(next)) {
                        open.push(Ix(next));
                    }
                }
            }
        }
        Linked { items: found, edges: numbers, is_cut }
    }

    fn member(&self, ix: Ix, at: Seq) -> Option<ChainMember> {
        let item = self.facts.item(ix)?;
        let call = self.facts.call(ix);
        Some(ChainMember {
            item: item.id,
            ix,
            turn: item.turn,
            tool: call.map(|call| self.facts.names.shared(call.tool)),
            call: call.map(|call| self.facts.names.shared(call.host_id)),
            hash: self.hash(ix, at, HashForm::Shown),
            state: self.face(ix, Face::Output, at).state,
        })
    }

    pub(crate) fn edge_view(&self, edge: &EdgeRow, at: Seq) -> EdgeView {
        let id = |ix: Ix| self.facts.item(ix).map(|item| item.id);
        let key = self.facts.keys.get(edge.key as usize).map(|key| self.facts.names.shared(key.given));
        EdgeView {
            old: id(edge.old).unwrap_or(ItemId::first(edge.seq)),
            new: id(Ix(edge.new)),
            rule: edge.kind,
            key,
            seq: edge.seq,
            turn: edge.turn,
            released: !is_before(at, edge.released),
            tokens_freed: self.freed_by(edge, at),
        }
    }

    /// Tokens that an edge frees: over the faces whose shown cause it is.
    fn freed_by(&self, edge: &EdgeRow, at: Seq) -> u64 {
        if !is_before(at, edge.released) {
            return 0;
        }
        let mut freed = 0_u64;
        for face in [Face::Input, Face::Output] {
            let cause = self.history.cause(edge.old, face, at).map(|row| row.cause);
            if cause == Some(Cause::Superseded { edge: edge.number }) {
                let tokens = self.face_tokens(edge.old, face, at);
                // A placeholder that is longer than the text freed nothing.
                freed = freed.saturating_add(tokens.whole.saturating_sub(tokens.shown));
            }
        }
        freed
    }

    /// Edges between items that exist at `at`, released or not, in the order in which they came about.
    ///
    /// Reminders and reflections that a newer one replaced are not among them.
    pub(crate) fn edge_rows(&self, at: Seq) -> Vec<&EdgeRow> {
        sorted(self.history.edges.iter().filter(|edge| edge.kind != RuleKind::INJECTED), at)
    }

    /// All edges that exist at `at`, released or not, in the order in which they came about.
    pub fn edges(&self, at: Seq) -> Vec<EdgeView> {
        self.edge_rows(at).into_iter().map(|edge| self.edge_view(edge, at)).collect()
    }

    /// Edges in which an item is the older one, in the order in which they came about.
    pub fn superseded_by(&self, ix: Ix, at: Seq) -> Vec<EdgeView> {
        self.in_order(self.history.edges_of_old(ix), at)
    }

    /// Edges in which an item is the newer one, in the order in which they came about.
    pub fn supersedes(&self, ix: Ix, at: Seq) -> Vec<EdgeView> {
        self.in_order(self.history.edges_of_new(ix), at)
    }

    fn in_order<'s>(&'s self, edges: impl Iterator<Item = &'s EdgeRow>, at: Seq) -> Vec<EdgeView> {
        sorted(edges, at).into_iter().map(|edge| self.edge_view(edge, at)).collect()
    }
}

/// Those of the edges that exist at `at`, in the order in which they came about.
fn sorted<'s>(edges: impl Iterator<Item = &'s EdgeRow>, at: Seq) -> Vec<&'s EdgeRow> {
    let mut rows: Vec<&EdgeRow> = edges.filter(|edge| edge.exists(at)).collect();
    rows.sort_by_key(|edge| edge.rank);
    rows
}
