//! Calls that fail for a moment: nothing that came of it stays, and nothing is said that is not so.

use super::*;
use crate::storage::{Access, Fault, FaultKind};

fn once(kind: FaultKind, after: u64) -> Fault {
    Fault { kind, after, once: true }
}

/// The first header of a walk could not be read, the walk took its seqs for 0, and the frame behind it for damage. The handle refused appends from then on.
#[test]
fn a_header_that_cannot_be_read_now_is_no_damage() {
    for kind in [FaultKind::ReadError, FaultKind::OpenError] {
        for after in 0..6 {
            let world = SimWorld::new(1);
            let _ = append(&open(&world.process(2)).unwrap().0, 0).unwrap();
            let (log, _) = open(&world.process(2)).unwrap();
            let second = append(&log, 1).unwrap();
            let reader = world.process(1);
            let (log, _) = open(&reader).unwrap();
            log.segments.forget();
            reader.plant(once(kind, after));
            let first = log.frames(second.position, log.head()).next().unwrap();
            assert!(!matches!(first, Err(LogError::Corrupt(_))), "{kind:?} {after}: {first:?}");
            reader.heal();
            let _ = append(&log, 2).unwrap();
        }
    }
}

/// A commit whose condition rests on events of another process could not read them, and failed. The next one took them for read, and was placed
/// though its stream had moved: a fact was recorded twice.
#[test]
fn a_stream_that_moved_is_known_to_have_moved_though_that_could_not_be_read_at_first() {
    let mut failed = 0;
    for after in 0..30 {
        let world = SimWorld::new(1);
        let process = world.process(1);
        let (one, _) = open(&process).unwrap();
        let (two, _) = open(&world.process(2)).unwrap();
        let basis = append(&one, 0).unwrap().last_seq();
        let _ = append(&two, 3).unwrap();
        let condition = Condition { stream: stream(0), basis };
        let attempt = || one.append(one.prepare(&[event(&one, 6, 0)])?, &[condition]);
        process.plant(once(FaultKind::ReadError, after));
        let first = attempt();
        failed += u32::from(matches!(first, Err(LogError::Io { .. })));
        process.heal();
        assert!(first.is_err(), "{after}");
        let second = attempt();
        assert!(matches!(second, Err(LogError::HeadMoved { .. })), "{after}: {first:?}, then {second:?}");
    }
    assert!(failed > 2, "{failed}");
}

/// A process that could not open the file of the sync lock synced without it. The page did not say so while another process held the write lock, and the
/// commit was acknowledged. Then a sync failed in a third process, and all that the page did not have was given up.
#[test]
fn nothing_is_acknowledged_that_the_next_failed_sync_gives_up() {
    let world = SimWorld::new(1);
    let (one, two) = (world.process(1), world.process(2));
    let (first, _) = open(&one).unwrap();
    let (second, _) = open(&two).unwrap();
    let _ = append(&second, 0).unwrap();
    let placed = first.place(first.prepare(&[event(&first, 1, 0)]).unwrap(), &[]).unwrap();
    let busy = world.process(3).open("tail", Access::Write).unwrap();
    assert!(busy.try_lock().unwrap());
    one.plant(Fault { kind: FaultKind::OpenError, after: 0, once: false });
    // A caller that waits for less long than the lock is held is told that it is not known.
    let settled = first.settle(&placed);
    assert!(matches!(settled, Err(LogError::Poisoned { .. })), "{settled:?}");
    one.heal();
    busy.unlock().unwrap();
    two.plant(once(FaultKind::SyncError, 0));
    assert!(append(&second, 2).is_err());
    let (log, _) = open(&world.process(4)).unwrap();
    assert!(!sound_listing(&log).iter().any(|(_, text)| *text == shown(1, 0)), "it was given up");
}

/// A poisoned store was opened by a process that could not open the file of the sync lock, beside a process that was syncing: its commits were
/// given up, and it acknowledged them.
#[test]
fn a_poisoning_does_not_end_beside_a_sync() {
    for after in 0..30 {
        let world = SimWorld::new(1);
        let one = world.process(1);
        let (log, _) = open(&one).unwrap();
        let _ = append(&log, 0).unwrap();
        one.plant(once(FaultKind::SyncError, 0));
        assert!(matches!(append(&log, 1), Err(LogError::Poisoned { .. })));
        let syncing = world.process(3).open("SYNC", Access::Write).unwrap();
        assert!(syncing.try_lock().unwrap());
        let two = world.process(2);
        two.plant(once(FaultKind::OpenError, after));
        match open(&two) {
            Ok((_, recovery)) => assert!(recovery.postponed, "{after}: {recovery:?}"),
            Err(error) => assert!(matches!(error, LogError::Io { .. }), "{after}: {error:?}"),
        }
    }
}

/// A handle whose secret could not be read when it was opened said so for as long as it lived, and told people to put the secret back from a backup.
#[test]
fn a_secret_that_cannot_be_read_now_is_not_taken_for_a_lost_one() {
    for kind in [FaultKind::ReadError, FaultKind::OpenError, FaultKind::InspectError] {
        for after in 0..30 {
            let world = closed_store(2);
            let process = world.process(2);
            process.plant(once(kind, after));
            if let Ok((log, _)) = open(&process) {
                assert_eq!(log.secret_fault(), None, "{kind:?} {after}");
            }
        }
    }
}

/// A question about the files failed behind a sync, and the store was said to be replaced.
#[test]
fn a_store_whose_files_cannot_be_looked_at_now_is_not_said_to_be_replaced() {
    for kind in [FaultKind::InspectError, FaultKind::ReadError] {
        for after in 0..30 {
            let world = SimWorld::new(1);
            let process = world.process(1);
            let (log, _) = open(&process).unwrap();
            let _ = append(&log, 0).unwrap();
            process.plant(once(kind, after));
            if let Err(error) = append(&log, 1) {
                let is_told = matches!(error, LogError::Io { .. } | LogError::Poisoned { .. });
                assert!(is_told, "{kind:?} {after}: {error:?}");
            }
        }
    }
}

/// A sync was under way when another process, whose own write had failed, poisoned the store. It ended well and was acknowledged while the next opening waited
/// for the sync lock. The opening went by the page as it was before, and gave the commit up.
#[test]
fn a_sync_that_ends_well_beside_a_poisoning_is_kept() {
    let world = SimWorld::new(1);
    let (one, _) = open(&world.process(1)).unwrap();
    let _ = append(&one, 0).unwrap();
    let (two, _) = open(&world.process(2)).unwrap();
    let placed = one.place(one.prepare(&[event(&one, 1, 0)]).unwrap(), &[]).unwrap();
    let (syncing, opening) = (one.tail.as_ref().unwrap(), two.tail.as_ref().unwrap());
    opening.poison();
    let before = opening.read().unwrap();
    syncing.claim(&before, &placed.stretch.end).unwrap();
    let _lock = opening.lock(&*two.clock, two.options.lock_wait).unwrap();
    let repaired = two.repair(opening, &before, None).unwrap();
    assert_eq!(repaired.place.seq, placed.appended().last_seq());
}
