//! Writes that rest on what they read.

use std::collections::BTreeSet;

use super::*;

fn session() -> StreamInfo {
    StreamInfo::session("acpdb", "s1")
}

fn said(name: &str) -> Entry {
    Entry::message(name, Role::User, name).origin(name)
}

/// Two handles and four threads number their messages by what they see. Each number is given once, and none is left out: a write
/// whose stream moved runs again.
#[test]
fn what_a_closure_saw_is_what_its_commit_rests_on() {
    let folder = tempfile::TempDir::new().unwrap();
    let (one, two) = (open(&folder), open(&folder));
    let rounds = 20;
    let given: Vec<usize> = std::thread::scope(|scope| {
        let writer = |store: Store| {
            scope.spawn(move || {
                let number = |_| {
                    let written = store.write(&session(), |transaction| {
                        let number = transaction.view()?.map_or(0, |view| view.history().len());
                        transaction.record(Entry::message(format!("m{number}"), Role::User, "hello"));
                        Ok(number)
                    });
                    written.unwrap().0
                };
                (0..rounds).map(number).collect::<Vec<_>>()
            })
        };
        let writers = [one.clone(), one.clone(), two.clone(), two.clone()].map(writer);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let distinct: BTreeSet<usize> = given.iter().copied().collect();
    assert_eq!(distinct, (0..4 * rounds).collect::<BTreeSet<_>>());
}

/// A head that was stated holds, or nothing is recorded and both heads are named.
#[test]
fn a_stated_head_holds_or_nothing_is_recorded() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = open(&folder);
    let session = store.session(session());
    let first = session.append_expecting(Seq::ZERO, [said("a")]).unwrap();
    let second = session.append_expecting(first.last_seq, [said("b")]).unwrap();
    let _ = store.session(StreamInfo::session("acpdb", "s2")).append([said("x")]).unwrap();
    let head = store.head().unwrap();
    for stated in [Seq::ZERO, first.last_seq] {
        let late = session.append_expecting(stated, [said("late")]);
        let Err(Error::HeadMoved { stream, expected, actual }) = late else { panic!("{stated}: {late:?}") };
        assert_eq!((stream, expected, actual), (session.id(), stated, second.last_seq));
        assert_eq!(store.head().unwrap(), head);
    }
    let third = session.append_expecting(second.last_seq, [said("c")]).unwrap();
    assert_eq!(third.event_count, 1);
    // Events of other sessions do not count.
    let _ = store.session(StreamInfo::session("acpdb", "s2")).append([said("y")]).unwrap();
    let seen = session.view().unwrap().at();
    assert!(seen > third.last_seq);
    assert_eq!(session.append_expecting(seen, [said("d")]).unwrap().event_count, 1);
}

/// The answer of a write was lost, so its caller repeats it with the head of then: it is known.
#[test]
fn a_write_that_is_repeated_is_known() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = open(&folder);
    let session = store.session(session());
    let first = session.append_expecting(Seq::ZERO, [said("a")]).unwrap();
    let again = session.append_expecting(Seq::ZERO, [said("a")]).unwrap();
    assert_eq!((first.event_count, again.event_count, again.known_count), (2, 0, 1));
    // Half of it is new: that half would stand behind the other.
    let half = session.append_expecting(Seq::ZERO, [said("a"), said("b")]);
    assert!(matches!(half, Err(Error::HeadMoved { .. })), "{half:?}");
}

/// An error of the closure ends the write, and nothing is recorded.
#[test]
fn an_error_of_the_closure_ends_the_write() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = open(&folder);
    let done = store.write(&session(), |transaction| {
        assert!(transaction.view()?.is_none());
        transaction.record(said("a"));
        transaction.view().and(Err::<(), _>(Error::Poisoned))
    });
    assert!(matches!(done, Err(Error::Poisoned)), "{done:?}");
    assert!(store.view(session().id()).is_err());
}
