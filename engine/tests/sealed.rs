//! A store whose streams are sealed: what is in its files, who can read it, and what is left of a stream that was shredded.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Payload, Role};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::keys::{FileKeyRing, KeyRing, PassphraseKeyRing};
use acpdb_engine::store::{VerifyOptions, verify_store};
use acpdb_engine::{Builder, Error, Store};
use tempfile::TempDir;

const SECRETS: [&str; 5] =
    ["a prompt for two alone", "zebra-title", "/home/zebra/plan.txt", "zebra-tool", "the output of it"];

struct Place {
    folder: TempDir,
    ring: Arc<dyn KeyRing>,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let ring = FileKeyRing::create(&folder.path().join("store.key")).unwrap();
        Self { folder, ring: Arc::new(ring) }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn builder(&self) -> Builder {
        Store::builder(self.store()).segment_bytes_max(64 << 10)
    }

    fn open(&self) -> Store {
        self.builder().keys(Arc::clone(&self.ring)).open().unwrap()
    }
}

fn session(name: &str) -> StreamInfo {
    StreamInfo { title: Some(format!("{} {name}", SECRETS[1])), ..StreamInfo::session("acpdb", name) }
}

fn entries(name: &str, count: u32) -> Vec<Entry> {
    let mut entries = Vec::new();
    for number in 0..count {
        let id = format!("{name}-{number}");
        let text = format!("{} {id} {}", SECRETS[0], "lorem ipsum ".repeat(40));
        entries.push(Entry::message(&id, Role::User, &text).origin(format!("msg:{id}")));
    }
    let start =
        Entry::tool_started(format!("{name}-call"), SECRETS[3], format!(r#"{{"path":"{}"}}"#, SECRETS[2]));
    entries.push(start.origin(format!("call:{name}")));
    entries.push(
        Entry::tool_completed(format!("{name}-call"), SECRETS[4]).origin(format!("call:{name}:finish")),
    );
    entries
}

fn key_name(stream: StreamId) -> String {
    let digits: String = stream.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("keys/{digits}.key")
}

fn labels(store: &Store) -> Vec<&'static str> {
    store.events(Seq(1), Seq::MAX).unwrap().map(|event| event.unwrap().event.payload.label()).collect()
}

/// All bytes below a folder, file by file.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found
}

fn assert_nothing_in_plain(folder: &Path) {
    for (path, bytes) in files(folder) {
        for secret in SECRETS {
            let holds = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
            assert!(!holds, "{} holds {secret:?}", path.display());
        }
    }
}

fn texts(store: &Store, name: &StreamInfo) -> Result<Vec<String>, Error> {
    let mut texts = Vec::new();
    for recorded in store.stream_events(name.id(), Seq(1), Seq::MAX)? {
        let recorded = recorded?;
        if let Payload::MessageRecorded(message) = &recorded.event.payload {
            let bytes = store.body(message.parts[0].body.id(recorded.seq))?;
            texts.push(String::from_utf8(bytes).unwrap());
        }
    }
    Ok(texts)
}

#[test]
fn what_is_recorded_is_read_with_the_key_and_nothing_of_it_is_in_the_files() {
    let place = Place::new();
    let (one, two) = (session("one"), session("two"));
    {
        let store = place.open();
        assert!(store.is_encrypted());
        let _ = store.append(&one, entries("one", 40)).unwrap();
        let _ = store.append(&two, entries("two", 2)).unwrap();
        for number in 0..80 {
            let _ = store.append(&one, entries(&format!("more-{number}"), 3)).unwrap();
        }
        let _ = store.seal(true).unwrap();
        let _ = store.append(&two, entries("late", 1)).unwrap();
        assert_nothing_in_plain(&place.store());
    }
    assert_nothing_in_plain(&place.store());
    let store = place.open();
    assert_eq!(texts(&store, &one).unwrap().len(), 40 + 240);
    assert!(texts(&store, &two).unwrap()[0].starts_with("a prompt for two alone two-0 lorem"));
    assert_eq!(store.append(&two, entries("two", 2)).unwrap().event_count, 0, "what is there is recognised");
    let report =
        verify_store(&place.store(), &VerifyOptions { deep: true, ..VerifyOptions::default() }).unwrap();
    assert_eq!(report.violations, Vec::new());
    drop(store);
    assert_nothing_in_plain(&place.store());
}

#[test]
fn without_its_key_a_store_is_verified_sealed_and_copied_and_reading_says_what_is_missing() {
    let place = Place::new();
    let one = session("one");
    let (leaf, labels) = {
        let store = place.open();
        let _ = store.append(&one, entries("one", 30)).unwrap();
        (store.leaf(Seq(3)).unwrap().unwrap(), labels(&store))
    };
    assert!(labels.contains(&"tool_call_finished"), "{labels:?}");
    let blind = place.builder().open().unwrap();
    assert_eq!(blind.leaf(Seq(3)).unwrap().unwrap(), leaf, "a proof needs no key");
    let _ = blind.seal(true).unwrap();
    let copy = place.folder.path().join("copy");
    let backup = blind.backup(&copy, &mut |_| {}).unwrap();
    assert_eq!(backup.report.violations, Vec::new());
    assert_nothing_in_plain(&copy);
    for error in [
        texts(&blind, &one).unwrap_err(),
        blind.view(one.id()).map(drop).unwrap_err(),
        blind.append(&one, entries("one", 31)).map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Locked { .. }), "{error:?}");
        assert!(error.to_string().contains("key"), "{error}");
    }
    drop(blind);
    let report =
        verify_store(&place.store(), &VerifyOptions { deep: true, ..VerifyOptions::default() }).unwrap();
    assert_eq!(report.violations, Vec::new());
    // The copy has no keys: with the ring it is as closed as without.
    let opened = Store::builder(&copy).keys(Arc::clone(&place.ring)).open();
    assert!(matches!(opened.map(drop).unwrap_err(), Error::Locked { .. }));
    assert_eq!(place.open().backup_keys(&copy).unwrap(), 2);
    assert_eq!(
        texts(&Store::builder(&copy).keys(Arc::clone(&place.ring)).open().unwrap(), &one).unwrap().len(),
        30
    );
}

#[test]
fn a_wrong_a_lost_and_a_readable_key_are_refused_with_a_reason() {
    let place = Place::new();
    let one = session("one");
    let _ = place.open().append(&one, entries("one", 1)).unwrap();
    let path = place.folder.path().join("other.key");
    let other: Arc<dyn KeyRing> = Arc::new(FileKeyRing::create(&path).unwrap());
    let refused = |ring: Arc<dyn KeyRing>| {
        let error = place.builder().keys(ring).open().map(drop).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error:?}");
        error.to_string()
    };
    assert!(refused(other).contains("other.key"));
    assert!(refused(Arc::new(PassphraseKeyRing::new("not the passphrase").unwrap())).contains("passphrase"));
    assert!(PassphraseKeyRing::new("short").is_err());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(FileKeyRing::open(&path).unwrap_err().to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(FileKeyRing::open(&path).is_ok());
    }
    std::fs::write(&path, "acpdb-key-1 zz").unwrap();
    assert!(FileKeyRing::open(&path).is_err());
    // A plain store is not taken for the encrypted one that was meant.
    let plain = place.folder.path().join("plain");
    drop(Store::builder(&plain).open().unwrap());
    let error = Store::builder(&plain).keys(Arc::clone(&place.ring)).open().map(drop).unwrap_err();
    assert!(error.to_string().contains("not encrypted"), "{error}");
    let key = key_name(one.id());
    std::fs::remove_file(place.store().join(&key)).unwrap();
    let store = place.open();
    let error = texts(&store, &one).unwrap_err();
    // The store is open, so this is damage of one stream: what is said names the file.
    assert!(matches!(error, Error::Corrupt { .. }) && error.to_string().contains(&key), "{error}");
    // A second key would make the first one useless, should it be found again.
    assert!(store.append(&one, entries("more", 1)).is_err());
    assert!(!place.store().join(&key).exists());
}

#[test]
fn a_passphrase_opens_what_it_closed() {
    let place = Place::new();
    let ring = || -> Arc<dyn KeyRing> { Arc::new(PassphraseKeyRing::new("correct horse battery").unwrap()) };
    let one = session("one");
    let _ = place.builder().keys(ring()).open().unwrap().append(&one, entries("one", 2)).unwrap();
    assert_nothing_in_plain(&place.store());
    assert_eq!(texts(&place.builder().keys(ring()).open().unwrap(), &one).unwrap().len(), 2);
}

#[test]
fn a_shredded_stream_is_gone_from_the_store_and_from_copies_and_its_proofs_hold() {
    let place = Place::new();
    let (one, two) = (session("one"), session("two"));
    let store = place.open();
    let _ = store.append(&one, entries("one", 30)).unwrap();
    let _ = store.append(&two, entries("two", 3)).unwrap();
    let _ = store.seal(true).unwrap();
    let _ = store.append(&one, entries("late", 3)).unwrap();
    let leaf = store.leaf(Seq(3)).unwrap().unwrap();
    let yesterday = place.folder.path().join("yesterday");
    let _ = store.backup(&yesterday, &mut |_| {}).unwrap();
    let wrapped = std::fs::read(place.store().join(key_name(one.id()))).unwrap()[72..144].to_vec();
    let other = place.open();
    assert_eq!(texts(&other, &one).unwrap().len(), 33);
    let report = store.shred(one.id(), "tester", "asked to").unwrap();
    assert!(report.events > 33 && report.figures.blocks > 33, "{report:?}");
    assert_nothing_in_plain(&place.store());
    for (path, bytes) in files(&place.store()).into_iter().chain(files(&yesterday)) {
        assert!(!bytes.windows(wrapped.len()).any(|part| part == wrapped), "{}", path.display());
    }
    for store in [&store, &other, &place.open()] {
        assert_eq!(texts(store, &one).unwrap(), Vec::<String>::new());
        assert_eq!(texts(store, &two).unwrap().len(), 3);
        assert_eq!(store.leaf(Seq(3)).unwrap().unwrap(), leaf);
        let error = store.append(&one, entries("again", 1)).map(drop).unwrap_err();
        assert!(error.to_string().contains("shredded"), "{error}");
    }
    let report =
        verify_store(&place.store(), &VerifyOptions { deep: true, ..VerifyOptions::default() }).unwrap();
    assert_eq!(report.violations, Vec::new());
    // Yesterday's copy, with today's keys.
    assert_eq!(store.backup_keys(&yesterday).unwrap(), 3);
    let yesterday = Store::builder(&yesterday).keys(Arc::clone(&place.ring)).open().unwrap();
    assert_eq!(texts(&yesterday, &one).unwrap(), Vec::<String>::new());
    assert_eq!(texts(&yesterday, &two).unwrap().len(), 3);
}

#[test]
fn rotated_keys_open_with_the_new_ring_alone() {
    let place = Place::new();
    let one = session("one");
    let _ = place.open().append(&one, entries("one", 2)).unwrap();
    let path = place.folder.path().join("new.key");
    let new: Arc<dyn KeyRing> = Arc::new(FileKeyRing::create(&path).unwrap());
    assert_eq!(place.open().rotate_keys(&new).unwrap(), 2);
    assert!(place.builder().keys(Arc::clone(&place.ring)).open().is_err());
    assert_eq!(texts(&place.builder().keys(new).open().unwrap(), &one).unwrap().len(), 2);
}
