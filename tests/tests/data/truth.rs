//! The context by the hosts' own files, read by other means, beside the context that the fold arrives at.
//!
//! ```text
//! Claude Code   from the last record up by `parentUuid`, to a root or a compaction; parts of one message belong together
//! opencode      from the newest finished compaction on: its summary and the messages behind it
//! Codex         the items of the rollout, from the newest `replacement_history` on
//! Gemini CLI    the messages of the file, as it is rewritten when something is taken back
//! Copilot CLI   all calls
//! ```
//!
//! Calls are compared by the host's ids and in their order, messages by their ids. The recordings hold one compaction of
//! Claude Code and one of opencode, and no rewind: those of every host are tables in `hosts/tests`.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::fold::{ItemKind, State};
use acpdb_engine::ids::Seq;
use acpdb_engine::store::StreamName;
use acpdb_hosts::import::ImportFormat;
use acpdb_tests::support::import_bytes;
use serde_json::Value;

use super::{files, open};

/// A host's items in a session's context.
#[derive(Default, PartialEq, Eq, Debug)]
struct Held {
    /// Ids of calls, in order.
    calls: Vec<String>,
    /// Ids of messages that say something.
    messages: BTreeSet<String>,
}

/// Reads it from a session's file.
type Truth = fn(&[u8]) -> Held;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Whether a block or part of these types says something to the model.
fn speaks(block: &Value, types: &[&str]) -> bool {
    types.iter().any(|known| block["type"] == *known)
        && ["text", "thinking", "source"].iter().any(|name| match &block[*name] {
            Value::String(text) => !text.is_empty(),
            other => !other.is_null(),
        })
}

fn claude_code(bytes: &[u8]) -> Held {
    let records = lines(bytes);
    let spoken = |record: &&Value| {
        matches!(record["type"].as_str(), Some("user" | "assistant")) && record["isSidechain"] != true
    };
    let by_id: BTreeMap<String, &Value> =
        records.iter().rev().map(|record| (text(&record["uuid"]), record)).collect();
    let mut branch = BTreeSet::new();
    let mut here = records.iter().rev().find(spoken).map(|record| text(&record["uuid"]));
    while let Some(record) = here.as_ref().and_then(|id| by_id.get(id)) {
        assert!(branch.insert(text(&record["uuid"])), "a circle");
        here = record["parentUuid"].as_str().map(str::to_owned);
    }
    let on_branch = |record: &&Value| branch.contains(&text(&record["uuid"]));
    let replies: BTreeSet<String> = records
        .iter()
        .filter(|record| record["type"] == "assistant")
        .filter(on_branch)
        .map(|record| text(&record["message"]["id"]))
        .collect();
    let mut held = Held::default();
    for record in records.iter().filter(spoken) {
        let content = &record["message"]["content"];
        if record["type"] == "assistant" {
            let reply = text(&record["message"]["id"]);
            if !replies.contains(&reply) {
                continue;
            }
            for block in list(content) {
                if block["type"] == "tool_use" {
                    held.calls.push(text(&block["id"]));
                } else if speaks(block, &["text", "thinking"]) {
                    held.messages.insert(reply.clone());
                }
            }
        } else if on_branch(&record) {
            let says = content.as_str().is_some_and(|text| !text.is_empty())
                || list(content).iter().any(|block| speaks(block, &["text", "image", "document"]));
            if says {
                held.messages.insert(text(&record["uuid"]));
            }
        }
    }
    held
}

fn opencode(bytes: &[u8]) -> Held {
    let session: Value = serde_json::from_slice(bytes).unwrap();
    let messages = list(&session["messages"]);
    let is_summary = |message: &Value| {
        message["info"]["summary"] == true
            && message["info"]["mode"] == "compaction"
            && message["info"]["error"].is_null()
    };
    let begin = messages.iter().rposition(is_summary).unwrap_or(0);
    let mut held = Held::default();
    for message in &messages[begin..] {
        for part in list(&message["parts"]) {
            if part["type"] == "tool" {
                held.calls.push(text(&part["callID"]));
            } else if speaks(part, &["text", "reasoning"]) {
                held.messages.insert(text(&message["info"]["id"]));
            }
        }
    }
    held
}

fn codex(bytes: &[u8]) -> Held {
    let records = lines(bytes);
    let begin = records.iter().rposition(|record| record["type"] == "compacted").map_or(0, |place| place + 1);
    let calls = records[begin..]
        .iter()
        .map(|record| &record["payload"])
        .filter(|item| matches!(item["type"].as_str(), Some("function_call" | "custom_tool_call")));
    Held { calls: calls.map(|item| text(&item["call_id"])).collect(), ..Held::default() }
}

fn gemini_cli(bytes: &[u8]) -> Held {
    let session: Value = serde_json::from_slice(bytes).unwrap();
    let calls = list(&session["messages"]).iter().flat_map(|message| list(&message["toolCalls"]));
    Held { calls: calls.map(|call| text(&call["id"])).collect(), ..Held::default() }
}

fn copilot_cli(bytes: &[u8]) -> Held {
    let records = lines(bytes);
    let begun = records.iter().filter(|record| record["type"] == "tool.execution_start");
    Held { calls: begun.map(|record| text(&record["data"]["toolCallId"])).collect(), ..Held::default() }
}

/// The fold's items in the current context, superseded or not.
fn folded(state: &State) -> Held {
    let mut held = Held::default();
    for ix in state.current(Seq::MAX) {
        let brief = state.item_header(ix, Seq::MAX).unwrap();
        match (brief.kind, brief.call, brief.message) {
            (ItemKind::Call, Some(call), _) => held.calls.push(call.to_string()),
            (ItemKind::Call, ..) => {}
            // The question before a summary is the host's own: no file names it.
            (_, _, Some(message)) if message.starts_with("question:") => {}
            (_, _, Some(message)) => {
                held.messages.insert(message.to_string());
            }
            _ => {}
        }
    }
    held
}

/// Compares each session of a folder; gives how many calls history has, and how many are in a context.
fn compare(folder: &str, format: ImportFormat, truth: Truth) -> [usize; 2] {
    let mut counts = [0, 0];
    for (name, bytes) in files(folder) {
        let home = tempfile::tempdir().unwrap();
        let store = open(&home.path().join("store"));
        let _ = import_bytes(&store, format, &name, &bytes).unwrap();
        let is_own = |stream: &&StreamName| stream.parent.is_none() || format == ImportFormat::Opencode;
        let streams = store.stream_names().unwrap();
        let [stream] = streams.iter().filter(is_own).collect::<Vec<_>>()[..] else {
            panic!("{name}: {streams:?}")
        };
        let view = store.view(stream.id).unwrap();
        let state = view.state();
        let (expected, mut found) = (truth(&bytes), folded(state));
        if expected.messages.is_empty() {
            // The file names no messages.
            found.messages.clear();
        }
        counts[0] += state.items(Seq::MAX).filter(|ix| state.tool(*ix).is_some()).count();
        counts[1] += found.calls.len();
        assert_eq!(found, expected, "{folder}/{name}");
    }
    counts
}

/// Calls of all sessions of a folder: in history, and in the contexts that the hosts would go on with.
#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn contexts_are_those_that_the_hosts_would_go_on_with() {
    let table: &[(&str, ImportFormat, Truth, [usize; 2])] = &[
        ("claude-code-large/context-evaluator", ImportFormat::ClaudeCode, claude_code, [840, 840]),
        ("claude-code/context-evaluator", ImportFormat::ClaudeCode, claude_code, [369, 369]),
        ("claude-code/entire-cli", ImportFormat::ClaudeCode, claude_code, [252, 180]),
        ("opencode/gatomia-vscode", ImportFormat::Opencode, opencode, [266, 266]),
        ("opencode/session-bridge", ImportFormat::Opencode, opencode, [144, 97]),
        ("codex/session-bridge", ImportFormat::Codex, codex, [406, 406]),
        ("gemini-cli/entire-cli", ImportFormat::GeminiCli, gemini_cli, [12, 12]),
        ("gemini-cli/session-bridge", ImportFormat::GeminiCli, gemini_cli, [9, 9]),
        ("copilot-cli/agentv", ImportFormat::CopilotCli, copilot_cli, [68, 68]),
    ];
    for (folder, format, truth, expected) in table {
        let found = compare(folder, *format, *truth);
        println!("{folder}: {found:?}");
        assert_eq!(found, *expected, "{folder}");
    }
}
