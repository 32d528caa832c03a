//! Crashes and damage, judged by a program of another language that shares no code with this one.
//!
//! It lies beside this repository where its authors work on it, and is not needed to build or test anything else.

use std::process::Command;

use acpdb_tests::binary::{binary, root};

#[test]
fn killed_and_damaged_stores_keep_their_promises() {
    let script = root().join("../shared/tools/torture.py");
    if !script.is_file() {
        println!("skipped: there is no {}", script.display());
        return;
    }
    if !Command::new("python3").arg("--version").output().is_ok_and(|done| done.status.success()) {
        println!("skipped: there is no python3");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = binary().unwrap();
    // A read shows what is known to be durable. What a killed writer left beyond that is shown once a command that writes
    // has opened the store, as the next writer's does before the script asks for this list.
    let own = binary.display();
    let list = format!("'{own}' --db {{store}} seal >/dev/null 2>&1; exec '{own}' --db {{store}} list");
    let mut command = Command::new("python3");
    command.arg(script).arg("--bin").arg(binary).arg("--work").arg(folder.path()).arg("--list").arg(list);
    command.args([
        "--phases",
        "kill,kill2,flip,trunc,zero,dup,swap,drop",
        "--rounds",
        "4",
        "--damage-runs",
        "6",
    ]);
    // Its seed is printed with each failure, and repeats it.
    let done = command.output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{text}");
}
