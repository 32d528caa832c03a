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
