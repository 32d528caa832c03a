//! Requests as sums: by time, session, project, host or model. Times are those of the zone that is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::event::TOTAL_TIER;
use acpdb_engine::ids::{Micros, StreamId};
use acpdb_engine::text::project_of;
use serde::Serialize;

use super::request::BilledRequest;
use super::requests::Requests;
use super::table::{Dollars, PriceTable, Pricing, written};

/// The key of a bill's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// An hour.
    Hour,
    /// Five hours from the hour of the first request on; the next ones begin with the first request behind them.
    Block,
    /// A day.
    Day,
    /// A week of ISO 8601, which begins on Monday.
    Week,
    /// A month.
    Month,
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
    /// Whether it is a stretch of time.
    pub const fn is_of_time(self) -> bool {
        matches!(self, Self::Hour | Self::Block | Self::Day | Self::Week | Self::Month)
    }

    /// The name in answers.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Block => "block",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
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
    fn add(&mut self, request: &BilledRequest) {
        let usage = &request.usage;
        let (short, long) = written(usage);
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
    /// The stretch of time, session, project, host or model; empty if it is not known.
    pub key: String,
    /// The second unit, if two are asked for: the model of `month,model`; empty if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The session's title, if the row is of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The names of its stores, if the row is of a session and several stores are read as one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<String>,
    /// Requests, each once.
    pub requests: u64,
    /// Those of these requests that no table prices; they add nothing to any sum of dollars.
    pub requests_unpriced: u64,
    /// Tokens.
    pub tokens: Tokens,
    /// Web searches that providers ran.
    pub searches: u64,
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
    /// The second unit of its rows, if two are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<&'static str>,
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
pub struct BillFilter<'a> {
    /// Whether a request is asked for.
    pub wanted: &'a dyn Fn(&BilledRequest) -> bool,
    /// Dollars that went to stale items, by request; empty unless they were asked for.
    pub stale: Option<&'a BTreeMap<acpdb_engine::ids::Seq, f64>>,
    /// A second unit, by which each row is split.
    pub within: Option<By>,
    /// The zone of days and hours.
    pub zone: jiff::tz::TimeZone,
}

impl std::fmt::Debug for BillFilter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asked").field("stale", &self.stale.is_some()).finish_non_exhaustive()
    }
}

/// Sums requests up.
pub fn bill(requests: &Requests, by: By, table: &PriceTable, asked: &BillFilter<'_>) -> Bill {
    let mut bill = Bill {
        by: by.label(),
        within: asked.within.map(By::label),
        prices_checked: table.checked.clone(),
        copies: requests.copies.iter().filter(|copy| (asked.wanted)(copy)).count() as u64,
        ..Bill::default()
    };
    let mut rows: BTreeMap<String, BTreeMap<String, CostRow>> = BTreeMap::new();
    let mut unpriced: BTreeMap<(Option<String>, Option<String>), Unpriced> = BTreeMap::new();
    let mut pricing = Pricing::of(table);
    let (mut keys, mut parts) = (RowKeys::of_zone(&asked.zone), RowKeys::of_zone(&asked.zone));
    let wanted: Vec<&BilledRequest> = requests.all.iter().filter(|request| (asked.wanted)(request)).collect();
    for (keys, by) in [(&mut keys, Some(by)), (&mut parts, asked.within)] {
        if by == Some(By::Block) {
            keys.blocks = blocks(&wanted);
        }
    }
    let summed = summed(requests);
    for request in wanted {
        let price = request.model.as_ref().and_then(|model| pricing.price(model, request.at));
        let dollars = price.and_then(|price| price.dollars(&request.usage, request.tier.as_deref()));
        if dollars.is_none() {
            // A tier is only named if the table does not know it.
            let own = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
            let (model, tier) = (own(&request.model), price.and(own(&request.tier)));
            let row = unpriced.entry((model.clone(), tier.clone())).or_default();
            row.model = model;
            row.service_tier = tier;
            row.requests += u64::from(request.counts());
            row.tokens.add(request);
        }
        let usage = &request.usage;
        let root = requests.root(request.stream);
        let is_silent = usage.input.is_none()
            && usage.cache_read.is_none()
            && usage.cache_write.is_none()
            && request.counts();
        // A sum of its host's that was told later may hold the rest.
        if is_silent && summed.get(&root).is_none_or(|sum| *sum < request.seq) {
            bill.requests_without_input += 1;
        }
        let key = keys.of(requests, root, request, by);
        let part = asked.within.map_or("", |within| parts.of(requests, root, request, within));
        if !rows.get(key).is_some_and(|own| own.contains_key(part)) {
            let row = CostRow {
                key: key.to_owned(),
                part: asked.within.map(|_| part.to_owned()),
                ..CostRow::default()
            };
            rows.entry(key.to_owned()).or_default().insert(part.to_owned(), row);
        }
        let Some(row) = rows.get_mut(key).and_then(|own| own.get_mut(part)) else { continue };
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
    bill.items = rows.into_values().flat_map(BTreeMap::into_values).collect();
    for row in bill.items.iter_mut().chain([&mut bill.sum]) {
        settle(row);
    }
    bill.items.sort_by(|one, other| {
        let by_time = if by.is_of_time() { one.key.cmp(&other.key) } else { std::cmp::Ordering::Equal };
        let by_part = match asked.within {
            Some(within) if within.is_of_time() && by_time.is_eq() => one.part.cmp(&other.part),
            _ => std::cmp::Ordering::Equal,
        };
        by_time
            .then(by_part)
            .then(other.total.total_cmp(&one.total))
            .then(other.requests.cmp(&one.requests))
            .then_with(|| (&one.key, &one.part).cmp(&(&other.key, &other.part)))
    });
    bill.unpriced = unpriced.into_values().collect();
    bill.unpriced.sort_by_key(|row| std::cmp::Reverse(row.requests));
    bill
}

/// Where the newest sum of each session was told, without which some of its requests would tell too little.
fn summed(requests: &Requests) -> BTreeMap<StreamId, acpdb_engine::ids::Seq> {
    let sums = requests.all.iter().filter(|request| request.tier.as_deref() == Some(TOTAL_TIER));
    sums.map(|request| (requests.root(request.stream), request.seq)).collect()
}

/// The block of each request, by its seq: the beginning, in microseconds.
fn blocks(requests: &[&BilledRequest]) -> BTreeMap<acpdb_engine::ids::Seq, i64> {
    let mut timed: Vec<(i64, acpdb_engine::ids::Seq)> =
        requests.iter().filter_map(|request| Some((request.at?.get(), request.seq))).collect();
    timed.sort_unstable();
    let mut begin: Option<i64> = None;
    let block = |(at, seq): (i64, acpdb_engine::ids::Seq)| {
        // Times come in order, so none is before its block.
        let own = begin.filter(|begin| at.saturating_sub(*begin) < BLOCK);
        let own = own.unwrap_or_else(|| at.div_euclid(HOUR).saturating_mul(HOUR));
        begin = Some(own);
        (seq, own)
    };
    timed.into_iter().map(block).collect()
}

fn add(row: &mut CostRow, request: &BilledRequest, dollars: Option<&Dollars>, is_subagents: bool) {
    row.requests += u64::from(request.counts());
    row.tokens.add(request);
    row.searches = row.searches.saturating_add(request.usage.searches.unwrap_or(0));
    match dollars {
        Some(dollars) => {
            row.dollars.add(dollars);
            if is_subagents {
                row.subagents += dollars.total();
            }
        }
        None => row.requests_unpriced += u64::from(request.counts()),
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
    let Dollars { input, cache_read, cache_write, cache_write_long, output, searches } = &mut row.dollars;
    let optional = [&mut row.host_total, &mut row.host_total_by_table, &mut row.stale];
    let sums = [
        input,
        cache_read,
        cache_write,
        cache_write_long,
        output,
        searches,
        &mut row.total,
        &mut row.subagents,
    ];
    for sum in sums.into_iter().chain(optional.into_iter().flatten()) {
        *sum = (*sum * 1e6).round() / 1e6;
    }
}

/// The keys of rows. Requests mostly follow others of the same hour and session, so the last key is kept.
struct RowKeys {
    zone: jiff::tz::TimeZone,
    last: String,
    /// The quarter of an hour since 1970 for which the last key holds: zones differ by whole quarters.
    quarter: Option<i64>,
    blocks: BTreeMap<acpdb_engine::ids::Seq, i64>,
}

/// Microseconds.
const HOUR: i64 = 3_600_000_000;
const QUARTER: i64 = HOUR / 4;
const BLOCK: i64 = 5 * HOUR;

impl RowKeys {
    fn of_zone(zone: &jiff::tz::TimeZone) -> Self {
        Self { zone: zone.clone(), last: String::new(), quarter: None, blocks: BTreeMap::new() }
    }

    fn of(&mut self, requests: &Requests, root: StreamId, request: &BilledRequest, by: By) -> &str {
        let name = requests.streams.get(&root);
        let known = match by {
            By::Hour | By::Block | By::Day | By::Week | By::Month => {
                let at = match by {
                    By::Block => self.blocks.get(&request.seq).copied(),
                    _ => request.at.map(Micros::get),
                };
                let quarter = at.map(|at| at.div_euclid(QUARTER));
                if quarter.is_none() || quarter != self.quarter {
                    self.quarter = quarter;
                    self.last = at.and_then(|at| dated(at, by, &self.zone)).unwrap_or_default();
                }
                return &self.last;
            }
            By::Session => name.map(|name| name.name.as_str()),
            By::Project => {
                let folder = name.and_then(|name| name.folder.as_deref()).unwrap_or_default();
                self.last = project_of(folder).into_owned();
                return &self.last;
            }
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

fn dated(at: i64, by: By, zone: &jiff::tz::TimeZone) -> Option<String> {
    // A time beyond the calendar has no name.
    let time = jiff::Timestamp::from_microsecond(at).ok()?.to_zoned(zone.clone());
    let day = time.date();
    Some(match by {
        By::Hour => format!("{day}T{:02}", time.hour()),
        By::Block => format!("{day}T{:02}:{:02}", time.hour(), time.minute()),
        By::Week => {
            let week = day.iso_week_date();
            format!("{}-W{:02}", week.year(), week.week())
        }
        By::Month => format!("{}-{:02}", day.year(), day.month()),
        _ => day.to_string(),
    })
}
