//! Sessions opened from saved folds are alike, whatever becomes of the files.

use std::sync::Arc;

use tempfile::TempDir;

use super::super::{ARCHIVE_AT, SavedName, read};
use crate::entry::{Entry, StreamInfo};
use crate::event::Role;
use crate::storage::{Crash, FileStorage, SimWorld, Storage};
use crate::store::kept::Loaded;
use crate::store::{Store, View};

fn session() -> StreamInfo {
    StreamInfo { project: Some("p".to_owned()), ..StreamInfo::session("acpdb", "s1") }
}

fn open(folder: &TempDir) -> Store {
    Store::builder(folder.path().join("store")).index(false).open().unwrap()
}

/// Records `count` more calls.
fn record(store: &Store, from: usize, count: usize) {
    for number in from..from + count {
        let call = format!("c{number}");
        let entries = vec![
            Entry::step(format!("s{number}")),
            Entry::tool_started(&call, "read", format!(r#"{{"filePath":"f{}"}}"#, number % 3)),
            Entry::tool_completed(&call, format!("output {number} of a call")),
            Entry::message(format!("m{number}"), Role::Assistant, "It was read."),
        ];
        let _ = store.append(&session(), entries).unwrap();
    }
}

fn digest_of(view: &View) -> [u8; 32] {
    view.state().digest(view.at())
}

/// The digest of a fold from the beginning.
fn folded(folder: &TempDir) -> [u8; 32] {
    let root = folder.path().join("store");
    let store = Store::builder(root).index(false).snapshots(false).open().unwrap();
    digest_of(&store.view(session().id()).unwrap())
}

/// How many events a fresh handle folds to see the session's head, and the digest of its view.
fn opened(folder: &TempDir) -> (u64, [u8; 32]) {
    let store = open(folder);
    let view = store.view(session().id()).unwrap();
    let loaded = store.inner.fold(session().id()).unwrap();
    (loaded.event_count - loaded.saved_count, digest_of(&view))
}

fn file(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("store").join(SavedName::fold(session().id()).path)
}

#[test]
fn only_what_is_new_is_folded_and_nothing_reads_otherwise() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    record(&store, 0, 20);
    assert!(store.save_snapshot(session().id()).unwrap());
    drop(store);
    assert_eq!(opened(&folder), (0, folded(&folder)));
    record(&open(&folder), 20, 3);
    assert_eq!(opened(&folder), (12, folded(&folder)));
    // Their deletion costs time and nothing else.
    open(&folder).forget_snapshots(Some(session().id())).unwrap();
    assert!(!file(&folder).exists());
    let (count, digest) = opened(&folder);
    assert_eq!((count > 90, digest), (true, folded(&folder)));
}

/// A program that records and looks, and ends, leaves the next one little to fold.
#[test]
fn a_session_that_was_looked_at_is_saved_when_the_store_is_closed() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    record(&store, 0, 150);
    let _ = store.view(session().id()).unwrap();
    drop(store);
    assert_eq!(opened(&folder), (0, folded(&folder)));
}

#[test]
fn a_flipped_bit_or_a_cut_is_never_a_snapshot() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    record(&store, 0, 3);
    assert!(store.save_snapshot(session().id()).unwrap());
    let (id, stream) = (store.id(), session().id());
    drop(store);
    let sound = std::fs::read(file(&folder)).unwrap();
    let storage = FileStorage::new(folder.path().join("store"));
    let is_taken = |bytes: &[u8]| {
        std::fs::write(file(&folder), bytes).unwrap();
        let saved = read(&storage, id, &SavedName::fold(stream)).unwrap();
        saved.and_then(|saved| saved.value::<Loaded>()?.revived()).is_some()
    };
    let mut bytes = sound.clone();
    assert!(is_taken(&bytes));
    for place in (0..ARCHIVE_AT).chain((ARCHIVE_AT..bytes.len()).step_by(53)) {
        for bit in 0..8 {
            bytes[place] ^= 1 << bit;
            assert!(!is_taken(&bytes), "bit {bit} of byte {place}");
            bytes[place] ^= 1 << bit;
        }
    }
    for length in (0..ARCHIVE_AT + 40).chain((ARCHIVE_AT + 40..bytes.len()).step_by(211)) {
        assert!(!is_taken(&sound[..length]), "cut to {length}");
    }
    bytes.push(0);
    assert!(!is_taken(&bytes), "one byte more");
    // The same through the whole handle: the answers of the log, and the file is gone.
    let expected = folded(&folder);
    for place in [0, 9, 20, 60, 100, ARCHIVE_AT - 1, ARCHIVE_AT + 5, sound.len() - 1] {
        let mut bytes = sound.clone();
        bytes[place] ^= 4;
        std::fs::write(file(&folder), &bytes).unwrap();
        assert_eq!(opened(&folder).1, expected, "byte {place}");
        assert!(!file(&folder).exists(), "byte {place}");
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Two stores of one origin went apart: each has other events under the same seqs. A snapshot of one is nothing to the other.
#[test]
fn a_snapshot_of_another_history_is_not_taken() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    record(&open(&one), 0, 4);
    copy(&one.path().join("store"), &two.path().join("store"));
    record(&open(&one), 4, 2);
    record(&open(&two), 400, 2);
    assert!(open(&one).save_snapshot(session().id()).unwrap());
    std::fs::create_dir_all(file(&two).parent().unwrap()).unwrap();
    std::fs::copy(file(&one), file(&two)).unwrap();
    let expected = folded(&two);
    assert_ne!(expected, folded(&one));
    assert_eq!(opened(&two).1, expected);
    assert!(!file(&two).exists());
}

/// Power fails, or the process dies, at any call while a snapshot is written: the log and its answers stay.
#[test]
fn a_crash_while_saving_harms_nothing() {
    let life = |crash: Option<(u64, Crash)>| {
        let world = SimWorld::new(3);
        let storage = Arc::new(world.process(1));
        let open = |storage: &Arc<crate::storage::SimStorage>| {
            let storage: Arc<dyn Storage> = Arc::<crate::storage::SimStorage>::clone(storage);
            Store::builder("sim").storage(storage).open()
        };
        let store = open(&storage).unwrap();
        record(&store, 0, 4);
        let expected = digest_of(&store.view(session().id()).unwrap());
        let before = storage.operation_count();
        if let Some((after, crash)) = crash {
            storage.crash_at(before + after, crash);
        }
        let _ = store.save_snapshot(session().id());
        let count = storage.operation_count() - before;
        drop(store);
        if crash.is_some() {
            let again = open(&Arc::new(world.process(2))).unwrap();
            assert_eq!(digest_of(&again.view(session().id()).unwrap()), expected, "{crash:?}");
        }
        count
    };
    let count = life(None);
    assert!(count > 4, "{count} calls");
    for operation in 0..count {
        for crash in [Crash::Power, Crash::Kill] {
            life(Some((operation, crash)));
        }
    }
}

/// Events behind a snapshot are read from its end, without going through the log to learn where streams are. Damage on the
/// way, or another stream's events, change nothing about the view.
#[test]
fn what_is_new_is_read_from_where_the_snapshot_ends() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    record(&store, 0, 20);
    assert!(store.save_snapshot(session().id()).unwrap());
    let other = StreamInfo::session("acpdb", "other");
    let _ = store.append(&other, vec![Entry::message("m", Role::User, "Elsewhere.")]).unwrap();
    record(&store, 20, 2);
    drop(store);
    let store = open(&folder);
    let view = store.view(session().id()).unwrap();
    assert_eq!(digest_of(&view), folded(&folder));
    record(&store, 22, 2);
    let later = digest_of(&store.view(session().id()).unwrap());
    drop((view, store));
    assert_eq!(later, folded(&folder));
}
