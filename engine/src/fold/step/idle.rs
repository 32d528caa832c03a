//! Idle items: a face that nothing has touched for some turns steps aside, and comes back by a restore or by running the
//! call again.
//!
//! ```text
//! call ends --turns without a touch of its files--> set aside      input and output, each by the rule that means it
//!               ^ touched: begins anew
//!           --a share of these turns, and the cache is cold--> set aside: the context is written anew in any case
//! ```
//!
//! Nothing says that such a face is stale: it is only unused. So these rules are off unless a policy turns them on, and
//! they never act on a face that was restored. Which face a rule means, and at which age, stands with the rule.

use std::collections::BTreeMap;

use super::FoldStep;
use crate::event::{Face, KeyKind, TodoRole};
use crate::fold::facts::{KeyFact, Size};
use crate::fold::history::{Cause, ShortenKind};
use crate::fold::number::Ix;
use crate::fold::policy::Paths;
use crate::fold::rules::Guard;
use crate::fold::rules::shorten::{Acts, Resting};
use crate::fold::rules::{Look, SHORTENING};
use crate::fold::state::{BORN, CLEARED, LEFT, PINNED, RESTORED, SHORTENED, SUPERSEDED};
use crate::ids::Seq;

/// Takes the entries up to `turn`, each once, in order. An item that left and came back is in the queue twice.
pub(super) fn take_due<T: Ord>(queue: &mut BTreeMap<u32, Vec<T>>, turn: u32) -> Vec<T> {
    let mut due = Vec::new();
    while let Some(entry) = queue.first_entry().filter(|entry| *entry.key() <= turn) {
        due.extend(entry.remove());
    }
    due.sort_unstable();
    due.dedup();
    due
}

/// Whether a face was shortened by a rule that leaves something for another one.
fn leaves_some(cause: &Cause) -> bool {
    matches!(cause, Cause::Shortened { leaves_some: true, .. })
}

impl FoldStep<'_> {
    /// Shortens the faces that have reached the age of a rule.
    pub(super) fn shorten_due(&mut self, number: usize) {
        let turn = self.core.turn.0;
        let Some(queue) = self.core.shorten.get_mut(number) else { return };
        let due = take_due(queue, turn);
        let Some(Acts::AtAge { face, .. }) = SHORTENING.get(number).map(|rule| &rule.acts) else { return };
        let rule = ShortenKind::numbered(u8::try_from(number).unwrap_or(u8::MAX));
        for ix in due {
            let live = self.core.live(ix);
            if !live.is(BORN) || live.is(SUPERSEDED | LEFT | CLEARED | PINNED | RESTORED | SHORTENED) {
                continue;
            }
            self.core.set(ix, SHORTENED);
            self.begin(ix, *face, rule.cause(*face));
        }
    }

    /// Shortens what was recorded just now, if a rule acts before it is first sent, and what a new policy has taken up for such a rule since.
    pub(super) fn shorten_at_birth(&mut self) {
        if !self.core.policy.automatic {
            return;
        }
        for number in 0..self.core.shorten.len() {
            let acts = SHORTENING.get(number).map(|rule| &rule.acts);
            if matches!(acts, Some(Acts::AtAge { at_birth: true, .. })) {
                self.shorten_due(number);
            }
        }
    }

    /// The rule that means a face, and its age in turns.
    fn idle_rule(&self, ix: Ix, face: Face) -> Option<(ShortenKind, u32)> {
        let (item, call) = self.facts.item(ix).zip(self.facts.call(ix))?;
        if call.todo != TodoRole::None || self.core.lists.holds(self.facts, ix, Guard::Common) {
            return None;
        }
        let policy = &self.core.policy;
        let tokens = match face {
            Face::Input => u64::from(item.body.tokens),
            Face::Output => Size::of(self.facts.parts_of(self.ended(ix)?.output)).tokens,
        };
        let tool = self.facts.tool(ix);
        let steers = policy.shelf.except.is_match(tool);
        let look = Look { facts: &*self.facts, policy, lists: &self.core.lists };
        let is_superseded = self.core.live(ix).is(SUPERSEDED);
        let resting = Resting { ix, face, tokens, call, tool, steers, is_superseded };
        (0..).zip(SHORTENING).find_map(|(number, rule)| {
            let Acts::Idle { turns, ages } = &rule.acts else { return None };
            if ages.is_some() && tokens < u64::from(policy.idle.tokens_min) {
                return None;
            }
            let turns = turns(look, &resting, policy.idle.ages(number.into()))?;
            Some((ShortenKind::numbered(number), turns))
        })
    }

    /// A prompt: shortens the faces that are due at it.
    pub(super) fn prompted(&mut self) {
        self.core.idle.prompts = self.core.idle.prompts.saturating_add(1);
        if !self.core.policy.automatic {
            return;
        }
        let prompts = self.core.idle.prompts;
        for (ix, face) in take_due(&mut self.core.idle.due_at_prompt, prompts) {
            let live = self.core.live(ix);
            let gone = SUPERSEDED | LEFT | CLEARED | PINNED | RESTORED | SHORTENED;
            if !live.is(BORN) || live.is(gone) || self.history.cause(ix, face, Seq::MAX).is_some() {
                continue;
            }
            if let Some((rule, _)) = self.prompt_rule(ix) {
                self.core.set(ix, SHORTENED);
                self.begin(ix, face, rule.cause(face));
            }
        }
    }

    /// Puts the faces of a completed call into the queue.
    pub(super) fn idle_later(&mut self, ix: Ix) {
        let Some(turn) = self.facts.item(ix).map(|item| item.turn.0) else { return };
        for face in [Face::Input, Face::Output] {
            if let Some((_, turns)) = self.idle_rule(ix, face) {
                self.idle_at(turn, turns, ix, face);
            }
        }
    }

    /// A call was superseded but still shows its input: another rule may mean the input now.
    pub(super) fn idle_when_superseded(&mut self, ix: Ix) {
        if let Some((_, turns)) = self.idle_rule(ix, Face::Input) {
            self.idle_at(self.core.turn.0, turns, ix, Face::Input);
        }
    }

    /// Looks at a face again `turns` after `touched`.
    fn idle_at(&mut self, touched: u32, turns: u32, ix: Ix, face: Face) {
        self.core.idle.due.entry(touched.saturating_add(turns)).or_default().push((ix, face));
        if let Some(turns) = self.core.policy.idle.turns_when_cold(turns) {
            let due = touched.saturating_add(turns);
            self.core.idle.due_when_cold.entry(due).or_default().push((ix, face));
        }
    }

    /// Sets aside the faces that are due, or puts them off if a file of the call was touched meanwhile.
    pub(super) fn idle_due(&mut self, is_cold: bool) {
        let turn = self.core.turn.0;
        let mut due = take_due(&mut self.core.idle.due, turn);
        if is_cold {
            due.extend(take_due(&mut self.core.idle.due_when_cold, turn));
            due.sort_unstable();
            due.dedup();
        }
        for (ix, face) in due {
            let live = self.core.live(ix);
            let cause = self.history.cause(ix, face, Seq::MAX).map(|row| row.cause);
            let first = cause.filter(leaves_some);
            if cause.is_some() && first.is_none() {
                continue;
            }
            // A superseded call's output is hidden already; its input may still be whole.
            let shortened = if first.is_some() { 0 } else { SHORTENED };
            let hidden = if face == Face::Output { SUPERSEDED | shortened } else { 0 };
            if !live.is(BORN) || live.is(LEFT | CLEARED | PINNED | RESTORED | hidden) {
                continue;
            }
            let Some((rule, turns)) = self.idle_rule(ix, face) else { continue };
            let touched = self.last_touch(ix);
            let idle = &self.core.policy.idle;
            let rests = if is_cold { idle.turns_when_cold(turns).unwrap_or(turns) } else { turns };
            if touched.saturating_add(rests) > turn {
                self.idle_at(touched, turns, ix, face);
                continue;
            }
            if face == Face::Output {
                self.core.set(ix, SHORTENED);
            }
            self.begin(ix, face, rule.cause(face));
        }
    }

    /// The turn in which a call was made, or one of its files was last touched, if that is later.
    fn last_touch(&self, ix: Ix) -> u32 {
        let Some((item, call)) = self.facts.item(ix).zip(self.facts.call(ix)) else { return 0 };
        let paths = self.core.policy.paths;
        let keys = self.facts.keys_of(call).iter().filter(|key| key.kind == KeyKind::File);
        let file = |key: &KeyFact| if paths == Paths::Raw { key.id_given } else { key.id_resolved };
        let touched = keys.map(|key| self.core.quiet.last_touch(file(key), paths)).max();
        touched.unwrap_or(0).max(item.turn.0)
    }
}
