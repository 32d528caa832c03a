//! A stranger's store: harm that it must not do to us. And changes that a reading verb must not make to any store.
//!
//! Bait lies beside each store, and is compared afterwards. Runs of the program are bounded: one that does not end hangs on
//! something that was put there to hang it.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failed step is a failed test"
)]

#[path = "hostile/imported.rs"]
mod imported;
#[path = "hostile/reading.rs"]
mod reading;
#[path = "hostile/unasked.rs"]
mod unasked;
#[allow(dead_code, reason = "shared with the transcripts")]
#[path = "cli/world.rs"]
mod world;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use acpdb_tests::binary::binary;
use acpdb_tests::hostile::{PLACES, Sandbox, Trap, traps};
use acpdb_tests::repository;
use acpdb_tests::support::cases;
use proptest::prelude::*;

/// How long a run may take on a busy machine; all of them end in a fraction of it.
const RUN_MAX: Duration = Duration::from_secs(20);

/// Runs the program in a folder, as from a shell in it. Returns its exit code and its output.
fn run(folder: &Path, root: &Path, args: &[&str], input: &str) -> (Option<i32>, String) {
    let said = root.join("said");
    let words = root.join("input");
    std::fs::write(&words, input).unwrap();
    let mut command = Command::new(binary().unwrap());
    command.args(args).current_dir(folder).env_clear();
    command.env("HOME", root.join("home")).env("ACPDB_ANY_FILE_SYSTEM", "1").env("TZ", "UTC");
    command.stdin(std::fs::File::open(&words).unwrap()).stdout(Stdio::null());
    let mut child = command.stderr(std::fs::File::create(&said).unwrap()).spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > RUN_MAX {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("acpdb {args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = String::from_utf8_lossy(&std::fs::read(&said).unwrap()).into_owned();
    (status.code(), text)
}

fn place(name: &str) -> u8 {
    u8::try_from(PLACES.iter().position(|known| *known == name).unwrap()).unwrap()
}

/// Stores that were made to harm, each with its story in a few words.
#[expect(clippy::too_many_lines, reason = "a table")]
fn table() -> Vec<(&'static str, Vec<Trap>)> {
    let link = |name: &str, to: u8| Trap::Link { place: place(name), to };
    let erasing = || Trap::Erasing { text: b"0\n".to_vec() };
    let mut table = vec![
        ("an erasure to resume, snapshots led to a folder of bait", vec![erasing(), link("snap", 1)]),
        ("an erasure to resume, torn bytes led to a folder of bait", vec![erasing(), link("quarantine", 1)]),
        (
            "an erasure to resume, names of ours that are links to bait",
            vec![
                erasing(),
                link("snap/00112233445566778899aabbccddeeff", 0),
                link("quarantine/000000000001-000000004096-0.torn", 2),
            ],
        ),
        (
            "an erasure to resume, names of ours that are bait by a second name",
            vec![
                erasing(),
                Trap::Twin { place: place("snap/00112233445566778899aabbccddeeff"), to: 0 },
                Trap::Twin { place: place("quarantine/000000000001-000000004096-0.torn"), to: 1 },
            ],
        ),
        (
            "a segment that is bait by a second name",
            vec![Trap::Twin { place: place("log/000000000001.seg"), to: 0 }],
        ),
        ("the log led to a folder of bait", vec![link("log", 1)]),
        ("the log led to itself", vec![Trap::Strange { place: place("log"), to: 2 }]),
        (
            "snapshots led to the folder above, an erasure to resume",
            vec![erasing(), Trap::Strange { place: place("snap"), to: 3 }],
        ),
        ("the end is a device by a link", vec![Trap::Strange { place: place("tail"), to: 5 }]),
        (
            "names with line feeds and dots that lead to bait",
            vec![
                erasing(),
                Trap::Name { folder: 2, name: b"..\n..".to_vec(), to: 0 },
                Trap::Name { folder: 3, name: b"..bait".to_vec(), to: 1 },
                Trap::Name { folder: 1, name: b"000000000003.seg".to_vec(), to: 2 },
                Trap::Name { folder: 1, name: b"000000000002.seg.tmp".to_vec(), to: 3 },
            ],
        ),
        (
            "a segment of forty gigabytes of nothing",
            vec![Trap::Hole { place: place("log/000000000002.seg"), gibibytes: 40, byte: false }],
        ),
        (
            "a segment of forty gigabytes and a byte",
            vec![Trap::Hole { place: place("log/000000000002.seg"), gibibytes: 40, byte: true }],
        ),
        (
            "a first segment of forty gigabytes and a byte",
            vec![Trap::Hole { place: place("log/000000000001.seg"), gibibytes: 40, byte: true }],
        ),
        (
            "a segment longer than any position",
            vec![Trap::Hole { place: place("log/000000000002.seg"), gibibytes: 68, byte: true }],
        ),
        (
            "an end with two of the longest holes and a byte behind each",
            vec![
                Trap::Hole { place: place("tail"), gibibytes: 70, byte: true },
                Trap::Hole { place: place("tail"), gibibytes: 70, byte: true },
            ],
        ),
        (
            "an index of forty gigabytes",
            vec![Trap::Hole { place: place("index.redb"), gibibytes: 40, byte: true }],
        ),
        (
            "a store file of forty gigabytes",
            vec![Trap::Hole { place: place("acpdb.json"), gibibytes: 40, byte: true }],
        ),
        (
            "a tail that claims everything",
            vec![Trap::Claim { tail: true, position: u64::MAX, seq: u64::MAX, last_frame: u32::MAX }],
        ),
        (
            "a checkpoint that claims everything",
            vec![Trap::Claim { tail: false, position: u64::MAX, seq: u64::MAX, last_frame: u32::MAX }],
        ),
        (
            "a last segment of a very high number",
            vec![Trap::Segment {
                number: u32::MAX,
                first_seq: u64::MAX,
                previous_end: u64::MAX,
                abandoned: true,
            }],
        ),
        (
            "a next segment that begins nowhere",
            vec![Trap::Segment {
                number: 3,
                first_seq: 1 << 60,
                previous_end: 2 << 32 | 0xffff_fff0,
                abandoned: true,
            }],
        ),
        (
            "a sealed segment of counts that lie",
            vec![Trap::Sealed { counts: [u32::MAX; 4], sizes: [u64::MAX, u64::MAX], gibibytes: 40 }],
        ),
        (
            "a sealed segment of counts that its holes bear out",
            vec![Trap::Sealed {
                counts: [1 << 28, 1 << 28, 1 << 26, 1 << 28],
                sizes: [1 << 30, 1 << 30],
                gibibytes: 63,
            }],
        ),
        (
            "a sealed segment whose chunks claim more than they may",
            vec![Trap::Sealed { counts: [3, 3, 1000, 1 << 30], sizes: [1 << 36, 2000 - 128], gibibytes: 0 }],
        ),
        ("an erasure to resume whose note says nothing", vec![Trap::Erasing { text: vec![0xff; 200] }]),
        (
            "a folder in the place of the index",
            vec![Trap::Folder { place: place("index.redb") }, Trap::Folder { place: place("INDEX") }],
        ),
    ];
    for name in [
        "tail",
        "checkpoint",
        "acpdb.json",
        "erasing",
        "SEAL",
        "SYNC",
        "INDEX",
        "index.redb",
        "log/000000000002.seg",
        "log",
    ] {
        table.push(("a pipe", vec![Trap::Pipe { place: place(name), device: false }]));
        table.push(("a link to bait", vec![erasing(), link(name, 0)]));
    }
    for name in ["tail", "log/000000000002.seg", "erasing"] {
        table.push(("a device", vec![Trap::Pipe { place: place(name), device: true }]));
    }
    table
}

/// A cloned project held a store with an erasure to resume, and a link to a folder of the user's in the place of its
/// snapshots: `acpdb context` emptied and removed every file there. With any files in a store, nothing beside it changes, and
/// every run ends.
#[test]
fn no_verb_of_the_program_touches_what_lies_beside_a_strangers_store() {
    let line = "{\"session\":\"s1\",\"message\":{\"role\":\"user\",\"text\":\"mine\"}}\n";
    let verbs: [(&[&str], &str); 14] = [
        (&["context"], ""),
        (&["sessions"], ""),
        (&["history", "--session", "s1"], ""),
        (&["log", "--last", "3"], ""),
        (&["verify", "--deep"], ""),
        (&["doctor"], ""),
        (&["info", "--space"], ""),
        (&["backup", "../copy"], ""),
        // The verbs from here on write.
        (&["append", "--stdin"], line),
        (&["erase", "#2", "--reason", "it leaked"], ""),
        (&["doctor", "seal", "--all"], ""),
        (&["doctor", "reindex"], ""),
        (&["context", "discard", "c1", "--session", "s1"], ""),
        (&["doctor", "salvage", "--into", "../saved"], ""),
    ];
    for (story, traps) in table() {
        let sandbox = Sandbox::new().unwrap();
        for trap in &traps {
            // Only the machine's owner makes devices.
            let is_device = matches!(trap, Trap::Pipe { device: true, .. });
            let set = sandbox.set(trap);
            assert!(set.is_ok() || is_device, "{story}: {trap:?}: {set:?}");
        }
        let before = sandbox.bait().unwrap();
        let folder = sandbox.store().parent().unwrap().to_owned();
        for (args, input) in verbs {
            println!("{story}: {args:?}");
            let (code, said) = run(&folder, sandbox.root(), args, input);
            assert!(code.is_some_and(|code| code != 101), "{story}: {args:?} ended with {code:?}: {said}");
            assert!(!said.contains("panicked"), "{story}: {args:?}: {said}");
            assert_eq!(sandbox.bait().unwrap(), before, "{story}: {args:?}, {traps:?}: {said}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24)))]

    /// The body of the fuzz target `hostile_store`.
    #[test]
    fn whatever_traps_are_set_in_a_store_the_bait_beside_it_stays(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let sandbox = Sandbox::new().unwrap();
        let traps = traps(&bytes);
        for trap in &traps {
            // One may leave no place for the next.
            let _ = sandbox.set(trap);
        }
        let before = sandbox.bait().unwrap();
        sandbox.exercise();
        prop_assert_eq!(sandbox.bait().unwrap(), before, "{:?}", traps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(16)))]

    /// The body of the fuzz target `hostile_repository`.
    #[test]
    fn whatever_a_repository_holds_a_hook_in_it_ends_well_and_changes_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let (sandbox, told) = repository::prepare(&bytes).unwrap();
        repository::judge(&sandbox, &told).unwrap();
    }
}

/// Each kind of harm that a repository could do to who works in it, by its name.
#[test]
fn repositories_that_were_made_to_harm_do_none() {
    for (name, wanted) in repository::table() {
        println!("{name}");
        let (sandbox, told) = repository::set_up(&wanted).unwrap();
        repository::judge(&sandbox, &told).unwrap();
    }
}

/// The guard of the bait has to be able to fail: a store that is left alone would pass, too.
#[test]
fn a_sandbox_without_traps_is_a_store_like_any_other() {
    let sandbox = Sandbox::new().unwrap();
    let before = sandbox.bait().unwrap();
    sandbox.exercise();
    assert_eq!(sandbox.bait().unwrap(), before);
    let folder = sandbox.store().parent().unwrap().to_owned();
    let (code, said) = run(&folder, sandbox.root(), &["verify", "--deep"], "");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        sandbox.root().join("copy/acpdb.json").exists()
            && sandbox.root().join("salvaged/acpdb.json").exists()
    );
    std::fs::write(sandbox.root().join("bait/notes.txt"), "").unwrap();
    assert_ne!(sandbox.bait().unwrap(), before);
}

/// In a folder that all may write to, another user's store was found, fed, and believed. A store that is only found has to be
/// the user's own, with no other user writing to it, and a folder of its own; one that is named is used, and warned about.
#[test]
fn a_store_of_somebody_else_is_used_only_if_it_is_named_or_trusted() {
    let sandbox = Sandbox::new().unwrap();
    let (store, root) = (sandbox.store(), sandbox.root().to_owned());
    let folder = store.parent().unwrap().to_owned();
    let below = folder.join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::create_dir(root.join("home")).unwrap();
    let set = |mode| std::fs::set_permissions(&store, PermissionsExt::from_mode(mode)).unwrap();
    let says = |args: &[&str], code: i32, words: &[&str]| {
        let (found, said) = run(&below, &root, args, "");
        assert_eq!(found, Some(code), "{args:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{args:?}: {word:?} is not in {said:?}");
        }
        said
    };
    says(&["sessions"], 0, &["which you did not make here", "acpdb config trust "]);
    set(0o775);
    let refused = [
        "can be written by others than its owner (mode 775)",
        "hint: if you trust it: acpdb config trust ",
        "--db ",
    ];
    for verb in ["sessions", "verify", "doctor", "seal"] {
        says(&[verb], 1, &refused);
    }
    let named = store.to_string_lossy().into_owned();
    says(&["sessions", "--db", &named], 0, &["warning: ", "can be written by others"]);
    says(&["config", "trust", "--list"], 0, &["no store is trusted"]);
    says(&["config", "trust", &named], 0, &["is trusted"]);
    assert_eq!(says(&["sessions"], 0, &[]), "");
    assert_eq!(says(&["sessions", "--db", &named], 0, &[]), "");
    let settings = std::fs::read_to_string(root.join("home/.config/acpdb/config.toml")).unwrap();
    assert!(settings.contains("trusted = [") && settings.contains("project/.acpdb"), "{settings}");
    says(&["config", "trust", "--remove", &folder.to_string_lossy()], 0, &["is not trusted any more"]);
    says(&["config", "trust", "--remove", &named], 7, &["is not on the list"]);
    says(&["config", "trust", "/nonexistent"], 7, &["is not an acpdb store"]);
    says(&["sessions"], 1, &refused);
    set(0o700);
    // Only the machine's owner gives files away.
    if std::os::unix::fs::chown(&store, Some(54_321), None).is_ok() {
        says(&["sessions"], 1, &["belongs to user 54321, not to you", "acpdb config trust"]);
        says(&["sessions", "--db", &named], 0, &["warning: ", "belongs to user 54321"]);
        std::os::unix::fs::chown(&store, Some(0), None).unwrap();
    }
    let elsewhere = root.join("elsewhere");
    std::fs::rename(&store, &elsewhere).unwrap();
    symlink(&elsewhere, &store).unwrap();
    says(&["sessions"], 1, &["is a symbolic link, and is not followed where it is only found", "--db"]);
    says(&["sessions", "--db", &named], 0, &[]);
}
