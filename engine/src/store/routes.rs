//! Where memory facts of a session go: into the stream of their lifespan, by whichever call they came.
//!
//! ```text
//! batch of a session   message | memory, project | call | memory, permanent
//!                         |            |            |            |
//!                      session      project      session        user          one commit, in this order
//! ```
//!
//! So a project's sessions share memory that one of them was told, as they do after [`Store::remember`]. A value that
//! holds already is no new item but a reinforcement. Facts with an origin come from a host's records, and are recorded as
//! they are; so are all facts that a caller gives to a project's stream itself.

use crate::command::memory::{REINFORCEMENT, contradicted, said_before, spelled};
use crate::entry::{Entry, Fact, MemoryEntry, StreamInfo, fact};
use crate::error::Error;
use crate::event::Lifespan;
use crate::fold::memory::{MemoryView, default_lifespan};
use crate::ids::{Seq, StreamId};

use super::memory::MemoryScope;
use super::write::Signers;
use super::{Batch, Store};

fn lifespan(memory: &MemoryEntry) -> Lifespan {
    memory.lifespan.unwrap_or(default_lifespan(memory.kind))
}

/// Ends the batch that is open if the next fact is another stream's.
fn go_on(open: &mut Batch, stream: &StreamInfo, routed: &mut Vec<Batch>) {
    if open.stream.id() != stream.id() {
        routed.push(std::mem::replace(open, Batch { stream: stream.clone(), entries: Vec::new() }));
    }
}

impl Store {
    /// Batches whose memory facts stand in the streams of their lifespans.
    pub(super) fn routed(&self, batches: &[Batch]) -> Result<Vec<Batch>, Error> {
        let mut routed = Vec::with_capacity(batches.len());
        for batch in batches {
            if batch.is_moved() {
                self.route(batch, &mut routed)?;
            } else {
                routed.push(batch.clone());
            }
        }
        Ok(routed)
    }

    fn route(&self, batch: &Batch, routed: &mut Vec<Batch>) -> Result<(), Error> {
        let session = batch.stream.id();
        let is_known = self.is_known(session)?;
        let project = match &batch.stream.project {
            Some(project) => self.project_of(&MemoryScope::project(project))?,
            None if is_known => self.project_of(&MemoryScope::session(session))?,
            None => None,
        };
        let scope = MemoryScope { session: is_known.then_some(session), project: project.clone() };
        let home = |memory: &MemoryEntry| match (lifespan(memory), &project) {
            (Lifespan::Permanent, _) => Some(StreamInfo::user()),
            (Lifespan::Project, Some(project)) => Some(StreamInfo::project(project)),
            (Lifespan::Session, _) | (Lifespan::Project, None) => None,
        };
        // The session begins first, and its facts stay in order: the receipt tells of them in this order.
        let mut open = Batch { stream: batch.stream.clone(), entries: Vec::new() };
        for entry in &batch.entries {
            let Fact::Memory(memory) = &entry.fact else {
                go_on(&mut open, &batch.stream, routed);
                open.entries.push(entry.clone());
                continue;
            };
            let stream = home(memory).unwrap_or_else(|| batch.stream.clone());
            go_on(&mut open, &stream, routed);
            open.entries.push(self.or_reinforced(entry, memory, &scope, stream.id())?);
        }
        routed.push(open);
        Ok(())
    }

    /// The fact as it is spelled at every door, or a reinforcement if its value holds already. `home`: the stream that it goes to.
    fn or_reinforced(
        &self,
        entry: &Entry,
        memory: &MemoryEntry,
        scope: &MemoryScope,
        home: StreamId,
    ) -> Result<Entry, Error> {
        if entry.origin.is_some() {
            return Ok(entry.clone());
        }
        if scope == &MemoryScope::default() {
            let nothing = MemoryView::new(Vec::new(), Seq::MAX, self.now(), &|_| None);
            let memory = spelled(&nothing, memory);
            return Ok(Entry { fact: Fact::Memory(memory), ..entry.clone() });
        }
        let remembered = self.memory_of(scope, &Signers::new())?;
        let (known, memory) = remembered.read(self.now(), |view| {
            let mut memory = spelled(view, memory);
            let known = said_before(view, &memory);
            let lifespan = lifespan(&memory);
            let replaced = contradicted(view, home, &memory, lifespan);
            memory.replaces.extend(replaced);
            (known, memory)
        });
        Ok(match known {
            Some(id) => Entry {
                fact: Fact::MemoryReinforced(fact::MemoryReinforced { id, amount: REINFORCEMENT, at: None }),
                ..entry.clone()
            },
            None => Entry { fact: Fact::Memory(memory), ..entry.clone() },
        })
    }

    fn is_known(&self, stream: StreamId) -> Result<bool, Error> {
        Ok(self.inner.stream_place(stream)?.is_some())
    }
}
