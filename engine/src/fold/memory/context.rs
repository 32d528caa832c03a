//! The text that tells a model what is remembered.
//!
//! ```text
//! what holds, confidence >= 0.6 --sort: confidence, then newest--> caps and budget --> ## Facts, ## Preferences, ## Decisions
//! ```
//!
//! Deterministic: the same view and budget give the same bytes. Notes are not part of it.

use std::cmp::Reverse;

use super::confidence::Confidence;
use super::read::MemoryItem;
use super::read::MemoryView;
use crate::event::MemoryKind;
use crate::ids::{ItemId, StreamId};
use crate::text::{collapse_space, estimate};

/// A section: its heading, which kind it shows, and how many at most.
const SECTIONS: [(&str, MemoryKind, usize); 3] = [
    ("## Facts", MemoryKind::Fact, 5),
    ("## Preferences", MemoryKind::Preference, 10),
    ("## Decisions", MemoryKind::Decision, 10),
];

/// How many current items a context leaves out, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct ContextCounts {
    /// Confidence below 0.6.
    pub unsure: usize,
    /// Beyond the cap of their section.
    pub over_cap: usize,
    /// They would not fit into the budget.
    pub over_budget: usize,
    /// Their text is erased or empty.
    pub unreadable: usize,
}

impl ContextCounts {
    /// All of them.
    pub const fn total(&self) -> usize {
        self.unsure + self.over_cap + self.over_budget + self.unreadable
    }
}

/// What is remembered, as a text for the model.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[must_use]
pub struct MemoryContext {
    /// The text; empty if nothing is included. Lines joined by LF, no LF at the end.
    pub text: String,
    /// Its tokens, estimated. At most the budget.
    pub tokens: u32,
    /// The items that it shows, in the order of its lines.
    pub included: Vec<(StreamId, ItemId)>,
    /// How many facts, preferences and decisions that hold it does not show.
    pub left_out: ContextCounts,
}

/// Renders what holds in `view`: the surest first, then the newest, until caps and `budget` (tokens) are reached.
///
/// An item that does not fit is left out; smaller ones after it may still fit. White space in values is collapsed, so
/// that no value can look like a section. Cost: reads the texts of at most the items that caps allow.
pub fn memory_context(view: &MemoryView<'_>, budget: u32) -> MemoryContext {
    let mut context = MemoryContext::default();
    let mut candidates = Vec::new();
    for (stream, item) in view.current() {
        if item.kind() == MemoryKind::Note {
            continue;
        }
        let confidence = item.confidence(view.now());
        if confidence < Confidence::CONTEXT_MIN {
            context.left_out.unsure += 1;
        } else {
            candidates.push((Reverse((confidence, item.facts().created, item.item())), stream, item));
        }
    }
    candidates.sort_by_key(|(order, ..)| *order);

    let mut lines: [Vec<(String, (StreamId, ItemId))>; 3] = Default::default();
    for (_, stream, item) in candidates {
        let section = SECTIONS.iter().zip(&mut lines).find(|((_, kind, _), _)| *kind == item.kind());
        let Some(((_, _, cap), section)) = section else { continue };
        if section.len() >= *cap {
            context.left_out.over_cap += 1;
            continue;
        }
        let Some(line) = line(view, &item) else {
            context.left_out.unreadable += 1;
            continue;
        };
        section.push((line, (stream, item.item())));
        let text = render(&lines);
        let tokens = estimate(text.as_bytes());
        if tokens <= budget {
            (context.text, context.tokens) = (text, tokens);
        } else {
            let of_kind = SECTIONS.iter().zip(&mut lines).find(|((_, kind, _), _)| *kind == item.kind());
            if let Some((_, section)) = of_kind {
                section.pop();
            }
            context.left_out.over_budget += 1;
        }
    }
    context.included = lines.into_iter().flatten().map(|(_, item)| item).collect();
    context
}

fn line(view: &MemoryView<'_>, item: &MemoryItem<'_>) -> Option<String> {
    let text = collapse_space(&view.text(item)?);
    match item.key().filter(|_| item.kind() == MemoryKind::Preference) {
        _ if text.is_empty() => None,
        Some(key) => Some(format!("- {}/{key}: {text}", item.category())),
        None => Some(format!("- {text}")),
    }
}

fn render(lines: &[Vec<(String, (StreamId, ItemId))>; 3]) -> String {
    let sections = SECTIONS.iter().zip(lines).filter(|(_, lines)| !lines.is_empty());
    let sections = sections.map(|((heading, ..), lines)| {
        let lines = lines.iter().map(|(line, _)| line.as_str());
        std::iter::once(*heading).chain(lines).collect::<Vec<_>>().join("\n")
    });
    sections.collect::<Vec<_>>().join("\n\n")
}
