//! Purge errors: a failed call of some age loses the long values of its parameters; the error text stays.

use super::Look;
use super::shorten::{Acts, Leaves, Of, Shortening, Subject};
use crate::event::Face;
use crate::fold::policy_values::Ages;

pub(crate) const RULE: Shortening = Shortening {
    name: "purge_errors",
    figure: "Purge Errors",
    reason: "the parameters of a failed call are purged after some turns",
    leaves: |_| Leaves::PurgedParams,
    acts: Acts::AtAge { face: Face::Input, ages: None, of: Of::Failed, age },
};

fn age(look: Look<'_>, subject: Subject, _: Ages) -> Option<u32> {
    let policy = look.policy;
    if !policy.purge_errors.on {
        return None;
    }
    if look.lists.tool(look.call(subject.ix)?.tool).purge_protected {
        return None;
    }
    Some(policy.purge_errors.turns.max(1).max(policy.turn_protection.age_min()))
}
