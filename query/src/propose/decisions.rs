//! Decisions that an assistant's message states.

use std::ops::Range;

use super::clause;
use super::says;
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
const USES: [&str; 3] = ["i'll use", "we'll use", "let's go with"];

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
    "option",
    "plan",
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
    "gdb",
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
    "ssh",
    "strace",
    "sudo",
    "tail",
    "task",
    "tmux",
    "todowrite",
    "write",
    "xargs",
];

/// Words for a thing that is there for a while, and for a manner.
const PASSING: &[&str] = &[
    "care",
    "caution",
    "dummy",
    "disposable",
    "placeholder",
    "quick",
    "scratch",
    "temporary",
    "throwaway",
    "tmp",
];

/// Words for such a thing that stand behind its name.
const WORK_THINGS: &[&str] =
    &["agent", "agents", "browser", "command", "script", "skill", "subagent", "subagents", "tool", "tools"];

/// Words for an agent's next step with the thing that it uses.
const WORK: &[&str] = &[
    "ask",
    "begin",
    "check",
    "confirm",
    "compare",
    "count",
    "debug",
    "determine",
    "double",
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
    "recheck",
    "reproduce",
    "review",
    "run",
    "search",
    "see",
    "show",
    "start",
    "stop",
    "test",
    "trace",
    "track",
    "try",
    "understand",
    "verify",
    "view",
    "wait",
];

/// Words behind "the" for a thing that is there: taking it is a step, no decision.
const THERE_ALREADY: &[&str] = &[
    "above",
    "current",
    "existing",
    "first",
    "flow",
    "following",
    "given",
    "last",
    "output",
    "previous",
    "provided",
    "same",
];

/// Whether the words that begin at `index`, with their object at `start`, decide something here and now.
fn is_decided(scan: &TokenScan<'_>, index: usize, start: usize, end: usize, is_use: bool) -> bool {
    // An empty stretch asks nothing.
    if scan.is_mark(end.saturating_sub(1), '?') || !is_ours(scan, index) {
        return false;
    }
    // A longer clause is not gone through again for each of its openings.
    let end = end.min(start.saturating_add(SENTENCE_MAX));
    let mut words = (start..end).filter(|index| scan.any_word(*index).is_some());
    let first = words.next().unwrap_or(start);
    let is_work = scan.is_one_of(first, WORK_TOOLS)
        || (first..end.min(first + 2)).any(|index| scan.is_one_of(index, PASSING))
        || (start..end.min(start + 5)).any(|index| scan.is_one_of(index, WORK_THINGS))
        || (start..end).any(|index| scan.is(index, "to") && scan.is_one_of(index + 1, WORK));
    if scan.is(first, "do") && scan.any_word(first + 1).is_none() {
        return false;
    }
    let is_part = scan.any_word(first).is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
    // "I'll use the parser": it is there. "Let's go with the smaller image": it was chosen.
    let is_chosen = scan.is(start.saturating_sub(1), "with") && !scan.is_one_of(first + 1, THERE_ALREADY);
    let is_there = scan.is(first, "the") && !is_chosen || is_part;
    // "will be" says what is to come; "is" may judge what is there.
    let is_judged = scan.is(start.saturating_sub(1), "is") && !is_thing(scan, start, end);
    let sentence = scan.sentence_of(index);
    let is_open = says::is_supposed(scan, index)
        || says::is_reported(scan, index)
        || says::is_question(scan, index)
        || (start..end).any(|index| scan.is_one_of(index, &["if", "or", "unless"]))
        || sentence.take(SENTENCE_MAX).any(|index| scan.is(index, "example"));
    let is_step =
        scan.is(index, "decided") && (scan.is_one_of(first, WORK) || scan.is_one_of(first, WORK_TOOLS));
    !(is_judged || is_open || is_step || is_use && (scan.is_one_of(first, NO_OBJECTS) || is_work || is_there))
}

/// Whether "the approach is" goes on with a thing or a deed: "is a heap", "is to wait", "is Redis". All else may be a judgement
/// ("is fine", "is not clear to me", "is a good one") or a place ("is below").
fn is_thing(scan: &TokenScan<'_>, start: usize, end: usize) -> bool {
    const VERDICTS: &[&str] = &[
        "bit",
        "disaster",
        "failure",
        "hack",
        "improvement",
        "little",
        "lot",
        "mess",
        "one",
        "success",
        "tad",
    ];
    let names = |word: &str| word.chars().any(|character| character.is_uppercase() || character.is_numeric());
    let begins = ["to", "a", "an", "one", "two", "three"];
    let is_judged = (start + 1..end).any(|index| scan.is_one_of(index, VERDICTS)) || scan.is(start + 1, "be");
    (scan.is_one_of(start, &begins) || scan.any_word(start).is_some_and(names)) && !is_judged
}

/// Whether nothing before an opening makes the decision another's, or no decision: "the author decided to", "their solution is".
fn is_ours(scan: &TokenScan<'_>, index: usize) -> bool {
    let before = index.checked_sub(1).filter(|_| scan.gap(index) != Gap::Break);
    if scan.is(index, "decided") {
        // "we'd decided" is over.
        let is_over = before.is_some_and(|before| scan.is_one_of(before, &["d", "had", "was"]));
        let Some(start) = clause::start(scan, index) else { return false };
        let others = ["you", "team", "company", "everybody", "everyone", "this", "that"];
        let is_theirs = (start..index).any(|index| scan.is_one_of(index, &others));
        if is_over || is_theirs {
            return false;
        }
    }
    clause::stands_alone(scan, index) || clause::is_led_in(scan, index)
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
        let Some((start, _)) = opening.filter(decided) else {
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
