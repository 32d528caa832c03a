//! Exports as another program meets them: whole files or none, and rows that agree with acpdb's own answers.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder with the bundled session in a store.
fn world() -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().unwrap();
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo-session.jsonl");
    let done = run(folder.path(), &["import", &session.to_string_lossy()]);
    assert!(done.status.success(), "{done:?}");
    folder
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command.current_dir(folder).args(args).env("ACPDB_PATH", "store").env("ACPDB_ANY_FILE_SYSTEM", "1");
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let mut names: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

fn lines(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_file_that_exists_is_kept_unless_forced_and_nothing_else_is_left() {
    let world = world();
    let file = world.path().join("out");
    std::fs::write(&file, "precious").unwrap();
    for format in ["html", "jsonl", "otlp-json"] {
        let refused = run(world.path(), &["export", format, "-o", "out"]);
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("out exists"), "{refused:?}");
        assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    }
    let missing = run(world.path(), &["export", "html", "no-such", "-o", "other"]);
    assert_eq!(missing.status.code(), Some(7), "{missing:?}");
    assert_eq!(names(world.path()), [file.clone(), world.path().join("store")], "no temporary file stays");
    let done = run(world.path(), &["export", "html", "-o", "out", "--force", "--json"]);
    let said: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(said["schema"], "acpdb.exported/1");
    assert_eq!(said["bytes"].as_u64(), Some(std::fs::metadata(&file).unwrap().len()));
    for (args, code) in [
        (["export", "html", "-o", "."], 2),
        (["export", "html", "-o", "no/such/folder"], 1),
        (["export", "html", "--json", "-q"], 2),
    ] {
        assert_eq!(run(world.path(), &args).status.code(), Some(code), "{args:?}");
    }
}

#[test]
fn lines_hold_what_history_says_with_texts_and_reasons() {
    let world = world();
    assert!(run(world.path(), &["export", "jsonl", "-o", "out"]).status.success());
    let rows = lines(&world.path().join("out"));
    let history: Value =
        serde_json::from_slice(&run(world.path(), &["history", "--session", "latest", "--json"]).stdout)
            .unwrap();
    let sessions: Value = serde_json::from_slice(&run(world.path(), &["sessions", "--json"]).stdout).unwrap();
    let main = sessions["items"][0]["id"].as_str().unwrap();
    let own: Vec<&Value> = rows.iter().filter(|row| row["session"] == main).collect();
    let history = history["items"].as_array().unwrap();
    assert_eq!(own.len(), history.len());
    for (row, item) in own.into_iter().zip(history) {
        for (name, value) in item.as_object().unwrap() {
            assert_eq!(row[name], *value, "{name} of {}", item["item"]);
        }
        assert!(!row["reason"].as_str().unwrap().is_empty());
        assert_eq!(row["edges"].as_array().unwrap().is_empty(), item["superseded_by"].is_null());
        let last = row["states"].as_array().unwrap().last().unwrap();
        assert_eq!(last["tokens_shown"], item["tokens_shown"], "{row}");
        assert_eq!(last["output"], item["state"]);
    }
}

#[test]
fn spans_are_the_same_each_time_and_their_links_lead_somewhere() {
    let world = world();
    for name in ["one", "two"] {
        assert!(run(world.path(), &["export", "otlp-json", "-o", name]).status.success());
    }
    let read = |name: &str| std::fs::read(world.path().join(name)).unwrap();
    assert_eq!(read("one"), read("two"));
    let mut spans = Vec::new();
    for line in lines(&world.path().join("one")) {
        let of_line = line["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        spans.extend(of_line.iter().cloned());
    }
    let is_hex = |value: &Value, length: usize| {
        let text = value.as_str().unwrap();
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let ids: HashSet<&str> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), spans.len());
    let traces: HashSet<&str> = spans.iter().map(|span| span["traceId"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1, "a subagent is in the trace of the session that started it");
    let mut links = 0;
    for span in &spans {
        assert!(is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16), "{span}");
        assert!(span["parentSpanId"].as_str().is_none_or(|parent| ids.contains(parent)), "{span}");
        let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
        assert!(
            time("startTimeUnixNano") <= time("endTimeUnixNano") && time("startTimeUnixNano") > 0,
            "{span}"
        );
        for link in span["links"].as_array().into_iter().flatten() {
            links += 1;
            assert!(ids.contains(link["spanId"].as_str().unwrap()), "{link}");
        }
    }
    assert_eq!(links, 42, "a link for each call that was superseded");
    let roots = spans.iter().filter(|span| span.get("parentSpanId").is_none()).count();
    assert_eq!(roots, 1);
    let text = String::from_utf8(read("one")).unwrap();
    assert!(!text.contains("gen_ai.tool.call.arguments"), "texts are not in it unless asked for");
}

/// A session that began later stopped the export of all sessions. Of one that is named, it is a mistake; a fork that is named has
/// more than its own items, but `sessions` said "no sessions" of it.
#[test]
fn as_of_an_earlier_point_later_sessions_are_left_out() {
    let world = world();
    let line = world.path().join("later.jsonl");
    std::fs::write(&line, r#"{"session":"later","turn":true,"message":{"role":"user","text":"hello"}}"#)
        .unwrap();
    let append =
        command(world.path(), &["append", "--stdin"]).stdin(std::fs::File::open(line).unwrap()).output();
    assert!(append.unwrap().status.success());
    assert!(run(world.path(), &["fork", "e38a", "--id", "split"]).status.success());
    for (args, code) in [
        (&["export", "jsonl"][..], 0),
        (&["export", "otlp-json"], 0),
        (&["export", "jsonl", "later"], 7),
        (&["sessions", "-s", "later"], 7),
        (&["sessions", "-s", "split"], 7),
        (&["sessions", "-s", "split", "host:none"], 0),
    ] {
        let done = run(world.path(), &[args, &["--at", "#40"]].concat());
        assert_eq!(done.status.code(), Some(code), "{args:?}: {done:?}");
        assert_eq!(args[0] == "export" && code == 0, !done.stdout.is_empty(), "{args:?}");
    }
}
