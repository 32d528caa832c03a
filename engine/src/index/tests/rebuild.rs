//! A rebuilt index equals the live one, and takes its place only when it is proven.

use std::fs;

use super::sample::{IDENTITY, Judge, Log, frames, open, rows, steady, storage};
use crate::codec::Frame;
use crate::ids::Seq;
use crate::index::layout::NameKey;
use crate::index::lookup::{RowDigest, each, summary};
use crate::index::{IndexDurability, IndexOptions, LiveComparison, MemoryIndex, Rebuilt, Unchanged, reindex};
use crate::storage::{Fault, FaultKind, SimWorld};

fn rebuild(folder: &tempfile::TempDir, log: &Log) -> Result<Rebuilt, String> {
    reindex(&*storage(folder.path()), IDENTITY, log, IndexOptions::default()).map_err(|why| why.to_string())
}

/// A folder with an index of the first `count` frames.
fn live(frames: &[Frame], count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let index = open(&folder, frames, IndexOptions::default());
    for part in rows(&frames[..count]).chunks(3) {
        index.apply(part, IndexDurability::None).unwrap();
    }
    index.apply(&[], IndexDurability::Immediate).unwrap();
    folder
}

#[test]
fn a_rebuilt_index_is_the_live_one() {
    let script = steady(25);
    let frames = frames(&script);
    let log = Log::new(frames.clone());
    let folder = live(&frames, 25);
    let rebuilt = rebuild(&folder, &log).unwrap();
    assert_eq!(rebuilt.live, LiveComparison::Equal);
    assert_eq!((rebuilt.event_count, rebuilt.frame_count), (75, 25));
    let index = open(&folder, &frames, IndexOptions::default());
    assert_eq!((index.notice(), index.watermark().seq), (None, Seq(75)));
    assert_eq!((index.digest(), index.row_count()), (Ok(rebuilt.digest), Ok(rebuilt.row_count)));
    Judge::new(&script, &frames).check(&*index);
    let mut memory = MemoryIndex::default();
    memory.apply(&rows(&frames)).unwrap();
    assert_eq!(index.difference(&memory).unwrap(), None);
}

/// More rows than are sorted at once are put in by parts, to the same end.
#[test]
fn rows_that_do_not_fit_are_put_in_by_parts() {
    let frames = frames(&steady(25));
    let log = Log::new(frames.clone());
    let folder = live(&frames, 25);
    let parts = IndexOptions { sort_bytes_max: 0, ..IndexOptions::default() };
    let rebuilt = reindex(&*storage(folder.path()), IDENTITY, &log, parts).unwrap();
    assert_eq!(rebuilt.live, LiveComparison::Equal);
    let mut memory = MemoryIndex::default();
    memory.apply(&rows(&frames)).unwrap();
    let index = open(&folder, &frames, IndexOptions::default());
    assert_eq!((index.notice(), index.difference(&memory).unwrap()), (None, None));
}

/// An index of 30,000 events that came in no order took 12 MB for 4 MB of half full pages.
#[test]
fn an_index_that_grew_is_packed_when_it_is_closed() {
    let frames = frames(&steady(1200));
    let options = |pack_event_count_min| IndexOptions { pack_event_count_min, ..IndexOptions::default() };
    let bytes = |options: IndexOptions| {
        let folder = tempfile::tempdir().unwrap();
        let index = open(&folder, &frames, options);
        for part in rows(&frames).chunks(100) {
            index.apply(part, IndexDurability::Immediate).unwrap();
        }
        let (digest, row_count) = (index.digest(), index.row_count());
        drop(index);
        let bytes = fs::metadata(folder.path().join("index.redb")).unwrap().len();
        assert!(!folder.path().join("index.redb.new").exists());
        // An owner that adds little leaves the index as it is.
        let index = open(&folder, &frames, options);
        assert_eq!((index.notice(), index.digest(), index.row_count()), (None, digest, row_count));
        index.apply(&[], IndexDurability::Immediate).unwrap();
        drop(index);
        bytes
    };
    let (packed, loose) = (bytes(options(3600)), bytes(options(3601)));
    assert!(packed * 2 < loose, "{packed} and {loose} bytes");
}

#[test]
fn a_rebuild_says_what_was_there() {
    let frames = frames(&steady(25));
    let log = Log::new(frames.clone());
    let absent = tempfile::tempdir().unwrap();
    assert_eq!(rebuild(&absent, &log).unwrap().live, LiveComparison::Absent);

    let behind = live(&frames, 20);
    assert_eq!(rebuild(&behind, &log).unwrap().live, LiveComparison::Elsewhere { seq: Seq(60) });

    let damaged = live(&frames, 25);
    fs::write(damaged.path().join("index.redb"), vec![1; 50_000]).unwrap();
    assert_eq!(rebuild(&damaged, &log).unwrap().live, LiveComparison::Different);

    // Equal watermarks, but rows of another log.
    let mut script = steady(25);
    script[7].reverse();
    let other = live(&super::sample::frames(&script), 25);
    assert_eq!(rebuild(&other, &log).unwrap().live, LiveComparison::Different);

    for folder in [absent, behind, damaged, other] {
        assert!(!folder.path().join("index.redb.new").exists());
        assert_eq!(rebuild(&folder, &log).unwrap().live, LiveComparison::Equal);
    }
}

#[test]
fn an_empty_log_has_an_empty_index() {
    let folder = tempfile::tempdir().unwrap();
    let rebuilt = rebuild(&folder, &Log::new(Vec::new())).unwrap();
    assert_eq!((rebuilt.event_count, rebuilt.row_count), (0, 0));
    assert_eq!(open(&folder, &[], IndexOptions::default()).digest(), Ok(rebuilt.digest));
}

#[test]
fn a_rebuild_that_fails_leaves_the_index_that_was_there() {
    let frames = frames(&steady(25));
    let folder = live(&frames, 20);
    let damaged = Log { damaged_from: Some(22), ..Log::new(frames.clone()) };
    assert_eq!(rebuild(&folder, &damaged).unwrap_err(), "frame 22 is damaged");

    // A log whose frames end before its head.
    let mut short = Log::new(frames.clone());
    *short.durable_count.get_mut().unwrap() = 25;
    short.frames.get_mut().unwrap().remove(10);
    *short.durable_count.get_mut().unwrap() = 24;
    assert_eq!(rebuild(&folder, &short).unwrap_err(), "a frame begins at #34, expected #31");

    let index = open(&folder, &frames, IndexOptions::default());
    assert_eq!((index.notice(), index.watermark().seq), (None, Seq(60)));
    // Nor is it rebuilt while another process owns it.
    assert_eq!(rebuild(&folder, &Log::new(frames)).unwrap_err(), "another process holds the index");
    assert!(!folder.path().join("index.redb.new").exists());
}

/// A full disk was reported as an index that another process holds: the user was sent to look for that process.
#[test]
fn a_rebuild_without_room_names_the_file_and_the_disk() {
    let log = Log::new(frames(&steady(25)));
    let mut named = std::collections::BTreeSet::new();
    for after in 0..6 {
        let process = SimWorld::new(1).process(1);
        process.plant(Fault { kind: FaultKind::NoSpace, after, once: false });
        let again = || reindex(&process, IDENTITY, &log, IndexOptions::default());
        // A fault past the last write is not met.
        let Err(why) = again() else { continue };
        let Unchanged::Io { path, source, .. } = &why else { panic!("{why}") };
        assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
        named.insert(path.file_name().unwrap().to_owned());
        process.heal();
        assert_eq!(again().unwrap().live, LiveComparison::Absent);
    }
    // The file that says that there is an index, and the index itself.
    assert_eq!(named.into_iter().collect::<Vec<_>>(), ["INDEX", "index.redb.new"]);
}

/// The proof of a rebuilt index adds up its rows: the sum must differ wherever the rows in order differ, and must not
/// depend on the way to them.
#[test]
fn a_tally_proves_as_much_as_a_digest_whatever_the_order() {
    let frames = frames(&steady(25));
    let all = rows(&frames);
    let mut whole = MemoryIndex::default();
    whole.apply(&all).unwrap();
    let (digest, tally) = summary(&whole).unwrap();
    assert_eq!((tally.count(), digest), (whole.row_count(), whole.digest().unwrap()));
    let mut rows = Vec::new();
    each(&whole, |key, seq| rows.push((*key, seq))).unwrap();
    let mut other_way = RowDigest::default();
    for (key, seq) in rows.iter().rev() {
        other_way.add(key, seq.next());
        other_way.add(key, *seq);
        other_way.take_away(key, seq.next());
    }
    assert_eq!(other_way, tally);
    for (key, seq) in &rows {
        let mut without = tally;
        without.take_away(key, *seq);
        assert_ne!(without, tally);
        // A shorter name is another row.
        let mut moved = without;
        moved.add(&NameKey::of(key.kind, &key.kept()[1..], key.stream), *seq);
        assert_ne!(moved, tally);
    }
}
