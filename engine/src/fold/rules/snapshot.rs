//! Snapshot: a newer snapshot takes the place of every earlier one (kind `snapshot`).

use super::{Finds, On, Rule, RuleLabel, Switch, Tombstone};

pub(super) const LABEL: RuleLabel = RuleLabel {
    number: 8,
    name: "snapshot",
    short: "snapshot",
    sign: "📸",
    is_always_shown: false,
    tombstone: Tombstone::Text("snapshot superseded by newer snapshot"),
    line: |line| format!("snapshot {} superseded by {}", line.old, line.new),
    reason: "a newer snapshot replaced it",
};

pub(crate) const RULE: Rule = Rule::of(
    &[&LABEL],
    On::Switch(Switch { key: "snapshot", presets: &["acp-head"], is_late: false }),
    Finds::Tool("snapshot"),
);
