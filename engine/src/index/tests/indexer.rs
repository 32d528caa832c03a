//! The thread: the frames that it indexes, the times when it waits, and that stopping it leaves everything on disk.
//!
//! No test waits for a time to pass: stopping the thread makes it finish its work.

use std::sync::Arc;
use std::time::Duration;

use super::sample::{Judge, Log, frames, open, rows, steady};
use crate::ids::Seq;
use crate::index::{FrameSource as _, IndexDurability, IndexOptions, Indexer, IndexerOptions, MemoryIndex};

/// Works at once, and waits for hours otherwise.
const EAGER: IndexerOptions = IndexerOptions {
    backlog_min: 1,
    settle: Duration::ZERO,
    gather: Duration::ZERO,
    commit_event_count: 10,
    bulk_event_count: 50,
    flush_event_count: 40,
    flush_idle: Duration::from_secs(3600),
    read_bytes_max: 3000,
    retry: Duration::from_secs(3600),
};

/// Starts the thread, nudges it after each change of the log, stops it, and returns how far the index is on disk.
fn run(
    log: &Arc<Log>,
    options: IndexerOptions,
    mut change: impl FnMut(&Log) -> bool,
) -> (Seq, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let all = log.frames.lock().unwrap().clone();
    let index = open(&folder, &all, IndexOptions::default());
    let indexer = Indexer::start(index.clone(), log.clone(), options).unwrap();
    while change(log) {
        indexer.nudge();
    }
    indexer.stop();
    assert_eq!(index.broken(), None);
    // As a crash would leave it: only the bytes on disk.
    let crashed = tempfile::tempdir().unwrap();
    std::fs::copy(folder.path().join("index.redb"), crashed.path().join("index.redb")).unwrap();
    let found = open(&crashed, &all, IndexOptions::default());
    assert_eq!(found.watermark(), index.watermark(), "everything is on disk");
    let mut memory = MemoryIndex::default();
    let known = all.iter().filter(|frame| frame.header().last_seq() <= found.watermark().seq).cloned();
    memory.apply(&rows(&known.collect::<Vec<_>>())).unwrap();
    assert_eq!(found.difference(&memory).unwrap(), None);
    (found.watermark().seq, folder)
}

#[test]
fn a_backlog_is_indexed_and_on_disk_when_the_thread_ends() {
    let script = steady(30);
    let log = Arc::new(Log::new(frames(&script)));
    // Sizes that end a transaction, a read or a flush at other places.
    for (commit_event_count, flush_event_count, read_bytes_max) in
        [(10, 40, 3000), (1, 1, 1), (1000, 1000, 1 << 20), (7, 1000, 1)]
    {
        let options = IndexerOptions {
            commit_event_count,
            bulk_event_count: 1000,
            flush_event_count,
            read_bytes_max: 1 << 20,
            ..EAGER
        };
        let (seq, _folder) = run(&log, options, |_| false);
        assert_eq!(seq, Seq(90), "{options:?}");
        let options = IndexerOptions { read_bytes_max, bulk_event_count: 1000, ..options };
        let (seq, _folder) = run(&log, options, |_| false);
        // A thread that is stopped before its first read makes one.
        assert!(seq > Seq::ZERO, "{options:?}");
    }
}

#[test]
fn commits_while_it_runs_are_indexed_with_one_nudge_each() {
    let script = steady(60);
    let all = frames(&script);
    let log = Arc::new(Log::new(all.clone()));
    *log.durable_count.lock().unwrap() = 0;
    let options = IndexerOptions { bulk_event_count: 1000, read_bytes_max: 1 << 20, ..EAGER };
    let (seq, folder) = run(&log, options, |log| {
        let mut count = log.durable_count.lock().unwrap();
        *count = (*count + 1).min(60);
        *count < 60
    });
    assert_eq!(seq, Seq(180));
    Judge::new(&script, &all).check(&*open(&folder, &all, IndexOptions::default()));
}

#[test]
fn what_is_not_durable_is_not_indexed() {
    let log = Arc::new(Log::new(frames(&steady(30))));
    *log.durable_count.lock().unwrap() = 12;
    let options = IndexerOptions { read_bytes_max: 1 << 20, ..EAGER };
    assert_eq!(run(&log, options, |_| false).0, Seq(36));
}

#[test]
fn a_short_process_leaves_the_index_alone_unless_there_is_a_backlog() {
    let log = Arc::new(Log::new(frames(&steady(10))));
    let settling = IndexerOptions { settle: Duration::from_secs(3600), read_bytes_max: 1 << 20, ..EAGER };
    for (backlog_min, expected) in [(31, Seq::ZERO), (30, Seq(30))] {
        let options = IndexerOptions { backlog_min, ..settling };
        assert_eq!(run(&log, options, |_| false).0, expected, "{backlog_min}");
    }
}

#[test]
fn a_log_that_cannot_be_read_stalls_the_index_where_it_is() {
    let all = frames(&steady(10));
    let folder = tempfile::tempdir().unwrap();
    let index = open(&folder, &all, IndexOptions::default());
    index.apply(&rows(&all[..4]), IndexDurability::Immediate).unwrap();
    let log = Arc::new(Log { damaged_from: Some(4), ..Log::new(all.clone()) });
    assert!(log.frames_after(index.watermark().end, 1).is_err());
    let indexer = Indexer::start(index.clone(), log, EAGER).unwrap();
    let stalled = loop {
        if let Some(stalled) = indexer.stalled() {
            break stalled;
        }
        std::thread::yield_now();
    };
    assert_eq!(stalled.reason, "frame 4 is damaged");
    indexer.stop();
    assert_eq!((index.broken(), index.watermark().seq), (None, Seq(12)));
    assert!(index.digest().is_ok());
}

#[test]
fn an_index_put_aside_ends_the_thread_and_nudges_are_harmless() {
    let all = frames(&steady(10));
    let folder = tempfile::tempdir().unwrap();
    let index = open(&folder, &all, IndexOptions::default());
    index.put_aside("a test says so");
    let indexer = Indexer::start(index, Arc::new(Log::new(all)), EAGER).unwrap();
    let stalled = loop {
        indexer.nudge();
        if let Some(stalled) = indexer.stalled() {
            break stalled;
        }
        std::thread::yield_now();
    };
    assert_eq!(stalled.reason, "the index is put aside: a test says so");
    indexer.nudge();
    indexer.stop();
}

/// After a panic the state in memory was ahead of the table, and was taken for the table's state: the frames between were
/// skipped for good, and no answer had them.
#[test]
fn an_index_that_a_panic_left_half_changed_is_put_aside() {
    let all = frames(&steady(6));
    let folder = tempfile::tempdir().unwrap();
    let index = open(&folder, &all, IndexOptions::default());
    index.apply(&rows(&all[..2]), IndexDurability::Immediate).unwrap();
    index.panic_in_a_change_for_test();
    assert!(index.apply(&rows(&all[4..]), IndexDurability::Immediate).is_err());
    assert!(index.broken().is_some());
    assert!(index.digest().is_err());
    drop(index);
    // The next one is begun anew.
    let index = open(&folder, &all, IndexOptions::default());
    assert_eq!(index.watermark().seq, Seq::ZERO);
    index.apply(&rows(&all), IndexDurability::Immediate).unwrap();
    let mut memory = MemoryIndex::default();
    memory.apply(&rows(&all)).unwrap();
    assert_eq!(index.difference(&memory).unwrap(), None);
}
