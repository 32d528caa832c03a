//! Backups beside writers, and copies saved from damaged stores.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests: a failed step is a failed test"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::{BodyId, Position, Seq};
use acpdb_engine::keys::KeyUse;
use acpdb_engine::log::{Log, LogOptions};
use acpdb_engine::storage::{SimWorld, SystemEntropy};
use acpdb_engine::store::{Salvaged, salvage, salvage_storage};
use acpdb_engine::verify::{Verdict, verify_folder, verify_storage};
use acpdb_engine::{Error, Store};
use acpdb_tests::support::{fixed, line_of, lines};

fn open(world: &SimWorld, process: u32) -> Result<Store, Error> {
    let builder = Store::builder("/sim")
        .storage(Arc::new(world.process(process)))
        .registry(acpdb_hosts::registry())
        .segment_bytes_max(4096 + 3000)
        .lock_wait(std::time::Duration::from_millis(3));
    fixed(builder, u64::from(process)).open()
}

/// Changes a copy.
type Harm<'h> = &'h dyn Fn(&Path);

/// The files below a folder.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let _before = found.insert(entry.path(), std::fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

fn session() -> StreamInfo {
    StreamInfo::session("opencode", "s1")
}

fn message(number: u32) -> Vec<Entry> {
    vec![Entry::message(format!("m{number}"), Role::User, format!("message {number} {}", "x".repeat(300)))]
}

/// A store of a few segments, with its lines, one for each event.
fn filled(count: u32) -> (SimWorld, Vec<String>) {
    let world = SimWorld::new(3);
    let store = open(&world, 1).unwrap();
    for number in 0..count {
        let _ = store.append(&session(), message(number)).unwrap();
    }
    store.close().unwrap();
    let said = lines(&store).unwrap();
    (world, said)
}

fn segments(world: &SimWorld) -> Vec<String> {
    world.files().into_iter().filter(|name| name.ends_with(".seg")).collect()
}

#[test]
fn a_backup_is_the_store_as_of_one_head_and_opening_it_is_restoring_it() {
    let (world, said) = filled(30);
    assert!(segments(&world).len() > 2);
    let store = open(&world, 2).unwrap();
    let copy = SimWorld::new(4);
    let backup = store.backup_storage(Arc::new(copy.process(1)), &mut |_| ()).unwrap();
    assert_eq!((backup.report.verdict(), backup.head), (Verdict::Sound, store.head().unwrap()));
    // A later event is not in it.
    let _ = store.append(&session(), message(99)).unwrap();
    copy.cut_power();
    let restored = open(&copy, 5).unwrap();
    assert_eq!(lines(&restored).unwrap(), said, "durable, and all of it");
    let receipt = restored.append(&session(), message(100)).unwrap();
    assert_eq!(receipt.last_seq, backup.head.next(), "and it goes on from there");
}

#[test]
fn a_folder_with_anything_in_it_is_refused() {
    let folder = tempfile::TempDir::new().unwrap();
    let (path, taken) = (folder.path().join("store"), folder.path().join("taken"));
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("notes.txt"), "mine").unwrap();
    let store = Store::builder(&path).any_file_system().open().unwrap();
    let refused = store.backup(&taken, &mut |_| ()).unwrap_err();
    assert!(matches!(refused, Error::Io { action: "make a backup in", .. }), "{refused}");
    let refused = salvage(&path, &taken, &mut |_| ()).unwrap_err();
    assert!(matches!(refused, Error::Io { action: "make a store in", .. }), "{refused}");
    assert_eq!(std::fs::read_dir(&taken).unwrap().count(), 1);
}

/// A salvage that was killed half way left a folder that verified as a sound store, of a part of the events.
#[test]
fn a_salvage_has_its_name_once_it_is_whole() {
    let folder = tempfile::TempDir::new().unwrap();
    let (path, into) = (folder.path().join("store"), folder.path().join("new"));
    let store = Store::builder(&path).any_file_system().open().unwrap();
    for number in 0..3 {
        let _ = store.append(&session(), message(number)).unwrap();
    }
    drop(store);
    let killed = std::panic::catch_unwind(|| salvage(&path, &into, &mut |_| panic!("half way")));
    assert!(killed.is_err() && !into.exists());
    assert!(folder.path().join("new.partial").exists(), "a kill leaves what there was");
    let done = salvage(&path, &into, &mut |_| ()).unwrap();
    assert_eq!((done.is_whole(), done.path.as_path()), (true, into.as_path()));
    let of = |path: &std::path::Path| lines(&Store::builder(path).any_file_system().open().unwrap()).unwrap();
    // Killed between the name and the answer, it is asked for again.
    let again = salvage(&path, &into, &mut |_| ()).unwrap();
    assert_eq!(
        (again.events, again.path.as_path(), again.store != done.store),
        (done.events, into.as_path(), true)
    );
    // Behind them stands a note of the salvage.
    assert!(of(&into).starts_with(&of(&path)));
    assert!(!folder.path().join("new.partial").exists());
}

/// A salvage asked for again takes the place of an earlier one of the same store, and of nothing else: not of a store with work in it, of another
/// store's salvage, of a backup, or of one that has more than can be read now.
#[test]
fn a_salvage_takes_the_place_of_an_earlier_one_and_of_nothing_else() {
    let folder = tempfile::TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    let open =
        |name: &str| Store::builder(at(name)).any_file_system().segment_bytes_max(20_000).open().unwrap();
    for name in ["store", "other"] {
        let store = open(name);
        for number in 0..60 {
            let _ = store.append(&session(), message(number)).unwrap();
        }
    }
    let again = |from: &str, into: &str| salvage(&at(from), &at(into), &mut |_| ());
    let names = |name: &str| {
        let all = std::fs::read_dir(at(name)).unwrap().map(|entry| entry.unwrap().file_name());
        all.collect::<std::collections::BTreeSet<_>>()
    };
    let _ = again("store", "new").unwrap();
    let _ = again("store", "worked").unwrap();
    let _ = open("worked").append(&session(), message(60)).unwrap();
    let _ = open("store").backup(&at("backup"), &mut |_| ()).unwrap();
    let _ = again("other", "of_other").unwrap();
    for into in ["worked", "backup", "of_other", "other"] {
        let before = names(into);
        let refused = again("store", into).unwrap_err();
        assert!(matches!(refused, Error::Io { action: "make a store in", .. }), "{into}: {refused}");
        assert_eq!(names(into), before, "{into}");
    }
    let _ = again("store", "new").unwrap();
    let whole = std::fs::read(at("new/log/000000000001.seg")).unwrap();
    let segment = at("store/log/000000000002.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..].fill(0x5a);
    std::fs::write(&segment, bytes).unwrap();
    let refused = again("store", "new").unwrap_err();
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(why.contains("has more than can be read now"), "{refused}: {why}");
    assert_eq!(std::fs::read(at("new/log/000000000001.seg")).unwrap(), whole, "it stays as it was");
    assert!(!at("new.partial").exists());
    assert!(!again("store", "fresh").unwrap().is_whole());
    assert!(!again("store", "fresh").unwrap().is_whole(), "asked for again");
}

/// Of 91 backups that were killed, 68 left a folder under the final name, 58 of these no whole store; and the next backup was refused.
#[test]
fn a_backup_has_its_name_once_it_is_whole() {
    let folder = tempfile::TempDir::new().unwrap();
    let (path, into) = (folder.path().join("store"), folder.path().join("new"));
    let partial = folder.path().join("new.partial");
    let store = Store::builder(&path).any_file_system().segment_bytes_max(20_000).open().unwrap();
    for number in 0..100 {
        let _ = store.append(&session(), message(number)).unwrap();
    }
    // At each stretch that is copied.
    let mut count = 0;
    let _ = store.backup(&folder.path().join("counted"), &mut |_| count += 1).unwrap();
    for at in 1..=count {
        let mut seen = 0;
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.backup(&into, &mut |_| {
                seen += 1;
                assert!(seen < at, "killed");
                // Another backup does not take what this one fills.
                let refused = store.backup(&into, &mut |_| ()).unwrap_err();
                assert!(matches!(&refused, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::ResourceBusy), "{refused}");
            })
        }));
        assert!(killed.is_err() && !into.exists() && partial.exists(), "{at}");
    }
    let done = store.backup(&into, &mut |_| ()).unwrap();
    assert_eq!(
        (done.report.verdict(), done.path.as_path(), partial.exists()),
        (Verdict::Sound, into.as_path(), false)
    );
    // A kill behind the last step: the same command again finds the copy whole, and later makes a newer one in its place.
    let again = store.backup(&into, &mut |_| ()).unwrap();
    assert_eq!((again.bytes, again.head, again.report.verdict()), (0, done.head, Verdict::Sound));
    let _ = store.append(&session(), message(100)).unwrap();
    let newer = store.backup(&into, &mut |_| ()).unwrap();
    assert!(newer.bytes > 0 && newer.head > done.head && !partial.exists());
    assert_eq!(verify_folder(&into, true).unwrap().head_seq, newer.head);
    // Anything else in the folder stays: another store, a file beside the copy, a copy that was written to, a damaged or longer one.
    let harms: [(&str, Harm); 5] = [
        ("another store", &|at| {
            std::fs::remove_dir_all(at).unwrap();
            let _ =
                Store::builder(at).any_file_system().open().unwrap().append(&session(), message(1)).unwrap();
        }),
        ("a note", &|at| std::fs::write(at.join("notes.txt"), "mine").unwrap()),
        ("a copy that was written to", &|at| {
            let copy = Store::builder(at).any_file_system().open().unwrap();
            let _ = copy.append(&session(), message(7)).unwrap();
        }),
        ("a damaged copy", &|at| {
            let segment = at.join("log/000000000001.seg");
            let mut bytes = std::fs::read(&segment).unwrap();
            bytes[9000] ^= 1;
            std::fs::write(&segment, bytes).unwrap();
        }),
        ("a copy without its end", &|at| std::fs::remove_file(at.join("tail")).unwrap()),
    ];
    for (name, harm) in harms {
        let at = folder.path().join(name);
        let _ = store.backup(&at, &mut |_| ()).unwrap();
        harm(&at);
        let _ = store.append(&session(), message(101)).unwrap();
        let before = tree(&at);
        let refused = store.backup(&at, &mut |_| ()).unwrap_err();
        assert!(
            matches!(&refused, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists),
            "{name}: {refused}"
        );
        assert!(tree(&at) == before, "{name}");
    }
    for inside in [path.clone(), path.join("deep/copy")] {
        assert!(store.backup(&inside, &mut |_| ()).is_err(), "{}", inside.display());
    }
    assert!(!path.join("deep").exists());
    // One that fails leaves nothing.
    let gone = folder.path().join("gone");
    assert!(salvage(&folder.path().join("nothing"), &gone, &mut |_| ()).is_err());
    assert_eq!((gone.exists(), folder.path().join("gone.partial").exists()), (false, false));
}

/// The older copy was judged before the newer one was made: what another program recorded in it meanwhile went with it.
#[test]
fn nothing_that_was_acknowledged_in_an_older_copy_goes_with_it() {
    let folder = tempfile::TempDir::new().unwrap();
    let (path, into) = (folder.path().join("store"), folder.path().join("copy"));
    let store = Store::builder(&path).any_file_system().segment_bytes_max(20_000).open().unwrap();
    let open = |bare: bool| {
        let builder =
            Store::builder(&into).any_file_system().create(false).lock_wait(std::time::Duration::ZERO);
        // A handle that leaves no name in the folder.
        if bare { builder.index(false).sealing(false).snapshots(false).open() } else { builder.open() }
    };
    for number in 0..30 {
        let _ = store.append(&session(), message(number)).unwrap();
    }
    let _ = store.backup(&into, &mut |_| ()).unwrap();
    // Opened before the copy is judged, and not used until later.
    let early = open(true).unwrap();
    for (number, bare) in [(100, false), (101, true)] {
        let _ = store.append(&session(), message(number)).unwrap();
        let (mut acknowledged, mut late) = (Vec::new(), Vec::new());
        let done = store.backup(&into, &mut |_| {
            for writer in [Ok(early.clone()), open(bare)].into_iter().flatten() {
                match writer.append(&session(), message(1000 + number)) {
                    Ok(_) => acknowledged.push(format!("{bare}")),
                    // It was moved in the round before.
                    Err(Error::Busy { .. } | Error::ReadOnly { .. }) => {}
                    Err(error) => panic!("{error:?}"),
                }
                late.push(writer);
            }
        });
        assert!(!late.is_empty(), "a writer was there");
        assert_eq!(acknowledged, Vec::<String>::new(), "{:?}", done.map(|done| done.head));
        let newer = done.unwrap();
        assert_eq!(newer.head, store.head().unwrap());
        for writer in late {
            let refused = writer.append(&session(), message(2000 + number)).unwrap_err();
            assert!(!matches!(refused, Error::Busy { .. }), "{refused:?}");
        }
        assert_eq!(verify_folder(&into, true).unwrap().head_seq, newer.head);
    }
    // A copy whose lock a writer holds stays, and so does one that a writer used before.
    let _ = store.append(&session(), message(200)).unwrap();
    let held = std::fs::File::open(into.join("tail")).unwrap();
    held.lock().unwrap();
    let before = tree(&into);
    let refused = store.backup(&into, &mut |_| ()).unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }), "{refused:?}");
    assert!(tree(&into) == before);
    drop(held);
    let _ = store.backup(&into, &mut |_| ()).unwrap();
    let writer = open(true).unwrap();
    let _ = writer.append(&session(), message(3000)).unwrap();
    let _ = store.append(&session(), message(201)).unwrap();
    let refused = store.backup(&into, &mut |_| ()).unwrap_err();
    assert!(matches!(refused, Error::Io { .. }), "{refused:?}");
    assert!(lines(&writer).unwrap().len() > 30, "it stays");
}

#[test]
fn backups_beside_a_writer_are_all_sound_prefixes() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("store");
    let open = || Store::builder(&path).any_file_system().segment_bytes_max(20_000).open().unwrap();
    let store = open();
    let done = AtomicBool::new(false);
    let backups = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = 0;
            while !done.load(Ordering::Relaxed) {
                let _ = store.append(&session(), message(number)).unwrap();
                number += 1;
            }
        });
        let reader = open();
        let mut backups = Vec::new();
        for round in 0..8 {
            // Each one later than the one before.
            let begun = reader.head().unwrap();
            while reader.head().unwrap() < Seq(begun.0 + 20) {
                std::thread::yield_now();
            }
            let target = folder.path().join(format!("copy{round}"));
            backups.push((target.clone(), reader.backup(&target, &mut |_| ()).unwrap()));
        }
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        backups
    });
    let all = lines(&store).unwrap();
    for (target, backup) in backups {
        assert_eq!(backup.report.verdict(), Verdict::Sound, "{:#?}", backup.report);
        let copy = Store::builder(&target).any_file_system().open().unwrap();
        let said = lines(&copy).unwrap();
        assert_eq!(said.len() as u64, backup.head.0);
        assert_eq!(said, all[..said.len()], "a prefix");
    }
}

/// Salvages, checks that the result is sound, and that each of its events has its old seq.
fn salvaged(world: &SimWorld, said: &[String]) -> (Salvaged, Vec<String>) {
    let before: Vec<_> = world.files().iter().map(|name| (name.clone(), world.file(name))).collect();
    let copy = SimWorld::new(8);
    let done = tried(world, &copy).unwrap();
    let after: Vec<_> = world.files().iter().map(|name| (name.clone(), world.file(name))).collect();
    assert_eq!(before, after, "the source is only read");
    let report = verify_storage(Arc::new(copy.process(2)), true).unwrap();
    // Texts that could not be copied are on record as erased.
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    assert_eq!(report.head_seq, done.head);
    let store = open(&copy, 3).unwrap();
    let mut now = Vec::new();
    for recorded in store.events(Seq(1), Seq::MAX).unwrap() {
        let recorded = recorded.unwrap();
        let lost =
            recorded.event.payload.label() == "damage_noted" || recorded.event.payload.label() == "erased";
        let at = recorded.seq.0 as usize - 1;
        if !lost && let Ok(line) = line_of(&store, &recorded) {
            assert_eq!(line, said[at], "what is kept keeps its place");
            now.push(line);
        }
    }
    let _ = store.append(&session(), message(1000)).unwrap();
    (done, now)
}

fn tried(world: &SimWorld, into: &SimWorld) -> Result<Salvaged, Error> {
    salvage_storage(Arc::new(world.process(9)), Arc::new(into.process(1)), &KeyUse::None, &mut |_| ())
}

#[test]
fn all_of_a_sound_store_is_salvaged() {
    let (world, said) = filled(12);
    let (done, now) = salvaged(&world, &said);
    assert_eq!((done.lost_events.len(), done.lost_bodies.len()), (0, 0));
    assert_eq!(now, said);
}

#[test]
fn every_damaged_byte_costs_what_it_touches_and_no_more() {
    let (world, said) = filled(12);
    let name = segments(&world)[1].clone();
    let sound = world.file(&name).unwrap();
    let (mut lost_events, mut lost_bodies) = (0, 0);
    for at in (0..sound.len()).step_by(37) {
        let world = world.fork(1);
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        world.set_file(&name, bytes);
        let (done, now) = salvaged(&world, &said);
        let lost: u64 = done.lost_events.iter().map(|(first, last)| last.0 - first.0 + 1).sum();
        assert!(lost <= 2 && done.lost_bodies.len() <= 1, "byte {at}: {done:#?}");
        assert_eq!(now.len() as u64 + lost + done.lost_bodies.len() as u64, said.len() as u64, "byte {at}");
        lost_events += lost;
        lost_bodies += done.lost_bodies.len();
    }
    assert!(lost_events > 0 && lost_bodies > 0, "both kinds of damage were met");
}

fn lost_count(done: &Salvaged) -> u64 {
    done.lost_events.iter().map(|(first, last)| last.0 - first.0 + 1).sum()
}

/// Events lost behind the last sound event were not counted, and a copy of one event of hundreds was said to lack nothing. Now every
/// event is copied or told of as lost, wherever the damage is: in the middle, in the last segment, in the witnesses of its end.
#[test]
fn every_event_of_a_damaged_store_is_copied_or_said_to_be_lost() {
    let (world, said) = filled(12);
    let (mut lost_at_end, mut whole) = (0, 0);
    for name in world.files() {
        let sound = world.file(&name).unwrap();
        for at in (0..sound.len()).step_by(101) {
            let world = world.fork(1);
            let mut bytes = sound.clone();
            bytes[at] ^= 0x10;
            world.set_file(&name, bytes);
            let (done, now) = salvaged(&world, &said);
            assert_eq!(done.source_head.0, said.len() as u64, "{name} byte {at}: {done:#?}");
            assert_eq!(done.events + lost_count(&done), said.len() as u64, "{name} byte {at}: {done:#?}");
            assert!(!done.is_whole() || now == said, "{name} byte {at}: {done:#?}");
            lost_at_end += u64::from(done.lost_events.iter().any(|(_, last)| *last == done.source_head));
            whole += u64::from(done.is_whole());
        }
    }
    assert!(lost_at_end > 0 && whole > 0, "{lost_at_end} {whole}");
}

/// Nothing beside the log says where it ended: that nothing more was recorded is not known, and not said.
#[test]
fn a_store_of_which_no_witness_is_left_is_not_called_whole() {
    let (world, said) = filled(3);
    for name in world.files() {
        if !name.ends_with(".seg") && name != "acpdb.json" && name != "secret" {
            world.remove_file(&name);
        }
    }
    let (done, now) = salvaged(&world, &said);
    assert_eq!((now, done.lost_events.len(), done.source_head_is_known), (said, 0, false));
    assert!(!done.is_whole());
}

/// A commit is checked as a whole: damage in it costs its events, in one stretch, and nothing beside them.
#[test]
fn a_damaged_commit_of_many_events_is_one_lost_stretch() {
    let world = SimWorld::new(3);
    let store = open(&world, 1).unwrap();
    let _ = store.append(&session(), message(1000)).unwrap();
    let entries: Vec<Entry> = (0..100).flat_map(message).collect();
    let commit = store.append(&session(), entries).unwrap();
    let _ = store.append(&session(), message(2000)).unwrap();
    store.close().unwrap();
    let said = lines(&store).unwrap();
    let (mut lost_commits, mut lost_texts) = (0, 0);
    for name in segments(&world) {
        for at in (4096..world.file(&name).unwrap().len()).step_by(509) {
            let (done, now) = salvaged(&flipped(&world, &name, at), &said);
            assert_eq!(done.events + lost_count(&done), said.len() as u64, "byte {at}: {done:#?}");
            assert!(done.lost_events.len() <= 1, "byte {at}: {done:#?}");
            assert_eq!(now.len() + lost_count(&done) as usize + done.lost_bodies.len(), said.len());
            lost_commits += u64::from(lost_count(&done) == commit.event_count);
            lost_texts += done.lost_bodies.len();
        }
    }
    assert!(lost_commits > 5 && lost_texts > 5, "{lost_commits} {lost_texts}");
}

/// A world in which a file has a wrong bit.
fn flipped(world: &SimWorld, name: &str, at: usize) -> SimWorld {
    let world = world.fork(1);
    let mut bytes = world.file(name).unwrap();
    bytes[at] ^= 0x10;
    world.set_file(name, bytes);
    world
}

/// The place of the only copy of some bytes.
fn place_of(world: &SimWorld, text: &str) -> (String, usize) {
    let holds = |name: &String| {
        let bytes = world.file(name).unwrap();
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes());
        at.map(|at| (name.clone(), at))
    };
    segments(world).iter().find_map(holds).unwrap()
}

/// Overwrites a text with zeros, as an erasure does and as some disks do.
fn zeroed(world: &SimWorld, text: &str) -> SimWorld {
    let (name, at) = place_of(world, text);
    let world = world.fork(1);
    let mut bytes = world.file(&name).unwrap();
    // The salt lies before it, and is zeroed with it.
    bytes[at - 16..at + text.len()].fill(0);
    world.set_file(&name, bytes);
    world
}

fn text(number: u32) -> String {
    format!("message {number} {}", "x".repeat(300))
}

/// All events are there, and the new store does not know them by their ids. That was called whole, and the next import recorded all
/// of them again.
#[test]
fn a_store_whose_secret_is_lost_is_not_called_whole() {
    let (world, said) = filled(5);
    world.remove_file("secret");
    let (done, now) = salvaged(&world, &said);
    assert!(done.has_new_secret && !done.is_whole(), "{done:#?}");
    assert_eq!(now, said);
}

/// Payloads and bodies are copied byte for byte: a body keeps its salt, so its digest, and a proof of it, hold in both stores.
#[test]
fn bodies_keep_their_digests() {
    let (world, _) = filled(12);
    let copy = SimWorld::new(8);
    let _ = tried(&world, &copy).unwrap();
    let digests = |world: &SimWorld| -> Vec<_> {
        let (storage, clock) = (Arc::new(world.process(4)), Arc::new(world.process(4).clock()));
        let (log, _) = Log::open(storage, clock, Arc::new(SystemEntropy), LogOptions::default()).unwrap();
        let until = log.refresh().unwrap();
        log.frames(Position::default(), until)
            .flat_map(|frame| frame.unwrap().rows().map(|row| row.digest).collect::<Vec<_>>())
            .collect()
    };
    let (was, is) = (digests(&world), digests(&copy));
    assert!(!was.is_empty());
    assert_eq!(is[..was.len()], was[..]);
}

/// Two events have one text, which lies in the store once. Each of them is told of, and says that it is lost.
#[test]
fn every_event_that_had_a_lost_text_says_that_it_is_lost() {
    let world = SimWorld::new(3);
    let store = open(&world, 1).unwrap();
    let said = |name| Entry::message(name, Role::User, text(1));
    let _ = store.append(&session(), ["m1", "m2"].map(said).to_vec()).unwrap();
    store.close().unwrap();
    let (name, at) = place_of(&world, &text(1));
    let copy = SimWorld::new(8);
    let done = tried(&flipped(&world, &name, at), &copy).unwrap();
    let store = open(&copy, 3).unwrap();
    assert_eq!(done.lost_bodies.len(), 2);
    for lost in &done.lost_bodies {
        let refused = store.body(BodyId { seq: lost.seq, first: lost.row, chunks: 1 }).unwrap_err();
        assert!(refused.to_string().contains("was lost"), "{lost:?}: {refused}");
    }
}

/// Zeros without a record of an erasure are damage, unless the record may be among the events that are lost.
#[test]
fn zeros_are_called_damage_only_where_no_record_of_an_erasure_can_be_lost() {
    let (world, _) = filled(12);
    let zeros = zeroed(&world, &text(7));
    let (name, at) = place_of(&zeros, &text(9));
    let bytes = zeros.file(&name).unwrap();
    let frame = bytes[..at].windows(4).rposition(|window| window == b"ACPF").unwrap();
    let tailless = zeros.fork(2);
    tailless.remove_file("tail");
    for (world, words) in [
        (zeros.fork(1), "it was damaged in store"),
        (flipped(&zeros, &name, frame + 170), "erased or damaged in store"),
        (tailless, "erased or damaged in store"),
    ] {
        let copy = SimWorld::new(8);
        let done = tried(&world, &copy).unwrap();
        let [lost] = done.lost_bodies.as_slice() else { panic!("{done:#?}") };
        let body = BodyId { seq: lost.seq, first: lost.row, chunks: 1 };
        let refused = open(&copy, 3).unwrap().body(body).unwrap_err();
        assert!(refused.to_string().contains(words), "{refused}");
    }
}

#[test]
fn a_lost_segment_and_a_lost_end_leave_notes_in_their_place() {
    let (world, said) = filled(30);
    let names = segments(&world);
    world.remove_file(&names[1]);
    world.remove_file(names.last().unwrap());
    let (done, now) = salvaged(&world, &said);
    assert_eq!(done.lost_events.len(), 2, "{done:#?}");
    let lost: u64 = done.lost_events.iter().map(|(first, last)| last.0 - first.0 + 1).sum();
    assert_eq!(now.len() as u64 + lost, said.len() as u64);
    assert_eq!(done.head.0, said.len() as u64 + 1, "the note at the end comes after all that was");
}
