//! Tickets: waited for, awaited, dropped; in order, refused one by one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use tempfile::TempDir;

use super::*;
use crate::event::Role;
use crate::ids::Seq;

fn store() -> (TempDir, Store) {
    let folder = TempDir::new().unwrap();
    let store = Store::builder(folder.path().join("store")).open().unwrap();
    (folder, store)
}

fn said(number: usize) -> Entry {
    Entry::message(format!("m{number}"), Role::User, format!("word {number}")).origin(format!("m{number}"))
}

/// A runtime of one future: it sleeps until it is woken.
struct Parked(std::thread::Thread, AtomicUsize);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let parked = Arc::new(Parked(std::thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&parked));
    let mut seen = 0;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while parked.1.load(Ordering::SeqCst) == seen {
            std::thread::park();
        }
        seen = parked.1.load(Ordering::SeqCst);
    }
}

#[test]
fn what_is_submitted_to_a_session_is_recorded_in_that_order() {
    let (_folder, store) = store();
    let session = store.session(StreamInfo::session("test", "s"));
    let tickets: Vec<Ticket> = (0..200).map(|number| session.submit([said(number)])).collect();
    let mut last = Seq::ZERO;
    for ticket in tickets {
        let receipt = ticket.wait().unwrap();
        assert!(receipt.first_seq > last, "{receipt:?} after {last}");
        last = receipt.last_seq;
    }
    assert_eq!(session.view().unwrap().current().len(), 200);
    let queues = locked(&store.inner.submissions.0);
    assert!(queues.ready.is_empty());
}

#[test]
fn a_ticket_can_be_awaited_by_anybody() {
    let (_folder, store) = store();
    let session = store.session(StreamInfo::session("test", "s"));
    let receipt = block_on(async {
        let one = session.submit([said(1)]);
        let two = session.submit([said(2)]);
        let second = two.await?;
        let first = one.await?;
        Ok::<_, Error>((first.last_seq, second.last_seq))
    });
    let (first, second) = receipt.unwrap();
    assert!(first < second);
}

#[test]
fn dropped_tickets_and_a_dropped_store_lose_nothing() {
    let (folder, store) = store();
    for session in 0..40 {
        let session = store.session(StreamInfo::session("test", format!("s{session}")));
        for number in 0..5 {
            drop(session.submit([said(number)]));
        }
    }
    // The workers hold the store; whoever opens it anew and submits behind them sees all of it.
    let again = store.clone();
    drop(store);
    for session in 0..40 {
        let session = again.session(StreamInfo::session("test", format!("s{session}")));
        let _ = session.submit([]).wait().unwrap();
        assert_eq!(session.view().unwrap().current().len(), 5);
    }
    drop(again);
    drop(folder);
}

#[test]
fn a_refused_submission_refuses_no_other() {
    let (_folder, store) = store();
    let session = store.session(StreamInfo::session("test", "s"));
    let first = session.submit([said(1)]);
    let huge = session.submit((0..70_000).map(said));
    let last = session.submit([said(2)]);
    assert_eq!(first.wait().unwrap().event_count, 2);
    assert!(matches!(huge.wait().unwrap_err(), Error::TooLarge { .. }));
    assert_eq!(last.wait().unwrap().event_count, 1);
}

#[test]
fn a_store_that_is_only_read_refuses_by_ticket() {
    let (folder, store) = store();
    let info = StreamInfo::session("test", "s");
    let _ = store.append(&info, vec![said(1)]).unwrap();
    let reader = Store::builder(folder.path().join("store")).read_only().open().unwrap();
    assert!(matches!(reader.submit(&info, vec![said(2)]).wait().unwrap_err(), Error::ReadOnly { .. }));
}
