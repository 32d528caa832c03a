//! Reasoning that is bound to everything before it: when a change may show, and its cost.
//!
//! ```text
//! user  |  reasoning, call, result, reasoning, call, result, reasoning, answer  |  user  |  ..
//!       ^ the user's move: from here on changes up to here show         the next one ^
//! ```
//!
//! Such a model refuses a request in which something before its reasoning has changed. So while the model works, nothing
//! changes: a change that hides something waits for the user's next move (*deferred*). Then all waiting changes show at
//! once, and reasoning behind the first change is left out, in whole runs (*unbound*). A change that a host itself makes to
//! the context (a compaction, a rewind, a late result) cannot wait; reasoning from before the change that stands behind it
//! is left out likewise.
//!
//! Everything follows from seqs in the log: a reply was shown the conclusions up to the moment when the model began to
//! answer the user's move before it. So the same log gives the same bytes, and a context that was sent can be made again.

use acpdb_engine::event::Body;
use acpdb_engine::fold::{ItemHeader, ItemKind, Ix, State};
use acpdb_engine::ids::{BodyId, Seq};

use super::turns::ItemGroup;

/// The changes before each reply, and the moment that the reply was bound to.
#[derive(Debug)]
pub(super) struct Binding {
    /// Changes up to this seq show.
    until: Seq,
    /// Of each group: the newest change before it, and the newest hard change.
    before: Vec<(Seq, Seq)>,
    /// Of each group: the user's move that it answers, and its first reasoning.
    made: Vec<(Seq, Option<Seq>)>,
}

impl Binding {
    pub(super) fn of(
        state: &State,
        at: Seq,
        briefs: &[(Ix, ItemHeader)],
        groups: &[ItemGroup],
        preserved: bool,
        same: &dyn Fn(BodyId, BodyId) -> bool,
        changed: &dyn Fn(Ix, Seq) -> Seq,
    ) -> Self {
        if !preserved {
            return Self { until: Seq::MAX, before: Vec::new(), made: Vec::new() };
        }
        let brief = |place: &usize| briefs.get(*place).map(|(_, brief)| brief);
        // The model answers to all conclusions before its first word.
        let (mut moved, mut asked) = (Seq::ZERO, true);
        let mut made = Vec::with_capacity(groups.len());
        for group in groups {
            let kinds = group.model.iter().filter_map(brief);
            let reasons = kinds.filter(|brief| matches!(brief.kind, ItemKind::Reasoning | ItemKind::Opaque));
            let reasoned = reasons.map(|brief| brief.item.seq).min();
            if asked && let Some(first) = group.model.iter().filter_map(brief).map(|it| it.item.seq).min() {
                moved = moved.max(first.before());
                asked = false;
            }
            made.push((moved, reasoned));
            asked |= group.is_users_move();
        }
        let until = if asked { at } else { moved };
        let departed = departures(state, at);
        let prompted = prompt_changes(state, at, until, same);
        let reordered = state.reordered(at);
        let (mut soft, mut hard) = (Seq::ZERO, reordered);
        let mut before = Vec::with_capacity(groups.len());
        for (group, (answers, _)) in groups.iter().zip(&made) {
            let first = group.model.first().and_then(|place| briefs.get(*place)).map(|(ix, _)| *ix);
            let left = first.map_or(Seq::ZERO, |first| {
                let count = departed.partition_point(|(ix, _)| *ix < first);
                count.checked_sub(1).and_then(|last| departed.get(last)).map_or(Seq::ZERO, |(_, seq)| *seq)
            });
            let prompt = prompted.iter().copied().filter(|seq| seq > answers).max().unwrap_or(Seq::ZERO);
            before.push((soft.max(prompt), hard.max(left)));
            for (ix, _) in group.model.iter().chain(&group.said).filter_map(|place| briefs.get(*place)) {
                soft = soft.max(changed(*ix, until));
                hard = hard.max(state.settled(*ix, at));
            }
        }
        Self { until, before, made }
    }

    /// Changes up to here show; later ones wait.
    pub(super) const fn until(&self) -> Seq {
        self.until
    }

    /// For each group, whether its reasoning must go because something before it has changed since.
    pub(super) fn unbound(&self, groups: &[ItemGroup]) -> Vec<bool> {
        let mut unbound = vec![false; groups.len()];
        for ((gone, (soft, hard)), (answers, reasoned)) in
            unbound.iter_mut().zip(&self.before).zip(&self.made)
        {
            *gone = reasoned.is_some_and(|reasoned| soft > answers || *hard > reasoned);
        }
        unbound
    }
}

/// Items that left the context, in order, each with the newest seq at which it or an item before it left.
fn departures(state: &State, at: Seq) -> Vec<(Ix, Seq)> {
    let mut departed = state.departed(at);
    let mut newest = Seq::ZERO;
    for (_, seq) in &mut departed {
        newest = newest.max(*seq);
        *seq = newest;
    }
    departed
}

/// Seqs up to `until` at which the system prompt or the tools were set to something else. `same` compares two bodies.
fn prompt_changes(state: &State, at: Seq, until: Seq, same: &dyn Fn(BodyId, BodyId) -> bool) -> Vec<Seq> {
    let mut changes = Vec::new();
    let (mut system, mut tools) = (None, None);
    for (seq, set) in state.prompts(at) {
        let is_new = |now: &mut Option<(Body, BodyId)>, next: Option<Body>| {
            let Some(next) = next.map(|body| (body, body.id(*seq))) else { return false };
            let known = now.replace(next);
            known.is_some_and(|known| known.0.bytes != next.0.bytes || !same(known.1, next.1))
        };
        let (one, other) = (is_new(&mut system, set.system), is_new(&mut tools, set.tools));
        if (one || other) && *seq <= until {
            changes.push(*seq);
        }
    }
    changes
}
