//! Idle superseded: the long parameters of a write or an edit that a newer call superseded step aside when no call has
//! touched the file for some turns. Taking them at once would save more, and take away twice as much that the model still uses.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening};
use crate::fold::policy_values::Ages;
use crate::event::ToolClass;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_superseded",
    figure: "Idle Superseded",
    reason: "the parameters of a superseded change are set aside after some turns without a touch of the file",
    leaves: |_| Leaves::ShownParams,
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.superseded", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::all(40))];

fn turns(_: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    let meant = resting.is_superseded && resting.is_input_of(&[ToolClass::Write, ToolClass::Edit]);
    ages.turns(resting.tokens).filter(|_| meant)
}
