//! Opening an index in any state: it is owned, begun anew with a reason, or bypassed with a reason; never an error.

use std::fs;
use std::path::PathBuf;

use redb::{Builder, Database, TableDefinition};

use super::sample::{IDENTITY, Judge, frames, head, open, rows, steady, storage};
use crate::codec::Frame;
use crate::ids::{Position, Seq, StoreId};
use crate::index::{Identity, Index, IndexDurability, IndexOptions, IndexState, Watermark};

const META: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("meta");

struct Place {
    folder: tempfile::TempDir,
    frames: Vec<Frame>,
}

impl Place {
    /// A folder with an index of a log of twenty commits.
    fn new() -> Self {
        let frames = frames(&steady(20));
        let place = Self { folder: tempfile::tempdir().unwrap(), frames };
        place.fill(&open(&place.folder, &place.frames, IndexOptions::default()));
        place
    }

    fn fill(&self, index: &Index) {
        index.apply(&rows(&self.frames), IndexDurability::Immediate).unwrap();
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("index.redb")
    }

    fn open_as(&self, identity: Identity, durable: (Seq, Position)) -> IndexState {
        Index::open(&storage(self.folder.path()), identity, durable, IndexOptions::default())
    }

    /// Opens it as one that has to be begun anew, and gives the reason.
    fn notice(&self, identity: Identity, durable: (Seq, Position)) -> String {
        let index = self.open_as(identity, durable).owner().expect("it can be begun anew");
        assert_eq!(index.watermark(), Watermark::default());
        assert_eq!(index.row_count(), Ok(0));
        index.notice().expect("there is a reason").to_owned()
    }

    /// Changes the row about the index.
    fn change(&self, change: impl FnOnce(&mut redb::Table<'_, &[u8], &[u8]>)) {
        let transaction = Database::open(self.path()).unwrap().begin_write().unwrap();
        change(&mut transaction.open_table(META).unwrap());
        transaction.commit().unwrap();
    }

    fn bypass(&self) -> String {
        match self.open_as(IDENTITY, head(&self.frames)) {
            IndexState::Owner(_) => panic!("it is owned"),
            IndexState::Bypassed(bypassed) => bypassed.reason,
        }
    }
}

#[test]
fn an_index_is_found_again_with_all_it_knew() {
    let place = Place::new();
    let index = open(&place.folder, &place.frames, IndexOptions::default());
    assert_eq!(index.notice(), None);
    let last = place.frames.last().unwrap().header();
    let expected =
        Watermark { seq: Seq(60), last: Some(last.position), end: Some(last.end()), link: last.link() };
    assert_eq!(index.watermark(), expected);
    Judge::new(&steady(20), &place.frames).check(&*index);
}

#[test]
fn an_index_that_is_not_this_logs_is_begun_anew() {
    let good = head(&Place::new().frames);
    let store = Identity { store: StoreId([8; 16]), ..IDENTITY };
    let format = Identity { format: 2, ..IDENTITY };
    for (identity, durable, reason) in [
        (store, good, "the index is rebuilt: it belongs to another store"),
        (format, good, "the index is rebuilt: it belongs to another store"),
    ] {
        let place = Place::new();
        assert_eq!(place.notice(identity, durable), reason);
        // And the new one is good.
        let index = place.open_as(identity, durable).owner().unwrap();
        assert_eq!(index.notice(), None);
    }
}

/// A log was put back beside its newer index. Events that only the index knows are no part of the log.
#[test]
fn an_index_that_knows_more_than_the_log_is_begun_anew() {
    let good = head(&Place::new().frames);
    for durable in [(Seq(59), good.1), (Seq(60), Position(good.1.0 - 1))] {
        let place = Place::new();
        let reason =
            format!("the index is rebuilt: it knows events up to #60, the log ends at {}", durable.0);
        assert_eq!(place.notice(IDENTITY, durable), reason);
        let index = place.open_as(IDENTITY, durable).owner().unwrap();
        assert_eq!((index.notice(), index.watermark()), (None, Watermark::default()));
    }
}

#[test]
fn an_index_of_another_version_is_begun_anew() {
    let place = Place::new();
    let newer = [9_u32.to_le_bytes().as_slice(), b"whatever a later version puts there"].concat();
    place.change(|table| drop(table.insert([].as_slice(), newer.as_slice()).unwrap()));
    let reason = place.notice(IDENTITY, head(&place.frames));
    assert_eq!(reason, "the index is rebuilt: it has version 9, this program makes 6");
}

#[test]
fn files_that_are_no_index_are_begun_anew() {
    let garbage: Vec<u8> = (0_u32..40_000).map(|n| u8::try_from(n * n % 251).unwrap()).collect();
    let magic = fs::read(Place::new().path()).unwrap()[..9].to_vec();
    for (what, bytes) in [
        ("zeros", vec![0; 65_536]),
        ("garbage", garbage.clone()),
        ("text", b"{}\n".to_vec()),
        ("garbage behind the magic", [magic.clone(), garbage].concat()),
        ("the magic alone", magic),
    ] {
        let place = Place::new();
        fs::write(place.path(), bytes).unwrap();
        let reason = place.notice(IDENTITY, head(&place.frames));
        assert!(reason.starts_with("the index is rebuilt: ") && !reason.contains('\n'), "{what}: {reason}");
    }
    // A crash right after the file was made leaves it empty: nothing to report.
    let place = Place::new();
    fs::write(place.path(), b"").unwrap();
    let index = open(&place.folder, &place.frames, IndexOptions::default());
    assert_eq!((index.notice(), index.watermark()), (None, Watermark::default()));
}

#[test]
fn another_program_s_table_is_no_index() {
    let place = Place::new();
    fs::remove_file(place.path()).unwrap();
    let database = Database::create(place.path()).unwrap();
    let transaction = database.begin_write().unwrap();
    let table: TableDefinition<u64, &str> = TableDefinition::new("meta");
    transaction.open_table(table).unwrap().insert(1, "one").unwrap();
    transaction.commit().unwrap();
    drop(database);
    let reason = place.notice(IDENTITY, head(&place.frames));
    assert!(reason.starts_with("the index is rebuilt: "), "{reason}");
}

#[test]
fn an_index_that_another_owns_is_bypassed_and_stays() {
    let place = Place::new();
    let owner = open(&place.folder, &place.frames, IndexOptions::default());
    assert_eq!(place.bypass(), "the index is not used: another process holds it");
    drop(owner);

    // Another program, not acpdb, has the file open.
    let database = Builder::new().open(place.path()).unwrap();
    assert_eq!(place.bypass(), "the index is not used: another process has its file open");
    drop(database);

    let index = open(&place.folder, &place.frames, IndexOptions::default());
    assert_eq!((index.notice(), index.watermark().seq), (None, Seq(60)));
}

#[test]
fn an_index_that_can_be_neither_opened_nor_removed_is_bypassed() {
    let place = Place::new();
    fs::remove_file(place.path()).unwrap();
    fs::create_dir(place.path()).unwrap();
    assert!(place.bypass().starts_with("the index is not used: cannot remove "));
    let missing = storage(&place.folder.path().join("no/such/folder"));
    let state = Index::open(&missing, IDENTITY, head(&place.frames), IndexOptions::default());
    let IndexState::Bypassed(bypassed) = state else { panic!("it is owned") };
    assert!(bypassed.reason.starts_with("the index is not used: cannot open "), "{bypassed}");
}

#[test]
fn an_index_put_aside_answers_nothing_and_is_begun_anew_the_next_time() {
    let place = Place::new();
    let index = open(&place.folder, &place.frames, IndexOptions::default());
    index.put_aside("its link is not the log's");
    let reason = "the index is put aside: its link is not the log's";
    assert_eq!(index.broken().unwrap().reason, reason);
    assert_eq!(index.digest().unwrap_err().reason, reason);
    assert_eq!(index.apply(&[], IndexDurability::Immediate).unwrap_err().reason, reason);
    drop(index);
    assert!(!place.path().exists());
    let index = open(&place.folder, &place.frames, IndexOptions::default());
    assert_eq!((index.notice(), index.watermark()), (None, Watermark::default()));
    place.fill(&index);
    Judge::new(&steady(20), &place.frames).check(&*index);
}

#[test]
fn what_was_not_made_durable_is_gone_after_a_crash_and_indexed_again() {
    let place = Place::new();
    let index = open(&place.folder, &place.frames, IndexOptions::default());
    let longer = frames(&steady(30));
    index.apply(&rows(&longer), IndexDurability::None).unwrap();
    // The disk as a crash leaves it: another process never sees the memory of this one.
    let crashed = tempfile::tempdir().unwrap();
    fs::copy(place.path(), crashed.path().join("index.redb")).unwrap();
    drop(index);
    let index = open(&crashed, &longer, IndexOptions::default());
    assert_eq!((index.notice(), index.watermark().seq), (None, Seq(60)));
    index.apply(&rows(&longer), IndexDurability::None).unwrap();
    Judge::new(&steady(30), &longer).check(&*index);
}

#[test]
fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    for name in ["index.redb", "INDEX"] {
        let mode = fs::metadata(place.folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}
