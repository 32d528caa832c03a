//! A store whose streams are sealed: the contents of its files, the rings that read it, and the remains of a shredded stream.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acpdb_engine::codec::KeyFile;
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Payload, Role};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::keys::{FileKeyRing, KeyRing, PassphraseKeyRing, RawKeyRing};
use acpdb_engine::store::{VerifyOptions, verify_store};
use acpdb_engine::verify::{Verdict, verify_folder};
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
    // The copy has no keys: even the ring does not open it.
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
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(FileKeyRing::open(&path).unwrap_err().to_string().contains("chmod 600"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(FileKeyRing::open(&path).is_ok());
    std::fs::write(&path, "acpdb-key-1 zz").unwrap();
    assert!(FileKeyRing::open(&path).is_err());
    // A plain store is not opened in place of the encrypted store that was meant.
    let plain = place.folder.path().join("plain");
    drop(Store::builder(&plain).open().unwrap());
    let error = Store::builder(&plain).keys(Arc::clone(&place.ring)).open().map(drop).unwrap_err();
    assert!(error.to_string().contains("not encrypted"), "{error}");
    let key = key_name(one.id());
    std::fs::remove_file(place.store().join(&key)).unwrap();
    let store = place.open();
    let error = texts(&store, &one).unwrap_err();
    // The store is open, so this is damage of one stream, and the message names the file.
    assert!(matches!(error, Error::Corrupt { .. }) && error.to_string().contains(&key), "{error}");
    // A second key would make the first one useless, should it be found again.
    assert!(store.append(&one, entries("more", 1)).is_err());
    assert!(!place.store().join(&key).exists());
}

/// A key that is kept elsewhere than in a file is the same ring as a file with it.
#[test]
fn a_raw_key_opens_what_the_same_bytes_in_a_file_closed() {
    let place = Place::new();
    let one = session("one");
    let _ = place.open().append(&one, entries("one", 2)).unwrap();
    let text = std::fs::read_to_string(place.folder.path().join("store.key")).unwrap();
    let digits = text.trim_end().strip_prefix("acpdb-key-1 ").unwrap();
    let digit = |at: usize| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap();
    let key: [u8; 32] = std::array::from_fn(digit);
    let opened = |key: &[u8; 32]| place.builder().keys(Arc::new(RawKeyRing::new("a vault", key))).open();
    assert_eq!(texts(&opened(&key).unwrap(), &one).unwrap().len(), 2);
    let error = opened(&[7; 32]).map(drop).unwrap_err().to_string();
    assert!(error.contains("a vault"), "{error}");
    assert!(!format!("{:?}", RawKeyRing::new("a vault", &[77; 32])).contains("77"));
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

/// No program writes such a file. If it were wrapped anew, it could lose the keys that only one of the rings opens.
#[test]
fn a_file_whose_keys_are_of_two_rings_is_refused_and_left_as_it_is() {
    let place = Place::new();
    let one = session("one");
    let _ = place.open().append(&one, entries("one", 3)).unwrap();
    assert_eq!(place.open().rotate_data_keys(Some(one.id())).unwrap(), 1);
    let path = place.store().join(key_name(one.id()));
    let second = FileKeyRing::create(&place.folder.path().join("second.key")).unwrap();
    let second: Arc<dyn KeyRing> = Arc::new(second);
    let store = place.open().id();
    let read = || KeyFile::decode(&std::fs::read(&path).unwrap(), store, one.id()).unwrap();
    let by_first = read();
    assert_eq!(by_first.keys.len(), 2);
    let before = files(&place.store());
    let _ = place.open().rotate_keys(&second).unwrap();
    let by_second = read();
    for (path, bytes) in before {
        std::fs::write(path, bytes).unwrap();
    }
    let mut mixed = by_first;
    mixed.keys[0] = by_second.keys[0].clone();
    std::fs::write(&path, mixed.encode().unwrap()).unwrap();
    let error = place.open().rotate_keys(&second).unwrap_err();
    assert!(error.to_string().contains("does not open it"), "{error}");
    assert_eq!(read(), mixed);
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

/// A process that was open across the change wrapped the keys of new sessions with the old ring, and acknowledged them: with the new
/// ring alone they were lost.
#[test]
fn a_handle_with_the_old_ring_makes_no_more_keys() {
    let place = Place::new();
    let (one, two) = (session("one"), session("two"));
    let live = place.open();
    let _ = live.append(&one, entries("one", 1)).unwrap();
    let new: Arc<dyn KeyRing> = Arc::new(FileKeyRing::create(&place.folder.path().join("new.key")).unwrap());
    let _ = place.open().rotate_keys(&new).unwrap();
    for begun in [two.clone(), about("zebra", "three")] {
        assert!(matches!(live.append(&begun, entries("two", 1)), Err(Error::Locked { .. })), "{begun:?}");
    }
    // The keys that the handle has cached are still valid for their sessions.
    let _ = live.append(&one, entries("more", 1)).unwrap();
    drop(live);
    let store = place.builder().keys(new).open().unwrap();
    let _ = store.append(&two, entries("two", 1)).unwrap();
    assert_eq!((texts(&store, &one).unwrap().len(), texts(&store, &two).unwrap().len()), (2, 1));
}

/// A session is lost with the file of its key, though each sealed byte is unchanged: `verify` said that all is sound.
#[test]
fn a_lost_key_is_found_without_the_ring() {
    let place = Place::new();
    let (one, two) = (session("one"), session("two"));
    for name in [&one, &two] {
        let _ = place.open().append(name, entries(&name.name, 2)).unwrap();
    }
    let verdict = || verify_folder(&place.store(), false).unwrap();
    assert_eq!(verdict().verdict(), Verdict::Sound);
    let path = place.store().join(key_name(one.id()));
    let sound = std::fs::read(&path).unwrap();
    let mut flipped = sound.clone();
    flipped[20] ^= 1;
    for bytes in [None, Some(flipped)] {
        match bytes {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let report = verdict();
        assert_eq!(report.verdict(), Verdict::Damaged);
        let lost: Vec<_> = report.violations.iter().map(|lost| (&lost.path, lost.seq_first)).collect();
        assert!(matches!(lost.as_slice(), [(at, Some(_))] if **at == path), "{lost:?}");
    }
    std::fs::write(&path, sound).unwrap();
    assert_eq!(verdict().verdict(), Verdict::Sound);
}

const PERSON: &str = "zebra of the meadow";

fn about(subject: &str, name: &str) -> StreamInfo {
    StreamInfo { subject: Some(subject.to_owned()), ..session(name) }
}

/// The wrapped keys in a file of any version that can be told from other bytes.
fn wrapped_keys(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).unwrap();
    let end = bytes.len() - 4;
    bytes[72..end]
        .windows(32)
        .step_by(16)
        .filter(|part| part.iter().all(|byte| *byte != 0))
        .map(<[u8]>::to_vec)
        .collect()
}

#[test]
fn all_sessions_about_a_subject_are_shredded_as_one_and_nothing_else_is() {
    let place = Place::new();
    let (one, two, other, plain) =
        (about(PERSON, "one"), about(PERSON, "two"), about("walrus", "other"), session("plain"));
    let agent = StreamInfo { parent: Some((one.id(), None)), ..session("agent") };
    let store = place.open();
    for (info, name) in
        [(&one, "one"), (&two, "two"), (&other, "other"), (&plain, "plain"), (&agent, "agent")]
    {
        let _ = store.append(info, entries(name, 12)).unwrap();
    }
    let _ = store.seal(true).unwrap();
    let _ = store.append(&session("two"), entries("late", 2)).unwrap();
    assert_nothing_in_plain(&place.store());
    for (path, bytes) in files(&place.store()) {
        for name in [PERSON, "walrus"] {
            let holds = bytes.windows(name.len()).any(|part| part == name.as_bytes());
            assert!(!holds, "{} holds {name:?}", path.display());
        }
    }
    let told = |store: &Store| {
        store.subjects().unwrap().into_iter().map(|it| (it.name, it.streams.len())).collect::<Vec<_>>()
    };
    assert_eq!(told(&store), [("walrus".to_owned(), 1), (PERSON.to_owned(), 3)]);
    assert_eq!(
        store.subject_of(agent.id()).unwrap().as_deref(),
        Some(PERSON),
        "as the session that started it"
    );
    assert_eq!(store.subject_of(plain.id()).unwrap(), None);
    let leaves: Vec<_> = (1..=40).map(|seq| store.leaf(Seq(seq)).unwrap().unwrap()).collect();
    let yesterday = place.folder.path().join("yesterday");
    let _ = store.backup(&yesterday, &mut |_| {}).unwrap();
    let beside = place.open();
    assert_eq!(texts(&beside, &one).unwrap().len(), 12);
    let mut wanted: Vec<_> = vec![one.id(), two.id(), agent.id()];
    wanted.sort_unstable();
    assert_eq!(store.streams_about(PERSON).unwrap(), wanted);
    let keys: Vec<Vec<u8>> = files(&place.store().join("keys"))
        .iter()
        .filter(|(path, _)| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.ends_with(".subject") || wanted.iter().any(|stream| name.starts_with(&stream.to_hex()))
        })
        .flat_map(|(path, _)| wrapped_keys(path))
        .collect();
    assert!(keys.len() > 8, "{}", keys.len());
    let kept = wrapped_keys(&place.store().join(key_name(other.id())));

    let report = store.shred_subject(PERSON, "tester", "asked to").unwrap();
    assert!(report.recorded.is_some() && report.figures.blocks > 36, "{report:?}");
    assert_eq!(report.streams.iter().map(|it| it.stream).collect::<Vec<_>>(), wanted);
    assert_nothing_in_plain(&place.store());
    let walrus = files(&place.store().join("keys"))
        .into_iter()
        .find(|(path, bytes)| path.extension().is_some_and(|end| end == "subject") && bytes[64] != 0);
    let spared: Vec<Vec<u8>> = wrapped_keys(&walrus.unwrap().0).into_iter().chain(kept).collect();
    for (path, bytes) in files(&place.store()).into_iter().chain(files(&yesterday)) {
        for key in keys.iter().filter(|key| !spared.contains(key)) {
            assert!(!bytes.windows(key.len()).any(|part| part == key), "{}", path.display());
        }
    }
    for store in [&store, &beside, &place.open()] {
        for gone in [&one, &two, &agent] {
            assert!(store.is_shredded(gone.id()).unwrap());
            assert_eq!(texts(store, gone).unwrap(), Vec::<String>::new());
            assert!(matches!(
                store.append(gone, entries("again", 1)).map(drop).unwrap_err(),
                Error::Erased { .. }
            ));
        }
        assert_eq!((texts(store, &other).unwrap().len(), texts(store, &plain).unwrap().len()), (12, 12));
        for (seq, leaf) in (1..).zip(&leaves) {
            assert_eq!(store.leaf(Seq(seq)).unwrap().as_ref(), Some(leaf));
        }
        assert_eq!(told(store), [("walrus".to_owned(), 1)]);
        // Nothing more is recorded about the subject, under any session's name.
        let error = store.append(&about(PERSON, "new"), entries("new", 1)).map(drop).unwrap_err();
        assert!(error.to_string().contains("subject was shredded"), "{error}");
        assert!(matches!(store.shred_subject(PERSON, "t", "r").unwrap_err(), Error::Erased { .. }));
        let error = store.shred_subject("walruss", "t", "r").unwrap_err();
        assert!(error.to_string().contains("did you mean walrus?"), "{error}");
    }
    let report =
        verify_store(&place.store(), &VerifyOptions { deep: true, ..VerifyOptions::default() }).unwrap();
    assert_eq!(report.violations, Vec::new());
    // Yesterday's copy, with today's keys.
    let _ = store.backup_keys(&yesterday).unwrap();
    let yesterday = Store::builder(&yesterday).keys(Arc::clone(&place.ring)).open().unwrap();
    for gone in [&one, &two, &agent] {
        assert_eq!(texts(&yesterday, gone).unwrap(), Vec::<String>::new());
    }
    assert_eq!(texts(&yesterday, &other).unwrap().len(), 12);
}

#[test]
fn a_subject_is_named_when_a_session_begins_and_stays() {
    let place = Place::new();
    let (one, plain) = (about(PERSON, "one"), session("plain"));
    let store = place.open();
    let _ = store.append(&one, entries("one", 2)).unwrap();
    let _ = store.append(&plain, entries("plain", 2)).unwrap();
    assert_eq!(store.append(&one, entries("one", 3)).unwrap().event_count, 1, "named again");
    let _ = store.append(&session("one"), entries("more", 1)).unwrap();
    for (info, words) in [
        (about("walrus", "one"), "about another subject"),
        (about("walrus", "plain"), "begun without a subject"),
        (about("", "new"), "no name of a subject"),
        (about(" x", "new"), "no name of a subject"),
        (about("a\nb", "new"), "no name of a subject"),
        (StreamInfo { subject: Some("x".to_owned()), ..StreamInfo::project("p") }, "only a session"),
    ] {
        let error = store.append(&info, entries("x", 1)).map(drop).unwrap_err();
        assert!(matches!(error, Error::Subject { .. }) && error.to_string().contains(words), "{error}");
    }
    let long = about(&"x".repeat(257), "new");
    assert!(matches!(store.append(&long, entries("x", 1)).unwrap_err(), Error::TooLarge { .. }));
    assert_eq!(store.subjects().unwrap().len(), 1, "what was refused leaves nothing");
    // One session alone can be shredded; the subject goes on.
    let two = about(PERSON, "two");
    let _ = store.append(&two, entries("two", 2)).unwrap();
    let _ = store.shred(one.id(), "tester", "asked to").unwrap();
    assert_eq!(texts(&store, &two).unwrap().len(), 2);
    let _ = store.append(&about(PERSON, "three"), entries("three", 1)).unwrap();
    assert_eq!(store.streams_about(PERSON).unwrap().len(), 2);
    // Another ring wraps the subject's key, which still wraps the keys of its sessions.
    let path = place.folder.path().join("new.key");
    let new: Arc<dyn KeyRing> = Arc::new(FileKeyRing::create(&path).unwrap());
    assert_eq!(store.rotate_keys(&new).unwrap(), 3, "the subject's, the plain session's, the store's own");
    drop(store);
    assert!(place.builder().keys(Arc::clone(&place.ring)).open().is_err());
    let store = place.builder().keys(new).open().unwrap();
    assert_eq!(texts(&store, &two).unwrap().len(), 2);
    assert_eq!(store.subject_of(two.id()).unwrap().as_deref(), Some(PERSON));
    for stream in [one.id(), two.id()] {
        let _ = store.shred(stream, "tester", "asked to");
    }
    let _ = store.shred(about(PERSON, "three").id(), "tester", "asked to").unwrap();
    // Its sessions went one by one; its name goes with its key, on record.
    let report = store.shred_subject(PERSON, "tester", "asked to").unwrap();
    assert!(report.recorded.is_some() && report.streams.is_empty(), "{report:?}");
    assert!(store.subjects().unwrap().is_empty());
    let plain = place.folder.path().join("plain");
    let error = Store::builder(&plain).open().unwrap().append(&two, entries("two", 1)).map(drop).unwrap_err();
    assert!(error.to_string().contains("is not encrypted"), "{error}");
}

/// Sessions of hosts that cannot name a subject had none, and no erasure of a subject reached them.
#[test]
fn new_sessions_that_name_no_subject_are_about_the_one_that_the_store_was_opened_with() {
    let place = Place::new();
    let store = place.open();
    let _ = store.append(&session("before"), entries("before", 1)).unwrap();
    drop(store);
    let open = |name: &str| place.builder().keys(Arc::clone(&place.ring)).subject(name).open();
    let store = open(PERSON).unwrap();
    let child =
        |name: &str, parent: &StreamInfo| StreamInfo { parent: Some((parent.id(), None)), ..session(name) };
    let project = StreamInfo::project("p");
    for (info, expected) in [
        (session("before"), None),
        (session("new"), Some(PERSON)),
        (about("walrus", "other"), Some("walrus")),
        (child("other-agent", &about("walrus", "other")), Some("walrus")),
        (child("new-agent", &session("new")), Some(PERSON)),
        // A session whose parent has no subject, or comes later, is like any new session.
        (child("before-agent", &session("before")), Some(PERSON)),
        (child("early-agent", &session("late")), Some(PERSON)),
        (session("late"), Some(PERSON)),
        (project, None),
    ] {
        let entries = if info.name == "p" { Vec::new() } else { entries(&info.name, 1) };
        let _ = store.append(&info, entries).unwrap();
        assert_eq!(store.subject_of(info.id()).unwrap().as_deref(), expected, "{}", info.name);
    }
    assert_nothing_in_plain(&place.store());
    let _ = store.shred_subject(PERSON, "tester", "asked to").unwrap();
    let error = store.append(&session("again"), entries("again", 1)).map(drop).unwrap_err();
    assert!(error.to_string().contains("subject was shredded"), "{error}");
    let _ = store.append(&session("before"), entries("before", 2)).unwrap();
    drop(store);
    for name in ["", " x", "a\nb"] {
        assert!(matches!(open(name).unwrap_err(), Error::Subject { .. }), "{name:?}");
    }
    assert!(matches!(open(&"x".repeat(257)).unwrap_err(), Error::TooLarge { .. }));
    // A plain store is refused, and none is made.
    let plain = place.folder.path().join("plain");
    let opened = || Store::builder(&plain).subject(PERSON).open().unwrap_err();
    assert!(matches!(opened(), Error::NotAStore { .. }));
    assert!(!plain.join("acpdb.json").exists());
    drop(Store::builder(&plain).open().unwrap());
    assert!(opened().to_string().contains("is not encrypted"));
}

#[test]
fn a_session_gets_another_key_and_all_of_it_stays_readable() {
    let place = Place::new();
    let (one, two) = (session("one"), about(PERSON, "two"));
    let numbers = |info: &StreamInfo| {
        let bytes = std::fs::read(place.store().join(key_name(info.id()))).unwrap();
        u32::from_le_bytes(bytes[12..16].try_into().unwrap())
    };
    let store = place.open();
    let beside = place.open();
    let _ = store.append(&one, entries("one", 6)).unwrap();
    let _ = beside.append(&two, entries("two", 6)).unwrap();
    let _ = beside.append(&one, entries("one-beside", 2)).unwrap();
    assert_eq!(store.rotate_data_keys(None).unwrap(), 2);
    assert_eq!(store.rotate_data_keys(Some(one.id())).unwrap(), 1);
    assert_eq!((numbers(&one), numbers(&two)), (3, 2));
    for (store, name) in [(&store, "own"), (&beside, "beside")] {
        let _ = store.append(&one, entries(name, 2)).unwrap();
        let _ = store.append(&two, entries(&format!("{name}-two"), 2)).unwrap();
    }
    let _ = store.seal(true).unwrap();
    for store in [&store, &beside, &place.open()] {
        assert_eq!((texts(store, &one).unwrap().len(), texts(store, &two).unwrap().len()), (12, 10));
    }
    assert_nothing_in_plain(&place.store());
    // A folder of keys that is older than the log lacks the key of later events, and the error says so.
    let old = place.folder.path().join("old");
    let _ = store.backup(&old, &mut |_| {}).unwrap();
    std::fs::create_dir(old.join("keys")).unwrap();
    let own = format!("keys/{}.key", "0".repeat(32));
    std::fs::copy(place.store().join(&own), old.join(&own)).unwrap();
    let bytes = std::fs::read(place.store().join(key_name(two.id()))).unwrap();
    std::fs::write(old.join(key_name(one.id())), bytes).unwrap();
    let opened = Store::builder(&old).keys(Arc::clone(&place.ring)).open().unwrap();
    assert!(texts(&opened, &one).is_err(), "a key of another stream");
    // All keys of a stream go at once.
    let file = std::fs::read(place.store().join(key_name(one.id()))).unwrap();
    assert_eq!(file[64], 3);
    let keys: Vec<Vec<u8>> = (0..3).map(|number| file[96 + number * 80..][..72].to_vec()).collect();
    let _ = store.shred(one.id(), "tester", "asked to").unwrap();
    for (path, bytes) in files(&place.store()) {
        for key in &keys {
            assert!(!bytes.windows(key.len()).any(|part| part == key), "{}", path.display());
        }
    }
    assert_eq!(texts(&place.open(), &one).unwrap(), Vec::<String>::new());
    assert!(matches!(store.rotate_data_keys(Some(one.id())).unwrap_err(), Error::Erased { .. }));
    assert_eq!(store.rotate_data_keys(None).unwrap(), 1, "the one that is left");
    let path = place.folder.path().join("new.key");
    let new: Arc<dyn KeyRing> = Arc::new(FileKeyRing::create(&path).unwrap());
    let _ = store.rotate_keys(&new).unwrap();
    assert_eq!(texts(&place.builder().keys(new).open().unwrap(), &two).unwrap().len(), 10);
}

/// A subject that another handle shredded is no key that a rotation cannot open, and no session begins about it.
#[test]
fn a_subject_that_another_handle_shredded_does_not_hold_up_a_rotation() {
    let place = Place::new();
    let (one, other) = (place.open(), place.open());
    let _ = other.append(&about(PERSON, "one"), entries("one", 2)).unwrap();
    let _ = one.shred_subject(PERSON, "tester", "asked to").unwrap();
    let path = place.folder.path().join("new.key");
    let new: Arc<dyn KeyRing> = Arc::new(FileKeyRing::create(&path).unwrap());
    assert_eq!(other.rotate_keys(&new).unwrap(), 1, "the store's own");
    let error = place.builder().keys(new).open().unwrap().append(&about(PERSON, "two"), entries("two", 1));
    assert!(matches!(error.map(drop).unwrap_err(), Error::Erased { .. }));
}

/// Of events that come while their subject is shredded the key goes before that is on record: no damage.
#[test]
fn a_text_whose_key_is_gone_before_that_is_on_record_is_no_damage() {
    let place = Place::new();
    let one = about(PERSON, "one");
    let store = place.open();
    let _ = store.append(&one, entries("one", 1)).unwrap();
    let events = store.events(Seq(1), Seq::MAX).unwrap().map(Result::unwrap);
    let mut bodies = events.filter_map(|recorded| match &recorded.event.payload {
        Payload::MessageRecorded(message) => Some(message.parts[0].body.id(recorded.seq)),
        _ => None,
    });
    let body = bodies.next().unwrap();
    let copy = place.folder.path().join("copy");
    let _ = store.backup(&copy, &mut |_| ()).unwrap();
    let _ = store.backup_keys(&copy).unwrap();
    let _ = store.shred_subject(PERSON, "tester", "asked to").unwrap();
    std::fs::copy(place.store().join(key_name(one.id())), copy.join(key_name(one.id()))).unwrap();
    let copy = Store::builder(&copy).keys(Arc::clone(&place.ring)).open().unwrap();
    assert!(copy.event(body.seq).unwrap().unwrap().event.payload.is_shredded());
    let error = copy.body(body).unwrap_err();
    assert!(matches!(error, Error::Erased { lost: false, .. }), "{error}");
}

/// A follower passed over a commit whose key it could not read just then. The next call hands it out now.
#[test]
fn a_commit_whose_key_cannot_be_read_now_is_handed_out_later() {
    let place = Place::new();
    let store = place.open();
    let mut subscription = store.subscribe(store.head().unwrap().next());
    let one = StreamInfo::session("acpdb", "one");
    let receipt = place.open().append(&one, entries("one", 1)).unwrap();
    let (key, aside) = (place.store().join(key_name(one.id())), place.folder.path().join("aside"));
    std::fs::rename(&key, &aside).unwrap();
    std::fs::create_dir(&key).unwrap();
    for _ in 0..2 {
        let error = subscription.next_within(Duration::ZERO).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error:?}");
    }
    std::fs::remove_dir(&key).unwrap();
    std::fs::rename(&aside, &key).unwrap();
    let commit = subscription.next_within(Duration::ZERO).unwrap().unwrap();
    assert_eq!(commit.last_seq(), receipt.last_seq);
    assert!(subscription.next_within(Duration::ZERO).unwrap().is_none());
}

/// A handle kept frames as they were read while a key's file could not be opened, so the session stayed locked for as long as the handle lived.
#[test]
fn keys_that_could_not_be_read_for_a_moment_are_read_again() {
    let place = Place::new();
    let store = place.open();
    let one = StreamInfo::session("acpdb", "one");
    let receipt = place.open().append(&one, entries("one", 1)).unwrap();
    let (key, aside) = (place.store().join(key_name(one.id())), place.folder.path().join("aside"));
    std::fs::rename(&key, &aside).unwrap();
    std::fs::create_dir(&key).unwrap();
    assert!(store.view(one.id()).is_err());
    assert!(store.event(receipt.last_seq).is_err());
    assert!(store.events(Seq(1), Seq::MAX).unwrap().any(|event| event.is_err()));
    std::fs::remove_dir(&key).unwrap();
    std::fs::rename(&aside, &key).unwrap();
    assert!(store.event(receipt.last_seq).unwrap().is_some());
    assert!(store.events(Seq(1), Seq::MAX).unwrap().all(|event| event.is_ok()));
    assert!(store.view(one.id()).is_ok());
    assert_eq!(texts(&store, &one).unwrap(), texts(&place.open(), &one).unwrap());
}

/// Beside a rotation of the ring, a deep check with the ring of before called the sessions damaged that were wrapped by the new one already.
#[test]
fn a_deep_check_beside_a_rotation_calls_nothing_damaged() {
    let place = Place::new();
    let store = place.open();
    let (one, two) = (session("one"), session("two"));
    let _ = store.append(&one, entries("one", 1)).unwrap();
    let _ = store.append(&two, entries("two", 1)).unwrap();
    let keys = [StreamId::STORE, one.id()].map(|stream| place.store().join(key_name(stream)));
    let before = [0, 1].map(|at| std::fs::read(&keys[at]).unwrap());
    let _ = store.rotate_keys(&(Arc::new(RawKeyRing::new("new", &[9; 32])) as Arc<dyn KeyRing>)).unwrap();
    drop(store);
    (0..2).for_each(|at| std::fs::write(&keys[at], &before[at]).unwrap());
    let options =
        VerifyOptions { deep: true, keys: Some(Arc::clone(&place.ring)), ..VerifyOptions::default() };
    let report = verify_store(&place.store(), &options).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    assert!(report.not_proven.iter().any(|it| it.contains("another key ring")), "{report:#?}");
}
