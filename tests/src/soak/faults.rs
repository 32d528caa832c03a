//! Storage that fails at operation k, once or for ever, in one process or in one of several: nothing is acknowledged that
//! is not kept, and the store opens again.

use acpdb_engine::Error;
use acpdb_engine::storage::{Fault, FaultKind, Part, SimStorage, SimWorld};

use super::auditor::{Audit, read};
use super::crash::{chain, judge_with};
use super::life::{Actor, Setting, builder, prepared};
use super::script::{SESSION_COUNT, script};
use super::{Dice, Finding};

/// Kinds of faults after which everything acknowledged is there. A lying sync is judged by itself.
const HONEST: [FaultKind; 11] = [
    FaultKind::ReadError,
    FaultKind::WriteError,
    FaultKind::NoSpace,
    FaultKind::SyncError,
    FaultKind::SyncDirError,
    FaultKind::RenameError,
    FaultKind::OpenError,
    FaultKind::LockError,
    FaultKind::InspectError,
    FaultKind::Short,
    FaultKind::Interrupted,
];

/// Counts of the work done.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Lives with a fault that came to pass.
    pub faults: u64,
    /// Of these, lives with another process beside.
    pub beside: u64,
}

/// Every kind at every `step`-th operation, once and for ever.
///
/// # Errors
/// The first thing that must not be.
pub fn every_operation(seed: u64, step: usize) -> Result<Tally, Finding> {
    let mut tally = Tally::default();
    for kind in HONEST.into_iter().chain([FaultKind::SyncLies]) {
        for once in [true, false] {
            for process_count in [1, 2] {
                for after in (seed % step.max(1) as u64..).step_by(step.max(1)) {
                    let fault = Fault { kind, after, once };
                    let hit = one_life(seed.wrapping_add(after), fault, process_count).map_err(|wrong| {
                        Finding {
                            seed,
                            place: format!("{fault:?} in one of {process_count} processes"),
                            wrong,
                        }
                    })?;
                    if !hit {
                        break;
                    }
                    tally.faults += 1;
                    tally.beside += u64::from(process_count > 1);
                }
            }
        }
    }
    Ok(tally)
}

/// One life with a fault; whether it came to pass.
///
/// # Errors
/// The first fault, in words.
pub fn one_life(seed: u64, fault: Fault, process_count: u32) -> Result<bool, String> {
    let mut dice = Dice::new(seed);
    let setting = Setting { segment_bytes_max: 4096 + 2500, goes_on: true, sabotage: None };
    let (world, auditor) = prepared(seed, setting).map_err(|error| chain(&error))?;
    let scripts: Vec<_> =
        (0..process_count).map(|number| script(&mut dice, &format!("p{number}"), 7)).collect();
    let storages: Vec<SimStorage> = (1..=process_count).map(|number| world.process(number)).collect();
    let parts: Vec<(SimStorage, Part<'_, Result<(), Error>>)> = storages
        .iter()
        .zip(&scripts)
        .map(|(storage, steps)| {
            let auditor = auditor.clone();
            let live = move |storage: SimStorage| {
                Actor { storage, auditor, setting, opened: (0..SESSION_COUNT).collect(), steps }.live()
            };
            (storage.clone(), Box::new(live) as Part<'_, _>)
        })
        .collect();
    let Some(victim) = storages.first() else { return Ok(false) };
    victim.plant(fault);
    // However they ended, only acknowledged commits count.
    let _ = world.interleave(seed, parts);
    let hit = victim.was_hit();
    let audit = auditor.now();
    if fault.kind == FaultKind::SyncLies {
        return honest(&world, &audit, setting, &mut dice).map(|()| hit);
    }
    judge_with(&world.fork(seed), &audit, setting, true, &mut dice)
        .map_err(|wrong| format!("all killed: {wrong}"))?;
    let cut = world.fork(seed + 1);
    cut.cut_power();
    judge_with(&cut, &audit, setting, true, &mut dice).map_err(|wrong| format!("power cut: {wrong}"))?;
    Ok(hit)
}

/// After syncs that lied and a power cut: the store opens or says why not, and every line it shows is one that was
/// written, in the order it was written in.
fn honest(world: &SimWorld, audit: &Audit, setting: Setting, dice: &mut Dice) -> Result<(), String> {
    let cut = world.fork(dice.roll());
    cut.cut_power();
    let Ok(store) = builder(&cut.process(50), setting).open() else { return Ok(()) };
    if store.recovery().damage.is_some() {
        return Ok(());
    }
    match read(&store) {
        Ok(found) => audit.judge_prefix(&found),
        Err(_) => Ok(()),
    }
}
