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
            version: 1,
            stream: StreamId([0x11; 16]),
            origin: Origin([0x22; 16]),
            host_time: Some(Micros(0x0405)),
        },
        payload: b"payload".to_vec(),
        bodies: vec![
            EncodedBody::New { bytes: b"body".as_slice().into(), salt: [0x33; 16] },
            EncodedBody::Lost { digest: Digest([0x44; 32]), bytes: 5, stored_bytes: 5, codec: 0 },
            EncodedBody::New { bytes: b"body".as_slice().into(), salt: [0x35; 16] },
        ],
    }
}

/// An event whose bodies are all there.
fn whole() -> EncodedEvent {
    let mut event = sample();
    event.bodies.remove(1);
    event
}

const STORE: StoreId = StoreId([0x55; 16]);

fn sealed(events: &[EncodedEvent]) -> Vec<u8> {
    let mut prepared = encode_frame(events).unwrap();
    let place = Position::new(1, 0x2000).unwrap();
    let durable = Position::new(1, 0x1000).unwrap();
    let (bytes, link) =
        prepared.seal(Seq(7), (Micros(0x0607), Micros(0x0608)), place, durable, STORE, Link([0x66; 32]));
    let bytes = bytes.to_vec();
    assert_eq!(link, FrameHeader::decode(&bytes, STORE).unwrap().link());
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
            };
            let bodies = (0..number % 4).map(body).collect();
            EncodedEvent { payload: vec![number; usize::from(number)], bodies, ..sample() }
        })
        .collect();
    let frame = decode_frame(&sealed(&events), STORE).unwrap();
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
    expect![[r#"
        0000 41435046020100000100000001000000
        0016 0300000027000000290000003ec10efc
        0032 07000000000000000002000001000000
        0048 00010000010000000706000000000000
        0064 08060000000000006666666666666666
        0080 66666666666666666666666666666666
        0096 6666666666666666ed2377cc94d2c2d1
        0112 6f6a503c491b48194f7866eb6b6eaac2
        0128 4ff0c9b0ea523cff0000000000000000
        0144 0000000000000000000000007f72a94f
        0160 11111111111111111111111111111111
        0176 0df001a19879d2a6dbc93316a2376926
        0192 89d130cafa9946ff320ff43c2666079e
        0208 00000000040000000400000000000000
        0224 44444444444444444444444444444444
        0240 44444444444444444444444444444444
        0256 14000000050000000500000000000000
        0272 0df001a19879d2a6dbc93316a2376926
        0288 89d130cafa9946ff320ff43c2666079e
        0304 00000000040000000400000000000000
        0320 02010000070000002222222222222222
        0336 22222222222222220504000000000000
        0352 7061796c6f6164333333333333333333
        0368 33333333333333626f64790000000000
        0384 00000000000000000000000000000000
    "#]]
    .assert_eq(&hex(&bytes));
    for line in hex(&bytes).lines() {
        assert!(include_str!("../../../docs/FORMAT.md").contains(line), "FORMAT.md draws {line}");
    }
}

#[test]
fn a_small_commit_costs_little_beside_its_payload() {
    let mut event = sample();
    event.payload = vec![1; 160];
    event.bodies = vec![EncodedBody::New { bytes: vec![2; 480].into(), salt: [1; 16] }];
    assert_eq!(sealed(&[event.clone()]).len() - 160 - 480, 272);
    // In bulk: what each further event and body cost beside payload and bytes.
    let mut further = event.clone();
    further.bodies = vec![EncodedBody::New { bytes: vec![3; 480].into(), salt: [1; 16] }];
    let one = sealed(&[event.clone()]).len();
    assert_eq!(sealed(&[event, further]).len() - one - 160 - 480, 96);
}

#[test]
fn every_flipped_bit_of_a_frame_is_found() {
    let mut other = whole();
    other.envelope = Envelope { stream: StreamId([0x12; 16]), host_time: None, ..other.envelope };
    let bytes = sealed(&[whole(), other]);
    assert_eq!(decode_frame(&bytes, STORE).map(drop), Ok(()));
    assert!(bytes.ends_with(&[0; 14]), "there are zeros at its end");
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_frame(&damaged, STORE).is_err(), "byte {} bit {}", bit / 8, bit % 8);
    }
    for length in 0..bytes.len() {
        assert!(decode_frame(&bytes[..length], STORE).is_err(), "cut to {length}");
    }
    // A frame of another store is none here, whatever place it names.
    for bit in 0..128 {
        let mut other = STORE;
        other.0[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            decode_frame(&bytes, other).map(drop).unwrap_err().part,
            DamagedPart::FrameHeader,
            "store bit {bit}"
        );
    }
}

/// A flag that this program did not know was taken for a torn tail, and the frame was zeroed. A header with its checksum is
/// sound now, even with unknown values: a newer program wrote it.
#[test]
fn sound_bytes_that_say_something_new_are_no_damage() {
    let bytes = sealed(&[sample()]);
    let place = Position::new(1, 0x2000).unwrap();
    let store = STORE;
    for at in [4, 5, 6, 7, 136, 139, 140, 155] {
        let mut changed: [u8; FRAME_HEADER_BYTES] = *bytes.first_chunk().unwrap();
        changed[at] ^= 2;
        let broken = FrameHeader::decode(&changed, store).unwrap_err();
        assert_eq!(broken.part, DamagedPart::FrameHeader, "byte {at} without its checksum");
        header::put_frame_checksum(&mut changed, store);
        assert_eq!(FrameHeader::decode(&changed, store).unwrap_err().part, DamagedPart::Newer, "byte {at}");
        assert!(FrameHeader::is_newer_at(&changed, place, store));
        assert!(!FrameHeader::is_newer_at(&changed, Position::new(1, 0x3000).unwrap(), store));
        assert!(!FrameHeader::is_newer_at(&changed, place, StoreId([0x56; 16])));
    }
    assert!(!FrameHeader::is_newer_at(&bytes, place, store), "nothing is new in it");
    let mut header = SegmentHeader { generation: 0, ..segment() }.encode();
    header[8] = 4;
    fields::put_trailing_checksum(&mut header);
    assert_eq!(SegmentHeader::decode(&header).unwrap_err().part, DamagedPart::Newer, "another version");
    let needs = SegmentHeader { features: FeatureBits { needs: 4, writes: 0 }, ..segment() };
    assert_eq!(SegmentHeader::decode(&needs.encode()).unwrap_err().part, DamagedPart::Newer);
    let writes = SegmentHeader { features: FeatureBits { needs: 0, writes: 4 }, ..segment() };
    assert_eq!(SegmentHeader::decode(&writes.encode()), Ok(writes), "it may be read");
}

/// Events and bodies of forms that this program does not know leave the frame sound, and everything else in it readable.
#[test]
fn an_unknown_form_is_kept_and_said_to_be_new() {
    let mut other = sample();
    other.bodies = vec![EncodedBody::New { bytes: b"another".as_slice().into(), salt: [0x34; 16] }];
    let bytes = sealed(&[whole(), other]);
    let header = FrameHeader::decode(&bytes, STORE).unwrap();
    let end = usize::try_from(header.bodies_start()).unwrap();
    let changed = |at: usize, value: u8| {
        let mut content = rkyv::util::AlignedVec::new();
        content.extend_from_slice(&bytes[FRAME_HEADER_BYTES..end]);
        content[at] = value;
        let header = FrameHeader { content_checksum: crc32c::crc32c(&content), ..header };
        Frame::new(header, content, FrameCheck::Checksum)
    };
    // One stream and three rows come first. Flags of the first envelope, and a time beside the flag that says that there is none.
    let envelope = 16 + 3 * 48;
    for flags in [1, 2, 0x82] {
        let frame = changed(envelope + 7, flags).unwrap();
        let versions: Vec<u16> = frame.events().map(|event| event.envelope.version).collect();
        assert_eq!(versions, [envelope::NEWER_VERSION, 1], "flags {flags} of an envelope");
        assert_eq!(frame.event(Seq(8)).unwrap().payload, b"payload");
    }
    // Codec and flags of the last row.
    for at in [46, 47] {
        let frame = changed(16 + 2 * 48 + at, 3).unwrap();
        frame.check_bodies(&bytes[end..], |row, invalid| panic!("{row:?} {invalid}"));
        let row = frame.rows().last().unwrap();
        assert!(!row.is_known(), "byte {at} of a row");
        let refused = check_body(&[0x34; 16], b"another", &row).unwrap_err();
        assert_eq!(refused.part, DamagedPart::Newer);
    }
}

/// An offset in a content, and the bytes that are put there.
type Change = (usize, &'static [u8]);

/// Contents that lie, in frames with matching checksums.
#[test]
fn wrong_tables_are_refused() {
    let mut other = whole();
    other.envelope.stream = StreamId([0x12; 16]);
    let bytes = sealed(&[whole(), other]);
    let header = FrameHeader::decode(&bytes, STORE).unwrap();
    let end = usize::try_from(header.bodies_start()).unwrap();
    let changed = |changes: &[Change]| {
        let mut content = rkyv::util::AlignedVec::new();
        content.extend_from_slice(&bytes[FRAME_HEADER_BYTES..end]);
        for (at, new) in changes {
            content[*at..*at + new.len()].copy_from_slice(new);
        }
        let header = FrameHeader { content_checksum: crc32c::crc32c(&content), ..header };
        Frame::new(header, content, FrameCheck::Checksum).map(drop).map_err(|invalid| invalid.expected)
    };
    let (rows, envelopes) = (2 * 16, 2 * 16 + 4 * 48);
    assert_eq!(changed(&[]), Ok(()));
    let cases: [(&str, &[Change]); 11] = [
        ("each stream once", &[(16, &[0x11; 16])]),
        ("a stream of the frame, in order", &[(envelopes + 2, &[1])]),
        ("a stream of the frame, in order", &[(envelopes + 32 + 2, &[2])]),
        ("1 streams", &[(envelopes + 32 + 2, &[0])]),
        ("a payload within the spine", &[(envelopes + 4, &[15])]),
        ("the end of the payloads", &[(envelopes + 4, &[6])]),
        ("a row of the same or a later event", &[(rows + 44, &[1])]),
        ("a row of the same or a later event", &[(rows + 3 * 48 + 44, &[2])]),
        ("a body within the limits", &[(rows + 36, &[0])]),
        ("a body within the limits", &[(rows + 40, &[0, 0, 0, 2])]),
        ("a body of this frame", &[(rows + 48 + 32, &[1])]),
    ];
    for (expected, changes) in cases {
        assert_eq!(changed(changes), Err(expected.to_owned()), "{changes:?}");
    }
    // The last row names a block of its own, which the bodies do not have.
    let alone = changed(&[(rows + 3 * 48 + 32, &[20])]);
    assert_eq!(alone, Err(format!("rows for {} bytes", header.bodies_bytes)));
    for wrong in [
        FrameHeader { event_count: 0, ..header },
        FrameHeader { event_count: 65_537, ..header },
        FrameHeader { stream_count: 0, ..header },
        FrameHeader { stream_count: 3, ..header },
        FrameHeader { spine_bytes: 63, ..header },
        FrameHeader { spine_bytes: (8 << 20) + 1, ..header },
        FrameHeader { row_count: 400_000, ..header },
        FrameHeader { bodies_bytes: 64 << 20, ..header },
        FrameHeader { first_seq: Seq(0), ..header },
        FrameHeader { first_seq: Seq(u64::MAX), ..header },
        FrameHeader { time: Micros(0x609), ..header },
        FrameHeader { durable: Position(u64::MAX), ..header },
    ] {
        let refused = FrameHeader::decode(&wrong.encode(), STORE).map_err(|invalid| invalid.expected);
        assert_eq!(refused, Err("sizes within the limits".to_owned()), "{wrong:?}");
    }
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
    let written = WrittenPlace {
        position: Position::new(2, 8192).unwrap(),
        seq: Seq(9),
        time: Micros(10),
        link: Link([7; 32]),
        last_frame: 300,
    };
    let store = StoreId([9; 16]);
    let checkpoint = DurablePoint { store, written };
    let segment = segment();
    let file = StoreFile {
        store,
        created: Micros(1_700_000_000_000_000),
        needs: Vec::new(),
        writes: vec!["tree".to_owned(), "two".to_owned()],
    };
    assert_eq!(DurablePoint::decode(&checkpoint.encode()), Ok(checkpoint));
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
    flips(&checkpoint.encode(), &|bytes| DurablePoint::decode(bytes).is_ok());
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
    let place = |seq: u64| WrittenPlace {
        position: Position((1 << 32) | (256 + seq)),
        seq: Seq(seq),
        ..WrittenPlace::default()
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
          "acpdb": 3,
          "store": "abababababababababababababababab",
          "created_micros": 1700000000000000,
          "needs": [],
          "writes": [],
          "check": "bbc1bac197fe1180566c38ffb09aedbab4917c1ccbc71fcbef32d179924be146"
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
    let mut key = [9; 32];
    key[16..].copy_from_slice(b"acpdb body v2\0\0\0");
    assert_eq!(body_digest(&[9; 16], b"text").0, *blake3::keyed_hash(&key, b"text").as_bytes());
    let header = sealed(&[sample()]);
    let mut message = b"acpdb link v2\0\0\0".to_vec();
    message.extend([0x55; 16]);
    message.extend(&header[..156]);
    assert_eq!(FrameHeader::decode(&header, STORE).unwrap().link().0, *blake3::hash(&message).as_bytes());
    let content = &header[160..160 + 16 + 3 * 48 + 32 + 7];
    assert_eq!(header[104..136], *blake3::hash(content).as_bytes());
}

fn any_event() -> impl Strategy<Value = EncodedEvent> {
    let body = (prop::collection::vec(0..3_u8, 1..9), any::<[u8; 16]>()).prop_map(|(bytes, mut salt)| {
        salt[0] |= 1;
        EncodedBody::New { bytes: Arc::from(bytes), salt }
    });
    let envelope = (any::<u16>(), 0..9_u8, any::<[u8; 16]>(), any::<Option<i32>>());
    let envelope = envelope.prop_map(|(kind, stream, origin, time)| Envelope {
        kind,
        version: 1,
        stream: StreamId([stream; 16]),
        origin: Origin(origin),
        host_time: time.map(|time| Micros(time.into())),
    });
    (envelope, prop::collection::vec(any::<u8>(), 0..100), prop::collection::vec(body, 0..4))
        .prop_map(|(envelope, payload, bodies)| EncodedEvent { envelope, payload, bodies })
}

/// A copy of a damaged store keeps the row and has zeros for the bytes, as an erasure leaves them.
#[test]
fn a_lost_body_reads_as_zeroed_and_its_neighbours_as_they_are() {
    let kept = EncodedBody::New { bytes: Arc::from(&b"kept"[..]), salt: [7; 16] };
    let lost = EncodedBody::Lost { digest: Digest([9; 32]), bytes: 40, stored_bytes: 40, codec: 0 };
    let envelope =
        Envelope { kind: 1, version: 1, stream: StreamId([1; 16]), origin: Origin([0; 16]), host_time: None };
    let event =
        EncodedEvent { envelope, payload: b"payload".to_vec(), bodies: vec![kept.clone(), lost, kept] };
    let bytes = sealed(&[event]);
    assert_eq!(decode_frame(&bytes, STORE).map(drop).unwrap_err().part, DamagedPart::BodyZeroed);
    let zeros = bytes.windows(SALT_BYTES + 40).filter(|window| window.iter().all(|byte| *byte == 0)).count();
    assert!(zeros > 0, "no byte of it is there");
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(events in prop::collection::vec(any_event(), 1..40)) {
        let bytes = sealed(&events);
        prop_assert_eq!(&bytes, &sealed(&events), "encoding is a function");
        let frame = decode_frame(&bytes, STORE).unwrap();
        prop_assert_eq!(frame.events().count(), events.len());
        for (index, (decoded, event)) in frame.events().zip(&events).enumerate() {
            prop_assert_eq!(decoded.seq, Seq(7 + index as u64));
            prop_assert_eq!(decoded.envelope, event.envelope);
            prop_assert_eq!(decoded.payload, &event.payload[..]);
            prop_assert_eq!(decoded.row_count(), event.bodies.len());
            for (row, body) in decoded.rows().zip(&event.bodies) {
                prop_assert_eq!(row.event as usize, index);
                let EncodedBody::New { bytes: body, .. } = body else { unreachable!("has a test of its own") };
                let at = usize::try_from(row.place.offset - 0x2000).unwrap();
                prop_assert_eq!(&bytes[at + 16..at + 16 + body.len()], &body[..]);
                prop_assert_eq!(check_block(&bytes[at..], &row), Ok(()));
            }
        }
    }

    #[test]
    fn any_bytes_decode_or_fail_without_a_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..600),
        sizes in any::<[u8; 4]>(),
        keep_magic in any::<bool>(),
    ) {
        if keep_magic && bytes.len() >= FRAME_HEADER_BYTES {
            // A header that passes its checksum, with sizes that may lie.
            let (head, rest) = bytes.split_first_chunk_mut::<FRAME_HEADER_BYTES>().unwrap();
            head[..8].copy_from_slice(&[b'A', b'C', b'P', b'F', 2, 1, 0, 0]);
            for (index, size) in sizes.into_iter().enumerate() {
                let size = if index < 3 { u32::from(size % 9) } else { u32::from(size) * 2 };
                head[8 + index * 4..12 + index * 4].copy_from_slice(&size.to_le_bytes());
            }
            head[24..28].fill(0);
            head[48..56].fill(0);
            head[64..72].fill(0x7f);
            head[136..156].fill(0);
            header::put_frame_checksum(head, STORE);
            if let Ok(header) = FrameHeader::decode(&*head, STORE) {
                let end = usize::try_from(header.content_bytes()).unwrap().min(rest.len());
                let header = FrameHeader { content_checksum: crc32c::crc32c(&rest[..end]), ..header };
                let mut content = rkyv::util::AlignedVec::new();
                content.extend_from_slice(&rest[..end]);
                if let Ok(frame) = Frame::new(header, content, FrameCheck::Checksum) {
                    frame.check_bodies(&rest[end..], |_, _| ());
                    prop_assert!(frame.events().count() > 0);
                }
            }
        }
        let _ = decode_frame(&bytes, STORE);
        let _ = SegmentHeader::decode(&bytes);
        let _ = DurablePoint::decode(&bytes);
        let _ = StoreFile::decode(&bytes);
        let _ = TailPage::decode(&bytes);
        let row = BodyRow {
            event: 0,
            digest: Digest::ZERO,
            bytes: 40,
            stream: StreamId::STORE,
            stored_bytes: 40,
            place: BodyPlace::default(),
            codec: 0,
            unit: None,
        };
        let _ = check_block(&bytes, &row);
    }
}
