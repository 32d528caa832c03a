//! Items that rules shortened: a list that only tests ask for.

use crate::fold::history::{Cause, ShortenKind, is_before};
use crate::fold::state::State;
use crate::ids::{ItemId, Seq, Turn};

/// An item that a rule shortened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ShortenedView {
    /// The item.
    pub item: ItemId,
    /// The rule.
    pub rule: ShortenKind,
    /// The event with which the rule shortened it.
    pub seq: Seq,
    /// The turn.
    pub turn: Turn,
}

impl State {
    /// Items that rules had shortened by `at`, restored or not, in the order in which they were shortened.
    pub fn shortened(&self, at: Seq) -> Vec<ShortenedView> {
        let rows = self.history.rows.iter().filter(|row| row.since <= at && is_before(at, row.undone));
        let mut found: Vec<ShortenedView> = rows
            .filter_map(|row| {
                let Cause::Shortened { rule, .. } = row.cause else { return None };
                let item = self.facts.item(row.ix)?.id;
                Some(ShortenedView { item, rule, seq: row.since, turn: row.turn })
            })
            .collect();
        found.sort_by_key(|view| view.seq);
        found
    }
}
