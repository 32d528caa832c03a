//! Outputs of tools that a budget may hide, the oldest first, and the items that stand in the way.
//!
//! ```text
//! too many tokens -> whatever is pending -> outputs that nothing protects, views of files last -> obstacles, if it is still too much
//! ```
//!
//! Messages of the user and the model, the newest steps and items that steer the work stay.

use acpdb_engine::Error;
use acpdb_engine::command::draft::{Bodies, EventDraft};
use acpdb_engine::event::{Discarded, Face, Hidden, Role, ToolClass};
use acpdb_engine::fold::{FaceState, ItemKind, ServedPlace, State};
use acpdb_engine::ids::{ItemId, Seq};

use crate::served::Served;
use acpdb_engine::Session;
use acpdb_engine::View;

/// Items that are named as standing in the way of a budget.
const OBSTACLE_COUNT_MAX: usize = 16;

/// An item that stands in the way of a budget.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Obstacle {
    /// The item.
    pub item: ItemId,
    /// Its tokens as served.
    pub tokens: u64,
    /// Why it cannot be shortened.
    pub why: &'static str,
}

/// A budget that could not be kept.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct OverBudget {
    /// Tokens of the context.
    pub tokens: u64,
    /// The limit.
    pub tokens_max: u64,
    /// The largest items that cannot be shortened, largest first; at most 16.
    pub obstacles: Vec<Obstacle>,
}

/// Tokens of a session's context if everything pending were applied and each output that a budget may hide were hidden. Records
/// nothing. Cost: O(items).
///
/// # Errors
/// [`Error::NotFound`] if nothing was recorded yet.
pub fn tokens_least(session: &Session) -> Result<u64, Error> {
    let view = session.view()?;
    let whole = Served::eager(&view).tokens();
    let (state, at) = (view.state(), view.at());
    let places = state.served_places(at);
    let hidden = places.iter().filter(|place| obstacle(state, place, at).is_none());
    let freed: u64 =
        hidden.map(|place| freed_by_hiding(state.face(place.ix, Face::Output, at).tokens_shown)).sum();
    // The tokens freed may be all of them.
    Ok(whole.saturating_sub(freed))
}

/// Whether a budget may hide an output, or why not.
fn obstacle(state: &State, place: &ServedPlace, at: Seq) -> Option<&'static str> {
    let Some(item) = state.item(place.ix, at) else { return Some("not readable") };
    if item.kind != ItemKind::Call {
        return Some("it is no tool output");
    }
    if item.turn >= state.turn(at) || item.turn.get().saturating_add(1) == state.turn(at).get() {
        return Some("it is of the newest steps");
    }
    if item.finished.is_none() {
        return Some("the call is unfinished");
    }
    if let Some(protection) = state.protection(place.ix, at) {
        return Some(match protection {
            acpdb_engine::fold::Protection::Pinned => "it is pinned",
            acpdb_engine::fold::Protection::File => "its file is protected",
            acpdb_engine::fold::Protection::Tool => "its tool is protected",
            acpdb_engine::fold::Protection::Turn => "its turn is protected",
        });
    }
    let policy = state.policy(at);
    if item.tool.as_deref().is_some_and(|tool| policy.shelf.except.is_match_tool(tool)) {
        return Some("its tool steers the work");
    }
    if item.output.state != FaceState::Whole {
        return Some("it is hidden already");
    }
    if item.output.tokens < u64::from(policy.shelf.tokens_min) {
        return Some("it is too short to save anything");
    }
    None
}

/// Tokens that hiding an output of so many tokens frees: a tombstone takes room as well.
const fn freed_by_hiding(tokens: u64) -> u64 {
    // An output that is smaller than its tombstone frees nothing.
    tokens.saturating_sub(40)
}

/// The discard of the oldest outputs that frees at least `excess` tokens, as far as the policy allows. Views of files go
/// last: the output that was unused for longest is needed least, and edits rest on views.
pub(crate) fn shortening(view: &View, excess: u64) -> Option<EventDraft> {
    let state = view.state();
    let at = view.at();
    let may = state.served_places(at);
    let mut may: Vec<&ServedPlace> =
        may.iter().filter(|place| obstacle(state, place, at).is_none()).collect();
    may.sort_by_key(|place| {
        let class = state.item(place.ix, at).and_then(|item| item.class);
        (class == Some(ToolClass::Read), place.ix)
    });
    let mut bodies = Bodies::default();
    let targets = bodies.add_copied(r#"[["budget"]]"#);
    let mut items = Vec::new();
    let mut freed = 0_u64;
    for place in may {
        if freed >= excess {
            break;
        }
        let tokens = state.face(place.ix, Face::Output, at).tokens_shown;
        freed = freed.saturating_add(freed_by_hiding(tokens));
        items.extend(state.item_id(place.ix).map(|item| Hidden { item, pattern: None, summary: None }));
    }
    (!items.is_empty()).then(|| EventDraft::of(Discarded { targets, items }, bodies))
}

pub(crate) fn obstacles(served: &Served) -> Vec<Obstacle> {
    let view = served.view();
    let state = view.state();
    let mut found: Vec<Obstacle> = served
        .items()
        .iter()
        .map(|item| Obstacle {
            item: item.view.item,
            tokens: item.tokens(),
            why: if item.view.role == Role::User {
                "the user said it"
            } else {
                obstacle(state, &item.place, view.at()).unwrap_or("its placeholder is no shorter")
            },
        })
        .collect();
    found.sort_by_key(|obstacle| std::cmp::Reverse((obstacle.tokens, obstacle.item)));
    found.truncate(OBSTACLE_COUNT_MAX);
    found
}
