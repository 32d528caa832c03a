//! Erasing an item's content for good, with everything that says the same.
//!
//! ```text
//! rows of the item -> equal bodies anywhere -> Erased, durable: no view shows them -> zeros in place -> what was hit
//! ```
//!
//! The record of the erasure stays, as do digests, lengths, ids, names of tools, keys of files, and whatever other bodies quote.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::codec::BodyRow;
use crate::error::Error;
use crate::event::{Actor, BodyAddress, Erased, Event, Payload, Stamp};
use crate::ids::{ItemId, Origin, Position, Seq, StreamId};
use crate::log::{ErasedFigures, Log, LogError};
use crate::verify::recorded_erasures;

use super::{Inner, Store};
use crate::command::draft::EventDraft;

/// Bodies that one event names.
const BODIES_PER_EVENT: usize = 4096;
/// How often what was recorded meanwhile is looked through.
const ROUND_COUNT_MAX: usize = 16;

/// Content that an erasure hit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ErasedContent {
    /// The event that named it.
    pub seq: Seq,
    /// Its stream.
    pub stream: StreamId,
    /// The item it belongs to, if the event made or finished one.
    pub item: Option<ItemId>,
    /// How many bodies.
    pub bodies: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether it was not asked for, but has content equal to what was.
    pub equal: bool,
}

/// What an erasure did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[must_use]
pub struct EraseReport {
    /// What was asked for.
    pub item: ItemId,
    /// The event that records it; absent if there was nothing left to erase.
    pub recorded: Option<Seq>,
    /// Everything that was hit, in the order of the log.
    pub hit: Vec<ErasedContent>,
    /// What changed on the disk.
    #[serde(flatten)]
    pub figures: ErasedFigures,
}

/// Rows by the event that names them.
type Rows = BTreeMap<(Seq, u32), (StreamId, BodyRow)>;

/// Contents that are to go: by length, then by digest of the bytes alone.
#[derive(Default)]
struct Wanted {
    contents: FxHashMap<u32, FxHashSet<[u8; 32]>>,
    /// Blocks that hold them.
    blocks: FxHashMap<Position, bool>,
}

impl Wanted {
    fn add(&mut self, row: &BodyRow, body: &[u8]) {
        self.contents.entry(row.bytes).or_default().insert(*blake3::hash(body).as_bytes());
        self.blocks.insert(row.position, true);
    }

    /// Whether the row's content is wanted. Reads a block once.
    fn holds(&mut self, log: &Log, row: &BodyRow) -> Result<bool, LogError> {
        if let Some(known) = self.blocks.get(&row.position) {
            return Ok(*known);
        }
        let Some(contents) = self.contents.get(&row.bytes) else { return Ok(false) };
        let found = match log.body(row) {
            Ok(body) => contents.contains(blake3::hash(&body).as_bytes()),
            Err(LogError::Erased { .. } | LogError::Corrupt(_)) => false,
            Err(error) => return Err(error),
        };
        self.blocks.insert(row.position, found);
        Ok(found)
    }
}

impl Store {
    /// Erases the content of an item for good: all bodies of the events that made, revised and finished it, and every body with
    /// equal bytes anywhere in the store. No view shows any of it once the event is recorded; when this returns the bytes are
    /// nowhere in the folder.
    ///
    /// Not covered: ids, names of tools, keys of files, digests, and quotations inside other bodies. Torn bytes set aside and
    /// snapshots are removed as a whole.
    ///
    /// Cost: one pass over all spines, and a read of every body as long as an erased one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such event, [`Error::Busy`] while another process seals or erases, [`Error::ReadOnly`],
    /// [`Error::NoSpace`], [`Error::Io`]. Once it is recorded it is ended by whoever opens the store next.
    pub fn erase(&self, item: ItemId, by: &str, reason: &str) -> Result<EraseReport, Error> {
        let inner = &self.inner;
        inner.check_writable()?;
        let erasing = inner.log.begin_erasing()?;
        let (seeds, mut wanted) = inner.seeds(item)?;
        let mut hit: Rows = BTreeMap::new();
        let mut after = Seq::ZERO;
        let mut recorded = None;
        for _ in 0..ROUND_COUNT_MAX {
            let until = inner.log.refresh()?;
            let fresh = inner.rows_with(&mut wanted, after, until.seq)?;
            let fresh: Rows = fresh.into_iter().filter(|(address, _)| !hit.contains_key(address)).collect();
            if fresh.is_empty() {
                break;
            }
            let seq = inner.record_erasure(&fresh, by, reason)?;
            recorded = recorded.or(Some(seq));
            hit.extend(fresh);
            // Between the look and the record somebody may have written the same content again.
            after = until.seq;
        }
        let mut rows: Vec<BodyRow> = hit.values().map(|(_, row)| *row).collect();
        // Those of an earlier erasure that did not end.
        rows.extend(recorded_erasures(&inner.log, erasing.after)?);
        let figures = if rows.is_empty() { ErasedFigures::default() } else { erasing.zero(&rows)? };
        erasing.end()?;
        inner.forget_contents();
        let hit = inner.describe_hit(&hit, &seeds)?;
        Ok(EraseReport { item, recorded, hit, figures })
    }
}

impl Inner {
    /// Ends an erasure that a crash interrupted. What cannot be done now is left to the next opening.
    pub(super) fn resume_erasing(&self) -> Result<(), Error> {
        let Some(erasing) = self.log.resume_erasing()? else { return Ok(()) };
        let rows = recorded_erasures(&self.log, erasing.after)?;
        if !rows.is_empty() {
            let _ = erasing.zero(&rows)?;
        }
        erasing.end()?;
        Ok(())
    }

    /// The addresses that an item rests on, and their contents.
    fn seeds(&self, item: ItemId) -> Result<(BTreeSet<(Seq, u32)>, Wanted), Error> {
        let missing = || Error::NotFound { what: "event", name: item.to_string(), nearest: None };
        let recorded = self.event(item.seq)?.ok_or_else(missing)?;
        let stream = recorded.event.stream;
        let mut only: Option<Vec<(u32, u32)>> = None;
        let mut seqs = BTreeSet::from([item.seq]);
        let loaded = self.fold_once(stream)?;
        {
            let loaded = loaded.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(state) = loaded.world.stream(stream) {
                let at = state.head();
                let parts = state.items_of_event(item.seq).count();
                let view = state.find(item).and_then(|ix| state.item(ix, at));
                seqs.extend(view.as_ref().and_then(|view| view.finished));
                if parts > 1
                    && let Some(view) = &view
                {
                    // One part of several: its own rows, and the host's record, which has all of them.
                    let bodies = view.content.iter().flat_map(|part| [Some(part.body), part.signature]);
                    let bodies = bodies.chain([view.provider_signature]).flatten();
                    let mut rows: Vec<(u32, u32)> = bodies
                        .filter(|body| body.seq == item.seq)
                        .map(|body| (body.first, body.chunks))
                        .collect();
                    rows.extend(recorded.event.stamp.wire.map(|wire| (wire.first, wire.chunks)));
                    only = Some(rows);
                }
            }
        }
        for event in self.stream_events_of(stream, item.seq)? {
            let event = event?;
            if let Payload::ItemRevised(revised) = &event.event.payload
                && revised.item == item
            {
                seqs.insert(event.seq);
            }
        }
        let (mut addresses, mut wanted) = (BTreeSet::new(), Wanted::default());
        for seq in seqs {
            let Some(frame) = self.frame_of(seq)? else { continue };
            let Some(event) = frame.event(seq) else { continue };
            for (index, row) in (0_u32..).zip(event.rows()) {
                let covered =
                    |(first, count): &(u32, u32)| (*first..first.saturating_add(*count)).contains(&index);
                if seq == item.seq && only.as_ref().is_some_and(|only| !only.iter().any(covered)) {
                    continue;
                }
                match self.log.body(&row) {
                    Ok(body) => wanted.add(&row, &body),
                    Err(LogError::Erased { .. }) => continue,
                    // Damaged content is content, too.
                    Err(LogError::Corrupt(_)) => {
                        wanted.blocks.insert(row.position, true);
                    }
                    Err(error) => return Err(error.into()),
                }
                addresses.insert((seq, index));
            }
        }
        Ok((addresses, wanted))
    }

    fn stream_events_of(
        &self,
        stream: StreamId,
        from: Seq,
    ) -> Result<Vec<Result<crate::event::Recorded, Error>>, Error> {
        let (places, _) = self.frames_of(&[stream], Seq(from.get().saturating_sub(1)))?;
        let mut found = Vec::new();
        for place in places {
            let frame = match self.frame_at(place.position) {
                Ok(frame) => frame,
                Err(Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error),
            };
            for event in frame.events().filter(|event| event.envelope.stream == stream) {
                found.extend(super::events::decode(&frame, &event).ok().map(Ok));
            }
        }
        Ok(found)
    }

    /// Every row after `after` up to `until` whose content is wanted.
    fn rows_with(&self, wanted: &mut Wanted, after: Seq, until: Seq) -> Result<Rows, Error> {
        let mut found = Rows::new();
        let head = self.log.refresh()?;
        for frame in self.log.frames_from(after.next(), head)? {
            let frame = match frame {
                Ok(frame) => frame,
                Err(LogError::Corrupt(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            if frame.header().first_seq > until {
                break;
            }
            for event in frame.events().filter(|event| event.seq > after && event.seq <= until) {
                for (index, row) in (0_u32..).zip(event.rows()) {
                    if wanted.holds(&self.log, &row)? {
                        found.insert((event.seq, index), (event.envelope.stream, row));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Records that these rows are erased. From here on no view shows them.
    fn record_erasure(&self, rows: &Rows, by: &str, reason: &str) -> Result<Seq, Error> {
        let addresses: Vec<BodyAddress> =
            rows.keys().map(|(seq, row)| BodyAddress { seq: *seq, row: *row }).collect();
        let drafts: Vec<EventDraft> = addresses
            .chunks(BODIES_PER_EVENT)
            .map(|bodies| {
                let payload =
                    Erased { bodies: bodies.to_vec(), by: by.to_owned(), reason: reason.to_owned() };
                let event = Event {
                    stream: StreamId::STORE,
                    origin: Origin::ZERO,
                    host_time: None,
                    stamp: Stamp { actor: Actor::User, ..Stamp::default() },
                    payload: payload.into(),
                };
                EventDraft { event, bodies: Vec::new() }
            })
            .collect();
        let drafts: Vec<&EventDraft> = drafts.iter().collect();
        Ok(self.append_drafts(&drafts, &[])?.first_seq)
    }

    fn describe_hit(&self, rows: &Rows, seeds: &BTreeSet<(Seq, u32)>) -> Result<Vec<ErasedContent>, Error> {
        let mut hit: BTreeMap<Seq, ErasedContent> = BTreeMap::new();
        for ((seq, row), (stream, body)) in rows {
            let content = hit.entry(*seq).or_insert(ErasedContent {
                seq: *seq,
                stream: *stream,
                item: None,
                bodies: 0,
                bytes: 0,
                equal: true,
            });
            content.bodies += 1;
            content.bytes = content.bytes.saturating_add(u64::from(body.bytes));
            content.equal &= !seeds.contains(&(*seq, *row));
        }
        let streams: BTreeSet<StreamId> = hit.values().map(|content| content.stream).collect();
        for stream in streams {
            let loaded = self.fold_once(stream)?;
            let loaded = loaded.read().unwrap_or_else(PoisonError::into_inner);
            let Some(state) = loaded.world.stream(stream) else { continue };
            for ix in state.items(state.head()) {
                let Some(item) = state.item_id(ix) else { continue };
                let finished = state.item(ix, state.head()).and_then(|view| view.finished);
                for seq in [Some(item.seq), finished].into_iter().flatten() {
                    if let Some(content) = hit.get_mut(&seq) {
                        content.item = content.item.or(Some(item));
                    }
                }
            }
        }
        Ok(hit.into_values().collect())
    }

    /// Forgets where contents are: what was erased must not be named again.
    fn forget_contents(&self) {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
