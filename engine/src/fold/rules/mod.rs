//! The rules: what makes a newer call supersede an older one.
//!
//! ```text
//! older call X   --lays-->   slots it can be found under          (repeat: its signature; file: each key and class)
//! newer call N   --clears--> slots whose calls it may supersede   (repeat: its signature; file: keys the matrix allows)
//! ```
//!
//! A rule says only that; finding candidates, protection, order and edges are the same for all and stand in
//! [`core`](super::core). One file a rule, one line in [`RULES`], in the order in which they are asked.
//! Rules that shorten instead are in [`SHORTENING`].

pub(crate) mod compress_reasoning;
pub(crate) mod context_rule;
pub(crate) mod file;
pub(crate) mod hash;
pub(crate) mod purge_errors;
pub(crate) mod quiet;
pub(crate) mod retry;
pub(crate) mod snapshot;
pub(crate) mod state_query;
pub(crate) mod todo;
pub(crate) mod truncate;
pub(crate) mod url;

use super::facts::{Call, Facts, Ix, KeyFact, KeyId, NONE, Size};
use super::history::{RuleKind, ShortenKind};
use super::policy::{Paths, Policy};
use super::protect::Lists;

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

/// Where calls are found: a group within a rule, and a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Slot {
    pub(crate) group: u8,
    pub(crate) key: u32,
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

/// Which lists of protected tools hold against a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Guard {
    /// The common one.
    Common,
    /// The common one and that of the repeat rule.
    Repeat,
    /// The common one and that of the file rule.
    File,
    /// None; protected files only.
    FilesOnly,
}

/// Whether failed calls can be superseded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// Never.
    No,
    /// If the policy says so.
    ByPolicy,
    /// They alone.
    Only,
}

/// A rule of supersession.
pub(crate) struct Rule {
    pub(crate) on: fn(&Policy) -> bool,
    pub(crate) kind: fn(&Policy) -> RuleKind,
    pub(crate) guard: Guard,
    pub(crate) failed: Failed,
    /// Takes calls of the same turn, if they started earlier.
    pub(crate) any_turn: bool,
    pub(crate) lays: fn(Look<'_>, Ix, &mut dyn FnMut(Slot)),
    pub(crate) clears: fn(Look<'_>, Ix, &mut dyn FnMut(Clear)),
}

/// All rules, in the order in which they are asked.
pub(crate) const RULES: &[Rule] = &[
    hash::RULE,
    file::RULE,
    url::RULE,
    state_query::RULE,
    snapshot::RULE,
    retry::RULE,
    context_rule::RULE,
    todo::RULE,
];

/// Place of the file rule: edges that wait for a file to rest come about just before it is asked.
pub(crate) const FILE_RULE: usize = 1;

/// What a shortening rule looks at.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) ix: Ix,
    pub(crate) failed: bool,
    pub(crate) completed: bool,
    pub(crate) output: Size,
}

/// A rule that shortens what is shown.
pub(crate) struct Shortening {
    pub(crate) kind: ShortenKind,
    /// Age in turns at which it acts on the subject; `None`: never.
    pub(crate) age: fn(Look<'_>, Subject) -> Option<u32>,
}

/// All rules that shorten, in the order in which they act.
pub(crate) const SHORTENING: &[Shortening] = &[purge_errors::RULE, truncate::RULE, compress_reasoning::RULE];
