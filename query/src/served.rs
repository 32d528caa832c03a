//! What the model was sent of an item: since when it no longer sees it.

use acpdb_engine::fold::{FaceState, Ix, State};
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

/// The newest change in words; `None` if it was never sent.
pub fn served_sentence(rows: &[ServedRow]) -> Option<String> {
    let (last, first) = (rows.last()?, rows.first()?);
    let (turn, seq) = (last.turn, last.seq);
    Some(match last.state {
        FaceState::Whole if rows.len() == 1 => {
            format!("The model sees it since turn {} (context {}).", first.turn, first.seq)
        }
        FaceState::Whole => format!("The model sees it again since turn {turn} (context {seq})."),
        FaceState::Shortened | FaceState::Summary => {
            format!("The model sees less of it since turn {turn} (context {seq}).")
        }
        FaceState::Tombstone | FaceState::Gone => {
            format!("The model no longer sees it since turn {turn} (context {seq}).")
        }
        FaceState::Absent => format!("The model sees it without a result since turn {turn} (context {seq})."),
    })
}
