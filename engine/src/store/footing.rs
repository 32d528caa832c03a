//! Saved values, compared with the log as it is now.
//!
//! A value counts if the log has the link of its footing at its position and, if it may hold texts, if nothing was erased since.

use super::StoreInner;
use super::saved::{Footing, SavedBytes, SavedName, put, read};
use crate::error::Error;
use crate::ids::{Position, Seq};

impl StoreInner {
    /// The value in the file of a name, if there is one that the log bears out, and its footing. Any other file is removed.
    pub(super) fn saved<T>(
        &self,
        name: &SavedName,
        read_value: impl FnOnce(&SavedBytes) -> Option<T>,
    ) -> Option<(Footing, T)> {
        let snapshots = &self.snapshots;
        if !snapshots.uses.reads {
            return None;
        }
        // A file that cannot be read is made of the log instead.
        let found = read(&*snapshots.storage, snapshots.store, name).ok()?;
        let Some(saved) = found.filter(|saved| self.bears_out(saved.footing)) else {
            snapshots.forget(name);
            return None;
        };
        if name.may_hold_texts() {
            match self.is_outdated(saved.footing) {
                Ok(false) => {}
                Ok(true) => {
                    snapshots.empty(name);
                    return None;
                }
                // If it is unknown whether something was erased since, the log is read.
                Err(_) => return None,
            }
        }
        let value = read_value(&saved).map(|value| (saved.footing, value));
        if value.is_none() {
            snapshots.forget(name);
        }
        value
    }

    /// Whether the log has this frame at its position.
    pub(super) fn bears_out(&self, footing: Footing) -> bool {
        self.footing_at(footing.position) == Some(footing)
    }

    /// Whether something was erased behind a footing, so that a file of then may hold an erased text.
    fn is_outdated(&self, footing: Footing) -> Result<bool, Error> {
        Ok(footing.seq < self.newest_erasure()?)
    }

    /// The frame at a position as a footing, if it is durable.
    pub(super) fn footing_at(&self, position: Position) -> Option<Footing> {
        // Without a footing nothing is saved or restored, here and below.
        let head = self.refresh().ok()?;
        // As above.
        let header = self.log.header_at(position).ok()?;
        let footing = Footing { seq: header.last_seq(), position, link: header.link() };
        (footing.seq <= head).then_some(footing)
    }

    /// The footing of a file that is saved now, at the end of a commit; `None` also if it is unknown whether something was erased since.
    pub(super) fn footing_to_save(&self, seq: Seq) -> Option<Footing> {
        // As above.
        let position = self.frame_of(seq).ok()??.position();
        let footing = self.footing_at(position).filter(|footing| footing.seq == seq)?;
        matches!(self.is_outdated(footing), Ok(false)).then_some(footing)
    }

    /// Saves an archive. `false`: it was not saved.
    pub(super) fn put_saved(&self, name: &SavedName, footing: Footing, archive: &[u8]) -> bool {
        let snapshots = &self.snapshots;
        // A disk that is full, or another process that saves, costs the next process time alone.
        put(&*snapshots.storage, snapshots.store, name, footing, archive).unwrap_or(false)
    }
}
