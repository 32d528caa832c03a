//! Facts that a message states about the user and the calendar.

use std::ops::Range;

use super::clause;
use super::scan::{Gap, TokenScan, same};
use acpdb_engine::event::Lifespan;

/// Characters of a role, at most.
const ROLE_CHARS_MAX: usize = 100;

/// Words after "I'm" that are no name, whatever their case: articles, adverbs, adjectives of state.
const NO_NAMES: &[&str] = &[
    "a",
    "able",
    "about",
    "afraid",
    "against",
    "all",
    "almost",
    "already",
    "also",
    "always",
    "an",
    "and",
    "angry",
    "as",
    "at",
    "available",
    "aware",
    "away",
    "awake",
    "back",
    "bored",
    "busy",
    "certain",
    "cold",
    "confident",
    "confused",
    "convinced",
    "curious",
    "currently",
    "dead",
    "definitely",
    "delighted",
    "disappointed",
    "done",
    "down",
    "excited",
    "exhausted",
    "familiar",
    "fine",
    "finished",
    "for",
    "free",
    "from",
    "frustrated",
    "full",
    "glad",
    "good",
    "grateful",
    "great",
    "happy",
    "here",
    "home",
    "hungry",
    "ill",
    "impressed",
    "in",
    "inclined",
    "interested",
    "into",
    "just",
    "late",
    "lost",
    "mad",
    "maybe",
    "more",
    "my",
    "near",
    "never",
    "new",
    "no",
    "not",
    "now",
    "of",
    "off",
    "ok",
    "okay",
    "on",
    "only",
    "open",
    "our",
    "out",
    "over",
    "pleased",
    "positive",
    "pretty",
    "probably",
    "proud",
    "quite",
    "ready",
    "really",
    "right",
    "sad",
    "satisfied",
    "scared",
    "serious",
    "sick",
    "so",
    "sorry",
    "still",
    "stuck",
    "super",
    "supposed",
    "sure",
    "surprised",
    "that",
    "the",
    "there",
    "tired",
    "to",
    "too",
    "unable",
    "unaware",
    "under",
    "unfamiliar",
    "unsure",
    "up",
    "upset",
    "used",
    "very",
    "well",
    "willing",
    "with",
    "worried",
    "wrong",
    "yes",
    "yet",
    "your",
];

/// Words after "my name is" that tell of the name, and are none.
const OF_NAMES: &[&str] = &[
    "blank",
    "cut",
    "different",
    "displayed",
    "empty",
    "gone",
    "hardcoded",
    "hidden",
    "included",
    "listed",
    "long",
    "mentioned",
    "missing",
    "misspelled",
    "shown",
    "spelled",
    "spelt",
    "taken",
    "truncated",
    "unknown",
    "written",
];

/// Words after "I'm a" that begin no role.
const NO_ROLES: &[&str] = &[
    "at", "big", "bit", "couple", "few", "for", "great", "huge", "little", "lot", "maybe", "no", "tad",
    "total", "while", "yes",
];

/// Words that make what stands after "I'm a" a liking, a distance or a mood.
const NO_TRADES: &[&str] = &[
    "again",
    "anymore",
    "away",
    "believer",
    "bird",
    "camper",
    "day",
    "days",
    "dummy",
    "fan",
    "fool",
    "hater",
    "hour",
    "hours",
    "idiot",
    "lover",
    "mess",
    "minute",
    "minutes",
    "moment",
    "month",
    "months",
    "percent",
    "person",
    "second",
    "seconds",
    "step",
    "steps",
    "stranger",
    "sucker",
    "supporter",
    "sure",
    "today",
    "tonight",
    "too",
    "victim",
    "week",
    "weeks",
];

/// Words that may follow a date; others go on with what became of the day: "the demo on Friday failed".
const AFTER_DATES: &[&str] = &[
    "afternoon",
    "already",
    "and",
    "at",
    "because",
    "but",
    "by",
    "evening",
    "latest",
    "morning",
    "next",
    "night",
    "noon",
    "please",
    "so",
    "then",
    "this",
    "too",
    "with",
];

const WEEKDAYS: &[&str] = &["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// A fact in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ProposedFact {
    pub(super) subject: &'static str,
    pub(super) category: &'static str,
    pub(super) lifespan: Lifespan,
    pub(super) confidence: u8,
    /// The beginning of the text, the same for all facts of the subject.
    pub(super) form: &'static str,
    pub(super) text: String,
    pub(super) range: Range<usize>,
}

/// The first fact of each subject, in the order name, role, deadline, event, presentation.
pub(super) fn find(scan: &TokenScan<'_>) -> Vec<ProposedFact> {
    let patterns: [fn(&TokenScan<'_>, usize) -> Option<ProposedFact>; 5] =
        [name, role, deadline, event, presentation];
    let mut first: [Option<ProposedFact>; 5] = Default::default();
    for index in 0..scan.len() {
        for (pattern, slot) in patterns.iter().zip(&mut first) {
            if slot.is_none() {
                *slot = pattern(scan, index);
            }
        }
    }
    first.into_iter().flatten().collect()
}

/// `my name is X`; `I'm X`, `I am X` if X looks like a name.
fn name(scan: &TokenScan<'_>, index: usize) -> Option<ProposedFact> {
    let (start, is_said) = match scan.phrase(index, "my name is") {
        Some(next) => (next, true),
        None => (i_am(scan, index)?, false),
    };
    let word = scan.next_word(start)?;
    let is_capital = is_capitalised(word);
    let is_no_name = NO_NAMES.iter().any(|no_name| same(no_name, word));
    let tells_of_it = OF_NAMES.iter().any(|word_of| same(word_of, word));
    let is_name = if is_said {
        is_capital || !is_no_name && !tells_of_it
    } else {
        is_capital && !is_no_name && !is_ing(word) && !is_loud(word)
    };
    if !is_name || word.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut end = joined(scan, start + 1);
    if scan.is_mark(end, '\'') && scan.gap(end) == Gap::None && scan.gap(end + 1) == Gap::None {
        // "I'm Dana's friend" does not tell the speaker's name.
        return None;
    }
    for _ in 0..2 {
        let next = scan.any_word(end).filter(|word| scan.gap(end) == Gap::Space && is_capitalised(word));
        if next.is_none_or(|word| word == "I") {
            break;
        }
        end = joined(scan, end + 1);
    }
    if !ends_as_name(scan, end) || !clause::stands_alone(scan, index) {
        return None;
    }
    let range = scan.range(index, end);
    let form = "User's name is ";
    let text = format!("{form}{}", scan.between(start, end));
    Some(ProposedFact {
        subject: "name",
        category: "personal",
        lifespan: Lifespan::Permanent,
        confidence: 90,
        form,
        text,
        range,
    })
}

/// `I'm a X`, up to the end of the role.
fn role(scan: &TokenScan<'_>, index: usize) -> Option<ProposedFact> {
    let article = i_am(scan, index)?;
    let start = article + 1;
    if scan.gap(article) == Gap::None
        || !scan.is_one_of(article, &["a", "an"])
        || scan.gap(start) != Gap::Space
    {
        return None;
    }
    if scan.any_word(start).is_none() || scan.is_one_of(start, NO_ROLES) {
        return None;
    }
    let stops = |index: usize| {
        scan.gap(index) == Gap::Break
            || scan.is_full_stop(index)
            || [',', ';', '!', '?', ':'].iter().any(|mark| scan.is_mark(index, *mark))
            || scan.is_one_of(index, &["at", "for", "so", "but", "because"]) && scan.gap(index) != Gap::None
            || scan.is(index, "and")
                && scan.is_one_of(index + 1, &["i", "it", "my", "the", "this", "that", "we", "you"])
    };
    let mut end = start;
    while end < scan.len() && !stops(end) {
        end += 1;
    }
    let is_asked = scan.is_mark(end, '?');
    // "a beginner's nightmare"
    let is_owned = (start..end).any(|index| scan.is_mark(index, '\'') && scan.is(index + 1, "s"));
    if is_asked
        || is_owned
        || is_played(scan, index)
        || (start..end).any(|index| scan.is_one_of(index, NO_TRADES))
    {
        return None;
    }
    let said: String = scan.between(start, end).chars().take(ROLE_CHARS_MAX).collect();
    let range = scan.range(index, end);
    let form = "User is a ";
    let text = format!("{form}{}", said.trim_end());
    Some(ProposedFact {
        subject: "role",
        category: "personal",
        lifespan: Lifespan::Permanent,
        confidence: 80,
        form,
        text,
        range,
    })
}

/// Whether a role is only played: "if I'm a user", "as a user I am a ..", "as if", "like I'm a child".
fn is_played(scan: &TokenScan<'_>, index: usize) -> bool {
    let sentence = scan.sentence_of(index).start;
    let begins_as = scan.is(sentence, "as") && scan.is_one_of(sentence + 1, &["a", "an"]);
    let is_likened = index.checked_sub(1).is_some_and(|last| scan.is_one_of(last, &["like", "that"]));
    begins_as || is_likened || !clause::stands_alone(scan, index) || super::says::is_supposed(scan, index)
}

/// `deadline|due [is] [on] D`.
fn deadline(scan: &TokenScan<'_>, index: usize) -> Option<ProposedFact> {
    let next = scan.is_one_of(index, &["deadline", "due"]).then_some(index + 1)?;
    dated(scan, index, skip(scan, next, &["is", "on"]), "deadline", "Deadline on ")
}

/// `meeting|presentation|demo [is] [on] D`.
fn event(scan: &TokenScan<'_>, index: usize) -> Option<ProposedFact> {
    let next = scan.is_one_of(index, &["meeting", "presentation", "demo"]).then_some(index + 1)?;
    dated(scan, index, skip(scan, next, &["is", "on"]), "event", "Event on ")
}

/// `presenting|demoing [on] D`.
fn presentation(scan: &TokenScan<'_>, index: usize) -> Option<ProposedFact> {
    let next = scan.is_one_of(index, &["presenting", "demoing"]).then_some(index + 1)?;
    dated(scan, index, skip(scan, next, &["on"]), "presentation", "Presentation on ")
}

/// The index after `I'm` or `I am`.
fn i_am(scan: &TokenScan<'_>, index: usize) -> Option<usize> {
    scan.phrase(index, "i'm").or_else(|| scan.phrase(index, "i am"))
}

/// The index after these words; each word may be absent.
fn skip(scan: &TokenScan<'_>, index: usize, words: &[&str]) -> usize {
    words.iter().fold(index, |next, word| {
        let is_there = scan.gap(next) != Gap::None && scan.is(next, word);
        next + usize::from(is_there)
    })
}

/// A fact about the day that stands at `at`: a weekday, or two numbers with a slash.
fn dated(
    scan: &TokenScan<'_>,
    index: usize,
    at: usize,
    subject: &'static str,
    form: &'static str,
) -> Option<ProposedFact> {
    // Who asks does not know the day, unless the question only asks for a nod.
    if super::says::is_question(scan, index) && !super::says::asks_for_a_nod(scan, index) {
        return None;
    }
    let word = scan.next_word(at)?;
    let is_number = |text: &str| text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    let end = if WEEKDAYS.iter().any(|day| same(day, word)) {
        at + 1
    } else {
        let has_slash =
            scan.is_mark(at + 1, '/') && scan.gap(at + 1) == Gap::None && scan.gap(at + 2) == Gap::None;
        let second = scan.any_word(at + 2).filter(|second| has_slash && is_number(word) && is_number(second));
        second.map(|_| at + 3)?
    };
    let goes_on = scan.gap(end) != Gap::Break && scan.any_word(end).is_some();
    let is_other = goes_on && !scan.is_one_of(end, AFTER_DATES);
    if is_other || !is_planned(scan, index) || super::says::is_supposed(scan, index) {
        return None;
    }
    let range = scan.range(index, end);
    let text = format!("{form}{}", scan.between(at, end));
    Some(ProposedFact {
        subject,
        category: "schedule",
        lifespan: Lifespan::Session,
        confidence: 80,
        form,
        text,
        range,
    })
}

/// Whether the clause of a thing with a date tells of one that is to come: it begins with the thing, or with whose it is. "a meeting",
/// "every meeting", "tests for deadline" are of another kind, and a verb before it may have turned it into anything.
fn is_planned(scan: &TokenScan<'_>, index: usize) -> bool {
    const WHOSE: &[&str] = &["everything", "the", "our", "my", "this", "its", "it", "we", "i"];
    const NOT: &[&str] =
        &["no", "not", "never", "t", "was", "were", "missed", "had", "might", "may", "would"];
    let Some(start) = clause::start(scan, index) else { return false };
    let mut lead = (start..index).filter(|index| scan.any_word(*index).is_some());
    if lead.clone().any(|index| scan.is_one_of(index, NOT)) {
        return false;
    }
    // "the mock returns due on Tuesday": a verb before it, and none of being.
    let is_said_of = !scan.is(index, "due") || {
        let before = (start..index).rev().find(|index| scan.any_word(*index).is_some());
        let being = ["is", "are", "s", "it", "was", "be", "this", "that"];
        before.is_none_or(|before| scan.is_one_of(before, &being) || scan.is_one_of(before, WHOSE))
    };
    if !is_said_of {
        return false;
    }
    lead.next().is_none_or(|first| scan.is_one_of(first, WHOSE))
        || clause::stands_alone(scan, index)
        || scan.is_one_of(start + 1, &["due"])
}

/// The index after parts of a name that are joined by a hyphen or an apostrophe and begin with a capital.
fn joined(scan: &TokenScan<'_>, index: usize) -> usize {
    let mut end = index;
    while (scan.is_mark(end, '-') || scan.is_mark(end, '\''))
        && scan.gap(end) == Gap::None
        && scan.gap(end + 1) == Gap::None
        && scan.any_word(end + 1).is_some_and(is_capitalised)
    {
        end += 2;
    }
    end
}

/// Whether a sentence goes on behind "I'm Dana" as one does behind a name: with a mark, or a few words. "I'm Blocked by the review",
/// "I am Fairly certain" go on otherwise.
fn ends_as_name(scan: &TokenScan<'_>, end: usize) -> bool {
    const AFTER_NAMES: &[&str] = &["and", "at", "from", "here", "of", "the", "this", "your"];
    let next = scan.any_word(end).filter(|_| scan.gap(end) != Gap::Break);
    next.is_none_or(|next| is_capitalised(next) || scan.is_one_of(end, AFTER_NAMES))
}

/// Whether a word is an abbreviation, or shouted: "I'm AFK".
fn is_loud(word: &str) -> bool {
    word.chars().nth(1).is_some() && word.chars().all(char::is_uppercase)
}

fn is_capitalised(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
}

/// Whether a word looks like a verb in progress. Names such as Ming are shorter than such verbs.
fn is_ing(word: &str) -> bool {
    word.chars().nth(4).is_some() && word.to_lowercase().ends_with("ing")
}
