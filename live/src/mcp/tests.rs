//! Tools over a store: their results, the events that they record, and their words on a model's mistakes.

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use serde_json::{Value, json};

use super::catalog;
use super::tools::{Reply, ToolError, Tools};

#[cfg(feature = "mcp-http")]
mod http;

struct Desk {
    folder: tempfile::TempDir,
    tools: Tools,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::builder(folder.path().join("store"))
            .registry(acpdb_hosts::registry())
            .any_file_system()
            .open();
        let store = store.unwrap();
        let info = StreamInfo {
            project: Some("/p".to_owned()),
            cwd: Some("/p".to_owned()),
            ..StreamInfo::session("opencode", "s1")
        };
        let long = "a line of a file that is long enough to be worth hiding\n".repeat(20);
        let todos =
            r#"[{"content":"Write the note","status":"pending"},{"content":"Read","status":"completed"}]"#;
        let _ = store
            .append(
                &info,
                vec![
                    Entry::prompt("p1"),
                    Entry::message("p1", Role::User, "Where is the connection refused?"),
                    Entry::step("step-1"),
                    Entry::tool_started("c1", "read", r#"{"filePath":"/p/a.rs"}"#),
                    Entry::tool_completed("c1", &long),
                    Entry::tool_started("c2", "todowrite", r#"{"todos":[]}"#),
                    Entry::tool_completed("c2", todos),
                ],
            )
            .unwrap();
        Self { folder, tools: Tools::new(store, None, Some("/p".to_owned())) }
    }

    fn call(&self, name: &str, arguments: &Value) -> Result<Reply, ToolError> {
        self.tools.call(name, arguments.as_object().unwrap())
    }

    fn ok(&self, name: &str, arguments: &Value) -> Reply {
        self.call(name, arguments).unwrap_or_else(|error| unreachable!("{name} {arguments}: {error}"))
    }
}

#[test]
fn what_is_discarded_is_found_explained_and_restored() {
    let desk = Desk::new();
    let found = desk.ok("recall", &json!({"query": "tool:read"}));
    let item = found.value.pointer("/items/0/item").and_then(Value::as_str).unwrap().to_owned();
    assert!(found.text.contains("worth hiding"), "{found:?}");
    let hidden = desk.ok("context_discard", &json!({"targets": [item]}));
    assert_eq!(hidden.value.pointer("/hidden/0"), Some(&json!(item)));
    let why = desk.ok("explain", &json!({"item": item}));
    assert!(why.text.contains("discard"), "{why:?}");
    let still = desk.ok("recall", &json!({"query": "\"worth hiding\""}));
    assert!(still.text.contains("worth hiding"), "the history keeps it: {still:?}");
    let shown = desk.ok("context_restore", &json!({"targets": [item]}));
    assert_eq!(shown.value.pointer("/shown/0"), Some(&json!(item)));
    let distilled =
        desk.ok("context_distill", &json!({"targets": [{"target": item, "summary": "twenty equal lines"}]}));
    assert_eq!(distilled.value.pointer("/hidden/0"), Some(&json!(item)));
}

#[test]
fn memory_is_kept_found_and_taken_back() {
    let desk = Desk::new();
    let id = desk.ok(
        "memory_remember",
        &json!({"kind": "decision", "text": "Jobs wait in Postgres", "rationale": "one server"}),
    );
    let id = id.value.pointer("/id").and_then(Value::as_str).unwrap().to_owned();
    desk.ok("memory_remember", &json!({"kind": "preference", "key": "style/indent", "text": "tabs"}));
    assert!(desk.ok("memory_recall", &json!({})).text.contains("tabs"));
    let found = desk.ok("memory_recall", &json!({"query": "postgres JOBS"}));
    assert_eq!(found.value.pointer("/items").and_then(Value::as_array).map(Vec::len), Some(1), "{found:?}");
    desk.ok("memory_forget", &json!({"id": id, "reason": "moved"}));
    assert_eq!(desk.ok("memory_recall", &json!({"query": "postgres"})).value, json!({"items": []}));
}

/// Changes a byte of a text in the log.
fn damage(folder: &std::path::Path, text: &str) {
    let path = folder.join("store/log/000000000001.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    *bytes.get_mut(place).unwrap() ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// The answer was "nothing is open" when the list of todos was damaged, and "0 items matched" when the results were.
#[test]
fn an_answer_that_leaves_out_what_is_damaged_says_so() {
    for (text, tool, arguments) in [
        ("Write the note", "todo", json!({})),
        ("worth hiding", "recall", json!({"query": "\"worth hiding\""})),
        ("worth hiding", "recall", json!({"query": "tool:read"})),
    ] {
        let desk = Desk::new();
        assert!(!desk.ok(tool, &arguments).text.contains("left out"));
        damage(desk.folder.path(), text);
        // Another process: this one may have the text in memory.
        let store = Store::builder(desk.folder.path().join("store")).registry(acpdb_hosts::registry());
        let store = store.any_file_system().read_only().open().unwrap();
        let tools = Tools::new(store, None, Some("/p".to_owned()));
        let reply = tools.call(tool, arguments.as_object().unwrap()).unwrap();
        let says = |part: &str| assert!(reply.text.contains(part), "{tool} {arguments}: {reply:?}");
        says("left out");
        says("acpdb verify");
        assert!(!reply.text.contains("nothing is open"), "{reply:?}");
        if tool == "todo" {
            says("[pending] [");
        }
    }
}

#[test]
fn todos_are_those_that_are_open() {
    let desk = Desk::new();
    assert_eq!(desk.ok("todo", &json!({})).text, "[pending] Write the note");
}

#[test]
fn mistakes_are_told_in_words() {
    let desk = Desk::new();
    for (name, arguments, said) in [
        ("no_such_tool", json!({}), "there is no tool"),
        ("recall", json!({}), "give query as a text"),
        ("recall", json!({"query": "x", "session": "none"}), "none"),
        ("explain", json!({"item": "#9999"}), "9999"),
        ("context_discard", json!({"targets": []}), "at least one"),
        ("context_discard", json!({"targets": [7]}), "7 is no target"),
        ("context_distill", json!({"targets": [{"target": "#2"}]}), "give summary"),
        ("memory_remember", json!({"kind": "wish", "text": "x"}), "kinds: decision"),
        ("memory_remember", json!({"kind": "preference", "text": "x"}), "needs a key"),
        ("memory_forget", json!({"id": "nothing"}), "nothing"),
    ] {
        let error = desk.call(name, &arguments).unwrap_err().to_string();
        assert!(error.contains(said), "{name} {arguments}: {error}");
    }
}

#[test]
fn each_tool_that_is_listed_is_there_and_gives_what_its_schema_requires() {
    let desk = Desk::new();
    for tool in catalog::tools() {
        let error = desk.call(tool.name, &json!({"session": "none"})).unwrap_err();
        assert!(!matches!(error, ToolError::Unknown(_)), "{}", tool.name);
        for schema in [&tool.input, &tool.output] {
            let properties = schema.get("properties").and_then(Value::as_object).unwrap();
            let required = schema.get("required").and_then(Value::as_array).unwrap();
            assert!(
                required.iter().all(|name| properties.contains_key(name.as_str().unwrap())),
                "{}",
                tool.name
            );
        }
    }
}
