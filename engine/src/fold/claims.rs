//! The calls that searches find, by rule and slot, and the edges that wait.
//!
//! ```text
//! (rule, slot) -> fresh: calls of the newest turn that laid here  -> ..
//!                 older: all others                               -> ..
//! ```
//!
//! For each rule and slot, the calls that a later one may supersede. A call is laid here once it is ready (or failed). A search that
//! comes across a call that can no longer be superseded takes it out; so an entry costs one insertion and one removal, however many
//! calls there are. A search for calls of earlier turns does not look at those of its own: ten thousand repeats within one turn cost no
//! more than ten thousand others.
//!
//! Quiet steps: an edit clears earlier views of a file only when the file has rested, since the agent needs its read for
//! the next edit.
//!
//! ```text
//! edit N would clear view X  -->  pair (X, N, file) waits  --file untouched for D turns-------------------->  edge X -> N
//!                                                          --a call with the file in class read is ready-->  edge X -> N
//! ```
//!
//! A file is touched in every turn in which a call with its key starts or finishes, whatever the outcome, and by
//! `FileChanged`. Each file with pairs has one entry in the due queue, put off when it comes up too early, so a touch
//! costs one store. The policy in force says which texts of a path are one file. So touches are kept by either text, and
//! pairs move to the other text when the policy changes.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::facts::KeyFact;
use super::number::{Interned, Ix, KeyId, NONE, index};
use super::policy_values::Paths;
use crate::event::ToolClass;

#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct ClaimHead {
    /// Calls of `turn`: the newest, and the oldest.
    fresh: (u32, u32),
    /// Calls of other turns.
    older: u32,
    turn: u32,
}

/// The place where a rule finds calls: a group within the rule, and a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct ClaimKey {
    pub(crate) group: u8,
    pub(crate) key: u32,
}

/// A search's verdict on an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// The call is found.
    Found,
    /// The call is not found now, perhaps later.
    Stay,
    /// The call is never found again under this entry.
    Gone,
}

/// All entries of a stream.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct ClaimTable {
    /// Slots in which a call was ever laid: the rule, the group and the key of each.
    slots: Interned<u64>,
    /// One a slot.
    heads: Vec<ClaimHead>,
    /// A call, and the number of the next entry.
    nodes: Vec<(Ix, u32)>,
}

const fn key(rule: u8, slot: ClaimKey) -> u64 {
    (rule as u64) << 40 | (slot.group as u64) << 32 | slot.key as u64
}

impl ClaimTable {
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a call to a slot.
    pub(crate) fn lay(&mut self, rule: u8, slot: ClaimKey, ix: Ix, turn: u32) {
        let number = self.slots.number(key(rule, slot));
        if self.heads.len() <= number as usize {
            self.heads.push(ClaimHead { fresh: (NONE, NONE), older: NONE, turn });
        }
        let node = index(self.nodes.len());
        let nodes = &mut self.nodes;
        let Some(head) = self.heads.get_mut(number as usize) else { return };
        if turn < head.turn {
            nodes.push((ix, head.older));
            head.older = node;
            return;
        }
        if turn > head.turn {
            head.settle(nodes);
            head.turn = turn;
        }
        nodes.push((ix, head.fresh.0));
        let last = if head.fresh.0 == NONE { node } else { head.fresh.1 };
        head.fresh = (node, last);
    }

    /// Goes through a slot's calls. With `below`, calls of that turn, if it is the newest, are passed over.
    pub(crate) fn search(
        &mut self,
        rule: u8,
        slot: ClaimKey,
        below: Option<u32>,
        mut judge: impl FnMut(Ix) -> Keep,
    ) {
        let number = self.slots.find(&key(rule, slot));
        let Some(head) = number.and_then(|number| self.heads.get_mut(number as usize)) else { return };
        if below.is_none_or(|turn| turn > head.turn) {
            head.settle(&mut self.nodes);
        }
        let mut before = NONE;
        let mut node = head.older;
        // A list that was forged may lead in a circle.
        for _ in 0..self.nodes.len() {
            let Some(&(ix, next)) = self.nodes.get(node as usize) else { break };
            if judge(ix) == Keep::Gone {
                if before == NONE {
                    head.older = next;
                } else if let Some(entry) = self.nodes.get_mut(before as usize) {
                    entry.1 = next;
                }
            } else {
                before = node;
            }
            node = next;
        }
        if head.older == NONE && head.fresh.0 == NONE {
            head.turn = 0;
        }
    }
}

impl ClaimHead {
    /// Moves the fresh calls to the older ones.
    fn settle(&mut self, nodes: &mut [(Ix, u32)]) {
        let (first, last) = std::mem::replace(&mut self.fresh, (NONE, NONE));
        if let Some(last) = nodes.get_mut(last as usize) {
            last.1 = self.older;
            self.older = first;
        }
    }
}

/// An edge that waits.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Pair {
    /// Number in the order in which pairs came about.
    pub(crate) number: u32,
    pub(crate) old: Ix,
    pub(crate) new: Ix,
    /// Index of the edit's key.
    pub(crate) key: u32,
    /// Class of the view.
    pub(crate) class: ToolClass,
}

/// Resting files and the pairs that wait for them.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Quiet {
    /// Turn of the last touch by file, 0 for never; for paths as given.
    touched_given: Vec<u32>,
    /// The same for paths as resolved.
    touched_resolved: Vec<u32>,
    #[rkyv(with = rkyv::with::AsVec)]
    waiting: FxHashMap<KeyId, Vec<Pair>>,
    #[rkyv(with = rkyv::with::AsVec)]
    due: BTreeMap<u32, Vec<KeyId>>,
    count: u32,
}

impl Quiet {
    /// The file was touched in this turn.
    pub(crate) fn touch(&mut self, key: &KeyFact, turn: u32) {
        for (touched, file) in
            [(&mut self.touched_given, key.id_given), (&mut self.touched_resolved, key.id_resolved)]
        {
            let place = file.0 as usize;
            if touched.len() <= place {
                touched.resize(place.saturating_add(1), 0);
            }
            if let Some(last) = touched.get_mut(place) {
                *last = (*last).max(turn);
            }
        }
    }

    pub(crate) fn last_touch(&self, file: KeyId, paths: Paths) -> u32 {
        let touched = match paths {
            Paths::Raw => &self.touched_given,
            Paths::Session => &self.touched_resolved,
        };
        touched.get(file.0 as usize).copied().unwrap_or_default()
    }

    /// A pair begins to wait; a view waits once per file.
    pub(crate) fn wait(&mut self, pair: Pair, file: KeyId, paths: Paths, steps: u32) {
        let last = self.last_touch(file, paths);
        let pairs = self.waiting.entry(file).or_default();
        if pairs.iter().any(|known| known.old == pair.old) {
            return;
        }
        if pairs.is_empty() {
            self.due.entry(last.saturating_add(steps)).or_default().push(file);
        }
        pairs.push(Pair { number: self.count, ..pair });
        self.count = self.count.saturating_add(1);
    }

    /// Whether any pair waits for this file.
    pub(crate) fn has(&self, file: KeyId) -> bool {
        self.waiting.contains_key(&file)
    }

    /// Takes the pairs of files that a new read shows, oldest first.
    pub(crate) fn take(&mut self, files: &[KeyId]) -> Vec<Pair> {
        let mut pairs: Vec<Pair> =
            files.iter().filter_map(|file| self.waiting.remove(file)).flatten().collect();
        pairs.sort_unstable_by_key(|pair| pair.number);
        pairs
    }

    /// Takes the pairs of files that have rested for `steps` turns at `turn`, oldest first.
    pub(crate) fn take_due(&mut self, turn: u32, paths: Paths, steps: u32) -> Vec<Pair> {
        let mut rested = Vec::new();
        while let Some(entry) = self.due.first_entry() {
            if *entry.key() > turn {
                break;
            }
            for file in entry.remove() {
                if !self.waiting.contains_key(&file) {
                    continue;
                }
                let due = self.last_touch(file, paths).saturating_add(steps);
                if due <= turn {
                    rested.push(file);
                } else {
                    self.due.entry(due).or_default().push(file);
                }
            }
        }
        self.take(&rested)
    }

    /// The policy changed `steps`, or which texts of a path are one file. `file` returns the identity of an edit's key.
    pub(crate) fn reschedule(&mut self, paths: Paths, steps: u32, file: impl Fn(u32) -> Option<KeyId>) {
        let mut pairs: Vec<Pair> = std::mem::take(&mut self.waiting).into_values().flatten().collect();
        pairs.sort_unstable_by_key(|pair| pair.number);
        for pair in pairs {
            if let Some(file) = file(pair.key) {
                self.waiting.entry(file).or_default().push(pair);
            }
        }
        self.due.clear();
        let mut files: Vec<KeyId> = self.waiting.keys().copied().collect();
        files.sort_unstable();
        for file in files {
            self.due.entry(self.last_touch(file, paths).saturating_add(steps)).or_default().push(file);
        }
    }

    /// A view was shown again on request: its waiting pairs are dropped, under either text. Cost: O(pairs).
    pub(crate) fn forget(&mut self, old: Ix) {
        self.waiting.retain(|_, pairs| {
            pairs.retain(|pair| pair.old != old);
            !pairs.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SLOT: ClaimKey = ClaimKey { group: 1, key: 7 };

    #[test]
    fn repeats_within_a_turn_are_not_looked_at_again_and_again() {
        let mut claims = ClaimTable::default();
        claims.lay(0, SLOT, Ix(0), 1);
        let mut looks = 0;
        for number in 1..=10_000 {
            claims.search(0, SLOT, Some(2), |ix| {
                looks += 1;
                // The first is superseded by the first repeat, and found gone by the second.
                if number == 1 && ix == Ix(0) { Keep::Found } else { Keep::Gone }
            });
            claims.lay(0, SLOT, Ix(number), 2);
        }
        assert_eq!(looks, 2);
    }

    proptest! {
        /// A search equals a filter of a list: it finds each entry that is there and of an earlier turn.
        #[test]
        fn a_search_finds_what_a_scan_finds(steps in proptest::collection::vec((0_u32..5, 0_u32..3), 0..40)) {
            let mut claims = ClaimTable::default();
            let mut plain: Vec<(Ix, u32)> = Vec::new();
            for (number, (turn, act)) in (0..).zip(steps) {
                if act > 0 {
                    claims.lay(3, SLOT, Ix(number), turn);
                    plain.push((Ix(number), turn));
                    continue;
                }
                let turn_of = |ix: Ix| plain.iter().find(|(other, _)| *other == ix).map_or(0, |(_, turn)| *turn);
                let mut found = Vec::new();
                claims.search(3, SLOT, Some(turn), |ix| {
                    if turn_of(ix) >= turn {
                        return Keep::Stay;
                    }
                    found.push(ix);
                    if ix.0 % 2 == 0 { Keep::Gone } else { Keep::Found }
                });
                found.sort_unstable();
                let earlier = plain.iter().filter(|(_, known)| *known < turn).map(|(ix, _)| *ix);
                prop_assert_eq!(found, earlier.collect::<Vec<_>>());
                plain.retain(|(ix, known)| *known >= turn || ix.0 % 2 != 0);
            }
        }
    }
}
