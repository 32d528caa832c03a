//! A handle does not read its own commits back, and still says the same as the files when other handles write between.

use tempfile::TempDir;

use crate::entry::{Entry, StreamInfo};
use crate::event::{Payload, Role};
use crate::ids::{Seq, StreamId};
use crate::store::Store;

fn session(number: usize) -> StreamInfo {
    StreamInfo::session("acpdb", format!("s{number}"))
}

fn open(folder: &TempDir) -> Store {
    Store::builder(folder.path().join("store")).open().unwrap()
}

fn say(store: &Store, number: usize) {
    let entry = Entry::message(format!("m{number}"), Role::User, format!("{number}"));
    let _ = store.append(&session(number % 3), vec![entry]).unwrap();
}

fn of(store: &Store, stream: StreamId) -> Vec<String> {
    let events = store.stream_events(stream, Seq(1), Seq::MAX).unwrap();
    events.map(|event| format!("{:?}", event.unwrap())).collect()
}

/// Whether the handle knows the places of all frames up to the head, without another look at the log.
fn knows_all(store: &Store) -> bool {
    store.inner.log.places_end_for_test() == store.inner.log.head().position
}

#[test]
fn own_commits_are_taken_up_as_they_are() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    // The first commit of a handle is read: it does not know yet where the log goes on.
    (0..4).for_each(|number| say(&store, number));
    for number in 4..40 {
        say(&store, number);
        assert!(knows_all(&store), "{number}");
    }
    let files = Store::builder(store.root()).read_only().open().unwrap();
    for number in 0..3 {
        let stream = session(number).id();
        assert_eq!(of(&store, stream), of(&files, stream));
        let newest: Vec<String> =
            store.last_events(stream, 5).unwrap().iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(newest, of(&files, stream).split_off(of(&files, stream).len() - 5));
    }
}

/// A frame of another handle between two own ones is not stepped over.
#[test]
fn commits_of_others_between_are_seen() {
    let folder = TempDir::new().unwrap();
    let (one, other) = (open(&folder), open(&folder));
    for number in 0..60 {
        say(if number % 5 < 3 { &one } else { &other }, number);
        let files = Store::builder(one.root()).read_only().open().unwrap();
        for number in 0..3 {
            let stream = session(number).id();
            let expected = of(&files, stream);
            assert_eq!(of(&one, stream), expected, "after {number}");
            assert_eq!(of(&other, stream), expected, "after {number}");
        }
    }
}

#[test]
fn the_newest_events_are_those_of_the_stream() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    (0..30).for_each(|number| say(&store, number));
    let _ = store.reindex().unwrap();
    (30..50).for_each(|number| say(&store, number));
    for number in 0..3 {
        let stream = session(number).id();
        let all: Vec<_> =
            store.stream_events(stream, Seq(1), Seq::MAX).unwrap().map(Result::unwrap).collect();
        for count in [0, 1, 2, 5, 16, 17, 1000] {
            let expected = all.get(all.len().saturating_sub(count)..).unwrap();
            assert_eq!(store.last_events(stream, count).unwrap(), expected, "{count}");
            for held_max in [0, 1, 3] {
                let given = store.newest_holding(stream, count, held_max).unwrap();
                let given: Vec<_> = given.map(Result::unwrap).collect();
                assert_eq!(given, expected, "{count} holding {held_max}");
            }
        }
    }
    assert_eq!(store.last_events(session(9).id(), 3).unwrap(), []);
}

/// Texts come with their events, whether the events were kept, read alone or read together, and equal the texts that a look for each gives.
#[test]
fn the_newest_events_come_with_their_texts() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let info = session(0);
    for number in 0..40_u32 {
        let output = format!("output {number} ").repeat(1 + 300 * (number as usize % 3));
        let call = format!("call-{number}");
        let entries = vec![Entry::step(&call), Entry::tool_completed(&call, &output)];
        let _ = store.append(&info, entries).unwrap();
    }
    let anew = Store::builder(store.root()).read_only().open().unwrap();
    for (store, held_max) in [(&store, 100), (&store, 2), (&anew, 100), (&anew, 2)] {
        let mut ends = store.newest_holding(info.id(), 50, held_max).unwrap().kinds(&["tool_call_finished"]);
        let mut count = 0;
        while let Some(end) = ends.next() {
            let end = end.unwrap();
            let Payload::ToolCallFinished(finished) = &end.event.payload else { panic!("{end:?}") };
            let id = finished.output[0].body.id(end.seq);
            assert_eq!(ends.body(id).unwrap(), store.body(id).unwrap());
            count += 1;
        }
        assert_eq!(count, 25);
    }
}

/// A reader that asks for one body after the other gets what a look for each gives: the bodies, and why there is none.
#[test]
fn bodies_read_one_event_after_the_other_are_those_of_a_look_for_each() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    for number in 0..90_u32 {
        let output = format!("output {number} ").repeat(1 + 400 * (number as usize % 4));
        let call = format!("call-{number}");
        // Every sixth call has the output of the one before it, which is stored once.
        let output = if number % 6 == 5 { "the same as before ".repeat(200) } else { output };
        let entries = vec![Entry::step(&call), Entry::tool_completed(&call, &output)];
        let _ = store.append(&session(number as usize % 3), entries).unwrap();
    }
    let output_of = |event: &crate::event::Recorded| {
        let Payload::ToolCallFinished(finished) = &event.event.payload else { panic!("{event:?}") };
        finished.output.first().unwrap().body.id(event.seq)
    };
    let ends = || store.events(Seq(1), Seq::MAX).unwrap().kinds(&["tool_call_finished"]);
    let erased: Vec<Seq> = ends().map(|end| end.unwrap().seq).skip(7).step_by(11).collect();
    for seq in &erased {
        let _ = store.erase(crate::ids::ItemId::first(*seq), "test", "asked for").unwrap();
    }
    for is_sealed in [false, true] {
        if is_sealed {
            let _ = store.seal(true).unwrap();
        }
        let anew = Store::builder(store.root()).read_only().open().unwrap();
        let stream = session(1).id();
        for which in 0..4_usize {
            let from = if which == 1 { Seq(60) } else { Seq(1) };
            let events = match which {
                2 => anew.newest_events(stream, 50),
                3 => anew.stream_events(stream, Seq(1), Seq::MAX),
                _ => anew.events(from, Seq::MAX),
            };
            let mut ends = events.unwrap().kinds(&["tool_call_finished"]);
            let (mut read_count, mut erased_count) = (0, 0);
            while let Some(end) = ends.next() {
                let id = output_of(&end.unwrap());
                let (given, looked) = (ends.body(id), store.body(id));
                assert_eq!(format!("{given:?}"), format!("{looked:?}"), "{which} {is_sealed}");
                // A body that is asked for again is there again.
                assert_eq!(format!("{given:?}"), format!("{:?}", ends.body(id)), "{which} {is_sealed}");
                read_count += 1;
                erased_count += usize::from(given.is_err());
            }
            assert!(read_count >= 20 && erased_count > 0, "{which}: {read_count}, {erased_count}");
        }
    }
}
