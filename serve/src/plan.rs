//! When to apply pending items: the cut from which on a context is rewritten.
//!
//! ```text
//! sent:   [prefix][..... bound ....... bound ....... bound]        bounds: ends of earlier requests, in the cache
//! cut c:             |        c = first item that changes
//!                  b = last bound before c that is still warm: up to there it is read, from there on written
//! R = tokens that everything pending from c on removes     W = the same, each times the requests it has waited
//! S = tokens from b to the end, without R                  kappa = cost of rewriting beyond reading, in readings
//! hybrid: of the c with  horizon * R + waiting * W >= 2 * kappa * S,  apply from that of the greatest difference
//! ski rental: apply from the deepest c with  W >= kappa * S
//! prompts: as hybrid, but only with the first request after a prompt
//! ```
//!
//! The cost of a rewrite is certain, its saving is a guess about how long the context goes on: so it has to promise twice
//! its cost. On recorded sessions that is a quarter fewer rewrites for the same bill, and no host's bill is higher than
//! without any (`docs/COMPARE.md`, *What the presets save*).
//!
//! Most supersession is near the end, where a rewrite is cheap; half of all hiding can wait for a cold cache and
//! then costs nothing. Pure; figures are estimated tokens.

use acpdb_engine::fold::policy::{FlushRule, Prices, ServeMode, ServeSettings};
use acpdb_engine::ids::Micros;

/// The saving that a rewrite must promise by the rule `hybrid`, as a multiple of its cost.
const HYBRID_RETURN_MIN: f64 = 2.0;

/// A pending item, in the order of the served context.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PlanCandidate {
    /// Its place in the served context, from 0.
    pub position: usize,
    /// Tokens that the context loses by it; below 1 it is no reason to rewrite, but rides along.
    pub gain: i64,
    /// Requests that were sent since it was concluded.
    pub waited: u32,
}

/// The end of an earlier request, up to which the cache can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// Items before it.
    pub position: usize,
    /// Tokens before it, the fixed prefix included, as they are served now.
    pub tokens: u64,
    /// When it was last written or read.
    pub used_at: Option<Micros>,
}

/// The known state of the provider's cache.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Cache {
    /// Nothing of it can be read: the first request, too long ago, another model.
    pub cold: bool,
    /// The next request is the first one after a prompt.
    pub is_after_prompt: bool,
    /// Ends of earlier requests, first to last.
    pub bounds: Vec<Bound>,
    /// Tokens before the first item: system prompt and tools.
    pub prefix_tokens: u64,
    /// Tokens of the last request, the fixed prefix included.
    pub last_tokens: u64,
    /// The price of all earlier requests together, in the unit of the prices.
    pub paid: f64,
    /// The same, if nothing had been hidden; 0: not known, and no rewrite is held back for it.
    pub paid_unhidden: f64,
}

/// Advice on pending items.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Nothing is pending.
    #[default]
    Nothing,
    /// A flush does not pay yet.
    Wait,
    /// A flush pays.
    Flush,
    /// A flush costs nothing: the cache is cold.
    FlushCold,
}

/// Cost and saving of a flush.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize)]
pub struct FlushPlan {
    /// The advice.
    pub advice: Advice,
    /// The first item of the served context that changes.
    pub first_changed: Option<usize>,
    /// Pending items that are applied: those from `first_changed` on.
    pub item_count: usize,
    /// Tokens that leave the context.
    pub tokens_removed: i64,
    /// Tokens that have to be written again.
    pub tokens_rewritten: u64,
    /// The bound up to which the cache is read; absent: the end of the fixed prefix.
    pub bound: Option<usize>,
    /// Extra cost of the next request because of the flush, in the unit of the prices; negative if it costs less.
    pub extra_cost_now: f64,
    /// Saving of each later request.
    pub saving_per_step: f64,
    /// Later requests until the flush has paid for itself; absent if it never does.
    pub break_even_steps: Option<f64>,
}

#[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
fn float(number: i64) -> f64 {
    number as f64
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

impl Cache {
    /// Tokens that are read at `now` if everything from `position` on changes, and the bound up to which; no bound: the end of the fixed
    /// prefix.
    pub fn kept_before(
        &self,
        position: usize,
        now: Option<Micros>,
        ttl_seconds: u32,
    ) -> (u64, Option<usize>) {
        let end = self.bounds.partition_point(|bound| bound.position <= position);
        let is_warm = |bound: &Bound| match (bound.used_at, now) {
            (Some(then), Some(now)) => !is_cold(then, now, ttl_seconds),
            _ => true,
        };
        let bound = self.bounds.get(..end).and_then(|bounds| bounds.iter().rposition(is_warm));
        let kept = bound.and_then(|bound| self.bounds.get(bound));
        let tokens = kept.map_or(self.prefix_tokens, |bound| bound.tokens);
        (if self.cold { 0 } else { tokens }, bound)
    }
}

/// Whether a cache that was last used `then` is cold. A clock that runs backwards makes nothing cold.
pub const fn is_cold(then: Micros, now: Micros, ttl_seconds: u32) -> bool {
    // As the text above says.
    ttl_seconds > 0 && now.0.saturating_sub(then.0) > ttl_seconds as i64 * 1_000_000
}

/// Advises on pending items: to wait, or to flush from a cut on.
///
/// `candidates` in the order of the served context. In mode append-only a flush is never advised; in mode eager always; the
/// figures are those of the advised cut, or of the cut nearest to paying.
///
/// Cost: O(candidates x log bounds).
pub fn plan(
    candidates: &[PlanCandidate],
    cache: &Cache,
    settings: &ServeSettings,
    now: Option<Micros>,
) -> FlushPlan {
    let Some(first) = candidates.first() else { return FlushPlan::default() };
    let price = settings.price;
    let all = || {
        let removed = candidates.iter().fold(0_i64, |sum, candidate| sum.saturating_add(candidate.gain));
        cut(cache, &price, now, first.position, (candidates.len(), removed))
    };
    if cache.cold {
        let advice = if settings.mode == ServeMode::AppendOnly { Advice::Wait } else { Advice::FlushCold };
        return FlushPlan { advice, ..all() };
    }
    if settings.mode == ServeMode::Eager {
        return FlushPlan { advice: Advice::Flush, ..all() };
    }
    let kappa = price.kappa();
    // Whether the cut pays, its score, and its figures. If none pays, the one nearest to paying.
    let mut best: Option<(bool, f64, FlushPlan)> = None;
    let (mut removed, mut waited) = (0_i64, 0.0_f64);
    for (place, candidate) in candidates.iter().enumerate().rev() {
        removed = removed.saturating_add(candidate.gain);
        waited += float(candidate.gain.max(0)) * f64::from(candidate.waited);
        // Several faces of one item change together: the cut is at the first of them.
        if candidates.get(place.wrapping_sub(1)).is_some_and(|before| before.position == candidate.position) {
            continue;
        }
        let cut = cut(cache, &price, now, candidate.position, (candidates.len() - place, removed));
        let cost = kappa * float(signed(cut.tokens_rewritten));
        let is_within_debt = settings.debt_max >= 1.0
            || cache.paid_unhidden <= 0.0
            || cache.paid + cut.extra_cost_now <= cache.paid_unhidden * (1.0 + settings.debt_max);
        let (is_worth_it, score) = match settings.rule {
            FlushRule::Hybrid | FlushRule::Prompts => {
                let promised = settings.horizon * float(removed) + settings.waiting * waited;
                (promised > 0.0 && promised >= HYBRID_RETURN_MIN * cost, promised - cost)
            }
            // The deepest that has paid for itself, so later (deeper) ones win.
            FlushRule::SkiRental if removed > 0 && waited >= cost => (true, 0.0),
            FlushRule::SkiRental => (false, waited - cost),
            FlushRule::Cold => (false, f64::MIN),
        };
        let pays = is_worth_it && is_within_debt;
        let is_deepest_wanted = settings.rule == FlushRule::SkiRental;
        let is_better = best.as_ref().is_none_or(|(best_pays, best_score, _)| match (pays, *best_pays) {
            (true, false) => true,
            (false, true) => false,
            _ => score > *best_score || is_deepest_wanted && score >= *best_score,
        });
        if is_better {
            best = Some((pays, score, cut));
        }
    }
    let Some((pays, _, cut)) = best else { return FlushPlan::default() };
    let is_time = settings.rule != FlushRule::Prompts || cache.is_after_prompt;
    let is_advised = pays && is_time && settings.mode == ServeMode::Batched;
    FlushPlan { advice: if is_advised { Advice::Flush } else { Advice::Wait }, ..cut }
}

/// The figures of a cut: everything from `position` on changes, so many items are applied, and so many tokens leave by them.
fn cut(
    cache: &Cache,
    price: &Prices,
    now: Option<Micros>,
    position: usize,
    (item_count, removed): (usize, i64),
) -> FlushPlan {
    let (kept, bound) = cache.kept_before(position, now, price.ttl_seconds);
    // The kept tokens may be more than the sent ones: then nothing is written anew.
    let suffix = signed(cache.last_tokens.saturating_sub(kept)).saturating_sub(removed);
    let rewritten = u64::try_from(suffix).unwrap_or(0);
    let saving = price.read * float(removed);
    let extra = if cache.cold {
        -price.write * float(removed)
    } else {
        (price.write - price.read) * float(signed(rewritten)) - saving
    };
    let break_even = if extra <= 0.0 {
        Some(0.0)
    } else if saving > 0.0 {
        Some(extra / saving)
    } else {
        None
    };
    FlushPlan {
        advice: Advice::Wait,
        first_changed: Some(position),
        item_count,
        tokens_removed: removed,
        tokens_rewritten: rewritten,
        bound,
        extra_cost_now: extra,
        saving_per_step: saving,
        break_even_steps: break_even,
    }
}

#[cfg(test)]
mod tests;
