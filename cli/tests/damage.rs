//! What a user of a damaged store sees: everything sound, a word about the rest, and exit code 3.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::path::Path;
use std::process::{Command, Output};

fn run(store: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command.args(args).arg("--db").arg(store).env_remove("ACPDB_PATH").env("COLUMNS", "120").output().unwrap()
}

/// A store with three messages, the second of which a disk has damaged. A sound copy of it is made before, by `backup`.
fn damaged(folder: &Path) -> std::path::PathBuf {
    let store = folder.join("store");
    for number in 0..3 {
        let line = format!(
            "{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"message {number} of three\"}}}}\n"
        );
        let path = folder.join("line");
        std::fs::write(&path, line).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(["append", "--stdin", "--db"]).arg(&store).stdin(std::fs::File::open(&path).unwrap());
        assert!(command.status().unwrap().success());
    }
    let copied = run(&store, &["backup", &folder.join("copy").to_string_lossy()]);
    assert_eq!(copied.status.code(), Some(0), "{copied:?}");
    let segment = store.join("log/000000000001.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let text = b"message 1 of three";
    let body = bytes.windows(text.len()).position(|window| window == text).unwrap();
    *bytes.get_mut(body - 40).unwrap() ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    store
}

/// A disk loses a bit in the middle of a session. Every question about it is answered from what is sound, and none of the
/// answers pretends to be whole.
#[test]
fn reads_around_damage_say_so_and_exit_with_3() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = damaged(folder.path());
    for args in [
        vec!["history"],
        vec!["context"],
        vec!["export", "html"],
        vec!["list"],
        vec!["log"],
        vec!["stats"],
        vec!["sessions"],
    ] {
        let done = run(&store, &args);
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(done.status.code(), Some(3), "{args:?}: {out} {err}");
        assert!(err.contains("left out: ") && err.contains("is damaged at byte"), "{args:?}: {err}");
        if ["history", "context", "list", "export"].contains(&args[0]) {
            assert!(
                out.contains("message 0 of three") && out.contains("message 2 of three"),
                "{args:?}: {out}"
            );
        }
    }
}

/// The owner of a damaged store asks what to do, saves the rest, and finds that the backup has all of it.
#[test]
fn a_damaged_store_is_diagnosed_and_its_rest_saved() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = damaged(folder.path());
    let text = |done: &Output| String::from_utf8_lossy(&done.stdout).into_owned();

    let doctor = run(&store, &["doctor"]);
    assert_eq!(doctor.status.code(), Some(3));
    assert!(
        text(&doctor).contains("damaged in 1 place") && text(&doctor).contains("salvage --into"),
        "{}",
        text(&doctor)
    );
    let verify = run(&store, &["verify"]);
    assert!(text(&verify).contains("What to do:"), "{}", text(&verify));

    let saved = folder.path().join("saved");
    let salvage = run(&store, &["salvage", "--into", &saved.to_string_lossy()]);
    assert_eq!(salvage.status.code(), Some(8), "{salvage:?}");
    assert!(text(&salvage).contains("  lost  "), "{}", text(&salvage));
    let list = text(&run(&saved, &["list"]));
    assert!(list.contains("message 0 of three") && list.contains("message 2 of three"), "{list}");
    let again = run(&store, &["salvage", "--into", &saved.to_string_lossy()]);
    assert_eq!(again.status.code(), Some(2), "{again:?}");

    let copy = folder.path().join("copy");
    assert_eq!(run(&copy, &["doctor"]).status.code(), Some(0));
    assert!(text(&run(&copy, &["list"])).contains("message 1 of three"));
}
