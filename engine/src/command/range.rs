//! A range of a conversation as one target: `A..B`, from one item to another, both with it.
//!
//! ```text
//! discard #12..#40                 each output between them gets its tombstone
//! distill #12..#40  SUMMARY        the first output with room for it shows the summary, all others their tombstones
//! restore #12..#40                 shows again what acts hid there; what rules hid stays hidden
//! ```
//!
//! Prompts, pinned items, protected tools and calls without a result stay whole: a range is about work, and no request is broken by it. A range may
//! hold earlier ones: their summaries go behind the new one.
//!
//! Pure.

use super::named::ContextRejection;
use crate::event::{Face, Role};
use crate::fold::{CauseView, FaceState, ItemKind, ItemView, Ix, State, Status};
use crate::ids::{ItemId, Seq};
use crate::text::HashTarget;
use crate::text::tokens::estimate;

/// Bytes of the words before a summary, at most: the count and the two ends.
const MARK_BYTES_MAX: u64 = 80;

/// The text of a range, split: each end is an item (`#12`, `12.2`) or a short hash. `None`: it is no range.
///
/// ```
/// use acpdb_engine::command::range_ends;
///
/// assert_eq!(range_ends("#12..#40.1"), Some(("#12", "#40.1")));
/// assert_eq!(range_ends("r_1a2b3 .. e_4c5d6"), Some(("r_1a2b3", "e_4c5d6")));
/// assert_eq!(range_ends("words of...a text"), None);
/// ```
pub fn range_ends(text: &str) -> Option<(&str, &str)> {
    let (first, last) = text.split_once("..")?;
    let is_end = |end: &str| {
        end.parse::<ItemId>().is_ok() || HashTarget::parse(end).is_some_and(|hash| !hash.is_doubtful())
    };
    let ends = (first.trim(), last.trim());
    (is_end(ends.0) && is_end(ends.1)).then_some(ends)
}

/// The items of the context from one to another, in its order, whichever comes first. `None`: one of them is not in it.
pub(super) fn between(state: &State, first: Ix, last: Ix) -> Option<Vec<Ix>> {
    let current = state.current(Seq::MAX);
    let place = |end: Ix| current.iter().position(|ix| *ix == end);
    let (first, last) = (place(first)?, place(last)?);
    current.get(first.min(last)..=first.max(last)).map(<[Ix]>::to_vec)
}

/// Whether a range hides an item: it is work that is shown, or a summary of some.
pub(super) fn is_hideable(state: &State, item: &ItemView) -> bool {
    let is_work = match item.kind {
        ItemKind::Text | ItemKind::Reasoning => item.role == Role::Assistant,
        ItemKind::Call | ItemKind::Result => item.status.is_none_or(|status| status != Status::Pending),
        _ => false,
    };
    let is_shown =
        matches!(item.output.cause, None | Some(CauseView::Shortened { .. } | CauseView::Distilled { .. }))
            && !matches!(item.output.state, FaceState::Gone | FaceState::Absent);
    is_work && is_shown && !item.pinned && !state.is_protected_tool(item.ix)
}

/// The first of the items with room for a summary: it is no longer than the text whose place it takes, and than all of them.
pub(super) fn place_of(items: &[ItemView], summary: &str) -> Result<usize, ContextRejection> {
    let tokens = u64::from(estimate(summary.as_bytes()));
    let shown = items.iter().map(|item| item.output.tokens_shown).sum();
    let bytes = (summary.len() as u64).saturating_add(MARK_BYTES_MAX);
    // Reasoning is sent as it was signed, or not at all.
    let has_room = |item: &ItemView| item.kind != ItemKind::Reasoning && item.output.bytes >= bytes;
    let too_long = || {
        let room = items.iter().map(|item| item.output.tokens).max().unwrap_or_default();
        ContextRejection::SummaryTooLong { tokens, shown, room }
    };
    items.iter().position(has_room).filter(|_| tokens < shown).ok_or_else(too_long)
}

/// Whether an act hid an item, so that a restore of its range shows it.
pub(super) fn is_hidden_by_act(state: &State, ix: Ix) -> bool {
    let cause = state.face(ix, Face::Output, Seq::MAX).cause;
    matches!(cause, Some(CauseView::Discarded { .. } | CauseView::Distilled { .. }))
}
