//! A crash at every operation: acknowledged commits are there, each other commit is there whole or not at all.

use super::*;
use crate::storage::Crash;

/// Creates, appends over several rolls, closes, opens again, appends, closes. Stops at the first error.
fn workload(storage: &SimStorage, acked: &mut Vec<u32>, tried: &mut u32) -> Result<(), LogError> {
    for round in 0..2 {
        let (log, _) = open(storage)?;
        for commit in round * 5..round * 5 + 5 {
            *tried = commit + 1;
            let _ = append(&log, commit)?;
            acked.push(commit);
        }
        log.close()?;
    }
    Ok(())
}

/// The judge: every acknowledged commit is there, whole and in order; each other one is there whole or not at all.
fn judge(log: &Log, acked: &[u32], tried: u32, context: &str) {
    let listed = sound_listing(log);
    let commits: Vec<u32> =
        (0..tried).filter(|commit| listed.iter().any(|(_, text)| *text == shown(*commit, 0))).collect();
    let expected: Vec<(Seq, String)> = commits
        .iter()
        .flat_map(|commit| [shown(*commit, 0), shown(*commit, 1)])
        .zip(1..)
        .map(|(text, seq)| (Seq(seq), text))
        .collect();
    assert_eq!(listed, expected, "{context}: whole commits in order");
    assert!(
        acked.iter().all(|commit| commits.contains(commit)),
        "{context}: acked {acked:?}, found {commits:?}"
    );
    let report = log.verify().unwrap();
    assert!(report.is_sound(), "{context}: {report:#?}");
    assert_eq!(report.events, listed.len() as u64, "{context}");
}

/// All files and their bytes.
fn image(world: &SimWorld) -> Vec<(String, Option<Vec<u8>>)> {
    world.files().into_iter().map(|name| (name.clone(), world.file(&name))).collect()
}

fn recovers(world: &SimWorld, acked: &[u32], tried: u32, context: &str) {
    // A reader that may not write shows only durable events and finds no damage.
    if let Ok((reader, recovery)) = open_with(&world.process(50), LogOptions { read_only: true, ..options() })
    {
        assert!(recovery.damage.is_none(), "{context}: {recovery:?}");
        let report = reader.verify().unwrap();
        assert!(report.is_sound(), "{context}, before recovery: {report:#?}");
        let _ = sound_listing(&reader);
    }
    let (log, recovery) = open(&world.process(51)).unwrap();
    assert!(recovery.damage.is_none() && !recovery.postponed, "{context}: {recovery:?}");
    judge(&log, acked, tried, context);
    let listed = sound_listing(&log);
    drop(log);
    let before = image(world);
    let (log, recovery) = open(&world.process(52)).unwrap();
    assert!(recovery.was_clean, "{context}: second recovery {recovery:?}");
    assert_eq!(sound_listing(&log), listed, "{context}");
    drop(log);
    assert!(image(world) == before, "{context}: a second recovery changes nothing");
    // Events that recovery showed are durable.
    let cut = world.fork(7);
    cut.cut_power();
    let (log, _) = open(&cut.process(53)).unwrap();
    assert_eq!(sound_listing(&log), listed, "{context}: after a power cut");
    let _ = append(&log, 90).unwrap();
    assert!(log.verify().unwrap().is_sound(), "{context}: appended after recovery");
}

fn operations() -> u64 {
    let storage = SimWorld::new(0).process(1);
    workload(&storage, &mut Vec::new(), &mut 0).unwrap();
    storage.operation_count()
}

fn crash_everywhere(crash: Crash, seeds: std::ops::Range<u64>) {
    for operation in 0..operations() {
        for seed in seeds.clone() {
            let world = SimWorld::new(seed * 1_000 + operation);
            let storage = world.process(1);
            storage.crash_at(operation, crash);
            let (mut acked, mut tried) = (Vec::new(), 0);
            let ended = workload(&storage, &mut acked, &mut tried);
            // `close` ignores a failure to give back space; then the crash shows in the next call.
            assert!(ended.is_err() || storage.is_dead(), "operation {operation}");
            recovers(&world, &acked, tried, &format!("{crash:?} at {operation}, seed {seed}"));
        }
    }
}

#[test]
fn a_kill_at_any_operation_loses_nothing_acknowledged() {
    crash_everywhere(Crash::Kill, 0..1);
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_acknowledged() {
    crash_everywhere(Crash::Power, 0..if share(2) == 1 { 20 } else { 2 });
}

/// Tails that are written again draw new nonces; a making that is cut off begins again with its key.
#[test]
fn a_crash_at_any_operation_of_an_encrypted_store_loses_nothing_acknowledged() {
    encrypt();
    crash_everywhere(Crash::Kill, 0..1);
    crash_everywhere(Crash::Power, 0..1);
}

#[test]
fn a_power_cut_after_a_kill_loses_nothing_acknowledged() {
    for operation in 0..operations() {
        let world = SimWorld::new(operation);
        let storage = world.process(1);
        storage.crash_at(operation, Crash::Kill);
        let (mut acked, mut tried) = (Vec::new(), 0);
        let _ = workload(&storage, &mut acked, &mut tried);
        world.cut_power();
        recovers(&world, &acked, tried, &format!("kill at {operation}, then power cut"));
    }
}

#[test]
fn a_crash_during_recovery_is_recovered_from() {
    let mut checked = 0;
    for operation in (0..operations()).step_by(share(31)) {
        for crash in [Crash::Kill, Crash::Power] {
            let world = SimWorld::new(operation);
            let storage = world.process(1);
            storage.crash_at(operation, crash);
            let (mut acked, mut tried) = (Vec::new(), 0);
            let _ = workload(&storage, &mut acked, &mut tried);
            for second in (0..).step_by(share(2)) {
                let again = world.fork(second * 7 + 1);
                let storage = again.process(2);
                storage
                    .crash_at(second, if (operation + second) % 3 == 0 { Crash::Kill } else { Crash::Power });
                let _ = open(&storage);
                if !storage.is_dead() {
                    break;
                }
                let context = format!("{crash:?} at {operation}, then at {second} of recovery");
                recovers(&again, &acked, tried, &context);
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "{checked}");
}

/// Another process may have been told of a failed write-back, so a sync by a later opener can succeed over a hole.
/// Recovery therefore writes the found bytes again before it syncs and shows them.
#[test]
fn a_write_back_that_failed_unseen_does_not_lose_what_recovery_showed() {
    for seed in 0..20 {
        let world = SimWorld::new(seed);
        let storage = world.process(1);
        let (log, _) = open(&storage).unwrap();
        let _ = append(&log, 0).unwrap();
        // Killed in the sync of the second commit: written, not durable.
        let before = storage.operation_count();
        let probe = world.fork(seed);
        let probing = probe.process(1);
        drop(log);
        let (log, _) = open(&probing).unwrap();
        let _ = append(&log, 1).unwrap();
        let _ = before;
        let operations = probing.operation_count();
        for back in 1..12.min(operations) {
            let world = world.fork(seed);
            let storage = world.process(2);
            storage.crash_at(operations - back, Crash::Kill);
            if let Ok((log, _)) = open(&storage) {
                let _ = append(&log, 1);
            }
            world.lose_write_back("log/000000000001.seg");
            recovers(&world, &[0], 2, &format!("seed {seed}, {back} operations before the end"));
        }
    }
}
