//! A thread panics while it holds a state: a state that it left half done is never used, shown or saved.

use super::*;
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

#[test]
fn a_fold_that_was_left_half_done_is_folded_anew() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    for number in 0..3 {
        let _ = store.append(&session(), said(number)).unwrap();
    }
    let before = store.view(session().id()).unwrap();
    let fold = store.inner.fold(session().id()).unwrap();
    let poisoned = std::thread::spawn(move || {
        let mut loaded = fold.write().unwrap();
        let ahead = Loaded { watermark: Seq(999), ..Loaded::default() };
        *loaded = ahead;
        panic!("in the middle of a fold");
    });
    assert!(poisoned.join().is_err());
    // Earlier views show the same as before; new ones are made of a new fold.
    assert_eq!(shown(&before), 3);
    assert_eq!(shown(&store.view(session().id()).unwrap()), 3);
    let _ = store.append(&session(), said(3)).unwrap();
    assert_eq!((shown(&before), shown(&store.view(session().id()).unwrap())), (3, 4));
    assert!(store.save_snapshot(session().id()).unwrap());
    drop((before, store));
    assert_eq!(shown(&open(&folder).view(session().id()).unwrap()), 4);
}

/// An embedder would have sent an empty context: the view had no other word for "I cannot say".
#[test]
fn a_view_that_lost_its_fold_says_so_and_is_not_served() {
    let world = SimWorld::new(1);
    let process = world.process(1);
    let store = Store::builder("/sim").storage(Arc::new(process.clone())).open().unwrap();
    for number in 0..3 {
        let _ = store.append(&session(), said(number)).unwrap();
    }
    let [served, untouched] = [(); 2].map(|()| store.view(session().id()).unwrap());
    let fold = store.inner.fold(session().id()).unwrap();
    let poisoned = std::thread::spawn(move || {
        let _half = fold.write().unwrap();
        panic!("in the middle of a fold");
    });
    assert!(poisoned.join().is_err());
    process.plant(Fault { kind: FaultKind::ReadError, after: 0, once: false });
    assert!(matches!(served.to_send(), Err(Error::Busy { .. })));
    assert!(matches!(served.check(), Err(Error::Busy { .. })));
    process.heal();
    // A view that is asked once the disk reads again folds its events anew, from the log.
    assert_eq!(untouched.to_send().unwrap().items().len(), 3);
    assert!(untouched.check().is_ok());
}

/// An event that makes a fold panic makes it panic again: an earlier view must not go there.
#[test]
fn a_view_is_folded_anew_only_up_to_where_it_was() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder);
    let _ = store.append(&session(), said(0)).unwrap();
    let before = store.view(session().id()).unwrap();
    let _ = store.append(&session(), said(1)).unwrap();
    let fold = store.inner.fold(session().id()).unwrap();
    let poisoned = std::thread::spawn(move || {
        let _half = fold.write().unwrap();
        panic!("in the middle of a fold");
    });
    assert!(poisoned.join().is_err());
    assert_eq!(before.read().world().stream(session().id()).unwrap().items(Seq::MAX).count(), 1);
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
    let poisoned = std::thread::spawn(move || {
        let mut locator = inner.locator.write().unwrap();
        // The locator says that it has taken in events that it has not.
        locator.tail = crate::store::locator::TailFrames::after(Seq(999));
        panic!("in the middle of a change");
    });
    assert!(poisoned.join().is_err());
    assert_eq!(store.stream_count().unwrap(), before);
    let receipt = store.append(&session(), said(3)).unwrap();
    assert_eq!(receipt.event_count, 1);
    assert_eq!(shown(&store.view(session().id()).unwrap()), 4);
}
