//! The stream that a text names: the same with an index, which knows names, as without one.

use tempfile::TempDir;

use crate::entry::{Entry, PointRef, StreamInfo, WirePiece, fact};
use crate::error::Error;
use crate::event::{Role, Scope};
use crate::ids::{Micros, Seq, StreamId};
use crate::store::{Atomicity, Batch, Store};

fn opened(store: &Store, stream: &StreamInfo) {
    let _ = store.append(stream, vec![Entry::message("", Role::User, "hello")]).unwrap();
}

#[test]
fn a_session_is_found_by_the_same_names_with_and_without_an_index() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store");
    let indexed = Store::builder(&path).open().unwrap();
    let session = |host: &str, name: &str| StreamInfo::session(host, name);
    let main = session("one", "alpha-main");
    for stream in [
        main.clone(),
        StreamInfo { parent: Some((main.id(), None)), ..session("one", "alpha-main-sub") },
        session("one", "beta-1"),
        session("one", "beta-2"),
        session("two", "both"),
        session("one", "both"),
        session("one", "betamax"),
        StreamInfo { scope: Scope::Project, name: "beta".to_owned(), ..StreamInfo::default() },
        StreamInfo { parent: Some((main.id(), None)), ..session("one", "last-of-all") },
    ] {
        opened(&indexed, &stream);
    }
    let _ = indexed.reindex().unwrap();
    let plain = Store::builder(&path).index(false).open().unwrap();
    let told = |store: &Store, name: &str| match store.find_stream(name) {
        Ok(found) => format!("{} {}", found.host, found.name),
        Err(error @ (Error::NotFound { .. } | Error::Ambiguous { .. })) => error.to_string(),
        Err(error) => panic!("{name:?}: {error}"),
    };
    let id = main.id().to_hex();
    let other = StreamId([7; 16]).to_hex();
    let long = "x".repeat(600);
    for (name, expected) in [
        ("alpha-main", "one alpha-main"),
        ("alpha-main-", "one alpha-main-sub"),
        // A session and its subagent: the session is meant.
        ("alpha", "one alpha-main"),
        ("beta-1", "one beta-1"),
        ("beta", " beta"),
        ("betam", "one betamax"),
        ("latest", "one betamax"),
        ("last", "one last-of-all"),
        (id.as_str(), "one alpha-main"),
    ] {
        assert_eq!(told(&indexed, name), expected, "{name:?}");
    }
    for name in ["both", "bet", "nothing", "", "beta-3", other.as_str(), long.as_str(), "latest", "beta\0"] {
        assert_eq!(told(&indexed, name), told(&plain, name), "{name:?}");
    }
    assert!(told(&plain, "both").contains("names 2 things"));
    assert!(told(&plain, "beta-3").contains("beta-"), "{}", told(&plain, "beta-3"));
    // A stream recorded since the index was written is found, too.
    opened(&plain, &session("one", "gamma"));
    assert_eq!(told(&indexed, "gamma"), "one gamma");
    assert_eq!(told(&indexed, "latest"), "one gamma");
}

/// An import of many sessions records all their openings first. A session of a host without times, whose opening was alone in its commit, had begun
/// when it was imported, and so `since:` found it.
#[test]
fn a_session_without_times_has_no_beginning_however_its_events_fell_into_commits() {
    let folder = TempDir::new().unwrap();
    let store = Store::builder(folder.path().join("store")).open().unwrap();
    let session = |name: &str| StreamInfo::session("chat", name);
    let record = |key: &str| {
        let message = Entry::message(key, Role::User, "hello").origin(key);
        vec![message.wire(vec![WirePiece::Literal(b"{}".to_vec())])]
    };
    let names = ["imported", "typed"];
    for name in names {
        let _ = store.append(&session(name), Vec::new()).unwrap();
    }
    assert_eq!(store.head().unwrap(), Seq(3), "two openings behind the policy");
    let _ = store.append(&session("imported"), record("a")).unwrap();
    opened(&store, &session("typed"));
    let began = |name: &str| store.find_stream(name).unwrap().began.is_some();
    assert_eq!(names.map(began), [false, true]);
}

/// Ids that a host derived from a record's bytes were keyed once more when a caller gave them as the store shows them: a step, a fork or
/// an append by the shown name went into another session.
#[test]
fn what_a_store_shows_can_be_said_to_it() {
    let folder = TempDir::new().unwrap();
    let store = Store::builder(folder.path().join("store")).open().unwrap();
    let told = StreamInfo::session("host", "digest:00ff");
    let session = store.session(told.clone());
    let _ = session.append([Entry::tool_started("digest:aa#1", "read", "{}")]).unwrap();
    let shown = store.stream_names().unwrap().remove(0);
    assert_ne!(shown.name, told.name);
    let again = store.session(StreamInfo::session(&*shown.host, &*shown.name));
    assert_eq!((again.id(), session.id()), (shown.id, shown.id));
    let open = again.open_calls().unwrap().remove(0);
    let _ = again.append([Entry::tool_completed(&*open.call, "text")]).unwrap();
    assert!(again.open_calls().unwrap().is_empty(), "{} was answered", open.call);
    assert_eq!(store.stream_names().unwrap().len(), 1);
}

/// A subagent whose call became known after it was opened stayed without one.
#[test]
fn a_call_that_becomes_known_later_is_told_once() {
    let folder = TempDir::new().unwrap();
    let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
    let main = StreamInfo::session("one", "main");
    let child = |parent: &StreamInfo, call: Option<&str>| StreamInfo {
        parent: Some((parent.id(), call.map(str::to_owned))),
        ..StreamInfo::session("one", "child")
    };
    opened(&store, &main);
    opened(&store, &child(&main, None));
    let other = StreamInfo::session("one", "other");
    for (told, call, event_count) in [
        (child(&other, Some("x")), None, 0),
        (child(&main, Some("c")), Some("c"), 1),
        (child(&main, Some("d")), Some("c"), 0),
    ] {
        let before = store.head().unwrap();
        let _ = store.append(&told, Vec::new()).unwrap();
        assert_eq!(store.head().unwrap().get() - before.get(), event_count);
        let view = store.view(told.id()).unwrap();
        let name = store.stream_name(told.id()).unwrap().unwrap();
        let started = store.summary(name, &view).unwrap().unwrap().name.started_by.unwrap();
        assert_eq!((started.stream, started.call.as_deref()), (main.id(), call));
    }
}

/// A fork's point had to be named by its seq, which no host knows; and of a session with branches the first one was shown.
#[test]
fn a_branch_begins_at_an_event_of_another_stream_and_the_newest_one_is_meant() {
    let folder = TempDir::new().unwrap();
    let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
    let main = StreamInfo::session("one", "main");
    let branch = main.branch(2);
    let said = |key: &str, at: i64| Entry::message(key, Role::User, key).origin(key).at(Some(Micros(at)));
    let at = PointRef::After("b".to_owned());
    let fork = Entry::from(fact::Forked { from: main.id(), at }).origin("forked");
    let batch = |stream: &StreamInfo, entries| Batch { stream: stream.clone(), entries };
    let batches = [
        batch(&main, vec![said("a", 1), said("b", 2), said("c", 3)]),
        batch(&branch, vec![fork, said("d", 4)]),
    ];
    for known in [false, true] {
        let receipt = store.commit(&batches, Atomicity::Split).unwrap();
        assert_eq!(receipt.event_count == 0, known);
    }
    let shown = |name: &str| {
        let found = store.find_stream(name).unwrap();
        let view = store.view(found.id).unwrap();
        let texts = view.current();
        (found.name, texts.len())
    };
    assert_eq!(shown("main+2"), ("main+2".to_owned(), 3));
    assert_eq!(shown("main").0, "main+2");
    let _ = store.append(&main, vec![said("f", 5)]).unwrap();
    assert_eq!(shown("main"), ("main".to_owned(), 4));
    let _ = store.append(&branch, vec![said("e", 6)]).unwrap();
    assert_eq!(shown("main"), ("main+2".to_owned(), 4));
    assert_eq!(shown(&main.id().to_hex()).0, "main");
    // A session of its own that bears such a name is none.
    opened(&store, &main.branch(3));
    assert_eq!(shown("main").0, "main+2");
}
