//! `import --follow`: a host's writes are in the store soon after, whatever happens to its files; and it ends when it is told.
//!
//! Real files, the real program. Each step waits until the store has the written text; a wait that lasts a minute has failed.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::world::World;

/// No step takes so long, on any machine that is worth testing on.
const WAIT_MAX: Duration = Duration::from_secs(60);
const SESSION: &str = "c0ffee00-0000-4000-8000-000000000001";
const OTHER: &str = "c0ffee00-0000-4000-8000-000000000002";

/// A follower of the usual places below a home.
struct Follower {
    world: World,
    child: Child,
}

impl Follower {
    fn start(world: World) -> Self {
        let mut command = world.command();
        command.args(["import", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        Self { world, child }
    }

    /// Waits until the store's texts are these, in any order.
    #[track_caller]
    fn has(&self, texts: &[&str]) {
        let start = Instant::now();
        loop {
            let mut found = bodies(&self.world);
            let mut expected: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            found.sort();
            expected.sort();
            if found == expected {
                return;
            }
            assert!(start.elapsed() < WAIT_MAX, "after {WAIT_MAX:?} there is {found:?}, not {expected:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it by a signal: returns its exit code and its messages.
    fn stop(mut self, signal: &str) -> (World, i32, String) {
        let told = self.world.shell(&format!("kill -s {signal} {}", self.child.id()));
        assert_eq!(told.code, 0, "{}", told.err);
        let status = self.child.wait().unwrap();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut said).unwrap();
        let world = std::mem::replace(&mut self.world, World::new());
        (world, status.code().unwrap_or(-1), said)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The texts of messages in the store.
fn bodies(world: &World) -> Vec<String> {
    if !world.path("store/acpdb.json").exists() {
        return Vec::new();
    }
    let ran = world.run(&["log", "--texts"]);
    let text = ran.text();
    text.lines().filter_map(|line| line.split_once('\t')).map(|(_, body)| body.to_owned()).collect()
}

fn project(world: &World) -> PathBuf {
    world.path("home/.claude/projects/shop")
}

/// A prompt as Claude Code records it.
fn line(session: &str, number: u32, text: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"{session}-{number}\",\"parentUuid\":null,\"sessionId\":\"{session}\",\"cwd\":\"/w\",\
         \"version\":\"2.1.330\",\"timestamp\":\"2026-01-31T10:00:{number:02}.000Z\",\
         \"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

fn file(world: &World, session: &str) -> PathBuf {
    project(world).join(format!("{session}.jsonl"))
}

fn add(path: PathBuf, bytes: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all(bytes.as_bytes()).unwrap();
}

/// A world with one session of one prompt.
fn begun() -> World {
    let world = World::new();
    std::fs::create_dir_all(project(&world)).unwrap();
    add(file(&world, SESSION), &line(SESSION, 1, "one"));
    world
}

#[test]
fn what_is_added_to_a_file_is_recorded_and_a_half_line_waits_for_its_end() {
    let follower = Follower::start(begun());
    follower.has(&["one"]);
    add(file(&follower.world, SESSION), &line(SESSION, 2, "two"));
    follower.has(&["one", "two"]);
    let whole = line(SESSION, 3, "three");
    let (start, end) = whole.split_at(whole.len() / 2);
    add(file(&follower.world, SESSION), start);
    // A second file tells that the first half has been seen.
    add(file(&follower.world, OTHER), &line(OTHER, 1, "other"));
    follower.has(&["one", "two", "other"]);
    add(file(&follower.world, SESSION), end);
    follower.has(&["one", "two", "three", "other"]);
    let (world, code, said) = follower.stop("TERM");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("stopped") && !said.contains("warning"), "{said}");
    world.assert_sound();
}

/// A file without a line end was read whole to see whether its first line is complete: nothing else was followed meanwhile.
#[test]
fn a_first_line_of_many_gigabytes_keeps_nobody_waiting() {
    let world = begun();
    // A file of zeros, none of them on the disk.
    File::create(file(&world, OTHER)).unwrap().set_len(1 << 40).unwrap();
    let follower = Follower::start(world);
    follower.has(&["one"]);
    add(file(&follower.world, SESSION), &line(SESSION, 2, "two"));
    follower.has(&["one", "two"]);
    let (_, code, said) = follower.stop("TERM");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(OTHER) && said.contains("format is not known"), "{said}");
}

#[test]
fn a_clock_that_jumps_loses_nothing_and_tells_nothing_twice() {
    let mut world = begun();
    let mut texts = vec!["one"];
    // Times of files as they are after the clock was set back, set forward, and set back again.
    for (number, (ahead, text)) in [(2, (true, "two")), (3, (false, "three")), (4, (true, "four"))] {
        let hour = Duration::from_secs(60 * 60);
        let now = std::fs::metadata(world.path("home")).unwrap().modified().unwrap();
        let time = if ahead { now + hour } else { now - 2 * hour };
        let set_time = |world: &World| {
            File::options().append(true).open(file(world, SESSION)).unwrap().set_modified(time).unwrap();
        };
        set_time(&world);
        let follower = Follower::start(world);
        follower.has(&texts);
        add(file(&follower.world, SESSION), &line(SESSION, number, text));
        texts.push(text);
        follower.has(&texts);
        File::options()
            .append(true)
            .open(file(&follower.world, SESSION))
            .unwrap()
            .set_modified(time)
            .unwrap();
        let (stopped, code, said) = follower.stop("TERM");
        assert_eq!((code, said.contains("warning")), (0, false), "{said}");
        world = stopped;
    }
    world.assert_sound();
}

#[test]
fn a_file_that_is_cut_replaced_or_put_in_place_of_another_is_read_anew() {
    let follower = Follower::start(begun());
    let path = file(&follower.world, SESSION);
    follower.has(&["one"]);
    // Cut to nothing, and longer afterwards than it was.
    std::fs::write(&path, line(SESSION, 2, "two, which is a longer text than that of before")).unwrap();
    let two = "two, which is a longer text than that of before";
    follower.has(&["one", two]);
    // Another file is moved to its place.
    let beside = path.with_extension("tmp");
    std::fs::write(&beside, line(SESSION, 3, "three")).unwrap();
    std::fs::rename(&beside, &path).unwrap();
    follower.has(&["one", two, "three"]);
    // It goes, and comes again.
    std::fs::remove_file(&path).unwrap();
    add(file(&follower.world, OTHER), &line(OTHER, 1, "other"));
    follower.has(&["one", two, "three", "other"]);
    add(path.clone(), &line(SESSION, 4, "four"));
    follower.has(&["one", two, "three", "other", "four"]);
    let (world, code, said) = follower.stop("INT");
    assert_eq!(code, 0, "{said}");
    world.assert_sound();
}

#[test]
fn new_folders_and_packed_files_are_found_and_what_is_known_is_not_recorded_twice() {
    let follower = Follower::start(begun());
    follower.has(&["one"]);
    let folder = follower.world.path("home/.claude/projects/late/deep");
    std::fs::create_dir_all(&folder).unwrap();
    add(folder.join(format!("{OTHER}.jsonl")), &line(OTHER, 1, "in a new folder"));
    follower.has(&["one", "in a new folder"]);
    let (world, code, said) = follower.stop("TERM");
    assert_eq!(code, 0, "{said}");
    // A host packs old sessions.
    let sessions = world.path("home/.codex/sessions/2026/01/31");
    std::fs::create_dir_all(&sessions).unwrap();
    let name = "rollout-2026-01-31T10-00-00-c0ffee00-0000-4000-8000-000000000003.jsonl";
    let meta = r#"{"timestamp":"2026-01-31T10:00:00Z","type":"session_meta","payload":{"id":"c0ffee00-0000-4000-8000-000000000003","cwd":"/w"}}"#;
    let item = r#"{"timestamp":"2026-01-31T10:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"asked of codex"}]}}"#;
    let text = format!("{meta}\n{item}\n");
    std::fs::write(sessions.join(name), &text).unwrap();
    let follower = Follower::start(world);
    follower.has(&["one", "in a new folder", "asked of codex"]);
    let packed = zstd::encode_all(text.as_bytes(), 0).unwrap();
    std::fs::write(sessions.join(format!("{name}.zst")), packed).unwrap();
    std::fs::remove_file(sessions.join(name)).unwrap();
    add(file(&follower.world, SESSION), &line(SESSION, 2, "two"));
    follower.has(&["one", "in a new folder", "asked of codex", "two"]);
    let (world, code, said) = follower.stop("TERM");
    assert_eq!(code, 0, "{said}");
    world.assert_sound();
}

/// The file is read as it grows: many small additions to a large file cost a small part of reading it each time.
#[cfg(target_os = "linux")]
#[test]
fn a_large_file_that_grows_is_not_read_again() {
    let world = begun();
    let path = file(&world, SESSION);
    let long = "x".repeat(1_000_000);
    add(path.clone(), &line(SESSION, 2, &long));
    let follower = Follower::start(world);
    follower.has(&["one", &long]);
    let read = || {
        let counts = std::fs::read_to_string(format!("/proc/{}/io", follower.child.id())).unwrap();
        let count = counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    let before = read();
    let mut texts = vec!["one".to_owned(), long];
    for number in 3..23 {
        texts.push(format!("addition {number}"));
        add(path.clone(), &line(SESSION, number, texts.last().unwrap()));
        follower.has(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let added = read() - before;
    assert!(added < 1_000_000, "{added} bytes were read for 20 additions");
    let (world, code, said) = follower.stop("TERM");
    assert_eq!(code, 0, "{said}");
    // The order of the recorded events is that of an import of the whole file.
    let fresh = World::new();
    std::fs::create_dir_all(project(&fresh)).unwrap();
    std::fs::copy(file(&world, SESSION), file(&fresh, SESSION)).unwrap();
    fresh.run(&["import", "--host", "claude-code"]).ok();
    assert_eq!(bodies(&world), bodies(&fresh));
}

/// Gemini CLI writes a reply anew as it goes on: the store has it as it was said last, and the file is read on.
#[cfg(target_os = "linux")]
#[test]
fn a_log_that_tells_messages_anew_is_read_on() {
    let world = World::new();
    let folder = world.path("home/.gemini/tmp/shop/chats");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("session-2026-01-31T10-00-c0ffee00.jsonl");
    let message = |id: &str, kind: &str, text: &str| {
        format!(
            "{{\"id\":\"{id}\",\"timestamp\":\"2026-01-31T10:00:01.000Z\",\"type\":\"{kind}\",\"content\":[{{\"text\":\"{text}\"}}]}}\n"
        )
    };
    let header = format!(
        "{{\"sessionId\":\"{SESSION}\",\"projectHash\":\"shop\",\"startTime\":\"2026-01-31T10:00:00.000Z\",\"lastUpdated\":\"2026-01-31T10:00:00.000Z\",\"kind\":\"main\"}}\n"
    );
    let long = "x".repeat(1_000_000);
    add(path.clone(), &(header + &message("u1", "user", &long)));
    let follower = Follower::start(world);
    follower.has(&[&long]);
    let read = || {
        let counts = std::fs::read_to_string(format!("/proc/{}/io", follower.child.id())).unwrap();
        let count = counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    let before = read();
    let mut versions = vec![long];
    for number in 0..10 {
        let text = format!("said so far {number}");
        add(path.clone(), &message("m1", "gemini", &text));
        versions.push(text);
        follower.has(&versions.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let added = read() - before;
    assert!(added < 1_000_000, "{added} bytes were read for 10 additions");
    let (world, code, said) = follower.stop("TERM");
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("warning"), "{said}");
    world.assert_sound();
    // Known messages are not recorded again. All versions are kept, and the model sees the last one.
    world.run(&["import", "--host", "gemini-cli"]).ok();
    let mut kept = bodies(&world);
    kept.sort();
    versions.sort();
    assert_eq!(kept, versions);
    let context = world.run(&["context"]).text();
    let seen: Vec<&str> = context.lines().filter(|line| line.contains("said so far")).collect();
    assert!(matches!(seen[..], [line] if line.contains("said so far 9")), "{seen:?}");
}

#[test]
fn a_host_can_be_chosen_and_one_without_a_place_is_refused() {
    let world = begun();
    world.run(&["import", "--host", "codex"]).says(7, &["no sessions were found"]);
    world.run(&["import", "--host", "swe-agent"]).says(2, &["swe-agent has no usual place"]);
    world
        .run(&["import", "--follow", "nowhere"])
        .says(1, &["cannot follow nowhere", "hint: make the folder first"]);
    world.run(&["import", "--host", "claude-code,codex"]).ok();
    assert_eq!(bodies(&world), ["one"]);
}

/// That a record was left out was told when the reading of the file ended, an hour after its last change.
#[test]
fn a_record_of_too_much_is_told_at_once_and_only_once() {
    use std::io::BufRead as _;
    let many = format!("{{\"type\":\"x\",\"list\":[{}1]}}\n", "1,".repeat(300));
    for (limit, record, told) in [
        ("record=1k", line(SESSION, 2, &"long".repeat(300)), "left out: a record of "),
        ("elements=100", many, "left out: a record of 303 elements and more, over 100; --limits elements=N"),
    ] {
        let world = begun();
        add(file(&world, SESSION), &record);
        add(file(&world, SESSION), &line(SESSION, 3, "three"));
        let mut command = world.command();
        command.args(["import", "--follow", "--limits", limit]).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut follower = Follower { child: command.spawn().unwrap(), world };
        let mut said = std::io::BufReader::new(follower.child.stderr.take().unwrap()).lines();
        let first = said.find(|line| line.as_ref().unwrap().contains("left out")).unwrap().unwrap();
        assert!(first.contains(&format!("000001.jsonl:2: {told}")), "{first}");
        follower.has(&["one", "three"]);
        follower.world.shell(&format!("kill -s INT {}", follower.child.id()));
        let rest: Vec<String> = said.map(Result::unwrap).collect();
        assert!(!rest.iter().any(|line| line.contains("left out")), "{rest:?}");
    }
}
