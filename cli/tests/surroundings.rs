//! Things that a machine may hold beside a store: names that are no UTF-8, variables that are set to nothing, links, pipes, devices.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

mod done;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use done::{Done, finish};

const LINE: &str = r#"{"session":"s1","message":{"role":"user","text":"a word"}}"#;

/// A folder with an empty home. Its own name is no UTF-8.
struct Place {
    outer: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { outer: TempDir::new().unwrap() };
        std::fs::create_dir_all(place.path("home")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.outer.path().join(OsStr::from_bytes(b"odd-\xff")).join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(words).current_dir(self.path("")).env_clear();
        command.env("HOME", self.path("home")).env("ACPDB_ANY_FILE_SYSTEM", "1").env("TZ", "UTC");
        command
    }

    fn run(&self, words: &[&str], stdin: &str) -> Done {
        finish(&mut self.command(words), stdin)
    }

    /// As [`Self::run`], with `ACPDB_PATH` set to the whole path of the folder's store.
    fn told(&self, words: &[&str], stdin: &str) -> Done {
        finish(self.command(words).env("ACPDB_PATH", self.path("store")), stdin)
    }
}

/// `json!` unwraps, and a path that is no UTF-8 cannot be serialized: these verbs ended with a panic.
#[test]
fn answers_for_programs_show_a_name_that_is_no_utf8() {
    let place = Place::new();
    assert_eq!(place.told(&["append", "--stdin"], LINE).code, 0);
    std::fs::write(place.path("none.jsonl"), "nothing that is known\n").unwrap();
    let odd = |name: &str| place.path(name).display().to_string();
    for (words, member, shown) in [
        (&["init"][..], "/path", odd("store")),
        (&["info"], "/path", odd("store")),
        (&["doctor"], "/path", odd("store")),
        (&["config", "path"], "/path", odd("home/.config/acpdb/config.toml")),
        (&["key", "new"], "/path", odd("home/.config/acpdb/keys/default.key")),
        (&["checkpoint", "sign"], "/note", String::new()),
        (&["checkpoint", "export", "--tiles", "TILES"], "/folder", odd("tiles")),
        (&["checkpoint", "prove", "1", "-o", "PROOF"], "/path", odd("proof")),
        (&["export", "audit", "-o", "AUDIT.json"], "/path", odd("audit.json")),
        (&["export", "html", "-o", "PAGE", "s1"], "/path", odd("page")),
        (&["backup", "COPY"], "/path", odd("copy")),
        (&["import", "NONE.jsonl"], "/skipped/0/path", odd("none.jsonl")),
        (&["info", "--hosts"], "/items", String::new()),
        (
            &["service", "status", "--manager", "systemd"],
            "/items/0/path",
            odd("home/.config/systemd/user/acpdb-import.service"),
        ),
    ] {
        let mut command = place.command(&["--json"]);
        for word in words {
            let is_name = word.starts_with(|c: char| c.is_ascii_uppercase());
            if is_name {
                command.arg(place.path(&word.to_lowercase()))
            } else {
                command.arg(word)
            };
        }
        let done = finish(command.env("ACPDB_PATH", place.path("store")), "");
        assert!(!done.err.contains("panicked") && done.code != 101, "{words:?}: {done:?}");
        let value: Value =
            serde_json::from_str(done.out.trim()).unwrap_or_else(|_| panic!("{words:?}: {done:?}"));
        let found = value.pointer(member).unwrap_or_else(|| panic!("{words:?}: {value}"));
        assert!(shown.is_empty() || *found == *shown, "{words:?}: {found} is not {shown}");
    }
}

/// A variable that was set to nothing was a usage error, so hooks recorded nothing.
#[test]
fn a_variable_that_is_set_to_nothing_is_not_set() {
    let place = Place::new();
    for name in ["ACPDB_PATH", "ACPDB_CONFIG", "ACPDB_PAGER", "ACPDB_MCP_TOKEN"] {
        let mut append = place.command(&["append", "--stdin"]);
        let done = finish(append.env(name, ""), LINE);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{name}");
        let done = finish(place.command(&["info"]).env(name, ""), "");
        assert_eq!(done.code, 0, "{name}: {done:?}");
    }
    let mut hook = place.command(&["hook", "cursor"]);
    let said = r#"{"conversation_id":"c1","hook_event_name":"postToolUse","tool_name":"Shell","tool_output":"a \ud83d","tool_use_id":"u1"}"#;
    assert_eq!(finish(hook.env("ACPDB_PATH", ""), said).out, "{}\n");
    // Half a character at the end of a text cost the whole event.
    let list = place.run(&["log", "--texts"], "").out;
    assert!(list.contains("a \u{fffd}"), "{list}");
    // On the command line nothing is a mistake.
    assert_eq!(place.run(&["info", "--db", ""], "").code, 2);
}

/// The service ran without the user's settings: with `redact = true` in a file that `$ACPDB_CONFIG` named, secrets were recorded.
#[test]
fn a_service_sees_the_users_variables() {
    let outer = TempDir::new().unwrap();
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(words).current_dir(outer.path()).env_clear().env("HOME", outer.path());
        command.env("ACPDB_ANY_FILE_SYSTEM", "1").env("ACPDB_PATH", "store");
        command
    };
    let install = ["service", "--manager", "systemd", "install", "--dry-run"];
    let mut shown = command(&install);
    for name in ["ACPDB_CONFIG", "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"] {
        shown.env(name, format!("/of/{name}"));
    }
    let done = finish(&mut shown, "");
    for name in ["ACPDB_CONFIG", "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"] {
        assert!(done.out.contains(&format!("Environment=\"{name}=/of/{name}\"")), "{done:?}");
    }
}

/// Lines that come through a pipe do not come again: a file of memory lost the lines that were looked at first.
#[test]
fn memory_comes_through_a_pipe_whole() {
    let place = Place::new();
    let lines = [r#"{"kind":"fact","value":"one"}"#, r#"{"kind":"fact","value":"two"}"#, ""].join("\n");
    let done = place.run(&["memory", "import", "/dev/stdin", "--project", "p"], &format!("\n\n{lines}"));
    assert_eq!(done.code, 0, "{done:?}");
    let list = place.run(&["memory", "list", "--project", "p"], "").out;
    assert!(list.contains("one") && list.contains("two"), "{list}");
    let bad = place
        .run(&["memory", "import", "/dev/stdin", "--project", "p"], &format!("\n\n{lines}{{\"kind\":1}}\n"));
    assert!(bad.err.contains("line 5 was not recorded"), "{bad:?}");
}

/// `-o` with `--force` put a file in the place of a pipe or a device.
#[test]
fn a_pipe_is_written_into_and_stays() {
    use std::os::unix::fs::FileTypeExt as _;
    let place = Place::new();
    assert_eq!(place.run(&["append", "--stdin"], LINE).code, 0);
    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink(&pipe, place.path("link")).unwrap();
    let refused = place.run(&["export", "html", "s1", "-o", "link"], "");
    assert!(refused.code == 1 && refused.err.contains("--force writes into it"), "{refused:?}");
    let reader = std::thread::spawn(move || std::fs::read(pipe).unwrap());
    let done = place.run(&["export", "html", "s1", "-o", "link", "--force"], "");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(String::from_utf8(reader.join().unwrap()).unwrap().contains("a word"));
    assert!(place.path("pipe").metadata().unwrap().file_type().is_fifo());
    assert!(place.path("link").symlink_metadata().unwrap().is_symlink());
}

/// Settings are often a link into a folder under version control; setting a key put a file in its place.
#[test]
fn settings_that_are_a_link_stay_one() {
    let place = Place::new();
    let real = place.path("real.toml");
    std::fs::write(&real, "color = \"never\"\n").unwrap();
    std::os::unix::fs::symlink(&real, place.path("link.toml")).unwrap();
    let mut set = place.command(&["config", "set", "pager", "never"]);
    assert_eq!(finish(set.env("ACPDB_CONFIG", place.path("link.toml")), "").code, 0);
    assert!(place.path("link.toml").symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "color = \"never\"\npager = \"never\"\n");
}

/// Ctrl-C left recorded text in files: the text from standard input, and half of an export.
#[test]
fn what_is_broken_off_leaves_nothing_behind() {
    use std::io::Write as _;
    let place = Place::new();
    assert_eq!(place.run(&["append", "--stdin"], LINE).code, 0);
    let scratch = place.path("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let count = |name: &str| std::fs::read_dir(place.path(name)).unwrap().count();
    let broken = |command: &mut Command, begun: &dyn Fn() -> bool| {
        let mut child = command.env("TMPDIR", &scratch).stdin(std::process::Stdio::piped()).spawn().unwrap();
        // The program waits for more input.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"{\"session\":").unwrap();
        while !begun() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let ended = child.wait().unwrap();
        drop(stdin);
        ended.code()
    };
    let ended = broken(&mut place.command(&["import", "-"]), &|| count("scratch") > 0);
    assert_eq!((ended, count("scratch")), (Some(130), 0));
}

/// Lists for programs had no tabs and cut their cells; on a terminal of 80 columns lines were wrapped.
#[test]
fn lists_are_whole_for_programs_and_fit_for_people() {
    let place = Place::new();
    let long = format!("/a/{}/end.rs", "long/".repeat(30));
    let tool = |call: &str| {
        let output = "x".repeat(300);
        format!(
            r#"{{"session":"s1","host":"opencode","turn":true,"tool":{{"call":"{call}","tool":"read","params":{{"filePath":"{long}"}},"output":"{output}"}}}}"#
        )
    };
    let memory = format!(r#"{{"kind":"fact","value":"{}"}}"#, "word ".repeat(20).trim_end());
    assert_eq!(place.run(&["append", "--stdin"], &[tool("c1"), tool("c2")].join("\n")).code, 0);
    assert_eq!(place.run(&["memory", "import", "/dev/stdin", "--project", "p"], &memory).code, 0);
    for words in [
        &["history"][..],
        &["history", "--limit", "1"],
        &["history", "--chain", "c1"],
        &["diff", "t1", "t2"],
        &["blame", &long],
        &["memory", "list", "--project", "p"],
    ] {
        let done = place.run(words, "");
        assert_eq!(done.code, 0, "{words:?}: {done:?}");
        let wanted =
            if words[0] == "memory" { "word ".repeat(20).trim_end().to_owned() } else { long.clone() };
        let line = done.out.lines().find(|line| line.contains('\t') && line.contains(&wanted));
        assert!(line.is_some(), "{words:?}: {}", done.out);
        assert!(!done.out.contains('…'), "{words:?}: {}", done.out);
    }
    for words in [
        &["history"][..],
        &["history", "--chain", "c1"],
        &["diff", "t1", "t2"],
        &["blame", &long],
        &["sessions", "--graph"],
    ] {
        for columns in ["60", "80"] {
            let done = finish(place.command(words).env("COLUMNS", columns), "");
            let widest = done.out.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= columns.parse().unwrap(), "{words:?} at {columns}: {}", done.out);
        }
    }
}

/// Help that could not be written ended well.
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let place = Place::new();
    for words in [&["help", "ids"][..], &["--help"], &["--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let done = place.command(words).stdout(full).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{words:?}: {done:?}");
    }
}
