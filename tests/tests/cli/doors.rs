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
        for name in ["category", "subject", "rationale"] {
            let option =
                ["--category", "--subject", "--rationale"].into_iter().find(|option| option.ends_with(name));
            arguments.extend(text(name).into_iter().flat_map(|text| [option.unwrap(), text]));
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

/// The memory of a store, with values in the place of ids, and without the fields that differ by the door: speaker, time and place.
fn remembered(world: &World) -> Vec<Value> {
    let list = world.run(&["memory", "list", "--all", "--session", "s1", "--json"]).ok();
    let list: Value = serde_json::from_str(&list).unwrap();
    let items = list["items"].as_array().unwrap();
    let value_of = |id: &Value| items.iter().find(|item| item["id"] == *id).map(|item| item["value"].clone());
    let row = |item: &Value| {
        let mut row = Map::new();
        for name in
            ["kind", "category", "key", "subject", "value", "rationale", "lifespan", "standing", "confirmed"]
        {
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

/// One preference had three keys by three doors, facts of one subject never met, and only the command line could replace.
#[test]
fn what_is_remembered_is_the_same_through_every_door() {
    let doors: [Door; 4] =
        [("command line", by_command), ("append", by_append), ("mcp", by_mcp), ("plug-in", by_plugin)];
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
            "2 spaces",
            "ninja",
            "the port is 9090",
            "the office is in Turin",
            "Vue for the frontend.",
            "Jobs wait in Postgres",
            "the pages are slow",
            "pnpm"
        ]
    );
    for (name, store) in &stores {
        for (item, other) in first.iter().zip(store) {
            assert_eq!(item, other, "{name}");
        }
        assert_eq!(first.len(), store.len(), "{name}");
    }
}
