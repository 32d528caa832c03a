//! A simulated disk shared by simulated processes, stricter than a real one.
//!
//! ```text
//! SimWorld            names (cached, pending) -> inodes (cached bytes, pending writes, durable bytes), locks
//!   |- SimStorage 1   one process: its operations are counted and can be made to fail or be its last
//!   '- SimStorage 2   another
//! ```
//!
//! The fault model, and why each fault must be survived:
//!
//! - **Kill** ([`Crash::Kill`]): one process stops at an operation. A write under way leaves any prefix. Its locks
//!   are free; what it wrote stays in the page cache, where others see it although it is not durable.
//! - **Power cut** ([`Crash::Power`]): all processes stop. Of each file's unsynced writes any subset of 512-byte
//!   sectors survives, in any order, and a sector may be torn at any byte, since nothing orders write-back. Of
//!   unsynced names any subset survives: a file can be durable without its name, a name without the bytes.
//! - **Errors** ([`FaultKind`]): any operation of a kind fails from the k-th on, once or for ever: I/O errors, a
//!   full disk (part of the bytes is written first), short reads and writes, interruptions.
//! - **A failed sync** loses: some sectors reach the disk, the others do not, and the next sync returns success
//!   without writing them, because the kernel marked them clean. Only bytes written again are synced again.
//!
//! No threads, no real time, no real randomness: the same seed gives the same world.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::clock::next_random;
use super::{Access, Storage, StoredFile};

const SECTOR_BYTES: usize = 512;

/// How a simulated process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// It is killed: page cache and other processes live on.
    Kill,
    /// The machine loses power.
    Power,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Reads fail.
    ReadError,
    /// Writes fail.
    WriteError,
    /// Writes and new files find no space; part of a write succeeds first.
    NoSpace,
    /// Syncs of files fail and lose what was pending.
    SyncError,
    /// Syncs of directories fail.
    SyncDirError,
    /// Renames fail.
    RenameError,
    /// Reads and writes do less than asked.
    Short,
    /// Reads, writes and syncs are interrupted every other time.
    Interrupted,
}

/// A fault that is planted in one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// From which matching operation on, counted from 0 after planting.
    pub after: u64,
    /// Only that one, or all from there on.
    pub once: bool,
}

#[derive(Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone, Default)]
struct Inode {
    cached: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Change>,
    locked_by: Option<u64>,
}

#[derive(Clone)]
enum Naming {
    Set(String, Node),
    Gone(String),
    Moved(String, String, Node),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    Directory,
    File(usize),
}

#[derive(Clone, Default)]
struct World {
    inodes: Vec<Inode>,
    names: BTreeMap<String, Node>,
    durable_names: BTreeMap<String, Node>,
    pending_names: Vec<Naming>,
    handle_count: u64,
    random: u64,
    /// Rises at each power cut: older processes are dead.
    age: u64,
}

/// The simulated disk.
#[derive(Clone, Default)]
pub struct SimWorld(Arc<Mutex<World>>);

impl SimWorld {
    /// An empty disk; `seed` decides what a crash keeps.
    pub fn new(seed: u64) -> Self {
        let world = World { random: seed, ..World::default() };
        Self(Arc::new(Mutex::new(world)))
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new process on this disk.
    pub fn process(&self, number: u32) -> SimStorage {
        let age = self.lock().age;
        let process = Process { number, age, crash: None, dead: false, operations: 0, faults: Vec::new() };
        SimStorage { world: self.clone(), process: Arc::new(Mutex::new(process)) }
    }

    /// An independent copy of disk and page cache as they are; locks are free in it.
    #[must_use]
    pub fn fork(&self, seed: u64) -> Self {
        let mut world = self.lock().clone();
        world.random = seed;
        world.inodes.iter_mut().for_each(|inode| inode.locked_by = None);
        Self(Arc::new(Mutex::new(world)))
    }

    /// Cuts the power: every process dies, and only what is durable (and any part of the rest) stays.
    pub fn cut_power(&self) {
        self.lock().cut_power();
    }

    /// The bytes of a file, as a process sees them.
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        let world = self.lock();
        match world.names.get(name) {
            Some(Node::File(inode)) => world.inodes.get(*inode).map(|inode| inode.cached.clone()),
            _ => None,
        }
    }

    /// Puts other bytes into a file, durably: damage.
    pub fn set_file(&self, name: &str, bytes: Vec<u8>) {
        let mut world = self.lock();
        let Some(Node::File(inode)) = world.names.get(name).copied() else { return };
        if let Some(inode) = world.inodes.get_mut(inode) {
            inode.cached.clone_from(&bytes);
            inode.durable = bytes;
            inode.pending.clear();
        }
    }

    /// Takes a file away, durably.
    pub fn remove_file(&self, name: &str) {
        let mut world = self.lock();
        world.names.remove(name);
        world.durable_names.remove(name);
    }

    /// Names of all files.
    pub fn files(&self) -> Vec<String> {
        let world = self.lock();
        let files = world.names.iter().filter(|(_, node)| matches!(node, Node::File(_)));
        files.map(|(name, _)| name.clone()).collect()
    }

    /// A failed write-back that nobody was told of: what is pending in `name` becomes clean, partly lost.
    pub fn lose_write_back(&self, name: &str) {
        let mut world = self.lock();
        if let Some(Node::File(inode)) = world.names.get(name).copied() {
            world.write_back_badly(inode);
        }
    }
}

fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Length(length) => bytes.resize(*length, 0),
        Change::Write { offset, bytes: new } => {
            let end = offset.saturating_add(new.len());
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            if let Some(target) = bytes.get_mut(*offset..end) {
                target.copy_from_slice(new);
            }
        }
    }
}

impl World {
    fn chance(&mut self, one_in: u64) -> bool {
        next_random(&mut self.random).is_multiple_of(one_in)
    }

    fn below(&mut self, count: usize) -> usize {
        let random = next_random(&mut self.random) % (count.max(1) as u64);
        usize::try_from(random).unwrap_or(0)
    }

    /// Some sectors of the pending writes reach the disk, some in part, the rest does not.
    fn keep_some(&mut self, pending: Vec<Change>) -> Vec<Change> {
        // All, none, or a mix, so that the plain outcomes are frequent too.
        let mood = self.below(4);
        let mut kept = Vec::new();
        for change in pending {
            let Change::Write { offset, bytes } = change else {
                if mood == 0 || (mood > 1 && self.chance(2)) {
                    kept.push(change);
                }
                continue;
            };
            let mut start = 0;
            while start < bytes.len() {
                let room = SECTOR_BYTES - (offset + start) % SECTOR_BYTES;
                let end = (start + room).min(bytes.len());
                let keep = mood == 0 || (mood > 1 && self.chance(2));
                let torn = mood == 3 && self.chance(4);
                let stop = if torn { start + self.below(end - start) } else { end };
                if let Some(part) = bytes.get(start..stop).filter(|part| keep && !part.is_empty()) {
                    kept.push(Change::Write { offset: offset + start, bytes: part.to_vec() });
                }
                start = end;
            }
        }
        kept
    }

    fn write_back_badly(&mut self, inode: usize) {
        let Some(pending) = self.inodes.get_mut(inode).map(|inode| std::mem::take(&mut inode.pending)) else {
            return;
        };
        let kept = self.keep_some(pending);
        if let Some(inode) = self.inodes.get_mut(inode) {
            for change in &kept {
                apply(&mut inode.durable, change);
            }
        }
    }

    fn cut_power(&mut self) {
        self.age += 1;
        for index in 0..self.inodes.len() {
            self.write_back_badly(index);
            if let Some(inode) = self.inodes.get_mut(index) {
                inode.cached.clone_from(&inode.durable);
                inode.locked_by = None;
            }
        }
        let mood = self.below(3);
        for naming in std::mem::take(&mut self.pending_names) {
            if mood == 0 || (mood == 1 && self.chance(2)) {
                self.make_durable(&naming);
            }
        }
        // A name is reachable only if its directory is.
        let durable = self.durable_names.clone();
        self.durable_names.retain(|name, _| {
            let directory = parent(name);
            directory.is_empty() || durable.contains_key(directory)
        });
        self.names.clone_from(&self.durable_names);
    }

    fn make_durable(&mut self, naming: &Naming) {
        match naming {
            Naming::Set(name, node) => drop(self.durable_names.insert(name.clone(), *node)),
            Naming::Gone(name) => drop(self.durable_names.remove(name)),
            Naming::Moved(from, to, node) => {
                if self.durable_names.get(from) == Some(node) {
                    self.durable_names.remove(from);
                }
                self.durable_names.insert(to.clone(), *node);
            }
        }
    }

    fn sync_names(&mut self, directory: &str) {
        let (synced, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending_names).into_iter().partition(|naming| match naming {
                Naming::Set(name, _) | Naming::Gone(name) | Naming::Moved(_, name, _) => {
                    parent(name) == directory
                }
            });
        self.pending_names = rest;
        for naming in &synced {
            self.make_durable(naming);
        }
    }
}

struct Process {
    number: u32,
    age: u64,
    crash: Option<(u64, Crash)>,
    dead: bool,
    operations: u64,
    faults: Vec<(Fault, u64)>,
}

/// One simulated process and its view of the disk.
#[derive(Clone)]
pub struct SimStorage {
    world: SimWorld,
    process: Arc<Mutex<Process>>,
}

/// What an operation may do after faults and crashes had their say.
enum Permit {
    Go,
    /// Do part of it, then the process is dead.
    LastWords,
    Fail(FaultKind),
}

fn dead() -> io::Error {
    io::Error::other("the simulated process is dead")
}

impl SimStorage {
    /// The disk.
    pub fn world(&self) -> &SimWorld {
        &self.world
    }

    fn state(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the process crash at its `operation`-th operation, counted from 0 since it began.
    pub fn crash_at(&self, operation: u64, crash: Crash) {
        self.state().crash = Some((operation, crash));
    }

    /// How many operations it has done: how many places there are to crash at.
    pub fn operation_count(&self) -> u64 {
        self.state().operations
    }

    /// Makes the process find itself under another number, as a child of `fork` does.
    pub fn pretend_to_be(&self, number: u32) {
        self.state().number = number;
    }

    /// Whether it has crashed.
    pub fn is_dead(&self) -> bool {
        let age = self.world.lock().age;
        let process = self.state();
        process.dead || process.age != age
    }

    /// Plants a fault.
    pub fn plant(&self, fault: Fault) {
        self.state().faults.push((fault, 0));
    }

    /// Takes all planted faults away.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// Kills the process now.
    pub fn kill(&self) {
        let mut process = self.state();
        process.dead = true;
        let number = u64::from(process.number);
        drop(process);
        for inode in &mut self.world.lock().inodes {
            if inode.locked_by.is_some_and(|owner| owner >> 32 == number) {
                inode.locked_by = None;
            }
        }
    }

    /// Counts an operation. `kinds` are the faults it can meet.
    fn enter(&self, kinds: &[FaultKind]) -> io::Result<Permit> {
        let age = self.world.lock().age;
        let mut process = self.state();
        if process.dead || process.age != age {
            return Err(dead());
        }
        let operation = process.operations;
        process.operations += 1;
        if process.crash.is_some_and(|(at, _)| at == operation) {
            return Ok(Permit::LastWords);
        }
        for (fault, met) in &mut process.faults {
            if kinds.contains(&fault.kind) {
                let turn = *met;
                *met += 1;
                let alternates = fault.kind == FaultKind::Interrupted && !turn.is_multiple_of(2);
                if (turn == fault.after || (turn > fault.after && !fault.once)) && !alternates {
                    return Ok(Permit::Fail(fault.kind));
                }
            }
        }
        Ok(Permit::Go)
    }

    /// The process ends as planned.
    fn die(&self) -> io::Error {
        let crash = self.state().crash;
        if crash.is_some_and(|(_, crash)| crash == Crash::Power) {
            self.world.cut_power();
        }
        self.kill();
        dead()
    }

    fn simple(&self, kinds: &[FaultKind]) -> io::Result<()> {
        match self.enter(kinds)? {
            Permit::Go => Ok(()),
            Permit::LastWords => Err(self.die()),
            Permit::Fail(kind) => Err(failure(kind)),
        }
    }
}

fn failure(kind: FaultKind) -> io::Error {
    match kind {
        FaultKind::NoSpace => io::ErrorKind::StorageFull.into(),
        FaultKind::Interrupted => io::ErrorKind::Interrupted.into(),
        _ => io::Error::other("simulated input/output error"),
    }
}

impl Storage for SimStorage {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/sim").join(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>> {
        let exists = matches!(self.world.lock().names.get(name), Some(Node::File(_)));
        let makes = !exists && !matches!(access, Access::Read | Access::Write);
        self.simple(if makes { &[FaultKind::NoSpace] } else { &[] })?;
        let mut world = self.world.lock();
        let found = world.names.get(name).copied();
        let inode = match (found, access) {
            (Some(Node::Directory), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (Some(Node::File(_)), Access::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::File(inode)), Access::Replace) => {
                if let Some(inode) = world.inodes.get_mut(inode) {
                    inode.cached.clear();
                    inode.pending.push(Change::Length(0));
                }
                inode
            }
            (Some(Node::File(inode)), _) => inode,
            (None, Access::Read | Access::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, _) => {
                let directory = parent(name);
                if !directory.is_empty() && world.names.get(directory) != Some(&Node::Directory) {
                    return Err(io::ErrorKind::NotFound.into());
                }
                let inode = world.inodes.len();
                world.inodes.push(Inode::default());
                world.names.insert(name.to_owned(), Node::File(inode));
                world.pending_names.push(Naming::Set(name.to_owned(), Node::File(inode)));
                inode
            }
        };
        world.handle_count += 1;
        let handle = u64::from(self.state().number) << 32 | world.handle_count;
        let writes = access != Access::Read;
        Ok(Box::new(SimFile { storage: self.clone(), name: name.to_owned(), inode, handle, writes }))
    }

    fn create_dir(&self, name: &str) -> io::Result<()> {
        self.simple(&[FaultKind::NoSpace])?;
        let mut world = self.world.lock();
        if !name.is_empty() && !world.names.contains_key(name) {
            world.names.insert(name.to_owned(), Node::Directory);
            world.pending_names.push(Naming::Set(name.to_owned(), Node::Directory));
        }
        Ok(())
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        self.simple(&[FaultKind::ReadError])?;
        let world = self.world.lock();
        if !directory.is_empty() && world.names.get(directory) != Some(&Node::Directory) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = world.names.keys().filter(|name| parent(name) == directory);
        Ok(inside
            .map(|name| name.rsplit_once('/').map_or(name.as_str(), |(_, last)| last).to_owned())
            .collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.simple(&[FaultKind::RenameError])?;
        let mut world = self.world.lock();
        let Some(node) = world.names.remove(from) else { return Err(io::ErrorKind::NotFound.into()) };
        world.names.insert(to.to_owned(), node);
        world.pending_names.push(Naming::Moved(from.to_owned(), to.to_owned(), node));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.simple(&[FaultKind::RenameError])?;
        let mut world = self.world.lock();
        if world.names.remove(name).is_none() {
            return Err(io::ErrorKind::NotFound.into());
        }
        world.pending_names.push(Naming::Gone(name.to_owned()));
        Ok(())
    }

    fn sync_dir(&self, directory: &str) -> io::Result<()> {
        self.simple(&[FaultKind::SyncDirError])?;
        self.world.lock().sync_names(directory);
        Ok(())
    }

    fn process(&self) -> u32 {
        self.state().number
    }
}

struct SimFile {
    storage: SimStorage,
    name: String,
    inode: usize,
    handle: u64,
    writes: bool,
}

impl SimFile {
    fn with<T>(&self, action: impl FnOnce(&mut Inode) -> T) -> io::Result<T> {
        let mut world = self.storage.world.lock();
        world.inodes.get_mut(self.inode).map(action).ok_or_else(dead)
    }

    fn put(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let change = Change::Write { offset, bytes: bytes.to_vec() };
        self.with(|inode| {
            apply(&mut inode.cached, &change);
            inode.pending.push(change);
        })
    }

    fn some(&self, length: usize) -> usize {
        self.storage.world.lock().below(length)
    }
}

impl StoredFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let kinds = [FaultKind::ReadError, FaultKind::Short, FaultKind::Interrupted];
        let limit = match self.storage.enter(&kinds)? {
            Permit::Go => buffer.len(),
            Permit::LastWords => return Err(self.storage.die()),
            Permit::Fail(FaultKind::Short) => buffer.len().min(1 + self.some(buffer.len())),
            Permit::Fail(kind) => return Err(failure(kind)),
        };
        self.with(|inode| {
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let rest = inode.cached.get(start..).unwrap_or(&[]);
            let count = rest.len().min(limit);
            buffer.iter_mut().zip(rest.iter().take(count)).for_each(|(target, byte)| *target = *byte);
            count
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if !self.writes {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let end = offset.saturating_add(bytes.len() as u64);
        let grows = self.with(|inode| end > inode.cached.len() as u64)?;
        let mut kinds = vec![FaultKind::WriteError, FaultKind::Short, FaultKind::Interrupted];
        if grows {
            kinds.push(FaultKind::NoSpace);
        }
        match self.storage.enter(&kinds)? {
            Permit::Go => {
                self.put(offset, bytes)?;
                Ok(bytes.len())
            }
            Permit::LastWords => {
                let count = self.some(bytes.len() + 1);
                self.put(offset, bytes.get(..count).unwrap_or(bytes))?;
                Err(self.storage.die())
            }
            Permit::Fail(kind @ (FaultKind::Short | FaultKind::NoSpace)) => {
                let count = self.some(bytes.len());
                // The little that fits is written first; then the disk is full.
                if kind == FaultKind::NoSpace && (count == 0 || self.some(2) == 0) {
                    return Err(failure(kind));
                }
                let count = count.max(1);
                self.put(offset, bytes.get(..count).unwrap_or(bytes))?;
                Ok(count)
            }
            Permit::Fail(kind) => Err(failure(kind)),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.storage.simple(&[])?;
        self.with(|inode| inode.cached.len() as u64)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.storage.simple(&[FaultKind::WriteError])?;
        let change = Change::Length(usize::try_from(length).map_err(io::Error::other)?);
        self.with(|inode| {
            apply(&mut inode.cached, &change);
            inode.pending.push(change);
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        match self.storage.enter(&[FaultKind::SyncError, FaultKind::Interrupted])? {
            Permit::Go => self.with(|inode| {
                for change in std::mem::take(&mut inode.pending) {
                    apply(&mut inode.durable, &change);
                }
            }),
            Permit::LastWords => Err(self.storage.die()),
            Permit::Fail(FaultKind::Interrupted) => Err(failure(FaultKind::Interrupted)),
            Permit::Fail(kind) => {
                self.storage.world.lock().write_back_badly(self.inode);
                Err(failure(kind))
            }
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.storage.simple(&[])?;
        self.with(|inode| {
            let free = inode.locked_by.is_none_or(|owner| owner == self.handle);
            if free {
                inode.locked_by = Some(self.handle);
            }
            free
        })
    }

    fn unlock(&self) -> io::Result<()> {
        self.storage.simple(&[])?;
        self.release()
    }

    fn is_current(&self) -> io::Result<bool> {
        self.storage.simple(&[])?;
        Ok(self.storage.world.lock().names.get(&self.name) == Some(&Node::File(self.inode)))
    }
}

impl SimFile {
    fn release(&self) -> io::Result<()> {
        self.with(|inode| {
            if inode.locked_by == Some(self.handle) {
                inode.locked_by = None;
            }
        })
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let _ = self.release();
    }
}
