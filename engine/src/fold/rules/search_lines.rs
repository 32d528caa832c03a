//! Search lines: a search that the model has read keeps its first lines, and those that name files touched since.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Of, Shortening, Subject};
use crate::event::Face;
use crate::fold::policy_values::Ages;
use crate::text::shorten::LISTED_TOKENS_MAX;

pub(crate) const RULE: Shortening = Shortening {
    name: "search_lines",
    figure: "Search Lines",
    reason: "a search keeps its first lines and those that name files touched since",
    leaves: |_| Leaves::FirstAndTouched,
    acts: Acts::AtAge {
        face: Face::Output,
        ages: Some(AgesKey { key: "idle.search_lines", presets: PRESETS }),
        of: Of::Searches,
        age,
    },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::of(2, 2, 0))];

fn age(look: Look<'_>, subject: Subject, ages: Ages) -> Option<u32> {
    let tokens = subject.output.tokens;
    let is_long = tokens > u64::from(LISTED_TOKENS_MAX) && tokens >= u64::from(look.policy.idle.tokens_min);
    // Asked last, and of few: it goes through patterns.
    let steers = || look.policy.shelf.except.is_match(look.facts.tool(subject.ix));
    let turns = ages.turns(tokens)?;
    let meant = is_long && !steers();
    meant.then_some(turns)
}
