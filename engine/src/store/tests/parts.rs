//! Large commits: their events are found one by one, and say the same as the whole commit, or that it is damaged.

use std::os::unix::fs::FileExt as _;

use tempfile::TempDir;

use crate::entry::{Entry, StreamInfo};
use crate::error::Error;
use crate::event::{Face, Recorded, Role};
use crate::ids::{BodyId, Seq};
use crate::store::{Atomicity, Batch, Store};

const SESSION_COUNT: usize = 3;
const MESSAGE_COUNT: usize = 150;

fn session(number: usize) -> StreamInfo {
    StreamInfo::session("acpdb", format!("s{number}"))
}

fn text(session: usize, message: usize) -> String {
    format!("text-{session}-{message} {}", "x".repeat(message % 7))
}

/// One commit of several sessions: each has its messages in a row.
fn filled(folder: &TempDir) -> Store {
    let store = Store::builder(folder.path().join("store")).sealing(false).open().unwrap();
    let batches: Vec<Batch> = (0..SESSION_COUNT)
        .map(|number| {
            let message = |message| {
                Entry::message(format!("m-{number}-{message}-key"), Role::User, text(number, message))
            };
            Batch { stream: session(number), entries: (0..MESSAGE_COUNT).map(message).collect() }
        })
        .collect();
    let _ = store.commit(&batches, Atomicity::One).unwrap();
    store
}

/// The texts that a session shows, read through its fold.
fn shown(store: &Store, number: usize) -> Vec<String> {
    let view = store.view(session(number).id()).unwrap();
    let items = view.history();
    items.iter().map(|item| view.text(item.content.first().unwrap().body).unwrap()).collect()
}

fn events(store: &Store) -> Vec<(Seq, Result<String, String>)> {
    let head = store.head().unwrap();
    let told = |seq| match store.event(Seq(seq)) {
        Ok(recorded) => Ok(format!("{:?}", recorded.unwrap())),
        Err(error @ Error::Corrupt { .. }) => Err(error.to_string()),
        Err(error) => panic!("{error}"),
    };
    (1..=head.get()).map(|seq| (Seq(seq), told(seq))).collect()
}

/// A handle that knows where the large commit is, and has forgotten it.
fn knowing(folder: &TempDir) -> Store {
    let store = Store::builder(folder.path().join("store")).create(false).read_only().open().unwrap();
    let some = Seq(100);
    // From here on the places of the streams are known.
    assert_eq!(store.stream_names().unwrap().len(), SESSION_COUNT);
    *store.inner.cache() = crate::store::kept::FrameCache::default();
    assert!(store.event(some).unwrap().is_some());
    *store.inner.cache() = crate::store::kept::FrameCache::default();
    store
}

#[test]
fn a_few_events_of_a_large_commit_are_what_the_whole_of_it_says() {
    let folder = TempDir::new().unwrap();
    let writer = filled(&folder);
    let whole = events(&Store::builder(folder.path().join("store")).read_only().open().unwrap());
    let store = knowing(&folder);
    assert_eq!(events(&store), whole);
    *store.inner.cache() = crate::store::kept::FrameCache::default();
    for number in 0..SESSION_COUNT {
        let expected: Vec<String> = (0..MESSAGE_COUNT).map(|message| text(number, message)).collect();
        assert_eq!(shown(&store, number), expected);
        let stream = session(number).id();
        let alone = store.stream_events(stream, Seq(1), Seq::MAX).unwrap();
        let alone: Vec<String> = alone.map(|event| format!("{:?}", event.unwrap())).collect();
        let of_all = store.events(Seq(1), Seq::MAX).unwrap().map(Result::unwrap);
        let of_all: Vec<String> =
            of_all.filter(|event| event.event.stream == stream).map(|event| format!("{event:?}")).collect();
        assert_eq!(alone, of_all);
    }
    let names: Vec<String> = store.stream_names().unwrap().into_iter().map(|stream| stream.name).collect();
    assert_eq!(names, ["s0", "s1", "s2"]);
    drop(writer);
}

/// Texts that are asked for together equal those that are asked for one by one: of large commits and small ones.
#[test]
fn many_texts_at_a_time_are_what_they_are_one_by_one() {
    let folder = TempDir::new().unwrap();
    let writer = filled(&folder);
    for number in 0..40 {
        let _ =
            writer.append(&session(1), vec![Entry::message("", Role::Assistant, text(9, number))]).unwrap();
    }
    for store in [writer.clone(), knowing(&folder)] {
        *store.inner.cache() = crate::store::kept::FrameCache::default();
        let view = store.view(session(1).id()).unwrap();
        let faces: Vec<_> = view
            .history()
            .iter()
            .rev()
            .flat_map(|item| [Face::Output, Face::Input].map(|face| (item.ix, face, view.at())))
            .collect();
        let together = view.shown_all(&faces);
        assert_eq!(together.len(), 2 * (MESSAGE_COUNT + 40));
        for ((ix, face, _), together) in faces.into_iter().zip(together) {
            assert_eq!(together.unwrap(), view.shown(ix, face).unwrap());
        }
        let ids: Vec<_> = view.history().iter().map(|item| item.content.first().unwrap().body).collect();
        let bodies = view.bodies(&[&ids[..], &ids[..3]].concat());
        let alone = ids.iter().chain(&ids[..3]).map(|id| view.body(*id).unwrap());
        assert!(bodies.into_iter().map(Result::unwrap).eq(alone));
        let nothing = [BodyId { chunks: 0, ..ids[0] }, BodyId { first: 99, ..ids[0] }];
        let none = view.bodies(&[nothing[0], ids[1], nothing[1], BodyId { seq: Seq(1 << 40), ..ids[0] }]);
        let words = |body: &Result<Vec<u8>, Error>| body.as_ref().map(Vec::len).map_err(ToString::to_string);
        assert_eq!(words(&none[0]), Ok(0));
        assert!(none[1].is_ok() && none[2].is_err() && none[3].is_err());
        assert_eq!(words(&none[2]), words(&view.body(nothing[1])));
    }
}

/// A scan has the texts of its events at hand: they equal those that the store gives.
#[test]
fn a_scan_gives_the_texts_that_the_store_gives() {
    let folder = TempDir::new().unwrap();
    let writer = filled(&folder);
    for number in 0..40 {
        let long = "y".repeat(number * number * 40);
        let output = format!("{}{long}", text(9, number));
        let call = format!("call-{number}");
        let entries = vec![Entry::tool_started(&call, "Read", "{}"), Entry::tool_completed(&call, output)];
        let _ = writer.append(&session(1), entries).unwrap();
    }
    let ids = |recorded: &Recorded| -> Vec<BodyId> {
        let seq = recorded.seq;
        (0..writer.body_count(seq).unwrap()).map(|first| BodyId { seq, first, chunks: 1 }).collect()
    };
    let check = || {
        let (mut events, mut count) = (writer.events(Seq(1), Seq::MAX).unwrap(), 0);
        let mut last = None;
        while let Some(recorded) = events.next() {
            for id in ids(&recorded.unwrap()).into_iter().chain(last) {
                assert_eq!(events.body(id).unwrap(), writer.body(id).unwrap());
                count += 1;
                last = Some(id);
            }
        }
        assert!(count > SESSION_COUNT * MESSAGE_COUNT + 40, "{count}");
        assert_eq!(events.body(BodyId { chunks: 0, ..last.unwrap() }).unwrap(), b"");
        assert!(events.body(BodyId { first: 99, ..last.unwrap() }).is_err());
    };
    check();
    assert!(!writer.seal(true).unwrap().sealed.is_empty());
    check();
}

/// Sealing moves the bytes of a commit. A handle that knows where they were finds them where they are now.
#[test]
fn events_of_a_large_commit_are_found_in_a_sealed_segment_too() {
    let folder = TempDir::new().unwrap();
    let writer = filled(&folder);
    let store = knowing(&folder);
    let before = events(&store);
    let report = writer.seal(true).unwrap();
    assert!(!report.sealed.is_empty(), "{report:?}");
    *store.inner.cache() = crate::store::kept::FrameCache::default();
    assert_eq!(events(&store), before);
    // A handle that opens it now reads the sealed segment.
    drop(store);
    let store = knowing(&folder);
    assert_eq!(events(&store), before);
    assert_eq!(shown(&store, 1).len(), MESSAGE_COUNT);
}

/// Damage that comes after a commit was checked is met when it is read again: it is reported, costs the events of the commit and
/// nothing else, and is in no answer.
#[test]
fn damage_in_a_commit_that_was_sound_is_reported() {
    let folder = TempDir::new().unwrap();
    drop(filled(&folder));
    let path = folder.path().join("store/log/000000000001.seg");
    let clean = std::fs::read(&path).unwrap();
    let truth = events(&knowing(&folder));
    let events_of_commit = SESSION_COUNT * (MESSAGE_COUNT + 1);
    let key = b"m-1-77-key";
    let payload = clean.windows(key.len()).position(|bytes| bytes == key).unwrap();
    let body = b"text-1-77 ";
    let body = clean.windows(body.len()).position(|bytes| bytes == body).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for at in [payload, payload + 3, body] {
        let store = knowing(&folder);
        file.write_all_at(&[clean[at] ^ 4], at as u64).unwrap();
        let found = events(&store);
        let lost = found.iter().zip(&truth).filter(|(found, truth)| found != truth);
        let lost: Vec<_> = lost.map(|(found, _)| found).collect();
        assert!(lost.iter().all(|(_, found)| found.is_err()), "{lost:?}");
        // All events of the commit; none if the damage is in the text of one.
        assert_eq!(lost.len(), if at == body { 0 } else { events_of_commit }, "byte {at}");
        *store.inner.cache() = crate::store::kept::FrameCache::default();
        if at == body {
            let view = store.view(session(1).id()).unwrap();
            let texts = view.history().into_iter().map(|item| view.text(item.content.first().unwrap().body));
            let lost: Vec<_> = texts.filter_map(Result::err).collect();
            assert!(matches!(lost.as_slice(), [Error::Corrupt { .. }]), "{lost:?}");
        } else {
            // The sessions are there, and have nothing to show.
            assert!(store.view(session(1).id()).unwrap().history().is_empty());
            assert!(!store.damage_met().is_empty(), "byte {at}");
        }
        let other = store.view(session(9).id());
        assert!(matches!(other, Err(Error::NotFound { .. })), "one that never was is not found");
        file.write_all_at(&[clean[at]], at as u64).unwrap();
    }
}
