//! An ingest state as bytes and back.
//!
//! ```text
//! IngestState --save--> root: rkyv archive of everything but rows, with their fence     rows: see `base`
//!        <-restore-- root, and a way to read rows when one is asked for
//! ```
//!
//! Pure: the caller knows where the bytes lie, whether the root is whole, and whether it belongs to the log at hand. Equal
//! ingest states give equal bytes, however they were made. Only this program reads the bytes: they have a layout, not a format.

use std::sync::Arc;

use rkyv::rancor::Failure;
use rkyv::util::AlignedVec;
use rkyv::{Archive, Deserialize, Serialize};

use crate::event::Scope;
use crate::ids::{BodyId, Origin, Seq};

use super::base::{Base, PART_COUNT_MAX, Post, ROW_BYTES, ReadRows, fence_of, row_of};
use super::{IngestState, OpenCall};

/// Version of the layout. It rises by one when the layout changes, or when the same events give another ingest state.
pub(crate) const LAYOUT_VERSION: u32 = 2;
/// Most rows that are saved: a gigabyte and a half.
const ROW_COUNT_MAX: usize = 1 << 25;
/// Most parts that are added to one message: an ingest state with more is not restored.
const ADDED_COUNT_MAX: u32 = PART_COUNT_MAX << 4;

/// An ingest state as bytes.
pub(crate) struct SavedIngestState {
    /// The bytes that are read to restore it.
    pub(crate) root: AlignedVec<16>,
    /// The rows, read piece by piece afterwards.
    pub(crate) rows: Vec<u8>,
}

/// All but the rows. Lists are sorted.
#[derive(Archive, Serialize, Deserialize)]
struct Root {
    head: Seq,
    opened: bool,
    scope: Scope,
    host: String,
    name: String,
    title: Option<String>,
    cwd: Option<String>,
    project: Option<String>,
    host_version: Option<String>,
    key: Option<BodyId>,
    event_count: u64,
    added: Vec<(Origin, Vec<(Seq, u32)>)>,
    open: Vec<OpenCall>,
    memory_ids: Vec<String>,
    row_count: u64,
    fence: Vec<Post>,
}

impl IngestState {
    /// The ingest state as bytes; `None` if it is too large or not sound. Cost: all rows are read, hashed and copied.
    pub(crate) fn save(&self) -> Option<SavedIngestState> {
        let rows = self.rows()?;
        let mut added: Vec<_> = self.added.iter().map(|(origin, parts)| (*origin, parts.clone())).collect();
        added.sort_unstable_by_key(|(origin, _)| *origin);
        let mut memory_ids: Vec<_> = self.memory_ids.iter().cloned().collect();
        memory_ids.sort_unstable();
        let root = Root {
            head: self.head,
            opened: self.opened,
            scope: self.scope,
            host: self.host.clone(),
            name: self.name.clone(),
            title: self.title.clone(),
            cwd: self.cwd.clone(),
            project: self.project.clone(),
            host_version: self.host_version.clone(),
            key: self.key,
            event_count: self.event_count,
            added,
            open: self.open_calls().into_iter().cloned().collect(),
            memory_ids,
            row_count: (rows.len() / ROW_BYTES) as u64,
            fence: fence_of(&rows),
        };
        // An ingest state that cannot be laid out is not saved.
        let root = rkyv::api::high::to_bytes_in::<_, Failure>(&root, AlignedVec::new()).ok()?;
        Some(SavedIngestState { root, rows })
    }

    /// All rows, one after the other, rising.
    fn rows(&self) -> Option<Vec<u8>> {
        let mut fresh: Vec<_> = self.seen.iter().collect();
        fresh.sort_unstable_by_key(|(origin, _)| **origin);
        let saved_count = self.base.as_ref().map_or(0, |base| base.row_count());
        let count_max = fresh.len().checked_add(saved_count).filter(|count| *count <= ROW_COUNT_MAX)?;
        let mut rows = Vec::with_capacity(count_max.checked_mul(ROW_BYTES)?);
        let mut fresh = fresh.into_iter().peekable();
        if let Some(base) = &self.base {
            base.for_each(|origin, row| {
                while let Some((fresh, seen)) = fresh.next_if(|(fresh, _)| **fresh < origin) {
                    rows.extend_from_slice(&row_of(*fresh, seen));
                }
                // A row that changed since takes the place of the saved row.
                if fresh.peek().is_none_or(|(fresh, _)| **fresh != origin) {
                    rows.extend_from_slice(row);
                }
            })?;
        }
        for (origin, seen) in fresh {
            rows.extend_from_slice(&row_of(*origin, seen));
        }
        Some(rows)
    }

    /// The ingest state with this root. `read` reads its rows when they are asked for. `None` if the bytes are no ingest state.
    pub(crate) fn restore(root: &AlignedVec<16>, read: ReadRows) -> Option<Self> {
        // As the text above says.
        let root: Root = rkyv::from_bytes::<Root, Failure>(root).ok()?;
        let mut added = root.added.iter();
        let is_possible = added.all(|(_, parts)| {
            let count = parts.iter().fold(0_u32, |count, (_, more)| count.saturating_add(*more));
            count <= ADDED_COUNT_MAX
        });
        if !is_possible {
            return None;
        }
        let base = Base::new(&root.fence, root.row_count, read)?;
        let mut ingest_state = Self {
            head: root.head,
            opened: root.opened,
            scope: root.scope,
            host: root.host,
            name: root.name,
            title: root.title,
            cwd: root.cwd,
            project: root.project,
            host_version: root.host_version,
            key: root.key,
            event_count: root.event_count,
            base: Some(Arc::new(base)),
            added: root.added.into_iter().collect(),
            memory_ids: root.memory_ids.into_iter().collect(),
            ..Self::default()
        };
        for call in root.open {
            ingest_state.open.entry(call.call.clone()).or_default().push(call);
        }
        Some(ingest_state)
    }

    /// Number of bytes of rows that belong to this root, read or not.
    pub(crate) fn row_bytes(&self) -> u64 {
        (self.base.as_ref().map_or(0, |base| base.row_count()) as u64).saturating_mul(ROW_BYTES as u64)
    }
}
