//! Facts of another store in the words of its host: payload and texts become an entry.

use std::cell::{Cell, RefCell};

use crate::entry::fact::{self, Fact, ForeignValues};
use crate::entry::{Bytes, Entry, ItemRef, MemoryEntry, PartEntry, PointRef, TodoChangeEntry, WirePiece};
use crate::error::Error;
use crate::event::wire::{self, TemplatePiece};
use crate::event::{
    Body, DAMAGED_TEXT, ERASED_TEXT, ItemRevised, MemoryRecorded, Part, Payload, Recorded, Text, TodoChange,
};
use crate::ids::{FactId, ItemId, Micros, Seq, StreamId};

use super::super::Store;
use super::{ForeignEvent, StoreImporter, origin_of};

/// The texts of one event. One that is gone is a word.
pub(super) struct EventTexts<'a> {
    source: &'a Store,
    seq: Seq,
    erased: Cell<u64>,
    damaged: Cell<u64>,
    error: RefCell<Option<Error>>,
}

impl<'a> EventTexts<'a> {
    pub(super) fn new(source: &'a Store, seq: Seq) -> Self {
        Self { source, seq, erased: Cell::new(0), damaged: Cell::new(0), error: RefCell::new(None) }
    }

    pub(super) fn bytes(&self, body: &Body) -> Vec<u8> {
        self.or(body, ERASED_TEXT.as_bytes())
    }

    /// As [`EventTexts::bytes`], of JSON, which stays JSON.
    fn json(&self, body: &Body) -> Bytes {
        self.or(body, br#"{"erased":true}"#).into()
    }

    fn or(&self, body: &Body, erased: &[u8]) -> Vec<u8> {
        match self.source.inner.body(body.id(self.seq)) {
            Ok(bytes) => bytes,
            Err(Error::Erased { lost: false, .. }) => {
                self.erased.set(self.erased.get() + 1);
                erased.to_vec()
            }
            Err(Error::Erased { .. } | Error::Corrupt { .. }) => {
                self.damaged.set(self.damaged.get() + 1);
                DAMAGED_TEXT.as_bytes().to_vec()
            }
            Err(error) => {
                self.error.borrow_mut().get_or_insert(error);
                Vec::new()
            }
        }
    }

    fn parts(&self, parts: &[Part]) -> Vec<PartEntry> {
        let part = |part: &Part| PartEntry {
            kind: part.kind,
            bytes: self.bytes(&part.body).into(),
            media_type: part.media_type.clone(),
            signature: part.signature.as_ref().map(|body| self.bytes(body).into()),
        };
        parts.iter().map(part).collect()
    }

    /// Texts that were erased there.
    pub(super) fn erased(&self) -> u64 {
        self.erased.get()
    }

    fn is_whole(&self) -> bool {
        self.erased.get() + self.damaged.get() == 0
    }

    /// The error of reading, if there was one. Damage and erasures are none.
    pub(super) fn error(self) -> Result<(), Error> {
        self.error.into_inner().map_or(Ok(()), Err)
    }
}

/// The words of a fact as told so far: a text for each of its items, some of them emptied.
pub(super) struct FactTelling {
    entry: Entry,
    is_whole: bool,
    /// The items there, with their texts.
    parts: Vec<(ItemId, Option<PartEntry>)>,
}

impl FactTelling {
    pub(super) fn new(entry: &Entry, is_whole: bool, seq: Seq) -> Self {
        let parts = match &entry.fact {
            Fact::MessageRecorded(fact::MessageRecorded { parts, .. })
            | Fact::MessageContinued(fact::MessageContinued { parts, .. }) => parts.as_slice(),
            _ => &[],
        };
        let items = (1..).zip(parts).map(|(part, text)| (ItemId { seq, part }, Some(text.clone())));
        Self { entry: entry.clone(), is_whole, parts: items.collect() }
    }

    fn entry(&self, fact: FactId) -> Entry {
        let mut entry = self.entry.clone();
        match &mut entry.fact {
            Fact::MessageRecorded(fact::MessageRecorded { parts, .. })
            | Fact::MessageContinued(fact::MessageContinued { parts, .. }) => {
                *parts = self.parts.iter().filter_map(|(_, text)| text.clone()).collect();
            }
            _ => {}
        }
        entry.origin = Some(origin_of(fact, self.is_whole));
        entry
    }
}

impl StoreImporter<'_> {
    /// The entry of a fact; and whether all of its words are there, so that they can be compared with a host's.
    pub(super) fn entry(
        &mut self,
        recorded: &Recorded,
        fact: FactId,
    ) -> Result<Option<(Entry, bool)>, Error> {
        let texts = EventTexts::new(self.source, recorded.seq);
        let stream = recorded.event.stream;
        let Some((words, can_compare)) = self.words(recorded, fact, &texts)? else { return Ok(None) };
        let mut entry = Entry::from(words);
        // An event without a revision is an act: no host tells of it.
        let is_told = recorded.event.stamp.revision != 0 && !recorded.event.origin.is_zero();
        let is_memory = matches!(entry.fact, Fact::Memory(_));
        entry.host_time = self.time(recorded).or(is_memory.then_some(recorded.recorded_at));
        entry.actor = Some(recorded.event.stamp.actor);
        entry.wire = self.wire(recorded, &texts);
        let is_whole = can_compare && is_told && texts.is_whole();
        entry.origin = Some(origin_of(fact, is_whole));
        if !texts.is_whole() {
            entry.wire.clear();
        }
        self.report.texts_erased += texts.erased();
        if texts.damaged.get() > 0 {
            self.report.leave_out(format!("texts of event {} of {stream}, which are damaged", recorded.seq));
        }
        texts.error()?;
        Ok(Some((entry, is_whole)))
    }

    fn wire(&self, recorded: &Recorded, texts: &EventTexts<'_>) -> Vec<WirePiece> {
        let Some(template) = recorded.event.stamp.wire else { return Vec::new() };
        let bytes = texts.bytes(&template);
        // A template that is gone is no template.
        let pieces = wire::pieces(&bytes).unwrap_or_default().into_iter().map(|piece| match piece {
            TemplatePiece::Literal(bytes) => WirePiece::Literal(bytes.to_vec()),
            TemplatePiece::Body { first, rows, escaped } => {
                let bytes: Bytes = texts.bytes(&Body { first, chunks: rows, ..Body::default() }).into();
                if escaped { WirePiece::Escaped(bytes) } else { WirePiece::Raw(bytes) }
            }
            TemplatePiece::Record(origin) => {
                WirePiece::Record(origin_of(self.source.inner.log.secret().plain(origin), true))
            }
        });
        pieces.collect()
    }

    /// The fact of a host; and whether nothing in it depends on where it stands. `None`: it is no fact of a host.
    fn words(
        &mut self,
        recorded: &Recorded,
        fact: FactId,
        texts: &EventTexts<'_>,
    ) -> Result<Option<(Fact, bool)>, Error> {
        let stream = recorded.event.stream;
        let is_known = self.streams.get(&stream).is_some_and(|stream| stream.is_known);
        if is_known && matches!(recorded.event.payload, Payload::SessionChanged(_)) {
            // This store's session has a title and a folder of its own.
            return Ok(None);
        }
        let mut here = Here { import: self, texts, recorded, fact, error: None };
        let told = Fact::tell(&recorded.event.payload, &mut here);
        here.error.map_or(Ok(told.map(|(fact, is_placed)| (fact, !is_placed))), Err)
    }
}

/// Tells a fact with the items, points and ids of this store.
struct Here<'a, 'b> {
    import: &'a mut StoreImporter<'b>,
    texts: &'a EventTexts<'a>,
    recorded: &'a Recorded,
    fact: FactId,
    error: Option<Error>,
}

impl Here<'_, '_> {
    /// The answer; the first error is kept for the end.
    fn or<T>(&mut self, answer: Result<T, Error>, otherwise: T) -> T {
        answer.unwrap_or_else(|error| {
            self.error.get_or_insert(error);
            otherwise
        })
    }

    /// An item as it stands here.
    fn item(&mut self, item: ItemId) -> Option<ItemId> {
        let answer = self.import.flush().and_then(|()| self.import.item(item));
        self.or(answer, None)
    }

    /// The id here of a memory item; `place` if the event records it.
    fn id(&mut self, id: &str, place: Option<ForeignEvent>) -> String {
        let answer = self.import.memory_id(self.recorded.event.stream, id, place);
        self.or(answer, String::new())
    }
}

impl ForeignValues for Here<'_, '_> {
    fn bytes(&mut self, body: &Body) -> Bytes {
        self.texts.bytes(body).into()
    }

    fn json(&mut self, body: &Body) -> Bytes {
        self.texts.json(body)
    }

    fn list(&mut self, body: &Body) -> Bytes {
        self.texts.or(body, b"[]").into()
    }

    fn parts(&mut self, parts: &[Part]) -> Vec<PartEntry> {
        self.texts.parts(parts)
    }

    fn todo_change(&mut self, change: &TodoChange) -> TodoChangeEntry {
        TodoChangeEntry {
            id: change.id.clone(),
            status: change.status.clone(),
            entry: change.entry.as_ref().map(|body| self.texts.json(body)),
        }
    }

    fn items(&mut self, items: &[ItemId]) -> Vec<ItemRef> {
        items.iter().filter_map(|item| self.item(*item)).map(ItemRef::Id).collect()
    }

    fn point(&mut self, stream: Option<StreamId>, point: Seq) -> PointRef {
        let stream = stream.unwrap_or(self.recorded.event.stream);
        let answer = self.import.flush().and_then(|()| self.import.point(stream, point));
        PointRef::Seq(self.or(answer, Seq::ZERO))
    }

    fn memory_id(&mut self, id: &str) -> String {
        self.id(id, None)
    }

    fn memory(&mut self, it: &MemoryRecorded) -> MemoryEntry {
        let string = |text: &Option<Text>| text.as_ref().map(ToString::to_string);
        let place = ForeignEvent { stream: self.recorded.event.stream, fact: self.fact, parts_before: 0 };
        MemoryEntry {
            id: self.id(&it.id, Some(place)),
            kind: it.kind,
            category: it.category.to_string(),
            key: string(&it.key),
            subject: string(&it.subject),
            value: self.text(&it.value),
            rationale: it.rationale.as_ref().map(|body| self.text(body)),
            alternatives: it.alternatives.iter().map(|body| self.text(body)).collect(),
            related_files: it.related_files.iter().map(ToString::to_string).collect(),
            confidence: it.confidence,
            lifespan: Some(it.lifespan),
            created: it.created,
            source: it.source.as_ref().and_then(|it| Some((self.item(it.item)?, it.start, it.end))),
            replaces: it.replaces.iter().map(|id| self.id(id, None)).collect(),
            superseded_by: it.superseded_by.iter().map(|id| self.id(id, None)).collect(),
            status: string(&it.status),
            extra: it.extra.as_ref().map(|body| self.json(body)),
        }
    }

    fn time(&self, time: Option<Micros>) -> Option<Micros> {
        time.or(Some(self.recorded.recorded_at))
    }
}

impl StoreImporter<'_> {
    /// Whether an event belongs to the revision that is being read: other parts of the same fact.
    pub(super) fn is_rest_of_revision(&self, recorded: &Recorded) -> bool {
        let Some((stream, fact)) = self.open_revision else { return false };
        let event = &recorded.event;
        event.stream == stream
            && match &event.payload {
                Payload::ItemRevised(_) => event.origin.is_zero(),
                Payload::MessageRecorded(_) | Payload::MessageContinued(_) => self.fact_of(recorded) == fact,
                _ => false,
            }
    }

    /// Takes note of other words for an item.
    pub(super) fn revise(&mut self, recorded: &Recorded) -> Result<(), Error> {
        let Payload::ItemRevised(ItemRevised { item, parts, .. }) = &recorded.event.payload else {
            return Ok(());
        };
        let stream = recorded.event.stream;
        let fact = if recorded.event.origin.is_zero() {
            self.open_revision.map(|(_, fact)| fact)
        } else {
            Some(self.fact_of(recorded))
        };
        let Some(fact) = fact else { return Ok(()) };
        let texts = EventTexts::new(self.source, recorded.seq);
        let words = texts.parts(parts);
        let wire = self.wire(recorded, &texts);
        let time = self.time(recorded);
        let Some(telling) = self.told.get_mut(&(stream, fact)) else { return Ok(()) };
        if self.open_revision.is_none() {
            // Only words that are gone now count as gone.
            telling.is_whole = true;
            (telling.entry.wire, telling.entry.host_time) = (wire, time);
            telling.entry.actor = Some(recorded.event.stamp.actor);
        }
        if let Fact::ToolFinished(ended) = &mut telling.entry.fact {
            ended.output = words;
        } else if let Some((_, text)) = telling.parts.iter_mut().find(|(known, _)| known == item) {
            *text = words.into_iter().next();
        }
        telling.is_whole &= texts.is_whole();
        self.report.texts_erased += texts.erased();
        self.open_revision = Some((stream, fact));
        texts.error()
    }

    /// Takes note of parts that a revision added.
    pub(super) fn add_parts(&mut self, recorded: &Recorded, fact: FactId) -> Result<(), Error> {
        let parts = match &recorded.event.payload {
            Payload::MessageRecorded(message) => &message.parts,
            Payload::MessageContinued(message) => &message.parts,
            _ => return Ok(()),
        };
        let texts = EventTexts::new(self.source, recorded.seq);
        let words = texts.parts(parts);
        if let Some(telling) = self.told.get_mut(&(recorded.event.stream, fact)) {
            let items = (1..).zip(words).map(|(part, text)| (ItemId { seq: recorded.seq, part }, Some(text)));
            telling.parts.extend(items);
            telling.is_whole &= texts.is_whole();
        }
        texts.error()
    }

    /// Offers the words of a revision that was read.
    pub(super) fn end_revision(&mut self) -> Result<(), Error> {
        let Some((stream, fact)) = self.open_revision.take() else { return Ok(()) };
        let Some(telling) = self.told.get(&(stream, fact)) else { return Ok(()) };
        let entry = telling.entry(fact);
        self.offer(stream, fact, entry)
    }
}
