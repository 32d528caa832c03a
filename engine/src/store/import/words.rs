//! Facts of another store in the words of its host: payload and texts become an entry.

use std::cell::{Cell, RefCell};

use crate::entry::fact::{self, Fact};
use crate::entry::{Bytes, Entry, ItemRef, MemoryEntry, PartEntry, PointRef, TodoChangeEntry, WirePiece};
use crate::error::Error;
use crate::event::wire::{self, Piece};
use crate::event::{
    Body, DAMAGED_TEXT, ERASED_TEXT, ItemRevised, MemoryRecorded, Part, Payload, Recorded, Text, TodoChange,
    TodoUpdate,
};
use crate::ids::{FactId, ItemId, Seq};

use super::super::Store;
use super::{Import, Place, origin_of};

/// The texts of one event. One that is gone is a word.
pub(super) struct Texts<'a> {
    source: &'a Store,
    seq: Seq,
    erased: Cell<u64>,
    damaged: Cell<u64>,
    error: RefCell<Option<Error>>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(source: &'a Store, seq: Seq) -> Self {
        Self { source, seq, erased: Cell::new(0), damaged: Cell::new(0), error: RefCell::new(None) }
    }

    pub(super) fn bytes(&self, body: &Body) -> Vec<u8> {
        self.or(body, ERASED_TEXT.as_bytes())
    }

    /// As [`Texts::bytes`], of JSON, which stays JSON.
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

    fn text(&self, body: &Body) -> String {
        String::from_utf8_lossy(&self.bytes(body)).into_owned()
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

    fn change(&self, change: &TodoChange) -> TodoChangeEntry {
        TodoChangeEntry {
            id: change.id.clone(),
            status: change.status.clone(),
            entry: change.entry.as_ref().map(|body| self.json(body)),
        }
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
pub(super) struct Telling {
    entry: Entry,
    is_whole: bool,
    /// The items there, with their texts.
    parts: Vec<(ItemId, Option<PartEntry>)>,
}

impl Telling {
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

impl Import<'_> {
    /// The entry of a fact; and whether all of its words are there, so that they can be compared with a host's.
    pub(super) fn entry(
        &mut self,
        recorded: &Recorded,
        fact: FactId,
    ) -> Result<Option<(Entry, bool)>, Error> {
        let texts = Texts::new(self.source, recorded.seq);
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

    fn wire(&self, recorded: &Recorded, texts: &Texts<'_>) -> Vec<WirePiece> {
        let Some(template) = recorded.event.stamp.wire else { return Vec::new() };
        let bytes = texts.bytes(&template);
        // A template that is gone is no template.
        let pieces = wire::pieces(&bytes).unwrap_or_default().into_iter().map(|piece| match piece {
            Piece::Literal(bytes) => WirePiece::Literal(bytes.to_vec()),
            Piece::Body { first, rows, escaped } => {
                let bytes: Bytes = texts.bytes(&Body { first, chunks: rows, ..Body::default() }).into();
                if escaped { WirePiece::Escaped(bytes) } else { WirePiece::Raw(bytes) }
            }
            Piece::Record(origin) => {
                WirePiece::Record(origin_of(self.source.inner.log.secret().plain(origin), true))
            }
        });
        pieces.collect()
    }

    fn items(&mut self, items: &[ItemId]) -> Result<Vec<ItemRef>, Error> {
        self.flush()?;
        let here = items.iter().map(|item| self.item(*item)).collect::<Result<Vec<_>, _>>()?;
        Ok(here.into_iter().flatten().map(ItemRef::Id).collect())
    }

    /// The fact of a host; and whether nothing in it depends on where it stands. `None`: it is no fact of a host.
    fn words(
        &mut self,
        recorded: &Recorded,
        fact: FactId,
        texts: &Texts<'_>,
    ) -> Result<Option<(Fact, bool)>, Error> {
        let stream = recorded.event.stream;
        let string = |text: &Option<Text>| text.as_ref().map(ToString::to_string);
        let bytes = |body: &Option<Body>| body.as_ref().map(|body| Bytes::from(texts.bytes(body)));
        let json = |body: &Option<Body>| body.as_ref().map(|body| texts.json(body));
        let words: Fact = match &recorded.event.payload {
            Payload::SessionChanged(it) => {
                if self.streams.get(&stream).is_some_and(|stream| stream.is_known) {
                    // This store's session has a title and a folder of its own.
                    return Ok(None);
                }
                let changed = fact::SessionChanged {
                    title: string(&it.title),
                    cwd: it.cwd.clone(),
                    project: it.project.clone(),
                    host_version: it.host_version.clone(),
                };
                return Ok(Some((changed.into(), false)));
            }
            Payload::SessionClosed(it) => fact::SessionClosed { reason: string(&it.reason) }.into(),
            Payload::TurnStarted(it) => {
                fact::TurnStarted { kind: it.kind, key: it.key.clone(), number: it.number }.into()
            }
            Payload::PromptSet(it) => fact::PromptSet {
                system: bytes(&it.system),
                tools: json(&it.tools),
                model: it.model.clone(),
                params: json(&it.params),
            }
            .into(),
            Payload::ContextReplaced(it) => {
                let order = self.items(&it.order)?;
                let replaced =
                    fact::ContextReplaced { cause: it.cause, order, tokens_before: it.tokens_before };
                return Ok(Some((replaced.into(), false)));
            }
            Payload::HostCleared(it) => {
                let items = self.items(&it.items)?;
                let cleared = fact::HostCleared { items, calls: it.calls.clone(), text: bytes(&it.text) };
                return Ok(Some((cleared.into(), false)));
            }
            Payload::Rewound(it) => {
                self.flush()?;
                let to = PointRef::Seq(self.point(stream, it.to)?);
                return Ok(Some((fact::Rewound { to }.into(), false)));
            }
            Payload::Forked(it) => {
                self.flush()?;
                let at = PointRef::Seq(self.point(it.from, it.at)?);
                return Ok(Some((fact::Forked { from: it.from, at }.into(), false)));
            }
            Payload::HostRecorded(it) => {
                fact::HostRecorded { record: it.record.clone(), about: it.about.clone(), raw: bytes(&it.raw) }
                    .into()
            }
            Payload::MessageRecorded(it) => fact::MessageRecorded {
                key: it.key.clone(),
                role: it.role,
                parts: texts.parts(&it.parts),
                parent: it.parent.clone(),
                hidden_from_model: it.hidden_from_model,
                hidden_from_user: it.hidden_from_user,
            }
            .into(),
            Payload::MessageContinued(it) => {
                fact::MessageContinued { key: it.key.clone(), parts: texts.parts(&it.parts) }.into()
            }
            Payload::MessageFinished(it) => {
                fact::MessageFinished { key: it.key.clone(), report: it.report.clone() }.into()
            }
            Payload::MessageAbandoned(it) => fact::MessageAbandoned { key: it.key.clone() }.into(),
            Payload::ToolCallStarted(it) => fact::ToolStarted {
                call: it.call.clone(),
                message: it.message.clone(),
                tool: it.tool.clone(),
                params: texts.json(&it.params),
                provider_signature: bytes(&it.provider_signature),
            }
            .into(),
            Payload::ToolCallFinished(it) => {
                let todo_change = match &it.todos {
                    Some(TodoUpdate::Change(change)) => Some(texts.change(change)),
                    // A list is found in the result again.
                    _ => None,
                };
                let (call, details) = (it.call.clone(), json(&it.details));
                let output = texts.parts(&it.output);
                fact::ToolFinished { call, outcome: it.outcome, output, details, todo_change }.into()
            }
            Payload::FileChanged(it) => fact::FileChanged { path: it.key.given.clone(), by: it.by }.into(),
            Payload::TodosReplaced(it) => {
                fact::TodosReplaced { list: texts.or(&it.list.body, b"[]").into() }.into()
            }
            Payload::TodoChanged(it) => {
                let changed = fact::TodoChanged { change: texts.change(&it.change) };
                return Ok(Some((changed.into(), false)));
            }
            Payload::MemoryRecorded(it) => return Ok(Some((self.memory(recorded, it, fact, texts)?, false))),
            Payload::MemorySuperseded(it) => {
                let old = self.memory_id(stream, &it.old, None)?;
                let new = self.memory_id(stream, &it.new, None)?;
                let reason = it.reason.as_ref().map(|body| texts.text(body));
                return Ok(Some((fact::MemorySuperseded { old, new, reason }.into(), false)));
            }
            Payload::MemoryReinforced(it) => {
                let id = self.memory_id(stream, &it.id, None)?;
                let at = it.at.or(Some(recorded.recorded_at));
                return Ok(Some((fact::MemoryReinforced { id, amount: it.amount, at }.into(), false)));
            }
            Payload::MemoryRetracted(it) => {
                let id = self.memory_id(stream, &it.id, None)?;
                let at = it.at.or(Some(recorded.recorded_at));
                let reason = it.reason.as_ref().map(|body| texts.text(body));
                return Ok(Some((fact::MemoryRetracted { id, reason, at }.into(), false)));
            }
            Payload::Injected(it) => {
                fact::Injected { what: it.what, text: texts.bytes(&it.text).into() }.into()
            }
            _ => return Ok(None),
        };
        Ok(Some((words, true)))
    }

    fn memory(
        &mut self,
        recorded: &Recorded,
        it: &MemoryRecorded,
        fact: FactId,
        texts: &Texts<'_>,
    ) -> Result<Fact, Error> {
        let stream = recorded.event.stream;
        let string = |text: &Option<Text>| text.as_ref().map(ToString::to_string);
        let id = self.memory_id(stream, &it.id, Some(Place { stream, fact, parts_before: 0 }))?;
        let mut ids = |all: &[String]| -> Result<Vec<String>, Error> {
            all.iter().map(|id| self.memory_id(stream, id, None)).collect()
        };
        let (replaces, superseded_by) = (ids(&it.replaces)?, ids(&it.superseded_by)?);
        let source = match &it.source {
            Some(source) => {
                self.flush()?;
                self.item(source.item)?.map(|item| (item, source.start, source.end))
            }
            None => None,
        };
        let memory = MemoryEntry {
            id,
            kind: it.kind,
            category: it.category.to_string(),
            key: string(&it.key),
            subject: string(&it.subject),
            value: texts.text(&it.value),
            rationale: it.rationale.as_ref().map(|body| texts.text(body)),
            alternatives: it.alternatives.iter().map(|body| texts.text(body)).collect(),
            related_files: it.related_files.iter().map(ToString::to_string).collect(),
            confidence: it.confidence,
            lifespan: Some(it.lifespan),
            created: it.created,
            source,
            replaces,
            superseded_by,
            status: string(&it.status),
            extra: it.extra.as_ref().map(|body| texts.json(body)),
        };
        Ok(Fact::Memory(memory))
    }
}

impl Import<'_> {
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
        let texts = Texts::new(self.source, recorded.seq);
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
        let texts = Texts::new(self.source, recorded.seq);
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
