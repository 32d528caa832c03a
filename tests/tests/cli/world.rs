//! A temporary folder with a store, an empty home and the program; and the outcome of a run of the program.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use acpdb_tests::binary::{binary, root};
use serde_json::{Value, json};

/// A session of 90 calls that comes with the program.
pub(crate) const SESSION: &str = "session.jsonl";
/// A link to the program.
const PROGRAM: &str = "home/.bin/acpdb";
/// Lines for `append --stdin`: a user, reads of one file, an edit, todos, memory.
pub(crate) const FEED: &str = include_str!("feed.jsonl");

/// A folder of one test.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl World {
    /// A folder with the bundled session's file, and no store yet.
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("acpdb-cli-").tempdir().unwrap();
        std::fs::create_dir(folder.path().join("home")).unwrap();
        let session = root().join("cli/assets/demo-session.jsonl");
        std::fs::copy(session, folder.path().join(SESSION)).unwrap();
        // On the path of shells.
        let program = folder.path().join(PROGRAM);
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(binary().unwrap(), program).unwrap();
        Self { folder }
    }

    /// As [`World::new`], with [`FEED`] in the store.
    pub(crate) fn fed() -> Self {
        let world = Self::new();
        world.run_with(&["append", "--stdin"], FEED).ok();
        world
    }

    /// Another folder with all that is in this one.
    #[allow(dead_code, reason = "not every test needs many")]
    pub(crate) fn copied(&self) -> Self {
        let folder = tempfile::Builder::new().prefix("acpdb-cli-").tempdir().unwrap();
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(self.folder.path().join(".")).arg(folder.path());
        assert!(copy.status().unwrap().success());
        Self { folder }
    }

    /// Puts a program of this name on the path of shells: it writes down its arguments, and runs `script`.
    #[allow(dead_code, reason = "not every test needs one")]
    pub(crate) fn stands_in_for(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.path("home/.bin").join(name);
        let asked = self.path("asked");
        std::fs::write(&path, format!("#!/bin/sh\necho {name} \"$@\" >> '{}'\n{script}\n", asked.display()))
            .unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// The program in this folder, its store named `store`. Nothing of the tester's own environment reaches it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(binary().unwrap());
        // As a user types it: hints name the program that way.
        std::os::unix::process::CommandExt::arg0(&mut command, "acpdb");
        command.current_dir(self.folder.path()).env_clear();
        for (name, value) in [("ACPDB_PATH", "store"), ("TZ", "UTC"), ("COLUMNS", "100"), ("TERM", "xterm")] {
            command.env(name, value);
        }
        command.env("HOME", self.path("home"));
        // The temporary folder may be on any file system.
        command.env("ACPDB_ANY_FILE_SYSTEM", "1");
        command
    }

    /// A line as it is typed into a shell in this folder.
    #[allow(dead_code, reason = "not every test types")]
    pub(crate) fn typed(&self, line: &str) -> Command {
        let environment = self.command();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", line]).current_dir(self.folder.path()).env_clear();
        for (name, value) in environment.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        shell.env("PATH", format!("{}:/usr/bin:/bin", self.path("home/.bin").display()));
        shell
    }

    /// The outcome of a line in a shell.
    #[allow(dead_code, reason = "not every test types")]
    pub(crate) fn shell(&self, line: &str) -> Ran {
        let output = self.typed(line).stdin(Stdio::null()).output().unwrap();
        let code = output.status.code().unwrap();
        Ran { code, out: output.stdout, err: String::from_utf8(output.stderr).unwrap() }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, "")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let mut command = self.command();
        command.args(arguments);
        finish(command, input.as_ref())
    }

    /// The answers of the tools over MCP, a line each: to the greeting, and to one call.
    #[allow(dead_code, reason = "not every test calls")]
    pub(crate) fn mcp(&self, session: &str, tool: &str, arguments: &Value) -> String {
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let lines = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}),
        ];
        let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.run_with(&["mcp", "--session", session], input).ok()
    }

    /// The bodies of the store, as `list` prints them.
    pub(crate) fn list(&self) -> String {
        self.run(&["log", "--texts"]).ok()
    }

    /// Fails unless `verify --deep` finds the store sound.
    pub(crate) fn assert_sound(&self) {
        let ran = self.run(&["verify", "--deep"]);
        assert_eq!(ran.code, 0, "{}{}", ran.text(), ran.err);
    }
}

/// Runs a command to its end.
pub(crate) fn finish(mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that refuses its arguments reads nothing.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    });
    let code = output.status.code().unwrap_or(-1);
    Ran { code, out: output.stdout, err: String::from_utf8(output.stderr).unwrap() }
}

impl Ran {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.out.clone()).unwrap()
    }

    /// The output of a run that had to succeed.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.text(), self.err);
        self.text()
    }

    /// Fails unless the run ended with `code`, said each of `words` on stderr, and did not panic.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.text(), self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {:?}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
    }
}

/// All files below a folder with their bytes, in order; of the link to the program, which is large, where it leads.
pub(crate) fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(PROGRAM) {
                let target = path.read_link().unwrap().into_os_string().into_encoded_bytes();
                found.push((path, target));
            } else if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.clone(), std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}
