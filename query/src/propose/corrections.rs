//! Corrections: "not X, use Y" and its like, and hints that an earlier statement was meant otherwise.

use std::ops::Range;

use super::scan::{Gap, TokenScan};

/// Characters of the new value, at most.
const TO_CHARS_MAX: usize = 100;
/// Tokens of the old value after "instead of", at most.
const FROM_TOKENS_MAX: usize = 32;

/// The category of a correction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CorrectionCategory {
    /// One value takes another's place.
    Preference,
    /// An earlier statement was meant otherwise: a hint, nothing more.
    Fact,
}

/// A correction that a text makes.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Correction {
    /// The corrected thing: the old value, or `previous statement`.
    pub what: String,
    /// The old value, lower-cased; absent for hints.
    pub from: Option<String>,
    /// The new value, lower-cased.
    pub to: String,
    /// Its category.
    pub category: CorrectionCategory,
    /// First byte of the correction in the text.
    pub start: usize,
    /// Byte after its last.
    pub end: usize,
}

/// A correction with the tokens of its two values.
#[derive(Debug)]
pub(super) struct CorrectionMatch {
    pub(super) correction: Correction,
    /// Tokens of X; empty for hints.
    pub(super) from: Range<usize>,
    /// Tokens of Y or Z.
    pub(super) to: Range<usize>,
}

/// The words that X and Y are, where they are no phrases.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CorrectedWords {
    /// One word.
    One,
    /// Words that are joined without white space: `us-east-1`, `bun.sh`.
    Joined,
}

/// Changes of values that are several joined words; only a value that is remembered says that the whole of it is meant.
pub(super) fn find_joined(scan: &TokenScan<'_>) -> Vec<CorrectionMatch> {
    let mut found = Vec::new();
    let mut from_here = 0;
    for index in 0..scan.len() {
        if index >= from_here
            && let Some((from, to)) = change_at(scan, index, CorrectedWords::Joined)
        {
            from_here = to.end.max(from.end);
            if change_at(scan, index, CorrectedWords::One).is_none() {
                found.push(change(scan, index, from, to));
            }
        }
    }
    found
}

/// Names that a text says to switch to, without a word for the present thing: the tokens of `switch to` and the name's first token.
pub(super) fn switches_to(scan: &TokenScan<'_>) -> Vec<(Range<usize>, usize)> {
    let at = |index| Some((index, scan.phrase(index, "switch to")?));
    (0..scan.len()).filter_map(at).map(|(index, name)| (index..name, name)).collect()
}

/// The corrections of a text, in its order.
pub(super) fn find(scan: &TokenScan<'_>) -> Vec<CorrectionMatch> {
    let mut found = Vec::new();
    let (mut change_from, mut hint_from) = (0, 0);
    for index in 0..scan.len() {
        if index >= change_from
            && let Some((from, to)) = change_at(scan, index, CorrectedWords::One)
        {
            change_from = to.end.max(from.end);
            found.push(change(scan, index, from, to));
        }
        if index >= hint_from
            && let Some(to) = hint_at(scan, index)
        {
            hint_from = to.end;
            found.push(hint(scan, index, to));
        }
    }
    found
}

fn change(scan: &TokenScan<'_>, index: usize, from: Range<usize>, to: Range<usize>) -> CorrectionMatch {
    let old = scan.between(from.start, from.end).to_lowercase();
    let range = scan.range(index, from.end.max(to.end));
    let correction = Correction {
        what: old.clone(),
        from: Some(old),
        to: lowered(scan, &to),
        category: CorrectionCategory::Preference,
        start: range.start,
        end: range.end,
    };
    CorrectionMatch { correction, from, to }
}

fn hint(scan: &TokenScan<'_>, index: usize, to: Range<usize>) -> CorrectionMatch {
    let range = scan.range(index, to.end);
    let correction = Correction {
        what: "previous statement".to_owned(),
        from: None,
        to: lowered(scan, &to),
        category: CorrectionCategory::Fact,
        start: range.start,
        end: range.end,
    };
    CorrectionMatch { correction, from: index..index, to }
}

fn lowered(scan: &TokenScan<'_>, tokens: &Range<usize>) -> String {
    let lower: String = scan
        .between(tokens.start, tokens.end)
        .chars()
        .flat_map(char::to_lowercase)
        .take(TO_CHARS_MAX)
        .collect();
    lower.trim_end().to_owned()
}

/// Tokens of X and Y if a change begins at `index`.
fn change_at(
    scan: &TokenScan<'_>,
    index: usize,
    words: CorrectedWords,
) -> Option<(Range<usize>, Range<usize>)> {
    if scan.is(index, "not") {
        not_but(scan, index, words)
    } else if scan.is_one_of(index, &["change", "switch"]) {
        change_to(scan, index, words)
    } else if let Some(next) = scan.phrase(index, "instead of") {
        instead_of(scan, next)
    } else if scan.is(index, "use") {
        use_instead(scan, index, words)
    } else {
        None
    }
}

/// `not X[,] [but] use Y`, `not X[,] but Y`.
fn not_but(
    scan: &TokenScan<'_>,
    index: usize,
    words: CorrectedWords,
) -> Option<(Range<usize>, Range<usize>)> {
    let old = one_word(scan, index + 1, words)?;
    let has_comma = scan.is_mark(old.end, ',');
    let mut next = old.end + usize::from(has_comma);
    if !has_comma && scan.gap(next) == Gap::None {
        return None;
    }
    let has_but = scan.is(next, "but");
    if has_but {
        next += 1;
    }
    let has_use = scan.is(next, "use") && (!has_but || scan.gap(next) != Gap::None);
    if has_use {
        next += 1;
    }
    (has_but || has_use).then_some(())?;
    Some((old, new_word(scan, next, words)?))
}

/// `change|switch [from] X to Y`.
fn change_to(
    scan: &TokenScan<'_>,
    index: usize,
    words: CorrectedWords,
) -> Option<(Range<usize>, Range<usize>)> {
    let next =
        scan.phrase(index + 1, "from").filter(|_| scan.gap(index + 1) != Gap::None).unwrap_or(index + 1);
    let old = one_word(scan, next, words)?;
    scan.next_word(old.end).filter(|_| scan.is(old.end, "to"))?;
    let new = new_word(scan, old.end + 1, words)?;
    Some((old, new))
}

/// `instead of X[,] do|use|try Y`, from X on.
fn instead_of(scan: &TokenScan<'_>, start: usize) -> Option<(Range<usize>, Range<usize>)> {
    let is_verb = |index| scan.is_one_of(index, &["do", "use", "try"]);
    let mut end = start;
    let ends = |index| scan.is_mark(index, ',') || is_verb(index) && scan.gap(index) != Gap::None;
    while !ends(end) {
        let is_inside = end < scan.len()
            && end < start + FROM_TOKENS_MAX
            && scan.gap(end) != Gap::Break
            && !scan.is_full_stop(end)
            && !scan.is_mark(end, ';');
        if !is_inside {
            return None;
        }
        end += 1;
    }
    let verb = end + usize::from(scan.is_mark(end, ','));
    if end == start || !is_verb(verb) {
        return None;
    }
    let new = verb + 1;
    if scan.gap(new) != Gap::Space {
        return None;
    }
    // The loop stops after as many tokens as a value has characters at most, so that a long line is not searched again and again.
    let mut last = new;
    while last < scan.len().min(new + TO_CHARS_MAX)
        && (last == new || scan.gap(last) != Gap::Break)
        && !scan.is_full_stop(last)
        && !scan.is_mark(last, ',')
        && !scan.is_mark(last, ';')
    {
        last += 1;
    }
    let is_value = last > new && !(last == new + 1 && is_no_value(scan, new));
    is_value.then_some((start..end, new..last))
}

/// `use Y instead of X`.
fn use_instead(
    scan: &TokenScan<'_>,
    index: usize,
    words: CorrectedWords,
) -> Option<(Range<usize>, Range<usize>)> {
    let new = new_word(scan, index + 1, words)?;
    let next = scan.phrase(new.end, "instead of").filter(|_| scan.gap(new.end) != Gap::None)?;
    Some((one_word(scan, next, words)?, new))
}

/// A word after white space, with the words that are joined to it.
fn one_word(scan: &TokenScan<'_>, index: usize, words: CorrectedWords) -> Option<Range<usize>> {
    scan.next_word(index)?;
    let mut end = index + 1;
    let is_joint = |index| ['-', '.', '/', ':', '@'].iter().any(|mark| scan.is_mark(index, *mark));
    while words == CorrectedWords::Joined
        && is_joint(end)
        && scan.gap(end) == Gap::None
        && scan.gap(end + 1) == Gap::None
        && scan.any_word(end + 1).is_some()
    {
        end += 2;
    }
    Some(index..end)
}

/// One word after white space that can be a new value.
fn new_word(scan: &TokenScan<'_>, index: usize, words: CorrectedWords) -> Option<Range<usize>> {
    one_word(scan, index, words).filter(|_| !is_no_value(scan, index))
}

/// Words that stand for another word, so that the new value is unknown.
fn is_no_value(scan: &TokenScan<'_>, index: usize) -> bool {
    scan.is_one_of(index, &["it", "that", "this", "them", "one", "use", "do", "try"])
}

/// Tokens of Z if `I meant Z`, `actually Z` or `no, Z` begins at `index`.
fn hint_at(scan: &TokenScan<'_>, index: usize) -> Option<Range<usize>> {
    let after = if let Some(next) = scan.phrase(index, "i meant").or_else(|| scan.phrase(index, "actually")) {
        next + usize::from(scan.is_mark(next, ','))
    } else if scan.is(index, "no") && scan.is_mark(index + 1, ',') && scan.gap(index + 1) == Gap::None {
        index + 2
    } else {
        return None;
    };
    if scan.gap(after) == Gap::Break {
        return None;
    }
    let end = scan.clause_end(after);
    (end > after).then_some(after..end)
}
