//! What a user of a damaged store sees: everything sound, a word about the rest, and exit code 3.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::path::Path;
use std::process::{Command, Output};

fn run(store: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command.args(args).arg("--db").arg(store).env_remove("ACPDB_PATH").env("COLUMNS", "120").output().unwrap()
}

/// A disk loses a bit in the middle of a session. Every question about it is answered from what is sound, and none of the
/// answers pretends to be whole.
#[test]
fn reads_around_damage_say_so_and_exit_with_3() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = folder.path().join("store");
    for number in 0..3 {
        let line = format!(
            "{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"message {number} of three\"}}}}\n"
        );
        let path = folder.path().join("line");
        std::fs::write(&path, line).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(["append", "--stdin", "--db"]).arg(&store).stdin(std::fs::File::open(&path).unwrap());
        assert!(command.status().unwrap().success());
    }
    let segment = store.join("log/000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let text = b"message 1 of three";
    let body = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[body - 40] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    for args in [vec!["history"], vec!["context"], vec!["list"], vec!["log"], vec!["stats"], vec!["sessions"]]
    {
        let done = run(&store, &args);
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(done.status.code(), Some(3), "{args:?}: {out} {err}");
        assert!(err.contains("left out: ") && err.contains("is damaged at byte"), "{args:?}: {err}");
        if ["history", "context", "list"].contains(&args[0]) {
            assert!(
                out.contains("message 0 of three") && out.contains("message 2 of three"),
                "{args:?}: {out}"
            );
        }
    }
}
