//! A face in the context: its tokens as recorded, as shown and as sent.

use acpdb_engine::event::Face;
use acpdb_engine::fold::CauseView;
use acpdb_engine::ids::{BodyId, ItemId};
use acpdb_serve::point::LineRun;

/// A face that is, or was, in the context.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "one fact each, none follows from another")]
pub(super) struct ContextSlot {
    /// Tokens as recorded.
    pub(super) whole: u64,
    /// Tokens as it would be sent if no rule hid anything.
    pub(super) unhidden: u64,
    /// Tokens as the fold shows it now.
    pub(super) current: u64,
    /// Tokens as the fold showed it when it was last applied.
    pub(super) applied: u64,
    /// Tokens as sent: the applied tokens, less those that pointers save.
    pub(super) sent: u64,
    pub(super) is_sent: bool,
    /// Changed by the host or on request: cannot wait.
    pub(super) forced: bool,
    pub(super) waited: u32,
    pub(super) is_pending: bool,
    pub(super) was_hidden: bool,
    pub(super) was_needed: bool,
    pub(super) written: bool,
    pub(super) bodies: Vec<(BodyId, bool)>,
    /// Numbers of its texts among those seen.
    pub(super) seen: Vec<usize>,
    pub(super) runs: Vec<LineRun>,
    /// Words of it that count as visible.
    pub(super) words_shown: VisibleWords,
    /// Words of its placeholder, by number, if the placeholder is a part of it.
    pub(super) words_left: Vec<u32>,
    pub(super) is_edit: bool,
    /// Its kind, as a place among those of [`OldItems`](crate::simulate::OldItems).
    pub(super) kind: usize,
    pub(super) name: Option<(ItemId, Face)>,
    /// The turn in which it came about.
    pub(super) turn: u32,
    /// The rule or act that hid it last.
    pub(super) rule: String,
    /// Reasoning: the number of prompts before it.
    pub(super) run: Option<u64>,
}

/// The words of a slot that count as visible.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) enum VisibleWords {
    #[default]
    None,
    /// These, in the order of their numbers.
    Some(Vec<u32>),
    All,
}

impl VisibleWords {
    pub(super) fn holds(&self, word: u32) -> bool {
        match self {
            Self::None => false,
            Self::Some(words) => words.binary_search(&word).is_ok(),
            Self::All => true,
        }
    }
}

impl ContextSlot {
    pub(super) const fn is_hidden(&self) -> bool {
        self.applied < self.whole
    }
}

/// The name of the rule or act that hid a face.
pub(super) fn rule_of(cause: &CauseView) -> &str {
    match cause {
        CauseView::Superseded { rule, .. } => rule.label(),
        CauseView::Shortened { rule, .. } => rule.label(),
        CauseView::Evicted { .. } => "task",
        CauseView::Discarded { .. } | CauseView::Distilled { .. } => "request",
        _ => "host",
    }
}
