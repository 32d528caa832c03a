//! Todo: the newest list-writing and the newest list-reading call stay, each kind for itself (kind `todo`).
//!
//! Does not look at protected tools: the todo tools are on that list by default. Changes of one entry are not meant.

use super::{Failed, Finds, Guard, RuleLabel, Look, On, Rule, ClaimKey, Switch, Tombstone};
use crate::event::TodoRole;
use crate::fold::history::RuleKind;
use crate::fold::number::Ix;

pub(super) const LABEL: RuleLabel = RuleLabel {
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
    finds: Finds::One(slot),
};

fn slot(look: Look<'_>, ix: Ix) -> Option<ClaimKey> {
    match look.call(ix)?.todo {
        TodoRole::Write => Some(ClaimKey { group: 0, key: 0 }),
        TodoRole::Read => Some(ClaimKey { group: 1, key: 0 }),
        TodoRole::None | TodoRole::Delta => None,
    }
}
