//! The log when nothing goes wrong, on simulated and on real files.

use super::*;
use crate::codec::{BODY_CHUNK_BYTES_MAX, EncodeError, FORMAT_VERSION, SegmentHeader};
use crate::storage::{FileStorage, SystemClock, SystemEntropy};

#[test]
fn what_is_appended_is_read_back_over_rolls_and_reopening() {
    let world = closed_store(12);
    let (log, recovery) = open(&world.process(2)).unwrap();
    assert!(recovery.was_clean && !recovery.created && recovery.damage.is_none());
    let expected: Vec<_> = (0..12)
        .flat_map(|commit| [shown(commit, 0), shown(commit, 1)])
        .zip(1..)
        .map(|(text, seq)| (Seq(seq), text))
        .collect();
    assert_eq!(sound_listing(&log), expected);
    let report = log.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(report.segments > 2, "{report:?}");
    assert_eq!((report.events, report.bodies, report.frames, report.head_seq), (24, 24, 12, Seq(24)));
    assert_eq!(report.head_link, log.head().link);
    let holds = |witness: &Witness| matches!(witness.standing, WitnessStatus::Agrees | WitnessStatus::Behind);
    assert!(report.witnesses.len() > 5 && report.witnesses.iter().all(holds), "{report:#?}");
}

#[test]
fn locate_finds_every_seq_with_and_without_a_walk_before() {
    let world = closed_store(12);
    for warm in [false, true] {
        let (log, _) = open(&world.process(2)).unwrap();
        if warm {
            let _ = listing(&log);
        }
        for seq in 1..=24 {
            let frame = log.locate(Seq(seq)).unwrap().unwrap();
            let event = frame.event(Seq(seq)).unwrap();
            assert_eq!(event.seq, Seq(seq));
            assert_eq!(log.frame_at(frame.position()).unwrap().header(), frame.header());
            let first = log.frames_from(Seq(seq), log.head()).unwrap().next().unwrap().unwrap();
            assert_eq!(first.header(), frame.header());
        }
        assert!(log.locate(Seq(0)).unwrap().is_none());
        assert!(log.locate(Seq(25)).unwrap().is_none());
    }
}

#[test]
fn equal_bodies_of_a_commit_share_bytes() {
    let world = SimWorld::new(3);
    let (log, _) = open(&world.process(1)).unwrap();
    let mut events = vec![event(&log, 0, 0), event(&log, 0, 0)];
    events[1].bodies.push(EncodedBody::New { bytes: b"other".as_slice().into(), salt: [3; 16] });
    let first = log.append(log.prepare(&events).unwrap(), &[]).unwrap();
    let [one, two, other] = rows_of(&log, &first)[..] else { panic!("three rows") };
    assert_eq!((one.place, one.digest), (two.place, two.digest));
    assert_ne!(one.place, other.place);
    assert_eq!(log.body(&two).unwrap(), text(0, 0));
    assert_eq!(log.body(&other).unwrap(), b"other");
    assert!(log.verify().unwrap().is_sound());
}

#[test]
fn a_condition_holds_until_its_stream_moves() {
    let world = SimWorld::new(3);
    let (log, _) = open(&world.process(1)).unwrap();
    let _ = append(&log, 0).unwrap();
    let _ = append(&log, 1).unwrap();
    let basis = log.head().seq;
    let try_commit = |log: &Log, commit: u32, on: u8, basis: Seq| {
        let prepared = log.prepare(&[event(log, commit, 0)]).unwrap();
        log.append(prepared, &[Condition { stream: stream(on), basis }])
    };
    // Stream 2 takes commit 5; streams 0 and 1 stay where they are.
    assert!(try_commit(&log, 5, 2, basis).is_ok());
    assert!(try_commit(&log, 2, 1, basis).is_ok());
    let moved = try_commit(&log, 2, 2, basis);
    assert!(matches!(moved, Err(LogError::HeadMoved { actual: Seq(6), .. })), "{moved:?}");
    assert_eq!(log.head().seq, Seq(6), "nothing was written");
    // A handle that was opened later looks the stream up in the log.
    let (other, _) = open(&world.process(2)).unwrap();
    let moved = try_commit(&other, 9, 1, Seq(3));
    assert!(matches!(moved, Err(LogError::HeadMoved { actual: Seq(4), .. })), "{moved:?}");
    assert!(try_commit(&other, 9, 1, Seq(4)).is_ok());
}

#[test]
fn limits_are_errors() {
    let world = SimWorld::new(3);
    let (log, _) = open(&world.process(1)).unwrap();
    let too_large = |events: &[EncodedEvent]| match log.prepare(events) {
        Err(LogError::Encode(EncodeError::TooLarge { what, .. })) => what,
        other => panic!("{:?}", other.err()),
    };
    let mut payload = event(&log, 0, 0);
    payload.payload = vec![0; crate::codec::EVENT_BYTES_MAX + 1];
    assert_eq!(too_large(&[payload]), "bytes of an event");
    let body = |length: usize| EncodedBody::New { bytes: vec![7; length].into(), salt: [1; 16] };
    let mut oversized = event(&log, 0, 0);
    oversized.bodies = vec![body(BODY_CHUNK_BYTES_MAX + 1)];
    assert_eq!(too_large(&[oversized]), "bytes of a body");
    let mut heavy = event(&log, 0, 0);
    heavy.bodies = vec![body(BODY_CHUNK_BYTES_MAX); 4];
    assert_eq!(too_large(&[heavy]), "bytes of a commit");
    let many = vec![event(&log, 0, 0); crate::codec::COMMIT_EVENT_COUNT_MAX + 1];
    assert_eq!(too_large(&many), "events of a commit");
    assert!(matches!(log.prepare(&[]), Err(LogError::Encode(EncodeError::NoEvents))));
    let mut empty = event(&log, 0, 0);
    empty.bodies = vec![body(0)];
    assert!(matches!(log.prepare(&[empty]), Err(LogError::Encode(EncodeError::EmptyBody { .. }))));
}

/// One commit with the clock ahead made all later ones say the same time. A time may go back now; the highest so far is kept
/// beside it.
#[test]
fn times_are_those_of_the_clock_even_if_it_is_set_back() {
    let world = SimWorld::new(3);
    let clock = Arc::new(FixedClock::new(Micros(5_000), 1));
    let storage = Arc::new(world.process(1));
    let (log, _) =
        Log::create_or_open(storage, clock.clone(), Arc::new(FixedEntropy::new(1)), options()).unwrap();
    let first = append(&log, 0).unwrap().time;
    clock.set(Micros(10));
    let second = append(&log, 1).unwrap().time;
    assert!(first >= Micros(5_000) && second < Micros(100), "{first:?} {second:?}");
    assert_eq!(log.head().time, first, "the highest time so far");
    let times: Vec<Micros> =
        log.frames(Position::default(), log.head()).map(|frame| frame.unwrap().time()).collect();
    assert_eq!(times, [first, second]);
    assert!(log.verify().unwrap().is_sound());
    log.close().unwrap();
    let (log, recovery) = open(&world.process(2)).unwrap();
    assert!(recovery.was_clean);
    assert_eq!(log.head().time, first);
}

#[test]
fn a_commit_larger_than_a_segment_gets_one_of_its_own() {
    let world = SimWorld::new(3);
    let (log, _) = open(&world.process(1)).unwrap();
    let _ = append(&log, 0).unwrap();
    let mut large = event(&log, 1, 0);
    large.bodies = vec![EncodedBody::New { bytes: vec![5; 3 << 20].into(), salt: [1; 16] }];
    let position = log.append(log.prepare(&[large]).unwrap(), &[]).unwrap().position;
    assert_eq!(position, SegmentHeader::start(2));
    assert_eq!(append(&log, 2).unwrap().position, SegmentHeader::start(3));
    assert!(log.verify().unwrap().is_sound());
}

#[test]
fn there_must_be_a_store_to_open_one() {
    let world = SimWorld::new(3);
    let clock = || Arc::new(FixedClock::new(Micros(0), 1));
    let opened = Log::open(Arc::new(world.process(1)), clock(), Arc::new(FixedEntropy::new(1)), options());
    assert!(matches!(opened, Err(LogError::NotAStore { .. })));
    let read_only = LogOptions { read_only: true, ..options() };
    assert!(matches!(open_with(&world.process(1), read_only.clone()), Err(LogError::NotAStore { .. })));
    assert!(world.files().is_empty());
    let world = closed_store(2);
    let (log, recovery) = open_with(&world.process(2), read_only).unwrap();
    assert!(recovery.read_only);
    assert_eq!(sound_listing(&log).len(), 4);
    assert!(matches!(append(&log, 3), Err(LogError::ReadOnly { .. })));
}

#[test]
fn a_newer_format_is_named_and_a_damaged_version_is_not_taken_for_one() {
    let world = closed_store(1);
    let text = String::from_utf8(world.file("acpdb.json").unwrap()).unwrap();
    let (checked, _) = text.rsplit_once(",\n  \"check\"").unwrap();
    let next = |text: &str| {
        let version = |version: u32| format!("\"acpdb\": {version}");
        text.replace(&version(FORMAT_VERSION), &version(FORMAT_VERSION + 1))
    };
    let newer = next(checked);
    let check = blake3::hash(newer.as_bytes()).to_hex();
    world.set_file("acpdb.json", format!("{newer},\n  \"check\": \"{check}\"\n}}\n").into_bytes());
    let opened = open(&world.process(2));
    assert!(matches!(opened, Err(LogError::NewerFormat { .. })));
    world.set_file("acpdb.json", next(&text).into_bytes());
    let (log, recovery) = open(&world.process(2)).unwrap();
    assert_eq!(recovery.damage.unwrap().part, DamagedPart::StoreFile);
    assert_eq!(sound_listing(&log).len(), 2);
}

#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    let (log, _) = Log::create_or_open(
        Arc::new(FileStorage::new(&root)),
        Arc::new(SystemClock::new()),
        Arc::new(SystemEntropy),
        LogOptions::default(),
    )
    .unwrap();
    let _ = append(&log, 0).unwrap();
    log.close().unwrap();
    let mode = |name: &str| std::fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("log")), (0o700, 0o700));
    for file in ["acpdb.json", "tail", "checkpoint", "log/000000000001.seg"] {
        assert_eq!(mode(file), 0o600, "{file}");
    }
    std::fs::remove_file(root.join("tail")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", root.join("tail")).unwrap();
    let linked = Log::open(
        Arc::new(FileStorage::new(&root)),
        Arc::new(SystemClock::new()),
        Arc::new(SystemEntropy),
        LogOptions::default(),
    );
    assert!(matches!(linked, Err(LogError::Io { .. })));
}
