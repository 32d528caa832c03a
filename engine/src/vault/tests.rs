use std::collections::BTreeSet;

use proptest::prelude::*;
use zeroize::Zeroizing;

use super::*;
use crate::codec::Part;
use crate::storage::{KeyRing as _, PassphraseKeyRing, RawKeyRing};

const NONCE: [u8; 20] = [3; 20];
/// Streams and rows, which stand in plain.
const PLAIN: &[u8] = b"streams and rows";

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
        let body = frame.seal_body(4, &text).unwrap();
        assert!(body.stored.len() <= text.len() + UNIT_BYTES_ADDED);
        let bytes = u32::try_from(text.len()).unwrap();
        assert_eq!(frame.open_body(4, (body.codec, bytes), &body.stored).unwrap(), text);
        let (spine, block) = frame.seal_spine(PLAIN, &text).unwrap();
        let read = key.frame_of(&SealBlock::decode(&block.encode())).unwrap();
        assert_eq!(read.open_spine(PLAIN, block.spine_bytes, &spine).unwrap(), text);
        for stored in [&body.stored, &spine] {
            assert!(!stored.windows(8).any(|part| text.windows(8).next() == Some(part)));
        }
    }
    let frame = key.frame(NONCE);
    assert_eq!(frame.seal_body(0, &vec![0; UNIT_BYTES_MAX + 1]), None);
    assert_eq!(frame.seal_body(u32::MAX, b"no number is left"), None);
    assert!(!format!("{key:?}").contains('7'));
}

#[test]
fn a_unit_opens_under_its_key_at_its_place_and_nowhere_else() {
    let (own, other) = (key(7), key(8));
    let frame = own.frame(NONCE);
    let text = b"the text of a body, long enough to be packed: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let body = frame.seal_body(1, text).unwrap();
    let bytes = u32::try_from(text.len()).unwrap();
    assert_eq!(body.codec, 1);
    assert_eq!(frame.open_body(2, (1, bytes), &body.stored), None, "another number");
    assert_eq!(own.frame([4; 20]).open_body(1, (1, bytes), &body.stored), None, "another frame");
    assert_eq!(other.frame(NONCE).open_body(1, (1, bytes), &body.stored), None, "another key");
    assert_eq!(frame.open_body(1, (1, bytes + 1), &body.stored), None, "another length");
    assert_eq!(frame.open_body(1, (0, bytes), &body.stored), None, "another codec");
    let (spine, block) = frame.seal_spine(PLAIN, text).unwrap();
    assert_eq!(frame.open_spine(b"streams and rowz", bytes, &spine), None, "other rows");
    assert_eq!(frame.open_spine(PLAIN, bytes + 1, &spine), None, "another length");
    assert_eq!(frame.open_body(0, (1, bytes), &spine), None, "a spine is no body");
    assert_eq!(frame.open_spine(PLAIN, bytes, &body.stored), None, "a body is no spine");
    // A key with the same bytes under another id is another key.
    let renamed = StoreKey::new([8; 8], Zeroizing::new([7; 32]));
    assert_eq!(renamed.frame(NONCE).open_spine(PLAIN, bytes, &spine), None, "another id");
    assert!(renamed.frame_of(&block).is_none());
}

#[test]
fn a_flipped_bit_opens_nothing() {
    let key = key(7);
    let frame = key.frame(NONCE);
    let text = b"short";
    let body = frame.seal_body(0, text).unwrap();
    let (spine, block) = frame.seal_spine(PLAIN, text).unwrap();
    for at in 0..spine.len() * 8 {
        let flipped = |stored: &[u8]| {
            let mut stored = stored.to_vec();
            stored[at / 8] ^= 1 << (at % 8);
            stored
        };
        assert_eq!(frame.open_body(0, (body.codec, 5), &flipped(&body.stored)), None, "bit {at}");
        assert_eq!(frame.open_spine(PLAIN, 5, &flipped(&spine)), None, "bit {at}");
    }
    for end in 0..spine.len() {
        assert_eq!(frame.open_spine(PLAIN, 5, &spine[..end]), None, "cut at {end}");
    }
    let header = [9; 108];
    let placed = SealBlock { tag: key.header_tag(&header, &block), ..block };
    assert!(key.is_in_place(&header, &placed));
    assert!(!key.is_in_place(&[8; 108], &placed), "another place");
    assert!(!self::key(8).is_in_place(&header, &placed), "another key");
    for at in 0..SEAL_BLOCK_BYTES * 8 {
        let mut bytes = placed.encode();
        bytes[at / 8] ^= 1 << (at % 8);
        assert!(!key.is_in_place(&header, &SealBlock::decode(&bytes)), "bit {at} of the block");
    }
}

/// The vector of draft-irtf-cfrg-xchacha-03, A.3.1, through the room's own nonce: 20 bytes of the frame and the number of a unit. Other programs
/// open a unit with the same cipher.
#[test]
fn a_unit_is_what_any_program_with_the_cipher_makes() {
    use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
    let key = key(7);
    let stored = key.frame(NONCE).seal_body(0, b"hello").unwrap().stored;
    let seal = blake3::derive_key("acpdb 2026 key of a store: units v1", &[7; 32]);
    let nonce: Vec<u8> = [&NONCE[..], &1_u32.to_le_bytes()].concat();
    let about = [&b"acpdb unit v1\0\0\0"[..], &[7; 8], &0_u32.to_le_bytes(), &5_u32.to_le_bytes()].concat();
    let cipher = chacha20poly1305::XChaCha20Poly1305::new(&seal.into());
    let nonce = chacha20poly1305::XNonce::try_from(nonce.as_slice()).unwrap();
    assert_eq!(cipher.decrypt(&nonce, Payload { msg: &stored, aad: &about }).unwrap(), b"hello");
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
    assert_eq!(with(8, 2), Part::Newer);
    assert_eq!(with(14, 1), Part::Newer);
    assert_eq!(with(500, 1), Part::Newer);
    assert_eq!(with(13, 2), Part::Secret, "a length past its limit");
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
            prop_assert!(seen.insert(frame.seal_spine(PLAIN, b"text").unwrap().0));
            for number in 0..bodies {
                prop_assert!(seen.insert(frame.seal_body(number, b"text").unwrap().stored));
            }
        }
    }

    /// Any bytes for a file, a block or a unit are refused or taken, without a panic.
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..600), codec in any::<u8>(), length in any::<u32>()) {
        let _ = KeyFile::decode(&bytes);
        if let Some(block) = bytes.first_chunk() {
            prop_assert!(!key(7).is_in_place(&bytes, &SealBlock::decode(block)));
        }
        let key = key(7);
        prop_assert_eq!(key.frame(NONCE).open_body(length, (codec, length), &bytes), None);
        prop_assert_eq!(key.frame(NONCE).open_spine(PLAIN, length, &bytes), None);
    }
}
