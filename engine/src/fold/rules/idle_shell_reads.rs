//! Idle shell reads: a file that a command line showed (`cat`, `sed -n`) steps aside some turns after its last touch.
use super::Look;
use super::shorten::{Acts, AgesKey, Leaves, Resting, Shortening, TEXT_ASIDE};
use crate::fold::policy_values::Ages;
use crate::event::{KeyKind, ToolClass};

pub(crate) const RULE: Shortening = Shortening {
    name: "idle_shell_reads",
    figure: "Idle Shell Reads",
    reason: "a file that a command line showed is set aside after some turns without a touch of it",
    leaves: |_| Leaves::Text(TEXT_ASIDE),
    acts: Acts::Idle { ages: Some(AgesKey { key: "idle.shell_reads", presets: PRESETS }), turns },
};

const PRESETS: &[(&str, Ages)] = &[("economy", Ages::of(12, 24, 36))];

fn turns(look: Look<'_>, resting: &Resting<'_>, ages: Ages) -> Option<u32> {
    let shows_files = resting.is_output_of(ToolClass::Other)
        && resting.is_command(look)
        && look.keys(resting.ix).any(|(_, key)| key.kind == KeyKind::File);
    ages.turns(resting.tokens).filter(|_| shows_files)
}
