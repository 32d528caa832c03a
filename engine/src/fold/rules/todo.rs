//! Todo: the newest list-writing and the newest list-reading call stay, each kind for itself (kind `todo`).
//!
//! Does not look at protected tools: the todo tools are on that list by default. Changes of one entry are not meant.

use super::{Clear, Label, On, Tombstone, Switch, Failed, Guard, Look, Rule, Slot};
use crate::event::TodoRole;
use crate::fold::number::Ix;
use crate::fold::history::RuleKind;

pub(super) const LABEL: Label = Label {
    number: 5,
    name: "todo",
    short: "todo",
    sign: "✅",
    is_always_shown: true,
    tombstone: Tombstone::Tool("newer ", " exists"),
    line: |line| format!("todo: pruned old {} {} (turn {})", line.tool, line.old, line.turn),
    reason: "a newer todo list replaced it",
};

pub(crate) const RULE: Rule = Rule {
    labels: &[&LABEL],
    on: On::Switch(Switch { key: "todo", presets: &["acp", "balanced", "careful", "acp-head", "economy"], is_late: false }),
    kind: |_| RuleKind::of(&LABEL),
    guard: Guard::FilesOnly,
    failed: Failed::No,
    any_turn: false,
    lays: |look, ix, lay| {
        if let Some(slot) = slot(look, ix) {
            lay(slot);
        }
    },
    clears: |look, ix, clear| {
        if let Some(slot) = slot(look, ix) {
            clear(Clear::all(slot));
        }
    },
};

fn slot(look: Look<'_>, ix: Ix) -> Option<Slot> {
    match look.call(ix)?.todo {
        TodoRole::Write => Some(Slot { group: 0, key: 0 }),
        TodoRole::Read => Some(Slot { group: 1, key: 0 }),
        TodoRole::None | TodoRole::Delta => None,
    }
}
