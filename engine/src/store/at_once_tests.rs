//! Commits that must not wait: when they are made, and when they are left to another thread and nothing is recorded.

use std::sync::Arc;

use super::*;
use crate::event::Role;
use crate::storage::{FixedClock, FixedEntropy, SimStorage, SimWorld};

fn open(storage: &SimStorage, durability: Durability) -> Store {
    let number = u64::from(crate::storage::Storage::process(storage));
    Store::builder("/sim")
        .storage(Arc::new(storage.clone()))
        .clock(Arc::new(FixedClock::new(crate::ids::Micros(1_000_000), 10)))
        .entropy(Arc::new(FixedEntropy::new(number)))
        .segment_bytes_max(16 << 10)
        .durability(durability)
        .open()
        .unwrap()
}

fn session(name: &str) -> StreamInfo {
    StreamInfo::session("acpdb", name)
}

fn message(number: u32) -> Entry {
    Entry::message("", Role::User, format!("message {number}")).origin(format!("msg:{number}"))
}

fn at_once(store: &Store, number: u32) -> Option<Receipt> {
    store.append_at_once(&session("s1"), vec![message(number)]).unwrap()
}

fn append(store: &Store, number: u32) {
    let _ = store.append(&session("s1"), vec![message(number)]).unwrap();
}

/// The number of messages of `s1`, once all of this handle's commits are durable.
fn messages(store: &Store) -> usize {
    store.sync().unwrap();
    store.view(session("s1").id()).unwrap().current().len()
}

#[test]
fn a_commit_is_made_at_once_where_nothing_has_to_be_waited_for() {
    let world = SimWorld::new(1);
    let store = open(&world.process(1), Durability::Os);
    assert_eq!(at_once(&store, 1), None, "the stream is not known yet");
    append(&store, 1);
    let receipt = at_once(&store, 2).unwrap();
    assert_eq!((receipt.event_count, receipt.known_count, receipt.items.len()), (1, 0, 1));
    let again = at_once(&store, 2).unwrap();
    assert_eq!((again.event_count, again.known_count), (0, 1), "an origin is known");
    let next = at_once(&store, 3).unwrap();
    assert_eq!(next.first_seq, receipt.last_seq.next());
    assert_eq!(messages(&store), 3);
}

#[test]
fn whatever_it_would_have_to_wait_for_leaves_it_to_another_thread() {
    type Set = fn(&Store, &Store, &mut dyn FnMut());
    let table: [(&str, Set); 4] = [
        ("another process holds the write lock", |_, other, ask| {
            let held = other.inner.log.exclusive().unwrap();
            ask();
            drop(held);
        }),
        ("another process wrote", |_, other, ask| {
            append(other, 50);
            ask();
        }),
        ("another thread appends to the session", |store, _, ask| {
            let writer = store.inner.writer_of(session("s1").id());
            let held = writer.lock().unwrap();
            ask();
            drop(held);
        }),
        ("the session is new", |store, _, _| {
            let new = store.append_at_once(&session("s2"), vec![message(1)]).unwrap();
            assert_eq!(new, None);
        }),
    ];
    for (what, set) in table {
        let world = SimWorld::new(1);
        let store = open(&world.process(1), Durability::Os);
        let other = open(&world.process(2), Durability::Os);
        append(&other, 40);
        other.sync().unwrap();
        append(&store, 1);
        assert!(at_once(&store, 2).is_some(), "{what}: before");
        set(&store, &other, &mut || assert_eq!(at_once(&store, 3), None, "{what}"));
        other.sync().unwrap();
        let before = messages(&store);
        append(&store, 4);
        assert!(at_once(&store, 5).is_some(), "{what}: after");
        assert_eq!(messages(&store), before + 2, "{what}");
    }
}

#[test]
fn a_full_segment_and_a_memory_leave_it_to_another_thread() {
    let world = SimWorld::new(1);
    let store = open(&world.process(1), Durability::Os);
    append(&store, 0);
    let mut left = 0;
    for number in 1..=200 {
        if at_once(&store, number).is_none() {
            left += 1;
            append(&store, number);
        }
    }
    assert!((1..50).contains(&left), "only where a segment ends: {left}");
    assert_eq!(messages(&store), 201);
    let memory = crate::entry::MemoryEntry { value: "pnpm".to_owned(), ..Default::default() };
    let memory = Entry::from(crate::entry::Fact::Memory(memory));
    assert_eq!(
        store.append_at_once(&session("s1"), vec![memory]).unwrap(),
        None,
        "it may belong to another stream"
    );
}

#[test]
fn what_waits_for_the_disk_is_submitted_at_once_and_not_appended() {
    let world = SimWorld::new(1);
    let store = open(&world.process(1), Durability::Sync);
    let _ = store.submit(&session("s1"), vec![message(1)]).unwrap().wait().unwrap();
    assert_eq!(at_once(&store, 2), None);
    let ticket = store.submit_at_once(&session("s1"), vec![message(2)]).unwrap().unwrap();
    let _ = ticket.wait().unwrap();
    world.cut_power();
    assert_eq!(messages(&open(&world.process(2), Durability::Sync)), 2);
}

#[test]
fn two_processes_that_append_at_once_record_all_in_order() {
    let world = SimWorld::new(7);
    let stores = [open(&world.process(1), Durability::Os), open(&world.process(2), Durability::Os)];
    let mut made = 0;
    for number in 0..120_u32 {
        // In runs of different lengths, so that both ways follow each other in every order.
        let Some(store) = stores.get((number / (1 + number % 5)) as usize % 2) else { continue };
        match at_once(store, number) {
            Some(_) => made += 1,
            None => append(store, number),
        }
    }
    assert!(made > 10, "{made}");
    let [first, second] = &stores;
    second.sync().unwrap();
    assert_eq!(messages(first), 120);
    let events = first.events(Seq(1), Seq::MAX).unwrap().map(|event| event.unwrap().seq);
    assert!(events.is_sorted_by(|left, right| left.next() == *right));
}
