//! The differences of two tables of prices, model by model.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::{ModelPrice, PriceTable};

/// A price that differs, in dollars for a million tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PriceChange {
    /// The model.
    pub model: String,
    /// The name of the price: `input`, `read`, `write`, `write_long` or `output`.
    pub price: &'static str,
    /// As it was; `None` for a model that is new.
    pub before: Option<f64>,
    /// As it is now.
    pub now: f64,
}

/// The newest prices of `now` that differ from those of `before`, by model. A model that `now` does not name keeps its prices.
///
/// ```
/// use acpdb_query::cost::{BUILT_IN, PriceTable, changes};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let known = PriceTable::built_in()?;
/// assert!(changes(&known, &PriceTable::from_toml(BUILT_IN)?).is_empty());
/// # Ok(())
/// # }
/// ```
pub fn changes(before: &PriceTable, now: &PriceTable) -> Vec<PriceChange> {
    let known: BTreeMap<&str, &ModelPrice> = before.newest().collect();
    let mut found = Vec::new();
    for (model, price) in now.newest() {
        let earlier = known.get(model).map(|price| price.listed());
        for (place, (name, value)) in price.listed().into_iter().enumerate() {
            let earlier = earlier.and_then(|prices| prices.get(place).map(|(_, value)| *value));
            // A price that is reckoned from a share differs from the same price written out by less than this.
            if earlier.is_none_or(|earlier| (earlier - value).abs() > 1e-9) {
                found.push(PriceChange {
                    model: model.to_owned(),
                    price: name,
                    before: earlier.map(to_the_millionth),
                    now: to_the_millionth(value),
                });
            }
        }
    }
    found
}

fn to_the_millionth(dollars: f64) -> f64 {
    (dollars * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(models: &str) -> PriceTable {
        let provider = "checked = \"2026-11-22\"\n[provider.p]\nsource = \"s\"\nread = 0.1\nwrite = 1.25\nttl_seconds = 300\n";
        PriceTable::from_toml(&format!("{provider}{models}")).unwrap()
    }

    #[test]
    fn only_prices_that_differ_are_told() {
        let model = |name: &str, input: f64, more: &str| {
            format!(
                "[[model]]\nprovider = \"p\"\nnames = [\"{name}\"]\ninput = {input}\noutput = 8.0\n{more}\n"
            )
        };
        let before = table(&[model("a", 2.0, ""), model("b", 3.0, "")].concat());
        let told = |models: &[String]| -> Vec<String> {
            let found = changes(&before, &table(&models.concat()));
            found.iter().map(|it| format!("{} {} {:?} {}", it.model, it.price, it.before, it.now)).collect()
        };
        assert_eq!(told(&[model("a", 2.0, "")]), [""; 0]);
        assert_eq!(told(&[model("a", 2.0, "read = 0.05")]), ["a read Some(0.2) 0.1"]);
        // Prices from a later day on are the newest ones.
        assert_eq!(
            told(&[model("a", 2.0, ""), model("a", 2.0, "from = \"2026-12-01\"\nwrite = 1.0")]),
            ["a write Some(2.5) 2", "a write_long Some(2.5) 2"]
        );
        let new = told(&[model("c", 1.0, "")]);
        assert_eq!((new.len(), new.first().map(String::as_str)), (5, Some("c input None 1")));
    }
}
