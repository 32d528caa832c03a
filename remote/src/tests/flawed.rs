//! Rules of the chain, broken on purpose by a remote between a worker and the real one: a simulation that does not find such a fault would find no other.
//!
//! The chain itself knows of none of this. One worker, or one reader, has one such remote: it lies to that one alone.

use std::io::Read;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use super::world::STORE;
use crate::head::RemoteHead;
use crate::names::{ObjectName, head_key};
use crate::remote::{Created, ListedObject, ObjectTag, Remote, RemoteError, Swapped, read_exactly};
use crate::run::{LogRun, LogRunKind};
use crate::sim::SimRemote;

/// A rule that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// No rule.
    None,
    /// The fence of who takes over is none: it has the lowest epoch.
    NoFence,
    /// Who takes over does not look at the head once the fence is there.
    NoLookAfterFence,
    /// An append without an answer goes on at the next number.
    NewNumberAfterDoubt,
    /// Any head is replaced by the head of a pack, not the own one alone.
    TrimWithoutSwap,
    /// Chunks are deleted before their pack is there.
    TrimBeforePack,
    /// Fences are deleted with the chunks.
    FencesDeleted,
    /// Unsound entries are deleted with the chunks.
    JunkDeleted,
    /// A reader does not look at the head again.
    OneHead,
    /// A number that is taken counts as success.
    TakenIsMine,
    /// A chunk counts before the answer is there.
    DoubtIsMine,
}

impl Flaw {
    pub(super) const ALL: [Self; 10] = [
        Self::NoFence,
        Self::NoLookAfterFence,
        Self::NewNumberAfterDoubt,
        Self::TrimWithoutSwap,
        Self::TrimBeforePack,
        Self::FencesDeleted,
        Self::JunkDeleted,
        Self::OneHead,
        Self::TakenIsMine,
        Self::DoubtIsMine,
    ];
}

/// Acts of its worker, as far as a flaw needs them.
#[derive(Default)]
struct Seen {
    /// The head that it swapped in, and whether a fence of it is there.
    own: Option<(Vec<u8>, ObjectTag)>,
    is_fenced: bool,
    /// The head that a reader read first.
    read: Option<(Vec<u8>, ObjectTag)>,
    /// A key in doubt, which is told to be another one's.
    doubted: Option<String>,
    /// A pack that is held back, and how many names of the trash are left until then.
    held: Option<(String, Vec<u8>)>,
    trash_left: usize,
}

/// A remote through which its worker breaks a rule.
pub(super) struct FlawedRemote {
    real: SimRemote,
    flaw: Flaw,
    seen: Mutex<Seen>,
}

fn head_in(bytes: &[u8]) -> Option<RemoteHead> {
    RemoteHead::decode(STORE, bytes).ok()
}

fn run_in(bytes: &[u8]) -> Option<LogRun> {
    LogRun::decode(STORE, bytes).ok()
}

fn is_head(key: &str) -> bool {
    key == head_key(STORE)
}

impl FlawedRemote {
    pub(super) fn new(real: SimRemote, flaw: Flaw) -> Self {
        Self { real, flaw, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    fn became_head(&self, bytes: &[u8], tag: &ObjectTag) {
        self.seen().own = Some((bytes.to_vec(), tag.clone()));
    }

    /// Deletes entries of the kind that a flaw does not spare.
    fn delete_more(&self, before: &RemoteHead, head: &RemoteHead) -> Result<(), RemoteError> {
        for number in before.boundary..head.boundary {
            let key = ObjectName::Entry(number).key(STORE);
            let Some((object, _)) = self.real.get(&key, None)? else { continue };
            let is_deleted = match run_in(&object).map(|run| run.kind) {
                Some(LogRunKind::Fence) => self.flaw == Flaw::FencesDeleted,
                Some(_) => false,
                None => self.flaw == Flaw::JunkDeleted,
            };
            if is_deleted {
                self.real.delete(&key)?;
            }
        }
        Ok(())
    }

    /// Puts the pack that was held back there, once all chunks are gone.
    fn let_go(&self) -> Result<(), RemoteError> {
        let held = {
            let mut seen = self.seen();
            if seen.trash_left > 0 { None } else { seen.held.take() }
        };
        let Some((key, bytes)) = held else { return Ok(()) };
        self.real.put(&key, &mut &*bytes, bytes.len() as u64).map(drop)
    }
}

impl Remote for FlawedRemote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        let kind = run_in(bytes).map(|run| run.kind);
        let made = match run_in(bytes) {
            Some(run) if self.flaw == Flaw::NoFence && run.kind == LogRunKind::Fence => {
                self.real.create(key, &LogRun { epoch: 0, ..run }.encode())
            }
            _ => self.real.create(key, bytes),
        };
        let made = match made {
            Ok(Created::Taken) if self.flaw == Flaw::TakenIsMine => Ok(Created::Here(ObjectTag::of(bytes))),
            Err(RemoteError::Doubt { .. }) if self.flaw == Flaw::DoubtIsMine => {
                Ok(Created::Here(ObjectTag::of(bytes)))
            }
            Err(RemoteError::Doubt { .. })
                if self.flaw == Flaw::NewNumberAfterDoubt && kind == Some(LogRunKind::Chunk) =>
            {
                self.seen().doubted = Some(key.to_owned());
                Ok(Created::Taken)
            }
            made => made,
        };
        if let Ok(Created::Here(tag)) = &made {
            if is_head(key) {
                self.became_head(bytes, tag);
            }
            self.seen().is_fenced |= kind == Some(LogRunKind::Fence);
        }
        made
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        let before = self.seen().own.as_ref().and_then(|(own, _)| head_in(own));
        let found = match self.flaw {
            Flaw::TrimWithoutSwap if before.is_some() => self.real.get(key, None)?.map(|(_, tag)| tag),
            _ => None,
        };
        let swapped = self.real.swap(key, bytes, found.as_ref().unwrap_or(was))?;
        if let (Swapped::Here(tag), Some(head)) = (&swapped, head_in(bytes)) {
            self.became_head(bytes, tag);
            self.seen().trash_left = head.trash.len();
            if let Some(before) =
                before.filter(|_| matches!(self.flaw, Flaw::FencesDeleted | Flaw::JunkDeleted))
            {
                self.delete_more(&before, &head)?;
            }
        }
        Ok(swapped)
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        let bytes = read_exactly(bytes, length)?;
        if self.flaw == Flaw::TrimBeforePack && key.contains("/pack/") {
            let tag = ObjectTag::of(&bytes);
            self.seen().held = Some((key.to_owned(), bytes));
            return Ok(tag);
        }
        self.real.put(key, &mut &*bytes, length)
    }

    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        let told = {
            let mut seen = self.seen();
            match self.flaw {
                Flaw::NewNumberAfterDoubt if seen.doubted.as_deref() == Some(key) => {
                    seen.doubted = None;
                    Some((Vec::new(), ObjectTag::of(b"")))
                }
                Flaw::NoLookAfterFence if is_head(key) && std::mem::take(&mut seen.is_fenced) => {
                    seen.own.clone()
                }
                Flaw::OneHead if is_head(key) => seen.read.clone(),
                _ => None,
            }
        };
        if told.is_some() {
            return Ok(told);
        }
        let found = self.real.get(key, range)?;
        if is_head(key) {
            self.seen().read.clone_from(&found);
        }
        Ok(found)
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.real.list(under, after)
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.real.delete(key)?;
        {
            let mut seen = self.seen();
            seen.trash_left = seen.trash_left.saturating_sub(1);
        }
        self.let_go()
    }
}
