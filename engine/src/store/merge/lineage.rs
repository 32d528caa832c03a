//! The histories of a store's streams by ids that every store shares.
//!
//! ```text
//! spine of the log --one pass, no bodies--> a line an event: id, seq, whether it stands beside the history
//! ```
//!
//! An id is the plain form of the event's origin. The second and later tellings of a fact are numbered, and told apart by their texts: two
//! stores may have been told different ones. An event without an origin of its own that follows from a telling is known by the event before
//! it; acts, which have no origin either, are known by the secret. A branch that an earlier merge made goes on from the session that it was
//! forked from, and its history includes that session's.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::codec::{EventRef, Frame};
use crate::error::Error;
use crate::event::{Payload, Recorded, Scope, stream_id};
use crate::ids::{FactId, Micros, Origin, Seq, StreamId};
use crate::locks::steady;
use crate::log::{Log, LogError};
use crate::secret::first_16_of;
use crate::travel::{FactRef, base_name, is_beside};

use super::super::Inner;
use super::super::fetch::bare;

/// One event of a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) id: FactId,
    pub(super) seq: Seq,
    pub(super) beside: bool,
}

/// The history of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Lineage {
    pub(super) scope: Scope,
    pub(super) host: String,
    pub(super) name: String,
    /// Its own events, in order.
    pub(super) lines: Vec<Line>,
    /// The stream that it was forked from, and up to which seq.
    pub(super) parent: Option<(StreamId, Seq)>,
    /// A merge made the fork, or the fork stands for one: its event is no part of the history.
    pub(super) is_branch: bool,
    /// The sessions that it came from: the one that started it, and that of its first fork.
    pub(super) came_from: Vec<StreamId>,
    /// Whether its key was destroyed.
    pub(super) is_shredded: bool,
    /// The newest change of title, folder, project and version.
    pub(super) changed: Option<Micros>,
    /// Policies of its own, each with the event that set it.
    pub(super) policies: Vec<(Seq, String)>,
    /// Facts that were told again, with other words.
    pub(super) retold: FxHashSet<FactId>,
    /// Memory ids by the events that recorded them.
    pub(super) memory: FxHashMap<FactId, String>,
    /// The seq of each id; made when asked for.
    places: Option<FxHashMap<FactId, Seq>>,
}

impl Lineage {
    fn names(&self) -> Names<'_> {
        (self.scope, &self.host, &self.name)
    }

    pub(super) fn head(&self) -> Seq {
        self.lines.last().map_or(Seq::ZERO, |line| line.seq)
    }

    /// Its event with this id.
    pub(super) fn place(&mut self, id: FactId) -> Option<Seq> {
        let lines = &self.lines;
        let places = self.places.get_or_insert_with(|| {
            let mut places = FxHashMap::default();
            for line in lines {
                places.entry(line.id).or_insert(line.seq);
            }
            places
        });
        places.get(&id).copied()
    }

    pub(super) fn push(&mut self, line: Line) {
        if let Some(places) = &mut self.places {
            places.entry(line.id).or_insert(line.seq);
        }
        self.lines.push(line);
    }

    /// Its event at a seq.
    fn at(&self, seq: Seq) -> Option<&Line> {
        let place = self.lines.binary_search_by_key(&seq, |line| line.seq).ok()?;
        self.lines.get(place)
    }

    /// The last event up to a seq that is part of the history.
    fn last_at(&self, seq: Seq) -> Option<&Line> {
        let end = self.lines.partition_point(|line| line.seq <= seq);
        self.lines.get(..end)?.iter().rev().find(|line| !line.beside)
    }
}

/// All streams of a store.
#[derive(Debug, Default)]
pub(super) struct Lineages {
    pub(super) streams: BTreeMap<StreamId, Lineage>,
    /// Time and policy of the newest event that set the store's policy.
    pub(super) policy: Option<(Micros, String)>,
    /// Errors of frames and events that could not be read.
    pub(super) gaps: Vec<String>,
    pub(super) head: Seq,
}

impl Lineages {
    /// Whether the key of a stream was destroyed.
    pub(super) fn is_shredded(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_some_and(|lineage| lineage.is_shredded)
    }

    /// The history of a stream up to its end, with the histories that it goes on from: ids, streams and seqs. A shredded stream is
    /// left out: the ids of its acts depend on words that are gone.
    pub(super) fn history(&self, stream: StreamId) -> Vec<(FactId, StreamId, Seq)> {
        let mut pieces = Vec::new();
        let (mut stream, mut until) = (stream, Seq::MAX);
        let mut seen = FxHashSet::default();
        while let Some(lineage) = self.streams.get(&stream).filter(|_| seen.insert(stream)) {
            let lines = if lineage.is_shredded { &[] } else { lineage.lines.as_slice() };
            let own = lines.iter().filter(|line| !line.beside && line.seq <= until);
            pieces.push(own.map(|line| (line.id, stream, line.seq)).collect::<Vec<_>>());
            match lineage.parent.filter(|_| lineage.is_branch) {
                Some((parent, at)) => (stream, until) = (parent, at.min(until)),
                None => break,
            }
        }
        pieces.into_iter().rev().flatten().collect()
    }

    /// The event that a ref means, seen from a stream: in that stream, or in one that it goes on from.
    pub(super) fn find(&mut self, stream: StreamId, id: FactId) -> Option<(StreamId, Seq)> {
        let (mut stream, mut until) = (stream, Seq::MAX);
        let mut seen = FxHashSet::default();
        while seen.insert(stream) {
            let lineage = self.streams.get_mut(&stream)?;
            if let Some(seq) = lineage.place(id).filter(|seq| *seq <= until) {
                return Some((stream, seq));
            }
            let (parent, at) = lineage.parent?;
            (stream, until) = (parent, at.min(until));
        }
        None
    }

    /// The event at a seq; `stream`, and those that it goes on from, are looked at first.
    pub(super) fn named(&self, stream: StreamId, seq: Seq) -> Option<FactRef> {
        let near = self.ancestry(stream).find_map(|(stream, lineage)| Some((stream, lineage.at(seq)?.id)));
        let found = near.or_else(|| self.streams.iter().find_map(|(id, it)| Some((*id, it.at(seq)?.id))));
        found.map(|(stream, id)| FactRef { stream, id })
    }

    /// The last event of a history up to a seq; zeros if there is none.
    pub(super) fn point(&self, stream: StreamId, seq: Seq) -> FactRef {
        let near =
            self.ancestry(stream).find_map(|(stream, lineage)| Some((stream, lineage.last_at(seq)?.id)));
        let (stream, id) = near.unwrap_or((stream, FactId::ZERO));
        FactRef { stream, id }
    }

    /// The policy of a stream: its own, or that of a stream that it goes on from.
    pub(super) fn own_policy(&self, stream: StreamId) -> Option<&String> {
        let mut until = Seq::MAX;
        self.ancestry(stream).find_map(|(_, lineage)| {
            let own = lineage.policies.iter().rev().find(|(seq, _)| *seq <= until);
            until = lineage.parent.map_or(Seq::ZERO, |(_, at)| at.min(until));
            own.map(|(_, policy)| policy)
        })
    }

    fn ancestry(&self, stream: StreamId) -> impl Iterator<Item = (StreamId, &Lineage)> {
        let mut next = Some(stream);
        let mut left = self.streams.len();
        std::iter::from_fn(move || {
            let stream = next?;
            let lineage = self.streams.get(&stream)?;
            left = left.checked_sub(1)?;
            next = lineage.parent.map(|(parent, _)| parent);
            Some((stream, lineage))
        })
    }

    /// Takes note of an event.
    fn observe(&mut self, recorded: &Recorded, id: FactId) {
        let event = &recorded.event;
        let time = event.host_time.unwrap_or(recorded.recorded_at);
        if event.stream == StreamId::STORE {
            if let Payload::PolicySet(set) = &event.payload {
                // The user did not choose the policy that a new store begins with.
                let is_first = set.reason.as_deref() == Some("store created");
                self.policy = Some((if is_first { Micros(i64::MIN) } else { time }, set.policy.clone()));
            }
            return;
        }
        let mut fork = None;
        let lineage = self.streams.entry(event.stream).or_default();
        lineage.is_shredded |= event.payload.is_shredded();
        match &event.payload {
            Payload::SessionOpened(opened) => {
                lineage.scope = opened.scope;
                lineage.host.clone_from(&opened.host);
                lineage.name.clone_from(&opened.name);
                lineage.changed = Some(time);
                lineage.came_from.extend(opened.parent.as_ref().map(|parent| parent.stream));
            }
            Payload::SessionChanged(_) => lineage.changed = lineage.changed.max(Some(time)),
            Payload::Forked(forked) if lineage.parent.is_none() => {
                lineage.parent = Some((forked.from, forked.at));
                lineage.came_from.push(forked.from);
                fork = lineage.lines.iter().all(|line| line.beside).then_some(forked.from);
            }
            Payload::MemoryRecorded(memory) => {
                lineage.memory.insert(id, memory.id.clone());
            }
            Payload::PolicySet(set) => lineage.policies.push((recorded.seq, set.policy.clone())),
            Payload::ItemRevised(revised) => {
                let line = lineage.at(revised.item.seq).map(|line| line.id);
                lineage.retold.extend(line);
            }
            _ => {}
        }
        let mut beside = is_beside(&event.payload, event.stamp.actor);
        if let Some(from) = fork {
            let is_branch = self.is_branch(event.stream, from, id);
            if let Some(lineage) = self.streams.get_mut(&event.stream) {
                lineage.is_branch = is_branch;
            }
            beside |= is_branch;
        }
        if let Some(lineage) = self.streams.get_mut(&event.stream) {
            lineage.push(Line { id, seq: recorded.seq, beside });
        }
    }

    fn is_branch(&self, stream: StreamId, from: StreamId, fork: FactId) -> bool {
        let names = |id| self.streams.get(&id).map(Lineage::names);
        names(stream).is_some_and(|own| is_branch((stream, own), (from, names(from)), fork))
    }
}

/// The names of a stream: scope, host and name.
pub(super) type Names<'a> = (Scope, &'a str, &'a str);

/// Whether a stream that was forked from another bears the name of a branch of it. `fork`: id of the event of the fork. A stream
/// that was shredded has no name.
pub(super) fn is_branch(
    (stream, (scope, host, name)): (StreamId, Names<'_>),
    (from, from_names): (StreamId, Option<Names<'_>>),
    fork: FactId,
) -> bool {
    let base = base_name(name);
    base != name
        && match from_names.filter(|(_, _, name)| !name.is_empty()) {
            Some((from_scope, from_host, from_name)) => {
                scope == from_scope && host == from_host && base_name(from_name) == base
            }
            None => from == stream_id(scope, host, base) || fork == branch_id(stream),
        }
}

/// The id of the event by which a merge makes a branch.
pub(super) fn branch_id(branch: StreamId) -> FactId {
    derived("acpdb 2026 branch of a merge v1", &[branch.as_bytes()])
}

/// Gives events their ids, in the order of the log.
#[derive(Debug, Default)]
pub(super) struct Namer {
    told: FxHashMap<(StreamId, Origin), u32>,
    last: FxHashMap<StreamId, (FactId, Micros, bool)>,
}

impl Namer {
    /// The id of the next event.
    pub(super) fn name(&mut self, log: &Log, recorded: &Recorded, event: &EventRef<'_>) -> FactId {
        let id = self.id(log, recorded, event);
        let revises = matches!(recorded.event.payload, Payload::ItemRevised(_));
        self.last.insert(recorded.event.stream, (id, recorded.recorded_at, revises));
        id
    }

    fn id(&mut self, log: &Log, recorded: &Recorded, frame_event: &EventRef<'_>) -> FactId {
        let (event, secret) = (&recorded.event, log.secret());
        let label = event.payload.label().as_bytes();
        if !event.origin.is_zero() {
            let plain = secret.plain(event.origin);
            let count = self.told.entry((event.stream, event.origin)).or_default();
            *count = count.saturating_add(1);
            return match *count {
                1 => plain,
                count => told_again(log, plain, count, frame_event),
            };
        }
        let before = self.last.get(&event.stream);
        match &event.payload {
            Payload::SessionOpened(_) => derived("acpdb 2026 stream opened v1", &[event.stream.as_bytes()]),
            // The second part of a revision comes with the first, and a call that is told anew is given up before.
            Payload::ItemRevised(_)
                if before.is_some_and(|(_, time, revises)| *revises && *time == recorded.recorded_at) =>
            {
                after(before, label)
            }
            Payload::ToolCallFinished(_) if event.stamp.revision == 0 => after(before, label),
            _ => {
                let (seq, time) =
                    (recorded.seq.get().to_le_bytes(), recorded.recorded_at.get().to_le_bytes());
                secret.act(&[event.stream.as_bytes(), &seq, &time, label, frame_event.payload])
            }
        }
    }
}

/// The id of a later telling. A text that cannot be read counts by its length.
fn told_again(log: &Log, plain: FactId, count: u32, event: &EventRef<'_>) -> FactId {
    let mut texts = blake3::Hasher::new();
    for row in event.rows() {
        texts.update(&row.bytes.to_le_bytes());
        // A text that cannot be read counts by its length.
        if let Ok(text) = log.body(&row) {
            texts.update(&text);
        }
    }
    let texts = texts.finalize();
    derived("acpdb 2026 fact told again v2", &[&plain.0, &count.to_le_bytes(), texts.as_bytes()])
}

fn after(before: Option<&(FactId, Micros, bool)>, label: &[u8]) -> FactId {
    let before = before.map_or(FactId::ZERO, |(id, _, _)| *id);
    derived("acpdb 2026 fact that follows v1", &[&before.0, label])
}

/// An id that follows from others.
pub(super) fn derived(purpose: &str, parts: &[&[u8]]) -> FactId {
    FactId(first_16_of(blake3::Hasher::new_derive_key(purpose), parts))
}

/// Frames, in order.
type Frames<'a> = Box<dyn Iterator<Item = Result<Frame, LogError>> + 'a>;

impl Inner {
    /// The frames with events of these streams, or all frames.
    pub(super) fn frames_with<'a>(&'a self, only: Option<&'a [StreamId]>) -> Result<Frames<'a>, Error> {
        let Some(only) = only else {
            let head = self.log.refresh()?;
            return Ok(Box::new(self.log.frames_from(Seq(1), head)?));
        };
        let (places, _) = self.frames_of(only, Seq::ZERO)?;
        Ok(Box::new(places.into_iter().flat_map(move |place| {
            match self.log.parts_of(place.position, only, Seq::ZERO) {
                Ok(parts) => parts.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        })))
    }

    /// The histories of these streams, of the store's own and of the streams that they go on from; and all these streams, in order.
    /// `None`: all streams have to be looked at, since a part of the log cannot be read, and its streams are not known.
    pub(super) fn lineages_of(
        &self,
        only: &[StreamId],
        until: Seq,
    ) -> Result<Option<(Lineages, Vec<StreamId>)>, Error> {
        let mut known: Vec<StreamId> = only.iter().copied().chain([StreamId::STORE]).collect();
        loop {
            known.sort_unstable();
            known.dedup();
            let lineages = self.lineages(until, Some(&known))?;
            let is_damaged = !steady(&self.damage).is_empty();
            if is_damaged || !lineages.gaps.is_empty() {
                return Ok(None);
            }
            let parents = lineages.streams.values().filter_map(|lineage| Some(lineage.parent?.0));
            let more: Vec<StreamId> = parents.filter(|parent| known.binary_search(parent).is_err()).collect();
            if more.is_empty() {
                return Ok(Some((lineages, known)));
            }
            known.extend(more);
        }
    }

    /// The histories of these streams or of all, up to a seq. Cost: one pass over their spines.
    pub(super) fn lineages(&self, until: Seq, only: Option<&[StreamId]>) -> Result<Lineages, Error> {
        let mut all = Lineages::default();
        let mut namer = Namer::default();
        all.head = self.log.refresh()?.seq.min(until);
        let is_asked = |stream: &StreamId| only.is_none_or(|only| only.binary_search(stream).is_ok());
        for frame in self.frames_with(only)? {
            let frame = match frame {
                Ok(frame) => frame,
                Err(LogError::Corrupt(corruption)) => {
                    all.gaps.push(corruption.to_string());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let events = frame.events();
            for event in events.filter(|event| event.seq <= until && is_asked(&event.envelope.stream)) {
                let recorded = match bare(&frame, &event) {
                    // The word by which a new store's policy is known, and ids of memory, stand in the payload.
                    Ok(mut recorded) => {
                        recorded.event.payload.texts_mut(&mut |text| {
                            text.fill_plain();
                        });
                        recorded
                    }
                    Err(error @ Error::Io { .. }) => return Err(error),
                    Err(error) => {
                        all.gaps.push(error.to_string());
                        continue;
                    }
                };
                let id = namer.name(&self.log, &recorded, &event);
                all.observe(&recorded, id);
            }
        }
        Ok(all)
    }
}
