//! The todo list of a stream: its versions, and since when each item is in progress; and reminders and reflections: whether one is due.
//!
//! ```text
//! whole lists (todowrite ..) --rank--> newer than the old one? --match old items--> a new set of items
//! changes (TaskUpdate ..)    ----------------------------------- one item of the set --> its next version
//! Injected reminder, reflection; `automata` ----------------------------------------> marks
//!
//! versions, marks: append-only, stamped with seq      read at w = the last one with seq <= w
//!
//! list update --initial turns--> reminder --repeat turns--> reminder --repeat turns--> ..      a list update restarts
//! automata    --initial turns--> reflection --initial turns--> reflection --> ..
//! ```
//!
//! The list is that of the completed write of the highest turn, then position: an older write that finishes late
//! changes nothing. Real todos have no ids, so an item is recognised by id, else content, else position; thus it keeps
//! the turn since which it is in progress. Texts stay in bodies: an item names the bodies that hold it.
//!
//! A rewind appends an *era*: reads from its seq on see the list of the branch that remains, reads below it still see
//! the earlier list. This module hides no call (that is the todo rule's work).
//!
//! Reminders and reflections are data that a host asks for. Asking shows nothing: a host that shows one records `Injected`, and
//! then the repeat clock runs. So both are pure functions of a state, a seq and a turn, and asking twice gives the same
//! answer twice.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::Serialize;

use super::stamped::last_until;
use crate::event::{TodoChange, TodoHead, TodoList};
use crate::ids::{ItemId, Seq, Signature, Turn};

pub use self::source::TodoSource;
use self::versions::{ItemSet, ListedItem, TodoListAt};

/// Status of an item that is being worked on.
pub const IN_PROGRESS: &str = "in_progress";
/// Status of an item not begun; also of an unknown item, if the change that brings it names no status.
pub const PENDING: &str = "pending";
/// Status of an item that was taken off the list by a change.
pub const DELETED: &str = "deleted";

fn is_open(status: &str) -> bool {
    status == PENDING || status == IN_PROGRESS
}

/// One item of a list.
#[derive(Serialize, Clone, PartialEq, Eq, Hash, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct TodoEntry {
    /// The host's id, if it has one.
    pub id: Option<String>,
    /// Signature of the content; zero if unknown.
    #[serde(rename = "content")]
    pub content_signature: Signature,
    /// Status as given.
    pub status: String,
    /// Priority as given.
    pub priority: Option<String>,
    /// Place in the list, from 0.
    pub position: u32,
    /// The turn since which it is in progress, without a pause; `None` if it is not.
    #[serde(rename = "inProgressSince")]
    pub in_progress_since: Option<Turn>,
    /// The sources of its text, oldest first; fields other than status come from there.
    #[serde(rename = "sources")]
    pub entry: Vec<TodoSource>,
}

impl TodoEntry {
    /// Whether the item is to be done still: pending or in progress.
    pub fn is_open(&self) -> bool {
        is_open(&self.status)
    }

    /// Whether a change took the item off the list; it stays in the view so that positions hold.
    pub fn is_deleted(&self) -> bool {
        self.status == DELETED
    }
}

/// The list as of some seq.
#[derive(Serialize, Clone, PartialEq, Eq, Hash, Debug)]
pub struct TodoView {
    /// The event of its newest change.
    pub seq: Seq,
    /// Turn of the newest update.
    pub turn: Turn,
    /// Its items in order, deleted ones included.
    pub items: Vec<Arc<TodoEntry>>,
}

/// An item that has been in progress for long.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StuckTodo {
    /// Its place in the list, from 0.
    pub position: u32,
    /// Turns it has been in progress.
    pub turns: u32,
}

/// The order of whole lists: the writing call's turn, then its position in the log.
type Rank = (Turn, ItemId);

/// A reminder or reflection that was shown, or the activation of automata mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct TodoMark {
    pub(super) seq: Seq,
    pub(super) turn: Turn,
}

/// Lists and marks between two rewinds. The first `inherited` versions came with the rewind.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct TodoEra {
    since: Seq,
    inherited: usize,
    /// One a whole list, with the changes that followed it.
    sets: Vec<ItemSet>,
    reminders: Vec<TodoMark>,
    reflections: Vec<TodoMark>,
    automata: Option<TodoMark>,
}

/// The todo list of one stream, at every seq.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct TodoState {
    /// The first era; further ones begin with a rewind each.
    first: TodoEra,
    later: Vec<TodoEra>,
}

impl TodoState {
    /// A completed call (or the host itself, without one) wrote the whole list.
    ///
    /// `seq`, `turn`: of the event that is folded. `call`, `call_turn`: the writing call and the turn it started in.
    /// `list_seq`: the event that names the list's body. An older write that finishes late changes nothing.
    pub fn list_written(
        &mut self,
        seq: Seq,
        turn: Turn,
        call: Option<ItemId>,
        call_turn: Turn,
        list: &TodoList,
        list_seq: Seq,
    ) {
        let rank = match call {
            Some(call) => (call_turn, call),
            None => (turn, ItemId::first(seq)),
        };
        let era = self.newest_mut();
        let old = era.sets.last().and_then(|set| set.at(Seq::MAX));
        if old.is_some_and(|old| old.rank() > rank) {
            return;
        }
        let old_items: Vec<ListedItem<'_>> = old.into_iter().flat_map(TodoListAt::items).collect();
        let matches = match_items(&old_items, &list.items);
        let body = list.body.id(list_seq);
        let entries = list.items.iter().zip(matches).zip(0u32..).map(|((head, matched), index)| {
            let since = matched.and_then(ListedItem::in_progress_since);
            TodoEntry {
                id: head.id.clone(),
                content_signature: head.content,
                status: head.status.clone(),
                priority: head.priority.clone(),
                position: index,
                in_progress_since: (head.status == IN_PROGRESS).then(|| since.unwrap_or(rank.0)),
                entry: vec![TodoSource::List { body, index }],
            }
        });
        let set = ItemSet::of_list(seq, rank, entries);
        era.sets.push(set);
    }

    /// One item changed. An unknown id makes a new item at the end. `turn`: of the call that did it, or of the event.
    ///
    /// Cost: one look-up of the item, however long the list is.
    pub fn changed(&mut self, seq: Seq, turn: Turn, change: &TodoChange) {
        let era = self.newest_mut();
        if let Some(set) = era.sets.last_mut() {
            set.change(seq, turn, change);
        } else {
            let mut set = ItemSet::default();
            set.change(seq, turn, change);
            era.sets.push(set);
        }
    }

    /// A reminder was shown.
    pub fn reminded(&mut self, seq: Seq, turn: Turn) {
        self.newest_mut().reminders.push(TodoMark { seq, turn });
    }

    /// A reflection was shown.
    pub fn reflected(&mut self, seq: Seq, turn: Turn) {
        self.newest_mut().reflections.push(TodoMark { seq, turn });
    }

    /// A user text contained `automata`: switches automata mode on, for good. Later ones change nothing.
    pub fn automata(&mut self, seq: Seq, turn: Turn) {
        self.newest_mut().automata.get_or_insert(TodoMark { seq, turn });
    }

    /// A rewind, recorded at `seq`: reads from `seq` on see the newest state of `fresh`, the fold of the branch that
    /// remains. Reads below `seq` are as before.
    pub fn rewound(&mut self, seq: Seq, fresh: Self) {
        let mut era = fresh.later.into_iter().next_back().unwrap_or(fresh.first);
        era.since = seq;
        // The last mark stays, if there is one.
        let keep_last = |marks: &mut Vec<TodoMark>| drop(marks.drain(..marks.len().saturating_sub(1)));
        era.sets = era.sets.last().and_then(ItemSet::newest_alone).into_iter().collect();
        keep_last(&mut era.reminders);
        keep_last(&mut era.reflections);
        era.inherited = era.sets.len();
        self.later.push(era);
    }

    /// The list as of `at`; `None` if there was none. Cost: O(its items, and the sources of their texts).
    pub fn list(&self, at: Seq) -> Option<TodoView> {
        self.listed(at).map(TodoListAt::view)
    }

    fn listed(&self, at: Seq) -> Option<TodoListAt<'_>> {
        let era = self.era(at);
        let count = era.sets.partition_point(|set| set.begun().is_some_and(|begun| begun <= at));
        era.sets.get(count.checked_sub(1)?)?.at(at)
    }

    /// Every version of the list ever recorded, oldest first, off the branch or not.
    ///
    /// Each version is assembled when it is asked for; versions share the items in which they do not differ.
    pub fn history(&self) -> impl Iterator<Item = TodoView> {
        self.eras().flat_map(|era| era.sets.iter().flat_map(ItemSet::views).skip(era.inherited))
    }

    /// Items in progress for at least `stuck_turns` at turn `now`, in list order.
    pub fn stuck(&self, at: Seq, now: Turn, stuck_turns: u32) -> impl Iterator<Item = StuckTodo> {
        self.listed(at).into_iter().flat_map(TodoListAt::items).filter_map(move |item| {
            let turns = now.since(item.in_progress_since()?);
            (turns >= stuck_turns).then_some(StuckTodo { position: item.position(), turns })
        })
    }

    /// The newest reminder as of `at`.
    pub(super) fn last_reminder(&self, at: Seq) -> Option<TodoMark> {
        last_until(&self.era(at).reminders, at, |mark| mark.seq).copied()
    }

    /// The newest reflection as of `at`.
    pub(super) fn last_reflection(&self, at: Seq) -> Option<TodoMark> {
        last_until(&self.era(at).reflections, at, |mark| mark.seq).copied()
    }

    /// When automata mode began, if it has as of `at`.
    pub(super) fn automata_since(&self, at: Seq) -> Option<TodoMark> {
        self.era(at).automata.filter(|mark| mark.seq <= at)
    }

    fn eras(&self) -> impl Iterator<Item = &TodoEra> {
        std::iter::once(&self.first).chain(&self.later)
    }

    fn era(&self, at: Seq) -> &TodoEra {
        self.later.iter().rev().find(|era| era.since <= at).unwrap_or(&self.first)
    }

    fn newest_mut(&mut self) -> &mut TodoEra {
        self.later.last_mut().unwrap_or(&mut self.first)
    }
}

/// Finds the old item that each new one continues: by id, else by content in order, else by position.
///
/// Each old item is used once; items with different ids never match. Cost: O(n log n).
fn match_items<'a>(old: &[ListedItem<'a>], new: &[TodoHead]) -> Vec<Option<ListedItem<'a>>> {
    let mut free: Vec<Option<ListedItem<'_>>> = old.iter().copied().map(Some).collect();
    let mut matches: Vec<Option<ListedItem<'_>>> = vec![None; new.len()];

    let mut by_id: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for (index, item) in old.iter().enumerate() {
        if let Some(id) = item.id() {
            by_id.entry(id).or_default().push_back(index);
        }
    }
    for (head, matched) in new.iter().zip(&mut matches) {
        let same = head.id.as_deref().and_then(|id| by_id.get_mut(id)?.pop_front());
        *matched = same.and_then(|index| free.get_mut(index)?.take());
    }

    // Old items of one content, without and with an id: a remaining item with an id fits only a new item without one.
    let mut by_content: BTreeMap<Signature, [VecDeque<usize>; 2]> = BTreeMap::new();
    for (index, item) in free.iter().enumerate() {
        if let Some(item) = item.filter(|item| !item.content().is_zero()) {
            let [plain, named] = by_content.entry(item.content()).or_default();
            if item.id().is_some() { named.push_back(index) } else { plain.push_back(index) }
        }
    }
    for (head, matched) in new.iter().zip(&mut matches).filter(|(_, matched)| matched.is_none()) {
        let Some([plain, named]) = by_content.get_mut(&head.content) else { continue };
        let named_first = match (plain.front(), named.front()) {
            (Some(plain), Some(named)) => named < plain,
            (plain, _) => plain.is_none(),
        };
        let equal = if head.id.is_none() && named_first { named.pop_front() } else { plain.pop_front() };
        *matched = equal.and_then(|index| free.get_mut(index)?.take());
    }

    for ((head, matched), item) in new.iter().zip(&mut matches).zip(free) {
        if matched.is_none() {
            *matched = item.filter(|item| ids_agree(*item, head));
        }
    }
    matches
}

/// An item with an id never matches one with another id.
fn ids_agree(item: ListedItem<'_>, head: &TodoHead) -> bool {
    match (item.id(), &head.id) {
        (Some(old), Some(new)) => old == new,
        _ => true,
    }
}

mod source;
mod versions;

pub use super::policy_values::{ReflectionSettings, ReminderSettings};

/// A reminder that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReminderDue {
    /// The turn it is due in.
    pub turn: Turn,
    /// Turns since the list was updated.
    pub turns_since_update: u32,
    /// Turns that the longest stuck task has been in progress, if one is stuck.
    pub stuck_turns: Option<u32>,
}

impl TodoState {
    /// The reminder that is due at turn `now`, read at `at`, if one is due.
    ///
    /// Only for lists with an item that is pending or in progress. Cost: O(items of the list).
    pub fn reminder_due(&self, at: Seq, now: Turn, settings: &ReminderSettings) -> Option<ReminderDue> {
        let list = self.listed(at).filter(|_| settings.enabled)?;
        if !list.items().any(|item| is_open(item.status())) {
            return None;
        }
        let turns_since_update = now.since(list.turn());
        // A reminder from before the update belongs to a cycle that is over.
        let due = match self.last_reminder(at).filter(|reminder| reminder.seq > list.seq()) {
            Some(reminder) => now.since(reminder.turn) >= settings.repeat_turns,
            None => turns_since_update >= settings.initial_turns,
        };
        if !due {
            return None;
        }
        let stuck_turns = self.stuck(at, now, settings.stuck_task_turns).map(|stuck| stuck.turns).max();
        Some(ReminderDue { turn: now, turns_since_update, stuck_turns })
    }

    /// Whether a reflection is due at turn `now`, read at `at`.
    pub fn is_reflection_due(&self, at: Seq, now: Turn, settings: &ReflectionSettings) -> bool {
        let Some(begun) = self.automata_since(at).filter(|_| settings.enabled) else { return false };
        let last = self.last_reflection(at).filter(|last| last.seq > begun.seq).unwrap_or(begun);
        now.since(last.turn) >= settings.initial_turns
    }

    /// Whether automata mode is on as of `at`.
    #[cfg(any(test, feature = "testing"))]
    pub fn is_automata(&self, at: Seq) -> bool {
        self.automata_since(at).is_some()
    }
}

#[cfg(test)]
mod tests;
