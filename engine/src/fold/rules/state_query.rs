//! State query: the same question about the state of folders or the repository, asked again (kind `state_query`).

use super::{Finds, On, Rule, RuleLabel, Switch, Tombstone};
use crate::event::KeyKind;

pub(super) const LABEL: RuleLabel = RuleLabel {
    number: 7,
    name: "state_query",
    short: "query",
    sign: "📊",
    is_always_shown: false,
    tombstone: Tombstone::Tool("state query superseded by ", ""),
    line: |line| format!("query {}: {} {} superseded", line.key, line.tool, line.old),
    reason: "the same question about state was asked again{key}",
};

pub(crate) const RULE: Rule = Rule::of(
    &[&LABEL],
    On::Switch(Switch { key: "state_query", presets: &["acp-head", "economy"], is_late: false }),
    Finds::Keys(KeyKind::State),
);
