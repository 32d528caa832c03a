#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

use std::collections::BTreeSet;

use expect_test::expect_file;
use proptest::prelude::*;

use super::*;
use crate::event::{Actor, KIND_LABELS, samples, table};

const TURN: u16 = 4;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(payload: &Payload) -> Vec<u8> {
    encode(&samples::stamp(), payload).unwrap().1
}

/// The reason why bytes are no payload of a kind.
fn refused(number: u16, bytes: &[u8]) -> &'static str {
    match decode(number, PAYLOAD_VERSION, bytes) {
        Err(PayloadError::Invalid { reason, .. }) => reason,
        other => panic!("{}: {other:?}", hex(&bytes[..bytes.len().min(40)])),
    }
}

fn is_unknown(number: u16, bytes: &[u8]) -> bool {
    let (stamp, payload) = decode(number, PAYLOAD_VERSION, bytes).unwrap();
    assert!(stamp == Stamp::default() || !matches!(payload, Payload::Unknown { .. }));
    matches!(payload, Payload::Unknown { number: kept, bytes: same, .. } if kept == number && same == bytes)
}

/// The bytes of each kind are frozen: an existing line of this list must never change.
#[test]
fn every_kind_has_its_golden_bytes() {
    let mut list = String::new();
    for payload in samples::payloads() {
        list += &format!("{} {} {}\n", payload.number(), payload.label(), hex(&bytes_of(&payload)));
    }
    expect_file!["../../tests/golden/payloads.txt"].assert_eq(&list);
}

#[test]
fn every_kind_comes_back_and_none_is_missing() {
    let payloads = samples::payloads();
    let numbers: Vec<u16> = payloads.iter().map(Payload::number).collect();
    let all: Vec<u16> = KIND_LABELS.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, all);
    for payload in payloads {
        for stamp in [samples::stamp(), Stamp::default()] {
            let (version, bytes) = encode(&stamp, &payload).unwrap();
            let (stamp_again, back) = decode(payload.number(), version, &bytes).unwrap();
            assert_eq!((&stamp_again, &back), (&stamp, &payload));
            assert_eq!(encode(&stamp, &back), Ok((version, bytes)), "{}", payload.label());
        }
    }
}

#[test]
fn kinds_and_versions_to_come_are_kept_as_they_are() {
    for (number, version) in [(114, 1), (4, 2), (9999, 7)] {
        let (_, payload) = decode(number, version, b"whatever").unwrap();
        assert_eq!(payload.number(), number);
        assert_eq!(encode(&Stamp::default(), &payload), Ok((version, b"whatever".to_vec())));
    }
}

#[test]
fn a_value_has_one_form() {
    // 5: "k"
    let turn = b"\xa1\x05\x61k";
    let (stamp, payload) = decode(TURN, PAYLOAD_VERSION, turn).unwrap();
    assert_eq!(encode(&stamp, &payload).unwrap().1, turn);
    let longer = "an integer is longer than it need be";
    for (bytes, reason) in [
        (&b"\xa1\x18\x05\x61k"[..], longer),
        (b"\xb8\x01\x05\x61k", longer),
        (b"\xa1\x05\x78\x01k", longer),
        (b"\xa1\x06\x19\x00\xff", longer),
        (b"\xa1\x06\x1a\x00\x00\xff\xff", longer),
        (b"\xa1\x06\x1b\x00\x00\x00\x00\xff\xff\xff\xff", longer),
        (b"\xbf\x05\x61k\xff", "a length is not said"),
        (b"\xa1\x05\x7f\x61k\xff", "a length is not said"),
        (b"\xa2\x05\x61k\x05\x61k", "its keys do not rise"),
        (b"\xa2\x06\x04\x05\x61k", "its keys do not rise"),
        (b"\xa1\x04\x00", "a default is not left out"),
        (b"\xa1\x05\x60", "a default is not left out"),
        (b"\xa1\x06\xf6", "a value is of another type"),
        (b"\xa1\x06\xf9\x00\x00", "a float or a simple value stands in it"),
        (b"\xa1\x06\xc1\x04", "a value is of another type"),
        (b"\xa1\x05\x41k", "a value is of another type"),
        (b"\xa1\x05\x61\xff", "a text is not UTF-8"),
        (b"\xa1\x61\x05\x61k", "a value is of another type"),
        (b"\xa1\x20\x61k", "a value is of another type"),
        (b"\xa1\x06\x1b\xff\xff\xff\xff\xff\xff\xff\xff", "an integer is out of range"),
        (b"\x80", "a value is of another type"),
        (b"", "it is cut"),
        (b"\xa2\x05\x61k", "it is cut"),
        (b"\xa1\x05\x61k\x00", "bytes follow its end"),
    ] {
        assert_eq!(refused(TURN, bytes), reason, "{}", hex(bytes));
    }
}

#[test]
fn a_new_key_is_passed_over_if_it_is_even_and_hides_the_event_if_it_is_odd() {
    let turn = |key: u8, value: &[u8]| [b"\xa2\x05\x61k\x18", &[key][..], value].concat();
    for value in [
        &b"\x00"[..],
        b"\x20",
        b"\xf4",
        b"\xf5",
        b"\x60",
        b"\x41\x00",
        b"\xa2\x00\x80\x01\x81\xa0",
        b"\x82\x1b\xff\xff\xff\xff\xff\xff\xff\xff\x63abc",
    ] {
        let (_, payload) = decode(TURN, PAYLOAD_VERSION, &turn(30, value)).unwrap();
        assert!(matches!(&payload, Payload::TurnStarted(turn) if turn.key == "k"), "{}", hex(value));
        assert!(is_unknown(TURN, &turn(31, value)));
    }
    for (value, reason) in [
        (&b"\xf6"[..], "null or a simple value stands in it"),
        (b"\xf7", "null or a simple value stands in it"),
        (b"\xfb\x00\x00\x00\x00\x00\x00\x00\x00", "a float or a simple value stands in it"),
        (b"\xc0\x60", "a tag stands in it"),
        (b"\x9f\xff", "a length is not said"),
        (b"\x18\x17", "an integer is longer than it need be"),
        (b"\xa2\x01\x00\x00\x00", "its keys do not rise"),
        (b"\xa1\x60\x00", "a value is of another type"),
        (b"\x61\xff", "a text is not UTF-8"),
    ] {
        assert_eq!(refused(TURN, &turn(30, value)), reason, "{}", hex(value));
    }
    // In a part of a kind, too: the parts of a message, with keys 30 and 31.
    let message = |key: u8| [b"\xa1\x06\x81\xa1\x18", &[key, 0][..]].concat();
    assert!(matches!(decode(16, PAYLOAD_VERSION, &message(30)).unwrap().1, Payload::MessageRecorded(_)));
    assert!(is_unknown(16, &message(31)));
    // A number that an enum does not have yet.
    assert!(is_unknown(TURN, b"\xa1\x04\x05"));
}

/// The format reserves a key for the other stores that were read for a context: a reader of today meets it without a fault.
#[test]
fn other_stores_that_were_read_are_passed_over() {
    let others = [&b"\x0a\x81\x83\x50"[..], &[7; 16], b"\x19\x03\x2c\x58\x20", &[9; 32]].concat();
    for label in ["context_rebased", "context_served"] {
        let payloads = samples::payloads();
        let payload = payloads.iter().find(|payload| payload.label() == label).unwrap();
        let bytes = bytes_of(payload);
        assert!(bytes[0] & 0xe0 == 0xa0, "a map of few fields");
        let with_others = [&[bytes[0] + 1], &bytes[1..], &others].concat();
        let (_, read) = decode(payload.number(), PAYLOAD_VERSION, &with_others).unwrap();
        assert_eq!(&read, payload, "{label}");
    }
}

#[test]
fn depth_and_lengths_that_lie_are_refused_at_once() {
    let deep = |levels: usize| [b"\xa1\x18\x1e".to_vec(), vec![0x81; levels], vec![0]].concat();
    assert!(matches!(decode(TURN, PAYLOAD_VERSION, &deep(7)).unwrap().1, Payload::TurnStarted(_)));
    assert_eq!(refused(TURN, &deep(8)), "it is too deep");
    assert_eq!(refused(TURN, &deep(1_000_000)), "it is too deep");
    assert_eq!(
        refused(16, &[b"\xa1\x06".to_vec(), vec![0x81; 1_000_000]].concat()),
        "a value is of another type"
    );
    for (number, bytes) in [
        (TURN, &b"\xa1\x05\x7b\xff\xff\xff\xff\xff\xff\xff\xff"[..]),
        (TURN, b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff"),
        (16, b"\xa1\x06\x9b\xff\xff\xff\xff\xff\xff\xff\xff"),
        (TURN, b"\xa1\x18\x1e\x9b\xff\xff\xff\xff\xff\xff\xff\xff"),
        (TURN, b"\xa1\x18\x1e\x5b\xff\xff\xff\xff\xff\xff\xff\xff"),
    ] {
        assert_eq!(refused(number, bytes), "it is cut", "{}", hex(bytes));
    }
}

/// An item of CBOR as it stands in bytes, for changes that no struct could make.
#[derive(Clone, Debug)]
enum Tree {
    Plain(u8, u64),
    Bytes(u8, Vec<u8>),
    List(Vec<Tree>),
    Map(Vec<(u64, Tree)>),
}

impl Tree {
    fn head(bytes: &[u8], at: &mut usize) -> (u8, u64) {
        let first = bytes[*at];
        *at += 1;
        let length = match first & 31 {
            info @ 0..24 => return (first >> 5, u64::from(info)),
            info => 1_usize << (info - 24),
        };
        let argument = bytes[*at..*at + length].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        *at += length;
        (first >> 5, argument)
    }

    fn read(bytes: &[u8], at: &mut usize) -> Self {
        let (major, argument) = Self::head(bytes, at);
        match major {
            0 | 1 | 7 => Self::Plain(major, argument),
            2 | 3 => {
                let taken = bytes[*at..*at + argument as usize].to_vec();
                *at += taken.len();
                Self::Bytes(major, taken)
            }
            4 => Self::List((0..argument).map(|_| Self::read(bytes, at)).collect()),
            5 => Self::Map((0..argument).map(|_| (Self::head(bytes, at).1, Self::read(bytes, at))).collect()),
            _ => panic!("no such item is written"),
        }
    }

    fn put(major: u8, argument: u64, out: &mut Vec<u8>) {
        let (info, length) = match argument {
            0..24 => return out.push(major << 5 | argument as u8),
            24..0x100 => (24, 1),
            0x100..0x1_0000 => (25, 2),
            0x1_0000..0x1_0000_0000 => (26, 4),
            _ => (27, 8),
        };
        out.push(major << 5 | info);
        out.extend_from_slice(&argument.to_be_bytes()[8 - length..]);
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(major, argument) => Self::put(*major, *argument, out),
            Self::Bytes(major, bytes) => {
                Self::put(*major, bytes.len() as u64, out);
                out.extend_from_slice(bytes);
            }
            Self::List(all) => {
                Self::put(4, all.len() as u64, out);
                for item in all {
                    item.write(out);
                }
            }
            Self::Map(all) => {
                Self::put(5, all.len() as u64, out);
                for (key, value) in all {
                    Self::put(0, *key, out);
                    value.write(out);
                }
            }
        }
    }

    /// Changes the item with a number, counted over all items; returns how many there are.
    fn change(&mut self, number: &mut usize, with: &(u64, String, bool)) {
        let is_it = *number == 0;
        *number = number.wrapping_sub(1);
        match self {
            Self::Plain(major, argument) if is_it && *major != 7 => *argument = with.0,
            Self::Bytes(3, bytes) if is_it => *bytes = with.1.clone().into_bytes(),
            Self::Bytes(_, bytes) if is_it => bytes.reverse(),
            Self::List(all) if is_it && with.2 => all.truncate(with.0 as usize % 3),
            Self::List(all) if is_it => all.extend(all.clone()),
            Self::Map(all) if is_it && !all.is_empty() => drop(all.remove(with.0 as usize % all.len())),
            Self::List(all) => all.iter_mut().for_each(|item| item.change(number, with)),
            Self::Map(all) => all.iter_mut().for_each(|(_, item)| item.change(number, with)),
            _ => {}
        }
    }
}

/// Bytes that can be read have one form: they are written as they were read, but for keys that were passed over.
fn check(number: u16, bytes: &[u8]) -> bool {
    let Ok((stamp, payload)) = decode(number, PAYLOAD_VERSION, bytes) else { return false };
    let (version, again) = encode(&stamp, &payload).unwrap();
    assert!(again == bytes || again.len() < bytes.len(), "{} {}", hex(bytes), hex(&again));
    assert_eq!(decode(number, version, &again), Ok((stamp, payload)));
    true
}

proptest! {
    #[test]
    fn no_bytes_make_decoding_panic(kind in 0_usize..37, cut in 0_usize..600, flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let payloads = samples::payloads();
        let payload = &payloads[kind % payloads.len()];
        let mut bytes = bytes_of(payload);
        for (place, with) in flips {
            let place = place.index(bytes.len());
            bytes[place] ^= with;
        }
        bytes.truncate(bytes.len().saturating_sub(cut % 40));
        let _ = check(payload.number(), &bytes);
    }

    /// Values of all sizes in all fields, and fields left out.
    #[test]
    fn what_is_read_is_written_alike(kind in 0_usize..37, changes in proptest::collection::vec((0_usize..40, (prop_oneof![0_u64..30, 0_u64..70_000, any::<u64>()], ".{0,40}", any::<bool>())), 1..4)) {
        let payloads = samples::payloads();
        let payload = &payloads[kind % payloads.len()];
        let mut tree = Tree::read(&bytes_of(payload), &mut 0);
        for (place, with) in changes {
            tree.change(&mut { place }, &with);
        }
        let mut bytes = Vec::new();
        tree.write(&mut bytes);
        let _ = check(payload.number(), &bytes);
    }
}

/// Every change of one field that keeps its type is read, or the test above would say nothing.
#[test]
fn changed_samples_are_mostly_read() {
    let (mut read, mut all) = (0, 0);
    for payload in samples::payloads() {
        for place in 1..30 {
            let mut tree = Tree::read(&bytes_of(&payload), &mut 0);
            tree.change(&mut { place }, &(1, "another".to_owned(), false));
            let mut bytes = Vec::new();
            tree.write(&mut bytes);
            all += 1;
            read += usize::from(check(payload.number(), &bytes));
        }
    }
    assert!(read * 3 > all * 2, "{read} of {all}");
}

/// The page that strangers read by.
const PAGE: &str = include_str!("../../../docs/FORMAT.md");

/// The rows of a table of the page, by the words of its first line.
fn rows<'p>(page: &'p str, head: &str) -> Vec<Vec<&'p str>> {
    let lines = page.lines().skip_while(|line| *line != head).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// The page is what strangers read by: it has every field, every number and every word, and no other.
#[test]
fn the_page_of_the_format_has_every_field() {
    let told = rows(PAGE, "| of | key | field | type | default | meaning |");
    let fields = table::fields();
    let wanted: Vec<Vec<&str>> = fields.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    // An owner stands in its first row alone.
    let mut owner = "";
    let whole = |row: &Vec<&'static str>| {
        owner = if row[0].is_empty() { owner } else { row[0] };
        [&[owner], &row[1..5]].concat()
    };
    let shown: Vec<Vec<&str>> = told.iter().map(whole).collect();
    let list = |rows: &[Vec<&str>]| rows.iter().map(|row| row.join(" | ") + "\n").collect::<String>();
    assert_eq!(list(&shown), list(&wanted));
    assert!(told.iter().all(|row| row.len() == 6 && !row[5].is_empty()), "each field has a meaning");

    let told = rows(PAGE, "| type | numbers |");
    let numbers = table::numbers().into_iter().map(|(name, values)| {
        let values: Vec<String> = values.iter().map(|(number, value)| format!("{number} {value}")).collect();
        vec![name.to_owned(), values.join(", ")]
    });
    assert_eq!(told, numbers.collect::<Vec<_>>());

    let told = rows(PAGE, "| number | word |");
    let words = (1..)
        .zip(table::words())
        .map(|(number, word): (u32, _)| vec![number.to_string(), (*word).to_owned()]);
    assert_eq!(told, words.collect::<Vec<_>>());
}

/// A payload stays when its bodies are erased, so no text of a person or a host may stand in it. Each field of letters is a name,
/// and the page says of what. A new one has to be put there, after a look at what it can hold.
#[test]
fn each_field_of_letters_is_a_name_that_the_page_has() {
    let listed = rows(PAGE, "| a name of | fields |");
    let listed: BTreeSet<String> = listed
        .iter()
        .flat_map(|row| row[1].split(", ").map(|field| field.trim_matches('`').to_owned()))
        .collect();
    let is_name = |row: &&[String; 5]| row[3].split([' ', '[', ']', ',']).any(|word| word == "name");
    let owner = |owner: &str| owner.split(' ').next_back().unwrap_or_default().to_owned();
    let fields = table::fields();
    let names: BTreeSet<String> =
        fields.iter().filter(is_name).map(|row| format!("{}.{}", owner(&row[0]), row[2])).collect();
    assert_eq!(names, listed);
}

/// A default is what a reader puts in for an absent key: it never changes.
#[test]
fn an_empty_map_is_a_payload_of_defaults() {
    let (stamp, payload) = decode(TURN, PAYLOAD_VERSION, b"\xa0").unwrap();
    assert_eq!((stamp.actor, stamp.estimator, stamp.revision, stamp.wire), (Actor::User, 0, 0, None));
    assert_eq!(payload, event::TurnStarted::default().into());
    assert_eq!(refused(9, b"\xa0"), "a field is missing");
}
