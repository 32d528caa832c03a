//! Compress reasoning: long reasoning of some age keeps its beginning and its conclusions.

use super::Look;
use super::shorten::{Acts, Leaves, Of, Shortening, Subject};
use crate::event::Face;
use crate::fold::policy_values::Ages;

/// Reasoning of this many lines or fewer stays whole.
const LINES_MAX: u64 = 10;

pub(crate) const RULE: Shortening = Shortening {
    name: "compress_reasoning",
    figure: "Thinking Compress",
    reason: "long reasoning is compressed after some turns",
    leaves: |_| Leaves::Conclusions,
    acts: Acts::AtAge { face: Face::Output, ages: None, of: Of::LongReasoning { lines_max: LINES_MAX }, age },
};

fn age(look: Look<'_>, subject: Subject, _: Ages) -> Option<u32> {
    let rule = &look.policy.compress_reasoning;
    let long = subject.output.tokens > u64::from(rule.max_tokens);
    (rule.on && long).then_some(rule.turns_min)
}
