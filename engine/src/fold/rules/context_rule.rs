//! Context: a newer `context_prune` call takes the place of earlier ones (kind `context`).

use super::{Clear, Label, On, Tombstone, Switch, Failed, Guard, Look, Rule, Slot};
use crate::fold::number::Ix;
use crate::fold::history::RuleKind;

/// The tool that the rule means.
const TOOL: &str = "context_prune";
const SLOT: Slot = Slot { group: 0, key: 0 };

const LABEL: Label = Label {
    number: 10,
    name: "context",
    short: "context",
    sign: "🔧",
    is_always_shown: false,
    tombstone: Tombstone::Text("newer context exists"),
    line: |line| format!("context: pruned old context {} (turn {})", line.old, line.turn),
    reason: "a newer call of the context tool replaced it",
};

pub(crate) const RULE: Rule = Rule {
    labels: &[&LABEL],
    on: On::Switch(Switch { key: "context", presets: &["acp-head"], is_late: false }),
    kind: |_| RuleKind::of(&LABEL),
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
