//! One step of the fold: an operation changes the present, and rules draw conclusions from it.
//!
//! ```text
//! step(op):  Start -> open      Finish -> ready? --rules--> edges        TurnStarted -> due items
//!                                    \--lay--> claims                      protection, quiet steps, shortening, prune
//! ```
//!
//! Acts and compactions stand in [`acts`], idle items in [`idle`], evictions of tasks, todo lists and the texts injected
//! because of them in [`tasks`].
//!
//! Cost of one step: O(its changes). A step scans only the calls that a rule finds, and those that the rule throws out.

mod acts;
mod idle;
mod tasks;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::idle::take_due;
use super::claims::{Keep, Pair};
use super::facts::{Facts, Finish, Size};
use super::history::{Cause, EdgeRow, History, RuleKind, ShortenKind};
use super::number::{Ix, KeyId, NONE, Name, index};
use super::op::Op;
use super::policy::SharedPolicy;
use super::rules::shorten::{Acts, Subject};
use super::rules::{Clear, Finds, Guard, Look, RULES, SHORTENING};
use super::state::{BORN, CLEARED, Core, LEFT, PINNED, READY, RESTORED, SUPERSEDED, Status, Subs};
use crate::event::{Face, KeyKind, Outcome, TodoUpdate, ToolClass};
use crate::ids::{ItemId, Seq, Turn};

/// One step of the fold: the operation's stream, borrowed in its parts.
pub(crate) struct FoldStep<'a> {
    pub(crate) facts: &'a mut Facts,
    pub(crate) core: &'a mut Core,
    pub(crate) history: &'a mut History,
    pub(crate) subs: &'a mut Subs,
    pub(crate) at: Seq,
}

/// Makes a [`Look`] of a step without borrowing the whole of it.
macro_rules! look {
    ($step:expr) => {
        Look { facts: &*$step.facts, policy: &$step.core.policy, lists: &$step.core.lists }
    };
}

impl FoldStep<'_> {
    /// Folds one operation.
    pub(crate) fn run(&mut self, op: &Op) {
        let touched = self.history.touched_count();
        match op {
            Op::Start(ix) => self.start(*ix),
            Op::Finish(finish) => self.finish(*finish),
            Op::Parts { first, count } => self.parts(*first, *count),
            Op::Turn { key, number, idle_seconds } => self.turn(*key, *number, *idle_seconds),
            Op::Prompt => {
                self.history.prompts.push(self.at);
                self.prompted();
            }
            Op::Policy { policy, own } => self.policy(policy, *own),
            Op::Replace(order) => self.replace(order),
            Op::Clear(act) => self.clear(*act),
            Op::Rewound { turn, policy, own, .. } => {
                self.core.turn = self.core.turn.max(*turn);
                if self.core.policy != *policy || self.core.own_policy != *own {
                    self.policy(policy, *own);
                }
            }
            Op::FileChanged(key) => self.file_changed(*key),
            Op::Abandon(message) => self.abandon(*message),
            Op::Revise(revision) => self.revise(*revision),
            Op::Hide(act) => self.hide(*act),
            Op::Restore { items, moment } => {
                self.each(items, Self::restore);
                Arc::make_mut(&mut self.subs.memory).restored(self.at, *moment, items);
            }
            Op::Pin(items) => self.each(items, Self::pin),
            Op::Unpin(items) => self.each(items, Self::unpin),
            Op::Closed => Arc::make_mut(&mut self.subs.memory).closed(self.at),
            Op::Injected(ix) => self.injected(*ix),
            Op::TodosReplaced(list) => self.todos_replaced(list),
            Op::TodoChanged(change) => {
                Arc::make_mut(&mut self.subs.todos).changed(self.at, self.core.turn, change);
                self.list_changed(NONE);
            }
            Op::TaskChanged(event) => self.task_changed(event, self.at),
            Op::TaskEvicted { event, eviction } => self.task_evicted(event, *eviction, self.at),
            Op::Memory(event) => Arc::make_mut(&mut self.subs.memory).fold(event),
        }
        // The place that bore a summary may be gone, also by a host's clear of a call whose result came only now.
        self.move_summaries(touched);
    }

    fn each(&mut self, items: &[ItemId], act: fn(&mut Self, Ix)) {
        let found: Vec<Ix> = items.iter().filter_map(|item| self.facts.find(*item)).collect();
        for ix in found {
            act(self, ix);
        }
    }

    pub(super) fn begin(&mut self, ix: Ix, face: Face, cause: Cause) {
        self.history.begin(ix, face, cause, self.at, self.core.turn);
    }

    fn start(&mut self, ix: Ix) {
        self.core.born(ix);
        self.history.born(ix);
        self.history.touch(ix, Face::Input);
        self.core.lists.learn(self.facts, &self.core.policy, ix);
        self.touch_files(ix);
        if let Some(call) = self.facts.call(ix) {
            self.core.open.entry(call.host_id).or_default().push(ix);
        }
        // The call belongs to this task if no task is active when it ends.
        if let Some(task) = self.core.task {
            self.core.task_calls.insert(ix, task);
        }
    }

    fn touch_files(&mut self, ix: Ix) {
        let Some(call) = self.facts.call(ix) else { return };
        for key in self.facts.keys_of(call).iter().filter(|key| key.kind == KeyKind::File) {
            self.core.quiet.touch(key, self.core.turn.0);
        }
    }

    fn finish(&mut self, number: u32) {
        let Some(finish) = self.facts.finishes.get(number as usize) else { return };
        let (host_id, outcome, tag) = (finish.host_id, finish.outcome, finish.task);
        let waiting = self.core.open.get_mut(&host_id);
        let paired = waiting.and_then(|open| {
            let ix = open.pop()?;
            Some((ix, open.is_empty()))
        });
        let Some((ix, last)) = paired else {
            self.orphan(number);
            return;
        };
        if last {
            self.core.open.remove(&host_id);
        }
        if let Some(live) = self.core.live.get_mut(ix.at()) {
            live.status = outcome.into();
        }
        self.begin(ix, Face::Output, Cause::Answered { finish: number });
        self.touch_files(ix);
        if self.has_task(tag) {
            self.output_recorded(ix, tag);
        }
        if outcome == Outcome::Completed {
            self.todos_of(ix, number);
            self.tasks_of(ix);
        }
        if self.core.live(ix).is(LEFT) {
            return;
        }
        self.schedule(ix);
        self.shorten_at_birth();
        if outcome == Outcome::Completed {
            self.completed(ix);
        } else {
            self.lay(ix);
        }
    }

    /// A result that no call waits for is an item of its own.
    fn orphan(&mut self, number: u32) {
        let Some(finish) = self.facts.finishes.get(number as usize) else { return };
        let (known, tag) = (finish.orphan, finish.task);
        let ix = if known == NONE { self.facts.orphan(number, self.core.turn) } else { Ix(known) };
        self.core.born(ix);
        self.history.born(ix);
        self.begin(ix, Face::Output, Cause::Answered { finish: number });
        self.output_recorded(ix, tag);
    }

    fn completed(&mut self, ix: Ix) {
        let born = self.facts.item(ix).map_or(Turn(0), |item| item.turn);
        let age = self.core.policy.turn_protection.age_min();
        if self.core.turn.since(born) >= age {
            self.ready(ix);
        } else {
            self.core.protected.entry(born.0.saturating_add(age)).or_default().push(ix);
        }
    }

    /// The call is ready: the rules run, then it can itself be found.
    fn ready(&mut self, ix: Ix) {
        self.core.set(ix, READY);
        if self.core.policy.automatic {
            for (number, rule) in RULES.iter().enumerate() {
                // Edges that wait for a file to rest come about just before the file rule is asked.
                if matches!(rule.finds, Finds::Files) {
                    self.show_anew(ix);
                }
                if rule.is_on(number, &self.core.policy) {
                    self.apply_rule(number, ix);
                }
            }
        }
        self.lay(ix);
    }

    /// A read shows its files anew: edges that waited for them to rest need not wait.
    fn show_anew(&mut self, ix: Ix) {
        let look = look!(self);
        let files: Vec<_> = look
            .keys(ix)
            .filter(|(_, key)| key.kind == KeyKind::File && key.class == ToolClass::Read)
            .map(|(_, key)| look.id(key))
            .filter(|file| self.core.quiet.has(*file))
            .collect();
        if !files.is_empty() {
            let pairs = self.core.quiet.take(&files);
            self.fire(&pairs);
        }
    }

    fn fire(&mut self, pairs: &[Pair]) {
        for pair in pairs {
            let rule = &super::rules::file::RULE;
            let (old, new) = (self.core.live(pair.old), self.core.live(pair.new));
            // The present policy says whether the two are of one file.
            let look = look!(self);
            let edited = self.facts.keys.get(pair.key as usize).map(|key| look.id(key));
            let allowed = self.core.policy.file.clears(ToolClass::Edit).contains(&pair.class)
                && !self.core.lists.holds(self.facts, pair.old, rule.guard)
                && look.keys(pair.old).any(|(_, key)| {
                    key.kind == KeyKind::File && key.class == pair.class && Some(look.id(key)) == edited
                });
            let can = old.is(BORN)
                && !old.is(SUPERSEDED | LEFT | CLEARED | PINNED)
                && new.is(BORN)
                && !new.is(LEFT);
            if allowed && can {
                let kind = rule.kind(&self.core.policy);
                self.supersede(pair.old, pair.new.0, kind, pair.key);
            }
        }
    }

    fn apply_rule(&mut self, number: usize, new: Ix) {
        let Some(rule) = RULES.get(number) else { return };
        let id = u8::try_from(number).unwrap_or(u8::MAX);
        let turn = self.facts.item(new).map_or(Turn(0), |item| item.turn);
        let by_position = rule.any_turn || self.core.policy.same_turn;
        let mut found = std::mem::take(&mut self.core.found);
        let look = look!(self);
        let (claims, live, facts) = (&mut self.core.claims, &self.core.live, &*self.facts);
        rule.finds.clear(look, new, &mut |Clear { slot, key, waits }| {
            claims.search(id, slot, (!by_position).then_some(turn.0), |old| {
                let state = live.get(old.at()).copied().unwrap_or_default();
                if state.is(SUPERSEDED | LEFT | CLEARED) || !state.is(BORN) {
                    return Keep::Gone;
                }
                let earlier = if by_position {
                    old < new
                } else {
                    facts.item(old).is_some_and(|item| item.turn < turn)
                };
                if !earlier || state.is(PINNED) || old == new {
                    return Keep::Stay;
                }
                found.push((old, waits, key, slot));
                Keep::Found
            });
        });
        found.sort_unstable_by_key(|(old, waits, key, _)| (*old, *waits, *key));
        let kind = rule.kind(&self.core.policy);
        let steps = self.core.policy.file.edit_quiet_steps;
        for &(old, waits, key, slot) in &found {
            if self.core.live(old).is(SUPERSEDED) {
                continue;
            }
            if waits {
                let class = super::rules::file::class(slot.group);
                let (file, paths) = (KeyId(slot.key), self.core.policy.paths);
                self.core.quiet.wait(Pair { number: 0, old, new, key, class }, file, paths, steps);
            } else {
                self.supersede(old, new.0, kind, key);
            }
        }
        found.clear();
        self.core.found = found;
    }

    pub(super) fn supersede(&mut self, old: Ix, new: u32, kind: RuleKind, key: u32) {
        let class = self.facts.call(old).map(|call| call.class);
        let hide_input = kind != RuleKind::INJECTED && self.core.policy.hide_input.is_meant(class);
        self.core.set(old, SUPERSEDED);
        self.history.supersede(EdgeRow::new(old, new, kind, key, self.at, self.core.turn, hide_input));
        if !hide_input && self.may_idle(old) {
            self.idle_when_superseded(old);
        }
    }

    /// Lays a ready or failed call under every rule that is on.
    pub(super) fn lay(&mut self, ix: Ix) {
        let live = self.core.live(ix);
        let turn = self.facts.item(ix).map_or(0, |item| item.turn.0);
        let look = Look { facts: &*self.facts, policy: &self.core.policy, lists: &self.core.lists };
        for (number, rule) in RULES.iter().enumerate() {
            let meant = rule.failed.is_meant(live.is(READY), live.failed(), look.policy);
            if !meant || !rule.is_on(number, look.policy) || look.lists.holds(look.facts, ix, rule.guard) {
                continue;
            }
            let id = u8::try_from(number).unwrap_or(u8::MAX);
            let claims = &mut self.core.claims;
            rule.finds.lay(look, ix, &mut |slot| claims.lay(id, slot, ix, turn));
        }
    }

    fn turn(&mut self, key: u32, number: Option<u32>, idle_seconds: u32) {
        if key != NONE && !self.core.steps.insert(key) {
            return;
        }
        let turn = number.map_or(self.core.turn.0.saturating_add(1), |number| number.max(self.core.turn.0));
        self.core.turn = Turn(turn);
        self.history.turns.push((self.at, self.core.turn));
        while self.core.protected.first_key_value().is_some_and(|(due, _)| *due <= turn) {
            for ix in take_due(&mut self.core.protected, turn) {
                if self.core.live(ix).is(BORN) && !self.core.live(ix).is(LEFT | READY) {
                    self.ready(ix);
                }
            }
        }
        if !self.core.policy.automatic {
            return;
        }
        let steps = self.core.policy.file.edit_quiet_steps;
        let pairs = self.core.quiet.take_due(turn, self.core.policy.paths, steps);
        self.fire(&pairs);
        for number in 0..self.core.shorten.len() {
            self.shorten_due(number);
        }
        if !self.core.idle.due.is_empty() || !self.core.idle.due_when_cold.is_empty() {
            let ttl_seconds = self.core.policy.serve.price.ttl_seconds;
            self.idle_due(ttl_seconds > 0 && idle_seconds > ttl_seconds);
        }
        if let Some(task) = self.core.task {
            self.roll(task);
        }
    }

    /// The end of a call that has ended, or the result that is an item of its own.
    fn ended(&self, ix: Ix) -> Option<&Finish> {
        self.facts.finishes.get(self.history.answer(ix, Seq::MAX)? as usize)
    }

    /// Puts an item into the queues of the rules that will shorten it.
    pub(super) fn schedule(&mut self, ix: Ix) {
        let live = self.core.live(ix);
        let Some(item) = self.facts.item(ix) else { return };
        let output = match self.ended(ix) {
            Some(finish) => Size::of(self.facts.parts_of(finish.output)),
            None => Size::of_body(&item.body),
        };
        let mut aging = self.core.lists.aging(&self.core.policy);
        let look = look!(self);
        if look.lists.holds(look.facts, ix, Guard::Common) {
            return;
        }
        let is_completed = live.status == Status::Completed;
        let subject = Subject { ix, item, output, is_completed, has_failed: live.failed() };
        while aging != 0 {
            let number = aging.trailing_zeros() as usize;
            aging &= aging - 1;
            let Some(Acts::AtAge { age, .. }) = SHORTENING.get(number).map(|rule| &rule.acts) else {
                continue;
            };
            let Some(age) = age(look, &subject, look.policy.idle.ages(number)) else { continue };
            if self.core.shorten.len() <= number {
                self.core.shorten.resize_with(number.saturating_add(1), BTreeMap::new);
            }
            if let Some(queue) = self.core.shorten.get_mut(number) {
                queue.entry(item.turn.0.saturating_add(age)).or_default().push(ix);
            }
        }
        if self.may_idle(ix) {
            self.idle_later(ix);
        }
        self.prompt_later(ix);
    }

    /// Whether rules for idle faces may mean a call.
    fn may_idle(&self, ix: Ix) -> bool {
        self.core.policy.has_idle_rules() && self.core.live(ix).status == Status::Completed
    }

    /// Whether an output can belong to a task: to the one of its tag, the active one, or one that a call began under.
    fn has_task(&self, tag: Option<Name>) -> bool {
        tag.is_some() || self.core.task.is_some() || !self.core.task_calls.is_empty()
    }

    /// The rule that means an item at a prompt, and the number of prompts until it acts.
    fn prompt_rule(&self, ix: Ix) -> Option<(ShortenKind, u32)> {
        let item = self.facts.item(ix)?;
        (0..).zip(SHORTENING).find_map(|(number, rule)| {
            let Acts::AtPrompt { means, .. } = rule.acts else { return None };
            let prompts = self.core.policy.idle.ages(number.into()).large;
            (prompts > 0 && means(item)).then_some((ShortenKind::numbered(number), prompts))
        })
    }

    /// Puts an item into the queue of those that go at a prompt.
    pub(super) fn prompt_later(&mut self, ix: Ix) {
        let Some((_, prompts)) = self.prompt_rule(ix) else { return };
        let due = self.core.idle.prompts.saturating_add(prompts);
        self.core.idle.due_at_prompt.entry(due).or_default().push((ix, Face::Output));
    }

    /// Takes in a completed call's change of the todo list.
    pub(super) fn todos_of(&mut self, ix: Ix, finish: u32) {
        let Some((id, started)) = self.facts.item(ix).map(|item| (item.id, item.turn)) else { return };
        let from_call =
            self.facts.call(ix).and_then(|call| self.facts.todo_lists.get(call.todos as usize)).cloned();
        let finish = self.facts.finishes.get(finish as usize);
        let from_result = finish.and_then(|finish| self.facts.finish_extra(finish)?.todos.clone());
        let list = match from_result.as_deref() {
            Some(TodoUpdate::Change(change)) => {
                Arc::make_mut(&mut self.subs.todos).changed(self.at, started, change);
                self.list_changed(ix.0);
                from_call.as_deref().map(|list| (list, id.seq))
            }
            Some(TodoUpdate::List(list)) => Some((list, self.at)),
            None => from_call.as_deref().map(|list| (list, id.seq)),
        };
        let Some((list, named_by)) = list else { return };
        Arc::make_mut(&mut self.subs.todos).list_written(
            self.at,
            self.core.turn,
            Some(id),
            started,
            list,
            named_by,
        );
        // An older write that finishes late changes nothing.
        let place = Some((started, ix.0));
        if place >= self.core.todo_latest {
            self.core.todo_latest = place;
            self.list_changed(ix.0);
        }
    }

    fn parts(&mut self, first: Ix, count: u32) {
        for number in first.0..first.0.saturating_add(count) {
            let ix = Ix(number);
            self.core.born(ix);
            self.history.born(ix);
            let Some(item) = self.facts.item(ix) else { continue };
            let automata = item.automata;
            if let Some(task) = self.facts.extra(item.extra).task {
                self.belongs(ix, task);
            }
            if automata {
                Arc::make_mut(&mut self.subs.todos).automata(self.at, self.core.turn);
            }
            self.schedule(ix);
        }
    }

    fn policy(&mut self, policy: &SharedPolicy, own: bool) {
        let before = (self.core.policy.file.edit_quiet_steps, self.core.policy.paths);
        self.core.policy = policy.clone();
        self.core.own_policy = own;
        self.core.lists.clear();
        self.core.claims.clear();
        self.core.shorten.clear();
        self.core.idle.clear();
        let (steps, paths) = (policy.file.edit_quiet_steps, policy.paths);
        if before != (steps, paths) {
            let look = Look { facts: &*self.facts, policy, lists: &self.core.lists };
            let file = |key: u32| look.facts.keys.get(key as usize).map(|key| look.id(key));
            self.core.quiet.reschedule(paths, steps, file);
        }
        self.core.protected.clear();
        for number in 0..index(self.core.live.len()) {
            let ix = Ix(number);
            let live = self.core.live(ix);
            if !live.is(BORN) {
                continue;
            }
            self.core.lists.learn(self.facts, &self.core.policy, ix);
            if !live.is(LEFT) {
                self.take_up(ix);
            }
        }
    }

    /// Puts an item of the context into every queue and under every rule that it belongs to: after these were emptied, or when
    /// the item comes back into the context.
    pub(super) fn take_up(&mut self, ix: Ix) {
        let live = self.core.live(ix);
        if live.status == Status::Completed && !live.is(READY) {
            let born = self.facts.item(ix).map_or(0, |item| item.turn.0);
            let due = born.saturating_add(self.core.policy.turn_protection.age_min());
            self.core.protected.entry(due).or_default().push(ix);
        }
        if live.is(CLEARED) {
            return;
        }
        // A shortened item, too: its other face, and the part that its rule left, may go later. Queues skip faces that are done.
        if !live.is(RESTORED) {
            self.schedule(ix);
        }
        if !live.is(SUPERSEDED) && (live.is(READY) || live.failed()) {
            self.lay(ix);
        }
    }
}
