//! The rules: what makes a newer call supersede an older one.
//!
//! ```text
//! older call X   --lays-->   slots it can be found under          (repeat: its signature; file: each key and class)
//! newer call N   --clears--> slots whose calls it may supersede   (repeat: its signature; file: keys the matrix allows)
//! ```
//!
//! A rule says that, what its edges are called and what is told of them ([`Label`]), and how a policy turns it on ([`On`]).
//! Finding candidates, protection, order and edges are the same for all and stand in [`state`](super::state). One file a
//! rule, one line in the list of [`RULES`], in the order in which they are asked.
//! Rules that shorten stand in the list of [`SHORTENING`] in the same way, as [`Shortening`].

mod label;
pub(crate) mod shorten;

pub(crate) use label::{Label, Line, Tombstone};

/// The rules by their files, in the order in which they are asked.
macro_rules! rules {
    ($($file:ident)+) => {
        $(pub(crate) mod $file;)+

        /// All rules, in the order in which they are asked.
        pub(crate) const RULES: &[Rule] = &[$($file::RULE),+];

        /// Their files.
        const FILES: &[&str] = &[$(stringify!($file)),+];
    };
}

rules! {
    hash
    file
    url
    state_query
    snapshot
    retry
    context_rule
    todo
    command_family
}

/// The rules that shorten by their files. Their place is their number.
macro_rules! shortening {
    ($($file:ident)+) => {
        $(pub(crate) mod $file;)+

        /// All rules that shorten, in the order in which they are asked.
        pub(crate) const SHORTENING: &[Shortening] = &[$($file::RULE),+];

        /// Their files.
        const SHORTENING_FILES: &[&str] = &[$(stringify!($file)),+];
    };
}

shortening! {
    purge_errors
    truncate
    compress_reasoning
    shelve
    idle_subagents
    idle_notes
    idle_reads
    idle_shell_reads
    idle_searches
    idle_changes
    idle_others
    idle_superseded
    idle_edits
    idle_writes
    idle_inputs
    idle_reasoning
    search_lines
}

pub(crate) mod quiet;

use shorten::Shortening;

use super::claims::Slot;
use super::facts::{Call, Facts, KeyFact};
use super::history::RuleKind;
use super::number::{Ix, KeyId, NONE};
use super::policy_values::{Paths, Policy};
use super::protect::{Guard, Lists};

/// What a rule looks at.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) policy: &'a Policy,
    pub(crate) lists: &'a Lists,
}

impl<'a> Look<'a> {
    pub(crate) fn call(&self, ix: Ix) -> Option<&'a Call> {
        self.facts.call(ix)
    }

    /// A call's keys, each with its index among all keys.
    pub(crate) fn keys(&self, ix: Ix) -> impl Iterator<Item = (u32, &'a KeyFact)> {
        let (first, keys) =
            self.call(ix).map_or((0, &[][..]), |call| (call.keys.0, self.facts.keys_of(call)));
        (first..).zip(keys)
    }

    /// What a key compares as under the policy.
    pub(crate) fn id(&self, key: &KeyFact) -> KeyId {
        match self.policy.paths {
            Paths::Raw => key.id_given,
            Paths::Session => key.id_resolved,
        }
    }
}

/// A slot that a call empties.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clear {
    pub(crate) slot: Slot,
    /// Index of the key by which it does so, or [`NONE`].
    pub(crate) key: u32,
    /// Not at once: when the file has rested.
    pub(crate) waits: bool,
}

impl Clear {
    pub(crate) const fn all(slot: Slot) -> Self {
        Self { slot, key: NONE, waits: false }
    }
}

/// Whether failed calls can be superseded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// Never.
    No,
    /// If the policy says so.
    ByPolicy,
    /// They, too.
    Yes,
    /// They alone.
    Only,
}

impl Failed {
    /// Whether a call that is ready, or has failed, can be superseded.
    pub(crate) const fn is_meant(self, ready: bool, failed: bool, policy: &Policy) -> bool {
        match self {
            Self::No => ready,
            Self::ByPolicy => ready || failed && policy.failed,
            Self::Yes => ready || failed,
            Self::Only => failed,
        }
    }
}

/// How a policy turns a rule on.
#[derive(Clone, Copy)]
pub(crate) enum On {
    /// By settings of its own.
    Policy(fn(&Policy) -> bool),
    /// By a key that is true or false.
    Switch(Switch),
}

/// A key of policies that turns one rule on.
#[derive(Clone, Copy)]
pub(crate) struct Switch {
    pub(crate) key: &'static str,
    /// The presets in which it is on.
    pub(crate) presets: &'static [&'static str],
    /// Not in policies that the first version recorded: left out where it changes nothing.
    pub(crate) is_late: bool,
}

/// The switches of the rules, each with the number by which [`Switches`](super::policy_values::Switches) know it.
pub(crate) fn switches() -> impl Iterator<Item = (u8, Switch)> {
    (0..).zip(RULES).filter_map(|(number, rule)| match rule.on {
        On::Switch(switch) => Some((number, switch)),
        On::Policy(_) => None,
    })
}

/// A rule of supersession.
pub(crate) struct Rule {
    /// What its edges can be called.
    pub(crate) labels: &'static [&'static Label],
    pub(crate) on: On,
    /// What an edge is called now.
    pub(crate) kind: fn(&Policy) -> RuleKind,
    pub(crate) guard: Guard,
    pub(crate) failed: Failed,
    /// Takes calls of the same turn, if they started earlier.
    pub(crate) any_turn: bool,
    pub(crate) lays: fn(Look<'_>, Ix, &mut dyn FnMut(Slot)),
    pub(crate) clears: fn(Look<'_>, Ix, &mut dyn FnMut(Clear)),
}

impl Rule {
    /// Whether the policy has it on. `number`: its place among [`RULES`].
    pub(crate) fn is_on(&self, number: usize, policy: &Policy) -> bool {
        match self.on {
            On::Policy(asks) => asks(policy),
            On::Switch(_) => u8::try_from(number).is_ok_and(|number| policy.switches.is_on(number)),
        }
    }
}

/// Place of the file rule: edges that wait for a file to rest come about just before it is asked.
pub(crate) const FILE_RULE: usize = place_of("file", FILES);

/// The place of a name in a list. A name that is not there ends the build.
#[expect(clippy::panic, reason = "evaluated while compiling only")]
const fn place_of(name: &str, names: &[&str]) -> usize {
    let mut place = 0;
    let mut rest = names;
    while let [first, more @ ..] = rest {
        if is_same(first.as_bytes(), name.as_bytes()) {
            return place;
        }
        place += 1;
        rest = more;
    }
    panic!("the list does not hold the name")
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([a, one_rest @ ..], [b, other_rest @ ..]) = (one, other) {
        if *a != *b {
            return false;
        }
        (one, other) = (one_rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}
