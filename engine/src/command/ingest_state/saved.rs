//! An ingest state as one value that can be archived, and back.
//!
//! Pure: the caller knows where the archive lies, whether it is whole, and whether it belongs to the log at hand. Equal ingest states give equal
//! values, however they were made. Only this program reads them: they have a layout, not a format.

use std::sync::Arc;

use rkyv::{Archive, Deserialize, Serialize};

use crate::event::{Parent, Scope};
use crate::ids::{BodyId, Origin, Seq};

use super::{IngestState, OpenCall, SeenFact};

/// More parts than any event can have: each part takes some of its bytes. An ingest state with more is not from here.
const PART_COUNT_MAX: u32 = 1 << 16;
/// The same, for the parts that are added to one message.
const ADDED_COUNT_MAX: u32 = PART_COUNT_MAX << 4;

/// An ingest state. Lists are sorted.
#[derive(Archive, Serialize, Deserialize, PartialEq, Debug)]
pub(crate) struct SavedIngestState {
    head: Seq,
    opened: bool,
    scope: Scope,
    host: String,
    name: String,
    title: Option<String>,
    cwd: Option<String>,
    project: Option<String>,
    host_version: Option<String>,
    parent: Option<Parent>,
    key: Option<BodyId>,
    event_count: u64,
    added: Vec<(Origin, Vec<(Seq, u32)>)>,
    open: Vec<OpenCall>,
    memory_ids: Vec<String>,
    seen: Vec<(Origin, SeenFact)>,
}

impl IngestState {
    /// The ingest state as a value. Cost: all facts are copied.
    pub(crate) fn save(&self) -> SavedIngestState {
        let mut added: Vec<_> = self.added.iter().map(|(origin, parts)| (*origin, parts.clone())).collect();
        added.sort_unstable_by_key(|(origin, _)| *origin);
        let mut memory_ids: Vec<_> = self.memory_ids.iter().cloned().collect();
        memory_ids.sort_unstable();
        let unchanged = self.base.iter().filter(|(origin, _)| !self.seen.contains_key(origin)).copied();
        let mut seen: Vec<_> =
            unchanged.chain(self.seen.iter().map(|(origin, seen)| (*origin, *seen))).collect();
        seen.sort_unstable_by_key(|(origin, _)| *origin);
        SavedIngestState {
            head: self.head,
            opened: self.opened,
            scope: self.scope,
            host: self.host.clone(),
            name: self.name.clone(),
            title: self.title.clone(),
            cwd: self.cwd.clone(),
            project: self.project.clone(),
            host_version: self.host_version.clone(),
            parent: self.parent.clone(),
            key: self.key,
            event_count: self.event_count,
            added,
            open: self.open_calls().into_iter().cloned().collect(),
            memory_ids,
            seen,
        }
    }

    /// The ingest state that was saved. `None` if it is none.
    pub(crate) fn restore(saved: SavedIngestState) -> Option<Self> {
        let is_possible = saved.added.iter().all(|(_, parts)| {
            let count = parts.iter().fold(0_u32, |count, (_, more)| count.saturating_add(*more));
            count <= ADDED_COUNT_MAX
        });
        let is_rising = saved.seen.is_sorted_by(|(one, _), (other, _)| one < other);
        if !is_possible || !is_rising || saved.seen.iter().any(|(_, seen)| seen.parts > PART_COUNT_MAX) {
            return None;
        }
        let mut ingest_state = Self {
            head: saved.head,
            opened: saved.opened,
            scope: saved.scope,
            host: saved.host,
            name: saved.name,
            title: saved.title,
            cwd: saved.cwd,
            project: saved.project,
            host_version: saved.host_version,
            parent: saved.parent,
            key: saved.key,
            event_count: saved.event_count,
            base: Arc::new(saved.seen),
            added: saved.added.into_iter().collect(),
            memory_ids: saved.memory_ids.into_iter().collect(),
            ..Self::default()
        };
        for call in saved.open {
            ingest_state.open.entry(call.call.clone()).or_default().push(call);
        }
        Some(ingest_state)
    }
}
