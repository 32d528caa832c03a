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
