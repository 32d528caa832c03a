//! Where each stream of another store goes.
//!
//! ```text
//! all of it is here                            -> nothing new
//! what is here is the beginning of it          -> on, in the same stream
//! both have what the other has not             -> a branch from where they part
//! no stream of that name                       -> a new one
//! a project's or the user's                    -> what is new, in the same stream
//! shredded here                                -> nowhere
//! ```
//!
//! A session is compared with all that bear its name, branches included: a branch is found by its history. Pure.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::{Scope, stream_id};
use crate::ids::{FactId, StreamId};
use crate::travel::{base_name, branch_name};

use super::gone::Gone;
use super::lineage::{Lineages, derived};
use super::outline::{Outline, Told};

/// How a merge treats a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Goal {
    /// The stream is here, with all its events.
    Known,
    /// The stream goes on here.
    On,
    /// The stream is made.
    New,
}

/// A stream that a merge makes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fresh {
    pub(super) name: String,
    /// The stream and the event that it goes on from.
    pub(super) fork: Option<(StreamId, FactId)>,
    /// Whether it stands beside a session of its name.
    pub(super) is_branch: bool,
}

/// Where a stream goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    pub(super) stream: StreamId,
    pub(super) goal: Goal,
}

/// Where all streams go.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) targets: FxHashMap<StreamId, Target>,
    pub(super) fresh: BTreeMap<StreamId, Fresh>,
    /// Streams whose beginning is missing.
    pub(super) nameless: Vec<StreamId>,
    /// Streams that were shredded here, are about subjects that were shredded here, or came from such streams.
    pub(super) shredded: Vec<StreamId>,
}

type Family = (Scope, String, String);

/// Where one stream goes.
enum Way {
    To(Target),
    Nameless,
    Shredded,
}

struct Planner<'a> {
    outline: &'a Outline,
    here: &'a Lineages,
    gone: &'a Gone,
    families: FxHashMap<Family, Vec<StreamId>>,
    histories: FxHashMap<StreamId, Vec<FactId>>,
    plan: Plan,
}

/// Plans a merge. `gone`: streams that go nowhere.
pub(super) fn plan(outline: &Outline, here: &Lineages, gone: &Gone) -> Plan {
    let mut families: FxHashMap<Family, Vec<StreamId>> = FxHashMap::default();
    for (id, lineage) in here.streams.iter().filter(|(_, lineage)| !lineage.is_shredded) {
        let family = (lineage.scope, lineage.host.clone(), base_name(&lineage.name).to_owned());
        families.entry(family).or_default().push(*id);
    }
    let mut planner =
        Planner { outline, here, gone, families, histories: FxHashMap::default(), plan: Plan::default() };
    let mut streams: Vec<(&StreamId, &Told)> = outline.streams.iter().collect();
    streams.sort_by_key(|(_, told)| told.order);
    for (id, told) in streams {
        match planner.way(*id, told) {
            Way::To(target) => {
                planner.plan.targets.insert(*id, target);
            }
            Way::Nameless => planner.plan.nameless.push(*id),
            Way::Shredded => planner.plan.shredded.push(*id),
        }
    }
    planner.plan
}

impl Planner<'_> {
    fn way(&mut self, id: StreamId, told: &Told) -> Way {
        if self.gone.contains(&id) {
            return Way::Shredded;
        }
        let is_here = self.here.streams.contains_key(&id);
        if told.scope != Scope::Session {
            return Way::To(if is_here {
                Target { stream: id, goal: Goal::On }
            } else {
                self.make(told, told.name.clone(), None)
            });
        }
        if told.name.is_empty() {
            return if is_here { Way::To(Target { stream: id, goal: Goal::On }) } else { Way::Nameless };
        }
        let base = base_name(&told.name).to_owned();
        let family = (told.scope, told.host.clone(), base.clone());
        let members = self.families.get(&family).cloned().unwrap_or_default();
        let (history, inherited) = self.outline.history(id, self.gone);
        if members.is_empty() {
            let target = self.make(told, told.name.clone(), None);
            self.histories.insert(target.stream, history);
            return Way::To(target);
        }
        let all: FxHashSet<FactId> = history.iter().copied().collect();
        let mut on: Option<(usize, StreamId)> = None;
        let mut apart: Option<(usize, StreamId)> = None;
        let has_gaps = self.outline.has_gaps;
        // The stream that it goes on from was shredded there.
        let has_no_beginning =
            told.branch_of.is_some_and(|at| !self.outline.streams.contains_key(&at.stream));
        for member in members {
            let mut own = self.history(member).as_slice();
            if has_no_beginning {
                let first = history.first().and_then(|first| own.iter().position(|id| id == first));
                own = own.get(first.unwrap_or_default()..).unwrap_or_default();
            }
            let known: FxHashSet<&FactId> = own.iter().collect();
            if all.iter().all(|id| known.contains(id)) {
                return Way::To(Target { stream: member, goal: Goal::Known });
            }
            if goes_on(own, &all, has_gaps) && on.is_none_or(|(count, _)| own.len() > count) {
                on = Some((own.len(), member));
            }
            let together = own.iter().zip(&history).take_while(|(own, other)| own == other).count();
            // Of equal ones the stream with the plain name is taken, wherever it stands among them.
            let is_plain = self.here.streams.get(&member).is_some_and(|lineage| lineage.name == base);
            if apart.is_none_or(|(count, _)| together > count || (together == count && is_plain)) {
                apart = Some((together, member));
            }
        }
        if let Some((_, stream)) = on {
            let own = self.history(stream);
            let known: FxHashSet<FactId> = own.iter().copied().collect();
            let mut whole = own.clone();
            whole.extend(history.iter().filter(|id| !known.contains(id)));
            self.histories.insert(stream, whole);
            return Way::To(Target { stream, goal: Goal::On });
        }
        let Some((mut together, mut from)) = apart else { return Way::Nameless };
        if together < inherited
            && let Some(at) = told.branch_of
            && let Some(parent) = self.plan.targets.get(&at.stream)
        {
            (together, from) = (inherited, parent.stream);
        }
        self.branch(told, &base, &history, (together, from))
    }

    fn branch(
        &mut self,
        told: &Told,
        base: &str,
        history: &[FactId],
        (together, from): (usize, StreamId),
    ) -> Way {
        let last = together.checked_sub(1).and_then(|place| history.get(place));
        let fork = last.map(|id| (from, *id));
        let mut differs = history.get(together).copied().unwrap_or_default();
        let is_free = |planner: &Self, id: &StreamId| {
            !planner.here.streams.contains_key(id) && !planner.plan.fresh.contains_key(id)
        };
        let mut name = if told.name == base { branch_name(base, differs) } else { told.name.clone() };
        loop {
            let id = stream_id(told.scope, &told.host, &name);
            if is_free(self, &id) {
                break;
            }
            // A merge made this branch before, and it was shredded.
            if self.here.is_shredded(id) {
                return Way::Shredded;
            }
            name = branch_name(base, differs);
            differs = derived("acpdb 2026 next branch v1", &[&differs.0]);
        }
        let target = self.make(told, name, fork);
        if let Some(fresh) = self.plan.fresh.get_mut(&target.stream) {
            fresh.is_branch = true;
        }
        self.histories.insert(target.stream, history.to_vec());
        Way::To(target)
    }

    /// A new stream.
    fn make(&mut self, told: &Told, name: String, fork: Option<(StreamId, FactId)>) -> Target {
        let stream = stream_id(told.scope, &told.host, &name);
        let family = (told.scope, told.host.clone(), base_name(&name).to_owned());
        self.families.entry(family).or_default().push(stream);
        self.plan.fresh.insert(stream, Fresh { name, fork, is_branch: false });
        Target { stream, goal: Goal::New }
    }

    fn history(&mut self, stream: StreamId) -> &Vec<FactId> {
        let here = self.here;
        self.histories
            .entry(stream)
            .or_insert_with(|| here.history(stream).into_iter().map(|(id, _, _)| id).collect())
    }
}

/// Whether a history is the beginning of another, given as a set: all its events are there, in any order. If the other history was
/// damaged, an event missing there before the last that both have is no difference.
fn goes_on(own: &[FactId], other: &FxHashSet<FactId>, has_gaps: bool) -> bool {
    if !has_gaps {
        return own.iter().all(|id| other.contains(id));
    }
    own.last().is_none_or(|last| other.contains(last))
}
