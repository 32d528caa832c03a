//! The facts of one call are one commit, also where they name each other.

use super::*;
use crate::codec::FramePlace;
use crate::entry::ItemRef;
use crate::event::ReplaceCause;
use crate::storage::{Crash, SimStorage, SimWorld};
use crate::verify::Verdict;

fn said(name: &str, text: &str) -> Entry {
    Entry::message(name, Role::User, text).origin(name)
}

fn commit_count(store: &Store, session: &StreamInfo) -> usize {
    store.inner.frames_of(&[session.id()], Seq::ZERO).unwrap().0.len()
}

fn shown(store: &Store, session: &StreamInfo) -> Vec<String> {
    let view = store.view(session.id()).unwrap();
    let state = view.state();
    let items = state.current(view.at()).into_iter();
    let bodies = items.flat_map(|ix| state.content(ix, view.at()));
    let texts = bodies.map(|part| String::from_utf8(store.body(part.body).unwrap()).unwrap());
    texts.collect()
}

#[test]
fn facts_that_name_each_other_are_one_commit() {
    let cases: [(&str, Vec<Entry>, &[&str]); 4] = [
        (
            "a rewind to a fact of the same call",
            vec![
                said("a", "one"),
                said("b", "two"),
                Entry::from(fact::Rewound { to: PointRef::After("a".to_owned()) }),
                said("c", "three"),
            ],
            &["one", "three"],
        ),
        ("a fact that is told twice, differently", vec![said("a", "draft"), said("a", "final")], &["final"]),
        (
            "a revision, a rewind before it, and the same fact again",
            vec![
                said("a", "one"),
                said("b", "two"),
                said("b", "two, revised"),
                Entry::from(fact::Rewound { to: PointRef::Before("b".to_owned()) }),
                said("c", "three"),
            ],
            &["one", "three"],
        ),
        (
            "a context that the host made of facts of the same call",
            vec![
                said("a", "one"),
                said("b", "two"),
                said("c", "three"),
                Entry::from(fact::ContextReplaced {
                    cause: ReplaceCause::Host,
                    order: vec![ItemRef::Origin("a".to_owned(), 1), ItemRef::Origin("c".to_owned(), 1)],
                    tokens_before: None,
                }),
            ],
            &["one", "three"],
        ),
    ];
    for (what, entries, expected) in cases {
        let folder = TempDir::new().unwrap();
        let store = open(&folder);
        let session = StreamInfo::session("acpdb", "s1");
        let count = entries.len();
        let receipt = store.append(&session, entries.clone()).unwrap();
        assert_eq!(commit_count(&store, &session), 1, "{what}");
        assert_eq!(receipt.items.len(), count, "{what}");
        assert_eq!(receipt.event_count, receipt.last_seq.get() - receipt.first_seq.get() + 1, "{what}");
        assert_eq!(shown(&store, &session), expected, "{what}");
        // The parts of a splitting commit come to the same context.
        let other = TempDir::new().unwrap();
        let split = open(&other);
        let batch = Batch { stream: session.clone(), entries };
        let _ = split.commit(&[batch], Atomicity::Split).unwrap();
        assert_eq!(shown(&split, &session), expected, "{what}, split");
        drop(store);
        let reopened = open(&folder);
        assert_eq!(shown(&reopened, &session), expected, "{what}, reopened");
    }
}

/// Facts that name each other need the seqs of their commit. Other threads and handles take seqs all the time.
#[test]
fn seqs_are_right_while_others_write() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let other = open(&folder);
    let rounds = 40;
    std::thread::scope(|scope| {
        for (number, store) in [&store, &store, &other].into_iter().enumerate() {
            scope.spawn(move || {
                let session = StreamInfo::session("acpdb", format!("noise {number}"));
                for round in 0..rounds {
                    let _ = store.append(&session, vec![said(&format!("n{round}"), "noise")]).unwrap();
                }
            });
        }
        for (number, store) in [&store, &other].into_iter().enumerate() {
            scope.spawn(move || {
                let session = StreamInfo::session("acpdb", format!("talk {number}"));
                for round in 0..rounds {
                    let (keep, drop) = (format!("keep {round}"), format!("drop {round}"));
                    let back = Entry::from(fact::Rewound { to: PointRef::After(keep.clone()) });
                    let entries = vec![said(&keep, &keep), said(&drop, &drop), back];
                    let _ = store.append(&session, entries).unwrap();
                }
            });
        }
    });
    let expected: Vec<String> = (0..rounds).map(|round| format!("keep {round}")).collect();
    for number in 0..2 {
        let session = StreamInfo::session("acpdb", format!("talk {number}"));
        assert_eq!(shown(&store, &session), expected);
        assert_eq!(commit_count(&store, &session), rounds);
    }
    drop((store, other));
    let options = VerifyOptions { deep: true, ..VerifyOptions::default() };
    let report = verify_store(&folder.path().join("store"), &options).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:?}");
}

fn of_world(process: &SimStorage) -> Result<Store, Error> {
    let builder = Store::builder("sim").storage(Arc::new(process.clone())).index(false).snapshots(false);
    builder.clock(Arc::new(process.clock())).open()
}

/// An import is many short commits that one sync makes durable. Whatever stops it, the store has a beginning of it, and no gap.
#[test]
fn a_splitting_commit_leaves_a_beginning() {
    let session = StreamInfo::session("acpdb", "s1");
    let entries = || (0..700).map(|number| said(&format!("m{number}"), &format!("text {number}"))).collect();
    let batch = || [Batch { stream: session.clone(), entries: entries() }];
    let world = SimWorld::new(5);
    let process = world.process(1);
    let store = of_world(&process).unwrap();
    let before = process.operation_count();
    assert_eq!(store.commit(&batch(), Atomicity::Split).unwrap().event_count, 701);
    let operations = process.operation_count() - before;
    let counts: Vec<u64> = store
        .inner
        .frames_of(&[session.id()], Seq::ZERO)
        .unwrap()
        .0
        .iter()
        .map(FramePlace::event_count)
        .collect();
    assert_eq!(counts, [256, 256, 189]);
    drop(store);
    let mut seen = std::collections::BTreeSet::new();
    for stop in 0..=operations {
        let world = SimWorld::new(5);
        let process = world.process(1);
        let store = of_world(&process).unwrap();
        process.crash_at(process.operation_count() + stop, Crash::Power);
        let done = store.commit(&batch(), Atomicity::Split);
        drop(store);
        world.cut_power();
        let store = of_world(&world.process(2)).unwrap();
        let there =
            if store.stream_names().unwrap().is_empty() { Vec::new() } else { shown(&store, &session) };
        assert!(there.iter().enumerate().all(|(number, text)| *text == format!("text {number}")), "{stop}");
        assert!(done.is_err() || there.len() == 700, "{stop}: {}", there.len());
        let _ = seen.insert(there.len());
        // The same import goes on from there.
        let _ = store.commit(&batch(), Atomicity::Split).unwrap();
        assert_eq!(shown(&store, &session).len(), 700, "{stop}");
    }
    assert!(seen.contains(&0) && seen.contains(&700), "{seen:?}");
}

/// A splitting commit ends where a turn ends, if it is long enough.
#[test]
fn a_splitting_commit_is_cut_between_turns() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let session = StreamInfo::session("acpdb", "s1");
    let turn = |number: usize| {
        let texts = (0..49).map(move |at| said(&format!("{number}.{at}"), "text"));
        std::iter::once(Entry::step(format!("step {number}"))).chain(texts)
    };
    let entries = (0..7).flat_map(turn).collect();
    let _ = store.commit(&[Batch { stream: session.clone(), entries }], Atomicity::Split).unwrap();
    let places = store.inner.frames_of(&[session.id()], Seq::ZERO).unwrap().0;
    let counts: Vec<u64> = places.iter().map(FramePlace::event_count).collect();
    assert_eq!(counts, [151, 150, 50], "the session's opening, and seven turns");
}
