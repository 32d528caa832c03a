//! `acpdb simulate --parts`: where the price of input lies, and what a policy cannot touch.

use acpdb_query::simulate::{BillParts, PolicyRow, YOUNG_STEP_COUNT};

use super::lines::NamesApart;
use super::{Failure, Output};

/// The name of the row that hides nothing.
const NOTHING: &str = "nothing";

/// Names of rows.
pub(super) struct RowNames {
    of: NamesApart,
    policies: NamesApart,
}

impl RowNames {
    pub(super) fn new(rows: &[PolicyRow]) -> Self {
        Self {
            of: NamesApart::new(rows.iter().filter_map(|row| row.of.as_deref()), 16),
            policies: NamesApart::new(rows.iter().map(|row| row.policy.as_str()), 24),
        }
    }

    /// A host or a session, for a cell.
    pub(super) fn of(&self, of: &str) -> String {
        self.of.short(of)
    }

    /// A policy, for a cell.
    pub(super) fn policy(&self, row: &PolicyRow) -> String {
        self.policies.short(&row.policy)
    }

    /// A policy and its mode, unless that is the usual one.
    fn policy_in_mode(&self, row: &PolicyRow) -> String {
        let mode = if row.mode == "batched" { String::new() } else { format!(", {}", mode(row)) };
        format!("{}{mode}", self.policy(row))
    }

    /// The beginning of a remark on one row.
    pub(super) fn whole(&self, row: &PolicyRow) -> String {
        let of = row.of.as_deref().map(|of| format!("{}, ", self.of(of))).unwrap_or_default();
        format!("{of}{}, {}", self.policy(row), mode(row))
    }
}

/// The mode of a row, as it is typed.
pub(super) fn mode(row: &PolicyRow) -> String {
    row.mode.replace('_', "-")
}

/// A row of both tables: the host or session, the policy, and its parts.
struct Line<'a> {
    of: Option<&'a str>,
    policy: String,
    parts: &'a BillParts,
}

/// Prints the parts, of doing nothing first, and says what a host could do about those that no policy touches.
pub(super) fn tables(rows: &[PolicyRow], names: &RowNames, output: &mut Output) -> Result<(), Failure> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in rows {
        let of = row.of.as_deref();
        if lines.last().is_none_or(|line| line.of != of) {
            lines.push(Line { of, policy: NOTHING.to_owned(), parts: &row.parts_unpruned });
        }
        lines.push(Line { of, policy: names.policy_in_mode(row), parts: &row.parts });
    }
    print(&lines, names, &["price", "prefix", "young", "old", "rewrites", "fetched"], output, |parts| {
        vec![parts.total(), parts.prefix, parts.young, parts.old, parts.rewrites, parts.fetched]
    })?;
    output.line("")?;
    let kinds = ["old: prompts", "answers", "reasoning", "reads", "searches", "outputs", "changes", "inputs"];
    print(&lines, names, &kinds, output, |parts| {
        let old = &parts.old_items;
        vec![
            old.prompts,
            old.answers,
            old.reasoning,
            old.reads,
            old.searches,
            old.outputs,
            old.changes,
            old.inputs,
        ]
    })?;
    output
        .note(format!("of the price of doing nothing; young: items of the newest {YOUNG_STEP_COUNT} steps"));
    could(rows, names, output);
    marks(rows, names, output);
    Ok(())
}

fn print(
    lines: &[Line<'_>],
    names: &RowNames,
    parts: &[&'static str],
    output: &mut Output,
    values: impl Fn(&BillParts) -> Vec<f64>,
) -> Result<(), Failure> {
    let mut headings: Vec<&str> = Vec::new();
    headings.extend(lines.iter().any(|line| line.of.is_some()).then_some("of"));
    headings.push("policy");
    let first = headings.len();
    headings.extend(parts);
    let mut table = super::table::new(output, &headings);
    table.right(first..headings.len());
    table.tight(first..headings.len());
    for line in lines {
        let mut cells: Vec<String> = line.of.map(|of| names.of(of)).into_iter().collect();
        cells.push(line.policy.clone());
        cells.extend(values(line.parts).into_iter().map(|value| format!("{value:.3}")));
        table.row(cells);
    }
    output.line(table.to_string())
}

/// Says what no policy can touch, and what a host could leave out of it.
fn could(rows: &[PolicyRow], names: &RowNames, output: &Output) {
    let mut told: Option<&str> = None;
    for row in rows {
        let of = row.of.as_deref().unwrap_or("all sessions");
        if told == Some(of) {
            continue;
        }
        told = Some(of);
        let (parts, could) = (&row.parts_unpruned, &row.host_could);
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let mut line = format!(
            "{}: no policy touches the prefix ({}) and young items ({})",
            names.of(of),
            percent(parts.prefix),
            percent(parts.young)
        );
        if could.sessions_with_tools > 0 {
            line.push_str(&format!(
                "; the host could leave out {} of {} tools that were never called ({})",
                could.tools_unused,
                could.tools,
                percent(could.unused)
            ));
        }
        if could.prompts_repeated > 0 {
            let prompts = super::describe::count(could.prompts_repeated as u64, "prompt");
            line.push_str(&format!("; {prompts} repeated an earlier text ({})", percent(could.repeated)));
        }
        output.note(line);
    }
}

/// Says what the marks for the provider's cache are worth, which exports and requests bear: at most four, where they pay.
fn marks(rows: &[PolicyRow], names: &RowNames, output: &Output) {
    for row in rows {
        output.note(format!(
            "{}: {:.3} with marks for the provider's cache, {:.3} without any",
            names.whole(row),
            row.price_ratio,
            row.price_ratio_without_cache
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remarks on marks left the mode out, and those on requests that keep the cache warm the group: two of them said the same of different rows.
    #[test]
    fn a_remark_says_of_whom_under_which_policy_and_in_which_mode() {
        let row = |of: &str, mode| PolicyRow {
            of: Some(of.to_owned()),
            policy: "acp".to_owned(),
            mode,
            ..PolicyRow::default()
        };
        let rows = ["2026-11-29-abcdef-1", "2026-11-29-abcdef-2"]
            .into_iter()
            .flat_map(|of| [row(of, "batched"), row(of, "append_only")]);
        let rows: Vec<PolicyRow> = rows.collect();
        let names = RowNames::new(&rows);
        let told: std::collections::BTreeSet<String> = rows.iter().map(|row| names.whole(row)).collect();
        assert_eq!(told.len(), rows.len(), "{told:?}");
        assert!(told.contains("2026-11…abcdef-2, acp, append-only"), "{told:?}");
    }
}
