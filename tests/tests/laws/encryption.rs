//! An encrypted store answers as a plain one, and its folder says nothing without the key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, Fact, MemoryEntry, StreamInfo};
use acpdb_engine::event::{MemoryKind, Role};
use acpdb_engine::keys::{KeyRing, KeyUse, PassphraseKeyRing, RawKeyRing, Rotated};
use acpdb_engine::store::{VerifyOptions, rotate_key, salvage_with, verify_store};
use acpdb_engine::verify::{Verdict, verify_folder};
use acpdb_engine::{Builder, Error, Store};
use acpdb_tests::support::{described, fixed, fold_digests};
use tempfile::TempDir;

/// Words that no file may have: of texts, paths, names, tools, calls, memory, the project, the title and the host.
const WORDS: [&str; 12] = [
    "marzipan",
    "lemonade",
    "/srv/walnut",
    "hazelnut.rs",
    "peruse",
    "call_cinnamon",
    "saffron",
    "nutmeg",
    "Ginger title",
    "ses_caraway",
    "opencode",
    "cardamom",
];

fn ring(byte: u8) -> Arc<dyn KeyRing> {
    Arc::new(RawKeyRing::new(format!("ring {byte}"), &[byte; 32]))
}

fn builder(folder: &Path) -> Builder {
    let builder = Store::builder(folder).registry(acpdb_hosts::registry()).segment_bytes_max(4096 + 6500);
    fixed(builder, 7)
}

fn session() -> StreamInfo {
    StreamInfo {
        project: Some("cardamom".to_owned()),
        cwd: Some("/srv/walnut".to_owned()),
        title: Some("Ginger title".to_owned()),
        ..StreamInfo::session("opencode", "ses_caraway")
    }
}

/// Calls, messages, acts, memory and a revision, over several segments; the same in every store.
fn fill(store: &Store) {
    let _ =
        store.append(&session(), vec![Entry::message("m1", Role::User, "a word: marzipan").origin("msg:1")]);
    let mut calls = Vec::new();
    for number in 0..30 {
        let name = format!("call_cinnamon_{number}");
        let text = format!("lemonade in line {}\n", number % 3).repeat(4 + number % 20);
        let entries = vec![
            Entry::step(format!("step_{number}")),
            Entry::tool_started(
                &name,
                "peruse",
                format!(r#"{{"filePath":"/srv/walnut/hazelnut.rs","n":{number}}}"#),
            )
            .origin(format!("{name}:start")),
            Entry::tool_completed(&name, text).origin(format!("{name}:end")),
        ];
        let receipt = store.append(&session(), entries).unwrap();
        calls.push(receipt.items[1].unwrap());
    }
    let target = |at: usize| Target::Item(calls[at]);
    let stream = session().id();
    let _ = store.context(stream, ContextAction::Discard, vec![(target(2), None)]).unwrap();
    let _ = store
        .context(stream, ContextAction::Distill, vec![(target(6), Some("nutmeg said so".to_owned()))])
        .unwrap();
    let _ = store
        .append(&session(), vec![Entry::message("m1", Role::User, "a word: saffron").origin("msg:1")])
        .unwrap();
    let memory = Fact::Memory(MemoryEntry {
        id: "p1".to_owned(),
        kind: MemoryKind::Preference,
        category: "tooling".to_owned(),
        key: Some("saffron".to_owned()),
        value: "nutmeg".to_owned(),
        confidence: 90,
        ..MemoryEntry::default()
    });
    let _ = store.append(&StreamInfo::project("cardamom"), vec![memory.into()]).unwrap();
}

/// A plain store and an encrypted one, filled alike.
struct Pair {
    folder: TempDir,
    said: String,
}

impl Pair {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plain = builder(&folder.path().join("plain")).open().unwrap();
        let sealed = builder(&folder.path().join("sealed")).encrypt(ring(1)).open().unwrap();
        assert!(sealed.is_encrypted() && !plain.is_encrypted());
        for store in [&plain, &sealed] {
            fill(store);
        }
        let said = described(&plain).unwrap();
        assert_eq!(described(&sealed).unwrap(), said, "as it is written");
        plain.close().unwrap();
        sealed.close().unwrap();
        Self { folder, said }
    }

    fn plain(&self) -> PathBuf {
        self.folder.path().join("plain")
    }

    fn sealed(&self) -> PathBuf {
        self.folder.path().join("sealed")
    }

    fn open(&self) -> Store {
        builder(&self.sealed()).keys(ring(1)).open().unwrap()
    }
}

/// All files below a folder, with their bytes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Words that stand in a file of a folder, in its bytes or its name.
fn words_in(folder: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut found = Vec::new();
    for (path, bytes) in files(folder) {
        for word in WORDS {
            let is_there = bytes.windows(word.len()).any(|part| part == word.as_bytes());
            if is_there || path.strip_prefix(folder).unwrap().to_string_lossy().contains(word) {
                found.push((path.clone(), word));
            }
        }
    }
    found
}

#[track_caller]
fn same(found: &str, wanted: &str) {
    for (found, wanted) in found.lines().zip(wanted.lines()) {
        assert_eq!(found, wanted);
    }
    assert_eq!(found.lines().count(), wanted.lines().count());
}

fn deep(folder: &Path) -> Verdict {
    let keys = KeyUse::Ring(ring(1));
    let report =
        verify_store(folder, &VerifyOptions { deep: true, keys, ..VerifyOptions::default() }).unwrap();
    assert!(report.violations.is_empty() && report.contradictions.is_empty(), "{report:#?}");
    report.verdict()
}

#[test]
fn an_encrypted_store_answers_as_a_plain_one() {
    let pair = Pair::new();
    let plain = builder(&pair.plain()).open().unwrap();
    for read_only in [true, false] {
        let sealed = builder(&pair.sealed()).keys(ring(1));
        let sealed = if read_only { sealed.read_only() } else { sealed }.open().unwrap();
        assert!(sealed.recovery().was_clean, "{:?}", sealed.recovery());
        same(&described(&sealed).unwrap(), &pair.said);
        assert_eq!(fold_digests(&sealed).unwrap(), fold_digests(&plain).unwrap());
    }
    // Known facts stay known, and the log goes on.
    let sealed = pair.open();
    let known = Entry::message("m1", Role::User, "a word: saffron").origin("msg:1");
    let receipt = sealed.append(&session(), vec![known, Entry::message("", Role::User, "go on")]).unwrap();
    assert_eq!((receipt.known_count, receipt.event_count), (1, 1), "{receipt:?}");
    // Its segments are not packed.
    let _ = sealed.seal(true).unwrap();
    assert!(sealed.space().unwrap().segments.iter().all(|segment| !segment.sealed));
    sealed.close().unwrap();
    assert_eq!(deep(&pair.sealed()), Verdict::Sound);
}

/// Every file that a store leaves, also of an index, saved folds, an erasure, a salvage and a backup.
#[test]
fn no_word_of_a_store_stands_in_its_folder() {
    let pair = Pair::new();
    let there: std::collections::BTreeSet<_> =
        words_in(&pair.plain()).into_iter().map(|(_, word)| word).collect();
    assert_eq!(there.len(), WORDS.len(), "the plain store has each of them: {there:?}");
    let store = pair.open();
    let _ = store.save_snapshot(session().id());
    assert!(store.reindex().is_err(), "an index would have names in plain");
    let copy = pair.folder.path().join("copy");
    let backup = store.backup(&copy, &mut |_| ()).unwrap();
    assert_eq!(backup.report.verdict(), Verdict::Sound);
    drop(store);
    let saved = pair.folder.path().join("saved");
    let salvaged = salvage_with(&pair.sealed(), &saved, &KeyUse::Ring(ring(1)), &mut |_| ()).unwrap();
    assert!(salvaged.lost_events.is_empty() && salvaged.lost_bodies.is_empty() && !salvaged.has_new_secret);
    for folder in [pair.sealed(), copy, saved] {
        assert_eq!(words_in(&folder), [], "{}", folder.display());
        assert!(!folder.join("secret").exists() && !folder.join("index.redb").exists());
        let store = builder(&folder).keys(ring(1)).open().unwrap();
        // A salvage ends with a note of its own.
        let said = described(&store).unwrap();
        let said: Vec<&str> = said.lines().filter(|line| !line.contains("damage_noted")).collect();
        same(&said.join("\n"), &pair.said);
        drop(store);
        assert_eq!(deep(&folder), Verdict::Sound, "{}", folder.display());
    }
}

fn locked<T>(outcome: Result<T, Error>, words: &[&str]) {
    let Err(Error::Locked { detail }) = outcome else { panic!("it was not refused") };
    for word in words {
        assert!(detail.contains(word), "{word}: {detail}");
    }
}

/// Each refusal names the store and the key, says what to do, and changes nothing.
#[test]
fn a_key_that_does_not_fit_is_named_and_changes_nothing() {
    let pair = Pair::new();
    let before = (files(&pair.plain()), files(&pair.sealed()));
    let none = pair.folder.path().join("none");
    locked(
        builder(&pair.sealed()).open(),
        &["sealed is encrypted", "no key was given", "key file or its passphrase"],
    );
    locked(builder(&pair.sealed()).read_only().open(), &["sealed is encrypted"]);
    locked(builder(&pair.sealed()).keys(ring(2)).open(), &["ring 2 does not open", "sealed"]);
    locked(builder(&pair.sealed()).encrypt(ring(2)).open(), &["ring 2 does not open"]);
    locked(
        builder(&pair.plain()).keys(ring(1)).open(),
        &["plain is not encrypted", "ring 1", "leave it out"],
    );
    locked(builder(&pair.plain()).encrypt(ring(1)).open(), &["plain is not encrypted"]);
    locked(builder(&none).keys(ring(1)).open(), &["none holds no store", "ring 1", "init --encrypt"]);
    locked(rotate_key(&pair.plain(), &*ring(1), &*ring(2)), &["plain is not encrypted"]);
    locked(rotate_key(&pair.sealed(), &*ring(2), &*ring(3)), &["ring 2 does not open"]);
    locked(salvage_with(&pair.sealed(), &none, &KeyUse::None, &mut |_| ()), &["no key was given"]);
    let deep_of = |folder: &Path, keys| {
        verify_store(folder, &VerifyOptions { deep: true, keys, ..VerifyOptions::default() })
    };
    locked(deep_of(&pair.sealed(), KeyUse::None), &["no key was given"]);
    locked(deep_of(&pair.sealed(), KeyUse::Ring(ring(2))), &["ring 2 does not open"]);
    locked(deep_of(&pair.plain(), KeyUse::Ring(ring(2))), &["plain is not encrypted"]);
    assert!(!none.exists());
    assert!((files(&pair.plain()), files(&pair.sealed())) == before, "a refusal changed something");
    // The wrapped key is lost: everything is refused by that name, and no check calls sound what cannot be read again.
    std::fs::remove_file(pair.sealed().join("key")).unwrap();
    locked(builder(&pair.sealed()).keys(ring(1)).open(), &["key is missing", "backup"]);
    assert_eq!(verify_folder(&pair.sealed(), false).unwrap().verdict(), Verdict::Unreadable);
    // A lost store file does not make it a plain one.
    std::fs::remove_file(pair.sealed().join("acpdb.json")).unwrap();
    locked(builder(&pair.sealed()).open(), &["key is missing"]);
}

#[test]
fn a_key_is_wrapped_anew_as_often_as_asked() {
    let pair = Pair::new();
    let words: Arc<dyn KeyRing> = Arc::new(PassphraseKeyRing::new("correct horse battery").unwrap());
    let log = files(&pair.sealed().join("log"));
    let beside = pair.open();
    assert_eq!(rotate_key(&pair.sealed(), &*ring(1), &*words).unwrap(), Rotated::Rotated);
    assert_eq!(rotate_key(&pair.sealed(), &*ring(1), &*words).unwrap(), Rotated::Already, "after a kill");
    assert!(files(&pair.sealed().join("log")) == log, "nothing but the file of the key changes");
    let _ = beside.append(&session(), vec![Entry::message("", Role::User, "beside a rotation")]).unwrap();
    drop(beside);
    locked(builder(&pair.sealed()).keys(ring(1)).open(), &["ring 1 does not open"]);
    let store = builder(&pair.sealed()).keys(Arc::clone(&words)).open().unwrap();
    assert!(described(&store).unwrap().contains("beside a rotation"));
    drop(store);
    assert_eq!(rotate_key(&pair.sealed(), &*words, &*ring(1)).unwrap(), Rotated::Rotated);
    assert_eq!(deep(&pair.sealed()), Verdict::Sound);
}

/// An erased text is gone for the holder of the key, too, and a check without the key takes the zeros for an erasure.
#[test]
fn an_erasure_leaves_nothing_for_the_key_to_open() {
    let pair = Pair::new();
    let store = pair.open();
    let item = {
        let view = store.view(session().id()).unwrap();
        let call = Some("call_cinnamon_4");
        view.history().into_iter().find(|item| item.call.as_deref() == call).unwrap().item
    };
    let report = store.erase(item, "ada", "it leaked").unwrap();
    assert!(report.recorded.is_some() && !report.hit.is_empty(), "{report:?}");
    store.close().unwrap();
    drop(store);
    for folder in [pair.sealed(), {
        let saved = pair.folder.path().join("saved");
        let _ = salvage_with(&pair.sealed(), &saved, &KeyUse::Ring(ring(1)), &mut |_| ()).unwrap();
        saved
    }] {
        let report = verify_folder(&folder, false).unwrap();
        assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
        assert_eq!(deep(&folder), Verdict::Sound);
        let store = builder(&folder).keys(ring(1)).open().unwrap();
        let refused = described(&store).unwrap_err().to_string();
        assert!(refused.contains("was erased in") && refused.contains("it leaked"), "{refused}");
        let shown = store.view(session().id()).unwrap();
        let erased = shown.history().into_iter().find(|shown| shown.item == item).unwrap();
        assert!(format!("{erased:?}").contains("rased"), "{erased:?}");
    }
}

/// Flips in every file: reported without the key, and with it nothing false is shown.
#[test]
fn flips_are_found_without_the_key() {
    let pair = Pair::new();
    let truth: Vec<String> = pair.said.lines().map(str::to_owned).collect();
    for (path, bytes) in files(&pair.sealed()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !(name.ends_with(".seg") || name == "acpdb.json" || name == "checkpoint") {
            continue;
        }
        for bit in (5..bytes.len() * 8).step_by(6007) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &damaged).unwrap();
            let report = verify_folder(&pair.sealed(), false).unwrap();
            assert_ne!(report.verdict(), Verdict::Sound, "{name} byte {} bit {}", bit / 8, bit % 8);
            if let Ok(store) = builder(&pair.sealed()).keys(ring(1)).read_only().open() {
                let events = store.events(acpdb_engine::ids::Seq(1), acpdb_engine::ids::Seq::MAX).unwrap();
                for recorded in events.flatten() {
                    let Ok(line) = acpdb_tests::support::line_of(&store, &recorded) else { continue };
                    assert!(
                        truth.iter().any(|told| told.ends_with(&line)),
                        "{name} byte {}: {line}",
                        bit / 8
                    );
                }
            }
        }
        std::fs::write(&path, &bytes).unwrap();
    }
}
