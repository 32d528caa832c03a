//! What comes from the machine: paths as answers show them.

use std::io;

use super::report;
use super::source::{File, code, files, without_tests};

/// Folders whose answers are JSON.
const FOLDERS: &[&str] = &["engine/src/", "query/src/", "hosts/src/", "live/src/", "proof/src/", "cli/src/"];
/// Members of answers that hold a path of the machine.
const PATH_MEMBERS: &[&str] = &["path", "folder"];
/// Members of these names that hold a text: what an agent named, what a client asked for.
const TEXTS: &[(&str, &str)] = &[
    ("cli/src/commands/audit.rs", r#""path": key.given"#),
    ("cli/src/commands/audit.rs", r#""path": path, "by""#),
    ("cli/src/commands/audit.rs", r#""folder": name.folder"#),
    ("live/src/proxy/record.rs", r#""path": exchange.path"#),
];

fn is_answer(file: &File) -> bool {
    file.is("rs") && !file.is_test() && FOLDERS.iter().any(|folder| file.path.starts_with(folder))
}

/// Lines of struct fields that hold a path and are serialized as one.
fn serialized_paths(code: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut is_serialized, mut in_struct, mut is_shown) = (false, false, false);
    for (number, line) in code.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("#[derive(") {
            is_serialized = line.contains("Serialize");
        } else if line.contains("struct ") || line.contains("enum ") {
            in_struct = is_serialized && line.ends_with('{');
            is_serialized = false;
        } else if line.starts_with('}') {
            in_struct = false;
        } else if line.starts_with("#[serde(") {
            is_shown = line.contains("serialize_with") || line.contains("skip)");
        } else if in_struct && line.contains(':') {
            let is_path =
                line.split(|c: char| !c.is_alphanumeric()).any(|word| word == "PathBuf" || word == "Path");
            if is_path && !is_shown {
                found.push(number + 1);
            }
            is_shown = false;
        }
    }
    found
}

/// Lines with a member that holds a path, and not what is shown of it.
fn unshown(path: &str, text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        for name in PATH_MEMBERS {
            let member = format!("\"{name}\": ");
            let Some((_, value)) = line.split_once(&member) else { continue };
            let value = value.split([',', '}']).next().unwrap_or_default();
            let is_text = TEXTS.iter().any(|(file, part)| *file == path && line.contains(part));
            if !value.contains("shown") && !value.starts_with('"') && !is_text {
                found.push(number + 1);
            }
        }
    }
    found
}

#[test]
fn paths_in_answers_are_shown_and_not_serialized() -> io::Result<()> {
    let mut findings = Vec::new();
    for file in files()?.iter().filter(|file| is_answer(file)) {
        let text = file.text.as_deref().unwrap_or_default();
        let lines = serialized_paths(&without_tests(&code(text)));
        // `without_tests` keeps lines in their places; what stands in texts is looked at here.
        let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        let lines = lines.into_iter().chain(unshown(&file.path, text.get(..tests).unwrap_or(text)));
        findings.extend(lines.map(|line| format!("{}:{line}", file.path)));
    }
    report(
        findings,
        "a path that is no UTF-8 cannot be serialized, and `json!` panics at it: give `text::paths::shown(path)` to `json!`, and a \
         field `#[serde(serialize_with = \"..::text::paths::serialize_shown\")]`.",
    );
    Ok(())
}

#[test]
fn paths_are_found_in_text() {
    let fields = "#[derive(Serialize)]\nstruct A {\n    path: PathBuf,\n    #[serde(serialize_with = \"\")]\n    other: &'a Path,\n    paths: Vec<PathBuf>,\n}\n";
    assert_eq!(serialized_paths(fields), [3, 6]);
    assert_eq!(
        serialized_paths("#[derive(Debug)]\nstruct A {\n    path: PathBuf,\n}\n"),
        Vec::<usize>::new()
    );
    assert_eq!(unshown("x", "json!({\"path\": path, \"a\": 1})\njson!({\"path\": shown(path)})"), [1]);
}
