//! All conclusions, old and new, as intervals: reading at a watermark is reading the past.
//!
//! ```text
//! Row  { item, face, cause, [since, until) }      hidden by .., answered by .., pinned
//! Edge { old -> new, rule, [since, undone), released }
//! Order{ since, items that a ContextReplaced named }     Turn { since, number }     Total { seq, tokens }
//! ```
//!
//! Nothing is deleted. A cause that ends gets its `until`. A rewind ends the intervals that began after its point and begins
//! anew those that ended after it, all stamped with its own seq. So the state at `w` is the one that holds at `w`, whatever
//! came later, and equals a fold of the events up to `w`.

mod encoding;
mod rows;

pub(crate) use encoding::{Causes, Totals};
pub(crate) use rows::*;
pub use rows::{RuleKind, ShortenKind};
use rustc_hash::FxHashMap;

use super::number::{Ix, KeyId, NONE, index, newest_first};
use super::stamped::last_until;
use crate::event::Face;
use crate::failpoints::failpoint;
use crate::ids::{Seq, Turn};

#[cfg(test)]
thread_local! {
    /// Number of rows that were looked at, for tests of growth.
    pub(crate) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// At most this many faces are compared with each other; more are hashed.
const COMPARE_COUNT_MAX: usize = 16;

/// Heads of an item's lists.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct Heads {
    /// Causes.
    row: u32,
    /// Results, revisions, pins: these hide nothing.
    fact: u32,
    /// Edges in which the item is the old one.
    old: u32,
    /// Edges in which the item is the new one.
    new: u32,
}

impl Heads {
    const EMPTY: Self = Self { row: NONE, fact: NONE, old: NONE, new: NONE };
}

/// All conclusions of a stream.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct History {
    heads: Vec<Heads>,
    pub(crate) rows: Causes,
    /// In the order in which they came about or were brought back.
    pub(crate) edges: Vec<EdgeRow>,
    pub(crate) orders: Vec<Order>,
    pub(crate) turns: Vec<(Seq, Turn)>,
    pub(crate) prompts: Vec<Seq>,
    pub(crate) totals: Totals,
    #[rkyv(with = rkyv::with::AsVec)]
    pub(crate) file_changes: FxHashMap<KeyId, Vec<FileTouch>>,
    /// Faces whose rows the present event changed.
    #[rkyv(with = rkyv::with::Skip)]
    touched: Vec<(Ix, Face)>,
    /// The same of the event before.
    #[rkyv(with = rkyv::with::Skip)]
    settled: Vec<(Ix, Face)>,
}

impl History {
    /// An item was recorded.
    pub(crate) fn born(&mut self, ix: Ix) {
        while self.heads.len() <= ix.at() {
            self.heads.push(Heads::EMPTY);
        }
        self.touched.push((ix, Face::Output));
    }

    pub(crate) fn touch(&mut self, ix: Ix, face: Face) {
        if self.touched.last() != Some(&(ix, face)) {
            self.touched.push((ix, face));
        }
    }

    /// Number of faces that were touched since the last [`History::settle`].
    pub(crate) const fn touched_count(&self) -> usize {
        self.touched.len()
    }

    /// The faces that were touched after the first `count`. May begin with the one before: a face touched twice in a row is noted once.
    pub(crate) fn touched_since(&self, count: usize) -> &[(Ix, Face)] {
        self.touched.get(count.saturating_sub(1)..).unwrap_or_default()
    }

    /// Begins anew to note faces. Those that were noted since the last call are [`History::settled`] now, each once.
    pub(crate) fn settle(&mut self) {
        std::mem::swap(&mut self.touched, &mut self.settled);
        self.touched.clear();
        let settled = &mut self.settled;
        if settled.len() <= COMPARE_COUNT_MAX {
            let mut kept = 0;
            for place in 0..settled.len() {
                let Some(entry) = settled.get(place).copied() else { break };
                if settled.get(..kept).is_some_and(|earlier| !earlier.contains(&entry)) {
                    settled.swap(kept, place);
                    kept += 1;
                }
            }
            settled.truncate(kept);
        } else {
            let mut seen = rustc_hash::FxHashSet::default();
            settled.retain(|entry| seen.insert(*entry));
        }
    }

    /// The faces that changed before the last call of [`History::settle`], in order of first change.
    pub(crate) fn settled(&self) -> &[(Ix, Face)] {
        &self.settled
    }

    /// Begins a cause.
    pub(crate) fn begin(&mut self, ix: Ix, face: Face, cause: Cause, at: Seq, turn: Turn) {
        let row = self.rows.len();
        let Some(heads) = self.heads.get_mut(ix.at()) else { return };
        let head = if cause.rank().is_some() { &mut heads.row } else { &mut heads.fact };
        let prev = std::mem::replace(head, row);
        self.rows.push(&CauseRow {
            ix,
            face,
            cause,
            since: at,
            until: Seq::MAX,
            undone: Seq::MAX,
            turn,
            prev,
        });
        self.touch(ix, face);
    }

    fn heads(&self, ix: Ix) -> Heads {
        self.heads.get(ix.at()).copied().unwrap_or(Heads::EMPTY)
    }

    /// Ends the causes of an item that `which` picks, at `at`; returns how many ended.
    pub(crate) fn end(&mut self, ix: Ix, at: Seq, which: impl Fn(&CauseRow) -> bool) -> usize {
        self.end_from(self.heads(ix).row, at, which)
    }

    /// Ends the pin of an item.
    pub(crate) fn unpin(&mut self, ix: Ix, at: Seq) {
        self.end_from(self.heads(ix).fact, at, |row| row.cause == Cause::Pinned);
    }

    fn end_from(&mut self, first: u32, at: Seq, which: impl Fn(&CauseRow) -> bool) -> usize {
        let rows = self.numbered_from(first).filter(|(_, row)| row.until == Seq::MAX && which(row));
        let ended: Vec<(u32, CauseRow)> = rows.collect();
        for (number, row) in &ended {
            self.rows.end(*number, at, row.undone);
        }
        for face in [Face::Output, Face::Input] {
            if let Some((_, row)) = ended.iter().find(|(_, row)| row.face == face) {
                self.touch(row.ix, face);
            }
        }
        ended.len()
    }

    /// The causes of an item, newest first.
    pub(crate) fn rows_of(&self, ix: Ix) -> impl Iterator<Item = CauseRow> {
        self.numbered_from(self.heads(ix).row).map(|(_, row)| row)
    }

    /// Facts of an item that hide nothing, newest first: results, revisions, pins.
    pub(crate) fn facts_of(&self, ix: Ix) -> impl Iterator<Item = CauseRow> {
        self.numbered_from(self.heads(ix).fact).map(|(_, row)| row)
    }

    fn numbered_from(&self, first: u32) -> impl Iterator<Item = (u32, CauseRow)> {
        newest_first(first, |number| {
            let row = self.rows.get(number)?;
            #[cfg(test)]
            LOOKS.with(|looks| looks.set(looks.get() + 1));
            Some(((number, row), row.prev))
        })
    }

    /// The cause that shows on a face at `at`: the first by precedence, then the earliest.
    pub(crate) fn cause(&self, ix: Ix, face: Face, at: Seq) -> Option<CauseRow> {
        self.standing(ix, face, at).1
    }

    /// Whether an item is off the branch or has left the context at `at`, and the [`History::cause`] of a face: in one walk.
    pub(crate) fn standing(&self, ix: Ix, face: Face, at: Seq) -> (bool, Option<CauseRow>) {
        let mut is_out = false;
        let mut first: Option<(u8, CauseRow)> = None;
        let mut is_acted_on = false;
        for row in self.rows_of(ix).filter(|row| row.holds(at)) {
            is_out |= matches!(row.cause, Cause::OffBranch | Cause::Left);
            let is_distilled = matches!(row.cause, Cause::Distilled { .. });
            // A later act takes the place of a summary: a range may hold an earlier one.
            if is_distilled && is_acted_on {
                continue;
            }
            is_acted_on |= is_distilled || matches!(row.cause, Cause::Discarded { .. });
            let Some(rank) = row.cause.rank().filter(|_| row.face == face) else { continue };
            if first.as_ref().is_none_or(|(known, shown)| (rank, row.since) < (*known, shown.since)) {
                first = Some((rank, row));
            }
        }
        (is_out, first.map(|(_, row)| row))
    }

    /// The finish that answers a call at `at`.
    pub(crate) fn answer(&self, ix: Ix, at: Seq) -> Option<u32> {
        self.facts_of(ix).find_map(|row| match row.cause {
            Cause::Answered { finish } if row.holds(at) => Some(finish),
            _ => None,
        })
    }

    /// The newest revision of a face at `at`.
    pub(crate) fn revision(&self, ix: Ix, face: Face, at: Seq) -> Option<u32> {
        self.facts_of(ix).find_map(|row| match row.cause {
            Cause::Revised { revision } if row.face == face && row.holds(at) => Some(revision),
            _ => None,
        })
    }

    /// Whether an item is pinned at `at`.
    pub(crate) fn is_pinned(&self, ix: Ix, at: Seq) -> bool {
        self.facts_of(ix).any(|row| row.cause == Cause::Pinned && row.holds(at))
    }

    /// Adds an edge and begins the causes that it brings.
    pub(crate) fn supersede(&mut self, edge: EdgeRow) {
        let rank = index(self.edges.len());
        let number = self.link(EdgeRow { rank, ..edge });
        let cause = Cause::Superseded { edge: number };
        self.begin(edge.old, Face::Output, cause, edge.since, edge.turn);
        if edge.hide_input {
            self.begin(edge.old, Face::Input, cause, edge.since, edge.turn);
        }
    }

    /// Shows an item again: ends every cause that a restore ends, and releases the item's edges.
    pub(crate) fn restore(&mut self, ix: Ix, at: Seq) -> usize {
        let edges: Vec<u32> = self.edges_of_old(ix).map(|edge| edge.number).collect();
        for number in edges {
            if let Some(edge) = self.edges.get_mut(number as usize)
                && edge.released == Seq::MAX
                && edge.undone == Seq::MAX
            {
                edge.released = at;
            }
        }
        if failpoint!(RestoreForgets) {
            return 0;
        }
        self.end(ix, at, |row| row.cause.is_restorable())
    }

    /// An edge by its number.
    pub(crate) fn edge(&self, number: u32) -> Option<&EdgeRow> {
        self.edges.get(number as usize)
    }

    /// Edges in which an item is the old one, newest first.
    pub(crate) fn edges_of_old(&self, ix: Ix) -> impl Iterator<Item = &EdgeRow> {
        newest_first(self.heads(ix).old, |number| self.edge(number).map(|edge| (edge, edge.next_of_old)))
    }

    /// Edges in which an item is the new one, newest first.
    pub(crate) fn edges_of_new(&self, ix: Ix) -> impl Iterator<Item = &EdgeRow> {
        newest_first(self.heads(ix).new, |number| self.edge(number).map(|edge| (edge, edge.next_of_new)))
    }

    /// Takes the state back, from `at` on, to the one that held at `to`. Items from `first_off` on are off the branch; those of
    /// `left` were on it until now.
    ///
    /// Cost: O(all that was concluded); rewinds are rare.
    pub(crate) fn rewind(&mut self, to: Seq, at: Seq, turn: Turn, first_off: Ix, left: &[Ix]) {
        let mut renumbered: FxHashMap<u32, u32> = FxHashMap::default();
        for number in 0..index(self.edges.len()) {
            let Some(edge) = self.edge(number).copied() else { continue };
            let (existed, exists) = (edge.exists(to), edge.undone == Seq::MAX);
            let same = (edge.released <= to) == (edge.released != Seq::MAX);
            if exists
                && !(existed && same)
                && let Some(edge) = self.edges.get_mut(number as usize)
            {
                edge.undone = at;
            }
            if existed && !(exists && same) {
                let released = if edge.released <= to { edge.released } else { Seq::MAX };
                let copy = EdgeRow { since: at, released, undone: Seq::MAX, ..edge };
                renumbered.insert(number, self.link(copy));
            }
        }
        for number in 0..self.rows.len() {
            let Some(mut row) = self.rows.get(number) else { continue };
            let stays = match row.cause {
                Cause::Erased { .. } | Cause::OffBranch => true,
                // An item off the branch keeps its result in the full history.
                Cause::Answered { .. } | Cause::Revised { .. } => row.ix >= first_off,
                _ => false,
            };
            if stays {
                continue;
            }
            if row.since > to {
                row.undone = row.undone.min(at);
                self.rows.end(number, row.until, row.undone);
            }
            let (held, holds) = (row.holds(to), row.until == Seq::MAX);
            let moved = match row.cause {
                Cause::Superseded { edge } => renumbered.get(&edge).copied(),
                _ => None,
            };
            let (ix, face, cause, begun) = (row.ix, row.face, row.cause, row.turn);
            if holds && (!held || moved.is_some()) {
                self.rows.end(number, at, row.undone);
                self.touch(ix, face);
            }
            if held && (!holds || moved.is_some()) {
                let cause = moved.map_or(cause, |edge| Cause::Superseded { edge });
                self.begin(ix, face, cause, at, begun);
            }
        }
        for &ix in left {
            self.begin(ix, Face::Output, Cause::OffBranch, at, turn);
            self.begin(ix, Face::Input, Cause::OffBranch, at, turn);
        }
        if let Some(order) = self.orders.iter().rev().find(|order| order.since <= to).cloned() {
            self.orders.push(Order { since: at, ..order });
        } else if !self.orders.is_empty() {
            self.orders.push(Order { since: at, list: Vec::new(), from: Ix(0) });
        }
        for touches in self.file_changes.values_mut() {
            for touch in touches.iter_mut().filter(|touch| touch.seq > to && touch.until == Seq::MAX) {
                touch.until = at;
            }
        }
    }

    /// Whether the host ordered the context anew in `seq`.
    pub(super) fn is_ordered_in(&self, seq: Seq) -> bool {
        self.orders.binary_search_by_key(&seq, |order| order.since).is_ok()
    }

    fn link(&mut self, mut edge: EdgeRow) -> u32 {
        edge.number = index(self.edges.len());
        (edge.next_of_old, edge.next_of_new) = (NONE, NONE);
        if let Some(heads) = self.heads.get_mut(edge.old.at()) {
            edge.next_of_old = std::mem::replace(&mut heads.old, edge.number);
        }
        if let Some(heads) = self.heads.get_mut(edge.new as usize) {
            edge.next_of_new = std::mem::replace(&mut heads.new, edge.number);
        }
        self.edges.push(edge);
        edge.number
    }

    /// The order in force at `at`.
    pub(crate) fn order(&self, at: Seq) -> Option<&Order> {
        last_until(&self.orders, at, |order| order.since)
    }

    /// The turn at `at`.
    pub(crate) fn turn(&self, at: Seq) -> Turn {
        last_until(&self.turns, at, |(since, _)| *since).map_or(Turn(0), |(_, turn)| *turn)
    }

    /// Tokens at `at`.
    pub(crate) fn total(&self, at: Seq) -> TokenTotal {
        self.totals.at(at)
    }
}
