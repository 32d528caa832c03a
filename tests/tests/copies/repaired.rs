//! Events that damage took and a backup has come back to their places.

use std::sync::Arc;

use acpdb_engine::codec::{EncodedEvent, Envelope, payload};
use acpdb_engine::event::{Actor, BodyAddress, Erased, Payload, Role, Stamp};
use acpdb_engine::ids::{BodyId, ItemId, Origin, Seq, StreamId};
use acpdb_engine::log::{Log, LogOptions};
use acpdb_engine::storage::{SimWorld, SystemEntropy};
use acpdb_engine::store::Salvaged;
use acpdb_engine::{Atomicity, Batch, Entry, Error, Store};
use acpdb_tests::support::{line_of, lines};

use crate::{filled, lost_count, message, open, salvaged, salvaged_with, segments, session, tried};

/// Goes on with the store that is in this world; returns its lines afterwards.
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

fn is_refused(outcome: &Result<Salvaged, Error>, why: &str) -> bool {
    let Err(Error::Io { action: "salvage with the backup in", source, .. }) = outcome else { return false };
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

/// All events are there, and the new store does not know them by their ids. That was called whole, and the next import recorded all
/// of them again.
#[test]
fn a_store_whose_secret_is_lost_is_not_called_whole() {
    let (world, said) = filled(5);
    let backup = world.fork(2);
    world.remove_file("secret");
    let (done, now) = salvaged(&world, &said);
    assert!(done.has_new_secret && !done.is_whole(), "{done:#?}");
    assert_eq!(now, said);
    let (done, _) = salvaged_with(&world, &[&backup], &said);
    assert!(done.is_whole(), "{done:#?}");
}

/// A damaged commit comes from the backup, the others from the store.
#[test]
fn a_damaged_commit_comes_back() {
    let world = SimWorld::new(3);
    let store = open(&world, 1).unwrap();
    let entries: Vec<Entry> = (0..400).flat_map(message).collect();
    let _ = store.commit(&[Batch { stream: session(), entries }], Atomicity::Split).unwrap();
    store.close().unwrap();
    let said = lines(&store).unwrap();
    let backup = world.fork(2);
    let name = segments(&world).pop().unwrap();
    let mut commits = 0;
    for at in (4096..world.file(&name).unwrap().len()).step_by(9013) {
        let (done, now) = salvaged_with(&flipped(&world, &name, at), &[&backup], &said);
        assert!(done.is_whole(), "byte {at}: {done:#?}");
        assert_eq!(now, said, "byte {at}");
        commits += u64::from((1..=256).contains(&done.events_from_backups));
    }
    assert!(commits > 3, "{commits}");
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
    let said = |(name, number)| Entry::message(name, Role::User, text(number));
    let _ = store.append(&session(), [("m1", 1), ("m2", 2), ("m3", 1)].map(said).to_vec()).unwrap();
    store.close().unwrap();
    let said = lines(&store).unwrap();
    let (name, at) = place_of(&world, &text(1));
    let damaged = flipped(&world, &name, at);
    let (alone, _) = salvaged(&damaged, &said);
    // The second event was not told of, and its text was called damaged in the new store.
    assert_eq!(alone.lost_bodies.len(), 2, "{alone:#?}");
    let (done, now) = salvaged_with(&damaged, &[&world.fork(2)], &said);
    assert!(done.is_whole(), "{done:#?}");
    assert_eq!((now, done.bodies_from_backups), (said, 2));
}

#[test]
fn every_event_that_had_a_lost_text_says_that_it_is_lost() {
    let world = SimWorld::new(3);
    let store = open(&world, 1).unwrap();
    let said = |name| Entry::message(name, Role::User, text(1));
    let _ = store.append(&session(), ["m1", "m2"].map(said).to_vec()).unwrap();
    store.close().unwrap();
    let (name, at) = place_of(&world, &text(1));
    let copy = SimWorld::new(8);
    let done = tried(&flipped(&world, &name, at), &[], &copy).unwrap();
    let store = open(&copy, 3).unwrap();
    assert_eq!(done.lost_bodies.len(), 2);
    for lost in &done.lost_bodies {
        let refused = store.body(BodyId { seq: lost.seq, first: lost.row, chunks: 1 }).unwrap_err();
        assert!(refused.to_string().contains("was lost"), "{lost:?}: {refused}");
    }
}

fn items(store: &Store, text: &str) -> ItemId {
    let said = lines(store).unwrap();
    let at = said.iter().position(|line| line.contains(text)).unwrap();
    ItemId::first(Seq(at as u64 + 1))
}

/// The lines of a store, without the texts that it does not have.
fn told(world: &SimWorld) -> String {
    let store = open(world, 3).unwrap();
    let recorded = store.events(Seq(1), Seq::MAX).unwrap();
    recorded.filter_map(|event| line_of(&store, &event.unwrap()).ok()).collect()
}

fn text(number: u32) -> String {
    format!("message {number} {}", "x".repeat(300))
}

/// Changes a byte in the spine of the frame that holds these words, or of its header.
fn frame_broken(world: &SimWorld, words: &str, offset: usize) -> SimWorld {
    let (name, at) = place_of(world, words);
    let bytes = world.file(&name).unwrap();
    let frame = bytes[..at].windows(4).rposition(|window| window == b"ACPF").unwrap();
    flipped(world, &name, frame + offset)
}

const HEADER: usize = 20;
const SPINE: usize = 170;

/// A store, a backup of it, and the store after `message 4` was erased.
fn erased_since() -> (SimWorld, SimWorld) {
    let (world, _) = filled(12);
    let before = world.fork(2);
    let store = open(&world, 5).unwrap();
    let _ = store.erase(items(&store, "message 4 "), "ada", "it leaked").unwrap();
    store.close().unwrap();
    assert!(told(&before).contains(&text(4)) && !told(&world).contains(&text(4)));
    (world, before)
}

/// A backup from before an erasure has the text that a person wanted gone.
#[test]
fn an_erased_text_does_not_come_back_from_a_backup() {
    let (world, before) = erased_since();
    let damaged = zeroed(&world, &text(7));
    let (reason, at) = place_of(&world, "it leaked");
    for (what, world, comes_back) in [
        ("the record is sound", damaged.fork(1), true),
        ("its reason is damaged", flipped(&damaged, &reason, at), true),
        // Nothing says which of the two zeros was wanted, where both are in one segment.
        ("it is lost", frame_broken(&damaged, "it leaked", SPINE), false),
        ("its header is lost", frame_broken(&damaged, "it leaked", HEADER), false),
    ] {
        let copy = SimWorld::new(8);
        let done = tried(&world, &[&before], &copy).unwrap();
        let now = told(&copy);
        assert!(!now.contains(&text(4)), "{what}: {done:#?}");
        assert_eq!(done.lost_events.is_empty(), comes_back, "{what}: {done:#?}");
        let alike = place_of(&before, &text(4)).0 != place_of(&before, &text(7)).0;
        assert_eq!(now.contains(&text(7)), comes_back || alike, "{what}: {done:#?}");
    }
}

/// The record was the last event, and only a checkpoint from before it is left to say where the log ended.
#[test]
fn an_erased_text_does_not_come_back_where_an_older_checkpoint_names_the_end() {
    let (world, before) = erased_since();
    let (name, at) = place_of(&world, "it leaked");
    let bytes = world.file(&name).unwrap();
    let frame = bytes[..at].windows(4).rposition(|window| window == b"ACPF").unwrap();
    let mut bytes = bytes.clone();
    bytes[frame..].fill(0);
    world.set_file(&name, bytes);
    world.remove_file("tail");
    world.set_file("checkpoint", before.file("checkpoint").unwrap());
    for name in world.files() {
        if name.starts_with("snap/") || name.starts_with("index") {
            world.remove_file(&name);
        }
    }
    let copy = SimWorld::new(8);
    let done = tried(&world, &[&before], &copy).unwrap();
    assert!(!told(&copy).contains(&text(4)), "{done:#?}");
}

/// The record and all that knows of it were put back; the segment of the text still counts one erasure more than the backup.
#[test]
fn an_erased_text_does_not_come_back_where_only_its_segment_knows() {
    let (world, before) = erased_since();
    let place = place_of(&before, &text(4)).0;
    for name in world.files() {
        match before.file(&name) {
            Some(_) if name == place => {}
            Some(bytes) => world.set_file(&name, bytes),
            None => world.remove_file(&name),
        }
    }
    // An erasure that a merge records for texts that came without their bytes zeroed nothing, and accounts for nothing.
    let merged = world.fork(3);
    let beside = [3, 5].into_iter().find(|number| place_of(&before, &text(*number)).0 == place).unwrap();
    let item = items(&open(&before, 6).unwrap(), &format!("message {beside} "));
    record_by_hand(&merged, &[erasure_of(item.seq, Actor::Policy, 0)]);
    for world in [world, merged] {
        let copy = SimWorld::new(8);
        let done = tried(&world, &[&before], &copy).unwrap();
        assert!(!told(&copy).contains(&text(4)), "{done:#?}");
        assert!(!done.is_whole());
    }
}

/// A record of an erasure, as it is encoded.
fn erasure_of(seq: Seq, actor: Actor, number: u32) -> EncodedEvent {
    let bodies = vec![BodyAddress { seq, row: 0 }];
    let erased = Payload::from(Erased { bodies, by: format!("eraser {number}"), ..Erased::default() });
    let stamp = Stamp { actor, ..Stamp::default() };
    let (version, payload) = payload::encode(&stamp, &erased).unwrap();
    let (kind, stream) = (erased.number(), StreamId::STORE);
    let envelope = Envelope { kind, version, stream, origin: Origin::ZERO, host_time: None };
    EncodedEvent { envelope, payload, bodies: Vec::new() }
}

fn record_by_hand(world: &SimWorld, events: &[EncodedEvent]) {
    let clock = Arc::new(world.process(7).clock());
    let storage = Arc::new(world.process(7));
    let (log, _) = Log::open(storage, clock, Arc::new(SystemEntropy), LogOptions::default()).unwrap();
    let _ = log.append(log.prepare(events).unwrap(), &[]).unwrap();
}

/// Zeros in a segment of which nothing was erased since the backup are damage, even if more is lost elsewhere.
#[test]
fn a_text_of_zeros_comes_back_though_the_newest_event_is_lost() {
    let (world, _) = filled(12);
    let backup = world.fork(2);
    let _ = more(&world, 4, 20..21);
    let damaged = frame_broken(&zeroed(&world, &text(7)), &text(20), SPINE);
    let copy = SimWorld::new(8);
    let done = tried(&damaged, &[&backup], &copy).unwrap();
    assert_eq!((lost_count(&done), done.lost_bodies.len()), (1, 0), "{done:#?}");
    assert!(told(&copy).contains(&text(7)));
}

#[test]
fn a_backup_of_another_store_is_refused() {
    let (world, _) = filled(3);
    let other = SimWorld::new(77);
    let store = open(&other, 9).unwrap();
    let _ = store.append(&session(), message(1)).unwrap();
    store.close().unwrap();
    let outcome = tried(&world, &[&other], &SimWorld::new(8));
    assert!(is_refused(&outcome, "it holds store"));
}

/// A copy of a store that was written to by itself has the id of the store, and seqs that mean other events. Where the store's own
/// events are lost, the commit behind them still names the one that is gone.
#[test]
fn a_copy_that_went_its_own_way_is_refused() {
    let (world, _) = filled(6);
    let other = world.fork(2);
    let _ = more(&world, 4, 20..26);
    let _ = more(&other, 5, 40..43);
    let lost =
        |offset| (20..23).fold(world.fork(1), |world, number| frame_broken(&world, &text(number), offset));
    for (what, damaged) in [
        ("sound", world.fork(1)),
        ("spines", lost(SPINE)),
        ("headers", lost(HEADER)),
        ("the end", {
            let world = world.fork(1);
            for name in &segments(&world)[2..] {
                world.remove_file(name);
            }
            world
        }),
    ] {
        let outcome = tried(&damaged, &[&other], &SimWorld::new(8));
        let told = format!("{what}: {outcome:#?}");
        assert!(is_refused(&outcome, "it has another history than the store"), "{told}");
    }
}

/// A copy that ends where the store's events are lost cannot be told from a backup. The events that it adds are said to be
/// unconfirmed.
#[test]
fn events_that_nothing_confirms_are_told_apart() {
    let (world, _) = filled(6);
    let other = world.fork(2);
    let _ = more(&world, 4, 20..26);
    let _ = more(&other, 5, 40..42);
    let damaged = (20..24).fold(world, |world, number| frame_broken(&world, &text(number), HEADER));
    let done = tried(&damaged, &[&other], &SimWorld::new(8)).unwrap();
    assert_eq!((done.unconfirmed_events.len(), done.events_from_backups), (1, 2), "{done:#?}");
    assert!(!done.is_whole());
}

/// A copy's own events come after those of a backup that the store confirms, in whatever order the two are named.
#[test]
fn a_backup_that_the_store_confirms_is_asked_first() {
    let (world, _) = filled(6);
    let other = world.fork(2);
    let said = more(&world, 4, 20..26);
    let backup = world.fork(3);
    let _ = more(&other, 5, 40..42);
    let damaged = (20..24).fold(world, |world, number| frame_broken(&world, &text(number), HEADER));
    for backups in [[&other, &backup], [&backup, &other]] {
        let (done, now) = salvaged_with(&damaged, &backups, &said);
        assert_eq!((now, done.is_whole()), (said.clone(), true), "{done:#?}");
    }
}

/// A copy that erased something by itself gives nothing here, and takes nothing away.
#[test]
fn the_erasures_of_a_copy_that_gives_nothing_do_not_count() {
    let (world, _) = filled(6);
    let other = world.fork(2);
    let store = open(&other, 6).unwrap();
    let _ = store.erase(items(&store, "message 3 "), "ada", "only here").unwrap();
    store.close().unwrap();
    drop(store);
    let said = more(&world, 4, 20..23);
    let backup = world.fork(3);
    let damaged = (20..22).fold(world, |world, number| frame_broken(&world, &text(number), HEADER));
    for backups in [[&other, &backup], [&backup, &other]] {
        let (done, now) = salvaged_with(&damaged, &backups, &said);
        assert_eq!((now, done.is_whole()), (said.clone(), true), "{done:#?}");
    }
}

/// The log was set back once, the files saved beside it were not, and the store went on.
#[test]
fn a_saved_file_of_another_time_refuses_no_backup() {
    let (world, _) = filled(6);
    let ahead = world.fork(2);
    let _ = more(&ahead, 6, 30..33);
    let store = open(&ahead, 7).unwrap();
    let stream = session().id();
    assert!(store.view(stream).is_ok() && store.save_snapshot(stream).unwrap());
    drop(store);
    let saved: Vec<String> = ahead.files().into_iter().filter(|name| name.starts_with("snap/")).collect();
    assert!(!saved.is_empty());
    let said = more(&world, 4, 20..26);
    for name in &saved {
        world.set_file(name, ahead.file(name).unwrap());
    }
    let backup = world.fork(3);
    for broken in 20..26 {
        let damaged = frame_broken(&world, &text(broken), HEADER);
        let (done, now) = salvaged_with(&damaged, &[&backup], &said);
        assert_eq!((now, done.lost_events.len()), (said.clone(), 0), "{broken}: {done:#?}");
    }
}

/// One frame of another copy, in an otherwise honest backup.
#[test]
fn a_frame_of_another_copy_in_a_backup_is_refused() {
    let (world, _) = filled(6);
    let other = world.fork(2);
    let _ = more(&world, 4, 20..24);
    let _ = more(&other, 5, 40..44);
    let backup = world.fork(2);
    let frame = |world: &SimWorld, words: &str| {
        let (name, at) = place_of(world, words);
        let bytes = world.file(&name).unwrap();
        let start = bytes[..at].windows(4).rposition(|window| window == b"ACPF").unwrap();
        (name, start, bytes[start..at + words.len()].to_vec())
    };
    let (name, start, bytes) = frame(&other, &text(41));
    let (own, own_start, _) = frame(&backup, &text(21));
    assert_eq!((&name, start), (&own, own_start), "the same place in both");
    let mut spliced = backup.file(&name).unwrap();
    spliced[start..start + bytes.len()].copy_from_slice(&bytes);
    backup.set_file(&name, spliced);
    let damaged = frame_broken(&world, &text(21), HEADER);
    let outcome = tried(&damaged, &[&backup], &SimWorld::new(8));
    let told = format!("{outcome:#?}");
    assert!(is_refused(&outcome, "it has another history than the store"), "{told}");
}

/// The folder is gone but for a backup and the segments that are newer than it.
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
