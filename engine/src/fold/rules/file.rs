//! File: a later call on the same file makes an earlier view of it stale (kind `file`, or the names dcp gives it).
//!
//! The policy's matrix says which class of call clears which class of view. A key of one kind never meets one of
//! another, so a search is cleared by an equal search alone.

use super::{Clear, Failed, Guard, Rule, Slot};
use crate::event::{KeyKind, ToolClass};
use crate::fold::history::RuleKind;
use crate::fold::policy::FileKind;

pub(crate) const RULE: Rule = Rule {
    on: |_| true,
    kind: |policy| match policy.file.kind {
        FileKind::File => RuleKind::File,
        FileKind::SupersedeWrite => RuleKind::SupersedeWrite,
        FileKind::SupersedeRead => RuleKind::SupersedeRead,
    },
    guard: Guard::File,
    failed: Failed::ByPolicy,
    any_turn: false,
    lays: |look, ix, lay| {
        for (_, key) in look.keys(ix) {
            if matches!(key.kind, KeyKind::File | KeyKind::Search) {
                lay(Slot { group: group(key.class), key: look.id(key).0 });
            }
        }
    },
    clears: |look, ix, clear| {
        for (index, key) in look.keys(ix) {
            if !matches!(key.kind, KeyKind::File | KeyKind::Search) {
                continue;
            }
            for &class in look.policy.file.clears(key.class) {
                let waits = look.policy.file.edit_quiet_steps > 0
                    && key.class == ToolClass::Edit
                    && matches!(class, ToolClass::Read | ToolClass::Write);
                clear(Clear { slot: Slot { group: group(class), key: look.id(key).0 }, key: index, waits });
            }
        }
    },
};

/// Views of one class have a group of their own, so that a call looks only at what it clears.
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
