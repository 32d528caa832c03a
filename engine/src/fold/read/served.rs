//! The served context: the one that the model was sent, as opposed to the current one.
//!
//! ```text
//! face:   born ----first served---- pending ----rebase---->
//!         as at the head | as it was when served | as it was at the rebase
//! ```
//!
//! Two watermarks. *Current* is folded to the head. *Served* shows each face as it was when it was first sent, until a
//! `ContextRebased` moves it on: a change in between is pending. So between two rebases each served context
//! begins with the one before it, and a provider's prompt cache stays warm.
//!
//! Some changes cannot wait: faces that a host replaced, rewound, revised, cleared or erased, faces that were restored on
//! request, a result that came after its call was sent. These move the face at once; the server of the step records that as a rebase.
//!
//! Like every read this is a function of the state and a seq: nothing is kept, and the past can be asked again.

use std::collections::BTreeSet;

use super::{CauseView, FaceState};
use crate::event::{Face, InjectedKind};
use crate::fold::facts::ItemKind;
use crate::fold::history::{Cause, Evicted, is_before};
use crate::fold::number::{Ix, NONE};
use crate::fold::stamped::last_until;
use crate::fold::state::State;
use crate::ids::{ItemId, Micros, Seq, Turn};

/// An item of the served context, with the moment that each of its faces shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServedPlace {
    /// The item.
    pub ix: Ix,
    /// Its parameters are shown as of this seq.
    pub input_at: Seq,
    /// Its content or result is shown as of this seq.
    pub output_at: Seq,
    /// No context with this item was sent yet: it shows its current form, and costs nothing to change.
    pub is_new: bool,
}

impl ServedPlace {
    /// The moment that a face shows.
    pub const fn at(&self, face: Face) -> Seq {
        match face {
            Face::Input => self.input_at,
            Face::Output => self.output_at,
        }
    }
}

/// An item whose current form differs from the one that is served.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PendingItem {
    /// The item.
    pub item: ItemId,
    /// Its place in the order of recording.
    #[serde(skip)]
    pub ix: Ix,
    /// Its place in the served context, from 0.
    pub position: usize,
    /// The place of the first item that changes together with it: its own, except for reasoning, which goes in whole runs.
    #[serde(skip)]
    pub cut_at: usize,
    /// The cause, for the face that changes (the output, if both do).
    pub cause: Option<CauseView>,
    /// How its content would be shown.
    pub state: FaceState,
    /// The seq since which it is pending.
    pub since: Seq,
    /// Tokens as served.
    pub tokens_served: u64,
    /// Tokens in its current form.
    pub tokens_current: u64,
}

impl PendingItem {
    /// Tokens that the context loses when it is applied; negative if it grows.
    pub fn gain(&self) -> i64 {
        let number = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        // Both are far below the limit.
        number(self.tokens_served).saturating_sub(number(self.tokens_current))
    }
}

/// A change of how the model sees an item's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ServedChange {
    /// The event that recorded the first context that showed it so.
    pub seq: Seq,
    /// Its turn.
    pub turn: Turn,
    /// How the content was shown from then on.
    pub state: FaceState,
}

/// The rebases and served contexts of a stream up to a seq, ready to be asked about many items.
#[derive(Debug)]
pub(crate) struct ServedMarks<'s> {
    state: &'s State,
    at: Seq,
    /// The last rebase of everything.
    whole: Seq,
    /// Rebases of single items: item, seq; sorted.
    named: Vec<(ItemId, Seq)>,
    memory_from: Seq,
}

impl<'s> ServedMarks<'s> {
    pub(crate) fn of(state: &'s State, at: Seq) -> Self {
        let rebases = state.rebases(at);
        let whole = rebases
            .iter()
            .rev()
            .find(|rebase| rebase.items.is_empty())
            .map_or(Seq::ZERO, |rebase| rebase.seq);
        let mut named: Vec<(ItemId, Seq)> = rebases
            .iter()
            .filter(|rebase| rebase.seq > whole)
            .flat_map(|rebase| rebase.items.iter().map(|item| (*item, rebase.seq)))
            .collect();
        named.sort_unstable();
        let mut marks = Self { state, at, whole, named, memory_from: Seq::ZERO };
        marks.memory_from = marks.memory_from();
        marks
    }

    /// The first context sent at or after `seq`.
    fn first_served(&self, seq: Seq) -> Option<Seq> {
        let served = self.state.served(self.at);
        served.get(served.partition_point(|(sent, _)| *sent < seq)).map(|(sent, _)| *sent)
    }

    /// The first memory block that shows: a rebase replaces the earlier blocks by the one that was recorded for it.
    fn memory_from(&self) -> Seq {
        let state = self.state;
        let blocks: Vec<Seq> = state
            .history_injected(InjectedKind::Memory)
            .iter()
            .filter_map(|ix| state.facts.item(*ix))
            .map(|item| item.id.seq)
            .filter(|seq| *seq <= self.at)
            .collect();
        if blocks.is_empty() {
            return Seq::ZERO;
        }
        let rebases = state.rebases(self.at);
        let anew = rebases.iter().rev().find_map(|rebase| {
            let sent = self.first_served(rebase.seq).unwrap_or(Seq::MAX);
            blocks.iter().copied().find(|block| *block > rebase.seq && *block < sent)
        });
        anew.unwrap_or_default()
    }

    /// The moment that a face shows, and whether it was never sent.
    fn face(&self, ix: Ix, face: Face) -> (Seq, bool) {
        let Some(item) = self.state.facts.item(ix) else { return (self.at, true) };
        let [input, output] = self.moves(item.id, ix);
        match face {
            Face::Input => self.moment(item.id, input),
            Face::Output => self.moment(item.id, output),
        }
    }

    /// Moves of an item's parameters and of its result. Both in one walk: most items are calls, for which both are needed.
    fn moves(&self, id: ItemId, ix: Ix) -> [Moves; 2] {
        let mut both = [Moves { born: id.seq, breaks: Seq::ZERO }; 2];
        let history = &self.state.history;
        let rows = history.facts_of(ix).chain(history.rows_of(ix));
        for row in rows.filter(|row| row.since <= self.at) {
            let [input, output] = &mut both;
            let Moves { born, breaks } = match row.face {
                Face::Input => input,
                Face::Output => output,
            };
            match row.cause {
                Cause::Answered { .. } if row.holds(self.at) => *born = row.since.max(*born),
                // The answer went off the branch: the call is open again.
                Cause::Answered { .. } if !is_before(self.at, row.until) => *breaks = row.until.max(*breaks),
                Cause::Erased { .. } | Cause::Cleared { .. } | Cause::Revised { .. } => {
                    *breaks = row.since.max(*breaks);
                }
                Cause::Left | Cause::OffBranch if !is_before(self.at, row.until) => {
                    *breaks = row.until.max(*breaks);
                }
                // A task goes on whose eviction the model was never sent: nothing of it is taken back.
                Cause::Evicted { .. } if !self.may_have_sent(id, *born, row.since) => {}
                cause if cause.is_restorable() && !is_before(self.at, row.until) => {
                    *breaks = row.until.max(*breaks);
                }
                _ => {}
            }
        }
        both
    }

    /// The last rebase of an item alone.
    fn named(&self, id: ItemId) -> Seq {
        let named = self.named.partition_point(|(named, _)| *named <= id);
        let named = named.checked_sub(1).and_then(|last| self.named.get(last));
        named.filter(|(named, _)| *named == id).map_or(Seq::ZERO, |(_, seq)| *seq)
    }

    /// Whether a face was sent first, or in a rebase, from a seq on.
    fn may_have_sent(&self, id: ItemId, born: Seq, since: Seq) -> bool {
        self.whole.max(self.named(id)) >= since || self.first_served(born).is_some_and(|first| first >= since)
    }

    /// The moment that a face shows, and whether it was never sent.
    fn moment(&self, id: ItemId, Moves { born, breaks }: Moves) -> (Seq, bool) {
        let named = self.named(id);
        let first = self.first_served(born);
        let marks = [self.whole, named, breaks];
        let moved = marks.into_iter().filter(|mark| *mark >= born).max();
        match first {
            Some(first) => (moved.map_or(first, |moved| moved.max(first)), false),
            // A face that was never sent shows its current form.
            None => (self.at, true),
        }
    }
}

/// Seqs that decide, with the rebases, which moment a face shows.
#[derive(Clone, Copy)]
struct Moves {
    /// The face is there from here on.
    born: Seq,
    /// The last time that the face moved at once.
    breaks: Seq,
}

impl State {
    /// Injected items of a kind, in the order of recording.
    pub(crate) fn history_injected(&self, kind: InjectedKind) -> Vec<Ix> {
        let items = (0..).map(Ix).zip(&self.facts.items);
        let injected = items.filter(|(_, item)| self.facts.extra(item.extra).injected == Some(kind));
        injected.map(|(ix, _)| ix).collect()
    }

    /// The events that injected texts of a kind up to `at`, oldest first.
    pub fn injected(&self, kind: InjectedKind, at: Seq) -> Vec<Seq> {
        let items = self.history_injected(kind);
        let seqs = items.iter().filter_map(|ix| self.facts.item(*ix)).map(|item| item.id.seq);
        seqs.filter(|seq| *seq <= at).collect()
    }

    /// When the event at `seq` was recorded, or the last one before it.
    pub fn time_of(&self, seq: Seq) -> Option<Micros> {
        last_until(&self.times, seq, |(since, _)| *since).map(|(_, time)| *time)
    }

    /// The number of the epoch at `at`: 0 until the first rebase.
    pub fn epoch(&self, at: Seq) -> u32 {
        self.rebases(at).last().map_or(0, |rebase| rebase.epoch)
    }

    /// The items of the served context at `at`, in conversation order, each with the moments it shows.
    ///
    /// An injected text never stands inside a message or between a call and its result. Cost: O(items).
    pub fn served_places(&self, at: Seq) -> Vec<ServedPlace> {
        let marks = ServedMarks::of(self, at);
        let mut places: Vec<ServedPlace> = Vec::new();
        let mut held: Vec<ServedPlace> = Vec::new();
        let mut message = NONE;
        for ix in self.current(at) {
            let Some(item) = self.facts.item(ix) else { continue };
            let injected = self.facts.extra(item.extra).injected;
            if injected == Some(InjectedKind::Memory) && item.id.seq < marks.memory_from {
                continue;
            }
            let [input, output] = marks.moves(item.id, ix);
            let (output_at, is_new) = marks.moment(item.id, output);
            let input_at =
                if item.kind == ItemKind::Call { marks.moment(item.id, input).0 } else { output_at };
            let place = ServedPlace { ix, input_at, output_at, is_new };
            if injected.is_some() && message != NONE {
                held.push(place);
                continue;
            }
            if item.message != message || message == NONE {
                places.append(&mut held);
                message = item.message;
            }
            places.push(place);
        }
        places.append(&mut held);
        self.bring_summaries(&mut places, at);
        places
    }

    /// The completed task's eviction that hides an item at a moment, and whether the item bears its summary.
    fn evicted(&self, ix: Ix, moment: Seq) -> Option<(u32, bool)> {
        match self.history.cause(ix, Face::Output, moment)?.cause {
            Cause::Evicted { how: Evicted::Rolling, .. } => None,
            Cause::Evicted { eviction, last, .. } => Some((eviction, last)),
            _ => None,
        }
    }

    /// All items that an eviction ever hid, the bearers of its summary included. Cost: O(causes).
    fn hidden_by(&self, eviction: u32) -> Vec<Ix> {
        let is_its = |cause: Cause| matches!(cause, Cause::Evicted { eviction: of, .. } if of == eviction);
        let rows = self.history.rows.iter().filter(|row| row.face == Face::Output && is_its(row.cause));
        rows.map(|row| row.ix).collect::<BTreeSet<Ix>>().into_iter().collect()
    }

    /// Whether a context shows an item as hidden by an eviction, and the summary nowhere: then the bearer is brought.
    fn lacks_summary(&self, marks: &ServedMarks<'_>, eviction: u32, hidden: &[Ix]) -> bool {
        let mut lacks = false;
        for ix in hidden.iter().filter(|ix| self.is_in_context(**ix, marks.at)) {
            match self.evicted(*ix, marks.face(*ix, Face::Output).0) {
                Some((of, true)) if of == eviction => return false,
                Some((of, false)) if of == eviction => lacks = true,
                _ => {}
            }
        }
        lacks
    }

    /// An item that hides behind a task's summary must not be sent without it: a bearer of the summary that would still be shown
    /// as it was is moved on at once.
    fn bring_summaries(&self, places: &mut [ServedPlace], at: Seq) {
        if self.facts.evictions.is_empty() {
            return;
        }
        let (mut hidden, mut said) = (BTreeSet::new(), BTreeSet::new());
        for place in places.iter() {
            if let Some((eviction, last)) = self.evicted(place.ix, place.output_at) {
                let list = if last { &mut said } else { &mut hidden };
                list.insert(eviction);
            }
        }
        if hidden.is_subset(&said) {
            return;
        }
        for place in places {
            if let Some((eviction, true)) = self.evicted(place.ix, at)
                && hidden.contains(&eviction)
                && !said.contains(&eviction)
            {
                place.output_at = at;
            }
        }
    }

    /// Items with conclusions that are not yet served at `at`, in the order of the served context.
    pub fn pending(&self, at: Seq) -> Vec<PendingItem> {
        let places = self.served_places(at).into_iter().enumerate();
        let mut pending: Vec<PendingItem> =
            places.filter_map(|(position, place)| self.pending_item(position, &place, at)).collect();
        self.cut_in_runs(&mut pending);
        pending
    }

    /// Reasoning goes in whole runs: pending reasoning between two prompts changes from its first item on.
    fn cut_in_runs(&self, pending: &mut [PendingItem]) {
        let mut runs = std::collections::BTreeMap::new();
        for item in pending.iter_mut() {
            let is_reasoning = self.facts.item(item.ix).is_some_and(|it| it.kind == ItemKind::Reasoning);
            if is_reasoning {
                item.cut_at = *runs.entry(self.prompt_count(item.item.seq)).or_insert(item.position);
            }
        }
    }

    fn pending_item(&self, position: usize, place: &ServedPlace, at: Seq) -> Option<PendingItem> {
        if place.is_new {
            return None;
        }
        let mut pending: Option<PendingItem> = None;
        for face in [Face::Input, Face::Output] {
            let cause = |at: Seq| self.history.cause(place.ix, face, at).map(|row| (row.cause, row.since));
            let (then, now) = (cause(place.at(face)), cause(at));
            if then.map(|(cause, _)| cause) == now.map(|(cause, _)| cause) {
                continue;
            }
            let served = self.face(place.ix, face, place.at(face));
            let current = self.face(place.ix, face, at);
            if served.state == FaceState::Absent
                || (served.state, served.tokens_shown) == (current.state, current.tokens_shown)
            {
                continue;
            }
            let since = now.map_or(at, |(_, since)| since);
            let entry = pending.get_or_insert_with(|| PendingItem {
                item: self.facts.item(place.ix).map_or(ItemId::first(at), |item| item.id),
                ix: place.ix,
                position,
                cut_at: position,
                cause: None,
                state: current.state,
                since,
                tokens_served: 0,
                tokens_current: 0,
            });
            entry.cause = current.cause;
            entry.state = current.state;
            entry.since = entry.since.min(since);
            entry.tokens_served = entry.tokens_served.saturating_add(served.tokens_shown);
            entry.tokens_current = entry.tokens_current.saturating_add(current.tokens_shown);
        }
        pending
    }

    /// How the model saw an item's content in the contexts that were sent up to `at`: one entry for each change.
    ///
    /// Empty if it was never sent. Cost: O(contexts sent since the item, times its causes; for an item that bears the summary
    /// of a task, times the causes of all items that are hidden with the task).
    pub fn served_changes(&self, ix: Ix, at: Seq) -> Vec<ServedChange> {
        let Some(item) = self.facts.item(ix) else { return Vec::new() };
        let served = self.served(at);
        let first = served.partition_point(|(seq, _)| *seq < item.id.seq);
        let mut changes: Vec<ServedChange> = Vec::new();
        let mut marks: Option<ServedMarks<'_>> = None;
        let mut rebases = usize::MAX;
        let mut borne: Option<(u32, Vec<Ix>)> = None;
        for (sent, _) in served.get(first..).unwrap_or_default() {
            let state = if self.is_in_context(ix, *sent) {
                // Rebases before this context decide; the marks are made anew only when there are more.
                let known = self.rebases(*sent).len();
                let reuse = marks.take().filter(|_| known == rebases);
                let made = reuse
                    .map_or_else(|| ServedMarks::of(self, *sent), |marks| ServedMarks { at: *sent, ..marks });
                rebases = known;
                let (mut moment, _) = made.face(ix, Face::Output);
                if let Some((eviction, true)) = self.evicted(ix, *sent) {
                    let known = borne.take().filter(|(of, _)| *of == eviction);
                    let (_, hidden) =
                        &*borne.insert(known.unwrap_or_else(|| (eviction, self.hidden_by(eviction))));
                    if self.lacks_summary(&made, eviction, hidden) {
                        moment = *sent;
                    }
                }
                marks = Some(made);
                self.face(ix, Face::Output, moment).state
            } else {
                FaceState::Gone
            };
            if changes.last().is_none_or(|last| last.state != state) {
                changes.push(ServedChange { seq: *sent, turn: self.turn(*sent), state });
            }
        }
        changes
    }
}
