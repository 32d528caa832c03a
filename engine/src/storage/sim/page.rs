//! A page that simulated processes share as memory.
//!
//! It is the first 4 KiB of the file's page cache: what is stored is seen by reads of the file at once, and is durable
//! when the file is synced, or when chance has it written back before a power cut.

use std::time::Duration;

use super::World;
use super::bytes::PAGE_BYTES;
use super::moment::Pending;
use super::process::{Act, Permit, SimStorage};
use crate::storage::SharedPage;

pub(super) struct SimPage {
    pub(super) storage: SimStorage,
    pub(super) name: String,
    pub(super) inode: usize,
}

impl SimPage {
    /// The word as it is. A page whose file became too short is a bus error, which is counted.
    fn peek(&self, world: &mut World, index: usize) -> u64 {
        let mut bytes = [0; 8];
        let read = world
            .disk
            .inode(self.inode)
            .map_or(0, |inode| inode.cached.read(index.saturating_mul(8), &mut bytes));
        world.bus_errors += u64::from(read < 8);
        u64::from_le_bytes(bytes)
    }

    /// Does one atomic operation; a process that is dead or dies does nothing more.
    fn change(&self, verb: &'static str, index: usize, change: impl FnOnce(u64) -> Option<u64>) -> u64 {
        if index >= PAGE_BYTES / 8 {
            return 0;
        }
        // A copy of the machine is taken before every store, so what would be stored must be known then.
        let Ok((mut world, permit)) =
            self.storage.enter(Act { pending: Pending::Word, ..Act::new(verb, &self.name, &[]) })
        else {
            return 0;
        };
        let old = self.peek(&mut world, index);
        match permit {
            Permit::LastWords => {
                let _ = self.storage.die(&mut world);
            }
            Permit::Go | Permit::Fail(_) => {
                let is_whole = world.disk.inode(self.inode).is_some_and(|it| it.cached.len() >= PAGE_BYTES);
                if let Some(new) = change(old).filter(|_| is_whole) {
                    world.disk.write(self.inode, index * 8, &new.to_le_bytes());
                }
            }
        }
        old
    }
}

impl SharedPage for SimPage {
    fn load(&self, index: usize) -> u64 {
        self.change("load", index, |_| None)
    }

    fn store(&self, index: usize, value: u64) {
        self.change("store", index, |_| Some(value));
    }

    fn fetch_max(&self, index: usize, value: u64) -> u64 {
        self.change("raise", index, |old| (value > old).then_some(value))
    }

    fn compare_exchange(&self, index: usize, current: u64, new: u64) -> Result<(), u64> {
        match self.change("exchange", index, |old| (old == current).then_some(new)) {
            old if old == current => Ok(()),
            old => Err(old),
        }
    }

    fn bump_and_wake(&self, index: usize) {
        self.change("wake", index, |old| {
            let low = (old & 0xffff_ffff) + 1;
            Some(old & !0xffff_ffff | low & 0xffff_ffff)
        });
        let mut world = self.storage.world.lock();
        if !world.is_dead(self.storage.process) {
            world.schedule.wake_waiters(self.inode, index);
        }
    }

    fn wait(&self, index: usize, seen: u32, limit: Duration) {
        let Ok((mut world, permit)) = self.storage.enter(Act::new("wait", &self.name, &[])) else { return };
        if matches!(permit, Permit::LastWords) {
            let _ = self.storage.die(&mut world);
            return;
        }
        if self.peek(&mut world, index) & 0xffff_ffff == u64::from(seen) {
            self.storage.pause(world, Some((self.inode, index)), limit);
        }
    }
}
