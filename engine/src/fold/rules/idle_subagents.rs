//! Idle subagents: the answer of a subagent steps aside some turns after it came.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening, TEXT_ASIDE};
use crate::fold::policy_values::Ages;
use crate::event::Face;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_subagents",
    figure: "Idle Subagents",
    reason: "an answer of a subagent is set aside after some turns",
    leaves: |_| Leaves::Text(TEXT_ASIDE),
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.subagents", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::all(60))];

/// Tools that start a subagent and give its answer, in any case of letters.
const TOOLS: &[&str] =
    &["task", "agent", "subagent", "run_subagent", "dispatch_agent", "spawn_agent", "delegate_to_agent"];

fn turns(_: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    let named = |tool: &&str| tool.eq_ignore_ascii_case(resting.tool);
    let meant = resting.face == Face::Output && TOOLS.iter().any(named);
    ages.turns(resting.tokens).filter(|_| meant)
}
