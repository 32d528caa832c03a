//! A rule that shortens is its file and its line: nothing else in the program knows which rules there are, or how one cuts a text.
//!
//! ```text
//! fold/rules/X.rs     the rule's value: its names, its ages, what it leaves, how it cuts
//! fold/rules/idle.rs  the rules by age, a row each
//! fold/rules/mod.rs   its line
//! ```
//!
//! Three rules have settings that are no ages; these stand with the policy's. The code that puts a face's text together asks
//! all rules alike which part they leave.

use std::io;

use super::source::{CRATES, File, code, files, is_word, root};
use super::{production, report};

/// The list of rules, and their files.
const LIST: &str = "engine/src/fold/rules/mod.rs";
const RULES: &str = "engine/src/fold/rules/";
/// The file with the common part of these rules.
const COMMON: &str = "engine/src/fold/rules/shorten.rs";
/// The file that puts together the text in place of a face: it alone asks which part a rule leaves.
const TEXTS: &str = "engine/src/fold/read/placeholder.rs";
/// Where settings of a rule without ages stand, under the rule's name: those of policies, and another program's that become such.
const SETTINGS: &[&str] = &[
    "engine/src/fold/policy.rs",
    "engine/src/fold/policy_values.rs",
    "engine/src/fold/policy/keys.rs",
    "cli/src/commands/policy_import.rs",
];

/// The file with the rules by age, and the folder name by which the list calls them.
const TABLE: &str = "idle";

/// The lines of the list `SHORTENING`, each as the file that has the rule and the rule's name.
fn names(list: &str) -> Vec<(String, String)> {
    let behind = list.split("SHORTENING: &[Shortening] = &[").nth(1).unwrap_or_default();
    let inside = behind.split(']').next().unwrap_or_default();
    let paths = inside.split(',').filter_map(|path| path.trim().split_once("::"));
    paths
        .map(|(file, rule)| {
            let name =
                if file == TABLE { format!("{TABLE}_{}", rule.to_lowercase()) } else { file.to_owned() };
            (file.to_owned(), name)
        })
        .collect()
}

/// Whether the code names `word`, and not as a method that it calls: `Vec::truncate` is no rule.
fn names_it(code: &str, word: &str) -> bool {
    code.match_indices(word).any(|(at, _)| {
        let (before, behind) = (&code[..at], &code[at + word.len()..]);
        let is_whole = !before.ends_with(is_word) && !behind.starts_with(is_word);
        is_whole && !(before.ends_with('.') && behind.starts_with('('))
    })
}

/// Whether a line of the text, comments apart, has the rule's name as a string.
fn spells_it(text: &str, word: &str) -> bool {
    let spelled = format!("\"{word}\"");
    text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(&spelled))
}

#[test]
fn a_rule_that_shortens_is_its_file_and_its_line() -> io::Result<()> {
    let list = std::fs::read_to_string(root().join(LIST))?;
    let names = names(&code(&list));
    assert!(names.len() >= 17, "the list in {LIST} was not found: {names:?}");
    let all = files()?;
    let code: Vec<(String, String)> = CRATES.iter().flat_map(|folder| production(&all, folder)).collect();
    let text =
        |path: &str| all.iter().find(|file: &&File| file.path == path).and_then(|it| it.text.as_deref());
    let has_ages = |file: &str| text(&format!("{RULES}{file}.rs")).is_some_and(|it| it.contains("AgesKey"));
    let mut findings = Vec::new();
    let mut cutting_count = 0;
    for (path, code) in code.iter().filter(|(path, _)| !path.starts_with("engine/src/testing/")) {
        let is_rule = |file: &str| *path == format!("{RULES}{file}.rs");
        let (is_own, text) = (names.iter().any(|(file, _)| is_rule(file)), text(path).unwrap_or_default());
        if path != LIST {
            let is_setting = |file: &str| SETTINGS.contains(&path.as_str()) && !has_ages(file);
            let others = names.iter().filter(|(file, _)| !is_rule(file) && !is_setting(file));
            let named = others.filter(|(_, name)| names_it(code, name) || spells_it(text, name));
            findings.extend(named.map(|(_, name)| format!("{path} names the rule {name}")));
        }
        if code.contains("impl Cuts for") {
            cutting_count += 1;
            if !is_own {
                findings.push(format!("{path} cuts texts and is no rule of the list"));
            }
        }
        if code.contains("Leaves::") && !is_own && path != COMMON && path != TEXTS {
            findings.push(format!("{path} asks what a rule leaves"));
        }
    }
    assert!(cutting_count >= 4, "no rule that cuts was found");
    report(
        findings,
        "let the rule say it: a field of `Shortening` or `Part`, or a method of `Cuts` (engine/src/fold/rules/shorten.rs).",
    );
    Ok(())
}
