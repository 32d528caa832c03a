//! An open file of a simulated process.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::disk::Node;
use super::fault::dead;
use super::moment::Pending;
use super::process::{Act, Permit, SimStorage};
use super::{FaultKind, World};
use crate::storage::StoredFile;

pub(super) struct SimFile {
    pub(super) storage: SimStorage,
    pub(super) name: String,
    pub(super) inode: usize,
    pub(super) handle: u64,
    pub(super) writes: bool,
    /// How many failed write-backs of the file this handle knows of.
    pub(super) known_errors: AtomicU32,
}

fn offset_of(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}

impl SimFile {
    fn act<'a>(&'a self, verb: &'static str, kinds: &'a [FaultKind]) -> Act<'a> {
        Act::new(verb, &self.name, kinds)
    }

    fn cached_len(&self, world: &World) -> u64 {
        world.disk.inode(self.inode).map_or(0, |inode| inode.cached.len() as u64)
    }

    /// Tells of failures that this handle has not been told of.
    fn tell_errors(&self, world: &mut World) -> io::Result<()> {
        let known = self.known_errors.load(Ordering::SeqCst);
        match world.disk.inode_mut(self.inode).and_then(|inode| inode.news_of_errors(known)) {
            None => Ok(()),
            Some(count) => {
                self.known_errors.store(count, Ordering::SeqCst);
                Err(FaultKind::SyncError.error())
            }
        }
    }
}

impl StoredFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let kinds = [FaultKind::ReadError, FaultKind::Short, FaultKind::Interrupted];
        let (mut world, permit) = self.storage.enter(self.act("read", &kinds))?;
        world.read_count += 1;
        let limit = match permit {
            Permit::Go => buffer.len(),
            Permit::LastWords => return Err(self.storage.die(&mut world)),
            Permit::Fail(FaultKind::Short) => buffer.len().min(1 + world.disk.chance.below(buffer.len())),
            Permit::Fail(kind) => return Err(kind.error()),
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let target = buffer.get_mut(..limit).unwrap_or(&mut []);
        let Some(cut) = self.storage.tear(&mut world, start, target.len()) else {
            return Ok(world.disk.inode(self.inode).ok_or_else(dead)?.cached.read(start, target));
        };
        let (before, after) = target.split_at_mut(cut);
        let count = world.disk.inode(self.inode).ok_or_else(dead)?.cached.read(start, before);
        if count < cut {
            return Ok(count);
        }
        world = self.storage.give_way(world);
        if world.is_dead(self.storage.process) {
            return Err(dead());
        }
        let rest =
            world.disk.inode(self.inode).ok_or_else(dead)?.cached.read(start.saturating_add(cut), after);
        Ok(count.saturating_add(rest))
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if !self.writes {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let offset = offset_of(offset)?;
        let grows = offset.saturating_add(bytes.len()) as u64 > self.cached_len(&self.storage.world.lock());
        let kinds = [FaultKind::WriteError, FaultKind::Short, FaultKind::Interrupted, FaultKind::NoSpace];
        let kinds = if grows { &kinds[..] } else { kinds.get(..3).unwrap_or(&[]) };
        let pending = Pending::Write { inode: self.inode, offset, bytes };
        let (mut world, permit) = self.storage.enter(Act { pending, ..self.act("write", kinds) })?;
        match permit {
            Permit::Go => {
                let cut = self.storage.tear(&mut world, offset, bytes.len()).unwrap_or(0);
                let (before, after) = bytes.split_at_checked(cut).unwrap_or((&[], bytes));
                if !before.is_empty() {
                    world.disk.write(self.inode, offset, before);
                    world = self.storage.give_way(world);
                    if world.is_dead(self.storage.process) {
                        return Err(dead());
                    }
                }
                world.disk.write(self.inode, offset.saturating_add(before.len()), after);
                Ok(bytes.len())
            }
            Permit::LastWords => {
                let count = world.disk.chance.below(bytes.len() + 1);
                world.disk.write(self.inode, offset, bytes.get(..count).unwrap_or(bytes));
                Err(self.storage.die(&mut world))
            }
            Permit::Fail(kind @ (FaultKind::Short | FaultKind::NoSpace)) => {
                let count = world.disk.chance.below(bytes.len());
                // The little that fits is written first; then the disk is full.
                if kind == FaultKind::NoSpace && (count == 0 || world.disk.chance.one_in(2)) {
                    return Err(kind.error());
                }
                let count = count.max(1);
                world.disk.write(self.inode, offset, bytes.get(..count).unwrap_or(bytes));
                Ok(count)
            }
            Permit::Fail(kind) => Err(kind.error()),
        }
    }

    fn len(&self) -> io::Result<u64> {
        let world = self.storage.whole(self.act("ask length", &[FaultKind::InspectError]))?;
        Ok(self.cached_len(&world))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let length = offset_of(length)?;
        let mut world = self.storage.whole(self.act("set length", &[FaultKind::WriteError]))?;
        world.disk.resize(self.inode, length);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let kinds = [FaultKind::SyncError, FaultKind::SyncLies, FaultKind::Interrupted];
        let (mut world, permit) = self.storage.enter(self.act("sync", &kinds))?;
        match permit {
            Permit::Go => {
                world.disk.inode_mut(self.inode).ok_or_else(dead)?.write_back();
                self.tell_errors(&mut world)
            }
            Permit::LastWords => Err(self.storage.die(&mut world)),
            Permit::Fail(FaultKind::Interrupted) => Err(FaultKind::Interrupted.error()),
            Permit::Fail(FaultKind::SyncLies) => self.tell_errors(&mut world),
            Permit::Fail(_) => {
                world.disk.fail_write_back(self.inode, false);
                self.tell_errors(&mut world)
            }
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut world = self.storage.whole(self.act("lock", &[FaultKind::LockError]))?;
        let owner = *world.locks.entry(self.inode).or_insert(self.handle);
        Ok(owner == self.handle)
    }

    fn unlock(&self) -> io::Result<()> {
        let mut world = self.storage.whole(self.act("unlock", &[]))?;
        self.release(&mut world);
        Ok(())
    }

    fn is_current(&self) -> io::Result<bool> {
        let world = self.storage.whole(self.act("ask name", &[FaultKind::InspectError]))?;
        Ok(world.disk.names.get(&self.name) == Some(&Node::File(self.inode)))
    }
}

impl SimFile {
    fn release(&self, world: &mut World) {
        if world.locks.get(&self.inode) == Some(&self.handle) {
            world.locks.remove(&self.inode);
        }
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.release(&mut self.storage.world.lock());
    }
}
