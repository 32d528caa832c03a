//! The rules by which a newer call supersedes an older one.
//!
//! ```text
//! older call X   --lay-->    slots it can be found under          (repeat: its signature; file: each key and class)
//! newer call N   --clear-->  slots whose calls it may supersede   (repeat: its signature; file: keys the matrix allows)
//! ```
//!
//! A rule says how its calls are found ([`Finds`]), which names and texts its edges have ([`RuleLabel`]), and how a policy turns it on
//! ([`On`]). Finding candidates, protection, order and edges are the same for all and stand in [`step`](super::step). One file a
//! rule, one line in the list of [`RULES`], in the order in which they are asked, and one a label in [`LABELS`].
//! Rules that shorten stand in the list of [`SHORTENING`] in the same way, as [`Shortening`]; those by age are rows of one table, [`idle`].

pub(crate) mod shorten;

use shorten::{Acts, AgesKey, Shortening};

use super::claims::ClaimKey;
use rustc_hash::FxHashMap;

use super::facts::{CallFact, Facts, KeyFact};
use super::history::RuleKind;
use super::number::{Ix, KeyId, NONE, Name};
use super::policy_values::{Paths, Policy};
use crate::event::KeyKind;
use crate::failpoints::failpoint;

/// The rules by their files, in the order in which they are asked.
macro_rules! rules {
    ($($file:ident)+) => {
        $(pub(crate) mod $file;)+

        /// All rules, in the order in which they are asked.
        pub(crate) const RULES: &[Rule] = &[$($file::RULE),+];
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

pub(crate) mod command_lines;
pub(crate) mod compress_reasoning;
pub(crate) mod idle;
pub(crate) mod purge_errors;
pub(crate) mod search_lines;
pub(crate) mod shelve;
pub(crate) mod truncate;

/// All rules that shorten, in the order in which they are asked. A rule's place is its number in saved folds.
pub(crate) const SHORTENING: &[Shortening] = &[
    purge_errors::RULE,
    truncate::RULE,
    compress_reasoning::RULE,
    shelve::RULE,
    idle::SUBAGENTS,
    idle::NOTES,
    idle::READS,
    idle::SHELL_READS,
    idle::SEARCHES,
    idle::CHANGES,
    idle::OTHERS,
    idle::SUPERSEDED,
    idle::EDITS,
    idle::WRITES,
    idle::INPUTS,
    idle::REASONING,
    search_lines::RULE,
    command_lines::RULE,
];

/// The state that a rule looks at.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) policy: &'a Policy,
    pub(crate) lists: &'a Lists,
}

impl<'a> Look<'a> {
    pub(crate) fn call(&self, ix: Ix) -> Option<&'a CallFact> {
        self.facts.call(ix)
    }

    /// Whether a call's tool steers the agent, so that nothing of it is set aside. It goes through patterns.
    pub(crate) fn steers(&self, ix: Ix) -> bool {
        self.policy.shelf.except.is_match(self.facts.tool(ix))
    }

    /// A call's keys, each with its index among all keys.
    pub(crate) fn keys(&self, ix: Ix) -> impl Iterator<Item = (u32, &'a KeyFact)> {
        let (first, keys) =
            self.call(ix).map_or((0, &[][..]), |call| (call.keys.0, self.facts.keys_of(call)));
        (first..).zip(keys)
    }

    /// A key's identity under the policy.
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
    pub(crate) slot: ClaimKey,
    /// Index of the key by which the call empties it, or [`NONE`].
    pub(crate) key: u32,
    /// Not at once: when the file has rested.
    pub(crate) waits: bool,
}

/// Whether failed calls can be superseded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// Never.
    No,
    /// If the policy says so.
    ByPolicy,
    /// Failed calls, too.
    Yes,
    /// Failed calls alone.
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

/// The keys of rules that have ages, each with the rule's number.
pub(crate) fn ages_keys() -> impl Iterator<Item = (usize, AgesKey)> {
    SHORTENING.iter().enumerate().filter_map(|(number, rule)| match rule.acts {
        Acts::Idle { ages, .. } | Acts::AtAge { ages, .. } => Some((number, ages?)),
        Acts::AtPrompt { ages, .. } => Some((number, ages)),
    })
}

/// A rule of supersession.
pub(crate) struct Rule {
    /// Labels that its edges can have.
    labels: &'static [&'static RuleLabel],
    on: On,
    /// The index of the label that its edges have under a policy.
    label: fn(&Policy) -> usize,
    pub(crate) guard: Guard,
    pub(crate) failed: Failed,
    /// Takes calls of the same turn, if they started earlier.
    pub(crate) any_turn: bool,
    pub(crate) finds: Finds,
}

/// The slots that calls of a rule have in common: an older call lies in them, a newer one takes the calls that lie in them.
#[derive(Clone, Copy)]
pub(crate) enum Finds {
    /// One slot, for calls that have one.
    One(fn(Look<'_>, Ix) -> Option<ClaimKey>),
    /// A slot for each key of a kind.
    Keys(KeyKind),
    /// One tool: its newest call takes the place of every earlier one, whatever they say.
    Tool(&'static str),
    /// Files, as the policy's matrix says.
    Files,
}

impl Finds {
    /// The slots in which a call can be found.
    pub(crate) fn lay(self, look: Look<'_>, ix: Ix, lay: &mut dyn FnMut(ClaimKey)) {
        match self {
            Self::Files => file::lay(look, ix, lay),
            other => other.each(look, ix, &mut |_, slot| lay(slot)),
        }
    }

    /// The slots that a call empties.
    pub(crate) fn clear(self, look: Look<'_>, ix: Ix, clear: &mut dyn FnMut(Clear)) {
        match self {
            Self::Files => file::clear(look, ix, clear),
            other => other.each(look, ix, &mut |key, slot| clear(Clear { slot, key, waits: false })),
        }
    }

    /// The slots of a call, the same on both sides, each with the index of its key.
    fn each(self, look: Look<'_>, ix: Ix, found: &mut dyn FnMut(u32, ClaimKey)) {
        match self {
            Self::One(slot) => {
                if let Some(slot) = slot(look, ix) {
                    found(NONE, slot);
                }
            }
            Self::Keys(kind) => {
                for (index, key) in look.keys(ix).filter(|(_, key)| key.kind == kind) {
                    found(index, ClaimKey { group: 0, key: look.id(key).0 });
                }
            }
            Self::Tool(tool) => {
                if look.facts.tool(ix) == tool {
                    found(NONE, ClaimKey { group: 0, key: 0 });
                }
            }
            Self::Files => {}
        }
    }
}

impl Rule {
    /// A rule that the common list of tools guards. Its edges have its first label, and it takes completed calls of earlier turns.
    const fn of(labels: &'static [&'static RuleLabel], on: On, finds: Finds) -> Self {
        Self { labels, label: |_| 0, on, guard: Guard::Common, failed: Failed::No, any_turn: false, finds }
    }

    /// The kind of its edges under a policy.
    pub(crate) fn kind(&self, policy: &Policy) -> RuleKind {
        RuleKind::of(self.labels.get((self.label)(policy)).copied().unwrap_or(&INJECTED))
    }

    /// Whether the policy has the rule on. `number`: its place among [`RULES`].
    pub(crate) fn is_on(&self, number: usize, policy: &Policy) -> bool {
        match self.on {
            On::Policy(asks) => asks(policy),
            On::Switch(_) => u8::try_from(number).is_ok_and(|number| policy.switches.is_on(number)),
        }
    }
}

/// Names and texts for the edges of a rule.
pub(crate) struct RuleLabel {
    /// The number in memory and in saved folds: its place among [`LABELS`].
    pub(crate) number: u8,
    /// The name in policies, queries, JSON and words.
    pub(crate) name: &'static str,
    /// The name in figures; labels of one name share a row.
    pub(crate) short: &'static str,
    /// The sign in figures and log lines.
    pub(crate) sign: &'static str,
    /// Whether figures show a row even if nothing was hidden.
    pub(crate) is_always_shown: bool,
    /// The text in place of a superseded face.
    pub(crate) tombstone: Tombstone,
    /// The log line of an edge, without its sign.
    pub(crate) line: fn(&EdgeLine<'_>) -> String,
    /// The rule's reason; `{key}` is replaced by the key that the two calls share.
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

/// The values in log lines of edges.
pub(crate) struct EdgeLine<'a> {
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
const INJECTED: RuleLabel = RuleLabel {
    number: 11,
    name: "injected",
    short: "injected",
    sign: "🔧",
    is_always_shown: false,
    tombstone: Tombstone::Nothing,
    line: |line| format!("injected {}", line.old),
    reason: "a newer injected text replaced it",
};

/// All labels, by number.
static LABELS: &[&RuleLabel] = &[
    &hash::HASH,
    &hash::DEDUP,
    &file::FILE,
    &file::WRITE,
    &file::READ,
    &todo::LABEL,
    &url::LABEL,
    &state_query::LABEL,
    &snapshot::LABEL,
    &retry::LABEL,
    &context_rule::LABEL,
    &INJECTED,
    &command_family::LABEL,
];

impl RuleKind {
    /// A repeat: same tool, same parameters.
    pub const HASH: Self = Self::of(&hash::HASH);
    /// A repeat, top-level nulls left out: the same rule in its other mode.
    pub const DEDUP: Self = Self::of(&hash::DEDUP);
    /// A later call on the same file.
    pub const FILE: Self = Self::of(&file::FILE);
    /// A newer todo call.
    pub const TODO: Self = Self::of(&todo::LABEL);
    /// A failed attempt that succeeded later.
    pub const RETRY: Self = Self::of(&retry::LABEL);
    /// A newer reminder or reflection, or an update of the list it was about.
    pub const INJECTED: Self = Self::of(&INJECTED);

    pub(crate) const fn of(label: &RuleLabel) -> Self {
        Self::numbered(label.number)
    }

    /// All kinds, in the order in which figures list them.
    pub fn all() -> impl Iterator<Item = Self> {
        LABELS.iter().map(|label| Self::of(label))
    }

    pub(crate) fn described(self) -> &'static RuleLabel {
        LABELS.get(usize::from(self.number())).copied().unwrap_or(&INJECTED)
    }

    /// The name of the rule in policies, queries, JSON and words.
    pub fn label(self) -> &'static str {
        self.described().name
    }

    /// The rule's reason, in words. `key`: the key that the two calls share, with a blank before it, or empty.
    pub fn reason(self, key: &str) -> String {
        self.described().reason.replace("{key}", key)
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

// --- protection ----------------------------------------------------------------------------------------------------------

// The lists that a tool or a file is on, under the policy in force. Matching patterns costs more than a rule does, so each name is
// matched once per policy. Precedence, as `explain` names it: pinned, protected file, protected tool, turn protection.

/// The lists of protected tools that hold against a rule.
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

/// Lists that a tool is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one a list")]
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct ToolLists {
    pub(crate) protected: bool,
    pub(crate) repeat_protected: bool,
    pub(crate) file_protected: bool,
    pub(crate) purge_protected: bool,
    pub(crate) repeat_except: bool,
}

/// Names that were matched so far, under one policy.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Lists {
    /// By name. Tools are among the first names of a stream.
    tools: Vec<Option<ToolLists>>,
    #[rkyv(with = rkyv::with::AsVec)]
    files: FxHashMap<Name, bool>,
    /// Rules by age that the policy has on, a bit each, by their numbers.
    aging: Option<u32>,
}

impl Lists {
    /// Forgets everything: the policy changed.
    pub(crate) fn clear(&mut self) {
        self.tools.clear();
        self.files.clear();
        self.aging = None;
    }

    /// Rules by age that the policy has on, a bit each, by their numbers.
    pub(crate) fn aging(&mut self, policy: &Policy) -> u32 {
        *self.aging.get_or_insert_with(|| aging(policy))
    }

    /// Matches the names of a call's tool and files, so that they can be looked up.
    pub(crate) fn learn(&mut self, facts: &Facts, policy: &Policy, ix: Ix) {
        let Some(call) = facts.call(ix) else { return };
        if self.tools.len() <= call.tool.at() {
            self.tools.resize(call.tool.at().saturating_add(1), None);
        }
        if let Some(lists @ None) = self.tools.get_mut(call.tool.at()) {
            *lists = Some(tool_lists(policy, facts.names.text(call.tool)));
        }
        if policy.protected_files.is_empty() {
            return;
        }
        for key in facts.keys_of(call).iter().filter(|key| key.kind == KeyKind::File) {
            for name in [Some(key.given), key.resolved].into_iter().flatten() {
                self.files
                    .entry(name)
                    .or_insert_with(|| policy.protected_files.is_match(facts.names.text(name)));
            }
        }
    }

    /// The lists a tool is on; it must have been learnt.
    pub(crate) fn tool(&self, tool: Name) -> ToolLists {
        self.tools.get(tool.at()).copied().flatten().unwrap_or_default()
    }

    /// Whether a call names a protected file.
    pub(crate) fn is_file_protected(&self, facts: &Facts, ix: Ix) -> bool {
        let Some(call) = facts.call(ix) else { return false };
        !failpoint!(TombstoneOnProtected)
            && !self.files.is_empty()
            && facts.keys_of(call).iter().filter(|key| key.kind == KeyKind::File).any(|key| {
                let named = |name| self.files.get(&name).copied().unwrap_or_default();
                named(key.given) || key.resolved.is_some_and(named)
            })
    }

    /// Whether a call is protected from rules with this guard.
    pub(crate) fn holds(&self, facts: &Facts, ix: Ix, guard: Guard) -> bool {
        let Some(call) = facts.call(ix) else { return false };
        let tool = self.tool(call.tool);
        let by_tool = match guard {
            Guard::Common => tool.protected,
            Guard::Repeat => tool.protected || tool.repeat_protected,
            Guard::File => tool.protected || tool.file_protected,
            Guard::FilesOnly => false,
        };
        by_tool || self.is_file_protected(facts, ix)
    }
}

fn aging(policy: &Policy) -> u32 {
    const { assert!(SHORTENING.len() <= u32::BITS as usize, "a bit for each rule") };
    let rules = SHORTENING.iter().enumerate().filter(|(number, rule)| match rule.acts {
        Acts::AtAge { is_on, .. } => is_on(policy, policy.idle.ages(*number)),
        Acts::Idle { .. } | Acts::AtPrompt { .. } => false,
    });
    rules.fold(0, |bits, (number, _)| bits | 1 << number)
}

/// The lists a tool is on.
pub(crate) fn tool_lists(policy: &Policy, tool: &str) -> ToolLists {
    ToolLists {
        protected: policy.protected_tools.is_match(tool),
        repeat_protected: policy.repeat.protected_tools.is_match(tool),
        file_protected: policy.file.protected_tools.is_match(tool),
        purge_protected: policy.purge_errors.protected_tools.is_match(tool),
        repeat_except: policy.repeat.except.is_match_tool(tool),
    }
}

/// Whether a call names a file that `policy` protects.
pub(crate) fn names_protected_file(facts: &Facts, policy: &Policy, ix: Ix) -> bool {
    let Some(call) = facts.call(ix) else { return false };
    facts.keys_of(call).iter().filter(|key| key.kind == KeyKind::File).any(|key| {
        let is_protected = |name| policy.protected_files.is_match(facts.names.text(name));
        is_protected(key.given) || key.resolved.is_some_and(is_protected)
    })
}
