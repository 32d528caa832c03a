//! Url: the same web address or web query, asked again (kind `url`).

use super::{Failed, Finds, Guard, RuleLabel, On, Rule, Switch, Tombstone};
use crate::event::KeyKind;
use crate::fold::history::RuleKind;

const LABEL: RuleLabel = RuleLabel {
    number: 6,
    name: "url",
    short: "url",
    sign: "🔗",
    is_always_shown: false,
    tombstone: Tombstone::Tool("URL superseded by ", ""),
    line: |line| {
        let key: String = line.key.chars().take(50).collect();
        format!("URL {key}: {} {} superseded by {}", line.tool, line.old, line.by)
    },
    reason: "the same address was fetched again{key}",
};

pub(crate) const RULE: Rule = Rule {
    labels: &[&LABEL],
    on: On::Switch(Switch { key: "url", presets: &["acp-head"], is_late: false }),
    kind: |_| RuleKind::of(&LABEL),
    guard: Guard::Common,
    failed: Failed::No,
    any_turn: false,
    finds: Finds::Keys(KeyKind::Url),
};
