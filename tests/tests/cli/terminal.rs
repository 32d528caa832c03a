//! The program with a person before it: pagers, widths, Ctrl-C, completion; and words that were not planned for.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::world::{World, finish};

/// Runs a command on a terminal of its own; gives its exit code and all that the terminal was sent.
fn on_terminal(mut command: Command, columns: u16) -> (i32, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    let copy = || Stdio::from(terminal.try_clone().unwrap());
    command.stdin(copy()).stdout(copy()).stderr(copy());
    let mut child = command.spawn().unwrap();
    // Both hold the other end: while one is left, the terminal does not end.
    drop(terminal);
    drop(command);
    let mut seen = Vec::new();
    let mut master = File::from(master);
    let mut piece = [0_u8; 4096];
    // A terminal that its user left ends with an error.
    while let Ok(count) = master.read(&mut piece) {
        if count == 0 {
            break;
        }
        seen.extend_from_slice(&piece[..count]);
    }
    let code = child.wait().unwrap().code().unwrap_or(-1);
    (code, String::from_utf8_lossy(&seen).replace("\r\n", "\n"))
}

fn paged(world: &World, pager: &str, arguments: &[&str]) -> (i32, String) {
    let mut command = world.command();
    command.args(arguments).env("ACPDB_PAGER", pager).env_remove("COLUMNS").env("PATH", "/usr/bin:/bin");
    on_terminal(command, 100)
}

/// DEL and C1 went through `--json`, `step` and requests that are printed: a terminal takes U+009B for the beginning of a sequence.
#[test]
fn json_steers_no_terminal() {
    let world = World::new();
    let text = "a\u{9b}2J b\u{85} c\u{7f} d\u{1b}[2J e\u{202e}";
    let line = serde_json::json!({"session": "s1", "message": {"role": "user", "text": text}}).to_string();
    world.run_with(&["append", "--stdin"], line + "\n").ok();
    for arguments in [
        &["log", "--texts", "--json"][..],
        &["context", "s1", "--json"],
        &["context", "s1", "--format", "anthropic"],
        &["step", "s1", "--format", "anthropic"],
        &["log", "--json"],
    ] {
        let (code, shown) = paged(&world, "cat", arguments);
        assert_eq!(code, 0, "{arguments:?}: {shown}");
        let steering = |c: &char| c.is_control() && *c != '\n' || *c == '\u{202e}';
        assert_eq!(shown.chars().find(steering), None, "{arguments:?}: {shown:?}");
        if shown.lines().count() == 1 {
            let value: serde_json::Value = serde_json::from_str(&shown).unwrap();
            assert!(value.is_object(), "{shown}");
        }
    }
    // Programs get the texts as they are.
    assert!(world.run(&["log", "--texts", "--json"]).ok().contains("a\u{9b}2J b\u{85} c\u{7f}"));
}

/// The id of a session set the title of the terminal.
#[test]
fn names_of_sessions_steer_no_terminal() {
    let world = World::new();
    let (name, folder) = ("s\u{1b}]0;pwned\u{7}", "/w\u{1b}]0;p\u{7}");
    let line = serde_json::json!({
        "session": name, "cwd": folder, "turn": true, "message": {"role": "user", "text": "m"}
    });
    world.run_with(&["append", "--stdin"], format!("{line}\n")).ok();
    for arguments in [
        &["fork", name][..],
        &["resume", name, "--in", "codex", "--dry-run"],
        &["rewind", "-1t", "-s", name],
        &["rewind", "-1t", "-s", name],
    ] {
        let (_, shown) = paged(&world, "cat", arguments);
        assert!(shown.contains("]0;p"), "{arguments:?}: {shown:?}");
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{7}'), "{arguments:?}: {shown:?}");
    }
}

/// A session that begins with a prompt of 20 KB filled the screen with it.
#[test]
fn a_list_on_a_terminal_has_beginnings_and_programs_read_whole_texts() {
    let world = World::new();
    let text = "all of it ".repeat(2000);
    let line = serde_json::json!({"session": "s1", "message": {"role": "user", "text": text}}).to_string();
    world.run_with(&["append", "--stdin"], line + "\n").ok();
    let whole = format!("3\t{text}\n");
    let on_terminal = |arguments: &[&str]| paged(&world, "cat", arguments);
    let (code, shown) = on_terminal(&["log", "--texts"]);
    assert_eq!((code, shown.lines().count()), (0, 1), "{shown}");
    assert!(shown.starts_with("3\tall of it all") && shown.ends_with("…\n"), "{shown}");
    let columns = shown.trim_end().chars().count() - "3\t".len() + 8; // a tab has up to eight
    assert!(columns <= 100, "{columns}: {shown}");
    assert_eq!(on_terminal(&["log", "--texts", "--full"]).1, whole);
    assert_eq!(world.run(&["log", "--texts"]).ok(), whole);
    world.run(&["log", "--full"]).says(2, &["--texts"]);
}

/// Newcomers saw the beginning of a text and did not know how to see the rest.
#[test]
fn who_sees_beginnings_on_a_terminal_is_told_once_how_to_see_whole_texts() {
    let world = World::new();
    for (session, text) in [("long", "all of it ".repeat(2000)), ("short", "all of it".to_owned())] {
        for role in ["user", "assistant"] {
            let line = serde_json::json!({"session": session, "message": {"role": role, "text": text}});
            world.run_with(&["append", "--stdin"], format!("{line}\n")).ok();
        }
    }
    let words = "acpdb context --full";
    let on_terminal = |arguments: &[&str]| paged(&world, "cat", arguments).1.matches(words).count();
    assert_eq!(on_terminal(&["context", "long"]), 1);
    assert_eq!(on_terminal(&["context", "long", "--full"]), 0);
    assert_eq!(on_terminal(&["context", "short"]), 0);
    assert!(!world.run(&["context", "long"]).err.contains(words));
}

#[test]
fn long_answers_on_a_terminal_go_through_the_pager_and_words_follow_it() {
    let world = World::fed();
    let is_paged = |text: &str| text.contains("PAGED ");
    let pager = "sed 's/^/PAGED /'";
    for read in [
        &["log"] as &[&str],
        &["history", "--session", "s1"],
        &["context", "s1"],
        &["sessions"],
        &["memory", "list", "--session", "s1"],
    ] {
        let (code, text) = paged(&world, pager, read);
        assert!(code == 0 && is_paged(&text), "{read:?}: {text}");
        assert!(!is_paged(&paged(&world, pager, &[read, &["--no-pager"]].concat()).1), "{read:?}");
        assert!(!is_paged(&paged(&world, "never", read).1), "{read:?}");
        // A pager that is not there is no reason to show nothing.
        let (code, text) = paged(&world, "no-such-pager-here", read);
        assert!(code == 0 && !text.is_empty(), "{read:?}: {text}");
        // A reader that stops early.
        let (code, text) = paged(&world, "head -n 1", read);
        assert!(code == 0 && !text.contains("error"), "{read:?}: {text}");
    }
    for other in
        [&["verify"] as &[&str], &["policy", "set", "balanced"], &["context", "pin", "#7", "-s", "s1"]]
    {
        assert!(!is_paged(&paged(&world, pager, other).1), "{other:?}");
    }
    // A note about an answer does not run into it.
    let (_, text) = paged(&world, pager, &["context"]);
    let note = text.find("note: the newest of 2 sessions").unwrap();
    assert!(text.rfind("PAGED ").unwrap() < note, "{text}");
    // Without an answer there is nothing to page.
    let (code, text) = paged(&world, pager, &["context", "nowhere"]);
    assert_eq!(code, 7);
    assert!(text.contains("error:") && !is_paged(&text), "{text}");
    // The pager of the settings is used, and a file or pipe is never paged.
    world.run(&["config", "set", "pager", pager]).ok();
    let mut command = world.command();
    command.args(["log"]).env("PATH", "/usr/bin:/bin");
    assert!(is_paged(&on_terminal(command, 100).1));
    assert!(!is_paged(&world.run(&["log"]).ok()));
}

/// Tables and pictures on a terminal that is narrower than any of them.
#[test]
fn a_terminal_of_20_columns_gets_lines_that_fit() {
    let world = World::fed();
    for read in [
        &["sessions"] as &[&str],
        &["context", "s1"],
        &["history", "--session", "s1"],
        &["history", "--chain", "call-read-1"],
        &["stats"],
        &["explain", "call-read-1"],
        &["diff", "t1", "head", "--session", "s1"],
        &["config", "list"],
        &["memory", "list", "--session", "s1"],
        &["--help"],
    ] {
        let mut command = world.command();
        command.args(read).args(["--no-pager", "--color", "never"]).env_remove("COLUMNS");
        let (code, text) = on_terminal(command, 20);
        assert!(code == 0 && !text.contains("panicked"), "{read:?}: {text}");
        assert!(!text.is_empty(), "{read:?}");
    }
}

/// Ctrl-C while a host feeds the store: the exit code says so, and acknowledged lines are there.
#[test]
fn ctrl_c_ends_with_130_and_leaves_the_store_whole() {
    let world = World::new();
    let mut command = world.command();
    command.args(["append", "--stdin", "--ack"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
    for number in 0..5 {
        let line =
            format!("{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"line {number}\"}}}}\n");
        input.write_all(line.as_bytes()).unwrap();
        acks.next().unwrap().unwrap();
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    world.assert_sound();
    assert_eq!(world.list().lines().count(), 5);
}

/// The words that a shell gets when the user presses tab.
#[test]
fn a_shell_completes_verbs_options_sessions_and_ids_from_the_store() {
    let world = World::fed();
    let completed = |words: &[&str]| {
        let mut command = world.command();
        command.env("ACPDB_COMPLETE", "fish").args(["--", "acpdb"]).args(words);
        let ran = finish(command, b"");
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{words:?}");
        ran.text().lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let hashes = completed(&["history", "--chain", "r_"]);
    assert_eq!(hashes.iter().collect::<std::collections::BTreeSet<_>>().len(), hashes.len(), "{hashes:?}");
    let holds = |words: &[&str], wanted: &str| {
        let all = completed(words);
        assert!(all.iter().any(|known| known == wanted), "{words:?}: {all:?}");
    };
    holds(&["hist"], "history");
    holds(&["history", "--ch"], "--chain");
    holds(&["context", "s"], "s1");
    holds(&["history", "--session", "s"], "s2");
    holds(&["explain", "--session", "s1", "call-r"], "call-read-1");
    holds(&["history", "--session=s1", "--chain", "r_"], &{
        let rows = world.run(&["history", "--session", "s1", "--json"]).ok();
        let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
        let hash =
            rows["items"].as_array().unwrap().iter().find_map(|row| row["hash"].as_str().map(str::to_owned));
        hash.unwrap()
    });
    // Ids of any session are taken, so ids of any session are offered; also without the sign that shells need quoted.
    let rows = world.run(&["history", "--session", "s1", "--json"]).ok();
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    let item = rows["items"][0]["item"].as_str().unwrap();
    holds(&["explain", item], item);
    holds(&["explain", &item[1..]], &item[1..]);
    holds(&["policy", "set", "bal"], "balanced");
    holds(&["simulate", "--policy", "ec"], "economy");
    holds(&["config", "set", "pa"], "pager");
    // A store that is not there, and one that is none, have nothing to offer and make nothing.
    assert_eq!(completed(&["context", "--db", "nowhere", "s"]), Vec::<String>::new());
    assert!(!world.path("nowhere").exists());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = world.run(&["completions", shell]).ok();
        assert!(script.contains("ACPDB_COMPLETE"), "{shell}: {script}");
    }
}

#[test]
fn the_manual_has_a_page_for_each_verb() {
    let world = World::new();
    world.run(&["man", "pages", "-q"]).ok();
    let page = |name: &str| std::fs::read_to_string(world.path("pages").join(name)).unwrap();
    assert!(page("acpdb.1").contains("acpdb\\-history(1)"));
    assert!(page("acpdb-history.1").contains("\\-\\-chain"));
    assert!(page("acpdb-context-distill.1").contains("SUMMARY"));
}

/// With any words a verb answers or refuses, and never breaks.
#[test]
fn no_words_make_a_verb_panic() {
    let world = World::fed();
    let verbs = [
        "log",
        "log --texts",
        "history",
        "context",
        "sessions",
        "stats",
        "show",
        "explain",
        "blame",
        "context --summary",
        "diff",
        "todo list",
        "memory list",
        "memory get",
        "policy show",
        "task list",
        "undo --dry-run",
        "config get",
        "scan",
        "context lint",
    ];
    let words = [
        "#1",
        "#28",
        "#29",
        "#0",
        "#7.2",
        "t1",
        "t99",
        "-3t",
        "s1",
        "call-",
        "r_",
        "kind:tool",
        "tool:",
        "turn:9..1",
        "text:\"",
        "since:",
        "(",
        "not",
        "--at",
        "--json",
        "--limit",
        "0",
        "--after",
        "--session",
        "--last",
        "-n",
        "18446744073709551615",
        "@compact-0",
        "@rewind-1",
        "tokens:>99999999999999999999",
        "é\u{301}\u{202e}",
        "",
        "--",
    ];
    let any_word =
        prop_oneof![6 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => "[^\0]{0,8}"];
    let line = (proptest::sample::select(verbs.to_vec()), proptest::collection::vec(any_word, 0..4));
    let mut runner = TestRunner::new(Config { cases: 80, failure_persistence: None, ..Config::default() });
    let result = runner.run(&line, |(verb, words)| {
        let mut command = world.command();
        command.args(verb.split(' ')).args(&words);
        let ran = finish(command, b"");
        prop_assert!((0..=8).contains(&ran.code), "{} {:?}: {} {}", verb, words, ran.code, ran.err);
        prop_assert!(!ran.err.contains("panicked"), "{} {:?}: {}", verb, words, ran.err);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // Words that are no text at all.
    for verb in verbs {
        let mut command = world.command();
        command.args(verb.split(' ')).arg(OsStr::from_bytes(b"\xff\xfe"));
        let ran = finish(command, b"");
        assert!((0..=8).contains(&ran.code) && !ran.err.contains("panicked"), "{verb}: {}", ran.err);
    }
    world.assert_sound();
}

const HOSTILE: &str = "x\u{1b}]0;pwned\u{7}\u{1b}[8m\u{9b}2J\u{202e}\u{ad}\u{200b}y";

/// A store in which each name and text steers a terminal.
fn hostile_world() -> World {
    let world = World::new();
    let line = serde_json::json!({
        "session": HOSTILE, "host": HOSTILE, "cwd": format!("/w/{HOSTILE}"), "title": HOSTILE, "turn": true,
        "message": {"role": "user", "text": HOSTILE}
    });
    let memory = serde_json::json!({"session": HOSTILE, "memory": {"category": HOSTILE, "key": HOSTILE, "value": HOSTILE}});
    let tool = serde_json::json!({
        "session": HOSTILE,
        "tool": {"call": HOSTILE, "tool": HOSTILE, "params": {HOSTILE: HOSTILE}, "output": HOSTILE}
    });
    let todos = serde_json::json!({
        "session": HOSTILE, "todos": [{"id": HOSTILE, "content": HOSTILE, "status": HOSTILE, "priority": HOSTILE}]
    });
    world.run_with(&["append", "--stdin"], format!("{line}\n{memory}\n{tool}\n{todos}\n")).ok();
    world
}

fn assert_plain(shown: &str, arguments: &[&str]) {
    let steering = |c: &char| {
        c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{1b}')
            || matches!(c, '\u{202e}' | '\u{ad}' | '\u{200b}')
    };
    assert_eq!(shown.chars().find(steering), None, "{arguments:?}: {shown:?}");
    // Sequences of colours are ours, and so are those that draw progress anew.
    for sequence in shown.split('\u{1b}').skip(1) {
        let style = sequence.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        let is_style = style.is_some_and(|(style, _)| {
            matches!(style, "0" | "1" | "2" | "4" | "22" | "31" | "32" | "33" | "36")
        });
        assert!(is_style || sequence.starts_with("[2K"), "{arguments:?}: {shown:?}");
    }
}

/// Paths, verbs and settings came to the terminal as they were typed or found: each of these could set its title, or hide what follows. One row for
/// each door; a row that names a file of the world makes it under a hostile name.
#[test]
fn no_door_lets_through_what_steers_a_terminal() {
    let world = hostile_world();
    std::fs::write(world.path(HOSTILE), "no session\n").unwrap();
    let db = format!("db-{HOSTILE}");
    let keep = format!("keep-{HOSTILE}");
    let copy = format!("copy-{HOSTILE}");
    let page = format!("{HOSTILE}.html");
    for arguments in [
        &[HOSTILE][..],
        &["memory", HOSTILE],
        &["context", "--format", HOSTILE],
        &["context", HOSTILE],
        &["log", "--texts", HOSTILE],
        &["log", &format!("--{HOSTILE}")],
        &["history", HOSTILE],
        &["log", HOSTILE],
        &["log"],
        &["show", HOSTILE],
        &["show", "2"],
        &["show", "3", "--raw"],
        &["explain", HOSTILE],
        &["sessions"],
        &["sessions", "--all", "--graph"],
        &["context"],
        &["context", "--json"],
        &["history"],
        &["search", "pwned"],
        &["search", HOSTILE],
        &["todo"],
        &["memory", "list"],
        &["info", "--hosts"],
        &["stats"],
        &["cost", "session"],
        &["context", "--summary", "--at", HOSTILE],
        &["blame", HOSTILE],
        &["policy", "set", HOSTILE],
        &["config", "get", HOSTILE],
        &["config", "set", "db", &db],
        &["config", "set", HOSTILE, "1"],
        &["config", "list"],
        &["config", "get", "db"],
        &["config", "unset", "db"],
        &["import", HOSTILE],
        &["import", "missing/\u{1b}]0;pwned\u{7}"],
        &["context", "lint", HOSTILE],
        &["checkpoint", "check", HOSTILE],
        &["demo", "--bundled", "--keep", &keep],
        &["--db", &db, "init"],
        &["--db", &db, "sessions"],
        &["--db", &db, "doctor"],
        &["--db", &db, "verify"],
        &["--db", &db, "info"],
        &["--db", &db, "doctor", "reindex"],
        &["--db", &keep, "context"],
        &["backup", &copy],
        &["doctor", "salvage", "--into", &format!("salvaged-{HOSTILE}")],
        &["export", "html", "-o", &page],
        &["export", "jsonl", "-o", HOSTILE],
        &["key", "new", HOSTILE],
        &["key", "show", HOSTILE],
        &["checkpoint", "show", "--key", HOSTILE],
        &["checkpoint", "prove", "2", "-o", &page],
        &["config", "trust", HOSTILE],
        &["config", "trust", "--list"],
        &["attach", "--status"],
        &["resume", HOSTILE, "--in", "codex", "--dry-run"],
        &["fork", HOSTILE, "--name", HOSTILE],
        &["erase", HOSTILE, "--reason", HOSTILE],
        &["erase", "3", "--reason", HOSTILE],
        &["explain", "3"],
        &["scan", "--redact-rule", HOSTILE],
        &["step", HOSTILE, "--format", "anthropic"],
        &["proxy", HOSTILE],
        &["completions", HOSTILE],
        &["man", HOSTILE],
        &["hook", HOSTILE],
        &["hook", "claude-code", HOSTILE],
        &["service", HOSTILE],
        &["--key-file", HOSTILE, "sessions"],
        &["--at", HOSTILE, "context"],
    ] {
        let (_, shown) = paged(&world, "cat", arguments);
        assert_plain(&shown, arguments);
    }
}
