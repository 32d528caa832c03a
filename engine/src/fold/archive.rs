//! Two texts made from what is recorded: the archive of a task, and the scratchpad of what is still worth knowing.
//!
//! Both are exports. Nothing is deleted when a task is evicted, so its archive can be written at any time; the
//! scratchpad is a rendered view, so what is superseded or retracted has left it already.
//!
//! Pure: the caller reads the bodies, gives the texts in order, and writes the result wherever it likes.

use std::fmt::Write as _;

use crate::ids::Micros;

/// The archive of a task: when, the summary, then each hidden item as recorded, with a line `---` before each.
pub fn archive_text<'a>(
    archived_at: Micros,
    summary: Option<&str>,
    items: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut text = format!("--- ARCHIVED AT {} ---\n", rfc3339(archived_at));
    if let Some(summary) = summary {
        push_line(&mut text, &format!("SUMMARY: {summary}"));
    }
    for item in items {
        push_line(&mut text, "---");
        push_line(&mut text, item);
    }
    text
}

/// What the scratchpad shows, in the order it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scratchpad<'a> {
    /// Completed tasks: id and annotated summary.
    pub tasks: Vec<(&'a str, &'a str)>,
    /// Current facts of category context.
    pub facts: Vec<&'a str>,
    /// Current decisions of the session.
    pub decisions: Vec<&'a str>,
}

impl Scratchpad<'_> {
    /// The text of `active_context.md`. Sections without entries are left out.
    pub fn render(&self) -> String {
        let mut text = String::from("# Active context\n");
        let tasks: Vec<String> =
            self.tasks.iter().map(|(id, summary)| format!("**{id}**: {summary}")).collect();
        section(&mut text, "Completed tasks", tasks.iter().map(String::as_str));
        section(&mut text, "Facts", self.facts.iter().copied());
        section(&mut text, "Decisions", self.decisions.iter().copied());
        text
    }
}

/// A heading and its entries as a list; lines after an entry's first are indented, so that they stay part of it.
fn section<'a>(text: &mut String, title: &str, entries: impl Iterator<Item = &'a str>) {
    for (index, entry) in entries.enumerate() {
        if index == 0 {
            let _ = write!(text, "\n## {title}\n\n");
        }
        for (line_index, line) in entry.trim_end().split('\n').enumerate() {
            let lead = match (line_index, line.is_empty()) {
                (0, _) => "- ",
                (_, true) => "",
                (_, false) => "  ",
            };
            push_line(text, &format!("{lead}{line}"));
        }
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    if !line.ends_with('\n') {
        text.push('\n');
    }
}

/// A moment as RFC 3339 in UTC, such as `2026-01-02T03:04:05Z`; with its fraction if it has one.
///
/// Years beyond 0000 to 9999, which RFC 3339 cannot spell, come out with their sign or more digits.
pub fn rfc3339(moment: Micros) -> String {
    const SECOND: i64 = 1_000_000;
    let seconds = moment.get().div_euclid(SECOND);
    let micros = moment.get().rem_euclid(SECOND);
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let time = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if micros != 0 {
        let fraction = format!("{micros:06}");
        let _ = write!(text, ".{}", fraction.trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// Year, month, day of a day counted from 1970-01-01, in the Gregorian calendar.
///
/// Counts in years that begin in March, so that the leap day is the last day of a year; 400 years have 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    // 719,468 days lie between 0000-03-01 and 1970-01-01.
    let days = days.saturating_add(719_468);
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests;
