//! A type has a name of its own: a reader who looks for it finds one.

use super::source::CRATES;
use super::{files, production, report};
use std::collections::BTreeMap;
use std::io;

/// Names of several types. This list only shrinks.
const SHARED: &str = include_str!("type_names.txt");

/// A kind of fact is two structs of one name: as a host tells it, and as it is kept.
const TOLD: &str = "engine/src/entry/fact/";
const KEPT: &str = "engine/src/event/";

/// The name that a line of code declares a type by.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    });
    let (keyword, rest) = line.trim_start().split_once(' ')?;
    let name =
        Some(rest.trim_start()).filter(|_| matches!(keyword, "struct" | "enum" | "trait" | "union"))?;
    name.split(|letter: char| !letter.is_ascii_alphanumeric()).next().filter(|name| !name.is_empty())
}

#[test]
fn a_type_has_a_name_of_its_own() -> io::Result<()> {
    let all = files()?;
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in CRATES {
        // The simulated storage, samples and laws are for tests.
        let for_tests = |path: &str| {
            path.contains("/sim/")
                || path.contains("/testing/")
                || path.ends_with("_tests.rs")
                || path.ends_with("/laws.rs")
        };
        for (path, code) in production(&all, folder).into_iter().filter(|(path, _)| !for_tests(path)) {
            for name in code.lines().filter_map(declared) {
                places.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
    }
    assert!(places.len() > 500, "the types were not found: {}", places.len());
    let is_a_kind = |paths: &[String]| {
        paths.len() == 2
            && paths.iter().any(|path| path.starts_with(TOLD))
            && paths.iter().any(|path| path.starts_with(KEPT))
    };
    let shared: BTreeMap<&str, &Vec<String>> = places
        .iter()
        .filter(|(_, paths)| paths.len() > 1 && !is_a_kind(paths))
        .map(|(name, paths)| (name.as_str(), paths))
        .collect();
    let mut findings = Vec::new();
    let known: BTreeMap<&str, usize> = SHARED
        .lines()
        .filter_map(|line| Some((line.split_once(' ')?.0, line.split_once(' ')?.1.parse().ok()?)))
        .collect();
    for (name, paths) in &shared {
        if known.get(name).is_none_or(|count| *count < paths.len()) {
            findings.push(format!("{name}: {}", paths.join(", ")));
        }
    }
    for (name, count) in &known {
        let now = shared.get(name).map_or(1, |paths| paths.len());
        if now < *count {
            findings.push(format!(
                "{name} stands at {now} places now: lower its line in type_names.txt, or take it out"
            ));
        }
    }
    report(findings, "give the type the name of what it is in its field, with the noun of its module.");
    Ok(())
}

#[test]
fn declarations_are_found() {
    let found: Vec<_> = [
        "pub(in crate::fold) struct Row<'a> {",
        "enum Place;",
        "    pub trait Walk: Sized {",
        "let enum_ = 1;",
        "impl Row {",
    ]
    .into_iter()
    .map(declared)
    .collect();
    assert_eq!(found, [Some("Row"), Some("Place"), Some("Walk"), None, None]);
}
