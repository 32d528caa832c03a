//! Words that have a better one: people for programs, and names that were given up.
//!
//! A comment says which process, handle, caller or reader it means. A word for people in its place leaves that open. The
//! glossary in docs/ARCHITECTURE.md has one word for each thing; the words below are those that it replaced.

use std::collections::BTreeMap;
use std::io;

use super::report;
use super::source::{files, lines_with, root};

/// Words for people. Put together from pieces, so that this file does not find itself.
const PEOPLE: &[&str] = &[
    concat!("who", "ever"),
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("any", "body"),
    concat!("every", "body"),
    concat!("some", "one"),
    concat!("any", "one"),
    concat!("every", "one"),
];

/// Files in which such words are data, and how many there are: what users say, and the story of the demo.
const DATA: &[(&str, usize)] = &[
    ("query/src/propose/decisions.rs", 2),
    ("query/src/propose/rivals.rs", 1),
    ("query/src/propose/says.rs", 1),
    ("tests/tests/cli/reads.md", 1),
];

/// A name that was given up, the name in its place, and paths that may hold the old one for another reason.
const OLD_NAMES: &[(&str, &str, &[&str])] = &[
    (
        concat!("led", "ger"),
        "ingest state",
        &[
            "CHANGELOG.md",
            "bench/",
            "tests/src/cuts/",
            "engine/src/command/ingest_state/base.rs",
            "engine/src/log/files.rs",
            "engine/src/store/audit",
            "engine/src/store/writers",
            "docs/ARCHITECTURE.md",
            "docs/COMPARE.md",
            "docs/DESIGN.md",
            "docs/FORMAT.md",
        ],
    ),
    (concat!("led", "gers"), "ingest states", &["CHANGELOG.md"]),
    (concat!("hand", "off.rs"), "commit_queue.rs", &[]),
    (concat!("Pati", "ence"), "CommitDelay", &[]),
    (concat!("Sh", "ore"), "SyncOps", &[]),
    (concat!("Su", "rf"), "LogSync", &[]),
    (concat!("Hand", "off"), "CommitQueue", &[]),
    (concat!("Surv", "ey"), "RecoveryScan", &[]),
    (concat!("surv", "ey.rs"), "recovery_scan.rs", &[]),
    (concat!("plan", "ted::"), "failpoints::", &["tests/"]),
    (concat!("is_plan", "ted"), "is_enabled", &[]),
    (concat!("Tab", "led"), "SegmentFrames", &[]),
    (concat!("LentL", "ist"), "BorrowedList", &[]),
    (concat!("under ", "W"), "under the write lock", &[]),
    (concat!("the turn to ", "sync"), "the sync lock", &[]),
    (concat!("Stand", "In"), "Placeholder", &["CHANGELOG.md"]),
    (concat!("stand_", "in"), "placeholder", &[]),
];

/// How often each text has one of `words`, by path; only texts that people read or write.
fn found(words: &[&str], ignore_case: bool) -> io::Result<BTreeMap<String, Vec<(usize, String)>>> {
    let mut found: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    for file in &files()? {
        let is_text = file.is("rs") || file.is("md");
        if !is_text || file.path.contains("/fixtures/") {
            continue;
        }
        let text = file.text.as_deref().unwrap_or_default();
        let text = if ignore_case { text.to_lowercase() } else { text.to_owned() };
        for word in words {
            for line in lines_with(&text, word) {
                found.entry(file.path.clone()).or_default().push((line, (*word).to_owned()));
            }
        }
    }
    Ok(found)
}

#[test]
fn programs_are_not_called_people() -> io::Result<()> {
    let mut findings = Vec::new();
    let mut found = found(PEOPLE, true)?;
    for (path, expected) in DATA {
        let count = found.remove(*path).map_or(0, |hits| hits.len());
        if count != *expected {
            findings.push(format!("{path}: {count} words for people, {expected} are data"));
        }
    }
    for (path, hits) in found {
        findings.extend(hits.iter().map(|(line, word)| format!("{path}:{line}: {word}")));
    }
    report(
        findings,
        "name the process, handle, caller, reader or user that is meant (tests/tests/tidy/words.rs).",
    );
    Ok(())
}

#[test]
fn names_that_were_given_up_stay_away() -> io::Result<()> {
    let mut findings = Vec::new();
    for (old, new, allowed) in OLD_NAMES {
        for (path, hits) in found(&[old], false)? {
            if !allowed.iter().any(|place| path.starts_with(place)) {
                findings.extend(hits.iter().map(|(line, _)| format!("{path}:{line}: {old}, now {new}")));
            }
        }
    }
    report(findings, "use the word of the glossary in docs/ARCHITECTURE.md.");
    Ok(())
}

/// `what was hidden` makes a reader guess: text, item or event? `tests/tests/cli/reference.md` is what the help prints, and a test compares them.
#[test]
fn help_has_a_noun_where_it_could_say_what() -> io::Result<()> {
    let help = std::fs::read_to_string(root().join("tests/tests/cli/reference.md"))?;
    // The sentence that says in the whole documentation which log this is.
    let first = "An append-only log of what AI agents see and do";
    let found = lines_with(&help.replace(first, &"-".repeat(first.len())), "what").into_iter();
    report(
        found.map(|line| format!("tests/tests/cli/reference.md:{line}")).collect(),
        "name the thing: texts, items, events, the cost. Help is in cli/src/args; SNAPSHOTS=overwrite cargo test -p acpdb-cli --bin acpdb \
         the_reference writes tests/tests/cli/reference.md.",
    );
    Ok(())
}

/// Pages called one thing a tombstone, a placeholder and a third name, and code had that third one.
#[test]
fn there_is_one_word_for_what_is_shown_in_place_of_a_text() -> io::Result<()> {
    let mut findings = Vec::new();
    for (path, hits) in found(&[concat!("stand-", "in"), concat!("stand-", "ins")], true)? {
        findings.extend(hits.iter().map(|(line, word)| format!("{path}:{line}: {word}")));
    }
    report(
        findings,
        "a tombstone is what a hidden item shows, a placeholder any of them (docs/CONCEPTS.md).",
    );
    Ok(())
}

/// A sentence in a comment begins with its subject: "What is stored of it" leaves the reader to find the noun. A question may ask.
#[test]
fn a_comment_begins_with_its_subject() -> io::Result<()> {
    let mut findings = Vec::new();
    for file in files()?.iter().filter(|file| file.is("rs") && !file.path.contains("/fixtures/")) {
        let text = file.text.as_deref().unwrap_or_default();
        for (number, line) in (1..).zip(text.lines()) {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let comment = comment.trim_start_matches(['/', '!', ' ']);
            let mut sentences = comment.split(". ");
            if sentences.any(|sentence| sentence.starts_with(concat!("Wh", "at ")) && !sentence.contains('?'))
            {
                findings.push(format!("{}:{number}", file.path));
            }
        }
    }
    report(findings, "name the thing: the texts, items, events, bytes or reasons that are meant.");
    Ok(())
}
