//! Compress reasoning: long reasoning of some age keeps its beginning and its conclusions.
//!
//! ```text
//! leading lines  [... N lines of reasoning compressed ...]  telling and last lines  [Thinking compressed ..]
//! ```

use std::fmt::Write as _;
use std::sync::Arc;

use super::Look;
use super::shorten::{
    Acts, Cuts, Cutting, ShortenedContent, Shortening, Subject, TextCut, fitting, lines_of_long, whole_tokens,
};
use crate::event::Face;
use crate::fold::facts::ItemKind;
use crate::fold::policy_values::{Ages, Policy};

/// Reasoning of this many lines or fewer stays whole.
const LINES_MAX: usize = 10;
/// Leading lines are taken from this many.
const HEAD_LINES_MAX: usize = 20;
/// This many last lines are worth keeping, whatever they say.
const LAST_LINES: usize = 5;
/// Share of the tokens that leading lines may have.
const HEAD_RATIO: f64 = 0.3;
/// Share of the tokens that telling and last lines may have.
const TAIL_RATIO: f64 = 0.5;
/// Tokens of the marks between and behind the lines, at most.
const MARK_TOKENS: u64 = 32;
/// Words of lines that tell a result.
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

pub(crate) const RULE: Shortening = Shortening {
    name: "compress_reasoning",
    figure: "Thinking Compress",
    reason: "long reasoning is compressed after some turns",
    leaves: |_| ShortenedContent::Part(TextCut { by: conclusions, may_go: false }),
    acts: Acts::AtAge {
        face: Face::Output,
        at_birth: false,
        ages: None,
        is_on: |policy, _| policy.compress_reasoning.on,
        age,
    },
};

fn age(look: Look<'_>, subject: &Subject<'_>, _: Ages) -> Option<u32> {
    let rule = &look.policy.compress_reasoning;
    let is_long =
        subject.output.lines > LINES_MAX as u64 && subject.output.tokens > u64::from(rule.max_tokens);
    let meant = subject.item.kind == ItemKind::Reasoning && is_long;
    meant.then_some(rule.turns_min)
}

impl Policy {
    /// Turns after which long reasoning is shortened; `None`: never.
    pub fn reasoning_turns(&self) -> Option<u32> {
        self.compress_reasoning.on.then_some(self.compress_reasoning.turns_min)
    }
}

#[derive(Debug, Clone, Copy)]
struct Conclusions {
    /// Tokens above which reasoning is cut.
    max_tokens: u32,
}

fn conclusions(cutting: &Cutting<'_>) -> Arc<dyn Cuts> {
    Arc::new(Conclusions { max_tokens: cutting.policy.compress_reasoning.max_tokens })
}

impl Cuts for Conclusions {
    fn tokens_max(&self) -> u64 {
        whole_tokens(f64::from(self.max_tokens) * (HEAD_RATIO + TAIL_RATIO)).saturating_add(MARK_TOKENS)
    }

    /// `None`: it is short, no line would be left out, or the result would be longer.
    fn cut(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines = lines_of_long(&text, self.max_tokens, LINES_MAX)?;
        let share = |ratio: f64| f64::from(self.max_tokens) * ratio;
        let head = fitting(lines.iter().take(HEAD_LINES_MAX).copied(), share(HEAD_RATIO), "").len();
        // Fewer lines are all kept.
        let last = lines.len().saturating_sub(LAST_LINES);
        let telling = lines
            .iter()
            .enumerate()
            .skip(head)
            .rev()
            .filter(|(index, line)| *index >= last || is_telling(line))
            .map(|(_, line)| *line);
        let mut tail = fitting(telling, share(TAIL_RATIO), "");
        tail.reverse();
        let left_out = lines.len().checked_sub(head + tail.len()).filter(|count| *count > 0)?;
        let mut short = lines.get(..head)?.join("\n");
        let _ = write!(short, "\n\n[... {left_out} lines of reasoning compressed ...]\n\n");
        short.push_str(&tail.join("\n"));
        short.push_str("\n[Thinking compressed to save context - key points preserved above]");
        (short.len() <= text.len()).then_some(short)
    }
}

fn is_telling(line: &str) -> bool {
    let line = line.to_lowercase();
    TELLING.iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests;
