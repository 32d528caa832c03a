//! One list of operations, asked through each door: what one door answers or refuses, each does.

use serde_json::{Map, Value, json};

use super::listed::{Operation, list};
use super::world::World;

/// The doors that answer; those of other languages are held against the list by their own tests.
const DOORS: [&str; 4] = ["command", "mcp", "plugin", "append"];

/// An answer: whether the door did as it was told, the value if it has one, and all words.
struct Told {
    ok: bool,
    value: Value,
    words: String,
}

fn mcp(world: &World, name: &str, arguments: &Value) -> Told {
    let answers = world.mcp("s1", name, arguments);
    let answer: Value = serde_json::from_str(answers.lines().nth(1).unwrap()).unwrap();
    let result = &answer["result"];
    let ok = result["isError"] == json!(false);
    let words = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    Told { ok, value: result["structuredContent"].clone(), words }
}

fn plugin(world: &World, line: &Value) -> Told {
    let mut line = line.clone();
    line["id"] = json!(1);
    line["session"] = json!("s1");
    let answer = world.run_with(&["plugin", "opencode", "--mode", "prune"], format!("{line}\n")).ok();
    let answer: Value = serde_json::from_str(answer.lines().next().unwrap()).unwrap();
    let ok = answer.get("error").is_none();
    let words = if ok { &answer["text"] } else { &answer["error"] };
    Told { ok, value: Value::Null, words: words.as_str().unwrap_or_default().to_owned() }
}

fn command(world: &World, words: &[String], input: &str) -> Told {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.extend(["--session", "s1", "--json"]);
    let ran = world.run_with(&words, input);
    let value = serde_json::from_slice(&ran.out).unwrap_or_default();
    Told { ok: ran.code == 0, value, words: format!("{}{}", ran.text(), ran.err) }
}

/// Operation, arguments: the words of the command line, and what it reads.
fn typed(name: &str, arguments: &Value) -> (Vec<String>, String) {
    let text = |field: &str| arguments[field].as_str().unwrap_or_default().to_owned();
    let words =
        |words: &[&str], more: Vec<String>| words.iter().map(|word| (*word).to_owned()).chain(more).collect();
    let said = match name {
        "remember" => {
            let old = arguments["replaces"].as_array().into_iter().flatten();
            let old = old.flat_map(|old| ["--replaces".to_owned(), old.as_str().unwrap().to_owned()]);
            words(&["memory", "add"], [text("kind"), text("text")].into_iter().chain(old).collect())
        }
        "supersede" => words(&["memory", "supersede"], vec![text("old"), text("new")]),
        "forget" => words(&["memory", "retract"], vec![text("id")]),
        "recall" => words(&["memory", "list"], vec![]),
        "chain" => words(&["history", "--chain"], vec![text("item")]),
        "explain" => words(&["explain"], vec![text("item")]),
        "search" => words(&["search"], vec![text("query")]),
        "todos" => words(&["todo", "list"], vec![]),
        "tasks" => words(&["task", "list"], vec![]),
        "tasks_update" => return (words(&["task", "update"], vec![]), arguments.to_string()),
        "context" => {
            let targets = arguments["targets"].as_array().unwrap().iter();
            let targets = targets.map(|target| target[0].as_str().unwrap().to_owned());
            words(&["context", &text("action")], targets.collect())
        }
        other => panic!("{other}"),
    };
    (said, String::new())
}

/// Says or asks something through a door; `None` if the door leaves it out.
fn through(world: &World, door: &str, name: &str, operation: &Operation, arguments: &Value) -> Option<Told> {
    let first = operation.names(door).first()?.clone();
    Some(match door {
        "command" => {
            let (words, input) = typed(name, arguments);
            command(world, &words, &input)
        }
        "mcp" if name == "context" => {
            let targets = arguments["targets"].as_array().unwrap().iter().map(|target| match &target[1] {
                Value::Null if arguments["action"] == "distill" => json!({"target": target[0]}),
                Value::Null => target[0].clone(),
                summary => json!({"target": target[0], "summary": summary}),
            });
            let targets: Vec<Value> = targets.collect();
            mcp(
                world,
                &format!("context_{}", arguments["action"].as_str().unwrap()),
                &json!({"targets": targets}),
            )
        }
        "mcp" => mcp(world, &first, arguments),
        "plugin" => plugin(world, &json!({"op": "tool", "name": first, "arguments": arguments})),
        _ => {
            let field = match name {
                "tasks_update" => json!({"tasks": arguments["tasks"]}),
                _ => json!({first: arguments}),
            };
            let mut line = json!({"session": "s1", "host": "opencode"});
            line.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
            let ran = world.run_with(&["append", "--stdin"], line.to_string());
            Told { ok: ran.code == 0, value: Value::Null, words: format!("{}{}", ran.text(), ran.err) }
        }
    })
}

fn line(what: &Value) -> String {
    let mut line =
        json!({"session": "s1", "host": "opencode", "project": "/p", "cwd": "/p", "title": "Two files"});
    line.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
    format!("{line}\n")
}

/// A session with calls on files, todos, tasks and memory.
fn begun() -> World {
    let world = World::new();
    let call = |id: &str, tool: &str, path: &str| {
        let params = json!({"filePath": path, "content": "x"});
        line(
            &json!({"turn": true, "tool": {"call": id, "tool": tool, "params": params, "output": format!("the lines of {path} ").repeat(20)}}),
        )
    };
    let memory = |kind: &str, value: &str, more: &Value| {
        let mut entry = json!({"kind": kind, "value": value});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line(&json!({"memory": entry}))
    };
    let lines = [
        line(&json!({"message": {"role": "user", "text": "Read both files."}})),
        call("c1", "read", "/p/src/a.rs"),
        call("c2", "read", "/p/src/b.rs"),
        call("c3", "write", "/p/src/a.rs"),
        line(
            &json!({"todos": [{"content": "look", "status": "in_progress"}, {"content": "tell", "status": "pending"}]}),
        ),
        memory("preference", "tabs", &json!({"key": "style/indent"})),
        memory("preference", "2 spaces", &json!({"key": "style/indent"})),
        memory("fact", "the port is 8080", &json!({"subject": "port"})),
        memory("fact", "the office is in Turin", &json!({})),
        memory("fact", "the office is in Rome", &json!({"replaces": ["f2"]})),
        memory("decision", "Jobs wait in Redis", &json!({"rationale": "it was there"})),
        line(&json!({"tasks": [{"id": "T1", "content": "look", "status": "in_progress"}]})),
    ];
    world.run_with(&["append", "--stdin"], lines.concat()).ok();
    world
}

/// The rows of an answer, with the fields that the list names.
fn rows(operation: &Operation, door: &str, value: &Value) -> Vec<Map<String, Value>> {
    let path = &operation.rows[door];
    let found = path.split('.').filter(|part| !part.is_empty()).fold(value, |value, part| &value[part]);
    let all = found.as_array().cloned().unwrap_or_else(|| vec![found.clone()]);
    let renamed = operation.told.get(door);
    let row = |row: Value| {
        let fields = operation.tells.iter().map(|name| {
            let there = renamed.and_then(|renamed| renamed.get(name)).unwrap_or(name);
            let value = row.get(there).unwrap_or_else(|| panic!("{door} tells no {there}: {row}"));
            (name.clone(), value.clone())
        });
        fields.collect()
    };
    all.into_iter().map(row).collect()
}

/// The questions about the session, by operation. They change nothing, so one world has the answers of all doors.
fn questions() -> Vec<(&'static str, Value)> {
    vec![
        ("recall", json!({})),
        ("chain", json!({"item": "c1"})),
        ("explain", json!({"item": "c1"})),
        ("explain", json!({"item": "c2"})),
        ("explain", json!({"item": "/p/src/a.rs"})),
        ("explain", json!({"item": "b.rs"})),
        ("search", json!({"query": "b.rs"})),
        ("todos", json!({})),
        ("tasks", json!({})),
    ]
}

/// A file was no item but for the command line, tasks had their summaries under two names, and subjects were told by one door.
#[test]
fn what_is_asked_is_answered_alike_through_every_door() {
    let (world, list) = (begun(), list());
    for (name, arguments) in questions() {
        let operation = &list[name];
        let by_command = through(&world, "command", name, operation, &arguments).unwrap();
        assert!(by_command.ok, "{name} {arguments}: {}", by_command.words);
        let mut expected = rows(operation, "command", &by_command.value);
        // One item may match by its parameters and by its result.
        expected.dedup();
        assert!(!expected.is_empty(), "{name}");
        let by_mcp = through(&world, "mcp", name, operation, &arguments).unwrap();
        let mut found = rows(operation, "mcp", &by_mcp.value);
        // Each door has an order of its own for hits: by time, and by session.
        if name == "search" {
            for rows in [&mut expected, &mut found] {
                rows.sort_by_key(|row| row["item"].to_string());
                rows.dedup();
            }
        }
        assert_eq!(found, expected, "{name} {arguments}");
        if let Some(by_plugin) = through(&world, "plugin", name, operation, &arguments) {
            assert_eq!(by_plugin.words, by_mcp.words, "{name} {arguments}");
        }
    }
    let chain = |door: &str| through(&world, door, "chain", &list["chain"], &json!({"item": "p2"})).unwrap();
    let ids = |rows: &Value| rows.as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    let by_command = ids(&chain("command").value["items"][0]["items"]);
    assert_eq!(by_command, [json!("p1"), json!("p2")]);
    assert_eq!(ids(&chain("mcp").value["chain"]["members"]), by_command);
    assert_eq!(chain("plugin").words, chain("mcp").words);
}

/// Hosts that feed themselves line by line had no todo list where their tools change single todos.
#[test]
fn tools_that_change_single_todos_make_a_list_through_append() {
    let world = World::new();
    let line = |what: &Value| {
        let mut line = json!({"session": "s1", "host": "claude-code", "turn": true});
        line.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let lines = [
        line(
            &json!({"tool": {"call": "c1", "tool": "TaskCreate", "params": {"subject": "Look"}, "output": "Task #1 created successfully: Look"}}),
        ),
        line(&json!({"tool_started": {"call": "c2", "tool": "TaskCreate", "params": {"subject": "Tell"}}})),
        line(&json!({"tool_finished": {"call": "c2", "output": "Task #2 created successfully: Tell"}})),
        line(
            &json!({"tool": {"call": "c3", "tool": "TaskUpdate", "params": {"taskId": "1", "status": "completed"}, "output": "Updated task #1 status"}}),
        ),
        line(
            &json!({"tool": {"call": "c4", "tool": "TaskUpdate", "params": {"taskId": "2", "status": "completed"}, "error": "no such task"}}),
        ),
    ];
    world.run_with(&["append", "--stdin"], lines.concat()).ok();
    world.assert_sound();
    let list: Value = serde_json::from_str(&world.run(&["todo", "list", "-s", "s1", "--json"]).ok()).unwrap();
    let rows = list["items"].as_array().unwrap().iter();
    let rows: Vec<Value> = rows.map(|row| json!([row["content"], row["status"]])).collect();
    assert_eq!(rows, [json!(["Look", "completed"]), json!(["Tell", "pending"])]);
}

/// A host's own tool of tasks was a call as any other: its outputs stayed, whatever it completed.
#[test]
fn a_hosts_own_tool_changes_tasks_once_its_call_has_completed() {
    let world = World::new();
    let feed = |lines: &[Value]| {
        let line = |what: &Value| {
            let mut line = json!({"session": "s1", "host": "my-agent", "turn": true});
            line.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
            format!("{line}\n")
        };
        world.run_with(&["append", "--stdin"], lines.iter().map(line).collect::<String>()).ok();
        world.assert_sound();
    };
    let update = |status: &str, summary: &str| {
        let task =
            json!({"id": "T1", "content": "find the port", "status": status, "result_summary": summary});
        json!({"todos": [task]})
    };
    let tasks = || {
        let list: Value =
            serde_json::from_str(&world.run(&["task", "list", "-s", "s1", "--json"]).ok()).unwrap();
        let rows = list["items"].as_array().unwrap().iter();
        rows.map(|row| json!([row["id"], row["status"], row["result_summary"]])).collect::<Vec<_>>()
    };
    let long = "port = 8080\n".repeat(40);
    feed(&[
        json!({"tool": {"call": "c1", "tool": "SigmaTaskUpdate", "params": update("in_progress", ""), "output": "ok"}}),
        json!({"tool": {"call": "c2", "tool": "bash", "params": {"command": "cat a.toml"}, "output": long}}),
        // A refused call changes nothing, nor does one that has not ended.
        json!({"tool": {"call": "c3", "tool": "SigmaTaskUpdate", "params": update("completed", "short"), "error": "too short"}}),
        json!({"tool_started": {"call": "c4", "tool": "SigmaTaskUpdate", "params": update("completed", "the port is 8080, in a.toml")}}),
    ]);
    assert_eq!(tasks(), [json!(["T1", "in_progress", ""])]);
    assert!(world.run(&["context", "-s", "s1"]).ok().contains("port = 8080"));
    feed(&[json!({"tool_finished": {"call": "c4", "output": "Tasks updated"}})]);
    assert_eq!(tasks(), [json!(["T1", "completed", "the port is 8080, in a.toml"])]);
    let context = world.run(&["context", "-s", "s1"]).ok();
    assert!(context.contains("the port is 8080") && !context.contains("port = 8080"), "{context}");
    // Work that goes on is shown again; what is completed anew goes behind the newest summary.
    feed(&[
        json!({"tool": {"call": "c5", "tool": "SigmaTaskUpdate", "params": update("in_progress", ""), "output": "ok"}}),
    ]);
    assert!(world.run(&["context", "-s", "s1"]).ok().contains("port = 8080"));
    feed(&[
        // A completion without a summary has nothing to stand for its outputs.
        json!({"tool": {"call": "c0", "tool": "SigmaTaskUpdate", "params": {"todos": [{"id": "T1", "status": "completed"}]}, "output": "ok"}}),
        json!({"tool": {"call": "c6", "tool": "SigmaTaskUpdate", "params": update("completed", "the port is 9090 by now"), "output": "ok"}}),
    ]);
    let context = world.run(&["context", "-s", "s1"]).ok();
    assert!(context.contains("the port is 9090") && !context.contains("the port is 8080"), "{context}");
    // A rewind undoes a completion, too.
    world.run(&["rewind", "t6", "-s", "s1"]).ok();
    world.assert_sound();
    assert_eq!(tasks(), [json!(["T1", "in_progress", "the port is 8080, in a.toml"])]);
    assert!(world.run(&["context", "-s", "s1"]).ok().contains("port = 8080"));
}

/// A model that had no target was told so in other words by one door, and no test knew what any door refuses.
#[test]
fn what_one_door_refuses_each_does_and_nothing_is_recorded() {
    for (name, operation) in list() {
        for (what, arguments) in &operation.refuses {
            let arguments: Value = serde_json::to_value(arguments).unwrap();
            let world = begun();
            let before = world.run(&["verify", "--head"]).ok();
            for door in DOORS {
                // A line remembers a value under its own name.
                let mut said = arguments.clone();
                if door == "append" && name == "remember" {
                    let text = said.as_object_mut().unwrap().remove("text").unwrap();
                    said["value"] = text;
                }
                let is_taken = operation.accepts.get(door).is_some_and(|taken| taken.contains_key(what));
                // Its record is not asked of the others.
                let world = if is_taken { &begun() } else { &world };
                let Some(told) = through(world, door, &name, &operation, &said) else { continue };
                if is_taken {
                    assert!(told.ok, "{name}, {what}: {door} takes it, says the list: {}", told.words);
                    continue;
                }
                assert!(!told.ok, "{name}, {what}: {door} did it: {}", told.words);
                assert!(!told.words.trim().is_empty(), "{name}, {what}: {door} says nothing");
                assert_eq!(
                    world.run(&["verify", "--head"]).ok(),
                    before,
                    "{name}, {what}: {door} recorded something"
                );
            }
        }
    }
}

/// The list's defaults are those that each door records.
#[test]
fn what_is_not_given_has_the_default_of_the_list_through_every_door() {
    let list = list();
    let operation = &list["remember"];
    for door in DOORS {
        let world = begun();
        let field = if door == "append" { "value" } else { "text" };
        let arguments = json!({"kind": "fact", field: "it rains in Bergen"});
        let told = through(&world, door, "remember", operation, &arguments).unwrap();
        assert!(told.ok, "{door}: {}", told.words);
        let all = world.run(&["memory", "list", "--session", "s1", "--json"]).ok();
        let all: Value = serde_json::from_str(&all).unwrap();
        let row = all["items"].as_array().unwrap().iter().find(|row| row["value"] == "it rains in Bergen");
        let row = row.unwrap_or_else(|| panic!("{door}: {all}"));
        for parameter in &operation.parameters {
            let Some((name, default)) = parameter.split_once(" = ") else { continue };
            let name = match name {
                "replaces" => "supersedes",
                "confidence" => "confirmed",
                other => other,
            };
            let expected = match default {
                "none" => Value::Null,
                "[]" => json!([]),
                _ if default.contains(' ') => continue,
                number => number.parse::<f64>().map_or_else(|_| json!(default), |number| json!(number)),
            };
            assert_eq!(row[name], expected, "{name} by {door}");
        }
        let speaker = if matches!(door, "mcp" | "plugin") { "assistant" } else { "user" };
        let told_by = row["source"].as_str().unwrap();
        assert!(told_by == speaker || door == "append" && told_by == "host", "{door}: {told_by}");
    }
}
