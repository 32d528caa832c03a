//! Items in a line each: shared by the commands that list them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use acpdb_engine::View;
use acpdb_engine::event::Role;
use acpdb_engine::fold::{FaceState, ItemKind, Status};
use acpdb_engine::ids::ItemId;
use acpdb_engine::text::first_bytes;
use acpdb_query::ItemRow;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::{EscapeLevel, Failure, Output, describe, escape};
use crate::output::is_plain;

/// Longest piece of a text that is looked at for a preview, in bytes.
const PREVIEW_BYTES_MAX: usize = 1 << 10;

/// At most `width` columns of a text, with `…` for the rest.
pub(crate) fn clip(text: &str, width: usize) -> String {
    clipped(text, width).into_owned()
}

/// As [`clip`], without a copy of a text that fits.
pub(crate) fn clipped(text: &str, width: usize) -> Cow<'_, str> {
    let is_narrow = text.len() <= width && is_plain(text);
    if is_narrow || text.width() <= width {
        return Cow::Borrowed(text);
    }
    let mut clipped = String::new();
    let mut used = 0;
    for c in text.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns + 1 > width {
            break;
        }
        used += columns;
        clipped.push(c);
    }
    if width > 0 {
        clipped.push('…');
    }
    Cow::Owned(clipped)
}

/// A painted line, cut to the terminal: a longer line would be wrapped. Programs get it whole.
pub(crate) fn cut(line: &str, output: &Output) -> String {
    let line = line.trim_end();
    if output.tabs {
        return line.to_owned();
    }
    let plain = anstream::adapter::strip_str(line).to_string();
    if plain.width() <= output.width {
        return line.to_owned();
    }
    let mut cut = String::new();
    let mut left = output.room(1);
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        // A style has no width, and ends with an `m`.
        if let Some(style) = rest.strip_prefix("\u{1b}[").and_then(|style| style.split_once('m')) {
            let length = rest.len() - style.1.len();
            cut.push_str(rest.get(..length).unwrap_or_default());
            rest = style.1;
            continue;
        }
        let columns = c.width().unwrap_or(0);
        if columns > left {
            break;
        }
        left -= columns;
        cut.push(c);
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    cut.push('…');
    if cut.contains('\u{1b}') {
        cut.push_str("\u{1b}[0m");
    }
    cut
}

/// At most `width` columns of a text; a path keeps its end, which tells more than its beginning.
pub(crate) fn clip_path(text: &str, width: usize) -> String {
    if !text.starts_with('/') || text.contains(' ') || text.width() <= width {
        return clip(text, width);
    }
    let mut used = 1;
    let mut start = text.len();
    for (place, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        start = place;
    }
    let mark = if width > 0 { "…" } else { "" };
    format!("{mark}{}", text.get(start..).unwrap_or_default())
}

/// At most `width` columns of a text: its beginning and its end.
fn clip_middle(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = clip(text, width / 2);
    let mut left = width - short.width();
    let is_left = |(_, c): &(usize, char)| {
        let columns = c.width().unwrap_or(0);
        let fits = columns <= left;
        left -= if fits { columns } else { left };
        fits
    };
    let start = text.char_indices().rev().take_while(is_left).last().map_or(text.len(), |(place, _)| place);
    short.push_str(text.get(start..).unwrap_or_default());
    short
}

/// Recorded names in columns of one width that stay apart: cut at the end, else in the middle, else not at all.
pub(crate) struct NamesApart {
    width: usize,
    cut: fn(&str, usize) -> String,
}

impl NamesApart {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a str>, width: usize) -> Self {
        let names: BTreeSet<String> = names.map(one_line).collect();
        let stay_apart = |cut: &fn(&str, usize) -> String| {
            names.iter().map(|name| cut(name, width)).collect::<BTreeSet<_>>().len() == names.len()
        };
        let cuts: [fn(&str, usize) -> String; 2] = [clip, clip_middle];
        let cut = cuts.into_iter().find(stay_apart).unwrap_or(|name, _| name.to_owned());
        Self { width, cut }
    }

    pub(crate) fn short(&self, name: &str) -> String {
        (self.cut)(&one_line(name), self.width)
    }
}

/// Joins the cells of a line: two blanks between them for people, a tab for a program. For people, the line is cut at the
/// terminal's width.
pub(crate) fn joined(cells: &[&str], output: &Output) -> String {
    cut(&cells.join(if output.tabs { "\t" } else { "  " }), output)
}

/// A text filled up with blanks to `width` columns.
pub(crate) fn pad(text: &str, width: usize) -> String {
    // A wider text needs no blanks.
    let blanks = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(blanks))
}

/// The first of some names, and a sign that there are more.
pub(crate) fn some_of(names: &[String], most: usize) -> String {
    let first: Vec<&str> = names.iter().take(most).map(String::as_str).collect();
    format!("{}{}", first.join(", "), if names.len() > most { ", .." } else { "" })
}

/// A recorded text on one line, harmless on a terminal.
pub(crate) fn one_line(text: &str) -> String {
    let joined = first_bytes(text, PREVIEW_BYTES_MAX).split_whitespace().collect::<Vec<_>>().join(" ");
    escape(&joined, EscapeLevel::Text).into_owned()
}

/// The tool of a call, else the role of the message.
pub(crate) fn what(row: &ItemRow) -> String {
    if let Some(tool) = &row.tool {
        return escape(tool, EscapeLevel::Line).into_owned();
    }
    let role = match row.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    match row.kind {
        ItemKind::Text | ItemKind::Call => role.to_owned(),
        ItemKind::Reasoning => "reasoning".to_owned(),
        ItemKind::Result => "result".to_owned(),
        ItemKind::Media => format!("{role} media"),
        ItemKind::Opaque => format!("{role} opaque"),
        ItemKind::Injected => "injected".to_owned(),
    }
}

/// An item's standing, in words.
pub(crate) fn standing(row: &ItemRow) -> String {
    let by = row.superseded_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let superseded = row.rule.map(|rule| format!("superseded{by} ({})", rule.label())).unwrap_or_default();
    let reason = match row.cause {
        Some(cause @ ("left" | "abandoned")) if row.rule.is_some() => format!("{superseded}, {cause}"),
        Some("off_branch") if row.rule.is_some() => format!("{superseded}, off branch"),
        Some("left") => "left the context".to_owned(),
        Some("abandoned") => "its message was abandoned".to_owned(),
        Some("lost") => "lost to damage".to_owned(),
        Some(cause) if row.rule.is_some_and(|rule| rule.label() == cause) => superseded,
        Some(cause) => cause.replace('_', " "),
        None => superseded,
    };
    let status = match row.status {
        Some(Status::Pending) => "pending",
        Some(Status::Failed) => "failed",
        Some(Status::Aborted) => "aborted",
        Some(Status::Completed) | None => "",
    };
    let join = |left: &str, right: &str| match (left.is_empty(), right.is_empty()) {
        (true, _) => right.to_owned(),
        (_, true) => left.to_owned(),
        _ => format!("{left}, {right}"),
    };
    let pinned = if row.pinned { "pinned" } else { "" };
    let stands = match row.state {
        _ if !row.in_context && reason.is_empty() => "hidden by its host".to_owned(),
        _ if !row.in_context => reason,
        FaceState::Whole if reason.is_empty() => "current".to_owned(),
        FaceState::Absent if reason.is_empty() => String::new(),
        FaceState::Whole if row.cause.is_some() && row.rule.is_none() => format!("current ({reason})"),
        FaceState::Whole => format!("{reason}, still whole"),
        FaceState::Shortened => format!("shortened ({reason})"),
        FaceState::Tombstone | FaceState::Summary | FaceState::Gone | FaceState::Absent => reason,
    };
    join(&join(&stands, status), pinned)
}

/// The subject of an item: its key, else the beginning of its parameters or text.
pub(crate) fn about(view: &View, row: &ItemRow) -> Result<String, Failure> {
    if let Some(key) = row.keys.first() {
        // A command line itself names the other keys that it contains.
        let says = |other: &str| key == other || (key.contains(' ') && key.contains(other));
        let more = row.keys.iter().skip(1).filter(|other| !says(other)).count();
        let more = if more > 0 { format!(" +{more}") } else { String::new() };
        return Ok(format!("{}{more}", one_line(key)));
    }
    let body = {
        let state = view.state();
        // A row names its item as `ItemId` writes it.
        let found = row.item.parse::<ItemId>().ok().and_then(|item| state.find(item));
        let item = found.and_then(|ix| state.item(ix, view.at()));
        item.and_then(|item| item.params.or_else(|| item.content.first().map(|part| part.body)))
    };
    let Some(body) = body else { return Ok(String::new()) };
    if row.kind == ItemKind::Media {
        return Ok(String::new());
    }
    let text = acpdb_query::sound::or_lost(view.text(body))?;
    Ok(text.map_or_else(|lost| format!("[{}]", one_line(&lost.to_string())), |text| one_line(&text)))
}

/// Widths of the columns of a list of items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Widths {
    seq: usize,
    turn: usize,
    what: usize,
    tokens: usize,
    about: usize,
}

/// Columns for the texts after the other columns, with the gap before them: as many as the longest of these texts needs, at least
/// `least`, and no more than half of all columns.
pub(crate) fn behind<'t>(texts: impl Iterator<Item = Cow<'t, str>>, least: usize, output: &Output) -> usize {
    let longest = texts.map(|text| text.width()).max().unwrap_or_default();
    longest.max(least).min(output.width / 2) + 2
}

impl Widths {
    /// Widths for these rows; `reserve` columns are kept for texts before and after them.
    pub(crate) fn of(rows: &[ItemRow], output: &Output, reserve: usize) -> Self {
        let longest = |text: &dyn Fn(&ItemRow) -> usize| rows.iter().map(text).max().unwrap_or_default();
        let seq = longest(&|row| row.item.width());
        let turn = longest(&|row| row.turn.to_string().len()) + 1;
        let what = longest(&|row| what(row).width()).min(16);
        let tokens = longest(&|row| tokens(row).width());
        let used = seq + turn + what + tokens + 8 + reserve;
        Self { seq, turn, what, tokens, about: output.room(used).max(10) }
    }

    /// One item: seq, turn, tool, subject, tokens. For a program without padding, with tabs between them.
    pub(crate) fn line(&self, row: &ItemRow, about: &str, output: &Output) -> String {
        if output.tabs {
            let seq = output.paint(describe::SEQ, &row.item);
            return format!("{seq}\tt{}\t{}\t{about}\t{}", row.turn, what(row), row.tokens);
        }
        let seq = output.paint(describe::SEQ, &pad(&row.item, self.seq));
        let turn = pad(&format!("t{}", row.turn), self.turn);
        let what = pad(&clip(&what(row), self.what), self.what);
        let about = pad(&clip_path(about, self.about), self.about);
        let tokens = tokens(row);
        // `Widths::of` saw the first rows; a later row may be wider.
        let blanks = " ".repeat(self.tokens.saturating_sub(tokens.width()));
        format!("{seq}  {turn}  {what}  {about}  {blanks}{tokens}")
    }
}

fn tokens(row: &ItemRow) -> String {
    describe::tokens(row.tokens)
}

/// An item's standing, in colour.
pub(crate) fn standing_painted(row: &ItemRow, output: &Output) -> String {
    let style = if row.is_visible() { describe::GOOD } else { describe::DIM };
    output.paint(style, &standing(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session and its subagents begin alike: cut at the end, two rows had one name.
    #[test]
    fn names_that_differ_stay_apart_when_they_are_cut() {
        for (names, shown) in [
            (["one", "two"], ["one", "two"]),
            (["a-long-name", "b-long-name"], ["a-long…", "b-long…"]),
            (["session-1", "session-2"], ["se…on-1", "se…on-2"]),
            (["session-1-of-a", "session-2-of-a"], ["session-1-of-a", "session-2-of-a"]),
            (["文件文件文件1", "文件文件文件2"], ["文…件1", "文…件2"]),
        ] {
            let apart = NamesApart::new(names.into_iter(), 7);
            assert_eq!(names.map(|name| apart.short(name)), shown);
        }
    }

    #[test]
    fn texts_fit_into_columns_whatever_they_are_made_of() {
        for (text, width, shown) in [
            ("short", 10, "short"),
            ("exactly", 7, "exactly"),
            ("longer text", 7, "longer…"),
            ("文件文件", 5, "文件…"),
            ("文件文件", 4, "文…"),
            ("x", 0, ""),
            ("", 0, ""),
        ] {
            assert_eq!(clip(text, width), shown, "{text:?} in {width}");
        }
        for (text, width, shown) in [
            ("/a/long/path.rs", 8, "…path.rs"),
            ("/a/b", 8, "/a/b"),
            ("/a b c d e", 4, "/a …"),
            ("/a/b/c", 0, ""),
        ] {
            assert_eq!(clip_path(text, width), shown, "{text:?} in {width}");
        }
        assert_eq!(pad("文", 4), "文  ");
        assert_eq!(one_line(" a\n\tb \u{1b}[0m"), "a b \\u{1b}[0m");
        assert_eq!(one_line(&"é".repeat(PREVIEW_BYTES_MAX)).len(), PREVIEW_BYTES_MAX);
    }
}
