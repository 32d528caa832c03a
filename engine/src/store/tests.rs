//! The handle on a real folder: append, repeat, revise, reopen, two handles.

mod bounded;
mod names;
mod one_commit;
mod own_frames;
mod panics;
mod parts;
mod subscribing;
mod transactions;

use tempfile::TempDir;

use super::*;
use crate::entry::{PartEntry, PointRef, WirePiece, fact};
use crate::event::{Face, Payload, Role};

fn open(folder: &TempDir) -> Store {
    Store::builder(folder.path().join("store")).open().unwrap()
}

fn labels(store: &Store) -> Vec<&'static str> {
    let events = store.events(Seq(1), Seq::MAX).unwrap();
    events.map(|event| event.unwrap().event.payload.label()).collect()
}

fn text(store: &Store, seq: Seq) -> String {
    let recorded = store.event(seq).unwrap().unwrap();
    let body = match recorded.event.payload {
        Payload::MessageRecorded(message) => message.parts[0].body,
        Payload::ItemRevised(revised) => revised.parts[0].body,
        other => panic!("{} has no text", other.label()),
    };
    String::from_utf8(store.body(body.id(seq)).unwrap()).unwrap()
}

#[test]
fn a_first_append_opens_the_stream_and_a_repeat_adds_nothing() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let session = StreamInfo::session("acpdb", "s1");
    let hello = || Entry::message("m1", Role::User, "hello").origin("msg:m1");
    let receipt = store.append(&session, vec![hello()]).unwrap();
    assert_eq!((receipt.event_count, receipt.known_count), (2, 0));
    assert_eq!(receipt.items, [Some(crate::ids::ItemId::first(receipt.last_seq))]);
    let again = store.append(&session, vec![hello()]).unwrap();
    assert_eq!((again.event_count, again.known_count, again.items), (0, 1, vec![None]));
    assert_eq!(labels(&store), ["policy_set", "session_opened", "message_recorded"]);
    assert_eq!(text(&store, receipt.last_seq), "hello");
}

/// Access to a view's state was a guard for which the next fold waited: a thread that held one, appended and looked again waited
/// for itself for ever.
#[test]
fn what_was_read_of_a_view_may_be_kept_while_the_store_goes_on() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let session = StreamInfo { project: Some("p".to_owned()), ..StreamInfo::session("acpdb", "s1") };
    let say = |number: u32| {
        let message = Entry::message(format!("m{number}"), Role::User, format!("message {number}"));
        let _ = store.append(&session, vec![message]).unwrap();
        store.view(session.id()).unwrap()
    };
    let first = say(1);
    let (state, digest) = (first.state(), first.state().digest(Seq::MAX));
    let views: Vec<View> = (2..10).map(say).collect();
    assert_eq!(state.digest(Seq::MAX), digest, "later events do not show through, at any seq");
    assert_eq!(first.current().len(), 1);
    for (view, count) in views.iter().zip(2..) {
        assert_eq!((view.current().len(), view.state().items(Seq::MAX).count()), (count, count));
    }
    let memory = store.memory(&MemoryScope::session(session.id()), Seq::MAX).unwrap();
    let said = memory.read(crate::Micros(0), |_| say(10));
    assert_eq!(said.current().len(), 10);
}

#[test]
fn the_same_origin_with_other_content_is_a_revision_also_after_reopening() {
    let folder = TempDir::new().unwrap();
    let session = StreamInfo::session("acpdb", "s1");
    let message = |text: &str| vec![Entry::message("m1", Role::Assistant, text).origin("msg:m1")];
    {
        let store = open(&folder);
        let _ = store.append(&session, message("draft")).unwrap();
    }
    let store = open(&folder);
    let receipt = store.append(&session, message("final")).unwrap();
    let recorded = store.event(receipt.last_seq).unwrap().unwrap();
    let Payload::ItemRevised(revised) = recorded.event.payload else { panic!("not a revision") };
    assert_eq!((revised.item.seq, revised.face), (Seq(3), Face::Output));
    assert_eq!(text(&store, receipt.last_seq), "final");
    assert_eq!(store.append(&session, message("final")).unwrap().known_count, 1);
    // The text of before is a change again, not a repeat.
    assert_eq!(store.append(&session, message("draft")).unwrap().event_count, 1);
}

#[test]
fn two_handles_see_and_skip_what_the_other_recorded() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (open(&folder), open(&folder));
    let session = StreamInfo::session("acpdb", "s1");
    for number in 0..20 {
        let entry =
            || vec![Entry::message("", Role::User, format!("n{number}")).origin(format!("msg:{number}"))];
        let (first, second) = if number % 2 == 0 { (&one, &two) } else { (&two, &one) };
        assert_eq!(first.append(&session, entry()).unwrap().known_count, 0);
        assert_eq!(second.append(&session, entry()).unwrap().known_count, 1);
    }
    assert_eq!(one.head().unwrap(), two.head().unwrap());
    assert_eq!(labels(&one), labels(&two));
}

#[test]
fn many_threads_on_clones_lose_nothing() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                let session = StreamInfo::session("acpdb", format!("s{}", thread % 2));
                for number in 0..25 {
                    let entry = Entry::message("", Role::User, format!("{thread}-{number}"));
                    let _ = store.append(&session, vec![entry]).unwrap();
                }
            });
        }
    });
    let messages = labels(&store).iter().filter(|label| **label == "message_recorded").count();
    assert_eq!(messages, 100);
    let opened = labels(&store).iter().filter(|label| **label == "session_opened").count();
    assert_eq!(opened, 2);
}

#[test]
fn a_record_is_printed_again_from_its_wire_form() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let session = StreamInfo::session("acpdb", "s1");
    let long = "line one\n\"line\" two\t".repeat(10);
    let part = PartEntry::text(&long);
    let wire = vec![
        WirePiece::Literal(b"{\"text\":\"".to_vec()),
        WirePiece::Escaped(part.bytes.clone()),
        WirePiece::Literal(b"\"}".to_vec()),
    ];
    let entry = Entry::message_parts("m1", Role::User, vec![part]).origin("msg:m1").wire(wire);
    let document = Entry::host_record("document", None).origin("document").wire(vec![
        WirePiece::Literal(b"[".to_vec()),
        WirePiece::Record("msg:m1".to_owned()),
        WirePiece::Literal(b"]".to_vec()),
    ]);
    let receipt = store.append(&session, vec![entry, document]).unwrap();
    let expected = serde_json::to_string(&serde_json::json!({"text": long})).unwrap();
    let message = store.event(Seq(3)).unwrap().unwrap();
    assert_eq!(store.record(&message).unwrap().unwrap(), expected.as_bytes());
    let document = store.event(receipt.last_seq).unwrap().unwrap();
    assert_eq!(store.record(&document).unwrap().unwrap(), format!("[{expected}]").into_bytes());
}

#[test]
fn a_rewind_names_a_fact_of_the_same_batch() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let session = StreamInfo::session("acpdb", "s1");
    let entries = vec![
        Entry::message("a", Role::User, "one").origin("msg:a"),
        Entry::message("b", Role::User, "two").origin("msg:b"),
        fact::Rewound { to: PointRef::After("msg:a".to_owned()) }.into(),
        Entry::message("c", Role::User, "three"),
    ];
    let receipt = store.append(&session, entries).unwrap();
    assert_eq!(receipt.items.len(), 4);
    let rewound = store.event(Seq(5)).unwrap().unwrap();
    let Payload::Rewound(rewound) = rewound.event.payload else { panic!("not a rewind") };
    assert_eq!(rewound.to, Seq(3));
}

#[test]
fn a_body_longer_than_a_chunk_comes_back_whole() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let session = StreamInfo::session("acpdb", "s1");
    let long: String = "0123456789abcdef".repeat((17 << 20) / 16);
    let receipt = store.append(&session, vec![Entry::message("m", Role::User, &long)]).unwrap();
    assert!(text(&store, receipt.last_seq) == long);
}

#[test]
fn answers_are_the_same_with_without_and_with_a_damaged_index() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store");
    let builder = || Store::builder(&path).segment_bytes_max(256 << 10);
    {
        let store = builder().open().unwrap();
        for round in 0..30 {
            let batch = |number: usize| Batch {
                stream: StreamInfo::session("acpdb", format!("s{number}")),
                entries: (0..50).map(|n| Entry::message("", Role::User, format!("{round} {n}"))).collect(),
            };
            let batches: Vec<Batch> = (0..5).map(batch).collect();
            let _ = store.commit(&batches, Atomicity::One).unwrap();
        }
        let _ = store.reindex().unwrap();
    }
    let answers = |store: &Store| {
        let names = store.stream_names().unwrap();
        let counts: Vec<usize> = names
            .iter()
            .map(|name| store.stream_events(name.id, Seq(1), Seq::MAX).unwrap().count())
            .collect();
        (names, counts, labels(store))
    };
    let with = answers(&builder().open().unwrap());
    assert_eq!(with.1, [1501; 5]);
    let index = path.join("index.redb");
    assert!(index.exists());
    assert_eq!(answers(&builder().index(false).open().unwrap()), with);
    let mut bytes = std::fs::read(&index).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(&index, bytes).unwrap();
    assert_eq!(answers(&builder().open().unwrap()), with);
    std::fs::remove_file(&index).unwrap();
    assert_eq!(answers(&builder().open().unwrap()), with);
}

/// A hook saw the message first and knew no transcript: the record that came later was dropped as known, and could not be
/// printed again. Now the fact is recorded once and the record beside it.
#[test]
fn a_record_that_comes_later_than_its_fact_is_kept() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let session = StreamInfo::session("acpdb", "s1");
    let hello = || Entry::message("m1", Role::User, "hello").origin("msg:m1");
    let _ = store.append(&session, vec![hello()]).unwrap();
    let with_record = || vec![hello().wire(vec![WirePiece::Literal(b"{\"m\":1}".to_vec())])];
    let receipt = store.append(&session, with_record()).unwrap();
    assert_eq!(receipt.event_count, 1);
    let recorded = store.event(receipt.last_seq).unwrap().unwrap();
    assert_eq!(recorded.event.payload.label(), "host_recorded");
    assert_eq!(store.record(&recorded).unwrap().unwrap(), b"{\"m\":1}");
    assert_eq!(store.append(&session, with_record()).unwrap().known_count, 1);
}

/// A bit rots in the middle of a session. Whether the store has an index or not, the rest of the session is shown, other
/// sessions are whole, and the reader is told that something is left out.
#[test]
fn a_damaged_frame_costs_its_events_and_is_told_of_with_and_without_an_index() {
    for indexed in [false, true] {
        let folder = TempDir::new().unwrap();
        let [one, two] = ["s1", "s2"].map(|name| StreamInfo::session("acpdb", name));
        {
            let store = open(&folder);
            for number in 0..3 {
                for session in [&one, &two] {
                    let text = format!("message {number} of {}", session.name);
                    let _ = store.append(session, vec![Entry::message("", Role::User, text)]).unwrap();
                }
            }
            if indexed {
                let _ = store.reindex().unwrap();
            }
        }
        let path = folder.path().join("store/log/000000000001.seg");
        let mut bytes = std::fs::read(&path).unwrap();
        let text = b"message 1 of s1";
        let body = bytes.windows(text.len()).position(|window| window == text).unwrap();
        // The spine lies before the bodies; its last bytes belong to the body table.
        bytes[body - 40] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let store = open(&folder);
        assert_eq!(store.info().unwrap().index.starts_with("used"), indexed);
        let shown = |session: &StreamInfo| {
            let view = store.view(session.id()).unwrap();
            let items = view.current().into_iter();
            items.map(|item| view.shown(item.ix, Face::Output).unwrap().text).collect::<Vec<_>>()
        };
        assert_eq!(shown(&one), ["message 0 of s1", "message 2 of s1"], "indexed: {indexed}");
        assert_eq!(shown(&two).len(), 3);
        assert_eq!(store.sessions(Seq::MAX).unwrap().len(), 2);
        let head = store.head().unwrap();
        for seq in 1..=head.get() {
            assert!(store.sessions(Seq(seq)).is_ok(), "indexed: {indexed}, at #{seq}");
            if let Ok(Some(event)) = store.event(Seq(seq)) {
                assert!(
                    store.seq_at(event.recorded_at).unwrap() >= Seq(seq),
                    "indexed: {indexed}, at #{seq}"
                );
            }
        }
        assert_eq!(store.seq_at(crate::ids::Micros(i64::MAX)).unwrap(), head);
        assert_eq!(store.damage_met().len(), 1, "indexed: {indexed}, {:?}", store.damage_met());
    }
}

/// A host asks for the context at a seq that is still to come, and keeps the view: it does not change under its hands.
#[test]
fn a_view_of_a_seq_to_come_is_frozen_at_the_head() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let session = StreamInfo::session("acpdb", "s1");
    let message = |text: &str| vec![Entry::message("", Role::User, text)];
    let first = store.append(&session, message("first")).unwrap();
    let view = store.view_at(session.id(), &At::Seq(Seq(100))).unwrap();
    assert_eq!(view.at(), first.last_seq);
    let _ = store.append(&session, message("second")).unwrap();
    assert_eq!(store.view(session.id()).unwrap().current().len(), 2);
    assert_eq!(view.current().len(), 1);
}

/// The shown items of a session: tool or role, status, text.
fn shown(store: &Store, session: &StreamInfo) -> Vec<String> {
    let view = store.view(session.id()).unwrap();
    let line = |item: &crate::fold::ItemView| {
        let text = view.shown(item.ix, Face::Output).unwrap().text;
        let status = item.status.map(|status| format!("{status:?} ")).unwrap_or_default();
        format!("{status}{text}")
    };
    view.current().iter().map(line).collect()
}

/// A host tells a reply while it grows: the model sees its newest version, each part once, and telling it again changes
/// nothing.
#[test]
fn a_message_told_again_with_more_or_fewer_parts_is_shown_once() {
    let folder = TempDir::new().unwrap();
    let session = StreamInfo::session("acpdb", "s1");
    let message = |texts: &[&str]| {
        let parts = texts.iter().map(PartEntry::text).collect();
        vec![Entry::message_parts("m1", Role::Assistant, parts).origin("msg:m1")]
    };
    let mut first = None;
    for texts in
        [&["a"][..], &["a", "b"], &["a", "b2", "c"], &["x", "b2", "c"], &["x"], &["x", "y", "z", "w"]]
    {
        // A handle that saw it happen and one that reads it back conclude the same.
        let store = open(&folder);
        let receipt = store.append(&session, message(texts)).unwrap();
        assert_eq!(store.append(&session, message(texts)).unwrap().known_count, 1, "{texts:?}");
        let mut lines = shown(&store, &session);
        lines.retain(|line| !line.is_empty());
        assert_eq!(lines, texts);
        assert_eq!(receipt.items, [*first.get_or_insert(receipt.items[0])], "{texts:?}");
    }
}

/// A host uses a call id again, and an export tells of a call before its parameters are complete: each result goes to its
/// own call, and no call stays open for ever.
#[test]
fn a_call_told_again_with_other_parameters_is_another_call() {
    let folder = TempDir::new().unwrap();
    let session = StreamInfo::session("acpdb", "s1");
    let start = |params: &str| Entry::tool_started("c1", "read", params).origin("call:c1:start");
    let finish = |text: &str| Entry::tool_completed("c1", text).origin("call:c1:finish");
    let steps = [
        (vec![start("{}")], vec!["Pending "]),
        (
            vec![start("{\"filePath\":\"a\"}"), finish("text of a")],
            vec!["Aborted started again with other parameters", "Completed text of a"],
        ),
        (
            vec![finish("text of a, whole")],
            vec!["Aborted started again with other parameters", "Completed text of a, whole"],
        ),
        (
            vec![start("{\"filePath\":\"b\"}")],
            vec!["Aborted started again with other parameters", "Completed text of a, whole", "Pending "],
        ),
        (
            vec![finish("text of b")],
            vec![
                "Aborted started again with other parameters",
                "Completed text of a, whole",
                "Completed text of b",
            ],
        ),
    ];
    for (entries, lines) in steps {
        let store = open(&folder);
        let _ = store.append(&session, entries.clone()).unwrap();
        assert_eq!(shown(&store, &session), lines);
        let again = store.append(&session, entries.clone()).unwrap();
        assert_eq!((again.event_count, again.known_count), (0, entries.len() as u64), "{lines:?}");
    }
    assert!(open(&folder).session(session).open_calls().unwrap().is_empty());
}

/// One process indexes; another answers from the log until the first goes. Then it takes over, without reading any frame
/// again.
#[test]
fn the_index_is_taken_over_when_its_owner_goes() {
    let folder = TempDir::new().unwrap();
    let session = StreamInfo::session("acpdb", "s1");
    let say = |store: &Store, text: &str| {
        let _ = store.append(&session, vec![Entry::message("", Role::User, text)]).unwrap();
    };
    let first = open(&folder);
    say(&first, "one");
    let _ = first.reindex().unwrap();
    let used = |store: &Store| store.info().unwrap().index.starts_with("used");
    assert!(used(&first));
    let second = open(&folder);
    say(&second, "two");
    assert_eq!(second.info().unwrap().index, "the index is not used: another process holds it");
    drop(first);
    let mut count = 2;
    while !used(&second) {
        say(&second, "more");
        count += 1;
    }
    assert_eq!(second.stream_events(session.id(), Seq(1), Seq::MAX).unwrap().count(), count + 1);
    assert_eq!(labels(&second), labels(&Store::builder(second.root()).read_only().open().unwrap()));
}

/// Two processes that signed the same head wrote one temporary file: one of them got "no such file", or half of the other's note.
#[test]
fn threads_that_keep_a_checkpoint_of_one_seq_take_turns() {
    let folder = TempDir::new().unwrap();
    let (one, two) = (open(&folder), open(&folder));
    let note = |number: usize| format!("note {number}\n").repeat(number * 100 + 1);
    std::thread::scope(|scope| {
        for (number, store) in [&one, &two, &one].into_iter().enumerate() {
            scope.spawn(move || {
                for _ in 0..40 {
                    store.keep_checkpoint(Seq(1), &note(number)).unwrap();
                    let kept = store.kept_checkpoint(Seq(1)).unwrap().unwrap();
                    assert!((0..3).any(|number| kept == note(number)), "{kept}");
                }
            });
        }
    });
}
