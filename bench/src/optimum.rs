//! The cheapest way in which a recorded session could have been rewritten, if all of it had been known beforehand.
//!
//! ```text
//! bounds     0    1    2    3    4    5          ends of requests; 0 is the end of the fixed prefix
//! blocks     | b1 | b2 | b3 | b4 | b5 |          the new part of each request
//! cut (2, 5) at request 5: b3 to b5 are written anew, each as it is known then, and are one piece from then on
//! ```
//! Cuts at bounds nest: a later cut takes whole pieces of earlier ones. So the part above bound `p`, from request `p + 1` until a
//! deeper cut at `e`, has a best price of its own,
//!
//! ```text
//! above(p, e) = min over t:  before(p, t) + write * size(p, t) + read * size(p, t) * (e - 1 - t) + above(t, e)
//! ```
//!
//! where `t` is the last cut at `p` itself (or `p + 1`, where the block was born) and `before(p, t)` is `above(p, t)` with
//! bound `p` still warm at `t`. A cold request rewrites everything for nothing and begins anew. O(n^3) for n requests.
//!
//! It decides about rewrites only. Pointers are those of the simulation. A pointer that a hidden target turns back into text is
//! charged to the target, for as long as the text stays; so with pointers the figure is an upper bound of the best.

use acpdb_engine::fold::policy::Prices;
use acpdb_query::simulate::{Traced, TracedSlot};
use acpdb_serve::plan::is_cold;

use crate::measure::float;

/// Most requests between two cold ones that are treated as a whole; a longer stretch is cut there.
const REQUEST_COUNT_MAX: usize = 900;

/// The price of the best decisions, and that of the simulation's own, by the same reckoning.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Optimum {
    pub(crate) best: f64,
    pub(crate) own: f64,
}

/// The best of a session's contexts, each context by itself.
pub(crate) fn of(contexts: &[Traced], prices: &Prices) -> Optimum {
    let mut sum = Optimum::default();
    for context in contexts {
        let mut begin = 0;
        while begin < context.requests.len() {
            let rest = context.requests.get(begin + 1..).unwrap_or_default();
            let cold = rest.iter().position(|request| request.cold).unwrap_or(rest.len());
            let count = (cold + 1).min(REQUEST_COUNT_MAX);
            let stretch = Stretch::of(context, begin, count, prices);
            sum.best += stretch.best();
            sum.own += stretch.own();
            begin += count;
        }
    }
    sum
}

/// Tokens of a slot as it is sent once it was applied at `request`.
fn applied(context: &Traced, slot: &TracedSlot, request: usize) -> u64 {
    let Some((_, current)) = slot.changes.iter().rev().find(|(at, _)| *at <= request) else {
        return slot.sent;
    };
    if *current > slot.sent {
        return *current;
    }
    let live = |place: usize| {
        let slot = context.slots.get(place);
        slot.is_some_and(|slot| slot.born <= request && slot.changes.iter().all(|(at, _)| *at > request))
    };
    let taken_back: u64 = slot.pointers.iter().filter(|(by, _)| live(*by)).map(|(_, saved)| saved).sum();
    slot.sent.min(current.saturating_add(taken_back))
}

/// Requests from a cold one, or the first, up to the next cold one.
struct Stretch<'c> {
    context: &'c Traced,
    begin: usize,
    count: usize,
    prices: Prices,
    /// `sizes[t][p]`: tokens of all blocks up to bound `p`, as applied at the stretch's request `t` (from 1).
    sizes: Vec<Vec<u64>>,
    /// Deepest bound that a request must cut at; its own number if it need not.
    forced: Vec<usize>,
}

impl<'c> Stretch<'c> {
    fn of(context: &'c Traced, begin: usize, count: usize, prices: &Prices) -> Self {
        // Slots before a request of this stretch, by bound.
        let ends = |bound: usize| {
            let next = context.requests.get(begin + bound);
            next.map_or(context.slots.len(), |request| request.slots_before)
        };
        let block = |slot: &TracedSlot| (slot.born.max(begin) - begin + 1).min(count);
        let mut sizes = vec![vec![0; count + 1]];
        for time in 1..=count {
            let mut blocks = vec![0_u64; count + 1];
            for slot in context.slots.iter().filter(|slot| slot.born < begin + time) {
                if let Some(sum) = blocks.get_mut(block(slot)) {
                    *sum += applied(context, slot, begin + time - 1);
                }
            }
            let mut total = 0;
            for sum in &mut blocks {
                total += *sum;
                *sum = total;
            }
            sizes.push(blocks);
        }
        let mut forced: Vec<usize> = (0..=count).collect();
        for time in 2..=count {
            let request = context.requests.get(begin + time - 1);
            if let (Some(at), Some(place)) = (request.and_then(|it| it.forced), forced.get_mut(time)) {
                *place = (0..time).rev().find(|bound| *bound == 0 || ends(*bound) <= at).unwrap_or(0);
            }
        }
        Self { context, begin, count, prices: *prices, sizes, forced }
    }

    fn size(&self, from: usize, time: usize) -> f64 {
        let sizes = self.sizes.get(time);
        let at = |bound: usize| sizes.and_then(|sizes| sizes.get(bound)).copied().unwrap_or_default();
        float(usize::try_from(at(time).saturating_sub(at(from))).unwrap_or(usize::MAX))
    }

    /// The price of the prefix: written or read with the first request, read with the others.
    fn prefix(&self) -> f64 {
        let tokens = float(usize::try_from(self.context.prefix_tokens).unwrap_or(usize::MAX));
        let cold = self.context.requests.get(self.begin).is_some_and(|request| request.cold);
        let first = if cold { self.prices.write } else { self.prices.read };
        tokens * (first + self.prices.read * float(self.count - 1))
    }

    /// Whether tokens read at one request can still be read from the cache at another.
    fn is_warm(&self, then: usize, now: usize) -> bool {
        let at =
            |time: usize| self.context.requests.get(self.begin + time - 1).and_then(|request| request.at);
        match (at(then), at(now)) {
            (Some(then), Some(now)) => !is_cold(then, now, self.prices.ttl_seconds),
            _ => true,
        }
    }

    /// The price of a piece that is written at `time` and read until a deeper cut at `end`.
    fn piece(&self, from: usize, time: usize, end: usize) -> f64 {
        self.size(from, time) * (self.prices.write + self.prices.read * float(end - 1 - time))
    }

    /// The price of the best decisions.
    fn best(&self) -> f64 {
        let n = self.count + 1;
        let mut above = vec![vec![0.0_f64; n + 1]; n + 1];
        let mut before = above.clone();
        for length in 2..=n {
            for from in 0..=n - length {
                let end = from + length;
                let (all, warm) = self.above(from, end, &above, &before);
                if let Some(cell) = above.get_mut(from).and_then(|row| row.get_mut(end)) {
                    *cell = all;
                }
                if let Some(cell) = before.get_mut(from).and_then(|row| row.get_mut(end)) {
                    *cell = warm;
                }
            }
        }
        cell(&above, 0, n) + self.prefix()
    }

    /// The best price above `from` until a cut at `end`; and the same with bound `from` warm at `end`.
    fn above(&self, from: usize, end: usize, above: &[Vec<f64>], before: &[Vec<f64>]) -> (f64, f64) {
        let inside = self.forced.get(from + 1..end).unwrap_or_default();
        if inside.iter().any(|bound| *bound < from) {
            return (f64::INFINITY, f64::INFINITY);
        }
        let (mut all, mut warm) = (f64::INFINITY, f64::INFINITY);
        for time in from + 1..end {
            // Nothing came before the block was born.
            let earlier = if time == from + 1 { 0.0 } else { cell(before, from, time) };
            let price = earlier + self.piece(from, time, end) + cell(above, time, end);
            all = all.min(price);
            if from == 0 || end > self.count || self.is_warm(time, end) {
                warm = warm.min(price);
            }
        }
        (all, warm)
    }

    /// The price of the simulation's decisions, by the same reckoning. It shows how far the two agree.
    fn own(&self) -> f64 {
        let mut price = self.prefix();
        // Pieces: the bound at which each begins, and the request at which it was written.
        let mut pieces: Vec<(usize, usize)> = Vec::new();
        for time in 1..=self.count {
            let request = self.context.requests.get(self.begin + time - 1);
            let cut = request.filter(|_| time > 1).and_then(|request| request.cut);
            let mut from = time - 1;
            if let Some(cut) = cut {
                let slots =
                    |bound: usize| self.context.requests.get(self.begin + bound).map(|it| it.slots_before);
                let is_bound =
                    |bound: usize| pieces.iter().any(|(begin, _)| *begin == bound) || bound == time - 1;
                from = (1..time)
                    .rev()
                    .filter(|bound| is_bound(*bound))
                    .find(|bound| slots(*bound).is_some_and(|slots| slots <= cut))
                    .unwrap_or(0);
            }
            pieces.retain(|(begin, _)| *begin < from);
            let read: f64 = pieces
                .iter()
                .enumerate()
                .map(|(place, (begin, written))| {
                    let end = pieces.get(place + 1).map_or(from, |next| next.0);
                    debug_assert_eq!(end, *written, "pieces lie end to end");
                    self.size(*begin, *written)
                })
                .sum();
            price += self.prices.read * read + self.prices.write * self.size(from, time);
            pieces.push((from, time));
        }
        price
    }
}

fn cell(table: &[Vec<f64>], row: usize, column: usize) -> f64 {
    if row + 1 >= column {
        0.0
    } else {
        table.get(row).and_then(|row| row.get(column)).copied().unwrap_or_default()
    }
}
