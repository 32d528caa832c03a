//! Faults from outside: lines, files, folders, disks. Each is said, with the place and the exit code; nothing that was
//! recorded is lost, and nothing is recorded by half.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::world::World;

fn message(text: &str) -> String {
    format!("{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"{text}\"}}}}\n")
}

fn nested(count: usize) -> String {
    format!("{}{}", "[".repeat(count), "]".repeat(count))
}

#[test]
fn a_bad_line_is_named_and_the_others_are_recorded() {
    let deep = nested(900_000);
    // Some ten megabytes took gigabytes of memory.
    let small = "{},".repeat(1_000_000);
    let many: Vec<String> = (0..70_000).map(|_| "{\"turn\":true}".to_owned()).collect();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"{\"session\":\"s1\",\"message\":{\"role\":\"us".to_vec(), "EOF"),
        (b"{\"session\":\"s1\",\"message\":{\"role\":\"user\",\"text\":\"\xff\xfe\"}}".to_vec(), "not UTF-8 at byte 49"),
        (message("a\\ud800b").into_bytes(), "surrogate"),
        (deep.clone().into_bytes(), "expected a map"),
        (format!("{{\"session\":\"s1\",\"todos\":{deep}}}").into_bytes(), "\"todos\""),
        (format!("{{\"session\":\"s1\",\"policy\":{deep}}}").into_bytes(), "recursion limit"),
        (format!("{{\"session\":\"s1\",\"events\":[{}]}}", many.join(",")).into_bytes(), "split it"),
        (format!("{{\"session\":\"s1\",\"message\":{{\"key\":\"{}\",\"role\":\"user\",\"text\":\"\"}}}}", "k".repeat(1 << 20)).into_bytes(), "bytes of an event"),
        (format!("{{\"session\":\"s1\",\"todos\":[{small}{{}}]}}").into_bytes(), "2000004 elements and members, over 1000000"),
        // One of the two was recorded, and the other was lost without a word.
        (b"{\"session\":\"s1\",\"turn\":true,\"turn\":false}".to_vec(), "\"turn\" stands twice (column 34)"),
        (b"{\"session\":\"s1\",\"events\":[{\"file_changed\":{\"path\":\"a\"},\"file_changed\":{\"path\":\"b\"}}]}".to_vec(), "\"file_changed\" stands twice (column"),
        (b"{\"session\":\"s1\",\"session\":\"s2\",\"turn\":true}".to_vec(), "\"session\" stands twice (column"),
        (b"{\"session\":\"s1\",\"events\":[{\"turn\":true,\"session\":\"s2\"}]}".to_vec(), "unknown field \"session\""),
        (b"{\"session\":\"s1\",\"expect\":1,\"turn\":true}".to_vec(), "not #1; read again and retry"),
        (b"{\"session\":\"s1\",\"expect\":-1,\"turn\":true}".to_vec(), "\"expect\" is the last seq"),
        (b"{\"session\":\"s1\",\"expect\":9,\"policy\":{}}".to_vec(), "\"expect\" goes with what happened"),
        (b"{}".to_vec(), "\"session\" is missing"),
        (b"{\"session\":\"s1\"}".to_vec(), "nothing to record"),
        (b"{\"session\":\"s1\",\"nope\":1}".to_vec(), "unknown field \"nope\""),
        (b"{\"session\":\"s1\",\"message\":null}".to_vec(), "an object with \"role\" and \"text\""),
        (b"{\"session\":\"s1\",\"tool_started\":{\"tool\":\"x\"}}".to_vec(), "needs \"call\""),
        (b"{\"session\":\"s1\",\"turn\":-1}".to_vec(), "\"turn\" is true or a number"),
        (b"{\"session\":\"s1\",\"memory\":{\"value\":\"x\",\"confidence\":2}}".to_vec(), "between 0 and 1"),
        (b"{\"session\":\"s1\",\"policy\":{\"nope\":1}}".to_vec(), "nope"),
        (b"{\"session\":\"s9\",\"context\":{\"action\":\"discard\",\"targets\":[[\"x\"]]}}".to_vec(), "\"s9\""),
        // It was the message that was recorded, and the line that was said not to be.
        (b"{\"session\":\"s1\",\"events\":[{\"message\":{\"role\":\"user\",\"text\":\"half\"}},{\"policy\":{\"nope\":1}}]}".to_vec(), "line of their own"),
        (b"{\"session\":\"s1\",\"events\":[{\"message\":{\"role\":\"user\",\"text\":\"half\"}},{\"nope\":1}]}".to_vec(), "nope"),
    ];
    for (bad, words) in cases {
        let world = World::new();
        let mut input = message("before").into_bytes();
        input.extend(&bad);
        input.extend(b"\n\n");
        input.extend(message("after").as_bytes());
        let ran = world.run_with(&["append", "--stdin", "--ack"], input);
        ran.says(8, &["line 2 was not recorded", words]);
        let answers = ran.text();
        let answers: Vec<&str> = answers.lines().collect();
        assert!(
            matches!(answers.as_slice(), [_, refused, _] if refused.starts_with("refused: ")),
            "each line has its answer: {answers:?}"
        );
        let texts: Vec<String> =
            world.list().lines().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect();
        assert_eq!(texts, ["before", "after"], "{words}");
        world.assert_sound();
    }
}

/// The reader took one ack and went, and the lines behind it were not recorded, with exit code 0.
#[test]
fn a_reader_of_acks_that_goes_away_costs_no_line() {
    let world = World::new();
    let lines: String = (0..300).map(|number| message(&format!("m{number}"))).collect();
    let mut command = world.command();
    command.args(["append", "--stdin", "--ack"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(world.list().lines().count(), 300);
    // A verb that only reads has no more to do.
    let mut command = world.command();
    let mut child = command.args(["log", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A line without a host opened a second session of its name, and no verb found either of them any more.
#[test]
fn a_line_without_a_host_goes_to_the_session_of_its_name() {
    let world = World::new();
    let line = |session: &str, host: &str, text: &str| {
        format!("{{\"session\":\"{session}\"{host},\"message\":{{\"role\":\"user\",\"text\":\"{text}\"}}}}\n")
    };
    let (opencode, codex) = (",\"host\":\"opencode\"", ",\"host\":\"codex\"");
    let append = |lines: &[String]| world.run_with(&["append", "--stdin"], lines.concat());
    append(&[line("s1", opencode, "A"), line("s1", "", "B")]).ok();
    append(&[line("s1", "", "C"), line("s2", "", "own"), line("s2", codex, "other"), line("s2", "", "own")])
        .ok();
    let texts = |session: &str| world.run(&["log", "--texts", "-s", session]).ok().lines().count();
    assert_eq!(texts("s1"), 3);
    append(&[line("s1", codex, "D"), line("s1", "", "E"), line("s3", "", "F")])
        .says(8, &["line 2 was not recorded", "is of codex and of opencode", "1 line was not recorded"]);
    let said = world.run(&["context", "s1"]);
    said.says(2, &["names 2 sessions", "opencode  A", "codex  D", "give the digits"]);
    for (host, count) in [("opencode", 3), ("codex", 1)] {
        let row = said.err.lines().find(|line| line.contains(host)).unwrap();
        assert_eq!(texts(row.split_whitespace().next().unwrap()), count, "{row}");
    }
}

/// An act that changed nothing was refused without an answer, so a host that waited for one hung; a pattern that matches no text is
/// no error. Before, items were not understood.
#[test]
fn an_act_of_a_line_names_items_and_one_without_effect_is_told() {
    let world = World::new();
    let act = |action: &str, targets: &str| {
        format!("{{\"session\":\"s1\",\"context\":{{\"action\":\"{action}\",\"targets\":{targets}}}}}\n")
    };
    let append = |lines: &[String]| world.run_with(&["append", "--stdin", "--ack"], lines.concat());
    append(&[message("a text that is hidden")]).ok();
    append(&[
        act("discard", "[[\"#3\"]]"),
        act("restore", "[\"#3\"]"),
        act("distill", "[[\"#3\",\"short\"]]"),
    ])
    .ok();
    let shown = world.run(&["context", "s1"]).ok();
    assert!(shown.contains("distilled") && shown.contains("short"), "{shown}");
    let ran = append(&[
        act("discard", "[[\"#3\"]]"),
        act("discard", "[[\"no such...text\"]]"),
        act("discard", "[[\"#99\"]]"),
        act("discard", "[[\"#3\"],[\"r_00000\"]]"),
        message("next"),
    ]);
    ran.says(
        8,
        &["line 1 changed nothing", "line 2 changed nothing: No matching messages found", "line 3 was not"],
    );
    let answers = ran.text();
    let answers: Vec<bool> = answers.lines().map(|answer| answer.parse::<u64>().is_ok()).collect();
    assert_eq!(answers, [true, true, false, true, true]);
    let ran = world.run_with(
        &["append", "--stdin", "--ack", "--json"],
        [act("discard", "[[\"#99\"]]"), message("last")].concat(),
    );
    ran.says(8, &[]);
    let said = ran.text();
    let said: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said[0]["line"], 1);
    assert!(said[0]["refused"].is_string() && said[0]["seq"].is_null(), "{said:?}");
    assert!(said[1]["refused"].is_null() && said[1]["seq"].is_u64(), "{said:?}");
}

#[test]
fn large_and_odd_facts_are_recorded_as_they_are() {
    let deep = nested(900_000);
    let long = "x".repeat(1 << 20);
    for line in [
        message(&long),
        message(&"\\n".repeat(1 << 19)),
        format!("{{\"session\":\"s1\",\"tool\":{{\"call\":\"c\",\"tool\":\"t\",\"params\":{deep},\"output\":\"o\"}}}}"),
        "{\"session\":\"s1\",\"tool\":{\"call\":\"c\",\"tool\":\"t\",\"params\":{\"x\":\"\\udfff\"},\"output\":\"o\"}}".to_owned(),
        "{\"session\":\"s1\",\"tool_finished\":{\"call\":\"never started\",\"output\":\"o\"}}".to_owned(),
        format!("{{\"session\":\"{}\",\"turn\":true,\"message\":{{\"key\":\"{0}\",\"role\":\"user\",\"text\":\"t\"}}}}", "s".repeat(5000)),
        "{\"session\":\"../..\\u0000/\\u001b[2J\",\"message\":{\"role\":\"user\",\"text\":\"t\"}}".to_owned(),
    ] {
        let world = World::new();
        let beginning: String = line.chars().take(80).collect();
        let ran = world.run_with(&["append", "--stdin"], line);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{beginning}");
        world.assert_sound();
        for read in [&["history"] as &[&str], &["context", "latest"], &["sessions"], &["log"], &["show", "#3"], &["stats"]] {
            let ran = world.run(read);
            assert!(ran.code == 0 || ran.err.contains("no items"), "{read:?} of {beginning}: {}", ran.err);
            assert!(!ran.out.contains(&0x1b), "{read:?} of {beginning}");
        }
    }
}

/// The end of a call stood before its beginning, so the call was pending for ever.
#[test]
fn a_line_that_tells_of_the_beginning_and_the_end_of_a_call_records_them_in_this_order() {
    let world = World::new();
    let line = "{\"session\":\"s1\",\"tool_finished\":{\"call\":\"c1\",\"output\":\"seen\"},\
                \"tool_started\":{\"call\":\"c1\",\"tool\":\"read\",\"params\":{\"filePath\":\"/a\"}}}";
    world.run_with(&["append", "--stdin"], line).ok();
    let shown = world.run(&["context", "s1"]).ok();
    assert!(shown.contains("seen") && !shown.contains("pending"), "{shown}");
}

#[test]
fn files_that_are_no_sessions_fail_and_make_no_store() {
    let world = World::new();
    world.write("empty.jsonl", "");
    world.write("bytes.jsonl", (0..=255).collect::<Vec<u8>>().repeat(50));
    world.write("brackets.json", "[".repeat(1_000_000));
    world.write("broken.jsonl.zst", b"\x28\xb5\x2f\xfdbroken".repeat(40));
    std::fs::create_dir(world.path("folder")).unwrap();
    for (name, code, words) in [
        ("empty.jsonl", 1, "the file is empty"),
        ("bytes.jsonl", 1, "format is not known"),
        ("brackets.json", 1, "format is not known"),
        ("broken.jsonl.zst", 1, "cannot be read"),
        ("folder", 1, "holds no files"),
        ("/dev/null", 1, "neither a file nor a folder"),
    ] {
        let ran = world.run(&["import", name]);
        ran.says(code, &[name, words, "nothing was recorded"]);
        assert!(!world.path("store").exists(), "{name} made a store");
    }
    world.run(&["import", "missing.jsonl"]).says(7, &["missing.jsonl is not there"]);
    world.write("folder/readme.txt", "no session");
    let ran = world.run(&["import", "folder"]);
    assert_eq!(ran.code, 0);
    assert!(ran.text().contains("1 file of other kinds left alone"));
    // With a good file beside them, the good file is recorded.
    world
        .run(&["import", "empty.jsonl", "session.jsonl", "missing.jsonl"])
        .says(8, &["empty.jsonl", "missing.jsonl"]);
    assert!(world.list().lines().count() > 200);
}

/// A refused file had a line for each of its messages and was in no count; one without such notes was told of once, and never again.
#[test]
fn a_refused_file_has_one_line_at_each_import() {
    let world = World::new();
    let sessions = "home/.claude/projects/-app";
    for folder in ["fixtures", sessions] {
        std::fs::create_dir_all(world.path(folder)).unwrap();
    }
    world.write("fixtures/roles.json", r#"[{"role":"user","wat":1},{"role":"assistant","wat":2}]"#);
    world.write("fixtures/title.jsonl", r#"{"type":"summary","summary":"a title","leafUuid":"l"}"#);
    world.write(&format!("{sessions}/5e551011-0000-4000-8000-000000000001.jsonl"), [0; 5000]);
    world.write(&format!("{sessions}/5e551011-0000-4000-8000-000000000002.jsonl"), "\u{feff}\r\n");
    for _ in 0..2 {
        let ran = world.run(&["import", "fixtures", "session.jsonl"]);
        ran.says(8, &["2 files are refused (see the warnings above)"]);
        let warnings: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("warning: ")).collect();
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("roles.json: nothing in it was understood"), "{warnings:?}");
        assert!(warnings[0].contains("(line 1: ") && warnings[0].contains(" more)"), "{warnings:?}");
        assert!(warnings[1].contains("title.jsonl: nothing in it was understood"), "{warnings:?}");
    }
    // Zeros that a power cut leaves in the folder of a host are no alarm.
    let ran = world.run(&["import", sessions]);
    assert!(
        ran.code == 0 && ran.text().contains("2 files of other kinds left alone"),
        "{}{}",
        ran.text(),
        ran.err
    );
}

#[test]
fn damage_inside_a_session_costs_only_what_is_damaged() {
    let good = World::new();
    good.run(&["import", "session.jsonl"]).ok();
    let session = std::fs::read(good.path("session.jsonl")).unwrap();
    let lines: Vec<&[u8]> = session.split_inclusive(|byte| *byte == b'\n').collect();
    let deep = nested(1_000_000).into_bytes();
    let long = format!(
        "{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{}\"}}}}",
        "x".repeat(1 << 20)
    )
    .into_bytes();
    for (bad, code, words) in [
        (deep.as_slice(), 8, "nested more than 128"),
        (b"{\"type\":\"user\",\"message\":\"\xff\xfe\"}", 8, "not UTF-8"),
        (b"{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"\\ud800\"}}", 0, ""),
        (long.as_slice(), 0, ""),
    ] {
        let world = World::new();
        let mut bytes = lines[..20].concat();
        bytes.extend(bad);
        bytes.extend(b"\n");
        bytes.extend(lines[20..].concat());
        world.write("session.jsonl", bytes);
        let ran = world.run(&["import", "session.jsonl"]);
        ran.says(code, &[words]);
        if code != 0 {
            ran.says(code, &["session.jsonl:21"]);
        }
        assert!(world.list().lines().count() >= good.list().lines().count(), "{words}");
        world.assert_sound();
    }
}

#[test]
fn a_session_that_is_still_being_written_is_continued_by_the_next_import() {
    let whole = World::new();
    whole.run(&["import", "session.jsonl"]).ok();
    let session = std::fs::read(whole.path("session.jsonl")).unwrap();
    let world = World::new();
    world.write("session.jsonl", &session[..session.len() / 3]);
    world.run(&["import", "session.jsonl"]).says(8, &["the last record is not complete yet"]);
    world.write("session.jsonl", &session);
    world.run(&["import", "session.jsonl"]).ok();
    // Figures of a message that was not whole are told again at the end, so seqs differ; texts and their order do not.
    let texts = |world: &World| -> Vec<String> {
        world.list().lines().map(|line| line.split_once('\t').unwrap().1.to_owned()).collect()
    };
    assert_eq!(texts(&world), texts(&whole));
    let again = world.run(&["import", "session.jsonl"]).ok();
    assert!(again.contains("nothing new"), "{again}");
}

#[test]
fn a_store_of_a_newer_format_is_left_alone() {
    let world = World::fed();
    let path = world.path("store/acpdb.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("\"acpdb\": 3", "\"acpdb\": 4");
    let (checked, _) = text.rsplit_once(",\n  \"check\"").unwrap();
    let check = blake3::hash(checked.as_bytes()).to_hex();
    std::fs::write(&path, format!("{checked},\n  \"check\": \"{check}\"\n}}\n")).unwrap();
    let before = crate::world::contents(&world.path("store"));
    for command in [
        &["log", "--texts"] as &[&str],
        &["append", "--stdin"],
        &["import", "session.jsonl"],
        &["verify"],
        &["info"],
    ] {
        world.run_with(command, message("x")).says(1, &["format version 4", "up to 3", "acpdb"]);
    }
    assert!(crate::world::contents(&world.path("store")) == before, "a newer store was changed");
    // Without a fitting check it is no newer store but a damaged one, and still readable.
    std::fs::write(&path, text).unwrap();
    world.run(&["log", "--texts"]).says(0, &["damaged"]);
    world.run(&["verify"]).says(3, &[]);
    world.run_with(&["append", "--stdin"], message("x")).says(3, &["damaged"]);
}

/// Mounts something for the time of a test, as the superuser can.
struct Mount(std::path::PathBuf);

impl Mount {
    fn new(arguments: &[&str], place: &Path) -> Self {
        let done = Command::new("mount").args(arguments).arg(place).output().unwrap();
        assert!(done.status.success(), "mount: {}", String::from_utf8_lossy(&done.stderr).trim());
        Self(place.to_owned())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
#[ignore = "mounts a disk: needs the superuser"]
fn a_read_only_disk_can_be_read_and_not_written() {
    let world = World::fed();
    let (list, place) = (world.list(), world.path("store"));
    let bind = place.to_str().unwrap().to_owned();
    let _mount = Mount::new(&["--bind", &bind], &place);
    let _again = Mount::new(&["-o", "remount,ro,bind"], &place);
    assert_eq!(world.list(), list);
    for read in [
        &["sessions"] as &[&str],
        &["context", "s1"],
        &["history", "--chain", "call-read-1"],
        &["stats"],
        &["verify"],
        &["info"],
    ] {
        world.run(read).ok();
    }
    for write in [
        &["append", "--stdin"] as &[&str],
        &["import", "session.jsonl"],
        &["doctor", "reindex"],
        &["policy", "set", "dcp"],
    ] {
        world.run_with(write, message("x")).says(1, &["store", "reading only"]);
    }
    world
        .run_with(&["append", "--stdin", "--db", "store/new"], message("x"))
        .says(1, &["store/new", "Read-only"]);
}

#[test]
#[ignore = "needs a user whom permissions bind"]
fn a_folder_without_permission_is_said_to_be_that() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::fed();
    let list = world.list();
    let allow = |mode| {
        for (path, _) in crate::world::contents(&world.path("store")) {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o666)).unwrap();
        }
        std::fs::set_permissions(world.path("store"), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(0o500);
    assert!(std::fs::write(world.path("store/probe"), "").is_err(), "permissions do not bind this user");
    let read = world.run(&["log", "--texts"]);
    let write = world.run_with(&["append", "--stdin"], message("x"));
    allow(0o700);
    assert_eq!(read.ok(), list);
    write.says(1, &["store"]);
    assert_eq!(world.list(), list);
}

#[test]
#[ignore = "mounts a disk: needs the superuser"]
fn a_full_disk_costs_only_what_did_not_fit() {
    let world = World::new();
    let place = world.path("small");
    std::fs::create_dir(&place).unwrap();
    let _mount = Mount::new(&["-t", "tmpfs", "-o", "size=400k", "none"], &place);
    let db = ["--db", "small/store"];
    let run = |arguments: &[&str], input: &str| world.run_with(&[&db, arguments].concat(), input);
    let lines: String = (0..200).map(|n| message(&format!("{n} {}", "x".repeat(5000)))).collect();
    let ran = run(&["append", "--stdin", "--ack"], &lines);
    let acked = ran.text().lines().count();
    ran.says(
        1,
        &[&format!("line {} was not recorded", acked + 1), "no space left", "small/store", "free some"],
    );
    assert!(acked > 10, "{acked}");
    let list = run(&["log", "--texts"], "").ok();
    assert_eq!(list.lines().count(), acked);
    run(&["import", "session.jsonl"], "").says(1, &["no space left"]);
    for read in [&["context", "s1"] as &[&str], &["history"], &["stats"], &["verify", "--deep"]] {
        run(read, "").ok();
    }
    assert_eq!(run(&["log", "--texts"], "").ok(), list);
    // With space again, it goes on.
    let _larger = Mount::new(&["-o", "remount,size=20m"], &place);
    assert_eq!(run(&["append", "--stdin", "--ack"], &lines).ok().lines().count(), 200);
    run(&["import", "session.jsonl"], "").ok();
    run(&["verify", "--deep"], "").ok();
    assert!(run(&["log", "--texts"], "").ok().starts_with(&list));
}

#[test]
fn nobody_who_reads_what_is_said_is_no_panic() {
    let world = World::fed();
    for (redirection, code) in [("2>/dev/full", 7), ("2>&-", 7)] {
        let mut command = Command::new("sh");
        let program = acpdb_tests::binary::binary().unwrap();
        command
            .args(["-c", &format!("exec {:?} --db nowhere list {redirection}", program.to_str().unwrap())]);
        assert_eq!(
            command.current_dir(world.path(".")).status().unwrap().code(),
            Some(code),
            "{redirection}"
        );
    }
    let mut command = Command::new("sh");
    let program = acpdb_tests::binary::binary().unwrap();
    command.args(["-c", &format!("exec {:?} --db store log >/dev/full", program.to_str().unwrap())]);
    let done = command.current_dir(world.path(".")).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&done.stderr).contains("cannot write standard output"));
}

/// Help that was not written ended with exit code 0, as if it had been read.
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let world = World::new();
    let program = acpdb_tests::binary::binary().unwrap();
    for words in ["--help", "--version", "help import", "append --help"] {
        for (redirection, code) in [(">/dev/full", 1), ("| true", 0)] {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{:?} {words} {redirection}", program.to_str().unwrap())]);
            let done = command.current_dir(world.path(".")).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert_eq!(done.status.code(), Some(code), "{words} {redirection}: {said}");
            assert_eq!(
                said.contains("cannot write standard output"),
                code == 1,
                "{words} {redirection}: {said}"
            );
        }
    }
}

/// Where the working folder is gone, a command read the user's own store, and one that records wrote into it.
#[test]
fn a_working_folder_that_is_gone_is_told() {
    let world = World::new();
    let program = acpdb_tests::binary::binary().unwrap();
    let mut command = Command::new("sh");
    let script =
        format!("mkdir gone && cd gone && rmdir ../gone && exec {:?} sessions", program.to_str().unwrap());
    command.args(["-c", &script]).env("HOME", world.path(".")).env_remove("ACPDB_PATH");
    let done = command.current_dir(world.path(".")).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot find the working folder") && said.contains("--db"), "{said}");
}

/// `doctor` found nothing set aside where it could not look, and `verify` knew no key where it could not read the keys.
#[test]
fn folders_that_cannot_be_read_are_no_empty_ones() {
    let world = World::fed();
    std::fs::write(world.path("store/quarantine"), "no folder").unwrap();
    let ran = world.run(&["doctor"]);
    assert!(ran.text().contains("what recovery set aside cannot be read"), "{} {}", ran.text(), ran.err);
}

/// The intended file is named where it can be guessed: a store's path that is a file was a failure to list a folder in it,
/// and a file by another name than its whole path had nothing near.
#[test]
fn near_files_and_files_in_place_of_stores_are_named() {
    let world = World::fed();
    world
        .run(&["history", "--file", "order.rs"])
        .says(7, &["no call names the file", "did you mean /w/orders.rs?"]);
    world.run(&["history", "--file", "readme", "--session", "s1"]).says(7, &["no call names the file"]);
    let ran = world.run(&["sessions", "--db", "session.jsonl"]);
    ran.says(7, &["session.jsonl is a file, and a store is a folder"]);
    world
        .run(&["simulate", "--all", "--host", "no-such"])
        .says(7, &["no such session", "hint: acpdb sessions"]);
    // A tool's name by the name that most hosts give it.
    let line = r#"{"session":"n","tool":{"id":"c1","name":"read","params":{"filePath":"/a"},"output":"x"}}"#;
    world.run_with(&["append", "--stdin"], line).ok();
    assert!(world.run(&["history", "--session", "n", "tool:read"]).ok().contains("/a"));
}

/// A message of so many parts that no event holds them ended the whole import: the others of its file, and of all files behind it.
#[test]
fn what_no_event_holds_ends_neither_its_file_nor_the_import() {
    let id = |number: u32| format!("{number}1111111-1111-4111-8111-111111111111");
    let record = |session: &str, uuid: &str, content: &str| {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":null,"isSidechain":false,"sessionId":"{session}","cwd":"/p","message":{{"role":"user","content":{content}}}}}"#
        ) + "\n"
    };
    let parts: Vec<String> = (0..12_000).map(|at| format!(r#"{{"type":"text","text":"a{at}"}}"#)).collect();
    let many = format!("[{}]", parts.join(","));
    // An id in an event has no bound either.
    let named =
        format!(r#"[{{"type":"tool_use","id":"{}","name":"Bash","input":{{}}}}]"#, "i".repeat(2 << 20));
    for (content, words) in [(many, "12000 parts"), (named, "more than an event holds")] {
        let world = World::new();
        std::fs::create_dir(world.path("folder")).unwrap();
        for number in 1..=3 {
            let session = id(number);
            let middle = if number == 2 { record(&session, "u2", &content) } else { String::new() };
            let middle = if content.contains("tool_use") {
                middle.replace(r#""type":"user","uuid""#, r#""type":"assistant","uuid""#)
            } else {
                middle
            };
            let lines = record(&session, "u1", "\"first\"") + &middle + &record(&session, "u3", "\"last\"");
            world.write(&format!("folder/{session}.jsonl"), lines);
        }
        let ran = world.run(&["import", "folder"]);
        ran.says(8, &[&format!("{}.jsonl:2", id(2)), words]);
        let listed = world.list();
        for word in ["first", "last"] {
            assert_eq!(listed.lines().filter(|line| line.ends_with(word)).count(), 3, "{listed}");
        }
        world.assert_sound();
        world.run(&["import", "folder"]).says(8, &[words]);
        assert_eq!(world.list(), listed);
    }
}

/// A request longer than the limit was said to be no JSON, which it was up to there.
#[test]
fn a_request_of_too_much_is_said_to_be_that() {
    let world = World::fed();
    let rows = "[\"x\"],".repeat(1_000_000);
    let long = "x".repeat(16 << 20);
    for (targets, words) in
        [(rows + "[]", "2000004 elements and members"), (format!("[\"{long}\"]"), "longer than 16777216")]
    {
        let request = format!("{{\"action\":\"discard\",\"targets\":[{targets}]}}");
        world.run_with(&["context", "discard", "--session", "s1", "--stdin"], request).says(2, &[words]);
    }
    world.assert_sound();
}

/// One folder that could not be read kept all others below the same root from being recorded, and was not named.
#[test]
#[ignore = "needs a user whom permissions bind"]
fn a_folder_without_permission_is_named_and_the_rest_is_recorded() {
    let world = World::new();
    let typed = |line: &str| world.shell(line);
    typed("mkdir -p p/a p/b; cp session.jsonl p/a; cp session.jsonl p/c.jsonl; chmod 0 p/b p/c.jsonl");
    let first = typed("acpdb import p");
    let followed = typed(
        "export ACPDB_PATH=followed; acpdb import --follow p >out 2>err & \
         for n in $(seq 600); do grep -q b: err && grep -q c.jsonl: err && grep -q events out && break; sleep .1; done; \
         kill -s INT $!; wait $!; cat err >&2; exit 0",
    );
    let places = typed(
        "mkdir -p home/.claude/projects; chmod 700 p/b; mv p/a p/b home/.claude/projects; chmod 0 home/.claude/projects/b; \
         export ACPDB_PATH=places; acpdb import",
    );
    typed("chmod 700 home/.claude/projects/b");
    first.says(8, &["p/b: cannot be read", "p/c.jsonl: cannot be read", "the rest is recorded"]);
    followed.says(0, &["p/b: cannot be read", "p/c.jsonl: cannot be read"]);
    places.says(8, &["projects/b: cannot be read", "the rest is recorded"]);
    for store in ["store", "followed", "places"] {
        assert!(world.run(&["--db", store, "log", "--texts"]).ok().lines().count() > 200, "{store}");
    }
}

/// A folder with a link to a session was said to hold no files.
#[test]
fn sessions_behind_links_are_recorded() {
    let world = World::new();
    world
        .shell("mkdir -p links real && mv session.jsonl real && ln -s ../real links/to && ln -s .. links/up");
    let ran = world.run(&["import", "links", "--links"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.text().contains("1 file: "), "{}", ran.text());
    assert!(world.list().lines().count() > 200);
}
