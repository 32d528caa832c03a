//! One list of operations, said through each door: the command line, `append`, the tools of MCP and those of a plug-in. The stores that
//! they leave remember the same.

use serde_json::{Map, Value, json};

use super::world::World;

/// The items to remember, in this order: kind, value, and the further fields.
fn said() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("preference", "tabs", json!({"key": "style/indent"})),
        ("preference", "2 spaces", json!({"key": "style/indent"})),
        ("preference", "npm", json!({"key": "package_manager"})),
        ("preference", "make", json!({"key": "scripts/build", "category": "tooling"})),
        ("preference", "ninja", json!({"key": "scripts/build", "category": "tooling"})),
        ("fact", "the port is 8080", json!({"subject": "port"})),
        ("fact", "the port is 9090", json!({"subject": "Port"})),
        ("fact", "the office is in Turin", json!({})),
        ("decision", "React for the frontend", json!({})),
        ("decision", "Vue for the frontend.", json!({})),
        ("decision", "Jobs wait in Redis", json!({"rationale": "it was there"})),
        ("decision", "Jobs wait in Postgres", json!({"replaces": ["jobs wait in redis"]})),
        ("note", "the pages are slow", json!({})),
        ("preference", "pnpm", json!({"key": "package_manager", "replaces": ["tooling/package_manager"]})),
        ("preference", "us-east-1", json!({"key": "deploy/region"})),
        ("preference", "4 spaces", json!({"key": " Style/indent "})),
        // Known already: it is confirmed, and takes the place of the note.
        ("fact", "The office is in Turin", json!({"replaces": ["pages are slow"]})),
        ("fact", "the port is 7070", json!({"subject": "port", "lifespan": "session"})),
        ("fact", "the port is 6060", json!({"replaces": ["7070"]})),
    ]
}

const SESSION: &str = r#"{"session":"s1","host":"opencode","project":"/p","cwd":"/p","message":{"role":"user","text":"Go on."}}"#;

fn by_command(world: &World) {
    for (kind, value, more) in said() {
        let more = more.as_object().unwrap();
        let text = |name: &str| more.get(name).and_then(Value::as_str);
        let mut arguments = vec!["memory", "add", kind];
        arguments.extend(text("key"));
        arguments.extend([value, "--session", "s1"]);
        for (name, option) in [
            ("category", "--category"),
            ("subject", "--subject"),
            ("rationale", "--rationale"),
            ("lifespan", "--lifespan"),
        ] {
            arguments.extend(text(name).into_iter().flat_map(|text| [option, text]));
        }
        for old in more.get("replaces").and_then(Value::as_array).into_iter().flatten() {
            arguments.extend(["--replaces", old.as_str().unwrap()]);
        }
        world.run(&arguments).ok();
    }
}

fn fields(kind: &str, name: &str, value: &str, more: &Value) -> Value {
    let mut all = more.as_object().unwrap().clone();
    all.insert("kind".to_owned(), json!(kind));
    all.insert(name.to_owned(), json!(value));
    Value::Object(all)
}

fn by_append(world: &World) {
    let lines = said().into_iter().map(|(kind, value, more)| {
        json!({"session": "s1", "host": "opencode", "memory": fields(kind, "value", value, &more)})
            .to_string()
    });
    world.run_with(&["append", "--stdin"], lines.collect::<Vec<_>>().join("\n")).ok();
}

/// All of it as one line, and so as one commit.
fn by_one_commit(world: &World) {
    let events: Vec<Value> = said()
        .into_iter()
        .map(|(kind, value, more)| json!({"memory": fields(kind, "value", value, &more)}))
        .collect();
    let line = json!({"session": "s1", "host": "opencode", "events": events});
    world.run_with(&["append", "--stdin"], line.to_string()).ok();
}

fn by_mcp(world: &World) {
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let mut lines = vec![
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    for (number, (kind, value, more)) in said().into_iter().enumerate() {
        let call = json!({"name": "memory_remember", "arguments": fields(kind, "text", value, &more)});
        lines.push(json!({"jsonrpc": "2.0", "id": number + 2, "method": "tools/call", "params": call}));
    }
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let answers = world.run_with(&["mcp", "--session", "s1"], input).ok();
    assert!(!answers.contains("isError\":true"), "{answers}");
}

fn by_plugin(world: &World) {
    let lines = said().into_iter().enumerate().map(|(number, (kind, value, more))| {
        let arguments = fields(kind, "text", value, &more);
        let line = json!({"id": number, "op": "tool", "session": "s1", "name": "acpdb_memory_remember", "arguments": arguments});
        format!("{line}\n")
    });
    let answers = world.run_with(&["plugin", "opencode", "--mode", "prune"], lines.collect::<String>()).ok();
    assert!(!answers.contains("\"error\""), "{answers}");
}

/// The memory of a store, with values for the items that edges name, and without the fields that differ by the door: speaker, time and place.
fn remembered(world: &World) -> Vec<Value> {
    let list = world.run(&["memory", "list", "--all", "--session", "s1", "--json"]).ok();
    let list: Value = serde_json::from_str(&list).unwrap();
    let items = list["items"].as_array().unwrap();
    let value_of = |id: &Value| items.iter().find(|item| item["id"] == *id).map(|item| item["value"].clone());
    let row = |item: &Value| {
        let mut row = Map::new();
        for name in [
            "id",
            "kind",
            "category",
            "key",
            "subject",
            "value",
            "rationale",
            "lifespan",
            "standing",
            "confirmed",
        ] {
            row.insert(name.to_owned(), item[name].clone());
        }
        for name in ["superseded_by", "supersedes"] {
            let ids = item[name].as_array().unwrap();
            row.insert(name.to_owned(), ids.iter().map(|id| value_of(id).unwrap()).collect());
        }
        Value::Object(row)
    };
    items.iter().map(row).collect()
}

/// The name of a door, and what is said through it.
type Door = (&'static str, fn(&World));

/// One preference had three keys by three doors, facts of one subject never met, and only the command line could replace. Later the same
/// item had another id by `append`, which lost `replaces` of a known item and did not compare the items of one commit.
#[test]
fn what_is_remembered_is_the_same_through_every_door() {
    let doors: [Door; 5] = [
        ("command line", by_command),
        ("append", by_append),
        ("append, one commit", by_one_commit),
        ("mcp", by_mcp),
        ("plug-in", by_plugin),
    ];
    let stores = doors.map(|(name, say)| {
        let world = World::new();
        world.run_with(&["append", "--stdin"], SESSION).ok();
        say(&world);
        world.assert_sound();
        (name, remembered(&world))
    });
    let [(_, first), ..] = &stores;
    let holding: Vec<&str> = first
        .iter()
        .filter(|item| item["standing"] == "current")
        .filter_map(|item| item["value"].as_str())
        .collect();
    assert_eq!(
        holding,
        [
            "ninja",
            "the port is 9090",
            "the office is in Turin",
            "Vue for the frontend.",
            "Jobs wait in Postgres",
            "pnpm",
            "us-east-1",
            "4 spaces",
            "the port is 6060"
        ]
    );
    for (name, store) in &stores {
        for (item, other) in first.iter().zip(store) {
            assert_eq!(item, other, "{name}");
        }
        assert_eq!(first.len(), store.len(), "{name}");
    }
}

/// A session with texts to discard, calls for a task, and memory.
fn begin(world: &World) {
    let line = |what: Value| {
        let mut line = json!({"session": "s1", "host": "opencode", "project": "/p", "cwd": "/p"});
        line.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        format!("{line}\n")
    };
    let read = |call: &str| {
        line(
            json!({"turn": true, "tool": {"call": call, "tool": "read", "params": {"filePath": call}, "output": "text of a file. ".repeat(30)}}),
        )
    };
    let says = |text: &str| line(json!({"message": {"role": "assistant", "text": text}}));
    let remembers = |kind: &str, value: &str| line(json!({"memory": {"kind": kind, "value": value}}));
    let lines = [
        says("The plan has many steps, and here is each of them in turn, so that nothing is left out of it."),
        read("c1"),
        says("What I found in the first file is of no use to us now, and so this text can go away."),
        read("c2"),
        remembers("decision", "Jobs wait in Redis"),
        remembers("decision", "Mail goes by a queue"),
        remembers("fact", "the office is in Turin"),
    ];
    world.run_with(&["append", "--stdin"], lines.concat()).ok();
}

const STARTS: &str = r#"[{"id":"T","content":"look","status":"in_progress"}]"#;
const ENDS: &str = r#"[{"id":"T","status":"completed","result_summary":"both files were read, and nothing was found in them"}]"#;

/// The acts, in this order: two patterns, a task begun and ended, an item superseded, an item forgotten. Some by the command line where
/// a door leaves an act out.
fn acts() -> Vec<(&'static str, Value)> {
    let tasks = |text: &str| json!({"tasks": serde_json::from_str::<Value>(text).unwrap()});
    vec![
        ("context_discard", json!({"targets": ["What I found...go away."]})),
        (
            "context_distill",
            json!({"targets": [{"target": "The plan has...out of it.", "summary": "five steps"}]}),
        ),
        ("context_restore", json!({"targets": ["what i FOUND...go away."]})),
        ("task_update", tasks(STARTS)),
        ("task_update", tasks(ENDS)),
        ("memory_supersede", json!({"old": "d1", "new": "d2", "reason": "one queue is enough"})),
        ("memory_forget", json!({"id": "f1", "reason": "it moved"})),
    ]
}

fn act_by_command(world: &World, name: &str, arguments: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let session = ["--session".to_owned(), "s1".to_owned()];
    let (words, input): (Vec<String>, String) = match name {
        "task_update" => (vec!["task".to_owned(), "update".to_owned()], arguments.to_string()),
        "memory_supersede" => {
            let words = ["memory", "supersede"].map(str::to_owned);
            let given = [
                text(&arguments["old"]),
                text(&arguments["new"]),
                "--reason".to_owned(),
                text(&arguments["reason"]),
            ];
            (words.into_iter().chain(given).collect(), String::new())
        }
        "memory_forget" => {
            let words = ["memory", "retract"].map(str::to_owned);
            let given = [text(&arguments["id"]), "--reason".to_owned(), text(&arguments["reason"])];
            (words.into_iter().chain(given).collect(), String::new())
        }
        _ => {
            let target = &arguments["targets"][0];
            let mut words = vec!["context".to_owned(), name.trim_start_matches("context_").to_owned()];
            words.push(match target.get("target") {
                Some(pattern) => format!("{}={}", text(pattern), text(&target["summary"])),
                None => text(target),
            });
            (words, String::new())
        }
    };
    let words: Vec<&str> = words.iter().chain(&session).map(String::as_str).collect();
    world.run_with(&words, input).ok();
}

/// The call of the context tool, as a plug-in and `append` take it.
fn context_call(name: &str, arguments: &Value) -> Value {
    let target = &arguments["targets"][0];
    let row = if target.is_string() { json!([target]) } else { json!([target["target"], target["summary"]]) };
    json!({"action": name.trim_start_matches("context_"), "targets": [row]})
}

fn act_by_append(world: &World, name: &str, arguments: &Value) {
    let what = match name {
        "task_update" => json!({"tasks": arguments["tasks"]}),
        "memory_supersede" | "memory_forget" => return act_by_command(world, name, arguments),
        _ => json!({"context": context_call(name, arguments)}),
    };
    let mut line = json!({"session": "s1", "host": "opencode"});
    line.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
    world.run_with(&["append", "--stdin"], line.to_string()).ok();
}

fn act_by_mcp(world: &World, name: &str, arguments: &Value) {
    let answers = world.mcp("s1", name, arguments);
    assert!(!answers.contains("isError\":true"), "{answers}");
}

fn act_by_plugin(world: &World, name: &str, arguments: &Value) {
    let (name, arguments) = match name.strip_prefix("context_") {
        Some(_) => ("context".to_owned(), context_call(name, arguments)),
        None => (format!("acpdb_{name}"), arguments.clone()),
    };
    let line = json!({"id": 1, "op": "tool", "session": "s1", "name": name, "arguments": arguments});
    let answers = world.run_with(&["plugin", "opencode", "--mode", "prune"], format!("{line}\n")).ok();
    assert!(!answers.contains("\"error\""), "{answers}");
}

/// The context, tasks and memory that a store shows after the acts.
fn left(world: &World) -> Value {
    let json = |words: &[&str]| serde_json::from_str::<Value>(&world.run(words).ok()).unwrap();
    let context = json(&["context", "s1", "--json"]);
    let rows = context["items"].as_array().unwrap().iter().map(|item| {
        json!([
            item["kind"],
            item["call"],
            item["state"],
            item["cause"],
            item["output"]["text"],
            item["tokens_shown"]
        ])
    });
    let tasks = json(&["task", "list", "--session", "s1", "--json"]);
    let tasks = tasks["items"].as_array().unwrap().iter().map(|task| {
        json!([task["id"], task["status"], task["content"], task["result_summary"], task["validation"]])
    });
    json!({"items": rows.collect::<Vec<_>>(), "tasks": tasks.collect::<Vec<_>>(), "memory": remembered(world)})
}

#[test]
fn what_is_done_by_hand_is_the_same_through_every_door() {
    type Act = fn(&World, &str, &Value);
    let doors: [(&str, Act); 4] = [
        ("command line", act_by_command),
        ("append", act_by_append),
        ("mcp", act_by_mcp),
        ("plug-in", act_by_plugin),
    ];
    let mut first: Option<Value> = None;
    for (door, act) in doors {
        let world = World::new();
        begin(&world);
        for (name, arguments) in acts() {
            act(&world, name, &arguments);
        }
        world.assert_sound();
        let left = left(&world);
        let text = left.to_string();
        for expected in
            ["five steps", "completed", "nothing was found in them", "retracted", "Jobs wait in Redis"]
        {
            assert!(text.contains(expected), "{door}: {expected} is not in {text}");
        }
        match &first {
            None => first = Some(left),
            Some(first) => {
                for part in ["items", "tasks", "memory"] {
                    assert_eq!(left[part], first[part], "{part} by {door}");
                }
            }
        }
    }
}
