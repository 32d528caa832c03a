//! The facts of a stream that are recorded already, and its open calls: without them no more of it can be recorded.
//!
//! An ingest state is much smaller than the fold's state and needs no policy, so an importer can append to a stream without
//! folding it. It is fed with the stream's events in order and holds nothing that they do not say.
//!
//! ```text
//! a fact's origin -> seen here, by this handle? -> else in the saved ingest state, if it was restored from one
//!                    hash map, changed freely      sorted list, never changed
//! ```
//!
//! An ingest state that was restored and fed the rest of the events equals one that was fed all events.

mod saved;
#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rkyv::{Archive, Deserialize, Serialize};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::{Parent, Payload, Recorded, Scope};
use crate::ids::{BodyId, ItemId, Origin, Seq};

pub(crate) use saved::SavedIngestState;

/// A fact that is in the stream already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Archive, Serialize, Deserialize)]
pub struct SeenFact {
    /// The event that recorded it first; for a call's start or end, the newest event that recorded it.
    pub seq: Seq,
    /// Digest of its content, as last revised.
    pub revision: u64,
    /// The event whose item a revision would revise: the start of the call of a finish, else the event itself.
    pub item: Seq,
    /// How many parts it has.
    pub parts: u32,
    /// Whether an event carries a wire form of it.
    pub has_wire: bool,
}

/// A call that has not ended yet.
#[derive(Clone, PartialEq, Eq, Debug, Archive, Serialize, Deserialize)]
pub struct OpenCall {
    /// The event that started it.
    pub seq: Seq,
    /// The host's id of the call.
    pub call: String,
    /// Name of the tool.
    pub tool: String,
}

/// The facts, open calls and session fields of one stream.
#[derive(Clone, Debug, Default)]
pub struct IngestState {
    /// Newest seq of the stream; [`Seq::ZERO`] if it has none.
    pub head: Seq,
    /// Whether the stream was opened.
    pub opened: bool,
    /// Session, project or user.
    pub scope: Scope,
    /// The host program.
    pub host: String,
    /// The host's id of the stream.
    pub name: String,
    /// Title, as last changed.
    pub title: Option<String>,
    /// Working folder, as last changed.
    pub cwd: Option<String>,
    /// Project, as last changed.
    pub project: Option<String>,
    /// Host version, as last changed.
    pub host_version: Option<String>,
    /// For a subagent: the session and the call that started it, as far as known.
    pub parent: Option<Parent>,
    /// The body that holds the key of the stream's signatures.
    pub key: Option<BodyId>,
    /// How many events went into it.
    pub event_count: u64,
    /// Facts that are new or changed since it was restored.
    seen: FxHashMap<Origin, SeenFact>,
    /// All other facts, by rising origin.
    base: Arc<Vec<(Origin, SeenFact)>>,
    /// Parts that a revision added to a message: the event that holds them, and how many.
    added: FxHashMap<Origin, Vec<(Seq, u32)>>,
    open: FxHashMap<String, Vec<OpenCall>>,
    memory_ids: FxHashSet<String>,
}

impl IngestState {
    /// Takes note of the next event of the stream. Events of other streams must not be given.
    pub fn observe(&mut self, recorded: &Recorded) {
        let event = &recorded.event;
        self.head = recorded.seq;
        self.event_count = self.event_count.saturating_add(1);
        let mut item = recorded.seq;
        let mut parts = 1;
        match &event.payload {
            Payload::SessionOpened(opened) => {
                self.opened = true;
                self.scope = opened.scope;
                self.host.clone_from(&opened.host);
                self.name.clone_from(&opened.name);
                self.title = opened.title.as_ref().map(ToString::to_string);
                self.cwd.clone_from(&opened.cwd);
                self.project.clone_from(&opened.project);
                self.host_version.clone_from(&opened.host_version);
                self.parent.clone_from(&opened.parent);
                self.key = Some(opened.key.id(recorded.seq));
            }
            Payload::SessionChanged(changed) => {
                if let Some(title) = &changed.title {
                    self.title = Some(title.to_string());
                }
                for (now, new) in [
                    (&mut self.cwd, &changed.cwd),
                    (&mut self.project, &changed.project),
                    (&mut self.host_version, &changed.host_version),
                ] {
                    if new.is_some() {
                        now.clone_from(new);
                    }
                }
                if let (Some(parent), Some(call)) = (&mut self.parent, &changed.call) {
                    parent.call = Some(call.clone());
                }
            }
            Payload::MessageRecorded(message) => parts = message.parts.len(),
            Payload::MessageContinued(message) => parts = message.parts.len(),
            Payload::ToolCallStarted(started) => {
                let open =
                    OpenCall { seq: recorded.seq, call: started.call.clone(), tool: started.tool.clone() };
                self.open.entry(started.call.clone()).or_default().push(open);
            }
            Payload::ToolCallFinished(finished) => {
                if let Some(open) = self.open.get_mut(&finished.call) {
                    if let Some(started) = open.pop() {
                        item = started.seq;
                    }
                    if open.is_empty() {
                        self.open.remove(&finished.call);
                    }
                }
            }
            Payload::MemoryRecorded(memory) => {
                self.memory_ids.insert(memory.id.clone());
            }
            _ => {}
        }
        if event.origin.is_zero() {
            return;
        }
        let fresh = SeenFact {
            seq: recorded.seq,
            revision: event.stamp.revision,
            item,
            parts: u32::try_from(parts).unwrap_or(u32::MAX),
            has_wire: event.stamp.wire.is_some(),
        };
        let seen = match self.seen.entry(event.origin) {
            Entry::Occupied(seen) => seen.into_mut(),
            Entry::Vacant(vacant) => {
                let Some(saved) = saved_in(&self.base, event.origin) else {
                    vacant.insert(fresh);
                    return;
                };
                vacant.insert(saved)
            }
        };
        match &event.payload {
            // A later call with the same origin: the origin means this call from now on.
            Payload::ToolCallStarted(_) | Payload::ToolCallFinished(_) => {
                (seen.seq, seen.item) = (fresh.seq, fresh.item);
            }
            Payload::MessageRecorded(_) | Payload::MessageContinued(_) => {
                self.added.entry(event.origin).or_default().push((fresh.seq, fresh.parts));
            }
            _ => {}
        }
        seen.revision = event.stamp.revision;
        seen.has_wire |= fresh.has_wire;
    }

    /// The fact with this origin, if the stream has it.
    pub fn seen(&self, origin: Origin) -> Option<SeenFact> {
        self.seen.get(&origin).copied().or_else(|| saved_in(&self.base, origin))
    }

    /// The events whose items the fact with this origin made.
    pub fn events_of(&self, origin: Origin) -> Vec<Seq> {
        let added = self.added.get(&origin).into_iter().flatten().map(|(seq, _)| *seq);
        self.seen(origin).into_iter().map(|seen| seen.item).chain(added).collect()
    }

    /// The items of a message's parts, in order, with the parts that revisions added.
    pub fn part_items(&self, origin: Origin) -> Vec<ItemId> {
        let Some(seen) = self.seen(origin) else { return Vec::new() };
        let added = self.added.get(&origin).into_iter().flatten().copied();
        let events = std::iter::once((seen.item, seen.parts)).chain(added);
        events.flat_map(|(seq, parts)| (1..=parts).map(move |part| ItemId { seq, part })).collect()
    }

    /// The open call that a finish of `call` would end: the newest.
    pub fn open_call(&self, call: &str) -> Option<&OpenCall> {
        self.open.get(call).and_then(|open| open.last())
    }

    /// All open calls, oldest first.
    pub fn open_calls(&self) -> Vec<&OpenCall> {
        let mut all: Vec<_> = self.open.values().flatten().collect();
        all.sort_by_key(|open| open.seq);
        all
    }

    /// Whether the stream has a memory item with this id.
    pub fn has_memory(&self, id: &str) -> bool {
        self.memory_ids.contains(id)
    }

    /// The first number that [`IngestState::free_memory_id`] tries.
    pub fn first_memory_number(&self) -> usize {
        self.memory_ids.len().saturating_add(1)
    }

    /// An id that no memory item of the stream has: the letter and the next free number from `number` on. `number` becomes the
    /// number after that. Numbers that were passed over stay taken.
    pub fn free_memory_id(&self, letter: char, number: &mut usize, taken: &dyn Fn(&str) -> bool) -> String {
        loop {
            let id = format!("{letter}{number}");
            // No stream has so many.
            *number = number.saturating_add(1);
            if !self.has_memory(&id) && !taken(&id) {
                return id;
            }
        }
    }
}

fn saved_in(base: &[(Origin, SeenFact)], origin: Origin) -> Option<SeenFact> {
    let place = base.binary_search_by_key(&origin, |(known, _)| *known).ok()?;
    base.get(place).map(|(_, seen)| *seen)
}
