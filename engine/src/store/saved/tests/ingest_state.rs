//! Appends that begin from a saved ingest state: the log says the same, whatever becomes of the files.

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::super::SavedName;
use crate::command::ingest_state::SavedIngestState;
use crate::entry::{Entry, StreamInfo, WirePiece};
use crate::event::Role;
use crate::ids::ItemId;
use crate::storage::{Crash, SimStorage, SimWorld, Storage};
use crate::store::kept::StreamWriter;
use crate::store::{Receipt, Store};

fn session() -> StreamInfo {
    StreamInfo { title: Some("a title".to_owned()), ..StreamInfo::session("acpdb", "s1") }
}

fn open(folder: &TempDir) -> Store {
    Store::builder(folder.path().join("store")).index(false).open().unwrap()
}

/// Facts of some calls: their beginnings, ends (of all but each fifth), and a message that is told with its record.
fn facts(calls: std::ops::Range<usize>, version: &str) -> Vec<Entry> {
    let mut facts = Vec::new();
    for number in calls {
        let call = format!("c{number}");
        let params = format!(r#"{{"filePath":"f{}"}}"#, number % 3);
        facts.push(Entry::tool_started(&call, "read", params).origin(format!("{call}:start")));
        if number % 5 != 4 {
            facts.push(
                Entry::tool_completed(&call, format!("output {version}")).origin(format!("{call}:end")),
            );
        }
        let message = Entry::message(format!("m{number}"), Role::Assistant, format!("said {version}"));
        facts.push(message.origin(format!("m{number}")).wire(vec![WirePiece::Literal(b"{}".to_vec())]));
    }
    facts
}

fn append(store: &Store, facts: Vec<Entry>) -> Receipt {
    store.append(&session(), facts).unwrap()
}

fn file(root: &Path) -> std::path::PathBuf {
    root.join(SavedName::ingest_state(session().id()).path)
}

/// The ingest state of the session, and how many events had to be read for it.
fn known(store: &Store) -> (SavedIngestState, u64) {
    let mut writer = StreamWriter::default();
    store.inner.catch_up(session().id(), &mut writer).unwrap();
    (writer.ingest_state.save(), writer.ingest_state.event_count - writer.saved_count)
}

/// The ingest state that the log alone gives.
fn logged(folder: &TempDir) -> SavedIngestState {
    let root = folder.path().join("store");
    let store = Store::builder(root).index(false).snapshots(false).open().unwrap();
    known(&store).0
}

fn save(store: &Store) {
    assert!(store.inner.save_ingest_state_of(session().id()).unwrap());
}

#[test]
fn only_what_is_new_is_read_and_nothing_is_known_otherwise() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let _ = append(&store, facts(0..20, "a"));
    let _ = append(&store, facts(3..5, "b"));
    save(&store);
    drop(store);
    assert_eq!(known(&open(&folder)), (logged(&folder), 0));
    let store = open(&folder);
    let again = append(&store, facts(5..20, "a"));
    assert_eq!((again.event_count, again.known_count), (0, 42));
    let mixed = append(&store, facts(18..22, "c"));
    drop(store);
    assert_eq!(known(&open(&folder)), (logged(&folder), mixed.event_count));
    // Its deletion costs time and nothing else.
    open(&folder).forget_snapshots(Some(session().id())).unwrap();
    assert!(!file(&folder.path().join("store")).exists());
    let (bytes, count) = known(&open(&folder));
    assert_eq!((bytes, count > 60), (logged(&folder), true));
}

#[test]
fn a_flipped_bit_or_a_cut_is_never_an_answer() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let _ = append(&store, facts(0..10, "a"));
    save(&store);
    let path = file(&folder.path().join("store"));
    let sound = std::fs::read(&path).unwrap();
    let expected = logged(&folder);
    for place in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[place] ^= 1 << (place % 8);
        std::fs::write(&path, &bytes).unwrap();
        let (found, read) = known(&store);
        assert!(found == expected && read > 0, "byte {place}");
        assert!(!path.exists(), "byte {place}");
    }
    for length in (0..sound.len()).step_by(29) {
        std::fs::write(&path, &sound[..length]).unwrap();
        assert!(known(&store).0 == expected, "cut to {length}");
        assert!(!path.exists(), "cut to {length}");
    }
    std::fs::write(&path, [&sound[..], b"x"].concat()).unwrap();
    assert!(known(&store).0 == expected && !path.exists());
    std::fs::write(&path, &sound).unwrap();
    assert_eq!(known(&store), (expected, 0));
}

fn copy(from: &Path, to: &Path) {
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

/// A file of another stream, of another store, of a history that went another way, and of a tail that was lost.
#[test]
fn an_ingest_state_that_this_log_does_not_bear_out_is_not_taken() {
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (root, other_root) = (one.path().join("store"), two.path().join("store"));
    let _ = append(&open(&one), facts(0..4, "a"));
    copy(&root, &other_root);
    let store = open(&one);
    let _ = append(&store, facts(4..6, "a"));
    save(&store);
    let newer = std::fs::read(file(&root)).unwrap();
    let check = |folder: &TempDir| {
        let path = file(&folder.path().join("store"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &newer).unwrap();
        let (found, read) = known(&open(folder));
        assert!(read > 0 && found == logged(folder));
        assert!(!path.exists());
    };
    // Its tail was lost.
    check(&two);
    // It went on otherwise.
    let _ = append(&open(&two), facts(400..402, "b"));
    check(&two);
    // Another store.
    let three = TempDir::new().unwrap();
    let _ = append(&open(&three), facts(0..6, "a"));
    check(&three);
    // Another stream of the same store.
    let other = StreamInfo::session("acpdb", "s2");
    let _ = store.append(&other, facts(0..1, "a")).unwrap();
    let copied = root.join(SavedName::ingest_state(other.id()).path);
    std::fs::copy(file(&root), &copied).unwrap();
    let mut writer = StreamWriter::default();
    store.inner.catch_up(other.id(), &mut writer).unwrap();
    assert_eq!((writer.saved_count, writer.ingest_state.event_count), (0, 4));
    assert!(!copied.exists());
}

/// A process that has taken up an ingest state needs the file no more: another process may remove it, save another, or damage it.
#[test]
fn a_file_that_goes_away_under_a_handle_changes_nothing() {
    type Change = fn(&TempDir);
    let changes: [(&str, Change); 4] = [
        ("removed", |folder| open(folder).forget_snapshots(None).unwrap()),
        ("saved anew", |folder| {
            let store = open(folder);
            let _ = append(&store, facts(100..103, "other"));
            save(&store);
        }),
        ("zeroed", |folder| {
            let path = file(&folder.path().join("store"));
            let length = std::fs::metadata(&path).unwrap().len();
            std::fs::write(&path, vec![0; usize::try_from(length).unwrap()]).unwrap();
        }),
        ("erased", |folder| {
            let store = open(folder);
            let receipt = append(&store, facts(200..201, "other"));
            let _ = store.erase(ItemId::first(receipt.last_seq), "ada", "a reason").unwrap();
        }),
    ];
    for (what, change) in changes {
        let folder = TempDir::new().unwrap();
        {
            let store = open(&folder);
            let _ = append(&store, facts(0..30, "a"));
            save(&store);
        }
        let store = open(&folder);
        // Takes it up, without looking at a row.
        let started = store.append(&session(), vec![Entry::step("step")]).unwrap();
        assert_eq!(started.event_count, 1, "{what}");
        change(&folder);
        let receipt = append(&store, facts(0..32, "a"));
        // Two calls and their messages are new, and only they: 30 to 32, both ended.
        assert_eq!((receipt.event_count, receipt.known_count), (6, 84), "{what}");
        assert!(known(&store).0 == logged(&folder), "{what}");
    }
}

/// The key of a stream's signatures is not in it: an erased key stays erased.
#[test]
fn the_key_of_signatures_is_looked_up_in_the_log() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let first = append(&store, facts(0..3, "a")).first_seq;
    let key = store.inner.body(crate::ids::BodyId { seq: first, first: 0, chunks: 1 }).unwrap();
    save(&store);
    let saved = std::fs::read(file(&folder.path().join("store"))).unwrap();
    assert!(!saved.windows(key.len()).any(|window| window == key));
    let _ = store.erase(ItemId::first(first), "ada", "a reason").unwrap();
    assert!(!file(&folder.path().join("store")).exists());
    save(&store);
    drop(store);
    let store = open(&folder);
    let receipt = append(&store, facts(0..4, "a"));
    // The title was erased with the key, and is told again: one event more.
    assert_eq!((receipt.event_count, receipt.known_count), (4, 9));
}

/// Processes of one commit each: one in many saves, and none reads more than that many.
#[test]
fn handles_that_are_closed_save_when_it_is_worth_it() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder.path().join("store"));
    let _ = append(&open(&folder), facts(0..60, "a"));
    assert!(!path.exists(), "a short session is not worth a file");
    let _ = append(&open(&folder), facts(60..600, "a"));
    assert!(path.exists());
    let all = known(&open(&folder));
    assert_eq!((all.1, all.0 == logged(&folder)), (0, true));
    let mut saved = 0;
    for number in 0..24 {
        let before = known(&open(&folder)).1;
        let _ = append(&open(&folder), facts(600 + number * 9..609 + number * 9, "a"));
        saved += u32::from(known(&open(&folder)).1 < before);
    }
    assert_eq!((saved, known(&open(&folder)).0 == logged(&folder)), (2, true));
    // A handle that uses no saved folds neither reads nor writes one.
    std::fs::remove_file(&path).unwrap();
    let root = folder.path().join("store");
    let store = Store::builder(root).index(false).snapshots(false).open().unwrap();
    let _ = append(&store, facts(2000..2600, "a"));
    drop(store);
    assert!(!path.exists());
}

/// A handle that reads a long session may be killed: the next one need not read it again.
#[test]
fn what_took_long_to_read_is_saved_at_once() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("store");
    let writes = Store::builder(&root).index(false).snapshots(false).open().unwrap();
    for from in (0..3200).step_by(400) {
        let _ = append(&writes, facts(from..from + 400, "a"));
    }
    let store = open(&folder);
    assert_eq!(known(&store).1, 0);
    assert!(file(&root).exists());
    let receipt = append(&store, facts(3190..3201, "a"));
    assert_eq!((receipt.event_count, receipt.known_count), (3, 28));
    assert!(known(&store).0 == logged(&folder));
}

/// Power fails, or the process dies, at any call while an ingest state is saved over another: known facts stay.
#[test]
fn a_crash_while_saving_harms_nothing() {
    let life = |crash: Option<(u64, Crash)>| {
        let world = SimWorld::new(3);
        let storage = Arc::new(world.process(1));
        let open = |storage: &Arc<SimStorage>| {
            let storage: Arc<dyn Storage> = Arc::<SimStorage>::clone(storage);
            Store::builder("sim").storage(storage).open()
        };
        let store = open(&storage).unwrap();
        let _ = append(&store, facts(0..3, "a"));
        save(&store);
        let _ = append(&store, facts(2..6, "b"));
        let expected = known(&store).0;
        let before = storage.operation_count();
        if let Some((after, crash)) = crash {
            storage.crash_at(before + after, crash);
        }
        let _ = store.inner.save_ingest_state_of(session().id());
        let count = storage.operation_count() - before;
        drop(store);
        if crash.is_some() {
            let again = open(&Arc::new(world.process(2))).unwrap();
            assert!(known(&again).0 == expected, "{crash:?}");
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
