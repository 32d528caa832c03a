//! The chain under thousands of schedules, each drawn from its number; and rules broken on purpose, each of which must be found.
//!
//! `ACPDB_REMOTE_SCHEDULES=20000` tries so many; `ACPDB_REMOTE_FIRST=N` begins at another number.

use std::sync::{Arc, Mutex};

use acpdb_engine::codec::WrittenPlace;
use shuttle::scheduler::RandomScheduler;
use shuttle::{Config, Runner};

use acpdb_engine::storage::{Entropy, SystemEntropy};

use super::flawed::Flaw;
use super::world::{Figures, STORE, World, piece_behind};
use crate::names::{ObjectName, head_key};
use crate::run::{LogRun, LogRunKind};
use crate::sim::SimRemoteFaults;
use crate::{Created, MemoryRemote, Remote as _, RemoteChain, repair};

const FAULTS: SimRemoteFaults =
    SimRemoteFaults { lost: 30, late: 25, twice: 15, torn: 25, stopped: 8, killed: 12 };
/// How many schedules a broken rule may live through.
const PLANTED_SCHEDULE_COUNT: u64 = 5000;

/// Runs one schedule; the first thing that was wrong, if anything was.
fn run(number: u64, flaw: Flaw) -> (Option<String>, Figures) {
    let outcome = Arc::new(Mutex::new((None, Figures::default())));
    let told = Arc::clone(&outcome);
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.failure_persistence = shuttle::FailurePersistence::None;
    Runner::new(RandomScheduler::new_from_seed(number, 1), config).run(move || {
        let world = World::new(number, FAULTS, flaw, Arc::new(shuttle::thread::yield_now));
        let mut threads: Vec<_> = (0..World::worker_count())
            .map(|_| {
                let world = Arc::clone(&world);
                shuttle::thread::spawn(move || world.work())
            })
            .collect();
        let reader = Arc::clone(&world);
        threads.push(shuttle::thread::spawn(move || reader.observe()));
        for thread in threads {
            thread.join().unwrap();
        }
        world.judge();
        let wrong = world.faults.lock().unwrap().first().cloned();
        *told.lock().unwrap() = (wrong, *world.figures.lock().unwrap());
    });
    let outcome = outcome.lock().unwrap();
    (outcome.0.clone(), outcome.1)
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn no_schedule_loses_doubles_or_reorders_what_was_acknowledged() {
    let first = from_environment("ACPDB_REMOTE_FIRST", 0);
    let count = from_environment("ACPDB_REMOTE_SCHEDULES", 300);
    let mut sum = Figures::default();
    for number in first..first + count {
        let (wrong, figures) = run(number, Flaw::None);
        assert_eq!(wrong, None, "ACPDB_REMOTE_FIRST={number} ACPDB_REMOTE_SCHEDULES=1 replays it");
        sum.acked += figures.acked;
        sum.taken_over += figures.taken_over;
        sum.fenced += figures.fenced;
        sum.packed += figures.packed;
        sum.completed += figures.completed;
        sum.read += figures.read;
    }
    println!("{count} schedules: {sum:?}");
    for (what, figure) in [
        ("acknowledged", sum.acked),
        ("fenced", sum.fenced),
        ("packed", sum.packed),
        ("completed", sum.completed),
        ("read", sum.read),
    ] {
        // A few schedules, as one that is replayed, need not hold everything.
        assert!(count < 100 || figure > count / 10, "hardly anything was {what}: {sum:?}");
    }
}

#[test]
fn each_broken_rule_is_found() {
    for flaw in Flaw::ALL {
        let found = (0..PLANTED_SCHEDULE_COUNT).find_map(|number| Some((number, run(number, flaw).0?)));
        let Some((number, wrong)) = found else {
            panic!("{flaw:?} lived through {PLANTED_SCHEDULE_COUNT} schedules");
        };
        println!("{flaw:?}: found by schedule {number}: {wrong}");
    }
}

/// A writer that was stopped in its take-over put its fence where an entry of a segment that is complete had been. The entries behind it are of lower
/// epochs, and the names of objects did not say that the fence is before them: a repaired head named the segments alone.
#[test]
fn a_late_fence_before_the_boundary_hides_nothing_from_a_repair() {
    let remote = Arc::new(MemoryRemote::default());
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    let mut chain =
        RemoteChain::take_over(Arc::<MemoryRemote>::clone(&remote), Arc::clone(&entropy), STORE, "one")
            .unwrap();
    let mut first = Vec::new();
    for commit in 1..=4 {
        let piece = piece_behind(chain.place(), commit);
        first.extend_from_slice(&piece.bytes);
        chain.append(&piece).unwrap();
    }
    chain.complete(1, 0, first, chain.place()).unwrap();
    for commit in 5..=6 {
        let piece = piece_behind(chain.place(), commit);
        chain.append(&piece).unwrap();
    }
    let end = chain.place();
    // The entries of the segment are gone, so that the fence of epoch 9 finds a free number.
    let fence = LogRun {
        kind: LogRunKind::Fence,
        generation: 0,
        store: STORE,
        epoch: 9,
        nonce: 9,
        first: 3,
        next: 4,
        before: WrittenPlace::default(),
        behind: WrittenPlace::default(),
        segment: 0,
        bytes: Vec::new(),
    };
    let key = ObjectName::Entry(3).key(STORE);
    assert!(matches!(remote.create(&key, &fence.encode()), Ok(Created::Here(_))));
    remote.delete(&head_key(STORE)).unwrap();
    assert!(repair(&*remote, &entropy, STORE).unwrap());
    let again = RemoteChain::take_over(remote, entropy, STORE, "two").unwrap();
    assert_eq!(again.place(), end);
}
