//! Decisions that an assistant's message states.

use std::ops::Range;

use super::scan::{Gap, Scan};

/// Characters of a description, at most.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// What a decision begins with.
const OPENINGS: &[&str] = &[
    "let's go with",
    "i'll use",
    "we'll use",
    "decided to",
    "the approach is",
    "the approach will be",
    "solution is",
    "solution will be",
];

/// Words after " for " that name no subject: "for now", "for this".
const NO_SUBJECTS: &[&str] = &[
    "now", "today", "it", "this", "that", "these", "those", "them", "us", "me", "you", "example", "instance",
];

/// A decision in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) text: String,
    pub(super) range: Range<usize>,
}

/// The first `count_max` decisions of a text, in its order, none inside another, none twice.
pub(super) fn find(scan: &Scan<'_>, count_max: usize) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut index = 0;
    while index < scan.len() && found.len() < count_max {
        let opening = OPENINGS.iter().find_map(|opening| scan.phrase(index, opening));
        let Some(start) = opening.filter(|start| scan.gap(*start) == Gap::Space) else {
            index += 1;
            continue;
        };
        let end = scan.clause_end(start);
        let text: String = scan.between(start, end).chars().take(DESCRIPTION_CHARS_MAX).collect();
        let text = text.trim_end();
        let has_word = (start..end).any(|index| scan.any_word(index).is_some());
        if has_word && found.iter().all(|other| other.text != text) {
            found.push(Found { text: text.to_owned(), range: scan.range(index, end) });
        }
        index = end.max(index + 1);
    }
    found
}

/// What a description is about: what follows its last ` for `, without article and final marks; lower-cased.
pub(super) fn subject(description: &str) -> Option<String> {
    let lower = description.to_lowercase();
    let (_, after) = lower.rsplit_once(" for ")?;
    let after = after.trim().trim_end_matches(['.', '!', '?', ':', ',', ';']).trim_end();
    let after =
        ["the ", "our ", "a ", "an "].iter().find_map(|article| after.strip_prefix(article)).unwrap_or(after);
    let after = after.trim();
    (!after.is_empty() && !NO_SUBJECTS.contains(&after)).then(|| after.to_owned())
}

/// Whether an older decision's text holds the beginning of a newer one's: its first 30 characters, at least 10.
pub(super) fn holds_beginning(older: &str, newer: &str) -> bool {
    let newer: String = newer.trim().chars().flat_map(char::to_lowercase).take(30).collect();
    newer.chars().nth(9).is_some() && older.to_lowercase().contains(&newer)
}
