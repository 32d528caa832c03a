//! The first commands of a new user: each says where its result is and what else it did.

use std::fs::File;
use std::time::{Duration, SystemTime};

use acpdb::entry::fact;
use acpdb::event::ReplaceCause;
use acpdb::{Entry, Role, Store, StreamInfo};
use serde_json::{Value, json};

use super::world::World;

/// A session of Claude Code that reads `files`, one a turn.
fn recording(session: &str, files: &[String]) -> String {
    let mut lines = Vec::new();
    let mut parent = Value::Null;
    let mut say = |id: String, kind: &str, message: Value| {
        let line = json!({
            "type": kind, "uuid": id, "parentUuid": parent, "sessionId": session, "cwd": "/w", "version": "2.1.50",
            "timestamp": format!("2026-03-01T10:{:02}:00Z", lines.len()), "userType": "external", "isSidechain": false,
            "message": message,
        });
        parent = json!(id);
        lines.push(format!("{line}\n"));
    };
    say(format!("{session}-p"), "user", json!({"role": "user", "content": format!("Read for {session}.")}));
    for (number, file) in files.iter().enumerate() {
        let call = format!("{session}-c{number}");
        let used = json!({"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": file}});
        let asked = json!({"id": format!("{session}-m{number}"), "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5-20250929", "content": [used]});
        say(format!("{session}-a{number}"), "assistant", asked);
        let result = json!({"type": "tool_result", "tool_use_id": call, "content": format!("{file} has lines. ").repeat(40)});
        say(format!("{session}-r{number}"), "user", json!({"role": "user", "content": [result]}));
    }
    lines.concat()
}

/// Puts recordings where Claude Code keeps them, the first the oldest.
fn at_home(world: &World, sessions: &[(&str, Vec<String>)]) {
    let folder = world.path("home/.claude/projects/w");
    std::fs::create_dir_all(&folder).unwrap();
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for (age, (session, files)) in (1..).zip(sessions.iter().rev()) {
        let path = folder.join(format!("{session}.jsonl"));
        std::fs::write(&path, recording(session, files)).unwrap();
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(now - Duration::from_secs(age * 60))
            .unwrap();
    }
}

fn files(count: usize, distinct: usize) -> Vec<String> {
    (0..count).map(|number| format!("/w/src/file{}.rs", number % distinct)).collect()
}

/// The tour of a newest session without a stale item said "0% less", and the figure was cut off on a narrow terminal.
#[test]
fn the_tour_shows_the_most_telling_of_the_newest_sessions_and_its_figures_whole() {
    let world = World::new();
    at_home(&world, &[("some", files(10, 4)), ("most", files(30, 3)), ("none", files(9, 9))]);
    let told: Value = serde_json::from_str(&world.run(&["demo", "--json"]).ok()).unwrap();
    assert_eq!(told["session"], "most");
    assert_eq!(told["source"]["sessions"], 3);
    assert!(told["source"]["tokens_freed"].as_u64() > told["tokens_freed"].as_u64(), "{told}");
    assert!(told["source"]["tokens_whole"].as_u64() > told["tokens_whole"].as_u64(), "{told}");
    for columns in ["40", "60", "80", "100"] {
        let mut command = world.command();
        command.arg("demo").env("COLUMNS", columns);
        let text = super::world::finish(command, b"").ok();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("% less") && words.contains("all 3 together: ~"), "{columns}: {text}");
        assert!(words.contains("nothing of it is ever lost"), "{columns}: {text}");
    }
}

/// All sessions of the machine went into the store of one folder, and no word said so.
#[test]
fn an_import_names_its_store_and_says_when_that_is_the_store_of_one_folder() {
    let world = World::new();
    at_home(&world, &[("one", files(3, 3))]);
    let ran = world.run(&["import"]);
    assert!(ran.err.contains("all of it is in store; next: acpdb sessions, ui or cost"), "{}", ran.err);
    assert!(!ran.err.contains("belongs to"), "{}", ran.err);
    let again = world.run(&["import"]);
    assert!(!again.err.contains("next:"), "nothing new: {}", again.err);

    let folder = world.path("project");
    std::fs::create_dir_all(&folder).unwrap();
    let here = |arguments: &[&str]| {
        let mut command = world.command();
        command.args(arguments).env_remove("ACPDB_PATH").current_dir(&folder);
        super::world::finish(command, b"")
    };
    here(&["init"]).ok();
    let ran = here(&["import"]);
    let place = folder.join(".acpdb").display().to_string();
    assert!(
        ran.err.contains(&format!("all of it is in {place}; next: acpdb sessions, ui or cost")),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("holds sessions of other projects now"), "{}", ran.err);
    let named = here(&["import", "../home/.claude/projects/w", "--project", "other"]);
    assert!(!named.err.contains("of other projects"), "{}", named.err);
}

/// "Records itself" was all that was said of a mode that also speaks to the model.
#[test]
fn attaching_says_where_sessions_go_and_what_the_model_is_told() {
    let world = World::new();
    std::fs::create_dir_all(world.path("home/.claude")).unwrap();
    for (mode, told) in [
        ("suggest", "also tells the model open todos and what is remembered"),
        ("record", "says nothing to the model"),
        ("prune", "sends a pointer for a result that the model still sees"),
    ] {
        let ran = world.run(&["attach", "claude", "--mode", mode]);
        let store = world.path("store").display().to_string();
        assert!(
            ran.err.contains(told) && ran.err.contains(&format!("sessions go into {store}")),
            "{}",
            ran.err
        );
        world.run(&["detach", "claude"]).ok();
    }
    // The very text is shown before it is told.
    let shown = |mode: &str| world.run(&["attach", "claude", "--mode", mode, "--dry-run"]).err;
    assert!(shown("suggest").contains("a session here is told nothing yet"), "{}", shown("suggest"));
    world.run(&["memory", "add", "decision", "Jobs wait in Postgres"]).ok();
    let told = shown("suggest");
    assert!(
        told.contains("a session here is told at its start, now ~") && told.contains("Jobs wait in Postgres"),
        "{told}"
    );
    assert!(!shown("record").contains("Postgres"), "{}", shown("record"));
    assert!(
        world.run(&["attach", "claude"]).err.contains("mode record"),
        "it tells the model nothing unless it is asked to"
    );
}

/// A list as of an earlier point told the head of today, and a point after it was taken for one before.
#[test]
fn a_list_of_sessions_at_a_point_tells_their_heads_at_that_point() {
    let world = World::new();
    let line = |session: &str, text: &str| {
        format!("{}\n", json!({"session": session, "host": "h", "message": {"role": "user", "text": text}}))
    };
    let lines: String =
        (0..12).map(|number| line(if number % 3 == 0 { "b" } else { "a" }, &format!("{number}"))).collect();
    world.run_with(&["append", "--stdin"], lines).ok();
    let log = world.run(&["log", "--json"]).ok();
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.last().unwrap()["seq"].as_u64().unwrap();
    for at in 1..=last {
        let listed = world.run(&["sessions", "--at", &format!("#{at}"), "--json"]);
        if listed.code != 0 {
            continue;
        }
        let listed: Value = serde_json::from_str(&listed.text()).unwrap();
        for row in listed["items"].as_array().unwrap() {
            let own = events.iter().filter(|event| event["stream"] == row["stream"]);
            let newest = own.filter_map(|event| event["seq"].as_u64()).filter(|seq| *seq <= at).max();
            assert_eq!(row["head"].as_u64(), newest, "at #{at}: {row}");
        }
    }
}

#[test]
fn the_scratchpad_has_the_notes_that_hold() {
    let world = World::new();
    let line = |memory: Value| {
        format!("{}\n", json!({"session": "s", "host": "h", "project": "/p", "memory": memory}))
    };
    let lines = [
        line(json!({"kind": "note", "value": "the pages are slow"})),
        line(json!({"kind": "note", "value": "the cache is cold"})),
        line(json!({"kind": "note", "value": "the cache is warm", "replaces": ["n2"]})),
    ];
    world.run_with(&["append", "--stdin"], lines.concat()).ok();
    let text = world.run(&["task", "scratchpad", "--session", "s"]).ok();
    assert!(text.contains("## Notes\n\n- the pages are slow\n- the cache is warm\n"), "{text}");
    assert!(!text.contains("cold"), "{text}");
}

/// A text whose message the host gave up was called gone, as if by a compaction.
#[test]
fn gone_is_said_of_a_compaction_and_not_of_a_message_that_was_given_up() {
    let world = World::new();
    {
        let store = Store::builder(world.path("store")).open().unwrap();
        let session = store.session(StreamInfo::session("h", "s"));
        let replaced =
            fact::ContextReplaced { cause: ReplaceCause::Compaction, order: Vec::new(), tokens_before: None };
        let given_up = fact::MessageAbandoned { key: "m2".to_owned() };
        let _ =
            session.append([Entry::message("m1", Role::Assistant, "walrus, left by a compaction")]).unwrap();
        let _ = session.append([replaced.into()]).unwrap();
        let _ = session.append([Entry::message("m2", Role::Assistant, "walrus, given up")]).unwrap();
        let _ = session.append([given_up.into()]).unwrap();
        store.close().unwrap();
    }
    let found: Value = serde_json::from_str(&world.run(&["search", "walrus", "--json"]).ok()).unwrap();
    let told = |part: &str| {
        let hits = found["items"].as_array().unwrap().iter();
        let mut hit = hits.filter(|hit| hit.to_string().contains(part)).cloned();
        hit.next().unwrap_or_else(|| panic!("{part}: {found}"))
    };
    assert_eq!(
        (&told("compaction")["row"]["cause"], &told("compaction")["seen"]),
        (&json!("left"), &json!("gone"))
    );
    assert_eq!(
        (&told("given up")["row"]["cause"], &told("given up")["seen"]),
        (&json!("abandoned"), &json!("hidden"))
    );
    let item = told("given up")["item"].as_str().unwrap().to_owned();
    let why = world.run(&["explain", &item]).ok();
    assert!(why.contains("the host gave its message up"), "{why}");
    let left = world.run(&["history", "s", "state:left", "--json"]).ok();
    assert_eq!(left.matches("\"cause\":\"").count(), 2, "{left}");
    world.assert_sound();
}
