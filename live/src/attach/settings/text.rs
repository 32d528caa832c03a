//! The text of settings, edited in place. Pure.
//!
//! ```text
//! text   { // mine           plain  {                    both have the same bytes at the same places
//!          "a": 1 }                   "a": 1 }           but for blanks where a comment stands
//! ```
//!
//! Members are found in the plain text, and bytes are taken from the text itself: comments stay where they stand.

use std::borrow::Cow;
use std::ops::Range;

use acpdb_hosts::import::json::{members, quoted, range_in};
use serde_json::Value;

use super::{JsonNode, SettingsError};
use crate::host::Host;

/// Settings that are a JSON object.
pub(super) struct SettingsText<'a> {
    text: &'a str,
    plain: Cow<'a, str>,
}

impl<'a> SettingsText<'a> {
    /// # Errors
    /// If the host would not understand the text.
    pub(super) fn of(text: &'a str, host: Host) -> Result<Self, SettingsError> {
        if text.starts_with('\u{feff}') {
            return Err(SettingsError::Mark);
        }
        // Others leave settings with comments aside, and so their hooks.
        let plain = if host == Host::GeminiCli { without_comments(text) } else { Cow::Borrowed(text) };
        if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&plain) {
            return Err(SettingsError::NotJson(error.to_string()));
        }
        Ok(Self { text, plain })
    }

    /// The members in their order, with their texts.
    pub(super) fn members(&self) -> Result<Vec<(String, &str)>, SettingsError> {
        members(&self.plain).ok_or(SettingsError::NoObject)
    }

    /// The last member of this name: the others do not count.
    pub(super) fn place_of(&self, name: &str) -> Result<Option<usize>, SettingsError> {
        Ok(self.members()?.iter().rposition(|(known, _)| known == name))
    }

    /// The value of a member, with blanks for comments.
    pub(super) fn value(&self, name: &str) -> Result<Option<&str>, SettingsError> {
        Ok(self.members()?.into_iter().rev().find(|(known, _)| known == name).map(|(_, value)| value))
    }

    pub(super) fn has_comments(&self) -> bool {
        self.plain != self.text
    }

    /// Whether comments stand in `value`, but in no part of it that is kept.
    pub(super) fn loses(&self, value: &str, parts: &[(String, JsonNode<'_>)]) -> bool {
        let bytes = |part: &str| {
            let range = range_in(&self.plain, part).unwrap_or_default();
            let (text, plain) = (self.text.as_bytes().get(range.clone()), self.plain.as_bytes().get(range));
            let pairs = text.unwrap_or_default().iter().zip(plain.unwrap_or_default());
            pairs.filter(|(one, other)| one != other).count()
        };
        let kept: usize = parts.iter().map(|(_, node)| sum_of_kept(node, &bytes)).sum();
        self.has_comments() && bytes(value) != kept
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

    /// The text without a member.
    pub(super) fn without(&self, name: &str) -> Result<String, SettingsError> {
        let settings = self.members()?;
        let place = settings.iter().rposition(|(known, _)| known == name);
        let end_of = |place: usize| self.range_of(&settings, place).map(|range| range.end);
        let open = || self.plain.find('{').map(|place| place + 1);
        let (Some(place), Some(range)) = (place, place.and_then(|place| self.range_of(&settings, place)))
        else {
            return Ok(self.text.to_owned());
        };
        let Some(before) = place.checked_sub(1).map_or_else(open, end_of) else {
            return Ok(self.text.to_owned());
        };
        let mut end = range.end;
        let comments = self.text.get(before..self.comments_end(before..range.start)).unwrap_or_default();
        let rest = self.plain.get(end..).unwrap_or_default();
        // The comma before the member goes; for the first member, the comma behind it.
        if place > 0 {
            // Settings on one line had the closing brace there, too.
            let is_on_line = self.text.get(..before).is_some_and(|before| !before.contains('\n'));
            if is_on_line
                && rest.trim_start().starts_with('}')
                && self.comments_end(end..self.text.len()) == end
            {
                end += rest.len() - rest.trim_start().len();
            }
            let gone = self.plain.get(before..range.start).and_then(|gap| gap.find(','));
            let (first, second) = match gone.and_then(|comma| comments.split_at_checked(comma)) {
                Some((first, second)) => (first, second.strip_prefix(',').unwrap_or(second)),
                None => (comments, ""),
            };
            return Ok(self.spliced(before..end, &[first, second].concat()));
        }
        let end = rest.find(',').map_or(end, |comma| end + comma + 1);
        Ok(self.spliced(before..end, comments))
    }

    /// The end of the last comment in a range; its start if there is none.
    fn comments_end(&self, range: Range<usize>) -> usize {
        let (text, plain) = (self.text.as_bytes(), self.plain.as_bytes());
        let last = range.clone().rev().find(|place| text.get(*place) != plain.get(*place));
        last.map_or(range.start, |place| place + 1)
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
fn sum_of_kept(node: &JsonNode<'_>, bytes: &dyn Fn(&str) -> usize) -> usize {
    match node {
        JsonNode::Kept(part) => bytes(part),
        JsonNode::Made(_) => 0,
        JsonNode::List(list) => list.iter().map(|node| sum_of_kept(node, bytes)).sum(),
        JsonNode::Object(list) => list.iter().map(|(_, node)| sum_of_kept(node, bytes)).sum(),
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

/// A text with blanks in place of each byte of a comment, line ends apart.
fn without_comments(text: &str) -> Cow<'_, str> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let length = match sign {
            '"' => end_of_string(rest),
            '/' if rest.starts_with("//") => rest.find(['\n', '\r']).unwrap_or(rest.len()),
            // One without an end is left, and is no JSON.
            '/' if rest.starts_with("/*") => {
                rest.get(2..).and_then(|rest| rest.find("*/")).map_or(1, |end| end + 4)
            }
            sign => sign.len_utf8(),
        };
        let (part, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if sign == '/' && length > 1 {
            plain.extend(
                part.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' }),
            );
        } else {
            plain.push_str(part);
        }
        rest = behind;
    }
    if plain == text { Cow::Borrowed(text) } else { Cow::Owned(plain) }
}

/// Bytes of the string at the start of a text.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, sign) in text.char_indices().skip(1) {
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return place + 1,
            _ => {}
        }
    }
    text.len()
}
