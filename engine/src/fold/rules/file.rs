//! File: a later call on the same file makes an earlier view of it stale (kind `file`, or the names dcp gives it).
//!
//! The policy's matrix says which class of call clears which class of view. A key of one kind never meets one of
//! another, so a search is cleared by an equal search alone.

use super::{Clear, ClaimKey, Failed, Finds, Guard, Look, On, Rule, RuleLabel, Tombstone};
use crate::event::{KeyKind, ToolClass};
use crate::fold::number::Ix;
use crate::fold::policy_values::FileKind;

pub(super) const FILE: RuleLabel = RuleLabel {
    number: 2,
    name: "file",
    short: "file",
    sign: "📁",
    is_always_shown: true,
    tombstone: Tombstone::Tool("file superseded by ", ""),
    line: |line| format!("file {}: {} {} superseded by {}", line.key, line.tool, line.old, line.by),
    reason: "a later call worked on the same file{key}",
};

pub(super) const WRITE: RuleLabel = RuleLabel {
    number: 3,
    name: "supersede_write",
    short: "file",
    sign: "📁",
    is_always_shown: false,
    tombstone: Tombstone::Text("written file was read later"),
    line: |line| (FILE.line)(line),
    reason: "the file{key} was read after it was written",
};

pub(super) const READ: RuleLabel = RuleLabel {
    number: 4,
    name: "supersede_read",
    short: "file",
    sign: "📁",
    is_always_shown: false,
    tombstone: Tombstone::Tool("read file was changed by ", ""),
    line: |line| (FILE.line)(line),
    reason: "the file{key} was changed after it was read",
};

pub(crate) const RULE: Rule = Rule {
    label: |policy| match policy.file.kind {
        FileKind::File => 0,
        FileKind::SupersedeWrite => 1,
        FileKind::SupersedeRead => 2,
    },
    guard: Guard::File,
    failed: Failed::ByPolicy,
    ..Rule::of(&[&FILE, &WRITE, &READ], On::Policy(|_| true), Finds::Files)
};

/// The slots in which a call's views of files, and its searches, can be found.
pub(super) fn lay(look: Look<'_>, ix: Ix, lay: &mut dyn FnMut(ClaimKey)) {
    for (_, key) in look.keys(ix) {
        if matches!(key.kind, KeyKind::File | KeyKind::Search) {
            lay(ClaimKey { group: group(key.class), key: look.id(key).0 });
        }
    }
}

/// The slots that a call empties by the policy's matrix.
pub(super) fn clear(look: Look<'_>, ix: Ix, clear: &mut dyn FnMut(Clear)) {
    for (index, key) in look.keys(ix) {
        if !matches!(key.kind, KeyKind::File | KeyKind::Search) {
            continue;
        }
        for &class in look.policy.file.clears(key.class) {
            let waits = look.policy.file.edit_quiet_steps > 0
                && key.class == ToolClass::Edit
                && matches!(class, ToolClass::Read | ToolClass::Write);
            clear(Clear { slot: ClaimKey { group: group(class), key: look.id(key).0 }, key: index, waits });
        }
    }
}

/// Views of one class have a group of their own, so that a call looks only at views that it may clear.
pub(crate) const fn group(class: ToolClass) -> u8 {
    class as u8
}

/// The class a group stands for.
pub(crate) const fn class(group: u8) -> ToolClass {
    match group {
        0 => ToolClass::Read,
        1 => ToolClass::Write,
        2 => ToolClass::Edit,
        3 => ToolClass::Delete,
        4 => ToolClass::Search,
        _ => ToolClass::Other,
    }
}
