//! Power cuts and kills at every operation of a life and at every operation of the recovery from them.

use std::sync::{Arc, Mutex, PoisonError};

use acpdb_engine::entry::Entry;
use acpdb_engine::event::Role;
use acpdb_engine::storage::{Crash, Moment, Part, SimStorage, SimWorld, Storage};
use acpdb_engine::testing::whereabouts;
use acpdb_engine::verify::{Verdict, verify_storage, world_contradictions};
use acpdb_engine::{Error, Store};

use super::auditor::{Audit, Auditor, read};
use super::life::{Actor, Setting, builder, prepared};
use super::sabotage::Sabotage;
use super::script::{script, session, traces};
use super::{Dice, Finding, is_segment};
use crate::support::{events, folded};

/// Counts of the work done.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Lives lived.
    pub lives: u64,
    /// Places where they stopped.
    pub moments: u64,
    /// Stopped machines that were recovered and judged.
    pub images: u64,
    /// Of these, machines that stopped again during recovery.
    pub again: u64,
}

/// A life's moments, each with the commits acknowledged by then.
type Moments = Arc<Mutex<Vec<(Moment, Audit)>>>;

fn watch(world: &SimWorld, auditor: &Auditor) -> Moments {
    let moments = Moments::default();
    let (kept, auditor) = (moments.clone(), auditor.clone());
    world.record(move |moment| {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push((moment, auditor.now()));
    });
    moments
}

fn taken(world: &SimWorld, moments: &Moments) -> Vec<(Moment, Audit)> {
    world.stop_recording();
    std::mem::take(&mut *moments.lock().unwrap_or_else(PoisonError::into_inner))
}

/// One life, stopped at every operation, until `image_count_max` images have been judged.
///
/// # Errors
/// The first thing that must not be.
pub fn one_life(
    seed: u64,
    image_count_max: u64,
    sabotage: Option<Sabotage>,
    tally: &mut Tally,
) -> Result<(), Finding> {
    let mut dice = Dice::new(seed);
    let finding = |place: String, wrong: String| Finding { seed, place, wrong };
    let segment_bytes_max = dice.pick(&[4096 + 1500, 4096 + 3000, 4096 + 9000], 8192);
    let setting = Setting { segment_bytes_max, goes_on: false, sabotage };
    let process_count = dice.pick(&[1, 1, 2, 3], 1);
    let (world, auditor, moments) = if process_count == 1 {
        let world = SimWorld::new(seed);
        let auditor = Auditor::default();
        let moments = watch(&world, &auditor);
        let steps = script(&mut dice, "a", 14);
        let actor = Actor {
            storage: world.process(1),
            auditor: auditor.clone(),
            setting,
            opened: Vec::new(),
            steps: &steps,
        };
        actor.live().map_err(|error| finding("life".to_owned(), chain(&error)))?;
        (world, auditor, moments)
    } else {
        let (world, auditor) =
            prepared(seed, setting).map_err(|error| finding("preparation".to_owned(), chain(&error)))?;
        let moments = watch(&world, &auditor);
        let scripts: Vec<_> =
            (0..process_count).map(|number| script(&mut dice, &format!("p{number}"), 6)).collect();
        let victim = dice.below(2 * process_count);
        let parts: Vec<(SimStorage, Part<'_, Result<(), Error>>)> = (1..)
            .zip(&scripts)
            .map(|(number, steps)| {
                let storage = world.process(number);
                if number as usize == victim + 1 {
                    storage.crash_at(20 + dice.roll() % 150, Crash::Kill);
                }
                let auditor = auditor.clone();
                let live = move |storage: SimStorage| {
                    let opened = (0..super::script::SESSION_COUNT).collect();
                    let actor = Actor { storage: storage.clone(), auditor, setting, opened, steps };
                    if storage.is_dead() { Ok(()) } else { ended(actor.live(), &storage) }
                };
                (storage, Box::new(live) as Part<'_, _>)
            })
            .collect();
        for outcome in world.interleave(seed, parts) {
            outcome.map_err(|error| finding("life of several processes".to_owned(), chain(&error)))?;
        }
        (world, auditor, moments)
    };
    let mut moments = taken(&world, &moments);
    // The end is a place to stop, too: nothing is under way.
    let end = world.fork(seed);
    judge(&end, &auditor.now(), setting, &mut dice).map_err(|wrong| finding("the end".to_owned(), wrong))?;
    tally.lives += 1;
    tally.moments += moments.len() as u64;
    let limit = tally.images.saturating_add(image_count_max);
    // Any order does; this one has a small budget spread over the whole life and not spent on its first commits.
    let mut places: Vec<_> = moments.drain(..).enumerate().collect();
    for last in (1..places.len()).rev() {
        places.swap(last, dice.below(last + 1));
    }
    for (number, (moment, audit)) in places {
        for variant in 0..4 {
            if tally.images >= limit {
                return Ok(());
            }
            let crash = if variant == 0 { Crash::Kill } else { Crash::Power };
            let image_seed = dice.roll();
            let image = moment.image(crash, image_seed);
            let place =
                || format!("{crash:?} before operation {number} ({}), image {image_seed}", moment.operation);
            if crash == Crash::Kill && dice.one_in(2) {
                // Write-back fails, and the process that was told of it is dead.
                for name in image.files().iter().filter(|name| is_segment(name)) {
                    image.lose_write_back(name);
                }
            }
            let again = dice.one_in(12);
            let recovery = again.then(|| watch(&image, &Auditor::default()));
            judge(&image, &audit, setting, &mut dice).map_err(|wrong| finding(place(), wrong))?;
            tally.images += 1;
            for (step, (moment, _)) in
                recovery.map(|moments| taken(&image, &moments)).unwrap_or_default().iter().enumerate()
            {
                let crash = if dice.one_in(3) { Crash::Kill } else { Crash::Power };
                let image = moment.image(crash, dice.roll());
                judge(&image, &audit, setting, &mut dice).map_err(|wrong| {
                    let place = format!(
                        "{}, then {crash:?} before {step} of recovery ({})",
                        place(),
                        moment.operation
                    );
                    finding(place, wrong)
                })?;
                tally.images += 1;
                tally.again += 1;
            }
        }
    }
    Ok(())
}

/// Lives until `image_count` images have been judged.
///
/// # Errors
/// The first thing that must not be.
pub fn many_lives(seed: u64, image_count: u64, sabotage: Option<Sabotage>) -> Result<Tally, Finding> {
    let mut tally = Tally::default();
    while tally.images < image_count {
        let life = seed.wrapping_add(tally.lives);
        one_life(life, image_count - tally.images, sabotage, &mut tally)?;
    }
    Ok(tally)
}

/// A killed process ends with an error, and that is no finding.
fn ended(outcome: Result<(), Error>, storage: &SimStorage) -> Result<(), Error> {
    if storage.is_dead() { Ok(()) } else { outcome }
}

/// An error with its sources.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// Recovers a stopped machine and judges its store.
///
/// # Errors
/// The first fault, in words.
pub fn judge(image: &SimWorld, audit: &Audit, setting: Setting, dice: &mut Dice) -> Result<(), String> {
    judge_with(image, audit, setting, dice.one_in(8), dice)
}

/// As [`judge`]; `thorough` also asks before recovery, cuts the power once more after it, and goes on living.
///
/// # Errors
/// The first fault, in words.
pub fn judge_with(
    image: &SimWorld,
    audit: &Audit,
    setting: Setting,
    thorough: bool,
    dice: &mut Dice,
) -> Result<(), String> {
    if thorough {
        // A reader, before any process has recovered, finds no damage and no loss.
        match verify_storage(Arc::new(image.process(49)), true) {
            Ok(report) if report.verdict() == Verdict::Sound => {}
            Ok(report) => {
                return Err(format!("before recovery verify says {:?}: {report:?}", report.verdict()));
            }
            Err(Error::NotAStore { .. }) if audit.is_empty() => {}
            Err(error) => return Err(format!("before recovery: {}", chain(&error))),
        }
    }
    let open = |number: u32| -> Result<Store, String> {
        builder(&image.process(number), setting).open().map_err(|error| format!("open: {}", chain(&error)))
    };
    let lengths = |image: &SimWorld| -> Vec<(String, Option<u64>)> {
        let segments = image.files().into_iter().filter(|name| is_segment(name));
        segments.map(|name| (name.clone(), image.file_len(&name))).collect()
    };
    let before = lengths(image);
    let erases = image.files().iter().any(|name| name == "erasing");
    let store = open(50)?;
    // A torn end is zeroed, never cut off: other processes may have the file open, and know how long it was. Only an
    // unfinished erasure, which is taken up here, writes a checkpoint and gives back the zeros that the last segment had
    // grown by.
    let shorter = |(name, length): &&(String, Option<u64>)| image.file_len(name) < *length;
    if let Some((name, length)) = before.iter().find(shorter).filter(|_| !erases) {
        return Err(format!("recovery cut {name} from {length:?} to {:?}", image.file_len(name)));
    }
    let recovery = store.recovery();
    if recovery.damage.is_some() || recovery.postponed {
        return Err(format!("recovery: {recovery:?}"));
    }
    let found = read(&store).map_err(|error| format!("read: {}", chain(&error)))?;
    audit.judge(&found)?;
    drop(store);
    traceless(image, &found)?;
    let changes = image.change_count();
    let store = open(51)?;
    if !store.recovery().was_clean {
        return Err(format!("the second recovery had something to do: {:?}", store.recovery()));
    }
    drop(store);
    if image.change_count() != changes {
        return Err("the second recovery changed something".to_owned());
    }
    let report = verify_storage(Arc::new(image.process(52)), thorough).map_err(|error| chain(&error))?;
    if report.verdict() != Verdict::Sound || report.events != found.len() as u64 {
        return Err(format!("verify says {:?} of {} events: {report:?}", report.verdict(), found.len()));
    }
    if report.torn_bytes > 0 {
        return Err(format!("recovery left {} torn bytes at the end", report.torn_bytes));
    }
    if thorough { outlives(image, &found, setting, dice) } else { Ok(()) }
}

/// A text that is on record as erased is in no file, plain or packed.
fn traceless(image: &SimWorld, found: &[String]) -> Result<(), String> {
    let erased = Audit::erased(found);
    if erased.is_empty() {
        return Ok(());
    }
    let storage: Arc<dyn Storage> = Arc::new(image.process(55));
    for trace in erased.into_iter().flat_map(traces) {
        let places = whereabouts(&storage, trace.as_bytes()).map_err(|error| error.to_string())?;
        if !places.is_empty() {
            return Err(format!("{trace:?} was erased and is in {places:?}"));
        }
    }
    Ok(())
}

/// The events that recovery showed are durable and fold without contradiction, and life goes on.
fn outlives(image: &SimWorld, found: &[String], setting: Setting, dice: &mut Dice) -> Result<(), String> {
    let cut = image.fork(dice.roll());
    cut.cut_power();
    let text = |error: Error| format!("after another power cut: {}", chain(&error));
    let store = builder(&cut.process(54), setting).open().map_err(text)?;
    if read(&store).map_err(text)? != found {
        return Err("what recovery showed was lost in another power cut".to_owned());
    }
    let recorded = events(&store).map_err(text)?;
    let contradictions = world_contradictions(&folded(&recorded), acpdb_engine::ids::Seq::MAX);
    if !contradictions.is_empty() {
        return Err(format!("{contradictions:?}"));
    }
    let again = vec![Entry::message("again", Role::User, "again")];
    let receipt = store.append(&session(7), again).map_err(text)?;
    if receipt.first_seq.get() != found.len() as u64 + 1 {
        return Err(format!("life goes on at {} after {} events", receipt.first_seq, found.len()));
    }
    Ok(())
}
