//! Law 8: importing twice is importing once, and importing a file as it grows is importing it whole.

use acpdb_engine::ids::Seq;
use acpdb_engine::{Atomicity, Batch, Store};
use acpdb_hosts::import::ImportFormat;
use acpdb_tests::support::{events, fixed, folded, import_bytes, lines, shown};

/// A session of Claude Code: prompt, steps of several lines, a failed call, a todo list, a compaction.
const CLAUDE_CODE: &str = concat!(
    r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"message":{"role":"user","content":"mend the parser"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s1","timestamp":"2026-01-02T03:04:06.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"message":{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"text","text":"I read it first."}],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"a2","parentUuid":"a1","sessionId":"s1","timestamp":"2026-01-02T03:04:07.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"message":{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/w/parse.rs"}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":9}}}"#,
    "\n",
    r#"{"type":"user","uuid":"u2","parentUuid":"a2","sessionId":"s1","timestamp":"2026-01-02T03:04:08.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"fn parse() {\n}\n"}]},"toolUseResult":{"type":"text"}}"#,
    "\n",
    r#"{"type":"file-history-snapshot","messageId":"a2","snapshot":{"n":1},"isSnapshotUpdate":false}"#,
    "\n",
    r#"{"type":"assistant","uuid":"a3","parentUuid":"u2","sessionId":"s1","timestamp":"2026-01-02T03:04:09.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"message":{"id":"msg_2","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_2","name":"Edit","input":{"file_path":"/w/parse.rs","old_string":"}","new_string":"  1\n}"}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":9}}}"#,
    "\n",
    r#"{"type":"user","uuid":"u3","parentUuid":"a3","sessionId":"s1","timestamp":"2026-01-02T03:04:10.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"no such text","is_error":true}]},"toolUseResult":"Error: no such text"}"#,
    "\n",
    r#"{"type":"assistant","uuid":"a4","parentUuid":"u3","sessionId":"s1","timestamp":"2026-01-02T03:04:11.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"message":{"id":"msg_3","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_3","name":"TodoWrite","input":{"todos":[{"content":"mend","status":"in_progress","activeForm":"mending"}]}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":9}}}"#,
    "\n",
    r#"{"type":"user","uuid":"u4","parentUuid":"a4","sessionId":"s1","timestamp":"2026-01-02T03:04:12.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_3","content":"ok"}]}}"#,
    "\n",
    r#"{"type":"system","subtype":"compact_boundary","uuid":"b1","parentUuid":null,"logicalParentUuid":"u4","sessionId":"s1","timestamp":"2026-01-02T03:04:13.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"content":"Conversation compacted","compactMetadata":{"trigger":"auto","preTokens":900}}"#,
    "\n",
    r#"{"type":"user","uuid":"u5","parentUuid":"b1","sessionId":"s1","timestamp":"2026-01-02T03:04:14.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"isCompactSummary":true,"message":{"role":"user","content":"So far: the parser was read."}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"a5","parentUuid":"u5","sessionId":"s1","timestamp":"2026-01-02T03:04:15.000Z","cwd":"/w","version":"2.0.1","isSidechain":false,"message":{"id":"msg_4","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_4","name":"Read","input":{"file_path":"/w/parse.rs"}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":9}}}"#,
    "\n",
);

/// A rollout of Codex: two calls side by side, one fails, a plan.
const CODEX: &str = concat!(
    r#"{"timestamp":"2026-01-02T03:04:05.000Z","type":"session_meta","payload":{"id":"r1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w","originator":"codex_cli","cli_version":"0.50.0"}}"#,
    "\n",
    r#"{"timestamp":"2026-01-02T03:04:06.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"run the tests"}]}}"#,
    "\n",
    r#"{"timestamp":"2026-01-02T03:04:07.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"cargo\",\"test\"]}","call_id":"call_1"}}"#,
    "\n",
    r#"{"timestamp":"2026-01-02T03:04:07.500Z","type":"response_item","payload":{"type":"function_call","name":"update_plan","arguments":"{\"plan\":[{\"step\":\"test\",\"status\":\"in_progress\"}]}","call_id":"call_2"}}"#,
    "\n",
    r#"{"timestamp":"2026-01-02T03:04:08.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"{\"output\":\"1 failed\",\"metadata\":{\"exit_code\":101,\"duration_seconds\":0.1}}"}}"#,
    "\n",
    r#"{"timestamp":"2026-01-02T03:04:08.500Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_2","output":"Plan updated"}}"#,
    "\n",
    r#"{"timestamp":"2026-01-02T03:04:09.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One test fails."}]}}"#,
    "\n",
);

/// A history of preferences: set, changed, repeated, removed, set again.
const PREFERENCES: &str = concat!(
    r#"{"ts":"2025-05-30T18:25:47-07:00","commit":"c1","category":"deps","key":"redb","value":"1","previous":null}"#,
    "\n",
    r#"{"ts":"2025-05-31T18:25:47-07:00","commit":"c2","category":"deps","key":"redb","value":"2","previous":"1"}"#,
    "\n",
    r#"{"ts":"2025-06-01T18:25:47-07:00","commit":"c3","category":"deps","key":"clap","value":"4","previous":null}"#,
    "\n",
    r#"{"ts":"2025-06-02T18:25:47-07:00","commit":"c4","category":"deps","key":"redb","value":null,"previous":"2"}"#,
    "\n",
    r#"{"ts":"2025-06-03T18:25:47-07:00","commit":"c5","category":"deps","key":"redb","value":"3","previous":null}"#,
    "\n",
);

/// The session that the program brings along.
fn bundled() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/assets/demo-session.jsonl");
    std::fs::read_to_string(path).unwrap()
}

fn store(folder: &tempfile::TempDir, name: &str) -> Store {
    let builder = Store::builder(folder.path().join(name)).registry(acpdb_hosts::registry()).index(false);
    fixed(builder, 11).open().unwrap()
}

/// A store's answers about its sessions: texts in their order, calls with their results, the edges of supersession.
///
/// A message that goes on in the next import has its end reported twice, each time with the facts known then. So seqs
/// differ, and items are counted here instead of named.
fn answers(store: &Store) -> Vec<String> {
    let world = folded(&events(store).unwrap());
    let all = lines(store).unwrap();
    let mut out = Vec::new();
    for stream in store.stream_names().unwrap() {
        let state = world.stream(stream.id).unwrap();
        // One commit opens all its streams first, so only the order within each counts. A later record about the
        // session changes a session that was opened without it.
        let apart = |line: &str| line.starts_with("message_finished") || line.starts_with("session_changed");
        let own = |line: &&String| line.contains(&stream.id.to_hex()) && !apart(line);
        out.extend(all.iter().filter(own).cloned());
        let place = |item| state.items(Seq::MAX).position(|ix| state.item_id(ix) == item);
        for edge in state.edges(Seq::MAX) {
            out.push(format!("{:?} -> {:?} {:?}", place(Some(edge.old)), place(edge.new), edge.rule));
        }
        let contexts = shown(store, stream.id, store.head().unwrap()).unwrap();
        out.extend(contexts.into_iter().map(|line| line.split_once(' ').unwrap().1.to_owned()));
        out.push(serde_json::to_string(&state.stats(Seq::MAX)).unwrap());
    }
    out
}

/// Fails with the first line that differs.
fn same(left: &[String], right: &[String], context: &str) {
    for number in 0..left.len().max(right.len()) {
        assert_eq!(left.get(number), right.get(number), "{context}: line {number}");
    }
}

fn check(format: ImportFormat, name: &str, text: &str, cut_step: usize) {
    let folder = tempfile::tempdir().unwrap();
    let whole = store(&folder, "whole");
    let first = import_bytes(&whole, format, name, text.as_bytes()).unwrap();
    assert!(first.report.is_complete() && first.event_count > 4, "{format}: {first:?}");
    let truth = answers(&whole);
    let again = import_bytes(&whole, format, name, text.as_bytes()).unwrap();
    assert_eq!(again.event_count, 0, "{format}: a second import records nothing");
    same(&answers(&whole), &truth, "again");

    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    for (number, end) in ends.iter().enumerate().step_by(cut_step) {
        let split = store(&folder, &format!("split{number}"));
        let _ = import_bytes(&split, format, name, &text.as_bytes()[..*end]).unwrap();
        let _ = import_bytes(&split, format, name, text.as_bytes()).unwrap();
        same(&answers(&split), &truth, &format!("{format}: split after line {}", number + 1));
    }
    // In the middle of a record, too: its end comes with the next import.
    let split = store(&folder, "broken");
    let middle = ends[ends.len() / 2] + 40;
    let _ = import_bytes(&split, format, name, &text.as_bytes()[..middle]).unwrap();
    let _ = import_bytes(&split, format, name, text.as_bytes()).unwrap();
    same(&answers(&split), &truth, &format!("{format}: split inside a record"));
}

#[test]
fn a_session_of_claude_code() {
    check(ImportFormat::ClaudeCode, "s1", CLAUDE_CODE, 1);
}

#[test]
fn a_rollout_of_codex() {
    check(ImportFormat::Codex, "r1", CODEX, 1);
}

#[test]
fn a_history_of_preferences() {
    check(ImportFormat::MemoryPreferences, "shop", PREFERENCES, 1);
}

#[test]
fn the_bundled_session() {
    check(ImportFormat::ClaudeCode, "e38a074a-4e13-5065-90bf-50e0880d827b", &bundled(), 60);
}

/// A file that is imported record by record, with other sessions' records between, says the same of its session.
#[test]
fn what_other_sessions_do_between_changes_no_context() {
    let folder = tempfile::tempdir().unwrap();
    let alone = store(&folder, "alone");
    let _ = import_bytes(&alone, ImportFormat::ClaudeCode, "file", CLAUDE_CODE.as_bytes()).unwrap();
    let mixed = store(&folder, "mixed");
    let ends: Vec<usize> = CLAUDE_CODE.match_indices('\n').map(|(at, _)| at + 1).collect();
    for end in ends {
        let _ =
            import_bytes(&mixed, ImportFormat::ClaudeCode, "file", &CLAUDE_CODE.as_bytes()[..end]).unwrap();
        let other = acpdb_engine::entry::StreamInfo::session("opencode", "other");
        let entry = acpdb_engine::entry::Entry::message("", acpdb_engine::event::Role::User, "hello");
        let _ = mixed.commit(&[Batch { stream: other, entries: vec![entry] }], Atomicity::One).unwrap();
    }
    let texts = |store: &Store| -> Vec<String> {
        let stream = store.find_stream("s1").unwrap().id;
        let lines = shown(store, stream, store.head().unwrap()).unwrap();
        lines.into_iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
    };
    assert_eq!(texts(&mixed), texts(&alone));
}
