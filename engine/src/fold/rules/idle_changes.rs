//! Idle changes: the answer to a write, an edit or a deletion steps aside some turns later.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening, TEXT_ASIDE};
use crate::fold::policy_values::Ages;
use crate::event::ToolClass;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_changes",
    figure: "Idle Changes",
    reason: "the answer to a change of a file is set aside after some turns without a touch of it",
    leaves: |_| Leaves::Text(TEXT_ASIDE),
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.changes", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::all(10))];

fn turns(_: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    let mut classes = [ToolClass::Write, ToolClass::Edit, ToolClass::Delete].into_iter();
    let meant = classes.any(|class| resting.is_output_of(class));
    ages.turns(resting.tokens).filter(|_| meant)
}
