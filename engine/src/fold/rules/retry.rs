//! Retry: failed attempts go once the same call succeeds, in whatever turn (kind `retry`).

use super::{ClaimKey, Failed, Finds, Look, On, Rule, RuleLabel, Switch, Tombstone};
use crate::fold::number::Ix;
use crate::fold::policy_values::Paths;

pub(super) const LABEL: RuleLabel = RuleLabel {
    number: 9,
    name: "retry",
    short: "retry",
    sign: "🔄",
    is_always_shown: false,
    tombstone: Tombstone::Text("retry succeeded - pruning failed attempt"),
    line: |line| format!("retry {} pruned after successful {}", line.old, line.new),
    reason: "the failed attempt was repeated and succeeded",
};

pub(crate) const RULE: Rule = Rule {
    failed: Failed::Only,
    any_turn: true,
    ..Rule::of(
        &[&LABEL],
        On::Switch(Switch { key: "retry", presets: &["acp-head"], is_late: false }),
        Finds::One(slot),
    )
};

fn slot(look: Look<'_>, ix: Ix) -> Option<ClaimKey> {
    let form = usize::from(look.policy.paths == Paths::Session) * 2;
    Some(ClaimKey { group: 0, key: *look.call(ix)?.compared.get(form)? })
}
