//! Repeat: the same tool with the same parameters, called again (kind `hash`, or `dedup` without top-level nulls).

use super::{ClaimKey, Failed, Finds, Guard, Look, On, Rule, RuleLabel, Tombstone};
use crate::event::TodoRole;
use crate::fold::number::Ix;
use crate::fold::policy_values::{Paths, RepeatMode};

pub(super) const HASH: RuleLabel = RuleLabel {
    number: 0,
    name: "repeat",
    short: "hash",
    sign: "🔄",
    is_always_shown: true,
    tombstone: Tombstone::Text("hash duplicate"),
    line: |line| format!("hash {}: {} → {}", (line.hash)(), line.old, line.new),
    reason: "the same call with the same parameters was made again",
};

pub(super) const DEDUP: RuleLabel = RuleLabel {
    number: 1,
    name: "repeat",
    short: "hash",
    sign: "🔄",
    is_always_shown: false,
    tombstone: Tombstone::Text("duplicate call"),
    line: |line| (HASH.line)(line),
    reason: "the same call was made again; parameters that are null do not count",
};

pub(crate) const RULE: Rule = Rule {
    label: |policy| usize::from(policy.repeat.mode == RepeatMode::Dedup),
    guard: Guard::Repeat,
    failed: Failed::ByPolicy,
    ..Rule::of(
        &[&HASH, &DEDUP],
        On::Policy(|policy| policy.repeat.mode != RepeatMode::Off),
        Finds::One(slot),
    )
};

/// The slot of a call's signature; none for a poll or a deed, whose repeat is a new answer or a new deed.
fn slot(look: Look<'_>, ix: Ix) -> Option<ClaimKey> {
    let call = look.call(ix)?;
    let todo = matches!(call.todo, TodoRole::Write | TodoRole::Read);
    if call.volatile || !todo && look.lists.tool(call.tool).repeat_except {
        return None;
    }
    let form = usize::from(look.policy.paths == Paths::Session) * 2
        + usize::from(look.policy.repeat.mode == RepeatMode::Dedup);
    Some(ClaimKey { group: 0, key: *call.compared.get(form)? })
}
