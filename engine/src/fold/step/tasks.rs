//! Steps of todo lists and tasks.
//!
//! ```text
//! task T in progress since message m1 .. completed in m2
//!   outputs of T (tagged, or recorded while T was active)        -> tombstone
//!   assistant messages m1..=m2: first text or reasoning part     -> tombstone, their other such parts -> nothing
//!   the last of these places                                     -> the one with the summary
//! a call that T leaves open                                      -> when it ends, with the summary
//! ```
//!
//! User messages, calls with their parameters, and the order stay. While T is active only its newest outputs stay
//! (rolling prune). A pinned item is left alone. The texts are made when they are read. A change of the todo list ends the texts that
//! were injected because of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::FoldStep;
use crate::event::{Face, InjectedKind, Role, TaskChanged, TaskEvicted, TaskStatus, TodoList};
use crate::fold::facts::{EvictionFact, ItemKind};
use crate::fold::history::{Cause, Evicted, RuleKind};
use crate::fold::number::{Ix, NONE, Name, index};
use crate::fold::state::{BORN, EVICTED, LEFT, PINNED, SUPERSEDED};
use crate::ids::Seq;

/// The eviction of a completed task, if that is the cause.
const fn eviction_of(cause: &Cause) -> Option<u32> {
    match cause {
        Cause::Evicted { eviction, how, .. } if !matches!(how, Evicted::Rolling) => Some(*eviction),
        _ => None,
    }
}

impl FoldStep<'_> {
    /// An output belongs to the task that its tag names, else to the active one, else to the one that its call began under.
    pub(super) fn output_recorded(&mut self, ix: Ix, tag: Option<Name>) {
        let began = self.core.task_calls.remove(&ix);
        let late = began.filter(|_| tag.is_none() && self.core.task.is_none());
        if let Some(eviction) = late.and_then(|task| self.core.task_ended.get(&task)).copied() {
            self.ended_late(ix, eviction);
        } else if let Some(task) = tag.or(self.core.task).or(began) {
            self.belongs(ix, task);
        }
    }

    /// An output, or a tagged text, belongs to a task.
    pub(super) fn belongs(&mut self, ix: Ix, task: Name) {
        self.core.task_outputs.entry(task).or_default().push(ix);
        if self.core.task == Some(task) {
            self.core.task_recent.push_back(ix);
        }
    }

    /// Takes in a change of tasks; `named_by`: the event that names its bodies.
    pub(super) fn task_changed(&mut self, event: &TaskChanged, named_by: Seq) {
        Arc::make_mut(&mut self.subs.tasks).changed(self.at, self.core.turn, event, named_by);
        let newest = || {
            let count = self.facts.messages.partition_point(|message| message.since <= self.at);
            let known = self.facts.messages.get(..count).unwrap_or_default();
            index(known.iter().rposition(|message| message.role == Role::Assistant).unwrap_or(count))
        };
        let named = event.message.as_deref().and_then(|key| self.facts.names.find(key));
        let message = named.and_then(|key| self.facts.message_at(key, self.at)).unwrap_or_else(newest);
        for fields in &event.tasks {
            let task = self.facts.names.intern(&fields.id);
            let status = self.subs.tasks.task(&fields.id, self.at).map(|task| task.status);
            if matches!(status, Some(TaskStatus::Pending | TaskStatus::InProgress)) {
                self.reopened(task);
            }
            let begun = self.subs.tasks.task(&fields.id, self.at).and_then(|task| Some(task.begun?.seq));
            match begun {
                // The task begins anew: work before its last completion is no part of this round.
                Some(seq) if seq == self.at => {
                    self.core.task_begins.insert(task, message);
                    self.core.task_ended.remove(&task);
                }
                Some(_) => {}
                None => {
                    self.core.task_begins.remove(&task);
                }
            }
        }
        self.follow_active();
    }

    /// A completed task goes on: its items are shown again, and its outputs belong to it again.
    fn reopened(&mut self, task: Name) {
        let Some(eviction) = self.core.task_ended.remove(&task) else { return };
        let hidden = self.core.evicted.remove(&eviction).unwrap_or_default();
        for ix in hidden {
            let mut row = self.history.rows_of(ix).filter(|row| eviction_of(&row.cause) == Some(eviction));
            let is_output = row.any(|row| matches!(row.cause, Cause::Evicted { how: Evicted::Output, .. }));
            drop(row);
            self.history.end(ix, self.at, |row| eviction_of(&row.cause) == Some(eviction));
            self.core.unset(ix, EVICTED);
            if is_output {
                self.belongs(ix, task);
            }
        }
    }

    /// Notes which task is active now.
    fn follow_active(&mut self) {
        let active = self.subs.tasks.active(Seq::MAX).map(|task| self.facts.names.intern(task));
        if active != self.core.task {
            self.core.task = active;
            let outputs = active.and_then(|task| self.core.task_outputs.get(&task));
            self.core.task_recent = outputs.into_iter().flatten().copied().collect();
        }
    }

    /// Takes in the changes of tasks that a completed call's parameters ask for.
    pub(super) fn tasks_of(&mut self, ix: Ix) {
        let Some(call) = self.facts.item(ix).and_then(|item| self.facts.task_call(item.id.seq)) else {
            return;
        };
        let call = Arc::clone(call);
        // A task behind a summary stays behind it.
        let is_behind = |eviction: u32| {
            let known = self.facts.evictions.get(eviction as usize);
            known.is_some_and(|known| self.core.task_ended.contains_key(&known.task))
        };
        let ends: Vec<_> = call.ends.iter().filter(|(_, eviction)| !is_behind(*eviction)).collect();
        self.task_changed(&call.change, call.seq);
        for (end, eviction) in ends {
            self.task_evicted(end, *eviction, call.seq);
        }
    }

    /// Takes in the end of a task; `named_by`: the event that names its summary.
    pub(super) fn task_evicted(&mut self, event: &TaskEvicted, eviction: u32, named_by: Seq) {
        Arc::make_mut(&mut self.subs.tasks).evicted(self.at, event, named_by);
        self.follow_active();
        let Some(task) = self.facts.evictions.get(eviction as usize).map(|eviction| eviction.task) else {
            return;
        };
        self.core.task_ended.insert(task, eviction);
        let mut places: Vec<(Ix, Evicted)> = Vec::new();
        let outputs = self.core.task_outputs.remove(&task).unwrap_or_default();
        places.extend(outputs.iter().map(|ix| (*ix, Evicted::Output)));
        if let Some(first) = self.core.task_begins.remove(&task) {
            let named = event.message.as_deref().and_then(|key| self.facts.names.find(key));
            let last = named.and_then(|key| self.facts.message_at(key, self.at));
            // Without an end: up to the last message.
            let last = last.unwrap_or(NONE.saturating_sub(1));
            let messages = self.facts.messages.get(first as usize..).unwrap_or_default();
            // A task that ended before it began has the one message.
            let count = (last.saturating_sub(first) as usize).saturating_add(1);
            for message in messages.iter().take(count).filter(|message| message.role == Role::Assistant) {
                let mut how = Evicted::Assistant;
                for ix in self.facts.items_of(message) {
                    let spoken = self.facts.item(ix).is_some_and(|item| {
                        matches!(item.kind, ItemKind::Text | ItemKind::Reasoning)
                            && self.facts.extra(item.extra).task != Some(task)
                    });
                    if spoken && self.can_go(ix) {
                        places.push((ix, how));
                        // A part that already shows another text cannot stand for its message.
                        how = if self.shows_otherwise(ix) { how } else { Evicted::Dropped };
                    }
                }
            }
        }
        places.retain(|(ix, _)| self.can_go(*ix));
        places.sort_unstable_by_key(|(ix, _)| *ix);
        places.dedup_by_key(|(ix, _)| *ix);
        places.sort_by_key(|(ix, _)| self.stands_at(*ix));
        let carries = |(ix, how): &(Ix, Evicted)| *how != Evicted::Dropped && !self.shows_otherwise(*ix);
        let last = places.iter().rposition(carries);
        for (place, &(ix, how)) in places.iter().enumerate() {
            self.core.set(ix, EVICTED);
            let cause = Cause::Evicted { eviction, how, last: Some(place) == last };
            self.begin(ix, Face::Output, cause);
        }
        if self.facts.evictions.get(eviction as usize).is_some_and(|it| it.summary.is_some()) {
            self.core.evicted.insert(eviction, places.iter().map(|(ix, _)| *ix).collect());
        }
    }

    /// A content's place in the conversation: a result stands where it came, whatever the order of the calls.
    fn stands_at(&self, ix: Ix) -> (Seq, Ix) {
        let born = || self.facts.item(ix).map_or(Seq::ZERO, |item| item.id.seq);
        (self.ended(ix).map_or_else(born, |finish| finish.seq), ix)
    }

    /// Whether a cause shows on an item that an eviction would not replace.
    fn shows_otherwise(&self, ix: Ix) -> bool {
        let rank = Cause::Evicted { eviction: 0, how: Evicted::Output, last: false }.rank();
        let cause = self.history.cause(ix, Face::Output, Seq::MAX);
        cause.is_some_and(|row| row.cause.rank() < rank)
    }

    /// A call that was open when its task was completed has ended: its output goes behind the summary, too.
    fn ended_late(&mut self, ix: Ix, eviction: u32) {
        if self.can_go(ix) {
            // The summary stands in the last place, and only there.
            for earlier in self.core.evicted.get(&eviction).cloned().unwrap_or_default() {
                let shows = self.history.cause(earlier, Face::Output, Seq::MAX).map(|row| row.cause);
                if let Some(cause @ Cause::Evicted { how, last: true, .. }) = shows
                    && eviction_of(&cause) == Some(eviction)
                {
                    self.history.end(earlier, self.at, |row| row.cause == cause);
                    self.begin(earlier, Face::Output, Cause::Evicted { eviction, how, last: false });
                }
            }
            self.core.set(ix, EVICTED);
            self.begin(ix, Face::Output, Cause::Evicted { eviction, how: Evicted::Output, last: true });
            if let Some(hidden) = self.core.evicted.get_mut(&eviction) {
                hidden.push(ix);
            }
        }
    }

    /// The place of a task's summary may be gone: restored, cleared, left behind by a compaction. The summary of the items that are
    /// still hidden then moves to the last place that can bear it.
    ///
    /// `touched`: number of faces that were touched before the act. Cost: O(faces that the act touched, places of their evictions).
    pub(in crate::fold) fn move_summaries(&mut self, touched: usize) {
        if self.core.evicted.is_empty() {
            return;
        }
        let mut moved = BTreeSet::new();
        for (ix, _) in self.history.touched_since(touched) {
            moved.extend(self.history.rows_of(*ix).filter_map(|row| eviction_of(&row.cause)));
        }
        for eviction in moved {
            let Some(hidden) = self.core.evicted.get(&eviction) else { continue };
            let mut places: Vec<(Ix, Cause)> = Vec::with_capacity(hidden.len());
            for &ix in hidden {
                let shows = self.history.cause(ix, Face::Output, Seq::MAX).map(|row| row.cause);
                places.extend(
                    shows.filter(|cause| eviction_of(cause) == Some(eviction)).map(|cause| (ix, cause)),
                );
            }
            let is_last = |(_, cause): &(Ix, Cause)| matches!(cause, Cause::Evicted { last: true, .. });
            if places.iter().any(is_last) {
                continue;
            }
            places.sort_by_key(|(ix, _)| self.stands_at(*ix));
            let stands =
                |(_, cause): &&(Ix, Cause)| !matches!(cause, Cause::Evicted { how: Evicted::Dropped, .. });
            // If only places that show nothing are left, the last of them shows the summary.
            let heir = places.iter().rev().find(stands).or_else(|| places.last()).copied();
            let Some((ix, cause @ Cause::Evicted { how, .. })) = heir else { continue };
            self.history.end(ix, self.at, |row| row.cause == cause);
            let how = if how == Evicted::Dropped { Evicted::Assistant } else { how };
            self.begin(ix, Face::Output, Cause::Evicted { eviction, how, last: true });
        }
    }

    fn can_go(&self, ix: Ix) -> bool {
        let live = self.core.live(ix);
        live.is(BORN) && !live.is(LEFT | PINNED | EVICTED)
    }

    /// Rolling prune: only the newest outputs of the active task stay.
    pub(super) fn roll(&mut self, task: Name) {
        let keep = self.core.policy.task_outputs_max as usize;
        if self.core.task_recent.len() <= keep {
            return;
        }
        // One entry a prune, found by its seq, so that a fold of the active branch makes it once.
        let place = self.facts.evictions.partition_point(|eviction| eviction.seq < self.at);
        let known = self.facts.evictions.get(place).is_some_and(|eviction| eviction.seq == self.at);
        let eviction = index(place);
        if !known {
            self.facts.evictions.push(EvictionFact { seq: self.at, task, summary: None });
        }
        while self.core.task_recent.len() > keep {
            let Some(ix) = self.core.task_recent.pop_front() else { break };
            if self.can_go(ix) {
                let cause = Cause::Evicted { eviction, how: Evicted::Rolling, last: false };
                self.begin(ix, Face::Output, cause);
            }
        }
    }
}

impl FoldStep<'_> {
    pub(super) fn injected(&mut self, ix: Ix) {
        self.core.born(ix);
        self.history.born(ix);
        let turn = self.core.turn;
        let previous = match self.facts.item(ix).and_then(|item| self.facts.extra(item.extra).injected) {
            Some(InjectedKind::Reminder) => {
                Arc::make_mut(&mut self.subs.todos).reminded(self.at, turn);
                self.core.reminder.replace(ix)
            }
            Some(InjectedKind::Reflection) => {
                Arc::make_mut(&mut self.subs.todos).reflected(self.at, turn);
                self.core.reflection.replace(ix)
            }
            _ => None,
        };
        if let Some(old) = previous {
            self.replace_injected(old, ix.0);
        }
    }

    fn replace_injected(&mut self, old: Ix, new: u32) {
        let live = self.core.live(old);
        if !live.is(SUPERSEDED | LEFT | PINNED) {
            self.supersede(old, new, RuleKind::INJECTED, NONE);
        }
    }

    /// The todo list changed: reminder and reflection have done their work.
    pub(super) fn list_changed(&mut self, by: u32) {
        for old in [self.core.reminder.take(), self.core.reflection.take()].into_iter().flatten() {
            self.replace_injected(old, by);
        }
    }

    pub(super) fn todos_replaced(&mut self, list: &Arc<TodoList>) {
        let turn = self.core.turn;
        self.core.todo_latest = self.core.todo_latest.max(Some((turn, self.core.next_place())));
        Arc::make_mut(&mut self.subs.todos).list_written(self.at, turn, None, turn, list, self.at);
        self.list_changed(NONE);
    }
}
