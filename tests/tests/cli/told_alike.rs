//! One list of operations: what is recorded line by line or by the library makes one history, and what is due is one text.

use acpdb::{Entry, Role, StreamInfo};
use serde_json::{Value, json};

use super::world::World;

/// An event of a session: a message, or a call in a turn of its own with parameters and result.
enum Happens {
    Says(Role, &'static str),
    Call(&'static str, &'static str, Value, Result<&'static str, &'static str>),
}

fn happens() -> Vec<Happens> {
    let path = |path: &str| json!({"filePath": path});
    let written = json!({"filePath": "src/a.rs", "content": "fn b() {}"});
    vec![
        Happens::Says(Role::User, "Mend src/a.rs."),
        Happens::Call("c1", "read", path("/p/src/a.rs"), Ok("fn a() {}\nfn c() {}\n")),
        Happens::Says(Role::Assistant, "I look at the other one, too."),
        Happens::Call("c2", "read", path("src/b.rs"), Ok("mod a;\nmod c;\nmod d;\n")),
        Happens::Call("c3", "read", path("src/b.rs"), Err("no such file")),
        Happens::Call("c4", "read", path("src/b.rs"), Ok("mod a;\nmod c;\nmod d;\n")),
        Happens::Call("c5", "write", written, Ok("written")),
        Happens::Call(
            "c6",
            "todowrite",
            json!({"todos": []}),
            Ok(r#"[{"content":"look","status":"pending"}]"#),
        ),
        Happens::Says(Role::User, "Go on."),
    ]
}

fn by_append(world: &World) {
    let line = |what: &Value| {
        let mut line = json!({"session": "s1", "host": "opencode", "project": "/p", "cwd": "/p"});
        line.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let lines = happens().into_iter().map(|what| match what {
        Happens::Says(role, text) => {
            let role = if role == Role::User { "user" } else { "assistant" };
            line(&json!({"message": {"role": role, "text": text}}))
        }
        Happens::Call(call, tool, params, result) => {
            let mut told = json!({"call": call, "tool": tool, "params": params});
            match result {
                Ok(output) => told["output"] = json!(output),
                Err(error) => told["error"] = json!(error),
            }
            line(&json!({"turn": true, "tool": told}))
        }
    });
    world.run_with(&["append", "--stdin"], lines.collect::<String>()).ok();
}

fn by_library(world: &World) {
    let store = acpdb::open(world.path("store")).unwrap();
    let mut info = StreamInfo::session("opencode", "s1");
    info.project = Some("/p".to_owned());
    info.cwd = Some("/p".to_owned());
    let session = store.session(info);
    for (number, what) in happens().into_iter().enumerate() {
        let key = format!("k{number}");
        let _ = match what {
            Happens::Says(role, text) => session.append([Entry::message(key, role, text)]),
            Happens::Call(call, tool, params, result) => session.append([
                Entry::step(key),
                Entry::tool_started(call, tool, params.to_string()),
                match result {
                    Ok(output) => Entry::tool_completed(call, output),
                    Err(error) => Entry::tool_failed(call, error),
                },
            ]),
        }
        .unwrap();
    }
    store.close().unwrap();
}

/// The history, without numbers of events: a line may be more of them than an entry.
fn history(world: &World) -> Vec<Value> {
    let told: Value = serde_json::from_str(&world.run(&["history", "s1", "--json"]).ok()).unwrap();
    let rows = told["items"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let mut row = row.as_object().unwrap().clone();
        row.retain(|name, _| !["item", "seq", "superseded_by"].contains(&name.as_str()));
        Value::Object(row)
    };
    rows.map(row).collect()
}

#[test]
fn what_happened_makes_the_same_history_line_by_line_and_by_the_library() {
    let (lines, library) = (World::new(), World::new());
    by_append(&lines);
    by_library(&library);
    let (by_lines, by_entries) = (history(&lines), history(&library));
    let superseded = by_lines.iter().filter(|row| row["rule"] == "file").count();
    assert_eq!((by_lines.len(), superseded), (9, 1), "{by_lines:#?}");
    for (one, other) in by_lines.iter().zip(&by_entries) {
        assert_eq!(one, other);
    }
    assert_eq!(by_lines.len(), by_entries.len());
    for world in [&lines, &library] {
        world.assert_sound();
    }
}

#[test]
fn the_history_of_the_command_line_is_that_of_the_library() {
    let world = World::new();
    by_append(&world);
    let told: Value = serde_json::from_str(&world.run(&["history", "s1", "--json"]).ok()).unwrap();
    let told = told["items"].as_array().unwrap().iter();
    let told: Vec<Value> = told
        .map(|row| json!([row["item"], row["turn"], row["tool"], row["state"], row["in_context"]]))
        .collect();
    let store = acpdb::open(world.path("store")).unwrap();
    let view = store.session(StreamInfo::session("opencode", "s1")).view().unwrap();
    let items = view.history().into_iter().map(|item| {
        json!([
            item.item.to_string(),
            item.turn.get(),
            item.tool.as_deref(),
            item.output.state,
            item.in_context
        ])
    });
    assert_eq!(told, items.collect::<Vec<_>>());
}

/// The text that is due in `/p` as a new session begins, by the plug-in and by the prompt of MCP.
fn due(world: &World) -> (Value, String) {
    let line = json!({"id": 1, "op": "due", "session": "s2", "folder": "/p"});
    let answer = world.run_with(&["plugin", "opencode", "--mode", "suggest"], format!("{line}\n")).ok();
    let by_plugin: Value = serde_json::from_str(answer.lines().next().unwrap()).unwrap();
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "prompts/get", "params": {"name": "due"}}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let answers = world.run_with(&["mcp", "--session", "s1"], input).ok();
    let by_mcp: Value = serde_json::from_str(answers.lines().nth(1).unwrap()).unwrap();
    let by_mcp = by_mcp["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
    (by_plugin["text"].clone(), by_mcp)
}

#[test]
fn what_is_due_is_one_text_and_names_what_the_lists_show() {
    let world = World::new();
    let line = |what: &Value| {
        let mut line = json!({"session": "s1", "host": "opencode", "project": "/p", "cwd": "/p"});
        line.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        format!("{line}\n")
    };
    world
        .run_with(&["append", "--stdin"], line(&json!({"message": {"role": "user", "text": "Go on."}})))
        .ok();
    let (by_plugin, by_mcp) = due(&world);
    assert!(by_plugin.is_null() && by_mcp.starts_with("Nothing is open"), "{by_plugin} {by_mcp}");
    let lines = [
        line(
            &json!({"todos": [{"content": "tell", "status": "pending"}, {"content": "look", "status": "completed"}]}),
        ),
        line(&json!({"memory": {"kind": "preference", "key": "style/indent", "value": "tabs"}})),
        line(&json!({"memory": {"kind": "preference", "key": "style/indent", "value": "2 spaces"}})),
        line(&json!({"memory": {"kind": "fact", "value": "the office is in Rome"}})),
        line(&json!({"memory": {"kind": "fact", "value": "the demo is on Friday", "lifespan": "session"}})),
    ];
    world.run_with(&["append", "--stdin"], lines.concat()).ok();
    let (by_plugin, by_mcp) = due(&world);
    assert_eq!(by_plugin, json!(by_mcp));
    let todos: Value =
        serde_json::from_str(&world.run(&["todo", "list", "-s", "s1", "--json"]).ok()).unwrap();
    for todo in todos["items"].as_array().unwrap() {
        let row = format!("- [{}] {}\n", todo["status"].as_str().unwrap(), todo["content"].as_str().unwrap());
        assert_eq!(by_mcp.contains(&row), todo["status"] == "pending", "{row} in {by_mcp}");
    }
    let memory: Value =
        serde_json::from_str(&world.run(&["memory", "list", "--project", "/p", "--all", "--json"]).ok())
            .unwrap();
    let items = memory["items"].as_array().unwrap();
    assert_eq!(items.len(), 3, "{memory}");
    for item in items {
        let text = format!("{} {}", item["id"].as_str().unwrap(), item["kind"].as_str().unwrap());
        assert_eq!(by_mcp.contains(&text), item["standing"] == "current", "{text} in {by_mcp}");
    }
}
