//! Context: a newer `context_prune` call takes the place of earlier ones (kind `context`).

use super::{Clear, Failed, Guard, Look, Rule, Slot};
use crate::fold::facts::Ix;
use crate::fold::history::RuleKind;

/// The tool that the rule means.
const TOOL: &str = "context_prune";
const SLOT: Slot = Slot { group: 0, key: 0 };

pub(crate) const RULE: Rule = Rule {
    on: |policy| policy.context,
    kind: |_| RuleKind::Context,
    guard: Guard::Common,
    failed: Failed::No,
    any_turn: false,
    lays: |look, ix, lay| {
        if is_meant(look, ix) {
            lay(SLOT);
        }
    },
    clears: |look, ix, clear| {
        if is_meant(look, ix) {
            clear(Clear::all(SLOT));
        }
    },
};

fn is_meant(look: Look<'_>, ix: Ix) -> bool {
    look.facts.tool(ix) == TOOL
}
