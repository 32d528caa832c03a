//! A process that dies at any of its calls to the storage while it makes, wraps or destroys keys: acknowledged events are readable, or shredded, and
//! never in between.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use acpdb_engine::codec::{EncodedBody, EncodedEvent, Envelope};
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Payload, Role};
use acpdb_engine::ids::{Origin, Seq, StreamId};
use acpdb_engine::log::{Log, LogError, LogOptions, Opening};
use acpdb_engine::storage::{
    Crash, Fault, FaultKind, FileKeyRing, FixedEntropy, KeyRing, Part, PassphraseKeyRing, SimStorage,
    SimWorld, SystemEntropy,
};
use acpdb_engine::verify::{Verdict, verify_storage};
use acpdb_engine::{Error, Store};

/// One derivation of each passphrase for all of a test's stores: the rings are shared.
fn ring(passphrase: &str) -> Arc<dyn KeyRing> {
    Arc::new(PassphraseKeyRing::new(passphrase).unwrap())
}

fn open(process: &SimStorage, ring: &Arc<dyn KeyRing>) -> Result<Store, Error> {
    let builder = Store::builder(Path::new("sim")).storage(Arc::new(process.clone()));
    let entropy = Arc::new(FixedEntropy::new(7));
    builder.clock(Arc::new(process.clock())).entropy(entropy).keys(Arc::clone(ring)).open()
}

fn reopen(process: &SimStorage, ring: &Arc<dyn KeyRing>) -> Result<Store, Error> {
    let builder = Store::builder(Path::new("sim")).storage(Arc::new(process.clone()));
    builder.clock(Arc::new(process.clock())).entropy(Arc::new(SystemEntropy)).keys(Arc::clone(ring)).open()
}

fn session(name: &str) -> StreamInfo {
    StreamInfo::session("acpdb", name)
}

fn add(store: &Store, name: &str, id: &str) -> Result<Seq, Error> {
    let entry = Entry::message(id, Role::User, format!("text of {id}")).origin(format!("msg:{id}"));
    store.append(&session(name), vec![entry]).map(|receipt| receipt.last_seq)
}

fn texts(store: &Store, name: &str) -> Result<Vec<String>, Error> {
    let mut texts = Vec::new();
    for recorded in store.stream_events(session(name).id(), Seq(1), Seq::MAX)? {
        let recorded = recorded?;
        if let Payload::MessageRecorded(message) = &recorded.event.payload {
            let read = store.body(message.parts[0].body.id(recorded.seq));
            match read {
                Ok(bytes) => texts.push(String::from_utf8(bytes).unwrap()),
                Err(Error::Erased { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(texts)
}

/// Runs `act` on a copy of `world` once for each of its calls to the storage, dead from that call on; then `check`, in another process.
fn at_each_call(
    world: &SimWorld,
    act: &dyn Fn(&SimStorage) -> Result<(), Error>,
    check: &dyn Fn(&SimWorld, bool, u64),
) -> u64 {
    let calls = {
        let process = world.fork(1).process(2);
        act(&process).unwrap();
        process.operation_count()
    };
    for call in 0..calls {
        for crash in [Crash::Kill, Crash::Power] {
            let world = world.fork(call);
            let process = world.process(2);
            process.crash_at(call, crash);
            let done = act(&process).is_ok();
            check(&world, done, call);
        }
    }
    calls
}

fn made(ring: &Arc<dyn KeyRing>) -> SimWorld {
    let world = SimWorld::new(5);
    let store = open(&world.process(1), ring).unwrap();
    add(&store, "one", "m1").unwrap();
    add(&store, "two", "m2").unwrap();
    drop(store);
    world
}

#[test]
fn a_stream_whose_making_is_cut_short_is_readable_or_not_there() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let act = |process: &SimStorage| add(&open(process, &ring)?, "new", "m3").map(drop);
    let calls = at_each_call(&world, &act, &|world, done, call| {
        let store = reopen(&world.process(3), &ring).unwrap();
        let found = texts(&store, "new").unwrap();
        assert!(found.len() == 1 || !done && found.is_empty(), "call {call}: {found:?}");
        assert_eq!(texts(&store, "one").unwrap(), ["text of m1"], "call {call}");
        add(&store, "new", "m4").unwrap();
        assert_eq!(texts(&store, "new").unwrap().len(), found.len() + 1, "call {call}");
    });
    assert!(calls > 10, "{calls}");
}

#[test]
fn keys_whose_rewrapping_is_cut_short_open_with_one_ring_or_the_other_and_it_goes_on() {
    let (old, new) = (ring("the first passphrase"), ring("the other passphrase"));
    let world = made(&old);
    let act = |process: &SimStorage| open(process, &old)?.rotate_keys(&new).map(drop);
    let calls = at_each_call(&world, &act, &|world, _, call| {
        // The store's own key goes last: as long as the old ring opens it, the old ring takes the work up again.
        let process = world.process(3);
        match reopen(&process, &old) {
            Ok(store) => {
                let _ = store.rotate_keys(&new).unwrap();
            }
            Err(error) => assert!(matches!(error, Error::Locked { .. }), "call {call}: {error:?}"),
        }
        let store = reopen(&world.process(4), &new).unwrap();
        assert_eq!(texts(&store, "one").unwrap(), ["text of m1"], "call {call}");
        assert_eq!(texts(&store, "two").unwrap(), ["text of m2"], "call {call}");
    });
    assert!(calls > 10, "{calls}");
}

#[test]
fn a_shredding_that_is_cut_short_is_not_begun_or_is_ended_by_the_next_opening() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let one = session("one").id();
    let act = |process: &SimStorage| open(process, &ring)?.shred(one, "tester", "asked to").map(drop);
    let calls = at_each_call(&world, &act, &|world, done, call| {
        let store = reopen(&world.process(3), &ring).unwrap();
        let found = texts(&store, "one").unwrap();
        let is_shredded = add(&store, "one", "m5").is_err();
        assert_eq!(found.is_empty(), is_shredded, "call {call}");
        assert!(is_shredded || !done, "call {call}");
        assert_eq!(texts(&store, "two").unwrap(), ["text of m2"], "call {call}");
    });
    assert!(calls > 10, "{calls}");
}

fn about(name: &str) -> StreamInfo {
    StreamInfo { subject: Some("zebra".to_owned()), ..session(name) }
}

fn add_about(store: &Store, name: &str, id: &str) -> Result<Seq, Error> {
    let entry = Entry::message(id, Role::User, format!("text of {id}")).origin(format!("msg:{id}"));
    store.append(&about(name), vec![entry]).map(|receipt| receipt.last_seq)
}

/// The files of keys that still hold a key.
fn live_keys(world: &SimWorld) -> Vec<String> {
    let files = world.files().into_iter().filter(|name| name.starts_with("keys/"));
    files
        .filter(|name| world.file(name).is_some_and(|bytes| bytes.len() > 64 && bytes[64..68] != [0; 4]))
        .collect()
}

#[test]
fn a_session_about_a_subject_whose_making_is_cut_short_is_readable_or_not_there() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let act = |process: &SimStorage| add_about(&open(process, &ring)?, "new", "m3").map(drop);
    let calls = at_each_call(&world, &act, &|world, done, call| {
        let store = reopen(&world.process(3), &ring).unwrap();
        let found = texts(&store, "new").unwrap();
        assert!(found.len() == 1 || !done && found.is_empty(), "call {call}: {found:?}");
        add_about(&store, "new", "m4").unwrap();
        assert_eq!(texts(&store, "new").unwrap().len(), found.len() + 1, "call {call}");
        assert_eq!(store.subject_of(session("new").id()).unwrap().as_deref(), Some("zebra"), "call {call}");
        assert_eq!(store.subjects().unwrap().len(), 1, "call {call}");
    });
    assert!(calls > 10, "{calls}");
}

#[test]
fn a_shredding_of_a_subject_that_is_cut_short_is_not_begun_or_is_ended_by_the_next_opening() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    {
        let store = open(&world.process(4), &ring).unwrap();
        add_about(&store, "x", "m3").unwrap();
        add_about(&store, "y", "m4").unwrap();
        add_about(&store, "z", "m5").unwrap();
    }
    let act =
        |process: &SimStorage| open(process, &ring)?.shred_subject("zebra", "tester", "asked to").map(drop);
    let calls = at_each_call(&world, &act, &|world, done, call| {
        let store = reopen(&world.process(3), &ring).unwrap();
        let is_shredded = store.is_shredded(session("x").id()).unwrap();
        assert!(is_shredded || !done, "call {call}");
        for name in ["x", "y", "z"] {
            assert_eq!(texts(&store, name).unwrap().is_empty(), is_shredded, "call {call}: {name}");
            assert_eq!(store.is_shredded(session(name).id()).unwrap(), is_shredded, "call {call}: {name}");
            assert_eq!(add_about(&store, name, "m6").is_err(), is_shredded, "call {call}: {name}");
        }
        assert_eq!(add_about(&store, "new", "m7").is_err(), is_shredded, "call {call}");
        assert_eq!(texts(&store, "one").unwrap(), ["text of m1"], "call {call}");
        // Keys of the store and of two sessions; if the subject is not shredded, also its key, and the keys of its sessions and of the new session.
        let keys = live_keys(world);
        assert_eq!(keys.len(), if is_shredded { 3 } else { 8 }, "call {call}: {keys:?}");
    });
    assert!(calls > 30, "{calls}");
}

/// The streams that erasures call shredded.
fn shredded_on_record(store: &Store, log: &Log) -> Vec<StreamId> {
    let mut streams = Vec::new();
    for recorded in store.stream_events(StreamId::STORE, Seq(1), Seq::MAX).unwrap() {
        let Payload::Erased(erased) = recorded.unwrap().event.payload else { continue };
        let of_streams = erased.bodies.iter().filter(|body| body.row == u32::MAX);
        let frames = of_streams.map(|body| (body.seq, log.locate(body.seq).unwrap().unwrap()));
        streams.extend(frames.map(|(seq, frame)| frame.event(seq).unwrap().envelope.stream));
    }
    streams
}

/// A session that began between the search for sessions about a subject and the end of the subject's key lost its key with it. If the process
/// that shredded the subject died there, no record said so.
#[test]
fn sessions_that_begin_beside_a_shredding_which_is_cut_short_are_on_record_if_they_are_shredded() {
    let folder = tempfile::tempdir().unwrap();
    let ring: Arc<dyn KeyRing> = Arc::new(FileKeyRing::create(&folder.path().join("mine.key")).unwrap());
    let world = SimWorld::new(5);
    add_about(&open(&world.process(4), &ring).unwrap(), "x", "m3").unwrap();
    let mut late = 0;
    for seed in 0..60 {
        let world = world.fork(seed);
        let (shredder, writer) = (world.process(2), world.process(3));
        shredder.crash_at(70 + seed, Crash::Kill);
        let shred = |process: SimStorage| {
            // It is killed at some call.
            let _ = open(&process, &ring).and_then(|store| store.shred_subject("zebra", "ann", "asked to"));
        };
        let write = |process: SimStorage| {
            let store = open(&process, &ring).unwrap();
            // Once the subject is shredded no session about it begins.
            let _ = (0..4).try_for_each(|number| add_about(&store, &format!("n{number}"), "m").map(drop));
        };
        let parts: Vec<(SimStorage, Part<'_, ()>)> =
            vec![(shredder, Box::new(shred)), (writer, Box::new(write))];
        let _ = world.interleave(seed, parts);
        let store = reopen(&world.process(5), &ring).unwrap();
        let log = open_log(&world.process(6), &ring);
        let on_record = shredded_on_record(&store, &log);
        let frames: Vec<_> = log.frames_from(Seq(1), log.head()).unwrap().map(Result::unwrap).collect();
        let has_events =
            |stream| frames.iter().any(|frame| frame.events().any(|event| event.envelope.stream == stream));
        for name in ["x", "n0", "n1", "n2", "n3"] {
            let stream = session(name).id();
            let is_shredded = has_events(stream) && store.is_shredded(stream).unwrap();
            assert_eq!(on_record.contains(&stream), is_shredded, "seed {seed}: {name}");
            late += u32::from(is_shredded && name != "x");
        }
    }
    assert!(late > 10, "{late} sessions were shredded that began beside it");
}

#[test]
fn another_key_whose_making_is_cut_short_is_there_or_not_and_nothing_is_lost() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let act = |process: &SimStorage| open(process, &ring)?.rotate_data_keys(None).map(drop);
    let calls = at_each_call(&world, &act, &|world, done, call| {
        let newest = |world: &SimWorld, name: &str| {
            let file = format!("keys/{}.key", session(name).id().to_hex());
            let bytes = world.file(&file).or_else(|| world.file(&format!("{file}.old"))).unwrap();
            u32::from_le_bytes(bytes[12..16].try_into().unwrap())
        };
        let before = ["one", "two"].map(|name| newest(world, name));
        assert!(!done || before == [2, 2], "call {call}: {before:?}");
        let store = reopen(&world.process(3), &ring).unwrap();
        assert_eq!(texts(&store, "one").unwrap(), ["text of m1"], "call {call}");
        assert_eq!(texts(&store, "two").unwrap(), ["text of m2"], "call {call}");
        // A shredding reaches the files that an interruption left.
        {
            let world = world.fork(call);
            let store = reopen(&world.process(6), &ring).unwrap();
            let _ = store.shred(session("one").id(), "tester", "asked to").unwrap();
            drop(store);
            assert_eq!(
                live_keys(&world).iter().filter(|name| name.contains(&session("one").id().to_hex())).count(),
                0
            );
        }
        add(&store, "one", "m3").unwrap();
        // The rotation begins again, and gives each stream one more key.
        assert_eq!(store.rotate_data_keys(None).unwrap(), 2, "call {call}");
        assert_eq!(
            ["one", "two"].map(|name| newest(world, name)),
            before.map(|number| number + 1),
            "call {call}"
        );
        add(&store, "one", "m4").unwrap();
        drop(store);
        let store = reopen(&world.process(4), &ring).unwrap();
        assert_eq!(texts(&store, "one").unwrap(), ["text of m1", "text of m3", "text of m4"], "call {call}");
        let left = world.files().into_iter().filter(|name| name.ends_with(".old")).count();
        assert_eq!(left, 0, "call {call}: nothing lies there but what is in use");
    });
    assert!(calls > 20, "{calls}");
}

/// One event, whose body's row says which key sealed it.
fn event(number: u8) -> EncodedEvent {
    let stream = StreamId([9; 16]);
    let envelope = Envelope { kind: 0x102, version: 1, stream, origin: Origin::ZERO, host_time: None };
    let body = EncodedBody::New { bytes: vec![number; 20].into(), salt: [number; 16], content: None };
    EncodedEvent { envelope, payload: vec![number; 8], bodies: vec![body] }
}

fn open_log(process: &SimStorage, ring: &Arc<dyn KeyRing>) -> Log {
    let opening = Opening { create: true, ring: Some(Arc::clone(ring)), ..Opening::default() };
    let (storage, clock) = (Arc::new(process.clone()), Arc::new(process.clock()));
    Log::open_with_keys(storage, clock, Arc::new(SystemEntropy), LogOptions::default(), opening).unwrap().0
}

/// A writer may hold a commit that it sealed before another process gave the stream another key. Such a commit gets no place: it is sealed again.
#[test]
fn once_a_key_was_added_nothing_is_sealed_under_the_one_before_by_any_process() {
    let folder = tempfile::tempdir().unwrap();
    let ring: Arc<dyn KeyRing> = Arc::new(FileKeyRing::create(&folder.path().join("mine.key")).unwrap());
    let mut stale = 0;
    for seed in 0..30 {
        let world = SimWorld::new(seed);
        let _ = open_log(&world.process(9), &ring).append_event(event(1));
        let write = |storage: SimStorage| {
            let log = open_log(&storage, &ring);
            (2..12).map(|number| log.append_event(event(number))).sum::<u64>()
        };
        let add = |storage: SimStorage| {
            let log = open_log(&storage, &ring);
            assert_eq!(log.add_keys(None).unwrap(), 1);
            log.exclusive().unwrap().next_seq().get()
        };
        let parts: Vec<(SimStorage, Part<'_, u64>)> = vec![
            (world.process(1), Box::new(write)),
            (world.process(2), Box::new(write)),
            (world.process(3), Box::new(add)),
        ];
        let told = world.interleave(seed, parts);
        stale += told[0] + told[1];
        let log = open_log(&world.process(4), &ring);
        let mut keys = Vec::new();
        for frame in log.frames_from(Seq(1), log.head()).unwrap() {
            let frame = frame.unwrap();
            keys.extend(frame.events().map(|event| (event.seq.get(), event.row(0).unwrap().key)));
            assert!(frame.events().all(|event| event.payload.len() == 8), "seed {seed}: each opens");
        }
        assert_eq!(keys.len(), 21, "seed {seed}");
        assert!(keys.iter().all(|(seq, key)| *key == 2 || *seq < told[2]), "seed {seed}: {told:?} {keys:?}");
    }
    assert!(stale > 0, "some commit was sealed before the key was added, and placed after");
}

trait AppendEvent {
    /// Appends until the event is recorded. Returns how often its key was no longer the newest.
    fn append_event(&self, event: EncodedEvent) -> u64;
}

impl AppendEvent for Log {
    fn append_event(&self, event: EncodedEvent) -> u64 {
        let mut stale = 0;
        loop {
            match self.append(self.prepare(std::slice::from_ref(&event)).unwrap(), &[]) {
                Err(LogError::KeyRotated { .. }) => stale += 1,
                done => {
                    let _ = done.unwrap();
                    return stale;
                }
            }
        }
    }
}

/// A key that its process did not live to make durable was used by another one, which acknowledged what it sealed with it. A power cut took the key.
#[test]
fn a_key_that_another_process_made_is_durable_before_it_is_used() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let new = |process: &SimStorage| add(&open(process, &ring)?, "new", "m3").map(drop);
    let newer =
        |process: &SimStorage| open(process, &ring)?.rotate_data_keys(Some(session("one").id())).map(drop);
    for (act, name) in [(&new as &dyn Fn(&SimStorage) -> Result<(), Error>, "new"), (&newer, "one")] {
        at_each_call(&world, act, &|world, _, call| {
            if reopen(&world.process(3), &ring).is_err() {
                return;
            }
            for seed in 0..2 {
                let world = world.fork(seed);
                add(&reopen(&world.process(3), &ring).unwrap(), name, "m4").unwrap();
                world.cut_power();
                let found = texts(&reopen(&world.process(4), &ring).unwrap(), name).unwrap();
                assert!(found.contains(&"text of m4".to_owned()), "{name}, call {call}: {found:?}");
            }
        });
    }
}

/// A file of keys that was replaced, by a process that did not live to make that durable, was zeroed under its old name, though the new name could still be
/// lost.
#[test]
fn keys_that_are_being_replaced_survive_two_crashes() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let one = session("one").id();
    let newer = |process: &SimStorage| open(process, &ring)?.rotate_data_keys(Some(one)).map(drop);
    at_each_call(&world, &newer, &|world, _, call| {
        if !world.files().iter().any(|name| name.ends_with(".old")) {
            return;
        }
        let calls = {
            let process = world.fork(1).process(3);
            newer(&process).unwrap();
            process.operation_count()
        };
        for second in 0..calls {
            let world = world.fork(second);
            let process = world.process(3);
            process.crash_at(second, Crash::Power);
            let _ = newer(&process);
            let found = texts(&reopen(&world.process(4), &ring).unwrap(), "one");
            assert_eq!(found.unwrap(), ["text of m1"], "calls {call}, {second}");
        }
    });
}

/// Judges a world after an act, by the handle that did it and the outcome.
type Check<'a> = &'a dyn Fn(&SimWorld, &Store, Result<(), Error>, &str);

/// Runs `act` on a copy of `world` once for each of its reads and openings of files, of which that one fails; then `check`.
fn at_each_failing_read(
    world: &SimWorld,
    ring: &Arc<dyn KeyRing>,
    act: &dyn Fn(&Store) -> Result<(), Error>,
    check: Check<'_>,
) {
    for kind in [FaultKind::ReadError, FaultKind::OpenError] {
        for after in 0.. {
            let world = world.fork(1);
            let process = world.process(2);
            let store = reopen(&process, ring).unwrap();
            process.plant(Fault { kind, after, once: true });
            let done = act(&store);
            let was_hit = process.was_hit();
            process.heal();
            check(&world, &store, done, &format!("{kind:?} {after}"));
            if !was_hit {
                break;
            }
        }
    }
}

/// An event whose key could not be read just then was said to be locked, as in a copy that is older than the log.
#[test]
fn keys_that_cannot_be_read_now_are_not_said_to_be_lost() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let act = |store: &Store| store.events(Seq(1), Seq::MAX)?.try_for_each(|event| event.map(drop));
    at_each_failing_read(&world, &ring, &act, &|_, store, done, context| {
        assert!(matches!(done, Ok(()) | Err(Error::Io { .. })), "{context}: {done:?}");
        act(store).unwrap();
    });
}

/// The key of an event could not be read while an item was erased, and the erasure was acknowledged though it had passed over revisions of the item.
#[test]
fn an_erasure_that_cannot_read_an_event_is_not_acknowledged() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let store = open(&world.process(1), &ring).unwrap();
    let told = |text: &str| vec![Entry::message("m", Role::User, text).origin("msg:m")];
    let receipt = store.append(&session("one"), told("the first words of it")).unwrap();
    let item = receipt.items[0].unwrap();
    let _ = store.append(&session("one"), told("other words")).unwrap();
    let _ = store.rotate_data_keys(Some(session("one").id())).unwrap();
    let _ = store.append(&session("one"), told("the last words")).unwrap();
    drop(store);
    let act = |store: &Store| store.erase(item, "tester", "asked to").map(drop);
    at_each_failing_read(&world, &ring, &act, &|_, store, done, context| {
        assert!(matches!(done, Ok(()) | Err(Error::Io { .. } | Error::Poisoned)), "{context}: {done:?}");
        if done.is_ok() {
            let mut shown = Vec::new();
            for event in store.stream_events(session("one").id(), Seq(1), Seq::MAX).unwrap() {
                let event = event.unwrap();
                let parts = match &event.event.payload {
                    Payload::MessageRecorded(it) => &it.parts,
                    Payload::ItemRevised(it) => &it.parts,
                    _ => continue,
                };
                shown.extend(store.body(parts[0].body.id(event.seq)));
            }
            assert_eq!(shown, [b"text of m1".to_vec()], "{context}");
        }
    });
}

/// A check that could not read the records of erasures took what was erased for damage.
#[test]
fn a_check_that_cannot_read_tells_of_no_damage() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let store = open(&world.process(1), &ring).unwrap();
    let long = Entry::message("long", Role::User, "a text that is long enough to be a body ".repeat(20));
    let receipt = store.append(&session("two"), vec![long]).unwrap();
    let _ = store.erase(receipt.items[0].unwrap(), "tester", "asked to").unwrap();
    let _ = store.shred(session("one").id(), "tester", "asked to").unwrap();
    drop(store);
    for kind in [FaultKind::ReadError, FaultKind::OpenError, FaultKind::InspectError] {
        for after in 0.. {
            let process = world.process(2);
            process.plant(Fault { kind, after, once: true });
            match verify_storage(Arc::new(process.clone()), true) {
                Ok(report) => assert_eq!(report.verdict(), Verdict::Sound, "{kind:?} {after}: {report:#?}"),
                Err(error) => assert!(matches!(error, Error::Io { .. }), "{kind:?} {after}: {error:?}"),
            }
            if !process.was_hit() {
                break;
            }
        }
    }
}

/// A shredding that failed behind the destruction of the key did not tell other handles, which sealed further events with it.
#[test]
fn other_handles_learn_of_a_key_that_was_destroyed_by_a_shredding_that_failed() {
    let ring = ring("the first passphrase");
    let world = made(&ring);
    let one = session("one").id();
    let mut gone = 0;
    for after in 0..20 {
        let world = world.fork(1);
        let process = world.process(2);
        let store = reopen(&process, &ring).unwrap();
        let other = reopen(&world.process(3), &ring).unwrap();
        add(&other, "one", "m8").unwrap();
        process.plant(Fault { kind: FaultKind::SyncDirError, after, once: false });
        let done = store.shred(one, "tester", "asked to");
        process.heal();
        let builder = Store::builder(Path::new("sim")).storage(Arc::new(world.process(4))).read_only();
        let is_gone = builder.keys(Arc::clone(&ring)).open().unwrap().is_shredded(one).unwrap();
        gone += u32::from(is_gone && done.is_err());
        let added = add(&other, "one", "m10");
        assert!(!is_gone || added.is_err(), "{after}: {done:?}, then {added:?}");
    }
    assert!(gone > 0);
}
