//! Todo lists, and what is injected because of them.

use std::sync::Arc;

use super::Step;
use crate::event::{InjectedKind, TodoList, TodoUpdate};
use crate::fold::core::{LEFT, PINNED, SUPERSEDED};
use crate::fold::history::RuleKind;
use crate::fold::number::{Ix, NONE};

impl Step<'_> {
    pub(super) fn injected(&mut self, ix: Ix) {
        self.core.born(ix);
        self.history.born(ix);
        let turn = self.core.turn;
        let previous = match self.facts.item(ix).and_then(|item| self.facts.extra(item.extra).injected) {
            Some(InjectedKind::Reminder) => {
                self.subs.todos.reminded(self.at, turn);
                self.core.reminder.replace(ix)
            }
            Some(InjectedKind::Reflection) => {
                self.subs.todos.reflected(self.at, turn);
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
        self.subs.todos.list_written(self.at, turn, None, turn, list, self.at);
        self.list_changed(NONE);
    }

    /// What a completed call did to the todo list.
    pub(super) fn todos_of(&mut self, ix: Ix, finish: u32) {
        let Some((id, started)) = self.facts.item(ix).map(|item| (item.id, item.turn)) else { return };
        let from_call =
            self.facts.call(ix).and_then(|call| self.facts.todo_lists.0.get(call.todos as usize)).cloned();
        let finish = self.facts.finishes.get(finish as usize);
        let from_result = finish.and_then(|finish| self.facts.finish_extra(finish)?.todos.clone());
        let list = match from_result.as_deref() {
            Some(TodoUpdate::Change(change)) => {
                self.subs.todos.changed(self.at, started, change);
                self.list_changed(ix.0);
                from_call.as_deref().map(|list| (list, id.seq))
            }
            Some(TodoUpdate::List(list)) => Some((list, self.at)),
            None => from_call.as_deref().map(|list| (list, id.seq)),
        };
        let Some((list, named_by)) = list else { return };
        self.subs.todos.list_written(self.at, self.core.turn, Some(id), started, list, named_by);
        // An older write that finishes late changes nothing.
        let place = Some((started, ix.0));
        if place >= self.core.todo_latest {
            self.core.todo_latest = place;
            self.list_changed(ix.0);
        }
    }
}
