//! Pruning at birth: a result that the model still sees elsewhere becomes a pointer before it is first sent.
//!
//! ```text
//! Read src/a.py   -> 1..60            stays
//! Read src/a.py   -> 1..60, the same  -> "[60 lines, the same as lines 1-60 of Read src/a.py above]"
//! ```
//!
//! A result becomes a pointer only if it stands as a whole in another one: the text that a host puts around a result (numbers
//! of lines, counts) would be wrong beside a part of it. No pointer points at a result that was replaced itself.

use acpdb_engine::event::{Outcome, PartKind};
use acpdb_engine::fold::{FaceState, ItemKind, ItemView, Status};
use acpdb_engine::text::tokens::estimate;
use acpdb_engine::{Error, View};
use acpdb_serve::label;
use acpdb_serve::point::{POINTER_TOKENS, PointLimits, SeenTexts, TextLines, pointed};

use crate::told::CallWithResult;

/// Estimated tokens that a pointer has to save.
pub const TOKENS_MIN: u32 = 100;
/// Results that are looked at, the newest first.
const RESULT_COUNT_MAX: usize = 64;
/// Longest result that is compared.
const BYTES_MAX: usize = 4 << 20;

/// The pointer that can stand for the result of `call`, which is not part of `view` yet; `None` also if the policy has no pointers.
///
/// Cost: the texts of up to 64 results that are long enough.
///
/// # Errors
/// If the view's state cannot be read. No pointer points at a text that cannot be read.
pub fn pointer(view: &View, call: &CallWithResult) -> Result<Option<String>, Error> {
    let Some(text) = call.text.as_deref().filter(|text| text.len() <= BYTES_MAX) else { return Ok(None) };
    let has_pointers = PointLimits::of_policy(view.state().policy(view.at())).is_some();
    if call.outcome != Outcome::Completed || !has_pointers {
        return Ok(None);
    }
    let fresh = TextLines::of(text);
    let mut seen = SeenTexts::default();
    let mut labels = Vec::new();
    let items = view.current();
    let mut sources: Vec<&ItemView> =
        items.iter().rev().filter(|item| may_name(item, call, text)).take(RESULT_COUNT_MAX).collect();
    sources.reverse();
    for item in sources {
        let Ok(texts) = item.content.iter().map(|part| view.text(part.body)).collect::<Result<Vec<_>, _>>()
        else {
            continue;
        };
        // Its number is its index in `labels`. It has no pointers itself: only `fresh` gets one.
        let _ = seen.add(&TextLines::of(texts.join("\n")), &[]);
        labels.push(label(view, item));
    }
    let runs = seen.point(&fresh, PointLimits::of(TOKENS_MIN));
    let is_whole =
        runs.iter().any(|run| run.first == 0 && run.count == fresh.len() && run.saved >= TOKENS_MIN);
    if !is_whole {
        return Ok(None);
    }
    let name = |source: usize| labels.get(source).cloned().unwrap_or_default();
    Ok(Some(pointed(&fresh, &runs, &name).trim_end().to_owned()))
}

/// Whether a result is long enough that a pointer saves something.
pub fn is_worth_a_look(call: &CallWithResult) -> bool {
    let tokens = call.text.as_deref().map_or(0, |text| estimate(text.as_bytes()));
    call.outcome == Outcome::Completed && tokens >= TOKENS_MIN.saturating_add(POINTER_TOKENS)
}

/// Whether the model sees this result whole, and it may hold `text`.
fn may_name(item: &ItemView, call: &CallWithResult, text: &str) -> bool {
    let is_result = matches!(item.kind, ItemKind::Call | ItemKind::Result);
    let bytes: u64 = item.content.iter().map(|part| part.bytes).sum();
    is_result
        && item.in_context
        && item.output.state == FaceState::Whole
        && item.status == Some(Status::Completed)
        && item.content.iter().all(|part| part.kind == PartKind::Text)
        && item.call.as_deref() != call.id.as_deref()
        // Blanks at the ends of lines do not count.
        && bytes.saturating_mul(2) >= text.len() as u64
        && bytes <= BYTES_MAX as u64
}
