//! Whether a statement stands by itself: before it, its clause has nothing but small words.
//!
//! ```text
//! ok, from now on we use npm         "from now on": small words                 counts
//! in this project we use npm         a place that is the project's              counts
//! I guess we use npm                 "guess" makes it another statement         no
//! find out which projects use npm    "find out which"                           no
//! the persona is: I am a nurse       so it is behind a colon                    no
//! ```
//!
//! Words that change a statement have no end (guess, pretend, seems, almost), those that leave it as it is are few.

use super::scan::{Gap, TokenScan};

/// Tokens before a statement in its clause, at most.
const REACH: usize = 24;

/// Owners whose habits are the project's.
pub(super) const OURS: &[&str] = &[
    "codebase",
    "company",
    "monorepo",
    "project",
    "projects",
    "repo",
    "repos",
    "repository",
    "team",
    "teams",
    "workspace",
];

/// Words that begin another clause.
const JOINTS: &[&str] = &["and", "because", "but", "since", "so", "then"];

/// Words that lead to a statement, or are of its verb, and leave it as it is: each line is of one kind.
const SMALL: &str = "i we us you my our the this these all whole entire both \
    am m are re is s d ll ve do will would should must shall have has had been let lets \
    want need like love prefer expect decided agreed going remember note make be sure ensure keep start continue switched moved \
    mind that to in by way from on onwards forward next time heads up as rule general \
    ok okay alright hey hi hello there btw fyi ps well yes yeah yep no anyway right thanks \
    again already also always actually and currently exclusively finally generally here instead just kindly \
    mostly normally now only personally please pls plz rather really recently still strictly strongly \
    therefore thus usually";

/// Words that stand before a colon and only name what follows.
const LABELS: &str = "before begin context convention conventions decision editor formatting important more one \
    preference preferences quick reminder rules setup stack starting style testing tests thing tooling";

fn is_in(scan: &TokenScan<'_>, index: usize, words: &str) -> bool {
    words.split_ascii_whitespace().any(|word| scan.is(index, word))
}

/// The first token of the clause of the token at `index`; none if it is far away.
pub(super) fn start(scan: &TokenScan<'_>, index: usize) -> Option<usize> {
    let mut at = index;
    for _ in 0..REACH {
        let Some(before) = at.checked_sub(1).filter(|_| scan.gap(at) != Gap::Break) else { return Some(at) };
        let is_other = scan.token(before)?.sentence != scan.token(index)?.sentence;
        let is_inside = scan.any_word(before).is_some()
            || ['\'', '`', '*'].iter().any(|mark| scan.is_mark(before, *mark));
        if is_other || !is_inside || scan.is_one_of(before, JOINTS) {
            return Some(at);
        }
        at = before;
    }
    None
}

/// Whether the statement whose word stands at `index` has only small words before it in its clause.
pub(super) fn stands_alone(scan: &TokenScan<'_>, index: usize) -> bool {
    let Some(start) = start(scan, index) else { return false };
    let is_small = |index: usize| {
        scan.any_word(index).is_none() || is_in(scan, index, SMALL) || scan.is_one_of(index, OURS)
    };
    (start..index).all(is_small) && is_labelled(scan, start)
}

/// Whether the clause that begins at `start` stands behind no colon, or behind one whose words only name what follows.
fn is_labelled(scan: &TokenScan<'_>, start: usize) -> bool {
    let Some(colon) = start.checked_sub(1).filter(|_| scan.gap(start) != Gap::Break) else { return true };
    if !scan.is_mark(colon, ':') {
        return true;
    }
    let is_label = |index: usize| {
        is_in(scan, index, SMALL) || is_in(scan, index, LABELS) || scan.any_word(index).is_none()
    };
    self::start(scan, colon).is_some_and(|label| label < colon && (label..colon).all(is_label))
}

/// Whether the clause of the word at `index` begins with a word for a place, a time or a reason.
pub(super) fn is_led_in(scan: &TokenScan<'_>, index: usize) -> bool {
    const LEADS: &[&str] = &["after", "as", "for", "given", "in", "on", "since", "to", "with"];
    start(scan, index)
        .is_some_and(|start| scan.is_one_of(start, LEADS) || start > 0 && scan.is(start - 1, "since"))
}
