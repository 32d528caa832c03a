//! Objects to the byte, and what of them is refused.

use acpdb_engine::codec::WrittenPlace;
use acpdb_engine::ids::{Link, Micros, Position, Seq, StoreId};

use crate::head::{KeptSegment, RemoteHead};
use crate::names::{ObjectName, PackName, SegmentName};
use crate::run::{LogRun, LogRunKind, NoRun, RUN_HEADER_BYTES};

const STORE: StoreId = StoreId([0x55; 16]);

fn place(segment: u32, offset: u64, seq: u64) -> WrittenPlace {
    let position = Position::new(segment, offset).unwrap();
    WrittenPlace { position, seq: Seq(seq), time: Micros(7), link: Link([0x66; 32]), last_frame: 1 }
}

fn chunk(bytes: Vec<u8>) -> LogRun {
    let behind = place(1, 4096 + bytes.len() as u64, 9);
    let (kind, generation, segment) = (LogRunKind::Chunk, 0, 1);
    LogRun {
        kind,
        generation,
        store: STORE,
        epoch: 3,
        nonce: 4,
        first: 5,
        next: 6,
        before: place(1, 4096, 8),
        behind,
        segment,
        bytes,
    }
}

fn head() -> RemoteHead {
    let name = SegmentName { number: 1, generation: 2, nonce: 4, digest: [3; 32] };
    let pack = PackName { first: 1, next: 65, epoch: 2, nonce: 9 };
    RemoteHead {
        epoch: 3,
        owner_nonce: 4,
        nonce: 5,
        boundary: 65,
        floor: 2,
        place: place(2, 8192, 70),
        segments: vec![KeptSegment {
            name,
            length: 4096 + 64,
            behind: place(1, 4160, 30),
            boundary: 3,
            floor: 2,
        }],
        packs: vec![pack],
        trash: vec![ObjectName::Entry(7), ObjectName::Pack(pack), ObjectName::Segment(name)],
        owner: "ada@laptop".to_owned(),
        ..RemoteHead::empty(STORE)
    }
}

#[test]
fn a_run_has_the_fields_of_its_page() {
    let run = chunk(b"sixteen bytes ..".to_vec());
    let object = run.encode();
    assert_eq!(object.len(), RUN_HEADER_BYTES + 16);
    assert_eq!(&object[..12], b"acpdbrun\x01\0\x01\0");
    assert_eq!(object[16..32], [0x55; 16]);
    for (at, number) in [(32, 3_u64), (40, 4), (48, 5), (56, 6), (200, 16), (208, 16)] {
        assert_eq!(object[at..at + 8], number.to_le_bytes(), "at {at}");
    }
    assert_eq!(object[192..196], 1_u32.to_le_bytes());
    assert_eq!(object[216..248], *blake3::hash(b"sixteen bytes ..").as_bytes());
    assert_eq!(&object[256..], b"sixteen bytes ..");
    assert_eq!(LogRun::decode(STORE, &object), Ok(run));
    let long = chunk(b"sixteen bytes ..".repeat(1000));
    let object = long.encode();
    assert!(object.len() < 1000 && object[11] == 1, "packed");
    assert_eq!(LogRun::decode(STORE, &object), Ok(long));
}

#[test]
fn each_flipped_bit_and_each_cut_of_a_run_is_seen() {
    for bytes in [b"sixteen bytes ..".to_vec(), b"sixteen bytes ..".repeat(100)] {
        let object = chunk(bytes).encode();
        for at in 0..object.len() {
            let mut flipped = object.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(LogRun::decode(STORE, &flipped).is_err(), "byte {at}");
            assert!(LogRun::decode(STORE, &object[..at]).is_err(), "cut at {at}");
        }
        let mut longer = object.clone();
        longer.push(0);
        assert!(LogRun::decode(STORE, &longer).is_err());
        assert!(LogRun::decode(StoreId([1; 16]), &object).is_err(), "of another store");
    }
}

/// Puts other bytes into a header, with a checksum that fits.
fn forged(object: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut object = object.to_vec();
    object[at..at + bytes.len()].copy_from_slice(bytes);
    acpdb_engine::codec::put_trailing_checksum(&mut object[..RUN_HEADER_BYTES]);
    object
}

#[test]
fn a_run_that_contradicts_itself_is_unsound() {
    let object = chunk(b"sixteen bytes ..".repeat(100)).encode();
    for (what, at, bytes) in [
        ("a next number that is not the next", 56, 9_u64.to_le_bytes()),
        ("a length that the places do not have", 200, 16_u64.to_le_bytes()),
        ("an immense length", 200, u64::MAX.to_le_bytes()),
        ("an immense payload", 208, u64::MAX.to_le_bytes()),
        ("another segment", 192, 2_u64.to_le_bytes()),
        ("reserved bytes", 196, [1; 8]),
    ] {
        assert!(
            matches!(LogRun::decode(STORE, &forged(&object, at, &bytes)), Err(NoRun::Unsound(_))),
            "{what}"
        );
    }
    assert_eq!(LogRun::decode(STORE, &forged(&object, 8, &[2, 0])), Err(NoRun::Newer));
    assert_eq!(LogRun::decode(STORE, &forged(&object, 10, &[9])), Err(NoRun::Newer));
    assert_eq!(LogRun::decode(STORE, &forged(&object, 11, &[2])), Err(NoRun::Newer));
}

/// A megabyte of zeros packs into a few bytes: nothing is unpacked beyond what the places say.
#[test]
fn a_payload_that_unpacks_to_more_than_its_header_says_is_unsound() {
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap();
    let mut object = chunk(vec![7; 1600]).encode();
    object.truncate(RUN_HEADER_BYTES);
    object[208..216].copy_from_slice(&(bomb.len() as u64).to_le_bytes());
    object[216..248].copy_from_slice(blake3::hash(&bomb).as_bytes());
    object.extend_from_slice(&bomb);
    let object = forged(&object, 11, &[1]);
    assert_eq!(LogRun::decode(STORE, &object), Err(NoRun::Unsound("it does not unpack")));
}

#[test]
fn a_head_has_the_fields_of_its_page_and_no_flipped_bit() {
    let head = head();
    let object = head.encode();
    assert_eq!(&object[..10], b"acpdbrhd\x01\0");
    assert_eq!(object.len(), 144 + 136 + 32 + 3 * 56 + 10 + 4);
    for (at, number) in [(32, 3_u64), (40, 4), (48, 5), (56, 65), (64, 2)] {
        assert_eq!(object[at..at + 8], number.to_le_bytes(), "at {at}");
    }
    assert_eq!(RemoteHead::decode(STORE, &object), Ok(head));
    for at in 0..object.len() {
        let mut flipped = object.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(RemoteHead::decode(STORE, &flipped).is_err(), "byte {at}");
        assert!(RemoteHead::decode(STORE, &object[..at]).is_err(), "cut at {at}");
    }
    for (at, bytes) in [(12, u32::MAX), (136, u32::MAX), (140, u32::MAX), (12, 0), (144, 2)] {
        let mut forged = object.clone();
        forged[at..at + 4].copy_from_slice(&bytes.to_le_bytes());
        acpdb_engine::codec::put_trailing_checksum(&mut forged);
        assert!(matches!(RemoteHead::decode(STORE, &forged), Err(NoRun::Unsound(_))), "at {at}");
    }
}

/// A remote that makes up entries: they are read up to a limit.
#[test]
fn entries_without_end_are_an_error() {
    let head = RemoteHead { boundary: 1, ..head() };
    let mut tail = crate::tail::ChainTail::of(&head);
    let mut taken = 0_u64;
    let error = loop {
        match tail.take(b"junk") {
            Ok(found) => assert_eq!(found, None),
            Err(error) => break error,
        }
        taken += 1;
    };
    assert!(matches!(error, crate::ChainError::TooLarge { .. }));
    assert_eq!(taken, crate::tail::ENTRY_COUNT_MAX);
}
