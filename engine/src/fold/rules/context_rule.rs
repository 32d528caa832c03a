//! Context: a newer `context_prune` call takes the place of earlier ones (kind `context`).

use super::{Label, Means, Rule, Switch, Tombstone, newest_of};
use crate::fold::history::RuleKind;

struct ContextTool;

impl Means for ContextTool {
    const TOOL: &'static str = "context_prune";
}

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

pub(crate) const RULE: Rule = newest_of::<ContextTool>(
    &[&LABEL],
    |_| RuleKind::of(&LABEL),
    Switch { key: "context", presets: &["acp-head"], is_late: false },
);
