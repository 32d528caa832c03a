//! Entries to events: everything that is computed when a fact is recorded, once and for ever.
//!
//! ```text
//! Entry -> revision -> seen before? -> skip | ItemRevised | event + bodies
//! ```
//!
//! Facts are never refused here. Odd ones (a finish without a start, parameters that are no JSON, a todo list that is no list)
//! are recorded as they are; the fold copes. Pure: random bytes and bytes from the disk come in as values.

mod tool;

use crate::entry::fact::revision_of;
use crate::entry::fact::{Drafter, Fact, SessionChanged, ToolFinished, ToolStarted};
use crate::entry::{Bytes, Entry, ItemRef, MemoryEntry, PartEntry, PointRef, StreamInfo, TodoChangeEntry};
use crate::event::{
    self, Body, Event, Face, HostRecorded, ItemRevised, Key, KeyKind, Lifespan, MemoryKind, MemoryRecorded,
    MemorySource, MessageContinued, MessageRecorded, Part, PartKind, Payload, Role, SessionOpened, Stamp,
    Text, TodoChange, TodoList, TodoUpdate, ToolCallFinished, ToolCallStarted, ToolClass,
};
use crate::ids::{ItemId, Origin, Seq, StreamId};
use crate::registry::Registry;
use crate::secret::{BY_ID_ALONE, DERIVED, Secret};
use crate::text::project_of;
use crate::text::signature::Signer;
use crate::text::tokens;

use super::draft::{Bodies, EventDraft};
use super::ingest_state::{IngestState, SeenFact};

/// The drafts of an entry, or the reason for none.
#[derive(Clone, PartialEq, Debug)]
pub enum Draft {
    /// Record these, in order.
    Record(Vec<EventDraft>),
    /// The same fact with the same content is there already.
    Known,
    /// The entry refers to a fact that is drafted but not recorded: record the drafts first, then ask again.
    RecordOthersFirst,
}

/// Turns the entries of one stream into drafts. Make one for each commit.
#[derive(Debug)]
pub struct Recorder<'a> {
    stream: StreamId,
    ingest_state: &'a IngestState,
    registry: &'a dyn Registry,
    signer: &'a Signer,
    secret: &'a Secret,
    /// Facts drafted by this recorder and not in the ingest state yet.
    pending: rustc_hash::FxHashMap<Origin, u64>,
    pending_tools: rustc_hash::FxHashMap<String, String>,
    pending_memory: rustc_hash::FxHashSet<String>,
    /// By letter: the first number that the search for the next id tries.
    memory_numbers: rustc_hash::FxHashMap<char, usize>,
    cwd: Option<String>,
}

/// Makes the event that opens a stream. `key` is 32 random bytes, for the stream's signatures.
pub fn opening(info: &StreamInfo, key: [u8; 32]) -> EventDraft {
    let mut bodies = Bodies::default();
    let key = bodies.add_uncounted(&Bytes::from(key.to_vec()));
    let payload = SessionOpened {
        scope: info.scope,
        host: info.host.clone(),
        name: info.name.clone(),
        project: info.project.as_deref().map(|project| project_of(project).into_owned()),
        parent: info.parent.clone().map(|(stream, call)| event::Parent { stream, call }),
        cwd: info.cwd.clone(),
        title: info.title.as_ref().map(Text::from),
        host_version: info.host_version.clone(),
        policy: None,
        key,
    };
    let stamp = Stamp { estimator: tokens::ESTIMATOR_VERSION, ..Stamp::default() };
    let event = Event {
        stream: info.id(),
        origin: Origin::ZERO,
        host_time: info.host_time,
        stamp,
        payload: payload.into(),
    };
    EventDraft::new(event, bodies)
}

/// The changes that `info` tells against the ingest state of an open stream; `None` if there are none.
pub fn change(info: &StreamInfo, ingest_state: &IngestState) -> Option<Fact> {
    let newer = |new: &Option<String>, now: &Option<String>| new.clone().filter(|_| new != now);
    let title = newer(&info.title, &ingest_state.title);
    // A session may visit many folders; relative paths count from its first folder.
    let cwd = info.cwd.clone().filter(|_| ingest_state.cwd.is_none());
    let project = info.project.as_deref().map(|project| project_of(project).into_owned());
    let project = newer(&project, &ingest_state.project);
    let host_version = newer(&info.host_version, &ingest_state.host_version);
    // The session that started it is told when it is opened; the call may become known later.
    let started = ingest_state.parent.as_ref().filter(|parent| parent.call.is_none());
    let call = info
        .parent
        .as_ref()
        .zip(started)
        .and_then(|((stream, call), parent)| call.clone().filter(|_| *stream == parent.stream));
    let changes = SessionChanged { title, cwd, project, host_version, call };
    (changes != SessionChanged::default()).then_some(changes.into())
}

impl<'a> Recorder<'a> {
    /// A recorder for a stream with this ingest state. `cwd` resolves paths if the ingest state has no folder.
    pub fn new(
        stream: StreamId,
        ingest_state: &'a IngestState,
        registry: &'a dyn Registry,
        signer: &'a Signer,
        secret: &'a Secret,
        cwd: Option<&str>,
    ) -> Self {
        Self {
            stream,
            ingest_state,
            registry,
            signer,
            secret,
            pending: rustc_hash::FxHashMap::default(),
            pending_tools: rustc_hash::FxHashMap::default(),
            pending_memory: rustc_hash::FxHashSet::default(),
            memory_numbers: rustc_hash::FxHashMap::default(),
            cwd: ingest_state.cwd.clone().or_else(|| cwd.map(str::to_owned)),
        }
    }

    /// Drafts the events that record `entry` in the stream of `info`.
    pub fn draft(&mut self, info: &StreamInfo, entry: &Entry) -> Draft {
        let named = named(entry, self.secret);
        let entry = named.as_ref().unwrap_or(entry);
        let origin = entry.origin.as_deref().map_or(Origin::ZERO, |fact| self.secret.origin(fact));
        // Words that cannot be compared have no revision: the fact is known by its id alone.
        let by_id_alone = entry.origin.as_deref().is_some_and(|origin| origin.starts_with(BY_ID_ALONE));
        let revision = if by_id_alone { 0 } else { revision_of(entry, self.secret) };
        let mut revised = None;
        if !origin.is_zero() {
            if let Some(pending) = self.pending.get(&origin) {
                return if *pending == revision { Draft::Known } else { Draft::RecordOthersFirst };
            }
            if let Some(seen) = self.ingest_state.seen(origin) {
                if seen.revision == revision || seen.revision == 0 || revision == 0 {
                    return match self.late_wire(entry, origin, &seen) {
                        Some(draft) => Draft::Record(vec![draft]),
                        None => Draft::Known,
                    };
                }
                revised = Some(seen);
            }
        }
        if self.needs_others(&entry.fact) {
            return Draft::RecordOthersFirst;
        }
        let mut drafts = Vec::with_capacity(1);
        let template = Template { stream: self.stream, entry, origin, revision, secret: self.secret };
        match (&entry.fact, revised) {
            (Fact::MessageRecorded(_) | Fact::MessageContinued(_), Some(_)) => {
                self.revise_message(&template, &mut drafts);
            }
            (Fact::ToolFinished(ended), Some(seen)) if !self.ends_another(&ended.call, &seen) => {
                let revised =
                    ItemRevised { item: ItemId::first(seen.item), face: Face::Output, parts: Vec::new() };
                drafts.push(template.revision(revised, &ended.output, true));
            }
            (fact, revised) => {
                if let (Fact::ToolStarted(ToolStarted { call, .. }), Some(seen)) = (fact, revised)
                    && self.ingest_state.open_call(call).is_some_and(|open| open.seq == seen.item)
                {
                    drafts.push(template.given_up(call));
                }
                let mut bodies = Bodies::default();
                let payload = fact.draft(&mut EventBuilder { recorder: self, info, bodies: &mut bodies });
                drafts.push(template.finish(payload, bodies, true));
            }
        }
        if !origin.is_zero() {
            self.pending.insert(origin, revision);
        }
        if let Fact::ToolStarted(started) = &entry.fact {
            self.pending_tools.insert(started.call.clone(), started.tool.clone());
        }
        Draft::Record(drafts)
    }

    /// Whether a finish ends a later call than the call whose end has the same origin.
    fn ends_another(&self, call: &str, seen: &SeenFact) -> bool {
        self.pending_tools.contains_key(call)
            || self.ingest_state.open_call(call).is_some_and(|open| open.seq > seen.seq)
    }

    /// Drafts a message that was recorded with other parts: recorded parts are rewritten, or emptied; further parts are added to the message.
    fn revise_message(&self, template: &Template<'_>, drafts: &mut Vec<EventDraft>) {
        let parts = match &template.entry.fact {
            Fact::MessageRecorded(message) => &message.parts,
            Fact::MessageContinued(message) => &message.parts,
            _ => return,
        };
        let items = self.ingest_state.part_items(template.origin);
        for (place, item) in items.iter().enumerate() {
            let parts = parts.get(place..=place).unwrap_or_default();
            let revised = ItemRevised { item: *item, face: Face::Output, parts: Vec::new() };
            drafts.push(template.revision(revised, parts, place == 0));
        }
        if parts.len() > items.len() || items.is_empty() {
            let mut bodies = Bodies::default();
            let role = template.entry.fact.role();
            let added = parts.iter().skip(items.len()).map(|part| part_of(part, role, &mut bodies)).collect();
            let payload = match &template.entry.fact {
                Fact::MessageRecorded(message) => MessageRecorded {
                    key: message.key.clone(),
                    role: message.role,
                    parts: added,
                    parent: message.parent.clone(),
                    hidden_from_model: message.hidden_from_model,
                    hidden_from_user: message.hidden_from_user,
                }
                .into(),
                Fact::MessageContinued(message) => {
                    MessageContinued { key: message.key.clone(), parts: added }.into()
                }
                _ => return,
            };
            let mut draft = template.finish(payload, bodies, drafts.is_empty());
            draft.event.origin = template.origin;
            draft.event.stamp.revision = template.revision;
            drafts.push(draft);
        }
    }

    /// Whether the fact names facts that are only drafted: their seqs are not known yet.
    fn needs_others(&self, fact: &Fact) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let mut any = false;
        fact.needs(&mut |origin| any |= self.pending.contains_key(&self.secret.origin(origin)));
        any
    }

    /// The recorded fact with the same origin.
    pub fn seen(&self, entry: &Entry) -> Option<SeenFact> {
        self.ingest_state.seen(self.secret.origin(entry.origin.as_deref()?))
    }

    /// Drafts the record of a fact that one feed told without it (a hook, say), and another feed brings: the fact is known, the record
    /// is kept, so that it can be printed again.
    fn late_wire(&self, entry: &Entry, origin: Origin, seen: &SeenFact) -> Option<EventDraft> {
        if entry.wire.is_empty() || seen.has_wire {
            return None;
        }
        let payload = HostRecorded { record: "record".to_owned(), about: None, raw: None };
        let (stream, secret) = (self.stream, self.secret);
        let template = Template { stream, entry, origin, revision: seen.revision, secret };
        let draft = template.finish(payload.into(), Bodies::default(), true);
        draft.event.stamp.wire.is_some().then_some(draft)
    }

    /// The seq of a point of this stream at which another one begins; nothing of it, if the point is unknown. `None`: the
    /// point is only drafted.
    pub fn recorded_point(&self, point: &PointRef) -> Option<Seq> {
        let (PointRef::After(text) | PointRef::Before(text)) = point else { return Some(self.point(point)) };
        let origin = self.secret.origin(text);
        if let Some(seen) = self.ingest_state.seen(origin) {
            return Some(if matches!(point, PointRef::After(_)) { seen.seq } else { seen.seq.before() });
        }
        (!self.pending.contains_key(&origin)).then_some(Seq::ZERO)
    }

    /// The item of an event of this stream, for one that shares it; none of it, if the event is unknown. `None`: it is only drafted.
    pub fn recorded_item(&self, origin: &str, part: u32) -> Option<Option<ItemId>> {
        let origin = self.secret.origin(origin);
        match self.ingest_state.seen(origin) {
            Some(seen) => Some(Some(ItemId { seq: seen.item, part })),
            None => (!self.pending.contains_key(&origin)).then_some(None),
        }
    }

    fn items(&self, items: &[ItemRef]) -> Vec<ItemId> {
        let known = items.iter().filter_map(|item| match item {
            ItemRef::Id(id) => Some(*id),
            // Those of another stream have been found there.
            ItemRef::Shared(..) => None,
            ItemRef::Origin(text, part) => {
                let seen = self.ingest_state.seen(self.secret.origin(text))?;
                Some(ItemId { seq: seen.item, part: *part })
            }
        });
        known.collect()
    }

    fn point(&self, point: &PointRef) -> Seq {
        let seen = |text: &str| self.ingest_state.seen(self.secret.origin(text)).map(|seen| seen.seq);
        match point {
            PointRef::Seq(seq) => *seq,
            PointRef::After(text) => seen(text).unwrap_or(self.ingest_state.head),
            PointRef::Before(text) => seen(text).map_or(Seq::ZERO, Seq::before),
        }
    }

    fn memory(&mut self, memory: &MemoryEntry, bodies: &mut Bodies) -> MemoryRecorded {
        let (letter, category, lifespan) = match memory.kind {
            MemoryKind::Fact => ('f', "other", Lifespan::Session),
            MemoryKind::Preference => ('p', "other", Lifespan::Project),
            MemoryKind::Decision => ('d', "implementation", Lifespan::Project),
            MemoryKind::Note => ('n', "other", Lifespan::Project),
        };
        let id = if memory.id.is_empty() {
            let number =
                self.memory_numbers.entry(letter).or_insert_with(|| self.ingest_state.first_memory_number());
            self.ingest_state.free_memory_id(letter, number, &|id| self.pending_memory.contains(id))
        } else {
            memory.id.clone()
        };
        self.pending_memory.insert(id.clone());
        let given = Some(memory.category.as_str()).filter(|category| !category.is_empty());
        MemoryRecorded {
            id,
            kind: memory.kind,
            category: given.unwrap_or(category).into(),
            key: memory.key.as_ref().map(Text::from),
            subject: memory.subject.as_ref().map(Text::from),
            value: bodies.add(&Bytes::from(memory.value.as_bytes())),
            value_signature: self.signer.folded("memory", &memory.value),
            rationale: text_body(memory.rationale.as_ref(), bodies),
            alternatives: memory
                .alternatives
                .iter()
                .map(|text| bodies.add(&Bytes::from(text.as_bytes())))
                .collect(),
            related_files: memory.related_files.iter().map(Text::from).collect(),
            confidence: memory.confidence.min(100),
            lifespan: memory.lifespan.unwrap_or(lifespan),
            created: memory.created,
            source: memory.source.map(|(item, start, end)| MemorySource { item, start, end }),
            replaces: memory.replaces.clone(),
            superseded_by: memory.superseded_by.clone(),
            status: memory.status.as_ref().map(Text::from),
            extra: memory.extra.as_ref().map(|bytes| bodies.add_uncounted(bytes)),
        }
    }
}

/// Makes an event of one fact: asks the recorder for ids, keys and items, and collects the bodies.
struct EventBuilder<'d, 'a> {
    recorder: &'d mut Recorder<'a>,
    info: &'d StreamInfo,
    bodies: &'d mut Bodies,
}

impl Drafter for EventBuilder<'_, '_> {
    fn body(&mut self, bytes: &Bytes) -> Body {
        self.bodies.add(bytes)
    }

    fn uncounted(&mut self, bytes: &Bytes) -> Body {
        self.bodies.add_uncounted(bytes)
    }

    fn parts(&mut self, parts: &[PartEntry], role: Option<Role>) -> Vec<Part> {
        parts.iter().map(|part| part_of(part, role, self.bodies)).collect()
    }

    fn items(&self, items: &[ItemRef]) -> Vec<ItemId> {
        self.recorder.items(items)
    }

    fn point(&self, point: &PointRef) -> Seq {
        self.recorder.point(point)
    }

    fn file(&self, path: &str) -> Key {
        self.recorder.resolved(Key {
            kind: KeyKind::File,
            class: ToolClass::Write,
            given: path.to_owned(),
            resolved: None,
            fields: Vec::new(),
        })
    }

    fn call(&mut self, call: &ToolStarted) -> ToolCallStarted {
        self.recorder.started(self.info, call, self.bodies)
    }

    fn todo_update(&mut self, call: &ToolFinished) -> Option<TodoUpdate> {
        self.recorder.todo_update(self.info, call, self.bodies)
    }

    fn todo_list(&mut self, list: &Bytes) -> Option<TodoList> {
        self.recorder.todo_list(list, self.bodies)
    }

    fn todo_change(&mut self, change: &TodoChangeEntry) -> TodoChange {
        self.recorder.todo_change(change, self.bodies)
    }

    fn memory(&mut self, memory: &MemoryEntry) -> MemoryRecorded {
        self.recorder.memory(memory, self.bodies)
    }
}

/// The fields that all drafts of one entry share.
struct Template<'a> {
    stream: StreamId,
    entry: &'a Entry,
    origin: Origin,
    revision: u64,
    secret: &'a Secret,
}

impl Template<'_> {
    /// A revision of one item. Only the `first` of an entry carries its origin and wire form.
    fn revision(&self, mut revised: ItemRevised, parts: &[PartEntry], first: bool) -> EventDraft {
        let mut bodies = Bodies::default();
        let role = self.entry.fact.role();
        revised.parts = parts.iter().map(|part| part_of(part, role, &mut bodies)).collect();
        self.finish(revised.into(), bodies, first)
    }

    /// The end of a call that is told again with other parameters, so that it does not stay open beside its successor.
    fn given_up(&self, call: &str) -> EventDraft {
        let mut bodies = Bodies::default();
        let why = PartEntry::text("started again with other parameters");
        let payload = ToolCallFinished {
            call: call.to_owned(),
            outcome: event::Outcome::Aborted,
            output: vec![part_of(&why, Some(Role::Tool), &mut bodies)],
            details: None,
            todos: None,
        };
        self.finish(payload.into(), bodies, false)
    }

    /// Completes a draft. Only the `first` of an entry carries its origin and wire form.
    fn finish(&self, payload: Payload, mut bodies: Bodies, first: bool) -> EventDraft {
        let wire = if first { bodies.add_wire(&self.entry.wire, self.secret) } else { None };
        let stamp = Stamp {
            actor: self.entry.actor.unwrap_or_else(|| self.entry.fact.actor()),
            estimator: tokens::ESTIMATOR_VERSION,
            revision: if first { self.revision } else { 0 },
            wire,
        };
        let event = Event {
            stream: self.stream,
            origin: if first { self.origin } else { Origin::ZERO },
            host_time: self.entry.host_time,
            stamp,
            payload,
        };
        EventDraft::new(event, bodies)
    }
}

/// The entry with other ids in place of the ids that its host derived from a record's bytes; `None` if there are no such ids.
fn named(entry: &Entry, secret: &Secret) -> Option<Entry> {
    let mut copy = None;
    let mut any = false;
    entry.fact.ids(&mut |id| any |= id.contains(DERIVED));
    if any {
        let mut entry = entry.clone();
        entry.fact.ids_mut(&mut |id| {
            if let Some(name) = secret.name(id) {
                *id = name;
            }
        });
        copy = Some(entry);
    }
    copy
}

fn part_of(part: &PartEntry, role: Option<Role>, bodies: &mut Bodies) -> Part {
    let is_text = part.kind == PartKind::Text;
    let task = if is_text { task_tag(&part.bytes) } else { None };
    let automata = is_text && role == Some(Role::User) && contains_ignoring_case(&part.bytes, b"automata");
    Part {
        kind: part.kind,
        body: bodies.add(&part.bytes),
        media_type: part.media_type.clone(),
        signature: part.signature.as_ref().map(|bytes| bodies.add_uncounted(bytes)),
        task,
        automata,
    }
}

/// The task that a tag at the end of a text names.
fn task_tag(text: &[u8]) -> Option<String> {
    let text = text.trim_ascii_end().strip_suffix(b"-->")?;
    let tail = text.get(text.len().saturating_sub(600)..)?;
    let tail = String::from_utf8_lossy(tail);
    let (_, tag) = tail.rsplit_once("<!-- sigma-task:")?;
    let tag = tag.trim();
    (!tag.is_empty() && !tag.contains("-->")).then(|| tag.to_owned())
}

fn contains_ignoring_case(text: &[u8], lower: &[u8]) -> bool {
    text.windows(lower.len()).any(|window| window.eq_ignore_ascii_case(lower))
}

fn text_body(text: Option<&String>, bodies: &mut Bodies) -> Option<Body> {
    text.map(|text| bodies.add(&Bytes::from(text.as_bytes())))
}

#[cfg(test)]
mod tests;
