//! Snapshot: a newer snapshot takes the place of every earlier one (kind `snapshot`).

use super::{Clear, Label, On, Tombstone, Switch, Failed, Guard, Look, Rule, Slot};
use crate::fold::number::Ix;
use crate::fold::history::RuleKind;

/// The tool that the rule means.
const TOOL: &str = "snapshot";
const SLOT: Slot = Slot { group: 0, key: 0 };

const LABEL: Label = Label {
    number: 8,
    name: "snapshot",
    short: "snapshot",
    sign: "📸",
    is_always_shown: false,
    tombstone: Tombstone::Text("snapshot superseded by newer snapshot"),
    line: |line| format!("snapshot {} superseded by {}", line.old, line.new),
    reason: "a newer snapshot replaced it",
};

pub(crate) const RULE: Rule = Rule {
    labels: &[&LABEL],
    on: On::Switch(Switch { key: "snapshot", presets: &["acp-head"], is_late: false }),
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
