//! How to take back an act on a context: acts that leave each item as it stood before.
//!
//! Nothing is removed: an undo is one more act, and undoing it makes the first one hold again, as a redo does. What stood
//! otherwise before the act for another reason is left alone, and named. An act of which nothing holds any more cannot be
//! taken back again: that would take back another one.

use acpdb_engine::View;
use acpdb_engine::event::{Face, Payload};
use acpdb_engine::fold::{CauseView, FaceState, Ix, State};
use acpdb_engine::ids::{BodyId, ItemId, Seq};

/// What takes an act back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UndoPlan {
    /// Show these again. Done first.
    pub restore: Vec<ItemId>,
    /// Hide these.
    pub discard: Vec<ItemId>,
    /// Hide these behind the summaries that they had.
    pub distill: Vec<(ItemId, BodyId)>,
    /// Keep these from the rules.
    pub pin: Vec<ItemId>,
    /// Leave these to the rules.
    pub unpin: Vec<ItemId>,
    /// Items that stay as they are, each with the reason.
    pub left: Vec<(ItemId, &'static str)>,
    /// Nothing of the act holds any more: it is taken back already.
    pub undone: bool,
}

impl UndoPlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        let Self { restore, discard, distill, pin, unpin, left: _, undone: _ } = self;
        restore.is_empty() && discard.is_empty() && distill.is_empty() && pin.is_empty() && unpin.is_empty()
    }
}

/// Kinds of events that [`plan`] can take back, and [`plan_again`] make hold again.
pub const KINDS: [&str; 5] = ["discarded", "distilled", "restored", "pinned", "unpinned"];

/// How an item stands, as far as acts matter.
enum Stands {
    Shown,
    Discarded,
    Distilled(Option<BodyId>),
    Otherwise,
}

fn stands(state: &State, ix: Ix, at: Seq) -> Stands {
    let face = state.face(ix, Face::Output, at);
    match face.cause {
        Some(CauseView::Discarded { .. }) => Stands::Discarded,
        Some(CauseView::Distilled { summary, .. }) => Stands::Distilled(summary),
        None | Some(CauseView::Shortened { .. }) => Stands::Shown,
        _ if face.state == FaceState::Whole => Stands::Shown,
        _ => Stands::Otherwise,
    }
}

/// The items that an act on a context is about; `None` if the event is none.
fn items_of(act: &Payload) -> Option<Vec<ItemId>> {
    Some(match act {
        Payload::Discarded(act) => act.items.iter().map(|hidden| hidden.item).collect(),
        Payload::Distilled(act) => act.items.iter().map(|hidden| hidden.item).collect(),
        Payload::Restored(act) => act.items.clone(),
        Payload::Pinned(act) => act.items.clone(),
        Payload::Unpinned(act) => act.items.clone(),
        _ => return None,
    })
}

/// Whether nothing of an act holds any more, of the items that are still in the context: it was taken back.
fn is_undone(state: &State, seq: Seq, act: &Payload, items: &[ItemId], at: Seq) -> bool {
    let here: Vec<Ix> = items.iter().filter_map(|item| state.find(*item)).collect();
    let here: Vec<Ix> = here.into_iter().filter(|ix| state.is_in_context(*ix, at)).collect();
    let undone = |ix: &Ix| match act {
        Payload::Discarded(_) | Payload::Distilled(_) | Payload::Pinned(_) => !state.act_holds(*ix, seq, at),
        act => state.acted_after(*ix, seq, matches!(act, Payload::Unpinned(_)), at).is_some(),
    };
    !here.is_empty() && here.iter().all(undone)
}

/// What makes an act hold again that was taken back; `None` if the event is no act on a context. `undone` is false, and
/// nothing is to be done, if (some of) it holds.
pub fn plan_again(view: &View, seq: Seq, act: &Payload) -> Option<UndoPlan> {
    let items = items_of(act)?;
    let at = view.at();
    let reading = view.read();
    let state = reading.state();
    let mut plan = UndoPlan { undone: is_undone(state, seq, act, &items, at), ..UndoPlan::default() };
    if !plan.undone {
        return Some(plan);
    }
    let summaries: Vec<Option<BodyId>> = match act {
        Payload::Distilled(act) => {
            act.items.iter().map(|hidden| hidden.summary.map(|body| body.id(seq))).collect()
        }
        _ => vec![None; items.len()],
    };
    for (item, summary) in items.into_iter().zip(summaries) {
        let Some(ix) = state.find(item) else { continue };
        if !state.is_in_context(ix, at) {
            plan.left.push((item, "it has left the context"));
            continue;
        }
        let hidden = matches!(stands(state, ix, at), Stands::Discarded | Stands::Distilled(_));
        match (act, summary) {
            (Payload::Restored(_), _) => plan.restore.push(item),
            (Payload::Pinned(_), _) => plan.pin.push(item),
            (Payload::Unpinned(_), _) => plan.unpin.push(item),
            (_, summary) => {
                if hidden {
                    plan.restore.push(item);
                }
                match summary {
                    Some(summary) => plan.distill.push((item, summary)),
                    None => plan.discard.push(item),
                }
            }
        }
    }
    Some(plan)
}

/// What takes back the act recorded at `seq`, as the view stands; `None` if the event is no act on a context.
pub fn plan(view: &View, seq: Seq, act: &Payload) -> Option<UndoPlan> {
    let items = items_of(act)?;
    let before = seq.before();
    let at = view.at();
    let reading = view.read();
    let state = reading.state();
    let mut plan = UndoPlan { undone: is_undone(state, seq, act, &items, at), ..UndoPlan::default() };
    if plan.undone {
        return Some(plan);
    }
    for item in items {
        let Some(ix) = state.find(item) else { continue };
        if !state.is_in_context(ix, at) {
            plan.left.push((item, "it has left the context"));
            continue;
        }
        let pinned = |at: Seq| state.item(ix, at).is_some_and(|item| item.pinned);
        match (pinned(before), pinned(at)) {
            (true, false) => plan.pin.push(item),
            (false, true) => plan.unpin.push(item),
            _ => {}
        }
        if matches!(act, Payload::Pinned(_) | Payload::Unpinned(_)) {
            continue;
        }
        match (stands(state, ix, before), stands(state, ix, at)) {
            (Stands::Shown, Stands::Discarded | Stands::Distilled(_)) => plan.restore.push(item),
            (Stands::Discarded, Stands::Shown) => plan.discard.push(item),
            (Stands::Discarded, Stands::Distilled(_)) => {
                plan.restore.push(item);
                plan.discard.push(item);
            }
            (Stands::Distilled(Some(summary)), Stands::Shown) => plan.distill.push((item, summary)),
            (Stands::Distilled(Some(summary)), Stands::Discarded | Stands::Distilled(_)) => {
                plan.restore.push(item);
                plan.distill.push((item, summary));
            }
            // What a rule hid and a restore showed is hidden again, by hand: its edge is released for good.
            (Stands::Otherwise, Stands::Shown) if matches!(act, Payload::Restored(_)) => {
                plan.discard.push(item);
            }
            (Stands::Otherwise, _) => plan.left.push((item, "it was hidden for another reason before")),
            _ => plan.left.push((item, "it stands as it stood before")),
        }
    }
    Some(plan)
}
