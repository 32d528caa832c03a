//! Excerpts: the lines of a text that match, the lines around them, and the places of the matches in them.

use acpdb_engine::text::first_bytes;
use serde::Serialize;

/// Bytes of a line that are shown.
const LINE_BYTES_MAX: usize = 320;
/// Bytes of such a line before its first match.
const LEAD_BYTES: usize = 80;

/// Lines of a text without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// The lines.
    pub lines: Vec<ExcerptLine>,
}

/// A line of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ExcerptLine {
    /// Its number in the text, from 1.
    pub number: usize,
    /// Its text; a long line is cut to the part around the first match, with `…` at each cut.
    pub text: String,
    /// Matches in it: bytes from and to.
    pub marks: Vec<(usize, usize)>,
}

/// The first `count` lines of a text that match, with `context` lines around each. `marks` are in order.
pub(super) fn excerpts(text: &str, marks: &[(usize, usize)], context: usize, count: usize) -> Vec<Excerpt> {
    let mut lines: Vec<(usize, usize)> = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.trim_end_matches(['\n', '\r']).len();
        lines.push((start, end));
        start += line.len();
    }
    // Lines that match, each with the marks that begin in it.
    let mut matching: Vec<usize> = Vec::new();
    for (from, _) in marks {
        // The first line begins at 0, so that at least one begins at or before a mark; a text without lines has no marks.
        let line = lines.partition_point(|(start, _)| start <= from).saturating_sub(1);
        if matching.last() == Some(&line) {
            continue;
        }
        if matching.len() == count {
            break;
        }
        matching.push(line);
    }
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for line in matching {
        // The lines around a match end with the text.
        let (from, to) =
            (line.saturating_sub(context), line.saturating_add(context).min(lines.len().saturating_sub(1)));
        match stretches.last_mut() {
            Some(last) if from <= last.1.saturating_add(1) => last.1 = to,
            _ => stretches.push((from, to)),
        }
    }
    let line_at = |number: usize| {
        let (start, end) = lines.get(number).copied().unwrap_or_default();
        let first = marks.partition_point(|(from, _)| *from < start);
        let own = marks.get(first..).unwrap_or_default().iter().take_while(|(from, _)| *from <= end);
        let own: Vec<(usize, usize)> = own.map(|(from, to)| (from - start, (*to).min(end) - start)).collect();
        cut(number + 1, text.get(start..end).unwrap_or_default(), &own)
    };
    let excerpt = |(from, to): (usize, usize)| Excerpt { lines: (from..=to).map(line_at).collect() };
    stretches.into_iter().map(excerpt).collect()
}

/// A line, or the part of it around its first match.
fn cut(number: usize, line: &str, marks: &[(usize, usize)]) -> ExcerptLine {
    if line.len() <= LINE_BYTES_MAX {
        return ExcerptLine { number, text: line.to_owned(), marks: marks.to_vec() };
    }
    let boundary = |place: usize| first_bytes(line, place).len();
    let first = marks.first().map_or(0, |(from, _)| *from);
    // A match near the beginning has less text before it.
    let from = boundary(first.saturating_sub(LEAD_BYTES));
    let to = boundary(from.saturating_add(LINE_BYTES_MAX));
    let (before, behind) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
    let shift = |place: usize| place.clamp(from, to) - from + before.len();
    let marks =
        marks.iter().filter(|(start, _)| *start < to).map(|(start, end)| (shift(*start), shift(*end)));
    let text = format!("{before}{}{behind}", line.get(from..to).unwrap_or_default());
    ExcerptLine { number, text, marks: marks.collect() }
}
