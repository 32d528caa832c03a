//! Rules that shorten a face, or set it aside, because of its age.
//!
//! ```text
//! AtAge   so many turns after its birth                       failed inputs, long outputs, long reasoning
//! Idle    so many turns after the last touch of its files     outputs and inputs, by kind and size
//! AtPrompt  so many prompts after its birth                   reasoning
//! ```
//!
//! Such a rule is a file and a line in the list of [`SHORTENING`]: its name, its texts, its key in policies, the presets
//! that set it and the content that it leaves stand in its [`Shortening`]. A rule that leaves a part of a text brings its own
//! [`Cuts`]: nothing else knows how it cuts. Queues, touches and cold caches are the same for all rules and stand in
//! [`step`](crate::fold::step).

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{Look, SHORTENING};
use crate::event::{Face, KeyKind, ToolClass};
use crate::fold::facts::{CallFact, Facts, ItemFact, Size};
use crate::fold::history::{Cause, ShortenKind};
use crate::fold::number::{Ix, NONE};
use crate::fold::policy_values::{Ages, Policy};
use crate::ids::Seq;
use crate::text::{estimate, tokens::estimate_pieces};

/// Number of items, at most, that are searched for files touched since.
const BETWEEN_MAX: usize = 256;

/// A rule that shortens a face.
pub(crate) struct Shortening {
    /// The name in policies, queries, JSON and words.
    pub(crate) name: &'static str,
    /// The name in the block of figures.
    pub(crate) figure: &'static str,
    /// A sentence that says how the rule acts.
    pub(crate) reason: &'static str,
    /// The content in place of a face.
    pub(crate) leaves: fn(Face) -> ShortenedContent,
    pub(crate) acts: Acts,
}

/// The content of a shortened face.
#[derive(Clone, Copy)]
pub(crate) enum ShortenedContent {
    /// A text.
    Text(&'static str),
    /// Nothing.
    Nothing,
    /// The parameters, their long strings set aside.
    SetAside,
    /// A part of its text, as the rule cuts it.
    Part(TextCut),
}

/// How a rule cuts a text.
#[derive(Clone, Copy)]
pub(crate) struct TextCut {
    /// Makes the rule's cutter for a face.
    pub(crate) by: fn(&Cutting<'_>) -> Arc<dyn Cuts>,
    /// A rule for idle faces may take the rest later.
    pub(crate) may_go: bool,
}

/// The state that a rule looks at before it cuts a face.
#[derive(Clone, Copy)]
pub(crate) struct Cutting<'a> {
    pub(crate) facts: &'a Facts,
    /// The policy of the moment in which the rule acted.
    pub(crate) policy: &'a Policy,
    pub(crate) ix: Ix,
    /// The moment in which the rule acted.
    pub(crate) at: Seq,
}

impl Cutting<'_> {
    /// Files of calls that were made after the item, as the calls named them. Cost: O(items between), at most
    /// [`BETWEEN_MAX`].
    pub(crate) fn files_touched_since(&self) -> Vec<String> {
        let mut files = Vec::new();
        let mut named = FxHashSet::default();
        for later in (self.ix.0.saturating_add(1)..).take(BETWEEN_MAX).map(Ix) {
            let Some(item) = self.facts.item(later).filter(|item| item.id.seq <= self.at) else { break };
            if item.call == NONE {
                continue;
            }
            let keys = self.facts.call(later).map_or(&[][..], |call| self.facts.keys_of(call));
            for key in keys.iter().filter(|key| key.kind == KeyKind::File) {
                if named.insert(key.given) {
                    files.push(self.facts.names.text(key.given).to_owned());
                }
            }
        }
        files
    }
}

/// A rule's knowledge of a face, and the way to cut it. Two with the same `Debug` text cut alike.
pub(crate) trait Cuts: fmt::Debug + Send + Sync {
    /// Estimated tokens that are left, at most. Needs no text.
    fn tokens_max(&self) -> u64;

    /// The part of a face's bytes that is left, its pieces on lines of their own; `None`: the whole.
    fn cut(&self, bytes: &[u8]) -> Option<String>;
}

/// A rule's [`Cuts`].
#[derive(Clone)]
pub struct Cutter(Arc<dyn Cuts>);

impl Cutter {
    pub(crate) fn of(part: TextCut, cutting: &Cutting<'_>) -> Self {
        Self((part.by)(cutting))
    }

    pub(crate) fn tokens_max(&self) -> u64 {
        self.0.tokens_max()
    }

    pub(crate) fn cut(&self, bytes: &[u8]) -> Option<String> {
        self.0.cut(bytes)
    }
}

impl fmt::Debug for Cutter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Cutter {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

impl serde::Serialize for Cutter {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{self:?}"))
    }
}

/// The lines of a text that has more tokens and more lines than these; `None`: it is short.
pub(crate) fn lines_of_long(text: &str, tokens: u32, lines: usize) -> Option<Vec<&str>> {
    let is_long = estimate(text.as_bytes()) > tokens;
    is_long.then(|| text.split('\n').collect()).filter(|all: &Vec<&str>| all.len() > lines)
}

/// The first of some lines that have so many tokens together at most. Each is measured with the text behind it, and alone: a text is
/// cut at line feeds.
pub(crate) fn fitting<'a>(
    lines: impl Iterator<Item = &'a str>,
    tokens_max: f64,
    behind: &str,
) -> Vec<&'a str> {
    let mut used = 0.0;
    lines
        .take_while(|line| {
            used += f64::from(estimate_pieces(&[line, behind]));
            used <= tokens_max
        })
        .collect()
}

/// A share of tokens as a whole number.
pub(crate) fn whole_tokens(share: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of u32"
    )]
    let whole = share.clamp(0.0, f64::from(u32::MAX)) as u64;
    whole
}

/// When a rule acts.
pub(crate) enum Acts {
    /// At an age in turns.
    AtAge {
        /// The face that it shortens.
        face: Face,
        /// An age of 0 is the moment in which an output is recorded. Else the next turn is the first in which a rule acts.
        at_birth: bool,
        /// The key of policies that holds the rule's ages, where it has no settings of its own.
        ages: Option<AgesKey>,
        /// Whether the policy has the rule on. A rule that is off is not asked about items.
        is_on: fn(&Policy, Ages) -> bool,
        /// The age; `None`: the rule does not mean the item. Gets the ages that the policy has for the rule.
        age: fn(Look<'_>, &Subject<'_>, Ages) -> Option<u32>,
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
        means: fn(&ItemFact) -> bool,
    },
}

/// The text in place of an idle output.
pub(crate) const TEXT_ASIDE: &str = "[set aside: restore it, or run the call again]";

/// An item, as a rule with an age looks at it.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) ix: Ix,
    pub(crate) item: &'a ItemFact,
    pub(crate) output: Size,
    /// A call that completed.
    pub(crate) is_completed: bool,
    /// A call that failed, or was broken off.
    pub(crate) has_failed: bool,
}

/// A face of a completed call, as an idle rule looks at it.
#[derive(Clone, Copy)]
pub(crate) struct Resting<'a> {
    pub(crate) ix: Ix,
    pub(crate) face: Face,
    pub(crate) tokens: u64,
    pub(crate) call: &'a CallFact,
    pub(crate) tool: &'a str,
    /// Its tool steers the work (`shelf.except`).
    pub(crate) steers: bool,
    /// A newer call superseded it.
    pub(crate) is_superseded: bool,
}

impl Resting<'_> {
    /// The face is the output of a call of this class; its tool does not steer the work.
    pub(crate) fn is_output_of(&self, class: ToolClass) -> bool {
        !self.steers && self.face == Face::Output && self.call.class == class
    }

    /// The face is the input of a call of one of these classes; its tool does not steer the work.
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
        #[expect(clippy::indexing_slicing, reason = "at compile time: an empty list ends the build")]
        const FIRST: &Shortening = &SHORTENING[0];
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

    /// A sentence that says how the rule acts.
    pub fn reason(self) -> &'static str {
        self.described().reason
    }

    /// The cause of a face that the rule shortens.
    pub(crate) fn cause(self, face: Face) -> Cause {
        let leaves = (self.described().leaves)(face);
        let leaves_some = matches!(leaves, ShortenedContent::Part(TextCut { may_go: true, .. }));
        Cause::Shortened { rule: self, leaves_some }
    }

    /// Whether the rule counts turns without a touch, not turns since birth.
    pub fn is_idle(self) -> bool {
        matches!(self.described().acts, Acts::Idle { .. })
    }
}

impl fmt::Debug for ShortenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl serde::Serialize for ShortenKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.label())
    }
}
