//! Sessions that come by hooks, plug-ins and tools have the subject that `attach`, a variable or the settings name; one erasure takes them all.

use serde_json::{Value, json};

use super::world::{Ran, World};

/// The bundled session.
const SESSION: &str = "e38a074a-4e13-5065-90bf-50e0880d827b";
const PERSON: &str = "Zoe O'Neil";

/// A door through which a session comes, and the names of the sessions that it records.
struct Door {
    name: &'static str,
    record: fn(&World),
    sessions: &'static [&'static str],
}

const DOORS: &[Door] = &[
    Door { name: "hooks of a host with a recording", record: claude, sessions: &["claude-1", "claude-1/a1"] },
    Door { name: "hooks of a host without", record: cursor, sessions: &["cursor-1"] },
    Door { name: "the plug-in of opencode", record: opencode, sessions: &["ses_1"] },
    Door { name: "the extension of Pi", record: pi, sessions: &["pi-1"] },
    Door { name: "tools, on a session that is there", record: mcp, sessions: &[] },
];

/// The settings that `attach` wrote.
fn settings(world: &World, path: &str) -> String {
    std::fs::read_to_string(world.path("home").join(path)).unwrap()
}

/// Runs the command that a host was given for an event, as the host does.
fn told(world: &World, file: &str, event: &str, said: &Value) -> Ran {
    let settings: Value = serde_json::from_str(&settings(world, file)).unwrap();
    let group = &settings["hooks"][event][0];
    let command = group["command"].as_str().or(group["hooks"][0]["command"].as_str()).unwrap();
    let ran = super::world::finish(world.typed(command), said.to_string().as_bytes());
    assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{command}: {}", ran.err);
    ran
}

fn line(session: &str, agent: Option<&str>) -> String {
    let mut line = json!({"parentUuid": null, "isSidechain": agent.is_some(), "cwd": "/p", "sessionId": session,
        "version": "2.1.0", "type": "user", "message": {"role": "user", "content": "Plan the zebra crossing."},
        "uuid": format!("u-{session}-{}", agent.unwrap_or_default()), "timestamp": "2026-03-01T10:00:01.000Z"});
    if let Some(agent) = agent {
        line["agentId"] = agent.into();
    }
    format!("{line}\n")
}

fn claude(world: &World) {
    world.write("claude-1.jsonl", line("claude-1", None));
    std::fs::create_dir_all(world.path("claude-1/subagents")).unwrap();
    world.write("claude-1/subagents/agent-a1.jsonl", line("claude-1", Some("a1")));
    let said = json!({"session_id": "claude-1", "hook_event_name": "SessionEnd", "cwd": world.path("."),
        "transcript_path": world.path("claude-1.jsonl")});
    let _ = told(world, ".claude/settings.json", "SessionEnd", &said);
}

fn cursor(world: &World) {
    let said = json!({"conversation_id": "cursor-1", "hook_event_name": "beforeSubmitPrompt",
        "generation_id": "g1", "prompt": "Plan the zebra crossing.", "workspace_roots": [world.path(".")]});
    let _ = told(world, ".cursor/hooks.json", "beforeSubmitPrompt", &said);
}

/// Asks as a plug-in does that was attached so.
fn asked(world: &World, file: &str, host: &str, request: &Value) {
    let file = settings(world, file);
    let attached = file.lines().find_map(|line| line.strip_prefix("const ATTACHED = ")).unwrap();
    let attached: Value = serde_json::from_str(attached).unwrap();
    let text = |name: &str| attached[name].as_str().unwrap().to_owned();
    let subject = format!("--subject={}", text("subject"));
    let mut command = world.command();
    command.args(["--db", &text("db"), "plugin", host, "--mode", &text("mode"), &subject]);
    let ran = super::world::finish(command, format!("{request}\n").as_bytes());
    let answer: Value = serde_json::from_str(&ran.ok()).unwrap();
    assert_eq!(answer["error"], Value::Null, "{answer}");
}

fn opencode(world: &World) {
    let part = json!({"id": "m1-p", "type": "text", "text": "Plan the zebra crossing."});
    let messages = json!([{"info": {"id": "m1", "role": "user", "time": {"created": 1}}, "parts": [part]}]);
    let request =
        json!({"id": 1, "op": "record", "info": {"id": "ses_1", "directory": "/p"}, "messages": messages});
    asked(world, ".config/opencode/plugin/acpdb.js", "opencode", &request);
}

fn pi(world: &World) {
    let message = json!({"role": "user", "content": "Plan the zebra crossing.", "timestamp": 1});
    let time = "2026-01-31T14:00:00.000Z";
    let lines = [
        json!({"type": "session", "version": 3, "id": "pi-1", "timestamp": time, "cwd": "/p"}),
        json!({"type": "message", "id": "a", "parentId": null, "timestamp": time, "message": message}),
    ];
    world.write("pi-1.jsonl", lines.map(|line| format!("{line}\n")).concat());
    let request = json!({"id": 1, "op": "record", "session": "pi-1", "recording": world.path("pi-1.jsonl"), "folder": "/p"});
    asked(world, ".pi/agent/extensions/acpdb.ts", "pi", &request);
}

fn mcp(world: &World) {
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let remember = json!({"name": "memory_remember",
        "arguments": {"kind": "decision", "text": "Jobs wait in Postgres", "session": "claude-1"}});
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": remember}),
    ];
    let text: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let said = world.run_with(&["mcp"], text).ok();
    assert!(said.contains("\"id\":2") && !said.contains("\"isError\":true"), "{said}");
}

const HOSTS: [&str; 4] = ["claude", "cursor", "opencode", "pi"];

/// Names of sessions with the subject that each is about, as an erasure would find them.
fn about(world: &World, name: &str) -> Vec<String> {
    let said = world.run(&["erase", "--subject", name, "--shred", "--dry-run"]);
    if said.code == 7 {
        return Vec::new();
    }
    let said = said.ok();
    let mut names: Vec<String> =
        said.lines().filter_map(|line| Some(line.split_once(": ")?.0.to_owned())).collect();
    names.sort();
    names
}

/// `attach` could not name a subject: the sessions had none, and the erasure of a person missed them.
#[test]
fn whatever_comes_through_an_attached_door_is_about_the_subject_that_attach_named() {
    let world = World::new();
    world.run(&["init", "--encrypt"]).ok();
    let before = r#"{"session":"before","message":{"role":"user","text":"about none"}}"#;
    world.run_with(&["append", "--stdin"], before).ok();
    for host in HOSTS {
        world.run(&["attach", host, "--mode", "record", "--subject", PERSON]).ok();
    }
    let mut expected: Vec<String> = Vec::new();
    for door in DOORS {
        (door.record)(&world);
        expected.extend(door.sessions.iter().map(|name| (*name).to_owned()));
        expected.sort();
        assert_eq!(about(&world, PERSON), expected, "{}", door.name);
    }
    let status = world.run(&["attach", "--status"]).ok();
    assert_eq!(status.matches("new sessions are about Zoe O'Neil").count(), HOSTS.len(), "{status}");
    world.run(&["erase", "--subject", PERSON, "--shred", "--reason", "asked for"]).ok();
    let left: Value = serde_json::from_str(&world.run(&["sessions", "--all", "--json"]).ok()).unwrap();
    let left: Vec<&str> =
        left["items"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(left, ["before"]);
    // Nothing more is recorded about it, which is no fault: neither the host nor `attach --status` tells of one.
    claude(&world);
    let status = world.run(&["attach", "--status", "claude"]).ok();
    assert!(!status.contains("was shredded") && !status.contains("failed"), "{status}");
    for host in HOSTS {
        world.run(&["detach", host]).ok();
    }
    // The program is there, too: three letters in a row stand in its machine code by chance.
    let files = super::world::contents(&world.path("home")).into_iter();
    for (path, bytes) in files.filter(|(path, _)| !path.ends_with(".bin/acpdb")) {
        let is_there = bytes.windows(3).any(|part| part == b"Zoe");
        assert!(!is_there || path.ends_with("hooks.jsonl"), "{} still names the subject", path.display());
    }
}

/// The subject that a session names goes before an option, that before the variable, and that before the settings.
#[test]
fn who_says_it_nearest_is_believed() {
    let world = World::new();
    world.run(&["init", "--encrypt"]).ok();
    let append = |session: &str, subject: Option<&str>, variable: Option<&str>| {
        let mut line = json!({"session": session, "message": {"role": "user", "text": "x"}});
        if let Some(subject) = subject {
            line["subject"] = subject.into();
        }
        let mut command = world.command();
        command.args(["append", "--stdin"]);
        variable.map(|name| command.env("ACPDB_SUBJECT", name));
        super::world::finish(command, line.to_string().as_bytes()).ok();
    };
    append("none", None, None);
    append("variable", None, Some("by variable"));
    world.run(&["config", "set", "subject", "by settings"]).ok();
    append("settings", None, None);
    append("said", Some("by itself"), Some("by variable"));
    append("variable-2", None, Some("by variable"));
    let hook = |session: &str, more: &[&str]| {
        let said = json!({"conversation_id": session, "hook_event_name": "beforeSubmitPrompt",
            "generation_id": "g1", "prompt": "x", "workspace_roots": [world.path(".")]});
        world.run_with(&[&["hook", "cursor"], more].concat(), said.to_string()).ok();
    };
    hook("hooked", &[]);
    hook("hooked-2", &["--subject", "by option"]);
    world.run(&["import", super::world::SESSION]).ok();
    for (name, sessions) in [
        ("by settings", &[SESSION, &format!("{SESSION}/a7d3e51"), "hooked", "settings"][..]),
        ("by variable", &["variable", "variable-2"]),
        ("by itself", &["said"]),
        ("by option", &["hooked-2"]),
    ] {
        assert_eq!(about(&world, name), sessions, "{name}");
    }
    assert!(world.run(&["doctor"]).ok().contains("new sessions are about by settings, by your settings"));
}

/// In a store that is not encrypted nothing could be shredded: it is said, and nothing is recorded that would be missed by an erasure.
#[test]
fn where_nothing_can_be_shredded_a_subject_is_refused() {
    let world = World::new();
    let no_store = world.run(&["attach", "claude", "--subject", PERSON]);
    no_store.says(2, &["there is no store", "init --encrypt"]);
    world.run_with(&["append", "--stdin"], super::FEED).ok();
    let before = world.list();
    for arguments in [
        &["attach", "claude", "--subject", PERSON][..],
        &["attach", "opencode", "--subject", PERSON],
        &["config", "set", "subject", PERSON],
        &["import", super::world::SESSION, "--subject", PERSON],
    ] {
        world.run(arguments).says(2, &["not encrypted"]);
    }
    assert!(!world.path("home/.claude").exists() && !world.path("home/.config/opencode").exists());
    let said = json!({"conversation_id": "c1", "hook_event_name": "beforeSubmitPrompt", "generation_id": "g1",
        "prompt": "x", "workspace_roots": [world.path(".")]});
    let ran = world.run_with(&["hook", "cursor", "--subject", PERSON], said.to_string());
    assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"));
    assert_eq!(world.list(), before, "nothing was recorded");
    let status = world.run(&["attach", "--status"]).ok();
    assert!(status.contains("is not encrypted"), "{status}");
    let mut command = world.command();
    command.arg("doctor").env("ACPDB_SUBJECT", PERSON);
    let doctor = super::world::finish(command, b"");
    assert!(doctor.text().contains("nothing is recorded: store is not encrypted"), "{}", doctor.text());
    // A name that cannot be one is refused before anything is written.
    world.run(&["--db", "vault", "init", "--encrypt"]).ok();
    for name in ["", " x", "a\nb"] {
        world
            .run(&["--db", "vault", "attach", "claude", "--subject", name])
            .says(2, &["no name of a subject"]);
    }
    assert!(!world.path("home/.claude").exists());
}
