//! Todo: the newest list-writing and the newest list-reading call stay, each kind for itself (kind `todo`).
//!
//! Does not look at protected tools: the todo tools are on that list by default. Changes of one entry are not meant.

use super::{ClaimKey, Finds, Guard, Look, On, Rule, RuleLabel, Switch, Tombstone};
use crate::event::TodoRole;
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

const PRESETS: &[&str] = &["acp", "balanced", "careful", "acp-head", "economy"];

pub(crate) const RULE: Rule = Rule {
    guard: Guard::FilesOnly,
    ..Rule::of(
        &[&LABEL],
        On::Switch(Switch { key: "todo", presets: PRESETS, is_late: false }),
        Finds::One(slot),
    )
};

fn slot(look: Look<'_>, ix: Ix) -> Option<ClaimKey> {
    match look.call(ix)?.todo {
        TodoRole::Write => Some(ClaimKey { group: 0, key: 0 }),
        TodoRole::Read => Some(ClaimKey { group: 1, key: 0 }),
        TodoRole::None | TodoRole::Delta => None,
    }
}
