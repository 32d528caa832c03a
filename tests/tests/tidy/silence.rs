//! Nothing is passed over in silence: an error, a lock that a panic left, a difference that cannot be.
//!
//! A call that swallows an error, or gives 0 in place of a difference below 0, has a comment that says why that is right: on its line,
//! or above the statement that it stands in. The check sees words and not types, so it also finds calls that swallow nothing; they need
//! no comment where [`HARMLESS`] tells them apart.

use std::io;

use super::source::{CRATES, File, code, files, lines_with, without_tests};
use super::{production, report};

/// Calls after which it is not known that something failed.
const SWALLOWING: &[&str] = &["saturating_sub", ".ok()", "let _ =", "if let Ok("];
/// The same where a place, a length or a digest of nothing may be taken for one.
const SWALLOWING_IN_CORE: &[&str] = &["unwrap_or_default()"];
const CORE: &[&str] =
    &["engine/codec", "engine/storage", "engine/log", "engine/index", "engine/store", "engine/verify"];
/// Their neighbours where they swallow nothing: text that is written into a string, a number that does not fit and is told so,
/// a lookup that finds nothing, an option.
const HARMLESS: &[&str] = &[
    "let _ = write!(",
    "let _ = writeln!(",
    "try_from(",
    "try_into()",
    "binary_search",
    ".get(",
    ".get_mut(",
    ".copied()",
    ".parse()",
];
/// Where a lock may be taken whatever a panic left: the functions that say what becomes of it, the file that a model checker also
/// runs, and simulated storage. Packages of other languages are workspaces of their own.
const LOCKS: &[&str] = &["engine/src/locks.rs", "engine/src/log/commit_queue.rs"];
const LOCKS_IN: &[&str] = &["engine/src/storage/sim/", "bindings/"];

/// Lines of `text` with a call that swallows and no comment that says why.
fn unreasoned(text: &str, is_core: bool) -> Vec<usize> {
    let blanked = without_tests(&code(text));
    let (lines, code_lines): (Vec<&str>, Vec<&str>) = (text.lines().collect(), blanked.lines().collect());
    let at = |lines: &[&str], line: usize| lines.get(line - 1).copied().unwrap_or_default().trim().to_owned();
    let has_reason = |line: usize| {
        if at(&lines, line).contains("//") {
            return true;
        }
        // Up to where the statement begins.
        let mut line = line;
        while line > 1 {
            let (above, code_above) = (at(&lines, line - 1), at(&code_lines, line - 1));
            if above.starts_with("//") {
                return true;
            }
            if code_above.is_empty() || code_above.ends_with([';', '{', '}', ',']) {
                return false;
            }
            line -= 1;
        }
        false
    };
    let core = if is_core { SWALLOWING_IN_CORE } else { &[] };
    let words = SWALLOWING.iter().chain(core);
    let mut found: Vec<usize> = words.flat_map(|word| lines_with(&blanked, word)).collect();
    found.sort_unstable();
    found.dedup();
    let is_harmless = |line: usize| HARMLESS.iter().any(|word| at(&code_lines, line).contains(word));
    found.retain(|line| !is_harmless(*line) && !has_reason(*line));
    found
}

/// The folder that a file is in: a module of the engine, or a crate.
fn module_of(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["engine", "src", module, ..] => format!("engine/{}", module.trim_end_matches(".rs")),
        [name, ..] => (*name).to_owned(),
        [] => String::new(),
    }
}

fn is_checked(file: &File) -> bool {
    let is_told = !file.path.starts_with("engine/src/testing") && !file.path.contains("/sim/");
    is_told
        && file.is("rs")
        && !file.is_test()
        && !file.path.ends_with("_tests.rs")
        && CRATES.iter().any(|folder| file.path.starts_with(folder))
}

#[test]
fn what_is_swallowed_has_a_reason() -> io::Result<()> {
    let mut findings = Vec::new();
    for file in files()?.iter().filter(|file| is_checked(file)) {
        let is_core = CORE.contains(&module_of(&file.path).as_str());
        let lines = unreasoned(file.text.as_deref().unwrap_or_default(), is_core).into_iter();
        findings.extend(lines.map(|line| format!("{}:{line}", file.path)));
    }
    report(
        findings,
        "if it can fail, or the difference can be below 0: return an error, note damage, or check first. If that is right \
         all the same, say why in a comment on the line or above the statement.",
    );
    Ok(())
}

#[test]
fn locks_are_taken_by_what_becomes_of_them() -> io::Result<()> {
    let mut findings = Vec::new();
    for folder in ["engine/", "query/", "hosts/", "live/", "proof/", "remote/", "cli/"] {
        for (path, code) in production(&files()?, folder) {
            let may =
                LOCKS.contains(&path.as_str()) || LOCKS_IN.iter().any(|folder| path.starts_with(folder));
            if !may {
                let named = lines_with(&code, "PoisonError::into_inner").into_iter();
                findings.extend(named.map(|line| format!("{path}:{line}")));
            }
        }
    }
    report(
        findings,
        "take the lock by `locks::steady` if each change of the value is one step, by `locks::renewed` if it is a cache, \
         and return an error if a panic may have left it half changed.",
    );
    Ok(())
}

#[test]
fn a_reason_stands_on_the_line_or_above_the_statement() {
    for (text, lines) in [
        ("let _ = close();", vec![1]),
        ("let _ = close(); // It is only read.", vec![]),
        ("// It is only read.\nlet _ = close();", vec![]),
        ("// It is only read.\nlet length = a\n    .b()\n    .saturating_sub(c);", vec![]),
        ("// Of another statement.\na();\nlet length = a\n    .saturating_sub(c);", vec![4]),
        ("let _ = write!(text, \"a\");\nlet n = u32::try_from(m).ok()?;", vec![]),
        ("#[cfg(test)]\nmod tests { fn f() { let _ = g(); } }", vec![]),
        ("f(\"let _ = g()\")", vec![]),
    ] {
        assert_eq!(unreasoned(text, false), lines, "in {text:?}");
    }
    assert_eq!(unreasoned("let at = place.unwrap_or_default();", true), [1]);
    assert_eq!(module_of("engine/src/store/fetch.rs"), "engine/store");
    assert_eq!(module_of("engine/src/verify.rs"), "engine/verify");
    assert_eq!(module_of("hosts/src/import/mod.rs"), "hosts");
}
