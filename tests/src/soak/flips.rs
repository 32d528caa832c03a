//! Damage: every bit of a store, every length, every sector, every file. All of it is reported, none of it is shown.
//!
//! ```text
//! a closed store: two complete segments, the first of them sealed; a third; a checkpoint; the tail
//!   -> one thing damaged -> verify must say so; events shown must be true; at most one commit may be lost to it, or one chunk of a sealed segment
//! ```

use std::sync::Arc;

use acpdb_engine::entry::Entry;
use acpdb_engine::event::Role;
use acpdb_engine::storage::SimWorld;
use acpdb_engine::verify::{Verdict, verify_storage};
use acpdb_engine::{Atomicity, Batch, Error, Store};

use super::auditor::{line, read};
use super::crash::chain;
use super::life::{Setting, builder};
use super::script::session;
use super::{Dice, Finding, is_segment};

/// Messages of a commit of the store that is damaged.
const COMMIT_EVENT_COUNT: usize = 2;
/// Events of its largest commit, which opens the session.
const LOST_MAX: usize = COMMIT_EVENT_COUNT + 1;
/// First bytes of a sealed segment.
const SEALED_MAGIC: &[u8] = &0x184d_2a5a_u32.to_le_bytes();
/// Reading, verifying and refusing to write need no more calls than this; more is taken for a loop.
const OPERATION_COUNT_MAX: u64 = 5_000;

/// Counts of the work done.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Bits flipped.
    pub flips: u64,
    /// Lengths cut to.
    pub cuts: u64,
    /// Sectors zeroed, garbled, swapped, repeated, put back in time.
    pub sectors: u64,
    /// Files removed, doubled, exchanged.
    pub files: u64,
}

/// A store to be damaged, and the truth about it.
#[derive(Clone)]
pub struct Specimen {
    world: SimWorld,
    truth: Vec<String>,
    /// The same files when half of it was written.
    earlier: SimWorld,
    /// A store of the same shape with other contents.
    other: SimWorld,
}

fn setting() -> Setting {
    Setting { segment_bytes_max: 4096 + 4000, goes_on: false, sabotage: None }
}

fn grown(seed: u64) -> Result<(SimWorld, SimWorld, Vec<String>), Error> {
    let world = SimWorld::new(seed);
    let mut earlier = world.clone();
    // The number of the process decides the id of the store.
    let store = builder(&world.process(u32::try_from(seed).unwrap_or(1)), setting()).open()?;
    let mut dice = Dice::new(seed);
    for number in 0..12 {
        // Bodies with words in them, so that sealing compresses some; no two are equal.
        let body = |part: u64| {
            format!("{number}.{part} {}", format!("{:x} ", part ^ seed).repeat(20 + 9 * (number % 3)))
        };
        let entries = (0..COMMIT_EVENT_COUNT as u64)
            .map(|part| {
                Entry::message(format!("m{number}.{part}"), Role::User, body(dice.roll() % 1000 + part))
            })
            .collect();
        let _ = store.commit(&[Batch { stream: session(0), entries }], Atomicity::One)?;
        if number == 6 {
            let _ = store.seal(false)?;
        }
        if number == 8 {
            store.close()?;
            earlier = world.fork(seed);
        }
    }
    store.close()?;
    let truth = read(&store)?;
    drop(store);
    Ok((world, earlier, truth))
}

impl Specimen {
    /// Makes one.
    ///
    /// # Errors
    /// If the store cannot be made, or is not of the shape it should be.
    pub fn new(seed: u64) -> Result<Self, String> {
        let (world, earlier, truth) = grown(seed).map_err(|error| chain(&error))?;
        let (other, ..) = grown(seed + 1).map_err(|error| chain(&error))?;
        let specimen = Self { world, truth, earlier, other };
        let segments = specimen.names().iter().filter(|name| is_segment(name)).count();
        let report =
            verify_storage(Arc::new(specimen.world.process(2)), true).map_err(|error| chain(&error))?;
        if segments < 3 || report.verdict() != Verdict::Sound || report.events != specimen.truth.len() as u64
        {
            return Err(format!("the store to be damaged has {segments} segments and is {report:?}"));
        }
        Ok(specimen)
    }

    /// Files whose damage must be reported: all but the tail page, which is a cache of facts that the log holds.
    fn names(&self) -> Vec<String> {
        self.world
            .files()
            .into_iter()
            .filter(|name| is_segment(name) || name == "acpdb.json" || name == "checkpoint")
            .collect()
    }

    /// Looks at a damaged copy: `lost_max` events may be missing.
    ///
    /// # Errors
    /// The first fault, in words.
    fn examine(&self, damaged: &SimWorld, lost_max: usize, writes: bool) -> Result<(), String> {
        let looker = damaged.process(3);
        let report = verify_storage(Arc::new(looker.clone()), false).map_err(|error| chain(&error))?;
        if report.verdict() == Verdict::Sound {
            return Err(format!("not reported: {report:?}"));
        }
        let reader = builder(&looker, setting()).read_only().create(false).open();
        self.check_shown(&reader.map_err(|error| format!("for reading: {}", chain(&error)))?, lost_max)?;
        if writes {
            let opener = damaged.process(4);
            match builder(&opener, setting()).create(false).open() {
                Err(error) => return Err(format!("for writing: {}", chain(&error))),
                Ok(store) => {
                    self.check_shown(&store, lost_max)?;
                    // Opening does not read commits that are long settled, so this may go on; the damage stays
                    // reported.
                    let _ = store.append(&session(0), vec![Entry::message("late", Role::User, "late")]);
                    let after = verify_storage(Arc::new(damaged.process(5)), false);
                    // An older checkpoint is replaced when a store is closed; nothing of the log ever is.
                    let in_log = report.violations.iter().any(|found| found.segment > 0);
                    if in_log && after.is_ok_and(|after| after.verdict() == Verdict::Sound) {
                        return Err("the damage was covered up".to_owned());
                    }
                }
            }
        }
        if looker.operation_count() > OPERATION_COUNT_MAX {
            return Err(format!("{} calls", looker.operation_count()));
        }
        Ok(())
    }

    fn check_shown(&self, store: &Store, lost_max: usize) -> Result<(), String> {
        let mut shown = 0;
        let events = store.events(acpdb_engine::ids::Seq(1), acpdb_engine::ids::Seq::MAX);
        for recorded in events.map_err(|error| chain(&error))?.flatten() {
            let Ok(text) = line(store, &recorded) else { continue };
            let place = usize::try_from(recorded.seq.get()).unwrap_or(0).wrapping_sub(1);
            if self.truth.get(place) != Some(&text) {
                return Err(format!("seq {}: shows {text:.80?}", recorded.seq));
            }
            shown += 1;
        }
        let lost = self.truth.len().saturating_sub(shown);
        if lost > lost_max {
            Err(format!("{lost} events are not readable, at most {lost_max} are touched"))
        } else {
            Ok(())
        }
    }

    fn damaged(&self, name: &str, bytes: &[u8]) -> SimWorld {
        let copy = self.world.fork(1);
        copy.set_file(name, bytes);
        copy
    }

    /// Flips bits: all of them, or one in `step`, from the `first` on.
    ///
    /// # Errors
    /// The first flip that was not taken as it should be.
    pub fn flips(&self, first: usize, step: usize, tally: &mut Tally) -> Result<(), Finding> {
        for name in self.names() {
            let mut bytes = self.world.file(&name).unwrap_or_default();
            let first = first.wrapping_add(usize::try_from(tally.flips).unwrap_or(0)) % step.max(1);
            // The commits of a small sealed segment share one chunk.
            let lost_max = if bytes.starts_with(SEALED_MAGIC) { self.truth.len() } else { LOST_MAX };
            for bit in (first..bytes.len() * 8).step_by(step.max(1)) {
                flip(&mut bytes, bit);
                let copy = self.damaged(&name, &bytes);
                flip(&mut bytes, bit);
                tally.flips += 1;
                self.examine(&copy, lost_max, bit % 37 == 0)
                    .map_err(|wrong| at(format!("bit {} of byte {} of {name}", bit % 8, bit / 8), wrong))?;
            }
        }
        Ok(())
    }

    /// Cuts each file to every length, or one in `step`, with and without the tail page.
    ///
    /// # Errors
    /// The first cut that was not taken as it should be.
    pub fn cuts(&self, step: usize, tally: &mut Tally) -> Result<(), Finding> {
        for name in self.names() {
            let bytes = self.world.file(&name).unwrap_or_default();
            for length in (0..bytes.len()).rev().step_by(if is_segment(&name) { step.max(1) } else { 1 }) {
                let copy = self.damaged(&name, bytes.get(..length).unwrap_or(&[]));
                let without_tail = length % 2 == 0;
                if without_tail {
                    copy.remove_file("tail");
                }
                tally.cuts += 1;
                self.examine(&copy, self.truth.len(), length % 16 == 0)
                    .map_err(|wrong| at(format!("{name} cut to {length}, no tail {without_tail}"), wrong))?;
            }
        }
        Ok(())
    }

    /// Damages each sector in every way that disks know.
    ///
    /// # Errors
    /// The first that was not taken as it should be.
    pub fn sectors(&self, tally: &mut Tally) -> Result<(), Finding> {
        const SECTOR: usize = 512;
        let mut dice = Dice::new(7);
        for name in self.names() {
            let bytes = self.world.file(&name).unwrap_or_default();
            let earlier = self.earlier.file(&name).unwrap_or_default();
            for start in (0..bytes.len()).step_by(SECTOR) {
                let end = (start + SECTOR).min(bytes.len());
                let here = bytes.get(start..end).unwrap_or(&[]);
                let noise: Vec<u8> =
                    (0..here.len()).map(|_| dice.below(256).try_into().unwrap_or(0)).collect();
                let next = bytes.get(end..(end + SECTOR).min(bytes.len())).unwrap_or(&[]);
                let before = bytes.get(start.saturating_sub(SECTOR)..start).unwrap_or(&[]);
                let mut variants: Vec<(&str, usize, Vec<u8>)> =
                    vec![("zeroed", start, vec![0; here.len()]), ("garbled", start, noise)];
                if next.len() == here.len() {
                    variants.push(("swapped", start, [next, here].concat()));
                }
                if before.len() == here.len() {
                    variants.push(("repeated", start, before.to_vec()));
                }
                // An older checkpoint is true, too.
                if let Some(stale) = earlier.get(start..end).filter(|_| name != "checkpoint") {
                    variants.push(("stale", start, stale.to_vec()));
                }
                for (how, place, patch) in variants {
                    let mut changed = bytes.clone();
                    if let Some(target) = changed.get_mut(place..place + patch.len()) {
                        target.copy_from_slice(&patch);
                    }
                    if changed == bytes {
                        continue;
                    }
                    tally.sectors += 1;
                    self.examine(&self.damaged(&name, &changed), self.truth.len(), true)
                        .map_err(|wrong| at(format!("sector at {start} of {name} {how}"), wrong))?;
                }
            }
        }
        Ok(())
    }

    /// Removes, doubles and exchanges segments.
    ///
    /// # Errors
    /// The first that was not taken as it should be.
    pub fn files(&self, tally: &mut Tally) -> Result<(), Finding> {
        let names = self.names();
        let segments: Vec<&String> = names.iter().filter(|name| is_segment(name)).collect();
        for name in &names {
            let copy = self.world.fork(1);
            copy.remove_file(name);
            tally.files += 1;
            self.examine(&copy, self.truth.len(), true)
                .map_err(|wrong| at(format!("{name} removed"), wrong))?;
        }
        for name in &segments {
            let foreign = self.other.file(name).unwrap_or_default();
            if self.world.file(name).as_ref() == Some(&foreign) {
                return Err(at((*name).clone(), "the other store has the very same segment".to_owned()));
            }
            tally.files += 1;
            self.examine(&self.damaged(name, &foreign), self.truth.len(), true)
                .map_err(|wrong| at(format!("{name} of another store"), wrong))?;
            for other in &segments {
                if name != other {
                    let bytes = self.world.file(name).unwrap_or_default();
                    tally.files += 1;
                    self.examine(&self.damaged(other, &bytes), self.truth.len(), true)
                        .map_err(|wrong| at(format!("{name} in place of {other}"), wrong))?;
                }
            }
            let bytes = self.world.file(name).unwrap_or_default();
            let next = format!("log/{:012}.seg", segments.len() + 1);
            tally.files += 1;
            self.examine(&self.damaged(&next, &bytes), self.truth.len(), true)
                .map_err(|wrong| at(format!("{name} doubled as {next}"), wrong))?;
        }
        Ok(())
    }
}

fn flip(bytes: &mut [u8], bit: usize) {
    if let Some(byte) = bytes.get_mut(bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

fn at(place: String, wrong: String) -> Finding {
    Finding { seed: 1, place, wrong }
}

/// All kinds of damage; of bits and lengths one in `step`.
///
/// # Errors
/// The first damage that was not taken as it should be.
pub fn all(seed: u64, step: usize) -> Result<Tally, Finding> {
    let mut tally = Tally::default();
    let specimen = Specimen::new(seed).map_err(|wrong| at("the store".to_owned(), wrong))?;
    specimen.files(&mut tally)?;
    specimen.sectors(&mut tally)?;
    specimen.cuts(step, &mut tally)?;
    // A sample of all places, another one for each seed.
    specimen.flips(usize::try_from(seed).unwrap_or(0), step, &mut tally)?;
    Ok(tally)
}
