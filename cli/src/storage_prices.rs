//! Prices of object storage: a table of list prices with their dates and sources, or four numbers of the user.

use acpdb_remote::RehearsedCount;
use serde_json::{Value, json};

use crate::failure::Failure;

const TABLE: &str = include_str!("storage_prices.toml");
const MILLION: f64 = 1e6;
const GB: f64 = 1e9;

/// Prices in dollars: per million requests that write or list and that read, per GB and month, per GB sent out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoragePrices {
    /// As a person is told.
    pub(crate) name: String,
    writes: f64,
    reads: f64,
    month: f64,
    out: f64,
}

impl StoragePrices {
    /// Prices by a name of the table, or four numbers: writes, reads, month, out.
    pub(crate) fn named(text: &str) -> Result<Self, Failure> {
        // Words that are no numbers are a name.
        let numbers: Option<Vec<f64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        let is_price = |number: &f64| number.is_finite() && *number >= 0.0;
        if let Some(&[writes, reads, month, out]) = numbers.as_deref()
            && [writes, reads, month, out].iter().all(is_price)
        {
            return Ok(Self { name: "your prices".to_owned(), writes, reads, month, out });
        }
        let table = TABLE.parse::<toml_edit::DocumentMut>().unwrap_or_default();
        let Some(row) = table.get(text).and_then(toml_edit::Item::as_table) else {
            let names: Vec<&str> = table.iter().map(|(name, _)| name).collect();
            return Err(Failure::usage(format!(
                "there are no prices {text:?}; it is one of {}, or dollars per million writes, per million reads, per GB and month, per GB out, as in '5 0.4 0.023 0.09'",
                names.join(", ")
            )));
        };
        let said = |key: &str| row.get(key).and_then(toml_edit::Item::as_str).unwrap_or_default();
        let name = format!("list prices of {}, {}", said("source"), said("date"));
        let [writes, reads, month, out] = ["writes", "reads", "month", "out"]
            .map(|key| row.get(key).and_then(toml_edit::Item::as_float).unwrap_or(0.0));
        Ok(Self { name, writes, reads, month, out })
    }

    /// Dollars of requests, and of the bytes if they are read beyond the cloud.
    #[expect(clippy::cast_precision_loss, reason = "money of an estimate")]
    pub(crate) fn dollars(&self, count: &RehearsedCount, is_read: bool) -> f64 {
        let requests = self.writes * count.writes as f64 + self.reads * count.reads as f64;
        let sent = if is_read { self.out * count.bytes as f64 / GB } else { 0.0 };
        requests / MILLION + sent
    }

    /// Dollars a month to keep the bytes.
    #[expect(clippy::cast_precision_loss, reason = "money of an estimate")]
    pub(crate) fn dollars_month(&self, count: &RehearsedCount) -> f64 {
        self.month * count.bytes as f64 / GB
    }

    /// For a program.
    pub(crate) fn value(&self, count: &RehearsedCount, is_read: bool) -> Value {
        let month = if is_read { Value::Null } else { json!(self.dollars_month(count)) };
        json!({"prices": self.name, "dollars": self.dollars(count, is_read), "dollars_month": month})
    }
}

/// Dollars as a person reads them: few digits, however small.
pub(crate) fn shown(dollars: f64) -> String {
    if dollars > 0.0 && dollars < 0.01 {
        return format!("${dollars:.1e}");
    }
    format!("${dollars:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_of_the_table_or_four_numbers() {
        let million =
            RehearsedCount { objects: 0, bytes: 1_000_000_000, writes: 1_000_000, reads: 1_000_000 };
        for (text, written, read) in [("s3", 5.4, 5.49), ("r2", 4.86, 4.86), ("1 2 3 4", 3.0, 7.0)] {
            let prices = StoragePrices::named(text).unwrap();
            assert!((prices.dollars(&million, false) - written).abs() < 1e-9, "{text}");
            assert!((prices.dollars(&million, true) - read).abs() < 1e-9, "{text}");
        }
        for wrong in ["", "s4", "1 2 3", "1 2 3 x", "1 2 3 4 5", "1 2 3 -4", "1 2 3 inf"] {
            assert!(StoragePrices::named(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            (shown(0.0), shown(1.234), shown(0.000_07)),
            ("$0.00".into(), "$1.23".into(), "$7.0e-5".into())
        );
    }
}
