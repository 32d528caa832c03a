//! Placed commits become durable: at once, with others, or a little later.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use super::acknowledge::kept_elsewhere;
use super::behind::{AfterSync, Durability, SettleJob};
use super::{Store, StoreInner};
use crate::error::Error;
use crate::locks::steady;
use crate::log::PlacedCommit;

impl StoreInner {
    /// Hands a commit to the settler; `false`: it was not taken, and the caller has to settle it.
    pub(super) fn hand_over(self: &Arc<Self>, job: SettleJob) -> bool {
        let behind = || -> AfterSync {
            let inner = Arc::downgrade(self);
            Box::new(move || {
                if let Some(inner) = inner.upgrade() {
                    inner.after_sync();
                }
            })
        };
        self.settler.hand_over(&self.log, self.elsewhere.as_ref(), behind, job)
    }

    /// Waits until a placed commit, and all before it, are durable, and kept elsewhere if that is asked for.
    pub(super) fn settle(&self, placed: &PlacedCommit) -> Result<(), Error> {
        self.log.settle(placed)?;
        if let Some(frame) = &placed.frame {
            self.take_own_frame(frame);
        }
        self.after_sync();
        Ok(kept_elsewhere(self.elsewhere.as_deref(), placed)?)
    }

    /// Waits until everything that is durable here is kept elsewhere: for answers that record nothing and rest on what is recorded.
    pub(super) fn acknowledge_known(&self) -> Result<(), Error> {
        let Some(elsewhere) = &self.elsewhere else { return Ok(()) };
        Ok(elsewhere.acknowledge(self.refresh()?)?)
    }

    /// See [`Store::sync`].
    pub(super) fn sync(&self) -> Result<(), Error> {
        let last = self.unsettled().clone();
        last.map_or_else(|| self.acknowledge_known(), |placed| self.settle(&placed))
    }

    /// The last commit that was acknowledged before its sync.
    pub(super) fn unsettled(&self) -> MutexGuard<'_, Option<PlacedCommit>> {
        steady(&self.unsettled)
    }

    /// Work that may be late, for commits that have become durable.
    pub(super) fn after_sync(&self) {
        self.nudge_index();
        let segment = self.log.head().position.segment();
        let before = self.segment.swap(segment, Ordering::Relaxed);
        // A handle's first commit completes nothing.
        if before != segment && before != 0 {
            self.upkeep.begin(&self.log);
            self.let_go_of_segments();
        }
    }

    /// Forgets the places of commits that are durable: each holds the file that its segment was written to, which is to go once the
    /// segment is sealed.
    fn let_go_of_segments(&self) {
        let head = self.log.head().seq;
        for (_, writer) in steady(&self.writers).list() {
            // A writer in use forgets its place when it is used again.
            if let Ok(mut writer) = writer.try_lock()
                && writer.watermark <= head
            {
                writer.placed = None;
            }
        }
    }
}

impl Store {
    /// Ends a commit as this handle's durability asks.
    pub(super) fn complete(&self, placed: Option<PlacedCommit>) -> Result<(), Error> {
        let Some(placed) = placed else { return self.inner.acknowledge_known() };
        match self.inner.durability {
            // Commits that are kept elsewhere were durable here before.
            Durability::Os if self.inner.elsewhere.is_none() => {
                // A commit that another thread was told of meanwhile may lie behind this one.
                let mut unsettled = self.inner.unsettled();
                *unsettled = Some(unsettled.as_ref().map_or(&placed, |known| known.later(&placed)).bare());
                drop(unsettled);
                let job = SettleJob { placed: placed.clone(), progress: None };
                if self.inner.hand_over(job) { Ok(()) } else { self.inner.settle(&placed) }
            }
            Durability::Os | Durability::Sync => self.inner.settle(&placed),
        }
    }
}
