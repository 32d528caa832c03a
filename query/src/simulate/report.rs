//! Outcomes as rows: sums over sessions, relative to doing nothing.

use acpdb_engine::fold::policy::ServeMode;
use serde::Serialize;

use super::{BillParts, HostCould, Missed, SimulationResult};
use crate::cost::float;

/// A policy in a mode, over some sessions.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PolicyRow {
    /// The host or the session that the row is about; only if rows are asked for by one of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// The policy's name.
    pub policy: String,
    /// The mode.
    pub mode: &'static str,
    /// Sessions.
    pub session_count: usize,
    /// Requests.
    pub request_count: usize,
    /// Price of all input, relative to doing nothing.
    pub price_ratio: f64,
    /// The same price, with the outputs that had to be fetched again.
    pub price_ratio_with_fetches: f64,
    /// The price without any cache, as of requests whose cache marks are left out, relative to doing nothing with a cache.
    pub price_ratio_without_cache: f64,
    /// The price of doing nothing, in tokens of plain input.
    pub price_unpruned: f64,
    /// Tokens sent, relative to doing nothing.
    pub tokens_ratio: f64,
    /// Tokens of a request, on average.
    pub tokens_per_turn: f64,
    /// The same average, doing nothing.
    pub tokens_per_turn_unpruned: f64,
    /// Tokens of the largest request.
    pub peak_tokens: u64,
    /// Tokens of the largest request, doing nothing.
    pub peak_tokens_unpruned: u64,
    /// Requests that changed a text that was sent before while the cache was warm.
    pub rewrites: usize,
    /// Part of all tokens that was read from the cache.
    pub cache_read_share: f64,
    /// Share of hidden faces that alone showed identifiers that the model wrote later.
    pub needed_again: f64,
    /// Share of edits whose replaced lines mostly stood nowhere in the visible texts, but had if nothing were hidden.
    pub blind_edits: f64,
    /// Share of edits that are blind like this with nothing hidden.
    pub blind_edits_unpruned: f64,
    /// Share of requests whose answer used a hidden text.
    pub steps_affected: f64,
    /// The parts of the price with fetches, relative to the price of doing nothing.
    pub parts: BillParts,
    /// The same parts, doing nothing.
    pub parts_unpruned: BillParts,
    /// The texts that hosts could leave out where no policy can.
    pub host_could: HostCould,
    /// Dollars of the input of those sessions whose model is known; only at prices by model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// Hidden faces that the model used all the same, case by case; only if that is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<Missed>,
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn count(number: usize) -> f64 {
    float(number as u64)
}

/// Sums outcomes; each comes with the outcome of doing nothing.
pub fn row<'o>(
    policy: &str,
    mode: ServeMode,
    outcomes: impl Iterator<Item = (&'o SimulationResult, &'o SimulationResult)>,
) -> PolicyRow {
    let mut row = PolicyRow { policy: policy.to_owned(), mode: mode.label(), ..PolicyRow::default() };
    let (mut price, mut with_fetches, mut price_unpruned) = (0.0, 0.0, 0.0);
    let mut without_cache = 0.0;
    let (mut tokens, mut tokens_unpruned, mut read) = (0_u64, 0_u64, 0_u64);
    let (mut hidden, mut needed, mut affected) = (0, 0, 0);
    let (mut edits, mut blind, mut blind_unpruned) = (0, 0_u64, 0);
    for (outcome, nothing) in outcomes {
        row.session_count += 1;
        row.request_count += outcome.requests.len();
        price += outcome.price();
        with_fetches += outcome.price_with_fetches();
        price_unpruned += nothing.price();
        without_cache += outcome.price_without_cache;
        row.parts.add(&outcome.bill_parts());
        row.parts_unpruned.add(&nothing.bill_parts());
        tokens += outcome.tokens();
        tokens_unpruned += nothing.tokens();
        read += outcome.requests.iter().map(|request| request.read).sum::<u64>();
        let peak = |outcome: &SimulationResult| outcome.requests.iter().map(|request| request.tokens).max();
        row.peak_tokens = row.peak_tokens.max(peak(outcome).unwrap_or(0));
        row.peak_tokens_unpruned = row.peak_tokens_unpruned.max(peak(nothing).unwrap_or(0));
        row.rewrites += outcome.requests.iter().filter(|request| request.rewritten && !request.cold).count();
        hidden += outcome.hidden_count;
        needed += outcome.needed_count;
        affected += outcome.affected_count;
        edits += outcome.edit_count;
        blind += outcome.blind_count;
        blind_unpruned += nothing.blind_count;
    }
    row.price_unpruned = price_unpruned;
    row.price_ratio_without_cache = ratio(without_cache, price_unpruned);
    row.price_ratio = ratio(price, price_unpruned);
    row.price_ratio_with_fetches = ratio(with_fetches, price_unpruned);
    row.parts = row.parts.relative_to(price_unpruned);
    row.parts_unpruned = row.parts_unpruned.relative_to(price_unpruned);
    row.tokens_ratio = ratio(float(tokens), float(tokens_unpruned));
    row.tokens_per_turn = ratio(float(tokens), count(row.request_count));
    row.tokens_per_turn_unpruned = ratio(float(tokens_unpruned), count(row.request_count));
    row.cache_read_share = ratio(float(read), float(tokens));
    row.needed_again = ratio(float(needed), float(hidden));
    // Hiding makes no edit less blind; an edit that is counted with nothing hidden is counted with something hidden too.
    row.blind_edits = ratio(float(blind.saturating_sub(blind_unpruned)), float(edits));
    row.blind_edits_unpruned = ratio(float(blind_unpruned), float(edits));
    row.steps_affected = ratio(float(affected), count(row.request_count));
    row
}
