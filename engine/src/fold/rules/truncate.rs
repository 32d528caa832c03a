//! Truncate: a long output of some age keeps its head and its tail.

use super::Look;
use super::shorten::{Acts, Leaves, Of, Shortening, Subject};
use crate::event::Face;
use crate::fold::policy_values::Ages;

/// Outputs of this many lines or fewer stay whole.
const LINES_MAX: u64 = 20;

pub(crate) const RULE: Shortening = Shortening {
    name: "truncate",
    figure: "Truncation",
    reason: "long outputs are cut in the middle after some turns",
    leaves: |_| Leaves::HeadAndTail,
    acts: Acts::AtAge { face: Face::Output, ages: None, of: Of::LongOutputs { lines_max: LINES_MAX }, age },
};

fn age(look: Look<'_>, subject: Subject, _: Ages) -> Option<u32> {
    let rule = &look.policy.truncate;
    let long = subject.output.tokens > u64::from(rule.max_tokens);
    let meant = rule.on && long && rule.tools.is_match(look.facts.tool(subject.ix));
    meant.then_some(rule.turns_min)
}
