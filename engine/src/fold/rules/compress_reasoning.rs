//! Compress reasoning: long reasoning of some age keeps its beginning and its conclusions.

use super::Shortening;
use crate::fold::facts::ItemKind;
use crate::fold::history::ShortenKind;

/// Reasoning of this many lines or fewer stays whole.
const LINES_MAX: u64 = 10;

pub(crate) const RULE: Shortening = Shortening {
    kind: ShortenKind::CompressReasoning,
    age: |look, subject| {
        let rule = &look.policy.compress_reasoning;
        let item = look.facts.item(subject.ix)?;
        let long = subject.output.tokens > u64::from(rule.max_tokens) && subject.output.lines > LINES_MAX;
        (rule.on && item.kind == ItemKind::Reasoning && long).then_some(rule.turns_min)
    },
};
