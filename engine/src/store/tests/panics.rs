//! A thread panics while it holds a state: a state that it left half done is never used, shown or saved.

use super::*;
use crate::locks::steady;
use crate::storage::{Fault, FaultKind, SimWorld};
use crate::store::kept::Loaded;

fn session() -> StreamInfo {
    StreamInfo::session("acpdb", "s1")
}

fn said(number: u32) -> Vec<Entry> {
    let key = format!("m{number}");
    vec![Entry::message(&key, Role::User, format!("message {number}")).origin(key)]
}

fn shown(view: &View) -> usize {
    view.current().len()
}

/// Makes a thread panic in the middle of a change to the session's newest fold.
fn panic_in_a_fold(store: &Store) {
    let slot = steady(&store.inner.folds).of(session().id(), |_| true, || unreachable!("it was folded"));
    let poisoned = std::thread::spawn(move || {
        let mut newest = slot.lock();
        *Arc::make_mut(&mut newest) = Loaded { watermark: Seq(999), ..Loaded::default() };
        panic!("in the middle of a fold");
    });
    assert!(poisoned.join().is_err());
}

#[test]
fn a_fold_that_was_left_half_done_is_folded_anew() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    for number in 0..3 {
        let _ = store.append(&session(), said(number)).unwrap();
    }
    let before = store.view(session().id()).unwrap();
    panic_in_a_fold(&store);
    // Earlier views have a whole fold; new ones are made of a new fold.
    assert_eq!(shown(&before), 3);
    assert_eq!(shown(&store.view(session().id()).unwrap()), 3);
    let _ = store.append(&session(), said(3)).unwrap();
    assert_eq!((shown(&before), shown(&store.view(session().id()).unwrap())), (3, 4));
    assert!(store.save_snapshot(session().id()).unwrap());
    drop((before, store));
    assert_eq!(shown(&open(&folder).view(session().id()).unwrap()), 4);
}

/// An embedder would have sent an empty context: the view asked the log anew, and had no word for "I cannot say".
#[test]
fn an_earlier_view_is_served_whole_whatever_became_of_the_newest_fold() {
    let world = SimWorld::new(1);
    let process = world.process(1);
    let store = Store::builder("/sim").storage(Arc::new(process.clone())).open().unwrap();
    for number in 0..3 {
        let _ = store.append(&session(), said(number)).unwrap();
    }
    let before = store.view(session().id()).unwrap();
    panic_in_a_fold(&store);
    process.plant(Fault { kind: FaultKind::ReadError, after: 0, once: false });
    assert_eq!(shown(&before), 3);
    // A new view has to be folded from the log, and says why it cannot be.
    assert!(matches!(store.view(session().id()), Err(Error::Io { .. })));
    process.heal();
    assert_eq!(before.current().len(), 3);
    assert_eq!(shown(&store.view(session().id()).unwrap()), 3);
}

#[test]
fn what_a_handle_knows_of_a_stream_is_asked_of_the_log_again() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let _ = store.append(&session(), said(0)).unwrap();
    let writers = store.inner.writers_of(std::iter::once(session().id()));
    let writer = writers[&session().id()].clone();
    let poisoned = std::thread::spawn(move || {
        let mut known = writer.lock().unwrap();
        known.ingest_state = crate::command::ingest_state::IngestState::default();
        panic!("in the middle of a draft");
    });
    assert!(poisoned.join().is_err());
    // A repeat is still known, and a new event gets its place behind the others.
    let receipt = store.append(&session(), said(0)).unwrap();
    assert_eq!((receipt.event_count, receipt.known_count), (0, 1));
    let receipt = store.append(&session(), said(1)).unwrap();
    assert_eq!((receipt.event_count, receipt.known_count), (1, 0));
    assert_eq!(store.view(session().id()).unwrap().current().len(), 2);
}

#[test]
fn what_is_known_of_places_is_looked_up_anew() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    for number in 0..3 {
        let _ = store.append(&session(), said(number)).unwrap();
    }
    let before = store.stream_count().unwrap();
    let inner = store.inner.clone();
    let poisoned = std::thread::spawn(move || inner.log.panic_with_places_for_test());
    assert!(poisoned.join().is_err());
    assert_eq!(store.stream_count().unwrap(), before);
    let receipt = store.append(&session(), said(3)).unwrap();
    assert_eq!(receipt.event_count, 1);
    assert_eq!(shown(&store.view(session().id()).unwrap()), 4);
}
