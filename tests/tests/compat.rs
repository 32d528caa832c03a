//! Stores of every format version open for ever, and one of a later version is refused with a word.
//!
//! The fixtures are never made again: `v1` was made by `examples/make_fixture.rs` as it was then. A store's answers
//! (`expect.txt`) never change. The digests of its folds (`digests.txt`) change when a fold learns to tell more; then
//! they are taken anew, after a look at the new parts.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::cast_possible_truncation,
    reason = "tests: a failed step is a failed test"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Payload, Role};
use acpdb_engine::ids::Seq;
use acpdb_engine::keys::PassphraseKeyRing;
use acpdb_engine::verify::{Verdict, verify_folder};
use acpdb_engine::{Builder, Error, Store};
use acpdb_tests::support::{copy_folder, described, events, fold_digests};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v1")
}

fn copy() -> (tempfile::TempDir, PathBuf) {
    copy_of(&fixture())
}

fn copy_of(fixture: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    copy_folder(&fixture.join("store"), &path).unwrap();
    (folder, path)
}

/// The store of `v1`, its complete segments sealed by `acpdb seal` when sealing was new.
fn sealed_fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v1-sealed")
}

#[test]
fn a_sealed_store_of_version_1_says_what_it_said_and_takes_more() {
    let (_folder, path) = copy_of(&sealed_fixture());
    let expected = std::fs::read_to_string(fixture().join("expect.txt")).unwrap();
    let report = verify_folder(&path, true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    for read_only in [true, false] {
        let builder = if read_only { builder(&path).read_only() } else { builder(&path) };
        let store = builder.open().unwrap();
        assert!(store.recovery().was_clean, "{:?}", store.recovery());
        assert_eq!(described(&store).unwrap(), expected);
        let space = store.space().unwrap();
        assert_eq!(
            space.segments.iter().map(|segment| segment.sealed).collect::<Vec<_>>(),
            [true, true, true, false]
        );
    }
    let store = builder(&path).open().unwrap();
    let session = StreamInfo::session("opencode", "ses_golden");
    let known = Entry::message("m1", Role::User, "Grüße, mend b.rs").origin("msg:m1");
    let receipt = store.append(&session, vec![known, Entry::message("", Role::User, "go on")]).unwrap();
    assert_eq!((receipt.known_count, receipt.event_count), (1, 1), "{receipt:?}");
    store.close().unwrap();
    assert_eq!(verify_folder(&path, true).unwrap().verdict(), Verdict::Sound);
}

/// The texts of a session of an encrypted store.
fn said(store: &Store, session: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let stream = StreamInfo::session("acpdb", session).id();
    for recorded in store.stream_events(stream, Seq(1), Seq::MAX).unwrap() {
        let recorded = recorded.unwrap();
        if let Payload::MessageRecorded(message) = &recorded.event.payload {
            let body = message.parts[0].body.id(recorded.seq);
            texts.push(String::from_utf8(store.body(body).unwrap()).unwrap());
        }
    }
    texts
}

fn of_passphrase(name: &str) -> (tempfile::TempDir, PathBuf, Builder) {
    let (folder, path) = copy_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name));
    let ring = Arc::new(PassphraseKeyRing::new("correct horse battery").unwrap());
    let builder = Store::builder(&path).keys(ring);
    (folder, path, builder)
}

/// Encrypted stores when encryption was new (`v1-encrypted`: two sessions, and one that was shredded), and when subjects and further keys
/// were (`v1-subjects`: a session about a subject, one about none, each under two keys, and a subject that was shredded).
#[test]
fn encrypted_stores_of_version_1_open_with_their_key_and_take_more() {
    for (name, texts) in [
        ("v1-encrypted", &["first words of"][..]),
        ("v1-subjects", &["first words of", "later words of"][..]),
    ] {
        let (_folder, path, builder) = of_passphrase(name);
        let report = verify_folder(&path, true).unwrap();
        assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
        let store = builder.open().unwrap();
        assert!(store.is_shredded(StreamInfo::session("acpdb", "gone").id()).unwrap(), "{name}");
        for session in ["s1", "s2"] {
            let expected: Vec<String> = texts.iter().map(|text| format!("{text} {session}")).collect();
            assert_eq!(said(&store, session), expected, "{name}");
        }
        assert_eq!(store.rotate_data_keys(None).unwrap(), 2, "{name}");
        let info = StreamInfo::session("acpdb", "s1");
        let _ = store.append(&info, vec![Entry::message("", Role::User, "go on")]).unwrap();
        assert_eq!(said(&store, "s1").len(), texts.len() + 1, "{name}");
        let subjects: Vec<String> = store.subjects().unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(subjects, if name == "v1-subjects" { &["Ada L"][..] } else { &[] });
        store.close().unwrap();
        assert_eq!(verify_folder(&path, true).unwrap().verdict(), Verdict::Sound, "{name}");
    }
}

/// A file of keys that a later program wrote: acts that need its keys are refused by name, and the file is left alone;
/// all else goes on.
#[test]
fn a_file_of_keys_of_a_later_version_is_refused_and_left_alone() {
    let (_folder, path, builder) = of_passphrase("v1-encrypted");
    let (one, two) = (StreamInfo::session("acpdb", "s1"), StreamInfo::session("acpdb", "s2"));
    let file = path.join(format!("keys/{}.key", one.id().to_hex()));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[8] = 3;
    let checksum = crc32c::crc32c(&bytes[..508]).to_le_bytes();
    bytes[508..].copy_from_slice(&checksum);
    std::fs::write(&file, &bytes).unwrap();
    let store = builder.open().unwrap();
    let entry = || vec![Entry::message("", Role::User, "go on")];
    for error in [
        store.append(&one, entry()).map(drop).unwrap_err(),
        store.rotate_data_keys(None).map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, Error::NewerFormat { .. }), "{error:?}");
        assert!(
            error.to_string().contains("version 3") && error.to_string().contains("update acpdb"),
            "{error}"
        );
    }
    let _ = store.append(&two, entry()).unwrap();
    assert_eq!(said(&store, "s2").len(), 2);
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

fn builder(path: &Path) -> Builder {
    Store::builder(path).registry(acpdb_hosts::registry())
}

#[test]
fn a_store_of_version_1_says_what_it_said() {
    let (_folder, path) = copy();
    let expected = std::fs::read_to_string(fixture().join("expect.txt")).unwrap();
    let segments = std::fs::read_dir(path.join("log")).unwrap().count();
    assert!(segments >= 3, "{segments}");
    let report = verify_folder(&path, true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    for read_only in [true, false] {
        let builder = if read_only { builder(&path).read_only() } else { builder(&path) };
        let store = builder.open().unwrap();
        assert!(store.recovery().was_clean, "{:?}", store.recovery());
        assert_eq!(described(&store).unwrap(), expected);
    }
}

#[test]
fn a_store_of_version_1_folds_to_the_same_digests() {
    let (_folder, path) = copy();
    let store = builder(&path).open().unwrap();
    let expected = std::fs::read_to_string(fixture().join("digests.txt")).unwrap();
    let found = fold_digests(&store).unwrap();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn a_store_of_version_1_can_be_appended_to() {
    let (_folder, path) = copy();
    let store = builder(&path).open().unwrap();
    let before = events(&store).unwrap();
    let session = StreamInfo::session("opencode", "ses_golden");
    // A fact that it knows stays known; an unknown one is added behind the events that are there.
    let known = Entry::message("m1", Role::User, "Grüße, mend b.rs").origin("msg:m1");
    let receipt = store.append(&session, vec![known, Entry::message("", Role::User, "go on")]).unwrap();
    assert_eq!((receipt.known_count, receipt.event_count), (1, 1), "{receipt:?}");
    assert_eq!(receipt.first_seq, Seq(before.len() as u64 + 1));
    assert_eq!(events(&store).unwrap()[..before.len()], before);
    store.close().unwrap();
    assert_eq!(verify_folder(&path, true).unwrap().verdict(), Verdict::Sound);
}

/// The store file as a later program would write it: another version, and a check that fits.
fn of_version(text: &str, version: u32) -> String {
    let (head, _) = text.split_once(",\n  \"check\"").unwrap();
    let head = head.replace("\"acpdb\": 1", &format!("\"acpdb\": {version}"));
    let check = blake3::hash(head.as_bytes()).to_hex();
    format!("{head},\n  \"check\": \"{check}\"\n}}\n")
}

#[test]
fn a_store_of_a_later_version_is_refused_and_left_alone() {
    let (_folder, path) = copy();
    let file = path.join("acpdb.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(of_version(&text, 1), text, "the test writes the file as the program does");
    std::fs::write(&file, of_version(&text, 2)).unwrap();
    for builder in [builder(&path), builder(&path).read_only(), builder(&path).create(false)] {
        let error = builder.open().unwrap_err();
        assert!(
            matches!(error, Error::NewerFormat { .. }) && error.to_string().contains("version 2"),
            "{error}"
        );
        assert!(error.to_string().contains("update acpdb"), "{error}");
    }
    assert!(matches!(verify_folder(&path, true), Err(Error::NewerFormat { .. })));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), of_version(&text, 2));
    // A version that was scribbled over is damage, not a newer format.
    std::fs::write(&file, text.replace("\"acpdb\": 1", "\"acpdb\": 2")).unwrap();
    let store = builder(&path).open().unwrap();
    assert!(store.recovery().damage.is_some(), "{:?}", store.recovery());
    assert!(described(&store).is_ok(), "what is not damaged stays readable");
    let receipt =
        store.append(&StreamInfo::session("opencode", "new"), vec![Entry::message("", Role::User, "x")]);
    assert!(receipt.is_err(), "a damaged store takes no more");
    drop(store);
    assert_eq!(verify_folder(&path, true).unwrap().verdict(), Verdict::Damaged);
}
