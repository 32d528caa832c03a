//! `acpdb simulate --parts`: where the price of input lies, and what a policy cannot touch.

use acpdb_query::simulate::{BillParts, PolicyRow, YOUNG_STEP_COUNT};

use super::lines::NamesApart;
use super::table::{self, Column, number, text};
use super::{Failure, Output, describe};

/// The parts of one row, or of doing nothing.
struct PartsRow<'a> {
    of: Option<&'a str>,
    policy: String,
    parts: &'a BillParts,
}

/// Prints the parts, of doing nothing first, and what a host could do about those that no policy touches.
pub(super) fn print(rows: &[PolicyRow], output: &mut Output) -> Result<(), Failure> {
    let of = NamesApart::new(rows.iter().filter_map(|row| row.of.as_deref()), 16);
    let mut lines: Vec<PartsRow<'_>> = Vec::new();
    for row in rows {
        let of = row.of.as_deref();
        if lines.last().is_none_or(|line| line.of != of) {
            lines.push(PartsRow { of, policy: "nothing".to_owned(), parts: &row.parts_unpruned });
        }
        let policy = format!("{}, {}", row.policy, mode(row));
        lines.push(PartsRow { of, policy, parts: &row.parts });
    }
    let part = |heading: &'static str,
                rank: usize,
                value: fn(&BillParts) -> f64|
     -> Column<'_, PartsRow<'_>> {
        number(heading, move |line: &PartsRow<'_>| format!("{:.3}", value(line.parts))).ranked(rank).tight()
    };
    let is_of_some = lines.iter().any(|line| line.of.is_some());
    let columns = vec![
        text("of", |line: &PartsRow<'_>| line.of.map(|name| of.short(name)).unwrap_or_default())
            .ranked(0)
            .shown_if(is_of_some),
        text("policy", |line: &PartsRow<'_>| line.policy.clone()),
        part("price", 0, BillParts::total),
        part("prefix", 1, |parts| parts.prefix),
        part("young", 2, |parts| parts.young),
        part("old", 3, |parts| parts.old),
        part("rewrites", 4, |parts| parts.rewrites),
        part("fetched", 5, |parts| parts.fetched),
    ];
    table::print(output, columns, &lines)?;
    output
        .note(format!("of the price of doing nothing; young: items of the newest {YOUNG_STEP_COUNT} steps"));
    for group in rows.chunk_by(|one, other| one.of == other.of) {
        let Some(row) = group.first() else { continue };
        output.note(untouched(row, row.of.as_deref().map(|name| of.short(name)).as_deref()));
    }
    for row in rows {
        let of = row.of.as_deref().map(|name| format!("{}, ", of.short(name))).unwrap_or_default();
        output.note(format!(
            "{of}{}, {}: {:.3} with marks for the provider's cache, {:.3} without any",
            row.policy,
            mode(row),
            row.price_ratio,
            row.price_ratio_without_cache
        ));
    }
    Ok(())
}

/// The mode of a row, as it is typed.
pub(super) fn mode(row: &PolicyRow) -> String {
    row.mode.replace('_', "-")
}

/// The parts that no policy can touch, and what a host could leave out of them.
fn untouched(row: &PolicyRow, of: Option<&str>) -> String {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut line = format!(
        "{}: no policy touches the prefix ({}) and young items ({})",
        of.unwrap_or("all sessions"),
        percent(row.parts_unpruned.prefix),
        percent(row.parts_unpruned.young)
    );
    let could = &row.host_could;
    if could.sessions_with_tools > 0 {
        line.push_str(&format!(
            "; the host could leave out {} of {} tools that were never called ({})",
            could.tools_unused,
            could.tools,
            percent(could.unused)
        ));
    }
    if could.prompts_repeated > 0 {
        let prompts = describe::count(could.prompts_repeated as u64, "prompt");
        line.push_str(&format!("; {prompts} repeated an earlier text ({})", percent(could.repeated)));
    }
    line
}
