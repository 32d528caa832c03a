//! Verbs that read leave a store as it is: bytes, names, modes, times. Only what a killed writer wrote and did not confirm is settled by them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::world::World;

/// Every verb that reads. Their output files lie beside the store.
const READS: &[&str] = &[
    "sessions",
    "sessions tool:read --all",
    "context s1",
    "context s1 --served",
    "context s1 --format anthropic",
    "context s1 --at t2",
    "history --session s1",
    "history --chain call-read-1",
    "history --file /w/orders.rs",
    "memory history indent",
    "history --todo 1",
    "log",
    "show call-read-1",
    "log --texts",
    "export html s1 -o page.html",
    "export jsonl -o lines.jsonl",
    "scan",
    "explain call-read-1",
    "context s1 --summary --at t2",
    "diff t1 t4 --session s1",
    "blame /w/orders.rs --session s1",
    "stats",
    "simulate s1",
    "todo list --session s1",
    "todo stuck --session s1",
    "memory get indent --session s1",
    "memory list --session s1",
    "memory propose s2",
    "memory insights --session s1",
    "memory export --session s1",
    "task list --session s1",
    "task scratchpad --session s1",
    "policy show",
    "verify",
    "verify --deep",
    "doctor",
    "info",
    "info --space",
    "erase call-grep-1 --dry-run",
    "salvage --into saved",
    "backup copied",
];

/// A file or folder as a write to it would have changed it. When it was last read is left out: not every file
/// system lets that be kept.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    mode: u32,
    inode: u64,
    owner: u32,
    changed: (i64, i64, i64, i64),
    blocks: u64,
    bytes: Vec<u8>,
}

fn tree(store: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    let mut paths = vec![store.to_owned()];
    while let Some(path) = paths.pop() {
        let about = path.symlink_metadata().unwrap();
        let mut bytes = Vec::new();
        if about.is_dir() {
            paths.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        } else {
            bytes = std::fs::read(&path).unwrap();
        }
        let seen = Seen {
            mode: about.mode(),
            inode: about.ino(),
            owner: about.uid(),
            changed: (about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()),
            blocks: about.blocks(),
            bytes,
        };
        found.insert(path, seen);
    }
    found
}

/// Fails unless all verbs that read leave the store as it is. Returns the words of each on stderr, in a line.
fn assert_untouched(world: &World, state: &str) -> Vec<String> {
    let store = world.path("store");
    let before = tree(&store);
    let mut said = Vec::new();
    for line in READS {
        let args: Vec<&str> = line.split(' ').collect();
        let ran = world.run(&args);
        // An export for programs has nothing to say of a simulation; it only has to end by itself.
        assert!(matches!(ran.code, 0 | 1 | 3 | 4 | 7 | 8), "{state}: {line}: {} {}", ran.code, ran.err);
        assert!(!ran.err.contains("panicked"), "{state}: {line}: {}", ran.err);
        let after = tree(&store);
        assert!(
            after == before,
            "{state}: {line} changed {:?}",
            after
                .iter()
                .filter(|(path, seen)| before.get(*path) != Some(seen))
                .map(|(path, _)| path)
                .collect::<Vec<_>>()
        );
        said.push(format!("{line}: {}", ran.err.replace('\n', " ")));
    }
    // So does completion, which asks while a line is typed.
    let mut command = world.command();
    command
        .args(["--", "acpdb", "show", "call"])
        .env("ACPDB_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", "2");
    let _ = crate::world::finish(command, b"");
    assert!(tree(&store) == before, "{state}: completion changed the store");
    said
}

/// A store whose writer was killed after it was told that its lines are durable.
fn killed(world: &World) {
    let mut command = world.command();
    command.args(["append", "--stdin", "--ack"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut acks = BufReader::new(child.stdout.take().unwrap());
    for number in 0..3 {
        let text = format!(
            "{{\"session\":\"s1\",\"message\":{{\"role\":\"user\",\"text\":\"last words {number}\"}}}}\n"
        );
        stdin.write_all(text.as_bytes()).unwrap();
        let mut ack = String::new();
        acks.read_line(&mut ack).unwrap();
        assert!(ack.trim().parse::<u64>().is_ok(), "{ack:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A store whose writer was killed when all was written, and before it told that its sync had ended.
fn killed_before_it_confirmed(world: &World) {
    let tail = world.path("store/tail");
    // docs/FORMAT.md: the places of the page that are durable.
    let durable = 704..920;
    let before = std::fs::read(&tail).unwrap();
    killed(world);
    let mut page = std::fs::read(&tail).unwrap();
    page[durable.clone()].copy_from_slice(&before[durable]);
    std::fs::write(&tail, page).unwrap();
}

fn last_segment(world: &World) -> PathBuf {
    let mut names: Vec<PathBuf> =
        world.path("store/log").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|name| name.extension().is_some_and(|kind| kind == "seg"));
    names.into_iter().max().unwrap()
}

#[test]
fn of_a_store_that_was_closed() {
    let world = World::fed();
    world.run(&["import", "session.jsonl"]).ok();
    world.run(&["doctor", "reindex"]).ok();
    let said = assert_untouched(&world, "closed");
    assert!(said.iter().all(|line| !line.contains("unfinished") && !line.contains("confirmed")), "{said:#?}");
    // The index is there to be looked into.
    let info = world.run(&["info"]).ok();
    assert!(info.contains("index      used, up to"), "{info}");
}

/// The last commit of a killed writer was hidden from readers, who sent it again; the next writer showed it, so that it was there twice.
#[test]
fn of_a_store_whose_writer_was_killed() {
    let world = World::fed();
    killed_before_it_confirmed(&world);
    // A look that must not change what it looks at does not.
    let before = tree(&world.path("store"));
    for verb in ["verify", "doctor", "salvage --into looked"] {
        let args: Vec<&str> = verb.split(' ').collect();
        world.run(&args);
        assert!(tree(&world.path("store")) == before, "{verb}");
    }
    let list = world.run(&["log", "--texts"]);
    assert!(!list.err.contains("not confirmed"), "{}", list.err);
    let list = list.ok();
    assert!((0..3).all(|number| list.contains(&format!("last words {number}"))), "{list}");
    world.assert_sound();
    // Sent again by who looked and did not find it, it would be there twice; who looks finds it.
    assert_untouched(&world, "settled");
    assert_eq!(world.list(), list);
}

/// A store that the reader may not write to is shown as it was confirmed, and the rest is told.
#[test]
fn of_a_store_whose_writer_was_killed_and_that_is_not_the_users() {
    let world = World::fed();
    killed_before_it_confirmed(&world);
    let store = world.path("store");
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o777)).unwrap();
    let said = assert_untouched(&world, "others may write to it");
    let list = said.iter().find(|line| line.starts_with("log --texts:")).unwrap();
    assert!(list.contains("written and not confirmed"), "{list}");
}

/// Reading verbs recovered the store that they were asked about. They leave that to verbs that write now, and say so.
#[test]
fn of_a_store_with_a_torn_end() {
    let world = World::fed();
    killed(&world);
    let segment = last_segment(&world);
    let bytes = std::fs::read(&segment).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let end = end.next_multiple_of(16);
    let mut torn = bytes[..end].to_vec();
    torn.extend_from_slice(&[0x55; 300]);
    std::fs::write(&segment, torn).unwrap();
    let said = assert_untouched(&world, "torn");
    assert!(
        said.iter()
            .any(|line| line.starts_with("log --texts")
                && line.contains("of an unfinished write are at the end")),
        "{said:#?}"
    );
    assert!(!world.path("store/quarantine").exists());
    // A verb that writes does the work that is left.
    world
        .run_with(
            &["append", "--stdin"],
            "{\"session\":\"s1\",\"message\":{\"role\":\"user\",\"text\":\"on\"}}\n",
        )
        .ok();
    assert!(world.path("store/quarantine").exists());
    world.assert_sound();
}

/// A verb that reads resumed any erasure that it found, in any user's store. It only tells of one now.
#[test]
fn of_a_store_with_an_erasure_that_was_interrupted() {
    let world = World::fed();
    world.run(&["erase", "call-grep-1", "--session", "s1", "--reason", "it leaked"]).ok();
    world.write("store/erasing", "0\n");
    let said = assert_untouched(&world, "erasing");
    for verb in ["sessions", "context s1", "log --texts", "stats"] {
        let line = said.iter().find(|line| line.starts_with(&format!("{verb}:"))).unwrap();
        assert!(line.contains("an erasure was begun and not ended"), "{line}");
    }
    assert!(world.run(&["info", "--json"]).ok().contains("\"erasing\":true"));
    let doctor = world.run(&["doctor", "--json"]).text();
    assert!(doctor.contains("\"what\":\"erasure\"") && doctor.contains("seal"), "{doctor}");
    world.run(&["doctor", "seal"]).ok();
    assert!(!world.path("store/erasing").exists());
    assert!(world.run(&["info", "--json"]).ok().contains("\"erasing\":false"));
}
