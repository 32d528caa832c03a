//! All locks at once: threads of several handles of several processes on one store of real files.
//!
//! ```text
//! setting (a seed) -> members: processes x handles x threads, each thread with acts by a seed of its own -> diaries
//!   appends, messages in pieces, acts, erasures of items and of stretches, seals, indexes, snapshots, backups, checks, signed
//!   checkpoints, handles closed and opened, one process killed,
//!   bad weather: calls that fail
//!                  -> judge: diaries against the store as it is read at the end, and salvaged
//! ```
//!
//! A seed repeats the choices, not the timing; `crate::soak` has machines that repeat both, on which one thread is a process, so
//! that no two threads of a process contend there. The number of acts bounds a round, no clock does.

pub mod board;
mod care;
pub mod diary;
mod erasing;
mod facts;
pub mod follower;
pub mod judge;
pub mod member;
mod pages;
mod reading;
mod signing;
mod talks;
pub mod thread;
pub mod weather;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::{Builder, Durability, Error, Store};

use self::weather::SKY;
use crate::soak::{Dice, Finding};

/// How long a round may take before it counts as a deadlock.
pub const HANG: Duration = Duration::from_secs(120);
/// The folder of the round, for a process that is a member of it.
pub const FOLDER: &str = "ACPDB_SOAK_CROWD_FOLDER";
/// The member's number.
pub const MEMBER: &str = "ACPDB_SOAK_CROWD_MEMBER";
/// Sessions that all threads share.
pub const SESSION_COUNT: usize = 4;
/// So many bytes at the beginning of an erased text are in no other text.
pub const GONE_BYTES: usize = 24;

/// Counts of the work done.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// Rounds.
    pub rounds: u64,
    /// Processes.
    pub processes: u64,
    /// Those of them that were killed.
    pub kills: u64,
    /// Acts that were tried.
    pub acts: u64,
    /// Events that were acknowledged.
    pub acked: u64,
}

/// A round's shape.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// All else follows from it.
    pub seed: u64,
    /// How many processes.
    pub processes: usize,
    /// Handles of each.
    pub handles: usize,
    /// Threads of each.
    pub threads: usize,
    /// Acts of each thread.
    pub acts: usize,
    /// The process that is killed, and after how many of its acts.
    pub kill: Option<(usize, usize)>,
    /// Length of a segment.
    pub segment_bytes_max: u64,
    /// Whether the sessions are there when the members begin.
    pub prepared: bool,
    /// The weather.
    pub sky: Sky,
}

/// The weather over the processes of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sky {
    /// Always fair.
    Fair,
    /// Calls of some handles fail, or take long.
    Calls,
    /// The same, and syncs fail: then commits that were acknowledged before their sync may be lost.
    Syncs,
    /// The process has no descriptors left at times.
    Limit,
}

impl Setting {
    /// The setting that a seed means.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let processes = dice.pick(&[1, 2, 2, 3], 2);
        let (handles, threads) = (1 + dice.below(3), 2 + dice.below(3));
        let acts = dice.pick(&[10, 20, 40], 20);
        let is_killed = processes > 1 && dice.one_in(3);
        let kill = is_killed.then(|| (dice.below(processes), 1 + dice.below(threads * acts)));
        let segment_bytes_max = dice.pick(&[4096 + 1500, 24 << 10, 64 << 10], 24 << 10);
        let prepared = dice.one_in(2);
        let sky = dice.pick(&[Sky::Fair, Sky::Fair, Sky::Calls, Sky::Syncs, Sky::Limit], Sky::Fair);
        Self { seed, processes, handles, threads, acts, kill, segment_bytes_max, prepared, sky }
    }

    /// Opens a handle.
    ///
    /// # Errors
    /// In words.
    pub fn open(&self, folder: &Path, dice: &mut Dice, read_only: bool) -> Result<Store, String> {
        let begun_at = Instant::now();
        loop {
            let mark = SKY.mark();
            let builder = self.builder(folder, &mut dice.clone());
            let builder = if read_only { builder.read_only() } else { builder };
            match builder.open() {
                Ok(store) => {
                    dice.roll();
                    return Ok(store);
                }
                Err(error) if SKY.excuses(mark, &error) && begun_at.elapsed() < HANG / 4 => {}
                Err(error) => return Err(format!("{} ({error:?})", told(&error))),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// How a handle opens the store of the round, as a roll says.
    #[must_use]
    pub fn builder(&self, folder: &Path, dice: &mut Dice) -> Builder {
        let early = dice.one_in(3) && self.sky != Sky::Syncs;
        let durability = if early { Durability::Os } else { Durability::Sync };
        let memory_max = if dice.one_in(2) { 24 << 10 } else { 64 << 20 };
        let builder = Store::builder(store_of(folder)).any_file_system().registry(acpdb_hosts::registry());
        let is_under_sky = SKY.is_used() && self.sky != Sky::Limit && !dice.one_in(4);
        let builder = if is_under_sky { builder.storage(weather::files(&store_of(folder))) } else { builder };
        let builder = builder.segment_bytes_max(self.segment_bytes_max).lock_wait(HANG / 2);
        let builder = builder.durability(durability).memory_max(memory_max);
        builder.index(!dice.one_in(3)).sealing(!dice.one_in(3)).snapshots(!dice.one_in(4))
    }
}

/// The round's store.
#[must_use]
pub fn store_of(folder: &Path) -> PathBuf {
    folder.join("store")
}

/// A session of the round.
#[must_use]
pub fn session(name: &str) -> StreamInfo {
    if name == USER { StreamInfo::user() } else { StreamInfo::session("crowd", name) }
}

/// The name of the user's stream, among names of sessions.
pub const USER: &str = "@user";

/// The session in which handles record that they recovered.
pub const FAIR: &str = "fair";

/// An error with its sources.
#[must_use]
pub fn told(error: &Error) -> String {
    crate::soak::crash::chain(error)
}

/// Plays so many rounds, each seed `again` times.
///
/// # Errors
/// The first thing that must not be.
pub fn many(rounds: u64, again: u64, seed: u64) -> Result<Tally, Finding> {
    let mut tally = Tally::default();
    for seed in (0..rounds).map(|round| seed.wrapping_add(round)) {
        for _ in 0..again.max(1) {
            let setting = Setting::of(seed);
            one(setting, &mut tally).map_err(|wrong| Finding {
                seed,
                place: format!("{setting:?}"),
                wrong,
            })?;
        }
    }
    Ok(tally)
}

/// One round; keeps its folder if something is wrong.
fn one(setting: Setting, tally: &mut Tally) -> Result<(), String> {
    let folder =
        tempfile::Builder::new().prefix("acpdb-crowd-").tempdir().map_err(|error| error.to_string())?;
    let played = play(setting, folder.path(), tally);
    played.map_err(|wrong| format!("{wrong}\nthe store is kept in {}", folder.keep().display()))
}

fn play(setting: Setting, folder: &Path, tally: &mut Tally) -> Result<(), String> {
    prepare(setting, folder).map_err(|error| format!("preparation: {}", told(&error)))?;
    let mut members = Vec::new();
    for number in 0..setting.processes {
        members.push(Member::start(setting, folder, number)?);
    }
    let outcome = members.iter_mut().try_for_each(Member::is_ready).and_then(|()| {
        members.iter_mut().try_for_each(Member::go)?;
        wait(&mut members)
    });
    for member in &mut members {
        // It has ended, unless something is wrong.
        let _ = member.child.kill();
        let _ = member.child.wait();
    }
    outcome?;
    tally.rounds += 1;
    tally.processes += setting.processes as u64;
    tally.kills += members.iter().filter(|member| member.is_killed).count() as u64;
    let killed: Vec<usize> = members.iter().filter(|member| member.is_killed).map(|it| it.number).collect();
    judge::judge(setting, folder, &killed, tally)
}

/// Makes the store.
fn prepare(setting: Setting, folder: &Path) -> Result<(), Error> {
    let store = setting.builder(folder, &mut Dice::new(setting.seed)).open()?;
    if setting.prepared {
        for number in 0..SESSION_COUNT {
            let _ = store.append(&session(&format!("s{number}")), vec![Entry::step("")])?;
        }
    }
    store.close()?;
    Ok(())
}

/// A process of the round.
struct Member {
    number: usize,
    child: Child,
    said: Option<BufReader<std::process::ChildStdout>>,
    errors: PathBuf,
    killer: Option<std::thread::JoinHandle<bool>>,
    is_killed: bool,
}

impl Member {
    fn start(setting: Setting, folder: &Path, number: usize) -> Result<Self, String> {
        let fail = |error: std::io::Error| format!("process {number}: {error}");
        let errors = folder.join(format!("errors-{number}"));
        let mut command = Command::new(std::env::current_exe().map_err(fail)?);
        command.args(["crowd", "--seed", &setting.seed.to_string()]);
        command.env(FOLDER, folder).env(MEMBER, number.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(std::fs::File::create(&errors).map_err(fail)?);
        let mut child = command.spawn().map_err(fail)?;
        let said = child.stdout.take().map(BufReader::new);
        Ok(Self { number, child, said, errors, killer: None, is_killed: false })
    }

    /// Waits until it has opened its handles.
    fn is_ready(&mut self) -> Result<(), String> {
        let mut line = String::new();
        let read = self.said.as_mut().map_or(Ok(0), |said| said.read_line(&mut line));
        match read {
            Ok(_) if line == "ready\n" => Ok(()),
            _ => Err(format!("process {} did not begin: {line}{}", self.number, self.complaint())),
        }
    }

    /// Lets it begin, and kills it when it says that its moment has come.
    fn go(&mut self) -> Result<(), String> {
        if let Some(mut said) = self.said.take() {
            let process = rustix::process::Pid::from_child(&self.child);
            self.killer = Some(std::thread::spawn(move || {
                let mut line = String::new();
                let is_time = said.read_line(&mut line).is_ok() && line == "kill\n";
                // It is our child, and has not been waited for before this thread ended.
                is_time && rustix::process::kill_process(process, rustix::process::Signal::KILL).is_ok()
            }));
        }
        let gate = self.child.stdin.take();
        gate.map_or(Ok(()), |mut gate| gate.write_all(b"\n")).map_err(|error| error.to_string())
    }

    fn complaint(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

/// Waits for all members. One that does not end is a deadlock, though its own watch should have said so before.
fn wait(members: &mut [Member]) -> Result<(), String> {
    let begun = Instant::now();
    let mut wrong = Vec::new();
    for member in members {
        // Its output ends with it, or with its death.
        while member.killer.as_ref().is_some_and(|killer| !killer.is_finished()) {
            if begun.elapsed() > HANG * 2 {
                return Err(format!("process {} hangs: {}", member.number, member.complaint()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        member.is_killed = member.killer.take().is_some_and(|killer| killer.join().unwrap_or(false));
        let status = member.child.wait().map_err(|error| error.to_string())?;
        // One that had ended by itself when the signal came was not killed.
        member.is_killed &= status.code().is_none();
        if !member.is_killed && !status.success() {
            wrong.push(format!("process {} ended with {status}: {}", member.number, member.complaint()));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
