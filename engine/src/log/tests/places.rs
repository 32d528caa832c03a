//! Places answer as the frames do, whatever became of their files.

use super::*;
use crate::codec::PLACE_BYTES;

fn frames(log: &Log) -> Vec<Frame> {
    log.frames(Position::default(), log.head()).map(Result::unwrap).collect()
}

fn place(frame: &Frame) -> FramePlace {
    let header = frame.header();
    FramePlace { first_seq: header.first_seq, last_seq: header.last_seq(), position: header.position }
}

/// Appends a commit of two streams, or of one.
fn append_mixed(log: &Log, commit: u32) -> Result<Appended, LogError> {
    let mut events = vec![event(log, commit, 0), event(log, commit, 1), event(log, commit, 2)];
    if commit.is_multiple_of(4) {
        events[1].envelope.stream = stream(4);
    }
    log.append(log.prepare(&events)?, &[])
}

/// Compares all answers with the frames themselves.
fn agree(log: &Log, context: &str) {
    let frames = frames(log);
    let head = log.head().seq;
    let streams: Vec<StreamId> = (0..6).map(stream).collect();
    let holds = |frame: &Frame, stream: StreamId| frame.events().any(|event| event.envelope.stream == stream);
    let mut listed = Vec::new();
    for stream in streams.iter().copied() {
        let own: Vec<FramePlace> = frames.iter().filter(|frame| holds(frame, stream)).map(place).collect();
        for after in (0..=head.0).step_by(5).map(Seq) {
            let expected: Vec<FramePlace> =
                own.iter().filter(|place| place.last_seq > after).copied().collect();
            assert_eq!(
                log.frames_of(&[stream], after).unwrap(),
                (expected, head),
                "{context}: after {after}"
            );
        }
        for count in [1, 3, 100] {
            let last = own.iter().rev().take(count).rev().copied().collect::<Vec<_>>();
            assert_eq!(log.last_frames_of(stream, count).unwrap(), last, "{context}");
        }
        let events = frames.iter().flat_map(|frame| {
            frame.events().map(|event| (event.envelope.stream, event.seq)).collect::<Vec<_>>()
        });
        let newest = events.filter(|(of, _)| *of == stream).map(|(_, seq)| seq).next_back();
        let expected =
            own.first().zip(newest).map(|(first, head)| StreamPlace { stream, first: *first, head });
        assert_eq!(log.stream_place(stream).unwrap(), expected, "{context}");
        listed.extend(expected);
    }
    let mut found = log.stream_places().unwrap();
    let order: Vec<FramePlace> = found.iter().map(|place| place.first).collect();
    assert!(order.is_sorted(), "{context}");
    found.sort_by_key(|place| place.stream);
    assert_eq!(found, listed, "{context}");
    for after in (0..=head.0).step_by(7).map(Seq) {
        let expected: Vec<FramePlace> =
            frames.iter().map(place).filter(|place| place.last_seq > after).collect();
        assert_eq!(log.all_frames(after).unwrap(), (expected, head), "{context}");
    }
    for frame in &frames {
        for event in frame.events() {
            assert_eq!(log.place_of(event.seq).unwrap(), Some(place(frame)), "{context}: {}", event.seq);
            assert_eq!(log.locate(event.seq).unwrap().unwrap().position(), frame.position(), "{context}");
        }
    }
    assert_eq!(log.place_of(head.next()).unwrap(), None, "{context}");
    assert_eq!(log.take_places_damage(), Vec::<String>::new(), "{context}");
}

fn large() -> LogOptions {
    LogOptions { segment_bytes_max: 1 << 20, ..options() }
}

fn read_only() -> LogOptions {
    LogOptions { read_only: true, ..options() }
}

fn agree_anew(world: &SimWorld, context: &str) {
    agree(&open_with(&world.process(7), read_only()).unwrap().0, context);
}

/// A store with frames of one and of two streams, in several segments.
fn mixed_store(commits: u32) -> SimWorld {
    mixed_store_with(commits, options())
}

fn mixed_store_with(commits: u32, options: LogOptions) -> SimWorld {
    let world = SimWorld::new(1);
    let (log, _) = open_with(&world.process(1), options).unwrap();
    for commit in 0..commits {
        let _ = append_mixed(&log, commit).unwrap();
    }
    drop(log);
    world
}

fn last_segment(world: &SimWorld) -> u32 {
    open_with(&world.process(8), read_only()).unwrap().0.head().position.segment()
}

#[test]
fn places_answer_as_the_frames_do() {
    for encrypted in [false, true] {
        if encrypted {
            encrypt();
        }
        let world = mixed_store(40);
        agree_anew(&world, "as they were written");
        let (log, _) = open(&world.process(3)).unwrap();
        agree(&log, "completed when they are asked");
        log.complete_all_places(usize::MAX).unwrap();
        let number = last_segment(&world);
        assert!(number > 4);
        for number in 1..=number {
            assert!(world.file(&files::places_name(number)).is_some(), "{number}");
        }
        agree_anew(&world, "all complete");
        for number in 1..=number {
            world.remove_file(&files::places_name(number));
        }
        agree_anew(&world, "none");
        agree(&log, "a handle that has them");
        if !encrypted {
            let number = log.unsealed().unwrap()[1];
            assert!(matches!(log.seal(number, &|| false).unwrap(), SealOutcome::Sealed(_)));
            agree(&log, "one sealed");
            let bytes = world.file(&files::places_name(number)).unwrap();
            world.remove_file(&files::places_name(number));
            agree(&open(&world.process(5)).unwrap().0, "made of a sealed segment");
            assert_eq!(world.file(&files::places_name(number)).unwrap(), bytes);
        }
    }
}

#[test]
fn a_damaged_or_foreign_file_changes_no_answer_and_is_made_anew() {
    let world = mixed_store(14);
    open(&world.process(2)).unwrap().0.complete_all_places(usize::MAX).unwrap();
    let last = last_segment(&world);
    for number in [1, last] {
        let name = files::places_name(number);
        let bytes = world.file(&name).unwrap();
        let changed = |context: &str, bytes: &[u8]| {
            let copy = world.fork(1);
            copy.set_file(&name, bytes);
            agree_anew(&copy, context);
            // A writer goes on, and what it writes is believed.
            let (log, _) = open(&copy.process(4)).unwrap();
            for commit in 20..24 {
                let _ = append_mixed(&log, commit).unwrap();
                agree(&log, context);
            }
            agree_anew(&copy, context);
        };
        for at in (0..bytes.len()).step_by(share(13)) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            changed(&format!("{name}: byte {at}"), &flipped);
            changed(&format!("{name}: cut to {at}"), &bytes[..at]);
        }
        for row in (0..bytes.len()).step_by(PLACE_BYTES) {
            let mut zeroed = bytes.clone();
            zeroed[row..bytes.len().min(row + PLACE_BYTES)].fill(0);
            changed(&format!("{name}: zeros at {row}"), &zeroed);
            let shifted = [&bytes[..row], &bytes[bytes.len().min(row + PLACE_BYTES)..]].concat();
            changed(&format!("{name}: without the row at {row}"), &shifted);
        }
        changed(&format!("{name}: of another segment"), &world.file(&files::places_name(2)).unwrap());
    }
}

/// Rows that are missing are written by the next writer.
#[test]
fn the_next_writer_writes_the_rest() {
    let world = mixed_store_with(14, large());
    let name = files::places_name(1);
    let whole = world.file(&name).unwrap();
    for cut in [0, 5, PLACE_BYTES * 3, PLACE_BYTES * 3 + 7, whole.len()] {
        let copy = world.fork(1);
        copy.set_file(&name, &whole[..cut]);
        let (log, _) = open_with(&copy.process(4), large()).unwrap();
        let _ = append_mixed(&log, 20).unwrap();
        let written = copy.file(&name).unwrap();
        assert_eq!(written[..whole.len()], whole[..], "cut to {cut}");
        assert!(written.len() > whole.len(), "cut to {cut}");
        agree_anew(&copy, "written anew");
    }
    // Long enough, and wrong within: a handle that reads it writes it anew.
    let copy = world.fork(1);
    let mut zeroed = whole.clone();
    zeroed[PLACE_BYTES * 2..PLACE_BYTES * 4].fill(0);
    copy.set_file(&name, &zeroed);
    let (log, _) = open_with(&copy.process(4), large()).unwrap();
    agree(&log, "zeros within");
    let _ = append_mixed(&log, 20).unwrap();
    assert_eq!(copy.file(&name).unwrap()[..whole.len()], whole[..]);
}

/// A row behind the count, right in every other way, is of a frame that was dropped.
#[test]
fn rows_behind_the_count_are_not_believed() {
    let world = mixed_store_with(14, large());
    let name = files::places_name(1);
    let count = world.file("tail").unwrap()[656..672].to_vec();
    let append_to = |world: &SimWorld, own: StreamId| {
        let (log, _) = open_with(&world.process(4), large()).unwrap();
        let mut events = vec![event(&log, 21, 0), event(&log, 21, 1), event(&log, 21, 2)];
        for event in &mut events {
            event.envelope.stream = own;
        }
        let _ = log.append(log.prepare(&events).unwrap(), &[]).unwrap();
        drop(log);
        world.file(&name).unwrap()
    };
    let other = world.fork(1);
    let old = append_to(&other, stream(4));
    let new = append_to(&world, stream(5));
    assert_eq!(old.len(), new.len());
    assert_ne!(old, new);
    agree_anew(&world, "as written");
    // The row of the last frame was not written, and an old one stands in its place.
    world.set_file(&name, &old);
    let mut page = world.file("tail").unwrap();
    page[656..672].copy_from_slice(&count);
    world.set_file("tail", &page);
    agree_anew(&world, "an old row behind the count");
}

/// A power cut took a frame and left its row, and nothing had to be repaired: the row goes before another frame takes the place.
#[test]
fn rows_without_frames_go_before_the_next_append() {
    let world = mixed_store_with(6, large());
    let name = files::places_name(1);
    let whole = world.file(&name).unwrap();
    let other = world.fork(1);
    let _ = append_mixed(&open_with(&other.process(4), large()).unwrap().0, 21).unwrap();
    world.set_file(&name, other.file(&name).unwrap());
    let (log, recovery) = open_with(&world.process(5), large()).unwrap();
    assert!(recovery.was_clean);
    let _ = append_mixed(&log, 22).unwrap();
    let image = world.fork(3);
    image.cut_power();
    if let Some(bytes) = image.file(&name) {
        assert_ne!(bytes, other.file(&name).unwrap());
    }
    assert_eq!(world.file(&name).unwrap()[..whole.len()], whole[..]);
    agree_anew(&world, "gone on");
}

/// Files of segments that are dropped go before other frames take their places.
#[test]
fn recovery_removes_rows_of_frames_that_it_drops() {
    let world = mixed_store_with(6, large());
    let name = files::places_name(1);
    let mut page = world.file("tail").unwrap();
    let (log, _) = open_with(&world.process(4), large()).unwrap();
    let before = log.head().position.offset();
    let _ = append_mixed(&log, 21).unwrap();
    drop(log);
    // The frame is torn, and its row is there.
    let mut segment = world.file("log/000000000001.seg").unwrap();
    let at = usize::try_from(before).unwrap() + 200;
    segment[at] ^= 1;
    world.set_file("log/000000000001.seg", &segment);
    page[640] = 1;
    world.set_file("tail", &page);
    world.remove_file("checkpoint");
    let (log, recovery) = open_with(&world.process(5), large()).unwrap();
    assert!(recovery.torn_bytes > 0, "{recovery:?}");
    assert!(world.file(&name).is_none());
    agree(&log, "repaired");
    let _ = append_mixed(&log, 22).unwrap();
    agree_anew(&world, "gone on");
}

/// `verify` compares every row: a sound one that is wrong would hide events.
#[test]
fn wrong_rows_are_reported() {
    let world = mixed_store(14);
    let (log, _) = open(&world.process(2)).unwrap();
    log.complete_all_places(usize::MAX).unwrap();
    assert!(log.verify().unwrap().is_sound());
    let last = log.head().position.segment();
    drop(log);
    for number in [1, last] {
        let copy = world.fork(1);
        let name = files::places_name(number);
        let mut bytes = copy.file(&name).unwrap();
        let header = open(&copy.process(3)).unwrap().0.segments.header(number).unwrap().unwrap();
        let of = crate::codec::PlacesOf::new(header.store, number, header.first_seq);
        let row = crate::codec::PlaceRow::decode(of, 0, &bytes[..PLACE_BYTES]).unwrap();
        let forged = crate::codec::PlaceRow { key: row.key ^ 1, ..row }.encode(of, 0);
        bytes[..PLACE_BYTES].copy_from_slice(&forged);
        copy.set_file(&name, &bytes);
        let report = open_with(&copy.process(4), read_only()).unwrap().0.verify().unwrap();
        let found: Vec<_> =
            report.violations.iter().map(|found| (found.kind, found.segment, found.offset)).collect();
        assert_eq!(found, [(DamagedPart::Places, number, 0)]);
    }
}
