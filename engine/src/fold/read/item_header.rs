//! Items in short, for senders of a whole context: the values that a message is built of, and since when it looks as it does.
//!
//! ```text
//! item_header(ix, at) kind, role, message, call, tool, status; names shared, nothing computed
//! changed(ix, at)    the newest seq up to `at` at which a placeholder came or went
//! settled(ix, at)    the newest seq up to `at` at which its content came: the end of its call, a revision by the host
//! turning_points     every seq at which something about it changed
//! departed(at)       items that are not in the context any more, with the seq at which each left
//! ```
//!
//! A provider may bind reasoning to everything before it. These seqs alone decide, offline, whether the items before a part
//! are still as they were when the part was made.

use std::sync::Arc;

use crate::event::{Face, InjectedKind, Role};
use crate::fold::FaceState;
use crate::fold::facts::ItemKind;
use crate::fold::history::{Cause, CauseRow, is_before};
use crate::fold::number::Ix;
use crate::fold::state::State;
use crate::fold::state::Status;
use crate::ids::{BodyId, ItemId, Seq, Turn};

/// An item, as far as building a message needs it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ItemHeader {
    /// Its id.
    pub item: ItemId,
    /// Its kind.
    pub kind: ItemKind,
    /// Role of its speaker.
    pub role: Role,
    /// The turn it was recorded in.
    pub turn: Turn,
    /// Key of its message.
    pub message: Option<Arc<str>>,
    /// The host's id of the call.
    pub call: Option<Arc<str>>,
    /// Name of the tool.
    pub tool: Option<Arc<str>>,
    /// Status of the call.
    pub status: Option<Status>,
    /// The event that finished the call.
    pub finished: Option<Seq>,
    /// Kind of an injected text.
    pub injected: Option<InjectedKind>,
    /// Parameters of a call.
    pub params: Option<BodyId>,
    /// The provider's signature on the part or call.
    pub signature: Option<BodyId>,
}

impl State {
    /// An item in short; `None` if it was not recorded at `at`.
    pub fn item_header(&self, ix: Ix, at: Seq) -> Option<ItemHeader> {
        let item = self.facts.item(ix).filter(|item| item.id.seq <= at)?;
        let call = self.facts.call(ix);
        let name = |name| self.facts.names.shared(name);
        let finish = match item.kind {
            ItemKind::Call | ItemKind::Result => self.finish(ix, at),
            _ => None,
        };
        Some(ItemHeader {
            item: item.id,
            kind: item.kind,
            role: item.role,
            turn: item.turn,
            message: self.facts.messages.get(item.message as usize).map(|message| name(message.key)),
            call: call
                .map(|call| name(call.host_id))
                .or_else(|| finish.filter(|_| item.kind == ItemKind::Result).map(|it| name(it.host_id))),
            tool: call.map(|call| name(call.tool)),
            status: call.map(|_| finish.map_or(Status::Pending, |finish| Status::from(finish.outcome))),
            finished: finish.map(|finish| finish.seq),
            injected: self.facts.extra(item.extra).injected,
            params: self.params(ix, at),
            signature: self.facts.extra(item.extra).signature.map(|body| body.id(item.id.seq)),
        })
    }

    /// The newest seq up to `at` at which a face of the item began or ceased to be shown as something else; zero if there is
    /// none. Leaving the context does not count.
    pub fn changed(&self, ix: Ix, at: Seq) -> Seq {
        let mut newest = Seq::ZERO;
        for row in self.history.rows_of(ix).filter(|row| row.since <= at) {
            let Some(_) = row.cause.rank().filter(|_| !matches!(row.cause, Cause::OffBranch | Cause::Left))
            else {
                continue;
            };
            // A call may be cleared before its result is there: the clearing shows once the result is.
            let born = self.face_size(ix, row.face, row.since).map(|size| (size, row.since));
            let late = || Some((self.face_size(ix, row.face, at)?, self.settled(ix, at).max(row.since)));
            // A placeholder longer than the face never showed.
            let showed = born.or_else(late).filter(|(size, since)| {
                self.placeholder_for(ix, row.face, &row, *size, *since).state != FaceState::Whole
            });
            if let Some((_, since)) = showed {
                newest = newest.max(since);
                if row.until != Seq::MAX && row.until <= at {
                    newest = newest.max(row.until);
                }
            }
        }
        newest
    }

    /// Whether the effect of a person's act on an item holds at `at`: the act hid the item, or pinned it.
    pub fn act_holds(&self, ix: Ix, act: Seq, at: Seq) -> bool {
        let rows = self.history.rows_of(ix).chain(self.history.facts_of(ix));
        // A rewind begins anew the causes that hold behind it.
        let anew = |row: &CauseRow| {
            row.cause == Cause::Pinned
                && row.since > act
                && self.rewinds(at).iter().any(|(seq, _)| *seq == row.since)
        };
        rows.filter(|row| row.holds(at)).any(|row| self.act_of(&row) == Some(act) || anew(&row))
    }

    /// The first act after `act`, up to `at`, by which a person hid an item (or pinned it), whether it holds or not.
    pub fn acted_after(&self, ix: Ix, act: Seq, pins: bool, at: Seq) -> Option<Seq> {
        let rows = self.history.rows_of(ix).chain(self.history.facts_of(ix));
        let of_kind = rows.filter(|row| (row.cause == Cause::Pinned) == pins && is_before(at, row.undone));
        of_kind.filter_map(|row| self.act_of(&row)).filter(|seq| *seq > act && *seq <= at).min()
    }

    /// The act of a person behind a cause.
    fn act_of(&self, row: &CauseRow) -> Option<Seq> {
        match row.cause {
            Cause::Discarded { act, .. } | Cause::Distilled { act, .. } => {
                self.facts.acts.get(act as usize).map(|act| act.seq)
            }
            Cause::Pinned => Some(row.since),
            _ => None,
        }
    }

    /// The newest seq up to `at` at which the content of the item got its present form: the end of its call, or a revision
    /// by the host. Zero for content as it was recorded.
    pub fn settled(&self, ix: Ix, at: Seq) -> Seq {
        let rows = self.history.facts_of(ix).filter(|row| row.since <= at);
        let content = rows.filter(|row| matches!(row.cause, Cause::Answered { .. } | Cause::Revised { .. }));
        content.map(|row| row.since).max().unwrap_or(Seq::ZERO)
    }

    /// Every seq up to `at` at which something about the item began or ceased to hold, oldest first: between two of them
    /// its faces, its place in the context and its pin stay as they are. Its recording comes first. Cost: O(all causes and
    /// facts of it, old ones included).
    pub fn turning_points(&self, ix: Ix, at: Seq) -> Vec<Seq> {
        let Some(item) = self.facts.item(ix).filter(|item| item.id.seq <= at) else { return Vec::new() };
        let mut points = vec![item.id.seq];
        for row in self.history.rows_of(ix).chain(self.history.facts_of(ix)) {
            let both = [row.since, row.until].into_iter();
            points.extend(both.filter(|seq| *seq > item.id.seq && *seq <= at && *seq != Seq::MAX));
        }
        points.sort_unstable();
        points.dedup();
        points
    }

    /// Items that have left the context by `at`, in the order of recording, with the seq at which each left.
    pub fn departed(&self, at: Seq) -> Vec<(Ix, Seq)> {
        let mut departed: Vec<(Ix, Seq)> = Vec::new();
        for row in self.history.rows.iter() {
            if matches!(row.cause, Cause::OffBranch | Cause::Left)
                && row.holds(at)
                && row.face == Face::Output
            {
                departed.push((row.ix, row.since));
            }
        }
        departed.sort_unstable();
        departed.dedup_by_key(|(ix, _)| *ix);
        departed
    }

    /// The seq of the order that the host gave the context last, up to `at`; zero if it never did.
    pub fn reordered(&self, at: Seq) -> Seq {
        self.history.order(at).filter(|order| !order.list.is_empty()).map_or(Seq::ZERO, |order| order.since)
    }
}
