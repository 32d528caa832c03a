//! The present of a stream, as the rules need it: who is ready, what can be found where, what is due when.
//!
//! ```text
//! step(op):  Start -> open      Finish -> ready? --rules--> edges        TurnStarted -> what is due
//!                                    \--lay--> claims                      protection, quiet steps, shortening, prune
//! ```
//!
//! Only the present stands here; each conclusion is handed to [`History`], which keeps it for ever. A rewind drops the
//! present and folds the operations of the active branch anew, with a history that is thrown away.
//!
//! Cost of one step: O(what it changes). Nothing is scanned but the calls that a rule finds, and those it throws out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::claims::{Claims, Keep};
use super::facts::{Facts, Ix, NONE, Size, index};
use super::history::{Cause, FileTouch, History, Order, RuleKind};
use super::memory::MemoryState;
use super::names::Name;
use super::op::Marks;
pub(crate) use super::op::{Op, Ops, Restore, Rewind};
use super::policy::Policy;
use super::protect::Lists;
use super::rules::quiet::{Pair, Quiet};
use super::rules::shorten::{Acts, Subject};
use super::rules::{Clear, FILE_RULE, Look, RULES, SHORTENING, Slot};
use super::snapshot::{Later, flat, flat_enum};
use super::task::TaskState;
use super::todo::TodoState;
use crate::event::{Face, InjectedKind, KeyKind, Outcome, TodoList, TodoUpdate, ToolClass};
use crate::ids::{ItemId, Seq, Turn};

/// Where a call stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum Status {
    /// Not finished.
    #[default]
    Pending,
    /// Finished well.
    Completed,
    /// Finished with an error.
    Failed,
    /// Cancelled, refused or interrupted.
    Aborted,
}

impl From<Outcome> for Status {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Failed => Self::Failed,
            Outcome::Aborted => Self::Aborted,
        }
    }
}

/// What holds of an item now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Live {
    pub(crate) status: Status,
    flags: u16,
}

flat_enum!(Status { Pending, Completed, Failed, Aborted });
flat!(Live { status: Status, flags: u16 });

pub(crate) const BORN: u16 = 1;
pub(crate) const READY: u16 = 1 << 1;
pub(crate) const SUPERSEDED: u16 = 1 << 2;
pub(crate) const CLEARED: u16 = 1 << 3;
pub(crate) const LEFT: u16 = 1 << 4;
pub(crate) const PINNED: u16 = 1 << 5;
/// Shown again on request: not shortened any more.
pub(crate) const RESTORED: u16 = 1 << 6;
pub(crate) const SHORTENED: u16 = 1 << 7;
pub(crate) const EVICTED: u16 = 1 << 8;

impl Live {
    pub(crate) const fn is(self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    pub(crate) const fn failed(self) -> bool {
        matches!(self.status, Status::Failed | Status::Aborted)
    }
}

/// The sub-states of a stream.
#[derive(Clone, Default, Debug)]
pub(crate) struct Subs {
    pub(crate) todos: Later<TodoState>,
    pub(crate) tasks: TaskState,
    pub(crate) memory: MemoryState,
}

/// The present of a stream.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Core {
    #[rkyv(with = super::snapshot::AsJson)]
    pub(crate) policy: Arc<Policy>,
    /// The policy is the stream's own, not the store's.
    pub(crate) own_policy: bool,
    pub(crate) turn: Turn,
    #[rkyv(with = rkyv::with::Skip)]
    pub(super) live: Vec<Live>,
    #[rkyv(with = rkyv::with::AsVec)]
    open: FxHashMap<Name, SmallVec<[Ix; 1]>>,
    #[rkyv(with = rkyv::with::Skip)]
    pub(super) claims: Claims,
    /// Names of steps that have begun.
    steps: Marks,
    pub(crate) lists: Lists,
    /// Completed calls under turn protection, by the turn in which they become ready.
    #[rkyv(with = rkyv::with::AsVec)]
    protected: BTreeMap<u32, Vec<Ix>>,
    pub(super) quiet: Quiet,
    pub(super) idle: super::idle::Idle,
    /// Per shortening rule, as far as any is on: items by the turn in which it acts on them.
    #[rkyv(with = rkyv::with::Map<rkyv::with::AsVec>)]
    pub(super) shorten: Vec<BTreeMap<u32, Vec<Ix>>>,
    reminder: Option<Ix>,
    reflection: Option<Ix>,
    todo_latest: Option<(Turn, u32)>,
    pub(super) task: Option<Name>,
    /// Per task: the message from which on its words are evicted.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_begins: FxHashMap<Name, u32>,
    /// Per task: its outputs.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_outputs: FxHashMap<Name, Vec<Ix>>,
    /// Per evicted task: the eviction, as long as no work on it begins anew.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_ended: FxHashMap<Name, u32>,
    /// Calls that are open, with the task they began under.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_calls: FxHashMap<Ix, Name>,
    /// Of the active task: outputs that rolling prune has left.
    pub(super) task_recent: VecDeque<Ix>,
    #[rkyv(with = rkyv::with::Skip)]
    found: Vec<(Ix, bool, u32, Slot)>,
}

impl Core {
    pub(crate) fn under(policy: Arc<Policy>) -> Self {
        Self { policy, ..Self::default() }
    }

    pub(crate) fn live(&self, ix: Ix) -> Live {
        self.live.get(ix.at()).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, ix: Ix, flag: u16) {
        if let Some(live) = self.live.get_mut(ix.at()) {
            live.flags |= flag;
        }
    }

    fn unset(&mut self, ix: Ix, flag: u16) {
        if let Some(live) = self.live.get_mut(ix.at()) {
            live.flags &= !flag;
        }
    }

    fn born(&mut self, ix: Ix) {
        if self.live.len() <= ix.at() {
            self.live.resize(ix.at().saturating_add(1), Live::default());
        }
        self.set(ix, BORN);
    }

    /// The newest finished call in the context with this host id.
    pub(crate) fn finished_call(&self, facts: &Facts, host_id: Name) -> Option<Ix> {
        facts.calls_of_host(host_id).find(|ix| {
            let live = self.live(*ix);
            live.is(BORN) && !live.is(LEFT) && live.status != Status::Pending
        })
    }
}

/// One step of the fold: the operation's stream, borrowed in its parts.
pub(crate) struct Step<'a> {
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

impl Step<'_> {
    /// Folds one operation.
    pub(crate) fn run(&mut self, op: &Op) {
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
            Op::Rewound(rewind) => {
                self.core.turn = self.core.turn.max(rewind.turn);
                if self.core.policy != rewind.policy || self.core.own_policy != rewind.own {
                    self.policy(&rewind.policy, rewind.own);
                }
            }
            Op::FileChanged(key) => self.file_changed(*key),
            Op::Abandon(message) => self.abandon(*message),
            Op::Revise(revision) => self.revise(*revision),
            Op::Hide(act) => self.hide(*act),
            Op::Restore(act) => {
                self.each(&act.items, Self::restore);
                self.subs.memory.restored(self.at, act.moment, &act.items);
            }
            Op::Pin(items) => self.each(items, Self::pin),
            Op::Unpin(items) => self.each(items, Self::unpin),
            Op::Closed => self.subs.memory.closed(self.at),
            Op::Injected(ix) => self.injected(*ix),
            Op::TodosReplaced(list) => self.todos_replaced(list),
            Op::TodoChanged(change) => {
                self.subs.todos.changed(self.at, self.core.turn, change);
                self.list_changed(NONE);
            }
            Op::TaskChanged(event) => self.task_changed(event),
            Op::TaskEvicted { event, eviction } => self.task_evicted(event, *eviction),
            Op::Memory(event) => self.subs.memory.fold(event),
        }
        // What bore a summary may be gone from where it stood.
        if matches!(op, Op::Replace(_) | Op::Clear(_) | Op::Abandon(_) | Op::Hide(_) | Op::Restore(_)) {
            self.move_summaries();
        }
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
        self.call_began(ix);
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
        self.output_recorded(ix, tag);
        if outcome == Outcome::Completed {
            self.todos_of(ix, number);
        }
        if self.core.live(ix).is(LEFT) {
            return;
        }
        self.schedule(ix);
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
                if number == FILE_RULE {
                    self.show_anew(ix);
                }
                if rule.is_on(number, &self.core.policy) {
                    self.apply_rule(number, ix);
                }
            }
        }
        self.lay(ix);
    }

    /// A read shows its files anew: what waited for them to rest need not wait.
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
            // Whether the two are of one file is for the policy of now to say.
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
                let kind = (rule.kind)(&self.core.policy);
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
        (rule.clears)(look, new, &mut |Clear { slot, key, waits }| {
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
        let kind = (rule.kind)(&self.core.policy);
        let steps = self.core.policy.file.edit_quiet_steps;
        for &(old, waits, key, slot) in &found {
            if self.core.live(old).is(SUPERSEDED) {
                continue;
            }
            if waits {
                let class = super::rules::file::class(slot.group);
                let (file, paths) = (super::facts::KeyId(slot.key), self.core.policy.paths);
                self.core.quiet.wait(Pair { number: 0, old, new, key, class }, file, paths, steps);
            } else {
                self.supersede(old, new.0, kind, key);
            }
        }
        found.clear();
        self.core.found = found;
    }

    fn supersede(&mut self, old: Ix, new: u32, kind: RuleKind, key: u32) {
        let class = self.facts.call(old).map(|call| call.class);
        let hide_input = kind != RuleKind::INJECTED && self.core.policy.hide_input.is_meant(class);
        self.core.set(old, SUPERSEDED);
        let edge = History::edge(old, new, kind, key, self.at, self.core.turn, hide_input);
        self.history.supersede(edge);
        if !hide_input {
            self.idle_when_superseded(old);
        }
    }

    /// Lays a ready or failed call under every rule that is on.
    fn lay(&mut self, ix: Ix) {
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
            (rule.lays)(look, ix, &mut |slot| claims.lay(id, slot, ix, turn));
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
            let mut calls = Vec::new();
            while let Some(entry) = self.core.protected.first_entry().filter(|entry| *entry.key() <= turn) {
                calls.extend(entry.remove());
            }
            calls.sort_unstable();
            for ix in calls {
                if self.core.live(ix).is(BORN) && !self.core.live(ix).is(LEFT) {
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
        let ttl_seconds = self.core.policy.serve.price.ttl_seconds;
        self.idle_due(ttl_seconds > 0 && idle_seconds > ttl_seconds);
        self.roll();
    }

    /// Puts an item into the queues of the rules that will shorten it.
    fn schedule(&mut self, ix: Ix) {
        let live = self.core.live(ix);
        let Some(item) = self.facts.item(ix) else { return };
        let answer =
            self.history.answer(ix, Seq::MAX).and_then(|finish| self.facts.finishes.get(finish as usize));
        let output = match answer {
            Some(finish) => Size::of(self.facts.parts_of(finish.output)),
            None => Size::of_body(&item.body),
        };
        let look = look!(self);
        if look.lists.holds(look.facts, ix, super::rules::Guard::Common) {
            return;
        }
        let subject =
            Subject { ix, failed: live.failed(), completed: live.status == Status::Completed, output };
        for (number, rule) in SHORTENING.iter().enumerate() {
            let Acts::AtAge { age, .. } = rule.acts else { continue };
            let Some(age) = age(look, subject) else { continue };
            if self.core.shorten.len() <= number {
                self.core.shorten.resize_with(number.saturating_add(1), BTreeMap::new);
            }
            if let Some(queue) = self.core.shorten.get_mut(number) {
                queue.entry(item.turn.0.saturating_add(age)).or_default().push(ix);
            }
        }
        self.idle_later(ix);
        self.prompt_later(ix);
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
                self.subs.todos.automata(self.at, self.core.turn);
            }
            self.schedule(ix);
        }
    }

    fn policy(&mut self, policy: &Arc<Policy>, own: bool) {
        let before = (self.core.policy.file.edit_quiet_steps, self.core.policy.paths);
        self.core.policy = Arc::clone(policy);
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
        let age = policy.turn_protection.age_min();
        for number in 0..index(self.core.live.len()) {
            let ix = Ix(number);
            let live = self.core.live(ix);
            if !live.is(BORN) {
                continue;
            }
            self.core.lists.learn(self.facts, &self.core.policy, ix);
            if live.is(LEFT | CLEARED) {
                continue;
            }
            if live.status == Status::Completed && !live.is(READY) {
                let born = self.facts.item(ix).map_or(0, |item| item.turn.0);
                self.core.protected.entry(born.saturating_add(age)).or_default().push(ix);
            }
            if !live.is(SHORTENED | RESTORED) {
                self.schedule(ix);
            }
            if !live.is(SUPERSEDED) && (live.is(READY) || live.failed()) {
                self.lay(ix);
            }
        }
    }

    fn replace(&mut self, order: &[ItemId]) {
        let mut named = FxHashSet::default();
        let mut list = Vec::with_capacity(order.len());
        for item in order {
            let Some(ix) = self.facts.find(*item) else { continue };
            if self.core.live(ix).is(BORN) && named.insert(ix) {
                list.push(ix);
            }
        }
        let (kept, from) = self
            .history
            .order(Seq::MAX)
            .map_or((Vec::new(), Ix(0)), |order| (order.list.clone(), order.from));
        let later = (from.0..index(self.core.live.len())).map(Ix);
        for ix in kept.into_iter().chain(later) {
            let live = self.core.live(ix);
            if live.is(BORN) && !live.is(LEFT) && !named.contains(&ix) {
                self.leave(ix);
            }
        }
        for &ix in &list {
            if self.core.live(ix).is(LEFT) {
                self.core.unset(ix, LEFT);
                self.history.end(ix, self.at, |row| row.cause == Cause::Left);
                let live = self.core.live(ix);
                if !live.is(SUPERSEDED | CLEARED) && (live.is(READY) || live.failed()) {
                    self.lay(ix);
                }
            }
        }
        let from = Ix(index(self.core.live.len()));
        self.history.orders.push(Order { since: self.at, list, from });
    }

    fn leave(&mut self, ix: Ix) {
        self.core.set(ix, LEFT);
        self.begin(ix, Face::Output, Cause::Left);
        if self.facts.call(ix).is_some() {
            self.begin(ix, Face::Input, Cause::Left);
        }
    }

    fn clear(&mut self, act: u32) {
        let items: Vec<ItemId> = self
            .facts
            .rare
            .acts
            .get(act as usize)
            .map_or_else(Vec::new, |act| act.items.iter().map(|hidden| hidden.item).collect());
        for item in items {
            let Some(ix) = self.facts.find(item).filter(|ix| self.core.live(*ix).is(BORN)) else { continue };
            self.core.set(ix, CLEARED);
            self.begin(ix, Face::Output, Cause::Cleared { act });
        }
    }

    fn file_changed(&mut self, key: u32) {
        let Some(key) = self.facts.keys.get(key as usize) else { return };
        self.core.quiet.touch(key, self.core.turn.0);
        let touch = FileTouch { seq: self.at, until: Seq::MAX };
        let resolved = (key.id_resolved != key.id_given).then_some(key.id_resolved);
        for id in std::iter::once(key.id_given).chain(resolved) {
            self.history.file_changes.entry(id).or_default().push(touch);
        }
    }

    fn abandon(&mut self, message: u32) {
        let Some(message) = self.facts.messages.get(message as usize) else { return };
        for ix in self.facts.items_of(message).collect::<Vec<_>>() {
            let live = self.core.live(ix);
            if live.is(BORN) && !live.is(LEFT) {
                self.leave(ix);
            }
        }
    }

    fn revise(&mut self, number: u32) {
        let Some(revision) = self.facts.revisions.get(number as usize) else { return };
        let face = revision.face;
        if let Some(ix) = self.facts.find(revision.item).filter(|ix| self.core.live(*ix).is(BORN)) {
            self.begin(ix, face, Cause::Revised { revision: number });
        }
    }

    fn hide(&mut self, act: u32) {
        let Some(entry) = self.facts.rare.acts.get(act as usize) else { return };
        let hidden: Vec<_> = entry.items.iter().map(|act| (act.item, act.summary.is_some())).collect();
        for (at, (item, summary)) in (0..).zip(hidden) {
            let Some(ix) = self.facts.find(item).filter(|ix| self.core.live(*ix).is(BORN)) else { continue };
            let cause = if summary { Cause::Distilled { act, at } } else { Cause::Discarded { act, at } };
            self.begin(ix, Face::Output, cause);
        }
    }

    fn restore(&mut self, ix: Ix) {
        let live = self.core.live(ix);
        if !live.is(BORN) || live.is(LEFT | CLEARED) || self.history.restore(ix, self.at) == 0 {
            return;
        }
        self.core.unset(ix, SUPERSEDED | EVICTED);
        self.core.set(ix, RESTORED);
        if live.is(SUPERSEDED) {
            self.lay(ix);
        }
        self.core.quiet.forget(ix);
    }

    fn pin(&mut self, ix: Ix) {
        if self.core.live(ix).is(BORN) && !self.core.live(ix).is(PINNED) {
            self.core.set(ix, PINNED);
            self.begin(ix, Face::Output, Cause::Pinned);
        }
    }

    fn unpin(&mut self, ix: Ix) {
        if self.core.live(ix).is(PINNED) {
            self.core.unset(ix, PINNED);
            self.history.unpin(ix, self.at);
            if !self.core.live(ix).is(SHORTENED | RESTORED) {
                self.schedule(ix);
            }
        }
    }

    fn injected(&mut self, ix: Ix) {
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
    fn list_changed(&mut self, by: u32) {
        for old in [self.core.reminder.take(), self.core.reflection.take()].into_iter().flatten() {
            self.replace_injected(old, by);
        }
    }

    fn todos_replaced(&mut self, list: &Arc<TodoList>) {
        let turn = self.core.turn;
        self.core.todo_latest = self.core.todo_latest.max(Some((turn, self.core.next_place())));
        self.subs.todos.list_written(self.at, turn, None, turn, list, self.at);
        self.list_changed(NONE);
    }

    /// What a completed call did to the todo list.
    fn todos_of(&mut self, ix: Ix, finish: u32) {
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

impl Core {
    fn next_place(&self) -> u32 {
        index(self.live.len())
    }
}
