//! Truncate: a long output of some age keeps its head and its tail.
//!
//! ```text
//! leading lines  [... N lines truncated to save context ...]  trailing lines
//! ```

use std::sync::Arc;

use super::Look;
use super::shorten::{
    Acts, Cuts, Cutting, ShortenedContent, Shortening, Subject, TextCut, fitting, lines_of_long, whole_tokens,
};
use crate::event::Face;
use crate::fold::policy_values::Ages;

/// Outputs of this many lines or fewer stay whole.
const LINES_MAX: usize = 20;
/// Tokens of the mark between head and tail, at most.
const MARK_TOKENS: u64 = 16;

pub(crate) const RULE: Shortening = Shortening {
    name: "truncate",
    figure: "Truncation",
    reason: "long outputs are cut in the middle after some turns",
    leaves: |_| ShortenedContent::Part(TextCut { by: head_and_tail, may_go: false }),
    acts: Acts::AtAge {
        face: Face::Output,
        at_birth: false,
        ages: None,
        is_on: |policy, _| policy.truncate.on,
        age,
    },
};

fn age(look: Look<'_>, subject: &Subject<'_>, _: Ages) -> Option<u32> {
    let rule = &look.policy.truncate;
    let is_long =
        subject.output.lines > LINES_MAX as u64 && subject.output.tokens > u64::from(rule.max_tokens);
    let meant = subject.is_completed && is_long;
    (meant && rule.tools.is_match(look.facts.tool(subject.ix))).then_some(rule.turns_min)
}

/// How much of a long output stays.
#[derive(Debug, Clone, Copy)]
struct HeadAndTail {
    /// Tokens above which an output is cut.
    max_tokens: u32,
    /// Share of `max_tokens` that leading lines may have, 0 to 1.
    head_ratio: f64,
    /// Share of `max_tokens` that trailing lines may have, 0 to 1.
    tail_ratio: f64,
}

fn head_and_tail(cutting: &Cutting<'_>) -> Arc<dyn Cuts> {
    let rule = &cutting.policy.truncate;
    let (head_ratio, tail_ratio) = (rule.head_ratio, rule.tail_ratio);
    Arc::new(HeadAndTail { max_tokens: rule.max_tokens, head_ratio, tail_ratio })
}

impl Cuts for HeadAndTail {
    fn tokens_max(&self) -> u64 {
        let share = f64::from(self.max_tokens) * (self.head_ratio + self.tail_ratio);
        whole_tokens(share).saturating_add(MARK_TOKENS)
    }

    /// `None`: it is short, no line would be left out, or the result would be longer.
    fn cut(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(bytes);
        let lines = lines_of_long(&text, self.max_tokens, LINES_MAX)?;
        let share = |ratio: f64| f64::from(self.max_tokens) * ratio;
        let head = fitting(lines.iter().copied(), share(self.head_ratio), "").len();
        let behind = lines.get(head..)?;
        let tail = fitting(behind.iter().rev().copied(), share(self.tail_ratio), "").len();
        let left_out = behind.len().checked_sub(tail).filter(|count| *count > 0)?;
        let mark = format!("\n\n[... {left_out} lines truncated to save context ...]\n\n");
        let short = [lines.get(..head)?.join("\n"), mark, behind.get(left_out..)?.join("\n")].concat();
        (short.len() <= text.len()).then_some(short)
    }
}

#[cfg(test)]
mod tests;
