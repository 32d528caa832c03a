//! The few rows about which a user asks first, as a table and as a picture.
//!
//! Bars show cost relative to `SQLite` with the same promises, which is 1. Rates are inverted, so that a short bar is always the
//! better one. Rows that acpdb loses are among them.

use super::table::{Figures, figure};

/// The engines of the picture, and the colour of each.
const ENGINES: [(&str, &str); 3] =
    [("acpdb store", "#2563eb"), ("SQLite, same promises", "#9ca3af"), ("SQLite tuned", "#d1d5db")];
/// The engine to which the others are compared.
const UNIT: &str = "SQLite, same promises";

const WIDTH: f64 = 760.0;
const LABEL_WIDTH: f64 = 230.0;
/// Length of a bar that costs as much as the unit.
const UNIT_WIDTH: f64 = 220.0;
const BAR_HEIGHT: f64 = 12.0;
const ROW_HEIGHT: f64 = 56.0;

/// A row: its name for users, its name among the figures, and whether more is better.
struct Row {
    title: &'static str,
    name: String,
    unit: &'static str,
    is_rate: bool,
}

fn rows(size: u64) -> Vec<Row> {
    let row = |title, name: &str, unit, is_rate| Row { title, name: name.to_owned(), unit, is_rate };
    let sized = |title, name: &str, unit, is_rate| row(title, &format!("{size}{name}"), unit, is_rate);
    vec![
        row("one call recorded, processor time", "memory: processor time of all threads", "us", false),
        row("one call recorded on a disk, median", "disk: p50", "us", false),
        sized("recorded in bulk", ": bulk, index included", "k/s", true),
        sized("one output read", ", live: get", "us", false),
        sized("the last 200 of a session", ", live: last 200", "us", false),
        sized("a chain of 20", ", live: chain", "us", false),
        sized("everything read", ", live: read all", "M/s", true),
        sized("bytes on disk beyond the texts", ": disk beyond payload", "B a call", false),
    ]
}

/// The table of these rows; empty if not all engines were measured.
pub(super) fn table(figures: &Figures, size: u64) -> String {
    let mut text = String::new();
    for row in rows(size) {
        let values: Vec<f64> =
            ENGINES.iter().filter_map(|(engine, _)| figures.get(&row.name, engine)).collect();
        let [own, same, tuned] = values.as_slice() else { continue };
        let times = |other: f64| figure(if row.is_rate { other / own } else { own / other });
        text.push_str(&format!(
            "| {}, {} | {} | {} | {} | {} x | {} x |\n",
            row.title,
            row.unit,
            figure(*own),
            figure(*same),
            figure(*tuned),
            times(*same),
            times(*tuned)
        ));
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\n{size} calls; a call in acpdb is three events (step, start, end). The last two columns: cost of acpdb beside the other, \
         below 1 is less.\n\n| | acpdb store | SQLite, same promises | SQLite tuned | beside same promises | beside tuned \
         |\n|---|---|---|---|---|---|\n{text}"
    )
}

/// The picture as SVG; `None` if not all engines were measured.
pub(super) fn svg(figures: &Figures, size: u64) -> Option<String> {
    let mut body = String::new();
    let mut top = 40.0;
    for (number, (engine, colour)) in (0_u8..).zip(ENGINES) {
        let x = 10.0 + 230.0 * f64::from(number);
        body.push_str(&format!(
            "<rect x='{x}' y='12' width='12' height='12' fill='{colour}'/><text x='{}' y='22'>{engine}</text>\n",
            x + 18.0
        ));
    }
    let mut any = false;
    for row in rows(size) {
        let unit = figures.get(&row.name, UNIT);
        let Some(unit) = unit else { continue };
        any = true;
        body.push_str(&format!("<text x='10' y='{}'>{}</text>\n", top + 24.0, row.title));
        for (number, (engine, colour)) in (0_u8..).zip(ENGINES) {
            let Some(value) = figures.get(&row.name, engine) else { continue };
            let cost = if row.is_rate { unit / value } else { value / unit };
            let room = WIDTH - LABEL_WIDTH - 110.0;
            let (length, more) =
                if cost * UNIT_WIDTH > room { (room, " \u{2026}") } else { (cost * UNIT_WIDTH, "") };
            let y = top + f64::from(number) * (BAR_HEIGHT + 3.0);
            body.push_str(&format!(
                "<rect x='{LABEL_WIDTH}' y='{y}' width='{length:.1}' height='{BAR_HEIGHT}' fill='{colour}'/><text x='{:.1}' \
                 y='{}' class='value'>{} {}{more}</text>\n",
                LABEL_WIDTH + length + 6.0,
                y + 10.0,
                figure(value),
                row.unit
            ));
        }
        top += ROW_HEIGHT;
    }
    let line = LABEL_WIDTH + UNIT_WIDTH;
    any.then(|| {
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {top}' font-family='sans-serif' font-size='13'>\n\
             <style>text{{fill:#374151}}.value{{font-size:11px}}@media(prefers-color-scheme:dark){{text{{fill:#e5e7eb}}}}</style>\n\
             <title>Cost of acpdb beside SQLite; a short bar is better</title>\n{body}<line x1='{line}' y1='34' x2='{line}' \
             y2='{top}' stroke='#9ca3af' stroke-dasharray='3 3'/>\n</svg>\n"
        )
    })
}
