//! How an item was served: how it was sent through acpdb, and since when; else, how long its host sent it.

use acpdb_engine::fold::{CauseView, Explanation, FaceState, Ix, State};
use acpdb_engine::ids::Seq;
use serde::Serialize;

/// A change of how an item's content was sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ServedRow {
    /// The item.
    pub item: String,
    /// The event that records the first context that showed it so.
    pub seq: Seq,
    /// Its turn.
    pub turn: u32,
    /// How its content was sent from then on.
    pub state: FaceState,
}

/// How an item was sent up to `at`, one row for each change; empty if no context with it was recorded.
pub fn served_rows(state: &State, ix: Ix, at: Seq) -> Vec<ServedRow> {
    let Some(item) = state.item_id(ix) else { return Vec::new() };
    let rows = state.served_changes(ix, at).into_iter().map(|change| ServedRow {
        item: item.to_string(),
        seq: change.seq,
        turn: change.turn.get(),
        state: change.state,
    });
    rows.collect()
}

/// The newest change in words; `None` if the item was never sent.
pub fn served_sentence(rows: &[ServedRow]) -> Option<String> {
    let (last, first) = (rows.last()?, rows.first()?);
    let (turn, seq) = (last.turn, last.seq);
    Some(match last.state {
        FaceState::Whole if rows.len() == 1 => {
            format!("It is served whole since turn {} (context {}).", first.turn, first.seq)
        }
        FaceState::Whole => format!("It is served whole again since turn {turn} (context {seq})."),
        FaceState::Shortened | FaceState::Summary => {
            format!("Less of it is served since turn {turn} (context {seq}).")
        }
        FaceState::Tombstone | FaceState::Gone => {
            format!("It is no longer served since turn {turn} (context {seq}).")
        }
        FaceState::Absent => format!("It is served without a result since turn {turn} (context {seq})."),
    })
}

/// How long the host sent an item whole, in a session of which no context was recorded as sent by acpdb; `None` if it still does, or if
/// that is not known.
///
/// Changes that a host makes to its context are recorded, and nothing else takes an item from the model: rules and requests say what acpdb would send.
pub fn host_sentence(state: &State, why: &Explanation, at: Seq) -> Option<String> {
    let until = match why.output.cause.as_ref()? {
        CauseView::Superseded { .. }
        | CauseView::Shortened { .. }
        | CauseView::Discarded { .. }
        | CauseView::Distilled { .. }
        | CauseView::Evicted { .. }
            if why.in_context =>
        {
            at
        }
        CauseView::Left { seq }
        | CauseView::Abandoned { seq }
        | CauseView::ClearedByHost { seq, .. }
        | CauseView::OffBranch { seq } => *seq,
        _ => return None,
    };
    let turn = state.turn(until).get();
    let end = if until == at { ", the newest" } else { "" };
    Some(format!(
        "The model saw it whole until turn {turn}{end}: its host sent the contexts of this session, not acpdb."
    ))
}
