//! Keys in a real keyring: a session bus of its own, with gnome-keyring as its secret service, in a home of its own.
//!
//! Needs `dbus-run-session`, `gnome-keyring-daemon` and `secret-tool`, so it is ignored by `cargo test`; `.ci/run` runs it where they are.
#![cfg(feature = "keyring")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Runs lines of a shell on a bus of their own; `$A` is the program. Gives their output, and their exit codes, each in a line.
fn on_a_bus(home: &Path, begin: &str, lines: &[&str]) -> String {
    let run = home.join("run");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o700)).unwrap();
    let script: String = lines.iter().map(|line| format!("{line} 2>&1; echo \"code $?\"\n")).collect();
    let ran = Command::new("dbus-run-session")
        .args(["--", "sh", "-c", &format!("{begin}\n{script}")])
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", &run)
        .env("ACPDB_ANY_FILE_SYSTEM", "1")
        .env("A", env!("CARGO_BIN_EXE_acpdb"))
        .output()
        .unwrap();
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// The secret service is there, and open, before the lines run. A machine without these tools ends here, and does not wait for ever.
const UNLOCKED: &str = "printf secret | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1\n\
    for try in $(seq 100); do secret-tool search a b >/dev/null 2>&1 && break; sleep 0.1; done\n\
    secret-tool search a b 2>&1 || exit";

#[test]
#[ignore = "needs a keyring: dbus-run-session, gnome-keyring-daemon, secret-tool"]
fn the_system_keyring_signs_and_each_trouble_is_told() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let text = on_a_bus(
        home,
        UNLOCKED,
        &[
            "$A init",
            "echo '{\"session\":\"s1\",\"message\":{\"role\":\"user\",\"text\":\"hello\"}}' | $A append --stdin",
            "$A key new --keyring",
            "$A checkpoint sign",
            "$A verify",
            "secret-tool clear service acpdb",
            "$A checkpoint sign",
            "$A verify",
        ],
    );
    let codes: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("code ")).collect();
    assert!(codes.first() == Some(&"0") && codes.get(2..6) == Some(&["0"; 4][..]), "{text}");
    assert!(codes.get(6..) == Some(&["9", "0"][..]), "{text}");
    for words in
        ["in the system's keyring", "is a new key", "signed with default", "has no entry signing key"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let without = on_a_bus(home, "unset DBUS_SESSION_BUS_ADDRESS", &["$A key new other --keyring"]);
    assert!(without.contains("no keyring of the system can be reached"), "{without}");
    assert!(!home.join(".config/acpdb/keys/other.key").exists());
}
