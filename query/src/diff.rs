//! The changes of a context between two points: items that came, went, were superseded, hidden, restored.
//!
//! Both points are reads of one fold at two watermarks; nothing is replayed. The first point may be the later one: then
//! the answer reads backwards.

use acpdb_engine::View;
use acpdb_engine::event::Face;
use acpdb_engine::fold::{CauseView, FaceState, Ix, State};
use acpdb_engine::ids::Seq;
use serde::Serialize;

use crate::items::{ItemRow, spell};

/// The change of an item between two points.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemChange {
    /// It is new, and shown.
    Came,
    /// It is new, and hidden already.
    Passed,
    /// A newer item made it stale.
    Superseded,
    /// It was hidden or shortened for another reason.
    Hidden,
    /// It was hidden, and is shown again.
    Restored,
    /// It left the context.
    Went,
    /// It is shown with more or less text: a call has finished, a part was revised.
    Revised,
}

impl ItemChange {
    /// All changes, in the order in which answers list them.
    pub const ALL: [Self; 7] =
        [Self::Came, Self::Passed, Self::Superseded, Self::Hidden, Self::Restored, Self::Went, Self::Revised];

    /// The name in JSON.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Came => "came",
            Self::Passed => "passed",
            Self::Superseded => "superseded",
            Self::Hidden => "hidden",
            Self::Restored => "restored",
            Self::Went => "went",
            Self::Revised => "revised",
        }
    }
}

/// An item that stands otherwise at the second point than at the first.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DiffRow {
    /// Its change.
    pub change: ItemChange,
    /// Tokens shown at the first point.
    pub tokens_before: u64,
    /// Tokens shown at the second.
    pub tokens_after: u64,
    /// The item at the second point; at the first, if it is not there at the second.
    #[serde(flatten)]
    pub row: ItemRow,
}

/// The sum of one kind of change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DiffSum {
    /// The kind of change.
    pub change: ItemChange,
    /// The number of items.
    pub count: u64,
    /// Tokens that the context grew by because of these changes; negative: shrank.
    pub tokens: i64,
}

/// The changes of a context between two points.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DiffReport {
    /// The host's id of the session.
    pub session: String,
    /// The first point.
    pub from: Seq,
    /// Its turn.
    pub from_turn: u32,
    /// The second point.
    pub to: Seq,
    /// Its turn.
    pub to_turn: u32,
    /// Tokens of the context as shown at the first point.
    pub tokens_before: u64,
    /// Tokens of the context as shown at the second.
    pub tokens_after: u64,
    /// The sums by change; a change without items has none.
    pub sums: Vec<DiffSum>,
    /// The items, in the order of recording.
    pub items: Vec<DiffRow>,
}

/// How an item stands at a point.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Clone, Copy, PartialEq, Eq)]
struct ItemStatus {
    recorded: bool,
    in_context: bool,
    shown: bool,
    is_superseded: bool,
    tokens: u64,
}

fn standing(state: &State, ix: Ix, at: Seq) -> ItemStatus {
    let recorded = state.item_id(ix).is_some_and(|item| item.seq <= at);
    if !recorded {
        return ItemStatus { recorded, in_context: false, shown: false, is_superseded: false, tokens: 0 };
    }
    let (input, output) = (state.face(ix, Face::Input, at), state.face(ix, Face::Output, at));
    let in_context = state.is_in_context(ix, at);
    let whole = |face: FaceState| matches!(face, FaceState::Whole | FaceState::Absent);
    let tokens = if in_context { input.tokens_shown.saturating_add(output.tokens_shown) } else { 0 };
    let is_superseded = matches!(output.cause, Some(CauseView::Superseded { .. }));
    let shown = in_context && whole(input.state) && whole(output.state);
    ItemStatus { recorded, in_context, shown, is_superseded, tokens }
}

fn change(before: ItemStatus, after: ItemStatus) -> Option<ItemChange> {
    let new = !before.recorded || !before.in_context;
    match (new, after.in_context) {
        (true, true) if before.recorded => Some(ItemChange::Restored),
        (true, true) if after.shown => Some(ItemChange::Came),
        (true, true) => Some(ItemChange::Passed),
        // Recorded between the points and gone again: the item is part of history, but of neither context.
        (true, false) => (!before.recorded && after.recorded).then_some(ItemChange::Passed),
        (false, false) => Some(ItemChange::Went),
        (false, true) => match (before.shown, after.shown) {
            (true, false) if after.is_superseded => Some(ItemChange::Superseded),
            (true, false) => Some(ItemChange::Hidden),
            (false, true) => Some(ItemChange::Restored),
            (false, false) if after.is_superseded && !before.is_superseded => Some(ItemChange::Superseded),
            _ => (before.tokens != after.tokens).then_some(ItemChange::Revised),
        },
    }
}

/// The changes between two views of one session. Cost: two lookups for each item recorded up to the later point.
pub fn diff(from: &View, to: &View, session: &str) -> DiffReport {
    let (first, second) = (from.at(), to.at());
    let state = to.state();
    let mut items = Vec::new();
    for ix in state.items(first.max(second)) {
        let (before, after) = (standing(state, ix, first), standing(state, ix, second));
        if before == after {
            continue;
        }
        let Some(change) = change(before, after) else { continue };
        let at = if after.recorded { second } else { first };
        let Some(item) = state.item(ix, at) else { continue };
        let row = ItemRow::of(state, &item, session, at);
        items.push(DiffRow { change, tokens_before: before.tokens, tokens_after: after.tokens, row });
    }
    let grew = |row: &DiffRow| {
        let count = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        count(row.tokens_after) - count(row.tokens_before)
    };
    let sums = ItemChange::ALL.into_iter().filter_map(|change| {
        let of = items.iter().filter(|row| row.change == change);
        let count = of.clone().count() as u64;
        (count > 0).then(|| DiffSum { change, count, tokens: of.map(grew).sum() })
    });
    let mut report = DiffReport {
        session: session.to_owned(),
        from: first,
        from_turn: state.turn(first).get(),
        to: second,
        to_turn: state.turn(second).get(),
        tokens_before: state.tokens(first).shown,
        tokens_after: state.tokens(second).shown,
        sums: sums.collect(),
        items,
    };
    // Backwards in time the earlier of the two does not know the later calls.
    for view in [from, to] {
        // The rows are spelled in place; only sentences and edges need the returned words.
        let _ = spell(view, &mut report.items.iter_mut().map(|item| &mut item.row).collect::<Vec<_>>());
    }
    report
}
