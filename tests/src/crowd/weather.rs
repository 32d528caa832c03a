//! Bad weather: times at which a process of a round runs out of descriptors or of space, or reads and syncs fail or take long.
//!
//! ```text
//! setting.sky -> a thread that turns SKY fair and bad -> Files (each other handle): calls fail, or write a part of their bytes
//!                                                   '-> the limit of descriptors of the process: all handles, and their indexes
//! ```
//!
//! An act may fail then, with an error that says so. Acknowledged acts stay, and handles recover when the sky is fair, or are poisoned.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use acpdb_engine::Error;
use acpdb_engine::locks::steady;
use acpdb_engine::storage::{Access, FileStorage, Storage, StoredFile};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{HANG, Sky};
use crate::soak::Dice;

/// The kinds of bad weather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// All is well.
    Fair = 0,
    /// Nothing can be opened, listed, renamed.
    Files,
    /// Nothing can grow; a write may stop in its middle.
    Space,
    /// Reads and syncs take long.
    Slow,
    /// Reads fail.
    Reads,
    /// Syncs fail.
    Syncs,
    /// The process has no descriptor left, for anything.
    Limit,
}

/// Kinds of which one is drawn at each change.
const KINDS: [Kind; 5] = [Kind::Syncs, Kind::Files, Kind::Space, Kind::Slow, Kind::Reads];

/// The sky over a process.
pub struct Heaven {
    kind: AtomicU32,
    /// One call in so many fails.
    rate: AtomicU32,
    /// Odd: it is bad now.
    changes: AtomicU64,
    is_used: AtomicBool,
    is_over: AtomicBool,
    dice: Mutex<Option<Dice>>,
}

/// The sky over this process.
pub static SKY: Heaven = Heaven {
    kind: AtomicU32::new(0),
    rate: AtomicU32::new(1),
    changes: AtomicU64::new(0),
    is_used: AtomicBool::new(false),
    is_over: AtomicBool::new(false),
    dice: Mutex::new(None),
};

impl Heaven {
    /// Whether it is ever bad in this process.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::SeqCst)
    }

    /// Its changes up to now.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    /// Whether an error comes of bad weather at some moment since a mark.
    #[must_use]
    pub fn excuses(&self, mark: u64, error: &Error) -> bool {
        match error {
            // Another thread or process may have failed.
            Error::Poisoned => self.is_used(),
            Error::Io { .. } | Error::NoSpace { .. } => self.was_bad(mark),
            _ => false,
        }
    }

    /// Whether calls could fail at some time since a mark.
    pub fn was_bad(&self, mark: u64) -> bool {
        mark % 2 == 1 || self.mark() != mark
    }

    fn turn(&self, kind: Kind, rate: u32) {
        self.rate.store(rate, Ordering::SeqCst);
        if kind == Kind::Fair {
            self.kind.store(0, Ordering::SeqCst);
        }
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.kind.store(kind as u32, Ordering::SeqCst);
    }

    /// Is used from now on.
    pub fn begins(&self, seed: u64) {
        *steady(&self.dice) = Some(Dice::new(seed));
        self.is_used.store(true, Ordering::SeqCst);
    }

    /// Turns fair and bad until it is over.
    pub fn blows(&self, seed: u64, sky: Sky) {
        let (mut dice, limit) = (Dice::new(seed), sky == Sky::Limit);
        let kinds = KINDS.get(usize::from(sky == Sky::Calls)..).unwrap_or(&KINDS);
        let before = getrlimit(Resource::Nofile);
        while !self.is_over.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(2 + dice.below(25) as u64));
            let kind = if limit { Kind::Limit } else { dice.pick(kinds, Kind::Slow) };
            self.turn(kind, dice.pick(&[1, 2, 5, 20], 1));
            if limit {
                // A limit below the number of open files takes none of them away.
                let low = Rlimit { current: Some(dice.pick(&[0, 0, 24, 40], 0)), ..before };
                // Where it cannot be set, the sky stays fair.
                let _ = setrlimit(Resource::Nofile, low);
            }
            std::thread::sleep(Duration::from_millis(1 + dice.below(8) as u64));
            if limit {
                // As above.
                let _ = setrlimit(Resource::Nofile, before);
            }
            self.turn(Kind::Fair, 1);
        }
    }

    /// Is fair from now on.
    pub fn ends(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Whether a call fails that fails in this weather.
    fn strikes(&self, kind: Kind) -> bool {
        let rate = self.rate.load(Ordering::SeqCst) as usize;
        self.kind.load(Ordering::SeqCst) == kind as u32
            && steady(&self.dice).as_mut().is_some_and(|dice| dice.one_in(rate))
    }

    fn fails(&self, kind: Kind, errno: Errno) -> io::Result<()> {
        if self.strikes(kind) { Err(errno.into()) } else { Ok(()) }
    }

    fn waits(&self) {
        if self.strikes(Kind::Slow) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Does something again while the process has no descriptor left.
///
/// # Errors
/// Any other.
pub fn patiently<T>(mut run: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let begun = Instant::now();
    loop {
        match run() {
            Err(error)
                if error.raw_os_error() == Some(Errno::MFILE.raw_os_error())
                    && begun.elapsed() < HANG / 4 =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

/// The files of a store under this sky.
#[must_use]
pub fn files(path: &Path) -> Arc<dyn Storage> {
    Arc::new(Files(FileStorage::new(path)))
}

struct Files(FileStorage);

impl Storage for Files {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>> {
        SKY.fails(Kind::Files, Errno::MFILE)?;
        if matches!(access, Access::Create | Access::CreateNew | Access::Replace) {
            SKY.fails(Kind::Space, Errno::NOSPC)?;
        }
        Ok(Box::new(OpenFile(self.0.open(name, access)?)))
    }

    fn create_dir(&self, name: &str) -> io::Result<()> {
        SKY.fails(Kind::Files, Errno::MFILE)?;
        SKY.fails(Kind::Space, Errno::NOSPC)?;
        self.0.create_dir(name)
    }

    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        SKY.fails(Kind::Files, Errno::MFILE)?;
        SKY.fails(Kind::Reads, Errno::IO)?;
        self.0.list(directory)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        SKY.fails(Kind::Files, Errno::MFILE)?;
        SKY.fails(Kind::Space, Errno::NOSPC)?;
        self.0.rename(from, to)
    }

    fn exchange(&self, left: &str, right: &str) -> io::Result<()> {
        SKY.fails(Kind::Files, Errno::MFILE)?;
        SKY.fails(Kind::Space, Errno::NOSPC)?;
        self.0.exchange(left, right)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        SKY.fails(Kind::Files, Errno::MFILE)?;
        self.0.remove(name)
    }

    fn sync_dir(&self, directory: &str) -> io::Result<()> {
        SKY.waits();
        SKY.fails(Kind::Files, Errno::MFILE)?;
        SKY.fails(Kind::Syncs, Errno::IO)?;
        self.0.sync_dir(directory)
    }

    fn process(&self) -> u32 {
        self.0.process()
    }
}

struct OpenFile(Box<dyn StoredFile>);

impl StoredFile for OpenFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        SKY.waits();
        SKY.fails(Kind::Reads, Errno::IO)?;
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if SKY.strikes(Kind::Space) {
            // The first half, and then no more; what lies there already takes no space.
            let (half, end) = (bytes.len() / 2, self.0.len()?);
            let fits = half.max(usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX));
            match bytes.get(..fits.min(bytes.len())) {
                Some(bytes) if !bytes.is_empty() => return self.0.write_at(bytes, offset),
                _ => return Err(Errno::NOSPC.into()),
            }
        }
        self.0.write_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        SKY.fails(Kind::Reads, Errno::IO)?;
        self.0.len()
    }

    fn data_from(&self, offset: u64) -> io::Result<Option<u64>> {
        SKY.fails(Kind::Reads, Errno::IO)?;
        self.0.data_from(offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        if length > self.0.len()? {
            SKY.fails(Kind::Space, Errno::NOSPC)?;
        }
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        SKY.waits();
        SKY.fails(Kind::Syncs, Errno::IO)?;
        self.0.sync_data()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.0.unlock()
    }

    fn is_current(&self) -> io::Result<bool> {
        SKY.fails(Kind::Reads, Errno::IO)?;
        self.0.is_current()
    }

    fn is_linked(&self) -> io::Result<bool> {
        SKY.fails(Kind::Reads, Errno::IO)?;
        self.0.is_linked()
    }
}
