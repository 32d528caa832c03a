//! Who can be found where: for each rule and slot, the calls that a later one may supersede.
//!
//! A call is laid once it is ready (or failed). It is taken out when a search comes across it and it is no longer to
//! be had; so an entry costs one insertion and one removal, however many calls there are.

use rustc_hash::FxHashMap;

use super::facts::{Ix, NONE, index};
use super::rules::Slot;

#[derive(Clone, Copy, Debug)]
struct Head {
    first: u32,
    /// No turn of a call in the list is lower.
    turn_min: u32,
}

/// What a search makes of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// It is found.
    Found,
    /// Not now, perhaps later.
    Stay,
    /// Never again under this entry.
    Gone,
}

/// All entries of a stream.
#[derive(Clone, Default, Debug)]
pub(crate) struct Claims {
    heads: FxHashMap<(u8, Slot), Head>,
    nodes: Vec<(Ix, u32)>,
}

impl Claims {
    pub(crate) fn clear(&mut self) {
        self.heads.clear();
        self.nodes.clear();
    }

    /// Lays a call.
    pub(crate) fn lay(&mut self, rule: u8, slot: Slot, ix: Ix, turn: u32) {
        let node = index(self.nodes.len());
        let head = self.heads.entry((rule, slot)).or_insert(Head { first: NONE, turn_min: turn });
        self.nodes.push((ix, head.first));
        head.first = node;
        head.turn_min = head.turn_min.min(turn);
    }

    /// Goes through a slot's calls. With `below`, a slot in which every call's turn is that or higher is passed over.
    pub(crate) fn search(
        &mut self,
        rule: u8,
        slot: Slot,
        below: Option<u32>,
        mut judge: impl FnMut(Ix) -> Keep,
    ) {
        let Some(head) = self.heads.get_mut(&(rule, slot)) else { return };
        if below.is_some_and(|turn| head.turn_min >= turn) {
            return;
        }
        let mut before = NONE;
        let mut node = head.first;
        while let Some(&(ix, next)) = self.nodes.get(node as usize) {
            if judge(ix) == Keep::Gone {
                if before == NONE {
                    head.first = next;
                } else if let Some(entry) = self.nodes.get_mut(before as usize) {
                    entry.1 = next;
                }
            } else {
                before = node;
            }
            node = next;
        }
        if head.first == NONE {
            self.heads.remove(&(rule, slot));
        }
    }
}
