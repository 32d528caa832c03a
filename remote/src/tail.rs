//! Entries behind the boundary, judged one after the other: what counts, and what is passed over. Pure.

use acpdb_engine::codec::Written;
use acpdb_engine::ids::StoreId;

use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::names::ObjectName;
use crate::run::{NoRun, Run, RunKind};

/// A chunk that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) number: u64,
    /// The place behind it.
    pub(crate) behind: Written,
    /// The highest epoch up to it.
    pub(crate) epoch: u64,
}

/// The entries from the boundary on, as far as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) store: StoreId,
    /// The next number.
    pub(crate) next: u64,
    /// The place behind all chunks that count.
    pub(crate) place: Written,
    /// The highest epoch so far.
    pub(crate) epoch: u64,
    pub(crate) accepted: Vec<Accepted>,
}

/// What an entry is.
#[derive(Debug)]
pub(crate) enum Entry {
    /// It counts, and the place is behind it now.
    Chunk(Run),
    /// A fence that counts.
    Fence,
    /// Passed over: unsound, of a lower epoch, or no continuation.
    Junk,
}

impl Tail {
    /// The tail of a head, of which no entry was read.
    pub(crate) fn of(head: &RemoteHead) -> Self {
        let (store, next, place, epoch) = (head.store, head.boundary, head.place, head.floor);
        Self { store, next, place, epoch, accepted: Vec::new() }
    }

    /// Takes the entry that the next number has.
    ///
    /// # Errors
    /// [`ChainError::Newer`].
    pub(crate) fn take(&mut self, object: &[u8]) -> Result<Entry, ChainError> {
        let number = self.next;
        self.next = number.saturating_add(1);
        let Some(run) = entry(self.store, number, object)? else { return Ok(Entry::Junk) };
        if run.epoch < self.epoch {
            return Ok(Entry::Junk);
        }
        if run.kind == RunKind::Fence {
            self.epoch = run.epoch;
            return Ok(Entry::Fence);
        }
        if run.before != self.place {
            return Ok(Entry::Junk);
        }
        self.epoch = run.epoch;
        self.place = run.behind;
        self.accepted.push(Accepted { number, behind: run.behind, epoch: run.epoch });
        Ok(Entry::Chunk(run))
    }
}

/// The sound chunk or fence in an object of this number; `None`: it is none.
pub(crate) fn entry(store: StoreId, number: u64, object: &[u8]) -> Result<Option<Run>, ChainError> {
    match Run::decode(store, object) {
        Ok(run) if matches!(run.kind, RunKind::Chunk | RunKind::Fence) && run.first == number => {
            Ok(Some(run))
        }
        Ok(_) | Err(NoRun::Unsound(_)) => Ok(None),
        Err(NoRun::Newer) => Err(ChainError::Newer { key: ObjectName::Entry(number).key(store) }),
    }
}
