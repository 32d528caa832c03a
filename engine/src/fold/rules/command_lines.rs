//! Command lines: a long output of a command line keeps its first lines, those that tell of failures, and its last lines, from the
//! first time that it is sent.
//!
//! ```text
//! leading lines  lines that tell of failures  [... N more lines left out: ..]  trailing lines
//! ```
//!
//! A provider takes twelve times as much for writing a token to its cache as for reading it later: most of what a long output costs
//! a short session is paid with the first request. An output that is cut before it is sent was never in a cache, and no rewrite
//! takes it out. Files that a command line shows stay whole: the model asked for their text.

use std::sync::Arc;

use super::Look;
use super::shorten::{Acts, AgesKey, Cuts, Cutting, ShortenedContent, Shortening, Subject, TextCut, fitting};
use crate::event::{Face, KeyKind, ToolClass};
use crate::fold::policy_values::Ages;
use crate::text::estimate;

/// Outputs of so many tokens or fewer stay whole.
const LONG_TOKENS_MIN: u64 = 1000;
/// Outputs of so many lines or fewer stay whole: of a few long lines hardly one would be left.
const LINES_MAX: u64 = 20;
/// Tokens that leading lines may have.
const HEAD_TOKENS_MAX: u32 = 300;
/// Tokens that lines which tell of failures may have.
const FAILURE_TOKENS_MAX: u32 = 200;
/// Tokens that trailing lines may have: a run ends with what it came to.
const TAIL_TOKENS_MAX: u32 = 300;
/// Tokens of the result, at most: its lines, and the mark between them.
const TOKENS_MAX: u64 = HEAD_TOKENS_MAX as u64 + FAILURE_TOKENS_MAX as u64 + TAIL_TOKENS_MAX as u64 + 24;
const _: () = assert!(TOKENS_MAX < LONG_TOKENS_MIN, "a cut output is shorter than a whole one");

pub(crate) const RULE: Shortening = Shortening {
    name: "command_lines",
    figure: "Command Lines",
    reason: "a long output of a command line keeps its first and last lines, and those that tell of failures",
    leaves: |_| ShortenedContent::Part(TextCut { by: telling_lines, may_go: true }),
    acts: Acts::AtAge {
        face: Face::Output,
        at_birth: true,
        ages: Some(AgesKey { key: "idle.command_lines", presets: PRESETS }),
        is_on: |_, ages| ages != Ages::default(),
        age,
    },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::of(1, 1, 0))];

fn age(look: Look<'_>, subject: &Subject<'_>, ages: Ages) -> Option<u32> {
    let tokens = subject.output.tokens;
    let call = look.call(subject.ix)?;
    let is_long = tokens > LONG_TOKENS_MIN && subject.output.lines > LINES_MAX;
    if !subject.is_completed || call.class != ToolClass::Other || !is_long {
        return None;
    }
    let has = |kind| look.keys(subject.ix).any(|(_, key)| key.kind == kind);
    let turns = ages.turns_from_birth(tokens)?;
    (has(KeyKind::Exec) && !has(KeyKind::File) && !look.steers(subject.ix)).then_some(turns)
}

#[derive(Debug)]
struct TellingLines;

fn telling_lines(_: &Cutting<'_>) -> Arc<dyn Cuts> {
    Arc::new(TellingLines)
}

/// Words of lines that tell of failures, in lower case.
const FAILURES: &[&str] = &[
    "error",
    "fail",
    "panic",
    "exception",
    "traceback",
    "assert",
    "fatal",
    "not found",
    "denied",
    "undefined",
    "cannot",
    "expected",
    "warning",
];

fn tells_of_failure(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    FAILURES.iter().any(|word| line.contains(word))
}

impl Cuts for TellingLines {
    fn tokens_max(&self) -> u64 {
        TOKENS_MAX
    }

    /// `None`: no line would be left out, or the result would be longer.
    fn cut(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.split('\n').collect();
        // Many short lines are mostly line feeds.
        let head = fitting(lines.iter().copied(), HEAD_TOKENS_MAX.into(), "\n").len();
        let behind = lines.get(head..)?;
        let tail = fitting(behind.iter().rev().copied(), TAIL_TOKENS_MAX.into(), "\n").len();
        let (between, tail) = behind.split_at_checked(behind.len().checked_sub(tail)?)?;
        let failures = between.iter().copied().filter(|line| tells_of_failure(line));
        let mut failures = fitting(failures, FAILURE_TOKENS_MAX.into(), "\n");
        loop {
            let left_out = between.len().checked_sub(failures.len()).filter(|count| *count > 0)?;
            let mut short = String::new();
            for line in lines.get(..head)?.iter().chain(&failures) {
                short.push_str(line);
                short.push('\n');
            }
            let mark = format!("[... {left_out} more lines left out: restore it, or run the command again]");
            short.push_str(&mark);
            for line in tail {
                short.push('\n');
                short.push_str(line);
            }
            // Lines that were measured one by one may be a little more together.
            if u64::from(estimate(short.as_bytes())) <= TOKENS_MAX || failures.pop().is_none() {
                return (short.len() <= text.len()).then_some(short);
            }
        }
    }
}

#[cfg(test)]
mod tests;
