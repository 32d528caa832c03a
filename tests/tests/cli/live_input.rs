//! Unexpected states of a host, a home and a network: hooks end well, `attach` says what is wrong and leaves all as it was.

use std::process::Command;

use serde_json::{Value, json};

use super::world::{Ran, World, contents, finish};

/// A run with this home, in this folder, and with no store named.
fn run(world: &World, home: &str, folder: &str, arguments: &[&str], input: &[u8]) -> Ran {
    let mut command = world.command();
    command.args(arguments).env("HOME", home).env_remove("ACPDB_PATH").current_dir(folder);
    finish(command, input)
}

fn prompt(world: &World, text: &str) -> String {
    json!({"conversation_id": "s1", "hook_event_name": "beforeSubmitPrompt", "generation_id": text, "prompt": text,
        "workspace_roots": [world.path(".")]})
    .to_string()
}

/// Where nothing can be written, not even by the superuser.
const READ_ONLY: &str = "/proc";

#[test]
fn in_a_home_that_takes_no_file_attaching_says_so_and_hooks_go_on() {
    let world = World::new();
    for host in ["claude", "codex", "gemini", "cursor", "opencode", "pi"] {
        let ran = run(&world, READ_ONLY, "/", &["attach", host], b"");
        ran.says(1, &["cannot write /proc/"]);
        let ran = run(&world, READ_ONLY, "/", &["detach", host], b"");
        assert_eq!(ran.code, 0, "{host}: there is nothing to take away: {}", ran.err);
    }
    let ran = run(&world, READ_ONLY, "/", &["config", "set", "redact", "true"], b"");
    ran.says(1, &["cannot write /proc/"]);
    // No store can be made there: nothing is recorded. One that is named is used; that the journal cannot be written is no reason.
    let folder = world.path(".").to_str().unwrap().to_owned();
    for arguments in [&["hook", "cursor"][..], &["--db", "store", "hook", "cursor"]] {
        let ran = run(&world, READ_ONLY, &folder, arguments, prompt(&world, "in a home of stone").as_bytes());
        assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{arguments:?}: {}", ran.err);
    }
    assert!(world.list().contains("in a home of stone"));
}

/// A limit on the length of files ended the hook by a signal, and settings that are a pipe kept it waiting: the host got no answer.
#[test]
fn a_hook_answers_where_files_may_not_grow_and_where_settings_are_a_pipe() {
    let world = World::new();
    world.write("event", prompt(&world, "a prompt"));
    for line in [
        "ulimit -f 0; acpdb hook cursor <event",
        "mkfifo settings && ACPDB_CONFIG=settings acpdb hook cursor <event",
    ] {
        let ran = world.shell(line);
        assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{line}: {}", ran.err);
    }
    world.shell("ACPDB_CONFIG=settings acpdb sessions").says(2, &["settings is a pipe"]);
}

#[test]
fn a_host_in_a_folder_without_a_store_is_recorded_in_the_one_of_the_user() {
    let world = World::new();
    let home = world.path("home");
    let (home, folder) = (home.to_str().unwrap(), world.path("."));
    for (said, cwd) in [("here", world.path(".")), ("in a folder that is gone", world.path("no/such/folder"))]
    {
        let mut event: Value = serde_json::from_str(&prompt(&world, said)).unwrap();
        event["workspace_roots"] = json!([cwd]);
        let ran =
            run(&world, home, folder.to_str().unwrap(), &["hook", "cursor"], event.to_string().as_bytes());
        assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{said}: {}", ran.err);
        let list = world.run(&["--db", "home/.local/share/acpdb", "log", "--texts"]).ok();
        assert!(list.contains(said), "{said}: {list}");
    }
    assert!(!world.path(".acpdb").exists() && !world.path("store").exists());
}

/// Settings that do not have the host's form: left alone to the byte, in both directions, and said.
#[test]
fn settings_that_are_not_understood_are_left_alone() {
    let world = World::new();
    for (file, hosts) in [
        (".claude/settings.json", "claude"),
        (".codex/hooks.json", "codex"),
        (".gemini/settings.json", "gemini"),
        (".cursor/hooks.json", "cursor"),
    ] {
        let path = world.path("home").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for bytes in [
            &b"{ // mine\n}"[..],
            b"{\"hooks\": {}",
            b"[]",
            b"null",
            b"{\"hooks\": []}",
            b"{\"hooks\": {\"Stop\": {}, \"SessionStart\": 1, \"sessionStart\": 1}}",
            b"\xff\xfe{}",
            b"\xef\xbb\xbf{}",
        ] {
            // Gemini CLI reads settings with comments, and so does acpdb.
            if hosts == "gemini" && bytes.starts_with(b"{ //") {
                continue;
            }
            std::fs::write(&path, bytes).unwrap();
            let shown = String::from_utf8_lossy(bytes).into_owned();
            let before = contents(&world.path("home"));
            let ran = world.run(&["attach", hosts]);
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(ran.code == 1 && ran.err.contains(name), "{hosts} {shown}: {} {}", ran.code, ran.err);
            let ran = world.run(&["detach", hosts]);
            assert!([0, 1].contains(&ran.code), "{hosts} {shown}: {}", ran.err);
            assert!(contents(&world.path("home")) == before, "{hosts} {shown}: something was changed");
            // Settings that cannot be read were settings without acpdb: "not attached here", and exit code 0.
            let status = world.run(&["attach", "--status", hosts]);
            let is_known = status.code == 0 && !status.err.contains("it is not known whether");
            let is_told = status.code == 8 && status.err.contains(name);
            assert!(
                is_told || (is_known && ran.code == 0),
                "{hosts} {shown}: {} {}",
                status.code,
                status.err
            );
        }
    }
}

/// An agent that had removed its work tree was recorded in the user's own store from then on: the folder could not be entered,
/// and the hook looked for the store from where the host had begun.
#[test]
fn a_hook_whose_working_folder_is_gone_finds_the_store_of_its_project() {
    let world = World::new();
    let (project, home) = (world.path("project"), world.path("home-of-hooks"));
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(&home).unwrap();
    let (project, home) = (project.to_str().unwrap(), home.to_str().unwrap());
    assert_eq!(run(&world, home, project, &["init"], b"").code, 0);
    let told = |folder: &str| {
        json!({"conversation_id": "s1", "hook_event_name": "beforeSubmitPrompt", "generation_id": folder,
            "prompt": format!("from {folder}"), "workspace_roots": [format!("{project}/{folder}")]})
    };
    for folder in ["tree/that/is/gone", "."] {
        let ran = run(&world, home, "/", &["hook", "cursor"], told(folder).to_string().as_bytes());
        assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{folder}: {}", ran.err);
    }
    let seen = run(&world, home, project, &["search", "from"], b"");
    assert!(seen.text().contains("from tree/that/is/gone"), "{} {}", seen.text(), seen.err);
}

/// The journal said that a host was answered when the answer went nowhere.
#[test]
fn an_answer_that_the_host_does_not_take_is_in_the_journal() {
    let world = World::new();
    let mut command = Command::new("sh");
    let program = acpdb_tests::binary::binary().unwrap();
    command.args(["-c", &format!("exec {:?} --db store hook cursor >/dev/full", program.to_str().unwrap())]);
    for (name, value) in world.command().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(world.path("."));
    let ran = finish(command, prompt(&world, "unheard").as_bytes());
    assert_eq!(ran.code, 0, "a hook ends well: {}", ran.err);
    let status = world.run(&["attach", "--status", "cursor"]).ok();
    assert!(status.contains("1 error") && status.contains("did not take the answer"), "{status}");
}

#[test]
fn an_event_that_is_longer_than_is_read_records_nothing_and_ends_well() {
    let world = World::new();
    let mut event: Value = serde_json::from_str(&prompt(&world, "long")).unwrap();
    event["prompt"] = "x".repeat(64 << 20).into();
    let ran = world.run_with(&["hook", "cursor"], event.to_string());
    assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{}", ran.err);
    let status = world.run(&["attach", "--status", "cursor"]).ok();
    assert!(status.contains("1 error"), "{status}");
    world.run_with(&["hook", "cursor"], prompt(&world, "short")).ok();
    assert!(world.list().contains("short"));
}

#[test]
fn a_plug_in_is_answered_whatever_its_lines_are() {
    let world = World::new();
    let long = vec![b'x'; (64 << 20) + 1];
    let small = format!("{{\"op\":\"hello\",\"arguments\":[{}0]}}", "0,".repeat(1_000_000));
    let input = [&long, &b"\n\xff\n"[..], small.as_bytes(), b"\n\n{\"id\":1,\"op\":\"hello\"}\n"].concat();
    let answers = world.run_with(&["plugin", "opencode"], input).ok();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let words =
        ["it is longer than 67108864 bytes", "not UTF-8 at byte 0", "elements and members, over 1000000"];
    assert_eq!(answers.len(), words.len() + 1);
    for (answer, words) in answers.iter().zip(words) {
        assert!(answer["error"].as_str().unwrap().contains(words) && answer["id"].is_null(), "{answer}");
    }
    assert!(answers[3]["id"] == 1 && answers[3]["error"].is_null(), "{}", answers[3]);
}

#[test]
fn every_line_of_a_client_of_tools_gets_an_answer() {
    let world = World::new();
    world.run_with(&["hook", "cursor"], prompt(&world, "a prompt")).ok();
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let small = format!("[{}0]", "0,".repeat(1_000_000));
    let long = "x".repeat(17 << 20);
    let deep = "[".repeat(200) + &"]".repeat(200);
    let lines =
        ["{early", &begin.to_string(), "{bad", "", &deep, &small, &long, "{\"jsonrpc\":\"2.0\"}", "[]"];
    let mut input = lines.join("\n").into_bytes();
    input.extend(b"\n\xff\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}");
    let answers = world.run_with(&["mcp"], input).ok();
    let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut codes: Vec<i64> =
        answers.iter().filter_map(|answer| answer.pointer("/error/code")?.as_i64()).collect();
    codes.sort_unstable();
    // Nothing is said of an id, as the protocol has it where none can be read.
    assert!(
        answers.iter().filter(|answer| answer.get("error").is_some()).all(|answer| answer["id"].is_null())
    );
    assert_eq!(codes, [-32700, -32700, -32700, -32700, -32600, -32600, -32600, -32600], "{answers:?}");
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).filter(|id| !id.is_null()).collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn a_recording_that_is_a_pipe_is_refused_at_once() {
    let world = World::new();
    let event = json!({"session_id": "s1", "hook_event_name": "Stop", "cwd": world.path("."),
        "transcript_path": world.path("pipe.jsonl")});
    world.write("event", event.to_string());
    let ran = world.shell("mkfifo pipe.jsonl && acpdb hook claude-code --deadline 50000 <event");
    assert_eq!((ran.code, ran.text().as_str()), (0, "{}\n"), "{}", ran.err);
    let status = world.run(&["attach", "--status", "claude-code"]).ok();
    assert!(status.contains("not a regular file"), "{status}");
}

/// The named store was looked for in the agent's folder: a conversation of two folders was split over two stores.
#[test]
fn a_store_that_is_named_lies_where_the_host_runs_the_hook() {
    let world = World::new();
    for (text, folder) in [("in one", "one"), ("in two", "two"), ("nowhere", "no/such/folder")] {
        if text != "nowhere" {
            std::fs::create_dir(world.path(folder)).unwrap();
        }
        let mut event: Value = serde_json::from_str(&prompt(&world, text)).unwrap();
        event["workspace_roots"] = json!([world.path(folder)]);
        world.run_with(&["hook", "cursor"], event.to_string()).ok();
        assert!(world.list().contains(text), "{text}");
    }
    for folder in ["one", "two"] {
        assert_eq!(std::fs::read_dir(world.path(folder)).unwrap().count(), 0, "{folder}");
    }
}

/// Copilot CLI names no call to a hook, and its recording has the pointer: the first result had to stay, and was hidden as the older of two equal ones.
#[test]
fn a_result_of_copilot_becomes_a_pointer_and_the_original_is_kept() {
    let world = World::new();
    let long: String = (0..60).map(|n| format!("value_{n} = compute({n})\n")).collect();
    let event = |number: u32, kind: &str, data: &Value| {
        let at = format!("2026-03-01T10:00:{number:02}.000Z");
        format!("{}\n", json!({"type": kind, "id": format!("e{number}"), "timestamp": at, "data": data}))
    };
    let started = |number: u32, call: &str| {
        event(
            number,
            "tool.execution_start",
            &json!({"toolCallId": call, "toolName": "view", "arguments": {"path": "a.py"}}),
        )
    };
    let finished = |number: u32, call: &str, text: &str| {
        event(
            number,
            "tool.execution_complete",
            &json!({"toolCallId": call, "success": true, "result": {"content": text}}),
        )
    };
    let folder = world.path(".").to_str().unwrap().to_owned();
    let recording = format!("{folder}/.copilot/session-state/s1/events.jsonl");
    let mut told = event(1, "session.start", &json!({"sessionId": "s1", "context": {"cwd": folder}}));
    told += &event(2, "user.message", &json!({"content": "Read it twice."}));
    told += &(started(3, "c1") + &finished(4, "c1", &long) + &started(5, "c2"));
    std::fs::create_dir_all(world.path(".copilot/session-state/s1")).unwrap();
    world.write(".copilot/session-state/s1/events.jsonl", told.clone());
    let hook = |event: &str, path: &str, text: &str| {
        let input = json!({"sessionId": "s1", "cwd": folder, "toolName": "view", "toolArgs": {"path": path},
            "toolResult": {"resultType": "success", "textResultForLlm": text}});
        let words = ["--db", "store", "hook", "copilot-cli", "--mode", "prune", "--event", event];
        let ran = run(&world, &folder, &folder, &words, input.to_string().as_bytes());
        serde_json::from_str::<Value>(&ran.ok()).unwrap()
    };
    assert_eq!(hook("postToolUse", "b.py", &long), json!({}), "no such call is open");
    let answer = hook("postToolUse", "a.py", &long);
    let pointer = answer["modifiedResult"]["textResultForLlm"].as_str().unwrap();
    assert_eq!(pointer, "[60 lines, the same as lines 1-60 of view a.py (#6) above]");
    assert_eq!(answer["modifiedResult"]["resultType"], "success");
    world.write(".copilot/session-state/s1/events.jsonl", told + &finished(6, "c2", pointer));
    hook("agentStop", "", "");
    let context = |store: &str| {
        let shown = world.run(&["--db", store, "context", "s1", "--json"]).ok();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let rows = shown["items"].as_array().unwrap().iter();
        rows.map(|row| json!([row["tool"], row["status"], row["output"]["text"]])).collect::<Vec<_>>()
    };
    world.run(&["--db", "fresh", "import", &recording]).ok();
    assert_eq!(context("store"), context("fresh"));
    assert_eq!(
        context("store")[1..],
        [json!(["view", "completed", long]), json!(["view", "aborted", pointer])]
    );
    let log = world.run(&["--db", "store", "log", "--json"]).ok();
    assert_eq!(
        log.lines().filter(|line| line.contains("tool_call_finished")).count(),
        2,
        "the original is in the log"
    );
}
