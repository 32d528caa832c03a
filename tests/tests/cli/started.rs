//! Sessions that calls of other ones started, and sessions that go on in several branches, as they are imported piece by piece.

use serde_json::{Value, json};

use crate::world::World;

const SESSION: &str = "5e551011-0000-4000-8000-000000000001";
const PROJECT: &str = "home/.claude/projects/-app";

/// A record of Claude Code.
fn record(uuid: &str, parent: Option<&str>, kind: &str, content: Value, more: &Value) -> String {
    let second: u32 = uuid.bytes().fold(0, |sum, byte| (sum * 7 + u32::from(byte)) % 60);
    let mut message = json!({"role": kind, "id": format!("m-{uuid}")});
    message["content"] = content;
    let mut record = json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, "cwd": "/app", "isSidechain": false,
        "timestamp": format!("2026-05-04T10:00:{second:02}Z"), "message": message,
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    format!("{record}\n")
}

fn agent(id: &str, prompt: &str) -> String {
    let side = json!({"isSidechain": true, "agentId": id});
    record(&format!("{id}1"), None, "user", json!(prompt), &side)
        + &record(
            &format!("{id}2"),
            Some(&format!("{id}1")),
            "assistant",
            json!([{"type": "text", "text": "found"}]),
            &side,
        )
}

/// The session: its first `count` records.
fn session(count: usize, result: &Value) -> String {
    let call = json!([{"type": "tool_use", "id": "call-1", "name": "Task", "input": {"prompt": "look"}}]);
    let done = json!([{"type": "tool_result", "tool_use_id": "call-1", "content": "done"}]);
    let records = [
        record("u1", None, "user", json!("go"), &json!({})),
        record("a1", Some("u1"), "assistant", call, &json!({})),
        record("r1", Some("a1"), "user", done, &json!({"toolUseResult": result})),
    ];
    records[..count].concat()
}

/// An export of opencode; `started`: the session that its call started.
fn export(id: &str, parent: Option<&str>, started: Option<&str>) -> String {
    let state =
        json!({"status": "completed", "input": {}, "output": "ok", "metadata": {"sessionId": started}});
    let part = json!({"id": format!("prt_{id}"), "type": "tool", "callID": "call-1", "tool": "task", "state": state});
    let info =
        json!({"id": format!("msg_{id}"), "role": "assistant", "time": {"created": 1_772_532_000_000_u64}});
    json!({
        "info": {"id": id, "parentID": parent, "directory": "/app", "time": {"created": 1_772_532_000_000_u64}},
        "messages": [{"info": info, "parts": [part]}],
    })
    .to_string()
}

/// The calls that started the sessions whose ids end so.
fn calls(world: &World, ending: &str) -> Vec<String> {
    let ran = world.run(&["sessions", "--all", "--json", "-q"]);
    let rows: Value = serde_json::from_slice(&ran.out).unwrap();
    let rows = rows["items"].as_array().unwrap().iter();
    let own = rows.filter(|row| row["id"].as_str().unwrap().ends_with(ending));
    own.map(|row| row["parent"]["call"].as_str().unwrap_or("none").to_owned()).collect()
}

/// A subagent that was imported before its call was linked to none, for ever; so was each child of opencode.
#[test]
fn a_session_is_linked_to_the_call_that_started_it_whatever_is_imported_first() {
    let main = format!("{PROJECT}/{SESSION}.jsonl");
    let side = format!("{PROJECT}/{SESSION}/subagents/agent-ag1.jsonl");
    let meta = side.replace(".jsonl", ".meta.json");
    let (named, unnamed) = (json!({"agentId": "ag1"}), json!({}));
    let (parent, child) = ("exports/parent.json".to_owned(), "exports/child.json".to_owned());
    let cases: [(&str, Vec<(&String, String)>); 7] = [
        (
            "ag1",
            vec![
                (&side, agent("ag1", "other")),
                (&main, session(1, &named)),
                (&main, session(2, &named)),
                (&main, session(3, &named)),
            ],
        ),
        ("ag1", vec![(&main, session(3, &named)), (&side, agent("ag1", "other"))]),
        ("ag1", vec![(&side, agent("ag1", "look")), (&main, session(2, &unnamed))]),
        (
            "ag1",
            vec![
                (&side, agent("ag1", "other")),
                (&main, session(3, &unnamed)),
                (&meta, r#"{"toolUseId":"call-1"}"#.to_owned()),
            ],
        ),
        (
            "ses_c",
            vec![
                (&parent, export("ses_p", None, Some("ses_c"))),
                (&child, export("ses_c", Some("ses_p"), None)),
            ],
        ),
        (
            "ses_c",
            vec![
                (&child, export("ses_c", Some("ses_p"), None)),
                (&parent, export("ses_p", None, Some("ses_c"))),
            ],
        ),
        // A copy of the call in a fork is not the call.
        (
            "ses_c",
            vec![
                (&parent, export("ses_p", None, Some("ses_c"))),
                (&child, export("ses_c", Some("ses_x"), None)),
            ],
        ),
    ];
    for (number, (ending, steps)) in cases.into_iter().enumerate() {
        let world = World::new();
        for folder in [format!("{PROJECT}/{SESSION}/subagents"), "exports".to_owned()] {
            std::fs::create_dir_all(world.path(&folder)).unwrap();
        }
        for (path, text) in steps {
            world.write(path, text);
            world.run(&["import", PROJECT, "exports"]);
        }
        let wanted = if number == 6 { "none" } else { "call-1" };
        assert_eq!(calls(&world, ending), [wanted], "case {number}");
        let before = world.list();
        world.run(&["import", PROJECT, "exports"]);
        assert_eq!(world.list(), before, "case {number}");
    }
}

/// Workflows count their agents each for itself: two agents of one id were one session.
#[test]
fn agents_of_two_workflows_are_two() {
    let world = World::new();
    for (workflow, prompt) in [("wf_1", "one"), ("wf_10", "two")] {
        let folder = format!("{PROJECT}/{SESSION}/subagents/workflows/{workflow}");
        std::fs::create_dir_all(world.path(&folder)).unwrap();
        world.write(&format!("{folder}/agent-ag1.jsonl"), agent("ag1", prompt));
    }
    world.write(&format!("{PROJECT}/{SESSION}.jsonl"), session(3, &json!({"folder": "workflows/wf_10"})));
    world.run(&["import", PROJECT]).ok();
    assert_eq!(calls(&world, "/wf_1/ag1"), ["none"]);
    assert_eq!(calls(&world, "/wf_10/ag1"), ["call-1"]);
}

/// Two terminals that went on with one session stood in one context, with what each of them read and wrote.
#[test]
fn each_of_two_terminals_has_the_context_that_it_would_send() {
    let world = World::new();
    std::fs::create_dir_all(world.path(PROJECT)).unwrap();
    let path = format!("{PROJECT}/{SESSION}.jsonl");
    let said = |text: &str| json!([{"type": "text", "text": text}]);
    let mut text = record("u1", None, "user", json!("first"), &json!({}));
    let mut leaves = ["u1".to_owned(), "u1".to_owned()];
    let mut minute = 0;
    for round in 0..6 {
        for (terminal, leaf) in ["one", "two"].into_iter().zip(&mut leaves) {
            minute += 1;
            let uuid = format!("{terminal}-{round}");
            let (kind, content) = if round % 2 == 0 {
                ("user", json!(format!("{terminal} asks {round}")))
            } else {
                ("assistant", said(&format!("{terminal} answers {round}")))
            };
            let time = json!({"timestamp": format!("2026-05-04T11:{minute:02}:00Z")});
            text += &record(&uuid, Some(leaf), kind, content, &time);
            *leaf = uuid;
            world.write(&path, &text);
            world.run(&["import", PROJECT]).ok();
            let context = world.run(&["context", SESSION, "-q"]).ok();
            let other = if terminal == "one" { "two" } else { "one" };
            for earlier in 0..=round {
                let word = if earlier % 2 == 0 { "asks" } else { "answers" };
                assert!(context.contains(&format!("{terminal} {word} {earlier}")), "{context}");
            }
            assert!(context.contains("first") && !context.contains(other), "{context}");
        }
    }
    let log = world.run(&["log", "--json"]).text();
    let count =
        |kind: &str| log.lines().filter(|line| line.contains(&format!("\"kind\":\"{kind}\""))).count();
    assert_eq!(["rewound", "forked", "message_recorded"].map(count), [1, 1, 13]);
    // The branch of its own is written back with what it shares.
    let folder = world.path("home/.claude").to_string_lossy().into_owned();
    let written = world.run(&["resume", &format!("{SESSION}+2"), "-o", "resumed.jsonl"]);
    assert_eq!(written.code, 0, "{folder}: {}", written.err);
    let resumed = std::fs::read_to_string(world.path("resumed.jsonl")).unwrap();
    assert_eq!(resumed.lines().count(), 7);
    assert!(!resumed.contains("two") && !resumed.contains(SESSION), "{resumed}");
}

/// A compaction on a branch of its own lost the messages that it keeps from before the branch.
#[test]
fn a_compaction_on_a_branch_keeps_what_was_said_before_it() {
    let path = format!("{PROJECT}/{SESSION}.jsonl");
    let said = |text: &str| json!([{"type": "text", "text": text}]);
    let none = json!({});
    let call = json!([{"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": "/w/a"}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "c1", "content": "text of a"}]);
    let mut text = record("u1", None, "user", json!("first"), &none);
    text += &record("b1", Some("u1"), "assistant", said("kept words"), &none);
    text += &record("b2", Some("b1"), "assistant", call, &none);
    text += &record("b3", Some("b2"), "user", result, &none);
    text += &record("c1", Some("u1"), "user", json!("the other goes on"), &none);
    text += &record("b4", Some("b3"), "assistant", said("behind the fork"), &none);
    let boundary = json!({
        "type": "system", "subtype": "compact_boundary", "uuid": "k", "parentUuid": null, "logicalParentUuid": "b4", "sessionId": SESSION,
        "compactMetadata": {"trigger": "manual", "preservedMessages": {"anchorUuid": "s", "uuids": ["b1", "b2", "b3", "b4"]}},
    });
    // The messages that it keeps are in the store before, or come with it.
    for is_known in [true, false] {
        let world = World::new();
        std::fs::create_dir_all(world.path(PROJECT)).unwrap();
        let written = |end: &str| {
            world.write(&path, end);
            world.run(&["import", PROJECT]).ok();
        };
        if is_known {
            written(&text);
        }
        let summary = record("s", Some("k"), "user", json!("in short"), &json!({"isCompactSummary": true}));
        let end = record("b5", Some("s"), "user", json!("and more"), &none);
        written(&format!("{text}{boundary}\n{summary}{end}"));
        let context = world.run(&["context", &format!("{SESSION}+2"), "-q"]).ok();
        let places: Vec<usize> = ["in short", "kept words", "text of a", "behind the fork", "and more"]
            .iter()
            .map(|words| context.find(words).unwrap_or_else(|| panic!("{words}: {context}")))
            .collect();
        assert!(places.is_sorted() && !context.contains("first"), "{context}");
    }
}
