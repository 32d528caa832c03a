//! Purge errors: a failed call of some age loses the long values of its parameters; the error text stays.

use super::Shortening;
use crate::fold::history::ShortenKind;

pub(crate) const RULE: Shortening = Shortening {
    kind: ShortenKind::PurgeErrors,
    age: |look, subject| {
        let policy = look.policy;
        if !policy.purge_errors.on || !subject.failed {
            return None;
        }
        if look.lists.tool(look.call(subject.ix)?.tool).purge_protected {
            return None;
        }
        Some(policy.purge_errors.turns.max(1).max(policy.turn_protection.age_min()))
    },
};
