//! Stores of every format version open for ever, and one of a later version is refused with a word.
//!
//! The fixtures are never made again: `v3` was made by `examples/make_fixture.rs` as it was then. `v1` and `v2` are stores of the forms
//! before it, which are refused; of `v2` there is only what that needs. A store's answers
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

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::Seq;
use acpdb_engine::keys::KeyUse;
use acpdb_engine::store::{VerifyOptions, verify_store};
use acpdb_engine::verify::{Verdict, verify_folder};
use acpdb_engine::{Builder, Error, Store};
use acpdb_tests::support::{copy_folder, described, events, fold_digests, golden_ring};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v3")
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

/// The store of `v3`, its complete segments sealed by `acpdb seal` when sealing was new.
fn sealed_fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v3-sealed")
}

#[test]
fn a_sealed_store_of_version_3_says_what_it_said_and_takes_more() {
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

/// The same events under a key: `make_fixture.rs FOLDER encrypted`, as it was then.
#[test]
fn an_encrypted_store_of_version_3_says_what_it_said_and_takes_more() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v3-encrypted");
    let (_folder, path) = copy_of(&fixture);
    assert!(matches!(builder(&path).open(), Err(Error::Locked { .. })));
    let expected = std::fs::read_to_string(fixture.join("expect.txt")).unwrap();
    let digests = std::fs::read_to_string(fixture.join("digests.txt")).unwrap();
    for read_only in [true, false] {
        let builder = builder(&path).keys(golden_ring());
        let store = if read_only { builder.read_only() } else { builder }.open().unwrap();
        assert!(store.is_encrypted() && store.recovery().was_clean, "{:?}", store.recovery());
        assert_eq!(described(&store).unwrap(), expected);
        assert_eq!(fold_digests(&store).unwrap(), digests);
    }
    let store = builder(&path).keys(golden_ring()).open().unwrap();
    let session = StreamInfo::session("opencode", "ses_golden");
    let known = Entry::message("m1", Role::User, "Grüße, mend b.rs").origin("msg:m1");
    let receipt = store.append(&session, vec![known, Entry::message("", Role::User, "go on")]).unwrap();
    assert_eq!((receipt.known_count, receipt.event_count), (1, 1), "{receipt:?}");
    store.close().unwrap();
    let options = VerifyOptions { keys: KeyUse::Ring(golden_ring()), deep: true, ..VerifyOptions::default() };
    assert_eq!(verify_store(&path, &options).unwrap().verdict(), Verdict::Sound);
}

fn builder(path: &Path) -> Builder {
    Store::builder(path).registry(acpdb_hosts::registry())
}

#[test]
fn a_store_of_version_3_says_what_it_said() {
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
fn a_store_of_version_3_folds_to_the_same_digests() {
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
fn a_store_of_version_3_can_be_appended_to() {
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
    let head = head.replace("\"acpdb\": 3", &format!("\"acpdb\": {version}"));
    let check = blake3::hash(head.as_bytes()).to_hex();
    format!("{head},\n  \"check\": \"{check}\"\n}}\n")
}

#[test]
fn a_store_of_a_later_version_is_refused_and_left_alone() {
    let (_folder, path) = copy();
    let file = path.join("acpdb.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(of_version(&text, 3), text, "the test writes the file as the program does");
    std::fs::write(&file, of_version(&text, 4)).unwrap();
    for builder in [builder(&path), builder(&path).read_only(), builder(&path).create(false)] {
        let error = builder.open().unwrap_err();
        assert!(
            matches!(error, Error::NewerFormat { .. }) && error.to_string().contains("version 4"),
            "{error}"
        );
        assert!(error.to_string().contains("update acpdb"), "{error}");
    }
    assert!(matches!(verify_folder(&path, true), Err(Error::NewerFormat { .. })));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), of_version(&text, 4));
    // A version that was scribbled over is damage, not a newer format.
    std::fs::write(&file, text.replace("\"acpdb\": 3", "\"acpdb\": 4")).unwrap();
    let store = builder(&path).open().unwrap();
    assert!(store.recovery().damage.is_some(), "{:?}", store.recovery());
    assert!(described(&store).is_ok(), "what is not damaged stays readable");
    let receipt =
        store.append(&StreamInfo::session("opencode", "new"), vec![Entry::message("", Role::User, "x")]);
    assert!(receipt.is_err(), "a damaged store takes no more");
    drop(store);
    assert_eq!(verify_folder(&path, true).unwrap().verdict(), Verdict::Damaged);
}

/// All files below a folder, with their bytes.
fn bytes_of(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(bytes_of(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

/// The events and sealed segments of version 1 had other bytes under the same number for a while: such a store was called damaged, and new
/// events were put behind the old ones. Version 2 has frames of another form.
#[test]
fn stores_of_former_versions_are_refused_by_name_and_left_alone() {
    for version in [1, 2] {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/v{version}"));
        let (folder, path) = copy_of(&fixture);
        let before = bytes_of(&path);
        let named = format!("format version {version}");
        let refused = |door: &str, error: Error| {
            let said = error.to_string();
            assert!(matches!(error, Error::NotAStore { .. }), "{door}: {said}");
            assert!(said.contains(&named) && said.contains("acpdb import"), "{door}: {said}");
            assert_eq!(bytes_of(&path), before, "{door}");
        };
        let into = folder.path().join("into");
        let salvage = || acpdb_engine::store::salvage(&path, &into, &mut |_| ());
        refused("open", builder(&path).open().unwrap_err());
        refused("read-only open", builder(&path).read_only().open().unwrap_err());
        refused("open of what is there", builder(&path).create(false).open().unwrap_err());
        refused("verify", verify_folder(&path, true).unwrap_err());
        refused("salvage", salvage().unwrap_err());
        assert!(!into.exists());
        // The headers of segments say it, too, where the store file is lost.
        std::fs::remove_file(path.join("acpdb.json")).unwrap();
        let before = bytes_of(&path);
        let said = builder(&path).open().unwrap_err().to_string();
        assert!(said.contains(&named), "{said}");
        assert_eq!(bytes_of(&path), before);
    }
}
