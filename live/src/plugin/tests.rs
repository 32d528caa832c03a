//! Requests of a plug-in, and the answers.

use acpdb_engine::Store;
use acpdb_engine::event::{Payload, Recorded};
use acpdb_engine::ids::Seq;
use serde_json::{Value, json};

use super::PluginSession;
use crate::host::{AttachMode, Host};

struct Room {
    _folder: tempfile::TempDir,
    store: Store,
    desk: PluginSession,
}

impl Room {
    fn new(mode: AttachMode, policy: &str) -> Self {
        Self::of(Host::Opencode, mode, policy)
    }

    fn of(host: Host, mode: AttachMode, policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = Store::builder(&path).registry(acpdb_hosts::registry()).any_file_system().open().unwrap();
        let policy = acpdb_engine::fold::Policy::from_json(policy).unwrap();
        let _ = store.set_policy(None, &policy, None).unwrap();
        let own = store.clone();
        let open = Box::new(move || Ok(own.clone()));
        Self { _folder: folder, store, desk: PluginSession::new(host, mode, open) }
    }

    fn ask(&mut self, request: &Value) -> Value {
        let (answer, _) = self.desk.answer(&request.to_string());
        serde_json::from_str(&answer).unwrap()
    }

    fn context(&mut self, messages: &Value) -> Value {
        self.context_of(messages, true)
    }

    fn context_of(&mut self, messages: &Value, is_prompt: bool) -> Value {
        let model = "claude-lab";
        self.ask(&json!({"id": 1, "op": "context", "info": {"id": "ses_1", "directory": "/p"}, "messages": messages,
            "model": model, "is_prompt": is_prompt, "key": "prt_1"}))
    }
}

fn user(id: &str, text: &str) -> Value {
    let part = json!({"id": format!("{id}-p"), "type": "text", "text": text});
    json!({"info": {"id": id, "role": "user", "time": {"created": 1}}, "parts": [part]})
}

fn reads(id: &str, call: &str, output: &str) -> Value {
    let state = json!({"status": "completed", "input": {"filePath": "/p/a.rs"}, "output": output,
        "time": {"start": 2, "end": 3}});
    let parts = json!([{"id": format!("{id}-s"), "type": "step-start"},
        {"id": format!("{id}-t"), "type": "tool", "tool": "read", "callID": call, "state": state}]);
    json!({"info": {"id": id, "role": "assistant", "time": {"created": 2, "completed": 3}}, "parts": parts})
}

/// A text that is longer than its placeholder.
const LONG: &str =
    "fn main() { println!(\"a line that is long enough to be worth hiding, and another one behind it\"); }";

const HIDDEN: &str = "[auto-superseded: hash duplicate]";

const EAGER: &str = r#"{"preset": "acp", "serve.mode": "eager"}"#;

fn outputs(answer: &Value) -> Vec<(String, String)> {
    let text = |change: &Value, name: &str| change.get(name).and_then(Value::as_str).map(str::to_owned);
    let changes = answer.get("changes").and_then(Value::as_array).unwrap();
    changes.iter().filter_map(|change| Some((text(change, "call")?, text(change, "output")?))).collect()
}

#[test]
fn a_repeat_hides_the_earlier_result_and_the_same_is_told_once() {
    let mut room = Room::new(AttachMode::Prune, EAGER);
    let first = room.context(&json!([user("m1", "Look."), reads("m2", "c1", LONG)]));
    assert_eq!(outputs(&first), [], "{first}");
    let second = room.context(&json!([reads("m3", "c2", LONG)]));
    assert_eq!(outputs(&second), [("c1".to_owned(), HIDDEN.to_owned())]);
    // A program that was started anew is told everything again.
    let again = room.context(&json!([user("m1", "Look."), reads("m2", "c1", LONG), reads("m3", "c2", LONG)]));
    assert_eq!(again.get("changes"), second.get("changes"));
}

#[test]
fn in_mode_record_nothing_is_changed() {
    let mut room = Room::new(AttachMode::Record, EAGER);
    room.context(&json!([user("m1", "Look."), reads("m2", "c1", "x")]));
    let answer = room.context(&json!([reads("m3", "c2", "x")]));
    assert_eq!(answer.get("changes"), Some(&json!([])));
    assert_eq!(room.ask(&json!({"id": 2, "op": "hello"})).get("tools"), Some(&json!([])));
}

#[test]
fn what_is_discarded_goes_with_the_next_request_and_comes_back() {
    let mut room = Room::new(AttachMode::Prune, r#"{"preset": "acp"}"#);
    let answer = room.context(&json!([user("m1", "Look."), reads("m2", "c1", LONG), user("m3", "Go on.")]));
    let hash = answer.pointer("/changes/0/hash").and_then(Value::as_str).unwrap().to_owned();
    let mut act = |action: &str| {
        let arguments = json!({"action": action, "targets": [[hash]]});
        room.ask(
            &json!({"id": 3, "op": "tool", "session": "ses_1", "name": "context", "arguments": arguments}),
        );
        outputs(&room.context(&json!([])))
    };
    let hidden = act("discard");
    assert!(hidden.iter().any(|(call, text)| call == "c1" && text.contains("removed")), "{hidden:?}");
    assert_eq!(act("restore"), []);
}

#[test]
fn what_is_remembered_stands_behind_the_same_message_each_time() {
    let mut room = Room::new(AttachMode::Suggest, EAGER);
    room.context(&json!([user("m1", "Look.")]));
    let arguments = json!({"kind": "decision", "text": "Jobs wait in Postgres"});
    let named = json!({"id": 4, "op": "tool", "session": "ses_1", "name": "acpdb_memory_remember", "arguments": arguments});
    assert_eq!(room.ask(&named).get("error"), None);
    let first = room.context(&json!([]));
    assert_eq!(first.pointer("/changes/0/after"), Some(&json!("m1")), "{first}");
    let later = room.context(&json!([reads("m2", "c1", "x")]));
    assert_eq!(first.get("changes"), later.get("changes"));
}

#[test]
fn mistakes_are_answered_and_end_nothing() {
    let mut room = Room::new(AttachMode::Prune, EAGER);
    for (line, said) in [
        ("nothing", "no request"),
        ("{}", "no request"),
        (r#"{"id":7,"op":"dance"}"#, "there is no `dance`"),
        (r#"{"id":7,"op":"context"}"#, "needs `info`"),
        (r#"{"id":7,"op":"context","info":{}}"#, "needs `info.id`"),
        (r#"{"id":7,"op":"context","info":{"id":"s"},"messages":7}"#, "cannot import the messages"),
        (r#"{"id":7,"op":"stats","session":"none"}"#, "none"),
        (r#"{"id":7,"op":"stats"}"#, "needs `session`"),
    ] {
        let (answer, done) = room.desk.answer(line);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let error = answer.get("error").and_then(Value::as_str).unwrap_or_default();
        assert!(error.contains(said), "{line}: {answer}");
        assert!(done.error.is_some(), "{line}");
    }
    let answer = room.context(&json!([user("m1", "Look.")]));
    assert_eq!(answer.get("error"), None);
}

#[test]
fn a_store_that_cannot_be_opened_is_tried_again() {
    let mut desk = PluginSession::new(
        Host::Opencode,
        AttachMode::Prune,
        Box::new(|| Err("the disk is full".to_owned())),
    );
    for _ in 0..2 {
        let (answer, _) = desk.answer(r#"{"id":1,"op":"stats","session":"s"}"#);
        assert!(answer.contains("the disk is full"), "{answer}");
    }
}

/// Messages told while the store cannot be used are told again with the whole; later ones have to wait, or they would stand first.
#[test]
fn what_was_not_recorded_comes_before_what_follows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let open = {
        let path = path.clone();
        move || {
            if !path.exists() {
                return Err("the store is busy".to_owned());
            }
            Store::builder(&path)
                .registry(acpdb_hosts::registry())
                .any_file_system()
                .open()
                .map_err(|error| error.to_string())
        }
    };
    let mut desk = PluginSession::new(Host::Opencode, AttachMode::Prune, Box::new(open));
    let mut tell = |op: &str, messages: Value, whole: bool| {
        let request = json!({"id": 1, "op": op, "info": {"id": "ses_1", "directory": "/p"}, "messages": messages, "whole": whole,
            "model": "m", "key": "k"});
        let (answer, _) = desk.answer(&request.to_string());
        serde_json::from_str::<Value>(&answer).unwrap()
    };
    let (first, second, third) = (user("m1", "Look."), reads("m2", "c1", LONG), user("m3", "Go on."));
    assert!(tell("context", json!([first]), true)["error"].to_string().contains("busy"));
    drop(Store::builder(&path).any_file_system().open().unwrap());
    for op in ["record", "context"] {
        assert!(tell(op, json!([second]), false)["error"].to_string().contains("tell the whole"), "{op}");
    }
    assert_eq!(tell("context", json!([first, second, third]), true)["error"], Value::Null);
    assert_eq!(tell("record", json!([user("m4", "And on.")]), false)["error"], Value::Null);
    let store = Store::builder(&path).any_file_system().open().unwrap();
    let view = store.view(store.find_stream("ses_1").unwrap().id).unwrap();
    let messages: Vec<String> =
        view.current().iter().filter_map(|item| item.message.as_deref().map(str::to_owned)).collect();
    assert_eq!(messages, ["m1", "m2", "m3", "m4"]);
}

/// A session's file as Pi writes it: two reads of one file, and the model's thoughts before the second.
fn pi_lines(count: usize) -> String {
    let entry = |id: &str, parent: Option<&str>, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-31T14:00:00.000Z", "message": message});
    let call =
        |id: &str| json!({"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "/p/a.rs"}});
    let thinks = json!({"type": "thinking", "thinking": "Once more.", "thinkingSignature": "sig=="});
    let says = |content: Value| json!({"role": "assistant", "content": content, "stopReason": "toolUse", "timestamp": 2});
    let result = |id: &str| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "isError": false, "timestamp": 3,
            "content": [{"type": "text", "text": LONG}]})
    };
    let lines = [
        json!({"type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-01-31T14:00:00.000Z", "cwd": "/p"}),
        entry("a", None, json!({"role": "user", "content": "Look", "timestamp": 1})),
        entry("b", Some("a"), says(json!([call("c1")]))),
        entry("c", Some("b"), result("c1")),
        entry("d", Some("c"), says(json!([thinks, call("c2")]))),
        entry("e", Some("d"), result("c2")),
    ];
    lines.iter().take(count).map(|line| format!("{line}\n")).collect()
}

#[test]
fn of_pi_its_own_file_is_read_and_calls_are_changed() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("pi-1.jsonl");
    let ask = |room: &mut Room, op: &str, model: &str, is_prompt: bool| {
        room.ask(&json!({"id": 1, "op": op, "session": "pi-1", "recording": recording, "folder": "/p", "model": model,
            "is_prompt": is_prompt, "key": "e"}))
    };
    for (mode, hidden) in
        [(AttachMode::Record, false), (AttachMode::Suggest, false), (AttachMode::Prune, true)]
    {
        let mut room = Room::of(Host::Pi, mode, EAGER);
        let _ = std::fs::remove_file(&recording);
        let early = ask(&mut room, "context", "any", true);
        assert_eq!(early["changes"], json!([]), "Pi writes its file with the first answer: {early}");
        std::fs::write(&recording, pi_lines(6)).unwrap();
        let answer = ask(&mut room, "context", "any", false);
        let expected = if hidden { vec![("c1".to_owned(), HIDDEN.to_owned())] } else { Vec::new() };
        assert_eq!(outputs(&answer), expected, "{mode}");
        assert_eq!(ask(&mut room, "record", "", false)["events"], 0, "known already");
        assert_eq!(ask(&mut room, "due", "", false)["text"], Value::Null);
    }
    let mut room = Room::of(Host::Pi, AttachMode::Prune, EAGER);
    let lacks = room.ask(&json!({"op": "context", "session": "pi-1"}));
    assert!(lacks["error"].as_str().unwrap().contains("recording"), "{lacks}");
}

#[test]
fn of_pi_reasoning_behind_a_change_goes_by_its_signature() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("pi-1.jsonl");
    let mut room = Room::of(Host::Pi, AttachMode::Prune, EAGER);
    let mut ask = |count: usize, is_prompt: bool| {
        std::fs::write(&recording, pi_lines(count)).unwrap();
        room.ask(&json!({"id": 1, "op": "context", "session": "pi-1", "recording": recording, "folder": "/p",
            "model": "claude-opus-5-5", "is_prompt": is_prompt, "key": format!("{count}{is_prompt}")}))
    };
    assert_eq!(outputs(&ask(4, false)), []);
    let within = ask(6, false);
    assert_eq!(
        (outputs(&within), &within["stale_signatures"]),
        (Vec::new(), &json!([])),
        "it waits for a prompt"
    );
    let prompt = ask(6, true);
    assert_eq!(outputs(&prompt), [("c1".to_owned(), HIDDEN.to_owned())]);
    assert_eq!(prompt["stale_signatures"], json!(["sig=="]));
}

/// A text of the user that came in parts never began automata mode, so that opencode and Pi had no reflections.
#[test]
fn the_word_automata_brings_reflections_in_opencode_and_pi() {
    for (word, expected) in [("Begin, AUTOMATA mode.", true), ("Begin.", false)] {
        let mut room = Room::new(AttachMode::Suggest, EAGER);
        let mut said = user("m1", "Look.");
        said["parts"].as_array_mut().unwrap().push(json!({"id": "m1-q", "type": "text", "text": word}));
        let answer = room.context(&json!([said, reads("m2", "c2", "2")]));
        assert!(!answer.to_string().contains("Reflection"), "{answer}");
        let steps: Vec<Value> =
            (3..13).map(|step| reads(&format!("m{step}"), &format!("c{step}"), "x")).collect();
        let answer = room.context(&json!(steps));
        assert_eq!(
            answer.to_string().matches("**Reflection**").count(),
            usize::from(expected),
            "{word}: {answer}"
        );

        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("pi-1.jsonl");
        let entry = |id: usize, message: Value| {
            let parent = id.checked_sub(1).map(|parent| format!("e{parent}"));
            json!({"type": "message", "id": format!("e{id}"), "parentId": parent, "timestamp": "2026-01-31T14:00:00.000Z",
                "message": message})
        };
        let session = json!({"type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-01-31T14:00:00.000Z", "cwd": "/p"});
        let parts = json!([{"type": "text", "text": "Look."}, {"type": "text", "text": word}]);
        let mut lines = vec![session, entry(0, json!({"role": "user", "content": parts, "timestamp": 1}))];
        for step in 1..12 {
            let call = json!({"type": "toolCall", "id": format!("c{step}"), "name": "bash", "arguments": {"command": format!("ls {step}")}});
            let says =
                json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 2});
            let result = json!({"role": "toolResult", "toolCallId": format!("c{step}"), "toolName": "bash", "isError": false,
                "timestamp": 3, "content": [{"type": "text", "text": "x"}]});
            lines.extend([entry(2 * step - 1, says), entry(2 * step, result)]);
        }
        std::fs::write(&recording, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let mut room = Room::of(Host::Pi, AttachMode::Suggest, EAGER);
        let mut due = |op: &str| {
            let answer = room.ask(
                &json!({"id": 1, "op": op, "session": "pi-1", "recording": recording, "folder": "/p", "begun": true}),
            );
            answer.to_string().matches("**Reflection**").count()
        };
        // The second time it was shown already.
        assert_eq!([due("record"), due("due"), due("due")], [0, usize::from(expected), 0], "{word}");

        // A recording that could not be read any more took the reflection with it.
        let mut room = Room::of(Host::Pi, AttachMode::Suggest, EAGER);
        let mut ask = |op: &str| {
            let asked = json!({"id": 1, "op": op, "session": "pi-1", "recording": recording, "folder": "/p", "begun": true});
            let (answer, done) = room.desk.answer(&asked.to_string());
            (answer.matches("**Reflection**").count(), done.error)
        };
        assert_eq!(ask("record"), (0, None));
        std::fs::write(&recording, "no recording\n").unwrap();
        let (count, error) = ask("due");
        assert_eq!(count, usize::from(expected), "{word}");
        assert!(error.unwrap().contains("is no recording of pi"), "the journal tells it");
    }
}

/// The index came with the prompt after the next one, if at all: Pi's recording was not read before, and opencode had none.
#[test]
fn behind_a_compaction_the_next_request_has_an_index_of_what_left() {
    let entry = |id: usize, message: Value| {
        let parent = id.checked_sub(1).map(|parent| format!("e{parent}"));
        json!({"type": "message", "id": format!("e{id}"), "parentId": parent, "timestamp": "2026-01-31T14:00:00.000Z",
            "message": message})
    };
    let call =
        json!({"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "cat ports.txt"}});
    let lines = [
        json!({"type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-01-31T14:00:00.000Z", "cwd": "/p"}),
        entry(0, json!({"role": "user", "content": [{"type": "text", "text": "Look."}], "timestamp": 1})),
        entry(1, json!({"role": "assistant", "content": [call], "stopReason": "toolUse", "timestamp": 2})),
        entry(
            2,
            json!({"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "isError": false, "timestamp": 3,
            "content": [{"type": "text", "text": LONG.repeat(40)}]}),
        ),
        entry(
            3,
            json!({"role": "assistant", "content": [{"type": "text", "text": "Seen."}], "stopReason": "stop", "timestamp": 4}),
        ),
        json!({"type": "compaction", "id": "e4", "parentId": "e3", "timestamp": "2026-01-31T14:00:01.000Z", "summary": "It was seen.",
            "firstKeptEntryId": "e3", "tokensBefore": 100}),
    ];
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("pi-1.jsonl");
    let write = |count: usize| {
        let text: String = lines.iter().take(count).map(|line| format!("{line}\n")).collect();
        std::fs::write(&recording, text).unwrap();
    };
    let mut room = Room::of(Host::Pi, AttachMode::Suggest, EAGER);
    let mut due = || {
        let asked = json!({"id": 1, "op": "due", "session": "pi-1", "recording": recording, "folder": "/p", "begun": true});
        room.ask(&asked)["text"].as_str().unwrap_or_default().to_owned()
    };
    write(5);
    assert_eq!(due(), "");
    write(6);
    let index = due();
    assert!(index.contains("cat ports.txt") && index.contains('#'), "{index}");
    assert_eq!(due(), "", "it is given once");

    let mut room = Room::new(AttachMode::Suggest, EAGER);
    let before = room.context(&json!([user("m1", "Look."), reads("m2", "c1", &LONG.repeat(40))]));
    assert!(!before.to_string().contains("[acpdb] The compaction"), "{before}");
    let mut asks = user("m3", "");
    asks["parts"] = json!([{"id": "m3-c", "type": "compaction", "auto": true}]);
    let says = json!({"info": {"id": "m4", "role": "assistant", "parentID": "m3", "summary": true, "time": {"created": 4, "completed": 5}},
        "parts": [{"id": "m4-t", "type": "text", "text": "It was seen."}]});
    let within = room.context_of(&json!([asks, says]), false).to_string();
    assert!(!within.contains("[acpdb] The compaction"), "it waits for a prompt: {within}");
    for _ in 0..2 {
        // It stands in each request behind the same message, as all that opencode does not keep itself.
        let goes_on = [user("m5", "Look again."), user("m6", "Continue if you have next steps.")];
        let answer = room.context(&json!([asks, says, goes_on[0], goes_on[1]])).to_string();
        assert_eq!(answer.matches("[acpdb] The compaction").count(), 1, "{answer}");
        assert!(answer.contains("a.rs"), "{answer}");
    }
    // Its words came in a second commit: a program that was killed between the two had given an index that no request held.
    let events =
        room.store.stream_events(room.store.find_stream("ses_1").unwrap().id, Seq(1), Seq::MAX).unwrap();
    let events: Vec<Recorded> = events.map(Result::unwrap).collect();
    let kind = |event: &Recorded| match &event.event.payload {
        Payload::HostRecorded(record) => record.record == "acpdb/lost",
        Payload::Injected(_) => true,
        _ => false,
    };
    let told: Vec<&Recorded> = events.iter().filter(|event| kind(event)).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(
        told.first().map(|one| one.recorded_at),
        told.last().map(|one| one.recorded_at),
        "in one commit"
    );
}
