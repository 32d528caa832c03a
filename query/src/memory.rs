//! Memory items as rows: one value that programs and bindings print.

use acpdb_engine::command::memory::held_category;
use acpdb_engine::entry::{Entry, Fact, MemoryEntry, StreamInfo};
use acpdb_engine::event::{Actor, Body, Lifespan, MemoryKind};
use acpdb_engine::fold::memory::{MemoryEdge, MemoryItem, MemoryStatus, MemoryView};
use acpdb_engine::ids::{BodyId, ItemId, Micros, Seq, StreamId};
use acpdb_engine::{Error, Memory, MemoryScope, Store};
use serde::Serialize;
use serde_json::Value;

use crate::propose::PreferenceTable;
use crate::when::precise;

/// One item with its texts.
#[derive(Clone, Debug, Serialize)]
pub struct RememberedItem {
    /// Its id.
    pub id: String,
    /// The item that recorded it.
    #[serde(serialize_with = "shown")]
    pub item: ItemId,
    /// Its stream.
    pub stream: StreamId,
    /// Fact, preference, decision or note.
    pub kind: MemoryKind,
    /// Its category.
    pub category: String,
    /// A preference's key.
    pub key: Option<String>,
    /// Its subject.
    pub subject: Option<String>,
    /// Its value; `None` if its bytes are damaged or erased.
    pub value: Option<String>,
    /// The reason for it.
    pub rationale: Option<String>,
    /// The alternatives that were not chosen.
    pub alternatives: Vec<String>,
    /// Files that it is about.
    pub related_files: Vec<String>,
    /// Confidence after decay.
    pub confidence: f64,
    /// Confidence before decay.
    pub confirmed: f64,
    /// Its lifespan.
    pub lifespan: Lifespan,
    /// The time when it was created.
    pub created: String,
    /// The time when it was last confirmed.
    pub reinforced: Option<String>,
    /// The item that it was learned from; of an item that was told, the speaker: `user`, `assistant`, `tool`, `host` or `policy`.
    pub source: String,
    /// Whether it holds.
    pub standing: MemoryStatus,
    /// Another preference of the same key holds instead, though no edge says so.
    pub shadowed: bool,
    /// Ids of the items that took its place.
    pub superseded_by: Vec<String>,
    /// The time when the first of them took it.
    pub superseded_at: Option<String>,
    /// Ids of the items whose place it took.
    pub supersedes: Vec<String>,
    /// The status that its own record gives.
    pub status: Option<String>,
    /// The other fields of its record.
    pub extra: Option<Value>,
}

impl RememberedItem {
    /// The row of an item; `texts` reads the bodies other than its value.
    #[must_use]
    pub fn new(
        view: &MemoryView<'_>,
        stream: StreamId,
        item: &MemoryItem<'_>,
        texts: &dyn Fn(BodyId) -> Option<String>,
    ) -> Self {
        let record = &item.facts().record;
        let body = |body: Body| texts(item.body(body));
        let (mut superseded_by, mut supersedes) = (Vec::new(), Vec::new());
        let mut superseded_at = None;
        if let Some((_, memory)) = view.stream(stream) {
            let by = memory.superseded_by(item).into_iter().filter(MemoryEdge::hides);
            let by: Vec<MemoryEdge> = by.collect();
            superseded_at = by.iter().map(|edge| edge.said).min().map(precise);
            superseded_by.extend(by.into_iter().map(|edge| edge.new));
            let of = memory.supersedes(item).into_iter().filter(MemoryEdge::hides);
            supersedes.extend(of.map(|edge| edge.old));
        }
        Self {
            id: item.id().to_owned(),
            item: item.item(),
            stream,
            kind: item.kind(),
            category: item.category().to_owned(),
            key: record.key.clone().map(Into::into),
            subject: record.subject.clone().map(Into::into),
            value: view.text(item),
            rationale: record.rationale.and_then(body),
            alternatives: record.alternatives.iter().filter_map(|text| body(*text)).collect(),
            related_files: record.related_files.iter().map(ToString::to_string).collect(),
            confidence: item.confidence(view.now()).as_f64(),
            confirmed: item.confirmed().as_f64(),
            lifespan: item.lifespan(),
            created: precise(item.facts().created),
            reinforced: item.reinforced().map(precise),
            source: source(record.source.map(|source| source.item), item.said_by()),
            standing: item.standing(view.now()),
            shadowed: view.is_shadowed(item),
            superseded_by,
            superseded_at,
            supersedes,
            status: record.status.clone().map(Into::into),
            // The other fields are JSON, or were erased.
            extra: record.extra.and_then(body).and_then(|text| serde_json::from_str(&text).ok()),
        }
    }
}

/// The source of an item in words: what it was learned from, else who told it.
fn source(learned: Option<ItemId>, actor: Actor) -> String {
    match (learned, actor) {
        (Some(item), _) => item.to_string(),
        (None, Actor::User) => "user".to_owned(),
        (None, Actor::Assistant) => "assistant".to_owned(),
        (None, Actor::Tool) => "tool".to_owned(),
        (None, Actor::Host) => "host".to_owned(),
        (None, Actor::Policy) => "policy".to_owned(),
    }
}

/// An entry with the category of its key, if neither names one: the category that holds the key now, else the usual one. So
/// `package_manager` is of `tooling`, by whichever door it comes.
///
/// # Errors
/// If the memory of the scope cannot be read.
pub fn placed(store: &Store, scope: &MemoryScope, mut entry: MemoryEntry) -> Result<MemoryEntry, Error> {
    let key = entry.key.as_deref().map(str::trim).unwrap_or_default().to_owned();
    if entry.kind != MemoryKind::Preference || !entry.category.trim().is_empty() || key.contains('/') {
        return Ok(entry);
    }
    // Facts that were acknowledged before their sync count.
    store.sync()?;
    let held = match store.memory(scope, Seq::MAX) {
        Ok(memory) => memory.read(store.now(), |view| held_category(view, &key)),
        // The item will make the project, or the session.
        Err(Error::NotFound { .. } | Error::Rejected(_)) => None,
        Err(error) => return Err(error),
    };
    let table = PreferenceTable::default();
    let usual = || table.rules.iter().find(|rule| rule.key == key).map(|rule| rule.category.clone());
    entry.category = held.or_else(usual).unwrap_or_default();
    Ok(entry)
}

/// The entries of a session, those of memory in the category of their key, as by every door.
///
/// # Errors
/// Those of reading memory.
pub fn all_placed(store: &Store, info: &StreamInfo, mut entries: Vec<Entry>) -> Result<Vec<Entry>, Error> {
    for entry in &mut entries {
        let Fact::Memory(memory) = &mut entry.fact else { continue };
        store.sync()?;
        let session = store.stream_name(store.recorded_info(info).id())?.map(|name| name.id);
        let scope = MemoryScope { session, project: info.project.clone() };
        *memory = placed(store, &scope, std::mem::take(memory))?;
    }
    Ok(entries)
}

/// Every item that a scope ever remembered, in order; its confidence and standing are those at `now`.
#[must_use]
pub fn rows(store: &Store, memory: &Memory, now: Micros) -> Vec<RememberedItem> {
    let texts = |body: BodyId| text(store, body);
    memory.read(now, |view| {
        view.all().iter().map(|(stream, item)| RememberedItem::new(view, *stream, item, &texts)).collect()
    })
}

/// A text of memory; `None` if it was erased or cannot be read.
#[must_use]
pub fn text(store: &Store, body: BodyId) -> Option<String> {
    // The store notes the damage, so that the answer says that it is not complete.
    let bytes = store.body(body).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// An id as people and programs name it.
fn shown<S: serde::Serializer>(item: &ItemId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(item)
}
