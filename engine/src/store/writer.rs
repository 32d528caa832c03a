//! The way in: entries of one or several streams become one commit.
//!
//! ```text
//! lock the streams -> catch up their ingest states -> draft (skip what is known) -> encode and hash -> log.place -> observe
//!          ^                                                                           |              |
//!          +-------------------- another process wrote to one of them -----------------+    unlock -> settle
//! ```
//!
//! Streams are locked in order of their ids, so that two commits never wait for each other, and only until the commit has
//! its place in the log: commits of different streams, and of one, share one sync. an ingest state may so know what is not durable
//! yet; what is decided on it lies behind that in the log, and neither is ever there without it. Whether a fact is known is decided under the log's own condition: if the
//! stream moved meanwhile, everything is drafted again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::codec::payload;
use crate::codec::{EncodedBody, EncodedEvent, Envelope};
use crate::command::bodies::CHUNK_BYTES_MAX;
use crate::command::ingest_state::IngestState;
use crate::command::record::{self, Draft, EventDraft, Recorder};
use crate::entry::{Bytes, Entry, StreamInfo};
use crate::error::Error;
use crate::event::{Body, ERASED_TEXT, Event, Payload, Recorded, Text};
use crate::failpoints::{Failpoint, is_enabled};
use crate::ids::{Digest, ItemId, Micros, Seq, StreamId};
use crate::log::{Appended, Condition, LogError, Placed};
use crate::secret::Withheld;
use crate::text::Signer;

use super::Inner;
use super::body_dedup::{SHARE_BYTES_MIN, Stored};

/// Facts of one stream that belong together.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The stream; opened if it is new.
    pub stream: StreamInfo,
    /// Its facts, in order.
    pub entries: Vec<Entry>,
}

/// What was recorded. Durable and atomic when you hold it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[must_use = "a receipt says what was recorded and what was known already"]
pub struct Receipt {
    /// First seq of the commit; [`Seq::ZERO`] if everything was known already.
    pub first_seq: Seq,
    /// Last seq of the commit.
    pub last_seq: Seq,
    /// Events recorded.
    pub event_count: u64,
    /// Entries that were known already and were skipped.
    pub known_count: u64,
    /// When the commit was recorded.
    pub recorded_at: Micros,
    /// First item of each entry, in order; of a revision the item revised; absent for those that were known. An entry that
    /// makes no item (the end of a call, a turn) names its event.
    pub items: Vec<Option<ItemId>>,
}

/// What one handle knows of a stream, to append to it.
#[derive(Default)]
pub(super) struct StreamWriter {
    pub(super) ingest_state: IngestState,
    pub(super) signer: Option<Signer>,
    pub(super) watermark: Seq,
    /// The last commit of this handle to it, durable or not.
    pub(super) placed: Option<Placed>,
    /// How many of the ingest state's events a saved one holds.
    pub(super) saved_count: u64,
    /// Digest of the saved ingest state that was taken up last.
    pub(super) restored: Option<[u8; 32]>,
}

impl StreamWriter {
    /// Calls that have not ended, oldest first.
    pub(super) fn open_calls(&self) -> Vec<crate::command::ingest_state::OpenCall> {
        self.ingest_state.open_calls().into_iter().cloned().collect()
    }
}

/// Bytes of new bodies after which a splitting commit is written.
const SPLIT_BYTES: usize = 8 << 20;
/// Events after which a splitting commit is written.
const SPLIT_EVENT_COUNT: usize = 8192;
/// How often a commit is drafted again because another process wrote to its streams.
pub(super) const RETRY_COUNT_MAX: usize = 64;

/// Whether a commit may become several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomicity {
    /// One commit, whole or not at all; too large is an error. A fact that names another of the same call by origin
    /// begins a new one all the same.
    One,
    /// Several commits in order, each whole or not at all: for imports, which can be repeated.
    Split,
}

/// The key of a stream that was not opened after all must not be used.
pub(super) fn forget_unused_keys(streams: &mut BTreeMap<StreamId, &mut StreamWriter>) {
    for writer in streams.values_mut().filter(|writer| !writer.ingest_state.opened) {
        writer.signer = None;
    }
}

/// Gives a free text its rows behind those of the event: erased ones say so.
pub(super) fn settle_text(text: &mut Text, rows: &mut Vec<Bytes>, withheld: &Withheld) {
    if withheld.holds(text.as_bytes()) {
        text.replace(ERASED_TEXT.to_owned());
    }
    if text.settle_plain() {
        return;
    }
    let number = |rows: &Vec<Bytes>| u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let first = number(rows);
    rows.extend(text.as_bytes().chunks(CHUNK_BYTES_MAX).map(Bytes::from));
    let chunks = number(rows).saturating_sub(first);
    text.settle(Body { first, chunks, ..Body::default() });
}

/// How often a commit that names stored bodies is encoded anew because something was erased meanwhile.
const SHARE_TRIES: usize = 3;

impl Inner {
    /// Records `batches`, without the secrets that are known to be some. The last commit has its place, the ones before it
    /// are durable; if nothing was to be recorded, it is the one by which all was known, and `None` if that is durable.
    pub(super) fn commit(
        &self,
        batches: &[Batch],
        atomicity: Atomicity,
    ) -> Result<(Receipt, Option<Placed>), Error> {
        let clean = super::redact::settled(self.redactor.as_deref(), self.log.secret(), batches);
        let (mut receipt, placed) = self.commit_clean(clean.as_deref().unwrap_or(batches), atomicity)?;
        // What is said about them has no entry of the caller's.
        receipt.items.truncate(batches.iter().map(|batch| batch.entries.len()).sum());
        Ok((receipt, placed))
    }

    /// Records `batches`.
    fn commit_clean(
        &self,
        batches: &[Batch],
        atomicity: Atomicity,
    ) -> Result<(Receipt, Option<Placed>), Error> {
        self.check_writable()?;
        let writers = self.writers_of(batches.iter().map(|batch| batch.stream.id()));
        let mut guards: BTreeMap<StreamId, _> = BTreeMap::new();
        for (id, writer) in &writers {
            guards.insert(*id, self.lock_writer(writer)?);
        }
        let mut receipt = Receipt::default();
        let mut todo = Todo { batches, batch: 0, entry: 0 };
        let mut retry_count = 0;
        let mut last = None;
        loop {
            for (id, writer) in &mut guards {
                self.catch_up(*id, writer)?;
            }
            let known = self.withheld()?;
            let mut streams: BTreeMap<StreamId, &mut StreamWriter> =
                guards.iter_mut().map(|(id, guard)| (*id, &mut **guard)).collect();
            let planned = self.plan(&mut streams, todo, atomicity, &known.0);
            if streams.values().any(|writer| !writer.ingest_state.is_sound()) {
                // What was drafted rests on answers that were none. Nothing was recorded; they are asked again.
                forget_unused_keys(&mut streams);
                continue;
            }
            match self.write(&mut streams, &planned, &known, &mut receipt) {
                Err(Error::HeadMoved { .. }) if retry_count < RETRY_COUNT_MAX => {
                    retry_count += 1;
                    continue;
                }
                other => last = other?.or(last),
            }
            if planned.rest.is_some()
                && let Some(placed) = last.take()
            {
                self.settle(&placed)?;
            }
            receipt.known_count += planned.known_count;
            receipt.items.extend(planned.items(receipt.last_seq, &planned.drafts));
            if let Some(rest) = planned.rest {
                todo = rest;
                continue;
            }
            // What is known already may be known by a commit that is on its way: then it is waited for.
            let known = guards.values().filter_map(|writer| writer.placed.clone());
            let known = known.reduce(|last, next| last.later(&next).clone());
            let known = known.filter(|_| !is_enabled(Failpoint::KnownTooEarly));
            return Ok((receipt, last.or(known)));
        }
    }

    /// Makes durable what is known of a stream.
    pub(super) fn settle_known(&self, writer: &mut StreamWriter) -> Result<(), Error> {
        if let Some(placed) = &writer.placed {
            self.settle(placed)?;
            // Not before: if it failed, nobody is told of it again as of something known.
            writer.placed = None;
        }
        Ok(())
    }

    /// The writers of these streams, to be locked in the order of the map.
    pub(super) fn writers_of(
        &self,
        streams: impl Iterator<Item = StreamId>,
    ) -> BTreeMap<StreamId, Arc<Mutex<StreamWriter>>> {
        let mut all = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        streams.map(|id| (id, Arc::clone(all.entry(id).or_default()))).collect()
    }

    /// Brings a stream's ingest state up to the durable head. It is sound then.
    pub(super) fn catch_up(&self, stream: StreamId, writer: &mut StreamWriter) -> Result<(), Error> {
        if !writer.ingest_state.is_sound() {
            self.start_over(writer)?;
        }
        if writer.watermark == Seq::ZERO && writer.ingest_state.head == Seq::ZERO {
            self.take_saved_ingest_state(stream, writer);
        }
        self.observe_new(stream, writer)?;
        if !writer.ingest_state.is_sound() {
            self.start_over(writer)?;
            self.observe_new(stream, writer)?;
        }
        self.save_if_overdue(stream, writer);
        if writer.signer.is_none()
            && let Some(key) = writer.ingest_state.key
        {
            let bytes = match self.body(key) {
                Ok(bytes) => bytes,
                // Nobody knows the key any more: what is recorded from here on is recognised by nobody, and nothing before is.
                Err(Error::Erased { .. }) => self.entropy.array::<32>().to_vec(),
                Err(error) => return Err(error),
            };
            let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| Error::Corrupt {
                detail: format!(
                    "the signature key of stream {stream} has {} bytes, expected 32",
                    bytes.len()
                ),
            })?;
            writer.signer = Some(self.signer_with(&key));
        }
        Ok(())
    }

    /// The key of a stream's signatures; `None` if it is lost.
    pub(super) fn key_of(&self, stream: StreamId) -> Result<Option<[u8; 32]>, Error> {
        let Some(recorded) = self.stream_opening(stream)? else { return Ok(None) };
        let Payload::SessionOpened(opened) = &recorded.event.payload else { return Ok(None) };
        match self.body(opened.key.id(recorded.seq)) {
            Ok(bytes) => Ok(bytes.as_slice().try_into().ok()),
            Err(Error::Erased { .. } | Error::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn stream_opening(&self, stream: StreamId) -> Result<Option<Recorded>, Error> {
        let (places, _) = self.frames_of(&[stream], Seq::ZERO)?;
        let Some(place) = places.first() else { return Ok(None) };
        let frame = self.first_part_of(place.position, stream)?;
        let event = frame.events().find(|event| event.envelope.stream == stream);
        event.map(|event| self.decode(&frame, &event)).transpose()
    }

    /// Takes note of the events of a stream that its ingest state does not know yet.
    fn observe_new(&self, stream: StreamId, writer: &mut StreamWriter) -> Result<(), Error> {
        self.observe_until(stream, writer, Seq::MAX)
    }

    /// As `observe_new`, up to a seq at which a commit ends.
    pub(super) fn observe_until(
        &self,
        stream: StreamId,
        writer: &mut StreamWriter,
        until: Seq,
    ) -> Result<(), Error> {
        let (mut places, watermark) = self.frames_of(&[stream], writer.watermark)?;
        places.retain(|place| place.last_seq <= until);
        for place in places {
            for frame in self.parts_of(place.position, &[stream], writer.ingest_state.head)? {
                for event in frame.events().filter(|event| event.envelope.stream == stream) {
                    if event.seq > writer.ingest_state.head {
                        writer.ingest_state.observe(&self.decode(&frame, &event)?);
                    }
                }
            }
        }
        writer.watermark = writer.watermark.max(watermark.min(until));
        Ok(())
    }

    /// Drafts as much as fits into one commit.
    fn plan<'b>(
        &self,
        streams: &mut BTreeMap<StreamId, &mut StreamWriter>,
        todo: Todo<'b>,
        atomicity: Atomicity,
        withheld: &Withheld,
    ) -> Planned<'b> {
        let mut planned = Planned::default();
        let mut recorders: BTreeMap<StreamId, Recorder<'_>> = BTreeMap::new();
        let mut body_bytes = 0;
        // Opening comes first: a recorder borrows the ingest state and needs the signer.
        for batch in todo.batches.get(todo.batch..).unwrap_or_default() {
            let Some(writer) = streams.get_mut(&batch.stream.id()) else { continue };
            if !writer.ingest_state.opened && writer.signer.is_none() {
                let key = self.entropy.array::<32>();
                writer.signer = Some(self.signer_with(&key));
                planned.drafts.push((None, record::opening(&batch.stream, key)));
            }
        }
        let fallback = Signer::new([0; 32]);
        for (id, writer) in streams.iter() {
            let signer = writer.signer.as_ref().unwrap_or(&fallback);
            let info = todo.batches.iter().find(|batch| batch.stream.id() == *id).map(|batch| &batch.stream);
            let cwd = info.and_then(|info| info.cwd.as_deref());
            recorders
                .insert(*id, Recorder::new(&writer.ingest_state, &*self.registry, signer, withheld, cwd));
        }
        let mut first_entry = todo.entry;
        // Batches of one stream may alternate with others; what changed about it is told once a commit.
        let mut changed = std::collections::BTreeSet::new();
        for (batch_index, batch) in todo.batches.iter().enumerate().skip(todo.batch) {
            let id = batch.stream.id();
            let Some(recorder) = recorders.get_mut(&id) else { continue };
            if first_entry == 0
                && changed.insert(id)
                && let Some(writer) = streams.get(&id)
                && writer.ingest_state.opened
                && let Some(change) = record::change(&batch.stream, &writer.ingest_state)
                && let Draft::Record(drafts) = recorder.draft(&batch.stream, &change.into())
            {
                planned.drafts.extend(drafts.into_iter().map(|draft| (None, draft)));
            }
            for (entry_index, entry) in batch.entries.iter().enumerate().skip(first_entry) {
                let full = body_bytes >= SPLIT_BYTES || planned.drafts.len() >= SPLIT_EVENT_COUNT;
                let rest = Todo { batches: todo.batches, batch: batch_index, entry: entry_index };
                if full && atomicity == Atomicity::Split {
                    planned.rest = Some(rest);
                    return planned;
                }
                match recorder.draft(&batch.stream, entry) {
                    Draft::Known => {
                        planned.known_count += 1;
                        planned.entry_count += 1;
                    }
                    Draft::RecordOthersFirst => {
                        planned.rest = Some(rest);
                        return planned;
                    }
                    Draft::Record(drafts) => {
                        // The event that stands for the entry bears its origin.
                        let own = drafts.iter().position(|draft| !draft.event.origin.is_zero()).unwrap_or(0);
                        for (place, draft) in drafts.into_iter().enumerate() {
                            body_bytes += draft.bodies.iter().map(|body| body.len()).sum::<usize>();
                            planned.drafts.push(((place == own).then_some(planned.entry_count), draft));
                        }
                        planned.entry_count += 1;
                    }
                }
            }
            first_entry = 0;
        }
        planned
    }

    /// Encodes, writes and takes note of what was planned.
    fn write(
        &self,
        streams: &mut BTreeMap<StreamId, &mut StreamWriter>,
        planned: &Planned<'_>,
        known: &(Withheld, Seq),
        receipt: &mut Receipt,
    ) -> Result<Option<Placed>, Error> {
        if planned.drafts.is_empty() {
            return Ok(None);
        }
        let drafts: Vec<&EventDraft> = planned.drafts.iter().map(|(_, draft)| draft).collect();
        let conditions: Vec<Condition> =
            streams.iter().map(|(id, writer)| Condition { stream: *id, basis: writer.watermark }).collect();
        let placed = match self.place_drafts(&drafts, &conditions, Some(known)) {
            Ok(placed) => placed,
            Err(error) => {
                forget_unused_keys(streams);
                return Err(error);
            }
        };
        let (first_seq, time) = (placed.appended().first_seq, placed.appended().time);
        let mut seq = first_seq;
        for draft in drafts {
            let recorded = Recorded { seq, recorded_at: time, event: draft.event.clone() };
            if let Some(writer) = streams.get_mut(&recorded.event.stream) {
                writer.ingest_state.observe(&recorded);
            }
            receipt.last_seq = seq;
            receipt.event_count += 1;
            seq = seq.next();
        }
        for writer in streams.values_mut() {
            writer.watermark = writer.watermark.max(receipt.last_seq);
            writer.placed = Some(placed.clone());
        }
        if receipt.first_seq == Seq::ZERO {
            receipt.first_seq = first_seq;
        }
        receipt.recorded_at = time;
        Ok(Some(placed))
    }

    /// Appends drafted events as one commit. Durable when it returns. `known`: as for [`Inner::place_drafts`].
    pub(super) fn append_drafts(
        &self,
        drafts: &[&EventDraft],
        conditions: &[Condition],
        known: Option<&(Withheld, Seq)>,
    ) -> Result<Appended, Error> {
        let placed = self.place_drafts(drafts, conditions, known)?;
        self.settle(&placed)?;
        Ok(placed.into_appended())
    }

    /// Gives drafted events their place in the log, as one commit. `known`: what had been erased up to which seq when they
    /// were drafted; if something else was erased since, they must be drafted again.
    pub(super) fn place_drafts(
        &self,
        drafts: &[&EventDraft],
        conditions: &[Condition],
        known: Option<&(Withheld, Seq)>,
    ) -> Result<Placed, Error> {
        for _ in 0..SHARE_TRIES {
            match self.place_sharing(drafts, conditions, known) {
                // Something was erased since: what is known of stored bodies may name zeros now.
                Err(Error::HeadMoved { stream: StreamId::STORE, actual, .. })
                    if !conditions.iter().any(|condition| condition.stream == StreamId::STORE)
                        && known.is_none_or(|(_, until)| actual <= *until) =>
                {
                    self.body_dedup.lock().unwrap_or_else(PoisonError::into_inner).clear();
                }
                outcome => return outcome,
            }
        }
        self.place_sharing(drafts, conditions, known)
    }

    /// Places drafts whose bodies may name stored ones: on condition that none was erased since those were stored.
    fn place_sharing(
        &self,
        drafts: &[&EventDraft],
        conditions: &[Condition],
        known: Option<&(Withheld, Seq)>,
    ) -> Result<Placed, Error> {
        // Taken first: what is looked up afterwards was stored after it, or is of a later basis.
        let basis = self.body_dedup.lock().unwrap_or_else(PoisonError::into_inner).basis();
        let mut conditions = conditions.to_vec();
        // Those that are about the store's own stream have a basis of their own, and share nothing.
        let may_share = !conditions.iter().any(|condition| condition.stream == StreamId::STORE);
        let mut events = Vec::with_capacity(drafts.len());
        let mut keys: Vec<Option<[u8; 16]>> = Vec::new();
        for draft in drafts {
            let withheld = known.map(|(withheld, _)| withheld);
            events.push(self.encode(draft, withheld, &mut keys, may_share)?);
        }
        let mut bodies = events.iter().flat_map(|event| &event.bodies);
        let shares = bodies.any(|body| matches!(body, EncodedBody::Existing { .. }));
        if may_share {
            let shared = (shares && !is_enabled(Failpoint::ShareErased)).then_some(basis);
            let oldest = shared.into_iter().chain(known.map(|(_, until)| *until)).min();
            conditions.extend(oldest.map(|basis| Condition { stream: StreamId::STORE, basis }));
        }
        let prepared = self.log.prepare(&events)?;
        match self.log.place(prepared, &conditions) {
            Ok(placed) => {
                let mut body_dedup = self.body_dedup.lock().unwrap_or_else(PoisonError::into_inner);
                let first_seq = placed.appended().first_seq;
                body_dedup.begin(Seq(first_seq.get().saturating_sub(1)));
                // What is known now may have been begun anew since, after an erasure of what this commit names.
                let keys: &[_] = if first_seq > body_dedup.basis() { &keys } else { &[] };
                for (key, row) in keys.iter().zip(&placed.appended().rows) {
                    if let Some(key) = key {
                        let stored = Stored { digest: row.digest, bytes: row.bytes, position: row.position };
                        body_dedup.put(*key, stored);
                    }
                }
                drop(body_dedup);
                Ok(placed)
            }
            Err(error) => {
                if !matches!(error, LogError::HeadMoved { .. }) {
                    self.body_dedup.lock().unwrap_or_else(PoisonError::into_inner).clear();
                }
                Err(error.into())
            }
        }
    }

    fn encode(
        &self,
        draft: &EventDraft,
        withheld: Option<&Withheld>,
        keys: &mut Vec<Option<[u8; 16]>>,
        may_share: bool,
    ) -> Result<EncodedEvent, Error> {
        let Event { stream, origin, host_time, stamp, payload } = &draft.event;
        let mut rows = Cow::Borrowed(draft.bodies.as_slice());
        let mut payload = Cow::Borrowed(payload);
        if payload.may_have_texts() {
            let (rows, nothing) = (rows.to_mut(), Withheld::default());
            let withheld = withheld.unwrap_or(&nothing);
            payload.to_mut().texts_mut(&mut |text| settle_text(text, rows, withheld));
        }
        let payload = &*payload;
        let (version, bytes) = payload::encode(stamp, payload).map_err(|error| Error::TooLarge {
            what: payload.label(),
            actual: match error {
                payload::PayloadError::Invalid { bytes, .. } => bytes as u64,
                payload::PayloadError::TooLarge { .. } => u64::MAX,
            },
            limit: crate::codec::EVENT_BYTES_MAX as u64,
        })?;
        let envelope = Envelope {
            kind: payload.number(),
            version,
            stream: *stream,
            origin: *origin,
            host_time: *host_time,
        };
        let mut bodies = Vec::with_capacity(rows.len());
        for (number, body) in (0_u32..).zip(rows.iter()) {
            let lost = draft.lost.iter().find(|(row, _)| *row == number);
            bodies.push(match lost {
                Some((_, bytes)) => {
                    keys.push(None);
                    self.lost_body(*bytes)
                }
                None => self.encode_body(body, keys, may_share),
            });
        }
        Ok(EncodedEvent { envelope, payload: bytes, bodies })
    }

    /// A body whose bytes are gone. What its digest is of cannot be known.
    fn lost_body(&self, bytes: u32) -> EncodedBody {
        EncodedBody::Lost { digest: Digest(self.entropy.array::<32>()), bytes }
    }

    fn encode_body(&self, body: &Bytes, keys: &mut Vec<Option<[u8; 16]>>, may_share: bool) -> EncodedBody {
        if body.len() < SHARE_BYTES_MIN {
            keys.push(None);
            return EncodedBody::New { bytes: body.clone(), salt: self.entropy.salt() };
        }
        let mut body_dedup = self.body_dedup.lock().unwrap_or_else(PoisonError::into_inner);
        let key = body_dedup.key(body);
        keys.push(Some(key));
        match body_dedup.get(&key).filter(|_| may_share) {
            Some(Stored { digest, bytes, position }) => EncodedBody::Existing { digest, bytes, position },
            None => EncodedBody::New { bytes: body.clone(), salt: self.entropy.salt() },
        }
    }
}

/// What is left to record.
#[derive(Clone, Copy, Debug)]
struct Todo<'b> {
    batches: &'b [Batch],
    batch: usize,
    entry: usize,
}

/// One commit's worth of drafts.
#[derive(Debug, Default)]
struct Planned<'b> {
    /// Each draft, with the number of the entry that it stands for.
    drafts: Vec<(Option<usize>, EventDraft)>,
    known_count: u64,
    entry_count: usize,
    rest: Option<Todo<'b>>,
}

impl Planned<'_> {
    /// First item of each planned entry, given the last seq of the commit.
    fn items(&self, last_seq: Seq, drafts: &[(Option<usize>, EventDraft)]) -> Vec<Option<ItemId>> {
        let mut items = vec![None; self.entry_count];
        let first = last_seq.get().saturating_sub(drafts.len() as u64);
        for (seq, (entry, draft)) in (first + 1..).zip(drafts) {
            if let Some(slot) = entry.and_then(|entry| items.get_mut(entry)) {
                *slot = Some(match &draft.event.payload {
                    Payload::ItemRevised(revised) => revised.item,
                    _ => ItemId::first(Seq(seq)),
                });
            }
        }
        items
    }
}
