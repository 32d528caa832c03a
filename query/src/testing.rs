//! Small stores in memory for the tests of this crate.

use std::sync::Arc;

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::storage::SimWorld;
use acpdb_engine::testing::TestTools;
use acpdb_engine::{Store, View, store::StreamName};

/// An empty store that knows the test tools.
pub(crate) fn store() -> Store {
    let storage = Arc::new(SimWorld::new(7).process(1));
    Store::builder("/sim").storage(storage).registry(Arc::new(TestTools)).open().unwrap()
}

/// Appends a script to a session, one fact a line; returns the session.
///
/// ```text
/// turn | user TEXT | say TEXT | TOOL ARGUMENT [ok|failed|pending] [=CALL]
/// act discard|distill|restore|pin|rewind CALL
/// ```
pub(crate) fn play(store: &Store, session: &str, script: &str) -> StreamName {
    let stream = StreamInfo::session("acpdb", session);
    for (number, line) in script.lines().map(str::trim).filter(|line| !line.is_empty()).enumerate() {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let entries = match verb {
            "turn" => vec![Entry::step("")],
            "user" => vec![Entry::message("", Role::User, rest)],
            "say" => vec![Entry::message("", Role::Assistant, rest)],
            "act" => {
                act(store, session, rest);
                continue;
            }
            tool => call(session, number, tool, rest),
        };
        // The script goes on from the head; the receipt is not needed.
        let _ = store.append(&stream, entries).unwrap();
    }
    store.find_stream(session).unwrap()
}

/// An act on a call. One that is refused changes nothing.
fn act(store: &Store, session: &str, act: &str) {
    let (verb, call) = act.split_once(' ').unwrap();
    let Ok(stream) = store.find_stream(session) else { return };
    let target = || Target::Call(call.to_owned());
    let hide = |action, summary: Option<&str>| {
        let targets = vec![(target(), summary.map(str::to_owned))];
        // An act that is refused changes nothing, which is a case, too.
        let _ = store.context(stream.id, action, targets);
    };
    match verb {
        "discard" => hide(ContextAction::Discard, None),
        "distill" => hide(ContextAction::Distill, Some("what it said, in short")),
        "restore" => hide(ContextAction::Restore, None),
        "pin" => drop(store.pin(stream.id, vec![target()])),
        "rewind" => {
            let view = store.view(stream.id).unwrap();
            let ix = view.state().calls_by_host_id(call, view.at()).pop();
            let item = ix.and_then(|ix| view.state().item_id(ix));
            drop(item.map(|item| store.rewind(stream.id, item.seq)));
        }
        other => panic!("no act is called {other}"),
    }
}

fn call(session: &str, number: usize, tool: &str, rest: &str) -> Vec<Entry> {
    let mut words: Vec<&str> = rest.split(' ').collect();
    let named = words.iter().position(|word| word.starts_with('='));
    let call = named.map(|place| words.remove(place).trim_start_matches('=').to_owned());
    let call = call.unwrap_or_else(|| format!("{session}-{number}"));
    let outcome = match words.last() {
        Some(&outcome @ ("ok" | "failed" | "pending")) => {
            words.pop();
            outcome
        }
        _ => "ok",
    };
    let argument = words.join(" ");
    let name = match tool {
        "grep" => "pattern",
        "bash" => "command",
        "webfetch" => "url",
        _ => "filePath",
    };
    let params = serde_json::json!({ name: argument }).to_string();
    // Long enough that a tombstone is shorter.
    let output = format!("{argument} line of output\n").repeat(20);
    let started = Entry::tool_started(&call, tool, params);
    match outcome {
        "pending" => vec![started],
        "failed" => vec![started, Entry::tool_failed(&call, output)],
        _ => vec![started, Entry::tool_completed(&call, output)],
    }
}

/// A view of a session at its head.
pub(crate) fn view(store: &Store, session: &StreamName) -> View {
    store.view(session.id).unwrap()
}
