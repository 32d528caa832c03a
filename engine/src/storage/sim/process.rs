//! One simulated process: its operations on the disk, which are counted, may fail, and may be the last.

use std::io;
use std::path::PathBuf;
use std::sync::MutexGuard;
use std::sync::atomic::AtomicU32;

use super::disk::{Node, parent};
use super::fault::dead;
use super::file::SimFile;
use super::moment::Pending;
use super::{Crash, Fault, FaultKind, SimClock, SimWorld, World};
use crate::storage::{Access, Storage, StoredFile};

/// A dead process that goes on this long spins: it would never end.
const ZOMBIE_OPERATION_COUNT_MAX: u64 = 1_000_000;

pub(super) struct Process {
    pub(super) number: u32,
    pub(super) age: u64,
    crash: Option<(u64, Crash)>,
    pub(super) dead: bool,
    operations: u64,
    zombie_operations: u64,
    faults: Vec<(Fault, u64)>,
}

impl Process {
    pub(super) fn new(number: u32, age: u64) -> Self {
        Self {
            number,
            age,
            crash: None,
            dead: false,
            operations: 0,
            zombie_operations: 0,
            faults: Vec::new(),
        }
    }
}

/// One simulated process and its view of the machine. Clones are the same process.
#[derive(Clone)]
pub struct SimStorage {
    pub(super) world: SimWorld,
    pub(super) process: usize,
}

/// The permitted part of an operation, after faults and crashes were applied.
pub(super) enum Permit {
    Go,
    /// Do part of it, then the process is dead.
    LastWords,
    Fail(FaultKind),
}

/// An operation that is about to happen.
#[derive(Clone, Copy)]
pub(super) struct Act<'a> {
    pub(super) verb: &'static str,
    pub(super) name: &'a str,
    /// The faults it can meet.
    pub(super) kinds: &'a [FaultKind],
    pub(super) pending: Pending<'a>,
}

impl<'a> Act<'a> {
    pub(super) fn new(verb: &'static str, name: &'a str, kinds: &'a [FaultKind]) -> Self {
        Self { verb, name, kinds, pending: Pending::Nothing }
    }
}

impl SimStorage {
    /// The machine.
    pub fn world(&self) -> &SimWorld {
        &self.world
    }

    /// A clock that shows the machine's virtual time and sleeps in it.
    pub fn clock(&self) -> SimClock {
        SimClock::new(self.clone())
    }

    fn with<T>(&self, action: impl FnOnce(&mut Process) -> T) -> Option<T> {
        self.world.lock().processes.get_mut(self.process).map(action)
    }

    /// Makes the process crash at its `operation`-th operation, counted from 0 since it began.
    pub fn crash_at(&self, operation: u64, crash: Crash) {
        self.with(|process| process.crash = Some((operation, crash)));
    }

    /// How many operations it has done: how many places there are to crash at.
    pub fn operation_count(&self) -> u64 {
        self.with(|process| process.operations).unwrap_or(0)
    }

    /// Makes the process find itself under another number, as a child of `fork` does.
    pub fn pretend_to_be(&self, number: u32) {
        self.with(|process| process.number = number);
    }

    /// Whether it has crashed.
    pub fn is_dead(&self) -> bool {
        self.world.lock().is_dead(self.process)
    }

    /// Plants a fault.
    pub fn plant(&self, fault: Fault) {
        self.with(|process| process.faults.push((fault, 0)));
    }

    /// Takes all planted faults away.
    pub fn heal(&self) {
        self.with(|process| process.faults.clear());
    }

    /// Whether a planted fault has come to pass.
    pub fn was_hit(&self) -> bool {
        self.with(|process| process.faults.iter().any(|(fault, met)| *met > fault.after)).unwrap_or(false)
    }

    /// Kills the process now.
    pub fn kill(&self) {
        self.world.lock().kill(self.process);
    }

    /// Waits for its turn and counts an operation.
    pub(super) fn enter(&self, act: Act<'_>) -> io::Result<(MutexGuard<'_, World>, Permit)> {
        let mut world = self.take_turn();
        if world.is_dead(self.process) {
            self.go_on_dead(&mut world);
            return Err(dead());
        }
        world.observe(self.process, &act);
        world.note(self.process, act.verb, act.name, &act.pending);
        let Some(process) = world.processes.get_mut(self.process) else { return Err(dead()) };
        let operation = process.operations;
        process.operations += 1;
        if process.crash.is_some_and(|(at, _)| at == operation) {
            return Ok((world, Permit::LastWords));
        }
        for (fault, met) in &mut process.faults {
            if act.kinds.contains(&fault.kind) {
                let turn = *met;
                *met += 1;
                let alternates = fault.kind == FaultKind::Interrupted && !turn.is_multiple_of(2);
                if (turn == fault.after || (turn > fault.after && !fault.once)) && !alternates {
                    let kind = fault.kind;
                    return Ok((world, Permit::Fail(kind)));
                }
            }
        }
        Ok((world, Permit::Go))
    }

    fn go_on_dead(&self, world: &mut World) {
        let Some(process) = world.processes.get_mut(self.process) else { return };
        process.zombie_operations += 1;
        let spins = process.zombie_operations > ZOMBIE_OPERATION_COUNT_MAX && !std::thread::panicking();
        assert!(!spins, "a dead process goes on without end");
    }

    /// The process ends as planned.
    pub(super) fn die(&self, world: &mut World) -> io::Error {
        let crash = world.process(self.process).and_then(|process| process.crash);
        if crash.is_some_and(|(_, crash)| crash == Crash::Power) {
            world.cut_power();
        }
        world.kill(self.process);
        self.world.0.turn.notify_all();
        dead()
    }

    /// An operation that happens whole or not at all.
    pub(super) fn whole(&self, act: Act<'_>) -> io::Result<MutexGuard<'_, World>> {
        let (mut world, permit) = self.enter(act)?;
        match permit {
            Permit::Go => Ok(world),
            Permit::LastWords => Err(self.die(&mut world)),
            Permit::Fail(kind) => Err(kind.error()),
        }
    }
}

impl World {
    /// Mixes an operation into the trace, and lets a little time pass.
    pub(super) fn note(&mut self, process: usize, verb: &str, name: &str, pending: &Pending<'_>) {
        let mut mix = |value: u64| {
            self.trace = (self.trace.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
        };
        mix(process as u64);
        for byte in verb.bytes().chain(name.bytes()) {
            mix(u64::from(byte));
        }
        if let Pending::Write { offset, bytes, .. } = pending {
            mix(*offset as u64);
            mix(u64::from(crc32c::crc32c(bytes)));
        }
        self.micros += 1;
    }
}

impl Storage for SimStorage {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/sim").join(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>> {
        let may_make = !matches!(access, Access::Read | Access::Write);
        let makes = may_make && self.world.lock().disk.named(name).is_none();
        let kinds = [FaultKind::OpenError, FaultKind::NoSpace];
        let kinds = if makes { &kinds[..] } else { kinds.get(..1).unwrap_or(&[]) };
        let verb = if makes { "create" } else { "open" };
        let mut world = self.whole(Act::new(verb, name, kinds))?;
        let found = world.disk.names.get(name).copied();
        let inode = match (found, access) {
            (Some(Node::Directory), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(Node::File(_)), Access::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::File(inode)), Access::Replace) => {
                world.disk.resize(inode, 0);
                inode
            }
            (Some(Node::File(inode)), _) => inode,
            (None, Access::Read | Access::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, _) => {
                if !world.disk.has_directory(parent(name)) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                world.disk.make_file(name)
            }
        };
        let handle = world.new_handle(self.process);
        let known_errors = world.disk.inode(inode).map_or(0, super::inode::Inode::sample_errors);
        Ok(Box::new(SimFile {
            storage: self.clone(),
            name: name.to_owned(),
            inode,
            handle,
            writes: access != Access::Read,
            known_errors: AtomicU32::new(known_errors),
        }))
    }

    fn create_dir(&self, name: &str) -> io::Result<()> {
        let mut world = self.whole(Act::new("make directory", name, &[FaultKind::NoSpace]))?;
        world.disk.make_directory(name);
        Ok(())
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        let world = self.whole(Act::new("list", directory, &[FaultKind::ReadError]))?;
        if !world.disk.has_directory(directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = world.disk.names.keys().filter(|name| parent(name) == directory);
        Ok(inside
            .map(|name| name.rsplit_once('/').map_or(name.as_str(), |(_, last)| last).to_owned())
            .collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.whole(Act::new("rename", from, &[FaultKind::RenameError]))?;
        if world.disk.rename(from, to) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn exchange(&self, left: &str, right: &str) -> io::Result<()> {
        let mut world = self.whole(Act::new("exchange", left, &[FaultKind::RenameError]))?;
        if world.disk.exchange(left, right) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.whole(Act::new("remove", name, &[FaultKind::RenameError]))?;
        if world.disk.remove(name) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn sync_dir(&self, directory: &str) -> io::Result<()> {
        let mut world = self.whole(Act::new("sync directory", directory, &[FaultKind::SyncDirError]))?;
        world.disk.sync_names(directory);
        Ok(())
    }

    fn process(&self) -> u32 {
        self.with(|process| process.number).unwrap_or(0)
    }
}
