//! Purge errors: a failed call of some age loses the long values of its parameters; the error text stays.
//!
//! ```text
//! {"filePath":"/a","content":"[input removed due to failed tool call]"}
//! ```

use std::sync::Arc;

use super::Look;
use super::shorten::{Acts, Cuts, Cutting, ShortenedContent, Shortening, Subject, TextCut};
use crate::event::Face;
use crate::fold::policy_values::Ages;
use crate::text::shorten::marked;

/// The text in place of a long string.
const MARK: &str = "[input removed due to failed tool call]";
/// Tokens of one such mark, at most.
const MARK_TOKENS: u64 = 12;

pub(crate) const RULE: Shortening = Shortening {
    name: "purge_errors",
    figure: "Purge Errors",
    reason: "the parameters of a failed call are purged after some turns",
    leaves: |_| ShortenedContent::Part(TextCut { by: short_values, may_go: false }),
    acts: Acts::AtAge {
        face: Face::Input,
        at_birth: false,
        ages: None,
        is_on: |policy, _| policy.purge_errors.on,
        age,
    },
};

fn age(look: Look<'_>, subject: &Subject<'_>, _: Ages) -> Option<u32> {
    let policy = look.policy;
    if !subject.has_failed {
        return None;
    }
    if look.lists.tool(look.call(subject.ix)?.tool).purge_protected {
        return None;
    }
    Some(policy.purge_errors.turns.max(1).max(policy.turn_protection.age_min()))
}

#[derive(Debug, Clone, Copy)]
struct ShortValues {
    /// Tokens of the parameters with their long strings set aside.
    shown_tokens: u32,
}

fn short_values(cutting: &Cutting<'_>) -> Arc<dyn Cuts> {
    let call = cutting.facts.call(cutting.ix);
    Arc::new(ShortValues { shown_tokens: call.map_or(0, |call| call.shown.object_tokens) })
}

impl Cuts for ShortValues {
    fn tokens_max(&self) -> u64 {
        u64::from(self.shown_tokens).saturating_add(MARK_TOKENS)
    }

    /// The parameters with [`MARK`] in place of every string value longer than it.
    fn cut(&self, bytes: &[u8]) -> Option<String> {
        marked(bytes, MARK.len(), &|_| MARK.to_owned())
    }
}

#[cfg(test)]
mod tests;
