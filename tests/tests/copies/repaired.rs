//! What damage took and a backup has comes back to its place.

use acpdb_engine::event::Role;
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::storage::SimWorld;
use acpdb_engine::store::Salvaged;
use acpdb_engine::{Entry, Error, Store};
use acpdb_tests::support::{line_of, lines};

use crate::{filled, lost_count, message, open, salvaged, salvaged_with, segments, session, tried};

/// Goes on with the store that is in this world; what it says then.
fn more(world: &SimWorld, process: u32, numbers: std::ops::Range<u32>) -> Vec<String> {
    let store = open(world, process).unwrap();
    for number in numbers {
        let _ = store.append(&session(), message(number)).unwrap();
    }
    store.close().unwrap();
    lines(&store).unwrap()
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

fn is_refused(outcome: Result<Salvaged, Error>, why: &str) -> bool {
    let Err(Error::Io { action: "salvage with the backup in", source, .. }) = &outcome else { return false };
    source.to_string().contains(why)
}

#[test]
fn a_damaged_byte_costs_nothing_that_a_backup_has() {
    let (world, _) = filled(12);
    let backup = world.fork(2);
    let kept = lines(&open(&backup, 3).unwrap()).unwrap().len() as u64;
    let said = more(&world, 4, 20..26);
    let (mut events, mut bodies, mut lost) = (0, 0, 0);
    for name in segments(&world) {
        let sound = world.file(&name).unwrap();
        for at in (0..sound.len()).step_by(37) {
            let damaged = flipped(&world, &name, at);
            let (done, now) = salvaged_with(&damaged, &[&backup], &said);
            let told = format!("{name} byte {at}: {done:#?}");
            assert!(done.lost_events.iter().all(|(first, _)| first.0 > kept), "{told}");
            assert!(done.lost_bodies.iter().all(|body| body.seq.0 > kept), "{told}");
            let gone = lost_count(&done) + done.lost_bodies.len() as u64;
            assert_eq!(now.len() as u64 + gone, said.len() as u64, "{told}");
            assert_eq!(done.events + lost_count(&done), said.len() as u64, "{told}");
            if gone == 0 {
                assert_eq!(now, said, "{told}");
                // A witness may tell of a place behind the backup that is damaged, though no event is.
                assert!(done.contradicting.iter().all(|witness| witness.seq > Some(Seq(kept))), "{told}");
            }
            let (alone, _) = salvaged(&damaged, &said);
            assert!(lost_count(&alone) + alone.lost_bodies.len() as u64 >= gone, "{told}");
            events += done.events_from_backups;
            bodies += done.bodies_from_backups;
            lost += gone;
        }
    }
    assert!(events > 0 && bodies > 0 && lost > 0, "{events} {bodies} {lost}: all three were met");
}

#[test]
fn a_lost_segment_a_lost_end_and_a_lost_secret_come_back() {
    let (world, said) = filled(30);
    let backup = world.fork(2);
    let names = segments(&world);
    let last = names.last().unwrap();
    for gone in [vec![&names[1]], vec![last], vec![&names[1], last], vec![&names[0], &names[2]]] {
        let world = world.fork(1);
        for name in &gone {
            world.remove_file(name);
        }
        world.remove_file("secret");
        let (done, now) = salvaged_with(&world, &[&backup], &said);
        assert!(done.is_whole() && done.events_from_backups > 0, "{gone:?}: {done:#?}");
        assert_eq!(now, said, "{gone:?}");
    }
}

/// A large commit is cut into pieces: those that are damaged come from the backup, the others from the store.
#[test]
fn the_damaged_pieces_of_a_commit_come_back() {
    let world = SimWorld::new(3);
    let store = open(&world, 1).unwrap();
    let entries: Vec<Entry> = (0..100).flat_map(message).collect();
    let _ = store.append(&session(), entries).unwrap();
    store.close().unwrap();
    let said = lines(&store).unwrap();
    let backup = world.fork(2);
    let name = segments(&world).pop().unwrap();
    let mut in_pieces = 0;
    for at in (4096..world.file(&name).unwrap().len()).step_by(1009) {
        let (done, now) = salvaged_with(&flipped(&world, &name, at), &[&backup], &said);
        assert!(done.is_whole(), "byte {at}: {done:#?}");
        assert_eq!(now, said, "byte {at}");
        in_pieces += u64::from((1..=8).contains(&done.events_from_backups));
    }
    assert!(in_pieces > 5, "{in_pieces}");
}

#[test]
fn two_damaged_backups_give_what_either_has() {
    let (world, said) = filled(12);
    let texts = ["message 3 ", "message 5 ", "message 7 "];
    let damaged = |texts: &[&str]| {
        texts.iter().fold(world.fork(1), |world, text| {
            let (name, at) = place_of(&world, text);
            flipped(&world, &name, at)
        })
    };
    let store = damaged(&texts);
    let (one, other) = (damaged(&texts[..2]), damaged(&texts[1..]));
    let (done, now) = salvaged_with(&store, &[&one, &other], &said);
    assert_eq!((done.bodies_from_backups, done.lost_bodies.len()), (2, 1), "{done:#?}");
    assert_eq!(now.len() + 1, said.len());
}

/// Two events have one text, which lies in the store once.
#[test]
fn a_text_that_two_events_have_comes_back_to_both() {
    let world = SimWorld::new(3);
    let store = open(&world, 1).unwrap();
    for name in ["m1", "m2", "m3"] {
        let text = if name == "m2" { "something else" } else { "the same words twice" };
        let _ = store.append(&session(), vec![Entry::message(name, Role::User, text)]).unwrap();
    }
    store.close().unwrap();
    let said = lines(&store).unwrap();
    let (name, at) = place_of(&world, "the same words twice");
    let damaged = flipped(&world, &name, at);
    let (alone, _) = salvaged(&damaged, &said);
    let (done, now) = salvaged_with(&damaged, &[&world.fork(2)], &said);
    assert!(!alone.is_whole() && done.is_whole(), "{done:#?}");
    assert_eq!((now, done.bodies_from_backups), (said, 1));
}

fn items(store: &Store, text: &str) -> ItemId {
    let said = lines(store).unwrap();
    let at = said.iter().position(|line| line.contains(text)).unwrap();
    ItemId::first(Seq(at as u64 + 1))
}

/// A backup from before an erasure has what a person wanted gone.
#[test]
fn an_erased_text_does_not_come_back_from_a_backup() {
    let (world, _) = filled(12);
    let before = world.fork(2);
    let store = open(&world, 5).unwrap();
    let item = items(&store, "message 4 ");
    let _ = store.erase(item, "ada", "it leaked").unwrap();
    store.close().unwrap();
    drop(store);
    let text = |number: u32| format!("message {number} {}", "x".repeat(300));
    assert!(!before.files().is_empty() && place_of(&before, &text(4)).1 > 0, "the backup has it");
    let erasure = place_of(&world, "it leaked");
    let damaged = zeroed(&world, &text(7));
    let without_record = flipped(&damaged, &erasure.0, erasure.1);
    let header = {
        // A byte of the spine of its frame, so that the event itself is lost.
        let bytes = world.file(&erasure.0).unwrap();
        let at = bytes[..erasure.1].windows(4).rposition(|window| window == b"ACPF").unwrap();
        flipped(&damaged, &erasure.0, at + 170)
    };
    for (what, world, comes_back) in [
        ("the record is sound", &damaged, true),
        ("its reason is damaged", &without_record, true),
        // Nothing says which of the two zeros was wanted: neither comes back.
        ("it is lost", &header, false),
    ] {
        let copy = SimWorld::new(8);
        let done = tried(world, &[&before], &copy).unwrap();
        let store = open(&copy, 3).unwrap();
        let recorded = store.events(Seq(1), Seq::MAX).unwrap();
        let now: String = recorded.filter_map(|event| line_of(&store, &event.unwrap()).ok()).collect();
        assert!(!now.contains(&text(4)), "{what}: {done:#?}");
        assert_eq!(done.lost_events.is_empty(), comes_back, "{what}: {done:#?}");
        assert_eq!(now.contains(&text(7)), comes_back, "{what}: {done:#?}");
    }
}

#[test]
fn a_backup_of_another_store_is_refused() {
    let (world, _) = filled(3);
    let other = SimWorld::new(77);
    let store = open(&other, 9).unwrap();
    let _ = store.append(&session(), message(1)).unwrap();
    store.close().unwrap();
    let outcome = tried(&world, &[&other], &SimWorld::new(8));
    assert!(is_refused(outcome, "it holds store"));
}

/// A copy of a store that was written to by itself has the id of the store, and seqs that mean other events.
#[test]
fn a_copy_that_went_its_own_way_is_refused() {
    let (world, _) = filled(6);
    let other = world.fork(2);
    let _ = more(&world, 4, 20..30);
    let _ = more(&other, 5, 40..50);
    let outcome = tried(&world, &[&other], &SimWorld::new(8));
    assert!(is_refused(outcome, "it has another history than the store from"));
    // All that could be compared is lost; the page that names the end still knows.
    let names = segments(&world);
    for name in &names[1..] {
        world.remove_file(name);
    }
    let outcome = tried(&world, &[&other], &SimWorld::new(8));
    let refused = format!("{outcome:?}");
    assert!(is_refused(outcome, "it has another history than"), "{refused}");
}

/// The folder is gone but for a backup and what is newer than it.
#[test]
fn a_backup_that_is_ahead_of_what_is_left_gives_the_end() {
    let (world, said) = filled(12);
    let backup = world.fork(2);
    for name in world.files() {
        if !name.ends_with(".seg") && name != "acpdb.json" {
            world.remove_file(&name);
        }
    }
    world.remove_file(segments(&world).last().unwrap());
    let (done, now) = salvaged_with(&world, &[&backup], &said);
    assert_eq!((done.source_head.0, now), (said.len() as u64, said));
    assert!(!done.source_head_is_known, "there may have been more behind the backup");
}
