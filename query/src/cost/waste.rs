//! The part of a bill that went to stale items, and the cost of other ways to serve the same sessions.
//!
//! An item is stale if a newer one replaced its content: a file read again after an edit, a test run again. Hosts send it
//! with every further request. The fold knows how many tokens of it each request carried; the bill knows at what price.
//! The cost of other ways comes from the simulator, relative to doing nothing, times the dollars paid for input.

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::fold::Policy;
use acpdb_engine::fold::policy::{Prices, ServeMode};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::{At, Error, Store};
use serde::Serialize;

use super::request::BilledRequest;
use super::table::{Dollars, ModelPrice, PriceTable, float};
use crate::simulate::{self, SessionRecording, Setup};

/// The ways that are reckoned: name, preset, and how sessions are served.
pub const WASTE_WAYS: [(&str, &str, ServeMode); 4] = [
    ("stale and repeated, when it pays", "acp", ServeMode::Batched),
    ("economy", "economy", ServeMode::Batched),
    ("safe", "safe", ServeMode::Batched),
    ("stale and repeated, at once", "acp", ServeMode::Eager),
];

/// A way to serve sessions, and the cost of their input.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServingPolicy {
    /// Its name.
    pub name: &'static str,
    /// The policy.
    pub policy: &'static str,
    /// The mode in which it is served.
    pub mode: &'static str,
    /// Dollars for input.
    pub input: f64,
    /// Dollars less than were paid; below zero, the way would have cost more.
    pub saved: f64,
    /// Steps of the model.
    pub steps: u64,
    /// Steps of these whose answer used a text that the way would have hidden.
    pub steps_affected: u64,
}

impl ServingPolicy {
    /// The risk of the way: the share of steps that would have missed something.
    pub fn affected_share(&self) -> f64 {
        if self.steps > 0 { float(self.steps_affected) / float(self.steps) } else { 0.0 }
    }
}

/// The cost of other ways, over some sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waste {
    /// Dollars that were paid for the input of these sessions.
    pub input: f64,
    /// The ways.
    pub ways: Vec<ServingPolicy>,
}

impl Waste {
    /// Adds the costs of another session.
    pub fn add(&mut self, other: &Self) {
        self.input += other.input;
        for way in &other.ways {
            match self.ways.iter_mut().find(|known| known.name == way.name) {
                Some(known) => {
                    known.input += way.input;
                    known.saved += way.saved;
                    known.steps += way.steps;
                    known.steps_affected += way.steps_affected;
                }
                None => self.ways.push(way.clone()),
            }
        }
    }

    /// The way that would have saved most, if any had saved something.
    pub fn best(&self) -> Option<&ServingPolicy> {
        let saving = self.ways.iter().filter(|way| way.saved > 0.0);
        saving.max_by(|one, other| one.saved.total_cmp(&other.saved))
    }

    /// Sums to the millionth of a dollar.
    pub fn settle(&mut self) {
        let sums = self.ways.iter_mut().flat_map(|way| [&mut way.input, &mut way.saved]);
        for sum in sums.chain([&mut self.input]) {
            *sum = (*sum * 1e6).round() / 1e6;
        }
    }
}

/// The prices of a session's input, relative to plain input: those of the model that most of its requests went to, its
/// caches kept as long as the usage says. `None`: no table knows the model.
pub fn prices_of<'r>(
    table: &PriceTable,
    requests: impl Iterator<Item = &'r BilledRequest>,
) -> Option<Prices> {
    usual(table, requests).map(|(_, prices)| prices)
}

/// The cost of a session's input as its provider reported it, and the prices for a simulation of the session.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reported {
    /// The prices of its model, relative to plain input.
    pub prices: Prices,
    /// Dollars of a token of plain input.
    pub token_dollars: f64,
    /// Dollars of all its input.
    pub input_dollars: f64,
}

/// A session's cost as its provider reported it. `None`: no table knows the session's model.
pub fn reported(table: &PriceTable, requests: &[&BilledRequest]) -> Option<Reported> {
    let (model, prices) = usual(table, requests.iter().copied())?;
    Some(Reported {
        prices,
        token_dollars: model.token_dollars(),
        input_dollars: paid(table, requests).all_input(),
    })
}

/// Dollars of all requests that the table prices.
fn paid(table: &PriceTable, requests: &[&BilledRequest]) -> Dollars {
    let mut paid = Dollars::default();
    for request in requests {
        let price = request.model.as_deref().and_then(|model| table.price(model, request.at));
        let dollars = price.and_then(|price| price.dollars(&request.usage, request.tier.as_deref()));
        paid.add(&dollars.unwrap_or_default());
    }
    paid
}

/// The model that most requests went to, and its prices.
fn usual<'t, 'r>(
    table: &'t PriceTable,
    requests: impl Iterator<Item = &'r BilledRequest>,
) -> Option<(&'t ModelPrice, Prices)> {
    let mut counts: BTreeMap<&str, (u64, &BilledRequest)> = BTreeMap::new();
    let (mut read, mut written, mut long) = (0_u64, 0_u64, 0_u64);
    for request in requests {
        read = read.saturating_add(request.usage.cache_read.unwrap_or(0));
        written = written.saturating_add(request.usage.cache_write.unwrap_or(0));
        long = long.saturating_add(request.usage.cache_write_long.unwrap_or(0));
        if let Some(model) = &request.model {
            counts.entry(model).or_insert((0, request)).0 += 1;
        }
    }
    let (model, (_, request)) = counts.into_iter().max_by_key(|(_, (count, _))| *count)?;
    let price = table.price(model, request.at)?;
    let mut prices = price.relative(long.saturating_mul(2) > written);
    if written == 0 && read > 0 {
        // The model's cache was filled without a price for writing, as with resellers.
        prices.write = prices.input;
    }
    // A user's table may hold prices that cannot be used; as for a model without a price, there are no dollars then.
    Some((price, prices.checked().ok()?))
}

/// Dollars that each request of a session spent on stale items. None for sessions that the store served: they did not send the
/// texts that the host recorded.
///
/// Cost: a fold of the session.
///
/// # Errors
/// If the log cannot be read.
pub fn stale(
    store: &Store,
    table: &PriceTable,
    stream: StreamId,
    requests: &[&BilledRequest],
    to: Seq,
) -> Result<BTreeMap<Seq, f64>, Error> {
    let view = store.view_once(stream, &At::Seq(to))?;
    let state = view.state();
    let mut spent = BTreeMap::new();
    if !state.served(view.at()).is_empty() {
        return Ok(spent);
    }
    for request in requests {
        let tokens = state.tokens(request.seq);
        // Summaries that are longer than the texts that they replace leave nothing stale.
        let stale = tokens.whole.saturating_sub(tokens.shown);
        let price = request.model.as_deref().and_then(|model| table.price(model, request.at));
        let dollars =
            price.and_then(|price| price.seen_before(stale, &request.usage, request.tier.as_deref()));
        if let Some(dollars) = dollars.filter(|dollars| *dollars > 0.0) {
            spent.insert(request.seq, dollars);
        }
    }
    Ok(spent)
}

/// The cost of other ways for a session. `None`: no table prices it, or it sent nothing.
///
/// Cost: the session's texts are read once, and its events folded for each way.
///
/// # Errors
/// If the log cannot be read.
pub fn waste(
    store: &Store,
    table: &PriceTable,
    stream: StreamId,
    requests: &[&BilledRequest],
) -> Result<Option<Waste>, Error> {
    let Some(prices) = prices_of(table, requests.iter().copied()) else { return Ok(None) };
    let mut recording = SessionRecording::read(store, stream)?;
    recording.count_as(table);
    let nothing = simulate::nothing_as_recorded(&mut recording, prices).price();
    let input = paid(table, requests).all_input();
    if nothing <= 0.0 || input <= 0.0 {
        return Ok(None);
    }
    // Ways of one policy share its fold.
    let mut policies: BTreeMap<&str, Option<Arc<Policy>>> = BTreeMap::new();
    let setups = WASTE_WAYS.map(|(_, preset, mode)| {
        let policy = policies.entry(preset).or_insert_with(|| Policy::preset(preset).map(Arc::new)).clone();
        Setup { name: preset.to_owned(), policy, mode: Some(mode), ..Setup::nothing(Some(prices)) }
    });
    let outcomes = simulate::run_all(&recording, &setups);
    let ways = WASTE_WAYS.iter().zip(&outcomes).map(|((name, preset, mode), outcome)| {
        let cost = input * outcome.price_with_fetches() / nothing;
        ServingPolicy {
            name,
            policy: preset,
            mode: mode.label(),
            input: cost,
            saved: input - cost,
            steps: outcome.requests.len() as u64,
            steps_affected: outcome.affected_count,
        }
    });
    Ok(Some(Waste { input, ways: ways.collect() }))
}
