//! Tables: a column is described once, by its heading and the cell of a row. On a terminal texts are cut, then columns are left out, and
//! nothing is wrapped; a program gets whole cells, with a tab between them.

use unicode_width::UnicodeWidthStr as _;

use super::lines::clip;
use super::{Failure, Output, describe};
use crate::output::{EscapeLevel, escape, is_plain};

/// Narrowest column of texts that may be cut.
pub(crate) const TEXT_WIDTH_MIN: usize = 14;

/// A column of rows.
pub(crate) struct Column<'a, T> {
    heading: &'a str,
    cell: Box<dyn Fn(&T) -> String + 'a>,
    /// Numbers stand to the right, and are never cut.
    is_number: bool,
    /// The least width to which its texts may be cut.
    least: usize,
    /// Without room, the column with the highest rank is left out first. 0 stays.
    rank: usize,
    /// Blanks behind it.
    gap: usize,
    /// The column is not empty.
    is_told: bool,
}

/// A column of texts.
pub(crate) fn text<'a, T>(heading: &'a str, cell: impl Fn(&T) -> String + 'a) -> Column<'a, T> {
    let (is_number, least) = (false, TEXT_WIDTH_MIN);
    Column { heading, cell: Box::new(cell), is_number, least, rank: usize::MAX, gap: 2, is_told: true }
}

/// A column of numbers.
pub(crate) fn number<'a, T>(heading: &'a str, cell: impl Fn(&T) -> String + 'a) -> Column<'a, T> {
    Column { is_number: true, least: usize::MAX, ..text(heading, cell) }
}

impl<T> Column<'_, T> {
    /// Its rank. A column with a rank is left out whole, and not cut.
    pub(crate) fn ranked(self, rank: usize) -> Self {
        Self { rank, least: usize::MAX, ..self }
    }

    /// Leaves it out if it would be empty.
    pub(crate) fn shown_if(self, is_told: bool) -> Self {
        Self { is_told, ..self }
    }

    /// Cuts its texts down to so many columns before others are left out.
    pub(crate) fn cut_to(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// One blank behind it.
    pub(crate) fn tight(self) -> Self {
        Self { gap: 1, ..self }
    }
}

/// A text of a cell, on one line. A text that was escaped before stays as it is.
fn harmless(cell: String) -> String {
    if is_plain(&cell) {
        return cell;
    }
    escape(&cell, EscapeLevel::Text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Tokens in a cell: short for people, whole for programs.
pub(crate) fn tokens(is_whole: bool, count: u64) -> String {
    if is_whole { count.to_string() } else { describe::tokens(count) }
}

/// A count in a cell, and that of subagents beside it.
pub(crate) fn with_subagents(count: u64, subagents: u64) -> String {
    if subagents == 0 { count.to_string() } else { format!("{count} +{subagents}") }
}

/// Prints rows in these columns.
pub(crate) fn print<'r, T: 'r>(
    output: &mut Output,
    columns: Vec<Column<'_, T>>,
    rows: impl IntoIterator<Item = &'r T>,
) -> Result<(), Failure> {
    let columns: Vec<Column<'_, T>> = columns.into_iter().filter(|column| column.is_told).collect();
    let rows =
        rows.into_iter().map(|row| columns.iter().map(|column| harmless((column.cell)(row))).collect());
    let headings = columns.iter().map(|column| column.heading.to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(headings).chain(rows).collect();
    if output.tabs {
        return lines.iter().try_for_each(|cells| output.line(cells.join("\t")));
    }
    let kept = fit(&columns, &lines, output.width);
    for (number, cells) in lines.iter().enumerate() {
        let mut line = String::new();
        for (column, place, width) in &kept {
            let cell = clip(cells.get(*place).map_or("", String::as_str), *width);
            // No cell is wider: it was cut.
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            let cell = if number == 0 { output.paint(describe::DIM, &cell) } else { cell };
            let gap = " ".repeat(column.gap);
            line += &if column.is_number {
                format!("{blanks}{cell}{gap}")
            } else {
                format!("{cell}{blanks}{gap}")
            };
        }
        output.line(line.trim_end())?;
    }
    Ok(())
}

/// The columns that fit, with the place and the width of each: texts are cut first, then columns are left out.
fn fit<'c, 'a, T>(
    columns: &'c [Column<'a, T>],
    lines: &[Vec<String>],
    width_max: usize,
) -> Vec<(&'c Column<'a, T>, usize, usize)> {
    let natural =
        |place: usize| lines.iter().filter_map(|cells| cells.get(place)).map(|cell| cell.width()).max();
    let mut kept: Vec<_> = columns
        .iter()
        .enumerate()
        .map(|(place, column)| (column, place, natural(place).unwrap_or(0)))
        .collect();
    let over = |kept: &[(&Column<'_, T>, usize, usize)], width: fn(&Column<'_, T>, usize) -> usize| {
        let needed: usize =
            kept.iter().map(|(column, _, natural)| width(column, *natural) + column.gap).sum();
        // The last column needs no gap behind it.
        needed.saturating_sub(2).saturating_sub(width_max)
    };
    while over(&kept, |column, natural| natural.min(column.least)) > 0 && kept.len() > 2 {
        // The first and the last column tell the row's subject and its sum, so they stay.
        let rank = |(place, (column, ..)): (usize, &(&Column<'_, T>, usize, usize))| match column.rank {
            usize::MAX if place == 0 || place + 1 == kept.len() => 0,
            usize::MAX => place,
            rank => rank,
        };
        let ranks: Vec<usize> = kept.iter().enumerate().map(rank).collect();
        let Some((place, _)) =
            ranks.iter().enumerate().max_by_key(|(_, rank)| **rank).filter(|(_, rank)| **rank > 0)
        else {
            break;
        };
        kept.remove(place);
    }
    loop {
        let over = over(&kept, |_, natural| natural);
        let wide = kept.iter_mut().filter(|(column, _, width)| *width > column.least);
        let Some((column, _, width)) = wide.max_by_key(|(.., width)| *width).filter(|_| over > 0) else {
            return kept;
        };
        // A column keeps its least width; the next round shortens another.
        *width = width.saturating_sub(over).max(column.least);
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::pad;
    use super::*;

    type Row = [&'static str; 4];

    fn shown(width: usize) -> Vec<String> {
        let cell = |place: usize| move |row: &Row| row[place].to_owned();
        let columns = vec![
            text("name", cell(0)),
            text("what it is about", cell(1)),
            number("calls", cell(2)),
            number("sum", cell(3)),
        ];
        let rows: Vec<Row> = vec![
            ["src", "a long text that says what it is about", "1200", "34567"],
            ["文件", "short", "3", "4"],
        ];
        let cells = |row: &Row| columns.iter().map(|column| (column.cell)(row)).collect::<Vec<_>>();
        let headings = columns.iter().map(|column| column.heading.to_owned()).collect();
        let lines: Vec<Vec<String>> = std::iter::once(headings).chain(rows.iter().map(cells)).collect();
        let kept = fit(&columns, &lines, width);
        kept.iter().map(|(_, place, width)| pad(&clip(&lines[1][*place], *width), *width)).collect()
    }

    #[test]
    fn what_has_no_room_is_cut_then_left_out_and_never_wrapped() {
        for (width, cells) in [
            (60, &["src ", "a long text that says what it is about", "1200 ", "34567"][..]),
            (40, &["src ", "a long text that sa…", "1200 ", "34567"]),
            (34, &["src ", "a long text t…", "1200 ", "34567"]),
            (28, &["src ", "a long text th…", "34567"]),
        ] {
            assert_eq!(shown(width), cells, "{width}");
        }
    }
}
