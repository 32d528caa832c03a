//! Laws of units, frames and the key's file. Laws of whole stores are in `store::encryption`.

use std::collections::BTreeSet;

use proptest::prelude::*;
use zeroize::Zeroizing;

use super::*;
use crate::codec::{
    DamagedPart, EncodedBody, EncodedEvent, Envelope, FRAME_HEADER_BYTES, Frame, FrameCheck, FrameHeader,
    SEAL_BLOCK_BYTES, decode_frame, encode_frame, unit_nonce,
};
use crate::ids::{Digest, Link, Micros, Origin, Position, Seq, StoreId, StreamId};
use crate::storage::{KeyRing as _, PassphraseKeyRing, RawKeyRing};

const NONCE: [u8; 20] = [3; 20];
/// Streams and rows, which stand in plain.
const PLAIN: &[u8] = b"streams and rows";
const STORE: StoreId = StoreId([5; 16]);

fn key(byte: u8) -> StoreKey {
    StoreKey::new([byte; 8], Zeroizing::new([byte; 32]))
}

/// Bytes that packing makes no shorter.
fn noise(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

fn texts() -> Vec<Vec<u8>> {
    vec![
        b"x".to_vec(),
        b"the same line again\n".repeat(5000),
        noise(70),
        noise(40_000),
        vec![0; UNIT_BYTES_MAX],
    ]
}

#[test]
fn units_open_as_what_they_were_and_hold_nothing_in_plain() {
    let key = key(7);
    for text in texts() {
        let frame = key.frame(NONCE);
        let body = frame.body(4, &text).unwrap();
        assert!(body.stored.len() <= text.len() + 16);
        let bytes = u32::try_from(text.len()).unwrap();
        assert_eq!(key.open_body(&unit_nonce(&NONCE, 5), (body.codec, bytes), &body.stored).unwrap(), text);
        let (block, spine) = frame.spine(PLAIN, &text).unwrap();
        assert_eq!((&block[..20], &block[20..28]), (&NONCE[..], &[7; 8][..]));
        assert_eq!(frame.open_spine(PLAIN, bytes, &spine).unwrap(), text);
        for stored in [&body.stored, &spine] {
            assert!(!stored.windows(8).any(|part| text.windows(8).next() == Some(part)));
        }
    }
    assert_eq!(key.frame(NONCE).body(0, &vec![0; UNIT_BYTES_MAX + 1]), None);
    assert!(!format!("{key:?}").contains('7'));
}

#[test]
fn a_unit_opens_under_its_key_at_its_place_and_nowhere_else() {
    let (own, other) = (key(7), key(8));
    let frame = own.frame(NONCE);
    let text = b"the text of a body, long enough to be packed: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let body = frame.body(1, text).unwrap();
    let bytes = u32::try_from(text.len()).unwrap();
    let nonce = unit_nonce(&NONCE, 2);
    assert_eq!(body.codec, 1);
    assert!(own.open_body(&nonce, (1, bytes), &body.stored).is_some());
    assert_eq!(own.open_body(&unit_nonce(&NONCE, 3), (1, bytes), &body.stored), None, "another number");
    assert_eq!(own.open_body(&unit_nonce(&[4; 20], 2), (1, bytes), &body.stored), None, "another frame");
    assert_eq!(other.open_body(&nonce, (1, bytes), &body.stored), None, "another key");
    assert_eq!(own.open_body(&nonce, (1, bytes + 1), &body.stored), None, "another length");
    assert_eq!(own.open_body(&nonce, (0, bytes), &body.stored), None, "another codec");
    let (_, spine) = frame.spine(PLAIN, text).unwrap();
    assert_eq!(frame.open_spine(b"other streams", bytes, &spine), None, "other streams or rows");
    assert_eq!(frame.open_spine(PLAIN, bytes + 1, &spine), None, "another length");
    assert_eq!(frame.open_spine(PLAIN, bytes, &body.stored), None, "a body is no spine");
    for at in 0..spine.len() * 8 {
        let flipped = |stored: &[u8]| {
            let mut stored = stored.to_vec();
            let byte = at / 8 % stored.len();
            stored[byte] ^= 1 << (at % 8);
            stored
        };
        assert_eq!(own.open_body(&nonce, (1, bytes), &flipped(&body.stored)), None, "bit {at}");
        assert_eq!(frame.open_spine(PLAIN, bytes, &flipped(&spine)), None, "bit {at}");
    }
    for end in 0..spine.len() {
        assert_eq!(frame.open_spine(PLAIN, bytes, &spine[..end]), None, "cut at {end}");
    }
}

/// Other programs open a unit with the cipher of draft-irtf-cfrg-xchacha-03, given the key that FORMAT derives.
#[test]
fn a_unit_is_what_any_program_with_the_cipher_makes() {
    use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
    let stored = key(7).frame(NONCE).body(0, b"hello").unwrap().stored;
    let seal = blake3::derive_key("acpdb 2026 key of a store: units v1", &[7; 32]);
    let nonce: Vec<u8> = [&NONCE[..], &1_u32.to_le_bytes()].concat();
    let about = [&b"acpdb unit v1\0\0\0"[..], &[7; 8], &0_u32.to_le_bytes(), &5_u32.to_le_bytes()].concat();
    let cipher = chacha20poly1305::XChaCha20Poly1305::new(&seal.into());
    let nonce = chacha20poly1305::XNonce::try_from(nonce.as_slice()).unwrap();
    assert_eq!(cipher.decrypt(&nonce, Payload { msg: &stored, aad: &about }).unwrap(), b"hello");
}

fn event(number: u8, bodies: &[&[u8]]) -> EncodedEvent {
    let envelope = Envelope {
        kind: 9,
        version: 1,
        stream: StreamId([number; 16]),
        origin: Origin([number; 16]),
        host_time: Some(Micros(5)),
    };
    let body = |bytes: &&[u8]| EncodedBody::New { bytes: (*bytes).into(), salt: [8; 16] };
    let payload = format!("the payload of event {number}").into_bytes();
    EncodedEvent { envelope, payload, bodies: bodies.iter().map(body).collect() }
}

/// A sealed commit at its place.
fn sealed(key: &StoreKey, events: &[EncodedEvent]) -> Vec<u8> {
    let mut prepared = key.seal(encode_frame(events).unwrap(), NONCE).unwrap();
    let place = Position::new(1, 0x2000).unwrap();
    let (bytes, link) = prepared.seal(Seq(7), (Micros(6), Micros(6)), place, place, STORE, Link([6; 32]));
    assert_eq!(link, FrameHeader::decode(bytes, STORE).unwrap().link());
    bytes.to_vec()
}

fn vault(byte: u8) -> Vault {
    Vault::Open(std::sync::Arc::new(key(byte)))
}

/// A frame with its bodies' stored bytes.
fn read(vault: &Vault, bytes: &[u8]) -> Result<(Frame, Vec<u8>), crate::codec::Invalid> {
    let frame = decode_frame(bytes, STORE)?;
    let start = usize::try_from(frame.header().bodies_start()).unwrap();
    Ok((vault.open(frame)?, bytes[start..].to_vec()))
}

#[test]
fn a_sealed_frame_says_what_was_sealed_to_its_key_alone() {
    let long = b"a long text, again and again; ".repeat(50);
    let lost = EncodedBody::Lost { digest: Digest([4; 32]), bytes: 40, stored_bytes: 30, codec: 1 };
    let mut events = vec![event(1, &[&long, b"short", &long]), event(2, &[]), event(1, &[b"short"])];
    let bytes = sealed(&key(7), &events);
    for part in [b"payload of".as_slice(), b"short", b"a long text"] {
        assert!(!bytes.windows(part.len()).any(|there| there == part));
    }
    let (frame, bodies) = read(&vault(7), &bytes).unwrap();
    assert_eq!(frame.events().count(), 3);
    assert_eq!(frame.blocks().count(), 2, "equal texts of a commit share a unit");
    for (found, given) in frame.events().zip(&events) {
        assert_eq!((found.envelope, found.payload), (given.envelope, &given.payload[..]));
        for (row, body) in found.rows().zip(&given.bodies) {
            let EncodedBody::New { bytes: text, .. } = body else { unreachable!() };
            let at = usize::try_from(row.place.offset - 0x2000 - frame.header().bodies_start()).unwrap();
            let stored = &bodies[at + 16..][..row.stored_bytes as usize];
            assert_eq!(vault(7).body(&row, stored).unwrap(), &text[..]);
            assert_eq!(vault(8).body(&row, stored).unwrap_err().part, DamagedPart::Body);
        }
    }
    // Without the key: streams and rows, and no events.
    let (closed, _) = read(&Vault::Closed, &bytes).unwrap();
    assert_eq!((closed.events().count(), closed.rows().count()), (0, 4));
    assert_eq!(closed.streams().collect::<Vec<_>>(), [StreamId([1; 16]), StreamId([2; 16])]);
    assert!(closed.is_closed() && !frame.is_closed());
    // A lost body stays lost.
    events.push(EncodedEvent { bodies: vec![lost], ..event(3, &[]) });
    let bytes = sealed(&key(7), &events);
    assert_eq!(read(&vault(7), &bytes).unwrap_err().part, DamagedPart::BodyZeroed);
    let frame = decode_header_and_content(&bytes);
    let row = vault(7).open(frame).unwrap().rows().last().unwrap();
    assert_eq!((row.digest, row.bytes, row.stored_bytes, row.codec), (Digest([4; 32]), 40, 30, 1));
}

/// The frame without a look at its bodies.
fn decode_header_and_content(bytes: &[u8]) -> Frame {
    let header = FrameHeader::decode(bytes, STORE).unwrap();
    let end = usize::try_from(header.bodies_start()).unwrap();
    let mut content = rkyv::util::AlignedVec::new();
    content.extend_from_slice(&bytes[FRAME_HEADER_BYTES..end]);
    Frame::new(header, content, FrameCheck::Digest).unwrap()
}

/// A program that can write to the folder knows the format. It can make every checksum, digest and link right; what it cannot make is a tag.
#[test]
fn a_frame_that_its_key_did_not_put_there_is_refused() {
    let bytes = sealed(&key(7), &[event(1, &[b"one"]), event(2, &[b"two"])]);
    let refused = |vault: &Vault, bytes: &[u8]| {
        let refused = read(vault, bytes).unwrap_err();
        assert_eq!(refused.part, DamagedPart::Spine, "{refused}");
        refused.expected
    };
    let header = FrameHeader::decode(&bytes, STORE).unwrap();
    let with = |header: FrameHeader| {
        let mut bytes = bytes.clone();
        bytes[..FRAME_HEADER_BYTES].copy_from_slice(&header.encode());
        bytes
    };
    for moved in [
        FrameHeader { first_seq: Seq(8), ..header },
        FrameHeader { position: Position::new(1, 0x3000).unwrap(), ..header },
        FrameHeader { previous: Link([7; 32]), ..header },
        FrameHeader { time: Micros(5), ..header },
        FrameHeader { tag: 1, ..header },
    ] {
        assert!(refused(&vault(7), &with(moved)).contains("for this place"), "{moved:?}");
    }
    assert_eq!(refused(&vault(8), &bytes), "a frame under the store's key");
    assert_eq!(refused(&Vault::Plain, &bytes), "a frame as it is");
    let plain = {
        let mut prepared = encode_frame(&[event(1, &[])]).unwrap();
        let place = Position::new(1, 0x2000).unwrap();
        prepared.seal(Seq(7), (Micros(6), Micros(6)), place, place, STORE, Link([6; 32])).0.to_vec()
    };
    assert_eq!(refused(&vault(7), &plain), "a sealed frame");
    assert_eq!(refused(&Vault::Closed, &plain), "a sealed frame");
    // Content that was changed under a right digest, and a tag that was copied.
    for at in [0, 20, 28, SEAL_BLOCK_BYTES, SEAL_BLOCK_BYTES + 16 * 2, 200] {
        let mut content = bytes[FRAME_HEADER_BYTES..usize::try_from(header.bodies_start()).unwrap()].to_vec();
        content[at] ^= 1;
        let forged = FrameHeader {
            content_checksum: crc32c::crc32c(&content),
            content_digest: Digest(*blake3::hash(&content).as_bytes()),
            ..header
        };
        let mut all = with(forged);
        all[FRAME_HEADER_BYTES..][..content.len()].copy_from_slice(&content);
        let frame = decode_header_and_content(&all);
        assert_eq!(vault(7).open(frame).unwrap_err().part, DamagedPart::Spine, "byte {at}");
        // Even with a tag: a writer with the key makes one for what it sealed.
        let forged = FrameHeader { tag: forged.tag_under(&key(7).tag_key()), ..forged };
        all[..FRAME_HEADER_BYTES].copy_from_slice(&forged.encode());
        let frame = decode_header_and_content(&all);
        assert_eq!(vault(7).open(frame).unwrap_err().part, DamagedPart::Spine, "byte {at}, with a tag");
    }
}

#[test]
fn every_flipped_bit_of_a_sealed_frame_is_found_without_the_key() {
    let bytes = sealed(&key(7), &[event(1, &[b"one"]), event(2, &[b"two"])]);
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&Vault::Closed, &damaged).is_err(), "byte {} bit {}", bit / 8, bit % 8);
    }
}

#[test]
fn a_key_is_wrapped_anew_and_destroyed() {
    let key = key(7);
    let random = |byte: u8| WrapRandom { salt: [byte; 16], nonce: [byte; 24] };
    let (one, two) = (RawKeyRing::new("one", &[1; 32]), PassphraseKeyRing::new("correct horse").unwrap());
    let first = KeyFile::wrap(&key, &one, &random(1)).unwrap();
    let again = KeyFile::decode(&first.encode()).unwrap();
    assert_eq!(again, first);
    assert_eq!(again.ring, one.id(&[1; 16]).unwrap());
    assert!(!first.encode().windows(32).any(|part| part == [7; 32]));
    let opened = again.unwrap(&one).unwrap().unwrap();
    assert_eq!((opened.id(), opened.as_bytes()), ([7; 8], &[7; 32]));
    assert!(again.unwrap(&two).unwrap().is_none(), "another ring");
    // Rotated: the same key, so that every frame opens as before.
    let second = KeyFile::wrap(&opened, &two, &random(2)).unwrap();
    assert_eq!(second.unwrap(&two).unwrap().unwrap().as_bytes(), &[7; 32]);
    assert!(second.unwrap(&one).unwrap().is_none());
    let moved = KeyFile { key_id: [9; 8], ..first.clone() };
    assert!(moved.unwrap(&one).unwrap().is_none(), "the key of another id");
    let gone = KeyFile::decode(&first.destroyed().encode()).unwrap();
    assert!(gone.is_destroyed() && gone.key_id == [7; 8] && gone.unwrap(&one).unwrap().is_none());
}

#[test]
fn every_byte_of_the_key_file_counts() {
    let file = KeyFile { key_id: [1; 8], salt: [2; 16], ring: [3; 16], wrapped: vec![4; WRAPPED_BYTES_MAX] };
    let bytes = file.encode();
    assert_eq!(KeyFile::decode(&bytes), Ok(file));
    for at in 0..KEY_FILE_BYTES {
        let mut other = bytes;
        other[at] ^= 1;
        assert!(KeyFile::decode(&other).is_err(), "byte {at}");
    }
    let with = |at: usize, value: u8| {
        let mut other = bytes;
        other[at] = value;
        let checksum = crc32c::crc32c(&other[..508]).to_le_bytes();
        other[508..].copy_from_slice(&checksum);
        KeyFile::decode(&other).unwrap_err().part
    };
    assert_eq!(with(8, 2), DamagedPart::Newer);
    assert_eq!(with(14, 1), DamagedPart::Newer);
    assert_eq!(with(500, 1), DamagedPart::Newer);
    assert_eq!(with(13, 2), DamagedPart::Secret, "a length past its limit");
    assert!(KeyFile::decode(&bytes[..511]).is_err());
}

proptest! {
    /// Whatever is recorded, cut off and recorded anew: no nonce and number come twice under one key, since each frame draws its own.
    #[test]
    fn no_two_units_have_one_nonce(frames in prop::collection::vec((any::<[u8; 20]>(), 0..20_u32), 1..40)) {
        let drawn: BTreeSet<[u8; 20]> = frames.iter().map(|(nonce, _)| *nonce).collect();
        prop_assume!(drawn.len() == frames.len());
        let key = key(7);
        let mut seen = BTreeSet::new();
        for (nonce, bodies) in frames {
            let frame = key.frame(nonce);
            // Equal texts of one length: equal stored bytes would show that a nonce came again.
            prop_assert!(seen.insert(frame.spine(PLAIN, b"text").unwrap().1));
            for number in 0..bodies {
                prop_assert!(seen.insert(frame.body(number, b"text").unwrap().stored));
            }
        }
    }

    /// Sealed texts open as they were, whatever they are.
    #[test]
    fn what_is_sealed_opens(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..8), streams in 1..4_u8) {
        let events: Vec<EncodedEvent> = (0..streams)
            .map(|number| {
                let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).skip(number.into()).collect();
                event(number + 1, &texts)
            })
            .collect();
        let bytes = sealed(&key(7), &events);
        let (frame, bodies) = read(&vault(7), &bytes).unwrap();
        prop_assert_eq!(frame.events().count(), events.len());
        for (found, given) in frame.events().zip(&events) {
            prop_assert_eq!(found.payload, &given.payload[..]);
            for (row, body) in found.rows().zip(&given.bodies) {
                let EncodedBody::New { bytes: text, .. } = body else { unreachable!() };
                let at = usize::try_from(row.place.offset - 0x2000 - frame.header().bodies_start()).unwrap();
                let stored = &bodies[at + 16..][..row.stored_bytes as usize];
                prop_assert_eq!(&vault(7).body(&row, stored).unwrap(), &text[..]);
            }
        }
    }

    /// Any bytes for a file or a unit are refused or taken, without a panic.
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..600), codec in any::<u8>(), length in any::<u32>()) {
        let _ = KeyFile::decode(&bytes);
        let key = key(7);
        prop_assert_eq!(key.open_body(&unit_nonce(&NONCE, 1), (codec, length), &bytes), None);
        prop_assert_eq!(key.frame(NONCE).open_spine(PLAIN, length, &bytes), None);
    }
}
