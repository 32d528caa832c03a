//! Several processes on one store.

use super::*;
use crate::storage::Crash;

#[test]
fn two_processes_take_turns_over_rolls() {
    let world = SimWorld::new(1);
    let (one, _) = open(&world.process(1)).unwrap();
    let (two, _) = open(&world.process(2)).unwrap();
    for commit in 0..20 {
        let log = if commit % 3 == 0 { &one } else { &two };
        let appended = append(log, commit).unwrap();
        assert_eq!(appended.first_seq, Seq(u64::from(commit) * 2 + 1));
    }
    assert_eq!(one.refresh().unwrap(), two.head());
    assert_eq!(sound_listing(&one), sound_listing(&two));
    assert_eq!(sound_listing(&one).len(), 40);
    assert!(one.verify().unwrap().is_sound());
}

#[test]
fn a_view_does_not_see_later_commits() {
    let world = SimWorld::new(1);
    let (one, _) = open(&world.process(1)).unwrap();
    let (two, _) = open(&world.process(2)).unwrap();
    let _ = append(&one, 0).unwrap();
    assert_eq!(two.head().seq, Seq::ZERO);
    let early = two.refresh().unwrap();
    let _ = append(&one, 1).unwrap();
    assert_eq!(two.frames(Position::default(), early).count(), 1);
    let late = two.refresh().unwrap();
    assert_eq!(two.frames(Position::default(), late).count(), 2);
    assert_eq!(two.frames(Position::default(), early).count(), 1);
}

#[test]
fn a_busy_store_is_reported_and_not_waited_for_without_end() {
    let world = SimWorld::new(1);
    let storage = world.process(1);
    let (log, _) = open(&storage).unwrap();
    let holder = world.process(2);
    let tail = TailState::new(Arc::new(holder.clone()), holder_file(&holder));
    let clock = FixedClock::new(Micros(0), 1);
    let lock = tail.lock(&clock, Duration::ZERO).unwrap();
    tail.begin(Position(77), 2).unwrap();
    let busy = append(&log, 0);
    assert!(matches!(busy, Err(LogError::Busy { process: 2, .. })), "{busy:?}");
    // Opening does not fail either: durable events can be read.
    let (other, recovery) = open(&world.process(3)).unwrap();
    assert!(recovery.postponed);
    drop(lock);
    // The holder died in its write: the next process repairs.
    let _ = append(&log, 0).unwrap();
    let _ = append(&other, 1).unwrap();
    assert_eq!(sound_listing(&other).len(), 4);
}

/// It was said that process 0 is writing.
#[test]
fn a_lock_of_another_program_is_said_to_be_that() {
    let world = SimWorld::new(1);
    let (log, _) = open(&world.process(1)).unwrap();
    let holder = world.process(2);
    let tail = TailState::new(Arc::new(holder.clone()), holder_file(&holder));
    let _lock = tail.lock(&FixedClock::new(Micros(0), 1), Duration::ZERO).unwrap();
    let busy = append(&log, 0).unwrap_err().to_string();
    assert!(busy.starts_with("another program holds the lock of "), "{busy}");
}

fn holder_file(storage: &SimStorage) -> Box<dyn crate::storage::StoredFile> {
    crate::storage::Storage::open(storage, "tail", crate::storage::Access::Write).unwrap()
}

#[test]
fn a_process_killed_anywhere_does_not_stop_another() {
    for operation in 0..150 {
        let world = SimWorld::new(operation);
        let (other, _) = open(&world.process(1)).unwrap();
        let mut acked = vec![0];
        let _ = append(&other, 0).unwrap();
        let storage = world.process(2);
        storage.crash_at(operation, Crash::Kill);
        let victim = open(&storage).map(|(log, _)| log);
        for commit in 1..14 {
            if let Ok(victim) = &victim
                && commit % 2 == 1
            {
                if append(victim, commit).is_ok() && !storage.is_dead() {
                    acked.push(commit);
                }
            } else {
                let appended = append(&other, commit);
                assert!(appended.is_ok(), "operation {operation}, commit {commit}: {appended:?}");
                acked.push(commit);
            }
        }
        let _ = other.refresh().unwrap();
        let listed: Vec<String> = sound_listing(&other).into_iter().map(|(_, text)| text).collect();
        for commit in &acked {
            assert!(listed.contains(&shown(*commit, 0)), "operation {operation}: commit {commit} is lost");
        }
        assert!(other.verify().unwrap().is_sound(), "operation {operation}");
        world.cut_power();
        let (log, _) = open(&world.process(3)).unwrap();
        let after: Vec<String> = sound_listing(&log).into_iter().map(|(_, text)| text).collect();
        // A commit that was durable but not yet published by its dying writer may come to light.
        assert!(after.starts_with(&listed) && after.len() <= listed.len() + 2, "operation {operation}");
    }
}

#[test]
fn a_condition_sees_commits_of_other_processes() {
    let world = SimWorld::new(1);
    let (one, _) = open(&world.process(1)).unwrap();
    let (two, _) = open(&world.process(2)).unwrap();
    let _ = append(&one, 0).unwrap();
    let basis = two.refresh().unwrap().seq;
    let _ = append(&one, 3).unwrap();
    let prepared = || two.prepare(&[event(&two, 6, 0)]).unwrap();
    let moved = two.append(prepared(), &[Condition { stream: stream(0), basis }]);
    assert!(matches!(moved, Err(LogError::HeadMoved { actual: Seq(4), .. })), "{moved:?}");
    assert!(two.append(prepared(), &[Condition { stream: stream(1), basis }]).is_ok());
}
