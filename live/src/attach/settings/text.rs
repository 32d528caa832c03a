//! The text of settings, edited in place. Pure.
//!
//! Members are found in a plain text, with blanks for comments, and bytes are taken from the text itself. Comments stay where they
//! stand, even if all around them goes.

use std::borrow::Cow;
use std::ops::Range;

use acpdb_hosts::import::json::comments::{blanked, comments};
use acpdb_hosts::import::json::{members, quoted, range_in};
use serde_json::Value;

use super::{JsonNode, SettingsError};
use crate::host::Host;

/// Settings that are a JSON object.
pub(super) struct SettingsText<'a> {
    text: &'a str,
    plain: Cow<'a, str>,
    comments: Vec<Range<usize>>,
}

impl<'a> SettingsText<'a> {
    /// # Errors
    /// If the host would not understand the text.
    pub(super) fn of(text: &'a str, host: Host) -> Result<Self, SettingsError> {
        if text.starts_with('\u{feff}') {
            return Err(SettingsError::Mark);
        }
        let comments = if host.takes_comments() { comments(text) } else { Vec::new() };
        let plain = blanked(text, &comments);
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&plain) {
            return Err(SettingsError::NotJson(error.to_string()));
        }
        Ok(Self { text, plain, comments })
    }

    /// The members in their order, with their texts.
    pub(super) fn members(&self) -> Result<Vec<(String, &str)>, SettingsError> {
        members(&self.plain).ok_or(SettingsError::NoObject)
    }

    /// The value of a member, with blanks for comments.
    pub(super) fn value(&self, name: &str) -> Result<Option<&str>, SettingsError> {
        Ok(self.members()?.into_iter().rev().find(|(known, _)| known == name).map(|(_, value)| value))
    }

    pub(super) const fn has_comments(&self) -> bool {
        !self.comments.is_empty()
    }

    /// Whether comments stand in `value`, but in no part of it that is kept.
    pub(super) fn loses(&self, value: &str, parts: &[(String, JsonNode<'_>)]) -> bool {
        let count = |part: &str| self.comments_in(range_in(&self.plain, part).unwrap_or_default()).count();
        let kept: usize = parts.iter().map(|(_, node)| sum_of_kept(node, &count)).sum();
        count(value) != kept
    }

    /// The text with a member that has this value; no other byte is changed.
    pub(super) fn put(&self, name: &str, value: &JsonNode<'_>) -> Result<String, SettingsError> {
        let settings = self.members()?;
        let indent = self.indent(&settings);
        let mut out = String::new();
        let place = settings.iter().rposition(|(known, _)| known == name);
        if let Some(range) = place.and_then(|place| self.range_of(&settings, place)) {
            self.print(&mut out, value, indent, 1);
            return Ok(self.spliced(range, &out));
        }
        let open = self.plain.find('{').map_or(0, |place| place + 1);
        let last = settings.len().checked_sub(1).and_then(|place| self.range_of(&settings, place));
        let (start, comma) = last.map_or((open, ""), |range| (range.end, ","));
        let end = self.plain.rfind('}').unwrap_or(self.plain.len());
        // Comments behind the last member stay with it.
        let comments = self.comments_end(start..end);
        out.push_str(comma);
        out.push_str(self.text.get(start..comments).unwrap_or_default());
        line(&mut out, indent, 1);
        print_name(&mut out, name);
        self.print(&mut out, value, indent, 1);
        // The closing brace stands on a line of its own.
        let is_on_line = self.text.get(comments..end).is_some_and(|rest| !rest.contains('\n'));
        if is_on_line {
            line(&mut out, indent, 0);
        }
        let end = if is_on_line { end } else { comments };
        Ok(self.spliced(start..end, &out))
    }

    /// The text without a member. Comments between its name and its value, and up to the commas around it, stay.
    pub(super) fn without(&self, name: &str) -> Result<String, SettingsError> {
        let settings = self.members()?;
        let place = settings.iter().rposition(|(known, _)| known == name);
        let Some((place, range)) = place.and_then(|place| Some((place, self.range_of(&settings, place)?)))
        else {
            return Ok(self.text.to_owned());
        };
        let before = place.checked_sub(1).and_then(|place| self.range_of(&settings, place));
        let open = self.plain.find('{').map_or(0, |place| place + 1);
        let (start, mut end) = (before.as_ref().map_or(open, |before| before.end), range.end);
        let rest = self.plain.get(end..).unwrap_or_default();
        // The comma before the member goes; for the first member, the comma behind it.
        if before.is_none() {
            end = rest.find(',').map_or(end, |comma| end + comma + 1);
        } else {
            // Settings on one line had the closing brace there, too.
            let is_on_line = self.text.get(..start).is_some_and(|before| !before.contains('\n'));
            let space = self.text.get(end..).unwrap_or_default();
            let space = space.len() - space.trim_start().len();
            if is_on_line && rest.get(space..).is_some_and(|rest| rest.starts_with('}')) {
                end += space;
            }
        }
        let rest = self.text.get(end..).unwrap_or_default();
        let mut out = self.text.get(..start).unwrap_or_default().to_owned();
        let mut is_open = false;
        for part in self.comments_in(start..end).map(|comment| self.with_space(start, comment)).chain([rest])
        {
            // The comment before it goes to the end of its line.
            if is_open && !part.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']) {
                out.push('\n');
            }
            out.push_str(part);
            is_open = part.trim_start().starts_with("//");
        }
        Ok(out)
    }

    /// The comments in a range.
    fn comments_in(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &Range<usize>> {
        self.comments.iter().filter(move |comment| range.start <= comment.start && comment.end <= range.end)
    }

    /// A comment with the white space before it, from `start` on.
    fn with_space(&self, start: usize, comment: &Range<usize>) -> &str {
        let before = self.text.get(start..comment.start).unwrap_or_default();
        self.text.get(start + before.trim_end().len()..comment.end).unwrap_or_default()
    }

    /// The end of the last comment in a range; its start if there is none.
    fn comments_end(&self, range: Range<usize>) -> usize {
        self.comments_in(range.clone()).next_back().map_or(range.start, |comment| comment.end)
    }

    fn range_of(&self, settings: &[(String, &str)], place: usize) -> Option<Range<usize>> {
        settings.get(place).and_then(|(_, value)| range_in(&self.plain, value))
    }

    fn spliced(&self, range: Range<usize>, new: &str) -> String {
        let (before, behind) = (self.text.get(..range.start), self.text.get(range.end..));
        [before.unwrap_or_default(), new, behind.unwrap_or_default()].concat()
    }

    /// The white space before the first member on its line; two blanks if it stands on the line of the brace.
    fn indent(&self, settings: &[(String, &str)]) -> &str {
        let open = self.plain.find('{').map_or(0, |place| place + 1);
        let rest = self.plain.get(open..).unwrap_or_default();
        let space = rest.len() - rest.trim_start().len();
        let found = rest.get(..space).and_then(|space| space.rsplit_once('\n')).map(|(_, indent)| indent);
        found.filter(|indent| !settings.is_empty() && !indent.is_empty()).unwrap_or("  ")
    }

    /// JSON as people write it; kept parts stay as they stood, with their comments.
    fn print(&self, out: &mut String, node: &JsonNode<'_>, indent: &str, depth: usize) {
        let (list, braces): (Vec<(Option<&str>, &JsonNode<'_>)>, _) = match node {
            JsonNode::Kept(part) => {
                let own = range_in(&self.plain, part).and_then(|range| self.text.get(range));
                return out.push_str(own.unwrap_or(part));
            }
            JsonNode::Made(value) => {
                // Values that are made here have no line break within a text.
                let text = pretty(value, indent);
                return out.push_str(&text.replace('\n', &format!("\n{}", indent.repeat(depth))));
            }
            JsonNode::List(list) => (list.iter().map(|node| (None, node)).collect(), ('[', ']')),
            JsonNode::Object(list) => {
                (list.iter().map(|(name, node)| (Some(&**name), node)).collect(), ('{', '}'))
            }
        };
        out.push(braces.0);
        for (place, (name, node)) in list.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            line(out, indent, depth + 1);
            if let Some(name) = name {
                print_name(out, name);
            }
            self.print(out, node, indent, depth + 1);
        }
        if !list.is_empty() {
            line(out, indent, depth);
        }
        out.push(braces.1);
    }
}

/// The sum over the parts that stay as they stood.
fn sum_of_kept(node: &JsonNode<'_>, count: &dyn Fn(&str) -> usize) -> usize {
    match node {
        JsonNode::Kept(part) => count(part),
        JsonNode::Made(_) => 0,
        JsonNode::List(list) => list.iter().map(|node| sum_of_kept(node, count)).sum(),
        JsonNode::Object(list) => list.iter().map(|(_, node)| sum_of_kept(node, count)).sum(),
    }
}

fn line(out: &mut String, indent: &str, depth: usize) {
    out.push('\n');
    out.push_str(&indent.repeat(depth));
}

fn print_name(out: &mut String, name: &str) {
    out.push_str(&quoted(name));
    out.push_str(": ");
}

fn pretty(value: &Value, indent: &str) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    // Writing values into memory cannot fail.
    let _ = serde::Serialize::serialize(value, &mut serializer);
    String::from_utf8(out).unwrap_or_default()
}
