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

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::command::memory::{REINFORCEMENT, settle};
use crate::entry::{Entry, Fact, MemoryEntry, StreamInfo, fact};
use crate::error::Error;
use crate::event::{Body, Event, Lifespan, MemoryRecorded, Payload, Recorded, Stamp};
use crate::fold::memory::{
    LIFESPANS_INNER_FIRST, MemoryLayer, MemoryState, MemoryView, default_lifespan, value_signature,
};
use crate::ids::{BodyId, Micros, Origin, Seq, StreamId};
use crate::text::Signer;

use super::memory::{Memory, MemoryScope};
use super::write::{Signers, unsigned};
use super::{Batch, Store};

/// Ends the batch that is open if the next fact is another stream's.
fn go_on(open: &mut Batch, stream: &StreamInfo, routed: &mut Vec<Batch>) {
    if open.stream.id() != stream.id() {
        routed.push(std::mem::replace(open, Batch { stream: stream.clone(), entries: Vec::new() }));
    }
}

/// Memory as it is after the facts of a batch that were looked at so far: the second of two facts meets the first.
struct PendingMemory<'a> {
    /// The memory that is recorded already.
    recorded: &'a Memory,
    layers: Vec<PendingLayer<'a>>,
    /// Texts of the facts of the batch.
    texts: BTreeMap<Seq, String>,
    now: Micros,
}

struct PendingLayer<'a> {
    stream: StreamId,
    records: Lifespan,
    memory: Cow<'a, MemoryState>,
    signer: Signer,
}

impl<'a> PendingMemory<'a> {
    /// `homes`: the streams that facts go to, innermost first; they may be new.
    fn new(recorded: &'a Memory, homes: [Option<StreamId>; 3], now: Micros) -> Self {
        let layer = |(stream, records, memory, signer): (_, _, &'a MemoryState, &Signer)| PendingLayer {
            stream,
            records,
            memory: Cow::Borrowed(memory),
            signer: signer.clone(),
        };
        let mut layers: Vec<PendingLayer<'a>> = recorded.layers().map(layer).collect();
        for (stream, records) in homes.into_iter().zip(LIFESPANS_INNER_FIRST) {
            let is_new = |stream: &StreamId| layers.iter().all(|layer| layer.stream != *stream);
            if let Some(stream) = stream.filter(is_new) {
                let memory = Cow::default();
                layers.push(PendingLayer { stream, records, memory, signer: unsigned() });
            }
        }
        layers.sort_by_key(|layer| layer.records);
        Self { recorded, layers, texts: BTreeMap::new(), now }
    }

    fn read<T>(&self, read: impl FnOnce(&MemoryView<'_>) -> T) -> T {
        let layers = self.layers.iter().map(|layer| MemoryLayer {
            stream: layer.stream,
            records: layer.records,
            memory: &layer.memory,
            signer: layer.signer.clone(),
            until: Seq::MAX,
        });
        let texts = |body: BodyId| self.texts.get(&body.seq).cloned().or_else(|| self.recorded.text(body));
        read(&MemoryView::new(layers.collect(), Seq::MAX, self.now, &texts))
    }

    /// Folds an item, behind all that is recorded.
    fn tell(&mut self, home: StreamId, entry: &MemoryEntry) {
        // No store has half of all numbers.
        let seq = Seq((u64::MAX >> 1).saturating_add(self.texts.len() as u64));
        self.texts.insert(seq, entry.value.clone());
        let Some(layer) = self.layers.iter_mut().find(|layer| layer.stream == home) else { return };
        let record = MemoryRecorded {
            id: entry.id.clone(),
            kind: entry.kind,
            category: entry.category.as_str().into(),
            key: entry.key.as_ref().map(Into::into),
            subject: entry.subject.as_ref().map(Into::into),
            value: Body { chunks: 1, ..Body::default() },
            value_signature: value_signature(&layer.signer, &entry.value),
            confidence: entry.confidence,
            // A settled item has one.
            lifespan: entry.lifespan.unwrap_or_default(),
            replaces: entry.replaces.clone(),
            superseded_by: entry.superseded_by.clone(),
            ..MemoryRecorded::default()
        };
        let (origin, payload) = (Origin::ZERO, Payload::from(record));
        let event = Event { stream: home, origin, host_time: None, stamp: Stamp::default(), payload };
        layer.memory.to_mut().apply(&Recorded { seq, recorded_at: self.now, event });
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
        let project = project.as_deref().map(StreamInfo::project);
        let home = |lifespan: Option<Lifespan>| match lifespan {
            Some(Lifespan::Permanent) => Some(StreamInfo::user()),
            Some(Lifespan::Project) => project.clone(),
            Some(Lifespan::Session) | None => None,
        };
        // Facts of a host's records meet nothing: they are recorded as they are.
        let is_settled = |entry: &Entry| entry.origin.is_none() && matches!(entry.fact, Fact::Memory(_));
        let has_settled = batch.entries.iter().any(is_settled);
        let recorded = has_settled.then(|| self.layers_of(&scope, &Signers::new())).transpose()?;
        let homes = [Some(session), project.as_ref().map(StreamInfo::id), Some(StreamInfo::user().id())];
        let mut pending = recorded.as_ref().map(|recorded| PendingMemory::new(recorded, homes, self.now()));
        // The session begins first, and its facts stay in order: the receipt tells of them in this order.
        let mut open = Batch { stream: batch.stream.clone(), entries: Vec::new() };
        let mut links = Vec::new();
        for (place, entry) in batch.entries.iter().enumerate() {
            let Fact::Memory(memory) = &entry.fact else {
                go_on(&mut open, &batch.stream, routed);
                open.entries.push(entry.clone());
                continue;
            };
            let Some(pending) = pending.as_mut().filter(|_| is_settled(entry)) else {
                let stream = home(Some(memory.lifespan.unwrap_or(default_lifespan(memory.kind))));
                go_on(&mut open, &stream.unwrap_or_else(|| batch.stream.clone()), routed);
                open.entries.push(entry.clone());
                continue;
            };
            let settled = pending.read(|view| settle(view, memory));
            let item = settled.entry;
            let stream = home(item.lifespan).unwrap_or_else(|| batch.stream.clone());
            go_on(&mut open, &stream, routed);
            let fact = if settled.known.is_some() {
                let id = item.id.clone();
                let olds = item.replaces.into_iter().filter(|old| *old != id);
                links.extend(olds.map(|old| {
                    let link = fact::MemorySuperseded { old, new: id.clone(), reason: None };
                    (stream.clone(), Entry { fact: link.into(), ..entry.clone() })
                }));
                Fact::MemoryReinforced(fact::MemoryReinforced { id, amount: REINFORCEMENT, at: None })
            } else {
                let mut rest = batch.entries.iter().skip(place.saturating_add(1));
                if rest.any(|entry| matches!(entry.fact, Fact::Memory(_))) {
                    pending.tell(stream.id(), &item);
                }
                Fact::Memory(item)
            };
            open.entries.push(Entry { fact, ..entry.clone() });
        }
        // Behind all that was given: the receipt has the places of that first.
        for (stream, entry) in links {
            go_on(&mut open, &stream, routed);
            open.entries.push(entry);
        }
        routed.push(open);
        Ok(())
    }

    fn is_known(&self, stream: StreamId) -> Result<bool, Error> {
        Ok(self.inner.stream_place(stream)?.is_some())
    }
}
