//! Parts of a frame against the frame, and a part's answer to changed bytes.

use proptest::prelude::*;
use rkyv::util::AlignedVec;

use super::*;
use crate::codec::{EncodedBody, EncodedEvent, Envelope, Frame, SALT_BYTES, decode_frame, encode_frame};
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
                content: None,
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
    let (bytes, _) =
        prepared.seal(Seq(100), (Micros(5), Micros(5)), place, place, StoreId([5; 16]), Link([6; 32]));
    let frame = decode_frame(bytes).unwrap();
    let spine = bytes[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + frame.header().spine_bytes as usize].to_vec();
    (frame, spine)
}

fn read(spine: &[u8], table: &PieceTable, pieces: &Range<u32>) -> AlignedVec<16> {
    let mut bytes = AlignedVec::new();
    let (start, length) = table.stretch(pieces);
    bytes.extend_from_slice(&spine[start..start + length]);
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
    #![proptest_config(ProptestConfig::with_cases(crate::testing::cases(40)))]

    /// A part, read again or taken out of the frame, has its events as the frame has them. The part of a seq holds that seq,
    /// and the parts of some streams hold all their events past a seq.
    #[test]
    fn parts_say_what_the_frame_says(
        streams in proptest::collection::vec(0..4_u8, 17..120),
        wanted in proptest::collection::vec(0..5_u8, 0..3),
        after in 90..230_u64,
    ) {
        let (frame, spine) = frame(&streams);
        let table = frame.piece_table().unwrap();
        let mut parts = Vec::new();
        for seq in frame.events().map(|event| event.seq) {
            let pieces = table.holding(seq).unwrap();
            let part = table.part(&pieces, read(&spine, &table, &pieces)).unwrap();
            prop_assert!((part.first_seq()..=part.last_seq()).contains(&seq));
            prop_assert_eq!(table.seqs(&pieces), part.first_seq()..=part.last_seq());
            parts.push(part);
        }
        let some = frame.events().map(|event| event.seq).filter(|seq| seq.0 % 7 == after % 7);
        let some: Vec<Seq> = some.collect();
        let held = table.of_seqs([Seq(1)].into_iter().chain(some.iter().copied()).chain([Seq::MAX]));
        for pieces in &held {
            parts.push(table.part(pieces, read(&spine, &table, pieces)).unwrap());
        }
        for seq in some {
            prop_assert!(held.iter().any(|pieces| table.seqs(pieces).contains(&seq)), "{}", seq);
        }
        prop_assert!(table.holding(Seq(99)).is_none());
        prop_assert!(table.holding(frame.last_seq().next()).is_none());
        let ids: Vec<StreamId> = wanted.iter().map(|stream| StreamId([*stream; 16])).collect();
        let of_streams = table.of_streams(&ids, Seq(after));
        let mut found = std::collections::BTreeSet::new();
        for pieces in &of_streams {
            let part = table.part(pieces, read(&spine, &table, pieces)).unwrap();
            let own = part.events().filter(|event| ids.contains(&event.envelope.stream) && event.seq.0 > after);
            for event in own {
                prop_assert!(found.insert(event.seq), "{} comes twice", event.seq);
            }
            parts.push(table.part_of(&frame, pieces));
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
    let table = frame.piece_table().unwrap();
    let whole = spine[..PieceTable::bytes_of(frame.header())].to_vec();
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(PieceTable::decode(frame.header(), &damaged).is_err(), "bit {bit} of the table");
    }
    let parts = frame.events().step_by(8).map(|event| table.holding(event.seq).unwrap());
    for pieces in parts.chain(table.of_streams(&[StreamId([3; 16])], Seq::ZERO)) {
        let bytes = read(&spine, &table, &pieces);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let invalid = table.part(&pieces, damaged).unwrap_err();
            assert_eq!(invalid.part, Part::Spine, "bit {bit} of {pieces:?}");
        }
        let mut cut = bytes.clone();
        cut.resize(bytes.len() - 16, 0);
        assert!(table.part(&pieces, cut).is_err(), "{pieces:?} cut");
    }
}

/// Bytes of other pieces, sound in themselves, are not the bytes that were asked for.
#[test]
fn the_bytes_of_other_events_are_refused() {
    let (frame, spine) = frame(&[1; 64]);
    let table = frame.piece_table().unwrap();
    let first = table.holding(Seq(100)).unwrap();
    for event in frame.events().skip(8) {
        let other = table.holding(event.seq).unwrap();
        assert!(table.part(&first, read(&spine, &table, &other)).is_err(), "{}", event.seq);
    }
}

/// A forger with right checksums cannot make a table that leads out of the spine.
#[test]
fn a_table_that_lies_under_a_right_checksum_is_refused_or_stays_within() {
    let (frame, spine) = frame(&[1; 40]);
    for at in 0..PieceTable::bytes_of(frame.header()) {
        for value in [0, 1, 16, 255] {
            let mut spine: AlignedVec<16> = {
                let mut copy = AlignedVec::new();
                copy.extend_from_slice(&spine);
                copy
            };
            spine[at] = value;
            let table = &spine[..PieceTable::bytes_of(frame.header())];
            let header = FrameHeader { spine_checksum: crc32c::crc32c(table), ..*frame.header() };
            if let Ok(table) = PieceTable::decode(&header, table) {
                for seq in 100..140 {
                    let (start, length) = table.stretch(&table.holding(Seq(seq)).unwrap());
                    assert!(start + length <= spine.len(), "byte {at} as {value}");
                }
            }
            if let Ok(frame) = Frame::new(header, spine, crate::codec::FrameCheck::Checksum) {
                assert_eq!(frame.events().count(), 40);
            }
        }
    }
}

/// A piece is closed by its length, too: one event of a megabyte does not make its neighbours dear.
#[test]
fn long_events_are_pieces_of_their_own() {
    let envelope =
        Envelope { kind: 7, version: 1, stream: StreamId([1; 16]), origin: Origin::ZERO, host_time: None };
    let event = |length: usize| EncodedEvent { envelope, payload: vec![3; length], bodies: Vec::new() };
    let events: Vec<EncodedEvent> =
        (0..20).map(|number| event(if number == 3 { 1 << 20 } else { 10 })).collect();
    let mut prepared = encode_frame(&events).unwrap();
    let place = Position::new(1, 0x2000).unwrap();
    let (bytes, _) =
        prepared.seal(Seq(1), (Micros(5), Micros(5)), place, place, StoreId([5; 16]), Link([6; 32]));
    let table = decode_frame(bytes).unwrap().piece_table().unwrap();
    let lengths: Vec<usize> = (0..4).map(|number| table.stretch(&(number..number + 1)).1).collect();
    assert_eq!(lengths, [4 * 56 + 3 * 16 + (1 << 20), 8 * (56 + 16), 8 * (56 + 16), 0]);
}
