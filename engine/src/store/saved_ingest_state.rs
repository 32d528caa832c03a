//! An ingest state as a section of a stream's snapshot, so that the first commit of a process to a long session need not read the
//! session.
//!
//! ```text
//! section   root: what is no row, and the fence of the rows        rows: pages, read when one is asked for
//!
//! first commit:  digest of the root ok? the log has this link at this seq?
//!                     --yes--> the rest of the events         --no--> remove, all events
//! ```
//!
//! The digest covers the root, and the root holds a digest of each page of rows. So a look-up checks the page it reads, and opening costs
//! the same for any session. A page that is damaged, or gone because another process saved anew, is found out when it is read: the ingest
//! state then says that it is not sound, and everything that was made with it since the last commit is thrown away and made anew, from a
//! newer file or from the log.

use std::sync::Arc;

use rkyv::util::AlignedVec;

use super::Inner;
use super::kept::StreamWriter;
use super::snapshot_file::{Entry, Footing, HEADER_BYTES, Header, Part, Section, snapshot_name};
use crate::command::ingest_state::{IngestState, ReadRows, SavedIngestState};
use crate::ids::StreamId;
use crate::storage::{Access, Storage, StoredFile, read_up_to};

/// Longest root that is written or read.
const ROOT_BYTES_MAX: u64 = 1 << 28;

fn digest(root: &[u8]) -> [u8; 32] {
    blake3::derive_key("acpdb 2026 ingest state v1", root)
}

/// An ingest state's bytes as a section; `None` if they are too many.
pub(super) fn part(footing: Footing, saved: &SavedIngestState) -> Option<Part<'_>> {
    let (root, rows) = (saved.root.len() as u64, saved.rows.len() as u64);
    let entry = Entry {
        footing,
        numbers: [root, rows],
        bytes: root.checked_add(rows).filter(|_| root <= ROOT_BYTES_MAX)?,
        digest: digest(&saved.root),
    };
    Some(Part { section: Section::IngestState, entry, bytes: [&saved.root, &saved.rows] })
}

/// The saved ingest state in a file, if it is whole but for its rows; whether the log bears it out is for the caller to ask.
pub(super) fn read_saved(
    storage: &Arc<dyn Storage>,
    file: &dyn StoredFile,
    header: &Header,
    stream: StreamId,
) -> Option<(Footing, IngestState)> {
    let entry = header.entry(Section::IngestState)?;
    let [root_bytes, row_bytes] = entry.numbers;
    if root_bytes > ROOT_BYTES_MAX || root_bytes.checked_add(row_bytes)? != entry.bytes {
        return None;
    }
    let mut root: AlignedVec<16> = AlignedVec::new();
    root.resize(usize::try_from(root_bytes).ok()?, 0);
    // An ingest state that cannot be read is made of the log instead.
    let count = read_up_to(file, &mut root, header.offset(Section::IngestState)).ok()?;
    if count < root.len() || digest(&root) != entry.digest {
        return None;
    }
    // The ingest state is the first section.
    let first = (HEADER_BYTES as u64).checked_add(root_bytes)?;
    let storage = Arc::clone(storage);
    // Opened for each page: a process may know thousands of streams, and keeps no file open for one.
    let read: ReadRows = Box::new(move |offset, length| {
        // A page that cannot be read discards the drafts, and the state is made of the log, here and below.
        let file = storage.open(&snapshot_name(stream), Access::Read).ok()?;
        let mut page = vec![0; length];
        // As above.
        let count = read_up_to(&*file, &mut page, first.checked_add(offset)?).ok()?;
        (count == length).then_some(page)
    });
    let ingest_state = IngestState::restore(&root, read)?;
    (ingest_state.row_bytes() == row_bytes).then_some((entry.footing, ingest_state))
}

impl Inner {
    /// Takes up the saved ingest state of a stream of which this handle knows nothing yet, if the log bears it out.
    pub(super) fn take_saved_ingest_state(&self, stream: StreamId, writer: &mut StreamWriter) {
        let snapshots = &self.snapshots;
        let Some((file, header)) = self.snapshot_of(stream) else { return };
        let Some(entry) = header.entry(Section::IngestState) else { return };
        // An ingest state that failed this handle fails it again.
        let is_new = writer.restored != Some(entry.digest);
        let sound = read_saved(&snapshots.storage, &*file, &header, stream)
            .filter(|(footing, _)| is_new && self.footing_at(footing.position) == Some(*footing));
        let Some((footing, ingest_state)) = sound else {
            snapshots.forget(stream);
            return;
        };
        if !self.is_of_now(footing, stream) {
            return;
        }
        writer.saved_count = ingest_state.event_count;
        writer.restored = Some(entry.digest);
        writer.watermark = footing.seq;
        writer.ingest_state = ingest_state;
    }
}

#[cfg(test)]
mod tests;
