//! Commits that were submitted, and the two durabilities: when they count, how many syncs they cost, which commits a crash takes.

use std::future::Future as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::*;
use crate::command::memory::MemoryCommand;
use crate::command::{ContextAction, Target};
use crate::entry::MemoryEntry;
use crate::event::{Event, Payload, Role};
use crate::fold::policy::Policy;
use crate::storage::{Fault, FaultKind, FixedClock, FixedEntropy, SimStorage, SimWorld};

fn open_with(storage: &SimStorage, durability: Durability) -> Store {
    let number = u64::from(crate::storage::Storage::process(storage));
    Store::builder("/sim")
        .storage(Arc::new(storage.clone()))
        .clock(Arc::new(FixedClock::new(crate::ids::Micros(1_000_000), 10)))
        .entropy(Arc::new(FixedEntropy::new(number)))
        .durability(durability)
        .open()
        .unwrap()
}

fn session() -> StreamInfo {
    StreamInfo::session("acpdb", "s1")
}

fn message(number: u32) -> Entry {
    Entry::message("", Role::User, format!("message {number}")).origin(format!("msg:{number}"))
}

fn submit(store: &Store, number: u32) -> Ticket {
    store.submit(&session(), vec![message(number)]).unwrap()
}

fn message_count(store: &Store) -> usize {
    let events = store.events(Seq(1), Seq::MAX).unwrap();
    events.filter(|event| event.as_ref().unwrap().event.payload.label() == "message_recorded").count()
}

/// Counts the syncs of segments from now on.
fn count_syncs(world: &SimWorld) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    world.record(move |moment| {
        if moment.operation.contains(": sync ") {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    count
}

#[test]
fn one_caller_costs_one_sync_a_commit() {
    let world = SimWorld::new(1);
    let store = open_with(&world.process(1), Durability::Sync);
    let _ = store.append(&session(), vec![message(0)]).unwrap();
    let syncs = count_syncs(&world);
    for number in 1..=50 {
        let _ = store.append(&session(), vec![message(number)]).unwrap();
        assert_eq!(syncs.load(Ordering::SeqCst), number as usize);
    }
    for number in 51..=60 {
        let _ = submit(&store, number).wait().unwrap();
        assert_eq!(
            syncs.load(Ordering::SeqCst),
            number as usize,
            "the thread behind and the caller share one"
        );
    }
}

#[test]
fn a_ticket_that_was_waited_for_survives_a_power_cut() {
    for seed in 0..20 {
        let world = SimWorld::new(seed);
        let store = open_with(&world.process(1), Durability::Sync);
        let tickets: Vec<Ticket> = (0..10).map(|number| submit(&store, number)).collect();
        let seqs: Vec<Seq> = tickets.iter().map(|ticket| ticket.receipt().last_seq).collect();
        assert!(seqs.is_sorted_by(|left, right| left < right), "in the order they were submitted in");
        for ticket in tickets {
            let _ = ticket.wait().unwrap();
        }
        world.cut_power();
        assert_eq!(message_count(&open_with(&world.process(2), Durability::Sync)), 10);
    }
}

#[test]
fn a_condition_sees_commits_that_are_on_their_way_and_its_tickets_share_syncs() {
    let world = SimWorld::new(3);
    let store = open_with(&world.process(1), Durability::Sync);
    let session = store.session(session());
    let (mut head, mut tickets) = (Seq::ZERO, Vec::new());
    let syncs = count_syncs(&world);
    for number in 0..10 {
        tickets.push(session.submit_expecting(head, [message(number)]).unwrap());
        let late = session.submit_expecting(head, [message(100 + number)]);
        assert!(matches!(late, Err(Error::HeadMoved { expected, .. }) if expected == head));
        head = tickets.last().unwrap().receipt().last_seq;
    }
    for ticket in tickets {
        let _ = ticket.wait().unwrap();
    }
    assert_eq!(message_count(&store), 10);
    assert!(syncs.load(Ordering::SeqCst) <= 10, "no more syncs than commits");
}

/// A runtime of one task: counts its wakes, and lets the thread that runs it sleep until the next.
#[derive(Default)]
struct Bell(std::sync::Mutex<bool>, std::sync::Condvar);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

fn block_on(mut ticket: Ticket) -> Result<Receipt, Error> {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    loop {
        if let Poll::Ready(outcome) = std::pin::Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker)) {
            return outcome;
        }
        let mut rung = bell.0.lock().unwrap();
        while !std::mem::take(&mut *rung) {
            rung = bell.1.wait(rung).unwrap();
        }
    }
}

#[test]
fn a_ticket_can_be_awaited_from_any_thread_and_a_repeat_is_there_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::builder(folder.path()).open().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                for number in 0..10 {
                    let receipt = block_on(submit(&store, thread * 10 + number)).unwrap();
                    assert!(store.head().unwrap() >= receipt.last_seq, "durable and visible");
                }
            });
        }
    });
    assert_eq!(message_count(&store), 40);
    assert_eq!(block_on(submit(&store, 7)).unwrap().known_count, 1);
}

#[test]
fn dropping_tickets_and_the_store_loses_nothing() {
    let world = SimWorld::new(3);
    let store = open_with(&world.process(1), Durability::Sync);
    for number in 0..2000 {
        drop(submit(&store, number));
    }
    drop(store);
    world.cut_power();
    assert_eq!(message_count(&open_with(&world.process(2), Durability::Sync)), 2000);
}

#[test]
fn a_failed_sync_is_told_to_whoever_waits_and_nothing_is_appended_after_it() {
    for awaits in [false, true] {
        let world = SimWorld::new(4);
        let storage = world.process(1);
        let store = open_with(&storage, Durability::Sync);
        let _ = submit(&store, 0).wait().unwrap();
        storage.plant(Fault { kind: FaultKind::SyncError, after: 0, once: true });
        let ticket = submit(&store, 1);
        let outcome = if awaits { block_on(ticket) } else { ticket.wait() };
        assert!(matches!(outcome, Err(Error::Poisoned)), "{outcome:?}");
        assert!(matches!(store.submit(&session(), vec![message(2)]), Err(Error::Poisoned)));
        drop(store);
        let store = open_with(&world.process(2), Durability::Sync);
        assert_eq!(message_count(&store), 1, "what was not confirmed is set aside");
        let _ = submit(&store, 1).wait().unwrap();
    }
}

#[test]
fn under_os_a_commit_is_seen_once_it_is_synced_and_a_power_cut_takes_whole_commits_from_the_end() {
    for seed in 0..20 {
        let world = SimWorld::new(seed);
        let storage = world.process(1);
        let store = open_with(&storage, Durability::Os);
        let _ = store.append(&session(), vec![message(0)]).unwrap();
        store.sync().unwrap();
        assert_eq!(message_count(&store), 1, "visible after the sync");
        let mut last = Seq::ZERO;
        for number in 1..30 {
            let receipt = store.append(&session(), vec![message(number)]).unwrap();
            assert!(receipt.last_seq > last);
            last = receipt.last_seq;
        }
        world.cut_power();
        let reopened = open_with(&world.process(2), Durability::Sync);
        let kept: Vec<String> = reopened
            .events(Seq(1), Seq::MAX)
            .unwrap()
            .filter_map(|event| match event.unwrap() {
                Recorded { seq, event: Event { payload: Payload::MessageRecorded(message), .. }, .. } => {
                    Some(reopened.body(message.parts[0].body.id(seq)).unwrap())
                }
                _ => None,
            })
            .map(|text| String::from_utf8(text).unwrap())
            .collect();
        let expected: Vec<String> = (0..kept.len()).map(|number| format!("message {number}")).collect();
        assert_eq!(kept, expected, "a beginning of what was acknowledged, and all that was synced");
        assert!(!kept.is_empty());
    }
}

type Command = Box<dyn Fn(&Session) -> Result<(), Error>>;

/// Who appended and then asked for a command was told that there is no such session, until the sync that follows within milliseconds.
#[test]
fn under_os_a_command_sees_what_was_appended_before_it() {
    let remembered = || {
        MemoryCommand::Add(MemoryEntry {
            value: "tests are slow".into(),
            confidence: 80,
            ..MemoryEntry::default()
        })
    };
    let commands: Vec<(&str, Command)> = vec![
        ("rewind", Box::new(|it| it.store().rewind(it.id(), Seq(2)).map(drop))),
        (
            "remember",
            Box::new(move |it| it.store().remember(&MemoryScope::session(it.id()), &remembered()).map(drop)),
        ),
        ("resume", Box::new(|it| it.open_or_resume().map(drop))),
        ("policy", Box::new(|it| it.store().set_policy(Some(it.id()), &Policy::default(), None).map(drop))),
    ];
    for (seed, (name, command)) in commands.into_iter().enumerate() {
        let world = SimWorld::new(seed as u64);
        let store = open_with(&world.process(1), Durability::Os);
        let _ = store.append(&session(), vec![message(0), message(1)]).unwrap();
        command(&store.session(session())).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn under_os_closing_makes_all_durable() {
    let world = SimWorld::new(6);
    let store = open_with(&world.process(1), Durability::Os);
    for number in 0..100 {
        let _ = store.append(&session(), vec![message(number)]).unwrap();
    }
    drop(store);
    world.cut_power();
    assert_eq!(message_count(&open_with(&world.process(2), Durability::Sync)), 100);
}

/// A stream is free again before its commit is durable, and a view shows only durable events: a decision must not rest on
/// such a view, or it would be recorded behind facts that it did not know of.
#[test]
fn a_command_waits_for_what_was_acknowledged_before_it() {
    let world = SimWorld::new(7);
    let store = open_with(&world.process(1), Durability::Os);
    for number in 0..20 {
        let call = format!("call-{number}");
        let entries = vec![
            Entry::tool_started(&call, "read", r#"{"filePath":"a.rs"}"#),
            Entry::tool_completed(&call, "fn main() {}"),
        ];
        let receipt = store.append(&session(), entries).unwrap();
        let item = receipt.items[0].unwrap();
        let targets = vec![(Target::Item(item), None)];
        let reply = store.context(session().id(), ContextAction::Discard, targets).unwrap();
        assert_eq!(reply.hidden, [item]);
        assert!(store.head().unwrap() >= reply.last_seq.unwrap(), "a command is durable when it returns");
    }
}

/// Two threads record the same fact. The second thread was told at once that the fact is known, while the first thread's
/// commit was not on the disk yet. Its sync failed, and an acknowledged fact was gone. Now the second thread waits for that
/// commit.
#[test]
fn what_is_known_by_a_commit_on_its_way_is_acknowledged_with_it() {
    let world = SimWorld::new(1);
    let storage = world.process(1);
    let store = open_with(&storage, Durability::Sync);
    let _ = store.append(&session(), vec![message(0)]).unwrap();
    let syncs = count_syncs(&world);
    for split in [Atomicity::One, Atomicity::Split] {
        let batch = || Batch { stream: session(), entries: vec![message(1), message(2)] };
        let (_, placed) = store.inner.commit(&[batch()], split, None).unwrap();
        let (receipt, known) = store.inner.commit(&[batch()], split, None).unwrap();
        assert_eq!((receipt.event_count, receipt.known_count), (0, 2));
        if split == Atomicity::One {
            assert_eq!(known.unwrap().stretch.end, placed.unwrap().stretch.end, "it waits for the same");
            let _ = store.append(&session(), vec![message(1)]).unwrap();
            assert_eq!(syncs.load(Ordering::SeqCst), 1, "and shares its sync");
            let _ = store.append(&session(), vec![message(2)]).unwrap();
            assert_eq!(syncs.load(Ordering::SeqCst), 1, "what is durable costs nothing");
        }
    }
    storage.plant(Fault { kind: FaultKind::SyncError, after: 0, once: true });
    let ticket = submit(&store, 3);
    let known = submit(&store, 3);
    assert!(matches!(store.append(&session(), vec![message(3)]), Err(Error::Poisoned)));
    assert!(matches!(known.wait(), Err(Error::Poisoned)));
    assert!(matches!(ticket.wait(), Err(Error::Poisoned)));
    assert!(matches!(store.append(&session(), vec![message(3)]), Err(Error::Poisoned)), "not later either");
    let again = open_with(&world.process(2), Durability::Sync);
    assert_eq!(message_count(&again), 3);
}

/// A command that changes nothing because of a fact rests on that fact, too: it waits for the fact's commit, and fails with it.
#[test]
fn a_command_that_changes_nothing_waits_for_what_it_rests_on() {
    let world = SimWorld::new(1);
    let storage = world.process(1);
    let store = open_with(&storage, Durability::Sync);
    let _ = store.append(&session(), vec![message(0)]).unwrap();
    storage.plant(Fault { kind: FaultKind::SyncError, after: 0, once: true });
    let ticket = submit(&store, 1);
    let update = || store.pin(session().id(), Vec::new());
    assert!(matches!(update(), Err(Error::Poisoned)), "{:?}", update());
    assert!(matches!(update(), Err(Error::Poisoned)), "nor the next one");
    assert!(ticket.wait().is_err());
}
