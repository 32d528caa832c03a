//! Shelving: an output that nothing has touched for some turns steps aside, and comes back by a restore or by reading
//! again.
//!
//! ```text
//! call ends --turns without a touch of its files--> shelved        write or edit --turns--> its long parameters, too
//!               ^ touched: begins anew
//! ```
//!
//! Nothing says that what is shelved is stale: it is only unused. So the rule is off unless a policy turns it on, keeps
//! its hands off short outputs and off tools whose outputs steer the work, and never acts on what was restored.

use std::collections::BTreeMap;

use super::core::{BORN, CLEARED, LEFT, PINNED, RESTORED, SHORTENED, SUPERSEDED, Status, Step};
use super::facts::{Ix, KeyFact, Size};
use super::history::{Cause, ShortenKind};
use super::policy::Paths;
use super::rules::Guard;
use crate::event::{Face, KeyKind, TodoRole, ToolClass};
use crate::ids::Seq;

/// What will be looked at, by turn.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Shelf {
    #[rkyv(with = rkyv::with::AsVec)]
    due: BTreeMap<u32, Vec<(Ix, Face)>>,
}

impl Shelf {
    /// The policy changed: everything is scheduled anew.
    pub(crate) fn clear(&mut self) {
        self.due.clear();
    }
}

impl Step<'_> {
    /// Puts the faces of a completed call into the queue.
    pub(super) fn shelve_later(&mut self, ix: Ix) {
        let rule = &self.core.policy.shelf;
        if !rule.on || self.core.live(ix).status != Status::Completed {
            return;
        }
        let Some((item, call)) = self.facts.item(ix).zip(self.facts.call(ix)) else { return };
        let meant = call.todo == TodoRole::None
            && !rule.except.is_match_tool(self.facts.tool(ix))
            && !self.core.lists.holds(self.facts, ix, Guard::Common);
        if !meant {
            return;
        }
        let tokens_min = u64::from(rule.tokens_min);
        let output = self
            .history
            .answer(ix, Seq::MAX)
            .and_then(|finish| self.facts.finishes.get(finish as usize))
            .map_or(0, |finish| Size::of(self.facts.parts_of(finish.output)).tokens);
        let turns = match call.class {
            ToolClass::Read => rule.read_turns,
            _ => rule.other_turns,
        };
        let changes = matches!(call.class, ToolClass::Write | ToolClass::Edit);
        let input = if changes { u64::from(item.body.tokens) } else { 0 };
        let (turn, input_turns) = (item.turn.0, rule.input_turns);
        if output >= tokens_min {
            self.core.shelf.due.entry(turn.saturating_add(turns)).or_default().push((ix, Face::Output));
        }
        if input >= tokens_min {
            self.core.shelf.due.entry(turn.saturating_add(input_turns)).or_default().push((ix, Face::Input));
        }
    }

    /// Shelves what is due, or puts it off where its file was touched meanwhile.
    pub(super) fn shelve_due(&mut self) {
        let turn = self.core.turn.0;
        let mut due = Vec::new();
        while let Some(entry) = self.core.shelf.due.first_entry().filter(|entry| *entry.key() <= turn) {
            due.extend(entry.remove());
        }
        due.sort_unstable();
        due.dedup();
        for (ix, face) in due {
            let live = self.core.live(ix);
            let shortened = if face == Face::Output { SHORTENED } else { 0 };
            if !live.is(BORN) || live.is(SUPERSEDED | LEFT | CLEARED | PINNED | RESTORED | shortened) {
                continue;
            }
            if self.history.cause(ix, face, Seq::MAX).is_some() {
                continue;
            }
            let Some((item, call)) = self.facts.item(ix).zip(self.facts.call(ix)) else { continue };
            let rule = &self.core.policy.shelf;
            let turns = match (face, call.class) {
                (Face::Input, _) => rule.input_turns,
                (_, ToolClass::Read) => rule.read_turns,
                _ => rule.other_turns,
            };
            let paths = self.core.policy.paths;
            let keys = self.facts.keys_of(call).iter().filter(|key| key.kind == KeyKind::File);
            let file = |key: &KeyFact| if paths == Paths::Raw { key.id_given } else { key.id_resolved };
            let touched = keys.map(|key| self.core.quiet.last_touch(file(key), paths)).max();
            let rested = touched.unwrap_or(0).max(item.turn.0).saturating_add(turns);
            if rested > turn {
                self.core.shelf.due.entry(rested).or_default().push((ix, face));
                continue;
            }
            if face == Face::Output {
                self.core.set(ix, SHORTENED);
            }
            self.begin(ix, face, Cause::Shortened { rule: ShortenKind::Shelve });
        }
    }
}
