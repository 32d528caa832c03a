//! A second reader of the log, in Python, which knows nothing but FORMAT: its sessions and texts are those of the library.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use acpdb_engine::event::Body;
use serde_json::Value;

use super::*;

/// The log of a store as one run of bytes, as `zstd -dcf log/*.seg` prints it.
fn log_of(store: &Path) -> Vec<u8> {
    let segments = std::fs::read_dir(store.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> =
        segments.filter(|path| path.extension().is_some_and(|it| it == "seg")).collect();
    segments.sort();
    let mut log = Vec::new();
    for segment in segments {
        let bytes = std::fs::read(segment).unwrap();
        if bytes.starts_with(b"acpdbseg") {
            log.extend(bytes);
        } else {
            log.extend(zstd::decode_all(bytes.as_slice()).unwrap());
        }
    }
    log
}

/// The reader's exit code, its lines, and its remarks.
fn told(log: &[u8], words: &[&str]) -> (i32, Vec<Value>, String) {
    let mut command = Command::new("python3");
    command.arg("-B").arg(root().join("docs/read_log.py")).args(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("python3 is needed here: {error}"));
    child.stdin.take().unwrap().write_all(log).unwrap();
    let done = child.wait_with_output().unwrap();
    let lines = String::from_utf8(done.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (done.status.code().unwrap(), lines, String::from_utf8(done.stderr).unwrap())
}

/// An event in a line: seq, session, kind, and its texts in order of their bytes.
fn line(seq: u64, session: &str, kind: &str, mut texts: Vec<String>) -> String {
    texts.retain(|text| !text.is_empty());
    texts.sort();
    format!("{seq} {session} {kind} {texts:?}\n")
}

fn as_the_reader_tells(lines: &[Value]) -> String {
    let texts = |it: &Value| {
        it["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let one = |it: &Value| {
        line(
            it["seq"].as_u64().unwrap(),
            it["session"].as_str().unwrap(),
            it["kind"].as_str().unwrap(),
            texts(it),
        )
    };
    lines.iter().map(one).collect()
}

fn as_the_library_tells(path: &Path) -> String {
    let store = Store::builder(path).read_only().open().unwrap();
    let mut all = String::new();
    for recorded in store.events(Seq(1), Seq::MAX).unwrap() {
        let recorded = recorded.unwrap();
        let name = store.stream_name(recorded.event.stream).unwrap();
        let stream = recorded.event.stream.to_string();
        let session = name.map_or(stream, |name| name.name);
        let text = |body: Body| match store.body(body.id(recorded.seq)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(acpdb_engine::Error::Erased { .. }) => "[erased]".to_owned(),
            Err(error) => panic!("{error}"),
        };
        let bodies = recorded.event.payload.bodies().into_iter();
        let texts = bodies.filter(|named| named.body.bytes > 0).map(|named| text(named.body)).collect();
        let kind = recorded.event.payload.label();
        all.push_str(&line(recorded.seq.get(), &session, kind, texts));
    }
    all
}

#[test]
#[ignore = "needs python3"]
fn a_stranger_reads_the_log_by_the_page_alone() {
    let world = World::fed();
    world.run(&["erase", "#6", "--reason", "asked for"]).ok();
    let fixtures = root().join("tests/fixtures");
    for store in [world.path("store"), fixtures.join("v3/store"), fixtures.join("v3-sealed/store")] {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("store");
        copy_folder(&store, &copy).unwrap();
        let (code, lines, said) = told(&log_of(&copy), &[]);
        assert_eq!((code, said.as_str()), (0, ""));
        let (found, wanted) = (as_the_reader_tells(&lines), as_the_library_tells(&copy));
        for (found, wanted) in found.lines().zip(wanted.lines()) {
            assert_eq!(found, wanted);
        }
        assert_eq!(found.lines().count(), wanted.lines().count());
        let (_, sessions, _) = told(&log_of(&copy), &["--sessions"]);
        let mut named = String::new();
        for session in sessions.iter().filter_map(|it| it.get("name")) {
            writeln!(named, "{}", session.as_str().unwrap()).unwrap();
        }
        for name in Store::builder(&copy).read_only().open().unwrap().stream_names().unwrap() {
            assert!(named.lines().any(|line| line == name.name), "{:?} is not in {named}", name.name);
        }
    }
}

/// A damaged frame is named and passed over; those behind it are read.
#[test]
#[ignore = "needs python3"]
fn the_second_reader_names_damage_and_goes_on() {
    let log = log_of(&root().join("tests/fixtures/v3/store"));
    let (_, whole, _) = told(&log, &[]);
    let frames: Vec<usize> =
        (0..log.len()).step_by(16).filter(|at| log[*at..].starts_with(b"ACPF")).collect();
    for (place, what) in [(20, "header"), (170, "content")] {
        let mut damaged = log.clone();
        damaged[frames[5] + place] ^= 1;
        let (code, lines, said) = told(&damaged, &[]);
        assert_eq!(code, 3, "{what}: {said}");
        assert!(said.contains("damage in bytes"), "{what}: {said}");
        assert!(lines.len() < whole.len() && lines.last() == whole.last(), "{what}: {said}");
    }
    let (code, lines, said) = told(&log[..frames[5] + 200], &[]);
    assert_eq!(code, 3, "{said}");
    assert!(!lines.is_empty() && lines.len() < whole.len());
}
