//! The store stopped at every operation of a small life: what was acknowledged is there, the rest whole or not at all.
//!
//! ```text
//! life = open | append | two streams | policy | discard | close | open again | append | restore | close
//!               each step makes known events; after a crash the log must be the first k steps, k = acked or acked + 1
//! ```
//!
//! The simulated disk forgets what was not synced (all, none or any mix of sectors), and frees the locks of the dead.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::cast_possible_truncation,
    reason = "tests: a failed step is a failed test"
)]

use std::sync::Arc;

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::fold::Policy;
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::storage::{Crash, SimStorage, SimWorld};
use acpdb_engine::verify::{Verdict, verify_storage, world_contradictions};
use acpdb_engine::{Atomicity, Batch, Error, Store};
use acpdb_tests::support::{events, fixed, folded, lines};

fn open(storage: &SimStorage) -> Result<Store, Error> {
    use acpdb_engine::storage::Storage as _;
    let builder = Store::builder("/sim").storage(Arc::new(storage.clone())).registry(acpdb_hosts::registry());
    // A segment this small is full after a few commits, so the life rolls over several of them.
    let builder = builder.segment_bytes_max(4096 + 3000).lock_wait(std::time::Duration::from_millis(3));
    fixed(builder, u64::from(storage.process())).open()
}

fn session(name: &str) -> StreamInfo {
    StreamInfo { project: Some("shop".to_owned()), ..StreamInfo::session("opencode", name) }
}

fn read(call: &str, text: &str) -> Vec<Entry> {
    let output = format!("{text}\n").repeat(20);
    vec![
        Entry::step(format!("step of {call}")),
        Entry::tool_started(call, "read", r#"{"filePath":"src/a.rs"}"#),
        Entry::tool_completed(call, output),
    ]
}

/// How many events the store has, by what a step of the life does. Stops at the first error.
fn life(storage: &SimStorage, acked: &mut u32) -> Result<(), Error> {
    let (one, two) = (session("s1"), session("s2"));
    let mut step = |done: Result<(), Error>| {
        done?;
        *acked += 1;
        Ok::<(), Error>(())
    };
    let store = open(storage)?;
    step(Ok(()))?;
    let hello = vec![Entry::message("m1", Role::User, "hello").origin("msg:m1")];
    step(store.append(&one, hello).map(drop))?;
    step(store.append(&one, read("c1", "first")).map(drop))?;
    let both = [
        Batch { stream: one.clone(), entries: read("c2", "second") },
        Batch { stream: two.clone(), entries: vec![Entry::message("m1", Role::User, "x".repeat(3000))] },
    ];
    step(store.commit(&both, Atomicity::One).map(drop))?;
    let careful = Policy::preset("careful").unwrap_or_default();
    step(store.set_policy(None, &careful, Some("try it")).map(drop))?;
    let item = Target::Item(first_call(&store)?);
    step(store.context(one.id(), ContextAction::Discard, vec![(item.clone(), None)]).map(drop))?;
    store.close()?;
    drop(store);
    let store = open(storage)?;
    step(store.append(&two, read("c1", "third")).map(drop))?;
    step(store.context(one.id(), ContextAction::Restore, vec![(item, None)]).map(drop))?;
    store.close()
}

/// The newest call of the first session.
fn first_call(store: &Store) -> Result<ItemId, Error> {
    let mut newest = ItemId::first(Seq(1));
    for recorded in store.stream_events(session("s1").id(), Seq(1), Seq::MAX)? {
        let recorded = recorded?;
        if recorded.event.payload.label() == "tool_call_started" {
            newest = ItemId::first(recorded.seq);
        }
    }
    Ok(newest)
}

/// The lines of a life without accidents after each of its steps, and how many operations it takes.
fn plan() -> (Vec<Vec<String>>, u64) {
    let world = SimWorld::new(0);
    let storage = world.process(1);
    let mut acked = 0;
    life(&storage, &mut acked).unwrap();
    let operations = storage.operation_count();
    let all = lines(&open(&world.process(2)).unwrap()).unwrap();
    // Where each step ends, by what it ends with.
    let ends = [1, 3, 6, 11, 12, 13, 16, 17];
    assert_eq!(acked as usize, ends.len());
    assert_eq!(all.len(), 17, "{all:#?}");
    (ends.iter().map(|end| all[..*end].to_vec()).collect(), operations)
}

fn image(world: &SimWorld) -> Vec<(String, Option<Vec<u8>>)> {
    world.files().into_iter().map(|name| (name.clone(), world.file(&name))).collect()
}

/// Opens what a crash left, and judges.
fn recovers(world: &SimWorld, steps: &[Vec<String>], acked: u32, context: &str) {
    // Who only looks, before anybody has recovered, finds no damage and no loss.
    match verify_storage(Arc::new(world.process(50)), true) {
        Ok(report) => assert_eq!(report.verdict(), Verdict::Sound, "{context}: {report:#?}"),
        Err(error) => assert_eq!(acked, 0, "{context}: {error}"),
    }
    let store = open(&world.process(51)).unwrap();
    assert!(
        store.recovery().damage.is_none() && !store.recovery().postponed,
        "{context}: {:?}",
        store.recovery()
    );
    let found = lines(&store).unwrap();
    // A store that was being made is made by who opens it next.
    let fewest = acked.max(1);
    let possible = steps.iter().skip(fewest as usize - 1).take(2 - usize::from(acked == 0));
    assert!(possible.into_iter().any(|lines| *lines == found), "{context}: {acked} acked, found {found:#?}");
    let recorded = events(&store).unwrap();
    let world_now = folded(&recorded);
    for at in 0..=recorded.len() as u64 {
        assert_eq!(world_contradictions(&world_now, Seq(at)), [], "{context} at {at}");
    }
    drop(store);
    let before = image(world);
    let store = open(&world.process(52)).unwrap();
    assert!(store.recovery().was_clean, "{context}: second recovery {:?}", store.recovery());
    assert_eq!(lines(&store).unwrap(), found, "{context}");
    drop(store);
    for ((name, left), (_, right)) in before.iter().zip(&image(world)) {
        assert!(left == right, "{context}: a second recovery changes {name}");
    }
    let report = verify_storage(Arc::new(world.process(53)), true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{context}: {report:#?}");
    assert_eq!(report.events, recorded.len() as u64, "{context}");
    // What recovery showed is durable, and life goes on.
    let cut = world.fork(7);
    cut.cut_power();
    let store = open(&cut.process(54)).unwrap();
    assert_eq!(lines(&store).unwrap(), found, "{context}: after a power cut");
    let receipt = store.append(&session("s3"), vec![Entry::message("m", Role::User, "again")]).unwrap();
    assert_eq!(receipt.first_seq.get(), recorded.len() as u64 + 1, "{context}");
}

fn crash_everywhere(crash: Crash, seeds: std::ops::Range<u64>) {
    let (steps, operations) = plan();
    for operation in 0..operations {
        for seed in seeds.clone() {
            let world = SimWorld::new(seed * 1_000 + operation);
            let storage = world.process(1);
            storage.crash_at(operation, crash);
            let mut acked = 0;
            let ended = life(&storage, &mut acked);
            assert!(ended.is_err() || storage.is_dead(), "operation {operation}");
            recovers(&world, &steps, acked, &format!("{crash:?} at {operation}, seed {seed}"));
        }
    }
}

#[test]
fn a_kill_at_any_operation_loses_nothing_acknowledged() {
    crash_everywhere(Crash::Kill, 0..1);
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_acknowledged() {
    crash_everywhere(Crash::Power, 0..u64::from(acpdb_tests::support::cases(1)).clamp(1, 50));
}

/// The judge is judged: with one acknowledged frame taken out of the durable bytes it must not be content.
#[test]
fn a_lost_commit_is_noticed() {
    let (steps, _) = plan();
    let world = SimWorld::new(3);
    let storage = world.process(1);
    let mut acked = 0;
    life(&storage, &mut acked).unwrap();
    let last = world.files().into_iter().filter(|name| name.contains("log/0")).max().unwrap();
    let mut bytes = world.file(&last).unwrap();
    let end = bytes.len();
    bytes[end - 64..].fill(0);
    world.set_file(&last, bytes);
    let judged = std::panic::catch_unwind(|| recovers(&world, &steps, acked, "canary"));
    assert!(judged.is_err(), "an acknowledged commit was taken away and nobody noticed");
}
