//! A frame: a title, rows in columns, the keys, the message.

use ratatui::Frame;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use super::app::{App, Shown};
use crate::commands::lines::clip;

pub(super) fn draw(app: &App, frame: &mut Frame<'_>) {
    let area = frame.area();
    let width = usize::from(area.width);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let mut lines = vec![
        Line::styled(clip(&format!("acpdb  {}", app.heading()), width), bold),
        Line::styled("─".repeat(width), dim),
    ];
    let (rows, picked) = app.rows();
    let widths = widths(rows);
    for (number, row) in rows.iter().enumerate() {
        let mut style = if row.is_dim { dim } else { Style::new() };
        let mark = if number == picked {
            style = style.add_modifier(Modifier::REVERSED);
            '>'
        } else {
            ' '
        };
        lines.push(Line::styled(clip(&format!("{mark}{}", line(row, &widths)), width), style));
    }
    let height = usize::from(area.height);
    // A screen of fewer lines shows only the last two.
    let row_count = height.saturating_sub(2);
    lines.truncate(row_count);
    lines.resize(row_count, Line::default());
    lines.push(Line::raw(clip(&app.says(), width)));
    lines.push(Line::styled(clip(app.place().names().1, width), dim));
    frame.render_widget(Paragraph::new(lines), area);
}

/// The width of each column but the last.
fn widths(rows: &[Shown]) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (place, cell) in row.cells.iter().enumerate() {
            match widths.get_mut(place) {
                Some(known) => *known = (*known).max(cell.width()),
                None => widths.push(cell.width()),
            }
        }
    }
    widths
}

fn line(row: &Shown, widths: &[usize]) -> String {
    let mut text = String::new();
    // Without cells there is no last cell.
    let last = row.cells.len().saturating_sub(1);
    for (place, cell) in row.cells.iter().enumerate() {
        text.push_str(cell);
        if place < last {
            let room = widths.get(place).copied().unwrap_or_default().saturating_sub(cell.width());
            text.push_str(&" ".repeat(room + 2));
        }
    }
    text
}
