//! Erasing an item's content for good, with all equal content.
//!
//! ```text
//! bodies of the item -> equal bodies anywhere, and the host's records that quote them -> Erased, durable: no view shows them
//!                    -> zeros in place -> what was hit
//! ```
//!
//! Events that were recorded during the search are searched too, until nothing new is found. A later commit that would name a
//! stored body is refused by the log, and stores the body anew (`writer`).
//!
//! These stay: the record of the erasure, digests that cannot be matched without the store's secret, lengths, ids, names of tools,
//! paths, and all quotations in other bodies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rustc_hash::FxHashSet;

use crate::codec::{BodyRow, Frame};
use crate::command::draft::EventDraft;
use crate::error::Error;
use crate::event::{Actor, Body, BodyAddress, ERASED_TEXT, Erased, Payload};
use crate::fold::ItemView;
use crate::ids::{BodyId, ItemId, Seq, StreamId};
use crate::log::{ERASING, ErasedFigures, Erasing, LogError};
use crate::storage::{Access, FileStorage, Storage as _};
use crate::text::one_spelling;
use crate::text::signature::is_masked;
use crate::verify::{recorded_addresses, recorded_erasures};

use super::wanted::{ErasureTargets, FAR_BYTES_MIN, holds_stretch};
use super::{Store, StoreInner};

/// Most bodies that one event names.
const BODIES_PER_EVENT: usize = 4096;
/// Shorter labels (titles, categories and the like) are erased alone, not with all equal ones.
const LABEL_BYTES_MIN: usize = 8;
/// Contents with fewer letters and digits say nothing.
const WITHHELD_LETTERS_MIN: usize = 3;
/// Most rounds of searching events that were recorded meanwhile.
const ROUND_COUNT_MAX: usize = 16;
/// Longest name or reason that is recorded.
pub const ERASE_REASON_BYTES_MAX: usize = 4096;

/// Why content was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErasedWhy {
    /// The erasure asked for this content.
    Asked,
    /// The content equals content that was asked for.
    Equal,
    /// The content is a host's record that quotes such content.
    Record,
}

/// Content that an erasure hit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ErasedContent {
    /// The event that named it.
    pub seq: Seq,
    /// Its stream.
    pub stream: StreamId,
    /// The item that rests on it, if one does.
    pub item: Option<ItemId>,
    /// Why it was hit.
    pub why: ErasedWhy,
    /// Number of bodies.
    pub bodies: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The effect of an erasure, or of one that would be made now.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[must_use]
pub struct EraseReport {
    /// The item that was asked for.
    pub item: ItemId,
    /// The event that records it; absent if nothing was left to erase, and in a preview.
    pub recorded: Option<Seq>,
    /// Everything that was hit, in the order of the log.
    pub hit: Vec<ErasedContent>,
    /// Keys of the items asked for that stay in any case: paths.
    pub keys_kept: Vec<String>,
    /// Figures of the change on the disk.
    #[serde(flatten)]
    pub figures: ErasedFigures,
}

/// A row of a body that is hit.
#[derive(Debug, Clone, Copy)]
struct ErasedRow {
    stream: StreamId,
    row: BodyRow,
    why: ErasedWhy,
}

/// A row of an item's events.
struct OwnRow {
    address: (Seq, u32),
    row: BodyRow,
    /// Its content; `None`: damaged.
    body: Option<Vec<u8>>,
    /// Not the template of a host's record.
    is_text: bool,
    is_label: bool,
    is_params: bool,
}

/// Hits by the event that names them and its row.
type Hits = BTreeMap<(Seq, u32), ErasedRow>;

/// Records an erasure's events together with others, as one commit; the seq of the erasure.
pub(super) type RecordWith<'a> = &'a dyn Fn(&[EventDraft]) -> Result<Option<Seq>, Error>;

impl Store {
    /// Erases the content of an item (or of an event that made none) for good: all bodies of the events that made, revised and
    /// finished it, every body with equal bytes anywhere in the store, and the hosts' records that quote either. No view shows
    /// any of it once the event is recorded; when this returns the bytes are nowhere in the folder.
    ///
    /// Equal content is not stored again, from whichever source and in whichever spelling of JSON it comes, nor in a todo: a substitute is stored. Not covered: ids, names of tools, paths,
    /// lengths, and quotations inside other bodies. Torn bytes set aside and snapshots are removed as a whole.
    ///
    /// Cost: one pass over all spines, a read of every body as long as an erased one and, for a text of 48 bytes or more, of every host's record;
    /// a fold of every stream that was hit.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such event, [`Error::TooLarge`] for a reason that is too long, [`Error::Busy`] while
    /// another process seals or erases, [`Error::ReadOnly`], [`Error::NoSpace`], [`Error::Poisoned`], [`Error::Io`]. Once the
    /// erasure is recorded, the next process that opens the store ends it.
    #[cfg_attr(
        feature = "tracing",
        tracing::instrument(name = "acpdb.erase", level = "debug", skip_all, err(level = "debug"))
    )]
    pub fn erase(&self, item: ItemId, by: &str, reason: &str) -> Result<EraseReport, Error> {
        self.erase_wanted(item, (by, reason), &|inner| inner.wanted(item), None)
    }

    /// Erases the content that `wanted` finds. `wanted` is called once the erasure may begin. `with`: records the first of its events; the
    /// others, of content that came meanwhile, are recorded alone.
    pub(super) fn erase_wanted(
        &self,
        item: ItemId,
        (by, reason): (&str, &str),
        wanted: &dyn Fn(&StoreInner) -> Result<ErasureTargets, Error>,
        with: Option<RecordWith<'_>>,
    ) -> Result<EraseReport, Error> {
        let inner = &self.inner;
        inner.check_writable()?;
        check_reason(by, reason)?;
        let (by, reason) = (inner.cleaned(by), inner.cleaned(reason));
        let erasing = inner.log.begin_erasing()?;
        // Called once other erasures have ended, so that events recorded meanwhile are looked at, too.
        let mut wanted = match wanted(inner) {
            Ok(wanted) => wanted,
            Err(error) => {
                inner.give_up(erasing);
                return Err(error);
            }
        };
        let mut hits = Hits::new();
        let mut recorded = None;
        if let Err(error) = inner.record_all(&mut wanted, (&by, &reason), with, &mut hits, &mut recorded) {
            inner.give_up(erasing);
            return Err(error);
        }
        let mut rows: Vec<BodyRow> = hits.values().map(|hit| hit.row).collect();
        // Also the rows of an earlier erasure that did not end.
        rows.extend(recorded_erasures(&inner.log, erasing.after)?);
        let figures = if rows.is_empty() { ErasedFigures::default() } else { erasing.zero(&rows)? };
        erasing.end()?;
        let (hit, keys_kept) = inner.describe_hits(&hits)?;
        Ok(EraseReport { item, recorded, hit, keys_kept, figures })
    }

    /// The content that [`Store::erase`] would hit now. Changes nothing.
    ///
    /// Cost: as of an erasure.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such event; [`Error::Io`].
    pub fn erase_preview(&self, item: ItemId) -> Result<EraseReport, Error> {
        self.preview_wanted(item, self.inner.wanted(item)?)
    }

    /// The content that [`Store::erase_wanted`] would hit.
    pub(super) fn preview_wanted(
        &self,
        item: ItemId,
        mut wanted: ErasureTargets,
    ) -> Result<EraseReport, Error> {
        let inner = &self.inner;
        let until = inner.log.refresh()?.seq;
        let hits = inner.hits(&mut wanted, Seq::ZERO, until)?;
        let (hit, keys_kept) = inner.describe_hits(&hits)?;
        Ok(EraseReport { item, recorded: None, hit, keys_kept, figures: ErasedFigures::default() })
    }
}

/// Refuses a name or a reason that is too long.
pub(super) fn check_reason(by: &str, reason: &str) -> Result<(), Error> {
    for text in [by, reason] {
        if text.len() > ERASE_REASON_BYTES_MAX {
            let (actual, limit) = (text.len() as u64, ERASE_REASON_BYTES_MAX as u64);
            return Err(Error::TooLarge { what: "reason of an erasure", actual, limit });
        }
    }
    Ok(())
}

/// Whether the store in a folder has an erasure that was begun and has not ended. Opening the store for writing ends the
/// erasure; if that does not help, the disk is full or the folder holds something that the store did not make.
pub fn erasure_is_pending(folder: &Path) -> bool {
    FileStorage::new(folder).read_only().open(ERASING, Access::Read).is_ok()
}

impl StoreInner {
    /// Records the erasure of wanted content, until nothing new is found.
    fn record_all<'a>(
        &self,
        wanted: &mut ErasureTargets,
        (by, reason): (&'a str, &'a str),
        mut with: Option<RecordWith<'_>>,
        hits: &mut Hits,
        recorded: &mut Option<Seq>,
    ) -> Result<(), Error> {
        // The record must not say what it erases.
        let kept = |text: &'a str| if wanted.knows(text.as_bytes()) { ERASED_TEXT } else { text };
        let (by, reason) = (kept(by), kept(reason));
        let mut after = wanted.begins_after();
        for _ in 0..ROUND_COUNT_MAX {
            let until = self.log.refresh()?.seq;
            let mut fresh = self.hits(wanted, after, until)?;
            fresh.retain(|address, _| !hits.contains_key(address));
            if fresh.is_empty() {
                break;
            }
            let addresses: Vec<BodyAddress> =
                fresh.keys().map(|(seq, row)| BodyAddress { seq: *seq, row: *row }).collect();
            let drafts = erasure_drafts(&addresses, self.contents_of(&fresh, wanted)?, by, reason);
            // From here on no view shows them.
            let seq = match with.take() {
                Some(record) => record(&drafts)?,
                None => Some(self.append_drafts(&drafts)?.first_seq),
            };
            *recorded = recorded.or(seq);
            hits.extend(fresh);
            // Between the search and the record another process may have written the same content again, or half of a host's record.
            after = until.before();
        }
        Ok(())
    }

    /// Removes the note of an erasure that failed, if nothing of it is on record. A record may be written although its commit failed; if that is
    /// so, or is not known, the note stays, and the next opening ends the erasure.
    pub(super) fn give_up(&self, erasing: Erasing<'_>) {
        // Under the write lock every written record counts.
        let is_settled = self.log.exclusive().map(drop).is_ok();
        if is_settled && recorded_addresses(&self.log, erasing.after).is_ok_and(|records| records.is_empty())
        {
            erasing.give_up();
        }
    }

    /// The bodies that an item rests on, with their contents.
    fn wanted(&self, item: ItemId) -> Result<ErasureTargets, Error> {
        let mut wanted = ErasureTargets::default();
        self.each_own_row(item, &mut |own| {
            // A short label is no secret if others use it, too.
            let body =
                own.body.filter(|body| own.is_text && (!own.is_label || body.len() >= LABEL_BYTES_MIN));
            wanted.add(own.address, &own.row, body);
        })?;
        Ok(wanted)
    }

    /// The rows of an item, beside its parameters, that hold one of these stretches of its text, such as the host's record of it. A row that
    /// cannot be read may hold one.
    pub(super) fn rows_with(&self, item: ItemId, stretches: &[String]) -> Result<Vec<BodyAddress>, Error> {
        let mut rows = Vec::new();
        self.each_own_row(item, &mut |own| {
            // A short label is no copy of a text, and others may use it, too.
            let is_short_label =
                own.is_label && own.body.as_ref().is_some_and(|body| body.len() < LABEL_BYTES_MIN);
            let may_hold = !own.is_params && !is_short_label;
            let holds_one = |body: Vec<u8>| stretches.iter().any(|it| holds_stretch(&body, it.as_bytes()));
            if may_hold && own.body.is_none_or(holds_one) {
                rows.push(BodyAddress { seq: own.address.0, row: own.address.1 });
            }
        })?;
        Ok(rows)
    }

    /// Every row of an item's events that is not erased.
    fn each_own_row(&self, item: ItemId, take: &mut dyn FnMut(OwnRow)) -> Result<(), Error> {
        let missing = || Error::NotFound { what: "event", name: item.to_string(), nearest: None };
        // Another process may have recorded the item.
        self.refresh()?;
        let recorded = self.event(item.seq)?.ok_or_else(missing)?;
        let stream = recorded.event.stream;
        let mut seqs = vec![item.seq];
        // If an event made several items: the rows of one item only, unless they cannot be told apart.
        let mut only: Option<Vec<BodyId>> = None;
        {
            let loaded = self.fold_once(stream)?;
            if let Some(state) = loaded.world.stream(stream) {
                let view = state.find(item).and_then(|ix| state.item(ix, state.head()));
                seqs.extend(view.as_ref().and_then(|view| view.finished));
                if state.items_of_event(item.seq).count() > 1 {
                    only = own_parts(&recorded.event.payload, item);
                }
            }
        }
        seqs.extend(self.revisions_of(stream, item)?);
        for seq in seqs {
            let Some(frame) = self.frame_of(seq)? else { continue };
            let Some(event) = frame.event(seq) else { continue };
            let recorded = match super::fetch::bare(&frame, &event) {
                Err(error @ Error::Io { .. }) => return Err(error),
                // An event that cannot be decoded is not known to have labels or a host's record: all its rows are erased.
                decoded => decoded.ok(),
            };
            let wire = recorded.as_ref().and_then(|it| it.event.stamp.wire);
            let params = recorded.as_ref().and_then(|it| match &it.event.payload {
                Payload::ToolCallStarted(started) => Some(started.params),
                _ => None,
            });
            // As above.
            let labels = recorded.map(|it| text_rows(it.event.payload)).unwrap_or_default();
            for (index, row) in (0_u32..).zip(event.rows()) {
                let is_template = wire.is_some_and(|wire| covers(&wire, index));
                let own = |bodies: &Vec<BodyId>| {
                    bodies
                        .iter()
                        .any(|body| (body.first..body.first.saturating_add(body.chunks)).contains(&index))
                };
                if seq == item.seq && !is_template && only.as_ref().is_some_and(|only| !own(only)) {
                    continue;
                }
                let body = match self.log.body(&row) {
                    Ok(body) => Some(body),
                    Err(LogError::Erased { .. }) => continue,
                    // Damaged content is content, too.
                    Err(LogError::Corrupt(_)) => None,
                    Err(error) => return Err(error.into()),
                };
                take(OwnRow {
                    address: (seq, index),
                    row,
                    body,
                    is_text: !is_template,
                    is_label: labels.contains(&index),
                    is_params: params.is_some_and(|params| covers(&params, index)),
                });
            }
        }
        Ok(())
    }

    /// The events that revised an item, rising.
    pub(super) fn revisions_of(&self, stream: StreamId, item: ItemId) -> Result<Vec<Seq>, Error> {
        let mut seqs = Vec::new();
        let (places, _) = self.frames_of(&[stream], item.seq.before())?;
        for place in places {
            if let Some(frame) = self.sound_frame_at(place.position)? {
                for event in frame.events().filter(|event| event.envelope.stream == stream) {
                    match super::fetch::bare(&frame, &event).map(|it| it.event.payload) {
                        Ok(Payload::ItemRevised(revised)) if revised.item == item => seqs.push(event.seq),
                        Err(error @ Error::Io { .. }) => return Err(error),
                        // An event that cannot be decoded shows no text.
                        Ok(_) | Err(_) => {}
                    }
                }
            }
        }
        Ok(seqs)
    }

    /// Every row after `after` up to `until` whose content is wanted, and the hosts' records that quote it.
    fn hits(&self, wanted: &mut ErasureTargets, after: Seq, until: Seq) -> Result<Hits, Error> {
        let mut found = Hits::new();
        if wanted.is_empty() {
            return Ok(found);
        }
        let head = self.log.refresh()?;
        // A host's record may be in the commit before or after the commit of the content that it quotes.
        let (mut before, mut hit_before): (Option<Frame>, bool) = (None, false);
        let may_be_far = wanted.has_long_texts();
        for frame in self.log.frames_from(after.next(), head)? {
            let frame = match frame {
                Ok(frame) => frame,
                // No answer shows the content of a damaged frame, and it stays on the disk.
                Err(error @ LogError::Corrupt(_)) => {
                    self.note_damage(error.to_string());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if frame.header().first_seq > until {
                break;
            }
            let count = found.len();
            for event in frame.events().filter(|event| event.seq > after && event.seq <= until) {
                let stream = event.envelope.stream;
                for (index, row) in (0_u32..).zip(event.rows()) {
                    if wanted.holds(&self.log, &row)? {
                        let asked = wanted.is_asked((event.seq, index));
                        let why = if asked { ErasedWhy::Asked } else { ErasedWhy::Equal };
                        found.insert((event.seq, index), ErasedRow { stream, row, why });
                    }
                }
            }
            let hit = found.len() > count;
            if hit || hit_before {
                self.records_in(&frame, wanted, 0, &mut found)?;
            } else if may_be_far {
                self.records_in(&frame, wanted, FAR_BYTES_MIN, &mut found)?;
            }
            if let Some(before) = before.filter(|_| hit && !hit_before) {
                self.records_in(&before, wanted, 0, &mut found)?;
            }
            (before, hit_before) = (Some(frame), hit);
        }
        Ok(found)
    }

    /// Adds the hosts' records in a commit that quote wanted content.
    fn records_in(
        &self,
        frame: &Frame,
        wanted: &ErasureTargets,
        bytes_min: usize,
        found: &mut Hits,
    ) -> Result<(), Error> {
        for event in frame.events() {
            let recorded = match super::fetch::bare(frame, &event) {
                Ok(recorded) => recorded,
                Err(error @ Error::Io { .. }) => return Err(error),
                Err(error) => {
                    self.note_damage(format!("whether {} quotes what is erased: {error}", event.seq));
                    continue;
                }
            };
            let Some(wire) = recorded.event.stamp.wire else { continue };
            let template = match self.body_in(frame, wire.id(event.seq)) {
                Ok(template) => template,
                Err(Error::Erased { .. } | Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error),
            };
            if !wanted.is_quoted_in(&template, bytes_min) {
                continue;
            }
            for index in wire.first..wire.first.saturating_add(wire.chunks) {
                let Some(row) = event.row(index as usize) else { continue };
                let hit = ErasedRow { stream: event.envelope.stream, row, why: ErasedWhy::Record };
                found.entry((event.seq, index)).or_insert(hit);
            }
        }
        Ok(())
    }

    /// The keys by which the contents of these rows are remembered, so that they are refused when they come again; each key
    /// once. There are at most two for a row. Damaged content cannot be remembered.
    fn contents_of(&self, hits: &Hits, wanted: &ErasureTargets) -> Result<Vec<[u8; 16]>, Error> {
        let (mut places, mut contents) = (FxHashSet::default(), BTreeSet::new());
        for hit in hits.values() {
            if !places.insert(hit.row.place) {
                continue;
            }
            match self.log.body(&hit.row) {
                Ok(body) if wanted.knows(&body) && is_worth_withholding(&body) => {
                    contents.insert(self.log.secret().erased(&body));
                    contents.extend(one_spelling(&body).map(|it| self.log.secret().erased(it.as_bytes())));
                }
                Ok(_) | Err(LogError::Corrupt(_) | LogError::Erased { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(contents.into_iter().collect())
    }

    /// The hits, by event and item, and the keys of the items asked for.
    fn describe_hits(&self, hits: &Hits) -> Result<(Vec<ErasedContent>, Vec<String>), Error> {
        let mut streams: BTreeMap<StreamId, Vec<(Seq, u32)>> = BTreeMap::new();
        for (address, hit) in hits {
            streams.entry(hit.stream).or_default().push(*address);
        }
        let mut items: BTreeMap<(Seq, u32), ItemId> = BTreeMap::new();
        let mut keys: Vec<String> = Vec::new();
        let is_asked =
            |address: &(Seq, u32)| hits.get(address).is_some_and(|hit| hit.why == ErasedWhy::Asked);
        for (stream, addresses) in streams {
            let loaded = self.fold_once(stream)?;
            let Some(state) = loaded.world.stream(stream) else { continue };
            for view in state.items(state.head()).filter_map(|ix| state.item(ix, state.head())) {
                let mut asked = false;
                for body in bodies_of(&view) {
                    for row in body.first..body.first.saturating_add(body.chunks) {
                        if addresses.binary_search(&(body.seq, row)).is_ok() {
                            items.entry((body.seq, row)).or_insert(view.item);
                            asked |= is_asked(&(body.seq, row));
                        }
                    }
                }
                if asked {
                    let plain = view.keys.iter().filter(|key| !is_masked(key));
                    keys.extend(plain.map(ToString::to_string));
                }
            }
        }
        let mut told: BTreeMap<(Seq, Option<ItemId>), ErasedContent> = BTreeMap::new();
        for (address, hit) in hits {
            let (seq, item) = (address.0, items.get(address).copied());
            let content = told.entry((seq, item)).or_insert(ErasedContent {
                seq,
                stream: hit.stream,
                item,
                why: hit.why,
                bodies: 0,
                bytes: 0,
            });
            content.why = content.why.min(hit.why);
            content.bodies += 1;
            content.bytes = content.bytes.saturating_add(u64::from(hit.row.bytes));
        }
        keys.dedup();
        Ok((told.into_values().collect(), keys))
    }
}

/// The events which say that the rows at these addresses are erased, with the keys of contents that must not come again.
pub(super) fn erasure_drafts(
    addresses: &[BodyAddress],
    mut contents: Vec<[u8; 16]>,
    by: &str,
    reason: &str,
) -> Vec<EventDraft> {
    let draft = |bodies: &[BodyAddress], contents: Vec<[u8; 16]>| {
        let erased = Erased { bodies: bodies.to_vec(), by: by.to_owned(), reason: reason.into(), contents };
        EventDraft::of_store(erased, Actor::User)
    };
    // A row has at most two of them.
    let chunks = addresses.chunks(BODIES_PER_EVENT / 2);
    chunks
        .map(|bodies| {
            let count = contents.len().min(BODIES_PER_EVENT);
            draft(bodies, contents.drain(..count).collect())
        })
        .collect()
}

/// Whether a content has to be refused when it comes again: not the signs of an empty object, nor a word of JSON.
fn is_worth_withholding(content: &[u8]) -> bool {
    let content = content.trim_ascii();
    let letters = content.iter().filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    letters.count() >= WITHHELD_LETTERS_MIN && ![&b"true"[..], b"false", b"null"].contains(&content)
}

/// The rows of an event's free texts, such as titles and categories.
fn text_rows(mut payload: Payload) -> Vec<u32> {
    let mut rows = Vec::new();
    payload.texts_mut(&mut |text| {
        let body = text.body();
        rows.extend(body.first..body.first.saturating_add(body.chunks));
    });
    rows
}

fn covers(body: &Body, row: u32) -> bool {
    (body.first..body.first.saturating_add(body.chunks)).contains(&row)
}

/// The bodies of one of several items that an event made; `None` if they cannot be told apart.
fn own_parts(payload: &Payload, item: ItemId) -> Option<Vec<BodyId>> {
    let parts = match payload {
        Payload::MessageRecorded(message) => &message.parts,
        Payload::MessageContinued(message) => &message.parts,
        _ => return None,
    };
    let part = parts.get(usize::try_from(item.part.checked_sub(1)?).ok()?)?;
    Some([Some(part.body), part.signature].into_iter().flatten().map(|body| body.id(item.seq)).collect())
}

/// The bodies that an item rests on.
fn bodies_of(view: &ItemView) -> impl Iterator<Item = BodyId> + '_ {
    let parts = view.content.iter().flat_map(|part| [Some(part.body), part.signature]);
    parts.chain([view.params, view.details, view.provider_signature]).flatten()
}
