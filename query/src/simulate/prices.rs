//! Price lists: data with a date and a source. Those that come with the program are read off its table of prices by model.

use acpdb_engine::fold::policy::{PriceError, Prices};
use serde::{Deserialize, Serialize};

use crate::cost::PriceTable;

/// The list without any cache.
const FLAT: &str = "flat";

/// A price list.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceList {
    /// A token read from the cache.
    pub read: f64,
    /// A token written to it.
    pub write: f64,
    /// A token that is neither.
    pub input: f64,
    /// Seconds after its last use at which the cache is cold; 0: never.
    pub ttl_seconds: u32,
    /// The date of the prices.
    pub date: String,
    /// The source of the prices.
    pub source: String,
}

/// A price list that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PriceListError {
    /// Not TOML, or a price is missing.
    #[error("the price list cannot be read: {0}")]
    Syntax(String),
    /// A price that cannot be reckoned with.
    #[error(transparent)]
    Price(#[from] PriceError),
    /// There is no such list.
    #[error("no price list is called `{name}`; there are {}, and models of the table of prices", known.join(", "))]
    Unknown {
        /// The name as given.
        name: String,
        /// The names of the lists that there are.
        known: Vec<String>,
    },
}

impl PriceList {
    /// The list called `name`: of a provider, of a model in the program's table of prices, or `flat`.
    ///
    /// # Errors
    /// [`PriceListError::Unknown`].
    pub fn built_in(name: &str) -> Result<Self, PriceListError> {
        let table = PriceTable::built_in().map_err(|error| PriceListError::Syntax(error.to_string()))?;
        Self::of(&table, name)
    }

    /// Takes the same list from a table at hand.
    ///
    /// # Errors
    /// [`PriceListError::Unknown`].
    pub fn of(table: &PriceTable, name: &str) -> Result<Self, PriceListError> {
        let flat =
            || (name == FLAT).then_some((Prices::FLAT, "no cache: every token costs the same every time"));
        let Some((prices, source)) = table.relative(name).or_else(flat) else {
            let mut known = table.provider_names();
            known.push(FLAT.to_owned());
            return Err(PriceListError::Unknown { name: name.to_owned(), known });
        };
        let Prices { input, read, write, ttl_seconds } = prices;
        let (date, source) = (table.checked.clone(), source.to_owned());
        Ok(Self { read, write, input, ttl_seconds, date, source })
    }

    /// A list from TOML: `read`, `write`, `input`, `ttl_seconds`, `date`, `source`.
    ///
    /// # Errors
    /// [`PriceListError`]; nothing is assumed for missing fields.
    pub fn from_toml(text: &str) -> Result<Self, PriceListError> {
        let list: Self =
            toml::from_str(text).map_err(|error| PriceListError::Syntax(error.message().to_owned()))?;
        list.prices()?;
        Ok(list)
    }

    /// The prices, checked.
    ///
    /// # Errors
    /// [`PriceListError::Price`].
    pub fn prices(&self) -> Result<Prices, PriceListError> {
        let Self { read, write, input, ttl_seconds, .. } = *self;
        Ok(Prices { input, read, write, ttl_seconds }.checked()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_that_come_with_the_program_can_be_reckoned_with() {
        for (name, read, write, ttl_seconds) in [
            ("anthropic", 0.1, 1.25, 300),
            ("anthropic-1h", 0.1, 2.0, 3600),
            ("openai", 0.1, 1.0, 600),
            ("claude-opus-5-5", 0.05, 1.25, 300),
            ("claude-fable-5-2", 0.025, 1.25, 300),
            ("flat", 1.0, 1.0, 0),
        ] {
            let list = PriceList::built_in(name).unwrap();
            let prices = list.prices().unwrap();
            assert_eq!(prices, Prices { input: 1.0, read, write, ttl_seconds }, "{name}");
            assert!(!list.date.is_empty() && !list.source.is_empty());
        }
        assert!(PriceList::built_in("antropic").unwrap_err().to_string().contains("anthropic"));
    }

    #[test]
    fn missing_negative_and_impossible_prices_are_errors() {
        let list = |read: &str, write: &str| {
            let rest = "input = 1.0\nttl_seconds = 300\ndate = \"today\"\nsource = \"me\"";
            PriceList::from_toml(&format!("{read}\n{write}\n{rest}"))
        };
        assert!(list("read = 0.1", "write = 1.25").is_ok());
        for (read, write) in [
            ("", "write = 1.25"),
            ("read = -0.1", "write = 1.25"),
            ("read = nan", "write = 1.25"),
            ("read = 0.1", "write = inf"),
            ("read = 0.0", "write = 1.0"),
            ("read = \"0.1\"", "write = 1.0"),
        ] {
            assert!(list(read, write).is_err(), "{read} {write}");
        }
    }
}
