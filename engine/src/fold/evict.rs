//! Task eviction: a completed task's outputs and words make room for its summary.
//!
//! ```text
//! task T in progress since message m1 .. completed in m2
//!   outputs of T (tagged, or recorded while T was active)        -> tombstone
//!   assistant messages m1..=m2: first text or reasoning part     -> tombstone, their other such parts -> nothing
//!   the last of these places                                     -> the one with the summary
//! ```
//!
//! User messages, calls with their parameters, and the order stay. While T is active only its newest outputs stay
//! (rolling prune). A pinned item is left alone. The texts are made when they are read.

use std::sync::Arc;

use super::core::{BORN, EVICTED, LEFT, PINNED, Step};
use super::facts::{Eviction, ItemKind, Ix, NONE, index};
use super::history::{Cause, Evicted};
use super::names::Name;
use crate::event::{Face, Role, TaskChanged, TaskEvicted, TaskStatus};
use crate::ids::Seq;

impl Step<'_> {
    /// An output belongs to the task that its tag names, else to the active one.
    pub(super) fn output_recorded(&mut self, ix: Ix, tag: Option<Name>) {
        if let Some(task) = tag.or(self.core.task) {
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

    pub(super) fn task_changed(&mut self, event: &Arc<TaskChanged>) {
        self.subs.tasks.changed(self.at, self.core.turn, event, self.at);
        let newest = || {
            let spoken = self.facts.messages.iter().rposition(|message| message.role == Role::Assistant);
            index(spoken.unwrap_or(self.facts.messages.len()))
        };
        let named = event.message.as_deref().and_then(|key| self.facts.names.find(key));
        let message = named.and_then(|key| self.facts.message_by_key(key)).unwrap_or_else(newest);
        for fields in &event.tasks {
            if fields.status == Some(TaskStatus::InProgress) {
                let task = self.facts.names.intern(&fields.id);
                self.core.task_begins.entry(task).or_insert(message);
            }
        }
        self.follow_active();
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

    pub(super) fn task_evicted(&mut self, event: &Arc<TaskEvicted>, eviction: u32) {
        self.subs.tasks.evicted(self.at, event);
        self.follow_active();
        let Some(task) = self.facts.rare.evictions.get(eviction as usize).map(|eviction| eviction.task)
        else {
            return;
        };
        let mut places: Vec<(Ix, Evicted)> = Vec::new();
        let outputs = self.core.task_outputs.remove(&task).unwrap_or_default();
        places.extend(outputs.iter().map(|ix| (*ix, Evicted::Output)));
        if let Some(first) = self.core.task_begins.remove(&task) {
            let named = event.message.as_deref().and_then(|key| self.facts.names.find(key));
            let last = named.and_then(|key| self.facts.message_by_key(key));
            let last = last.unwrap_or(NONE.saturating_sub(1));
            let messages = self.facts.messages.get(first as usize..).unwrap_or_default();
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
                        how = Evicted::Dropped;
                    }
                }
            }
        }
        places.retain(|(ix, _)| self.can_go(*ix));
        places.sort_unstable_by_key(|(ix, _)| *ix);
        places.dedup_by_key(|(ix, _)| *ix);
        let last = places.iter().rposition(|(_, how)| *how != Evicted::Dropped);
        for (place, &(ix, how)) in places.iter().enumerate() {
            self.core.set(ix, EVICTED);
            let cause = Cause::Evicted { eviction, how, last: Some(place) == last };
            self.begin(ix, Face::Output, cause);
        }
    }

    fn can_go(&self, ix: Ix) -> bool {
        let live = self.core.live(ix);
        live.is(BORN) && !live.is(LEFT | PINNED | EVICTED)
    }

    /// Rolling prune: of the active task only the newest outputs stay.
    pub(super) fn roll(&mut self) {
        let Some(task) = self.core.task else { return };
        let keep = self.core.policy.task_outputs_max as usize;
        if self.core.task_recent.len() <= keep {
            return;
        }
        // One entry a prune, found by its seq, so that a fold of the active branch makes it once.
        let place = self.facts.rare.evictions.partition_point(|eviction| eviction.seq < self.at);
        let known = self.facts.rare.evictions.get(place).is_some_and(|eviction| eviction.seq == self.at);
        let eviction = index(place);
        if !known {
            self.facts.rare.evictions.push(Eviction { seq: self.at, task, summary: None });
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
