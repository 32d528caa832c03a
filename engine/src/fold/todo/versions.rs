//! The versions of a todo list from one whole list to the next: each item once, with its changes.
//!
//! ```text
//! whole list ---------------> a new set: version 0, with its items
//! change of an item --------> one more version of that item, and of the set
//!
//! list at a version = each item there is by then, as it first was, with its changes up to that version
//! ```
//!
//! A list of n items that is changed m times takes room for n + m, and each change costs the look-up of its item. Lists are assembled
//! when they are read.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{IN_PROGRESS, PENDING, Rank, TodoEntry, TodoSource, TodoView};
use crate::event::TodoChange;
use crate::fold::number::{index, pushed};
use crate::ids::{ItemId, Seq, Signature, Turn};

/// One version of a list.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct ListVersion {
    seq: Seq,
    rank: Rank,
    /// Index of the one item that is new or changed; `None` of a whole list.
    changed: Option<u32>,
}

/// A change of an item: its values after the change.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct TodoItemChange {
    /// The version of the list that it made.
    version: u32,
    content_signature: Signature,
    status: String,
    in_progress_since: Option<Turn>,
    /// One more source of the item's text.
    source: Option<TodoSource>,
}

/// An item as it first was, and its changes.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct TodoItem {
    /// The version of the list that brought it.
    since: u32,
    first: TodoEntry,
    changes: Vec<TodoItemChange>,
}

/// A whole list, and the changes of its items until the next one.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct ItemSet {
    versions: Vec<ListVersion>,
    /// In the order of the list, and so of the versions that brought them.
    items: Vec<TodoItem>,
    /// The first item with an id, by id. Made when an item is first changed: most lists are only written whole.
    #[rkyv(with = rkyv::with::Skip)]
    by_id: BTreeMap<String, u32>,
}

/// A list at one of its versions.
#[derive(Clone, Copy)]
pub(super) struct TodoListAt<'a> {
    set: &'a ItemSet,
    version: &'a ListVersion,
    number: u32,
}

/// An item at one of the list's versions.
#[derive(Clone, Copy)]
pub(super) struct ListedItem<'a> {
    first: &'a TodoEntry,
    changes: &'a [TodoItemChange],
}

impl ItemSet {
    /// The set that a whole list begins.
    pub(super) fn of_list(seq: Seq, rank: Rank, entries: impl Iterator<Item = TodoEntry>) -> Self {
        let items = entries.map(|first| TodoItem { since: 0, first, changes: Vec::new() }).collect();
        Self { versions: vec![ListVersion { seq, rank, changed: None }], items, by_id: BTreeMap::new() }
    }

    /// Changes one item; an id that is unknown makes a new one at the end.
    pub(super) fn change(&mut self, seq: Seq, turn: Turn, change: &TodoChange) {
        if self.by_id.is_empty() {
            for (place, item) in (0..).zip(&self.items) {
                if let Some(id) = &item.first.id {
                    self.by_id.entry(id.clone()).or_insert(place);
                }
            }
        }
        let version = index(self.versions.len());
        let known = self.by_id.get(&change.id).copied();
        let before = known.and_then(|place| Some(self.items.get(place as usize)?.at(version)));
        let status =
            change.status.as_deref().or(before.map(ListedItem::status)).unwrap_or(PENDING).to_owned();
        let content_signature = change.content.or(before.map(ListedItem::content)).unwrap_or(Signature::ZERO);
        let since = before.and_then(ListedItem::in_progress_since);
        let in_progress_since = (status == IN_PROGRESS).then(|| since.unwrap_or(turn));
        let source = change.entry.map(|body| TodoSource::Change { body: body.id(seq) });
        let place = if let Some(place) = known {
            if let Some(item) = self.items.get_mut(place as usize) {
                item.changes.push(TodoItemChange {
                    version,
                    content_signature,
                    status,
                    in_progress_since,
                    source,
                });
            }
            place
        } else {
            let first = TodoEntry {
                id: Some(change.id.clone()),
                content_signature,
                status,
                priority: None,
                position: index(self.items.len()),
                in_progress_since,
                entry: source.into_iter().collect(),
            };
            let place = pushed(&mut self.items, TodoItem { since: version, first, changes: Vec::new() });
            self.by_id.insert(change.id.clone(), place);
            place
        };
        let rank = (turn, ItemId::first(seq));
        let rank = self.versions.last().map_or(rank, |old| rank.max(old.rank));
        self.versions.push(ListVersion { seq, rank, changed: Some(place) });
    }

    /// The event that began the set.
    pub(super) fn begun(&self) -> Option<Seq> {
        self.versions.first().map(|version| version.seq)
    }

    /// The list as of `at`; `None` if it began later.
    pub(super) fn at(&self, at: Seq) -> Option<TodoListAt<'_>> {
        let count = self.versions.partition_point(|version| version.seq <= at);
        self.listed(count.checked_sub(1)?)
    }

    fn listed(&self, number: usize) -> Option<TodoListAt<'_>> {
        Some(TodoListAt { set: self, version: self.versions.get(number)?, number: index(number) })
    }

    /// The newest version of the set alone.
    pub(super) fn newest_alone(&self) -> Option<Self> {
        let list = self.at(Seq::MAX)?;
        Some(Self::of_list(list.seq(), list.rank(), list.items().map(ListedItem::entry)))
    }

    /// All versions of the set, oldest first. An item that a version did not change is shared with the one before.
    pub(super) fn views(&self) -> impl Iterator<Item = TodoView> {
        let mut items: Vec<Arc<TodoEntry>> = Vec::new();
        (0..self.versions.len()).filter_map(move |number| {
            let list = self.listed(number)?;
            let changed =
                list.version.changed.and_then(|place| Some((place, self.items.get(place as usize)?)));
            if let Some((place, item)) = changed {
                let entry = Arc::new(item.at(list.number).entry());
                match items.get_mut(place as usize) {
                    Some(known) => *known = entry,
                    None => items.push(entry),
                }
            } else {
                items = list.items().map(|item| Arc::new(item.entry())).collect();
            }
            Some(TodoView { seq: list.seq(), turn: list.turn(), items: items.clone() })
        })
    }
}

impl TodoItem {
    fn at(&self, version: u32) -> ListedItem<'_> {
        let count = self.changes.partition_point(|change| change.version <= version);
        ListedItem { first: &self.first, changes: self.changes.get(..count).unwrap_or(&self.changes) }
    }
}

impl<'a> TodoListAt<'a> {
    pub(super) const fn seq(self) -> Seq {
        self.version.seq
    }

    pub(super) const fn rank(self) -> Rank {
        self.version.rank
    }

    /// Turn of the newest update.
    pub(super) const fn turn(self) -> Turn {
        self.version.rank.0
    }

    pub(super) fn items(self) -> impl Iterator<Item = ListedItem<'a>> {
        let there = self.set.items.iter().take_while(move |item| item.since <= self.number);
        there.map(move |item| item.at(self.number))
    }

    pub(super) fn view(self) -> TodoView {
        let items = self.items().map(|item| Arc::new(item.entry())).collect();
        TodoView { seq: self.seq(), turn: self.turn(), items }
    }
}

impl<'a> ListedItem<'a> {
    pub(super) fn id(self) -> Option<&'a str> {
        self.first.id.as_deref()
    }

    pub(super) const fn position(self) -> u32 {
        self.first.position
    }

    pub(super) fn content(self) -> Signature {
        self.changes.last().map_or(self.first.content_signature, |change| change.content_signature)
    }

    pub(super) fn status(self) -> &'a str {
        self.changes.last().map_or(&self.first.status, |change| &change.status)
    }

    pub(super) fn in_progress_since(self) -> Option<Turn> {
        self.changes.last().map_or(self.first.in_progress_since, |change| change.in_progress_since)
    }

    pub(super) fn entry(self) -> TodoEntry {
        let more = self.changes.iter().filter_map(|change| change.source);
        TodoEntry {
            id: self.first.id.clone(),
            content_signature: self.content(),
            status: self.status().to_owned(),
            priority: self.first.priority.clone(),
            position: self.position(),
            in_progress_since: self.in_progress_since(),
            entry: self.first.entry.iter().copied().chain(more).collect(),
        }
    }
}
