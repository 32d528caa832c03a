//! Parcels into the log, by the plan.
//!
//! ```text
//! parcel -> known? skip -> refs -> here? else record what waits -> waiting -> adopt -> one commit
//! ```
//!
//! What an event names must have its seq before the event is encoded, so such an event ends a commit. Commits are given their
//! places one after the other and are synced together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::command::ledger::Ledger;
use crate::command::record::{self, EventDraft, Recorder};
use crate::entry::StreamInfo;
use crate::error::Error;
use crate::event::{
    Actor, BodyAddress, Erased, Event, Forked, Payload, PolicySet, Recorded, Scope, SessionOpened, Stamp,
};
use crate::ids::{FactId, ItemId, Micros, Origin, Seq, StreamId};
use crate::log::{Condition, LogError, Placed};
use crate::text::Signer;
use crate::travel::{FactRef, Gap, Parcel, Piece, Row, is_beside};

use super::super::Inner;
use super::super::writer::StreamWriter;
use super::lineage::{Line, Lineages, derived};
use super::outline::Outline;
use super::plan::{Fresh, Goal, Plan, plan};
use super::{Branched, ErasedThere, MergeReport, ParcelSource};

/// Bytes of bodies after which what waits is recorded.
const WAIT_BYTES: usize = 8 << 20;
/// Events after which it is.
const WAIT_COUNT: usize = 4096;
/// Bytes that are placed before they are synced.
const UNSYNCED_BYTES: usize = 64 << 20;
/// Bodies that one event names.
const BODIES_PER_EVENT: usize = 4096;

/// An event that waits for its commit.
enum Waiting {
    /// A stream begins.
    Open { info: StreamInfo, from: Option<StreamId> },
    /// An event of this store's own making, with its id.
    Own { stream: StreamId, id: FactId, time: Option<Micros>, payload: Payload },
    /// One of the other store.
    Parcel { stream: StreamId, parcel: Box<Parcel> },
}

impl Waiting {
    fn stream(&self) -> StreamId {
        match self {
            Self::Open { info, .. } => info.id(),
            Self::Own { stream, .. } | Self::Parcel { stream, .. } => *stream,
        }
    }
}

struct Taker<'a> {
    inner: &'a Inner,
    outline: &'a Outline,
    plan: Plan,
    here: Lineages,
    report: &'a mut MergeReport,
    infos: FxHashMap<StreamId, StreamInfo>,
    /// Keys of the streams that were begun, which may not be durable yet.
    keys: FxHashMap<StreamId, [u8; 32]>,
    waiting: Vec<Waiting>,
    waiting_ids: FxHashSet<(StreamId, FactId)>,
    waiting_bytes: usize,
    unsynced: usize,
    placed: Option<Placed>,
    /// Memory ids of the other store's streams, by those that the items have here.
    memory: FxHashMap<(StreamId, String), String>,
    /// The other store's policy, and those of its streams, at this point of its log.
    policy_there: Option<String>,
    policies_there: FxHashMap<StreamId, Vec<(usize, String)>>,
    /// How many events of each of its streams' own histories were told so far.
    told_there: FxHashMap<StreamId, usize>,
    lost: Vec<BodyAddress>,
    continued: BTreeSet<StreamId>,
}

impl Inner {
    /// Plans a merge and carries it out.
    ///
    /// # Errors
    /// [`Error::HeadMoved`] if the plan holds no more.
    pub(super) fn merge_once(
        &self,
        source: &mut dyn ParcelSource,
        outline: &Outline,
        report: &mut MergeReport,
    ) -> Result<(), Error> {
        let here = self.lineages(Seq::MAX)?;
        let plan = plan(outline, &here);
        for stream in &plan.nameless {
            report.leave_out(format!("a stream whose beginning is damaged: {stream}"));
        }
        let mut taker = Taker {
            inner: self,
            outline,
            plan,
            here,
            report,
            infos: FxHashMap::default(),
            keys: FxHashMap::default(),
            waiting: Vec::new(),
            waiting_ids: FxHashSet::default(),
            waiting_bytes: 0,
            unsynced: 0,
            placed: None,
            memory: FxHashMap::default(),
            policy_there: None,
            policies_there: FxHashMap::default(),
            told_there: FxHashMap::default(),
            lost: Vec::new(),
            continued: BTreeSet::new(),
        };
        source.tell(&mut |piece| taker.piece(piece))?;
        taker.finish()
    }
}

impl Taker<'_> {
    fn piece(&mut self, piece: Piece) -> Result<(), Error> {
        match piece {
            Piece::Heading(_) | Piece::End(_) => Ok(()),
            Piece::Gap(Gap { detail }) => {
                self.report.leave_out(detail);
                Ok(())
            }
            Piece::Parcel(parcel) if parcel.stream == StreamId::STORE => self.store_policy(*parcel),
            Piece::Parcel(parcel) => self.parcel(parcel),
        }
    }

    fn parcel(&mut self, mut parcel: Box<Parcel>) -> Result<(), Error> {
        let Some(target) = self.plan.targets.get(&parcel.stream).copied() else { return Ok(()) };
        let stream = target.stream;
        self.note_policy(&parcel);
        if let Payload::SessionOpened(opened) = &parcel.event {
            return self.open(stream, opened, &parcel);
        }
        if self.is_own_affair(&parcel) {
            return Ok(());
        }
        if let Some((home, seq)) = self.here.find(stream, parcel.id) {
            self.report.events_known += 1;
            self.known(home, seq, &parcel)?;
            return Ok(());
        }
        if self.waiting_ids.contains(&(stream, parcel.id)) {
            self.report.events_known += 1;
            return Ok(());
        }
        if let Payload::SessionChanged(_) = &parcel.event {
            let time = Some(parcel.time.unwrap_or(parcel.recorded_at));
            let lineage = self.here.streams.get_mut(&stream);
            if lineage.is_some_and(|lineage| lineage.changed >= time) {
                self.report.events_known += 1;
                return Ok(());
            }
        }
        if !self.here.streams.contains_key(&stream) && !self.infos.contains_key(&stream) {
            self.report.leave_out(format!("event {} of a stream whose beginning is missing", parcel.seq));
            return Ok(());
        }
        self.set_policy(stream, &parcel)?;
        if !self.resolve(stream, &mut parcel)? {
            let label = parcel.event.label();
            self.report.leave_out(format!("event {} ({label}): what it is about is not there", parcel.seq));
            return Ok(());
        }
        self.rename_memory(stream, &mut parcel);
        if target.goal == Goal::On && !parcel.is_beside() {
            self.continued.insert(stream);
        }
        self.wait(Waiting::Parcel { stream, parcel })
    }

    /// Takes note of the policy in force in a stream of the other store: its own, or that of what it was forked from.
    fn note_policy(&mut self, parcel: &Parcel) {
        let told = self.told_there.entry(parcel.stream).or_default();
        let place = *told;
        *told += usize::from(!parcel.is_beside());
        let policy = match &parcel.event {
            Payload::PolicySet(set) => Some(set.policy.clone()),
            Payload::Forked(_) if place == 0 => parcel.refs.first().and_then(|at| {
                let ids = &self.outline.streams.get(&at.stream)?.ids;
                let until = ids.iter().position(|id| *id == at.id)?;
                let known = self.policies_there.get(&at.stream)?.iter();
                known.rev().find(|(place, _)| *place <= until).map(|(_, policy)| policy.clone())
            }),
            _ => None,
        };
        if let Some(policy) = policy {
            self.policies_there.entry(parcel.stream).or_default().push((place, policy));
        }
    }

    /// Events that say something of where the stream stood in the other store only.
    fn is_own_affair(&self, parcel: &Parcel) -> bool {
        let told = self.outline.streams.get(&parcel.stream);
        match &parcel.event {
            Payload::PolicySet(_) => parcel.is_beside(),
            // The first fork of a branch: it is a branch of what it goes on from here.
            Payload::Forked(_) => {
                told.is_some_and(|told| told.branch_of.is_some() && !told.ids.contains(&parcel.id))
            }
            _ => false,
        }
    }

    /// Begins a stream that is new here.
    fn open(&mut self, stream: StreamId, opened: &SessionOpened, parcel: &Parcel) -> Result<(), Error> {
        let Some(fresh) = self.plan.fresh.get(&stream).cloned().filter(|_| !self.infos.contains_key(&stream))
        else {
            self.report.events_known += 1;
            return Ok(());
        };
        let mut info = StreamInfo {
            scope: opened.scope,
            host: opened.host.clone(),
            name: fresh.name.clone(),
            project: opened.project.clone(),
            parent: opened.parent.clone().map(|parent| (parent.stream, parent.call)),
            cwd: opened.cwd.clone(),
            title: opened.title.as_ref().map(ToString::to_string),
            host_version: opened.host_version.clone(),
            host_time: parcel.time,
        };
        if let Some(redactor) = self.inner.redactor.as_deref() {
            super::super::redact::texts_of(redactor, &mut info);
        }
        let fork = self.fork_of(&fresh)?;
        self.infos.insert(stream, info.clone());
        self.report.streams_new += 1;
        if fresh.is_branch {
            let session = crate::travel::base_name(&fresh.name).to_owned();
            let from = fork.map(|(_, seq)| seq);
            self.report.branches.push(Branched { session, branch: fresh.name.clone(), from });
        }
        self.wait(Waiting::Open { info, from: fork.map(|(from, _)| from) })?;
        if let Some(lineage) = self.here.streams.get_mut(&stream) {
            (lineage.parent, lineage.is_branch) = (fork, fork.is_some());
        }
        if let Some((from, at)) = fork {
            let id = derived("acpdb 2026 branch of a merge v1", &[stream.as_bytes()]);
            let payload = Forked { from, at }.into();
            self.wait(Waiting::Own { stream, id, time: parcel.time, payload })?;
        }
        Ok(())
    }

    fn fork_of(&mut self, fresh: &Fresh) -> Result<Option<(StreamId, Seq)>, Error> {
        let Some((from, id)) = fresh.fork else { return Ok(None) };
        if self.here.find(from, id).is_none() {
            self.flush()?;
        }
        Ok(self.here.find(from, id))
    }

    /// An event that is here. What was erased there and is not here is noted.
    fn known(&mut self, home: StreamId, seq: Seq, parcel: &Parcel) -> Result<(), Error> {
        if let Payload::MemoryRecorded(memory) = &parcel.event
            && let Some(here) =
                self.here.streams.get(&home).and_then(|lineage| lineage.memory.get(&parcel.id))
        {
            self.memory.insert((parcel.stream, memory.id.clone()), here.clone());
        }
        if !parcel.bodies.iter().any(|row| matches!(row, Row::Erased(_))) {
            return Ok(());
        }
        let Some(frame) = self.inner.frame_of(seq)? else { return Ok(()) };
        let Some(event) = frame.event(seq) else { return Ok(()) };
        let mut bodies = Vec::new();
        for (number, row) in (0_u32..).zip(&parcel.bodies) {
            let Row::Erased(bytes) = row else { continue };
            let Some(own) = event.row(number as usize).filter(|own| own.bytes == *bytes) else { continue };
            match self.inner.log.body(&own) {
                Ok(_) | Err(LogError::Corrupt(_)) => bodies.push(BodyAddress { seq, row: number }),
                // A merge that was interrupted may not have recorded it.
                Err(LogError::Erased { position }) => {
                    if !matches!(self.inner.erased(seq, number, position), Error::Erased { .. }) {
                        self.lost.push(BodyAddress { seq, row: number });
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !bodies.is_empty() {
            let session =
                self.here.streams.get(&home).map(|lineage| lineage.name.clone()).unwrap_or_default();
            let item = ItemId::first(seq);
            self.report.erased_there.push(ErasedThere { item, session, done: false, bodies });
        }
        Ok(())
    }

    /// Puts this store's seqs in the place of ids. `false`: the event means nothing without what is not there.
    fn resolve(&mut self, stream: StreamId, parcel: &mut Parcel) -> Result<bool, Error> {
        let mut found = Vec::with_capacity(parcel.refs.len());
        for fact in parcel.refs.clone() {
            found.push(self.place_of(stream, parcel.stream, fact)?);
        }
        let at = |seq: Seq| {
            usize::try_from(seq.get()).ok().and_then(|place| found.get(place.checked_sub(1)?)).copied()
        };
        Ok(match &mut parcel.event {
            Payload::Forked(forked) => match at(forked.at).flatten() {
                Some((from, seq)) => {
                    (forked.from, forked.at) = (from, seq);
                    true
                }
                None => false,
            },
            Payload::Rewound(rewound) => {
                let to_the_beginning =
                    parcel.refs.first().is_some_and(|fact| fact.id.is_zero() && rewound.to == Seq(1));
                match at(rewound.to).flatten() {
                    Some((_, seq)) => rewound.to = seq,
                    None if to_the_beginning => rewound.to = Seq::ZERO,
                    None => return Ok(false),
                }
                true
            }
            other => other.items_mut(&mut |item| match at(item.seq).flatten() {
                Some((_, seq)) => {
                    item.seq = seq;
                    true
                }
                None => false,
            }),
        })
    }

    /// Where the event is that a ref of an event of `stream` names.
    fn place_of(
        &mut self,
        stream: StreamId,
        there: StreamId,
        fact: FactRef,
    ) -> Result<Option<(StreamId, Seq)>, Error> {
        if fact.id.is_zero() {
            return Ok(None);
        }
        let home = if fact.stream == there {
            stream
        } else {
            self.plan.targets.get(&fact.stream).map_or(fact.stream, |target| target.stream)
        };
        if let Some(found) = self.here.find(home, fact.id) {
            return Ok(Some(found));
        }
        self.flush()?;
        Ok(self.here.find(home, fact.id))
    }

    /// Ids of memory items are a stream's own: where both have given one, the other store's item gets the next free one.
    fn rename_memory(&mut self, stream: StreamId, parcel: &mut Parcel) {
        let is_shared = self.here.streams.get(&stream).is_some_and(|lineage| lineage.scope != Scope::Session);
        if !is_shared {
            return;
        }
        let there = parcel.stream;
        if let Payload::MemoryRecorded(memory) = &parcel.event {
            let key = (there, memory.id.clone());
            if !self.memory.contains_key(&key) {
                let taken: FxHashSet<&String> = self.taken(stream).collect();
                let mut id = memory.id.clone();
                let mut number = taken.len() + 1;
                let letter: String = id.chars().take(1).collect();
                while taken.contains(&id) {
                    id = format!("{letter}{number}");
                    number += 1;
                }
                self.memory.insert(key, id);
            }
        }
        let memory = &self.memory;
        parcel.event.memory_ids_mut(&mut |id| {
            if let Some(here) = memory.get(&(there, id.clone())) {
                id.clone_from(here);
            }
        });
    }

    /// Memory ids that a stream has, those that wait for their commit included.
    fn taken(&self, stream: StreamId) -> impl Iterator<Item = &String> {
        let known = self.here.streams.get(&stream).into_iter().flat_map(|lineage| lineage.memory.values());
        let waiting = self.waiting.iter().filter_map(move |waiting| match waiting {
            Waiting::Parcel { stream: own, parcel } if *own == stream => match &parcel.event {
                Payload::MemoryRecorded(memory) => Some(&memory.id),
                _ => None,
            },
            _ => None,
        });
        known.chain(waiting)
    }

    /// The store's policy is the one that was set last, in whichever store.
    fn store_policy(&mut self, parcel: Parcel) -> Result<(), Error> {
        let Payload::PolicySet(set) = parcel.event else { return Ok(()) };
        self.policy_there = Some(set.policy.clone());
        let time = parcel.time.unwrap_or(parcel.recorded_at);
        let is_first = set.reason.as_deref() == Some("store created");
        let is_older =
            self.here.policy.as_ref().is_some_and(|(known, policy)| *known >= time || *policy == set.policy);
        if is_first || is_older {
            self.report.events_known += 1;
            return Ok(());
        }
        self.report.policy_taken = true;
        self.here.policy = Some((time, set.policy.clone()));
        self.flush()?;
        let event = Event {
            stream: StreamId::STORE,
            origin: self.inner.log.secret().keyed(parcel.id),
            host_time: Some(time),
            stamp: Stamp { actor: parcel.actor, ..Stamp::default() },
            payload: set.into(),
        };
        self.record_own(vec![event])
    }

    /// Conclusions rest on the policy in force: where it is another one here, the session gets that of its own time.
    fn set_policy(&mut self, stream: StreamId, parcel: &Parcel) -> Result<(), Error> {
        let is_session =
            self.outline.streams.get(&parcel.stream).is_some_and(|told| told.scope == Scope::Session);
        if !is_session || parcel.is_beside() || matches!(parcel.event, Payload::PolicySet(_)) {
            return Ok(());
        }
        let own = self.policies_there.get(&parcel.stream).and_then(|all| all.last());
        let there = own.map(|(_, policy)| policy).or(self.policy_there.as_ref());
        let Some(there) = there.cloned() else { return Ok(()) };
        let here = self.here.own_policy(stream).or(self.here.policy.as_ref().map(|(_, policy)| policy));
        if here == Some(&there) {
            return Ok(());
        }
        if let Some(lineage) = self.here.streams.get_mut(&stream) {
            lineage.policies.push((Seq::MAX, there.clone()));
        }
        let id = derived("acpdb 2026 policy of a merge v1", &[&parcel.id.0, there.as_bytes()]);
        let payload = PolicySet { policy: there, reason: None }.into();
        self.wait(Waiting::Own { stream, id, time: parcel.time, payload })
    }

    fn wait(&mut self, waiting: Waiting) -> Result<(), Error> {
        if let Waiting::Parcel { stream, parcel } = &waiting {
            let bytes = parcel.bodies.iter().map(|row| match row {
                Row::Bytes(bytes) => bytes.len(),
                Row::Erased(bytes) | Row::Damaged(bytes) => *bytes as usize,
            });
            let bytes: usize = bytes.sum();
            if self.waiting_bytes > 0 && self.waiting_bytes + bytes > WAIT_BYTES {
                self.flush()?;
            }
            self.waiting_bytes += bytes;
            self.waiting_ids.insert((*stream, parcel.id));
        }
        if let Waiting::Open { info, .. } = &waiting {
            // From here on the plan takes it for one that is there.
            let lineage = self.here.streams.entry(info.id()).or_default();
            lineage.scope = info.scope;
            (lineage.host, lineage.name) = (info.host.clone(), info.name.clone());
        }
        self.waiting.push(waiting);
        if self.waiting.len() >= WAIT_COUNT { self.flush() } else { Ok(()) }
    }

    /// Records what waits.
    fn flush(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_ids.clear();
        let bytes = std::mem::take(&mut self.waiting_bytes);
        if waiting.is_empty() {
            return Ok(());
        }
        self.record(waiting)?;
        self.unsynced += bytes;
        if self.unsynced >= UNSYNCED_BYTES {
            self.settle()?;
        }
        Ok(())
    }

    fn record(&mut self, waiting: Vec<Waiting>) -> Result<(), Error> {
        let inner = self.inner;
        let writers = inner.writers_of(waiting.iter().map(Waiting::stream));
        let mut guards: BTreeMap<StreamId, _> = BTreeMap::new();
        for (id, writer) in &writers {
            guards.insert(*id, writer.lock().unwrap_or_else(PoisonError::into_inner));
        }
        for (id, writer) in &mut guards {
            inner.catch_up(*id, writer)?;
            let expected = self.here.streams.get(id).map_or(Seq::ZERO, super::lineage::Lineage::head);
            if writer.ledger.head != expected {
                return Err(Error::HeadMoved { stream: *id, expected, actual: writer.ledger.head });
            }
        }
        let mut streams: BTreeMap<StreamId, &mut StreamWriter> =
            guards.iter_mut().map(|(id, guard)| (*id, &mut **guard)).collect();
        let known = inner.withheld()?;
        let drafts = self.drafts(&mut streams, waiting, &known.0)?;
        let outcome = if drafts.is_empty() { Ok(()) } else { self.place(&mut streams, drafts, &known) };
        if outcome.is_err() {
            super::super::writer::forget_unused_keys(&mut streams);
        }
        outcome
    }

    /// Drafts what waits, with the id of each event.
    fn drafts(
        &mut self,
        streams: &mut BTreeMap<StreamId, &mut StreamWriter>,
        waiting: Vec<Waiting>,
        withheld: &crate::secret::Withheld,
    ) -> Result<Vec<(FactId, EventDraft)>, Error> {
        let inner = self.inner;
        let mut drafts = Vec::with_capacity(waiting.len());
        for one in &waiting {
            let Waiting::Open { info, from } = one else { continue };
            // A branch signs as what it goes on from: calls before and after are compared.
            let key = match from {
                Some(from) => match self.keys.get(from) {
                    Some(key) => Some(*key),
                    None => inner.key_of(*from)?,
                },
                None => None,
            };
            let key = key.unwrap_or_else(|| inner.entropy.array::<32>());
            self.keys.insert(info.id(), key);
            if let Some(writer) = streams.get_mut(&info.id()) {
                writer.signer = Some(inner.signer_with(&key));
            }
            let id = derived("acpdb 2026 stream opened v1", &[info.id().as_bytes()]);
            drafts.push((id, record::opening(info, key)));
        }
        let fallback = Signer::new([0; 32]);
        let mut recorders: BTreeMap<StreamId, (Recorder<'_>, StreamInfo)> = BTreeMap::new();
        for (id, writer) in streams.iter() {
            let info = self.infos.get(id).cloned().unwrap_or_else(|| info_of(&writer.ledger));
            let signer = writer.signer.as_ref().unwrap_or(&fallback);
            let recorder =
                Recorder::new(&writer.ledger, &*inner.registry, signer, withheld, info.cwd.as_deref());
            recorders.insert(*id, (recorder, info));
        }
        for one in waiting {
            let (stream, mut parcel) = match one {
                Waiting::Open { .. } => continue,
                Waiting::Own { stream, id, time, payload } => {
                    let stamp = Stamp { actor: Actor::Policy, ..Stamp::default() };
                    let origin = inner.log.secret().keyed(id);
                    let event = Event { stream, origin, host_time: time, stamp, payload };
                    drafts.push((id, EventDraft { event, bodies: Vec::new(), lost: Vec::new() }));
                    continue;
                }
                Waiting::Parcel { stream, parcel } => (stream, parcel),
            };
            let Some((recorder, info)) = recorders.get(&stream) else { continue };
            if let Some(redactor) = inner.redactor.as_deref() {
                self.report.redacted += super::super::redact::parcel(redactor, &mut parcel);
            }
            match recorder.adopt(info, &parcel) {
                Ok(draft) => drafts.push((parcel.id, draft)),
                Err(why) => self.report.leave_out(format!("event {}: {why}", parcel.seq)),
            }
        }
        Ok(drafts)
    }

    fn place(
        &mut self,
        streams: &mut BTreeMap<StreamId, &mut StreamWriter>,
        drafts: Vec<(FactId, EventDraft)>,
        known: &(crate::secret::Withheld, Seq),
    ) -> Result<(), Error> {
        let all: Vec<&EventDraft> = drafts.iter().map(|(_, draft)| draft).collect();
        let conditions: Vec<Condition> =
            streams.iter().map(|(id, writer)| Condition { stream: *id, basis: writer.watermark }).collect();
        let placed = self.inner.place_drafts(&all, &conditions, Some(known))?;
        let (mut seq, time) = (placed.appended().first_seq, placed.appended().time);
        self.report.first_seq = self.report.first_seq.or(Some(seq));
        for (id, draft) in drafts {
            for (row, _) in &draft.lost {
                self.lost.push(BodyAddress { seq, row: *row });
                self.report.texts_lost += 1;
            }
            let recorded = Recorded { seq, recorded_at: time, event: draft.event };
            if let Some(writer) = streams.get_mut(&recorded.event.stream) {
                writer.ledger.observe(&recorded);
                writer.watermark = writer.watermark.max(seq);
                writer.placed = Some(placed.clone());
            }
            self.note(id, &recorded);
            self.report.events_new += 1;
            self.report.last_seq = Some(seq);
            seq = seq.next();
        }
        for writer in streams.values_mut() {
            writer.watermark = writer.watermark.max(self.report.last_seq.unwrap_or_default());
        }
        self.placed = Some(placed);
        Ok(())
    }

    /// Takes note of an event of this merge, as a look at the log would.
    fn note(&mut self, id: FactId, recorded: &Recorded) {
        let event = &recorded.event;
        let beside = is_beside(&event.payload, event.stamp.actor);
        let lineage = self.here.streams.entry(event.stream).or_default();
        let mut line = Line { id, seq: recorded.seq, beside };
        let time = event.host_time.unwrap_or(recorded.recorded_at);
        match &event.payload {
            Payload::SessionOpened(_) | Payload::SessionChanged(_) => {
                lineage.changed = lineage.changed.max(Some(time));
            }
            Payload::Forked(_) if lineage.is_branch && event.stamp.actor == Actor::Policy => {
                line.beside = true
            }
            Payload::Forked(forked) if lineage.parent.is_none() => {
                lineage.parent = Some((forked.from, forked.at));
            }
            Payload::MemoryRecorded(memory) => {
                lineage.memory.insert(id, memory.id.clone());
            }
            Payload::PolicySet(set) => lineage.policies.push((recorded.seq, set.policy.clone())),
            _ => {}
        }
        lineage.push(line);
    }

    /// Makes durable what was recorded, and records what came without its bytes.
    fn settle(&mut self) -> Result<(), Error> {
        self.unsynced = 0;
        if let Some(placed) = self.placed.take() {
            self.inner.settle(&placed)?;
        }
        let lost = std::mem::take(&mut self.lost);
        let reason = self.report.source.map_or_else(
            || "it came by merge without its bytes".to_owned(),
            |source| format!("it came by merge from store {source} without its bytes"),
        );
        let events = lost.chunks(BODIES_PER_EVENT).map(|bodies| Event {
            stream: StreamId::STORE,
            origin: Origin::ZERO,
            host_time: None,
            stamp: Stamp { actor: Actor::Policy, ..Stamp::default() },
            payload: Erased {
                bodies: bodies.to_vec(),
                by: "merge".to_owned(),
                reason: reason.clone(),
                contents: Vec::new(),
            }
            .into(),
        });
        let events: Vec<Event> = events.collect();
        if events.is_empty() { Ok(()) } else { self.record_own(events) }
    }

    /// Records events of the store's own stream, durable when it returns.
    fn record_own(&mut self, events: Vec<Event>) -> Result<(), Error> {
        if let Some(placed) = self.placed.take() {
            self.inner.settle(&placed)?;
        }
        let drafts =
            events.into_iter().map(|event| EventDraft { event, bodies: Vec::new(), lost: Vec::new() });
        let drafts: Vec<EventDraft> = drafts.collect();
        let appended = self.inner.append_drafts(&drafts.iter().collect::<Vec<_>>(), &[], None)?;
        self.report.events_new += drafts.len() as u64;
        self.report.first_seq = self.report.first_seq.or(Some(appended.first_seq));
        self.report.last_seq = Some(appended.last_seq());
        Ok(())
    }

    fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.settle()?;
        let names = self.continued.iter().filter_map(|id| self.here.streams.get(id));
        self.report.continued = names.map(|lineage| lineage.name.clone()).collect();
        Ok(())
    }
}

/// A stream as its ledger knows it.
fn info_of(ledger: &Ledger) -> StreamInfo {
    StreamInfo {
        scope: ledger.scope,
        host: ledger.host.clone(),
        name: ledger.name.clone(),
        cwd: ledger.cwd.clone(),
        ..StreamInfo::default()
    }
}
