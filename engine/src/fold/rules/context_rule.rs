//! Context: a newer `context_prune` call takes the place of earlier ones (kind `context`).

use super::{Finds, On, Rule, RuleLabel, Switch, Tombstone};

pub(super) const LABEL: RuleLabel = RuleLabel {
    number: 10,
    name: "context",
    short: "context",
    sign: "🔧",
    is_always_shown: false,
    tombstone: Tombstone::Text("newer context exists"),
    line: |line| format!("context: pruned old context {} (turn {})", line.old, line.turn),
    reason: "a newer call of the context tool replaced it",
};

pub(crate) const RULE: Rule = Rule::of(
    &[&LABEL],
    On::Switch(Switch { key: "context", presets: &["acp-head"], is_late: false }),
    Finds::Tool("context_prune"),
);
