//! Parcels into the log, by the plan.
//!
//! ```text
//! parcel -> known? skip -> refs -> here? else record what waits -> waiting -> adopt -> one commit
//! ```
//!
//! An event that another event names must have its seq before the other is encoded, so the commit of the named event ends
//! first. Commits are given their places one after the other and are synced together.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::codec::EventRef;
use crate::entry::StreamInfo;
use crate::error::Error;
use crate::event::{BodyAddress, Event, Forked, Payload, PolicySet, Recorded, Scope, SessionOpened, Stamp};
use crate::ids::{FactId, ItemId, Micros, Seq, StreamId};
use crate::log::{LogError, Placed};
use crate::travel::{FactRef, Gap, Parcel, Piece, Row};

use super::super::Inner;
use super::super::fetch::bare;
use super::gone::gone;
use super::lineage::{Lineages, branch_id, derived};
use super::otherwise::Otherwise;
use super::outline::Outline;
use super::pack::rows_of;
use super::plan::{Fresh, Goal, Plan, plan};
use super::{Branched, ErasedThere, MergeReport, ParcelSource};

/// An event that waits for its commit.
pub(super) enum Waiting {
    /// A stream begins.
    Open { info: Box<StreamInfo>, from: Option<StreamId> },
    /// An event of this store's own making, with its id.
    Own { stream: StreamId, id: FactId, time: Option<Micros>, payload: Box<Payload> },
    /// An event of the other store.
    Parcel { stream: StreamId, parcel: Box<Parcel> },
}

impl Waiting {
    pub(super) fn stream(&self) -> StreamId {
        match self {
            Self::Open { info, .. } => info.id(),
            Self::Own { stream, .. } | Self::Parcel { stream, .. } => *stream,
        }
    }
}

/// A merge that is under way.
pub(super) struct Taker<'a> {
    pub(super) inner: &'a Inner,
    pub(super) outline: &'a Outline,
    pub(super) plan: Plan,
    pub(super) here: Lineages,
    pub(super) report: &'a mut MergeReport,
    pub(super) infos: FxHashMap<StreamId, StreamInfo>,
    /// Keys of the streams that were begun, which may not be durable yet.
    pub(super) keys: FxHashMap<StreamId, [u8; 32]>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) waiting_ids: FxHashSet<(StreamId, FactId)>,
    pub(super) waiting_bytes: usize,
    pub(super) unsynced: usize,
    pub(super) placed: Option<Placed>,
    /// Memory ids of the other store's streams, by those that the items have here.
    pub(super) memory: FxHashMap<(StreamId, String), String>,
    /// The other store's policy, and those of its streams, at this point of its log.
    pub(super) policy_there: Option<String>,
    pub(super) policies_there: FxHashMap<StreamId, Vec<(usize, String)>>,
    /// How many events of each of its streams' own histories were told so far.
    pub(super) told_there: FxHashMap<StreamId, usize>,
    /// Rows that came without their bytes: erased there, or before here.
    pub(super) erased: Vec<BodyAddress>,
    /// Rows whose bytes damage took there.
    pub(super) damaged: Vec<BodyAddress>,
    pub(super) continued: BTreeSet<StreamId>,
    pub(super) otherwise: Otherwise,
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
        let here = self.lineages(Seq::MAX, None)?;
        let gone = gone(outline, &here, self.about_shredded(outline)?);
        let plan = plan(outline, &here, &gone);
        for stream in &plan.nameless {
            report.leave_out(format!("a stream whose beginning is damaged: {stream}"));
        }
        let names = plan.shredded.iter().map(|stream| match outline.streams.get(stream) {
            Some(told) if !told.name.is_empty() => told.name.clone(),
            _ => stream.to_string(),
        });
        report.shredded_here = names.collect();
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
            erased: Vec::new(),
            damaged: Vec::new(),
            continued: BTreeSet::new(),
            otherwise: Otherwise::new(),
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
        self.told_again_there(&parcel);
        if let Payload::SessionOpened(opened) = &parcel.event {
            return self.open(stream, opened, &parcel);
        }
        if self.is_own_affair(&parcel) {
            return Ok(());
        }
        if let Some((home, seq)) = self.here.find(stream, parcel.id) {
            self.report.events_known += 1;
            self.known(home, seq, &parcel)?;
            self.compare(home, seq, &parcel)?;
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

    /// Takes note of the policy in force in a stream of the other store: its own, or that of the stream that it was forked from.
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

    /// Whether an event is about the stream in the other store only.
    fn is_own_affair(&self, parcel: &Parcel) -> bool {
        let told = self.outline.streams.get(&parcel.stream);
        match &parcel.event {
            Payload::PolicySet(_) => parcel.is_beside(),
            // The first fork of a branch: here the branch is forked from a session of this store.
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
            return match self.here.find(stream, parcel.id) {
                Some((home, seq)) => self.known(home, seq, parcel),
                None => Ok(()),
            };
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
            subject: self.outline.subjects.get(&parcel.stream).cloned(),
        };
        if !self.inner.log.is_encrypted() {
            // Nothing here is sealed, so there is no key that could stand for a subject.
            info.subject = None;
        }
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
        self.wait(Waiting::Open { info: Box::new(info), from: fork.map(|(from, _)| from) })?;
        if let Some(lineage) = self.here.streams.get_mut(&stream) {
            (lineage.parent, lineage.is_branch) = (fork, fork.is_some());
        }
        if let Some((from, at)) = fork {
            let id = branch_id(stream);
            let payload = Box::new(Forked { from, at }.into());
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

    /// An event that is here. Texts that were erased there and not here are noted.
    fn known(&mut self, home: StreamId, seq: Seq, parcel: &Parcel) -> Result<(), Error> {
        if let Payload::MemoryRecorded(memory) = &parcel.event
            && let Some(here) =
                self.here.streams.get(&home).and_then(|lineage| lineage.memory.get(&parcel.id))
        {
            self.memory.insert((parcel.stream, memory.id.clone()), here.clone());
        }
        let is_whole = parcel.bodies.iter().all(|row| matches!(row, Row::Bytes(_)));
        if is_whole && parcel.erased_texts.is_empty() {
            return Ok(());
        }
        let Some(frame) = self.inner.frame_of(seq)? else { return Ok(()) };
        let Some(event) = frame.event(seq) else { return Ok(()) };
        let mut bodies = Vec::new();
        for (number, row) in (0_u32..).zip(&parcel.bodies) {
            let (Row::Erased(bytes) | Row::Damaged(bytes)) = row else { continue };
            let Some(own) = event.row(number as usize).filter(|own| own.bytes == *bytes) else { continue };
            match self.inner.log.body(&own) {
                Ok(_) | Err(LogError::Corrupt(_)) if matches!(row, Row::Erased(_)) => {
                    bodies.push(BodyAddress { seq, row: number });
                }
                // Bytes that damage took there stay here.
                Ok(_) | Err(LogError::Corrupt(_)) => {}
                // An interrupted merge may not have recorded that the row is lost.
                Err(LogError::Erased { position }) => {
                    if !matches!(self.inner.erased(seq, number, position), Error::Erased { .. }) {
                        self.lose(BodyAddress { seq, row: number }, matches!(row, Row::Damaged(_)));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !parcel.erased_texts.is_empty() {
            self.texts_still_here(&bare(&frame, &event)?, &event, parcel, &mut bodies);
        }
        if !bodies.is_empty() {
            let session =
                self.here.streams.get(&home).map(|lineage| lineage.name.clone()).unwrap_or_default();
            let item = ItemId::first(seq);
            self.report.erased_there.push(ErasedThere { item, session, done: false, bodies });
        }
        Ok(())
    }

    /// The rows of free texts, such as a title, that were erased there and not here. As with bodies, another length is another text.
    fn texts_still_here(
        &self,
        here: &Recorded,
        event: &EventRef<'_>,
        parcel: &Parcel,
        bodies: &mut Vec<BodyAddress>,
    ) {
        let mut own = Vec::new();
        here.event.payload.clone().texts_mut(&mut |text| own.push(text.body()));
        for (place, bytes) in &parcel.erased_texts {
            let Some(body) = own.get(*place as usize) else { continue };
            let length: u64 = rows_of(event, *body).map(|(_, row)| u64::from(row.bytes)).sum();
            if length != *bytes {
                continue;
            }
            for (number, row) in rows_of(event, *body) {
                if !matches!(self.inner.log.body(&row), Err(LogError::Erased { .. })) {
                    bodies.push(BodyAddress { seq: event.seq, row: number });
                }
            }
        }
    }

    /// Puts this store's seqs in the place of ids. `false`: a named event is not here, and without it the event means nothing.
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

    /// The event here that a ref names, in an event of `stream`.
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
                let mut id = memory.id.clone();
                // Most ids are free, and collecting all taken ones costs more.
                if self.taken(stream).any(|taken| *taken == id) {
                    let taken: FxHashSet<&String> = self.taken(stream).collect();
                    let mut number = taken.len() + 1;
                    let letter: String = id.chars().take(1).collect();
                    while taken.contains(&id) {
                        id = format!("{letter}{number}");
                        number += 1;
                    }
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

    /// The store's policy is the one that was set last, here or in the other store.
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

    /// Conclusions rest on the policy in force: if it is another one here, the session gets the policy of its own time.
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
        let payload = Box::new(PolicySet { policy: there, reason: None }.into());
        self.wait(Waiting::Own { stream, id, time: parcel.time, payload })
    }

    fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.settle()?;
        self.tell_otherwise();
        let names = self.continued.iter().filter_map(|id| self.here.streams.get(id));
        self.report.continued = names.map(|lineage| lineage.name.clone()).collect();
        Ok(())
    }
}
