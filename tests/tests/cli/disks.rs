//! Disks that are full, of each kind that can be made here: an append fails as a whole, with the file that had no room; other
//! handles live; once there is room all goes on. On btrfs, which copies on writing, even bytes that were there already may have
//! no room.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::{Error, Store};
use acpdb_tests::binary::binary;
use acpdb_tests::cuts::disk::{Disk, Kind};

/// Set for the part that has a mount namespace of its own, so that nothing of its mounts stays however it ends.
const OWN: &str = "ACPDB_TEST_OWN_MOUNTS";

#[test]
#[ignore = "mounts disks: needs the superuser, mkfs of ext4, xfs and btrfs"]
fn a_full_disk_ends_nobody_and_costs_nothing_acknowledged() {
    apart("disks::a_full_disk_ends_nobody_and_costs_nothing_acknowledged", full_disks);
}

/// Runs a part of a test in a process with a mount namespace of its own.
fn apart(test: &str, part: fn()) {
    if std::env::var_os(OWN).is_some() {
        return part();
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--ignored"]);
    let done = command.env(OWN, "1").output().unwrap();
    print!("{}", String::from_utf8_lossy(&done.stdout));
    assert!(done.status.success(), "{}: {}", done.status, String::from_utf8_lossy(&done.stderr));
}

fn full_disks() {
    for kind in [Kind::Ext4, Kind::Xfs, Kind::Btrfs, Kind::Tmpfs] {
        let folder = tempfile::tempdir().unwrap();
        let made = Disk::new(kind, folder.path()).and_then(|mut disk| disk.mount("").map(|()| disk));
        full(&made.unwrap_or_else(|why| panic!("a disk of {}: {why}", kind.name())));
    }
}

/// A store on a disk, and the texts that were acknowledged.
struct Full<'a> {
    disk: &'a Disk,
    store: PathBuf,
    said: Vec<String>,
}

fn open(store: &Path) -> Store {
    Store::builder(store).any_file_system().open().unwrap()
}

impl Full<'_> {
    fn say(&mut self, store: &Store, length: usize) -> Result<(), Error> {
        let text = format!("{} {}", self.said.len(), "x".repeat(length));
        let entry = Entry::message("", Role::User, text.clone()).origin(text.clone());
        let _ = store.append(&StreamInfo::session("disk", "s1"), vec![entry])?;
        self.said.push(text);
        Ok(())
    }

    /// Fails as a full disk does: names the file, and a remedy. Returns whether it is unknown which commits were
    /// recorded.
    fn fails(&self, outcome: Result<(), Error>) -> bool {
        let error = outcome.unwrap_err();
        let (kind, said) = (self.disk.kind().name(), error.to_string());
        match error {
            Error::NoSpace { path } => {
                assert!(
                    path.starts_with(&self.store) && said.contains("free some and retry"),
                    "{kind}: {said}"
                );
                false
            }
            // Not even zeros could be written over the unfinished commit.
            Error::Poisoned => true,
            _ => panic!("{kind}: {said}"),
        }
    }

    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new(binary().unwrap());
        command.env_clear().env("ACPDB_ANY_FILE_SYSTEM", "1").env("HOME", self.store.with_file_name("home"));
        command.arg("--db").arg(&self.store).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may end before it has read all.
        let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes());
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let (kind, status) = (self.disk.kind().name(), done.status);
        assert!(status.code().is_some_and(|code| code != 101), "{kind}: {arguments:?}: {status}: {said}");
        done
    }

    /// All that was acknowledged is there, in order.
    fn holds(&self, store: &Store) {
        let lines = acpdb_tests::soak::auditor::read(store).unwrap();
        let mut shown = lines.iter().filter_map(|line| line.strip_prefix("message_recorded "));
        for text in &self.said {
            assert!(shown.any(|shown| shown == text), "{}: {text:.20} is lost", self.disk.kind().name());
        }
    }
}

fn full(disk: &Disk) {
    let kind = disk.kind().name();
    let mut full = Full { disk, store: disk.place().join("store"), said: Vec::new() };
    let (one, two) = (open(&full.store), open(&full.store));
    full.say(&one, 100).unwrap();
    full.say(&two, 100).unwrap();
    let mut unknown = false;
    for length in [100, 20_000, 300_000] {
        let filling = disk.fill().unwrap();
        // Bytes that were allocated ahead take some commits.
        let outcome = (0..3000).find_map(|_| full.say(&one, length).err());
        unknown |= full.fails(Err(outcome.unwrap_or_else(|| panic!("{kind}: it is not full"))));
        for store in [&one, &two] {
            assert!(store.head().is_ok(), "{kind}: reading goes on");
            if let Err(error) = full.say(store, 10) {
                unknown |= full.fails(Err(error));
            }
        }
        let line = "{\"session\":\"s2\",\"message\":{\"role\":\"user\",\"text\":\"from another process\"}}\n";
        let ran = full.run(&["append", "--stdin"], line);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        let is_told = said.contains("no space left")
            || said.contains("may be recorded or not")
            || said.contains("failed");
        assert!(ran.status.success() || is_told, "{kind}: {said}");
        assert!(full.run(&["log", "--texts"], "").status.success(), "{kind}");
        std::fs::remove_dir_all(filling).unwrap();
        if unknown {
            break;
        }
        full.say(&one, length).unwrap_or_else(|error| panic!("{kind}: there is room again: {error}"));
        full.say(&two, length).unwrap();
        full.holds(&two);
    }
    let again = open(&full.store);
    full.holds(&again);
    full.say(&again, 100).unwrap();
    let ran = full.run(&["verify"], "");
    assert!(ran.status.success(), "{kind}: {}", String::from_utf8_lossy(&ran.stdout));
    println!(
        "full {kind}: {} commits, {}",
        full.said.len(),
        if unknown { "reopened" } else { "the same handles" }
    );
}
