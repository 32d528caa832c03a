//! Idle writes: the text of a write steps aside when no call has touched the file for many turns.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening};
use crate::fold::policy_values::Ages;
use crate::event::ToolClass;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_writes",
    figure: "Idle Writes",
    reason: "the parameters of a write are set aside after many turns without a touch of its file",
    leaves: |_| Leaves::ShownParams,
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.writes", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::all(80))];

fn turns(_: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    ages.turns(resting.tokens).filter(|_| resting.is_input_of(&[ToolClass::Write]))
}
