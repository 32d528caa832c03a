//! Idle searches: the output of a search or a command line steps aside a few turns later.
use super::{Look, SHORTENING};
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening, TEXT_ASIDE};
use crate::fold::policy_values::{Ages, Policy};
use crate::event::ToolClass;

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_searches",
    figure: "Idle Searches",
    reason: "the output of a search or a command line is set aside after some turns",
    leaves: |_| Leaves::Text(TEXT_ASIDE),
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.searches", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::of(4, 10, 16))];

fn turns(look: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    let meant = resting.is_output_of(ToolClass::Search)
        || resting.is_output_of(ToolClass::Other) && resting.is_command(look);
    ages.turns(resting.tokens).filter(|_| meant)
}

impl Policy {
    /// Turns for which an output of medium size stays, if no rule takes it for another reason; `None`: for ever. Without
    /// `shelf`, the age of searches and command lines counts: most outputs are theirs.
    pub fn other_turns(&self) -> Option<u32> {
        let shelf = self.shelf.on.then_some(self.shelf.other_turns);
        let number = SHORTENING.iter().position(|rule| rule.name == RULE.name);
        let turns = number.map(|number| self.idle.ages(number).medium);
        shelf.or_else(|| turns.filter(|turns| *turns > 0))
    }
}
