//! Making durable what was placed, by this thread or by the one behind.

use std::sync::{Arc, MutexGuard};

use crate::error::Error;
use crate::locks::steady;
use crate::log::Placed;

use super::Inner;
use super::settler::{AfterSync, Job};

impl Inner {
    /// Hands a commit to the thread behind; `false`: it cannot be, and the caller has to see to it.
    pub(super) fn hand_over(self: &Arc<Self>, job: Job) -> bool {
        let behind = || -> AfterSync {
            let inner = Arc::downgrade(self);
            Box::new(move || {
                if let Some(inner) = inner.upgrade() {
                    inner.after_sync();
                }
            })
        };
        self.settler.hand_over(&self.log, behind, job)
    }

    /// Waits until what was placed, and all before it, is durable.
    pub(super) fn settle(&self, placed: &Placed) -> Result<(), Error> {
        self.log.settle(placed)?;
        if let Some(frame) = &placed.frame {
            self.take_own_frame(frame);
        }
        self.after_sync();
        Ok(())
    }

    /// See [`Store::sync`].
    pub(super) fn sync(&self) -> Result<(), Error> {
        let last = self.unsettled().clone();
        last.map_or(Ok(()), |placed| self.settle(&placed))
    }

    /// The last commit that was acknowledged before its sync.
    pub(super) fn unsettled(&self) -> MutexGuard<'_, Option<Placed>> {
        steady(&self.unsettled)
    }

    /// Work that may be late, for what has become durable.
    pub(super) fn after_sync(&self) {
        self.nudge_index();
        self.upkeep.note(&self.log);
    }
}
