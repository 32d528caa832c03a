//! Retry: failed attempts go once the same call succeeds, in whatever turn (kind `retry`).

use super::{Clear, Failed, Guard, Look, Rule, Slot};
use crate::fold::facts::Ix;
use crate::fold::history::RuleKind;
use crate::fold::policy::Paths;

pub(crate) const RULE: Rule = Rule {
    on: |policy| policy.retry,
    kind: |_| RuleKind::Retry,
    guard: Guard::Common,
    failed: Failed::Only,
    any_turn: true,
    lays: |look, ix, lay| {
        if let Some(slot) = slot(look, ix) {
            lay(slot);
        }
    },
    clears: |look, ix, clear| {
        if let Some(slot) = slot(look, ix) {
            clear(Clear::all(slot));
        }
    },
};

fn slot(look: Look<'_>, ix: Ix) -> Option<Slot> {
    let form = usize::from(look.policy.paths == Paths::Session) * 2;
    Some(Slot { group: 0, key: *look.call(ix)?.compared.get(form)? })
}
