//! The items that targets name, and why a command is refused.
//!
//! Pure.

use super::target::Target;
use crate::fold::{HashForm, Ix, State};
use crate::ids::{ItemId, Seq};
use crate::text::HashTarget;

/// Why a command is refused. The text is the exact error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContextRejection {
    /// Nothing to act on was given.
    #[error("No targets provided. Provide an array of [target] or [target, summary] tuples.")]
    NoTargets,
    /// A distillation needs a summary.
    #[error("Summary required for distill action on {kind}: {target}")]
    SummaryRequired {
        /// `target` or `pattern`.
        kind: &'static str,
        /// As given.
        target: String,
    },
    /// The calls are not in the context any more.
    #[error("Invalid hash provided. The tool may have already been discarded.")]
    HasLeft,
    /// The tool is protected.
    #[error("Cannot {verb}: '{tool}' is a protected tool.\nProtected tools: {list}")]
    Protected {
        /// `discard` or `distill`.
        verb: &'static str,
        /// The tool.
        tool: String,
        /// The list.
        list: String,
    },
    /// No such item or call.
    #[error("nothing in this stream is called `{target}`")]
    Unknown {
        /// As given.
        target: String,
    },
    /// The hash could mean several calls.
    #[error("`{target}` names {} calls: {}", .calls.len(), .calls.join(", "))]
    Ambiguous {
        /// As given.
        target: String,
        /// Each call: the hash that it is shown with, its id and its tool.
        calls: Vec<String>,
    },
    /// An end of a range is not in the context.
    #[error("`{target}` is not in the context: a range goes from one item of it to another")]
    NotInContext {
        /// The end, as given.
        target: String,
    },
    /// A summary would take the place of less than itself.
    #[error(
        "the summary has {tokens} tokens, and the range shows {shown}, at most {room} in one place: write a shorter one"
    )]
    SummaryTooLong {
        /// Estimated tokens of the summary.
        tokens: u64,
        /// Estimated tokens that the items of the range show.
        shown: u64,
        /// The most that one of them shows.
        room: u64,
    },
    /// More than a limit allows.
    #[error("{what}: {given}, at most {max}")]
    TooMuch {
        /// Name of the limited number.
        what: &'static str,
        /// How much was given.
        given: usize,
        /// The limit.
        max: usize,
    },
    /// A point after the head.
    #[error("cannot rewind to {to}: the stream ends at {head}")]
    AfterHead {
        /// As given.
        to: Seq,
        /// The head of the stream.
        head: Seq,
    },
}

/// Items that targets name, each once; hashes name their newest call in the context.
pub(super) fn named(state: &State, targets: &[Target]) -> Result<Vec<ItemId>, ContextRejection> {
    if targets.is_empty() {
        return Err(ContextRejection::NoTargets);
    }
    let mut items = Vec::new();
    for target in targets {
        let unknown = || ContextRejection::Unknown { target: target.text() };
        let found: Vec<Ix> = match target {
            Target::Auto(text) | Target::Shown(text) => match hash_of(state, text) {
                Some(hash) => shown_as(state, &hash, text)?
                    .iter()
                    .filter_map(|calls| {
                        calls.iter().rev().copied().find(|ix| state.is_in_context(*ix, Seq::MAX))
                    })
                    .collect(),
                None => text.parse().ok().and_then(|item| state.find(item)).into_iter().collect(),
            },
            Target::Item(item) => state.find(*item).into_iter().collect(),
            Target::Call(call) => {
                state.calls_by_host_id(call, Seq::MAX).last().copied().into_iter().collect()
            }
        };
        if found.is_empty() {
            return Err(unknown());
        }
        for item in found.into_iter().filter_map(|ix| state.item_id(ix)) {
            if !items.contains(&item) {
                items.push(item);
            }
        }
    }
    Ok(items)
}

/// The calls that a hash means to a person: as [`State::calls_shown_as`], and a hash that could mean several is refused.
pub(super) fn shown_as(
    state: &State,
    hash: &HashTarget,
    text: &str,
) -> Result<Vec<Vec<Ix>>, ContextRejection> {
    let groups = state.calls_shown_as(hash, text);
    if groups.len() < 2 {
        return Ok(groups);
    }
    let text = text.trim().to_lowercase();
    let shown = |ix: &Ix| state.hash(*ix, Seq::MAX, HashForm::Shown);
    let newest = groups.iter().filter_map(|calls| calls.last());
    let named = newest.map(|ix| {
        let item = state.item_id(*ix).map(|item| item.to_string()).unwrap_or_default();
        let tool = state.tool(*ix).unwrap_or_default();
        format!("{} ({item} {tool})", shown(ix).unwrap_or_default())
    });
    Err(ContextRejection::Ambiguous { target: text, calls: named.collect() })
}

/// The text as a hash, if it is a hash and not a pattern.
pub(super) fn hash_of(state: &State, text: &str) -> Option<HashTarget> {
    let text = text.trim();
    if state.policy(Seq::MAX).bare_hashes()
        && let Some(hash) = HashTarget::parse_bare(text)
    {
        return Some(hash);
    }
    let hash = HashTarget::parse(text)?;
    (!hash.is_doubtful() || state.knows_hash(&hash)).then_some(hash)
}
