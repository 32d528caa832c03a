//! Facts that a message states about the user and the calendar.

use std::ops::Range;

use super::scan::{Gap, SENTENCE_MAX, TokenScan, same};
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
const NO_ROLES: &[&str] = &["at", "bit", "couple", "few", "for", "little", "lot", "tad", "while"];

/// Words that make what stands after "I'm a" a liking, a distance or a mood.
const NO_TRADES: &[&str] = &[
    "believer",
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
    "person",
    "second",
    "seconds",
    "step",
    "steps",
    "sucker",
    "supporter",
    "victim",
    "week",
    "weeks",
];

/// Words before "I'm a" that make it a play: "imagine I'm a customer".
const PLAYS: &[&str] = &[
    "assume",
    "assuming",
    "if",
    "imagine",
    "imagining",
    "pretend",
    "pretending",
    "suppose",
    "supposing",
    "unless",
    "whether",
];

/// Words before a thing with a date that leave it open whether it takes place.
const NO_DATES: &[&str] =
    &["if", "maybe", "might", "missed", "never", "no", "not", "perhaps", "t", "unless", "was", "whether"];

/// Words behind a date that say that it is over, or not to be.
const OVER: &[&str] =
    &["canceled", "cancelled", "got", "had", "moved", "postponed", "was", "went", "were", "slipped"];

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
        is_capital && !is_no_name && !is_ing(word) && !is_adverb(scan, start)
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
            || scan.is_one_of(index, &["at", "for"]) && scan.gap(index) != Gap::None
    };
    let mut end = start;
    while end < scan.len() && !stops(end) {
        end += 1;
    }
    let is_asked = scan.is_mark(end, '?');
    if is_asked || is_played(scan, index) || (start..end).any(|index| scan.is_one_of(index, NO_TRADES)) {
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
    let before = scan.sentence_of(index).start..index;
    let begins_as = scan.is(before.start, "as") && scan.is_one_of(before.start + 1, &["a", "an"]);
    let is_likened = index.checked_sub(1).is_some_and(|last| scan.is(last, "like"));
    // A longer sentence was pasted.
    before.len() > SENTENCE_MAX
        || begins_as && !before.is_empty()
        || is_likened
        || before.into_iter().any(|index| scan.is_one_of(index, PLAYS))
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
    let before = scan.sentence_of(index).start..index;
    let after = end..scan.sentence_of(index).end.min(end.saturating_add(3));
    let is_open = before.rev().take(5).any(|index| scan.is_one_of(index, NO_DATES));
    if is_open || after.into_iter().any(|index| scan.is_one_of(index, OVER)) {
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

/// Whether the word at an index says how the next one is meant: "I am Fairly certain". Names end so, too: "I'm Emily from sales".
fn is_adverb(scan: &TokenScan<'_>, index: usize) -> bool {
    const AFTER_NAMES: &[&str] =
        &["and", "at", "by", "from", "here", "in", "of", "on", "the", "this", "with", "your"];
    let is_ly = scan.any_word(index).is_some_and(|word| word.to_lowercase().ends_with("ly"));
    let next = scan.any_word(index + 1).filter(|_| scan.gap(index + 1) == Gap::Space);
    is_ly && next.is_some_and(|next| !is_capitalised(next) && !scan.is_one_of(index + 1, AFTER_NAMES))
}

fn is_capitalised(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
}

/// Whether a word looks like a verb in progress. Names such as Ming are shorter than such verbs.
fn is_ing(word: &str) -> bool {
    word.chars().nth(4).is_some() && word.to_lowercase().ends_with("ing")
}
