//! Harm that hostile input must not do to a store, a terminal or a folder. `docs/SECURITY.md` names each of these
//! tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failed step is a failed test"
)]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use acpdb_tests::binary::binary;

fn run(store: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(binary().unwrap());
    command.args(args).arg("--db").arg(store).env_remove("ACPDB_PATH").env("ACPDB_ANY_FILE_SYSTEM", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that ends before it has read everything closes the pipe.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn message(session: &str, text: &str) -> Vec<u8> {
    let line = serde_json::json!({ "session": session, "message": { "role": "user", "text": text } });
    format!("{line}\n").into_bytes()
}

/// Every file and folder below, relative, sorted.
fn below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path.strip_prefix(folder).unwrap().to_owned());
        }
    }
    found
}

/// Forty names that have broken programs: they are names in the log, and never parts of a path.
#[test]
fn ids_never_become_paths() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("store");
    assert!(run(&store, &["append", "--stdin"], &message("plain", "x")).status.success());
    let parents =
        |folder: &Path| below(folder).into_iter().filter(|path| !path.starts_with("store/log")).count();
    let before = parents(folder.path());
    let names = [
        "..",
        ".",
        "/",
        "//",
        "../../etc/passwd",
        "..\\..\\x",
        "/tmp/acpdb-was-here",
        "a/b/c",
        "a\\b",
        "C:\\x",
        "CON",
        "nul.txt",
        "~",
        "~root",
        "$HOME",
        "${HOME}",
        "`id`",
        "$(id)",
        "; rm -rf x",
        "| cat",
        "& x",
        "*",
        "?",
        "[a]",
        "-rf",
        "--help",
        " ",
        "  x  ",
        "x\n",
        "x\ty",
        "\u{0}",
        "a\u{0}b",
        "\u{202e}gnp",
        "\u{200b}",
        "é",
        "e\u{301}",
        "ﬃ",
        "💣",
        "%2e%2e%2f",
        "x'y\"z",
    ];
    assert_eq!(names.len(), 40);
    for name in names {
        let done = run(&store, &["append", "--stdin"], &message(name, "mine"));
        assert!(done.status.success(), "{name:?}: {done:?}");
    }
    assert_eq!(parents(folder.path()), before, "no file and no folder was made: {:?}", below(folder.path()));
    let sessions = run(&store, &["sessions", "--json"], b"");
    let sessions: serde_json::Value = serde_json::from_slice(&sessions.stdout).unwrap();
    let found: BTreeSet<&str> =
        sessions["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert!(names.iter().all(|name| found.contains(name)), "{found:?}");
}

/// A user who can write to the folder could point its names elsewhere; the targets are neither read nor written.
#[test]
fn symbolic_links_are_not_followed_where_a_store_is_written() {
    let folder = tempfile::TempDir::new().unwrap();
    let victim = folder.path().join("victim");
    for name in ["tail", "checkpoint", "acpdb.json", "log/000000000001.seg"] {
        let store = folder.path().join(name.replace('/', "-"));
        assert!(run(&store, &["append", "--stdin"], &message("s1", "x")).status.success());
        std::fs::rename(store.join(name), &victim).unwrap();
        symlink(&victim, store.join(name)).unwrap();
        let before = std::fs::read(&victim).unwrap();
        let done = run(&store, &["append", "--stdin", "--ack"], &message("s1", "y"));
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_ne!(done.status.code(), Some(101), "{name}: {said}");
        assert!(!done.status.success() || done.stdout.is_empty() || name == "checkpoint", "{name}: {said}");
        assert_eq!(std::fs::read(&victim).unwrap(), before, "{name} was written through a link");
    }
}

#[test]
fn files_are_their_owners_whatever_the_mask() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("store");
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 000; exec \"$0\" import --quiet --db \"$1\" \"$2\""])
        .arg(binary().unwrap())
        .arg(&store);
    command
        .arg(acpdb_tests::binary::root().join("cli/assets/demo-session.jsonl"))
        .env("ACPDB_ANY_FILE_SYSTEM", "1");
    assert!(command.status().unwrap().success());
    for path in below(&store) {
        let found = std::fs::metadata(store.join(&path)).unwrap();
        let mode = found.permissions().mode() & 0o777;
        assert_eq!(mode, if found.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

/// A secret that was recorded appears where it is asked for, and nowhere else: not in messages, not in the index.
#[test]
fn a_recorded_text_is_in_no_message_and_not_in_the_index() {
    const CANARY: &str = "canary-5f1d0c77aa";
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("store");
    let mut lines = message("s1", CANARY);
    lines.extend(format!(
        "{{\"session\":\"s1\",\"tool\":{{\"call\":\"c1\",\"tool\":\"bash\",\"params\":{{\"command\":\"echo {CANARY}\"}},\"output\":\"{CANARY}\"}}}}\n"
    ).into_bytes());
    // A line that is refused must not be quoted whole either.
    lines.extend(
        format!("{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"{CANARY}\",\"x\":}}}}\n")
            .into_bytes(),
    );
    let done = run(&store, &["append", "--stdin"], &lines);
    assert_eq!(done.status.code(), Some(8));
    assert!(!String::from_utf8_lossy(&done.stderr).contains(CANARY), "{done:?}");
    assert!(String::from_utf8_lossy(&run(&store, &["log", "--texts"], b"").stdout).contains(CANARY));
    let holds = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(CANARY);
    assert!(run(&store, &["doctor", "reindex"], b"").status.success());
    assert!(!holds(&store.join("index.redb")), "the index holds texts");
    let segment = store.join("log/000000000001.seg");
    assert!(holds(&segment), "the log does hold it");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(CANARY.len()).position(|window| window == CANARY.as_bytes()).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    for args in [&["verify"][..], &["doctor"], &["log", "--texts"], &["context"]] {
        let done = run(&store, args, b"");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!said.contains(&CANARY[1..]), "{args:?} quotes a damaged text: {said}");
    }
}

/// A compressed file that is a thousand times its apparent size is read up to a limit; nesting is refused at its depth.
#[test]
fn bombs_are_refused_in_bounded_time_and_memory() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("store");
    let deep = format!(
        "{{\"type\":\"user\",\"sessionId\":\"s\",\"uuid\":\"a\",\"message\":{}{}}}\n",
        "[".repeat(1 << 20),
        "]".repeat(1 << 20)
    );
    let path = folder.path().join("deep.jsonl");
    std::fs::write(&path, deep).unwrap();
    let done = run(&store, &["import", "--format", "claude-code", &path.to_string_lossy()], b"");
    assert_ne!(done.status.code(), Some(101), "{done:?}");
    assert_ne!(done.status.code(), None, "no signal: {done:?}");
    let mut bomb =
        zstd::Encoder::new(std::fs::File::create(folder.path().join("bomb.jsonl.zst")).unwrap(), 1).unwrap();
    // Twice the limit of one value; the bytes on the disk are a ten-thousandth of it.
    for _ in 0..96 {
        bomb.write_all(&vec![b'['; 1 << 20]).unwrap();
    }
    bomb.finish().unwrap();
    let bomb = folder.path().join("bomb.jsonl.zst");
    assert!(std::fs::metadata(&bomb).unwrap().len() < 96 << 10);
    let done = run(&store, &["import", "--format", "claude-code", &bomb.to_string_lossy()], b"");
    assert!(matches!(done.status.code(), Some(1 | 2 | 8)), "{done:?}");
}
