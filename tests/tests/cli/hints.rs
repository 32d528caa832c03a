//! Answers that have nothing to show, or little, and say why.

use crate::world::{World, finish};

/// A run of SWE-agent: it opens a file twice and edits it.
const RUN: &str = r#"{"environment":"run","history":[{"role":"system","content":"an editor"}],"trajectory":[
{"action":"open src/fields.py 1474\n","observation":"line 1474","response":"look","state":"{\"open_file\": \"/w/src/fields.py\", \"working_dir\": \"/w\"}"},
{"action":"edit 1:1\nx\nend_of_edit","observation":"done","response":"change","state":"{\"open_file\": \"/w/src/fields.py\", \"working_dir\": \"/w\"}"},
{"action":"python a.py","observation":"344","response":"run","state":"{\"open_file\": \"/w/src/fields.py\", \"working_dir\": \"/w\"}"}]}"#;

fn imported() -> World {
    let world = World::new();
    world.write("run.traj", RUN);
    world.run(&["import", "run.traj", "--quiet"]).ok();
    world
}

/// `cost` said that no request matches, as if another question had found some.
#[test]
fn a_host_that_records_no_requests_is_named_by_cost() {
    let world = imported();
    let told = "nothing has a price: swe-agent recorded no requests or tokens of its sessions here";
    world.run(&["cost"]).says(0, &[told]);
    world.run(&["cost", "host:codex"]).says(0, &["no such request in the store"]);
    world.run(&["import", "session.jsonl", "--quiet"]).ok();
    world.run(&["cost", "host:swe-agent"]).says(0, &[told]);
    world
        .run(&["cost", "--since", "2100-01-01"])
        .says(0, &["no request in that time; the newest is of 2026-"]);
}

/// A session without an id of its host's is listed as `derived:21a2`. Commands that take a session or a query took that for a field.
#[test]
fn a_session_whose_id_has_a_colon_is_named_by_it() {
    let world = imported();
    let listed = world.run(&["sessions", "--json"]).ok();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let id = listed["items"][0]["id"].as_str().unwrap();
    assert!(id.starts_with("derived:"), "{id}");
    let beginning = &id[..14];
    for verb in ["history", "log", "stats", "sessions", "context", "cost"] {
        let whole = world.run(&[verb, id, "--quiet"]).ok();
        assert_eq!(whole, world.run(&[verb, "--session", id, "--quiet"]).ok(), "{verb}");
        assert_eq!(whole, world.run(&[verb, beginning, "--quiet"]).ok(), "{verb}");
    }
    let asked = world.run(&["history", id, "text:344", "--quiet"]).ok();
    assert_eq!(asked.lines().count(), 1, "{asked}");
    // Only a session's name may have a field that is none.
    world.run(&["history", "derived:nowhere"]).says(2, &["there is no field \"derived\""]);
    world.run(&["history", id, "took:read"]).says(2, &["there is no field \"took\"", "did you mean tool: ?"]);
    world.run(&["show", id]).says(7, &["that is a session"]);
}

/// No file of SWE-agent was known: its calls are lines of a shell.
#[test]
fn files_that_an_action_names_are_known_and_others_are_searched_for() {
    let world = imported();
    let found = world.run(&["history", "--file", "fields.py"]).ok();
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(found.contains("src/fields.py"), "{found}");
    let none = world.run(&["history", "--file", "a.py"]);
    none.says(7, &["no call names the file \"a.py\"", "acpdb search a.py"]);
    let search = world.run(&["search", "a.py"]).ok();
    assert!(search.contains("python a.py"), "{search}");
}

#[test]
fn stats_say_why_nothing_was_superseded_and_why_nothing_was_freed() {
    let world = imported();
    let none = world.run(&["stats"]).ok();
    assert!(none.contains("\nby the rules of the policy, no newer call made an older one stale"), "{none}");
    let call = |call: &str| {
        serde_json::json!({"session": "s1", "turn": true, "tool":
            {"call": call, "tool": "read", "params": {"filePath": "/a"}, "output": "x"}})
    };
    let feed: String = ["c1", "c2"].iter().map(|name| format!("{}\n", call(name))).collect();
    let turns = "{\"session\":\"s1\",\"turn\":true}\n".repeat(12);
    world.run_with(&["append", "--stdin"], feed + &turns).ok();
    let short = world.run(&["stats", "--session", "s1"]).ok();
    assert!(short.contains(" 1 superseded; ") && short.contains("~0 freed"), "{short}");
    assert!(
        short.contains(
            "\nsuperseded also counts items that have left the context, or are no longer than their placeholder"
        ),
        "{short}"
    );
    assert!(!world.run(&["stats", "--json"]).ok().contains("placeholder"));
}

/// A title that is a whole prompt made a line of a pipe as long.
#[test]
fn a_long_title_is_cut_in_a_pipe_and_whole_in_json() {
    let world = World::new();
    let title = "word ".repeat(150);
    let line = serde_json::json!({"session": "s1", "title": title,
        "message": {"role": "user", "text": "hello"}});
    world.run_with(&["append", "--stdin"], format!("{line}\n")).ok();
    let mut piped = world.command();
    let piped = finish(
        {
            piped.arg("sessions").env_remove("COLUMNS");
            piped
        },
        b"",
    )
    .ok();
    let cell = piped.lines().nth(1).unwrap().split('\t').nth(2).unwrap();
    assert!(cell.chars().count() == 200 && cell.ends_with('…'), "{piped}");
    assert!(world.run(&["sessions", "--json"]).ok().contains(title.trim()));
}

/// A program got `1.3k`.
#[test]
fn tokens_are_whole_numbers_in_a_pipe() {
    let world = World::new();
    world.run(&["import", super::world::SESSION, "--quiet"]).ok();
    let mut piped = world.command();
    piped.arg("stats").env_remove("COLUMNS");
    let piped = finish(piped, b"").ok();
    let file = piped.lines().find(|line| line.starts_with("file\t")).unwrap();
    let cells: Vec<&str> = file.split('\t').skip(1).collect();
    assert!(cells.len() == 3 && cells.iter().all(|cell| cell.parse::<u64>().is_ok()), "{file}");
}

/// A rewind is not undone, and an id alone is no question for `history`.
#[test]
fn what_does_another_thing_than_was_meant_names_the_next_step() {
    let world = World::fed();
    world.run(&["rewind", "t2", "--session", "s1"]).ok();
    world.run(&["undo", "--session", "s1"]).says(7, &["a rewind is not taken back", "--at @rewind-1"]);
    world.run(&["history", "#9"]).says(0, &["0 items matched", "acpdb history --chain '#9'"]);
    world.run(&["search", ""]).says(2, &["there is nothing to look for", "acpdb search WORD"]);
    world.run(&["info", "--hosts", "--at", "3"]).says(2, &["info looks at the store as it is"]);
    world.run(&["export", "audit", "-o", "audit.json"]).says(0, &["gap at #1: no checkpoint"]);
}

/// Scripts have the option of before, with the session behind it or ahead of it.
#[test]
fn the_kind_of_events_is_an_option_too() {
    let world = imported();
    let lines = |words: &[&str]| world.run(words).ok().lines().count();
    let meant = lines(&["log", "latest", "kind:message", "--json"]);
    assert!(meant > 0 && meant < lines(&["log", "latest", "--json"]));
    for words in [
        &["log", "--kind", "message", "latest", "--json"] as &[&str],
        &["log", "latest", "--kind=message", "--json"],
        &["log", "--json", "latest", "--kind", "message"],
        &["list", "latest", "--kind", "message", "--json"],
    ] {
        assert_eq!(lines(words), meant, "{words:?}");
    }
}
