//! Salvages of damaged encrypted stores save all that their keys open, sealed again, and nothing that was erased or shredded.

use std::sync::Arc;

use acpdb_engine::codec::FRAME_MAGIC;
use acpdb_engine::entry::{Entry, Fact, PointRef, StreamInfo, fact};
use acpdb_engine::event::Role;
use acpdb_engine::ids::{ItemId, Seq, StreamId};
use acpdb_engine::keys::{KeyRing, PassphraseKeyRing, RawKeyRing};
use acpdb_engine::storage::SimWorld;
use acpdb_engine::store::{Salvaged, salvage_storage};
use acpdb_engine::verify::{Verdict, verify_storage};
use acpdb_engine::{Atomicity, Batch, Error, Store};
use acpdb_tests::support::{events, fixed, line_of};

use crate::{lost_count, segments};

/// Stands in each text, name and path, so that no file may hold it.
const PLAIN: &str = "zebra";

fn ring(byte: u8) -> Arc<dyn KeyRing> {
    Arc::new(RawKeyRing::new("the key of the test", &[byte; 32]))
}

fn opened(world: &SimWorld, process: u32, ring: Option<Arc<dyn KeyRing>>) -> Result<Store, Error> {
    let builder = Store::builder("/sim")
        .storage(Arc::new(world.process(process)))
        .registry(acpdb_hosts::registry())
        .segment_bytes_max(4096 + 9000)
        .lock_wait(std::time::Duration::from_millis(3));
    let builder = fixed(builder, u64::from(process));
    match ring {
        Some(ring) => builder.keys(ring).open(),
        None => builder.open(),
    }
}

fn open(world: &SimWorld, process: u32) -> Store {
    opened(world, process, Some(ring(7))).unwrap()
}

fn session(name: &str) -> StreamInfo {
    StreamInfo { title: Some(format!("{PLAIN} title")), ..StreamInfo::session("opencode", name) }
}

fn about(name: &str) -> StreamInfo {
    StreamInfo { subject: Some("Ada zebra".to_owned()), ..session(name) }
}

fn message(session: &str, number: u32) -> Entry {
    let text = format!("{PLAIN} text {number} of {session} {}", "lorem ipsum ".repeat(30));
    Entry::message(format!("{session}-{number}"), Role::User, text).origin(format!("msg:{session}-{number}"))
}

fn messages(session: &str, numbers: std::ops::Range<u32>) -> Vec<Entry> {
    numbers.map(|number| message(session, number)).collect()
}

/// The text of a store at each seq; `None`: it was shredded or erased.
type Said = Vec<Option<String>>;

fn said(store: &Store) -> Said {
    let of = |recorded| {
        let line = line_of(store, &recorded).ok();
        let is_gone = store.is_shredded(recorded.event.stream).unwrap();
        line.filter(|line| !is_gone && !line.contains("was erased"))
    };
    events(store).unwrap().into_iter().map(of).collect()
}

/// A session that was rewound and has an erased text, a fork of it, one about a subject, and one that is shredded; commits of one event and of many.
/// With it what the store says at last.
struct Source {
    world: SimWorld,
    said: Said,
}

const ERASED: &str = "the leaked zebra";
const SHREDDED: &str = "gone";

fn item_of(store: &Store, text: &str) -> ItemId {
    let at = said(store).iter().position(|line| line.as_ref().is_some_and(|line| line.contains(text)));
    ItemId::first(Seq(at.unwrap() as u64 + 1))
}

fn source() -> Source {
    let world = SimWorld::new(3);
    let store = open(&world, 1);
    let one = session("one");
    for number in 0..4 {
        let _ = store.append(&one, vec![message("one", number)]).unwrap();
        let _ = store.append(&about("person"), vec![message("person", number)]).unwrap();
        let _ = store.append(&session(SHREDDED), vec![message(SHREDDED, number)]).unwrap();
    }
    let _ = store.append(&one, vec![Entry::message("leak", Role::User, ERASED)]).unwrap();
    // One commit of several sessions.
    let batches = [
        Batch { stream: one.clone(), entries: messages("one", 10..30) },
        Batch { stream: session(SHREDDED), entries: messages(SHREDDED, 10..20) },
        Batch { stream: about("person"), entries: messages("person", 10..20) },
    ];
    let _ = store.commit(&batches, Atomicity::One).unwrap();
    assert!(!store.seal(true).unwrap().sealed.is_empty());
    let rewound = fact::Rewound { to: PointRef::After("msg:one-2".to_owned()) };
    let _ = store.append(&one, vec![rewound.into(), message("one", 40)]).unwrap();
    let at = item_of(&store, "text 1 of one").seq;
    let fork = Entry::from(Fact::Forked(fact::Forked { from: one.id(), at: PointRef::Seq(at) }));
    let _ = store.append(&session("fork"), vec![fork.origin("fork"), message("fork", 0)]).unwrap();
    assert_eq!(store.rotate_data_keys(Some(one.id())).unwrap(), 1);
    let _ = store.append(&one, messages("one", 50..53)).unwrap();
    store.close().unwrap();
    drop(store);
    let store = open(&world, 2);
    let _ = store.erase(item_of(&store, ERASED), "ada", "a leak").unwrap();
    let _ = store.shred(session(SHREDDED).id(), "ada", "asked for").unwrap();
    let _ = store.append(&about("person"), vec![message("person", 60)]).unwrap();
    let _ = store.append(&one, vec![message("one", 60)]).unwrap();
    store.close().unwrap();
    let said = said(&store);
    Source { world, said }
}

fn tried(world: &SimWorld, into: &SimWorld, ring: Option<&Arc<dyn KeyRing>>) -> Result<Salvaged, Error> {
    salvage_storage(Arc::new(world.process(9)), Arc::new(into.process(1)), ring, &mut |_| ())
}

/// Nothing of what a store holds lies in plain in its files.
fn assert_hidden(world: &SimWorld, told: &str) {
    for name in world.files() {
        let bytes = world.file(&name).unwrap();
        let holds = bytes.windows(PLAIN.len()).any(|part| part == PLAIN.as_bytes());
        assert!(!holds, "{told}: {name}");
    }
}

/// Salvages, and checks all that holds whatever was damaged.
fn salvaged(source: &Source, world: &SimWorld, told: &str) -> (Salvaged, SimWorld) {
    let files = |world: &SimWorld| -> Vec<_> {
        world.files().into_iter().map(|name| (world.file(&name), name)).collect()
    };
    let before = files(world);
    let copy = SimWorld::new(8);
    let done = tried(world, &copy, Some(&ring(7))).unwrap();
    assert_eq!(before, files(world), "{told}: the source is only read");
    let told = format!("{told}: {done:#?}");
    assert_hidden(&copy, &told);
    let report = verify_storage(Arc::new(copy.process(2)), true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{told}: {report:#?}");
    assert_eq!(done.events + lost_count(&done), source.said.len() as u64, "{told}");
    let store = open(&copy, 3);
    let all = told_as_before(source, &store, &done);
    assert!(!all.contains(ERASED) && !all.contains("of gone"), "{told}");
    assert!(store.is_shredded(session(SHREDDED).id()).unwrap(), "{told}");
    let _ = store.append(&session("one"), vec![message("one", 1000)]).unwrap();
    let refused = store.append(&session(SHREDDED), vec![message(SHREDDED, 1000)]);
    assert!(matches!(refused, Err(Error::Erased { .. })), "{told}");
    drop(store);
    (done, copy)
}

/// Checks that each event which is not lost has its old seq and texts; gives all of them.
fn told_as_before(source: &Source, store: &Store, done: &Salvaged) -> String {
    let now = said(store);
    let is_lost = |seq: Seq| {
        done.lost_events.iter().any(|(first, last)| *first <= seq && seq <= *last)
            || done.lost_bodies.iter().any(|body| body.seq == seq)
    };
    for (seq, (was, is)) in (1..).map(Seq).zip(source.said.iter().zip(&now)) {
        if !is_lost(seq) {
            assert_eq!(was, is, "{seq}: {done:#?}");
        }
    }
    now.into_iter().flatten().collect()
}

fn flipped(world: &SimWorld, name: &str, at: usize) -> SimWorld {
    let world = world.fork(1);
    let mut bytes = world.file(name).unwrap();
    bytes[at] ^= 0x10;
    world.set_file(name, bytes);
    world
}

#[test]
fn all_of_a_sound_encrypted_store_is_salvaged_and_goes_on() {
    let source = source();
    let (done, copy) = salvaged(&source, &source.world, "sound");
    assert!(done.is_whole(), "{done:#?}");
    let store = open(&copy, 4);
    // Facts that a host tells again are known: origins mean what they meant.
    for name in ["one", "person"] {
        let info = if name == "one" { session(name) } else { about(name) };
        let receipt = store.append(&info, messages(name, 0..4)).unwrap();
        assert_eq!(receipt.event_count, 0, "{name}");
    }
    let subjects = store.subjects().unwrap();
    let [subject] = subjects.as_slice() else { panic!("{subjects:?}") };
    assert_eq!((subject.name.as_str(), &subject.streams), ("Ada zebra", &vec![about("person").id()]));
    assert!(matches!(opened(&copy, 5, Some(ring(8))), Err(Error::Locked { .. })));
    // It is a store like any other.
    let backup = SimWorld::new(5);
    let made = store.backup_storage(Arc::new(backup.process(1)), &mut |_| ()).unwrap();
    assert_eq!(made.report.verdict(), Verdict::Sound);
    let _ = store.erase(item_of(&store, "text 50 of one"), "ada", "again").unwrap();
    assert!(store.rotate_data_keys(None).unwrap() >= 3);
    let _ = store.append(&session("one"), vec![message("one", 70)]).unwrap();
    let _ = store.shred_subject("Ada zebra", "ada", "asked for").unwrap();
    assert!(store.is_shredded(about("person").id()).unwrap());
    assert!(store.rotate_keys(&ring(9)).unwrap() > 0);
    drop(store);
    let store = opened(&copy, 6, Some(ring(9))).unwrap();
    let now: String = said(&store).into_iter().flatten().collect();
    assert!(now.contains("text 70 of one") && now.contains("text 20 of one") && !now.contains("of person"));
    assert!(!now.contains("text 50 of one"));
}

#[test]
fn a_damaged_byte_of_an_encrypted_store_costs_what_it_touches() {
    let source = source();
    let mut chance = 11_u64;
    let mut below = |count: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) as usize % count
    };
    let mut lost = 0;
    for name in segments(&source.world).into_iter().chain(["acpdb.json", "tail", "secret"].map(String::from))
    {
        let length = source.world.file(&name).unwrap().len();
        // Headers of segments are mostly zeros.
        let first = if name.ends_with(".seg") { 4000 } else { 0 };
        for _ in 0..6 {
            let at = first + below(length - first);
            let (world, told) = (flipped(&source.world, &name, at), format!("{name} byte {at}"));
            let (done, _) = salvaged(&source, &world, &told);
            assert!(done.lost_events.len() <= 1, "{told}: {done:#?}");
            lost += lost_count(&done) + done.lost_bodies.len() as u64;
        }
    }
    assert!(lost > 0);
}

/// Where the frame begins that holds some bytes first.
fn frame_of(world: &SimWorld, held: &[u8]) -> (String, usize) {
    let holds = |name: &String| {
        let bytes = world.file(name).unwrap();
        let at = bytes.windows(held.len()).position(|part| part == held)?;
        let frame = bytes[..at].windows(4).rposition(|part| part == FRAME_MAGIC)?;
        Some((name.clone(), frame))
    };
    segments(world).iter().find_map(holds).unwrap()
}

/// A record of a shredding names its stream by the seq of one of its events. Where that event is lost, a note of the store's own stream stands there,
/// whose key is the store's own.
#[test]
fn a_record_of_a_shredding_never_destroys_the_own_key_of_a_salvaged_store() {
    let source = source();
    let (name, frame) = frame_of(&source.world, session(SHREDDED).id().as_bytes());
    // Policies and records of erasures lie in plain.
    let (record_name, record) = frame_of(&source.world, b"asked for");
    for (told, world) in [
        ("the record itself is lost", flipped(&source.world, &record_name, record + 170)),
        ("sound", source.world.fork(1)),
        ("its frame is lost", flipped(&source.world, &name, frame + 170)),
        ("its header is lost", flipped(&source.world, &name, frame + 20)),
    ] {
        let (_, copy) = salvaged(&source, &world, told);
        // A note that cannot be read has each shredding on record carried out again.
        copy.set_file("erasing", b"?");
        let store = open(&copy, 4);
        let _ = store.append(&session("one"), vec![message("one", 70)]).unwrap();
        drop(store);
        assert_eq!(copy.file("erasing"), None, "{told}: it was ended");
        let now: String = said(&open(&copy, 5)).into_iter().flatten().collect();
        assert!(now.contains("text 70 of one"), "{told}");
    }
}

/// Sealed bytes stay noise for a holder of old keys as well: none of them is copied.
#[test]
fn a_shredded_session_stays_an_unreadable_one_of_its_stream() {
    let source = source();
    let (_, copy) = salvaged(&source, &source.world, "sound");
    let of = |world: &SimWorld| -> Vec<_> {
        let recorded = events(&open(world, 4)).unwrap();
        recorded.iter().map(|recorded| (recorded.seq, recorded.event.stream)).collect()
    };
    let (was, is) = (of(&source.world), of(&copy));
    assert_eq!(was[..], is[..was.len()]);
    // Its key in an old copy of the folder: wrapped for the old store, it is none of the new one.
    let name = key_name(session(SHREDDED).id());
    assert!(is.len() > was.len());
    assert_ne!(copy.file(&name), source.world.file(&name));
}

fn key_name(stream: StreamId) -> String {
    let digits: String = stream.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("keys/{digits}.key")
}

fn subject_name(world: &SimWorld) -> String {
    world.files().into_iter().find(|name| name.ends_with(".subject")).unwrap()
}

/// The file of a key is lost or damaged: what it opens is lost, all else is copied, and the file is named.
#[test]
fn events_whose_key_is_lost_are_lost_and_the_file_is_named() {
    let source = source();
    let (one, person, own) = (key_name(session("one").id()), key_name(about("person").id()), "0".repeat(32));
    for (name, costs) in [(one, true), (person, true), (subject_name(&source.world), true)] {
        let gone = source.world.fork(1);
        gone.remove_file(&name);
        for world in [gone, flipped(&source.world, &name, 100)] {
            let (done, copy) = salvaged_without(&source, &world);
            let files: Vec<&str> = done.lost_keys.iter().map(|lost| lost.file.as_str()).collect();
            assert_eq!(files, [name.as_str()], "{done:#?}");
            assert_eq!(!done.lost_events.is_empty(), costs, "{name}: {done:#?}");
            assert!(!done.is_whole());
            let now = told_as_before(&source, &open(&copy, 3), &done);
            assert_eq!(now.contains("of one"), !name.contains(&key_name(session("one").id())), "{name}");
        }
    }
    let gone = source.world.fork(1);
    gone.remove_file(&format!("keys/{own}.key"));
    let refused = tried(&gone, &SimWorld::new(8), Some(&ring(7))).unwrap_err();
    assert!(matches!(&refused, Error::Locked { detail } if detail.contains(&own)), "{refused}");
}

/// As [`salvaged`], where the sessions that are lost are no others than those whose key is.
fn salvaged_without(source: &Source, world: &SimWorld) -> (Salvaged, SimWorld) {
    let copy = SimWorld::new(8);
    let done = tried(world, &copy, Some(&ring(7))).unwrap();
    assert_hidden(&copy, "a lost key");
    let report = verify_storage(Arc::new(copy.process(2)), true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    assert_eq!(done.events + lost_count(&done), source.said.len() as u64, "{done:#?}");
    (done, copy)
}

/// Neither its own file nor its newest segment says that it is encrypted. It has its keys.
#[test]
fn a_store_that_lost_what_says_that_it_is_encrypted_is_salvaged_with_its_keys() {
    let source = source();
    let last = segments(&source.world).pop().unwrap();
    let world = flipped(&source.world, &last, 20);
    world.remove_file("acpdb.json");
    let (done, _) = salvaged(&source, &world, "no features");
    assert_eq!(lost_count(&done), 0, "{done:#?}");
    let refused = tried(&world, &SimWorld::new(8), None).unwrap_err();
    assert!(matches!(refused, Error::Locked { .. }), "{refused}");
}

/// Every file with the store's id is lost but those of its keys. The key passed for a wrong one, and
/// without keys the store passed for a plain one.
#[test]
fn a_store_that_lost_its_id_is_salvaged_by_the_id_in_its_keys() {
    let source = source();
    let world = source.world.fork(1);
    for name in segments(&world) {
        let mut bytes = world.file(&name).unwrap();
        bytes[..4000].fill(0);
        world.set_file(&name, bytes);
    }
    for name in ["acpdb.json", "tail", "checkpoint", "secret"] {
        world.remove_file(name);
    }
    let (done, _) = salvaged(&source, &world, "the keys name it");
    assert_eq!((lost_count(&done), done.source), (0, open(&source.world, 5).id()), "{done:#?}");
}

/// Shredding was interrupted behind its record: the key is still there, and so are the texts.
#[test]
fn a_shredding_that_was_not_carried_out_is_carried_out_by_the_copy() {
    let source = source();
    let world = source.world.fork(1);
    let name = key_name(session("fork").id());
    let key = world.file(&name).unwrap();
    let store = open(&world, 2);
    let _ = store.shred(session("fork").id(), "ada", "asked for").unwrap();
    store.close().unwrap();
    drop(store);
    world.set_file(&name, key);
    let copy = SimWorld::new(8);
    let done = tried(&world, &copy, Some(&ring(7))).unwrap();
    let store = open(&copy, 3);
    assert!(store.is_shredded(session("fork").id()).unwrap(), "{done:#?}");
    assert!(!said(&store).iter().flatten().any(|line| line.contains("of fork")), "{done:#?}");
}

#[test]
fn without_the_right_key_an_encrypted_store_is_not_salvaged() {
    let source = source();
    for (ring, why) in [(None, "which was not given"), (Some(ring(8)), "is wrapped by key")] {
        let copy = SimWorld::new(8);
        let refused = tried(&source.world, &copy, ring.as_ref()).unwrap_err();
        assert!(matches!(&refused, Error::Locked { detail } if detail.contains(why)), "{refused}");
        assert_eq!(copy.files(), [""; 0]);
    }
    // A key that does not belong to it is refused: the store may have been passed off as plain.
    let (plain, _) = crate::filled(2);
    let refused = tried(&plain, &SimWorld::new(8), Some(&ring(7))).unwrap_err();
    assert!(matches!(&refused, Error::Locked { detail } if detail.contains("not encrypted")), "{refused}");
}

/// A passphrase makes another key for each store: the same one opens the new store.
#[test]
fn a_passphrase_opens_the_salvaged_store() {
    let world = SimWorld::new(3);
    let ring: Arc<dyn KeyRing> = Arc::new(PassphraseKeyRing::new("a zebra crossing").unwrap());
    let store = opened(&world, 1, Some(Arc::clone(&ring))).unwrap();
    let _ = store.append(&session("one"), messages("one", 0..3)).unwrap();
    store.close().unwrap();
    let copy = SimWorld::new(8);
    let done = tried(&world, &copy, Some(&ring)).unwrap();
    assert!(done.is_whole(), "{done:#?}");
    let now = said(&opened(&copy, 3, Some(ring)).unwrap());
    let was = said(&store);
    assert_eq!(now[..was.len()], was[..]);
}

/// A record of a shredding is enough: the files of the keys may be gone. Its sessions were told of as lost, with advice to look for a backup.
#[test]
fn a_session_that_is_on_record_as_shredded_is_not_lost_with_the_file_of_its_key() {
    let source = source();
    let gone = source.world.fork(1);
    gone.remove_file(&key_name(session(SHREDDED).id()));
    let (done, _) = salvaged(&source, &gone, "by its own key");
    assert!(done.is_whole(), "{done:#?}");
    let store = open(&gone, 2);
    let _ = store.shred_subject("Ada zebra", "ada", "asked for").unwrap();
    store.close().unwrap();
    drop(store);
    gone.remove_file(&key_name(about("person").id()));
    let copy = SimWorld::new(8);
    let done = tried(&gone, &copy, Some(&ring(7))).unwrap();
    assert!(done.is_whole(), "{done:#?}");
    assert!(open(&copy, 3).is_shredded(about("person").id()).unwrap());
}

/// The file of a shredded subject is lost, and the record of its shredding. The files of its sessions still say that they were shredded.
#[test]
fn no_key_is_made_for_a_subject_all_of_whose_sessions_were_shredded() {
    let source = source();
    let world = source.world.fork(1);
    let store = open(&world, 2);
    let _ = store.shred_subject("Ada zebra", "ada", "the subject is gone").unwrap();
    store.close().unwrap();
    drop(store);
    let (name, record) = frame_of(&world, b"the subject is gone");
    let world = flipped(&world, &name, record + 170);
    world.remove_file(&subject_name(&world));
    let copy = SimWorld::new(8);
    let done = tried(&world, &copy, Some(&ring(7))).unwrap();
    assert!(done.lost_keys.is_empty() && lost_count(&done) > 0, "{done:#?}");
    let later = StreamInfo { subject: Some("Ada zebra".to_owned()), ..session("later") };
    let refused = open(&copy, 3).append(&later, vec![message("later", 0)]);
    assert!(matches!(refused, Err(Error::Erased { .. })), "{refused:?}");
    let again = SimWorld::new(7);
    let done = tried(&copy, &again, Some(&ring(7))).unwrap();
    assert!(done.is_whole(), "{done:#?}");
}
