//! Commands on memory: the commands, the reasons to refuse them, and the events that record them.
//!
//! ```text
//! MemoryCommand --decide(view)--> MemoryDecision { stream, drafts }  |  MemoryRejection
//! ```
//!
//! A command is decided against a [`MemoryView`] of the head, so that links, circles and equal values are seen. Its events go
//! to the stream of the item's lifespan. An equal value adds no item: it reinforces the one that is there. Imported facts do
//! not pass through here: they are recorded as they are.

mod conflict;
mod rejection;
#[cfg(test)]
mod tests;

use super::draft::{Bodies, EventDraft};
use crate::entry::MemoryEntry;
use crate::event::{
    Lifespan, MemoryKind, MemoryRecorded, MemoryReinforced, MemoryRetracted, MemorySource, MemorySuperseded,
    Restored, Text,
};
use crate::fold::memory::{
    MemoryItem, MemoryNamed, MemoryStatus, MemoryView, default_category, kind_label, lifespan_label,
    value_signature,
};
use crate::ids::{ItemId, StreamId};
use crate::text::{Signer, likeness::nearest};

use conflict::{asked_lifespan, contradicted, spelled};
pub use conflict::{decision_subject, held_category};
pub use rejection::MemoryRejection;

/// Bytes of a value, rationale or alternative, at most.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// Bytes of an id, category, key or subject, at most.
pub const NAME_BYTES_MAX: usize = 512;
/// Alternatives, related files or replaced items of one command, at most.
pub const LIST_COUNT_MAX: usize = 256;
/// Hundredths that a reinforcement adds.
pub const REINFORCEMENT: u8 = 10;

const FACT_CATEGORIES: &[&str] = &["personal", "schedule", "context", "preference", "other"];
const PREFERENCE_CATEGORIES: &[&str] = &["style", "tooling", "workflow", "communication", "other"];

/// An item as a command names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemoryRef {
    /// By its id within its stream; if several streams have the id, the item of the innermost stream. If none has it, by
    /// `category/key`, key or words that one item that holds has: see [`MemoryView::named`].
    Id(String),
    /// By its item id.
    Item(ItemId),
}

impl std::fmt::Display for MemoryRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) if id.is_empty() => f.write_str("the new item"),
            Self::Id(id) => write!(f, "'{id}'"),
            Self::Item(item) => write!(f, "{item}"),
        }
    }
}

impl From<&str> for MemoryRef {
    /// `#812` names an item by its item id, any other text is an id within a stream.
    fn from(text: &str) -> Self {
        match text.strip_prefix('#').and_then(|_| text.parse().ok()) {
            Some(item) => Self::Item(item),
            None => Self::Id(text.to_owned()),
        }
    }
}

/// A command on memory.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::entry::MemoryEntry;
/// use acpdb_engine::event::MemoryKind;
/// use acpdb_engine::{MemoryCommand, MemoryScope, Seq};
///
/// let entry = MemoryEntry { kind: MemoryKind::Decision, value: "the store is one folder".into(), ..Default::default() };
/// let _ = store.remember(&MemoryScope::project("shop"), &MemoryCommand::Add(entry))?;
/// let memory = store.memory(&MemoryScope::project("shop"), Seq::MAX)?;
/// let held = memory.current(store.now());
/// assert_eq!(held[0].value.as_deref(), Some("the store is one folder"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug)]
#[expect(clippy::large_enum_variant, reason = "short-lived, one at a time")]
pub enum MemoryCommand {
    /// Remember this. An empty category takes the kind's default, an empty id the next free one; without a lifespan it holds as long
    /// as its project, or as what it replaces. A fact or decision takes the place of what says something else on its subject.
    Add(MemoryEntry),
    /// `new` takes the place of `old`.
    Supersede {
        /// The item that no longer holds.
        old: MemoryRef,
        /// The item that holds instead.
        new: MemoryRef,
        /// The reason, if one is given.
        reason: Option<String>,
    },
    /// The item was confirmed.
    Reinforce {
        /// The item.
        item: MemoryRef,
    },
    /// The item no longer holds, and nothing takes its place.
    Retract {
        /// The item.
        item: MemoryRef,
        /// The reason, if one is given.
        reason: Option<String>,
    },
    /// The item holds again: its edges are released, its retraction is taken back.
    Restore {
        /// The item.
        item: MemoryRef,
    },
}

/// The events that record a command.
#[derive(Clone, PartialEq, Debug)]
#[must_use]
pub struct MemoryDecision {
    /// The stream that it goes to.
    pub stream: StreamId,
    /// The events, in order.
    pub drafts: Vec<EventDraft>,
    /// Id of the item that it adds, or that an equal value reinforces instead.
    pub id: String,
}

/// Reads a confidence from 0 to 1 into hundredths, rounded to nearest.
///
/// # Errors
/// [`MemoryRejection::ConfidenceOutOfRange`] for anything else, NaN included.
pub fn confidence_hundredths(given: f64) -> Result<u8, MemoryRejection> {
    if !(0.0..=1.0).contains(&given) {
        return Err(MemoryRejection::ConfidenceOutOfRange { given });
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100 after the check")]
    Ok((given * 100.0).round() as u8)
}

/// Reads a lifespan: `session`, `project` or `permanent`, any case.
///
/// # Errors
/// [`MemoryRejection::UnknownLifespan`].
pub fn parse_lifespan(given: &str) -> Result<Lifespan, MemoryRejection> {
    [Lifespan::Session, Lifespan::Project, Lifespan::Permanent]
        .into_iter()
        .find(|lifespan| lifespan_label(*lifespan).eq_ignore_ascii_case(given.trim()))
        .ok_or_else(|| MemoryRejection::UnknownLifespan { given: given.to_owned() })
}

/// Decides whether `command` is allowed now, and gives the events that record it. Pure.
///
/// `view` must be of the head. Cost: O(1) lookups; a supersession also searches for a circle, from the shorter side.
///
/// # Errors
/// The [`MemoryRejection`] that says what to change.
pub fn decide(view: &MemoryView<'_>, command: &MemoryCommand) -> Result<MemoryDecision, MemoryRejection> {
    match command {
        MemoryCommand::Add(entry) => add(view, entry),
        MemoryCommand::Supersede { old, new, reason } => supersede(view, old, new, reason.as_deref()),
        MemoryCommand::Reinforce { item } => {
            let (stream, found) = find(view, item)?;
            Ok(one(stream, found.id(), EventDraft::of(reinforcement(found.id()), Bodies::default())))
        }
        MemoryCommand::Retract { item, reason } => {
            let (stream, found) = find(view, item)?;
            if found.is_retracted() {
                return Err(MemoryRejection::AlreadyRetracted { item: item.clone() });
            }
            let mut rows = Bodies::default();
            let reason = text_body(&mut rows, "reason", reason.as_deref())?;
            let payload = MemoryRetracted { id: found.id().to_owned(), reason, at: None };
            Ok(one(stream, found.id(), EventDraft::of(payload, rows)))
        }
        MemoryCommand::Restore { item } => restore(view, item),
    }
}

fn add(view: &MemoryView<'_>, entry: &MemoryEntry) -> Result<MemoryDecision, MemoryRejection> {
    let mut entry = spelled(view, entry);
    let kind = kind_label(entry.kind);
    check_category(&entry)?;
    check_key(&mut entry)?;
    if entry.value.trim().is_empty() {
        return Err(MemoryRejection::EmptyValue { kind });
    }
    check_length("value", &entry.value, VALUE_BYTES_MAX)?;
    check_name("id", &entry.id)?;
    check_name("subject", entry.subject.as_deref().unwrap_or_default())?;
    for (what, count) in [
        ("alternatives", entry.alternatives.len()),
        ("related files", entry.related_files.len()),
        ("replaced items", entry.replaces.len() + entry.superseded_by.len()),
    ] {
        if count > LIST_COUNT_MAX {
            return Err(MemoryRejection::TooMany { what, count, max: LIST_COUNT_MAX });
        }
    }
    for file in &entry.related_files {
        check_name("related file", file)?;
    }
    if entry.confidence > 100 {
        return Err(MemoryRejection::ConfidenceOutOfRange { given: f64::from(entry.confidence) / 100.0 });
    }
    let lifespan = entry.lifespan.unwrap_or_else(|| asked_lifespan(view, &entry));
    let (stream, signer) = home(view, lifespan).ok_or(MemoryRejection::NoStream)?;
    entry.replaces = in_stream(view, stream, lifespan, &entry, &entry.replaces)?;
    entry.superseded_by = in_stream(view, stream, lifespan, &entry, &entry.superseded_by)?;

    let taken = view.by_id(&entry.id).filter(|_| !entry.id.is_empty());
    let settled = settled(view, (stream, &signer), entry, lifespan);
    let entry = settled.entry;
    if let Some(known) = settled.known {
        return reinforce_instead(view, stream, &entry, known);
    }
    if let Some((_, taken)) = taken {
        return Err(MemoryRejection::IdTaken { id: entry.id, item: taken.item() });
    }
    let mut rows = Bodies::default();
    let value = rows.add_copied(&entry.value);
    let rationale = text_body(&mut rows, "rationale", entry.rationale.as_deref())?;
    let mut alternatives = Vec::with_capacity(entry.alternatives.len());
    for text in &entry.alternatives {
        alternatives.extend(text_body(&mut rows, "alternative", Some(text))?);
    }
    let extra = entry.extra.as_ref().map(|extra| rows.add_copied(extra));
    let payload = MemoryRecorded {
        id: entry.id.clone(),
        kind: entry.kind,
        category: entry.category.into(),
        key: entry.key.map(Text::from),
        subject: entry.subject.map(Text::from),
        value,
        value_signature: value_signature(&signer, &entry.value),
        rationale,
        alternatives,
        related_files: entry.related_files.iter().map(Text::from).collect(),
        confidence: entry.confidence,
        lifespan,
        created: entry.created,
        source: entry.source.map(|(item, start, end)| MemorySource { item, start, end }),
        replaces: entry.replaces,
        superseded_by: entry.superseded_by,
        status: entry.status.map(Text::from),
        extra,
    };
    Ok(one(stream, &entry.id, EventDraft::of(payload, rows)))
}

/// An item as it is recorded, by whichever door it comes.
#[derive(Clone, PartialEq, Debug)]
pub struct SettledMemory {
    /// The item: spelled, with an id and a lifespan, and with the items that it contradicts among those that it replaces.
    pub entry: MemoryEntry,
    /// The item that holds and says the same already: it is confirmed, and the entry has its id.
    pub known: Option<ItemId>,
}

/// The item that is recorded if a host says so, which is never refused: what is named and is not there is a dangling end.
///
/// Cost: as [`decide`].
pub fn settle(view: &MemoryView<'_>, entry: &MemoryEntry) -> SettledMemory {
    let mut entry = spelled(view, entry);
    let lifespan = entry.lifespan.unwrap_or_else(|| asked_lifespan(view, &entry));
    entry.lifespan = Some(lifespan);
    match home(view, lifespan) {
        Some((stream, signer)) => settled(view, (stream, &signer), entry, lifespan),
        None => SettledMemory { entry, known: None },
    }
}

fn settled(
    view: &MemoryView<'_>,
    (stream, signer): (StreamId, &Signer),
    mut entry: MemoryEntry,
    lifespan: Lifespan,
) -> SettledMemory {
    if let Some(equal) = equal_item(view, stream, &entry, lifespan, value_signature(signer, &entry.value)) {
        equal.id().clone_into(&mut entry.id);
        return SettledMemory { entry, known: Some(equal.item()) };
    }
    let contradicted = contradicted(view, stream, &entry, lifespan);
    entry.replaces.extend(contradicted);
    if entry.id.is_empty() {
        entry.id = free_id(view, entry.kind);
    }
    SettledMemory { entry, known: None }
}

/// The stream that items of a lifespan are recorded in: the session's, project's or user's. If that is missing: for permanent
/// items the outermost stream, else the innermost.
fn home(view: &MemoryView<'_>, lifespan: Lifespan) -> Option<(StreamId, Signer)> {
    let writable: Vec<_> = view.layers().iter().filter(|layer| layer.is_writable()).collect();
    let nearest = if lifespan == Lifespan::Permanent { writable.last() } else { writable.first() };
    let layer = writable.iter().find(|layer| layer.records == lifespan).or(nearest)?;
    Some((layer.stream, layer.signer.clone()))
}

/// The current item with the same kind, lifespan, category, key and value. Notes never equal each other.
fn equal_item<'a>(
    view: &MemoryView<'a>,
    stream: StreamId,
    entry: &MemoryEntry,
    lifespan: Lifespan,
    signature: crate::ids::Signature,
) -> Option<MemoryItem<'a>> {
    let (_, memory) = view.stream(stream)?;
    let is_equal = |item: &MemoryItem<'_>| {
        item.kind() == entry.kind
            && item.lifespan() == lifespan
            && item.category() == entry.category
            && item.facts().record.value_signature == signature
    };
    match (entry.kind, entry.key.as_deref()) {
        (MemoryKind::Note, _) => None,
        (_, Some(key)) => memory.by_key(lifespan, &entry.category, key, view.now()).filter(is_equal),
        (_, None) => memory.with_value(signature, view.now()).rev().find(is_equal),
    }
}

/// Records an equal value as a reinforcement of the item with its id, with the links that the command asks for.
fn reinforce_instead(
    view: &MemoryView<'_>,
    stream: StreamId,
    entry: &MemoryEntry,
    known: ItemId,
) -> Result<MemoryDecision, MemoryRejection> {
    let id = &entry.id;
    let mut decision = one(stream, id, EventDraft::of(reinforcement(id), Bodies::default()));
    for old in entry.replaces.iter().filter(|old| *old != id) {
        let link = supersede(view, &MemoryRef::Id(old.clone()), &MemoryRef::Item(known), None)?;
        decision.drafts.extend(link.drafts);
    }
    Ok(decision)
}

fn supersede(
    view: &MemoryView<'_>,
    old: &MemoryRef,
    new: &MemoryRef,
    reason: Option<&str>,
) -> Result<MemoryDecision, MemoryRejection> {
    let (old_stream, old_item) = find(view, old)?;
    let (new_stream, new_item) = find(view, new)?;
    if old_stream != new_stream {
        return Err(MemoryRejection::OtherScope {
            old: old.clone(),
            old_lifespan: lifespan_label(old_item.lifespan()),
            new: new.clone(),
            new_lifespan: lifespan_label(new_item.lifespan()),
        });
    }
    if old_item.item() == new_item.item() {
        return Err(MemoryRejection::SupersedesItself { item: old.clone() });
    }
    if view.stream(old_stream).is_some_and(|(_, memory)| memory.leads_to(&new_item, &old_item)) {
        return Err(MemoryRejection::Cycle { old: old.clone(), new: new.clone() });
    }
    let mut rows = Bodies::default();
    let reason = text_body(&mut rows, "reason", reason)?;
    let payload = MemorySuperseded { old: old_item.id().to_owned(), new: new_item.id().to_owned(), reason };
    Ok(one(old_stream, new_item.id(), EventDraft::of(payload, rows)))
}

fn restore(view: &MemoryView<'_>, item: &MemoryRef) -> Result<MemoryDecision, MemoryRejection> {
    let (stream, found) = find_version(view, item)?;
    match found.standing(view.now()) {
        MemoryStatus::Superseded | MemoryStatus::Retracted => {}
        standing @ (MemoryStatus::Current | MemoryStatus::Expired | MemoryStatus::OffBranch) => {
            return Err(MemoryRejection::NothingToRestore { item: item.clone(), standing });
        }
    }
    let mut rows = Bodies::default();
    let targets = rows.add_copied(serde_json::json!([[found.item().to_string()]]).to_string());
    Ok(one(stream, found.id(), EventDraft::of(Restored { targets, items: vec![found.item()] }, rows)))
}

/// The item that a command names. It must be the newest version of its id.
fn find<'a>(view: &MemoryView<'a>, item: &MemoryRef) -> Result<(StreamId, MemoryItem<'a>), MemoryRejection> {
    let (stream, found) = find_version(view, item)?;
    let newest = view.stream(stream).and_then(|(_, memory)| memory.by_id(found.id()));
    match newest.filter(|newest| newest.item() != found.item()) {
        Some(newest) => Err(MemoryRejection::OlderVersion { item: item.clone(), newest: newest.item() }),
        None => Ok((stream, found)),
    }
}

fn find_version<'a>(
    view: &MemoryView<'a>,
    item: &MemoryRef,
) -> Result<(StreamId, MemoryItem<'a>), MemoryRejection> {
    let found = match item {
        MemoryRef::Id(id) => match view.named(id) {
            MemoryNamed::One(stream, found) => Some((stream, found)),
            MemoryNamed::Many(found) => {
                let ids = found.iter().map(|found| found.id().to_owned()).collect();
                return Err(MemoryRejection::Ambiguous { item: item.clone(), ids });
            }
            MemoryNamed::None => None,
        },
        MemoryRef::Item(item) => view.by_item(*item),
    };
    let is_writable = |stream| view.stream(stream).is_some_and(|(layer, _)| layer.is_writable());
    found
        .filter(|(stream, _)| is_writable(*stream))
        .ok_or_else(|| MemoryRejection::UnknownItem { item: item.clone() })
}

/// Ids of linked items, each checked to be in the stream that the new item goes to.
fn in_stream(
    view: &MemoryView<'_>,
    stream: StreamId,
    lifespan: Lifespan,
    entry: &MemoryEntry,
    ids: &[String],
) -> Result<Vec<String>, MemoryRejection> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let given = MemoryRef::from(id.as_str());
        if !entry.id.is_empty() && *id == entry.id {
            return Err(MemoryRejection::SupersedesItself { item: given });
        }
        let here = view.stream(stream).and_then(|(_, memory)| match &given {
            MemoryRef::Id(id) => memory.by_id(id),
            MemoryRef::Item(item) => memory.by_item(*item),
        });
        let Some(item) = here else {
            let (_, item) = find(view, &given)?;
            return Err(MemoryRejection::OtherScope {
                old_lifespan: lifespan_label(item.lifespan()),
                old: given,
                new: MemoryRef::Id(entry.id.clone()),
                new_lifespan: lifespan_label(lifespan),
            });
        };
        found.push(item.id().to_owned());
    }
    Ok(found)
}

/// The next free id of a kind: `f1`, `p2`, `d3`, `n4`.
fn free_id(view: &MemoryView<'_>, kind: MemoryKind) -> String {
    let letter = match kind {
        MemoryKind::Fact => 'f',
        MemoryKind::Preference => 'p',
        MemoryKind::Decision => 'd',
        MemoryKind::Note => 'n',
    };
    let recorded: u64 =
        view.streams().map(|(_, memory)| u64::from(memory.recorded_count(kind))).fold(0, u64::saturating_add);
    let ids = (recorded.saturating_add(1)..).map(|number| format!("{letter}{number}"));
    ids.into_iter().find(|id| view.by_id(id).is_none()).unwrap_or_default()
}

/// The categories of a kind; `None`: any.
const fn categories(kind: MemoryKind) -> Option<&'static [&'static str]> {
    match kind {
        MemoryKind::Fact => Some(FACT_CATEGORIES),
        MemoryKind::Preference => Some(PREFERENCE_CATEGORIES),
        MemoryKind::Decision | MemoryKind::Note => None,
    }
}

/// A category of a kind's list, in any case, as the list spells it.
fn known_category(kind: MemoryKind, given: &str) -> Option<&'static str> {
    categories(kind)?.iter().find(|known| known.eq_ignore_ascii_case(given)).copied()
}

fn check_category(entry: &MemoryEntry) -> Result<(), MemoryRejection> {
    let given = &entry.category;
    let Some(known) = categories(entry.kind) else { return check_name("category", given) };
    if known_category(entry.kind, given).is_some() {
        return Ok(());
    }
    let nearest = nearest(known.iter().copied(), given, -1.0).unwrap_or("other");
    let given = given.chars().take(64).collect();
    Err(MemoryRejection::UnknownCategory { kind: kind_label(entry.kind), given, nearest, known })
}

/// A blank key is none.
fn check_key(entry: &mut MemoryEntry) -> Result<(), MemoryRejection> {
    entry.key = entry.key.take().filter(|key| !key.trim().is_empty());
    match (entry.kind, entry.key.as_deref()) {
        (MemoryKind::Preference, None) => Err(MemoryRejection::EmptyKey),
        (MemoryKind::Preference, Some(key)) => check_name("key", key),
        (_, None) => Ok(()),
        (kind, Some(_)) => Err(MemoryRejection::UnexpectedKey { kind: kind_label(kind) }),
    }
}

fn check_name(what: &'static str, name: &str) -> Result<(), MemoryRejection> {
    check_length(what, name, NAME_BYTES_MAX)?;
    if name.chars().any(char::is_control) {
        return Err(MemoryRejection::ControlCharacters { what, given: name.to_owned() });
    }
    Ok(())
}

fn check_length(what: &'static str, text: &str, max: usize) -> Result<(), MemoryRejection> {
    if text.len() > max {
        return Err(MemoryRejection::TooLong { what, bytes: text.len(), max });
    }
    Ok(())
}

fn text_body(
    rows: &mut Bodies,
    what: &'static str,
    text: Option<&str>,
) -> Result<Option<crate::event::Body>, MemoryRejection> {
    let Some(text) = text else { return Ok(None) };
    check_length(what, text, VALUE_BYTES_MAX)?;
    Ok(Some(rows.add_copied(text)))
}

fn reinforcement(id: &str) -> MemoryReinforced {
    MemoryReinforced { id: id.to_owned(), amount: REINFORCEMENT, at: None }
}

fn one(stream: StreamId, id: &str, draft: EventDraft) -> MemoryDecision {
    MemoryDecision { stream, drafts: vec![draft], id: id.to_owned() }
}
