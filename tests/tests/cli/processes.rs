//! Several processes on one store, an index that is gone, other terminals, and readers that go away.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use crate::world::{World, contents, finish};

const READS: &[&[&str]] = &[
    &["sessions", "--json"],
    &["context", "s1", "--json"],
    &["context", "s1"],
    &["history", "--session", "s1", "--json"],
    &["history", "--chain", "call-read-1"],
    &["history", "--file", "/w/orders.rs"],
    &["explain", "call-read-1", "--json"],
    &["stats", "--json"],
    &["log", "--json"],
    &["log", "--texts"],
    &["show", "#7"],
    &["sessions", "--at", "#12"],
    &["context", "s1", "--at", "t3"],
];

/// A store with more events than are answered without an index.
fn large() -> World {
    let world = World::fed();
    let event =
        |n: usize| format!("{{\"turn\":true,\"message\":{{\"role\":\"user\",\"text\":\"note {n}\"}}}}");
    let events: Vec<String> = (0..4000).map(event).collect();
    let line = format!("{{\"session\":\"long\",\"events\":[{}]}}", events.join(","));
    world.run_with(&["append", "--stdin"], line).ok();
    world
}

#[test]
fn an_index_changes_no_answer_be_it_there_gone_or_damaged() {
    let world = large();
    world.run(&["doctor", "reindex"]).ok();
    let index = world.path("store/index.redb");
    assert!(index.is_file(), "the store is large enough for an index");
    // Confidence decays while the test runs.
    let decays = regex::Regex::new("\"confidence\":[0-9.]+").unwrap();
    let answer = |read: &&[&str]| decays.replace_all(&world.run(read).ok(), "").into_owned();
    let answers = || READS.iter().map(answer).collect::<Vec<_>>();
    let with = answers();
    std::fs::remove_file(&index).unwrap();
    assert!(answers() == with, "an answer differs without the index");
    std::fs::write(&index, vec![0x5a; 70_000]).unwrap();
    assert!(answers() == with, "an answer differs with a damaged index");
    world.assert_sound();
}

#[test]
fn a_second_process_appends_while_a_first_one_has_the_store() {
    let world = World::new();
    let mut first = world.command();
    first.args(["append", "--stdin", "--ack"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut first = first.spawn().unwrap();
    let mut input = first.stdin.take().unwrap();
    let mut acks = BufReader::new(first.stdout.take().unwrap()).lines();
    let line = |text: &str| {
        format!("{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"{text}\"}}}}\n")
    };
    let mut seqs = Vec::new();
    for round in 0..3 {
        input.write_all(line(&format!("first {round}")).as_bytes()).unwrap();
        seqs.push(acks.next().unwrap().unwrap().parse::<u64>().unwrap());
        let second = world.run_with(&["append", "--stdin", "--ack"], line(&format!("second {round}"))).ok();
        seqs.push(second.trim().parse().unwrap());
    }
    assert!(seqs.is_sorted_by(|left, right| left < right), "{seqs:?}");
    let listed: Vec<String> = world.list().lines().map(str::to_owned).collect();
    let told = ["first 0", "second 0", "first 1", "second 1", "first 2", "second 2"];
    let expected: Vec<String> = seqs.iter().zip(told).map(|(seq, text)| format!("{seq}\t{text}")).collect();
    assert_eq!(listed, expected, "while the first one still has the store");
    drop(input);
    assert!(first.wait().unwrap().success());
    world.assert_sound();
}

/// Six at once, each in its own session and all in one: each message is at its acknowledged seq, in its order, once.
#[test]
fn many_processes_at_once_lose_double_and_reorder_nothing() {
    const PROCESS_COUNT: usize = 6;
    const LINE_COUNT: usize = 15;
    let world = World::new();
    let text = |process: usize, number: usize| format!("process {process} line {number}");
    let children: Vec<_> = (0..PROCESS_COUNT)
        .map(|process| {
            let mut command = world.command();
            command.args(["append", "--stdin", "--ack"]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut input = child.stdin.take().unwrap();
            for number in 0..LINE_COUNT {
                let session = if number % 2 == 0 { "shared".to_owned() } else { format!("own-{process}") };
                let text = text(process, number);
                writeln!(
                    input,
                    "{{\"session\":\"{session}\",\"message\":{{\"role\":\"user\",\"text\":\"{text}\"}}}}"
                )
                .unwrap();
            }
            child
        })
        .collect();
    let mut expected = Vec::new();
    for (process, child) in children.into_iter().enumerate() {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let acks: Vec<u64> =
            String::from_utf8(done.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(acks.len(), LINE_COUNT);
        assert!(acks.is_sorted_by(|left, right| left < right), "{acks:?}");
        expected.extend(acks.into_iter().enumerate().map(|(number, seq)| (seq, text(process, number))));
    }
    expected.sort_unstable();
    let expected: Vec<String> = expected.iter().map(|(seq, text)| format!("{seq}\t{text}")).collect();
    assert_eq!(world.list().lines().collect::<Vec<_>>(), expected);
    world.assert_sound();
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_it_acknowledged() {
    let world = World::new();
    let mut acked = 0;
    for round in 0..4 {
        let mut command = world.command();
        command.args(["append", "--stdin", "--ack"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
        let line =
            format!("{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"round {round}\"}}}}\n");
        // All lines are sent, and the process dies somewhere between them.
        input.write_all(line.repeat(40).as_bytes()).unwrap();
        for _ in 0..5 * (round + 1) {
            acks.next().unwrap().unwrap();
            acked += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        acked += acks.filter(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).count();
        world.assert_sound();
        let listed = world.list().lines().count();
        assert!(listed >= acked, "{acked} were acknowledged, {listed} are there");
        // Lines that were written and not acknowledged may be there too, whole.
        acked = listed;
    }
}

#[test]
fn an_import_that_is_killed_is_finished_by_the_next() {
    let whole = World::new();
    whole.run(&["import", "session.jsonl"]).ok();
    let world = World::new();
    let mut command = world.command();
    let mut child = command.args(["import", "session.jsonl"]).stdout(Stdio::null()).spawn().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    world.run(&["import", "session.jsonl"]).ok();
    world.assert_sound();
    assert_eq!(world.list(), whole.list());
}

#[test]
fn a_read_at_a_point_is_the_read_of_that_time() {
    let world = World::new();
    let lines: Vec<&str> = crate::FEED.lines().collect();
    for line in &lines[..5] {
        world.run_with(&["append", "--stdin"], line).ok();
    }
    let then = world.run(&["history", "--chain", "call-read-1", "--json"]).ok();
    let head = world.run(&["log", "--last", "1", "--json"]).ok();
    let head: serde_json::Value = serde_json::from_str(&head).unwrap();
    let at = format!("#{}", head["seq"]);
    let context = world.run(&["context", "s1", "--json"]).ok();
    for line in &lines[5..] {
        world.run_with(&["append", "--stdin"], line).ok();
    }
    assert_eq!(world.run(&["history", "--chain", "call-read-1", "--json", "--at", &at]).ok(), then);
    assert_eq!(world.run(&["context", "s1", "--json", "--at", &at]).ok(), context);
    assert_ne!(world.run(&["context", "s1", "--json"]).ok(), context);
}

#[test]
fn reads_change_nothing_in_the_folder() {
    let world = World::fed();
    let before = contents(&world.path("store"));
    for read in READS {
        world.run(read).ok();
    }
    let after = contents(&world.path("store"));
    // Files that signal to other processes may be touched; the log may not.
    let recorded = |files: &[(std::path::PathBuf, Vec<u8>)]| {
        let log = world.path("store/log");
        files.iter().filter(|(path, _)| path.starts_with(&log)).cloned().collect::<Vec<_>>()
    };
    assert!(recorded(&before) == recorded(&after));
}

#[test]
fn colours_come_when_they_are_asked_for_and_never_into_a_file() {
    let world = World::fed();
    let colours = |arguments: &[&str], no_color: bool| {
        let mut command = world.command();
        command.args(arguments);
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let ran = finish(command, b"");
        (ran.out.contains(&0x1b), ran.err.contains('\u{1b}'))
    };
    let context = ["context", "s1"];
    assert_eq!(colours(&context, false), (false, false));
    assert_eq!(colours(&context, true), (false, false));
    assert_eq!(colours(&["context", "s1", "--color", "never"], false), (false, false));
    assert_eq!(colours(&["context", "s1", "--color", "always"], false), (true, false));
    // Colours are on if they are asked for by name.
    assert_eq!(colours(&["context", "s1", "--color", "always"], true), (true, false));
    assert_eq!(colours(&["context", "s1", "--color", "always", "--json"], false), (false, false));
    assert_eq!(colours(&["context", "nowhere"], false), (false, false));
}

#[test]
fn quiet_leaves_only_data_and_errors() {
    let world = World::new();
    let ran = world.run(&["--quiet", "import", "session.jsonl"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let ran = world.run(&["sessions", "-q"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.text().contains("e38a074a"));
    world.run(&["-q", "context", "nowhere"]).says(7, &["error:", "nowhere"]);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let world = World::new();
    world.run(&["import", "session.jsonl"]).ok();
    for read in [
        &["log"] as &[&str],
        &["log", "--texts"],
        &["context", "e38a", "--full"],
        &["history", "--json"],
        &["demo"],
    ] {
        let mut command = world.command();
        let mut child = command
            .args(read)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Closed before a byte is read: as `| true` does.
        drop(child.stdout.take());
        let done = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{read:?}: {err}");
        assert!(!err.contains("error") && !err.contains("panicked"), "{read:?}: {err}");
    }
}

#[test]
fn any_width_of_the_terminal_will_do() {
    let world = World::fed();
    for columns in ["0", "1", "20", "40", "1000", "99999999999999999999", "wide", ""] {
        for read in READS.iter().copied().chain([&["verify"] as &[&str], &["todo", "history"], &["--help"]]) {
            let mut command = world.command();
            command.args(read).env("COLUMNS", columns);
            let ran = finish(command, b"");
            assert_eq!(ran.code, 0, "COLUMNS={columns} {read:?}: {}", ran.err);
        }
    }
}

/// One process follows while others write: it prints each event once and in order, and ends with its reader.
#[test]
fn a_process_that_follows_sees_every_event_once_and_in_order() {
    let world = World::new();
    let line = |number: usize| {
        format!(
            "{{\"session\":\"s{}\",\"message\":{{\"role\":\"user\",\"text\":\"note {number}\"}}}}\n",
            number % 3
        )
    };
    world.run_with(&["append", "--stdin"], line(0)).ok();
    let mut command = world.command();
    command.args(["log", "--follow", "--json", "seq:2.."]).stdout(Stdio::piped());
    let mut follower = command.spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let mut seen = vec![next()];
    for round in 0..5 {
        // Two processes at a time.
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let mut command = world.command();
                command.args(["append", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::null());
                let mut child = command.spawn().unwrap();
                let mut input = child.stdin.take().unwrap();
                (0..4)
                    .for_each(|n| input.write_all(line(round * 8 + writer * 4 + n + 1).as_bytes()).unwrap());
                child
            })
            .collect();
        for mut writer in writers {
            assert!(writer.wait().unwrap().success());
        }
        let head = world.run(&["log", "--json", "--last", "1"]).ok();
        let head: serde_json::Value = serde_json::from_str(head.trim()).unwrap();
        while seen.last().unwrap()["seq"] != head["seq"] {
            seen.push(next());
        }
    }
    follower.kill().unwrap();
    follower.wait().unwrap();
    let all = world.run(&["log", "--json", "seq:2.."]).ok();
    let all: Vec<serde_json::Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(seen, all);
    assert_eq!(seen.iter().filter(|event| event["kind"] == "message_recorded").count(), 41);
}

/// A user copies over the store, or cuts its tail, while processes append. A process that had mapped that file died of
/// SIGBUS; one that trusts it writes over acknowledged commits. No process dies now, and nothing acknowledged is lost.
#[test]
fn a_tail_that_is_cut_or_put_back_under_writers_costs_nothing_acknowledged() {
    for harm in ["cut", "put back", "half"] {
        let world = World::new();
        world
            .run_with(
                &["append", "--stdin"],
                "{\"session\":\"s0\",\"message\":{\"role\":\"user\",\"text\":\"first\"}}\n",
            )
            .ok();
        let tail = world.path("store/tail");
        let old = std::fs::read(&tail).unwrap();
        let mut writers = Vec::new();
        for writer in 0..3 {
            let mut command = world.command();
            command
                .args(["append", "--stdin", "--ack"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            // Three lines are always ahead of those that were acknowledged, so each harm comes while lines are written; and the last
            // lines come behind the last harm, however the threads run.
            let (grant, granted) = std::sync::mpsc::channel::<()>();
            let feed = std::thread::spawn(move || {
                for (number, ()) in granted.iter().enumerate() {
                    let line = format!(
                        "{{\"session\":\"s{writer}\",\"message\":{{\"role\":\"user\",\"text\":\"w{writer} {number}\"}}}}\n"
                    );
                    if input.write_all(line.as_bytes()).is_err() {
                        return;
                    }
                }
            });
            writers.push((writer, child, feed, BufReader::new(output).lines(), grant));
        }
        // A writer that has ended takes no more lines.
        let grant_three = |grant: &std::sync::mpsc::Sender<()>| (0..3).all(|_| grant.send(()).is_ok());
        for (.., grant) in &writers {
            grant_three(grant);
        }
        let mut acked: Vec<(u64, String)> = Vec::new();
        for _ in 0..40 {
            for (writer, _, _, acks, grant) in &mut writers {
                grant_three(grant);
                for _ in 0..3 {
                    if let Some(Ok(seq)) = acks.next() {
                        acked.push((seq.parse().unwrap(), format!("w{writer} ")));
                    }
                }
            }
            match harm {
                "cut" => drop(std::fs::File::create(&tail).unwrap()),
                "half" => std::fs::OpenOptions::new().write(true).open(&tail).unwrap().set_len(700).unwrap(),
                // As `cp` does: cut, then written.
                _ => std::fs::write(&tail, &old).unwrap(),
            }
        }
        for (.., grant) in &writers {
            grant_three(grant);
        }
        for (_, child, feed, acks, grant) in writers {
            drop(grant);
            acked.extend(acks.map_while(Result::ok).map(|seq| (seq.parse().unwrap(), "w".to_owned())));
            feed.join().unwrap();
            let done = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            let code =
                done.status.code().unwrap_or_else(|| panic!("{harm}: ended by a signal: {}", done.status));
            assert!(
                code == 0 || said.contains("reopen the store") || said.contains("run this again"),
                "{harm}: {code}: {said}"
            );
        }
        let list = world.list();
        for (seq, said) in &acked {
            let line = list.lines().find_map(|line| line.strip_prefix(&format!("{seq}\t")));
            assert!(line.is_some_and(|line| line.starts_with(said.as_str())), "{harm}: {seq}: {line:?}");
        }
        assert!(acked.len() > 100, "{harm}: {} were acknowledged", acked.len());
        world.assert_sound();
        world
            .run_with(
                &["append", "--stdin"],
                "{\"session\":\"s0\",\"message\":{\"role\":\"user\",\"text\":\"last\"}}\n",
            )
            .ok();
        world.assert_sound();
    }
}

/// Another file under the tail's name means another lock. A process that has the old file open gets an error, and
/// acknowledges nothing more.
#[test]
fn a_tail_that_is_replaced_or_removed_stops_writers_with_what_to_do() {
    for harm in ["replaced", "moved aside", "removed"] {
        let world = World::new();
        let mut command = world.command();
        command
            .args(["append", "--stdin", "--ack"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = |number: usize| {
            format!("{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"note {number}\"}}}}\n")
        };
        for number in 0..3 {
            input.write_all(line(number).as_bytes()).unwrap();
            acks.next().unwrap().unwrap();
        }
        let (tail, aside) = (world.path("store/tail"), world.path("aside"));
        match harm {
            "replaced" => {
                std::fs::copy(&tail, &aside).unwrap();
                std::fs::rename(&aside, &tail).unwrap();
            }
            "moved aside" => {
                std::fs::rename(&tail, &aside).unwrap();
                std::fs::copy(&aside, &tail).unwrap();
            }
            _ => std::fs::remove_file(&tail).unwrap(),
        }
        input.write_all(line(3).as_bytes()).unwrap();
        drop(input);
        assert!(acks.next().is_none(), "{harm}: it acknowledges no more");
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(1), "{harm}: {}: {said}", done.status);
        assert!(said.contains("tail") && said.contains("reopen the store"), "{harm}: {said}");
        world.run_with(&["append", "--stdin"], line(4)).ok();
        world.assert_sound();
        assert_eq!(world.list().lines().filter(|line| line.contains("note")).count(), 4, "{harm}");
    }
}
