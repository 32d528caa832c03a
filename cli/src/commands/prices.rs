//! Prices of models: the program's table, and a user's file over it.

use std::path::Path;

use acpdb_query::cost::PriceTable;

use super::{Failure, Global};

/// The user's table of prices, then the program's.
pub(super) fn table(global: &Global, own: Option<&Path>) -> Result<PriceTable, Failure> {
    let built_in = built_in()?;
    Ok(match own.or(global.settings.prices.as_deref()) {
        Some(path) => built_in.with(read(path)?),
        None => built_in,
    })
}

/// The whole path of a file of prices, for the settings. A file that cannot be used is refused.
pub(super) fn usable(file: &str) -> Result<String, Failure> {
    let path = std::path::absolute(file).map_err(Failure::io("find", file))?;
    read(&path)?;
    Ok(path.to_string_lossy().into_owned())
}

fn built_in() -> Result<PriceTable, Failure> {
    PriceTable::built_in().map_err(|error| Failure::usage(error.to_string()))
}

fn read(path: &Path) -> Result<PriceTable, Failure> {
    let shown = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(Failure::io("read", &shown))?;
    PriceTable::from_toml(&text).map_err(|error| {
        Failure::usage(format!("{shown}: {error}"))
            .hint("acpdb cost --show-prices prints a table to begin with")
    })
}
