//! Command family: a later run of the same check, such as `cargo test`, makes the output of an earlier one stale (kind
//! `command_family`). Off unless a policy asks for it. A run that failed is superseded, too; only one that completed
//! supersedes.

use super::{Failed, Finds, On, Rule, RuleLabel, Switch, Tombstone};
use crate::event::KeyKind;

pub(super) const LABEL: RuleLabel = RuleLabel {
    number: 12,
    name: "command_family",
    short: "check",
    sign: "🧪",
    is_always_shown: false,
    tombstone: Tombstone::Text("the same check was run again later"),
    line: |line| format!("check {}: {} {} superseded by {}", line.key, line.tool, line.old, line.new),
    reason: "the same check was run again{key}",
};

pub(crate) const RULE: Rule = Rule {
    failed: Failed::Yes,
    ..Rule::of(
        &[&LABEL],
        On::Switch(Switch { key: "command_family", presets: &["economy"], is_late: true }),
        Finds::Keys(KeyKind::Check),
    )
};
