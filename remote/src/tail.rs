//! Entries behind the boundary, judged one after the other: what counts, and what is passed over. Pure.

use acpdb_engine::codec::WrittenPlace;
use acpdb_engine::ids::StoreId;

use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::names::ObjectName;
use crate::run::{LogRun, LogRunKind, NoRun};

/// Most entries behind a boundary.
pub(crate) const ENTRY_COUNT_MAX: u64 = 1 << 20;

/// A chunk that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) number: u64,
    /// The place behind it.
    pub(crate) behind: WrittenPlace,
    /// The highest epoch up to it.
    pub(crate) epoch: u64,
}

/// How many entries are what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EntryKinds {
    pub(crate) chunks: u64,
    pub(crate) fences: u64,
    pub(crate) torn: u64,
}

impl EntryKinds {
    /// [`entry`], counted.
    pub(crate) fn read(
        &mut self,
        store: StoreId,
        number: u64,
        object: &[u8],
    ) -> Result<Option<LogRun>, ChainError> {
        let run = entry(store, number, object)?;
        let count = match run.as_ref().map(|run| run.kind) {
            Some(LogRunKind::Fence) => &mut self.fences,
            Some(_) => &mut self.chunks,
            None => &mut self.torn,
        };
        *count = count.saturating_add(1);
        Ok(run)
    }
}

/// The entries from the boundary on, as far as they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainTail {
    pub(crate) store: StoreId,
    /// The first number behind the boundary.
    pub(crate) first: u64,
    /// The next number.
    pub(crate) next: u64,
    /// The place behind all chunks that count.
    pub(crate) place: WrittenPlace,
    /// The highest epoch so far.
    pub(crate) epoch: u64,
    pub(crate) accepted: Vec<Accepted>,
    /// Entries by what they are, whether they count or not.
    pub(crate) kinds: EntryKinds,
    /// The first chunk that continues a place behind the one that was reached, with that place: one before it is damaged or gone.
    gap: Option<(u64, WrittenPlace)>,
}

impl ChainTail {
    /// The tail of a head, of which no entry was read.
    pub(crate) fn of(head: &RemoteHead) -> Self {
        let (store, next, place, epoch) = (head.store, head.boundary, head.place, head.floor);
        Self {
            store,
            first: next,
            next,
            place,
            epoch,
            accepted: Vec::new(),
            kinds: EntryKinds::default(),
            gap: None,
        }
    }

    /// The number of a chunk that shows that some before it are lost, if no later one brought them back.
    pub(crate) fn gap(&self) -> Option<u64> {
        self.gap.filter(|(_, before)| before.position > self.place.position).map(|(number, _)| number)
    }

    /// Leaves the next number, whatever is there.
    ///
    /// # Errors
    /// [`ChainError::TooLarge`] for more than a million entries, and for the last number: a remote that makes up entries would be read for ever.
    pub(crate) fn pass(&mut self) -> Result<(), ChainError> {
        // It is never below the first.
        let count = self.next.saturating_sub(self.first);
        let Some(next) = self.next.checked_add(1).filter(|_| count < ENTRY_COUNT_MAX) else {
            let what = "the list of entries behind the boundary".to_owned();
            return Err(ChainError::TooLarge { what, bytes: count, limit: ENTRY_COUNT_MAX });
        };
        self.next = next;
        Ok(())
    }

    /// Takes the entry that the next number has; the chunk if it is one that counts. A fence may count; what does not is passed over: unsound, of a lower epoch, or no
    /// continuation.
    ///
    /// # Errors
    /// [`ChainError::Newer`]; [`ChainError::TooLarge`] for more than a million entries.
    pub(crate) fn take(&mut self, object: &[u8]) -> Result<Option<LogRun>, ChainError> {
        let number = self.next;
        self.pass()?;
        let Some(run) = self.kinds.read(self.store, number, object)? else { return Ok(None) };
        if run.epoch < self.epoch {
            return Ok(None);
        }
        if run.kind == LogRunKind::Fence {
            self.epoch = run.epoch;
            return Ok(None);
        }
        if run.before != self.place {
            if run.before.position > self.place.position && self.gap.is_none() {
                self.gap = Some((number, run.before));
            }
            return Ok(None);
        }
        self.epoch = run.epoch;
        self.place = run.behind;
        self.accepted.push(Accepted { number, behind: run.behind, epoch: run.epoch });
        Ok(Some(run))
    }
}

/// The sound chunk or fence in an object of this number; `None`: it is none.
pub(crate) fn entry(store: StoreId, number: u64, object: &[u8]) -> Result<Option<LogRun>, ChainError> {
    match LogRun::decode(store, object) {
        Ok(run) if matches!(run.kind, LogRunKind::Chunk | LogRunKind::Fence) && run.first == number => {
            Ok(Some(run))
        }
        Ok(_) | Err(NoRun::Unsound(_)) => Ok(None),
        Err(NoRun::Newer) => Err(ChainError::Newer { key: ObjectName::Entry(number).key(store) }),
    }
}
