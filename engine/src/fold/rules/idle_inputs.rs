//! Idle inputs: the long parameters of a call that changes no file step aside some turns later.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening};
use crate::fold::policy_values::Ages;
use crate::event::ToolClass;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_inputs",
    figure: "Idle Inputs",
    reason: "the parameters of a call are set aside after some turns",
    leaves: |_| Leaves::ShownParams,
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.inputs", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::all(40))];

fn turns(_: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    let classes = [ToolClass::Read, ToolClass::Search, ToolClass::Delete, ToolClass::Other];
    ages.turns(resting.tokens).filter(|_| resting.is_input_of(&classes))
}
