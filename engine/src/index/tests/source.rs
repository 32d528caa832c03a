//! The index over a real log, with segments that end and a log that is put back.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::sample::{Act, Judge, Script, encoded, steady};
use crate::codec::FORMAT_VERSION;
use crate::ids::{Position, Seq};
use crate::index::{
    FrameSource as _, Identity, Index, IndexOptions, IndexState, Indexer, IndexerOptions, LiveComparison,
    MemoryIndex, reindex, rows_of,
};
use crate::log::{Log, LogOptions};
use crate::storage::{FileStorage, SystemClock, SystemEntropy};

fn open_log(folder: &Path) -> Arc<Log> {
    let options = LogOptions { segment_bytes_max: 8192, ..LogOptions::default() };
    let storage = Arc::new(FileStorage::new(folder.join("store")));
    let opened = Log::create_or_open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options);
    Arc::new(opened.unwrap().0)
}

fn append(log: &Log, script: &Script) {
    for commit in script {
        // As a store records it: the label of a call is masked.
        let masked = |act: &Act| match act.clone() {
            Act::Call { id, tool, label, files } => {
                Act::Call { id, tool, label: log.secret().seal_label(label), files }
            }
            other => other,
        };
        let events: Vec<_> = commit.iter().map(|(stream, act)| encoded(*stream, &masked(act))).collect();
        let _ = log.append(log.prepare(&events).unwrap(), &[]).unwrap();
    }
}

fn memory(log: &Log) -> MemoryIndex {
    let mut memory = MemoryIndex::default();
    for frame in log.frames(Position::default(), log.head()) {
        memory.apply(&[rows_of(&frame.unwrap(), log.secret())]).unwrap();
    }
    memory
}

fn index_all(log: &Arc<Log>, index: &Arc<Index>) {
    let options =
        IndexerOptions { backlog_min: 1, settle: Duration::from_secs(3600), ..IndexerOptions::default() };
    Indexer::start(index.clone(), log.clone(), options).unwrap().stop();
}

#[test]
fn a_log_of_many_segments_is_indexed_whole() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path());
    let script = steady(40);
    append(&log, &script);
    assert!(log.head().position.segment() > 2, "the segments are too large for this test");
    let index = Index::open_for(&log, IndexOptions::default()).owner().unwrap();
    index_all(&log, &index);
    assert_eq!(index.watermark().seq, log.head().seq);
    assert_eq!(index.difference(&memory(&log)).unwrap(), None);
    let frames: Vec<_> = log.frames(Position::default(), log.head()).map(Result::unwrap).collect();
    Judge::new(&script, &frames).check(&*index);

    // Reading on from any frame's end finds the next, over the ends of segments too.
    for (frame, next) in frames.iter().zip(&frames[1..]) {
        let found = log.frames_after(Some(frame.header().end()), 1).unwrap();
        assert_eq!(found[0].header(), next.header());
    }
    assert!(log.frames_after(Some(frames.last().unwrap().header().end()), 1).unwrap().is_empty());

    drop(index);
    let identity = Identity { store: log.store(), format: FORMAT_VERSION };
    let rebuilt = reindex(&**log.storage(), identity, &*log, IndexOptions::default()).unwrap();
    assert_eq!((rebuilt.live, rebuilt.event_count), (LiveComparison::Equal, 120));
}

/// A store was put back from a copy and went on differently: the index that knew the lost future must not be used, though its
/// seq is in the log again.
#[test]
fn an_index_of_another_history_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path());
    append(&log, &steady(5));
    drop(log);
    let copy = tempfile::tempdir().unwrap();
    copy_all(&folder.path().join("store"), &copy.path().join("store"));

    let log = open_log(folder.path());
    append(&log, &steady(3));
    let index = Index::open_for(&log, IndexOptions::default()).owner().unwrap();
    index_all(&log, &index);
    assert_eq!(index.watermark().seq, Seq(24));
    drop(index);
    let index = Index::open_for(&log, IndexOptions::default()).owner().unwrap();
    assert_eq!(index.watermark().seq, Seq(24), "the same history is taken over");
    drop((index, log));

    for name in ["index.redb", "INDEX"] {
        fs::copy(folder.path().join("store").join(name), copy.path().join("store").join(name)).unwrap();
    }
    let log = open_log(copy.path());
    append(&log, &steady(4)[1..].to_vec());
    assert_eq!(log.head().seq, Seq(24));
    let reading = Index::open_reading_for(&log, IndexOptions::default());
    let IndexState::Bypassed(why) = reading else { panic!("it is used") };
    assert!(why.reason.contains("it knows #24 with link "), "{why}");
    let index = Index::open_for(&log, IndexOptions::default()).owner().unwrap();
    assert_eq!(index.watermark().seq, Seq::ZERO);
    assert!(index.notice().unwrap().contains("it knows #24 with link "), "{:?}", index.notice());
    index_all(&log, &index);
    assert_eq!(index.difference(&memory(&log)).unwrap(), None);
}

/// A reader is told a head that is not confirmed yet, or was asked for a while ago. An index that knows commits which are in
/// the log is used.
#[test]
fn an_index_that_knows_what_the_log_holds_is_used_however_far_a_handle_has_come() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_log(folder.path());
    append(&log, &steady(2));
    let late = open_log(folder.path());
    append(&log, &steady(5)[2..].to_vec());
    let index = Index::open_for(&log, IndexOptions::default()).owner().unwrap();
    index_all(&log, &index);
    drop(index);
    let index = Index::open_for(&late, IndexOptions::default()).owner().unwrap();
    assert_eq!((index.notice(), index.watermark().seq), (None, log.head().seq));
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
