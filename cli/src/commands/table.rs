//! Plain tables: a heading, rows, no lines.

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, TableStyle};

use unicode_width::UnicodeWidthStr as _;

use super::lines::clip;
use crate::output::Output;

/// A table in the making.
#[derive(Debug)]
pub(crate) struct Rows {
    table: Table,
}

/// A table with these headings, as wide as the terminal.
pub(crate) fn new(output: &Output, headings: &[&str]) -> Rows {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    table.set_content_arrangement(ContentArrangement::Dynamic);
    // Below this, columns would be a character wide: the terminal may wrap the lines instead.
    table.set_width(u16::try_from(output.width.max(72)).unwrap_or(u16::MAX));
    if output.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    table.set_header(headings.iter().map(|heading| Cell::new(heading).add_attribute(Attribute::Dim)));
    // Columns begin at the left edge, two blanks apart.
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    Rows { table }
}

impl Rows {
    /// Aligns these columns, from 0, to the right.
    pub(crate) fn right(&mut self, columns: std::ops::Range<usize>) {
        for column in columns {
            if let Some(column) = self.table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }

    /// Sets these columns, from 0, one blank apart.
    pub(crate) fn tight(&mut self, columns: std::ops::Range<usize>) {
        for column in columns {
            if let Some(column) = self.table.column_mut(column) {
                column.set_padding((0, 1));
            }
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.table.add_row(cells);
    }
}

impl std::fmt::Display for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Lines without the blanks that pad the last column.
        for (number, line) in self.table.lines().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

/// A column that gives way where a terminal is narrow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    /// Numbers stand to the right.
    pub(crate) right: bool,
    /// Which goes first where there is no room: the highest. 0 stays.
    pub(crate) rank: u8,
}

/// A column of texts that takes the room which the others leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wide {
    pub(crate) column: usize,
    /// Columns are left out before it gets narrower than this.
    pub(crate) least: usize,
}

/// A table of the columns that fit: others are left out, not wrapped.
pub(crate) fn fitted(
    output: &Output,
    columns: &[Column],
    mut cells: Vec<Vec<String>>,
    wide: Option<Wide>,
) -> Rows {
    let natural = |column: usize| {
        let heading = columns.get(column).map_or(0, |column| column.heading.width());
        cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).fold(heading, usize::max)
    };
    let least = |column: usize| match wide {
        Some(wide) if wide.column == column => natural(column).min(wide.least),
        _ => natural(column),
    };
    let widths: Vec<usize> = (0..columns.len()).map(least).collect();
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    let needed = |kept: &[usize]| -> usize {
        kept.iter().filter_map(|column| widths.get(*column)).map(|width| width + 2).sum::<usize>()
    };
    while needed(&kept) > output.width {
        let rank = |place: &usize| columns.get(*place).map_or(0, |column| column.rank);
        let ranked = kept.iter().copied().filter(|place| rank(place) > 0);
        let Some(last) = ranked.max_by_key(|place| rank(place)) else { break };
        kept.retain(|place| *place != last);
    }
    if let Some(wide) = wide {
        let spare = output.width.saturating_sub(needed(&kept));
        let room = least(wide.column) + spare;
        for cell in cells.iter_mut().filter_map(|row| row.get_mut(wide.column)) {
            *cell = clip(cell, room);
        }
    }
    let shown: Vec<&Column> = kept.iter().filter_map(|place| columns.get(*place)).collect();
    let headings: Vec<&str> = shown.iter().map(|column| column.heading).collect();
    let mut rows = new(output, &headings);
    for (place, column) in shown.iter().enumerate() {
        if column.right {
            rows.right(place..place + 1);
        }
    }
    for row in &mut cells {
        rows.row(kept.iter().map(|place| row.get_mut(*place).map(std::mem::take).unwrap_or_default()));
    }
    rows
}
