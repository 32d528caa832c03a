//! Shorter texts in place of long ones: what a shortened face says, and the short forms in replies.
//!
//! ```text
//! truncate            leading lines  [... N lines truncated ..]  trailing lines
//! first_and_named     leading lines  lines that name a file  [... N more lines ..]
//! compress_reasoning  leading lines  [... N lines of reasoning ..]  telling and last lines  [Thinking compressed ..]
//! purge_input         {"filePath":"/a","content":"[input removed due to failed tool call]"}
//! ShownParams         read({filePath: "/src/app.ts"}) → completed
//! ```
//!
//! Lines are cut at line feeds and measured one by one with [`estimate`]. None of these texts is longer (in bytes)
//! than what it replaces: where it would be, or where nothing is left out, the answer is `None` and the whole is
//! shown. *When* to shorten is a matter of policy and not decided here.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::json::string_spans;
use super::{Json, estimate, write_json_string};

/// Tokens that leading lines of a list may have.
const LISTED_HEAD_TOKENS_MAX: u32 = 100;
/// Tokens that lines of a list which name a file may have.
const LISTED_NAMED_TOKENS_MAX: u32 = 100;
/// Tokens of a list that was cut, at most: its lines, and the marks between them.
pub(crate) const LISTED_TOKENS_MAX: u32 = LISTED_HEAD_TOKENS_MAX + LISTED_NAMED_TOKENS_MAX + 24;

/// What stands in place of a long string in the input of a failed call.
pub const PURGE_MARK: &str = "[input removed due to failed tool call]";

/// Outputs of at most this many lines are not truncated.
const TRUNCATE_LINES_MIN: usize = 20;
/// Reasoning of at most this many lines is not compressed.
const REASONING_LINES_MIN: usize = 10;
/// Leading lines of reasoning are taken from this many.
const REASONING_HEAD_LINES_MAX: usize = 20;
/// This many last lines of reasoning are worth keeping, whatever they say.
const REASONING_LAST_LINES: usize = 5;
/// Share of the tokens that leading lines of reasoning may have.
const REASONING_HEAD_RATIO: f64 = 0.3;
/// Share of the tokens that telling and last lines of reasoning may have.
const REASONING_TAIL_RATIO: f64 = 0.5;
/// Words of lines that tell what came of it.
const TELLING: [&str; 10] = [
    "conclusion",
    "therefore",
    "the answer",
    "in summary",
    "key point",
    "important",
    "decision",
    "approach",
    "solution",
    "result",
];
/// Strings of params are shown up to this many characters.
const SHOWN_CHARACTERS_MAX: usize = 50;

/// How much of a long output stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TruncateSettings {
    /// Tokens above which an output is truncated.
    pub max_tokens: u32,
    /// Share of `max_tokens` that leading lines may have, 0 to 1.
    pub head_ratio: f64,
    /// Share of `max_tokens` that trailing lines may have, 0 to 1.
    pub tail_ratio: f64,
}

impl Default for TruncateSettings {
    fn default() -> Self {
        Self { max_tokens: 2000, head_ratio: 0.4, tail_ratio: 0.4 }
    }
}

/// Leaves out the middle lines of a long output.
///
/// `None`: it is short (in tokens, or at most 20 lines), no line would be left out, or the result would be longer.
pub fn truncate(text: &str, settings: &TruncateSettings) -> Option<String> {
    if estimate(text.as_bytes()) <= settings.max_tokens {
        return None;
    }
    let lines: Vec<&str> = text.split('\n').collect();
    if lines.len() <= TRUNCATE_LINES_MIN {
        return None;
    }
    let mut room = Room::share(settings.max_tokens, settings.head_ratio);
    let head = lines.iter().take_while(|line| room.take(line)).count();
    let behind = lines.get(head..)?;
    let mut room = Room::share(settings.max_tokens, settings.tail_ratio);
    let tail = behind.iter().rev().take_while(|line| room.take(line)).count();
    let left_out = behind.len().checked_sub(tail).filter(|count| *count > 0)?;
    let mark = format!("\n\n[... {left_out} lines truncated to save context ...]\n\n");
    let short = [lines.get(..head)?.join("\n"), mark, behind.get(left_out..)?.join("\n")].concat();
    (short.len() <= text.len()).then_some(short)
}

/// Leaves out lines of long reasoning, but for its beginning, its end, and lines that tell what came of it.
///
/// `None`: it is short (in tokens, or at most 10 lines), no line would be left out, or the result would be longer.
pub fn compress_reasoning(text: &str, max_tokens: u32) -> Option<String> {
    if estimate(text.as_bytes()) <= max_tokens {
        return None;
    }
    let lines: Vec<&str> = text.split('\n').collect();
    if lines.len() <= REASONING_LINES_MIN {
        return None;
    }
    let mut room = Room::share(max_tokens, REASONING_HEAD_RATIO);
    let head = lines.iter().take(REASONING_HEAD_LINES_MAX).take_while(|line| room.take(line)).count();
    // Fewer lines are all kept.
    let last = lines.len().saturating_sub(REASONING_LAST_LINES);
    let mut room = Room::share(max_tokens, REASONING_TAIL_RATIO);
    let mut tail: Vec<&str> = lines
        .iter()
        .enumerate()
        .skip(head)
        .rev()
        .filter(|(index, line)| *index >= last || is_telling(line))
        .map(|(_, line)| *line)
        .take_while(|line| room.take(line))
        .collect();
    tail.reverse();
    let left_out = lines.len().checked_sub(head + tail.len()).filter(|count| *count > 0)?;
    let mut short = lines.get(..head)?.join("\n");
    let _ = write!(short, "\n\n[... {left_out} lines of reasoning compressed ...]\n\n");
    short.push_str(&tail.join("\n"));
    short.push_str("\n[Thinking compressed to save context - key points preserved above]");
    (short.len() <= text.len()).then_some(short)
}

/// The leading lines of a list, such as a search gives, and those behind them that name one of `files`.
///
/// A line names a file if it begins with its path, with or without the folders before it. `None`: no line would be left out,
/// or the result would be longer.
pub fn first_and_named(text: &str, files: &[String]) -> Option<String> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut room = Room::share(LISTED_HEAD_TOKENS_MAX, 1.0);
    let head = lines.iter().take_while(|line| room.take(line)).count();
    let mut room = Room::share(LISTED_NAMED_TOKENS_MAX, 1.0);
    let behind = lines.get(head..)?;
    let is_named = |line: &&&str| files.iter().any(|file| names_file(line, file));
    let named: Vec<&str> =
        behind.iter().filter(is_named).take_while(|line| room.take(line)).copied().collect();
    let left_out = behind.len().checked_sub(named.len()).filter(|count| *count > 0)?;
    let mut short = lines.get(..head)?.join("\n");
    for line in named {
        short.push('\n');
        short.push_str(line);
    }
    let _ = write!(short, "\n[... {left_out} more lines left out: search again]");
    (short.len() <= text.len()).then_some(short)
}

/// Whether a line begins with the path of a file: `src/a.rs:3:text`, `/p/src/a.rs`, `./a.rs`.
fn names_file(line: &str, file: &str) -> bool {
    let line = line.trim_start();
    let path = line.split(':').next().unwrap_or(line).trim_end();
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_end = |whole: &str, end: &str| {
        whole.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
    };
    !path.is_empty() && (is_end(file, path) || is_end(path, file))
}

fn is_telling(line: &str) -> bool {
    let line = line.to_lowercase();
    TELLING.iter().any(|word| line.contains(word))
}

/// Tokens that lines may still use.
struct Room {
    used: f64,
    max: f64,
}

impl Room {
    fn share(max_tokens: u32, ratio: f64) -> Self {
        Self { used: 0.0, max: f64::from(max_tokens) * ratio }
    }

    /// Takes the line in, if there is room for it.
    fn take(&mut self, line: &str) -> bool {
        self.used += f64::from(estimate(line.as_bytes()));
        self.used <= self.max
    }
}

/// The params of a failed call with [`PURGE_MARK`] in place of every string value longer than it, at any depth.
///
/// All else keeps its spelling: keys, order, numbers, white space. Params that are not JSON count as one string.
/// `None`: no string is that long.
pub fn purge_input(params: &[u8]) -> Option<String> {
    // As the text above says: what is no JSON counts as one string.
    let spans = std::str::from_utf8(params).ok().and_then(|text| Some((text, string_spans(text).ok()?)));
    let Some((text, spans)) = spans else {
        return (params.len() > PURGE_MARK.len()).then(|| PURGE_MARK.to_owned());
    };
    let mut purged = String::new();
    let mut copied = 0;
    for (span, _) in spans.iter().filter(|(_, value)| value.to_lossy().len() > PURGE_MARK.len()) {
        purged.push_str(text.get(copied..span.start)?);
        write_json_string(&mut purged, PURGE_MARK);
        copied = span.end;
    }
    if copied == 0 {
        return None;
    }
    purged.push_str(text.get(copied..)?);
    Some(purged)
}

/// The few params by which a reader recognises a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShownParams {
    /// Name and value, the value as JSON.
    fields: Vec<(String, String)>,
}

/// Picks the params to show: those called `names`, in this order; without names the first two canonical ones.
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

    /// The shown params as a JSON object.
    pub fn object_json(&self) -> String {
        let mut object = String::from("{");
        for (index, (name, value)) in self.fields.iter().enumerate() {
            if index > 0 {
                object.push(',');
            }
            write_json_string(&mut object, name);
            object.push(':');
            object.push_str(value);
        }
        object.push('}');
        object
    }
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
