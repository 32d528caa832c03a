//! Folding an event into the state of its stream: facts are taken in, then the present steps, then totals follow.
//!
//! ```text
//! Recorded --intake--> facts, Op --step--> present and history --settle--> totals
//! ```
//!
//! Rewinds and forks fold operations anew, with the facts that there are.

mod intake;

use std::sync::Arc;

use super::history::{Cause, CauseRow, History, TokenTotal};
use super::number::{Ix, NONE, index};
use super::op::Op;
use super::policy::SharedPolicy;
use super::read::FaceTokens;
use super::state::{BORN, Core, Subs};
use super::state::{Rebase, State, StreamFacts};
use super::step::FoldStep;
use crate::event::{Body, BodyAddress, Face, Payload, Recorded, Scope};
use crate::ids::{Seq, StreamId};

impl State {
    /// Folds one event of this stream. Total. Cost: O(changes of the event); of a rewind, a fork or a policy: O(the stream).
    pub(crate) fn apply(&mut self, recorded: &Recorded) {
        self.begin(recorded);
        self.note(recorded);
        match self.take_in(recorded) {
            Some(op @ Op::Rewound { to, .. }) => self.rewind(recorded.seq, to, op),
            Some(op) => {
                self.step(recorded.seq, &op);
                self.ops.push(recorded.seq, op);
            }
            None => {}
        }
        self.settle(recorded.seq);
    }

    /// Notes the seq and the time of an event that comes in.
    fn begin(&mut self, recorded: &Recorded) {
        if self.first == Seq::ZERO {
            self.first = recorded.seq;
        }
        self.head = recorded.seq;
        // A clock that was set back adds no entry: the list is searched by halves.
        if self.times.last().is_none_or(|(_, last)| *last < recorded.recorded_at) {
            self.times.push((recorded.seq, recorded.recorded_at));
        }
    }

    pub(crate) fn step(&mut self, at: Seq, op: &Op) {
        self.all(at).run(op);
    }

    fn all(&mut self, at: Seq) -> FoldStep<'_> {
        FoldStep {
            facts: &mut self.facts,
            core: &mut self.core,
            history: &mut self.history,
            subs: &mut self.subs,
            at,
        }
    }

    /// Facts about the stream itself; no rewind undoes them.
    fn note(&mut self, recorded: &Recorded) {
        let seq = recorded.seq;
        match &recorded.event.payload {
            Payload::SessionOpened(opened) => {
                let opened = StreamFacts {
                    scope: opened.scope,
                    host: opened.host.clone(),
                    name: opened.name.clone(),
                    project: opened.project.clone(),
                    parent: opened.parent.clone(),
                    cwd: opened.cwd.clone(),
                    title: opened.title.as_ref().map(ToString::to_string),
                    host_version: opened.host_version.clone(),
                };
                self.infos.push((seq, Arc::new(opened)));
            }
            Payload::SessionChanged(changed) => {
                let mut info = self.infos.last().map(|(_, info)| (**info).clone()).unwrap_or_default();
                if let Some(title) = &changed.title {
                    info.title = Some(title.to_string());
                }
                for (place, new) in [
                    (&mut info.cwd, &changed.cwd),
                    (&mut info.project, &changed.project),
                    (&mut info.host_version, &changed.host_version),
                ] {
                    if new.is_some() {
                        place.clone_from(new);
                    }
                }
                if let (Some(parent), Some(call)) = (&mut info.parent, &changed.call) {
                    parent.call = Some(call.clone());
                }
                self.infos.push((seq, Arc::new(info)));
            }
            Payload::SessionClosed(_) => self.closed.push(seq),
            Payload::PromptSet(set) => self.prompts.push((seq, set.clone())),
            Payload::MessageFinished(finished) => self.finished.push((seq, finished.clone())),
            Payload::ContextRebased(rebased) => self.rebases.push(Rebase {
                seq,
                epoch: rebased.epoch,
                why: rebased.why,
                items: rebased.items.clone(),
            }),
            Payload::ContextServed(served) => self.served.push((seq, served.clone())),
            Payload::Forked(forked) => self.forks.push((seq, forked.clone())),
            Payload::Unknown { .. } => self.not_understood = self.not_understood.saturating_add(1),
            _ => {}
        }
    }

    /// The store's policy changed; it holds here unless the stream has one of its own.
    pub(crate) fn store_policy(&mut self, at: Seq, policy: &SharedPolicy) {
        if !self.core.own_policy {
            self.set_policy(at, policy.clone(), false);
        }
    }

    /// A newer session of the project began: items that are remembered for the length of this one end.
    pub(crate) fn end_session_memory(&mut self, at: Seq) {
        if self.subs.memory.has_session_items() {
            self.step(at, &Op::Closed);
            self.ops.push(at, Op::Closed);
        }
    }

    fn set_policy(&mut self, at: Seq, policy: SharedPolicy, own: bool) {
        self.policies.push((at, policy.clone()));
        let op = Op::Policy { policy, own };
        self.step(at, &op);
        self.ops.push(at, op);
    }

    /// Operations of the active branch at `at`, oldest first, as indices.
    fn branch(&self, at: Seq) -> Vec<usize> {
        let mut active: Vec<usize> = Vec::new();
        let mut next = 0;
        for (place, to) in self.ops.rewinds() {
            if self.ops.seq(place).is_none_or(|seq| seq > at) {
                break;
            }
            active.extend(next..place);
            // Each operation leaves once: a search for each of thousands of rewinds took longer.
            while active.last().is_some_and(|last| self.ops.seq(*last).is_none_or(|seq| seq > to)) {
                active.pop();
            }
            next = place;
        }
        active.extend(
            (next..self.ops.len()).take_while(|place| self.ops.seq(*place).is_some_and(|seq| seq <= at)),
        );
        active
    }

    /// Folds operations anew. Facts are shared: an operation makes the same of them as before.
    fn refold(&mut self, ops: &[(Seq, Op)]) -> (Core, History, Subs) {
        let (mut core, mut history, mut subs) = (Core::default(), History::default(), Subs::default());
        for (at, op) in ops {
            let mut step = FoldStep {
                facts: &mut self.facts,
                core: &mut core,
                history: &mut history,
                subs: &mut subs,
                at: *at,
            };
            step.run(op);
        }
        (core, history, subs)
    }

    fn rewind(&mut self, seq: Seq, to: Seq, op: Op) {
        let active: Vec<(Seq, Op)> = {
            let places = self.branch(Seq::MAX);
            places.into_iter().filter_map(|place| self.ops.get(place)).collect()
        };
        let kept = active.partition_point(|(at, _)| *at <= to);
        let (kept, dropped) = active.split_at_checked(kept).unwrap_or((&active, &[]));
        // The last event that stays: the state after it holds again.
        let last = kept.last().map_or(Seq::ZERO, |(at, _)| *at);
        let mut left: Vec<Ix> = dropped.iter().flat_map(|(_, op)| self.items_of(op)).collect();
        left.sort_unstable();
        let (core, _, subs) = self.refold(kept);
        let turn = self.core.turn;
        self.core = core;
        Arc::make_mut(&mut self.subs.todos).rewound(seq, Arc::unwrap_or_clone(subs.todos));
        Arc::make_mut(&mut self.subs.tasks).rewound(seq, Arc::unwrap_or_clone(subs.tasks));
        if self.infos.last().is_none_or(|(_, info)| info.scope == Scope::Session) {
            Arc::make_mut(&mut self.subs.memory).rewound(seq, Arc::unwrap_or_clone(subs.memory));
        }
        let first_off = self.facts.items.partition_point(|item| item.id.seq <= last);
        self.history.rewind(last, seq, turn, Ix(index(first_off)), &left);
        self.rewinds.push((seq, to));
        self.step(seq, &op);
        // The place that bore a summary on the branch may have been erased since.
        self.all(seq).move_summaries(0);
        self.ops.push(seq, op);
    }

    /// Items that an operation adds.
    fn items_of(&self, op: &Op) -> Vec<Ix> {
        match op {
            Op::Start(ix) | Op::Injected(ix) => vec![*ix],
            Op::Parts { first, count } => (first.0..first.0.saturating_add(*count)).map(Ix).collect(),
            Op::Finish(finish) => {
                let orphan = self.facts.finishes.get(*finish as usize).map(|finish| finish.orphan);
                orphan.filter(|orphan| *orphan != NONE).map(Ix).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// A stream that begins at `seq` and shares this one's history up to `at`; `info`: its facts about itself.
    ///
    /// Only the active branch is folded. Items that were off it stay off it, erased bodies stay erased whenever they were erased,
    /// and the counters of turns and prompts count on.
    pub(crate) fn fork(&self, seq: Seq, id: StreamId, at: Seq, info: Option<Arc<StreamFacts>>) -> Self {
        let ops: Vec<(Seq, Op)> =
            self.branch(at).into_iter().filter_map(|place| self.ops.get(place)).collect();
        let mut child = Self::new(id, Arc::clone(&self.core.policy.0));
        child.core = Core::default();
        child.facts = self.facts.until(at);
        // A shortened face has the size that the policy of its moment gives it.
        child.policies = self.policies.iter().filter(|(since, _)| *since <= at).cloned().collect();
        // Texts of evictions name the session: the fork's name, also before its first event, so that texts and figures agree.
        child.infos.extend(info.map(|info| (Seq::ZERO, info)));
        for (seq, op) in &ops {
            child.step(*seq, op);
            child.settle(*seq);
        }
        self.hand_down(&mut child, seq, at);
        child.history.turns = self.history.turns.iter().filter(|(since, _)| *since <= at).copied().collect();
        child.history.prompts = self.history.prompts.iter().filter(|seq| **seq <= at).copied().collect();
        child.prompts = self.prompts.iter().filter(|(seq, _)| *seq <= at).cloned().collect();
        child.finished = self.finished.iter().filter(|(seq, _)| *seq <= at).cloned().collect();
        child.ops = ops.into_iter().collect();
        child
    }

    /// Gives a fork the causes that no operation of the active branch makes: of items off the branch, and of erased bodies.
    fn hand_down(&self, child: &mut Self, seq: Seq, at: Seq) {
        let mut total = child.history.totals.last();
        let items = (0..index(child.facts.items.len())).map(Ix);
        for ix in items.clone().filter(|ix| !child.core.live(*ix).is(BORN)).collect::<Vec<_>>() {
            child.history.born(ix);
            let facts = self.history.facts_of(ix).chain(self.history.rows_of(ix));
            for row in facts.filter(|row| row.since <= at && row.holds(at)) {
                if matches!(row.cause, Cause::Answered { .. } | Cause::Revised { .. } | Cause::OffBranch) {
                    child.history.begin(ix, row.face, row.cause, row.since, row.turn);
                }
            }
            for face in [Face::Input, Face::Output] {
                let recorded = child.face_tokens(ix, face, seq).recorded;
                total.recorded = total.recorded.saturating_add(recorded);
            }
        }
        // They do not count: the fork's totals are set below.
        child.history.settle();
        if total != child.history.totals.last() {
            child.history.totals.push(TokenTotal { seq, ..total });
        }
        for ix in items {
            for row in self.history.rows_of(ix).filter(|row| matches!(row.cause, Cause::Erased { .. })) {
                child.history.begin(ix, row.face, row.cause, seq, row.turn);
            }
        }
        // A place that bears a summary in the fork may be erased.
        child.all(seq).move_summaries(0);
        child.settle(seq);
    }

    /// Takes over the history that a fork shares. A stream that has items already takes nothing over.
    ///
    /// A policy of the stream's own stays, then one that the shared history set, then the store's present one.
    pub(crate) fn adopt(&mut self, seq: Seq, shared: Self) {
        if !self.facts.items.is_empty() {
            return;
        }
        let (policy, own) = (self.core.policy.clone(), self.core.own_policy);
        self.facts = shared.facts;
        self.core = shared.core;
        self.history = shared.history;
        self.subs = shared.subs;
        self.ops = shared.ops;
        self.policies = shared.policies;
        self.infos.splice(0..0, shared.infos);
        self.prompts.splice(0..0, shared.prompts);
        self.finished.splice(0..0, shared.finished);
        if own || !self.core.own_policy && self.core.policy != policy {
            self.set_policy(seq, policy, own);
        }
    }

    /// Bodies were removed: the faces that rest on them cannot be shown any more. No rewind brings them back. A face that the
    /// host has revised rests on its newest revision.
    pub(crate) fn erase(&mut self, at: Seq, bodies: &[BodyAddress], lost: bool) {
        let covers =
            |body: &Body, row: u32| body.first <= row && row < body.first.saturating_add(body.chunks);
        for address in bodies {
            let mut faces: Vec<(Ix, Face)> = Vec::new();
            let first = self.facts.items.partition_point(|item| item.id.seq < address.seq);
            for (place, item) in self.facts.items.iter().enumerate().skip(first) {
                if item.id.seq != address.seq {
                    break;
                }
                if covers(&item.body, address.row) {
                    let face = if item.call == NONE { Face::Output } else { Face::Input };
                    faces.push((Ix(index(place)), face));
                }
            }
            let finish = self.facts.finishes.partition_point(|finish| finish.seq < address.seq);
            if let Some(found) = self.facts.finishes.get(finish).filter(|found| found.seq == address.seq)
                && self.facts.parts_of(found.output).iter().any(|part| covers(&part.body, address.row))
                && let Some(ix) = self.answered_by(index(finish))
            {
                faces.push((ix, Face::Output));
            }
            faces.retain(|(ix, face)| self.history.revision(*ix, *face, at).is_none());
            let revision = self.facts.revisions.partition_point(|revision| revision.seq < address.seq);
            if let Some(found) = self.facts.revisions.get(revision).filter(|found| found.seq == address.seq)
                && self.facts.parts_of(found.parts).iter().any(|part| covers(&part.body, address.row))
                && let Some(ix) = self.facts.find(found.item)
                && self.history.revision(ix, found.face, at) == Some(index(revision))
            {
                faces.push((ix, found.face));
            }
            for (ix, face) in faces {
                let is_gone = |row: CauseRow| matches!(row.cause, Cause::Erased { .. }) && row.face == face;
                if !self.history.rows_of(ix).any(is_gone) {
                    self.history.begin(ix, face, Cause::Erased { lost }, at, self.core.turn);
                }
            }
        }
        self.all(at).move_summaries(0);
        self.settle(at);
    }

    fn answered_by(&self, number: u32) -> Option<Ix> {
        let finish = self.facts.finishes.get(number as usize)?;
        let answered =
            |ix: &Ix| self.history.facts_of(*ix).any(|row| row.cause == Cause::Answered { finish: number });
        std::iter::once(Ix(finish.orphan)).chain(self.facts.calls_of_host(finish.host_id)).find(answered)
    }

    /// Brings the totals up to date with the changes since the last event.
    fn settle(&mut self, seq: Seq) {
        let before = seq.before();
        self.history.settle();
        let mut total = self.history.totals.last();
        for &(ix, face) in self.history.settled() {
            let Some(item) = self.facts.item(ix) else { continue };
            // An item of this event had no tokens before it; most touched items are of this event.
            let is_new = item.id.seq > before;
            let was = if is_new { FaceTokens::default() } else { self.face_tokens(ix, face, before) };
            let now = self.face_tokens(ix, face, seq);
            total.whole = total.whole.wrapping_add(now.whole).wrapping_sub(was.whole);
            total.shown = total.shown.wrapping_add(now.shown).wrapping_sub(was.shown);
            total.recorded = total.recorded.wrapping_add(now.recorded).wrapping_sub(was.recorded);
        }
        if !self.history.settled().is_empty() {
            self.history.totals.push(TokenTotal { seq, ..total });
        }
    }

    /// The faces that the newest event touched, each once, in order of first change. A new item has one for each face.
    pub(crate) fn touched(&self) -> &[(Ix, Face)] {
        self.history.settled()
    }
}
