//! Shelve: a long output that nothing has touched for some turns steps aside, and so do the long parameters of a write or
//! an edit. One age for reads, one for all other outputs; rules with ages by kind and size are the `idle_*` rules.

use super::Look;
use super::shorten::{Acts, Resting, ShortenedContent, Shortening};
use crate::event::{Face, ToolClass};
use crate::fold::policy_values::Ages;

pub(crate) const RULE: Shortening = Shortening {
    name: "shelve",
    figure: "Shelving",
    reason: "what nothing has touched for some turns is shelved",
    leaves: |face| match face {
        Face::Input => ShortenedContent::SetAside,
        Face::Output => {
            ShortenedContent::Text("[shelved: not used lately; restore it, or run the call again, to see it]")
        }
    },
    acts: Acts::Idle { ages: None, turns },
};

fn turns(look: Look<'_>, resting: &Resting<'_>, _: Ages) -> Option<u32> {
    let rule = &look.policy.shelf;
    let class = resting.call.class;
    let meant =
        rule.on && !resting.steers && resting.tokens >= u64::from(rule.tokens_min) && !resting.is_superseded;
    match resting.face {
        _ if !meant => None,
        Face::Input if !matches!(class, ToolClass::Write | ToolClass::Edit) => None,
        Face::Input => Some(rule.input_turns),
        Face::Output if class == ToolClass::Read => Some(rule.read_turns),
        Face::Output => Some(rule.other_turns),
    }
}
