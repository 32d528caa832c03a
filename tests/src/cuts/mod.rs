//! The program itself, killed and cut off from power at moments of chance, on real file systems.
//!
//! ```text
//! writers, 1 or 3 processes, a line an event, acknowledged   \
//! erase, seal, reindex, verify, log                           > until: SIGKILL, or the file system is shut down
//! files written back in any order                            /
//!   -> opened again, and now and then stopped again while it opens -> verify, list against the ledger, a second opening
//! ```
//!
//! The ledger shares no code with the program: it knows which lines it sent and which numbers it got back. A seed repeats
//! the choices, not the timing; `crate::soak` has machines that repeat both.

pub mod crew;
pub mod disk;
pub mod ledger;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use acpdb_engine::storage::{FileStorage, Storage};
use acpdb_engine::testing::whereabouts;

use crate::soak::{Dice, Finding};
use crate::support::copy_folder;
use crew::{Program, Task, work};
use disk::{Disk, Kind};
use ledger::Ledger;

/// Rounds of one store, before a new one is made.
const ROUND_COUNT_MAX: u32 = 8;

/// How a round ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Every process is killed.
    Kill,
    /// The power is cut under a file system of this kind.
    Power(Kind),
}

/// Counts of the stops and commits so far.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Moments at which everything stopped.
    pub stops: u64,
    /// Of these, moments while the store was being opened after an earlier one.
    pub again: u64,
    /// Messages that were acknowledged.
    pub acked: u64,
    /// Erasures that ended.
    pub erased: u64,
    /// Other commands that ended beside the writers.
    pub beside: u64,
}

/// A store's home: a folder, on a disk of its own if that is to lose its power.
enum Ground {
    Folder(PathBuf),
    Disk(Box<Disk>),
}

impl Ground {
    fn place(&self) -> &Path {
        match self {
            Self::Folder(place) => place,
            Self::Disk(disk) => disk.place(),
        }
    }

    fn mount(&mut self, dice: &mut Dice) -> Result<(), String> {
        let Self::Disk(disk) = self else { return Ok(()) };
        let options = dice.pick(disk.kind().options(), "");
        disk.mount(options)
    }

    fn options(&self) -> &str {
        if let Self::Disk(disk) = self { disk.options() } else { "" }
    }

    fn unmount(&mut self) -> Result<(), String> {
        if let Self::Disk(disk) = self { disk.unmount() } else { Ok(()) }
    }
}

/// Why nothing can be done here, if so: no permission, a tool that is not there.
///
/// # Errors
/// In words.
pub fn can(kind: Kind) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut disk = Disk::new(kind, folder.path())?;
    disk.mount("")?;
    disk.switch()?.cut()?;
    disk.unmount()
}

/// Stops `round_count` times.
///
/// # Errors
/// The first thing that must not be.
pub fn many(binary: &Path, end: End, round_count: u64, seed: u64) -> Result<Tally, Finding> {
    let mut tally = Tally::default();
    let mut life = seed;
    while tally.stops < round_count {
        one_store(binary, end, life, round_count, &mut tally).map_err(|wrong| Finding {
            seed: life,
            place: format!("{end:?}"),
            wrong,
        })?;
        life = life.wrapping_add(1);
    }
    Ok(tally)
}

/// One store, from its making through several stops.
fn one_store(
    binary: &Path,
    end: End,
    seed: u64,
    stop_count_max: u64,
    tally: &mut Tally,
) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut ground = match end {
        End::Kill => Ground::Folder(folder.path().to_owned()),
        End::Power(kind) => Ground::Disk(Box::new(Disk::new(kind, folder.path())?)),
    };
    let program = Program { binary: binary.to_owned(), store: ground.place().join("store") };
    let mut dice = Dice::new(seed);
    let mut ledger = Ledger::new(seed);
    ground.mount(&mut dice)?;
    let mut round = 0;
    while round < ROUND_COUNT_MAX && tally.stops < stop_count_max {
        let task = Task {
            seed,
            round,
            writer_count: dice.pick(&[1, 3], 1),
            beside: dice.one_in(2),
            write_back: end != End::Kill && dice.one_in(2),
        };
        // Early: while the store is made or opened.
        let moment = if dice.one_in(4) { dice.roll() % 25_000 } else { 20_000 + dice.roll() % 280_000 };
        let mut lived = stop(&program, &mut ground, task, moment, &mut ledger, &mut dice, tally);
        round += 1;
        while lived.is_ok() && dice.one_in(3) {
            // Stopped again, most likely while it is opened.
            let again = Task { writer_count: 1, beside: false, round, ..task };
            let moment = dice.roll() % 12_000;
            lived = stop(&program, &mut ground, again, moment, &mut ledger, &mut dice, tally);
            round += 1;
            tally.again += 1;
        }
        lived.and_then(|()| inspect(&program, &mut ledger, &mut dice)).map_err(|wrong| {
            format!("stop {round}, mounted with {:?}: {wrong}; {}", ground.options(), kept(&program))
        })?;
    }
    let (acked, erased) = ledger.counts();
    tally.acked += acked;
    tally.erased += erased;
    ground.unmount()
}

/// Works until the moment, in microseconds, has come; then stops everything, and puts the disk back.
fn stop(
    program: &Program,
    ground: &mut Ground,
    task: Task,
    moment: u64,
    ledger: &mut Ledger,
    dice: &mut Dice,
    tally: &mut Tally,
) -> Result<(), String> {
    let switch = if let Ground::Disk(disk) = ground { Some(disk.switch()?) } else { None };
    let grace = dice.roll() % 20_000;
    let watch = work(program, task, ledger, dice, |ending| {
        std::thread::sleep(Duration::from_micros(moment));
        let Some(switch) = switch else { return Ok(()) };
        ending.store(true, Ordering::SeqCst);
        switch.cut()?;
        // Some live on for a while, with nothing under them.
        std::thread::sleep(Duration::from_micros(grace));
        Ok(())
    })?;
    tally.stops += 1;
    tally.beside += watch.beside;
    ground.unmount()?;
    ground.mount(dice)
}

/// Keeps a copy of a store that is not as it should be; where.
fn kept(program: &Program) -> String {
    let place = std::env::temp_dir().join(format!("acpdb-stopped-{}", std::process::id()));
    match copy_folder(&program.store, &place) {
        Ok(()) => format!("the store is kept in {}", place.display()),
        Err(error) => format!("the store could not be kept: {error}"),
    }
}

/// Judges a store that was stopped, and opens it again.
fn inspect(program: &Program, ledger: &mut Ledger, dice: &mut Dice) -> Result<(), String> {
    let is_begun = program.store.join("acpdb.json").exists();
    if is_begun || !ledger.is_empty() {
        // An unfinished end is sound.
        program.succeed(&["verify", "--json"]).map_err(|wrong| format!("before recovery: {wrong}"))?;
    }
    let opening: &[&str] = &["append", "--stdin"];
    let first = if is_begun && dice.one_in(2) { &["log", "--texts"] } else { opening };
    program.succeed(first).map_err(|wrong| format!("recovery: {wrong}"))?;
    program.succeed(opening).map_err(|wrong| format!("the next opening: {wrong}"))?;
    let recovered = contents(&program.store)?;
    program.succeed(opening).map_err(|wrong| format!("another opening: {wrong}"))?;
    for ((name, before), (_, after)) in recovered.iter().zip(contents(&program.store)?) {
        if *before != after {
            return Err(format!("another opening changed {name}"));
        }
    }
    ledger.judge(&program.succeed(&["log", "--texts"])?)?;
    program.succeed(&["verify", "--deep", "--json"])?;
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(&program.store));
    for trace in ledger.gone() {
        let places = whereabouts(&storage, trace.as_bytes()).map_err(|error| error.to_string())?;
        if !places.is_empty() {
            return Err(format!("{trace:?} was told to be erased, and is in {places:?}"));
        }
    }
    Ok(())
}

/// All files of a store but those of the index, with a digest of each.
fn contents(store: &Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut found = Vec::new();
    let mut folders = vec![store.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.strip_prefix(store).unwrap_or(&path).to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !name.starts_with("index.redb") && !name.starts_with("snap") {
                found.push((name, std::fs::read(&path).map_err(|error| error.to_string())?));
            }
        }
    }
    found.sort();
    Ok(found)
}
