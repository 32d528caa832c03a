//! Search lines: a search that the model has read keeps its first lines, and those that name files touched since.
//!
//! ```text
//! leading lines  lines that name a file  [... N more lines left out: search again]
//! ```

use std::fmt::Write as _;
use std::sync::Arc;

use super::Look;
use super::shorten::{Acts, AgesKey, Cuts, Cutting, ShortenedContent, Shortening, Subject, TextCut, fitting};
use crate::event::{Face, ToolClass};
use crate::fold::policy_values::Ages;

/// Tokens that leading lines may have.
const HEAD_TOKENS_MAX: u32 = 100;
/// Tokens that lines which name a file may have.
const NAMED_TOKENS_MAX: u32 = 100;
/// Tokens of the result, at most: its lines, and the marks between them.
const TOKENS_MAX: u64 = HEAD_TOKENS_MAX as u64 + NAMED_TOKENS_MAX as u64 + 24;

pub(crate) const RULE: Shortening = Shortening {
    name: "search_lines",
    figure: "Search Lines",
    reason: "a search keeps its first lines and those that name files touched since",
    leaves: |_| ShortenedContent::Part(TextCut { by: first_and_touched, may_go: true }),
    acts: Acts::AtAge {
        face: Face::Output,
        at_birth: false,
        ages: Some(AgesKey { key: "idle.search_lines", presets: PRESETS }),
        is_on: |_, ages| ages != Ages::default(),
        age,
    },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::of(2, 2, 0))];

fn age(look: Look<'_>, subject: &Subject<'_>, ages: Ages) -> Option<u32> {
    let is_search = || look.call(subject.ix).is_some_and(|call| call.class == ToolClass::Search);
    if !subject.is_completed || !is_search() {
        return None;
    }
    let tokens = subject.output.tokens;
    let is_long = tokens > TOKENS_MAX && tokens >= u64::from(look.policy.idle.tokens_min);
    let turns = ages.turns(tokens)?;
    let meant = is_long && !look.steers(subject.ix);
    meant.then_some(turns)
}

#[derive(Debug)]
struct FirstAndTouched {
    /// Paths of files, as calls named them.
    files: Vec<String>,
}

fn first_and_touched(cutting: &Cutting<'_>) -> Arc<dyn Cuts> {
    Arc::new(FirstAndTouched { files: cutting.files_touched_since() })
}

impl Cuts for FirstAndTouched {
    fn tokens_max(&self) -> u64 {
        TOKENS_MAX
    }

    /// The leading lines, and those behind them that name one of the files. `None`: no line would be left out, or the result
    /// would be longer.
    fn cut(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines: Vec<&str> = text.split('\n').collect();
        let head = fitting(lines.iter().copied(), HEAD_TOKENS_MAX.into(), "").len();
        let behind = lines.get(head..)?;
        let is_named = |line: &&str| self.files.iter().any(|file| names_file(line, file));
        let named = fitting(behind.iter().copied().filter(is_named), NAMED_TOKENS_MAX.into(), "");
        let left_out = behind.len().checked_sub(named.len()).filter(|count| *count > 0)?;
        let mut short = lines.get(..head)?.join("\n");
        for line in named {
            short.push('\n');
            short.push_str(line);
        }
        let _ = write!(short, "\n[... {left_out} more lines left out: search again]");
        (short.len() <= text.len()).then_some(short)
    }
}

/// Whether a line begins with the path of a file, with or without the folders before it: `src/a.rs:3:text`, `/p/src/a.rs`,
/// `./a.rs`.
fn names_file(line: &str, file: &str) -> bool {
    let line = line.trim_start();
    let path = line.split(':').next().unwrap_or(line).trim_end();
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_end = |whole: &str, end: &str| {
        whole.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
    };
    !path.is_empty() && (is_end(file, path) || is_end(path, file))
}

#[cfg(test)]
mod tests;
