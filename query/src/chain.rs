//! The chain of an item: the items that it superseded and the items that superseded it, oldest first.

use acpdb_engine::View;
use acpdb_engine::fold::{EdgeView, Ix, RuleKind};
use acpdb_engine::ids::Seq;
use serde::Serialize;

use crate::items::{ItemRow, spell};
use crate::served::{ServedRow, served_rows};

/// An edge between two members of a chain.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChainEdge {
    /// The older item.
    pub old: String,
    /// The newer item; absent if an event without an item superseded the older one.
    pub new: Option<String>,
    /// The rule.
    pub rule: RuleKind,
    /// The key that both items share: a file, a search, an address.
    pub key: Option<String>,
    /// The event that made the edge.
    pub seq: Seq,
    /// The turn of that event.
    pub turn: u32,
    /// The older item was shown again on request: the edge hides nothing any more.
    pub released: bool,
    /// Tokens that the context is shorter by because of the edge.
    pub tokens_freed: u64,
}

impl From<&EdgeView> for ChainEdge {
    fn from(edge: &EdgeView) -> Self {
        Self {
            old: edge.old.to_string(),
            new: edge.new.map(|new| new.to_string()),
            rule: edge.rule,
            key: edge.key.as_ref().map(ToString::to_string),
            seq: edge.seq,
            turn: edge.turn.get(),
            released: edge.released,
            tokens_freed: edge.tokens_freed,
        }
    }
}

/// A chain, to show.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChainReport {
    /// The item that was asked for.
    pub item: String,
    /// The host's id of its session.
    pub session: String,
    /// Everything up to this seq is taken into account.
    pub at: Seq,
    /// Its members, oldest first, the item among them. As rows they are `items`, like those of any list.
    #[serde(rename = "items")]
    pub members: Vec<ItemRow>,
    /// The edges, in the order in which they came about.
    pub edges: Vec<ChainEdge>,
    /// Tokens freed, all edges together.
    pub tokens_freed: u64,
    /// There are more members than are gathered.
    pub is_cut: bool,
    /// How members were sent to the model, one row for each change. Absent if no context was recorded as sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub served: Vec<ServedRow>,
}

/// The chain of an item; `None` if it was not recorded at the view's seq. Cost: O(members and edges).
pub fn chain(view: &View, session: &str, ix: Ix) -> Option<ChainReport> {
    let at = view.at();
    let state = view.state();
    let chain = state.chain(ix, at)?;
    let members = chain.members.iter().filter_map(|member| state.item(member.ix, at));
    let mut report = ChainReport {
        item: chain.item.to_string(),
        session: session.to_owned(),
        at,
        members: members.map(|item| ItemRow::of(state, &item, session, at)).collect(),
        edges: chain.edges.iter().map(ChainEdge::from).collect(),
        tokens_freed: chain.edges.iter().map(|edge| edge.tokens_freed).sum(),
        is_cut: chain.is_cut,
        served: chain.members.iter().flat_map(|member| served_rows(state, member.ix, at)).collect(),
    };
    let words = spell(view, &mut report.members.iter_mut().collect::<Vec<_>>());
    report.edges.iter_mut().for_each(|edge| words.put_key(edge));
    Some(report)
}

/// The chain that shows most: long, with edges of different rules. `None` if nothing was superseded.
///
/// Chains of more than `member_count_max` members are only taken if there is no other. Cost: O(edges x chain).
pub fn showpiece(view: &View, session: &str, member_count_max: usize) -> Option<ChainReport> {
    let at = view.at();
    let found = {
        let state = view.state();
        let mut seen = std::collections::BTreeSet::new();
        let mut best = None;
        for edge in state.edges(at) {
            if !seen.insert(edge.old) {
                continue;
            }
            let Some(chain) = state.find(edge.old).and_then(|ix| state.chain(ix, at)) else { continue };
            seen.extend(chain.members.iter().map(|member| member.item));
            let rules: std::collections::BTreeSet<RuleKind> =
                chain.edges.iter().map(|edge| edge.rule).collect();
            let freed: u64 = chain.edges.iter().map(|edge| edge.tokens_freed).sum();
            let fits = chain.members.len() <= member_count_max;
            // A chain whose newest item the model sees now; a compaction may have taken whole chains out of the context.
            let is_live = chain.members.last().is_some_and(|member| {
                state.visible(member.ix, at).is_some_and(|visibility| visibility.visible)
            });
            let length = chain.members.len();
            let rank = (is_live, length >= 3, fits, rules.len(), length.min(5), freed);
            if best.as_ref().is_none_or(|(known, _)| rank > *known) {
                best = state.find(chain.item).map(|ix| (rank, ix));
            }
        }
        best
    };
    chain(view, session, found?.1)
}
