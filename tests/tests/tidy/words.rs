//! Words that have a better one: people for programs, and names that were given up.
//!
//! A comment says which process, handle, caller or reader it means. A word for people in its place leaves that open. The
//! glossary in docs/ARCHITECTURE.md has one word for each thing; the words below are those that it replaced.

use std::collections::BTreeMap;
use std::io;

use super::report;
use super::source::{files, lines_with};

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

/// Folders and documents without words for people.
const CLEAN: &[&str] = &[
    "docs/EMBEDDING.md",
    "engine/src/codec/",
    "engine/src/failpoints.rs",
    "engine/src/index/",
    "engine/src/log/",
    "engine/src/storage/",
    "engine/src/store/locate/",
    "engine/src/store/locator",
    "docs/ARCHITECTURE.md",
    "docs/DESIGN.md",
    "docs/FORMAT.md",
    "docs/OPERATIONS.md",
    "docs/PROOFS.md",
    "docs/SECURITY.md",
    "docs/TESTING.md",
];

/// Places that still have some, and how many at most. This list only shrinks.
const LEFT: &[(&str, usize)] = &[
    ("CHANGELOG.md", 3),
    ("README.md", 1),
    ("bench/examples/", 1),
    ("bench/src/", 3),
    ("cli/src/", 25),
    ("cli/tests/", 3),
    ("docs/CLI.md", 3),
    ("docs/START.md", 1),
    ("engine/src/command/", 8),
    ("engine/src/error.rs", 1),
    ("engine/src/event/", 5),
    ("engine/src/fold/", 18),
    ("engine/src/ids.rs", 1),
    ("engine/src/propose/", 14),
    ("engine/src/secret.rs", 1),
    ("engine/src/serve/", 2),
    ("engine/src/store/", 59),
    ("engine/src/text/", 3),
    ("engine/src/verify.rs", 2),
    ("fuzz/fuzz_targets/", 2),
    ("fuzz/src/", 1),
    ("hosts/src/", 9),
    ("hosts/tests/", 2),
    ("query/src/", 14),
    ("tests/src/", 24),
    ("tests/tests/", 48),
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
            "engine/src/store/ingest_states",
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
    let mut counts: BTreeMap<&str, usize> = LEFT.iter().map(|(place, _)| (*place, 0)).collect();
    for (path, hits) in found(PEOPLE, true)? {
        if CLEAN.iter().any(|clean| path.starts_with(clean)) {
            findings.extend(hits.iter().map(|(line, word)| format!("{path}:{line}: {word}")));
        } else if let Some((place, _)) = LEFT.iter().find(|(place, _)| path.starts_with(place)) {
            *counts.entry(place).or_default() += hits.len();
        } else {
            findings.extend(hits.iter().map(|(line, word)| format!("{path}:{line}: {word}")));
        }
    }
    for (place, most) in LEFT {
        let count = counts.get(place).copied().unwrap_or(0);
        if count > *most {
            findings.push(format!("{place}: {count} words for people, at most {most}"));
        } else if count == 0 {
            findings.push(format!("{place}: none is left, so it leaves the list LEFT for CLEAN"));
        }
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
