//! The footing of a section of a snapshot, compared with the log as it is now.
//!
//! A section counts if the log has the link of its footing at its seq, and if nothing was erased since.

use super::Inner;
use super::snapshot_file::{Footing, Header, Part, put, snapshot_name};
use crate::error::Error;
use crate::ids::{Position, Seq, StreamId};
use crate::storage::{Access, StoredFile};

impl Inner {
    /// The snapshot of a stream, if there is one of this program. A snapshot that is not whole is removed.
    pub(super) fn snapshot_of(&self, stream: StreamId) -> Option<(Box<dyn StoredFile>, Header)> {
        let snapshots = &self.snapshots;
        if !snapshots.uses.reads {
            return None;
        }
        // A snapshot that cannot be read is made from the log instead, here and below.
        let file = snapshots.storage.open(&snapshot_name(stream), Access::Read).ok()?;
        // As above.
        let header = Header::read(&*file, snapshots.store, stream).ok()?;
        if header.is_none() {
            snapshots.forget(stream);
        }
        header.map(|header| (file, header))
    }

    /// Whether nothing was erased since a footing, so that a file of then holds no erased text. A file that may hold one is emptied. If it
    /// is unknown, the answer is no: the log is read.
    pub(super) fn is_of_now(&self, footing: Footing, stream: StreamId) -> bool {
        let is_outdated = self.is_outdated(footing);
        if matches!(is_outdated, Ok(true)) {
            self.snapshots.empty(stream);
        }
        matches!(is_outdated, Ok(false))
    }

    /// Whether something was erased behind a footing.
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

    pub(super) fn footing_of(&self, seq: Seq) -> Option<Footing> {
        // As above.
        let position = self.frame_of(seq).ok()??.position();
        self.footing_at(position).filter(|footing| footing.seq == seq)
    }

    /// The footing of a file that is saved now; `None` also if it is unknown whether something was erased since.
    pub(super) fn footing_to_save(&self, seq: Seq) -> Option<Footing> {
        self.footing_of(seq).filter(|footing| matches!(self.is_outdated(*footing), Ok(false)))
    }

    /// Puts sections of a stream's snapshot in place. `false`: they were not saved.
    pub(super) fn put_snapshot(&self, stream: StreamId, parts: &[Part<'_>]) -> bool {
        let snapshots = &self.snapshots;
        // If the newest erasure is unknown, nothing is saved.
        let Ok(not_before) = self.newest_erasure() else { return false };
        // A disk that is full, or another process that saves, costs the next process time alone.
        put(&*snapshots.storage, snapshots.store, stream, parts, not_before).unwrap_or(false)
    }
}
