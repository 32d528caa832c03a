//! Copies of the machine before each operation: places where it may stop.

use super::chance::Chance;
use super::disk::Disk;
use super::process::Act;
use super::{Crash, SimWorld, World};

/// The change that an operation is about to make to bytes.
#[derive(Clone, Copy)]
pub(super) enum Pending<'a> {
    Nothing,
    /// A write that may be cut short.
    Write {
        inode: usize,
        offset: usize,
        bytes: &'a [u8],
    },
}

pub(super) struct Observer {
    each: Box<dyn FnMut(Moment) + Send>,
    change_count: Option<u64>,
}

/// The machine right before an operation.
pub struct Moment {
    disk: Disk,
    write: Option<(usize, usize, Vec<u8>)>,
    /// The number of the process whose operation it is.
    pub process: u32,
    /// The coming operation as text.
    pub operation: String,
}

impl Moment {
    /// A machine that stopped here, without a running process: killed (all processes), or without power. `seed` decides how
    /// much of a write under way was done and which bytes the disk kept.
    #[must_use]
    pub fn image(&self, crash: Crash, seed: u64) -> SimWorld {
        let mut disk = self.disk.clone();
        disk.chance = Chance(seed);
        if let Some((inode, offset, bytes)) = &self.write {
            let count = disk.chance.below(bytes.len() + 1);
            disk.write(*inode, *offset, bytes.get(..count).unwrap_or(&[]));
        }
        if crash == Crash::Power {
            disk.cut_power();
        }
        SimWorld::with_disk(disk)
    }
}

impl SimWorld {
    /// Hands `each` a copy of the machine before an operation, from now on: before each sync, each write
    /// (a crash may do a part of it), and each other operation that finds the machine changed since the last copy. `each` must not use this world.
    ///
    /// Cost: microseconds for each copy.
    pub fn record(&self, each: impl FnMut(Moment) + Send + 'static) {
        self.lock().observer = Some(Observer { each: Box::new(each), change_count: None });
    }

    /// Ends [`SimWorld::record`].
    pub fn stop_recording(&self) {
        self.lock().observer = None;
    }
}

impl World {
    pub(super) fn observe(&mut self, process: usize, act: &Act<'_>) {
        let number = self.process(process).map_or(0, |process| process.number);
        let Some(observer) = &mut self.observer else { return };
        let write = match act.pending {
            Pending::Write { inode, offset, bytes } => Some((inode, offset, bytes.to_vec())),
            Pending::Nothing => None,
        };
        if write.is_none() && observer.change_count == Some(self.disk.change_count) && act.verb != "sync" {
            return;
        }
        observer.change_count = Some(self.disk.change_count);
        let operation = format!("process {number}: {} {}", act.verb, act.name);
        (observer.each)(Moment { disk: self.disk.clone(), write, process: number, operation });
    }
}
