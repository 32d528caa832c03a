//! A host's context by its own file, against the current context here after an import.
//!
//! No format records supersession, but hosts leave marks: compactions, cleared results, branches, rewinds, lists that
//! replace lists. Each judge here reads the marks in the host's own file, by itself and without an importer, and names
//! the items that the host still shows; everything else must be in history all the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failed step is a failed test"
)]

use std::collections::BTreeSet;

use acpdb_engine::event::{Face, Scope};
use acpdb_engine::fold::FaceState;
use acpdb_engine::{Store, View};
use acpdb_hosts::import::ImportFormat;
use acpdb_tests::support::{bytes_of, import_bytes, recordings};
use serde_json::Value;

fn open(path: &std::path::Path) -> Store {
    Store::builder(path).registry(acpdb_hosts::registry()).open().unwrap()
}

/// Imports a file into a store of its own and views its main session.
fn imported(format: ImportFormat, name: &str, bytes: &[u8]) -> (tempfile::TempDir, Store, View) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    import_bytes(&store, format, name, bytes).unwrap();
    let names = store.stream_names().unwrap();
    let main = names.iter().find(|name| name.scope == Scope::Session && name.parent.is_none()).unwrap();
    let view = store.view(main.id).unwrap();
    (folder, store, view)
}

/// Calls in the current context, and calls in history, by the host's ids.
fn calls(view: &View) -> (BTreeSet<String>, BTreeSet<String>) {
    let (state, at) = (view.state(), view.at());
    let ids =
        |ixs: Vec<_>| ixs.into_iter().filter_map(|ix| state.host_id(ix)).map(|id| id.to_string()).collect();
    (ids(state.current(at)), ids(state.items(at).collect()))
}

/// Texts of messages in the current context, in order.
fn texts(view: &View) -> Vec<String> {
    let current: Vec<_> = view.current().into_iter().filter(|item| item.call.is_none()).collect();
    current.iter().filter_map(|item| view.text(item.content.first()?.body).ok()).collect()
}

/// Every text there ever was.
fn all_texts(view: &View) -> Vec<String> {
    let all: Vec<_> = view.history().into_iter().filter(|item| item.call.is_none()).collect();
    all.iter().filter_map(|item| view.text(item.content.first()?.body).ok()).collect()
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The context by a Claude Code file: the path from the newest leaf of the main line, up to a compaction.
fn claude_calls(records: &[Value]) -> (BTreeSet<String>, BTreeSet<String>) {
    let main: Vec<&Value> =
        records.iter().filter(|record| record["isSidechain"] != true && record["uuid"].is_string()).collect();
    let start =
        main.iter().rposition(|record| record["subtype"] == "compact_boundary").map_or(0, |place| place + 1);
    let uses = |record: &Value| {
        let content = record["message"]["content"].as_array().cloned().unwrap_or_default();
        let calls = content.into_iter().filter(|block| block["type"] == "tool_use");
        calls.map(|block| block["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = main.iter().flat_map(|record| uses(record)).collect();
    (main[start..].iter().flat_map(|record| uses(record)).collect(), all)
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn after_a_compaction_of_claude_code_the_context_holds_what_followed() {
    let folder = recordings();
    let mut compacted = 0;
    for entry in std::fs::read_dir(folder.join("claude-code/entire-cli")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = bytes_of(&path).unwrap();
        let records = lines(&bytes);
        let boundary = records.iter().rposition(|record| record["subtype"] == "compact_boundary");
        let Some(boundary) = boundary else { continue };
        compacted += 1;
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (_folder, _store, view) = imported(ImportFormat::ClaudeCode, &name, &bytes);
        let (kept, all) = claude_calls(&records);
        let (current, history) = calls(&view);
        assert_eq!(current, kept, "{name}");
        assert_eq!(history, all, "{name}: history keeps every call");
        assert!(kept.len() < all.len(), "{name} compacted nothing");
        // The summary is the first thing that the model sees.
        let summary = records[boundary..].iter().find(|record| record["isCompactSummary"] == true).unwrap();
        let summary = summary["message"]["content"].as_str().unwrap();
        assert_eq!(texts(&view).first().map(String::as_str), Some(summary), "{name}");
    }
    assert!(compacted > 0, "no recording has a compaction");
}

/// Time travel against the file itself: a host's file is only ever appended to, so the context just before the compaction
/// equals the context after an import of the file up to there.
#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn the_context_before_a_compaction_is_that_of_the_file_cut_there() {
    let folder = recordings();
    let mut compacted = 0;
    for entry in std::fs::read_dir(folder.join("claude-code/entire-cli")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = bytes_of(&path).unwrap();
        let text = std::str::from_utf8(&bytes).unwrap();
        let is_mark = |line: &str| {
            serde_json::from_str::<Value>(line).is_ok_and(|record| record["subtype"] == "compact_boundary")
        };
        let Some(mark) = text.lines().position(is_mark) else { continue };
        compacted += 1;
        let before: String = text.lines().take(mark).map(|line| format!("{line}\n")).collect();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (_folder, store, view) = imported(ImportFormat::ClaudeCode, &name, &bytes);
        let stream = store.stream_name(view.stream()).unwrap().unwrap();
        let now = acpdb_engine::ids::Micros(i64::MAX);
        let (then, _) = acpdb_query::when::view(&store, &stream, Some("@compact-1"), now).unwrap();
        let (_cut_folder, _cut_store, cut) = imported(ImportFormat::ClaudeCode, &name, before.as_bytes());
        assert_eq!(calls(&then), calls(&cut), "{name}");
        assert_eq!(texts(&then), texts(&cut), "{name}");
        let (kept, _) = claude_calls(&lines(before.as_bytes()));
        assert_eq!(calls(&then).0, kept, "{name}: by the file itself");
        // The difference names the items that the compaction took away.
        let taken = acpdb_query::diff(&then, &view, &stream.name);
        let left = taken.items.iter().filter(|row| row.change == acpdb_query::ItemChange::Went).count();
        assert!(left > 0, "{name}: {taken:?}");
    }
    assert!(compacted > 0, "no recording has a compaction");
}

/// A session whose file holds no mark has lost nothing: every call is in the context, whole or as its placeholder.
#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn without_a_mark_of_the_host_nothing_leaves_the_context() {
    let folder = recordings();
    let mut sessions = 0;
    for (place, format, marks) in [
        ("claude-code/entire-cli", ImportFormat::ClaudeCode, &["compact_boundary"][..]),
        ("codex/session-bridge", ImportFormat::Codex, &["\"type\":\"compacted\"", "thread_rolled_back"]),
        ("copilot-cli/agentv", ImportFormat::CopilotCli, &["compaction"]),
        ("gemini-cli/session-bridge", ImportFormat::GeminiCli, &["$rewindTo", "$set"]),
        ("opencode/gatomia-vscode", ImportFormat::Opencode, &["compaction", "\"compacted\""]),
        ("swe-agent", ImportFormat::SweAgent, &[]),
    ] {
        for entry in std::fs::read_dir(folder.join(place)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = bytes_of(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            if marks.iter().any(|mark| text.contains(mark)) {
                continue;
            }
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let (_folder, _store, view) = imported(format, &name, &bytes);
            let (current, history) = calls(&view);
            let branched: BTreeSet<&String> = history.difference(&current).collect();
            assert_eq!(branched, BTreeSet::new(), "{place}/{name}");
            sessions += 1;
        }
    }
    assert!(sessions > 20, "sessions without a mark: {sessions}");
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn after_a_compaction_of_opencode_the_context_holds_the_summary_and_what_followed() {
    let folder = recordings();
    let mut compacted = 0;
    for entry in std::fs::read_dir(folder.join("opencode/session-bridge")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = bytes_of(&path).unwrap();
        let Ok(document) = serde_json::from_slice::<Value>(&bytes) else { continue };
        let messages = document["messages"].as_array().cloned().unwrap_or_default();
        let is_summary = |message: &Value| message["info"]["summary"] == true;
        let Some(summary) = messages.iter().rposition(is_summary) else { continue };
        compacted += 1;
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let (_folder, _store, view) = imported(ImportFormat::Opencode, &name, &bytes);
        let of = |messages: &[Value]| -> BTreeSet<String> {
            let parts =
                messages.iter().flat_map(|message| message["parts"].as_array().cloned().unwrap_or_default());
            let tools = parts.filter(|part| part["type"] == "tool");
            tools.map(|part| part["callID"].as_str().unwrap().to_owned()).collect()
        };
        let (current, history) = calls(&view);
        assert_eq!(current, of(&messages[summary..]), "{name}");
        assert_eq!(history, of(&messages), "{name}: history keeps every call");
    }
    assert!(compacted > 0, "no recording has a compaction");
}

/// A record of a made-up Claude Code session.
fn claude(uuid: &str, parent: &str, role: &str, text: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    let content = match role {
        "assistant" => format!(r#"[{{"type":"text","text":"{text}"}}]"#),
        _ => format!("\"{text}\""),
    };
    format!(
        r#"{{"type":"{role}","uuid":"{uuid}","parentUuid":{parent},"isSidechain":false,"sessionId":"s","cwd":"/w","timestamp":"2026-01-01T00:00:00Z","message":{{"id":"m-{uuid}","role":"{role}","content":{content}}}}}"#
    )
}

/// The texts on the path from the newest record to the root, by the file alone.
fn claude_path(file: &str) -> Vec<String> {
    let records = lines(file.as_bytes());
    let mut path = Vec::new();
    let mut at = records.last().cloned();
    while let Some(record) = at {
        let content = &record["message"]["content"];
        let text = content.as_str().or_else(|| content[0]["text"].as_str()).unwrap();
        path.push(text.to_owned());
        let parent = record["parentUuid"].clone();
        at = records.iter().find(|other| other["uuid"] == parent && parent.is_string()).cloned();
    }
    path.reverse();
    path
}

#[test]
fn a_branch_of_claude_code_is_current_and_the_lost_one_stays_in_history() {
    let rows = |rows: &[[&str; 4]]| -> String {
        rows.iter().map(|[uuid, parent, role, text]| claude(uuid, parent, role, text) + "\n").collect()
    };
    let begin = [
        ["u1", "", "user", "first"],
        ["a1", "u1", "assistant", "one"],
        ["u2", "a1", "user", "second"],
        ["a2", "u2", "assistant", "two"],
    ];
    for (name, more) in [
        (
            "one turn back",
            &[["u3", "a1", "user", "second again"], ["a3", "u3", "assistant", "two again"]][..],
        ),
        ("to the start", &[["u3", "", "user", "anew"], ["a3", "u3", "assistant", "other"]]),
        (
            "twice",
            &[
                ["u3", "a1", "user", "second again"],
                ["a3", "u3", "assistant", "two again"],
                ["u4", "a1", "user", "third try"],
                ["a4", "u4", "assistant", "three"],
            ],
        ),
        ("straight on", &[["u3", "a2", "user", "more"]]),
    ] {
        let file = rows(&begin) + &rows(more);
        let (_folder, store, view) = imported(ImportFormat::ClaudeCode, "s", file.as_bytes());
        assert_eq!(texts(&view), claude_path(&file), "{name}");
        let history: BTreeSet<String> = all_texts(&view).into_iter().collect();
        let all: BTreeSet<String> =
            begin.iter().chain(more).map(|[_, _, _, text]| (*text).to_owned()).collect();
        assert_eq!(history, all, "{name}: the lost branch stays in history");
        // Just before the newest rewind the lost branch was the current one.
        let stream = store.find_stream("s").unwrap();
        let before =
            acpdb_query::when::view(&store, &stream, Some("@rewind-1"), acpdb_engine::ids::Micros(0));
        match before {
            Ok((before, _)) => assert_ne!(texts(&before), texts(&view), "{name}"),
            Err(error) => assert_eq!((name, error.to_string().contains("0 rewind")), ("straight on", true)),
        }
    }
}

#[test]
fn results_that_claude_code_cleared_are_tombstones_and_their_calls_stay() {
    let call = |id: &str| {
        let using = format!(
            r#"{{"type":"assistant","uuid":"a-{id}","parentUuid":null,"sessionId":"s","cwd":"/w","message":{{"id":"m-{id}","role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"{id}"}}}}]}}}}"#
        );
        let long = format!("what {id} printed ").repeat(40);
        let result = format!(
            r#"{{"type":"user","uuid":"r-{id}","parentUuid":"a-{id}","sessionId":"s","cwd":"/w","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{long}"}}]}}}}"#
        );
        format!("{using}\n{result}\n")
    };
    let mark = r#"{"type":"system","subtype":"microcompact_boundary","uuid":"b","sessionId":"s","cwd":"/w","microcompactMetadata":{"compactedToolIds":["c1","c3"]}}"#;
    let file = format!("{}{}{}{mark}\n{}", call("c1"), call("c2"), call("c3"), call("c4"));
    let (_folder, _store, view) = imported(ImportFormat::ClaudeCode, "s", file.as_bytes());
    let cleared: BTreeSet<String> = lines(file.as_bytes())
        .iter()
        .flat_map(|record| {
            record["microcompactMetadata"]["compactedToolIds"].as_array().cloned().unwrap_or_default()
        })
        .map(|id| id.as_str().unwrap().to_owned())
        .collect();
    let (state, at) = (view.state(), view.at());
    let is_hidden = |ix: &acpdb_engine::fold::Ix| state.face(*ix, Face::Output, at).state != FaceState::Whole;
    let hidden: BTreeSet<String> = state
        .current(at)
        .into_iter()
        .filter(|ix| is_hidden(ix))
        .filter_map(|ix| state.host_id(ix))
        .map(|id| id.to_string())
        .collect();
    assert_eq!(hidden, cleared);
    assert_eq!(state.current(at).into_iter().filter_map(|ix| state.host_id(ix)).count(), 4);
}

#[test]
fn gemini_rewinds_and_replaced_lists_leave_what_the_list_holds() {
    let head = r#"{"sessionId":"g","projectHash":"p","startTime":"2026-01-01T00:00:00Z","lastUpdated":"2026-01-01T00:00:00Z","kind":"main"}"#;
    let message = |id: &str| {
        let kind = if id.starts_with('u') { "user" } else { "gemini" };
        format!(r#"{{"id":"{id}","timestamp":"2026-01-01T00:00:00Z","type":"{kind}","content":"text {id}"}}"#)
    };
    // Ids that a reader of the file keeps: a list, rewound and set as the lines say.
    let judge = |file: &str| -> Vec<String> {
        let mut list: Vec<String> = Vec::new();
        for record in lines(file.as_bytes()).into_iter().skip(1) {
            if let Some(to) = record["$rewindTo"].as_str() {
                let place = list.iter().position(|id| id == to).unwrap_or(0);
                list.truncate(place);
            } else if let Some(messages) = record["$set"]["messages"].as_array() {
                list = messages.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect();
            } else if let Some(id) = record["id"].as_str()
                && !list.iter().any(|known| known == id)
            {
                list.push(id.to_owned());
            }
        }
        list.into_iter().map(|id| format!("text {id}")).collect()
    };
    for steps in [
        &["u1", "g1", "u2", "g2", "<u2", "u3", "g3"][..],
        &["u1", "g1", "<nowhere", "u2"],
        &["u1", "g1", "u2", "g2", "=u1 g2", "u3"],
        // The list left u1 out; a rewind to before g1, which is older than the list, does not bring it back.
        &["u1", "g1", "=g1", "<g1", "u2", "g2"],
        &["u1", "g1", "u2", "=g1 u2", "g2", "<u2", "u3", "<u3", "u4"],
        &["u1", "=u1", "g1", "<g1", "g3", "<u1", "u2"],
        &["u1", "g1", "=u1 g1", "<nowhere", "u2"],
    ] {
        let lines: Vec<String> = steps
            .iter()
            .map(|step| {
                if let Some(to) = step.strip_prefix('<') {
                    format!(r#"{{"$rewindTo":"{to}"}}"#)
                } else if let Some(list) = step.strip_prefix('=') {
                    let list: Vec<String> = list.split(' ').map(&message).collect();
                    format!(r#"{{"$set":{{"messages":[{}]}}}}"#, list.join(","))
                } else {
                    message(step)
                }
            })
            .collect();
        let file = format!("{head}\n{}\n", lines.join("\n"));
        let (_folder, _store, view) = imported(ImportFormat::GeminiCli, "g", file.as_bytes());
        assert_eq!(texts(&view), judge(&file), "{steps:?}");
    }
}

#[test]
fn codex_compactions_rollbacks_and_forks_leave_what_the_rollout_holds() {
    let text = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}}}"#
        )
    };
    let prompt = r#"{"type":"event_msg","payload":{"type":"user_message","message":"x"}}"#;
    let turn = |number: u32| {
        format!(
            "{}\n{prompt}\n{}\n",
            text("user", &format!("q{number}")),
            text("assistant", &format!("a{number}"))
        )
    };
    let meta = r#"{"type":"session_meta","payload":{"id":"child","cwd":"/w","forked_from_id":"parent"}}"#;
    let back = r#"{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}"#;
    let compacted = r#"{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"sum"}]}]}}"#;
    for (file, current) in [
        (format!("{meta}\n{}{}", turn(1), turn(2)), &["q1", "a1", "q2", "a2"][..]),
        (format!("{meta}\n{}{}{back}\n{}", turn(1), turn(2), turn(3)), &["q1", "a1", "q3", "a3"]),
        (format!("{meta}\n{}{compacted}\n{}", turn(1), turn(2)), &["sum", "q2", "a2"]),
        // A rollback over more prompts than followed the compaction does not undo it.
        (format!("{meta}\n{}{}{compacted}\n{}{back}\n", turn(1), turn(2), turn(3)), &["sum"]),
        (
            format!("{meta}\n{}{compacted}\n{}{back}\n{back}\n{}", turn(1), turn(2), turn(3)),
            &["sum", "q3", "a3"],
        ),
    ] {
        let (_folder, store, view) = imported(ImportFormat::Codex, "rollout", file.as_bytes());
        assert_eq!(texts(&view), current);
        // The session that it was forked from is known, whether that was imported or not; the prefix is a copy of its
        // own.
        let forks: Vec<_> = view.state().forks(view.at()).to_vec();
        let parent = acpdb_engine::entry::StreamInfo::session("codex", "parent").id();
        assert_eq!(forks.iter().map(|(_, fork)| fork.from).collect::<Vec<_>>(), [parent]);
        assert_eq!(store.stream_names().unwrap().len(), 1);
    }
}
