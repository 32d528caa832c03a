//! How to take back an act on a context: acts that leave each item as it stood before.
//!
//! Nothing is removed: an undo is one more act, and undoing it makes the first one hold again, as a redo does. An item that was
//! hidden before the act for another reason is left alone, and named. An act of which nothing holds any more cannot be taken back
//! again: that would take back another act.
//!
//! The next act, going back and forward, is read from the acts themselves: see [`walk`].

use std::collections::BTreeSet;

use acpdb_engine::View;
use acpdb_engine::event::{Face, Payload};
use acpdb_engine::fold::{CauseView, FaceState, Ix, State};
use acpdb_engine::ids::{BodyId, ItemId, Seq};

/// The acts that take an act back.
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
    /// The act was taken back already: nothing of it holds any more.
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
enum ItemActs {
    Shown,
    Discarded,
    Distilled(Option<BodyId>),
    Otherwise,
}

fn stands(state: &State, ix: Ix, at: Seq) -> ItemActs {
    let face = state.face(ix, Face::Output, at);
    match face.cause {
        Some(CauseView::Discarded { .. }) => ItemActs::Discarded,
        Some(CauseView::Distilled { summary, .. }) => ItemActs::Distilled(summary),
        None | Some(CauseView::Shortened { .. }) => ItemActs::Shown,
        _ if face.state == FaceState::Whole => ItemActs::Shown,
        _ => ItemActs::Otherwise,
    }
}

/// The items that an act on a context is about; `None` if the event is no such act.
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

/// Whether an act was taken back: of the items that are still in the context, it holds for none.
fn is_undone(state: &State, seq: Seq, act: &Payload, items: &[ItemId], at: Seq) -> bool {
    let here: Vec<Ix> = items.iter().filter_map(|item| state.find(*item)).collect();
    let here: Vec<Ix> = here.into_iter().filter(|ix| state.is_in_context(*ix, at)).collect();
    let undone = |ix: &Ix| match act {
        Payload::Discarded(_) | Payload::Distilled(_) | Payload::Pinned(_) => !state.act_holds(*ix, seq, at),
        act => state.acted_after(*ix, seq, matches!(act, Payload::Unpinned(_)), at).is_some(),
    };
    !here.is_empty() && here.iter().all(undone)
}

/// The plan that makes an act hold again that was taken back; `None` if the event is no act on a context. If the act holds, also in
/// part, `undone` is false and there is nothing to do.
pub fn plan_again(view: &View, seq: Seq, act: &Payload) -> Option<UndoPlan> {
    again_at(view.state(), seq, act, view.at())
}

fn again_at(state: &State, seq: Seq, act: &Payload, at: Seq) -> Option<UndoPlan> {
    let items = items_of(act)?;
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
        let hidden = matches!(stands(state, ix, at), ItemActs::Discarded | ItemActs::Distilled(_));
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

/// The plan that takes back the act recorded at `seq`, as the view stands; `None` if the event is no act on a context.
pub fn plan(view: &View, seq: Seq, act: &Payload) -> Option<UndoPlan> {
    back_at(view.state(), seq, act, view.at())
}

fn back_at(state: &State, seq: Seq, act: &Payload, at: Seq) -> Option<UndoPlan> {
    let items = items_of(act)?;
    let before = seq.before();
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
            (ItemActs::Shown, ItemActs::Discarded | ItemActs::Distilled(_)) => plan.restore.push(item),
            (ItemActs::Discarded, ItemActs::Shown) => plan.discard.push(item),
            (ItemActs::Discarded, ItemActs::Distilled(_)) => {
                plan.restore.push(item);
                plan.discard.push(item);
            }
            (ItemActs::Distilled(Some(summary)), ItemActs::Shown) => plan.distill.push((item, summary)),
            (ItemActs::Distilled(Some(summary)), ItemActs::Discarded | ItemActs::Distilled(_)) => {
                plan.restore.push(item);
                plan.distill.push((item, summary));
            }
            // An item that a rule hid and a restore showed is hidden again, by hand: its edge is released for good.
            (ItemActs::Otherwise, ItemActs::Shown) if matches!(act, Payload::Restored(_)) => {
                plan.discard.push(item);
            }
            (ItemActs::Otherwise, _) => plan.left.push((item, "it was hidden for another reason before")),
            _ => plan.left.push((item, "it stands as it stood before")),
        }
    }
    Some(plan)
}

/// Acts that wait to be taken back or done again; in each list the next one is last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ActStacks {
    /// Acts that hold, in the order of recording.
    pub back: Vec<Seq>,
    /// Acts that are taken back, in the order in which they were taken back.
    pub forward: Vec<Seq>,
}

/// A function that plans how an act is taken back, or made to hold again, as of a seq.
type Planner = fn(&State, Seq, &Payload, Seq) -> Option<UndoPlan>;

/// The acts that repeated undos take back, and redos do again, one after the other; `acts` are those of the view's stream, in
/// order.
///
/// An act that takes back another one, or makes it hold again, is a step of the walk and no act to walk to. No event says that it
/// is such a step. An act is a step if it equals the undo or redo of another act at its place; so a restore by hand of all items
/// that a discard hid is the undo of that discard. Cost: a plan for each act and each earlier one about the same items.
pub fn walk(view: &View, acts: &[(Seq, Payload)]) -> ActStacks {
    let (state, now) = (view.state(), view.at());
    let ids: Vec<BTreeSet<ItemId>> = acts.iter().map(|(_, act)| ids_of(act)).collect();
    let (mut back, mut forward) = (Vec::<usize>::new(), Vec::<usize>::new());
    let mut at = 0;
    while let (Some((seq, _)), Some(own), Some(rest)) = (acts.get(at), ids.get(at), acts.get(at..)) {
        let step = |known: &[usize], plan: Planner, undone: bool| {
            known.iter().enumerate().rev().find_map(|(place, known)| {
                ids.get(*known).filter(|ids| !ids.is_disjoint(own))?;
                let (known, act) = acts.get(*known)?;
                let plan = plan(state, *known, act, seq.before()).filter(|plan| plan.undone == undone)?;
                let steps = steps(&plan)?;
                begins(rest, &steps).then_some((place, steps.len()))
            })
        };
        if let Some((place, count)) = step(&back, back_at, false) {
            forward.push(back.remove(place));
            at += count;
        } else if let Some((place, count)) = step(&forward, again_at, true) {
            forward.remove(place);
            at += count;
            // From now on the newest act holds; a step makes at least one.
            back.push(at - 1);
        } else {
            back.push(at);
            at += 1;
        }
    }
    // A rewind takes acts and items off the branch: the walk cannot go to them.
    let stands = |places: Vec<usize>, plan: Planner, undone: bool| {
        let acts = places.into_iter().filter_map(|place| acts.get(place));
        let acts = acts.filter(|(seq, act)| {
            plan(state, *seq, act, now).is_some_and(|plan| plan.undone == undone && !plan.is_empty())
        });
        acts.map(|(seq, _)| *seq).collect()
    };
    ActStacks { back: stands(back, back_at, false), forward: stands(forward, again_at, true) }
}

/// The items that an act names; none if the event is no act.
fn ids_of(act: &Payload) -> BTreeSet<ItemId> {
    // An event that is no act names no items here.
    items_of(act).unwrap_or_default().into_iter().collect()
}

/// The acts that a plan makes, in order, by kind and items; `None` if it makes none.
fn steps(plan: &UndoPlan) -> Option<Vec<(&'static str, BTreeSet<ItemId>)>> {
    let set = |items: &[ItemId]| items.iter().copied().collect::<BTreeSet<_>>();
    let distilled: BTreeSet<ItemId> = plan.distill.iter().map(|(item, _)| *item).collect();
    let all = [
        ("restored", set(&plan.restore)),
        ("discarded", set(&plan.discard)),
        ("distilled", distilled),
        ("pinned", set(&plan.pin)),
        ("unpinned", set(&plan.unpin)),
    ];
    let steps: Vec<_> = all.into_iter().filter(|(_, items)| !items.is_empty()).collect();
    (!steps.is_empty()).then_some(steps)
}

/// Whether acts begin with these steps.
fn begins(acts: &[(Seq, Payload)], steps: &[(&'static str, BTreeSet<ItemId>)]) -> bool {
    acts.len() >= steps.len()
        && acts
            .iter()
            .zip(steps)
            .all(|((_, act), (label, items))| act.label() == *label && ids_of(act) == *items)
}
