//! A session at half time compared with now: the same question at two seqs of one fold.

use acpdb_engine::View;
use acpdb_engine::fold::TurnTokens;
use serde::Serialize;

/// The context of a session over its turns.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HalfTime {
    /// At the end of the middle turn.
    pub half: TurnTokens,
    /// At the view's seq.
    pub now: TurnTokens,
    /// At the end of each turn, in order.
    pub turns: Vec<TurnTokens>,
}

/// Tokens of the context at half time, now, and at each turn. Cost: O(turns x log events).
pub fn half_time(view: &View) -> HalfTime {
    let at = view.at();
    let state = view.state();
    let turns = state.tokens_by_turn(at);
    let now = state.tokens(at);
    let middle = turns.get(turns.len().saturating_sub(1) / 2).copied();
    // A session without turns is halved by its seqs.
    let half = middle.unwrap_or_else(|| {
        let (first, head) = (state.first().get(), state.head().min(at).get());
        state.tokens(acpdb_engine::ids::Seq(first.midpoint(head.max(first))))
    });
    HalfTime { half, now, turns }
}
