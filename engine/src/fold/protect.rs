//! Protection: which lists a tool or a file is on, under the policy in force.
//!
//! Matching patterns costs more than a rule does, so each name is matched once per policy. Precedence, as `explain`
//! names it: pinned, protected file, protected tool, turn protection.

use rustc_hash::FxHashMap;

use super::facts::Facts;
use super::number::{Ix, Name};
use super::policy_values::Policy;
use crate::event::KeyKind;
use crate::failpoints::{Failpoint, is_enabled};

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

/// What has been matched so far, under one policy.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Lists {
    /// By name. Tools are among the first names of a stream.
    tools: Vec<Option<ToolLists>>,
    #[rkyv(with = rkyv::with::AsVec)]
    files: FxHashMap<Name, bool>,
}

impl Lists {
    /// Forgets everything: the policy changed.
    pub(crate) fn clear(&mut self) {
        self.tools.clear();
        self.files.clear();
    }

    /// Matches what a call names, so that it can be looked up.
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
        !is_enabled(Failpoint::TombstoneOnProtected)
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
