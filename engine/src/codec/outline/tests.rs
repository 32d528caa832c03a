//! Parts of a frame against the frame, and what a part says to bytes that are not what they were.

use proptest::prelude::*;

use super::*;
use crate::codec::{EncodedBody, EncodedEvent, Envelope, SALT_BYTES, decode_frame, encode_frame};
use crate::ids::{Link, Micros, Origin, Position, StoreId};

/// A frame of events of these streams, with payloads and bodies of lengths that differ, and its spine.
fn frame(streams: &[u8]) -> (Frame, Vec<u8>) {
    let events: Vec<EncodedEvent> = streams
        .iter()
        .enumerate()
        .map(|(number, stream)| {
            let bodies = (0..number % 3).map(|body| EncodedBody::New {
                bytes: format!("{number}.{body}").into_bytes().into(),
                salt: [7; SALT_BYTES],
            });
            let envelope = Envelope {
                kind: 7,
                version: 1,
                stream: StreamId([*stream; 16]),
                origin: Origin::ZERO,
                host_time: None,
            };
            EncodedEvent { envelope, payload: vec![*stream; number * 5 % 41], bodies: bodies.collect() }
        })
        .collect();
    let mut prepared = encode_frame(&events).unwrap();
    let place = Position::new(1, 0x2000).unwrap();
    let (bytes, _) = prepared.seal(Seq(100), Micros(5), place, place, StoreId([5; 16]), Link([6; 32]));
    let frame = decode_frame(bytes).unwrap();
    let spine = bytes[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + frame.header().spine_bytes as usize].to_vec();
    (frame, spine)
}

fn read(spine: &[u8], pieces: &Pieces) -> AlignedVec<16> {
    let mut bytes = AlignedVec::new();
    for (start, length) in pieces.stretches {
        bytes.extend_from_slice(&spine[start..start + length]);
    }
    bytes
}

/// Everything that can be said of an event.
fn told(frame: &Frame, seq: Seq) -> Option<(Envelope, Vec<u8>, Vec<crate::codec::BodyRow>)> {
    let event = frame.event(seq)?;
    let walked = frame.events().find(|walked| walked.seq == seq)?;
    assert_eq!((walked.payload, walked.row_count()), (event.payload, event.row_count()));
    assert!(event.payload.as_ptr().addr().is_multiple_of(16), "{seq} is not where rkyv can read it");
    Some((event.envelope, event.payload.to_vec(), event.rows().collect()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A part, read again or taken out of the frame, says of its events what the frame says; the part that holds a seq
    /// does, and the parts of some streams hold all their events past a seq.
    #[test]
    fn parts_say_what_the_frame_says(
        streams in proptest::collection::vec(0..4_u8, 1..120),
        wanted in proptest::collection::vec(0..5_u8, 0..3),
        after in 90..230_u64,
    ) {
        let (frame, spine) = frame(&streams);
        let outline = Outline::of(&frame).unwrap();
        let mut parts = Vec::new();
        for seq in frame.events().map(|event| event.seq) {
            let pieces = outline.holding(seq).unwrap();
            let part = outline.part(&pieces, read(&spine, &pieces)).unwrap();
            prop_assert!((part.first_seq()..=part.last_seq()).contains(&seq));
            prop_assert_eq!(outline.seqs(&pieces), part.first_seq()..=part.last_seq());
            parts.push(part);
        }
        let some = frame.events().map(|event| event.seq).filter(|seq| seq.0 % 7 == after % 7);
        let some: Vec<Seq> = some.collect();
        let held = outline.of_seqs([Seq(1)].into_iter().chain(some.iter().copied()).chain([Seq::MAX]));
        for pieces in &held {
            parts.push(outline.part(pieces, read(&spine, pieces)).unwrap());
        }
        for seq in some {
            prop_assert!(held.iter().any(|pieces| outline.seqs(pieces).contains(&seq)), "{}", seq);
        }
        prop_assert!(outline.holding(Seq(99)).is_none());
        prop_assert!(outline.holding(frame.last_seq().next()).is_none());
        for stream in 0..5 {
            let stream = StreamId([stream; 16]);
            let first = frame.events().find(|event| event.envelope.stream == stream).map(|event| event.seq);
            let pieces = outline.first_of(stream);
            prop_assert_eq!(first.is_some(), pieces.is_some());
            if let (Some(first), Some(pieces)) = (first, pieces) {
                prop_assert!(outline.seqs(&pieces).contains(&first));
            }
        }
        let ids: Vec<StreamId> = wanted.iter().map(|stream| StreamId([*stream; 16])).collect();
        let of_streams = outline.of_streams(&ids, Seq(after));
        let mut found = std::collections::BTreeSet::new();
        for pieces in &of_streams {
            let part = outline.part(pieces, read(&spine, pieces)).unwrap();
            let own = part.events().filter(|event| ids.contains(&event.envelope.stream) && event.seq.0 > after);
            for event in own {
                prop_assert!(found.insert(event.seq), "{} comes twice", event.seq);
            }
            parts.push(outline.part_of(&frame, pieces));
            parts.push(part);
        }
        let all = frame.events().filter(|event| ids.contains(&event.envelope.stream) && event.seq.0 > after);
        prop_assert!(all.map(|event| event.seq).eq(found));
        for part in parts {
            for seq in part.events().map(|event| event.seq) {
                prop_assert_eq!(told(&part, seq), told(&frame, seq));
            }
            prop_assert!(part.event(part.last_seq().next()).is_none());
            prop_assert!(part.event(Seq(part.first_seq().0 - 1)).is_none());
        }
    }
}

#[test]
fn every_flipped_bit_of_a_part_is_refused() {
    let (frame, spine) = frame(&[1, 2, 2, 1, 1, 2, 1, 1, 3, 3, 1, 2, 1, 2, 3, 1, 1, 2, 3, 3]);
    let outline = Outline::of(&frame).unwrap();
    let parts = frame.events().step_by(8).map(|event| outline.holding(event.seq).unwrap());
    for pieces in parts.chain(outline.of_streams(&[StreamId([3; 16])], Seq::ZERO)) {
        let bytes = read(&spine, &pieces);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let invalid = outline.part(&pieces, damaged).unwrap_err();
            assert_eq!(invalid.part, Part::Spine, "bit {bit} of {pieces:?}");
        }
        let mut cut = bytes.clone();
        cut.resize(bytes.len() - 16, 0);
        assert!(outline.part(&pieces, cut).is_err(), "{pieces:?} cut");
    }
}

/// Pieces of other blocks, sound in themselves, are not those that were asked for.
#[test]
fn the_bytes_of_other_events_are_refused() {
    let (frame, spine) = frame(&[1; 64]);
    let outline = Outline::of(&frame).unwrap();
    let first = outline.holding(Seq(100)).unwrap();
    for event in frame.events().skip(8) {
        let other = outline.holding(event.seq).unwrap();
        assert!(outline.part(&first, read(&spine, &other)).is_err(), "{}", event.seq);
    }
}
