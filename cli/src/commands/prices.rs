//! Prices of models: the program's table, and a user's file over it.

use std::path::Path;

use acpdb_query::cost::{self, PriceChange, PriceTable};

use super::table::{self, number, text};
use super::{Failure, Global, Output, describe};

/// The user's table of prices, then the program's.
pub(super) fn in_use(global: &Global, own: Option<&Path>) -> Result<PriceTable, Failure> {
    let built_in = built_in()?;
    Ok(match own.or(global.settings.prices.as_deref()) {
        Some(path) => built_in.with(read(path)?),
        None => built_in,
    })
}

/// The whole path of a file of prices, for the settings; the prices that differ from those in use are shown. A file that cannot be used
/// is refused.
pub(super) fn take(file: &str, former: Option<&str>, output: &mut Output) -> Result<String, Failure> {
    let path = std::path::absolute(file).map_err(Failure::io("find", file))?;
    let taken = read(&path)?;
    let mut known = built_in()?;
    let mut known_of = known.checked.clone();
    // A file that cannot be read any more is replaced as if there were none.
    if let Some(former) = former.and_then(|former| read(Path::new(former)).ok()) {
        known_of.clone_from(&former.checked);
        known = known.with(former);
    }
    let changes = cost::changes(&known, &taken);
    if !output.json && !changes.is_empty() {
        let dollars = |value: f64| format!("{value:.3}");
        let columns = vec![
            text("model", |change: &PriceChange| change.model.clone()),
            text("price", |change: &PriceChange| change.price.to_owned()),
            number("before", |change: &PriceChange| change.before.map_or_else(|| "-".to_owned(), dollars)),
            number("now", |change: &PriceChange| dollars(change.now)),
        ];
        table::print(output, columns, &changes)?;
    }
    let count = describe::count(changes.len() as u64, "price");
    output.note(format!(
        "{count} of {} in place of those of {known_of}, in dollars for a million tokens",
        taken.checked
    ));
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
