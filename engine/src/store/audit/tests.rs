//! Files saved beside a log, forged and true.

use std::path::PathBuf;

use tempfile::TempDir;

use super::super::saved::ARCHIVE_AT;
use super::super::saved::tests::resealed;
use super::*;
use crate::entry::{Entry, StreamInfo};
use crate::event::Role;
use crate::ids::Seq;
use crate::verify::Verdict;

fn session() -> StreamInfo {
    StreamInfo { project: Some("p".to_owned()), ..StreamInfo::session("acpdb", "s1") }
}

fn open(folder: &TempDir) -> Store {
    Store::builder(folder.path().join("store")).index(false).open().unwrap()
}

/// Records `count` more calls, a turn each, with reads that supersede each other and files by several names.
fn record(store: &Store, from: usize, count: usize) {
    for number in from..from + count {
        let call = format!("c{number}");
        let entries = vec![
            Entry::step(format!("s{number}")),
            Entry::tool_started(&call, "peruse", format!(r#"{{"filePath":"f{}.rs"}}"#, number * 7 % 11)),
            Entry::tool_completed(&call, format!("output {number} of a call")),
            Entry::message(format!("m{number}"), Role::Assistant, "It was read."),
        ];
        let _ = store.append(&session(), entries).unwrap();
    }
}

fn deep(folder: &TempDir) -> VerifyReport {
    let options = VerifyOptions { deep: true, ..VerifyOptions::default() };
    verify_store(&folder.path().join("store"), &options).unwrap()
}

fn snap(folder: &TempDir) -> PathBuf {
    folder.path().join("store/snap").join(session().id().to_hex())
}

/// A saved fold shows the same as a fold made anew, however often it was resumed and saved in between.
#[test]
fn what_was_saved_in_many_steps_is_what_is_made_anew() {
    let folder = TempDir::new().unwrap();
    for step in 0..6 {
        let store = open(&folder);
        record(&store, step * 30, 30);
        if step == 2 {
            let other = StreamInfo::session("acpdb", "other");
            let _ = store.append(&other, vec![Entry::message("m", Role::User, "Elsewhere.")]).unwrap();
        }
        assert!(store.save_snapshot(session().id()).unwrap());
        drop(store);
        let report = deep(&folder);
        assert_eq!((report.verdict(), report.saved.len()), (Verdict::Sound, 0), "step {step}: {report:#?}");
        record(&open(&folder), 1000 + step, 1);
        assert_eq!(deep(&folder).verdict(), Verdict::Sound, "step {step}, one more");
    }
}

/// A saved fold was changed and its digest made anew: `history` showed events that never were, and the deep check said sound.
/// Now the log is folded again and compared.
#[test]
fn a_forged_fold_is_found_with_its_stream_and_file() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    record(&store, 0, 12);
    assert!(store.save_snapshot(session().id()).unwrap());
    drop(store);
    let path = snap(&folder);
    let sound = std::fs::read(&path).unwrap();
    let mut forged = sound.clone();
    let at = forged.windows(6).position(|window| window == b"peruse").unwrap();
    forged[at..at + 6].copy_from_slice(b"scribe");
    std::fs::write(&path, &forged).unwrap();
    // A change by accident: the fold is not used, and nothing is reported.
    assert_eq!(deep(&folder).verdict(), Verdict::Sound);
    let forged = resealed(&forged);
    std::fs::write(&path, &forged).unwrap();
    let report = deep(&folder);
    assert_eq!(report.verdict(), Verdict::Damaged);
    assert_eq!(report.saved.len(), 1);
    assert_eq!((report.saved[0].stream, &report.saved[0].path), (session().id(), &path));
    assert!(report.violations.is_empty(), "the log is sound");
    let plain = verify_store(&folder.path().join("store"), &VerifyOptions::default()).unwrap();
    assert_eq!(plain.verdict(), Verdict::Sound, "only a fold can tell");
}

#[test]
fn a_forged_ingest_state_is_found() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    record(&store, 0, 12);
    assert!(store.save_snapshot(session().id()).unwrap());
    drop(store);
    let path = snap(&folder).with_extension("ingest");
    let mut forged = std::fs::read(&path).unwrap();
    // The host's name, behind the head, which begins with the same letters.
    let at = ARCHIVE_AT + forged[ARCHIVE_AT..].windows(5).position(|window| window == b"acpdb").unwrap();
    forged[at] = b'x';
    std::fs::write(&path, &forged).unwrap();
    assert_eq!(deep(&folder).verdict(), Verdict::Sound, "an accident, not used");
    std::fs::write(&path, resealed(&forged)).unwrap();
    let report = deep(&folder);
    assert_eq!((report.verdict(), report.saved.len()), (Verdict::Damaged, 1));
    assert_eq!(report.saved[0].path, path);
}

/// The log was put back from a copy, and files saved later still lie beside it. They are not of this log: they are not used, and made anew.
#[test]
fn what_was_saved_later_than_a_log_that_was_put_back_is_made_anew() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    record(&store, 0, 5);
    store.close().unwrap();
    let shown = |store: &Store| {
        let view = store.view(session().id()).unwrap();
        view.history().iter().map(|item| format!("{item:?}")).collect::<Vec<_>>()
    };
    let before = shown(&store);
    let copies: Vec<(PathBuf, Vec<u8>)> = ["log/000000000001.seg", "tail", "checkpoint"]
        .iter()
        .map(|name| folder.path().join("store").join(name))
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    let end = store.head_place(None).unwrap().unwrap();
    record(&store, 5, 5);
    let later = store.head_place(None).unwrap().unwrap();
    assert!(store.save_snapshot(session().id()).unwrap());
    drop(store);
    for (path, bytes) in &copies {
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(deep(&folder).verdict(), Verdict::Sound);
    assert_eq!(shown(&open(&folder)), before);
    // A link that was kept elsewhere tells of the loss.
    for (kept, verdict) in [(end, Verdict::Sound), (later, Verdict::TailLost)] {
        let expected = vec![Expected { seq: kept.seq, link: kept.link }];
        let options = VerifyOptions { expected, ..VerifyOptions::default() };
        assert_eq!(verify_store(&folder.path().join("store"), &options).unwrap().verdict(), verdict);
    }
    // And a save takes their place.
    let store = open(&folder);
    record(&store, 20, 7);
    assert!(store.save_snapshot(session().id()).unwrap());
    drop(store);
    assert_eq!(deep(&folder).verdict(), Verdict::Sound);
}

/// The place of the head, and of the commit that holds a seq, equals the place that `verify` finds by reading everything.
#[test]
fn the_head_is_told_without_reading_the_log() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    record(&store, 0, 3);
    let report = deep(&folder);
    let head = store.head_place(None).unwrap().unwrap();
    assert_eq!((head.seq, head.link, head.store), (report.head_seq, report.head_link, store.id()));
    assert_eq!(store.head_place(Some(head.seq)).unwrap(), Some(head));
    let inside = store.head_place(Some(Seq(head.seq.0 - 1))).unwrap();
    assert_eq!(inside, Some(head), "of the commit that holds it");
    assert_eq!(store.head_place(Some(head.seq.next())).unwrap(), None);
    let expected = vec![Expected { seq: Seq(head.seq.0 - 1), link: head.link }];
    let options = VerifyOptions { expected, ..VerifyOptions::default() };
    let path = folder.path().join("store");
    assert_eq!(verify_store(&path, &options).unwrap().verdict(), Verdict::Sound);
    for (expected, verdict) in [
        (Expected { seq: head.seq, link: Link([7; 32]) }, Verdict::Damaged),
        (Expected { seq: head.seq.next(), link: head.link }, Verdict::TailLost),
    ] {
        let options = VerifyOptions { expected: vec![expected], ..VerifyOptions::default() };
        assert_eq!(verify_store(&path, &options).unwrap().verdict(), verdict);
    }
}
