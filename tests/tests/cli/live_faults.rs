//! The doors of a running agent while its store is locked, damaged, full, killed, gone or of a newer format.
//!
//! The law: a hook ends with exit code 0 and JSON, a plug-in gets a line for each line, the tools an answer to each request; nothing is a
//! bug. Once the fault is over the store is sound, each text that was said to be recorded is there, and the next event records the rest.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use acpdb_tests::support::cases;

use super::world::{Ran, World, contents, finish};

/// A way in: how it is called, its input for a text, and whether it always ends well.
struct Door {
    name: &'static str,
    arguments: &'static [&'static str],
    said: fn(&World, &str) -> String,
    is_hook: bool,
}

const DOORS: [Door; 5] = [
    Door {
        name: "claude",
        arguments: &["hook", "claude-code", "--mode", "prune"],
        said: claude,
        is_hook: true,
    },
    Door { name: "cursor", arguments: &["hook", "cursor", "--mode", "suggest"], said: cursor, is_hook: true },
    Door {
        name: "opencode",
        arguments: &["plugin", "opencode", "--mode", "prune"],
        said: opencode,
        is_hook: false,
    },
    Door { name: "pi", arguments: &["plugin", "pi", "--mode", "prune"], said: pi, is_hook: false },
    Door { name: "mcp", arguments: &["mcp", "--session", "s1"], said: mcp, is_hook: false },
];

/// A line of a recording of Claude Code; `text` is its id as well.
fn claude(world: &World, text: &str) -> String {
    let line = json!({"parentUuid": null, "isSidechain": false, "cwd": "/p", "sessionId": "claude-1", "version": "2.1.0",
        "type": "user", "message": {"role": "user", "content": text}, "uuid": text, "timestamp": "2026-03-01T10:00:01.000Z"});
    grow(&world.path("claude-1.jsonl"), &format!("{line}\n"));
    json!({"session_id": "claude-1", "hook_event_name": "Stop", "cwd": world.path("."),
        "transcript_path": world.path("claude-1.jsonl")})
    .to_string()
}

fn cursor(world: &World, text: &str) -> String {
    json!({"conversation_id": "cursor-1", "hook_event_name": "beforeSubmitPrompt", "generation_id": text, "prompt": text,
        "workspace_roots": [world.path(".")]})
    .to_string()
}

fn opencode(_: &World, text: &str) -> String {
    let part = json!({"id": format!("{text}-p"), "type": "text", "text": text});
    let messages = json!([{"info": {"id": text, "role": "user", "time": {"created": 1}}, "parts": [part]}]);
    let info = json!({"id": "ses_1", "directory": "/p"});
    json!({"id": text, "op": "context", "info": info, "messages": messages, "model": "m", "key": text})
        .to_string()
        + "\n"
}

fn pi(world: &World, text: &str) -> String {
    let (path, time) = (world.path("pi-1.jsonl"), "2026-01-31T14:00:00.000Z");
    if !path.exists() {
        let head = json!({"type": "session", "version": 3, "id": "pi-1", "timestamp": time, "cwd": "/p"});
        grow(&path, &format!("{head}\n"));
    }
    let message = json!({"role": "user", "content": text, "timestamp": 1});
    let line =
        json!({"type": "message", "id": text, "parentId": null, "timestamp": time, "message": message});
    grow(&path, &format!("{line}\n"));
    json!({"id": text, "op": "context", "session": "pi-1", "recording": path, "folder": "/p", "model": "m", "key": text})
        .to_string()
        + "\n"
}

fn mcp(_: &World, text: &str) -> String {
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let remember = json!({"name": "memory_remember", "arguments": {"kind": "decision", "text": text}});
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": text, "method": "tools/call", "params": remember}),
    ];
    requests.map(|request| format!("{request}\n")).concat()
}

fn grow(path: &Path, text: &str) {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

impl Door {
    fn run(&self, world: &World, text: &str) -> Ran {
        let mut command = world.command();
        command.args(self.arguments);
        finish(command, (self.said)(world, text).as_bytes())
    }

    /// Whether this run said that `text` is recorded. Fails if the law is broken.
    #[track_caller]
    fn judge(&self, ran: &Ran, text: &str, fault: &str) -> bool {
        let (name, out) = (self.name, ran.text());
        assert!(
            !ran.err.contains("this is a bug") && !ran.err.contains("panicked"),
            "{name}, {fault}: {}",
            ran.err
        );
        let answers: Vec<Value> = out
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}, {fault}: {error}: {out}"))
            })
            .collect();
        if self.is_hook {
            assert_eq!((ran.code, answers.len()), (0, 1), "{name}, {fault}: {}", ran.err);
            return false;
        }
        let answer = answers.iter().find(|answer| answer["id"] == text);
        if name == "mcp" {
            // A host is told that a server did not start by its end.
            let is_refused = answer.is_none() && ran.code != 0 && ran.err.starts_with("error: ");
            assert!(is_refused || answer.is_some(), "{name}, {fault}: {out} {}", ran.err);
            return answer.is_some_and(|answer| {
                answer["error"].is_null() && answer["result"]["isError"] != json!(true)
            });
        }
        assert!(answer.is_some(), "{name}, {fault}: {out} {}", ran.err);
        // A text that could not be confirmed at the end is reported to a user who started it by hand.
        assert!(ran.code == 0 || ran.err.starts_with("error: "), "{name}, {fault}: {}", ran.err);
        answer.is_some_and(|answer| answer["error"].is_null())
    }
}

/// A store with one text of each door.
fn begun() -> World {
    let world = World::new();
    world.run_with(&["append", "--stdin"], super::FEED).ok();
    for door in &DOORS {
        let ran = door.run(&world, "the-first");
        let is_said = door.judge(&ran, "the-first", "none");
        assert!(is_said || door.is_hook, "{}: {} {}", door.name, ran.text(), ran.err);
    }
    world
}

/// The fault is over: all goes on, and the texts in `said` are there. The texts of hooks that failed come with the next event of a
/// host that writes a recording.
#[track_caller]
fn goes_on(world: &World, said: &[String], fault: &str) {
    for door in &DOORS {
        let ran = door.run(world, "the-last");
        let is_said = door.judge(&ran, "the-last", fault);
        assert!(is_said || door.is_hook, "{}, {fault}: {} {}", door.name, ran.text(), ran.err);
    }
    world.assert_sound();
    let list = world.list();
    let count = |text: &str| list.lines().filter(|line| line.ends_with(text)).count();
    assert!(count("the-first") >= DOORS.len() && count("the-last") >= DOORS.len(), "{fault}: {list}");
    for text in said {
        assert!(count(text) >= 1, "{fault}: {text} is lost: {list}");
    }
}

fn files(world: &World) -> Vec<PathBuf> {
    contents(&world.path("store")).into_iter().map(|(path, _)| path).collect()
}

/// All files of the store, locked until they are dropped.
fn locked(world: &World) -> Vec<std::fs::File> {
    let open = |path: &PathBuf| std::fs::OpenOptions::new().read(true).write(true).open(path).ok();
    let held: Vec<std::fs::File> = files(world).iter().filter_map(open).collect();
    for file in &held {
        file.lock().unwrap();
    }
    held
}

/// Another process holds every lock of the store for as long as a host would wait.
#[test]
fn a_store_that_another_process_locks_stops_no_agent() {
    let world = begun();
    let held = locked(&world);
    std::thread::scope(|scope| {
        for door in &DOORS {
            let world = &world;
            scope.spawn(move || {
                let text = format!("locked-{}", door.name);
                let begun = std::time::Instant::now();
                let ran = door.run(world, &text);
                // A hook gives up after ten seconds, whatever it waits for; no door is waited for longer than that, and a moment.
                let took = begun.elapsed();
                assert!(took < std::time::Duration::from_secs(13), "{}: {took:?}", door.name);
                assert!(!door.judge(&ran, &text, "locked"), "{}: nothing could be recorded", door.name);
            });
        }
    });
    drop(held);
    let status = world.run(&["attach", "--status"]).ok();
    assert!(status.contains("the store is busy") || status.contains("given up"), "{status}");
    goes_on(&world, &["locked-claude".to_owned(), "locked-pi".to_owned()], "locked");
}

/// Where one lock alone was held, as by a stopped import, each hook waited for it anew: one that gave up sooner than all locks are waited
/// for took the store for had.
#[test]
fn a_lock_that_another_process_holds_is_waited_for_at_length_once() {
    let world = begun();
    let held = locked(&world);
    let [door, ..] = &DOORS;
    let last = |text: &str| {
        let ran = door.run(&world, text);
        door.judge(&ran, text, "held");
        let journal = std::fs::read_to_string(world.path("home/.local/state/acpdb/hooks.jsonl")).unwrap();
        let line: Value = serde_json::from_str(journal.lines().last().unwrap()).unwrap();
        (line["milliseconds"].as_u64().unwrap(), line["error"].as_str().unwrap_or_default().to_owned())
    };
    let (first, error) = last("one");
    assert!(first >= 1000 && error.contains("for 100 ms"), "{first} {error}");
    let (next, error) = last("two");
    assert!(next < 1000 && error.contains("busy"), "{next} {error}");
    drop(held);
    assert_eq!(last("three").1, "");
}

/// A way to harm a file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip(usize),
    Cut,
    Empty,
    Gone,
    Noise,
}

fn harm(path: &Path, harm: Harm) {
    let mut bytes = std::fs::read(path).unwrap();
    match harm {
        Harm::Flip(part) => {
            let at = bytes.len() * part / 8;
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 0x40;
            }
        }
        Harm::Cut => bytes.truncate(bytes.len() / 2),
        Harm::Empty => bytes.clear(),
        Harm::Noise => {
            bytes.iter_mut().zip((11..=251_u8).step_by(37).cycle()).for_each(|(byte, noise)| *byte ^= noise);
        }
        Harm::Gone => return std::fs::remove_file(path).unwrap(),
    }
    std::fs::write(path, bytes).unwrap();
}

/// Each file of the store is harmed in each way, and put back: log, index, settings, secret, tail, files saved beside
/// the log.
#[test]
fn a_store_with_a_damaged_file_stops_no_agent() {
    let whole = begun();
    let stride = 7 / cases(7).clamp(1, 7) as usize;
    let mut runs = 0;
    for path in files(&whole) {
        let name = path.strip_prefix(whole.path("store")).unwrap().to_owned();
        for how in
            [Harm::Flip(0), Harm::Flip(3), Harm::Flip(7), Harm::Cut, Harm::Empty, Harm::Gone, Harm::Noise]
        {
            // Two of the doors each time, in turn.
            runs += 1;
            if runs % stride != 0 {
                continue;
            }
            let world = whole.copied();
            harm(&world.path("store").join(&name), how);
            let fault = format!("{} {how:?}", name.display());
            for door in DOORS.iter().cycle().skip(runs).take(2) {
                let ran = door.run(&world, "while-damaged");
                let _ = door.judge(&ran, "while-damaged", &fault);
            }
            let verify = world.run(&["verify"]);
            assert!([0, 1, 3, 4, 7].contains(&verify.code), "{fault}: {} {}", verify.code, verify.err);
            if verify.code == 0 {
                let list = world.list();
                let count = list.lines().filter(|line| line.ends_with("the-first")).count();
                assert!(count >= DOORS.len() || matches!(how, Harm::Gone | Harm::Empty), "{fault}: {list}");
            }
        }
    }
    assert!(runs > 40, "{runs}");
}

/// No file can grow beyond a size, which acts as a disk that fills: from no growth at all to nearly enough.
#[test]
fn a_disk_that_fills_stops_no_agent() {
    let world = begun();
    let program = acpdb_tests::binary::binary().unwrap();
    let (mut said, mut failed) = (Vec::new(), 0);
    for blocks in [0, 1, 8, 64, 512, 2048] {
        for door in &DOORS {
            let text = format!("full-{}-{blocks}", door.name);
            let plain = world.command();
            let mut command = Command::new("/bin/sh");
            // Ignored, a write fails instead of ending the process.
            let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
            command.args(["-c", &line, "sh"]).arg(program).args(door.arguments);
            command.current_dir(world.path(".")).env_clear();
            for (name, value) in plain.get_envs() {
                value.map(|value| command.env(name, value));
            }
            let ran = finish(command, (door.said)(&world, &text).as_bytes());
            let is_said = door.judge(&ran, &text, &format!("{blocks} blocks"));
            failed += usize::from(!is_said && !door.is_hook);
            if is_said || ["claude", "pi"].contains(&door.name) {
                said.push(text);
            }
        }
    }
    assert!(failed >= 3 && said.iter().any(|text| text.starts_with("full-opencode")), "{failed}: {said:?}");
    goes_on(&world, &said, "full");
}

/// Killed after ever longer: before it reads, while it opens, writes, answers.
#[test]
fn doors_that_are_killed_at_any_moment_keep_their_word() {
    let world = begun();
    let mut said = Vec::new();
    for round in 0..16_u64 {
        for door in &DOORS {
            let text = format!("killed-{}-{round}", door.name);
            let mut command = world.command();
            command.args(door.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            let input = (door.said)(&world, &text);
            let mut stdin = child.stdin.take().unwrap();
            let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
            if door.is_hook {
                drop(stdin);
                std::thread::sleep(Duration::from_micros(round * 1700));
                let _ = child.kill();
            } else {
                std::thread::sleep(Duration::from_micros(round * 1700));
                let _ = child.kill();
                drop(stdin);
            }
            let out = child.wait_with_output().unwrap().stdout;
            let out = String::from_utf8(out).unwrap();
            let mut answers = out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let is_said = answers.any(|answer| {
                answer["id"] == text.as_str()
                    && answer["error"].is_null()
                    && answer["result"]["isError"] != json!(true)
            });
            if (is_said && !door.is_hook) || ["claude", "pi"].contains(&door.name) {
                said.push(text);
            }
        }
    }
    assert!(said.len() >= 32, "{said:?}");
    goes_on(&world, &said, "killed");
}

/// The store's folder is taken away, put back, or belongs to a newer version: for hooks between two of them, for a plug-in while it runs.
#[test]
fn a_store_that_is_replaced_stops_no_agent() {
    use std::io::{BufRead as _, BufReader, Write as _};
    let world = begun();
    let (store, aside) = (world.path("store"), world.path("aside"));
    let newer = |path: &Path| {
        let path = path.join("acpdb.json");
        let text = std::fs::read_to_string(&path).unwrap().replace("\"acpdb\": 1", "\"acpdb\": 2");
        let (checked, _) = text.rsplit_once(",\n  \"check\"").unwrap();
        let check = blake3::hash(checked.as_bytes()).to_hex();
        std::fs::write(&path, format!("{checked},\n  \"check\": \"{check}\"\n}}\n")).unwrap();
    };
    let faults: [(&str, &dyn Fn()); 4] = [
        ("gone", &|| ()),
        ("a file in its place", &|| std::fs::write(&store, "no store").unwrap()),
        ("an empty folder", &|| std::fs::create_dir(&store).unwrap()),
        ("a newer format", &|| {
            let mut copy = Command::new("cp");
            assert!(copy.arg("-a").arg(&aside).arg(&store).status().unwrap().success());
            newer(&store);
        }),
    ];
    for (fault, make) in faults {
        // One that has the store open since before.
        let mut command = world.command();
        command.args(DOORS[2].arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut ask = |text: &str| {
            input.write_all(opencode(&world, text).as_bytes()).unwrap();
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{fault}: {error}: {line:?}"))
        };
        let before = format!("before {fault}");
        assert_eq!(ask(&before)["error"], Value::Null, "{fault}");
        std::fs::rename(&store, &aside).unwrap();
        make();
        let during = ask(&format!("during {fault}"));
        assert_eq!(during["id"], format!("during {fault}"), "{during}");
        for door in &DOORS {
            let ran = door.run(&world, "while-gone");
            let _ = door.judge(&ran, "while-gone", fault);
        }
        if store.is_dir() {
            std::fs::remove_dir_all(&store).unwrap();
        } else {
            let _ = std::fs::remove_file(&store);
        }
        std::fs::rename(&aside, &store).unwrap();
        let after = ask(&format!("after {fault}"));
        drop(input);
        assert!(child.wait().unwrap().success(), "{fault}");
        let mut said = vec![before];
        for (answer, text) in [(&during, "during"), (&after, "after")] {
            if answer["error"].is_null() {
                said.push(format!("{text} {fault}"));
            }
        }
        let list = world.list();
        for text in said {
            assert!(list.lines().any(|line| line.ends_with(&text)), "{fault}: {text} is lost");
        }
        world.assert_sound();
    }
    goes_on(&world, &[], "replaced");
}
