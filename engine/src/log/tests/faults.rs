//! Storage that fails: full disks, failed syncs, short and interrupted calls.

use super::*;
use crate::storage::{Fault, FaultKind};

fn fault(kind: FaultKind, after: u64, once: bool) -> Fault {
    Fault { kind, after, once }
}

/// Appends six commits and says which were acknowledged; errors end nothing.
fn append_some(log: &Log, acked: &mut Vec<u32>, range: std::ops::Range<u32>) -> Vec<LogError> {
    let mut errors = Vec::new();
    for commit in range {
        match append(log, commit) {
            Ok(_) => acked.push(commit),
            Err(error) => errors.push(error),
        }
    }
    errors
}

fn holds(world: &SimWorld, acked: &[u32], context: &str) {
    let (log, recovery) = open(&world.process(60)).unwrap();
    assert!(recovery.damage.is_none(), "{context}: {recovery:?}");
    let listed: Vec<String> = sound_listing(&log).into_iter().map(|(_, text)| text).collect();
    let mut at = 0;
    for commit in acked {
        let found = listed[at..].iter().position(|text| *text == shown(*commit, 0));
        at += found.unwrap_or_else(|| panic!("{context}: commit {commit} is lost")) + 1;
        assert_eq!(listed.get(at), Some(&shown(*commit, 1)), "{context}: commit {commit} is whole");
    }
    assert!(log.verify().unwrap().is_sound(), "{context}");
    let _ = append(&log, 99).unwrap();
}

#[test]
fn a_full_disk_fails_the_commit_whole_and_takes_appends_again_later() {
    let mut met = 0;
    for after in 0..14 {
        for seed in 0..4 {
            let context = format!("full at {after}, seed {seed}");
            let world = SimWorld::new(seed);
            let storage = world.process(1);
            let (log, _) = open(&storage).unwrap();
            storage.plant(fault(FaultKind::NoSpace, after, false));
            let mut acked = Vec::new();
            let errors = append_some(&log, &mut acked, 0..6);
            assert!(
                errors.iter().all(|error| matches!(error, LogError::NoSpace { .. })),
                "{context}: {errors:?}"
            );
            met += errors.len();
            let listed = sound_listing(&log);
            assert_eq!(listed.len(), acked.len() * 2, "{context}");
            // A reader, and verify, work on the full store.
            let read_only = LogOptions { read_only: true, ..options() };
            let (reader, _) = open_with(&world.process(2), read_only).unwrap();
            assert_eq!(sound_listing(&reader), listed, "{context}");
            let report = reader.verify().unwrap();
            assert!(report.is_sound(), "{context}: {report:#?}");
            assert_eq!(report.torn_bytes, 0, "{context}: what was written of the commit is gone");
            let _ = log.write_checkpoint();
            // So does a writer that opens the store while it is full.
            let third = world.process(3);
            third.plant(fault(FaultKind::NoSpace, 0, false));
            let (opened, recovery) = open(&third).unwrap();
            assert!(recovery.damage.is_none(), "{context}");
            assert_eq!(sound_listing(&opened), listed, "{context}");
            storage.heal();
            let errors = append_some(&log, &mut acked, 6..9);
            assert!(errors.is_empty(), "{context}: {errors:?}");
            let cut = world.fork(seed);
            cut.cut_power();
            holds(&cut, &acked, &context);
            holds(&world, &acked, &context);
        }
    }
    assert!(met > 50, "{met}");
}

#[test]
fn a_failed_sync_poisons_until_the_store_is_reopened() {
    for after in 0..5 {
        for once in [true, false] {
            for seed in 0..6 {
                let context = format!("sync {after} fails, once {once}, seed {seed}");
                let world = SimWorld::new(seed);
                let storage = world.process(1);
                let (log, _) =
                    open_with(&storage, LogOptions { segment_bytes_max: 1 << 20, ..options() }).unwrap();
                storage.plant(fault(FaultKind::SyncError, after, once));
                let mut acked = Vec::new();
                let errors = append_some(&log, &mut acked, 0..6);
                assert_eq!(acked.len() as u64, after, "{context}");
                assert!(
                    errors.iter().all(|error| matches!(error, LogError::Poisoned { .. })),
                    "{context}: {errors:?}"
                );
                assert_eq!(sound_listing(&log).len(), acked.len() * 2, "{context}: reads go on");
                // Another process that had the store open refuses as well.
                let crashed = world.fork(seed);
                crashed.cut_power();
                holds(&crashed, &acked, &format!("{context}, then power cut"));
                storage.heal();
                drop(log);
                let (log, recovery) = open(&storage).unwrap();
                assert!(recovery.damage.is_none(), "{context}: {recovery:?}");
                assert_eq!(sound_listing(&log).len(), acked.len() * 2, "{context}: only what was confirmed");
                let errors = append_some(&log, &mut acked, 6..8);
                assert!(errors.is_empty(), "{context}: {errors:?}");
                let crashed = world.fork(seed + 100);
                crashed.cut_power();
                holds(&crashed, &acked, &format!("{context}, appended, power cut"));
                holds(&world, &acked, &context);
            }
        }
    }
}

/// The kernel writes pages back when it likes. A page written back while the store was poisoned was found after a power
/// cut: all that had been acknowledged since the store was reopened was taken for unconfirmed and given up. Clearing the
/// poison is durable now before anything is acknowledged.
#[test]
fn a_stale_poison_on_the_disk_does_not_cost_what_was_acknowledged_since() {
    for seed in 0..200 {
        let world = SimWorld::new(seed);
        let storage = world.process(1);
        let (log, _) = open(&storage).unwrap();
        storage.plant(fault(FaultKind::SyncError, 0, true));
        assert!(matches!(append(&log, 0), Err(LogError::Poisoned { .. })));
        drop(log);
        let (log, _) = open(&storage).unwrap();
        let mut acked = Vec::new();
        let errors = append_some(&log, &mut acked, 1..4);
        assert!(errors.is_empty(), "{errors:?}");
        world.cut_power();
        holds(&world, &acked, &format!("seed {seed}"));
    }
}

#[test]
fn a_poisoned_store_refuses_in_every_process_that_had_it_open() {
    let world = SimWorld::new(5);
    let (one, two) = (world.process(1), world.process(2));
    let (first, _) = open(&one).unwrap();
    let (second, _) = open(&two).unwrap();
    let _ = append(&first, 0).unwrap();
    one.plant(fault(FaultKind::SyncError, 0, true));
    assert!(matches!(append(&first, 1), Err(LogError::Poisoned { .. })));
    assert!(matches!(append(&second, 2), Err(LogError::Poisoned { .. })));
    let (third, recovery) = open(&world.process(3)).unwrap();
    assert!(recovery.torn_bytes > 0);
    let _ = append(&third, 3).unwrap();
    assert!(matches!(append(&first, 4), Err(LogError::Poisoned { .. })), "until it is reopened");
    let report = third.verify().unwrap();
    assert!(report.is_sound(), "{report:#?}");
    assert_eq!(report.events, 4);
}

#[test]
fn short_and_interrupted_calls_change_nothing() {
    for kind in [FaultKind::Short, FaultKind::Interrupted] {
        for seed in 0..10 {
            let world = SimWorld::new(seed);
            let storage = world.process(1);
            storage.plant(fault(kind, 0, false));
            let (log, _) = open(&storage).unwrap();
            let mut acked = Vec::new();
            let errors = append_some(&log, &mut acked, 0..6);
            assert!(errors.is_empty(), "{kind:?}: {errors:?}");
            assert!(log.verify().unwrap().is_sound(), "{kind:?}");
            log.close().unwrap();
            holds(&world, &acked, &format!("{kind:?}"));
        }
    }
}

#[test]
fn any_single_failure_acknowledges_nothing_it_should_not() {
    let kinds =
        [FaultKind::ReadError, FaultKind::WriteError, FaultKind::RenameError, FaultKind::SyncDirError];
    for kind in kinds {
        for once in [true, false] {
            for after in 0..40 {
                let context = format!("{kind:?} at {after}, once {once}");
                let world = SimWorld::new(after);
                let storage = world.process(1);
                let (log, _) = open(&storage).unwrap();
                storage.plant(fault(kind, after, once));
                let mut acked = Vec::new();
                let _ = append_some(&log, &mut acked, 0..6);
                drop(log);
                let crashed = world.fork(after);
                crashed.cut_power();
                holds(&crashed, &acked, &format!("{context}, then power cut"));
                holds(&world, &acked, &context);
            }
        }
    }
}

#[test]
fn a_child_of_fork_is_refused() {
    let world = SimWorld::new(1);
    let storage = world.process(1);
    let (log, _) = open(&storage).unwrap();
    storage.pretend_to_be(2);
    assert!(matches!(append(&log, 0), Err(LogError::Forked { owner: 1, process: 2 })));
    assert!(matches!(log.refresh(), Err(LogError::Forked { .. })));
}

#[test]
fn a_tail_that_was_replaced_is_noticed() {
    let world = SimWorld::new(1);
    let (log, _) = open(&world.process(1)).unwrap();
    let _ = append(&log, 0).unwrap();
    world.remove_file("tail");
    assert!(matches!(append(&log, 1), Err(LogError::Moved { .. })));
    let (other, recovery) = open(&world.process(2)).unwrap();
    assert!(recovery.damage.is_none());
    let _ = append(&other, 2).unwrap();
    assert!(matches!(append(&log, 1), Err(LogError::Moved { .. })));
    assert_eq!(sound_listing(&other).len(), 4);
}

/// A commit was in the file, but the page could not be told of it. It was zeroed, and said not to be recorded. The zeros were
/// not synced, so that a power cut brought the commit back. The zeros are synced now, before anything is said.
#[test]
fn a_commit_that_is_said_not_to_be_recorded_stays_so_after_a_power_cut() {
    for seed in 0..60 {
        let world = SimWorld::new(seed);
        let storage = world.process(1);
        let (log, _) = open(&storage).unwrap();
        let _ = append(&log, 0).unwrap();
        // Busy, the frame, its row, the page.
        storage.plant(fault(FaultKind::WriteError, 3, true));
        let error = append(&log, 1).unwrap_err();
        assert!(matches!(&error, LogError::Io { path, .. } if path.ends_with("tail")), "{error:?}");
        let cut = world.fork(seed);
        cut.cut_power();
        let (after, _) = open(&cut.process(2)).unwrap();
        assert_eq!(after.head().seq, Seq(2), "seed {seed}");
        let mut acked = vec![0];
        let errors = append_some(&log, &mut acked, 2..4);
        assert!(errors.is_empty(), "{errors:?}");
        holds(&world, &acked, "the same handle goes on");
    }
}

/// An opening for reading takes no lock. It looked at the page, then at frames that other processes wrote meanwhile, whose claims
/// were newer than the page, and reported acknowledged commits as missing.
#[test]
fn who_only_reads_beside_writers_sees_no_damage() {
    for seed in 0..share(4) as u64 * 40 {
        let world = SimWorld::new(seed);
        let _ = append(&open(&world.process(9)).unwrap().0, 0).unwrap();
        let write = |storage: SimStorage| {
            let (log, _) =
                open_with(&storage, LogOptions { lock_wait: Duration::from_secs(5), ..options() }).unwrap();
            (1..16).for_each(|commit| drop(append(&log, commit).unwrap()));
        };
        let read = |storage: SimStorage| {
            let mut last = Seq::ZERO;
            for _ in 0..10 {
                let (log, recovery) =
                    open_with(&storage, LogOptions { read_only: true, ..options() }).unwrap();
                assert!(recovery.damage.is_none(), "seed {seed}: {recovery:?}");
                assert!(log.head().seq >= last, "seed {seed}: what was shown is shown");
                last = log.head().seq;
                assert!(listing(&log).iter().all(Result::is_ok), "seed {seed}");
            }
        };
        let parts: Vec<(SimStorage, crate::storage::Part<'_, ()>)> =
            vec![(world.process(1), Box::new(write)), (world.process(2), Box::new(read))];
        world.interleave(seed, parts);
    }
}
