//! Sealed segments: they read as before, take less room, and neither a crash nor a flipped bit changes that.

use super::*;
use crate::storage::Crash;

const NEVER: &dyn Fn() -> bool = &|| false;

/// Seals all complete segments and returns the figures of each.
pub(super) fn seal_all(log: &Log) -> Result<Vec<SealFigures>, LogError> {
    let mut done = Vec::new();
    for number in log.unsealed()? {
        match log.seal(number, NEVER)? {
            SealOutcome::Sealed(figures) => done.push(figures),
            other => panic!("segment {number}: {other:?}"),
        }
    }
    Ok(done)
}

fn sealed_store(commits: u32) -> (SimWorld, Vec<(Seq, String)>) {
    let world = closed_store(commits);
    let (log, _) = open(&world.process(2)).unwrap();
    let truth = sound_listing(&log);
    assert!(!seal_all(&log).unwrap().is_empty());
    log.close().unwrap();
    (world, truth)
}

#[test]
fn a_sealed_segment_says_what_it_said() {
    let world = closed_store(12);
    let (log, _) = open(&world.process(2)).unwrap();
    let (other, _) = open(&world.process(3)).unwrap();
    let truth = sound_listing(&log);
    let places: Vec<Position> =
        log.frames(Position::default(), log.head()).map(|frame| frame.unwrap().position()).collect();
    let sealed = seal_all(&log).unwrap();
    assert!(sealed.len() >= 3, "{sealed:?}");
    assert!(seal_all(&log).unwrap().is_empty(), "a second time there is nothing to do");
    for (who, log) in [("this handle", &log), ("a handle with the old files open", &other)] {
        assert_eq!(sound_listing(log), truth, "{who}");
        let report = log.verify(true).unwrap();
        assert!(report.is_sound(), "{who}: {report:#?}");
        assert_eq!(report.events, truth.len() as u64);
        let now: Vec<Position> =
            log.frames(Position::default(), log.head()).map(|frame| frame.unwrap().position()).collect();
        assert_eq!(now, places, "{who}");
        for place in &places {
            assert_eq!(log.frame_at(*place).unwrap().position(), *place);
        }
        for (seq, _) in &truth {
            let frame = log.locate(*seq).unwrap().unwrap();
            assert!(frame.event(*seq).is_some(), "{who} {seq}");
        }
    }
    let _ = append(&log, 12).unwrap();
    log.close().unwrap();
    let (log, recovery) = open(&world.process(4)).unwrap();
    assert!(recovery.was_clean);
    assert_eq!(sound_listing(&log).len(), truth.len() + 2);
}

#[test]
fn equal_bodies_are_stored_once_and_long_ones_get_short() {
    let world = SimWorld::new(1);
    let (log, _) =
        open_with(&world.process(1), LogOptions { segment_bytes_max: 1 << 20, ..options() }).unwrap();
    let line = "the same output of the same command\n".repeat(2000);
    let mut rows = Vec::new();
    for salt in 1..=16_u8 {
        let mut event = event(&log, u32::from(salt) - 1, 0);
        event.bodies =
            vec![EncodedBody::New { bytes: line.as_bytes().into(), salt: [salt; 16], content: None }];
        rows.extend(log.append(log.prepare(&[event]).unwrap(), &[]).unwrap().rows);
    }
    let sealed = seal_all(&log).unwrap();
    let first = sealed[0];
    assert!(first.bodies > 10 && first.bodies_stored == 1, "{first:?}");
    assert!(
        first.stored_bytes * 900 <= first.body_bytes && first.bytes_after * 40 < first.bytes_before,
        "{first:?}"
    );
    for row in rows {
        assert_eq!(log.body(&row).unwrap(), line.as_bytes());
    }
    assert!(log.verify(true).unwrap().is_sound());
}

#[test]
fn every_flipped_bit_of_a_sealed_file_is_reported_and_costs_at_most_its_commit() {
    let (world, truth) = sealed_store(4);
    let read_only = LogOptions { read_only: true, ..options() };
    let name = "log/000000000001.seg";
    let bytes = world.file(name).unwrap();
    for bit in 0..bytes.len() * 8 {
        let reserved = (96..4088).contains(&(bit / 8)) && !(3840..3968).contains(&(bit / 8));
        if share(2) > 1 && (bit % 8 != bit / 8 % 8 || (reserved && !(bit / 8).is_multiple_of(31))) {
            continue;
        }
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let copy = world.fork(1);
        copy.set_file(name, damaged);
        let context = format!("byte {} bit {}", bit / 8, bit % 8);
        let (log, _) = open_with(&copy.process(9), read_only.clone()).unwrap();
        let report = log.verify(false).unwrap();
        assert!(!report.is_sound(), "{context}: not reported");
        let shown: Vec<_> = listing(&log).into_iter().flatten().collect();
        assert!(shown.iter().all(|line| truth.contains(line)), "{context}: a wrong line");
        assert!(
            truth.len() - shown.len() <= 2,
            "{context}: {} events lost\n{report:#?}",
            truth.len() - shown.len()
        );
    }
}

#[test]
fn every_shortened_sealed_file_is_reported() {
    let (world, truth) = sealed_store(4);
    let read_only = LogOptions { read_only: true, ..options() };
    let name = "log/000000000001.seg";
    let bytes = world.file(name).unwrap();
    for length in (0..bytes.len()).step_by(share(5)) {
        let copy = world.fork(1);
        copy.set_file(name, &bytes[..length]);
        let (log, _) = open_with(&copy.process(9), read_only.clone()).unwrap();
        assert!(!log.verify(false).unwrap().is_sound(), "{length}");
        assert!(listing(&log).into_iter().flatten().all(|line| truth.contains(&line)), "{length}");
    }
    let copy = world.fork(1);
    copy.set_file(name, [bytes.as_slice(), b"more"].concat());
    let (log, _) = open_with(&copy.process(9), read_only).unwrap();
    assert!(!log.verify(false).unwrap().is_sound(), "longer");
    assert_eq!(sound_listing(&log), truth);
}

#[test]
fn a_crash_at_any_step_of_sealing_costs_nothing() {
    let world = closed_store(6);
    let truth = sound_listing(&open(&world.process(2)).unwrap().0);
    for crash in [Crash::Kill, Crash::Power] {
        for step in 0.. {
            let mut finished = false;
            for seed in 0..if share(2) == 1 { 12 } else { 3 } {
                let copy = world.fork(seed);
                let storage = copy.process(3);
                let (log, _) = open(&storage).unwrap();
                storage.crash_at(storage.operation_count() + step, crash);
                let outcome = seal_all(&log);
                drop(log);
                finished = !storage.is_dead();
                assert!(outcome.is_ok() || !finished, "{outcome:?}");
                let context = format!("{crash:?} at step {step}, seed {seed}");
                let (log, recovery) = open(&copy.process(4)).unwrap();
                assert!(recovery.damage.is_none(), "{context}: {recovery:?}");
                assert_eq!(sound_listing(&log), truth, "{context}");
                let report = log.verify(true).unwrap();
                assert!(report.is_sound(), "{context}: {report:#?}");
                let _ = seal_all(&log).unwrap();
                assert_eq!(sound_listing(&log), truth, "{context}, sealed again");
                assert!(log.unsealed().unwrap().is_empty(), "{context}");
                let _ = log.seal(1, NEVER).unwrap();
                let left: Vec<String> =
                    copy.files().into_iter().filter(|name| name.ends_with(".tmp")).collect();
                assert!(left.is_empty(), "{context}: {left:?}");
            }
            if finished {
                assert!(step > 10, "{step} steps");
                break;
            }
        }
    }
}

#[test]
fn a_damaged_segment_is_left_as_it_is() {
    let world = closed_store(6);
    let name = "log/000000000001.seg";
    let sound = world.file(name).unwrap();
    for at in [4096 + 20, 4096 + 200, sound.len() - 20] {
        let mut damaged = sound.clone();
        damaged[at] ^= 1;
        let copy = world.fork(1);
        copy.set_file(name, damaged.clone());
        let (log, _) = open(&copy.process(3)).unwrap();
        assert!(matches!(log.seal(1, NEVER), Err(LogError::Corrupt(_))), "{at}");
        assert_eq!(copy.file(name).unwrap(), damaged, "{at}");
        assert!(copy.file("log/000000000001.seg.tmp").is_none(), "{at}");
    }
}

#[test]
fn two_do_not_seal_at_once_and_whoever_is_told_to_stop_stops() {
    let world = closed_store(6);
    let (log, _) = open(&world.process(3)).unwrap();
    let (other, _) = open(&world.process(4)).unwrap();
    assert_eq!(log.seal(1, &|| true).unwrap(), SealOutcome::Stopped);
    assert!(world.file("log/000000000001.seg.tmp").is_none());
    let lock = other.seal_lock().unwrap().unwrap();
    assert_eq!(log.seal(1, NEVER).unwrap(), SealOutcome::Busy);
    drop(lock);
    assert!(matches!(log.seal(1, NEVER).unwrap(), SealOutcome::Sealed(_)));
    assert_eq!(other.seal(1, NEVER).unwrap(), SealOutcome::NotNeeded);
    let last = log.head().position.segment();
    assert_eq!(log.seal(last, NEVER).unwrap(), SealOutcome::NotNeeded);
}
