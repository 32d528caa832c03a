//! Acts on items, compactions and rewritten faces change the present.

use rustc_hash::FxHashSet;

use super::FoldStep;
use crate::event::Face;
use crate::fold::history::{Cause, FileTouch, Order};
use crate::fold::number::{Ix, index};
use crate::fold::state::{BORN, CLEARED, EVICTED, LEFT, PINNED, RESTORED, SUPERSEDED};
use crate::ids::{ItemId, Seq};

impl FoldStep<'_> {
    pub(super) fn replace(&mut self, order: &[ItemId]) {
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
                self.take_up(ix);
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

    pub(super) fn clear(&mut self, act: u32) {
        let items: Vec<ItemId> = self
            .facts
            .acts
            .get(act as usize)
            .map_or_else(Vec::new, |act| act.items.iter().map(|hidden| hidden.item).collect());
        for item in items {
            let Some(ix) = self.facts.find(item).filter(|ix| self.core.live(*ix).is(BORN)) else { continue };
            self.core.set(ix, CLEARED);
            // The newest text is the one that the host sends.
            self.history.end(ix, self.at, |row| matches!(row.cause, Cause::Cleared { .. }));
            self.begin(ix, Face::Output, Cause::Cleared { act });
        }
    }

    pub(super) fn file_changed(&mut self, key: u32) {
        let Some(key) = self.facts.keys.get(key as usize) else { return };
        self.core.quiet.touch(key, self.core.turn.0);
        let touch = FileTouch { seq: self.at, until: Seq::MAX };
        let resolved = (key.id_resolved != key.id_given).then_some(key.id_resolved);
        for id in std::iter::once(key.id_given).chain(resolved) {
            self.history.file_changes.entry(id).or_default().push(touch);
        }
    }

    pub(super) fn abandon(&mut self, message: u32) {
        let Some(message) = self.facts.messages.get(message as usize) else { return };
        for ix in self.facts.items_of(message).collect::<Vec<_>>() {
            let live = self.core.live(ix);
            if live.is(BORN) && !live.is(LEFT) {
                self.leave(ix);
            }
        }
    }

    pub(super) fn revise(&mut self, number: u32) {
        let Some(revision) = self.facts.revisions.get(number as usize) else { return };
        let face = revision.face;
        if let Some(ix) = self.facts.find(revision.item).filter(|ix| self.core.live(*ix).is(BORN)) {
            self.begin(ix, face, Cause::Revised { revision: number });
        }
    }

    pub(super) fn hide(&mut self, act: u32) {
        let Some(entry) = self.facts.acts.get(act as usize) else { return };
        let hidden: Vec<_> = entry.items.iter().map(|act| (act.item, act.summary.is_some())).collect();
        for (at, (item, summary)) in (0..).zip(hidden) {
            let Some(ix) = self.facts.find(item).filter(|ix| self.core.live(*ix).is(BORN)) else { continue };
            let cause = if summary { Cause::Distilled { act, at } } else { Cause::Discarded { act, at } };
            self.begin(ix, Face::Output, cause);
        }
    }

    pub(super) fn restore(&mut self, ix: Ix) {
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

    pub(super) fn pin(&mut self, ix: Ix) {
        if self.core.live(ix).is(BORN) && !self.core.live(ix).is(PINNED) {
            self.core.set(ix, PINNED);
            self.begin(ix, Face::Output, Cause::Pinned);
        }
    }

    pub(super) fn unpin(&mut self, ix: Ix) {
        let live = self.core.live(ix);
        if live.is(PINNED) {
            self.core.unset(ix, PINNED);
            self.history.unpin(ix, self.at);
            // A shortened item, too, as in `take_up`.
            if !live.is(RESTORED) {
                self.schedule(ix);
            }
        }
    }
}
