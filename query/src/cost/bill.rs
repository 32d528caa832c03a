//! Requests as sums: by day, week, session, project, host or model.

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::ids::{Micros, StreamId};
use serde::Serialize;

use super::requests::{Request, Requests};
use super::table::{Dollars, PriceTable, Pricing};

/// The key of a bill's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A day, of UTC.
    Day,
    /// A week of ISO 8601, which begins on Monday.
    Week,
    /// A session, its subagents included.
    Session,
    /// The folder that a session began in.
    Project,
    /// A host program.
    Host,
    /// A model.
    Model,
}

impl By {
    /// The name in answers.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Session => "session",
            Self::Project => "project",
            Self::Host => "host",
            Self::Model => "model",
        }
    }
}

/// Tokens of requests, as they are priced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Input that is neither read from a cache nor written to one.
    pub input: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache, for minutes.
    pub cache_write: u64,
    /// Input written to the cache for an hour.
    pub cache_write_long: u64,
    /// Output, reasoning included.
    pub output: u64,
}

impl Tokens {
    fn add(&mut self, request: &Request) {
        let usage = &request.usage;
        let long = usage.cache_write_long.unwrap_or(0);
        // A host that tells only the tokens that are kept for an hour wrote no others.
        let short = usage.cache_write.unwrap_or(0).saturating_sub(long);
        for (sum, count) in [
            (&mut self.input, usage.input.unwrap_or(0)),
            (&mut self.cache_read, usage.cache_read.unwrap_or(0)),
            (&mut self.cache_write, short),
            (&mut self.cache_write_long, long),
            (&mut self.output, usage.output.unwrap_or(0)),
        ] {
            *sum = sum.saturating_add(count);
        }
    }
}

/// A row of a bill.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CostRow {
    /// The day, week, session, project, host or model; empty if it is not known.
    pub key: String,
    /// The session's title, if the row is of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Requests, each once.
    pub requests: u64,
    /// Those of these requests that no table prices; they add nothing to any sum of dollars.
    pub requests_unpriced: u64,
    /// Tokens.
    pub tokens: Tokens,
    /// Dollars by kind of token.
    pub dollars: Dollars,
    /// Dollars in all.
    pub total: f64,
    /// Those of these dollars that subagents cost.
    pub subagents: f64,
    /// Dollars as the hosts tell them, of the requests with a host's cost above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_total: Option<f64>,
    /// Dollars of the same requests by the table, as far as it prices them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_total_by_table: Option<f64>,
    /// Dollars that went to stale items: input that was sent again although a newer item had superseded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale: Option<f64>,
}

/// Requests that no table prices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unpriced {
    /// The model as the host names it; `None` if the host names none.
    pub model: Option<String>,
    /// The service tier, if the table does not know the tier.
    pub service_tier: Option<String>,
    /// The number of requests.
    pub requests: u64,
    /// Their tokens.
    pub tokens: Tokens,
}

/// The cost of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Bill {
    /// The key of its rows.
    pub by: &'static str,
    /// The day on which the table of prices was compared with its sources.
    pub prices_checked: String,
    /// The rows: days and weeks in their order, others by their cost, the dearest first.
    pub items: Vec<CostRow>,
    /// The sum of all rows.
    pub sum: CostRow,
    /// Requests that are in no sum of dollars.
    pub unpriced: Vec<Unpriced>,
    /// Requests that were left out as copies of others.
    pub copies: u64,
    /// Requests whose host does not tell the input: their sums are too low.
    pub requests_without_input: u64,
}

/// The requests that are asked for.
pub struct Asked<'a> {
    /// Whether a request is asked for.
    pub wanted: &'a dyn Fn(&Request) -> bool,
    /// Dollars that went to stale items, by request; empty unless they were asked for.
    pub stale: Option<&'a BTreeMap<acpdb_engine::ids::Seq, f64>>,
}

impl std::fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asked").field("stale", &self.stale.is_some()).finish_non_exhaustive()
    }
}

/// Sums requests up.
pub fn bill(requests: &Requests, by: By, table: &PriceTable, asked: &Asked<'_>) -> Bill {
    let mut bill = Bill {
        by: by.label(),
        prices_checked: table.checked.clone(),
        copies: requests.copies,
        ..Bill::default()
    };
    let mut rows: BTreeMap<String, CostRow> = BTreeMap::new();
    let mut unpriced: BTreeMap<(Option<String>, Option<String>), Unpriced> = BTreeMap::new();
    let (mut pricing, mut keys) = (Pricing::of(table), Keys::default());
    for request in requests.all.iter().filter(|request| (asked.wanted)(request)) {
        let price = request.model.as_ref().and_then(|model| pricing.price(model, request.at));
        let dollars = price.and_then(|price| price.dollars(&request.usage, request.tier.as_deref()));
        if dollars.is_none() {
            // A tier is only named if the table does not know it.
            let own = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
            let (model, tier) = (own(&request.model), price.and(own(&request.tier)));
            let row = unpriced.entry((model.clone(), tier.clone())).or_default();
            row.model = model;
            row.service_tier = tier;
            row.requests += 1;
            row.tokens.add(request);
        }
        let usage = &request.usage;
        if usage.input.is_none() && usage.cache_read.is_none() && usage.cache_write.is_none() {
            bill.requests_without_input += 1;
        }
        let root = requests.root(request.stream);
        let key = keys.of(requests, root, request, by);
        let row = match rows.get_mut(key) {
            Some(row) => row,
            None => rows
                .entry(key.to_owned())
                .or_insert_with(|| CostRow { key: key.to_owned(), ..CostRow::default() }),
        };
        if by == By::Session {
            row.title = requests.streams.get(&root).and_then(|name| name.title.clone());
        }
        for row in [row, &mut bill.sum] {
            add(row, request, dollars.as_ref(), root != request.stream);
            if let Some(stale) = asked.stale {
                let own = stale.get(&request.seq).copied().unwrap_or_default();
                *row.stale.get_or_insert_default() += own;
            }
        }
    }
    bill.items = rows.into_values().collect();
    for row in bill.items.iter_mut().chain([&mut bill.sum]) {
        settle(row);
    }
    if !matches!(by, By::Day | By::Week) {
        bill.items.sort_by(|one, other| {
            other
                .total
                .total_cmp(&one.total)
                .then(other.requests.cmp(&one.requests))
                .then(one.key.cmp(&other.key))
        });
    }
    bill.unpriced = unpriced.into_values().collect();
    bill.unpriced.sort_by_key(|row| std::cmp::Reverse(row.requests));
    bill
}

fn add(row: &mut CostRow, request: &Request, dollars: Option<&Dollars>, is_subagents: bool) {
    row.requests += 1;
    row.tokens.add(request);
    match dollars {
        Some(dollars) => {
            row.dollars.add(dollars);
            if is_subagents {
                row.subagents += dollars.total();
            }
        }
        None => row.requests_unpriced += 1,
    }
    // Hosts write 0 if a subscription pays.
    if let Some(says) = request.host_says.filter(|says| *says > 0.0) {
        *row.host_total.get_or_insert_default() += says;
        *row.host_total_by_table.get_or_insert_default() += dollars.map_or(0.0, Dollars::total);
    }
}

/// Rounds sums to the millionth of a dollar: smaller parts come from adding and are no money.
fn settle(row: &mut CostRow) {
    row.total = row.dollars.total();
    let Dollars { input, cache_read, cache_write, cache_write_long, output } = &mut row.dollars;
    let optional = [&mut row.host_total, &mut row.host_total_by_table, &mut row.stale];
    let sums = [input, cache_read, cache_write, cache_write_long, output, &mut row.total, &mut row.subagents];
    for sum in sums.into_iter().chain(optional.into_iter().flatten()) {
        *sum = (*sum * 1e6).round() / 1e6;
    }
}

/// The keys of rows. Requests mostly follow others of the same day and session, so the last key is kept.
#[derive(Default)]
struct Keys {
    last: String,
    /// Days since 1970, for which the last key holds.
    day: Option<i64>,
}

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

impl Keys {
    fn of(&mut self, requests: &Requests, root: StreamId, request: &Request, by: By) -> &str {
        let name = requests.streams.get(&root);
        let known = match by {
            By::Day | By::Week => {
                let number = request.at.map(|at| at.get().div_euclid(DAY));
                if number.is_none() || number != self.day {
                    self.day = number;
                    self.last = request.at.and_then(|at| dated(at, by)).unwrap_or_default();
                }
                return &self.last;
            }
            By::Session => name.map(|name| name.name.as_str()),
            By::Project => name.and_then(|name| name.folder.as_deref()),
            By::Host => name.map(|name| name.host.as_str()),
            By::Model => request.model.as_deref(),
        };
        let known = known.unwrap_or_default();
        if self.last != known {
            known.clone_into(&mut self.last);
        }
        &self.last
    }
}

fn dated(at: Micros, by: By) -> Option<String> {
    let day = day(at)?;
    if by == By::Day {
        return Some(day.to_string());
    }
    let week = day.iso_week_date();
    Some(format!("{}-W{:02}", week.year(), week.week()))
}

/// The day of UTC: a bill says the same on every machine.
fn day(at: Micros) -> Option<jiff::civil::Date> {
    let time = jiff::Timestamp::from_microsecond(at.get()).ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).date())
}
