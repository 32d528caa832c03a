//! A compaction that acpdb answers itself: the same conversation, with placeholders for stale texts and for the oldest results.
//!
//! ```text
//! host: 150,000 tokens, make it shorter --> superseded, discarded and repeated texts go; then the oldest results, till half is left
//!                                      <-- placeholders by the ids of calls, or nothing: the host's own model writes a summary
//! ```
//!
//! No model is asked, and each text of the conversation stays as it was said. acpdb leaves it to the host if the user asked in
//! words to keep something, since a model has to read these words; if a result is no text (a host gives texts alone); and if
//! too little would go: a context that is full again at once makes a host give up.

use std::collections::BTreeMap;

use acpdb_engine::Error;
use acpdb_engine::event::{Face, PartKind, Role};
use acpdb_engine::fold::policy::ServeMode;
use acpdb_engine::fold::{FaceState, ItemKind, Status};
use acpdb_engine::store::Session;
use acpdb_engine::text::tokens::estimate;
use acpdb_serve::point::{PointLimits, SeenTexts, TextLines, is_pointer};
use acpdb_serve::{ServeOptions, Served, Step, tokens_least};
use serde::Deserialize;

use crate::birth;
use crate::plugin::shown::PluginRenderer;
use crate::told::{CallChange, Folded, PruneRequest};

/// Tokens of a hundred that have to go. Claude Code gives up when its context is full again within three turns, three times.
pub const FREED_PERCENT_MIN: u64 = 40;
/// Tokens of a hundred that stay, if results allow it.
const KEPT_PERCENT: u64 = 50;

/// The changes that make a conversation shorter, recorded as sent; `None` leaves it to the host. Durable when it returns.
///
/// Cost: O(items), and the bodies of items that are shown otherwise.
///
/// # Errors
/// As [`acpdb_serve::Step::context`].
pub fn answer(session: &Session, asked: &PruneRequest, key: &str) -> Result<Option<Folded>, Error> {
    let kept_max = asked.tokens.saturating_mul(100 - FREED_PERCENT_MIN) / 100;
    if asked.has_words || asked.tokens == 0 {
        return Ok(None);
    }
    let now = Served::eager(&session.view()?);
    let pointed = pointed(&now)?;
    let given_back: u64 = pointed.iter().map(|one| u64::from(estimate(one.original.as_bytes()))).sum();
    if !is_all_text(&now) || tokens_least(session)?.saturating_add(given_back) > kept_max {
        return Ok(None);
    }
    let tokens_max = asked.tokens.saturating_mul(KEPT_PERCENT) / 100;
    let options = ServeOptions {
        mode: Some(ServeMode::Eager),
        tokens_max: Some(tokens_max),
        cold: true,
        ..ServeOptions::default()
    };
    let context = Step::begun(session, key).context(&PluginRenderer::bare(false), &options)?;
    let mut calls = calls(&context.bytes);
    give_back(&context.served, pointed, &mut calls)?;
    Ok(Some(Folded { calls, texts: texts(&context.served)? }))
}

/// Whether each result that is shown is text.
fn is_all_text(served: &Served) -> bool {
    served.items().iter().all(|item| {
        let is_result = matches!(item.view.kind, ItemKind::Call | ItemKind::Result);
        let is_whole = item.view.output.state == FaceState::Whole;
        !(is_result && is_whole) || item.view.content.iter().all(|part| part.kind == PartKind::Text)
    })
}

/// Calls that are shown otherwise, from lines of [`PluginRenderer`].
pub fn calls(bytes: &[u8]) -> BTreeMap<String, CallChange> {
    #[derive(Deserialize)]
    struct SummaryLine {
        call: Option<String>,
        #[serde(flatten)]
        change: CallChange,
    }
    let lines = String::from_utf8_lossy(bytes);
    // A line that cannot be read comes from another version of the module: it changes nothing.
    let lines = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
    lines.filter_map(|SummaryLine { call, change }| Some((call?, change))).collect()
}

/// A result that was a pointer in the host from the beginning.
struct Pointed {
    call: String,
    original: String,
}

/// The pointers of a context whose originals are in the log.
fn pointed(served: &Served) -> Result<Vec<Pointed>, Error> {
    let (view, mut found) = (served.view(), Vec::new());
    for item in served.items() {
        let it = &item.view;
        let (Some(Status::Aborted), FaceState::Whole, Some(call)) = (it.status, it.output.state, &it.call)
        else {
            continue;
        };
        let Some(finished) = it.finished.filter(|_| item.pointed.is_none()) else { continue };
        if !is_pointer(served.shown(item, Face::Output)?.text.as_bytes()) {
            continue;
        }
        let parts = view.state().content(item.place.ix, finished);
        let texts = parts.iter().map(|part| view.text(part.body)).collect::<Result<Vec<_>, _>>()?;
        let original = texts.join("");
        if !is_pointer(original.as_bytes()) {
            found.push(Pointed { call: call.to_string(), original });
        }
    }
    Ok(found)
}

/// Gives back the original of a pointer, if the result that it points at is not shown any more.
fn give_back(
    served: &Served,
    pointed: Vec<Pointed>,
    calls: &mut BTreeMap<String, CallChange>,
) -> Result<(), Error> {
    if pointed.is_empty() {
        return Ok(());
    }
    let mut seen = SeenTexts::default();
    for item in served.items() {
        let is_result = matches!(item.view.kind, ItemKind::Call | ItemKind::Result);
        if is_result && item.view.output.state == FaceState::Whole {
            // Its number is not needed: nothing is hidden again.
            let _ = seen.add(&TextLines::of(served.shown(item, Face::Output)?.text), &[]);
        }
    }
    for Pointed { call, original } in pointed {
        let lines = TextLines::of(original.as_str());
        let runs = seen.point(&lines, PointLimits::of(birth::TOKENS_MIN));
        if !runs.iter().any(|run| run.first == 0 && run.count == lines.len()) {
            // As above.
            let _ = seen.add(&lines, &[]);
            calls.entry(call).or_default().output = Some(original);
        }
    }
    Ok(())
}

/// Texts of the model that are shown otherwise.
fn texts(served: &Served) -> Result<BTreeMap<String, String>, Error> {
    let mut found = BTreeMap::new();
    for item in served.items() {
        let view = &item.view;
        let is_other = !matches!(view.output.state, FaceState::Whole | FaceState::Absent);
        if view.kind == ItemKind::Text && view.role == Role::Assistant && is_other {
            let texts = view.content.iter().map(|part| served.view().text(part.body));
            let whole = texts.collect::<Result<Vec<_>, _>>()?.join("");
            // Equal originals have equal placeholders.
            let _ = found.insert(whole, served.shown(item, Face::Output)?.text);
        }
    }
    Ok(found)
}
