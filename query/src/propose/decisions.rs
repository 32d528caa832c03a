//! Decisions that an assistant's message states.

use std::ops::Range;

use super::scan::{Gap, SENTENCE_MAX, TokenScan};

/// Characters of a description, at most.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// The openings of decisions.
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

/// Openings before a thing that the speaker is about to use; the other openings stand before a decided thing.
const USES: [&str; 2] = ["i'll use", "we'll use"];

/// Objects that say nothing by themselves.
const NO_OBJECTS: &[&str] = &[
    "all",
    "both",
    "either",
    "everything",
    "her",
    "his",
    "it",
    "my",
    "neither",
    "none",
    "nothing",
    "something",
    "that",
    "their",
    "them",
    "these",
    "this",
    "those",
    "what",
    "whatever",
    "whichever",
    "your",
];

/// Programs and tools that an agent works with: using one is a step, no decision.
const WORK_TOOLS: &[&str] = &[
    "awk",
    "bash",
    "cat",
    "curl",
    "edit",
    "find",
    "git",
    "glob",
    "grep",
    "head",
    "jq",
    "ls",
    "multiedit",
    "read",
    "rg",
    "ripgrep",
    "search",
    "sed",
    "tail",
    "task",
    "todowrite",
    "write",
];

/// Words for such a thing that stand behind its name.
const WORK_THINGS: &[&str] =
    &["agent", "agents", "command", "skill", "subagent", "subagents", "tool", "tools"];

/// Words for an agent's next step with the thing that it uses.
const WORK: &[&str] = &[
    "check",
    "confirm",
    "compare",
    "count",
    "debug",
    "determine",
    "examine",
    "explore",
    "extract",
    "fetch",
    "figure",
    "find",
    "get",
    "identify",
    "inspect",
    "investigate",
    "list",
    "locate",
    "look",
    "measure",
    "open",
    "parse",
    "print",
    "read",
    "reproduce",
    "review",
    "run",
    "search",
    "see",
    "show",
    "test",
    "trace",
    "track",
    "understand",
    "verify",
    "view",
];

/// Words after "the approach is" that judge it, and adverbs before them.
const JUDGED: &[&str] = &[
    "almost",
    "already",
    "also",
    "bad",
    "best",
    "better",
    "bigger",
    "broken",
    "cheaper",
    "clean",
    "cleaner",
    "clear",
    "complete",
    "correct",
    "different",
    "done",
    "easier",
    "easy",
    "elegant",
    "fast",
    "faster",
    "fine",
    "flawed",
    "good",
    "great",
    "hard",
    "harder",
    "implemented",
    "incomplete",
    "incorrect",
    "just",
    "less",
    "longer",
    "more",
    "mostly",
    "much",
    "nice",
    "nicer",
    "not",
    "now",
    "obvious",
    "ok",
    "okay",
    "overkill",
    "perfect",
    "pretty",
    "quite",
    "ready",
    "really",
    "reasonable",
    "right",
    "risky",
    "robust",
    "safe",
    "safer",
    "shorter",
    "similar",
    "simple",
    "simpler",
    "slow",
    "slower",
    "smaller",
    "so",
    "solid",
    "sound",
    "still",
    "straightforward",
    "too",
    "unclear",
    "very",
    "viable",
    "working",
    "worse",
    "wrong",
];

/// Words that may follow such a judgement.
const AFTER_JUDGED: &[&str] = &[
    "above",
    "already",
    "and",
    "as",
    "because",
    "below",
    "but",
    "by",
    "earlier",
    "elsewhere",
    "enough",
    "for",
    "here",
    "if",
    "in",
    "now",
    "on",
    "since",
    "so",
    "than",
    "there",
    "though",
    "to",
    "when",
    "with",
];

/// Words behind "the" for a thing that is there: taking it is a step, no decision.
const THERE_ALREADY: &[&str] =
    &["above", "current", "existing", "following", "given", "previous", "provided", "same"];

/// Words before an opening that make the decision another person's, or no decision.
const NOT_OURS: &[&str] = &[
    "already",
    "another",
    "been",
    "before",
    "better",
    "haven",
    "he",
    "if",
    "it",
    "never",
    "nobody",
    "not",
    "once",
    "other",
    "possible",
    "she",
    "someone",
    "team",
    "temporary",
    "they",
    "undecided",
    "unless",
    "until",
    "upstream",
    "user",
    "users",
    "was",
    "what",
    "whatever",
    "when",
    "whether",
    "who",
    "yet",
];

/// Whether the words that begin at `index`, with their object at `start`, decide something here and now.
fn is_decided(scan: &TokenScan<'_>, index: usize, start: usize, end: usize, is_use: bool) -> bool {
    let number = |index: usize| scan.token(index).map(|token| token.sentence);
    // An empty stretch asks nothing.
    let asks = scan.is_mark(end.saturating_sub(1), '?');
    let mut before = (0..index).rev().take_while(|before| number(*before) == number(index)).take(4);
    let theirs = before.any(|before| scan.is_one_of(before, NOT_OURS));
    let is_none = index > 0 && scan.is(index - 1, "no");
    if asks || theirs || is_none {
        return false;
    }
    // A longer clause is not gone through again for each of its openings.
    let end = end.min(start.saturating_add(SENTENCE_MAX));
    let mut words = (start..end).filter(|index| scan.any_word(*index).is_some());
    let first = words.next().unwrap_or(start);
    let is_work = scan.is_one_of(first, WORK_TOOLS)
        || (start..end.min(start + 5)).any(|index| scan.is_one_of(index, WORK_THINGS))
        || (start..end).any(|index| scan.is(index, "to") && scan.is_one_of(index + 1, WORK));
    if scan.is(first, "do") && scan.any_word(first + 1).is_none() {
        return false;
    }
    let is_there = scan.is(first, "the") && scan.is_one_of(first + 1, THERE_ALREADY);
    let is_judged = is_judged(scan, index, start, end);
    !(is_judged || is_use && (scan.is_one_of(first, NO_OBJECTS) || is_work || is_there))
}

/// Whether "the approach is" goes on with a judgement: "is fine", "is not clear to me". "simple caching" is a thing.
fn is_judged(scan: &TokenScan<'_>, index: usize, start: usize, end: usize) -> bool {
    // A decision stands behind its opening: there is a word before it.
    if !scan.is(start.saturating_sub(1), "is") || !scan.is_one_of(index, &["the", "solution"]) {
        return false;
    }
    let mut at = start;
    while at < end && scan.is_one_of(at, JUDGED) {
        at += 1;
    }
    let is_told = at == start && scan.any_word(at).is_some_and(|word| word.ends_with("ed"));
    let at = at + usize::from(is_told);
    scan.is(start, "not")
        || at > start
            && (at >= end || scan.any_word(at).is_none() || scan.is_one_of(at, AFTER_JUDGED))
            && !scan.is(start, "based")
}

/// Whether the speaker, or no subject, stands before `decided`: "the author decided to" tells of another one.
fn is_by_us(scan: &TokenScan<'_>, verb: usize) -> bool {
    const BETWEEN: &[&str] =
        &["also", "d", "finally", "had", "have", "just", "now", "then", "therefore", "thus", "ve"];
    let mut at = verb;
    loop {
        let Some(before) = at.checked_sub(1).filter(|_| scan.gap(at) != Gap::Break) else { return true };
        if scan.is_one_of(before, &["i", "we", "and", "so", "but"]) {
            return true;
        }
        let is_apostrophe = scan.is_mark(before, '\'') || scan.is_mark(before, '’');
        if scan.any_word(before).is_none() && !is_apostrophe {
            return true;
        }
        if !is_apostrophe && !scan.is_one_of(before, BETWEEN) {
            return false;
        }
        at = before;
    }
}

/// A decision in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct DecisionMatch {
    pub(super) text: String,
    pub(super) range: Range<usize>,
}

/// The first `count_max` decisions of a text, in its order, none inside another, none twice.
pub(super) fn find(scan: &TokenScan<'_>, count_max: usize) -> Vec<DecisionMatch> {
    let mut found: Vec<DecisionMatch> = Vec::new();
    let mut index = 0;
    while index < scan.len() && found.len() < count_max {
        let opening =
            OPENINGS.iter().find_map(|opening| Some((scan.phrase(index, opening)?, USES.contains(opening))));
        let decided = |(start, is_use): &(usize, bool)| {
            scan.gap(*start) == Gap::Space
                && is_decided(scan, index, *start, scan.clause_end(*start), *is_use)
        };
        let is_mine = !scan.is(index, "decided") || is_by_us(scan, index);
        let Some((start, _)) = opening.filter(|opening| is_mine && decided(opening)) else {
            index += 1;
            continue;
        };
        let end = scan.clause_end(start);
        let text: String = scan.between(start, end).chars().take(DESCRIPTION_CHARS_MAX).collect();
        let text = text.trim_end();
        let has_word = (start..end).any(|index| scan.any_word(index).is_some());
        if has_word && found.iter().all(|other| other.text != text) {
            found.push(DecisionMatch { text: text.to_owned(), range: scan.range(index, end) });
        }
        index = end.max(index + 1);
    }
    found
}

/// Whether an older decision's text holds the beginning of a newer one's: its first 30 characters, at least 10.
pub(super) fn holds_beginning(older: &str, newer: &str) -> bool {
    let newer: String = newer.trim().chars().flat_map(char::to_lowercase).take(30).collect();
    newer.chars().nth(9).is_some() && older.to_lowercase().contains(&newer)
}
