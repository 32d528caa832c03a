//! Transcripts: files of prose and commands, each command with its expected output, and the exit code if it is not 0.
//!
//! ````text
//! ```console
//! $ acpdb history --chain call-read-1 --json | shape
//! {"schema": string, "items": [{..}]}
//! ! a line of stderr
//! [exit 7]
//! ```
//! ````
//!
//! Each command is run by `sh -c`, as a reader types it. `| head -n N` at its end is done here, so that the exit code is the program's.
//! Transcripts that are not pages may end in `| shape`, which shows the names and types of JSON. Parts
//! that differ from run to run are replaced: `[TIME]`, `[DATE]`, `[ID]`, `[DIGEST]`, `[DIR]`, `[SIZE]`. To take the present output as the right one:
//! `SNAPSHOTS=overwrite cargo test -p acpdb-tests --test cli`, then read the difference.

use std::fmt::Write as _;
use std::path::Path;

use regex::Regex;
use serde_json::Value;

use crate::world::World;

/// Plays a transcript of this folder in `world` and compares.
#[allow(dead_code, reason = "pages of the documents are played by their paths")]
pub(crate) fn play(world: &World, name: &str) {
    play_file(world, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli").join(name));
}

/// Plays every `console` block of a file in `world`, in order, and compares.
pub(crate) fn play_file(world: &World, path: &Path) {
    let name = path.display();
    let text = std::fs::read_to_string(path).unwrap();
    let mut played = String::new();
    let mut in_block = false;
    let mut count = 0;
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block && line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|line| in_block && is_played(line)) {
            count += 1;
            writeln!(played, "{line}").unwrap();
            played.push_str(&redact(world, &run(world, command)));
            continue;
        } else if in_block {
            // The expected output comes from the run.
            continue;
        }
        writeln!(played, "{line}").unwrap();
    }
    assert!(count > 0, "{name} holds no command");
    let assert = snapbox::Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV);
    assert.eq(snapbox::Data::text(played).raw(), snapbox::Data::read_from(path, None).raw());
}

/// Whether a line is a typed one: the program, how wide the terminal is and the program, or input that is piped into it.
fn is_played(line: &str) -> bool {
    ["acpdb", "COLUMNS=", "echo "].iter().any(|begin| line.starts_with(begin))
}

fn run(world: &World, command: &str) -> String {
    let filtered = command.rsplit_once(" | ").filter(|(_, filter)| !filter.starts_with("acpdb"));
    let (command, filter) = filtered.map_or((command, None), |(left, right)| (left, Some(right)));
    let ran = world.shell(command);
    let out = ran.text();
    let mut text = match filter {
        None => out,
        Some("shape") => {
            out.lines().map(|line| shape(&serde_json::from_str(line).unwrap(), 0) + "\n").collect()
        }
        Some(filter) => {
            let count = filter.strip_prefix("head -n ").and_then(|count| count.parse().ok());
            let count: usize = count.unwrap();
            out.lines().take(count).map(|line| format!("{line}\n")).collect()
        }
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push_str("[no line end]\n");
    }
    for line in ran.err.lines() {
        writeln!(text, "! {line}").unwrap();
    }
    if ran.code != 0 {
        writeln!(text, "[exit {}]", ran.code).unwrap();
    }
    text
}

/// Names and types of a JSON value. A list shows one element that has the fields of all.
fn shape(value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "number".to_owned(),
        // The name of a format says more than its type.
        Value::String(text) if text.starts_with("acpdb.") => format!("{text:?}"),
        Value::String(_) => "string".to_owned(),
        Value::Array(items) if items.is_empty() => "[]".to_owned(),
        Value::Array(items) => format!("[{}]", shape(&items.iter().cloned().reduce(merged).unwrap(), depth)),
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let mut text = "{\n".to_owned();
            for (name, value) in fields {
                writeln!(text, "{indent}{name}: {}", shape(value, depth + 1)).unwrap();
            }
            text + &"  ".repeat(depth) + "}"
        }
    }
}

/// One value with the fields of both; a field that is null in one is taken from the other.
fn merged(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Object(mut left), Value::Object(right)) => {
            for (name, value) in right {
                let known = left.remove(&name).unwrap_or(Value::Null);
                left.insert(name, merged(known, value));
            }
            Value::Object(left)
        }
        (Value::Array(mut left), Value::Array(right)) => {
            left.extend(right);
            Value::Array(left)
        }
        (Value::Null, right) => right,
        (left, _) => left,
    }
}

fn redact(world: &World, text: &str) -> String {
    let mut text = text.to_owned();
    for folder in [world.path("."), world.path(".").canonicalize().unwrap()] {
        text = text.replace(folder.to_str().unwrap().trim_end_matches("/."), "[DIR]");
    }
    let program = acpdb_tests::binary::binary().unwrap();
    text = text.replace(program.to_str().unwrap(), "acpdb");
    for (pattern, name) in [
        (r"\b[0-9a-f]{64}\b", "[DIGEST]"),
        (r"\b[0-9a-f]{32}\b", "[ID]"),
        (r"~[0-9a-f]{8}\b", "~[ID]"),
        (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "[TIME]"),
        (r"\b20\d\d-\d\d-\d\dZ?\b", "[DATE]"),
        (r"/tmp/[^ ]*acpdb-demo-[^ /]*", "[TEMPORARY]"),
        // Random salts are packed with the texts, so a packed length differs by some bytes from run to run.
        (r"(segment \d+: \d+\.\d KiB to )\d+\.\d KiB", "${1}[SIZE]"),
        // An import on a busy machine may take one commit more.
        (r"\d+\.\d KiB in store", "[SIZE] in store"),
        (r"(\d+ sealed +)\d+\.\d KiB", "${1}[SIZE]"),
        (
            r"\d+\.\d KiB on disk \(sealed segments packed to \d+\.\d%\)",
            "[SIZE] on disk (sealed segments packed to [SIZE])",
        ),
    ] {
        text = Regex::new(pattern).unwrap().replace_all(&text, name).into_owned();
    }
    text
}
