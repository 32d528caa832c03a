//! Events of this store as parcels.
//!
//! Values keyed with the secret are left out or made plain; events that were named by seq are named by id.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::codec::{BodyRow, EventRef, Frame};
use crate::error::Error;
use crate::event::wire::{self, Piece};
use crate::event::{Body, ERASED_TEXT, Payload, Recorded, Scope};
use crate::ids::{FactId, Origin, Seq, Signature, StreamId};
use crate::log::LogError;
use crate::text::pattern::Pattern;
use crate::travel::{End, FactRef, Gap, Heading, Parcel, Piece as Sent, Row};

use super::super::fetch::bare;
use super::super::{Inner, Store};
use super::Take;
use super::lineage::{Lineages, Namer};

impl Store {
    /// Everything that another store needs to make the same events: of these streams and those that they go on from, or of
    /// all, up to `until`.
    ///
    /// Damage is told of in its place, and the rest follows. Cost: two passes over the events of these streams (if something
    /// is damaged: over the log), one of them with all their bodies.
    ///
    /// # Errors
    /// The errors of `take`, [`Error::Io`], and [`Error::ReadOnly`] if the store's secret is lost: without it nothing says
    /// which events another store has.
    #[cfg_attr(not(feature = "internals"), doc(hidden))]
    pub fn parcels(&self, only: Option<&[StreamId]>, until: Seq, take: Take<'_>) -> Result<u64, Error> {
        let inner = &self.inner;
        if !inner.log.secret().is_known() {
            let detail = "its file `secret` is missing, without which no event can be told from another; put it back from a \
                          backup"
                .to_owned();
            return Err(Error::ReadOnly { path: inner.root.clone(), detail });
        }
        let (lineages, read) = match only.map(|only| inner.lineages_of(only, until)).transpose()?.flatten() {
            Some((lineages, read)) => (lineages, Some(read)),
            None => (inner.lineages(until, None)?, None),
        };
        take(Sent::Heading(Heading { store: self.id(), head: lineages.head }))?;
        let wanted = only.map(|only| lineages.with_ancestors(only));
        let mut packer = Packer {
            inner,
            is_whole: read.is_none(),
            lineages,
            namer: Namer::default(),
            keys: FxHashMap::default(),
            count: 0,
        };
        for frame in inner.frames_with(read.as_deref())? {
            match frame {
                Ok(frame) => packer.frame(&frame, wanted.as_ref(), take)?,
                Err(LogError::Corrupt(corruption)) => {
                    let detail = corruption.to_string();
                    inner.note_damage(detail.clone());
                    take(Sent::Gap(Gap { detail }))?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        take(Sent::End(End { events: packer.count }))?;
        Ok(packer.count)
    }
}

impl Lineages {
    fn with_ancestors(&self, only: &[StreamId]) -> FxHashSet<StreamId> {
        let mut all: FxHashSet<StreamId> = FxHashSet::default();
        let mut todo = only.to_vec();
        while let Some(stream) = todo.pop() {
            if all.insert(stream) {
                let parent = self.streams.get(&stream).and_then(|lineage| lineage.parent);
                todo.extend(parent.map(|(parent, _)| parent));
            }
        }
        all
    }
}

struct Packer<'a> {
    inner: &'a Inner,
    lineages: Lineages,
    /// Whether the histories of all streams are known, not only of those that are packed.
    is_whole: bool,
    namer: Namer,
    /// Events that hold the keys of streams.
    keys: FxHashMap<StreamId, crate::ids::BodyId>,
    count: u64,
}

impl Packer<'_> {
    fn frame(
        &mut self,
        frame: &Frame,
        wanted: Option<&FxHashSet<StreamId>>,
        take: Take<'_>,
    ) -> Result<(), Error> {
        let mut todo: Vec<(Recorded, FactId, EventRef<'_>)> = Vec::new();
        let told = self.told_in(frame)?;
        for event in frame.events().filter(|event| event.seq <= self.lineages.head) {
            // Ids of one stream do not hang on events of others.
            if wanted.is_some_and(|wanted| !wanted.contains(&event.envelope.stream)) {
                continue;
            }
            let recorded = match self.inner.decode(frame, &event) {
                Ok(recorded) => recorded,
                Err(Error::Corrupt { detail, .. }) => {
                    self.inner.note_damage(detail.clone());
                    take(Sent::Gap(Gap { detail }))?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let id = self.namer.name(&self.inner.log, &recorded, &event);
            todo.push((recorded, id, event));
        }
        // Bodies of a commit are read together.
        let mut rows: Vec<BodyRow> = Vec::new();
        let mut counts = Vec::with_capacity(todo.len());
        for (recorded, _, event) in &todo {
            let (count, texts) = count_bodies(recorded, event);
            rows.extend(event.rows().take(count));
            counts.push((count, self.erased_texts(event, texts)?));
        }
        let mut read = self.inner.log.bodies(&rows).into_iter().zip(rows);
        for ((recorded, id, _), (count, erased_texts)) in todo.into_iter().zip(counts) {
            let mut bodies = Vec::with_capacity(count);
            for (body, row) in read.by_ref().take(count) {
                bodies.push(match body {
                    Ok(bytes) => Row::Bytes(bytes.into()),
                    // A row that does not fit may be half zeroed.
                    Err(unread @ (LogError::Erased { .. } | LogError::Corrupt(_))) => {
                        let number = u32::try_from(bodies.len()).unwrap_or(u32::MAX);
                        match self.inner.erasure_of(recorded.seq, number) {
                            Ok(Some(erasure)) if !erasure.is_loss => Row::Erased(row.bytes),
                            Ok(Some(_)) => Row::Damaged(row.bytes),
                            Ok(None) | Err(Error::Corrupt { .. }) => {
                                self.inner.note_damage(unread.to_string());
                                Row::Damaged(row.bytes)
                            }
                            Err(error) => return Err(error),
                        }
                    }
                    Err(error) => return Err(error.into()),
                });
            }
            let happened_then = !told.contains(&recorded.event.stream);
            if let Some(sent) = self.parcel(recorded, id, (bodies, erased_texts), happened_then)? {
                self.count += u64::from(matches!(sent, Sent::Parcel(_)));
                take(sent)?;
            }
        }
        Ok(())
    }

    /// Streams for which a commit holds a host's data: times by its clock, or records. Events of such a commit that have no time were not
    /// recorded as they happened. For a part of a large frame, the other parts are looked at, too.
    fn told_in(&self, frame: &Frame) -> Result<FxHashSet<StreamId>, Error> {
        let mut streams: Vec<StreamId> = frame.events().map(|event| event.envelope.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        let parts = if frame.is_whole() {
            vec![frame.clone()]
        } else {
            match self.inner.log.parts_of(frame.position(), &streams, Seq::ZERO) {
                Ok(parts) => parts,
                // The damage is told of where the part itself is read.
                Err(LogError::Corrupt(_)) => vec![frame.clone()],
                Err(error) => return Err(error.into()),
            }
        };
        let mut told: FxHashSet<StreamId> = FxHashSet::default();
        for part in &parts {
            for event in part.events() {
                let stream = event.envelope.stream;
                if told.contains(&stream) {
                    continue;
                }
                // An event that does not decode is a gap.
                let is_record =
                    || bare(part, &event).is_ok_and(|recorded| recorded.event.stamp.wire.is_some());
                if event.envelope.host_time.is_some() || is_record() {
                    told.insert(stream);
                }
            }
        }
        Ok(told)
    }

    /// Those of an event's free texts that are on record as erased, with their lengths. Other texts may be the same word.
    fn erased_texts(&self, event: &EventRef<'_>, texts: Vec<(u32, Body)>) -> Result<Vec<(u32, u64)>, Error> {
        let mut erased = Vec::new();
        for (place, body) in texts {
            match self.inner.erasure_of(event.seq, body.first) {
                Ok(Some(erasure)) if !erasure.is_loss => {
                    erased.push((place, rows_of(event, body).map(|(_, row)| u64::from(row.bytes)).sum()));
                }
                Ok(_) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(erased)
    }

    /// The event as it travels; `None` if it is the store's own affair. `happened_then`: it was recorded as it happened.
    fn parcel(
        &mut self,
        recorded: Recorded,
        id: FactId,
        (mut bodies, erased_texts): (Vec<Row>, Vec<(u32, u64)>),
        happened_then: bool,
    ) -> Result<Option<Sent>, Error> {
        let Recorded { seq, recorded_at, event } = recorded;
        let secret = self.inner.log.secret();
        let mut payload = event.payload;
        match &mut payload {
            Payload::Erased(_) | Payload::DamageNoted(_) => return Ok(None),
            // A shredded event is gone on purpose, and is no gap.
            unreadable if unreadable.is_shredded() => return Ok(None),
            Payload::Unknown { number, .. } => {
                let detail = format!("event {seq} is of kind {number}, which a newer program recorded");
                return Ok(Some(Sent::Gap(Gap { detail })));
            }
            Payload::SessionOpened(opened) => {
                self.keys.insert(event.stream, opened.key.id(seq));
                (opened.key, opened.policy) = (Body::default(), None);
                bodies.clear();
            }
            // The digest is keyed: without the secret it is of no use.
            Payload::ContextServed(served) => served.digest = [0; 32],
            _ => {}
        }
        self.know_what_is_named(event.stream, &mut payload)?;
        let lineage = self.lineages.streams.get(&event.stream);
        // For a session's records without a time, the time of the import says nothing. Memory is dated by its recording.
        let is_session = lineage.is_some_and(|lineage| lineage.scope == Scope::Session);
        let is_dated = happened_then || !is_session;
        let mut refs = Refs::default();
        match &mut payload {
            Payload::Forked(forked) => forked.at = refs.place(self.lineages.point(forked.from, forked.at)),
            Payload::Rewound(rewound) => {
                rewound.to = refs.place(self.lineages.point(event.stream, rewound.to));
            }
            other => {
                let lost = FactRef { stream: event.stream, id: FactId::ZERO };
                other.items_mut(&mut |item| {
                    item.seq = refs.place(self.lineages.named(event.stream, item.seq).unwrap_or(lost));
                    true
                });
            }
        }
        if let Some(template) = event.stamp.wire {
            plain_template(template, &mut bodies, &|origin| Origin(secret.plain(origin).0));
        }
        let patterns = self.patterns(event.stream, &mut payload, &bodies)?;
        Ok(Some(Sent::Parcel(Box::new(Parcel {
            stream: event.stream,
            id,
            seq,
            recorded_at,
            time: event.host_time.or(is_dated.then_some(recorded_at)),
            actor: event.stamp.actor,
            told: event.stamp.revision != 0 && !event.origin.is_zero() && secret.plain(event.origin) == id,
            wire: event.stamp.wire,
            refs: refs.all,
            patterns,
            event: payload,
            bodies,
            erased_texts,
        }))))
    }

    /// Learns the histories of all streams if an event names an event of a stream that its own stream does not go on from. Few do.
    fn know_what_is_named(&mut self, stream: StreamId, payload: &mut Payload) -> Result<(), Error> {
        if self.is_whole {
            return Ok(());
        }
        let mut is_known = match payload {
            Payload::Forked(forked) => self.lineages.streams.contains_key(&forked.from),
            _ => true,
        };
        payload.items_mut(&mut |item| {
            is_known &= self.lineages.named(stream, item.seq).is_some();
            true
        });
        if !is_known {
            self.lineages = self.inner.lineages(self.lineages.head, None)?;
            self.is_whole = true;
        }
        Ok(())
    }

    /// The patterns behind the signatures of an act.
    fn patterns(
        &self,
        stream: StreamId,
        payload: &mut Payload,
        bodies: &[Row],
    ) -> Result<Vec<(Signature, String)>, Error> {
        let targets = match payload {
            Payload::Discarded(discarded) => discarded.targets,
            Payload::Distilled(distilled) => distilled.targets,
            _ => return Ok(Vec::new()),
        };
        let mut wanted = Vec::new();
        payload.signatures_mut(&mut |signature| wanted.push(*signature));
        let (Some(Row::Bytes(targets)), Some(key)) =
            (bodies.get(targets.first as usize), self.keys.get(&stream))
        else {
            return Ok(Vec::new());
        };
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let key = match self.inner.body(*key) {
            Ok(key) => key,
            Err(Error::Erased { .. } | Error::Corrupt { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let Ok(key) = <[u8; 32]>::try_from(key.as_slice()) else { return Ok(Vec::new()) };
        let signer = self.inner.signer_with(&key);
        // Targets that are no list have no patterns to sign.
        let typed: Vec<Vec<String>> = serde_json::from_slice(targets).unwrap_or_default();
        let patterns = typed.iter().filter_map(|target| Pattern::parse(target.first()?));
        let signed = patterns.map(|pattern| {
            let text = pattern.normalised().to_owned();
            (signer.text("pattern", &text), text)
        });
        Ok(signed.filter(|(signature, _)| wanted.contains(signature)).collect())
    }
}

/// The rows of a body of an event, with their numbers.
pub(super) fn rows_of(event: &EventRef<'_>, body: Body) -> impl Iterator<Item = (u32, BodyRow)> {
    (body.first..body.first.saturating_add(body.chunks))
        .filter_map(|number| Some((number, event.row(number as usize)?)))
}

/// How many of an event's rows are not free texts: those stand behind all others. And the bodies of free texts that read as erased, each
/// with its place among the free texts.
fn count_bodies(recorded: &Recorded, event: &EventRef<'_>) -> (usize, Vec<(u32, Body)>) {
    let (mut count, mut erased) = (event.row_count(), Vec::new());
    if recorded.event.payload.may_have_texts() {
        let mut places = 0_u32..;
        recorded.event.payload.clone().texts_mut(&mut |text| {
            let (place, body) = (places.next(), text.body());
            if body.chunks > 0 {
                count = count.min(body.first as usize);
                erased.extend(place.filter(|_| text == ERASED_TEXT).map(|place| (place, body)));
            }
        });
    }
    (count, erased)
}

/// The events that an event names, each once.
#[derive(Default)]
struct Refs {
    all: Vec<FactRef>,
    places: FxHashMap<FactRef, Seq>,
}

impl Refs {
    fn place(&mut self, fact: FactRef) -> Seq {
        let all = &mut self.all;
        *self.places.entry(fact).or_insert_with(|| {
            all.push(fact);
            Seq(all.len() as u64)
        })
    }
}

/// Puts other origins into the rows of a record's template. Their places and lengths stay; a template with a row that is not there
/// stays as it is.
pub(super) fn plain_template(template: Body, rows: &mut [Row], other: &dyn Fn(Origin) -> Origin) {
    let range = template.first as usize..template.first.saturating_add(template.chunks) as usize;
    let Some(rows) = rows.get_mut(range) else { return };
    let mut bytes = Vec::new();
    for row in rows.iter() {
        let Row::Bytes(chunk) = row else { return };
        bytes.extend_from_slice(chunk);
    }
    let Ok(pieces) = wire::pieces(&bytes) else { return };
    if !pieces.iter().any(|piece| matches!(piece, Piece::Record(_))) {
        return;
    }
    let mut changed = Vec::with_capacity(bytes.len());
    for piece in pieces {
        match piece {
            Piece::Record(origin) => wire::push(&mut changed, &Piece::Record(other(origin))),
            piece => wire::push(&mut changed, &piece),
        }
    }
    let mut rest = changed.as_slice();
    for row in rows {
        let Row::Bytes(chunk) = row else { return };
        let Some((own, after)) = rest.split_at_checked(chunk.len()) else { return };
        (*chunk, rest) = (own.into(), after);
    }
}
