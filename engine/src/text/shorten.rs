//! Short forms of texts in replies and tombstones. Each rule says for itself how it cuts a long text.
//!
//! ```text
//! ShownParams         read({filePath: "/src/app.ts"}) → completed
//! set_aside           {"filePath":"/src/app.ts","content":"[acpdb set aside 512 characters ..]"}
//! clip, label50       the beginning of a text ...
//! preview             Found...files
//! ```

use std::borrow::Cow;

use super::json::string_spans;
use super::{Json, write_json_string};

/// Strings of params are shown up to this many characters.
const SHOWN_CHARACTERS_MAX: usize = 50;
/// Strings of an input that steps aside are kept up to this many bytes: longer than any mark in their place.
const KEPT_BYTES_MAX: usize = 200;

/// The few params by which a reader recognises a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShownParams {
    /// Name and value, the value as JSON.
    fields: Vec<(String, String)>,
}

/// Picks the params to show: the params called `names`, in this order; without names the first two canonical ones.
///
/// Only strings (long ones clipped), numbers and booleans are shown.
pub fn shown_params(params: &Json, names: &[&str]) -> ShownParams {
    let fields = params.sorted_fields();
    let name_of = |key: &str| fields.iter().find(|(name, _)| name.as_str() == Some(key));
    let chosen: Vec<_> = if names.is_empty() {
        fields.iter().take(2).collect()
    } else {
        names.iter().filter_map(|name| name_of(name)).collect()
    };
    let shown = chosen.into_iter().filter_map(|(name, value)| {
        let value = match value {
            Json::Str(text) => {
                let mut shown = String::new();
                write_json_string(&mut shown, &label50(&text.to_lossy()));
                shown
            }
            Json::Written(_, digits) => digits.clone().into_string(),
            Json::Num(_) | Json::Bool(_) => value.canonical(),
            Json::Null | Json::Arr(_) | Json::Obj(_) => return None,
        };
        Some((name.to_lossy().into_owned(), value))
    });
    ShownParams { fields: shown.collect() }
}

impl ShownParams {
    /// `TOOL({k: "v", ..}) → STATUS`; `TOOL() → STATUS` if nothing is shown.
    pub fn call_line(&self, tool: &str, status: &str) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        if fields.is_empty() {
            format!("{tool}() → {status}")
        } else {
            format!("{tool}({{{}}}) → {status}", fields.join(", "))
        }
    }
}

/// An input with a mark in place of each long string, at any depth; `None`: no string is that long.
///
/// Every key stays: a model that sees calls without their required keys makes such calls itself. A mark says that it is no content, for
/// what a model reads in a call it may write into a file.
pub fn set_aside(input: &[u8]) -> Option<String> {
    if input.len() <= KEPT_BYTES_MAX {
        return None;
    }
    marked(input, KEPT_BYTES_MAX, &|text| {
        format!("[acpdb set aside {} characters here; this is not the value]", text.chars().count())
    })
}

/// `input` with `mark` in place of every string value of more than `bytes_max` bytes, at any depth; `None`: no string is that long.
///
/// Everything else keeps its spelling: keys, order, numbers, white space. Bytes that are not JSON count as one string.
pub fn marked(input: &[u8], bytes_max: usize, mark: &dyn Fn(&str) -> String) -> Option<String> {
    // As the text above says: bytes that are not JSON count as one string.
    let spans = std::str::from_utf8(input).ok().and_then(|text| Some((text, string_spans(text).ok()?)));
    let Some((text, spans)) = spans else {
        return (input.len() > bytes_max).then(|| mark(&String::from_utf8_lossy(input)));
    };
    let mut out = String::new();
    let mut copied = 0;
    for (span, value) in &spans {
        let value = value.to_lossy();
        if value.len() > bytes_max {
            out.push_str(text.get(copied..span.start)?);
            write_json_string(&mut out, &mark(&value));
            copied = span.end;
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(text.get(copied..)?);
    Some(out)
}

/// `text`, or as much of its beginning as makes `max` characters with `...` behind it.
pub fn clip(text: &str, max: usize) -> Cow<'_, str> {
    if text.chars().nth(max).is_none() {
        return Cow::Borrowed(text);
    }
    // Fewer than three characters leave the dots alone.
    let kept = characters_end(text, max.saturating_sub(3));
    Cow::Owned(format!("{}...", text.get(..kept).unwrap_or_default()))
}

/// `text` if it has at most 50 characters, else its first 47 and `...`.
pub fn label50(text: &str) -> Cow<'_, str> {
    clip(text, SHOWN_CHARACTERS_MAX)
}

/// `text` if it has at most 10 characters, else its first 5, `...` and its last 5.
pub fn preview(text: &str) -> Cow<'_, str> {
    if text.chars().nth(10).is_none() {
        return Cow::Borrowed(text);
    }
    let first = text.get(..characters_end(text, 5)).unwrap_or_default();
    let last_start = text.char_indices().nth_back(4).map_or(0, |(offset, _)| offset);
    Cow::Owned(format!("{first}...{}", text.get(last_start..).unwrap_or_default()))
}

/// The first three of `texts`, separated by commas, with `...` behind them if there are more.
pub fn first_three<S: AsRef<str>>(texts: &[S]) -> String {
    let shown: Vec<&str> = texts.iter().take(3).map(AsRef::as_ref).collect();
    let more = if texts.len() > shown.len() { "..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Byte offset behind the first `count` characters.
fn characters_end(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(offset, _)| offset)
}

#[cfg(test)]
mod tests;
