//! Frames against their drawing, laws of the codec, and its answer to bytes that are not frames.

use std::sync::Arc;

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::ids::{Digest, Link, Micros, Origin, Position, Seq, StoreId, StreamId};

fn sample() -> EncodedEvent {
    EncodedEvent {
        envelope: Envelope {
            kind: 0x0102,
            version: 3,
            stream: StreamId([0x11; 16]),
            origin: Origin([0x22; 16]),
            host_time: Some(Micros(0x0405)),
        },
        payload: b"payload".to_vec(),
        bodies: vec![
            EncodedBody::New { bytes: b"body".as_slice().into(), salt: [0x33; 16], content: None },
            EncodedBody::Existing {
                digest: Digest([0x44; 32]),
                bytes: 5,
                position: Position(0x1_0000_0100),
                form: BodyForm::plain(5),
            },
        ],
    }
}

fn sealed(events: &[EncodedEvent]) -> Vec<u8> {
    let mut prepared = encode_frame(events).unwrap();
    let place = Position::new(1, 0x2000).unwrap();
    let durable = Position::new(1, 0x1000).unwrap();
    let (bytes, link) = prepared.seal(
        Seq(7),
        (Micros(0x0607), Micros(0x0608)),
        place,
        durable,
        StoreId([0x55; 16]),
        Link([0x66; 32]),
    );
    let bytes = bytes.to_vec();
    assert_eq!(link, FrameHeader::decode(&bytes).unwrap().link());
    bytes
}

fn hex(bytes: &[u8]) -> String {
    let line = |(index, line): (usize, &[u8])| {
        let digits = line.iter().fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"));
        format!("{:04} {digits}\n", index * 16)
    };
    bytes.chunks(16).enumerate().map(line).collect()
}

/// An event is found by its seq as by walking there, in frames small and large.
#[test]
fn an_event_is_found_by_its_seq() {
    let events: Vec<EncodedEvent> = (0..60_u8)
        .map(|number| {
            let body = |of: u8| EncodedBody::New {
                bytes: vec![number + 1; 3 + usize::from(of)].into(),
                salt: [1; 16],
                content: None,
            };
            let bodies = (0..number % 4).map(body).collect();
            EncodedEvent { payload: vec![number; usize::from(number)], bodies, ..sample() }
        })
        .collect();
    let frame = decode_frame(&sealed(&events)).unwrap();
    for walked in frame.events() {
        let found = frame.event(walked.seq).unwrap();
        assert_eq!((found.seq, found.envelope, found.payload), (walked.seq, walked.envelope, walked.payload));
        assert!(found.rows().eq(walked.rows()), "rows of {}", walked.seq);
    }
    assert!(frame.event(Seq(6)).is_none() && frame.event(Seq(67)).is_none());
}

/// The golden frame of `docs/FORMAT.md`. If this changes, the format changed.
#[test]
fn a_frame_is_as_it_is_drawn() {
    let bytes = sealed(&[sample()]);
    expect![[r"
        0000 4143504601010100d000000020000000
        0016 01000000020000000700000000000000
        0032 07060000000000000002000001000000
        0048 00010000010000005555555555555555
        0064 55555555555555556666666666666666
        0080 66666666666666666666666666666666
        0096 666666666666666676e021af4237f479
        0112 0312c71a7583cccd4a11d6a0b65472bc
        0128 14f01ac347e2c5b60000000000000000
        0144 0806000000000000e9da1d2528959c7b
        0160 02010300070000000000000000000000
        0176 11111111111111111111111111111111
        0192 22222222222222222222222222222222
        0208 05040000000000000000000000000000
        0224 7061796c6f6164000000000000000000
        0240 8840316d088c349d079ea4c361aed88e
        0256 198d42df0aa5675a7e32cd638c9af085
        0272 17000000000000000400000004000000
        0288 00000000000001010000000000000000
        0304 44444444444444444444444444444444
        0320 44444444444444444444444444444444
        0336 00010000010000000500000005000000
        0352 00000000000001000000000000000000
        0368 33333333333333333333333333333333
        0384 626f6479000000000000000000000000
    "]]
    .assert_eq(&hex(&bytes));
    for line in hex(&bytes).lines() {
        assert!(include_str!("../../../docs/FORMAT.md").contains(line), "FORMAT.md draws {line}");
    }
}

#[test]
fn a_small_commit_costs_little_beside_its_payload() {
    let mut event = sample();
    event.bodies.pop();
    event.payload = vec![1; 160];
    event.bodies = vec![EncodedBody::New { bytes: vec![2; 480].into(), salt: [1; 16], content: None }];
    assert_eq!(sealed(&[event]).len() - 160 - 480, 304);
}

#[test]
fn every_flipped_bit_of_a_frame_is_found() {
    let bytes = sealed(&[sample(), sample()]);
    assert!(decode_frame(&bytes).is_ok());
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_frame(&damaged).is_err(), "byte {} bit {}", bit / 8, bit % 8);
    }
    for length in 0..bytes.len() {
        assert!(decode_frame(&bytes[..length]).is_err(), "cut to {length}");
    }
}

/// A flag that this program did not know was taken for a torn tail, and the frame was zeroed. A header with its checksum is
/// sound now, even with unknown values: a newer program wrote it.
#[test]
fn sound_bytes_that_say_something_new_are_no_damage() {
    let bytes = sealed(&[sample()]);
    let place = Position::new(1, 0x2000).unwrap();
    let store = StoreId([0x55; 16]);
    for at in [4, 5, 6, 7, 140, 143] {
        let mut changed = bytes[..160].to_vec();
        changed[at] ^= 2;
        let broken = FrameHeader::decode(&changed).unwrap_err();
        assert_eq!(broken.part, Part::FrameHeader, "byte {at} without its checksum");
        fields::put_trailing_checksum(&mut changed);
        assert_eq!(FrameHeader::decode(&changed).unwrap_err().part, Part::Newer, "byte {at}");
        assert!(FrameHeader::is_newer_at(&changed, place, store));
        assert!(!FrameHeader::is_newer_at(&changed, Position::new(1, 0x3000).unwrap(), store));
        assert!(!FrameHeader::is_newer_at(&changed, place, StoreId([0x56; 16])));
    }
    assert!(!FrameHeader::is_newer_at(&bytes, place, store), "nothing is new in it");
    let mut header = SegmentHeader { generation: 0, ..segment() }.encode();
    header[8] = 3;
    fields::put_trailing_checksum(&mut header);
    assert_eq!(SegmentHeader::decode(&header).unwrap_err().part, Part::Newer, "another version");
    let needs = SegmentHeader { features: FeatureBits { needs: 4, writes: 0 }, ..segment() };
    assert_eq!(SegmentHeader::decode(&needs.encode()).unwrap_err().part, Part::Newer);
    let writes = SegmentHeader { features: FeatureBits { needs: 0, writes: 4 }, ..segment() };
    assert_eq!(SegmentHeader::decode(&writes.encode()), Ok(writes), "it may be read");
}

/// Events and bodies of forms that this program does not know leave the frame sound, and everything else in it readable.
#[test]
fn an_unknown_form_is_kept_and_said_to_be_new() {
    let mut other = sample();
    other.bodies =
        vec![EncodedBody::New { bytes: b"another".as_slice().into(), salt: [0x34; 16], content: None }];
    let bytes = sealed(&[sample(), other]);
    let spine_bytes = FrameHeader::decode(&bytes).unwrap().spine_bytes as usize;
    let changed = |at: usize, value: u8| {
        let mut spine = rkyv::util::AlignedVec::new();
        spine.extend_from_slice(&bytes[160..160 + spine_bytes]);
        spine[at] = value;
        let header = FrameHeader::decode(&bytes).unwrap();
        let header = FrameHeader { spine_checksum: crc32c::crc32c(&spine), ..header };
        Frame::new(header, spine, FrameCheck::Checksum).unwrap()
    };
    // Flags and reserved bytes of the first envelope.
    for at in [8, 9, 10, 12] {
        let frame = changed(at, 1);
        let versions: Vec<u16> = frame.events().map(|event| event.envelope.version).collect();
        assert_eq!(versions, [envelope::NEWER_VERSION, 3], "byte {at} of an envelope");
        assert_eq!(frame.event(Seq(8)).unwrap().payload, b"payload");
    }
    // Codec and reserved bytes of the first row.
    let row = 2 * 56 + 2 * 16;
    for at in [52, 53, 56, 60] {
        let frame = changed(row + at, 3);
        let mut found = Vec::new();
        frame.check_bodies(&bytes[160 + spine_bytes..], |_, invalid| found.push(invalid.part));
        assert_eq!(found, [Part::Newer], "byte {at} of a row");
    }
    let frame = changed(row + 55, 3);
    assert!(frame.rows().next().is_some_and(|row| !row.is_known()), "a flag");
}

fn segment() -> SegmentHeader {
    SegmentHeader {
        store: StoreId([9; 16]),
        number: 2,
        first_seq: Seq(5),
        previous_end: Position::new(1, 8192).unwrap(),
        previous_time: Micros(4),
        previous: Link([3; 32]),
        abandoned: true,
        features: FeatureBits::default(),
        generation: 7,
        generation_torn: false,
    }
}

/// The generation changes in place, under the checksum of a header that does not.
#[test]
fn a_generation_is_written_without_the_header() {
    let mut bytes = segment().encode();
    let at = usize::try_from(generation_offset(8)).unwrap();
    let record = generation_record(2, 8);
    for written in 1..=8 {
        bytes[at..at + written].copy_from_slice(&record[..written]);
        let expected = match written {
            8 => SegmentHeader { generation: 8, ..segment() },
            // The first bytes of a checksum may be zeros.
            _ => SegmentHeader { generation_torn: true, ..segment() },
        };
        assert_eq!(SegmentHeader::decode(&bytes), Ok(expected), "{written} bytes were written");
    }
    bytes[at..at + 8].copy_from_slice(&generation_record(3, 8));
    assert!(SegmentHeader::decode(&bytes).unwrap().generation_torn, "that of another segment");
}

#[test]
fn pages_and_headers_find_every_flipped_bit() {
    let written = Written {
        position: Position::new(2, 8192).unwrap(),
        seq: Seq(9),
        time: Micros(10),
        link: Link([7; 32]),
        last_frame: 300,
    };
    let store = StoreId([9; 16]);
    let checkpoint = Checkpoint { store, written };
    let segment = segment();
    let file = StoreFile {
        store,
        created: Micros(1_700_000_000_000_000),
        needs: Vec::new(),
        writes: vec!["tree".to_owned(), "two".to_owned()],
    };
    assert_eq!(Checkpoint::decode(&checkpoint.encode()), Ok(checkpoint));
    assert_eq!(SegmentHeader::decode(&segment.encode()), Ok(segment));
    assert_eq!(StoreFile::decode(&file.encode()), Ok(file.clone()));
    let flips = |bytes: &[u8], sound: &dyn Fn(&[u8]) -> bool| {
        assert!(sound(bytes));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!sound(&damaged), "byte {} bit {}", bit / 8, bit % 8);
        }
    };
    flips(&checkpoint.encode(), &|bytes| Checkpoint::decode(bytes).is_ok());
    flips(&segment.encode(), &|bytes| {
        SegmentHeader::decode(bytes).is_ok_and(|header| !header.generation_torn)
    });
    flips(&file.encode(), &|bytes| StoreFile::decode(bytes).is_ok());
    // The state that a changed tail page gives must be right, or the change must be noticed.
    let page = TailPage::encode(store, &written, PageCounts { epoch: 3, generation: 4, upgrades: 5 });
    let clean = TailPage::decode(&page);
    assert_eq!((clean.clean(), clean.store), (Some(&written), Some(store)));
    assert_eq!((clean.epoch, clean.generation, clean.slots[63]), (3, 4, written.seq));
    // Identity; written and busy; confirmed; poison.
    for range in [0..64, 576..656, 704..768, 772..776] {
        flips(&page[range.clone()], &|bytes| {
            let mut page = page.clone();
            page[range.clone()].copy_from_slice(bytes);
            TailPage::decode(&page).clean().is_some()
        });
    }
    assert_eq!(TailPage::decode(&[]), TailPage::default());
    assert_eq!(TailPage::decode(&page[..1000]), TailPage::default(), "a page that was cut says nothing");
}

/// A new claim overwrites the lower of the two claims: if it is torn, the other one stands.
#[test]
fn a_claim_that_is_half_written_takes_nothing_back() {
    let store = StoreId([5; 16]);
    let place = |seq: u64| Written {
        position: Position((1 << 32) | (256 + seq)),
        seq: Seq(seq),
        ..Written::default()
    };
    let mut page = TailPage::encode(store, &place(0), PageCounts::default());
    let mut last = 0;
    for seq in 1..=5 {
        let known = TailPage::decode(&page);
        assert_eq!((known.durable, known.waiting), (Some(place(last)), last * 2));
        let record = claim_record(&place(seq), seq * 2);
        let at = usize::try_from(known.claim_offset).unwrap();
        for cut in 0..record.len() {
            let mut half = page.clone();
            half[at..at + cut].copy_from_slice(&record[..cut]);
            let shown = TailPage::decode(&half);
            assert!([Some(place(last)), Some(place(seq))].contains(&shown.durable), "{seq}, cut at {cut}");
        }
        page[at..at + record.len()].copy_from_slice(&record);
        last = seq;
    }
}

#[test]
fn the_store_file_reads_as_json() {
    let file = StoreFile {
        store: StoreId([0xab; 16]),
        created: Micros(1_700_000_000_000_000),
        needs: Vec::new(),
        writes: Vec::new(),
    };
    expect![[r#"
        {
          "acpdb": 2,
          "store": "abababababababababababababababab",
          "created_micros": 1700000000000000,
          "needs": [],
          "writes": [],
          "check": "88e0a491d833ddff86d5c07054439454f8647946ef826cb2d3659577cb2b4064"
        }
    "#]]
    .assert_eq(&String::from_utf8(file.encode()).unwrap());
    let drawn = include_str!("../../../docs/FORMAT.md");
    assert!(drawn.contains(&String::from_utf8(file.encode()).unwrap()), "FORMAT.md shows it");
}

#[test]
fn features_are_named_in_order_and_unknown_needs_are_told() {
    let file = |needs: &[&str], writes: &[&str]| StoreFile {
        store: StoreId([0xab; 16]),
        created: Micros(5),
        needs: needs.iter().map(ToString::to_string).collect(),
        writes: writes.iter().map(ToString::to_string).collect(),
    };
    let told = |file: &StoreFile| StoreFile::decode(&file.encode());
    let writes = file(&[], &["a", "b-2"]);
    assert_eq!(told(&writes), Ok(writes.clone()));
    assert_eq!(
        told(&file(&["aes", "tree"], &["x"])),
        Err(StoreFileError::Needs { names: vec!["aes".to_owned(), "tree".to_owned()] })
    );
    for wrong in [&["b", "a"][..], &["a", "a"], &["A"], &[""], &["a b"], &["a\"b"]] {
        assert!(matches!(told(&file(&[], wrong)), Err(StoreFileError::Invalid(_))), "{wrong:?}");
    }
}

/// The digest formula in words of its own, so that a change of the code does not change the test with it.
#[test]
fn a_body_digest_is_as_the_format_says() {
    let mut message = b"acpdb body v1\0\0\0".to_vec();
    message.extend([9; 16]);
    message.extend(4_u64.to_le_bytes());
    message.extend(blake3::hash(b"text").as_bytes());
    assert_eq!(body_digest(&[9; 16], b"text").0, *blake3::hash(&message).as_bytes());
    let header = sealed(&[sample()]);
    let mut message = b"acpdb link v1\0\0\0".to_vec();
    message.extend(&header[..152]);
    assert_eq!(FrameHeader::decode(&header).unwrap().link().0, *blake3::hash(&message).as_bytes());
}

fn any_event() -> impl Strategy<Value = EncodedEvent> {
    let body = prop_oneof![
        (prop::collection::vec(any::<u8>(), 1..200), any::<[u8; 16]>()).prop_map(|(bytes, mut salt)| {
            salt[0] |= 1;
            EncodedBody::New { bytes: Arc::from(bytes), salt, content: None }
        }),
        (any::<[u8; 32]>(), 1..1000_u32, 0..0x200_u64).prop_map(|(digest, bytes, position)| {
            EncodedBody::Existing {
                digest: Digest(digest),
                bytes,
                position: Position((1 << 32) | position),
                form: BodyForm::plain(bytes),
            }
        }),
    ];
    let envelope = (any::<u16>(), any::<u16>(), any::<[u8; 16]>(), any::<[u8; 16]>(), any::<Option<i32>>());
    let envelope = envelope.prop_map(|(kind, version, stream, origin, time)| Envelope {
        kind,
        version,
        stream: StreamId(stream),
        origin: Origin(origin),
        host_time: time.map(|time| Micros(time.into())),
    });
    (envelope, prop::collection::vec(any::<u8>(), 0..100), prop::collection::vec(body, 0..4))
        .prop_map(|(envelope, payload, bodies)| EncodedEvent { envelope, payload, bodies })
}

/// A copy of a damaged store keeps the row and has zeros for the bytes, as an erasure leaves them.
#[test]
fn a_lost_body_reads_as_zeroed_and_its_neighbours_as_they_are() {
    let kept = EncodedBody::New { bytes: Arc::from(&b"kept"[..]), salt: [7; 16], content: None };
    let lost = EncodedBody::Lost { digest: Digest([9; 32]), bytes: 40, form: BodyForm::plain(40) };
    let envelope =
        Envelope { kind: 1, version: 1, stream: StreamId([1; 16]), origin: Origin([0; 16]), host_time: None };
    let event =
        EncodedEvent { envelope, payload: b"payload".to_vec(), bodies: vec![kept.clone(), lost, kept] };
    let bytes = sealed(&[event]);
    assert_eq!(decode_frame(&bytes).map(drop).unwrap_err().part, Part::BodyZeroed);
    let zeros = bytes.windows(SALT_BYTES + 40).filter(|window| window.iter().all(|byte| *byte == 0)).count();
    assert!(zeros > 0, "no byte of it is there");
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(events in prop::collection::vec(any_event(), 1..40)) {
        let bytes = sealed(&events);
        prop_assert_eq!(&bytes, &sealed(&events), "encoding is a function");
        let frame = decode_frame(&bytes).unwrap();
        prop_assert_eq!(frame.events().count(), events.len());
        for (index, (decoded, event)) in frame.events().zip(&events).enumerate() {
            prop_assert_eq!(decoded.seq, Seq(7 + index as u64));
            prop_assert_eq!(decoded.envelope, event.envelope);
            prop_assert_eq!(decoded.payload, &event.payload[..]);
            prop_assert!(decoded.payload.is_empty() || decoded.payload.as_ptr().addr().is_multiple_of(16));
            prop_assert_eq!(decoded.row_count(), event.bodies.len());
            for (row, body) in decoded.rows().zip(&event.bodies) {
                prop_assert_eq!(row.event as usize, index);
                match body {
                    EncodedBody::Existing { digest, bytes, position, .. } => {
                        prop_assert_eq!((row.digest, row.bytes, row.position), (*digest, *bytes, *position));
                    }
                    EncodedBody::New { bytes: body, .. } => {
                        let at = usize::try_from(row.position.offset() - 0x2000).unwrap();
                        prop_assert_eq!(&bytes[at + 16..at + 16 + body.len()], &body[..]);
                        prop_assert!(check_block(&bytes[at..], &row).is_ok() || at + 32 < bytes.len());
                    }
                    EncodedBody::Lost { .. } => unreachable!("has a test of its own"),
                }
            }
        }
    }

    #[test]
    fn any_bytes_decode_or_fail_without_a_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..600),
        sizes in any::<[u8; 4]>(),
        keep_magic in any::<bool>(),
    ) {
        if keep_magic && bytes.len() >= 160 {
            // A header that passes its checksum, with sizes that may lie.
            bytes[..8].copy_from_slice(&[b'A', b'C', b'P', b'F', 1, 1, 1, 0]);
            for (index, size) in sizes.into_iter().enumerate() {
                let size = if index < 2 { u32::from(size) * 16 } else { u32::from(size % 9) };
                bytes[8 + index * 4..12 + index * 4].copy_from_slice(&size.to_le_bytes());
            }
            bytes[136..144].fill(0);
            bytes[136] = sizes[0] % 4;
            bytes[144..152].fill(0x7f);
            fields::put_trailing_checksum(&mut bytes[..160]);
            if let Ok(header) = FrameHeader::decode(&bytes) {
                let end = bytes.len().min(160 + header.spine_bytes as usize);
                let checksum = crc32c::crc32c(&bytes[160..end]);
                bytes[152..156].copy_from_slice(&checksum.to_le_bytes());
                fields::put_trailing_checksum(&mut bytes[..160]);
                let mut spine = rkyv::util::AlignedVec::new();
                spine.extend_from_slice(&bytes[160..end]);
                let header = FrameHeader::decode(&bytes).unwrap();
                if let Ok(frame) = Frame::new(header, spine, FrameCheck::Checksum) {
                    frame.check_bodies(&bytes[end..], |_, _| ());
                    prop_assert!(frame.events().count() > 0);
                }
            }
        }
        let _ = decode_frame(&bytes);
        let _ = SegmentHeader::decode(&bytes);
        let _ = Checkpoint::decode(&bytes);
        let _ = StoreFile::decode(&bytes);
        let _ = TailPage::decode(&bytes);
        let row = envelope::DiskRow::new((0, StreamId::STORE), (Digest::ZERO, 40), BodyForm::plain(40), Position::default(), true)
            .row;
        let _ = check_block(&bytes, &row);
    }
}
