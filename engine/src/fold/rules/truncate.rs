//! Truncate: a long output of some age keeps its head and its tail.

use super::Shortening;
use crate::fold::history::ShortenKind;

/// Outputs of this many lines or fewer stay whole.
const LINES_MAX: u64 = 20;

pub(crate) const RULE: Shortening = Shortening {
    kind: ShortenKind::Truncate,
    age: |look, subject| {
        let rule = &look.policy.truncate;
        let long = subject.output.tokens > u64::from(rule.max_tokens) && subject.output.lines > LINES_MAX;
        let meant = rule.on && subject.completed && long && rule.tools.is_match(look.facts.tool(subject.ix));
        meant.then_some(rule.turns_min)
    },
};
