//! Waiting events become a commit like any other.

use std::collections::{BTreeMap, VecDeque};

use crate::command::draft::{Bodies, EventDraft, LostRow};
use crate::command::ingest_state::IngestState;
use crate::command::record::Recorder;
use crate::entry::StreamInfo;
use crate::error::Error;
use crate::event::{Actor, BodyAddress, Erased, Event, Payload, Recorded, Stamp};
use crate::ids::{FactId, Origin, Seq, StreamId};
use crate::secret::Withheld;
use crate::text::Signer;
use crate::travel::{Parcel, Row, is_beside};

use super::super::write::{Drafted, Drafting, Streams};
use super::lineage::{Line, Lineage, derived};
use super::take::{Taker, Waiting};

/// Bytes of bodies after which waiting events are recorded.
const WAIT_BYTES: usize = 8 << 20;
/// Number of waiting events after which they are recorded.
const WAIT_COUNT: usize = 4096;
/// Bytes that are placed before they are synced.
const UNSYNCED_BYTES: usize = 64 << 20;
/// Most bodies that one event names.
const BODIES_PER_EVENT: usize = 4096;

impl Taker<'_> {
    pub(super) fn wait(&mut self, waiting: Waiting) -> Result<(), Error> {
        if let Waiting::Parcel { stream, parcel } = &waiting {
            let bytes = parcel.bodies.iter().map(|row| match row {
                Row::Bytes(bytes) => bytes.len(),
                Row::Erased(bytes) | Row::Damaged(bytes) => *bytes as usize,
            });
            let bytes: usize = bytes.sum();
            let is_full = self.waiting_bytes > 0 && self.waiting_bytes + bytes > WAIT_BYTES;
            if is_full || self.would_date(*stream, parcel) {
                self.flush()?;
            }
            self.waiting_bytes += bytes;
            self.waiting_ids.insert((*stream, parcel.id));
        }
        if let Waiting::Open { info, .. } = &waiting {
            // From here on the plan takes the stream for one that is there.
            let lineage = self.here.streams.entry(info.id()).or_default();
            lineage.scope = info.scope;
            (lineage.host, lineage.name) = (info.host.clone(), info.name.clone());
        }
        self.waiting.push(waiting);
        if self.waiting.len() >= WAIT_COUNT { self.flush() } else { Ok(()) }
    }

    /// Takes note of a row that came without its bytes.
    pub(super) fn lose(&mut self, row: BodyAddress, is_damaged: bool) {
        if is_damaged { self.damaged.push(row) } else { self.erased.push(row) }
    }

    /// Whether an act, or an event recorded as it happened, would share a commit with records of its stream that have no time.
    /// Records without a time are dated by the rest of their commit: they would seem to be of that day.
    fn would_date(&self, stream: StreamId, parcel: &Parcel) -> bool {
        let is_then = parcel.happened_when_recorded();
        let mut of_stream = self.waiting.iter().rev().filter_map(|waiting| match waiting {
            Waiting::Parcel { stream: own, parcel } if *own == stream => Some(parcel),
            _ => None,
        });
        of_stream.next().is_some_and(|before| before.happened_when_recorded() != is_then)
    }

    /// Records the waiting events.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
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

    fn record(&mut self, mut waiting: Vec<Waiting>) -> Result<(), Error> {
        self.redact(&mut waiting);
        let inner = self.inner;
        let writers = inner.writers_of(waiting.iter().map(Waiting::stream));
        let mut streams = Streams::lock(inner, &writers)?;
        let mut group = Group { taker: self, waiting: &waiting, ids: Vec::new(), left_out: Vec::new() };
        let ((), placed) = inner.place_one(&mut streams, &mut group)?;
        drop(streams);
        for what in std::mem::take(&mut group.left_out) {
            self.report.leave_out(what);
        }
        if let Some(placed) = placed {
            self.report.first_seq = self.report.first_seq.or(Some(placed.appended().first_seq));
            self.report.last_seq = Some(placed.appended().last_seq());
            self.placed = Some(placed);
        }
        Ok(())
    }

    /// Takes out secrets, and leaves out events that make no sense without them.
    fn redact(&mut self, waiting: &mut Vec<Waiting>) {
        let Some(redactor) = self.inner.redactor.as_deref() else { return };
        waiting.retain_mut(|one| {
            let Waiting::Parcel { parcel, .. } = one else { return true };
            match super::super::redact::parcel(redactor, parcel) {
                Ok(count) => {
                    self.report.redacted += count;
                    true
                }
                Err(error) => {
                    let what = format!("event {}: it makes no sense once redacted: {error}", parcel.seq);
                    self.report.leave_out(what);
                    false
                }
            }
        });
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
                line.beside = true;
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

    /// Makes recorded events durable, and records the rows that came without their bytes.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        self.unsynced = 0;
        if let Some(placed) = self.placed.take() {
            self.inner.settle(&placed)?;
        }
        let (erased, damaged) = (std::mem::take(&mut self.erased), std::mem::take(&mut self.damaged));
        let source = self.report.source.map(|source| format!("store {source}"));
        let source = source.as_deref().unwrap_or("another store");
        let erased = erased.chunks(BODIES_PER_EVENT).map(|bodies| Erased {
            bodies: bodies.to_vec(),
            by: "merge".to_owned(),
            reason: format!("it came by merge from {source} without its bytes").into(),
            contents: Vec::new(),
        });
        let damaged = damaged.chunks(BODIES_PER_EVENT).map(|bodies| {
            Erased::lost(bodies.to_vec(), format!("it was damaged in {source}, from which it came by merge"))
        });
        let events = erased.chain(damaged).map(|payload| Event {
            stream: StreamId::STORE,
            origin: Origin::ZERO,
            host_time: None,
            stamp: Stamp { actor: Actor::Policy, ..Stamp::default() },
            payload: payload.into(),
        });
        let events: Vec<Event> = events.collect();
        if events.is_empty() { Ok(()) } else { self.record_own(events) }
    }

    /// Records events of the store's own stream, durable when it returns.
    pub(super) fn record_own(&mut self, events: Vec<Event>) -> Result<(), Error> {
        if let Some(placed) = self.placed.take() {
            self.inner.settle(&placed)?;
        }
        let drafts = events.into_iter().map(|event| EventDraft::new(event, Bodies::default()));
        let drafts: Vec<EventDraft> = drafts.collect();
        let appended = self.inner.append_drafts(&drafts)?;
        self.report.events_new += drafts.len() as u64;
        self.report.first_seq = self.report.first_seq.or(Some(appended.first_seq));
        self.report.last_seq = Some(appended.last_seq());
        Ok(())
    }
}

/// Waiting events, on their way into one commit.
struct Group<'g, 't> {
    taker: &'g mut Taker<'t>,
    waiting: &'g [Waiting],
    /// The id of each draft.
    ids: Vec<FactId>,
    /// Events that could not be adopted, each in a line.
    left_out: Vec<String>,
}

impl Drafting<()> for Group<'_, '_> {
    /// Drafts the waiting events, with the id of each event.
    fn draft(
        &mut self,
        streams: &mut Streams<'_>,
        withheld: &Withheld,
        _: Option<Seq>,
    ) -> Result<Option<Drafted<()>>, Error> {
        self.ids.clear();
        self.left_out.clear();
        // The plan holds for the streams as they were: if one of them moved, the whole plan is made again.
        for (stream, writer) in streams.iter() {
            let expected = self.taker.here.streams.get(&stream).map_or(Seq::ZERO, Lineage::head);
            let actual = writer.ingest_state.head;
            if actual != expected {
                return Err(Error::HeadMoved { stream, expected, actual });
            }
        }
        let opened = self.open(streams)?;
        let drafts = self.adopt(streams, withheld, opened);
        Ok(Some(Drafted { drafts, answer: () }))
    }

    fn observe(&mut self, index: usize, recorded: &Recorded, lost: &[LostRow]) {
        for lost in lost {
            self.taker.lose(BodyAddress { seq: recorded.seq, row: lost.row }, lost.is_damaged);
            self.taker.report.texts_lost += 1;
        }
        if let Some(id) = self.ids.get(index) {
            self.taker.note(*id, recorded);
        }
        self.taker.report.events_new += 1;
    }
}

impl Group<'_, '_> {
    /// Begins the streams that are new: the opening of each, in order; `None` if the stream is open already.
    fn open(&mut self, streams: &mut Streams<'_>) -> Result<VecDeque<Option<Opening>>, Error> {
        let inner = self.taker.inner;
        let mut opened = VecDeque::new();
        for one in self.waiting {
            let Waiting::Open { info, from } = one else { continue };
            // A branch signs with the key of the stream that it goes on from: calls before and after are compared.
            let key = match from {
                Some(from) => match self.taker.keys.get(from) {
                    Some(key) => Some(*key),
                    None => inner.key_of(*from)?,
                },
                None => None,
            };
            let key = key.unwrap_or_else(|| inner.entropy.array::<32>());
            let id = info.id();
            inner.begin_about(id, info, &[], None)?;
            self.taker.keys.insert(id, key);
            let named = derived("acpdb 2026 stream opened v1", &[id.as_bytes()]);
            opened.push_back(streams.open_with(inner, (id, info), || key).map(|draft| (named, draft)));
        }
        Ok(opened)
    }

    /// Drafts the events of the other store, and those of this store's own making. Each opening stands where it stood: the beginning of a
    /// session ends what earlier sessions remembered for their own length, and only that.
    fn adopt(
        &mut self,
        streams: &Streams<'_>,
        withheld: &Withheld,
        mut opened: VecDeque<Option<Opening>>,
    ) -> Vec<EventDraft> {
        let inner = self.taker.inner;
        let mut drafts = Vec::with_capacity(self.waiting.len());
        let fallback = Signer::new([0; 32]);
        let mut recorders: BTreeMap<StreamId, (Recorder<'_>, StreamInfo)> = BTreeMap::new();
        for (id, writer) in streams.iter() {
            let info = self.taker.infos.get(&id).cloned().unwrap_or_else(|| info_of(&writer.ingest_state));
            let signer = writer.signer.as_ref().unwrap_or(&fallback);
            let cwd = info.cwd.as_deref();
            let recorder = Recorder::new(id, &writer.ingest_state, &*inner.registry, signer, withheld, cwd);
            recorders.insert(id, (recorder, info));
        }
        for one in self.waiting {
            match one {
                Waiting::Open { .. } => {
                    if let Some((id, draft)) = opened.pop_front().flatten() {
                        self.ids.push(id);
                        drafts.push(draft);
                    }
                }
                Waiting::Own { stream, id, time, payload } => {
                    let stamp = Stamp { actor: Actor::Policy, ..Stamp::default() };
                    let origin = inner.log.secret().keyed(*id);
                    let payload = payload.as_ref().clone();
                    let event = Event { stream: *stream, origin, host_time: *time, stamp, payload };
                    self.ids.push(*id);
                    drafts.push(EventDraft::new(event, Bodies::default()));
                }
                Waiting::Parcel { stream, parcel } => {
                    let Some((recorder, info)) = recorders.get(stream) else { continue };
                    match recorder.adopt(info, parcel) {
                        Ok(draft) => {
                            self.ids.push(parcel.id);
                            drafts.push(draft);
                        }
                        Err(why) => self.left_out.push(format!("event {}: {why}", parcel.seq)),
                    }
                }
            }
        }
        drafts
    }
}

/// The opening of a stream, with its id.
type Opening = (FactId, EventDraft);

/// A stream as its ingest state knows it.
fn info_of(ingest_state: &IngestState) -> StreamInfo {
    StreamInfo {
        scope: ingest_state.scope,
        host: ingest_state.host.clone(),
        name: ingest_state.name.clone(),
        cwd: ingest_state.cwd.clone(),
        ..StreamInfo::default()
    }
}
