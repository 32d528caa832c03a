//! What a rule's edges are called, and every text about them: one descriptor for policies, queries, tombstones, log lines,
//! figures and explanations.

use super::RULES;
use crate::fold::history::RuleKind;
use crate::fold::rows::{Fields, Flat, Out};

/// What is told of the edges of a rule.
pub(crate) struct Label {
    /// The number in memory and in saved folds. No two labels share one, and there are no gaps.
    pub(crate) number: u8,
    /// The name in policies, queries, JSON and words.
    pub(crate) name: &'static str,
    /// The name in figures; labels of one name share a row.
    pub(crate) short: &'static str,
    /// The sign in figures and log lines.
    pub(crate) sign: &'static str,
    /// Whether figures show a row even if nothing was hidden.
    pub(crate) is_always_shown: bool,
    /// What stands in place of a superseded face.
    pub(crate) tombstone: Tombstone,
    /// The log line of an edge, without its sign.
    pub(crate) line: fn(&Line<'_>) -> String,
    /// What the rule saw; `{key}` is replaced by what the two calls share.
    pub(crate) reason: &'static str,
}

/// The text of a tombstone, between its brackets.
#[derive(Clone, Copy)]
pub(crate) enum Tombstone {
    /// No tombstone.
    Nothing,
    /// Always the same.
    Text(&'static str),
    /// With the name of the superseding tool between.
    Tool(&'static str, &'static str),
}

/// What log lines of edges are made of.
pub(crate) struct Line<'a> {
    /// The hosts' ids of the superseded call and of the superseding one.
    pub(crate) old: &'a str,
    pub(crate) new: &'a str,
    /// Their tools.
    pub(crate) tool: &'a str,
    pub(crate) by: &'a str,
    /// The key by which one supersedes the other.
    pub(crate) key: &'a str,
    /// Turn of the superseded call.
    pub(crate) turn: u32,
    /// The short hash of the superseding call.
    pub(crate) hash: &'a dyn Fn() -> String,
}

/// A newer reminder or reflection, or an update of the list it was about. No rule makes these edges.
const INJECTED: Label = Label {
    number: 11,
    name: "injected",
    short: "injected",
    sign: "🔧",
    is_always_shown: false,
    tombstone: Tombstone::Nothing,
    line: |line| format!("injected {}", line.old),
    reason: "a newer injected text replaced it",
};

const COUNT: usize = {
    let mut count = 1;
    let mut rules = RULES;
    while let [rule, rest @ ..] = rules {
        count += rule.labels.len();
        rules = rest;
    }
    count
};

/// All labels, by number.
static LABELS: [&Label; COUNT] = labels();

#[expect(clippy::indexing_slicing, reason = "at compile time: a number past the end ends the build")]
const fn labels() -> [&'static Label; COUNT] {
    let mut all = [None; COUNT];
    all[INJECTED.number as usize] = Some(&INJECTED);
    let mut rules = RULES;
    while let [rule, more @ ..] = rules {
        let mut own = rule.labels;
        while let [label, rest @ ..] = own {
            assert!(all[label.number as usize].is_none(), "two labels have one number");
            all[label.number as usize] = Some(*label);
            own = rest;
        }
        rules = more;
    }
    let mut found = [&INJECTED; COUNT];
    let mut number = 0;
    while number < COUNT {
        if let Some(label) = all[number] {
            found[number] = label;
        }
        number += 1;
    }
    found
}

impl RuleKind {
    /// A repeat: same tool, same parameters.
    pub const HASH: Self = Self::of(&super::hash::HASH);
    /// A repeat, top-level nulls left out: the same rule in its other mode.
    pub const DEDUP: Self = Self::of(&super::hash::DEDUP);
    /// A later call on the same file.
    pub const FILE: Self = Self::of(&super::file::FILE);
    /// A newer todo call.
    pub const TODO: Self = Self::of(&super::todo::LABEL);
    /// A failed attempt that succeeded later.
    pub const RETRY: Self = Self::of(&super::retry::LABEL);
    /// A newer reminder or reflection, or an update of the list it was about.
    pub const INJECTED: Self = Self::of(&INJECTED);

    pub(crate) const fn of(label: &Label) -> Self {
        Self::numbered(label.number)
    }

    /// All kinds, in the order in which figures list them.
    pub fn all() -> impl Iterator<Item = Self> {
        LABELS.iter().map(|label| Self::of(label))
    }

    /// Whether a label has the number.
    pub(crate) fn is_known(number: u8) -> bool {
        usize::from(number) < COUNT
    }

    pub(crate) fn described(self) -> &'static Label {
        LABELS.get(usize::from(self.number())).copied().unwrap_or(&INJECTED)
    }

    /// The name of the rule in policies, queries, JSON and words.
    pub fn label(self) -> &'static str {
        self.described().name
    }

    /// What the rule saw, in words. `key` is what the two calls share, with a blank before it, or empty.
    pub fn reason(self, key: &str) -> String {
        self.described().reason.replace("{key}", key)
    }
}

impl Flat for RuleKind {
    const BYTES: usize = 1;

    fn put(&self, out: &mut Out) {
        self.number().put(out);
    }

    fn get(row: &mut Fields<'_>) -> Self {
        let number = u8::get(row);
        if !Self::is_known(number) {
            row.refuse();
        }
        Self::numbered(number)
    }
}

impl std::fmt::Debug for RuleKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())
    }
}

impl serde::Serialize for RuleKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.label())
    }
}
