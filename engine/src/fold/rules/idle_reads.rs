//! Idle reads: the output of a read steps aside when no call has touched the file for some turns.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening, TEXT_ASIDE};
use crate::fold::policy_values::Ages;
use crate::event::ToolClass;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_reads",
    figure: "Idle Reads",
    reason: "a read is set aside after some turns without a touch of its file",
    leaves: |_| Leaves::Text(TEXT_ASIDE),
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.reads", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::of(30, 80, 80))];

fn turns(_: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    ages.turns(resting.tokens).filter(|_| resting.is_output_of(ToolClass::Read))
}
