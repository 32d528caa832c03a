//! Every verb with `--json`, on a small session and on the bundled one.

use acpdb_engine::Store;
use acpdb_engine::entry::StreamInfo;
use acpdb_serve::{PlainText, ServeOptions, Step};
use serde_json::Value;

use crate::world::{SESSION, World, finish};
use crate::{Answers, samples, witness};

/// Verbs that read, on the small session and, without `--session`, on the bundled one.
const READS: &[&str] = &[
    "home",
    "sessions",
    "sessions tool:read --all --limit 1",
    "context s1",
    "context s1 --last 2",
    "context s1 --recorded",
    "context s1 --served",
    "context s1 --format anthropic",
    "context s1 --format markdown",
    "history --session s1",
    "history --session s1 --limit 2",
    "history --chain call-read-1",
    "history --file /w/orders.rs --session s1",
    "memory history indent",
    "history --todo 1 --session s1",
    "log",
    "log --last 2",
    "log --limit 2",
    "show call-read-1",
    "show call-edit-1",
    "show #1",
    "log --texts --limit 2",
    "explain call-read-1",
    "explain call-edit-1",
    "context s1 --summary --at t2",
    "diff t1 t4 --session s1",
    "blame /w/orders.rs --session s1",
    "blame call-read-1",
    "scan",
    "scan --for sought",
    "scan --for request.json",
    "context lint request.json --format anthropic",
    "stats",
    "stats s1",
    "stats kind:tool tool:read",
    "simulate s1",
    "search orders",
    "search orders --context 1 --limit 2",
    "cost",
    "cost --by session --waste",
    "cost --by model --limit 1",
    "cost --by month,model",
    "resume s1 --in codex --dry-run --id 00000000-0000-4000-8000-000000000001",
    "todo list --session s1",
    "todo stuck --session s1",
    "todo history --session s1",
    "todo list --session s6",
    "todo history --session s6",
    "memory get indent --session s1",
    "memory list --session s1",
    "memory list --session s1 --all",
    "memory history indent --session s1",
    "memory propose s2",
    "memory insights --session s1",
    "memory export --session s1",
    "task list --session s1",
    "task archive T1 --session s1",
    "task scratchpad --session s1",
    "policy show",
    "policy show --session s1",
    "policy presets",
    "verify",
    "verify --deep",
    "verify --host s1",
    "verify --head",
    "doctor",
    "info",
    "info --space",
    "config trust --list",
    "info --hosts",
    "service install --dry-run --manager systemd",
    "key trust",
    "checkpoint show",
    "config list",
    "config path",
];

/// Verbs that record or write, in this order.
const ACTS: &[&str] = &[
    "import session.jsonl",
    "import session.jsonl empty.jsonl",
    "import compacted.jsonl",
    "lost c0ffee00",
    "lost s1",
    "search orders",
    "demo --bundled",
    "context discard call-grep-1 --session s1",
    "undo --session s1",
    "undo --redo --session s1",
    "undo --session s1",
    "context distill call-grep-1=two_places --session s1",
    "context restore call-grep-1 --session s1",
    "context pin call-test-1 --session s1",
    "context unpin call-test-1 --session s1",
    "memory add decision use_pages --category design --session s1",
    "memory add preference style/indent six_spaces --session s1",
    "memory retract p1 --session s1",
    "memory restore p1 --session s1",
    "memory import memory.jsonl",
    "project rename shop counter",
    "project list",
    "project rename counter shop",
    "policy set balanced --session s1",
    "policy set file.edit_quiet_steps=3",
    "policy import plugin.jsonc --dry-run",
    "fork s1 --id s4",
    "rewind t3 --session s4 --dry-run",
    "rewind t3 --session s4",
    "export html s1 -o page.html",
    "export jsonl -o lines.jsonl",
    "export otlp-json -o spans.jsonl",
    "doctor seal --all",
    "doctor reindex",
    "backup copy",
    "--db elsewhere import store",
    "--db elsewhere import store --policy",
    "--db elsewhere policy set acp",
    "--db elsewhere import store --policy",
    "--db store --db elsewhere home",
    "--db store --db elsewhere sessions",
    "--db store --db elsewhere search orders",
    "--db store --db elsewhere cost --by session",
    "--db store --db elsewhere history tool:read",
    "--db store --db elsewhere log --last 2",
    "--db store --db elsewhere log --texts --limit 2",
    "--db store --db elsewhere memory list",
    "--db store --db elsewhere memory history style/indent",
    "--db store --db elsewhere memory insights",
    "--db store --db elsewhere context store:s1",
    "--db store --db elsewhere history --chain call-read-1 --session store:s1",
    "--db store --db elsewhere show store:call-read-1",
    "--db store --db elsewhere explain store:call-read-1",
    "--db store --db elsewhere context store:s1 --summary --at store:t2",
    "--db store --db elsewhere diff store:t1 store:t4 --session store:s1",
    "--db store --db elsewhere blame store:call-read-1",
    "--db store --db elsewhere stats store:s1",
    "--db store --db elsewhere simulate store:s1",
    "--db store --db elsewhere todo list --session store:s1",
    "--db store --db elsewhere todo history --session store:s1",
    "--db store --db elsewhere task list --session store:s1",
    "--db store --db elsewhere log store:s1 --last 2",
    "doctor salvage --into saved",
    "config trust store",
    "config trust --remove store",
    "config set color never",
    "config get color",
    "config unset color",
    "attach claude --dry-run",
    "attach claude --mode prune",
    "attach --status",
    "detach claude",
    "step s1 --format anthropic --key k1 --tokens-max 10",
    "step s1 --format openai --key k2",
    "resume s1 --in claude-code -o resumed.jsonl --id 00000000-0000-4000-8000-000000000002",
    "key new",
    "key show",
    "checkpoint sign",
    "checkpoint export",
    "checkpoint prove #6",
    "checkpoint prove #6 --with-body -o event",
    "checkpoint check event",
    "checkpoint prove --session s1 -o session",
    "checkpoint check session",
    "checkpoint push --policy policy",
    "checkpoint check event --policy policy",
    "export audit -o audit.json",
    "verify",
    "--db vault init --encrypt",
    "--db vault key rotate",
];

/// A session without a title, and todos with more fields than they need.
const MORE: &str = r#"{"session":"s6","turn":true,"tool":{"call":"call-grep-6","tool":"grep","params":{"pattern":"orders("},"output":"/w/orders.rs:1"}}
{"session":"s6","todos":[{"id":"1","content":"look","description":"Look at the orders.","priority":"high","status":"pending"}]}
"#;

/// A session of Claude Code that was compacted.
const COMPACTED: &str = concat!(
    r#"{"parentUuid":null,"isSidechain":false,"cwd":"/w","sessionId":"c0ffee00-0000-4000-8000-000000000001","version":"2.1.0","type":"user","message":{"role":"user","content":"Look at the orders."},"uuid":"u1","timestamp":"2026-03-01T10:00:01.000Z"}"#,
    "\n",
    r#"{"parentUuid":"u1","isSidechain":false,"cwd":"/w","sessionId":"c0ffee00-0000-4000-8000-000000000001","version":"2.1.0","type":"assistant","message":{"id":"m1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/w/orders.rs"}}]},"uuid":"u2","timestamp":"2026-03-01T10:00:02.000Z"}"#,
    "\n",
    r#"{"parentUuid":"u2","isSidechain":false,"cwd":"/w","sessionId":"c0ffee00-0000-4000-8000-000000000001","version":"2.1.0","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"1\tfn orders() {}"}]},"uuid":"u3","timestamp":"2026-03-01T10:00:03.000Z"}"#,
    "\n",
    r#"{"parentUuid":null,"logicalParentUuid":"u3","isSidechain":false,"cwd":"/w","sessionId":"c0ffee00-0000-4000-8000-000000000001","version":"2.1.0","type":"system","subtype":"compact_boundary","content":"Conversation compacted","compactMetadata":{"trigger":"manual","preTokens":5000},"uuid":"u4","timestamp":"2026-03-01T10:00:04.000Z"}"#,
    "\n",
    r#"{"parentUuid":"u4","isSidechain":false,"cwd":"/w","sessionId":"c0ffee00-0000-4000-8000-000000000001","version":"2.1.0","type":"user","isCompactSummary":true,"message":{"role":"user","content":"This session is being continued from a previous conversation."},"uuid":"u5","timestamp":"2026-03-01T10:00:05.000Z"}"#,
    "\n",
);

/// Runs them all; returns their output, by shape. A verb that prints nothing for programs is a finding of its own.
pub(crate) fn answers() -> Answers {
    let world = World::fed();
    world.run_with(&["append", "--stdin"], MORE).ok();
    let lines = format!("{}\n{{\"session\":\"s6\"}}\n", MORE.lines().next().unwrap());
    let acked = world.run_with(&["append", "--stdin", "--ack", "--json"], lines);
    world.write("empty.jsonl", "");
    world.write("compacted.jsonl", COMPACTED);
    world.write(
        "plugin.jsonc",
        "{\"debug\": true, \"tools\": {\"todoReminder\": {\"initialTurns\": 3}}} // a plug-in's",
    );
    world.write(
        "request.json",
        r#"{"model":"claude","max_tokens":5,"messages":[{"role":"assistant","content":"hi"}]}"#,
    );
    world.write("sought", "orders\nfour spaces\n");
    // A witness that is not asked, and not needed.
    world.write("policy", format!("witness w1 {}\nquorum none\n", witness::KEY));
    let mut answers = Answers::new();
    keep(&acked.text(), "append --stdin --ack", &mut answers);
    for line in READS {
        gather(&world, line, &mut answers);
    }
    for tasks in [
        r#"{"tasks":[{"id":"T1","title":"pages","status":"in_progress"}]}"#,
        r#"{"tasks":[{"id":"T1","status":"completed","result_summary":"The list of orders comes in pages now."}]}"#,
    ] {
        let ran = world.run_with(&["task", "update", "--session", "s1", "--json"], tasks);
        keep(&ran.ok(), "task update", &mut answers);
    }
    serve(&world);
    let memory = world.run(&["memory", "export", "--session", "s1", "--json"]).text();
    world.write("memory.jsonl", memory);
    // The events of a host are seen by --status; none of their output is JSON for programs.
    for said in ["{}", r#"{"session_id":"h1","hook_event_name":"SessionStart"}"#] {
        assert_eq!(world.run_with(&["hook", "claude-code"], said).text(), "{}\n");
    }
    for line in ACTS {
        gather(&world, line, &mut answers);
    }
    follow(&world, &mut answers);
    push(&world, &mut answers);
    ship(&world, &mut answers);
    service(&world, &mut answers);
    let key = world.run(&["key", "show"]).ok();
    gather(&world, &format!("key trust {}", key.trim()), &mut answers);
    world.write("old.note", world.run(&["checkpoint", "export"]).out);
    for line in
        ["checkpoint prove --from old.note -o growth", "checkpoint check growth", "checkpoint check old.note"]
    {
        gather(&world, line, &mut answers);
    }
    let audited = std::fs::read_to_string(world.path("audit.json")).unwrap();
    let audited: Value = serde_json::from_str(&audited).unwrap();
    keep(&audited.to_string(), "export audit -o FILE.json", &mut answers);
    // Once more, with all that has happened, and the events of the bundled session.
    for line in READS {
        gather(&world, line, &mut answers);
    }
    let sessions: Value =
        serde_json::from_str(&world.run(&["sessions", "--json", "host:claude-code"]).text()).unwrap();
    let bundled = sessions["items"][0]["id"].as_str().unwrap().to_owned();
    for verb in ["context", "stats", "simulate"] {
        gather(&world, &format!("{verb} {bundled}"), &mut answers);
    }
    for verb in [
        "history",
        "log",
        "todo list",
        "todo history",
        "policy show",
        "blame /home/dev/shop-api/src/orders/repo.ts",
    ] {
        gather(&world, &format!("{verb} --session {bundled}"), &mut answers);
    }
    // At last, as an erased item cannot be asked for any more.
    for line in [
        "erase call-test-1 --session s1 --dry-run",
        "erase call-test-1 --session s1 --reason leaked",
        "init",
        "--db vault import session.jsonl",
        "--db vault info",
        "log --last 1",
        "context s1",
        "info --space",
    ] {
        gather(&world, line, &mut answers);
    }
    show_erased(&world, &mut answers);
    samples::keep(&mut answers);
    assert!(world.path(SESSION).is_file());
    answers
}

/// The texts of a call whose output was erased.
fn show_erased(world: &World, answers: &mut Answers) {
    let events = world.run(&["log", "--session", "s1", "--json", "kind:tool_call_finished"]).ok();
    let mut events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let event = events.find(|event| event["payload"]["call"] == "call-test-1").unwrap();
    gather(world, &format!("show #{}", event["seq"]), answers);
    assert!(answers["acpdb.show/1"].iter().any(|(_, answer)| answer.to_string().contains(r#"{"erased":"#)));
}

/// A store is shipped to a folder, and made anew from there.
fn ship(world: &World, answers: &mut Answers) {
    use std::io::BufRead as _;
    let url = format!("file://{}", world.path("disk").display());
    let dry = format!("backup {url} --dry-run");
    for line in [&dry, &format!("backup {url} --status"), &format!("backup {url}"), &dry] {
        gather(world, line, answers);
    }
    gather(world, &format!("backup {url} --status"), answers);
    gather(world, &format!("--db {url} verify"), answers);
    gather(world, &format!("restore {url} restored --dry-run"), answers);
    gather(world, &format!("restore {url} restored"), answers);
    let mut command = world.command();
    command.args(["backup", &url, "--follow", "--json"]).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    keep(&line, "backup URL --follow", answers);
}

/// A witness that signs, and one that cannot be asked.
fn push(world: &World, answers: &mut Answers) {
    for (url, is_enough) in [("http://127.0.0.1:1".to_owned(), false), (witness::once(), true)] {
        let name = witness::KEY.split('+').next().unwrap();
        world.write("policy", format!("witness {name} {} {url}\nquorum {name}\n", witness::KEY));
        gather(world, "checkpoint push --policy policy", answers);
        let (_, answer) = answers["acpdb.push/1"].last().unwrap();
        assert_eq!(answer["is_enough"], is_enough, "{answer}");
    }
}

/// A service of a home of its own. Another program stands in for the manager of services.
fn service(world: &World, answers: &mut Answers) {
    world.stands_in_for("systemctl", "echo active");
    for line in ["status", "install", "status", "remove", "status"] {
        let mut command = world.command();
        command.env("PATH", world.path("home/.bin")).args([
            "service",
            line,
            "--manager",
            "systemd",
            "--json",
        ]);
        let ran = finish(command, b"");
        assert!(!ran.text().is_empty(), "{}", ran.err);
        keep(&ran.text(), &format!("service {line}"), answers);
    }
    let states: Vec<&Value> =
        answers["acpdb.service/1"].iter().map(|(_, answer)| &answer["items"][0]["state"]).collect();
    assert!(states.iter().any(|state| *state == "active"), "{states:?}");
}

fn gather(world: &World, line: &str, answers: &mut Answers) {
    let mut words: Vec<&str> = line.split(' ').collect();
    words.push("--json");
    let ran = world.run(&words);
    let text = ran.text();
    assert!(!ran.err.contains("panicked"), "acpdb {line}: {}", ran.err);
    // A name of this run is no part of the shape.
    keep(&text, &line.replace(&*world.path("").to_string_lossy(), "/DIR/"), answers);
    if text.is_empty() {
        println!("acpdb {line} printed nothing (exit {}): {}", ran.code, ran.err.trim());
    }
}

/// A follower reports the events that it records; its first line is read, and it is ended.
fn follow(world: &World, answers: &mut Answers) {
    use std::io::BufRead as _;
    std::fs::create_dir_all(world.path("followed")).unwrap();
    let said = r#"{"type":"user","uuid":"u1","sessionId":"late","cwd":"/w","message":{"role":"user","content":"late"}}"#;
    world.write("followed/late.jsonl", format!("{said}\n"));
    let mut command = world.command();
    command.args(["import", "--follow", "followed", "--json"]).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    keep(&line, "import --follow", answers);
}

/// A host sends a context once, so that there is one to ask for.
fn serve(world: &World) {
    let store = Store::builder(world.path("store"))
        .any_file_system()
        .registry(acpdb_hosts::registry())
        .open()
        .unwrap();
    let step = Step::begin(&store.session(StreamInfo::session("acpdb", "s1")), "served").unwrap();
    let sent = step.context(&PlainText, &ServeOptions::default()).unwrap();
    assert!(!sent.bytes.is_empty());
    store.close().unwrap();
}

/// Sorts the answers of a run by their shapes.
fn keep(text: &str, line: &str, answers: &mut Answers) {
    for (number, printed) in text.lines().enumerate() {
        let answer: Value = serde_json::from_str(printed).unwrap_or_else(|error| {
            panic!("acpdb {line}: line {} is no JSON: {error}: {printed}", number + 1)
        });
        let name = answer["schema"].as_str();
        let name = name.unwrap_or_else(|| panic!("acpdb {line} names no schema: {printed}")).to_owned();
        answers.entry(name).or_default().push((line.to_owned(), answer));
    }
}
