//! Url: the same web address or web query, asked again (kind `url`).

use super::{Finds, On, Rule, RuleLabel, Switch, Tombstone};
use crate::event::KeyKind;

pub(super) const LABEL: RuleLabel = RuleLabel {
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

pub(crate) const RULE: Rule = Rule::of(
    &[&LABEL],
    On::Switch(Switch { key: "url", presets: &["acp-head"], is_late: false }),
    Finds::Keys(KeyKind::Url),
);
