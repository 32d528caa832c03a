//! Turns: simulated processes on threads, of which one runs at a time.
//!
//! ```text
//! operation -> is it my turn? no: sleep.  yes: the seed picks the next: me -> do it; another -> wake it, sleep
//! sleep     -> another process goes on, until the time has come, or none can go on and time must pass
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use super::chance::Chance;
use super::process::SimStorage;
use super::{SimWorld, World};

/// Of so many operations, one hands the turn to another process (if the pick falls on them).
const SWITCH_ONE_IN: u64 = 3;
/// Of so many reads and writes of more than a word, one is interrupted half way.
const TORN_ONE_IN: u64 = 4;
/// Bytes that are read or written in one step.
const WORD_BYTES: usize = 8;

/// The program of a process that runs interleaved with others.
pub type Part<'a, T> = Box<dyn FnOnce(SimStorage) -> T + Send + 'a>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Ready,
    /// Until the virtual time.
    Paused(u64),
    Done,
}

#[derive(Default)]
pub(super) struct Schedule {
    actors: Vec<(usize, Mode)>,
    running: Option<usize>,
    chance: Chance,
}

impl Schedule {
    fn actor(&self, process: usize) -> Option<usize> {
        self.actors.iter().position(|(it, mode)| *it == process && *mode != Mode::Done)
    }

    fn set(&mut self, actor: usize, mode: Mode) {
        if let Some(actor) = self.actors.get_mut(actor) {
            actor.1 = mode;
        }
    }

    pub(super) fn wake(&mut self, process: usize) {
        if let Some(actor) = self.actor(process) {
            self.set(actor, Mode::Ready);
        }
    }

    pub(super) fn wake_all(&mut self) {
        for (_, mode) in &mut self.actors {
            if *mode != Mode::Done {
                *mode = Mode::Ready;
            }
        }
    }

    /// Picks the next process, letting time pass if none can go on.
    fn pick(&mut self, micros: &mut u64) {
        let can_go = |mode: &Mode, micros: u64| match mode {
            Mode::Ready => true,
            Mode::Paused(until) => *until <= micros,
            Mode::Done => false,
        };
        let earliest = self.actors.iter().filter_map(|(_, mode)| match mode {
            Mode::Paused(until) => Some(*until),
            Mode::Ready | Mode::Done => None,
        });
        if !self.actors.iter().any(|(_, mode)| can_go(mode, *micros))
            && let Some(earliest) = earliest.min()
        {
            *micros = (*micros).max(earliest);
        }
        let able: Vec<usize> = (0..)
            .zip(&self.actors)
            .filter(|(_, (_, mode))| can_go(mode, *micros))
            .map(|(actor, _)| actor)
            .collect();
        self.running = able.get(self.chance.below(able.len())).copied();
        if let Some(actor) = self.running {
            self.set(actor, Mode::Ready);
        }
    }
}

impl SimStorage {
    /// Waits until it is this process's turn, and lets chance give the turn away.
    pub(super) fn take_turn(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock();
        let Some(actor) = world.schedule.actor(self.process) else { return world };
        world = self.await_turn(world, actor);
        if world.schedule.chance.one_in(SWITCH_ONE_IN) {
            world = self.pass(world, actor);
        }
        world
    }

    /// Where a read or write of `length` bytes at `offset` is interrupted, if it is: between two words.
    pub(super) fn tear(&self, world: &mut World, offset: usize, length: usize) -> Option<usize> {
        let is_alone = world.schedule.actors.len() < 2 || world.schedule.actor(self.process).is_none();
        let first = offset.next_multiple_of(WORD_BYTES) - offset;
        if is_alone || length <= first.max(WORD_BYTES) || !world.schedule.chance.one_in(TORN_ONE_IN) {
            return None;
        }
        let words = (length - first).div_ceil(WORD_BYTES);
        let cut = first + WORD_BYTES * world.schedule.chance.below(words);
        (cut > 0 && cut < length).then_some(cut)
    }

    /// Lets another process go on in the middle of an operation.
    pub(super) fn give_way<'a>(&'a self, world: MutexGuard<'a, World>) -> MutexGuard<'a, World> {
        match world.schedule.actor(self.process) {
            Some(actor) => self.pass(world, actor),
            None => world,
        }
    }

    fn await_turn<'a>(&'a self, mut world: MutexGuard<'a, World>, actor: usize) -> MutexGuard<'a, World> {
        while world.schedule.running != Some(actor) {
            world = self.world.0.turn.wait(world).unwrap_or_else(PoisonError::into_inner);
        }
        world
    }

    fn pass<'a>(&'a self, mut guard: MutexGuard<'a, World>, actor: usize) -> MutexGuard<'a, World> {
        let world = &mut *guard;
        world.schedule.pick(&mut world.micros);
        if world.schedule.running == Some(actor) {
            return guard;
        }
        self.world.0.turn.notify_all();
        self.await_turn(guard, actor)
    }

    /// Lets virtual time pass, at most `limit`, while the other processes go on.
    pub(super) fn pause(&self, mut world: MutexGuard<'_, World>, limit: Duration) {
        let micros = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        let until = world.micros.saturating_add(micros);
        match world.schedule.actor(self.process) {
            None => world.micros = until,
            Some(actor) if !world.is_dead(self.process) => {
                world.schedule.set(actor, Mode::Paused(until));
                drop(self.pass(world, actor));
            }
            Some(_) => {}
        }
    }
}

impl SimWorld {
    /// Runs the part of each process, interleaved at every storage operation as `seed` decides, until all have ended. A
    /// part runs in one thread; other threads that it starts must not use its storage. Results are in the order of
    /// `parts`.
    ///
    /// # Panics
    /// If a part panicked, with the panic of the first such part, after all have ended.
    pub fn interleave<T: Send>(&self, seed: u64, parts: Vec<(SimStorage, Part<'_, T>)>) -> Vec<T> {
        {
            let world = &mut *self.lock();
            world.schedule = Schedule {
                actors: parts.iter().map(|(storage, _)| (storage.process, Mode::Ready)).collect(),
                running: None,
                chance: Chance(seed),
            };
            world.schedule.pick(&mut world.micros);
        }
        let results: Vec<std::thread::Result<T>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..)
                .zip(parts)
                .map(|(actor, (storage, part))| {
                    scope.spawn(move || {
                        drop(storage.await_turn(storage.world.lock(), actor));
                        let own = storage.clone();
                        let result = catch_unwind(AssertUnwindSafe(|| part(own)));
                        let mut guard = storage.await_turn(storage.world.lock(), actor);
                        let world = &mut *guard;
                        world.schedule.set(actor, Mode::Done);
                        world.schedule.pick(&mut world.micros);
                        drop(guard);
                        storage.world.0.turn.notify_all();
                        result
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(Err)).collect()
        });
        self.lock().schedule = Schedule::default();
        results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }
}
