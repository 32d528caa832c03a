//! Rules that shorten what is shown, or set it aside, because of its age.
//!
//! ```text
//! AtAge   so many turns after its birth                       failed inputs, long outputs, long reasoning
//! Idle    so many turns after the last touch of its files     outputs and inputs, by kind and size
//! AtPrompt  so many prompts after its birth                   reasoning
//! ```
//!
//! Such a rule is a file and a line in the list of [`SHORTENING`]: its name, its texts, its key in policies and the presets
//! that set it stand in its [`Shortening`]. Queues, touches and cold caches are the same for all rules and stand in
//! [`step`](crate::fold::step).

use super::{Look, SHORTENING};
use crate::event::{Face, KeyKind, ToolClass};
use crate::fold::facts::{Call, Item, Size};
use crate::fold::history::ShortenKind;
use crate::fold::number::Ix;
use crate::fold::policy_values::Ages;

/// A rule that shortens what is shown.
pub(crate) struct Shortening {
    /// The name in policies, queries, JSON and words.
    pub(crate) name: &'static str,
    /// The name in the block of figures.
    pub(crate) figure: &'static str,
    /// What the rule does, in words.
    pub(crate) reason: &'static str,
    /// What stands in place of a face.
    pub(crate) leaves: fn(Face) -> Leaves,
    pub(crate) acts: Acts,
}

/// What a shortened face shows.
#[derive(Clone, Copy)]
pub(crate) enum Leaves {
    /// A text.
    Text(&'static str),
    /// Nothing.
    Nothing,
    /// The parameters that tombstones show.
    ShownParams,
    /// The parameters without long values.
    PurgedParams,
    /// The leading and the trailing lines.
    HeadAndTail,
    /// The beginning and the conclusions.
    Conclusions,
    /// The leading lines, and those that name files touched since. A rule for idle faces may take the rest later.
    FirstAndTouched,
}

/// When a rule acts.
pub(crate) enum Acts {
    /// At an age in turns.
    AtAge {
        /// The face that it shortens.
        face: Face,
        /// The key of policies that holds the rule's ages, where it has no settings of its own.
        ages: Option<AgesKey>,
        /// What it is about: it is asked of no other item.
        of: Of,
        /// The age; `None`: never. Gets the ages that the policy has for the rule.
        age: fn(Look<'_>, Subject, Ages) -> Option<u32>,
    },
    /// So many turns after the last touch.
    Idle {
        /// The key of policies that holds the rule's ages.
        ages: Option<AgesKey>,
        /// Turns without a touch; `None`: the rule does not mean the face. Gets the ages that the policy has for the rule.
        turns: fn(Look<'_>, &Resting<'_>, Ages) -> Option<u32>,
    },
    /// So many prompts after its birth, in whole runs.
    AtPrompt {
        /// The key of policies that holds the number of prompts.
        ages: AgesKey,
        /// Whether the rule means an item.
        means: fn(&Item) -> bool,
    },
}

/// Items that a rule with an age is about.
#[derive(Clone, Copy)]
pub(crate) enum Of {
    /// Calls that failed.
    Failed,
    /// Completed calls with outputs of more lines.
    LongOutputs { lines_max: u64 },
    /// Reasoning of more lines.
    LongReasoning { lines_max: u64 },
    /// Completed calls that search.
    Searches,
}

/// What stands in place of an idle output.
pub(crate) const TEXT_ASIDE: &str = "[set aside: restore it, or run the call again]";

/// What a rule with an age looks at.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) ix: Ix,
    pub(crate) output: Size,
}

/// What an idle rule looks at: a face of a completed call.
#[derive(Clone, Copy)]
pub(crate) struct Resting<'a> {
    pub(crate) ix: Ix,
    pub(crate) face: Face,
    pub(crate) tokens: u64,
    pub(crate) call: &'a Call,
    pub(crate) tool: &'a str,
    /// Its tool steers the work (`shelf.except`).
    pub(crate) steers: bool,
    /// A newer call superseded it.
    pub(crate) is_superseded: bool,
}

impl Resting<'_> {
    /// The output of a call of this class; no tool that steers the work.
    pub(crate) fn is_output_of(&self, class: ToolClass) -> bool {
        !self.steers && self.face == Face::Output && self.call.class == class
    }

    /// The input of a call of one of these classes; no tool that steers the work.
    pub(crate) fn is_input_of(&self, classes: &[ToolClass]) -> bool {
        !self.steers && self.face == Face::Input && classes.contains(&self.call.class)
    }

    /// Whether the call runs a command line.
    pub(crate) fn is_command(&self, look: Look<'_>) -> bool {
        look.keys(self.ix).any(|(_, key)| key.kind == KeyKind::Exec)
    }
}

/// A key of policies that holds the ages of one rule.
#[derive(Clone, Copy)]
pub(crate) struct AgesKey {
    pub(crate) key: &'static str,
    /// The presets that have the rule on.
    pub(crate) presets: &'static [(&'static str, Ages)],
}

impl ShortenKind {
    /// All rules that shorten, in their order.
    pub fn all() -> impl Iterator<Item = Self> + Clone {
        (0..).zip(SHORTENING).map(|(number, _)| Self::numbered(number))
    }

    pub(crate) fn described(self) -> &'static Shortening {
        const FIRST: &Shortening = &super::purge_errors::RULE;
        SHORTENING.get(usize::from(self.number())).unwrap_or(FIRST)
    }

    /// The name of the rule in policies, queries, JSON and words.
    pub fn label(self) -> &'static str {
        self.described().name
    }

    /// The name of the rule in the block of figures.
    pub(crate) fn figure(self) -> &'static str {
        self.described().figure
    }

    /// What the rule does, in words.
    pub fn reason(self) -> &'static str {
        self.described().reason
    }

    /// Whether a rule for idle faces may take what is left of an output.
    pub(crate) fn leaves_some(self) -> bool {
        matches!((self.described().leaves)(Face::Output), Leaves::FirstAndTouched)
    }

    /// Whether the rule counts turns without a touch, not turns since birth.
    pub fn is_idle(self) -> bool {
        matches!(self.described().acts, Acts::Idle { .. })
    }
}

impl std::fmt::Debug for ShortenKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

impl serde::Serialize for ShortenKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.label())
    }
}
