//! The table of prices: by model, dated, with sources; and a file of the user's before it.
//!
//! A model that no table names has no price. Names are compared whole: `claude-opus-5` says nothing of
//! `claude-opus-5-5`, so that a new model is never reckoned at an old one's prices.

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::event::{PART_TIER, SUM_TIER, TOTAL_TIER, Usage};
use acpdb_engine::fold::policy::Prices;
use acpdb_engine::ids::Micros;
use serde::Deserialize;

/// The table that comes with the program, as it is written.
pub const BUILT_IN: &str = include_str!("prices.toml");
/// The number of tokens that a price is for.
const MILLION: f64 = 1e6;

/// A table that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// Not TOML, or a field is missing or unknown.
    #[error("the table of prices cannot be read: {0}")]
    Syntax(String),
    /// A model names a provider that the table does not have.
    #[error("{model} names the provider {provider:?}, of which the table says nothing")]
    Provider {
        /// The model.
        model: String,
        /// Its provider.
        provider: String,
    },
    /// A price that cannot be reckoned with.
    #[error("{model}: {field} is {value}; prices are numbers, and none is negative")]
    Price {
        /// The model.
        model: String,
        /// The name of the price.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// Tokens that no request can have.
    #[error(
        "{model}: tokens is {value}; it is how many tokens of the model one estimated token is, a number above 0"
    )]
    Tokens {
        /// The model.
        model: String,
        /// Its value.
        value: f64,
    },
    /// A text that is no day.
    #[error("{model}: {day:?} is no day; write it as 2026-01-31")]
    Day {
        /// The model.
        model: String,
        /// The text as it is written.
        day: String,
    },
}

/// A table as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    checked: String,
    #[serde(default)]
    provider: BTreeMap<String, WrittenProvider>,
    #[serde(default)]
    model: Vec<WrittenModel>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenProvider {
    source: String,
    read: f64,
    write: f64,
    write_long: Option<f64>,
    ttl_seconds: u32,
    ttl_long_seconds: Option<u32>,
    #[serde(default)]
    tiers: BTreeMap<String, f64>,
    tokens: Option<f64>,
    step_tokens: Option<u32>,
    searches: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenModel {
    provider: String,
    names: Vec<String>,
    from: Option<String>,
    input: f64,
    output: f64,
    read: Option<f64>,
    write: Option<f64>,
    write_long: Option<f64>,
    ttl_seconds: Option<u32>,
    tokens: Option<f64>,
    step_tokens: Option<u32>,
    above: Option<Above>,
}

/// The length of a model's requests, compared with the store's estimates of their texts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestLengths {
    /// Tokens of the model for each estimated one.
    pub tokens: f64,
    /// Tokens that each step of the model adds beside its texts: ids, names, texts that hosts add and do not record.
    pub step_tokens: u32,
}

impl Default for RequestLengths {
    /// Lengths as estimated.
    fn default() -> Self {
        Self { tokens: 1.0, step_tokens: 0 }
    }
}

/// Prices of requests whose input is longer.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Above {
    tokens: u64,
    input: f64,
    output: f64,
}

/// The prices of a model from some day on.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelPrice {
    from: Micros,
    input: f64,
    output: f64,
    read: f64,
    write: f64,
    write_long: f64,
    ttl_seconds: u32,
    ttl_long_seconds: u32,
    above: Option<Above>,
    tiers: BTreeMap<String, f64>,
    /// Dollars for a thousand web searches.
    searches: Option<f64>,
    sizes: RequestLengths,
    source: String,
}

/// Dollars, by kind of token.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Dollars {
    /// Input that is neither read from a cache nor written to one.
    pub input: f64,
    /// Input read from the cache.
    pub cache_read: f64,
    /// Input written to the cache, for minutes.
    pub cache_write: f64,
    /// Input written to the cache for an hour.
    pub cache_write_long: f64,
    /// Output.
    pub output: f64,
    /// Web searches that the provider ran.
    pub searches: f64,
}

impl Dollars {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.all_input() + self.output + self.searches
    }

    /// Dollars of the input.
    pub fn all_input(&self) -> f64 {
        self.input + self.cache_read + self.cache_write + self.cache_write_long
    }

    /// Adds other dollars.
    pub fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cache_write_long += other.cache_write_long;
        self.output += other.output;
        self.searches += other.searches;
    }
}

impl ModelPrice {
    /// The dollars of a request; `None` if the table does not know its service tier, or the price of a search that it made.
    pub fn dollars(&self, usage: &Usage, tier: Option<&str>) -> Option<Dollars> {
        let times = self.times(tier)?;
        let count = |tokens: Option<u64>| float(tokens.unwrap_or(0));
        let (input, output) = self.rates(usage, tier);
        let searches = match usage.searches.filter(|searches| *searches > 0) {
            Some(searches) => float(searches) * self.searches? / 1000.0,
            None => 0.0,
        };
        let (short, long) = written(usage);
        let (per_input, per_output) = (input * times / MILLION, output * times / MILLION);
        Some(Dollars {
            input: count(usage.input) * per_input,
            cache_read: count(usage.cache_read) * self.read * per_input,
            cache_write: float(short) * self.write * per_input,
            cache_write_long: float(long) * self.write_long * per_input,
            output: count(usage.output) * per_output,
            searches,
        })
    }

    /// Dollars of so many tokens of a request's input that the model had seen before: read from the cache as far as the request
    /// read, the rest written anew.
    pub fn seen_before(&self, tokens: u64, usage: &Usage, tier: Option<&str>) -> Option<f64> {
        let times = self.times(tier)?;
        let (input, _) = self.rates(usage, tier);
        let all = all_input(usage);
        let tokens = tokens.min(all);
        let read = tokens.min(usage.cache_read.unwrap_or(0));
        let rest = tokens - read;
        let written = usage.cache_write.unwrap_or(0);
        let anew = if usage.cache_write_long.unwrap_or(0) * 2 > written {
            self.write_long
        } else if written > 0 {
            self.write
        } else {
            1.0
        };
        Some((float(read) * self.read + float(rest) * anew) * input * times / MILLION)
    }

    /// The prices relative to plain input, as a planner of rewrites takes them. `long`: the session's caches are kept for an hour.
    pub fn relative(&self, long: bool) -> Prices {
        let (write, ttl_seconds) =
            if long { (self.write_long, self.ttl_long_seconds) } else { (self.write, self.ttl_seconds) };
        Prices { input: 1.0, read: self.read, write, ttl_seconds }
    }

    /// Dollars of a token of input that is neither read from a cache nor written to one.
    pub fn token_dollars(&self) -> f64 {
        self.input / MILLION
    }

    /// Dollars of a million tokens by name, as a list of prices has them.
    pub(super) fn listed(&self) -> [(&'static str, f64); 5] {
        [
            ("input", self.input),
            ("read", self.input * self.read),
            ("write", self.input * self.write),
            ("write_long", self.input * self.write_long),
            ("output", self.output),
        ]
    }

    /// The length of its requests.
    pub fn sizes(&self) -> RequestLengths {
        self.sizes
    }

    /// The source of the prices.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn times(&self, tier: Option<&str>) -> Option<f64> {
        let tier = tier.map(|tier| tier.strip_suffix(PART_TIER).unwrap_or(tier));
        match tier {
            // The tier of requests that ask for no other tier, and of sums of such requests.
            None | Some("" | "standard" | "default" | TOTAL_TIER | SUM_TIER) => Some(1.0),
            Some(tier) => self.tiers.get(tier).copied(),
        }
    }

    /// The prices of input and output. The length of the requests in a sum is not known.
    fn rates(&self, usage: &Usage, tier: Option<&str>) -> (f64, f64) {
        let is_sum = matches!(tier, Some(TOTAL_TIER | SUM_TIER));
        match self.above {
            Some(above) if !is_sum && all_input(usage) > above.tokens => (above.input, above.output),
            _ => (self.input, self.output),
        }
    }
}

/// Tokens that were written to the cache: for minutes, and for an hour. A part cannot exceed its whole; a host that tells only the
/// tokens that are kept for an hour wrote no others.
pub(super) fn written(usage: &Usage) -> (u64, u64) {
    let long = usage.cache_write_long.unwrap_or(0);
    match usage.cache_write.filter(|all| *all > 0) {
        // As said above, a part that exceeds its whole is the whole.
        Some(all) => (all.saturating_sub(long), long.min(all)),
        None => (0, long),
    }
}

/// Tokens of input, cached or not.
pub(super) fn all_input(usage: &Usage) -> u64 {
    let counts = [usage.input, usage.cache_read, usage.cache_write];
    counts.into_iter().flatten().fold(0, u64::saturating_add)
}

/// A count as a number to reckon with.
#[expect(clippy::cast_precision_loss, reason = "counts, of tokens too, stay far below 2^52")]
pub(crate) fn float(tokens: u64) -> f64 {
    tokens as f64
}

/// Prices by model.
#[derive(Clone, Debug)]
pub struct PriceTable {
    /// The day on which the table was compared with its sources.
    pub checked: String,
    /// By name, each in the order of days, the newest last.
    models: BTreeMap<String, Vec<ModelPrice>>,
    providers: BTreeMap<String, ProviderRates>,
}

/// Prices of a provider's models unless they have their own, relative to plain input.
#[derive(Clone, Debug, PartialEq)]
struct ProviderRates {
    short: Prices,
    /// Prices with caches that are kept for an hour, if the provider has such.
    long: Option<Prices>,
    source: String,
}

impl ProviderRates {
    fn of(written: &WrittenProvider) -> Self {
        let prices = |write, ttl_seconds| Prices { input: 1.0, read: written.read, write, ttl_seconds };
        Self {
            short: prices(written.write, written.ttl_seconds),
            long: written.write_long.zip(written.ttl_long_seconds).map(|(write, ttl)| prices(write, ttl)),
            source: written.source.clone(),
        }
    }
}

/// The end of a name that stands for a provider's caches that are kept for an hour.
const LONG: &str = "-1h";

impl PriceTable {
    /// The table that comes with the program.
    ///
    /// # Errors
    /// [`TableError`], if the program was built with a table that cannot be used.
    pub fn built_in() -> Result<Self, TableError> {
        Self::from_toml(BUILT_IN)
    }

    /// A table from TOML, in the form of the program's own.
    ///
    /// # Errors
    /// [`TableError`]; nothing is assumed for missing fields.
    pub fn from_toml(text: &str) -> Result<Self, TableError> {
        let written: TableText =
            toml::from_str(text).map_err(|error| TableError::Syntax(error.message().to_owned()))?;
        let mut models: BTreeMap<String, Vec<ModelPrice>> = BTreeMap::new();
        for model in &written.model {
            let price = priced(model, &written.provider)?;
            for name in &model.names {
                models.entry(plain(name)).or_default().push(price.clone());
            }
        }
        for prices in models.values_mut() {
            prices.sort_by_key(|price| price.from);
        }
        let rates =
            written.provider.iter().map(|(name, provider)| (name.clone(), ProviderRates::of(provider)));
        let providers = rates.collect();
        Ok(Self { checked: written.checked, models, providers })
    }

    /// This table with another one before it, model by model.
    #[must_use]
    pub fn with(mut self, first: Self) -> Self {
        self.models.extend(first.models);
        self.providers.extend(first.providers);
        self
    }

    /// Prices relative to plain input, and their source: those of a provider (`anthropic`; `anthropic-1h` if caches are kept for an
    /// hour) or of a model.
    pub fn relative(&self, name: &str) -> Option<(Prices, &str)> {
        let provider = self.providers.get(name).map(|rates| (rates.short, &*rates.source));
        let long = || {
            let rates = self.providers.get(name.strip_suffix(LONG)?)?;
            Some((rates.long?, &*rates.source))
        };
        let model = || self.price(name, None).map(|price| (price.relative(false), price.source()));
        provider.or_else(long).or_else(model)
    }

    /// Names of the models, in order, each with its newest prices.
    pub(super) fn newest(&self) -> impl Iterator<Item = (&str, &ModelPrice)> {
        self.models.iter().filter_map(|(name, prices)| Some((name.as_str(), prices.last()?)))
    }

    /// Names of providers that [`relative`](Self::relative) knows.
    pub fn provider_names(&self) -> Vec<String> {
        let names = self.providers.iter().flat_map(|(name, rates)| {
            [Some(name.clone()), rates.long.map(|_| format!("{name}{LONG}"))].into_iter().flatten()
        });
        names.collect()
    }

    /// The price of a model at a time (without a time: now); `None` if the table does not know the model.
    pub fn price(&self, model: &str, at: Option<Micros>) -> Option<&ModelPrice> {
        held(self.all_of(model)?, at)
    }

    /// The prices of a model, the newest last.
    fn all_of(&self, model: &str) -> Option<&[ModelPrice]> {
        let name = plain(model);
        self.models.get(&name).or_else(|| self.models.get(undated(&name))).map(Vec::as_slice)
    }
}

/// The price of a model that held at a time.
fn held(prices: &[ModelPrice], at: Option<Micros>) -> Option<&ModelPrice> {
    let held = prices.iter().rev().find(|price| at.is_none_or(|at| price.from <= at));
    held.or(prices.first())
}

/// A table for many requests: each model's name is looked up once.
#[derive(Debug)]
pub(crate) struct Pricing<'t> {
    table: &'t PriceTable,
    known: BTreeMap<Arc<str>, Option<&'t [ModelPrice]>>,
}

impl<'t> Pricing<'t> {
    pub(crate) const fn of(table: &'t PriceTable) -> Self {
        Self { table, known: BTreeMap::new() }
    }

    /// As [`PriceTable::price`].
    pub(crate) fn price(&mut self, model: &Arc<str>, at: Option<Micros>) -> Option<&'t ModelPrice> {
        let prices = match self.known.get(model) {
            Some(prices) => *prices,
            None => *self.known.entry(Arc::clone(model)).or_insert(self.table.all_of(model)),
        };
        held(prices?, at)
    }
}

fn priced(
    model: &WrittenModel,
    providers: &BTreeMap<String, WrittenProvider>,
) -> Result<ModelPrice, TableError> {
    let name = || model.names.first().cloned().unwrap_or_default();
    let missing = || TableError::Provider { model: name(), provider: model.provider.clone() };
    let provider = providers.get(&model.provider).ok_or_else(missing)?;
    let from = match &model.from {
        None => Micros(i64::MIN),
        Some(day) => {
            let wrong = |_| TableError::Day { model: name(), day: day.clone() };
            let date: jiff::civil::Date = day.parse().map_err(wrong)?;
            let start = date.to_zoned(jiff::tz::TimeZone::UTC).map_err(wrong)?;
            Micros(start.timestamp().as_microsecond())
        }
    };
    let same = RequestLengths::default();
    let write = model.write.unwrap_or(provider.write);
    let ttl_seconds = model.ttl_seconds.unwrap_or(provider.ttl_seconds);
    let price = ModelPrice {
        from,
        input: model.input,
        output: model.output,
        read: model.read.unwrap_or(provider.read),
        write,
        // A provider that keeps nothing for longer has one price.
        write_long: model.write_long.or(provider.write_long).unwrap_or(write),
        ttl_seconds,
        ttl_long_seconds: provider.ttl_long_seconds.unwrap_or(ttl_seconds),
        above: model.above,
        tiers: provider.tiers.clone(),
        sizes: RequestLengths {
            tokens: model.tokens.or(provider.tokens).unwrap_or(same.tokens),
            step_tokens: model.step_tokens.or(provider.step_tokens).unwrap_or(same.step_tokens),
        },
        searches: provider.searches,
        source: provider.source.clone(),
    };
    if !price.sizes.tokens.is_normal() || price.sizes.tokens < 0.0 {
        return Err(TableError::Tokens { model: name(), value: price.sizes.tokens });
    }
    let above = model.above.map_or([0.0; 2], |above| [above.input, above.output]);
    let named = [
        ("searches", price.searches.unwrap_or(0.0)),
        ("input", price.input),
        ("output", price.output),
        ("read", price.read),
        ("write", price.write),
        ("write_long", price.write_long),
        ("above.input", above[0]),
        ("above.output", above[1]),
    ];
    for (field, value) in named {
        if !value.is_finite() || value < 0.0 {
            return Err(TableError::Price { model: name(), field, value });
        }
    }
    Ok(price)
}

/// A model's name without the parts that hosts and resellers put around it: `us.anthropic.claude-opus-4.5-20251101-v1:0`,
/// `anthropic/claude-opus-4.5`, `claude-opus-4-5@20251101` and `claude-opus-4-5[1m]` are one model.
pub(super) fn plain(model: &str) -> String {
    let lower = model.trim().to_lowercase();
    let whole = lower.rsplit('/').next().unwrap_or_default();
    let name = whole.split([':', '[']).next().unwrap_or_default();
    let revision = whole.get(name.len()..).and_then(|rest| rest.strip_prefix(':'));
    let (is_anthropic, name) = name.rsplit_once("anthropic.").map_or((false, name), |(_, name)| (true, name));
    // Bedrock writes a version of its own behind a name; `deepseek-v4` has it in its name.
    let is_bedrock =
        is_anthropic || revision.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let name = match name.rsplit_once("-v") {
        Some((name, version)) if is_bedrock && version.len() == 1 && is_digits(version) => name,
        _ => name,
    };
    name.replace(['.', '@'], "-")
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A name without `-latest`, `-preview` and the date of a release: `-20251101`, `-2025-11-01`, `-05-06`.
pub(super) fn undated(name: &str) -> &str {
    let mut name = name.strip_suffix("-latest").unwrap_or(name);
    let parts = |name: &str, lengths: &[usize]| -> Option<usize> {
        let mut end = name.len();
        for length in lengths.iter().rev() {
            let (head, last) = name.get(..end)?.rsplit_once('-')?;
            if last.len() != *length || !is_digits(last) {
                return None;
            }
            end = head.len();
        }
        Some(end)
    };
    for lengths in [&[4, 2, 2][..], &[8], &[2, 2]] {
        if let Some(end) = parts(name, lengths) {
            name = name.get(..end).unwrap_or(name);
            break;
        }
    }
    name.strip_suffix("-preview").unwrap_or(name)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
