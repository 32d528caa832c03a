//! Plain tables: a heading, rows, no lines. On a terminal, a column without room is left out, never wrapped; a program gets whole
//! cells, with a tab between them.

use std::collections::BTreeSet;

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, TableStyle};

use unicode_width::UnicodeWidthStr as _;

use super::lines::clip;
use super::{Output, describe};
use crate::output::{EscapeLevel, escape, is_plain};

/// Narrowest column of texts before columns are left out.
const TEXT_WIDTH_MIN: usize = 14;

/// A table in the making.
#[derive(Debug)]
pub(crate) struct TableRows {
    headings: Vec<String>,
    cells: Vec<Vec<String>>,
    right: BTreeSet<usize>,
    tight: BTreeSet<usize>,
    width: usize,
    color: bool,
    tabs: bool,
    /// The last column is prose, which goes on in the next line: cut off, it would be useless.
    prose: bool,
}

/// A table with these headings, as wide as the terminal.
pub(crate) fn new(output: &Output, headings: &[&str]) -> TableRows {
    TableRows {
        headings: headings.iter().map(|heading| (*heading).to_owned()).collect(),
        cells: Vec::new(),
        right: BTreeSet::new(),
        tight: BTreeSet::new(),
        width: output.width,
        color: output.color,
        tabs: output.tabs,
        prose: false,
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
pub(crate) fn tokens(output: &Output, count: u64) -> String {
    if output.tabs { count.to_string() } else { describe::tokens(count) }
}

impl TableRows {
    /// Aligns these columns, from 0, to the right.
    pub(crate) fn right(&mut self, columns: std::ops::Range<usize>) {
        self.right.extend(columns);
    }

    /// Sets these columns, from 0, one blank apart.
    pub(crate) fn tight(&mut self, columns: std::ops::Range<usize>) {
        self.tight.extend(columns);
    }

    /// Lets the last column go on in the next line.
    pub(crate) const fn prose(&mut self) {
        self.prose = true;
    }

    /// Adds a row. No text leaves its cell or steers a terminal.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.cells.push(cells.into_iter().map(harmless).collect());
    }

    /// Cells and headings from the first line to the last.
    fn lines(&self) -> impl Iterator<Item = &Vec<String>> {
        std::iter::once(&self.headings).chain(&self.cells)
    }

    /// The columns that fit, and the width of each: texts are cut first, then columns are left out. Nothing is wrapped.
    fn fit(&self) -> Vec<(usize, usize)> {
        let natural = |column: usize| {
            self.lines().filter_map(|cells| cells.get(column)).map(|cell| cell.width()).max().unwrap_or(0)
        };
        let mut kept: Vec<(usize, usize)> =
            (0..self.headings.len()).map(|column| (column, natural(column))).collect();
        if self.prose {
            return kept;
        }
        loop {
            let gap = |column: &usize| if self.tight.contains(column) { 1 } else { 2 };
            let needed: usize = kept.iter().map(|(column, width)| width + gap(column)).sum();
            // The last column needs no gap behind it.
            let over = needed.saturating_sub(2).saturating_sub(self.width);
            if over == 0 {
                return kept;
            }
            let columns = kept.len();
            let texts = kept.iter_mut().filter(|(column, _)| !self.right.contains(column));
            let widest = texts.filter(|(_, width)| *width > TEXT_WIDTH_MIN).max_by_key(|(_, width)| *width);
            if let Some((_, width)) = widest {
                // A column keeps its least width; the next round shortens another.
                *width = width.saturating_sub(over).max(TEXT_WIDTH_MIN);
            } else if columns > 2 {
                // The first and the last column tell the row's subject and its sum, so they stay.
                kept.remove(columns - 2);
            } else {
                return kept;
            }
        }
    }
}

impl std::fmt::Display for TableRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.tabs {
            for (number, cells) in self.lines().enumerate() {
                f.write_str(if number == 0 { "" } else { "\n" })?;
                f.write_str(&cells.join("\t"))?;
            }
            return Ok(());
        }
        let kept = self.fit();
        let mut table = Table::new();
        table.load_style(TableStyle::new());
        if self.prose {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            // A narrower table would have columns of one character: the terminal may wrap the lines instead.
            table.set_width(u16::try_from(self.width.max(72)).unwrap_or(u16::MAX));
        } else {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
        if self.color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        let cell = |cells: &[String], (column, width): (usize, usize)| {
            cells.get(column).map(|cell| clip(cell, width)).unwrap_or_default()
        };
        let heading = |column| Cell::new(cell(&self.headings, column)).add_attribute(Attribute::Dim);
        table.set_header(kept.iter().copied().map(heading));
        for cells in &self.cells {
            table.add_row(kept.iter().map(|column| cell(cells, *column)));
        }
        // Columns begin at the left edge, two blanks apart.
        for (column, (own, _)) in table.column_iter_mut().zip(&kept) {
            column.set_padding((0, if self.tight.contains(own) { 1 } else { 2 }));
            if self.right.contains(own) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        // Lines without the blanks that pad the last column.
        for (number, line) in table.lines().enumerate() {
            f.write_str(if number == 0 { "" } else { "\n" })?;
            f.write_str(line.trim_end())?;
        }
        Ok(())
    }
}

/// A column that may be left out on a narrow terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) heading: &'static str,
    /// Numbers stand to the right.
    pub(crate) right: bool,
    /// Without room, the column with the highest rank is left out first. 0 stays.
    pub(crate) rank: u8,
    /// The column is not empty.
    pub(crate) is_told: bool,
}

/// A table of the columns that are told and fit: other columns are left out, not wrapped. The column of titles takes the room that
/// the others leave; a column is left out before titles get narrower than `title_width_min`.
pub(crate) fn fitted(
    output: &Output,
    columns: &[Column],
    mut cells: Vec<Vec<String>>,
    title_width_min: usize,
) -> TableRows {
    let title = columns.iter().position(|column| column.heading == "title" && column.is_told);
    let natural = |column: usize| {
        let heading = columns.get(column).map_or(0, |column| column.heading.width());
        cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).fold(heading, usize::max)
    };
    let least = |column: usize| {
        let most = if title == Some(column) { title_width_min } else { usize::MAX };
        natural(column).min(most)
    };
    let widths: Vec<usize> = (0..columns.len()).map(least).collect();
    let mut kept: Vec<usize> =
        columns.iter().enumerate().filter(|(_, column)| column.is_told).map(|(place, _)| place).collect();
    let needed = |kept: &[usize]| -> usize {
        kept.iter().filter_map(|column| widths.get(*column)).map(|width| width + 2).sum::<usize>()
    };
    while needed(&kept) > output.width && !output.tabs {
        let rank = |place: &usize| columns.get(*place).map_or(0, |column| column.rank);
        let ranked = kept.iter().copied().filter(|place| rank(place) > 0);
        let Some(last) = ranked.max_by_key(|place| rank(place)) else { break };
        kept.retain(|place| *place != last);
    }
    if let Some(title) = title.filter(|_| !output.tabs) {
        let room = least(title) + output.room(needed(&kept));
        for cell in cells.iter_mut().filter_map(|row| row.get_mut(title)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(width: usize, tabs: bool) -> TableRows {
        let mut rows = TableRows {
            headings: ["name", "what it is about", "calls", "sum"].map(str::to_owned).to_vec(),
            cells: Vec::new(),
            right: BTreeSet::from([2, 3]),
            tight: BTreeSet::new(),
            width,
            color: false,
            tabs,
            prose: false,
        };
        rows.row(["src", "a long text that says what it is about", "1200", "34567"].map(str::to_owned));
        rows.row(["文件", "short", "3", "4"].map(str::to_owned));
        rows
    }

    #[test]
    fn what_has_no_room_is_cut_then_left_out_and_never_wrapped() {
        for (width, shown) in [
            (60, "src   a long text that says what it is about   1200  34567"),
            (40, "src   a long text that sa…   1200  34567"),
            (34, "src   a long text t…   1200  34567"),
            (28, "src   a long text t…  34567"),
        ] {
            let text = rows(width, false).to_string();
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
            assert_eq!(text.lines().count(), 3, "{width}:\n{text}");
            assert_eq!(text.lines().nth(1), Some(shown), "{width}:\n{text}");
        }
    }

    #[test]
    fn programs_get_whole_cells_with_a_tab_between_them() {
        let text = rows(10, true).to_string();
        assert_eq!(text.lines().nth(1), Some("src\ta long text that says what it is about\t1200\t34567"));
    }
}
