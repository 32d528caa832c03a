//! Plans: the cut that is advised, and its cost.

use super::*;

fn bounds(ends: &[(usize, u64)]) -> Vec<Bound> {
    ends.iter()
        .map(|(position, tokens)| Bound { position: *position, tokens: *tokens, used_at: None })
        .collect()
}

fn cache(ends: &[(usize, u64)]) -> Cache {
    let last_tokens = ends.last().map_or(0, |end| end.1);
    Cache { bounds: bounds(ends), prefix_tokens: 1000, last_tokens, ..Cache::default() }
}

fn candidate(position: usize, gain: i64, waited: u32) -> PlanCandidate {
    PlanCandidate { position, gain, waited }
}

fn settings(rule: FlushRule, mode: ServeMode) -> ServeSettings {
    ServeSettings { mode, rule, ..ServeSettings::default() }
}

#[test]
fn what_is_near_the_end_pays_at_once_and_what_is_far_from_it_waits() {
    let cache = cache(&[(10, 50_000), (12, 52_000), (14, 52_500)]);
    let batched = settings(FlushRule::Hybrid, ServeMode::Batched);
    let near = plan(&[candidate(12, 400, 0)], &cache, &batched, None);
    assert_eq!((near.advice, near.tokens_rewritten, near.bound), (Advice::Flush, 100, Some(1)));
    let far = plan(&[candidate(2, 400, 0)], &cache, &batched, None);
    assert_eq!((far.advice, far.bound), (Advice::Wait, None));
    assert!(far.break_even_steps.is_some_and(|steps| steps > 1000.0), "{far:?}");
}

#[test]
fn a_cut_takes_everything_behind_it_along() {
    let cache = cache(&[(1, 2_000), (20, 12_000)]);
    let batched = settings(FlushRule::Hybrid, ServeMode::Batched);
    let both = [candidate(2, 5_000, 0), candidate(18, 4_000, 0)];
    let planned = plan(&both, &cache, &batched, None);
    assert_eq!((planned.advice, planned.first_changed, planned.item_count), (Advice::Flush, Some(2), 2));
    assert_eq!(planned.tokens_removed, 9_000);
}

#[test]
fn prompts_are_the_only_time_for_some() {
    let mut cache = cache(&[(10, 20_000)]);
    let prompts = settings(FlushRule::Prompts, ServeMode::Batched);
    let advice = |cache: &Cache| plan(&[candidate(10, 9_000, 0)], cache, &prompts, None).advice;
    assert_eq!(advice(&cache), Advice::Wait);
    cache.is_after_prompt = true;
    assert_eq!(advice(&cache), Advice::Flush);
}

/// A rewrite that promised hardly more than it cost made a session that ended soon afterwards dearer than doing nothing:
/// 672 tokens against 289 rewritten, in the eighth of twelve requests.
#[test]
fn a_rewrite_has_to_promise_twice_what_it_costs() {
    let batched = settings(FlushRule::Hybrid, ServeMode::Batched);
    let advice = |gain: i64, rewritten: u64| {
        let mut cache = cache(&[(10, 19_000)]);
        cache.last_tokens = 19_000 + rewritten + u64::try_from(gain).unwrap();
        plan(&[candidate(10, gain, 0)], &cache, &batched, None).advice
    };
    // 8 * 672 = 5,376; 11.5 * 289 = 3,323.5; 11.5 * 233 = 2,679.5.
    assert_eq!(
        [advice(672, 289), advice(672, 234), advice(672, 233)],
        [Advice::Wait, Advice::Wait, Advice::Flush]
    );
    // Of two cuts the one that returns enough is taken, though the other promises more in all.
    let cache = cache(&[(1, 2_000), (20, 12_000), (22, 12_700)]);
    let both = [candidate(2, 5_000, 0), candidate(20, 600, 0)];
    let planned = plan(&both, &cache, &batched, None);
    assert_eq!((planned.advice, planned.first_changed), (Advice::Flush, Some(20)), "{planned:?}");
}

#[test]
fn a_cold_cache_makes_everything_free() {
    let cold = Cache { cold: true, ..cache(&[(4, 9_000)]) };
    let planned = plan(&[candidate(0, 10, 0)], &cold, &settings(FlushRule::Cold, ServeMode::Batched), None);
    assert_eq!(planned.advice, Advice::FlushCold);
    assert!(planned.extra_cost_now < 0.0);
    let never =
        plan(&[candidate(0, 10, 0)], &cold, &settings(FlushRule::Hybrid, ServeMode::AppendOnly), None);
    assert_eq!(never.advice, Advice::Wait);
}

#[test]
fn ski_rental_waits_until_waiting_has_cost_as_much() {
    let cache = cache(&[(1, 2_000), (20, 12_000)]);
    let ski = settings(FlushRule::SkiRental, ServeMode::Batched);
    let advice = |waited| plan(&[candidate(2, 1_000, waited)], &cache, &ski, None).advice;
    // S = 12,000 - 2,000 - 1,000 = 9,000; kappa 11.5: 103.5 requests.
    assert_eq!([0, 103, 104].map(advice), [Advice::Wait, Advice::Wait, Advice::Flush]);
}

#[test]
fn the_formula_of_the_break_even_is_that_of_the_price_list() {
    // Later turns to break even = 11.5 * S / R - 1: thirty thousand against five thousand is one turn.
    let cache = Cache { last_tokens: 36_000, ..cache(&[(1, 1_000)]) };
    let planned =
        plan(&[candidate(1, 30_000, 0)], &cache, &settings(FlushRule::Hybrid, ServeMode::Batched), None);
    assert_eq!(planned.tokens_rewritten, 5_000);
    let steps = planned.break_even_steps.unwrap();
    assert!((steps - (11.5 * 5.0 / 30.0 - 1.0)).abs() < 1e-9, "{steps}");
}

#[test]
fn a_bound_that_has_gone_cold_is_not_read() {
    let mut cache = cache(&[(5, 5_000), (9, 9_000)]);
    let second = 1_000_000;
    cache.bounds[0].used_at = Some(Micros(0));
    cache.bounds[1].used_at = Some(Micros(400 * second));
    assert_eq!(cache.kept_before(9, Some(Micros(500 * second)), 300), (9_000, Some(1)));
    assert_eq!(cache.kept_before(8, Some(Micros(500 * second)), 300), (cache.prefix_tokens, None));
    assert_eq!(cache.kept_before(8, Some(Micros(100 * second)), 300), (5_000, Some(0)));
    cache.cold = true;
    assert_eq!(cache.kept_before(9, Some(Micros(500 * second)), 300).0, 0);
}

#[test]
fn prices_that_cannot_be_reckoned_with_are_refused() {
    for (name, prices) in [
        ("read", Prices { read: f64::NAN, ..Prices::default() }),
        ("read", Prices { read: 0.0, ..Prices::default() }),
        ("write", Prices { write: -1.0, ..Prices::default() }),
        ("input", Prices { input: f64::INFINITY, ..Prices::default() }),
    ] {
        assert_eq!(prices.checked().unwrap_err().name, name);
    }
    assert!(Prices::default().checked().is_ok());
    assert!((Prices::default().kappa() - 11.5).abs() < 1e-9);
    assert!(Prices::FLAT.kappa().abs() < 1e-9);
}

#[test]
fn a_clock_that_jumps_warms_nothing_and_breaks_nothing() {
    let hour = Micros(3_600_000_000);
    // Backwards: a bound that was used in the future is not cold: the policy has nothing better to go by.
    assert!(!is_cold(hour, Micros(0), 300));
    assert!(!is_cold(Micros(i64::MAX), Micros(i64::MIN), 300));
    // Forwards: cold, also at the border of a clock's range.
    assert!(is_cold(Micros(0), hour, 300));
    assert!(is_cold(Micros(i64::MIN), Micros(i64::MAX), u32::MAX));
    assert!(!is_cold(Micros(i64::MIN), Micros(i64::MAX), 0), "a cache without end is never cold");
    let mut jumped = cache(&[(10, 50_000), (12, 52_000)]);
    for (bound, used_at) in jumped.bounds.iter_mut().zip([Micros(i64::MAX), Micros(0)]) {
        bound.used_at = Some(used_at);
    }
    let batched = settings(FlushRule::Hybrid, ServeMode::Batched);
    let planned = plan(&[candidate(12, 400, 0)], &jumped, &batched, Some(hour));
    // The newest bound looks cold; the one that was used in the future is read.
    assert_eq!(planned.bound, Some(0), "{planned:?}");
    assert!(planned.extra_cost_now.is_finite() && planned.saving_per_step.is_finite());
}

/// Rewrites that promised to pay made sessions that ended soon afterwards dearer than doing nothing.
#[test]
fn a_rewrite_costs_no_more_than_was_saved_before_it() {
    let rule = |debt_max: f64| ServeSettings { debt_max, ..settings(FlushRule::Hybrid, ServeMode::Batched) };
    // 5,000 tokens leave, 5,000 are written anew: 1.15 * 5,000 - 0.1 * 5,000 = 5,250 more now.
    let known = |saved: f64| Cache {
        paid: 50_000.0,
        paid_unhidden: 50_000.0 + saved,
        ..cache(&[(1, 2_000), (20, 12_000)])
    };
    let advice = |saved: f64, debt_max: f64| {
        let planned = plan(&[candidate(1, 5_000, 60)], &known(saved), &rule(debt_max), None);
        assert!((planned.extra_cost_now - 5_250.0).abs() < 1e-6, "{planned:?}");
        planned.advice
    };
    assert_eq!([advice(5_249.0, 0.0), advice(5_251.0, 0.0)], [Advice::Wait, Advice::Flush]);
    // A tenth of what doing nothing has cost may be owed.
    assert_eq!(
        [advice(0.0, 0.1), advice(500.0, 0.1), advice(0.0, 1.0)],
        [Advice::Wait, Advice::Flush, Advice::Flush]
    );
    // Without an account nothing is held back.
    let unknown = Cache { paid: 0.0, paid_unhidden: 0.0, ..known(0.0) };
    assert_eq!(plan(&[candidate(1, 5_000, 60)], &unknown, &rule(0.0), None).advice, Advice::Flush);
}
