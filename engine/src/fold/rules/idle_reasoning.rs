//! Idle reasoning: the model's reasoning from before an earlier prompt goes, so many prompts later. It goes in whole
//! runs: all reasoning between two prompts, or none of it.

use super::shorten::{Acts, AgesKey, Leaves, Shortening};
use crate::fold::policy_values::Ages;
use crate::fold::facts::ItemKind;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_reasoning",
    figure: "Idle Reasoning",
    reason: "reasoning from before an earlier prompt is left out",
    leaves: |_| Leaves::Nothing,
    acts: Acts::AtPrompt {
        ages: AgesKey { key: "idle.reasoning", presets: PRESETS },
        means: |item| item.kind == ItemKind::Reasoning,
    },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::all(1))];
