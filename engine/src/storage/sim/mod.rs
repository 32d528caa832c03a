//! A simulated machine: processes that share a disk and locks, stricter than a real one.
//!
//! ```text
//! SimWorld            names (cached, pending) -> files (cached, every version since the last sync, durable)
//!   |                 locks, virtual time, whose turn it is
//!   |- SimStorage 1   one process: its operations are counted, can be made to fail, or to be its last
//!   |    '- files     each with its own knowledge of failed write-backs
//!   '- SimStorage 2   another
//! ```
//!
//! # The faults, and why each must be survived
//!
//! - **Kill** ([`Crash::Kill`]): one process stops at an operation; of a write under way any prefix is done. Its locks
//!   are free; its bytes stay in the page cache, where other processes see them although they are not durable.
//!   Agents are killed all the time, in the middle of anything.
//! - **Power cut** ([`Crash::Power`]): all processes stop. Every unsynced sector of 512 bytes is on the disk in any of
//!   the versions it had since the last sync, or torn: a prefix of one version and the rest of another, or each word
//!   from another moment, since write-back runs while processes write. Sectors are independent of each other, so anything
//!   may come before anything. A file is as long as it was at any moment since. Unsynced bytes that a file
//!   grew by are zeros or bytes of another file.
//! - **Names** are apart from files: of unsynced names all, a prefix, any mix or none survive. A file can be durable
//!   without its name, a name without the bytes, a whole new store without its directory.
//! - **Errors** ([`FaultKind`]): any operation of a kind fails from the k-th on, once or for ever: input/output errors, a
//!   full disk (part of the bytes is written first), short reads and writes, interruptions.
//! - **A failed sync** loses: some sectors reach the disk, the others do not, all count as clean, and the next sync
//!   returns success without writing them. Each open file is told once of a failure since it was opened; of an older
//!   one only if it was not reported before the file was opened. So a sync counts only for bytes that were written since the
//!   syncing handle was opened. Linux behaves so since 4.17; older kernels report less.
//! - **A lying sync** ([`FaultKind::SyncLies`]) returns success and does nothing, as disks do whose cache is volatile.
//!   Nothing can be promised then but honesty: lost bytes are reported, shown bytes are true.
//! - **Interleaving** ([`SimWorld::interleave`]): processes on threads of their own, of which one runs at a time; at
//!   every operation the seed decides which one goes on, and in the middle of reads and writes of more than 8 bytes, too: a reader
//!   may then get the beginning of an old record and the end of a new one. Waiting takes virtual time.
//!
//! The same seed gives the same world, to the byte; [`SimWorld::trace`] tells two runs apart. There is no real time and
//! no real randomness in it. [`SimWorld::record`] hands out a copy of the disk before every operation, cheap enough for
//! hundreds of thousands: each is a machine whose power may be cut.

mod bytes;
mod chance;
mod clock;
mod disk;
mod fault;
mod file;
mod inode;
mod moment;
mod process;
mod schedule;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::locks::steady;
use chance::Chance;
pub use clock::SimClock;
use disk::{Disk, Node};
pub use fault::{Crash, Fault, FaultKind};
pub use moment::Moment;
use moment::Observer;
use process::Process;
pub use process::SimStorage;
pub use schedule::Part;
use schedule::Schedule;

#[derive(Default)]
struct World {
    disk: Disk,
    /// The open file that holds the lock, by inode.
    locks: HashMap<usize, u64>,
    processes: Vec<Process>,
    handle_count: u64,
    /// Rises at each power cut: older processes are dead.
    age: u64,
    /// Virtual time in microseconds.
    micros: u64,
    trace: u64,
    read_count: u64,
    schedule: Schedule,
    observer: Option<Observer>,
}

#[derive(Default)]
struct Inner {
    world: Mutex<World>,
    /// Notified whenever another process's turn begins.
    turn: Condvar,
}

/// The simulated machine. Clones are the same machine.
///
/// # For tests of a host
///
/// Take your loop as it is, and give it a store on a simulated disk. Let a fuzzer's bytes decide the answers of the model, the calls that fail, and the operation
/// at which power is lost. Then open the store again: it must be sound, hold all that was acknowledged, and your loop must be able to go on.
///
/// ```
/// use std::sync::Arc;
/// use acpdb_engine::entry::{Entry, StreamInfo};
/// use acpdb_engine::event::Role;
/// use acpdb_engine::ids::{Micros, Seq};
/// use acpdb_engine::storage::{Crash, FixedClock, FixedEntropy, SimStorage, SimWorld};
/// use acpdb_engine::verify::{Verdict, verify_storage};
/// use acpdb_engine::{Error, Store};
///
/// fn open(disk: &SimStorage) -> Result<Store, Error> {
///     Store::builder("/sim")
///         .storage(Arc::new(disk.clone()))
///         .clock(Arc::new(FixedClock::new(Micros(1_767_225_600_000_000), 1)))
///         .entropy(Arc::new(FixedEntropy::new(7)))
///         .open()
/// }
///
/// /// Your host's loop goes here. It counts what was acknowledged.
/// fn my_loop(disk: &SimStorage, input: &[u8], acknowledged: &mut u64) -> Result<(), Error> {
///     let store = open(disk)?;
///     let session = StreamInfo::session("my-host", "s1");
///     for (number, byte) in input.iter().enumerate() {
///         let entry = match byte % 3 {
///             0 => Entry::message(format!("m{number}"), Role::User, format!("said {byte}")),
///             1 => Entry::tool_started(format!("c{number}"), "read", r#"{"path":"a.rs"}"#),
///             _ => Entry::step(format!("step {number}")),
///         };
///         let receipt = store.append(&session, vec![entry])?;
///         *acknowledged = receipt.last_seq.get();
///     }
///     store.close()
/// }
///
/// // A fuzzer would give these: the operation at which power is lost, and the input until then.
/// for (operation, input) in [(3, &b"abc"[..]), (40, b"some longer session"), (1_000_000, b"undisturbed")] {
///     let world = SimWorld::new(operation);
///     let disk = world.process(1);
///     disk.crash_at(operation, Crash::Power);
///     let mut acknowledged = 0;
///     let _interrupted = my_loop(&disk, input, &mut acknowledged);
///
///     // The next start of the host, after the power is back.
///     let store = open(&world.process(2)).expect("a store survives a power cut");
///     assert!(store.head().unwrap() >= Seq(acknowledged), "what was acknowledged is there");
///     let report = verify_storage(Arc::new(world.process(3)), true).expect("it can be checked");
///     assert_eq!(report.verdict(), Verdict::Sound);
/// }
/// ```
#[derive(Clone, Default)]
pub struct SimWorld(Arc<Inner>);

impl SimWorld {
    /// A machine with an empty disk; `seed` decides which bytes and names a crash keeps.
    pub fn new(seed: u64) -> Self {
        let mut disk = Disk::default();
        disk.chance = Chance(seed);
        Self::with_disk(disk)
    }

    fn with_disk(disk: Disk) -> Self {
        let inner = Inner { world: Mutex::new(World { disk, ..World::default() }), turn: Condvar::new() };
        Self(Arc::new(inner))
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        steady(&self.0.world)
    }

    /// A new process on this machine, named by `number`; two may have the same.
    pub fn process(&self, number: u32) -> SimStorage {
        let mut world = self.lock();
        let age = world.age;
        world.processes.push(Process::new(number, age));
        SimStorage { world: self.clone(), process: world.processes.len() - 1 }
    }

    /// An independent copy of disk and page cache as they are, without a running process, with all locks free.
    #[must_use]
    pub fn fork(&self, seed: u64) -> Self {
        let mut disk = self.lock().disk.clone();
        disk.chance = Chance(seed);
        Self::with_disk(disk)
    }

    /// Cuts the power: every process dies, and only durable bytes and names (and any part of the others) stay.
    pub fn cut_power(&self) {
        self.lock().cut_power();
        self.0.turn.notify_all();
    }

    /// The bytes of a file, as a process sees them.
    pub fn file(&self, name: &str) -> Option<Vec<u8>> {
        let world = self.lock();
        let inode = world.disk.named(name)?;
        world.disk.inode(inode).map(|inode| inode.cached.to_vec())
    }

    /// The length of a file, as a process sees it.
    pub fn file_len(&self, name: &str) -> Option<u64> {
        let world = self.lock();
        let inode = world.disk.named(name)?;
        world.disk.inode(inode).map(|inode| inode.cached.len() as u64)
    }

    /// Puts other bytes into a file, durably, or makes it: damage.
    pub fn set_file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        self.lock().disk.put(name, bytes.as_ref());
    }

    /// Takes a file away, durably.
    pub fn remove_file(&self, name: &str) {
        self.lock().disk.lose(name);
    }

    /// Names of all files, sorted.
    pub fn files(&self) -> Vec<String> {
        let world = self.lock();
        let files = world.disk.names.iter().filter(|(_, node)| matches!(node, Node::File(_)));
        files.map(|(name, _)| name.clone()).collect()
    }

    /// How often bytes or names became different. Writing equal bytes does not count.
    pub fn change_count(&self) -> u64 {
        self.lock().disk.change_count
    }

    /// How often a file was read, in all processes. It measures the cost of an answer without a clock.
    pub fn read_count(&self) -> u64 {
        self.lock().read_count
    }

    /// A number that two runs share only if every process did the same operations in the same order.
    pub fn trace(&self) -> u64 {
        self.lock().trace
    }

    /// A write-back of `name` failed, and the process that was told of it is gone: pending bytes become clean, partly lost. Files
    /// that are open now will be told, files opened later will not.
    pub fn lose_write_back(&self, name: &str) {
        self.fail_write_back(name, true);
    }

    /// As [`SimWorld::lose_write_back`]; with `seen` false the failure is not reported yet, and the next handle on the file gets it.
    pub fn fail_write_back(&self, name: &str, seen: bool) {
        let mut world = self.lock();
        if let Some(inode) = world.disk.named(name) {
            world.disk.fail_write_back(inode, seen);
        }
    }
}

impl World {
    fn cut_power(&mut self) {
        self.age += 1;
        self.locks.clear();
        self.disk.cut_power();
        self.schedule.wake_all();
    }

    fn process(&self, process: usize) -> Option<&Process> {
        self.processes.get(process)
    }

    fn is_dead(&self, process: usize) -> bool {
        self.process(process).is_none_or(|process| process.dead || process.age != self.age)
    }

    fn kill(&mut self, process: usize) {
        if let Some(it) = self.processes.get_mut(process) {
            it.dead = true;
        }
        self.locks.retain(|_, handle| handle_owner(*handle) != process);
        self.schedule.wake(process);
    }

    fn new_handle(&mut self, process: usize) -> u64 {
        self.handle_count += 1;
        (process as u64) << 32 | (self.handle_count & 0xffff_ffff)
    }
}

fn handle_owner(handle: u64) -> usize {
    usize::try_from(handle >> 32).unwrap_or(usize::MAX)
}
