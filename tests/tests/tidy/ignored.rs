//! A test that needs more than every machine has is ignored, says what it needs, and `.ci/run` runs it where that is.
//!
//! `.ci/run` has a line for each kind of need: `ignored "KIND" --test TARGET.. -- --ignored [FILTER]`. An ignored test belongs to a
//! line whose kind its reason names, whose target it is in, and whose filter its name passes.

use std::io;

use super::report;
use super::source::{File, files};

/// One line of `.ci/run`.
struct Line {
    kind: String,
    targets: Vec<String>,
    filter: Option<String>,
}

/// A test that `cargo test` does not run.
struct Ignored {
    line: usize,
    reason: String,
    name: String,
}

fn lines(run: &str) -> Vec<Line> {
    let calls = run.lines().filter_map(|line| line.trim().strip_prefix("ignored \"")?.split_once('"'));
    let read = |(kind, rest): (&str, &str)| {
        let (before, after) = rest.split_once(" -- --ignored")?;
        let words: Vec<&str> = before.split_whitespace().collect();
        let named = words.iter().zip(words.iter().skip(1)).filter(|(word, _)| **word == "--test");
        let mut targets: Vec<String> = named.map(|(_, target)| (*target).to_owned()).collect();
        targets.extend(words.contains(&"--lib").then(|| "--lib".to_owned()));
        let filter = after.split_whitespace().next().map(str::to_owned);
        Some(Line { kind: kind.to_owned(), targets, filter })
    };
    calls.filter_map(read).collect()
}

fn quoted(text: &str) -> Option<&str> {
    Some(text.split_once('"')?.1.split_once('"')?.0)
}

fn ignored(text: &str) -> Vec<Ignored> {
    const MARK: &str = concat!("#[", "ignore");
    let mut found = Vec::new();
    for (at, _) in text.match_indices(MARK) {
        let (before, rest) = text.split_at(at);
        let line = before.lines().last().unwrap_or_default();
        if line.trim_start().starts_with("//") {
            continue;
        }
        let (attribute, rest) = rest.split_once(']').unwrap_or_default();
        // A macro's name stands for several; it passes no filter.
        let name =
            rest.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).map_or("", |(name, _)| name);
        let reason = quoted(attribute).unwrap_or_default().to_owned();
        found.push(Ignored { line: before.lines().count(), reason, name: name.trim().to_owned() });
    }
    found
}

/// The target that cargo makes of a file, and the path of the file's module in it.
fn target(path: &str) -> (String, String) {
    let parts: Vec<&str> = path.trim_end_matches(".rs").split('/').collect();
    match parts.as_slice() {
        [_, "tests", target, rest @ ..] => ((*target).to_owned(), rest.join("::")),
        _ => ("--lib".to_owned(), parts.join("::")),
    }
}

/// Whether a line of `.ci/run` runs it.
fn is_run(lines: &[Line], path: &str, test: &Ignored) -> bool {
    let (target, module) = target(path);
    let full = format!("{module}::{}", test.name);
    lines.iter().any(|line| {
        test.reason.contains(&line.kind)
            && line.targets.contains(&target)
            && line.filter.as_ref().is_none_or(|filter| full.contains(filter))
    })
}

#[test]
fn a_test_that_is_ignored_is_run_where_its_need_is_met() -> io::Result<()> {
    let all = files()?;
    let run = all.iter().find(|file| file.path == ".ci/run").and_then(|file| file.text.clone());
    let run = run.unwrap_or_default();
    let lines = lines(&run);
    let mut findings = Vec::new();
    // Packages of other languages and fuzz targets have no such tests, and workspaces of their own.
    let is_told = |file: &&File| {
        file.is("rs") && !file.path.starts_with("bindings/") && !file.path.starts_with("fuzz/")
    };
    for file in all.iter().filter(is_told) {
        for test in ignored(file.text.as_deref().unwrap_or_default()) {
            if !is_run(&lines, &file.path, &test) {
                findings.push(format!("{}:{}: {:?} is run by no line", file.path, test.line, test.reason));
            }
        }
    }
    // Tests of another crate alone are built with other features, so the engine anew: minutes for tests of seconds.
    let begun = run.split_once("ignored_tests() {").unwrap_or_default().1;
    let of_tests = |target: &String| {
        let at = format!("tests/tests/{target}");
        all.iter().any(|file| file.path == format!("{at}.rs") || file.path == format!("{at}/main.rs"))
    };
    for line in self::lines(begun.split_once("\n}").unwrap_or_default().0) {
        if !line.targets.iter().any(of_tests) {
            findings.push(format!(".ci/run: {:?} names no test of the crate `tests`", line.targets));
        }
    }
    for line in lines {
        if !run.contains(&format!("    \"{}\")", line.kind)) {
            findings.push(format!(".ci/run: `can` does not know {:?}", line.kind));
        }
    }
    report(
        findings,
        "say in the reason what the test needs, in the words of a kind of `.ci/run`, and have a line `ignored` there run it.",
    );
    Ok(())
}

/// Two tests returned early where their tool was missing, and their result was `ok`.
#[test]
fn no_test_says_that_it_was_skipped_and_passes() -> io::Result<()> {
    let words = [concat!("println!(\"", "skip"), concat!("println!(\"there ", "is no")];
    let mut findings = Vec::new();
    for file in files()?.iter().filter(|file| file.is("rs") && file.is_test()) {
        // The soak's exit code says it.
        if file.path == "tests/examples/soak.rs" {
            continue;
        }
        for (number, line) in (1..).zip(file.text.as_deref().unwrap_or_default().lines()) {
            if words.iter().any(|word| line.contains(word)) {
                findings.push(format!("{}:{number}", file.path));
            }
        }
    }
    report(
        findings,
        "ignore the test with a reason that names its need, and let it fail if it is run without.",
    );
    Ok(())
}

#[test]
fn a_line_runs_tests_of_its_kind_its_target_and_its_filter() {
    let lines = lines("  ignored \"strace\" --lib --test cli --test more -- --ignored faults::\n");
    let test =
        |reason: &str, name: &str| Ignored { line: 1, reason: reason.to_owned(), name: name.to_owned() };
    for (path, reason, name, is_it) in [
        ("tests/tests/cli/faults.rs", "needs strace", "one", true),
        ("tests/tests/cli/faults.rs", "needs luck", "one", false),
        ("tests/tests/cli/other.rs", "needs strace", "one", false),
        ("tests/tests/docs/faults.rs", "needs strace", "one", false),
        ("tests/src/faults.rs", "needs strace", "one", true),
    ] {
        assert_eq!(is_run(&lines, path, &test(reason, name)), is_it, "{path} {reason}");
    }
    let text = concat!(
        "// #[",
        "ignore]\n#[test]\n#[",
        "ignore = \"needs a\"]\nfn one() {}\n#[",
        "ignore]\nfn two() {}"
    );
    let found: Vec<_> = ignored(text).into_iter().map(|test| (test.line, test.reason, test.name)).collect();
    let (one, two) = (("needs a".to_owned(), "one".to_owned()), (String::new(), "two".to_owned()));
    assert_eq!(found.into_iter().map(|(_, reason, name)| (reason, name)).collect::<Vec<_>>(), [one, two]);
}
