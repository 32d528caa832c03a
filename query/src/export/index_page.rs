//! Many sessions as one HTML file: a row each, with filters, totals and small pictures of their contexts.
//!
//! It is made as [`super::page`] is: data that stays data, a script and a style that are allowed by their digests, and nothing from
//! elsewhere. A row links to the session's own page if there is one beside it.
//!
//! It does not choose sessions, fold them, or write their pages.

use std::io::Write;

use serde::Serialize;

use super::page::{PageOptions, frame};
use super::redaction::Redaction;
use super::{ExportError, JsonText};
use crate::cost::PriceTable;
use crate::sessions::SessionRow;

const STYLE: &str = concat!(include_str!("assets/base.css"), include_str!("assets/index.css"));
const BODY: &str = include_str!("assets/index.html");
const SCRIPT: &str =
    concat!("'use strict';\n", include_str!("assets/common.js"), include_str!("assets/index.js"));
/// The script of an index that follows the store which serves it.
const SCRIPT_LIVE: &str = concat!(
    "'use strict';\n",
    include_str!("assets/common.js"),
    include_str!("assets/index.js"),
    include_str!("assets/live_index.js"),
);

/// A session of an index.
#[derive(Clone, Copy, Debug)]
pub struct IndexEntry<'a> {
    /// Its row.
    pub row: &'a SessionRow,
    /// Its own page, as a link from the index; `None` for no link.
    pub file: Option<&'a str>,
}

/// The amounts that an index holds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct IndexReport {
    /// Sessions, subagents included.
    pub sessions: usize,
    /// Subagents among them.
    pub subagents: usize,
    /// Dollars of all, as far as they are known.
    pub cost: Option<f64>,
}

/// A row; the order of the fields is that of `FIELDS` in `assets/index.js`.
#[derive(Serialize)]
struct IndexRow<'a>(
    &'a str,
    &'a str,
    String,
    String,
    Option<i64>,
    Option<i64>,
    u32,
    u64,
    u64,
    u64,
    u64,
    Option<f64>,
    Option<u64>,
    &'a [String],
    &'a [u64],
    Option<&'a str>,
    bool,
);

#[derive(Serialize)]
struct IndexData<'a> {
    schema: &'static str,
    program: &'static str,
    prices: &'a str,
    rows: Vec<IndexRow<'a>>,
}

/// Writes an index. Titles and projects are redacted, if that is asked for.
///
/// # Errors
/// If `out` fails.
pub fn index(
    entries: &[IndexEntry<'_>],
    options: &PageOptions,
    out: &mut dyn Write,
) -> Result<IndexReport, ExportError> {
    let script = if options.live { SCRIPT_LIVE } else { SCRIPT };
    frame("Sessions", (STYLE, script, options.live), BODY, out)?;
    out.write_all(b"<script type=\"application/json\" id=\"data\">")?;
    let report = index_data(entries, options, out)?;
    out.write_all(b"</script>\n<script>")?;
    out.write_all(script.as_bytes())?;
    out.write_all(b"</script>\n</body>\n</html>\n")?;
    Ok(report)
}

/// Writes the content of an index as JSON: an index that follows its server asks for it.
///
/// # Errors
/// If `out` fails.
pub fn index_data(
    entries: &[IndexEntry<'_>],
    options: &PageOptions,
    out: &mut dyn Write,
) -> Result<IndexReport, ExportError> {
    let redaction = Redaction(options.redactor.clone());
    // A table that cannot be used would be a fault of the program: the day is unknown then.
    let prices = PriceTable::built_in().map(|table| table.checked).unwrap_or_default();
    let rows = entries.iter().map(|entry| row(*entry, &redaction)).collect();
    let program = concat!("acpdb ", env!("CARGO_PKG_VERSION"));
    JsonText::write(&IndexData { schema: "acpdb.index/1", program, prices: &prices, rows }, out)?;
    let tops = entries.iter().filter(|entry| entry.row.summary.name.parent.is_none());
    let costs: Vec<f64> = tops.clone().filter_map(|entry| entry.row.cost).collect();
    let cost = (!costs.is_empty()).then(|| (costs.iter().sum::<f64>() * 1e6).round() / 1e6);
    Ok(IndexReport { sessions: entries.len(), subagents: entries.len() - tops.count(), cost })
}

fn row<'a>(entry: IndexEntry<'a>, redaction: &Redaction) -> IndexRow<'a> {
    let SessionRow { summary, tokens_by_turn, models, cost, duration_seconds, .. } = entry.row;
    let name = &summary.name;
    let project = name.folder.as_deref().or(summary.project.as_deref()).unwrap_or_default();
    IndexRow(
        &name.name,
        &name.host,
        redaction.of(name.title.as_deref().unwrap_or_default()).into_owned(),
        redaction.of(project).into_owned(),
        name.began.map(acpdb_engine::ids::Micros::get),
        summary.ended.map(acpdb_engine::ids::Micros::get),
        summary.turns.get(),
        summary.calls,
        summary.tokens,
        summary.tokens_shown,
        summary.superseded,
        *cost,
        *duration_seconds,
        models,
        tokens_by_turn,
        entry.file,
        name.parent.is_some(),
    )
}
