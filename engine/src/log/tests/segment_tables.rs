//! Tables of complete segments answer as the frames do, or not at all.

use super::*;

fn frames(log: &Log) -> Vec<Frame> {
    log.frames(Position::default(), log.head()).map(Result::unwrap).collect()
}

/// The answer by the frames themselves.
fn expected(frames: &[Frame], segment: CompleteSegment, stream: StreamId, after: Seq) -> Vec<FramePlace> {
    let inside = |frame: &&Frame| {
        let header = frame.header();
        (segment.first_seq..=segment.last_seq).contains(&header.first_seq)
            && header.last_seq() > after
            && frame.events().any(|event| event.envelope.stream == stream)
    };
    let place = |frame: &Frame| FramePlace {
        first_seq: frame.header().first_seq,
        last_seq: frame.header().last_seq(),
        position: frame.position(),
    };
    frames.iter().filter(inside).map(place).collect()
}

fn agree(log: &Log, context: &str) {
    let frames = frames(log);
    let active = log.head().position.segment();
    let mut seq = Seq(1);
    while let Some(segment) = log.complete_segment(seq).unwrap() {
        for number in 0..5 {
            for after in [Seq::ZERO, segment.first_seq, Seq(segment.last_seq.0 - 1), segment.last_seq] {
                let found = log.segment_frames_of(segment.number, stream(number), after).unwrap();
                let expected = expected(&frames, segment, stream(number), after);
                assert_eq!(
                    found, expected,
                    "{context}: segment {}, stream {number} after {after}",
                    segment.number
                );
            }
        }
        if let Some(streams) = log.segment_streams(segment.number).unwrap() {
            for known in streams {
                let of = |event: &crate::codec::EventRef<'_>| event.envelope.stream == known.stream;
                let seqs: Vec<Seq> = frames
                    .iter()
                    .flat_map(|frame| frame.events().filter(of).map(|event| event.seq).collect::<Vec<_>>())
                    .filter(|seq| (segment.first_seq..=segment.last_seq).contains(seq))
                    .collect();
                let found = (Some(&known.first), Some(&known.last), known.event_count as usize);
                assert_eq!(found, (seqs.first(), seqs.last(), seqs.len()), "{context}");
                // A damaged page gives no answer.
                if let Some(first) = log.segment_frame(segment.number, known.first).unwrap() {
                    assert!(first.first_seq <= known.first && known.first <= first.last_seq, "{context}");
                }
            }
        }
        seq = segment.last_seq.next();
    }
    assert_eq!(log.complete_segment(seq).unwrap(), None);
    assert!(active > 3 && seq > Seq(6), "{context}");
    for frame in &frames {
        for event in frame.events() {
            assert_eq!(log.locate(event.seq).unwrap().unwrap().position(), frame.position(), "{context}");
        }
    }
}

#[test]
fn maps_answer_as_the_frames_do() {
    let world = closed_store(40);
    let maps = |world: &SimWorld| world.files().iter().filter(|name| name.ends_with(".map")).count();
    let reader = open_with(&world.process(2), LogOptions { read_only: true, ..options() }).unwrap().0;
    agree(&reader, "no maps, and none may be made");
    assert_eq!(maps(&world), 0);
    let (log, _) = open(&world.process(3)).unwrap();
    agree(&log, "maps made when they are missed");
    assert!(maps(&world) > 3);
    agree(&reader, "maps of another process");
    let number = log.unsealed().unwrap()[1];
    assert!(matches!(log.seal(number, &|| false).unwrap(), SealOutcome::Sealed(_)));
    assert!(world.file(&files::map_name(number)).is_some(), "positions are the same, and so is the map");
    agree(&log, "one sealed");
    for number in log.unsealed().unwrap() {
        assert!(matches!(log.seal(number, &|| false).unwrap(), SealOutcome::Sealed(_)));
    }
    agree(&log, "all sealed");
    agree(&open(&world.process(4)).unwrap().0, "all sealed, opened anew");
    let name = files::map_name(number);
    let map = world.file(&name).unwrap();
    world.remove_file(&name);
    agree(&open(&world.process(5)).unwrap().0, "a map made of a sealed segment");
    assert_eq!(world.file(&name).unwrap(), map);
}

#[test]
fn a_damaged_or_foreign_map_changes_no_answer() {
    let world = closed_store(12);
    open(&world.process(2)).unwrap().0.write_maps(usize::MAX).unwrap();
    let read_only = || LogOptions { read_only: true, ..options() };
    let name = files::map_name(1);
    let bytes = world.file(&name).unwrap();
    for at in (0..bytes.len()).step_by(share(23)) {
        let copy = world.fork(1);
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        copy.set_file(&name, damaged);
        agree(&open_with(&copy.process(3), read_only()).unwrap().0, &format!("byte {at}"));
        copy.set_file(&name, &bytes[..at]);
        agree(&open_with(&copy.process(4), read_only()).unwrap().0, &format!("cut to {at}"));
    }
    let copy = world.fork(1);
    copy.set_file(&name, world.file(&files::map_name(2)).unwrap());
    agree(&open_with(&copy.process(3), read_only()).unwrap().0, "the map of another segment");
    let (log, _) = open(&copy.process(4)).unwrap();
    agree(&log, "and it is made anew");
    assert_eq!(copy.file(&name).unwrap(), bytes);
}
