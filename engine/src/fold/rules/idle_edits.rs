//! Idle edits: the long parameters of an edit step aside when no call has touched the file for many turns.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening};
use crate::fold::policy_values::Ages;
use crate::event::ToolClass;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_edits",
    figure: "Idle Edits",
    reason: "the parameters of an edit are set aside after many turns without a touch of its file",
    leaves: |_| Leaves::ShownParams,
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.edits", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::all(120))];

fn turns(_: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    ages.turns(resting.tokens).filter(|_| resting.is_input_of(&[ToolClass::Edit]))
}
