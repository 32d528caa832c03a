//! Two texts made from the record: the archive of a task, and the scratchpad of the knowledge that is still worth having.
//!
//! Both are exports. Nothing is deleted when a task is evicted, so its archive can be written at any time; the
//! scratchpad is a rendered view, so superseded and retracted items have left it already.
//!
//! Pure: the caller reads the bodies, gives the texts in order, and writes the result wherever it likes.

use std::fmt::Write as _;

use acpdb_engine::ids::Micros;

use crate::when::precise;

/// The archive of a task: the time, the summary, then each hidden item as recorded, with a line `---` before each.
pub fn archive_text<'a>(
    archived_at: Micros,
    summary: Option<&str>,
    items: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut text = format!("--- ARCHIVED AT {} ---\n", precise(archived_at));
    if let Some(summary) = summary {
        push_line(&mut text, &format!("SUMMARY: {summary}"));
    }
    for item in items {
        push_line(&mut text, "---");
        push_line(&mut text, item);
    }
    text
}

/// The content of the scratchpad, in the order in which it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scratchpad<'a> {
    /// Completed tasks: id and annotated summary.
    pub tasks: Vec<(&'a str, &'a str)>,
    /// Current facts of category context.
    pub facts: Vec<&'a str>,
    /// Current decisions of the session.
    pub decisions: Vec<&'a str>,
    /// Current notes.
    pub notes: Vec<&'a str>,
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
        section(&mut text, "Notes", self.notes.iter().copied());
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

#[cfg(test)]
mod tests;
