//! The sessions and the moment that a command means if its arguments say little about them.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

mod done;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use done::{Done, finish};

/// A store of three sessions: one of Claude Code in each of two folders, a week apart, and one from a file without times.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { folder: TempDir::new().unwrap() };
        for name in ["shop/src", "blog", "elsewhere"] {
            std::fs::create_dir_all(world.path(name)).unwrap();
        }
        world.record(
            "shop-1",
            "shop",
            &["2026-03-12T09:09:30.000Z", "2026-03-12T09:09:32.400Z", "2026-03-12T11:00:00.000Z"],
        );
        world.record(
            "blog-1",
            "blog",
            &["2026-03-19T08:00:00.000Z", "2026-03-19T08:00:05.000Z", "2026-03-19T08:00:09.000Z"],
        );
        let chat = json!([{"role": "user", "content": "hello"}, {"role": "assistant", "content": "a chat without times"}]);
        std::fs::write(world.path("undated.json"), chat.to_string()).unwrap();
        for file in ["shop-1.jsonl", "blog-1.jsonl", "undated.json"] {
            assert_eq!(
                world.run("elsewhere", "UTC", &["import", "-q", &format!("../{file}")]).code,
                0,
                "{file}"
            );
        }
        world
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// A session as Claude Code writes it: a prompt, a failed call, an answer.
    fn record(&self, session: &str, folder: &str, times: &[&str; 3]) {
        let cwd = self.path(folder).display().to_string();
        let line = |number: usize, kind: &str, message: Value| {
            let id = |number: usize| format!("{session}-{number}");
            let parent = if number == 0 { Value::Null } else { json!(id(number - 1)) };
            json!({"type": kind, "uuid": id(number), "parentUuid": parent, "sessionId": session, "cwd": cwd,
                "timestamp": times[number], "version": "2.0.0", "message": message})
        };
        let call = json!([{"type": "tool_use", "id": format!("{session}-call"), "name": "Bash", "input": {"command": "make"}}]);
        let failed = json!([{"type": "tool_result", "tool_use_id": format!("{session}-call"), "is_error": true, "content": "no rule"}]);
        let lines = [
            line(0, "user", json!({"role": "user", "content": format!("work on {folder}")})),
            line(1, "assistant", json!({"id": "m1", "role": "assistant", "model": "m", "content": call})),
            line(2, "user", json!({"role": "user", "content": failed})),
        ];
        let text: String = lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
        std::fs::write(self.path(&format!("{session}.jsonl")), text).unwrap();
    }

    fn run(&self, folder: impl AsRef<Path>, zone: &str, args: &[&str]) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(args).current_dir(self.folder.path().join(folder)).env("ACPDB_PATH", self.path("store"));
        command.env("HOME", self.folder.path()).env("TZ", zone).env("COLUMNS", "160");
        finish(&mut command, "")
    }

    fn json(&self, folder: &str, zone: &str, args: &[&str]) -> Value {
        let done = self.run(folder, zone, &[args, &["--json"]].concat());
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        serde_json::from_str(&done.out).unwrap()
    }
}

/// `at '2026-03-12 09:09:32'` answered for today's 09:09:32, which was the head. The whole text counts, and without a zone it is local time.
#[test]
fn a_time_is_read_whole_and_where_it_is_typed() {
    let world = World::new();
    let seq = |zone: &str, text: &str| {
        world.json("blog", zone, &["context", "shop-1", "--summary", "--at", text])["at"].as_u64().unwrap()
    };
    let (first, head) = (seq("UTC", "2026-03-12 09:09:30"), seq("UTC", "head"));
    let second = seq("UTC", "2026-03-12T09:09:32Z");
    assert!(first < second && second < head, "{first} {second} {head}");
    for (zone, text, found) in [
        ("UTC", "2026-03-12 09:09:32", second),
        // As it is shown, to the second: the event of 32.4 s is in it.
        ("CET-1", "2026-03-12 10:09:32", second),
        ("CET-1", "2026-03-12 10:09:32.1", first),
        ("CET-1", "2026-03-12T09:09:32Z", second),
        ("CET-1", "12 Mar 2026 10:30", second),
        ("CET-1", "2026-03-12", head),
        ("UTC", "2026-03-12 12:00 +02:00", second),
        ("EST5", "2026-03-12 05:59", second),
    ] {
        assert_eq!(seq(zone, text), found, "{text} in {zone}");
    }
    let noted = world.run("blog", "UTC", &["context", "shop-1", "--summary", "--at", "2026-03-12"]);
    assert!(noted.err.contains("the host's clock"), "{noted:?}");
    let told = world.run("blog", "UTC", &["context", "shop-1", "--at", "2026-03-12 10:00"]);
    assert!(told.err.contains("note: times go by the host's clock"), "{told:?}");
    // A time before the session began, and a file that cannot be read, are errors that say so.
    assert_eq!(
        world.run("blog", "UTC", &["context", "shop-1", "--summary", "--at", "2020-01-01 00:00"]).code,
        7
    );
    for text in ["2026-03-12 25:00", "last blursday", "12/03/2026", "2026-03-12 soon"] {
        let done = world.run("blog", "UTC", &["context", "shop-1", "--at", text]);
        assert!(done.code == 2 && done.err.contains("\"last Tuesday\""), "{text}: {done:?}");
        let done = world.run("blog", "UTC", &["log", &format!("since:\"{text}\"")]);
        assert!(done.code == 2 && done.err.contains("\"last Tuesday\""), "{text}: {done:?}");
    }
    // Filters read the same.
    let counts =
        |text: &str| world.run("blog", "CET-1", &["log", "-q", "session:shop-1", text]).out.lines().count();
    assert_eq!(
        counts("until:\"12 Mar 2026 10:09:31\"") + counts("since:\"2026-03-12 10:09:31\""),
        counts("seq:1..")
    );
}

/// Berlin's rules in a table of zones of the test's own, so that no machine's table is asked: `TZif` of version 2, with a rule.
fn table_of_zones(world: &World) -> std::path::PathBuf {
    let folder = world.path("zones");
    let mut block = b"TZif2".to_vec();
    block.extend([0; 15]);
    for count in [0_u32, 0, 0, 0, 1, 4] {
        block.extend(count.to_be_bytes());
    }
    block.extend(3600_i32.to_be_bytes());
    block.extend(b"\0\0CET\0");
    let bytes = [&block, &block, b"\nCET-1CEST,M3.5.0,M10.5.0/3\n".as_slice()].concat();
    std::fs::create_dir_all(folder.join("Europe")).unwrap();
    std::fs::write(folder.join("Europe/Berlin"), bytes).unwrap();
    folder
}

/// `--at "2026-01-12 18:00 Europe/Berlin"` knew no such zone, since the program had no table of zones; `TZ=America/New_York`
/// silently meant UTC.
#[test]
fn zones_have_names_and_an_unknown_one_is_no_utc() {
    let world = World::new();
    let zones = table_of_zones(&world);
    let run = |zone: &str, text: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command
            .args(["context", "shop-1", "--summary", "--json", "--at", text])
            .current_dir(world.path("blog"));
        command.env("ACPDB_PATH", world.path("store")).env("HOME", world.folder.path());
        finish(command.env("TZ", zone).env("TZDIR", &zones), "")
    };
    let seq = |done: &Done| serde_json::from_str::<Value>(&done.out).unwrap_or_default()["at"].clone();
    let expected = seq(&run("UTC", "2026-03-12T09:09:32Z"));
    assert!(expected.is_u64(), "{expected}");
    for (zone, text) in [
        ("UTC", "2026-03-12 10:09:32 Europe/Berlin"),
        ("Europe/Berlin", "2026-03-12 10:09:32"),
        (":Europe/Berlin", "2026-03-12 10:09:32"),
        ("Mars/Olympus", "2026-03-12 09:09:32Z"),
    ] {
        assert_eq!(seq(&run(zone, text)), expected, "{text} in {zone}");
    }
    for text in ["2026-03-12 10:09:32", "yesterday", "2 days ago"] {
        let done = run("Mars/Olympus", text);
        assert_eq!(done.code, 2, "{text}: {done:?}");
        assert!(done.err.contains("there is no time zone \"Mars/Olympus\" (from TZ); write one"), "{done:?}");
    }
}

/// A session from a file without times got the time at which the file was read, and so was the newest. Its time is unknown: it is listed last, with a
/// note.
#[test]
fn what_bears_no_time_is_last_and_never_the_newest() {
    let world = World::new();
    let rows = world.json("elsewhere", "UTC", &["sessions"])["items"].clone();
    let ids: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids[..2], ["blog-1", "shop-1"]);
    assert_eq!((&rows[2]["began"], &rows[2]["ended"]), (&Value::Null, &Value::Null));
    assert!(world.run("elsewhere", "UTC", &["sessions"]).out.lines().last().unwrap().contains("no time"));
    let latest = world.json("elsewhere", "UTC", &["context", "latest", "--summary"]);
    assert_eq!(latest["session"], "blog-1");
    let undated = format!("session:{}", ids[2]);
    let log = world.run("elsewhere", "UTC", &["log", &undated]);
    assert!(log.out.lines().count() > 3 && log.out.lines().all(|line| line.contains("no time")), "{log:?}");
    for text in ["since:2020-01-01", "until:tomorrow"] {
        assert_eq!(world.run("elsewhere", "UTC", &["log", "-q", &undated, text]).out, "", "{text}");
    }
    // An act on the session makes it the newest.
    assert_eq!(world.run("elsewhere", "UTC", &["policy", "set", "todo=off", "--session", ids[2]]).code, 0);
    assert_eq!(world.json("elsewhere", "UTC", &["context", "latest", "--summary"])["session"], ids[2]);
}

/// The newest session of the whole store is seldom the one that is meant in a project's folder.
#[test]
fn the_current_folder_says_which_session_is_meant() {
    let world = World::new();
    for (folder, session) in [
        ("shop", "shop-1"),
        ("shop/src", "shop-1"),
        ("blog", "blog-1"),
        ("elsewhere", "blog-1"),
        (".", "blog-1"),
    ] {
        for named in [&["context", "latest", "--summary"][..], &["context", "--summary"]] {
            assert_eq!(world.json(folder, "UTC", named)["session"], session, "{folder} {named:?}");
        }
    }
    let note = world.run("shop/src", "UTC", &["context", "--summary"]).err;
    assert!(note.contains("of this folder (and 3 in all), shop-1"), "{note}");
}

/// `history` looked at one session and all other verbs at all sessions: failures of a week were "0 items" here and two there.
#[test]
fn questions_go_to_all_sessions_and_one_switch_narrows_them() {
    let world = World::new();
    let failed = ["status:failed", "since:2026-03-01"];
    let count = |verb: &str, rest: &[&str]| {
        let args = [&[verb][..], &failed, rest].concat();
        let done = world.run("shop", "UTC", &[&args[..], &["--json"]].concat());
        assert_eq!(done.code, 0, "{done:?}");
        match serde_json::from_str::<Value>(&done.out) {
            Ok(all) if verb == "stats" => all["items"].as_u64().unwrap(),
            Ok(all) if all["items"].is_array() => all["items"].as_array().unwrap().len() as u64,
            // A line an event: a call has two, or one with a text.
            _ => done.out.lines().count() as u64,
        }
    };
    for verb in ["history", "sessions", "stats", "log", "list"] {
        let all = count(verb, &[]);
        let one = count(verb, &["--session", "shop-1"]);
        assert!(one > 0 && all == 2 * one, "{verb}: {one} of {all}");
        assert_eq!(count(verb, &["--session", "latest"]), one, "{verb}");
    }
}

/// `acpdb search` was answered with `seal`, and `acpdb serve` with `erase`.
#[test]
fn no_slip_of_the_finger_leads_to_a_grave_verb() {
    let world = World::new();
    for typed in ["search", "resum", "serve", "imprt", "prune", "erasee", "sael", "reindx", "rewnd", "salvag"]
    {
        let done = world.run(".", "UTC", &[typed]);
        assert_eq!(done.code, 2, "{typed}: {done:?}");
        let tip: Vec<&str> = done.err.lines().filter(|line| line.contains("tip:")).collect();
        for verb in ["erase", "seal", "salvage", "rewind", "reindex", "fork"] {
            assert!(tip.iter().all(|line| !line.contains(&format!("'{verb}'"))), "{typed}: {tip:?}");
        }
    }
    let done = world.run(".", "UTC", &["sesions"]);
    assert!(done.err.contains("'sessions'"), "{done:?}");
}

/// A second read of a known file cost as much as the first. An unchanged file costs a look at its folder entry; a changed file, or a cache that is
/// gone or garbled, only costs time.
#[test]
fn an_unchanged_file_is_not_read_again() {
    let world = World::new();
    let import = |expected: &str| {
        let done = world.json(
            "elsewhere",
            "UTC",
            &["import", "../shop-1.jsonl", "../blog-1.jsonl", "../undated.json"],
        );
        let sums = done["items"].as_array().unwrap();
        let sum = |name: &str| sums.iter().map(|sum| sum[name].as_u64().unwrap()).sum::<u64>();
        assert_eq!((sum("files"), sum("sessions")), (3, 3), "{expected}: {done}");
        (sum("unchanged"), sum("events_new"))
    };
    // A file that changed while the clock stood still is read once more; after that, no file is read.
    let settled = (0..200).map(|_| import("settled")).find(|(unchanged, new)| (*unchanged, *new) == (3, 0));
    assert!(settled.is_some(), "files that are never known");
    let cache = world.path("store/snap/imports.aside");
    let kept = std::fs::read(&cache).unwrap();
    for garbled in [None, Some(&b""[..]), Some(&b"garbled"[..]), Some(&kept[..kept.len() - 1])] {
        match garbled {
            None => std::fs::remove_file(&cache).unwrap(),
            Some(bytes) => std::fs::write(&cache, bytes).unwrap(),
        }
        assert_eq!(import("garbled"), (0, 0));
        assert_eq!(import("mended"), (3, 0));
    }
    // The file gets one more line; then another file, as long and as old, takes its place.
    let path = world.path("shop-1.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let more = text.lines().last().unwrap().replace("shop-1-2", "shop-1-3").replace("no rule", "no target");
    std::fs::write(&path, format!("{text}{more}\n")).unwrap();
    let (unchanged, new) = import("longer");
    assert!(unchanged == 2 && new > 0, "{unchanged} {new}");
    let other = world.path("other.jsonl");
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&other, std::fs::read_to_string(&path).unwrap().replace("no target", "no bullet"))
        .unwrap();
    std::fs::File::open(&other).unwrap().set_modified(modified).unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(import("as long and as old").0, 2);
    // With other options the file is read again.
    let done = world.json("elsewhere", "UTC", &["import", "../shop-1.jsonl", "--redact"]);
    assert_eq!(done["items"][0]["unchanged"], 0);
}

/// `history latest`, `log shop`, `list latest` looked for these words in texts and found nothing; `stats` alone took a session, and took any word for
/// one. Now one rule holds for all verbs that take a question, and the others say how a session is named.
#[test]
fn a_session_can_come_first_in_a_question() {
    let world = World::new();
    for verb in ["history", "log", "list"] {
        let named = world.run("elsewhere", "UTC", &[verb, "--session", "shop-1"]);
        for place in ["shop-1", "shop"] {
            let done = world.run("elsewhere", "UTC", &[verb, place]);
            assert_eq!((done.code, &done.out), (0, &named.out), "{verb} {place}: {done:?}");
            let note = format!("note: session shop-1; search for the text with text:{place}");
            assert!(done.err.contains(&note), "{verb} {place}: {done:?}");
        }
        // Three characters are too few for a name, and a condition stays a condition.
        for text in ["sho", "text:shop"] {
            assert!(
                !world.run("elsewhere", "UTC", &[verb, text]).err.contains("note: session"),
                "{verb} {text}"
            );
        }
        assert!(
            world.run("elsewhere", "UTC", &[verb, "latest"]).err.contains("note: session blog-1"),
            "{verb}"
        );
    }
    assert_eq!(world.json("elsewhere", "UTC", &["stats", "shop"])["session"], "shop-1");
    assert_eq!(world.json("elsewhere", "UTC", &["stats", "shop", "status:failed"])["items"], 1);
    assert_eq!(world.json("elsewhere", "UTC", &["sessions", "shop"])["items"].as_array().unwrap().len(), 1);
    assert!(world.run("elsewhere", "UTC", &["cost", "shop"]).err.contains("note: session shop-1"));
    for args in [&["todo", "list", "shop-1"][..], &["diff", "t1", "shop-1"]] {
        let done = world.run("elsewhere", "UTC", args);
        assert_eq!(done.code, 2, "{args:?}: {done:?}");
        assert!(done.err.contains("did you mean --session shop-1?"), "{args:?}: {done:?}");
    }
    let done = world.run("elsewhere", "UTC", &["explain", "latest"]);
    assert!(
        done.code == 7 && done.err.contains("that is a session: acpdb context --session latest"),
        "{done:?}"
    );
    // A named session gets no hint; without a name, the hint says how to name one.
    assert!(!world.run("blog", "UTC", &["context", "latest"]).err.contains("name another"));
    assert!(world.run("blog", "UTC", &["context"]).err.contains("name another with --session ID"));
}

/// `list --limit 3` printed nothing: the limit counted events that have no text.
#[test]
fn a_limit_counts_what_is_printed() {
    let world = World::new();
    let all = world.run("elsewhere", "UTC", &["log", "--texts", "shop-1"]).out;
    assert!(all.lines().count() > 2, "{all}");
    for limit in 1..=2 {
        let done =
            world.run("elsewhere", "UTC", &["log", "--texts", "shop-1", "--limit", &limit.to_string()]);
        assert_eq!(
            done.out.lines().collect::<Vec<_>>(),
            all.lines().take(limit).collect::<Vec<_>>(),
            "{done:?}"
        );
    }
    let first = world.run("elsewhere", "UTC", &["log", "--texts", "shop-1", "--limit", "1"]);
    let cursor = first.err.lines().find_map(|line| line.strip_prefix("more: --after ")).unwrap().to_owned();
    let rest = world.run("elsewhere", "UTC", &["log", "--texts", "shop-1", "--after", &cursor]);
    assert_eq!(format!("{}{}", first.out, rest.out), all);
}

/// `--at yesterday` gave a turn of January, and beside it the date of the session that was recorded last. `sessions` and `search` told times as numbers without a unit.
#[test]
fn times_are_those_of_the_session_that_is_named_and_of_one_form() {
    let world = World::new();
    let at = world.json("elsewhere", "UTC", &["context", "shop-1", "--summary", "--at", "2026-03-25"]);
    assert_eq!((&at["session"], at["turn"].as_u64()), (&Value::from("shop-1"), Some(1)), "{at}");
    let sessions = world.json("elsewhere", "UTC", &["sessions", "shop"]);
    assert_eq!(sessions["items"][0]["began"], "2026-03-12T09:09:30Z");
    assert_eq!(sessions["items"][0]["ended"], "2026-03-12T11:00:00Z");
    let found = world.json("elsewhere", "UTC", &["search", "work", "--session", "shop-1"]);
    assert_eq!(found["items"][0]["time"], "2026-03-12T09:09:30Z");
    // A list's times say which zone they are of, and can be typed.
    let listed = world.run("elsewhere", "UTC", &["sessions", "shop"]).out;
    assert!(listed.contains("2026-03-12 11:00Z"), "{listed}");
}

/// Verbs that people know from other programs are not second names: the message names the right verb. `histroy` suggested `hosts` first.
#[test]
fn an_unknown_verb_says_where_it_is() {
    let world = World::new();
    for (typed, meant) in [
        ("serve", "did you mean 'acpdb ui'?"),
        ("discard", "did you mean 'acpdb context discard'?"),
        ("propose", "did you mean 'acpdb memory propose'?"),
        ("status", "did you mean 'acpdb attach --status'?"),
        ("ls", "did you mean 'acpdb sessions'?"),
    ] {
        let done = world.run(".", "UTC", &[typed]);
        assert!(done.code == 2 && done.err.contains(meant), "{typed}: {done:?}");
    }
    let done = world.run(".", "UTC", &["histroy"]);
    assert!(done.err.contains("'history'") && !done.err.contains(", 'history'"), "{done:?}");
    // A shell took `#297` for a comment.
    for args in [&["explain"][..], &["show"], &["blame"], &["history", "--chain"], &["context", "pin"]] {
        let done = world.run(".", "UTC", args);
        assert!(done.code == 2 && done.err.contains("in a shell, write 297 or '#297'"), "{args:?}: {done:?}");
    }
}

/// `init DIR` was refused. Other tools make their data in the folder that is named. A store of the folder above, which was used there so far, was
/// hidden without a word.
#[test]
fn a_store_is_made_in_the_folder_that_is_named_and_says_whose_place_it_takes() {
    let world = World::new();
    let run = |folder: &str, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command
            .args(args)
            .current_dir(world.path(folder))
            .env_remove("ACPDB_PATH")
            .env("HOME", world.path("home"));
        finish(command.env_remove("XDG_DATA_HOME"), "")
    };
    std::fs::create_dir_all(world.path("home")).unwrap();
    let first = run(".", &["init", "shop"]);
    assert!(first.code == 0 && !first.err.contains("note:"), "{first:?}");
    assert!(world.path("shop/.acpdb/acpdb.json").is_file());
    // A second call changes nothing, also by the store's own name.
    for name in ["shop", "shop/.acpdb"] {
        let again = run(".", &["init", name]);
        assert!(again.out.contains("is a store already") && again.err.is_empty(), "{again:?}");
    }
    for (folder, args) in [("shop/src", &["init"][..]), ("shop", &["init", "deeper"])] {
        std::fs::create_dir_all(world.path("shop/deeper")).unwrap();
        let done = run(folder, args);
        assert!(done.code == 0 && done.err.contains("used"), "{done:?}");
        assert!(done.err.contains("shop/.acpdb so far"), "{done:?}");
    }
    let twice = run(".", &["--db", "other", "init", "blog"]);
    assert!(twice.code == 2 && twice.err.contains("named twice"), "{twice:?}");
}

/// For a mistyped path `import` printed a warning, a sum of nothing and a note; an unknown host got a list of formats.
#[test]
fn an_import_of_nothing_says_one_thing() {
    let world = World::new();
    let done = world.run(".", "UTC", &["import", "nosuch.jsonl"]);
    assert_eq!((done.code, done.out.as_str(), done.err.trim()), (7, "", "error: nosuch.jsonl is not there"));
    let done = world.run(".", "UTC", &["import", "--host", "claude"]);
    assert!(done.code == 2 && done.err.contains("did you mean claude-code? hosts: claude-code"), "{done:?}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command.args(["append", "--stdin", "--db"]).arg(world.path("other"));
    let done = finish(&mut command, "no line\n");
    assert!(done.err.contains("1 line was not recorded; there was no other"), "{done:?}");
}

/// A fork had its parent's beginning for an id, which names the parent, and no title. A list that is narrow prints both ends.
#[test]
fn a_fork_can_be_named_as_it_is_listed() {
    let world = World::new();
    let forked = world.json("elsewhere", "UTC", &["fork", "shop-1", "--at", "t1"]);
    assert_eq!(forked["session"], "shop-1-fork-1");
    let listed = world.json("elsewhere", "UTC", &["sessions", "shop-1-fork-1"]);
    assert_eq!(listed["items"][0]["title"], "fork of work on shop at t1");
    assert_eq!(
        world.json("elsewhere", "UTC", &["context", "shop…rk-1", "--summary"])["session"],
        "shop-1-fork-1"
    );
    assert_eq!(world.run("elsewhere", "UTC", &["context", "sh…1", "--summary"]).code, 2);
}

/// The ids of several sessions that begin alike stood side by side in one line, and nothing told the sessions apart.
#[test]
fn sessions_that_begin_alike_are_listed_with_their_titles() {
    let world = World::new();
    world.record(
        "shop-2",
        "shop",
        &["2026-03-13T09:00:00.000Z", "2026-03-13T09:00:01.000Z", "2026-03-13T09:00:02.000Z"],
    );
    assert_eq!(world.run(".", "UTC", &["import", "-q", "shop-2.jsonl"]).code, 0);
    let done = world.run(".", "UTC", &["context", "shop"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("\n  shop-1  work on shop\n  shop-2  work on shop\n"), "{done:?}");
}
