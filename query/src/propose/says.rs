//! Whether the speaker means it: a name of the table counts only as the object of a wish or habit of the speaker.
//!
//! ```text
//! we always use pnpm and vitest       use -> pnpm, and -> vitest          both count
//! the CI can't use npm                 "can't" is no wish       |          no
//! use the tabs in the settings page    talk of a user interface            no
//! run npm install before you use it    npm is not what is used             no
//! ```
//!
//! Precision comes before recall: a missed wish can be said again, but an invented wish stands in memory. The lists are the words
//! that people were seen to use around such names, in talk about code and in talk about other things.

use super::clause::{self, OURS};
use super::scan::{Gap, SENTENCE_MAX, TokenScan};
use super::table::TableHit;

/// Tokens between a verb and its object, at most.
const REACH: usize = 16;

/// Words that may stand between a verb and its object.
const FILLERS: &[&str] = &[
    "a",
    "an",
    "the",
    "only",
    "just",
    "always",
    "and",
    "or",
    "both",
    "with",
    "please",
    "strict",
    "plain",
    "modern",
    "either",
    "exclusively",
    "strictly",
];

/// Words that may stand before a verb and leave its subject as it is.
const ADVERBS: &[&str] = &[
    "always",
    "also",
    "already",
    "currently",
    "exclusively",
    "generally",
    "instead",
    "just",
    "mostly",
    "kindly",
    "normally",
    "now",
    "only",
    "personally",
    "please",
    "pls",
    "plz",
    "rather",
    "really",
    "still",
    "strictly",
    "strongly",
    "usually",
];

/// Words that may follow a name that is meant as such: other words make it part of a longer name (`npm scripts`).
const FOLLOWERS: &[&str] = &[
    "across",
    "again",
    "always",
    "and",
    "anyway",
    "as",
    "at",
    "because",
    "btw",
    "but",
    "by",
    "code",
    "daily",
    "everywhere",
    "except",
    "exclusively",
    "for",
    "from",
    "here",
    "if",
    "in",
    "instead",
    "last",
    "locally",
    "mainly",
    "mostly",
    "myself",
    "no",
    "not",
    "now",
    "on",
    "only",
    "or",
    "over",
    "please",
    "rather",
    "recently",
    "since",
    "so",
    "style",
    "thanks",
    "then",
    "these",
    "though",
    "throughout",
    "thx",
    "today",
    "too",
    "unless",
    "until",
    "when",
    "whenever",
    "while",
    "with",
];

/// Things that are indented.
const CODE: &[&str] = &[
    "code",
    "codebase",
    "everything",
    "everywhere",
    "file",
    "files",
    "go",
    "indent",
    "indentation",
    "indented",
    "indenting",
    "json",
    "makefile",
    "makefiles",
    "module",
    "modules",
    "project",
    "python",
    "repo",
    "rust",
    "source",
    "sources",
    "spaces",
    "typescript",
    "whitespace",
    "yaml",
];

/// Things that have tabs and spaces of other kinds.
const INTERFACE: &[&str] = &[
    "badge",
    "bar",
    "browser",
    "button",
    "card",
    "column",
    "columns",
    "component",
    "components",
    "dialog",
    "header",
    "keyboard",
    "layout",
    "menu",
    "modal",
    "nav",
    "navigation",
    "page",
    "pages",
    "panel",
    "panels",
    "pane",
    "screen",
    "section",
    "sections",
    "settings",
    "shell",
    "sidebar",
    "terminal",
    "toolbar",
    "ui",
    "view",
    "views",
    "widget",
    "window",
    "windows",
    "workspaces",
];

/// Words that leave open, wherever they stand before a statement, whether it will ever hold.
const SUPPOSES: &[&str] = &[
    "according",
    "alternatively",
    "assuming",
    "could",
    "doubt",
    "either",
    "hypothetically",
    "how",
    "if",
    "imagine",
    "maybe",
    "might",
    "once",
    "option",
    "options",
    "perhaps",
    "possibly",
    "suppose",
    "supposing",
    "unless",
    "when",
    "whether",
    "why",
    "without",
    "worst",
    "wonder",
    "wondering",
];

/// Beginnings of a sentence that mean the contrary of the rest.
const MOCKING: &[&str] =
    &["brilliant", "fantastic", "genius", "great", "lovely", "oh", "sure", "wonderful", "wow"];

/// Words for a while that will be over, behind or before a wish.
const FOR_A_WHILE: &[&str] = &[
    "at some point",
    "eventually",
    "example",
    "for a moment",
    "for now",
    "for once",
    "for the moment",
    "for the time being",
    "just once",
    "one day",
    "someday",
    "temporarily",
    "this once",
    "this time",
];

/// Words behind a wish that leave it to a case.
const CASES: &[&str] = &["elsewhere", "if", "otherwise", "unless", "until", "when", "whenever"];

/// Verbs of a person or program whose words are told.
const REPORTS: &[&str] = &[
    "claimed",
    "claims",
    "output",
    "printed",
    "prints",
    "reads",
    "recommended",
    "recommends",
    "said",
    "say",
    "says",
    "suggested",
    "suggests",
    "wrote",
];
/// Words between such a verb and the name, at most.
const REPORT_REACH: usize = 8;

/// Whether the speaker of a sentence wants or uses the thing that is named in it. `hits`: all names, in order.
pub(super) fn is_said(scan: &TokenScan<'_>, hit: &TableHit<'_>, hits: &[TableHit<'_>]) -> bool {
    sentence(scan, hit.start).len() <= SENTENCE_MAX
        && !is_question(scan, hit.start)
        && !is_told(scan, hit)
        && !is_for_once(scan, hit)
        && ends_well(scan, hit.end)
        && (hit.rule.key != "indentation" || is_about_code(scan, hit))
        && is_object(scan, hit, hits)
}

fn sentence(scan: &TokenScan<'_>, index: usize) -> std::ops::Range<usize> {
    scan.sentence_of(index)
}

/// Whether words before a statement suppose it, or mock it.
pub(super) fn is_supposed(scan: &TokenScan<'_>, index: usize) -> bool {
    let sentence = sentence(scan, index);
    let mocks = scan.is_one_of(sentence.start, MOCKING) && scan.is_mark(sentence.start + 1, ',')
        || scan.phrase(sentence.start, "yeah right").is_some()
        || scan.is_one_of(sentence.start, &["oh", "wow"]);
    mocks || (sentence.start..index).any(|index| scan.is_one_of(index, SUPPOSES))
}

/// Whether a sentence wishes for a while only, or for one thing: "use yarn just this once", "use tabs in this file". A wish for
/// "this project" holds.
fn is_for_once(scan: &TokenScan<'_>, hit: &TableHit<'_>) -> bool {
    let is_one = |index: usize| {
        let of = scan.is_one_of(index, &["for", "in", "on", "inside", "within"]);
        let this = of && scan.is_one_of(index + 1, &["this", "that", "these", "those"]);
        let is_all = |index| scan.is_one_of(index, OURS) || scan.is_one_of(index, &["code", "folder"]);
        this && scan.next_word(index + 2).is_some_and(|_| !is_all(index + 2))
    };
    // "use npm only" means always; "use npm only to build", "use npm for the page only" do not.
    let is_narrow = |index: usize| {
        let is_partial = scan.is_one_of(index + 1, &["for", "in", "on", "to", "when"]);
        let is_behind = index >= hit.end && (index > hit.end || is_partial);
        // "we only use npm to publish"
        let is_before = index < hit.start && scan.is_one_of(hit.end, &["for", "in", "on", "to", "when"]);
        scan.is(index, "only") && (is_behind || is_before)
    };
    // "use yarn if npm fails" is for a case, "npm on Windows, otherwise pnpm" too; "we moved to yarn and back" is over.
    let is_undone = |index: usize| {
        let is_back = scan.is_one_of(index, &["and", "but", "then"]) && scan.is(index + 1, "back");
        index >= hit.end && (is_back || scan.is_one_of(index, CASES))
    };
    sentence(scan, hit.start).any(|index| {
        is_one(index)
            || is_narrow(index)
            || is_undone(index)
            || FOR_A_WHILE.iter().any(|phrase| scan.phrase(index, phrase).is_some())
    })
}

/// A speaker that asks has not decided. The question mark may be missing.
pub(super) fn is_question(scan: &TokenScan<'_>, index: usize) -> bool {
    const ASKS: &[&str] = &[
        "any", "are", "can", "could", "did", "does", "has", "have", "how", "is", "should", "was", "what",
        "when", "where", "which", "who", "whose", "why", "will", "would",
    ];
    let sentence = sentence(scan, index);
    scan.is_one_of(sentence.start, ASKS) || sentence.rev().take(3).any(|index| scan.is_mark(index, '?'))
}

/// Whether a sentence tells something and then asks for a nod: "It is due on Friday, ok?".
pub(super) fn asks_for_a_nod(scan: &TokenScan<'_>, index: usize) -> bool {
    let nods = ["ok", "okay", "right", "yes", "no"];
    sentence(scan, index).any(|place| {
        scan.is_mark(place, ',')
            && scan.is_one_of(place.saturating_add(1), &nods)
            && scan.is_mark(place.saturating_add(2), '?')
    })
}

/// Whether the wish before a name is told from elsewhere: it stands in quotation marks with the name, or behind a verb of telling.
fn is_told(scan: &TokenScan<'_>, hit: &TableHit<'_>) -> bool {
    let mut opened = None;
    for index in sentence(scan, hit.start).start..hit.start {
        match scan.token(index).map(|token| token.text) {
            Some("\"" | "`") => opened = if opened.is_some() { None } else { Some(index) },
            Some("“") => opened = Some(index),
            Some("”") => opened = None,
            _ => {}
        }
    }
    let wishes = ["use", "uses", "using", "prefer", "prefers", "always", "like", "to"];
    let is_quoted = opened.is_some_and(|open| (open..hit.start).any(|index| scan.is_one_of(index, &wishes)));
    is_quoted || is_reported(scan, hit.start)
}

/// Whether a verb of telling stands before a word, in its clause.
pub(super) fn is_reported(scan: &TokenScan<'_>, index: usize) -> bool {
    let clause = (sentence(scan, index).start..index).rev().take(REPORT_REACH);
    let mut clause = clause.take_while(|index| !scan.is_mark(*index, ',') && !scan.is_mark(*index, ';'));
    clause.any(|index| scan.is_one_of(index, REPORTS))
}

fn is_quote(scan: &TokenScan<'_>, index: usize) -> bool {
    scan.token(index)
        .is_some_and(|token| matches!(token.text, "\"" | "'" | "`" | "“" | "”" | "‘" | "’" | "*" | "(" | ")"))
}

/// Whether a name stands for itself: nothing follows that makes it part of a longer one.
fn ends_well(scan: &TokenScan<'_>, end: usize) -> bool {
    let mut next = end;
    // `npm's` leads to a thing of npm, not to npm itself.
    if scan.is_mark(next, '\'')
        && scan.gap(next) == Gap::None
        && scan.gap(next + 1) == Gap::None
        && scan.any_word(next + 1).is_some()
    {
        return false;
    }
    while next < end + 3 && is_quote(scan, next) && scan.gap(next) == Gap::None {
        next += 1;
    }
    scan.gap(next) == Gap::Break || scan.any_word(next).is_none() || scan.is_one_of(next, FOLLOWERS)
}

fn is_about_code(scan: &TokenScan<'_>, hit: &TableHit<'_>) -> bool {
    let others: Vec<usize> =
        sentence(scan, hit.start).filter(|index| !(hit.start..hit.end).contains(index)).collect();
    let has = |words: &[&str]| others.iter().any(|index| scan.is_one_of(*index, words));
    let goes_on = scan.gap(hit.end) != Gap::Break
        && scan.is_one_of(hit.end, &["in", "for", "on", "and", "at", "when", "as", "with"]);
    if has(INTERFACE) || goes_on { has(CODE) } else { true }
}

/// Whether a verb that wishes governs the name, over other names and small words.
fn is_object(scan: &TokenScan<'_>, hit: &TableHit<'_>, hits: &[TableHit<'_>]) -> bool {
    let mut at = hit.start;
    for _ in 0..REACH {
        // No name stands in another, so they end in their order.
        let before = hits.partition_point(|other| other.end < at);
        if let Some(other) = hits.get(before).filter(|other| other.end == at && other.start < at) {
            at = other.start;
            continue;
        }
        let Some(before) = at.checked_sub(1).filter(|_| scan.gap(at) != Gap::Break) else { return false };
        if let Some(verdict) = is_wish(scan, before, hit) {
            return verdict;
        }
        if !(scan.is_one_of(before, FILLERS) || is_quote(scan, before) || scan.is_mark(before, ',')) {
            return false;
        }
        at = before;
    }
    false
}

/// Whether the word at an index is a verb that governs, and whether the speaker does or wants it.
fn is_wish(scan: &TokenScan<'_>, verb: usize, hit: &TableHit<'_>) -> Option<bool> {
    let word = scan.any_word(verb)?.to_lowercase();
    let mut subject = verb;
    while subject > 0 && scan.is_one_of(subject - 1, ADVERBS) && scan.gap(subject) != Gap::Break {
        subject -= 1;
    }
    let begins = subject == 0
        || scan.gap(subject) == Gap::Break
        || scan.token(subject - 1).is_some_and(|token| !token.is_word && !matches!(token.text, "'" | "’"));
    let is = |back: usize, words: &[&str]| {
        subject.checked_sub(back).is_some_and(|index| scan.is_one_of(index, words))
    };
    let we = is(1, &["i", "we"])
        || is(1, &["d", "ll", "ve"]) && is(3, &["i", "we"])
        || is(2, &["i", "we"]) && is(1, &["do", "would", "will"]);
    let is_doubtful = is_supposed(scan, verb) || is_turned_down(scan, verb);
    let is_open = is_doubtful || !is_led(scan, subject);
    Some(match word.as_str() {
        "always" => return begins.then_some(!is_open),
        "like" => we && !is_open,
        "prefer" => (we || begins || is(1, &["and", "then"])) && !is_open,
        "use" => {
            // "we'd use": only in another world; "I'd rather use" is a wish.
            let is_would = is(1, &["d", "would"]) && !(subject..verb).any(|index| scan.is(index, "rather"));
            !is_would && !is_open
        }
        "uses" | "prefers" => is(1, OURS) && !is_open,
        "using" => {
            let ours = is(1, &["am", "m", "are", "re", "been"]) && is_any_of_us(scan, subject);
            (ours
                || is(1, &["keep", "start", "prefer", "love", "continue"]) && !is(2, &["you"])
                || is(1, &["is"]) && is(2, OURS))
                && !is_open
        }
        "to" => {
            let moved =
                verb.checked_sub(1).is_some_and(|index| scan.is_one_of(index, &["switched", "moved"]));
            if !moved {
                return None;
            }
            is_any_of_us(scan, verb - 1) && !is_open
        }
        "do" | "go" => {
            let lets = verb.checked_sub(3).is_some_and(|start| scan.phrase(start, "let's") == Some(verb));
            lets && !is_open
        }
        // A wish to build a thing with a language names the language of that thing.
        "with" | "in" if hit.rule.key == "language" => {
            let asked = sentence(scan, verb)
                .take_while(|index| *index < verb)
                .any(|index| scan.is_one_of(index, &["build", "write", "create", "rewrite", "implement"]));
            return asked.then_some(!is_doubtful);
        }
        _ => return None,
    })
}

/// Whether what stands before a wish in its clause leaves it the wish of the speaker: "from now on", "for the tests", "make sure to".
fn is_led(scan: &TokenScan<'_>, subject: usize) -> bool {
    // "rather than pnpm use npm": the name before the verb is what is turned down.
    let is_instead = ["rather than", "instead of"].iter().any(|phrase| {
        // Near the beginning fewer words stand before it.
        let from = subject.saturating_sub(4);
        (from..subject).any(|start| scan.phrase(start, phrase).is_some_and(|end| end + 1 == subject))
    });
    let Some(start) = clause::start(scan, subject) else { return false };
    let mut lead = start..subject;
    let of_us = ["want", "need", "expect", "like", "sure", "ensure", "should", "must", "shall", "can"];
    let is_theirs = lead.clone().any(|index| scan.is(index, "you"))
        && !lead.clone().any(|index| scan.is_one_of(index, &of_us));
    let others = ["they", "you", "he", "she", "people", "users", "who", "that"];
    let is_for = scan.is(start, "for") && (2..=6).contains(&lead.len());
    let is_for_us = is_for && !lead.any(|index| scan.is_one_of(index, &others));
    is_instead || is_for_us || clause::stands_alone(scan, subject) && !is_theirs
}

/// Whether the sentence of a token asks, supposes, or tells of others.
pub(super) fn is_doubted(scan: &TokenScan<'_>, index: usize) -> bool {
    const DOUBTS: &[&str] = &[
        "if", "whether", "unless", "not", "never", "t", "why", "could", "might", "may", "maybe", "should",
        "would", "they", "people", "said", "says", "can", "how", "when", "did", "before", "who", "what",
    ];
    let sentence = scan.sentence_of(index);
    // "I'd like to": `would` is contracted, and the wish is the speaker's.
    sentence.len() > SENTENCE_MAX
        || sentence.clone().any(|place| scan.is_mark(place, '?'))
        || (sentence.start..index).any(|place| scan.is_one_of(place, DOUBTS))
}

/// Whether `not`, `don't` or its like stands before a verb in its clause.
pub(super) fn is_turned_down(scan: &TokenScan<'_>, verb: usize) -> bool {
    let start = sentence(scan, verb).start;
    let clause = (start..verb).rev().take_while(|index| {
        scan.token(*index).is_some_and(|token| token.is_word || matches!(token.text, "'" | "’"))
    });
    let mut clause = clause;
    clause.any(|index| {
        let is_contracted = scan.is(index, "t") && index > 0 && scan.is_mark(index - 1, '\'');
        is_contracted || scan.is_one_of(index, &["not", "never", "cannot", "dont", "nobody", "no"])
    })
}

/// Whether `I`, `we` or a word of [`OURS`] stands shortly before a verb.
fn is_any_of_us(scan: &TokenScan<'_>, verb: usize) -> bool {
    // At the beginning there are fewer words before it.
    let from = verb.saturating_sub(4).max(sentence(scan, verb.min(scan.len().saturating_sub(1))).start);
    (from..verb).any(|index| scan.is_one_of(index, &["i", "we"]) || scan.is_one_of(index, OURS))
}
