//! acpdb beside a running host: hooks get the host's own JSON, the host's recording grows, and the store is compared with a plain import of the same
//! recording.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at what it did not expect"
)]

mod done;
mod lost;
#[cfg(feature = "proxy")]
mod running;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use done::{Done, finish};

/// A home, a project and a store; and a recording that grows as a host's does.
struct Desk {
    folder: TempDir,
    lines: usize,
}

impl Desk {
    fn new() -> Self {
        let desk = Self { folder: TempDir::new().unwrap(), lines: 0 };
        for name in ["home", "project"] {
            std::fs::create_dir_all(desk.path(name)).unwrap();
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(args).current_dir(self.path("project")).env_clear();
        command.env("HOME", self.path("home")).env("PATH", "/usr/bin:/bin").env("COLUMNS", "120");
        command.env("ACPDB_PATH", self.path("store"));
        command
    }

    fn run(&self, args: &[&str], stdin: &str) -> Done {
        finish(&mut self.command(args), stdin)
    }

    fn ok(&self, args: &[&str]) -> String {
        let done = self.run(args, "");
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        done.out
    }

    /// Sends an event of Claude Code and returns the hook's answer. The exit code is always 0.
    fn hook(&self, mode: &str, event: &str, more: &Value) -> Value {
        let mut said = json!({"session_id": "s1", "hook_event_name": event,
            "cwd": self.path("project"), "transcript_path": self.path("s1.jsonl")});
        said.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let done = self.run(&["hook", "claude-code", "--mode", mode], &said.to_string());
        assert_eq!(done.code, 0, "{done:?}");
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
    }

    /// The host writes a line.
    fn write(&mut self, kind: &str, message: &Value, more: &Value) {
        self.lines += 1;
        let id = self.lines;
        let parent = if id == 1 { Value::Null } else { json!(format!("u{}", id - 1)) };
        let mut line = json!({"parentUuid": parent, "isSidechain": false, "cwd": self.path("project"),
            "sessionId": "s1", "version": "2.1.0", "type": kind, "message": message, "uuid": format!("u{id}"),
            "timestamp": format!("2026-03-01T10:{:02}:{:02}.000Z", id / 60, id % 60)});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let file = std::fs::OpenOptions::new().create(true).append(true).open(self.path("s1.jsonl"));
        writeln!(file.unwrap(), "{line}").unwrap();
    }

    fn prompt(&mut self, text: &str) {
        self.write("user", &json!({"role": "user", "content": text}), &json!({}));
    }

    fn asks(&mut self, call: &str, tool: &str, input: &Value) {
        let block = json!({"type": "tool_use", "id": call, "name": tool, "input": input});
        let message =
            json!({"id": format!("m-{call}"), "role": "assistant", "model": "m", "content": [block]});
        self.write("assistant", &message, &json!({}));
    }

    fn gets(&mut self, call: &str, text: &str, result: &Value) {
        let block = json!({"type": "tool_result", "tool_use_id": call, "content": text});
        let message = json!({"role": "user", "content": [block]});
        self.write("user", &message, &json!({"toolUseResult": result}));
    }

    fn says(&mut self, text: &str) {
        let message = json!({"id": format!("m{}", self.lines), "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"});
        self.write("assistant", &message, &json!({}));
    }

    /// Kinds and texts of all items that the session shows.
    fn context(&self, store: &str) -> Value {
        let store = self.path(store);
        let out = self.ok(&["--db", store.to_str().unwrap(), "context", "s1", "--json"]);
        let value: Value = serde_json::from_str(&out).unwrap();
        let rows = value["items"].as_array().unwrap().iter().map(|item| {
            json!([item["tool"], item["status"], item["text"], item["input"]["text"], item["output"]["text"]])
        });
        rows.collect()
    }
}

fn long() -> String {
    (0..40).map(|n| format!("value_{n} = compute({n}, other_{n})\n")).collect()
}

fn numbered(text: &str) -> String {
    let lines = text.split('\n').enumerate().map(|(index, line)| format!("{}\t{line}", index + 1));
    lines.collect::<Vec<_>>().join("\n")
}

fn file(text: &str) -> Value {
    json!({"type": "text", "file": {"filePath": "/p/long.py", "content": text, "numLines": 41, "startLine": 1, "totalLines": 41}})
}

#[test]
fn what_hooks_record_is_what_an_import_records() {
    let mut desk = Desk::new();
    let nothing = json!({});
    assert_eq!(desk.hook("record", "SessionStart", &json!({"source": "startup"})), nothing);
    desk.prompt("Read it.");
    assert_eq!(desk.hook("record", "UserPromptSubmit", &json!({"prompt": "Read it."})), nothing);
    for call in ["c1", "c2"] {
        desk.asks(call, "Read", &json!({"file_path": "/p/long.py"}));
        let more = json!({"tool_name": "Read", "tool_use_id": call, "tool_input": {}, "tool_response": file(&long())});
        assert_eq!(desk.hook("record", "PostToolUse", &more), nothing);
        desk.gets(call, &numbered(&long()), &file(&long()));
        assert_eq!(desk.hook("record", "PostToolBatch", &json!({"tool_calls": []})), nothing);
    }
    desk.says("Read.");
    desk.hook("record", "Stop", &nothing);
    desk.hook("record", "Stop", &nothing);
    desk.hook("record", "SessionEnd", &nothing);
    let transcript = desk.path("s1.jsonl");
    let transcript = transcript.to_str().unwrap();
    let again: Value = serde_json::from_str(&desk.ok(&["import", transcript, "--json"])).unwrap();
    assert_eq!(again["items"][0]["events_new"], 0);
    let fresh = desk.path("fresh");
    desk.ok(&["--db", fresh.to_str().unwrap(), "import", transcript]);
    assert_eq!(desk.context("store"), desk.context("fresh"));
    assert!(desk.context("store").to_string().contains("value_39"));
}

/// A store that hooks fill may see no import: without this, lists would fold all of its sessions for ever.
#[test]
fn the_end_of_a_long_session_leaves_its_figures_behind() {
    let mut desk = Desk::new();
    let kept = desk.path("store/snap/sessions.aside");
    for n in 0..140 {
        desk.prompt(&format!("Prompt {n}."));
        desk.says("Yes.");
    }
    desk.hook("record", "Stop", &json!({}));
    assert!(!kept.exists(), "the agent waits for this hook");
    desk.hook("record", "SessionEnd", &json!({}));
    assert!(kept.exists());
}

/// The text that the model is given in place of a result, if any.
fn replaced(answer: &Value) -> Option<String> {
    let output = &answer["hookSpecificOutput"]["updatedToolOutput"];
    let text = output["file"]["content"].as_str().or(output["stdout"].as_str())?;
    Some(text.to_owned())
}

/// The events of the call that was answered with a pointer.
fn original(desk: &Desk) -> String {
    let kept = desk.ok(&["log", "--json"]);
    let finish =
        kept.lines().find(|line| line.contains("tool_call_finished") && line.contains("\"aborted\""));
    let seq = serde_json::from_str::<Value>(finish.unwrap()).unwrap()["seq"].to_string();
    desk.ok(&["show", &format!("#{seq}"), "--json"])
}

#[test]
fn a_result_that_the_model_still_sees_becomes_a_pointer_and_the_original_is_kept() {
    let mut desk = Desk::new();
    desk.prompt("Read it twice.");
    desk.asks("c1", "Read", &json!({"file_path": "/p/long.py"}));
    let told = |call: &str, tool: &str, response: Value| json!({"tool_name": tool, "tool_use_id": call, "tool_input": {}, "tool_response": response});
    assert_eq!(replaced(&desk.hook("prune", "PostToolUse", &told("c1", "Read", file(&long())))), None);
    desk.gets("c1", &numbered(&long()), &file(&long()));
    desk.asks("c2", "Read", &json!({"file_path": "/p/long.py"}));
    // A pointer is given only in the mode that asks for it.
    assert_eq!(replaced(&desk.hook("suggest", "PostToolUse", &told("c2", "Read", file(&long())))), None);
    let pointer = replaced(&desk.hook("prune", "PostToolUse", &told("c2", "Read", file(&long())))).unwrap();
    assert_eq!(pointer, "[40 lines, the same as lines 1-40 of Read /p/long.py (#6) above]");
    desk.gets("c2", &numbered(&pointer), &file(&pointer));
    // A text with one other line is another text.
    desk.asks("c3", "Read", &json!({"file_path": "/p/long.py"}));
    let other = long().replace("compute(20", "computed(20");
    assert_eq!(replaced(&desk.hook("prune", "PostToolUse", &told("c3", "Read", file(&other)))), None);
    desk.gets("c3", &numbered(&other), &file(&other));
    desk.hook("prune", "Stop", &json!({}));
    let context = desk.context("store");
    let rows: Vec<&Value> = context.as_array().unwrap().iter().filter(|row| row[0] == "Read").collect();
    assert_eq!(rows[1][1], "aborted", "{context}");
    assert!(rows[1].to_string().contains("the same as lines 1-40"), "{context}");
    assert!(original(&desk).contains("compute(39"), "the original is in the log");
    // A plain import of the same recording shows the same.
    let (fresh, transcript) = (desk.path("fresh"), desk.path("s1.jsonl"));
    desk.ok(&["--db", fresh.to_str().unwrap(), "import", transcript.to_str().unwrap()]);
    assert_eq!(desk.context("fresh"), context);
}

/// A row of Claude Code's module that holds a result.
fn row(call: &str, text: &Value) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": call, "content": text});
    json!({"row": {"message": {"type": "user", "role": "user", "content": [block]}, "door": "tool-result",
        "origin": {"kind": "tool", "tool": "mcp__any__tool"}, "uuid": format!("row-{call}")}})
}

#[test]
fn a_row_of_a_module_becomes_a_pointer_whatever_the_tool() {
    let mut desk = Desk::new();
    assert_eq!(desk.hook("prune", "session.start", &json!({})), json!({"module": 1}));
    desk.prompt("Read it twice.");
    desk.asks("c1", "mcp__any__tool", &json!({}));
    assert_eq!(desk.hook("prune", "session.append", &row("c1", &json!(long()))), json!({}));
    desk.gets("c1", &long(), &json!({}));
    desk.asks("c2", "mcp__any__tool", &json!({}));
    let blocks = json!([{"type": "text", "text": long()}]);
    assert_eq!(desk.hook("suggest", "session.append", &row("c2", &blocks)), json!({}));
    let pointer = desk.hook("prune", "session.append", &row("c2", &blocks))["text"].clone();
    assert_eq!(pointer, "[40 lines, the same as lines 1-40 of mcp__any__tool (#6) above]");
    desk.gets("c2", pointer.as_str().unwrap(), &json!({"kept": long()}));
    // After a compaction the host writes its rows again: acpdb has decided on them before.
    assert_eq!(desk.hook("prune", "session.append", &row("c1", &json!(long()))), json!({}));
    // A result that failed or is not a text alone stays, as does a row that is no result.
    desk.asks("c3", "mcp__any__tool", &json!({}));
    let picture = json!([{"type": "text", "text": long()}, {"type": "image", "source": {}}]);
    let mut failed = row("c3", &json!(long()));
    failed["row"]["message"]["content"][0]["is_error"] = json!(true);
    for more in [row("c3", &picture), failed, json!({"row": {}}), json!({"row": 7}), json!({})] {
        assert_eq!(desk.hook("prune", "session.append", &more), json!({}), "{more}");
    }
    desk.says("Read.");
    desk.hook("prune", "Stop", &json!({}));
    let (fresh, transcript) = (desk.path("fresh"), desk.path("s1.jsonl"));
    desk.ok(&["--db", fresh.to_str().unwrap(), "import", transcript.to_str().unwrap()]);
    assert_eq!(desk.context("fresh"), desk.context("store"));
    assert!(original(&desk).contains("compute(39"), "the original is in the log");
}

/// A subagent's context is its own: it cannot look at the session's results, nor the session at the subagent's.
#[test]
fn in_a_subagent_only_its_own_results_count() {
    let mut desk = Desk::new();
    desk.prompt("Read it.");
    desk.asks("c1", "Read", &json!({}));
    desk.gets("c1", &long(), &json!({}));
    std::fs::create_dir_all(desk.path("s1/subagents")).unwrap();
    let tells = |desk: &Desk, agent: &str, rows: &[Value]| {
        let lines = rows.iter().enumerate().map(|(number, message)| {
            let parent = if number == 0 { Value::Null } else { json!(format!("{agent}-{}", number - 1)) };
            json!({"parentUuid": parent, "isSidechain": true, "agentId": agent, "cwd": desk.path("project"),
                "sessionId": "s1", "version": "2.1.0", "type": message["role"], "message": message,
                "uuid": format!("{agent}-{number}"), "timestamp": "2026-03-01T11:00:00.000Z"})
        });
        let text = lines.fold(String::new(), |text, line| format!("{text}{line}\n"));
        std::fs::write(desk.path(&format!("s1/subagents/agent-{agent}.jsonl")), text).unwrap();
    };
    let prompt = json!({"role": "user", "content": "Look."});
    let asks = |call: &str| {
        json!({"id": format!("m-{call}"), "role": "assistant", "model": "m",
        "content": [{"type": "tool_use", "id": call, "name": "Read", "input": {}}]})
    };
    let gets =
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "k1", "content": long()}]});
    let of = |call: &str, agent: &str| {
        let mut more = row(call, &json!(long()));
        more["agent_id"] = json!(agent);
        more
    };
    tells(&desk, "a1", &[prompt.clone(), asks("k1")]);
    assert_eq!(desk.hook("prune", "session.append", &of("k1", "a1")), json!({}), "it never saw this file");
    tells(&desk, "a1", &[prompt.clone(), asks("k1"), gets, asks("k2")]);
    let answer = desk.hook("prune", "session.append", &of("k2", "a1"));
    assert_eq!(answer, json!({"text": "[40 lines, the same as lines 1-40 of Read (#6) above]"}));
    let mut hook =
        json!({"tool_name": "Read", "tool_use_id": "k3", "tool_response": file(&long()), "agent_id": "b1"});
    tells(&desk, "b1", &[prompt, asks("k3")]);
    assert_eq!(replaced(&desk.hook("prune", "PostToolUse", &hook)), None);
    hook["tool_use_id"] = json!("c2");
    for name in [json!("../a1"), json!(""), json!("a/b"), json!(7)] {
        desk.asks("c2", "Read", &json!({}));
        hook["agent_id"] = name;
        assert_eq!(
            desk.run(&["hook", "claude-code"], &hook.to_string()).code,
            0,
            "a name that is none is no subagent's"
        );
    }
}

/// A conversation as Claude Code gives it to a compaction: a prompt, and calls with long results.
fn rows(desk: &mut Desk, count: usize) -> Vec<Value> {
    desk.prompt("Look at all.");
    let mut rows = vec![json!({"role": "user", "text": "Look at all.", "toolUses": [], "handle": "u1"})];
    for number in 0..count {
        let (call, text) = (format!("c{number}"), long().replace("compute", &format!("compute_{number}")));
        desk.asks(&call, "Read", &json!({"file_path": format!("/p/{number}.py")}));
        desk.gets(&call, &text, &json!({}));
        rows.push(json!({"role": "assistant", "text": "", "handle": format!("h{number}"),
            "toolUses": [{"tool_use_id": call, "tool": "Read", "input": {"file_path": format!("/p/{number}.py")}, "text": text}]}));
        rows.push(json!({"role": "user", "text": "", "toolUses": [], "handle": format!("r{number}"),
            "toolResults": [{"tool_use_id": call, "text": text, "isError": false}]}));
    }
    rows
}

#[test]
fn a_compaction_is_answered_with_placeholders_for_the_oldest_results() {
    let mut desk = Desk::new();
    let rows = rows(&mut desk, 8);
    let asks = |rows: &[Value]| json!({"compact": {"trigger": "auto", "messages": rows}});
    for (mode, more) in [
        ("record", asks(&rows)),
        ("suggest", asks(&rows)),
        ("prune", json!({"compact": {"messages": rows, "instructions": "keep the names"}})),
        ("prune", json!({"compact": {"messages": []}})),
        ("prune", json!({"compact": {"messages": [{"role": "user"}, 7]}})),
        ("prune", json!({})),
        // The newest results, which stay, are too large a part of so few tokens.
        ("prune", asks(rows.get(..4).unwrap())),
    ] {
        assert_eq!(desk.hook(mode, "session.compact", &more), json!({}), "{mode} {more}");
    }
    let answer = desk.hook("prune", "session.compact", &asks(&rows));
    let shown = answer["messages"].as_array().unwrap();
    assert_eq!(shown.len(), rows.len());
    assert_eq!(shown.iter().filter(|row| row.get("handle").is_some()).count(), 1, "the prompt alone");
    let texts: Vec<&str> = shown.iter().filter_map(|row| row["toolResults"][0]["text"].as_str()).collect();
    let hidden = texts.iter().take_while(|text| text.starts_with('[')).count();
    assert!(
        (4..7).contains(&hidden) && texts.iter().skip(hidden).all(|text| text.contains("value_39")),
        "{texts:?}"
    );
    // A served context can be made again, with the same content.
    let served = desk.ok(&["context", "s1", "--served"]);
    let said: Vec<Value> = served.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outputs: Vec<&str> = said.iter().filter_map(|line| line["output"].as_str()).collect();
    assert_eq!(outputs, texts.get(..hidden).unwrap());
}

#[test]
fn a_compaction_gives_back_what_was_a_pointer_and_leaves_pictures_to_the_host() {
    let mut desk = Desk::new();
    let mut rows = rows(&mut desk, 7);
    let same = long().replace("compute", "compute_0");
    desk.asks("again", "Read", &json!({"file_path": "/p/0.py"}));
    let pointer = desk.hook("prune", "session.append", &row("again", &json!(same)))["text"].clone();
    desk.gets("again", pointer.as_str().unwrap(), &json!({}));
    desk.says("Seen.");
    rows.push(json!({"role": "assistant", "text": "", "toolUses": [{"tool_use_id": "again", "tool": "Read", "input": {}}]}));
    rows.push(json!({"role": "user", "text": "", "toolUses": [], "toolResults": [{"tool_use_id": "again", "text": pointer}]}));
    let asks = json!({"compact": {"trigger": "manual", "messages": rows}});
    let answer = desk.hook("prune", "session.compact", &asks);
    let shown = answer["messages"].as_array().unwrap();
    let result = |at: usize| shown.get(at).unwrap()["toolResults"][0]["text"].as_str().unwrap().to_owned();
    assert!(result(2).starts_with('['), "what it pointed at is hidden: {}", result(2));
    assert!(result(shown.len() - 1).contains("compute_0(39"), "{}", result(shown.len() - 1));
    desk.asks("picture", "Read", &json!({"file_path": "/p/a.png"}));
    let block = json!({"type": "tool_result", "tool_use_id": "picture",
        "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]});
    desk.write("user", &json!({"role": "user", "content": [block]}), &json!({}));
    assert_eq!(desk.hook("prune", "session.compact", &asks), json!({}));
}

#[test]
fn a_new_session_is_told_what_is_due() {
    let mut desk = Desk::new();
    let start = json!({"source": "startup", "session_id": "s2"});
    assert_eq!(desk.hook("suggest", "SessionStart", &start), json!({}));
    desk.prompt("Plan it.");
    let todos = json!([{"content": "Rename it", "status": "completed"}, {"content": "Write the note", "status": "pending"}]);
    desk.asks("c1", "TodoWrite", &json!({"todos": todos}));
    desk.gets("c1", "Todos have been modified", &json!({"oldTodos": [], "newTodos": todos}));
    desk.hook("suggest", "Stop", &json!({}));
    desk.ok(&["memory", "add", "--session", "s1", "decision", "Jobs wait in Postgres"]);
    let text =
        desk.hook("suggest", "SessionStart", &start)["hookSpecificOutput"]["additionalContext"].to_string();
    assert!(text.contains("[pending] Write the note") && !text.contains("Rename it"), "{text}");
    assert!(text.contains("Jobs wait in Postgres"), "{text}");
    // A text that the context already has is not repeated, and `record` says nothing at all.
    let resumed = json!({"source": "resume", "session_id": "s2"});
    assert_eq!(desk.hook("suggest", "SessionStart", &resumed), json!({}));
    assert_eq!(desk.hook("record", "SessionStart", &start), json!({}));
}

#[test]
fn whatever_is_wrong_a_hook_answers_nothing_and_ends_well() {
    let desk = Desk::new();
    let event = r#"{"session_id":"s1","hook_event_name":"Stop","transcript_path":"/no/such/file"}"#;
    let broken = desk.path("broken");
    std::fs::write(&broken, "no folder").unwrap();
    let missing = desk.path("project");
    let folder = format!(r#"{{"session_id":"s1","hook_event_name":"Stop","transcript_path":{missing:?}}}"#);
    let cases: [(&[&str], &str); 8] = [
        (&["hook", "claude-code"], ""),
        (&["hook", "claude-code"], "{"),
        (&["hook", "claude-code"], "{}"),
        (&["hook", "claude-code"], "\u{0}"),
        (&["hook", "no-such-host"], event),
        (&["hook", "claude-code", "--no-such-option"], event),
        (&["--db", broken.to_str().unwrap(), "hook", "claude-code"], event),
        (&["hook", "claude-code"], &folder),
    ];
    for (args, input) in cases {
        let done = desk.run(args, input);
        assert_eq!((done.out.as_str(), done.code), ("{}\n", 0), "{args:?} {input:?}: {done:?}");
    }
    let status = desk.ok(&["attach", "--status"]);
    assert!(status.contains("error"), "{status}");
    // A call for help is not an event.
    assert!(desk.ok(&["hook", "--help"]).contains("standard input"));
}

#[test]
fn a_hook_that_takes_too_long_gives_up() {
    let mut desk = Desk::new();
    desk.prompt("Wait.");
    let event = format!(
        r#"{{"session_id":"s1","hook_event_name":"Stop","transcript_path":{:?}}}"#,
        desk.path("s1.jsonl")
    );
    let done = desk.run(&["hook", "claude-code", "--deadline", "0"], &event);
    assert_eq!((done.out.as_str(), done.code), ("{}\n", 0), "{done:?}");
    let status = desk.ok(&["attach", "--status", "--json"]);
    assert!(status.contains("given up after 0 ms"), "{status}");
    // The rest is recorded by the next event.
    desk.hook("record", "Stop", &json!({}));
    assert!(desk.context("store").to_string().contains("Wait."));
}

#[test]
fn hosts_without_a_recording_are_recorded_from_their_hooks() {
    let desk = Desk::new();
    let events = [
        json!({"hook_event_name": "beforeSubmitPrompt", "generation_id": "g1", "prompt": "List it."}),
        json!({"hook_event_name": "postToolUse", "tool_name": "Shell", "tool_use_id": "t1", "tool_input": {"command": "ls"}, "tool_output": "a.py"}),
        json!({"hook_event_name": "afterAgentResponse", "text": "There is a.py."}),
    ];
    for event in &events {
        let mut event = event.clone();
        event["conversation_id"] = "s1".into();
        event["workspace_roots"] = json!([desk.path("project")]);
        for _ in 0..2 {
            let done = desk.run(&["hook", "cursor"], &event.to_string());
            assert_eq!((done.out.as_str(), done.code), ("{}\n", 0), "{done:?}");
        }
    }
    let text = desk.context("store").to_string();
    for part in ["List it.", "a.py", "There is a.py."] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("List it.").count(), 1, "told twice, recorded once: {text}");
}

#[test]
fn attaching_shows_a_diff_and_detaching_leaves_nothing() {
    let desk = Desk::new();
    let settings = desk.path("home/.claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let theirs = "{\n  \"model\": \"opus\"\n}\n";
    std::fs::write(&settings, theirs).unwrap();
    let shown = desk.ok(&["attach", "claude", "--mode", "prune", "--dry-run"]);
    assert!(shown.contains("+    \"SessionStart\"") && shown.contains("+  \"model\": \"opus\","), "{shown}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), theirs);
    desk.ok(&["attach", "claude", "--mode", "prune"]);
    let attached = std::fs::read_to_string(&settings).unwrap();
    assert!(attached.contains("hook claude-code --mode prune 2>/dev/null || true"), "{attached}");
    desk.ok(&["attach", "claude", "--mode", "prune"]);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), attached);
    assert!(desk.ok(&["attach", "--status"]).contains("attached in"));
    desk.ok(&["detach", "claude"]);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), theirs);
    std::fs::write(&settings, "{ // mine\n}").unwrap();
    let refused = desk.run(&["attach", "claude"], "");
    assert!(refused.code == 1 && refused.err.contains("left alone"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), "{ // mine\n}");
}

#[test]
fn doctor_says_whether_what_is_attached_works() {
    let mut desk = Desk::new();
    let doctor = |desk: &Desk| {
        let said: Value = serde_json::from_str(&desk.run(&["doctor", "--json"], "").out).unwrap();
        let found =
            said["items"].as_array().unwrap().iter().find(|item| item["what"] == "claude-code").cloned();
        found.map(|item| format!("{} {} {}", item["state"], item["detail"], item["next"]))
    };
    desk.prompt("Look.");
    desk.hook("record", "Stop", &json!({}));
    assert_eq!(doctor(&desk), None, "not attached");
    desk.ok(&["attach", "claude"]);
    let said = doctor(&desk).unwrap();
    assert!(said.starts_with("\"ok\" \"attached, last event at 2"), "{said}");
    desk.run(&["hook", "claude-code"], "no JSON");
    let said = doctor(&desk).unwrap();
    assert!(
        said.starts_with("\"problem\"") && said.contains("1 error") && said.contains("--status claude-code"),
        "{said}"
    );
    desk.hook("record", "Stop", &json!({}));
    // The host goes on, and its events do not arrive.
    let folder = desk.path("home/.claude/projects/p");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(desk.path("s1.jsonl"), folder.join("s1.jsonl")).unwrap();
    let file = std::fs::File::options().write(true).open(folder.join("s1.jsonl")).unwrap();
    let written = file.metadata().unwrap().modified().unwrap();
    file.set_modified(written + std::time::Duration::from_secs(150)).unwrap();
    let said = doctor(&desk).unwrap();
    assert!(said.starts_with("\"problem\"") && said.contains("its recording is 2 minutes newer"), "{said}");
}

#[test]
fn the_command_that_a_host_runs_ends_well_without_the_program() {
    let desk = Desk::new();
    desk.ok(&["attach", "claude", "--project"]);
    let text = std::fs::read_to_string(desk.path("project/.claude/settings.local.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    let program = env!("CARGO_BIN_EXE_acpdb");
    for program_now in [program, "/no/such/acpdb", "false"] {
        let line = command.replace(program, program_now);
        let status = Command::new("/bin/sh").args(["-c", &line]).stdin(Stdio::null()).output().unwrap();
        assert!(status.status.success() && status.stderr.is_empty(), "{line}: {status:?}");
    }
}

/// Runs of SWE-agent have no id: the store names them. A step or a fork by that name went to another session, which was empty.
#[test]
fn verbs_go_on_with_a_session_that_the_store_named() {
    let desk = Desk::new();
    let run = r#"{"trajectory":[{"action":"ls","observation":"a.py","thought":"I look.","response":"I look."}],
        "history":[{"role":"user","content":"Fix a.py","agent":"main"}],"environment":"e"}"#;
    std::fs::write(desk.path("project/run.traj"), run).unwrap();
    let _ = desk.ok(&["import", "run.traj"]);
    let rows: Value = serde_json::from_str(&desk.ok(&["sessions", "--json"])).unwrap();
    let name = rows["items"][0]["id"].as_str().unwrap().to_owned();
    let step: Value =
        serde_json::from_str(&desk.ok(&["step", &name, "--format", "openai", "--json"])).unwrap();
    assert_eq!(step["session"], name.as_str());
    assert!(step["body"]["messages"].to_string().contains("Fix a.py"), "{step}");
    let fork: Value = serde_json::from_str(&desk.ok(&["fork", &name, "--json"])).unwrap();
    let _ = desk.ok(&["step", fork["session"].as_str().unwrap(), "--format", "openai"]);
    let line = json!({"host": "swe-agent", "session": name, "message": {"role": "user", "text": "go on"}});
    assert_eq!(desk.run(&["append", "--stdin"], &line.to_string()).code, 0);
    let rows: Value = serde_json::from_str(&desk.ok(&["sessions", "--all", "--json"])).unwrap();
    assert_eq!(rows["items"].as_array().map(Vec::len), Some(2), "the run and its fork: {rows}");
}

#[test]
fn a_step_prints_the_body_to_send_and_records_it() {
    let desk = Desk::new();
    let say = |line: &str| {
        let done = desk.run(&["append", "--stdin"], line);
        assert_eq!(done.code, 0, "{done:?}");
    };
    say(r#"{"session":"s1","turn":true,"message":{"role":"user","text":"What is in a.py?"}}"#);
    let body: Value = serde_json::from_str(&desk.ok(&["step", "s1", "--format", "anthropic"])).unwrap();
    assert_eq!(body["messages"][0]["content"][0]["text"], "What is in a.py?");
    let served = desk.ok(&["context", "s1", "--served"]);
    assert_eq!(serde_json::from_str::<Value>(&served).unwrap(), body);
    say(
        r#"{"session":"s1","tool":{"call":"c1","tool":"read","params":{"filePath":"/a.py"},"output":"pass"}}"#,
    );
    let step: Value =
        serde_json::from_str(&desk.ok(&["step", "s1", "--format", "openai", "--key", "k", "--json"]))
            .unwrap();
    assert_eq!((&step["step"], &step["schema"]), (&json!("k"), &json!("acpdb.step/1")));
    assert!(step["body"]["messages"].to_string().contains("pass"), "{step}");
    let refused = desk.run(&["step", "s1", "--format", "text"], "");
    assert!(refused.code == 2 && refused.err.contains("formats: anthropic"), "{refused:?}");
    assert_eq!(desk.run(&["step", "none", "--format", "gemini"], "").code, 7);
}

/// Answers requests with these bodies, one after the other. The thread returns the requests' bodies.
fn provider(answers: Vec<Value>) -> (String, std::thread::JoinHandle<Vec<Value>>) {
    use std::io::{BufRead as _, Read as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let mut bodies = Vec::new();
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
            let mut bytes = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
                    bytes = length.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; bytes];
            reader.read_exact(&mut body).unwrap();
            bodies.push(serde_json::from_slice(&body).unwrap());
            let text = answer.to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", text.len());
            let mut stream = stream;
            stream.write_all((head + &text).as_bytes()).unwrap();
        }
        bodies
    });
    (url, server)
}

#[test]
fn the_host_of_forty_lines_runs_its_loop() {
    let desk = Desk::new();
    let call =
        |id: &str| json!({"type": "tool_use", "id": id, "name": "bash", "input": {"command": "cat long.py"}});
    std::fs::write(desk.path("project/long.py"), long()).unwrap();
    let (url, server) = provider(vec![
        json!({"content": [{"type": "text", "text": "I look."}, call("toolu_1")], "stop_reason": "tool_use"}),
        json!({"content": [call("toolu_2")], "stop_reason": "tool_use"}),
        json!({"content": [{"type": "text", "text": "Forty lines."}], "stop_reason": "end_turn"}),
    ]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/host.sh");
    let program = PathBuf::from(env!("CARGO_BIN_EXE_acpdb"));
    let mut command = Command::new("bash");
    command.args([script, "s1", "How long is it?"]).current_dir(desk.path("project")).env_clear();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("HOME", desk.path("home")).env("ACPDB_PATH", desk.path("store"));
    command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "none");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "I look.\nForty lines.\n");
    let bodies = server.join().unwrap();
    let blocks = |body: &Value, kind: &str| -> Vec<Value> {
        let messages = body["messages"].as_array().unwrap().iter();
        let blocks = messages.flat_map(|message| message["content"].as_array().unwrap().clone());
        blocks.filter(|block| block["type"] == kind).collect()
    };
    assert_eq!(bodies[0]["messages"].as_array().unwrap().len(), 1, "{}", bodies[0]);
    assert!(blocks(&bodies[1], "tool_result")[0].to_string().contains("value_39"), "{}", bodies[1]);
    assert_eq!(blocks(&bodies[2], "tool_result").len(), 2, "{}", bodies[2]);
    // The served context that acpdb shows has the messages of the last request.
    let served: Value = serde_json::from_str(&desk.ok(&["context", "s1", "--served"])).unwrap();
    assert_eq!(served["messages"], bodies[2]["messages"]);
    let context = desk.context("store").to_string();
    assert!(context.contains("Forty lines."), "{context}");
}

/// The texts of marked blocks of a body for Anthropic, results by their calls.
fn marked(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let blocks = body["messages"].as_array().unwrap().iter();
    let blocks = blocks.flat_map(|message| message["content"].as_array().unwrap());
    let marked = blocks.filter(|block| block.get("cache_control").is_some());
    let name = |block: &Value| block["tool_use_id"].as_str().or(block["text"].as_str()).map(str::to_owned);
    marked.map(|block| name(block).unwrap()).collect()
}

#[test]
fn a_body_for_anthropic_says_where_its_cache_pays() {
    let desk = Desk::new();
    let say = |line: &Value| {
        let done = desk.run(&["append", "--stdin"], &line.to_string());
        assert_eq!(done.code, 0, "{done:?}");
    };
    let reads = |call: &str, file: &str| {
        let long = "fn main() {} // and so much more that hiding it is worth a line\n".repeat(20);
        let tool = json!({"call": call, "tool": "read", "params": {"filePath": file}, "output": long});
        say(&json!({"session": "s1", "tool": tool}));
    };
    let mut before: Option<PathBuf> = None;
    let mut step = |number: usize| {
        let body = desk.ok(&["step", "s1", "--format", "anthropic"]);
        let path = desk.path(&format!("{number}.json"));
        std::fs::write(&path, &body).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let mut lint = vec!["context", "lint", "--format", "anthropic", path.as_str()];
        let previous = before.as_ref().map(|path| path.to_str().unwrap().to_owned());
        lint.extend(previous.iter().flat_map(|path| ["--previous", path.as_str()]));
        desk.ok(&lint);
        // The request is made again byte for byte, with its marks.
        assert_eq!(desk.ok(&["context", "s1", "--served"]).trim_end(), body.trim_end());
        before = Some(PathBuf::from(path));
        marked(&body)
    };
    say(&json!({"session": "s1", "turn": true, "message": {"role": "user", "text": "Look."}}));
    desk.ok(&["policy", "set", "serve.mode=eager"]);
    assert_eq!(step(1), ["Look."]);
    reads("c1", "/p/a.rs");
    assert_eq!(step(2), ["Look.", "c1"]);
    reads("c2", "/p/b.rs");
    assert_eq!(step(3), ["c1", "c2"]);
    // The first result is hidden: the cache is read up to the last end before it.
    reads("c3", "/p/a.rs");
    assert_eq!(step(4), ["Look.", "c2", "c3"]);
    reads("c4", "/p/c.rs");
    assert_eq!(step(5), ["c3", "c4"]);
    let of_context = |more: &[&str]| {
        let args = [&["context", "s1", "--format", "anthropic"], more].concat();
        marked(&desk.ok(&args)).len()
    };
    assert_eq!(of_context(&[]), 2);
    assert_eq!(of_context(&["--mode", "batched"]), 2);
    for without in [&["--no-breakpoints"][..], &["--recorded"], &["--mode", "history"]] {
        assert_eq!(of_context(without), 0, "{without:?}");
    }
    let plain = desk.ok(&["step", "s1", "--format", "anthropic", "--no-breakpoints", "--json"]);
    let plain: Value = serde_json::from_str(&plain).unwrap();
    assert!(!plain["body"].to_string().contains("cache_control"));
    let items = plain["breakpoints"].as_array().unwrap().len();
    assert!((2..=3).contains(&items), "{plain}");
}

/// In the user's own folder the settings of the user and of the project are one file. It was read as two, and `--status` said
/// that each event is told twice.
#[test]
fn one_file_of_settings_is_attached_once() {
    let desk = Desk::new();
    let run = |folder: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(args).current_dir(desk.path(folder)).env_clear();
        command
            .env("HOME", desk.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .env("ACPDB_PATH", desk.path("store"));
        finish(&mut command, "")
    };
    assert_eq!(run("home", &["attach", "codex", "--user"]).code, 0);
    let status = run("home", &["attach", "--status"]);
    assert_eq!(status.out.matches("attached in").count(), 1, "{status:?}");
    assert!(!status.out.contains("told twice"), "{status:?}");
    // In two different files each event is told twice.
    assert_eq!(run("project", &["attach", "codex", "--project"]).code, 0);
    assert!(run("project", &["attach", "--status"]).out.contains("told twice"));
}

/// An event that needs no store took the mark away, so that every third hook of a task waited two seconds for a store that was held.
#[test]
fn a_hook_that_needs_no_store_leaves_the_mark_of_one_that_was_busy() {
    let mut desk = Desk::new();
    desk.prompt("Go on.");
    desk.hook("record", "Stop", &json!({}));
    let mark = desk.path("home/.local/state/acpdb/store-busy");
    std::fs::write(&mark, "").unwrap();
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "x"}, "tool_use_id": "t1"});
    desk.hook("record", "PostToolUse", &call);
    assert!(mark.exists());
    desk.hook("record", "Stop", &json!({}));
    assert!(!mark.exists());
}
