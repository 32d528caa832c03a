//! Compress reasoning: long reasoning of some age keeps its beginning and its conclusions.

use super::Look;
use super::shorten::{Acts, Leaves, Shortening, Subject};
use crate::event::Face;
use crate::fold::facts::ItemKind;
use crate::fold::policy_values::Ages;

/// Reasoning of this many lines or fewer stays whole.
const LINES_MAX: u64 = 10;

pub(crate) const RULE: Shortening = Shortening {
    name: "compress_reasoning",
    figure: "Thinking Compress",
    reason: "long reasoning is compressed after some turns",
    leaves: |_| Leaves::Conclusions,
    acts: Acts::AtAge { face: Face::Output, ages: None, age },
};

fn age(look: Look<'_>, subject: Subject, _: Ages) -> Option<u32> {
    let rule = &look.policy.compress_reasoning;
    let item = look.facts.item(subject.ix)?;
    let long = subject.output.tokens > u64::from(rule.max_tokens) && subject.output.lines > LINES_MAX;
    (rule.on && item.kind == ItemKind::Reasoning && long).then_some(rule.turns_min)
}
