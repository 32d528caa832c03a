//! A new item beside what is remembered: it is spelled, the items that it names are found, and those that it contradicts.

use super::{MemoryRef, default_category, known_category};
use crate::entry::MemoryEntry;
use crate::event::{Lifespan, MemoryKind};
use crate::fold::memory::{MemoryItem, MemoryNamed, MemoryView, value_signature};
use crate::ids::StreamId;

/// Current decisions of a category whose subjects are compared, newest first, at most.
const DECISIONS_COMPARED_MAX: usize = 500;

/// Words after " for " that name no subject: "for now", "for this".
const NO_SUBJECTS: &[&str] = &[
    "now", "today", "it", "this", "that", "these", "those", "them", "us", "me", "you", "example", "instance",
];

/// The subject of a decision's text: the words after its last ` for `, without article and final marks; lower-cased.
///
/// ```
/// use acpdb_engine::command::memory::decision_subject;
///
/// assert_eq!(decision_subject("Vue for the frontend.").as_deref(), Some("frontend"));
/// assert_eq!(decision_subject("Vue for now"), None);
/// ```
pub fn decision_subject(description: &str) -> Option<String> {
    let lower = description.to_lowercase();
    let (_, after) = lower.rsplit_once(" for ")?;
    let after = after.trim().trim_end_matches(['.', '!', '?', ':', ',', ';']).trim_end();
    let after =
        ["the ", "our ", "a ", "an "].iter().find_map(|article| after.strip_prefix(article)).unwrap_or(after);
    let after = after.trim();
    (!after.is_empty() && !NO_SUBJECTS.contains(&after)).then(|| after.to_owned())
}

/// An entry as it is recorded: category and key of a preference apart, and items that are named by words named by their ids.
pub(super) fn spelled(view: &MemoryView<'_>, entry: &MemoryEntry) -> MemoryEntry {
    let mut entry = entry.clone();
    let given = entry.category.trim();
    let category = known_category(entry.kind, given).unwrap_or(given).to_owned();
    entry.category = category;
    entry.subject = entry.subject.filter(|subject| !subject.trim().is_empty());
    if entry.kind == MemoryKind::Preference
        && let Some(key) = &entry.key
    {
        let key = key.trim().to_owned();
        let (category, key) =
            if entry.category.is_empty() { placed_key(view, &key) } else { (entry.category, key.as_str()) };
        entry.key = Some(key.to_owned());
        entry.category = category;
    }
    if entry.category.is_empty() {
        default_category(entry.kind).clone_into(&mut entry.category);
    }
    for old in &mut entry.replaces {
        if let MemoryNamed::One(stream, item) = view.named(old) {
            let by_id = view.by_id(item.id());
            let is_by_id = by_id.is_some_and(|(other, by_id)| (other, by_id.item()) == (stream, item.item()));
            *old = if is_by_id { item.id().to_owned() } else { item.item().to_string() };
        }
    }
    entry
}

/// Category and key of a preference that is named without a category: `category/key` if there is such a category, else the category
/// that holds the key now.
fn placed_key<'k>(view: &MemoryView<'_>, key: &'k str) -> (String, &'k str) {
    let halves = key.split_once('/').map(|(category, rest)| (category.trim(), rest.trim()));
    let named = halves.filter(|(_, rest)| !rest.is_empty()).and_then(|(category, rest)| {
        let is_held = || view.by_key(category, rest).map(|_| category);
        Some((known_category(MemoryKind::Preference, category).or_else(is_held)?.to_owned(), rest))
    });
    named.unwrap_or_else(|| (held_category(view, key).unwrap_or_default(), key))
}

/// The only category whose key holds a value now.
pub fn held_category(view: &MemoryView<'_>, key: &str) -> Option<String> {
    let current = view.current();
    let mut holders = current.iter().filter(|(_, item)| item.key() == Some(key));
    let category = holders.next()?.1.category();
    holders.all(|(_, item)| item.category() == category).then(|| category.to_owned())
}

/// The subject of a fact or decision: given, or what the text of a decision is for.
fn subject_of(kind: MemoryKind, given: Option<&str>, text: impl FnOnce() -> String) -> Option<String> {
    let given = given.map(str::trim).filter(|given| !given.is_empty()).map(str::to_lowercase);
    match kind {
        MemoryKind::Fact => given,
        MemoryKind::Decision => given.or_else(|| decision_subject(&text())),
        MemoryKind::Preference | MemoryKind::Note => None,
    }
}

/// How long an item is to hold that was asked for without saying so: as long as the item that it takes the place of, else as long as
/// its project.
pub(super) fn asked_lifespan(view: &MemoryView<'_>, entry: &MemoryEntry) -> Lifespan {
    let replaced = entry.replaces.iter().find_map(|old| match view.named(old) {
        MemoryNamed::One(_, item) => Some(item.lifespan()),
        MemoryNamed::Many(_) | MemoryNamed::None => None,
    });
    let permanent = || {
        let subject = entry.subject.as_deref()?;
        view.by_subject(entry.kind, Lifespan::Permanent, &entry.category, subject)
            .map(|_| Lifespan::Permanent)
    };
    replaced.or_else(permanent).unwrap_or(Lifespan::Project)
}

/// Ids of the current items of a stream that say something else on the subject of an entry; of decisions the newest.
pub(super) fn contradicted(
    view: &MemoryView<'_>,
    stream: StreamId,
    entry: &MemoryEntry,
    lifespan: Lifespan,
) -> Vec<String> {
    let subject = subject_of(entry.kind, entry.subject.as_deref(), || entry.value.clone());
    let (Some(subject), Some((layer, memory))) = (subject, view.stream(stream)) else { return Vec::new() };
    let signature = value_signature(&layer.signer, &entry.value);
    let differs = |item: &MemoryItem<'_>| {
        item.lifespan() == lifespan && item.facts().record.value_signature != signature
    };
    let found: Vec<MemoryItem<'_>> = if entry.kind == MemoryKind::Fact {
        memory
            .on_subject(entry.kind, lifespan, &entry.category, &subject, view.now())
            .filter(differs)
            .collect()
    } else {
        let said = |item: &MemoryItem<'_>| view.text(item).unwrap_or_default();
        let is_same = |item: &MemoryItem<'_>| {
            subject_of(entry.kind, item.subject(), || said(item)).as_ref() == Some(&subject)
        };
        let newest =
            memory.in_category(entry.kind, &entry.category, view.now()).rev().take(DECISIONS_COMPARED_MAX);
        newest.filter(differs).find(is_same).into_iter().collect()
    };
    let is_named = |item: &MemoryItem<'_>| {
        entry.replaces.iter().any(|old| match MemoryRef::from(old.as_str()) {
            MemoryRef::Id(id) => id == item.id(),
            MemoryRef::Item(place) => place == item.item(),
        })
    };
    found
        .iter()
        .filter(|item| item.id() != entry.id && !is_named(item))
        .map(|item| item.id().to_owned())
        .collect()
}
