//! `acpdb cost --take-prices FILE`: takes a newer table of prices, and shows what it changes.

use std::path::Path;

use acpdb_engine::ids::Seq;
use acpdb_query::cost::{self, BillFilter, By, PriceChange, PriceTable};
use serde::Serialize;

use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, store_path};
use crate::settings;

/// The answer.
#[derive(Serialize)]
struct TakenPrices {
    /// The file, as the setting `prices` names it from now on.
    file: String,
    /// The day on which the table in use until now was compared with its sources.
    checked_before: String,
    /// The same of the new table.
    checked: String,
    /// Prices that differ.
    items: Vec<PriceChange>,
    /// Models that have requests in the store and no price in any table.
    unpriced: Vec<String>,
}

/// Compares the file with the table in use, and makes it the setting.
pub(super) fn take(global: &Global, file: &Path, output: &mut Output) -> Result<Code, Failure> {
    let shown = file.display().to_string();
    let path = std::path::absolute(file).map_err(Failure::io("find", &shown))?;
    let text = path
        .to_str()
        .ok_or_else(|| Failure::usage(format!("{shown} cannot stand in the settings: it is not UTF-8")))?;
    // Before anything is written: a file that cannot be used is refused here.
    let own = read(&path)?;
    let built_in = built_in()?;
    // A table that cannot be read any more is replaced as if there were none.
    let former = global.settings.prices.as_deref().and_then(|path| read(path).ok());
    let in_use = former.as_ref().unwrap_or(&built_in).checked.clone();
    let known = former.map_or_else(|| built_in.clone(), |former| built_in.clone().with(former));
    let taken = built_in.with(own.clone());
    // Days are written so that their order is that of their texts.
    if own.checked < in_use {
        let message = format!("{shown} is of {}, and the prices in use are of {in_use}", own.checked);
        return Err(Failure::usage(message)
            .hint("acpdb cost --prices FILE uses it once; acpdb config set prices FILE from now on"));
    }
    let result = TakenPrices {
        file: text.to_owned(),
        checked_before: in_use,
        checked: own.checked.clone(),
        items: cost::changes(&known, &own),
        unpriced: unpriced(global, &taken, output)?,
    };
    settings::write(&settings::path_or_failure()?, settings::key("prices")?, Some(text))?;
    if output.json {
        return output.json_object("acpdb.prices/1", &result);
    }
    draw(&result, output)
}

/// Models of the store that no table prices; without a store none.
fn unpriced(global: &Global, table: &PriceTable, output: &mut Output) -> Result<Vec<String>, Failure> {
    let folder = store_path::find(global)?.folder;
    if !acpdb_engine::store::is_store(&folder) {
        return Ok(Vec::new());
    }
    let store = store_path::read(global, output)?;
    let requests = cost::requests(&store, Seq::MAX)?;
    let zone = jiff::tz::TimeZone::UTC;
    let asked = BillFilter { wanted: &|_| true, stale: None, within: None, zone };
    let bill = cost::bill(&requests, By::Model, table, &asked);
    let mut names: Vec<String> = bill.unpriced.into_iter().filter_map(|row| row.model).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn draw(result: &TakenPrices, output: &mut Output) -> Result<Code, Failure> {
    if !result.items.is_empty() {
        let mut table = super::table::new(output, &["model", "price", "before", "now"]);
        table.right(2..4);
        for change in &result.items {
            table.row([
                escape(&change.model, EscapeLevel::Line).into_owned(),
                change.price.to_owned(),
                change.before.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}")),
                format!("{:.3}", change.now),
            ]);
        }
        output.line(table.to_string())?;
    }
    let count = describe::count(result.items.len() as u64, "price");
    output.note(format!(
        "{count} of {} in place of those of {}, in dollars for a million tokens",
        result.checked, result.checked_before
    ));
    if !result.unpriced.is_empty() {
        let names: Vec<_> = result.unpriced.iter().map(|name| escape(name, EscapeLevel::Line)).collect();
        output.note(format!("models of the store without a price: {}", names.join(", ")));
    }
    output.note(format!("prices = {}", escape(&result.file, EscapeLevel::Line)));
    Ok(Code::Ok)
}

/// The user's table of prices, then the program's.
pub(super) fn table(global: &Global, own: Option<&Path>) -> Result<PriceTable, Failure> {
    let built_in = built_in()?;
    Ok(match own.or(global.settings.prices.as_deref()) {
        Some(path) => built_in.with(read(path)?),
        None => built_in,
    })
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
