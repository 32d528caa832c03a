//! The index on simulated storage, crashed at any call: it is sound, never ahead of the log, and as far as it was made
//! durable; missing frames are indexed again to the same rows.

use std::sync::Arc;

use super::sample::{encoded, steady};
use crate::codec::FORMAT_VERSION;
use crate::ids::{Position, Seq};
use crate::index::{
    Identity, Index, IndexDurability, IndexOptions, IndexRows, IndexState, MemoryIndex, reindex, rows_of,
};
use crate::log::{Log, LogOptions};
use crate::secret::Secret;
use crate::storage::{Crash, Fault, FaultKind, FixedClock, FixedEntropy, SimStorage, SimWorld};

const OPTIONS: IndexOptions = IndexOptions {
    cache_bytes: 1 << 20,
    check_bytes_max: 4 << 20,
    sort_bytes_max: 1 << 20,
    pack_event_count_min: 1,
};

fn open_log(storage: &SimStorage) -> Option<Log> {
    let options = LogOptions { segment_bytes_max: 16 << 10, ..LogOptions::default() };
    let (clock, entropy) = (Arc::new(FixedClock::default()), Arc::new(FixedEntropy::new(7)));
    Log::create_or_open(Arc::new(storage.clone()), clock, entropy, options).ok().map(|(log, _)| log)
}

fn open_index(log: &Log) -> Option<Arc<Index>> {
    Index::open_for(log, OPTIONS).owner()
}

/// `None` if the process is dead.
fn rows_after(log: &Log, after: Seq) -> Option<Vec<IndexRows>> {
    let frames: Result<Vec<_>, _> = log.frames(Position::default(), log.head()).collect();
    Some(
        frames
            .ok()?
            .iter()
            .filter(|frame| frame.header().first_seq > after)
            .map(|frame| rows_of(frame, &Secret::missing()))
            .collect(),
    )
}

/// How far the index was made durable, for sure.
fn workload(storage: &SimStorage) -> Seq {
    let mut durable = Seq::ZERO;
    let Some(log) = open_log(storage) else { return durable };
    let Some(index) = open_index(&log) else { return durable };
    for (number, commit) in steady(16).into_iter().enumerate() {
        let events: Vec<_> = commit.iter().map(|(stream, act)| encoded(*stream, act)).collect();
        let Ok(prepared) = log.prepare(&events) else { return durable };
        if log.append(prepared, &[]).is_err() {
            return durable;
        }
        if number % 2 == 1 {
            let kind = if number % 8 == 7 { IndexDurability::Immediate } else { IndexDurability::None };
            let Some(rows) = rows_after(&log, index.watermark().seq) else { return durable };
            match index.apply(&rows, kind) {
                Ok(watermark) if kind == IndexDurability::Immediate => durable = watermark.seq,
                Ok(_) => {}
                Err(_) => return durable,
            }
        }
    }
    durable
}

fn judge(world: &SimWorld, durable: Seq, context: &str) {
    let log = open_log(&world.process(50)).expect("the log opens");
    let index = match Index::open_for(&log, OPTIONS) {
        IndexState::Owner(index) => index,
        IndexState::Bypassed(why) => panic!("{context}: {why}"),
    };
    // A file that was being made is made again. After a crash the log always holds all that the index knows.
    assert!(index.notice().is_none() || durable == Seq::ZERO, "{context}: {:?}", index.notice());
    assert!(index.watermark().seq >= durable, "{context}: {:?}, was at {durable}", index.watermark());
    index.apply(&rows_after(&log, index.watermark().seq).unwrap(), IndexDurability::Immediate).unwrap();
    let mut memory = MemoryIndex::default();
    memory.apply(&rows_after(&log, Seq::ZERO).unwrap()).unwrap();
    assert_eq!(index.difference(&memory).unwrap(), None, "{context}");
    // The index that was written anew in its place is the same, and no file is left over.
    drop(index);
    assert!(!world.files().iter().any(|name| name.ends_with(".new")), "{context}");
    let index = open_index(&log).expect("its owner is gone");
    assert_eq!((index.notice(), index.difference(&memory).unwrap()), (None, None), "{context}");
}

#[test]
fn a_crash_at_any_call_costs_no_more_than_what_was_not_durable() {
    let storage = SimWorld::new(1).process(1);
    assert_eq!(workload(&storage), Seq(48));
    let operations = storage.operation_count();
    // Every call of a run costs minutes; this many show each kind of call many times.
    for operation in (1..operations).step_by(3) {
        for (crash, seed) in [(Crash::Kill, 2), (Crash::Power, 3), (Crash::Power, 4)] {
            let world = SimWorld::new(seed);
            let storage = world.process(1);
            storage.crash_at(operation, crash);
            let durable = workload(&storage);
            judge(&world, durable, &format!("{crash:?} at {operation} of {operations}, seed {seed}"));
        }
    }
}

/// However its owner ended, the next one has the index at once.
#[test]
fn ownership_passes_on_when_its_owner_dies() {
    let world = SimWorld::new(1);
    let first = world.process(1);
    let _ = workload(&first);
    let log = open_log(&first).unwrap();
    let owner = open_index(&log).unwrap();
    let second = open_log(&world.process(2)).unwrap();
    assert!(open_index(&second).is_none());
    first.kill();
    let heir = open_index(&second).expect("no process owns it");
    assert_eq!((heir.notice(), heir.watermark().seq), (None, Seq(48)));
    drop(owner);
}

/// A power cut took back frames that the log never synced, but the index had been made durable with them: the index is of another
/// history.
#[test]
fn an_index_ahead_of_the_log_is_begun_anew() {
    let world = SimWorld::new(1);
    let log = open_log(&world.process(1)).unwrap();
    let before = world.fork(1);
    let events = [encoded(0, &super::sample::Act::Turn)];
    let _ = log.append(log.prepare(&events).unwrap(), &[]).unwrap();
    let index = open_index(&log).unwrap();
    index.apply(&rows_after(&log, Seq::ZERO).unwrap(), IndexDurability::Immediate).unwrap();
    drop(index);
    let log = open_log(&before.process(2)).unwrap();
    drop(open_index(&log));
    before.set_file("index.redb", world.file("index.redb").unwrap());
    let index = open_index(&log).unwrap();
    let reason = "the index is rebuilt: it knows events up to #1, the log ends at #0";
    assert_eq!((index.notice(), index.watermark().seq), (Some(reason), Seq::ZERO));
}

/// An index was taken for damaged, and removed, by a process that could not look at it, as one with too many open files.
#[test]
fn an_index_stays_where_a_process_cannot_look_at_it() {
    let world = SimWorld::new(1);
    let log = open_log(&world.process(1)).unwrap();
    let events = [encoded(0, &super::sample::Act::Turn)];
    let _ = log.append(log.prepare(&events).unwrap(), &[]).unwrap();
    let index = open_index(&log).unwrap();
    index.apply(&rows_after(&log, Seq::ZERO).unwrap(), IndexDurability::Immediate).unwrap();
    drop((index, log));
    let mut refused = 0;
    for kind in [FaultKind::OpenError, FaultKind::LockError, FaultKind::InspectError] {
        for after in 0..6 {
            let process = world.process(3);
            let log = open_log(&process).unwrap();
            let identity = Identity { store: log.store(), format: FORMAT_VERSION };
            process.plant(Fault { kind, after, once: true });
            refused += usize::from(open_index(&log).is_none());
            process.plant(Fault { kind, after, once: true });
            // The old index stays, or an equal one takes its place.
            let _ = reindex(&**log.storage(), identity, &log, OPTIONS);
            process.heal();
            let index = open_index(&log).unwrap();
            assert_eq!((index.notice(), index.watermark().seq), (None, Seq(1)), "{kind:?} {after}");
        }
    }
    assert!(refused > 3, "{refused}");
}
