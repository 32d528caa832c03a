//! Snapshot: a newer snapshot takes the place of every earlier one (kind `snapshot`).

use super::{Label, Means, Rule, Switch, Tombstone, newest_of};
use crate::fold::history::RuleKind;

struct Snapshot;

impl Means for Snapshot {
    const TOOL: &'static str = "snapshot";
}

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

pub(crate) const RULE: Rule = newest_of::<Snapshot>(
    &[&LABEL],
    |_| RuleKind::of(&LABEL),
    Switch { key: "snapshot", presets: &["acp-head"], is_late: false },
);
