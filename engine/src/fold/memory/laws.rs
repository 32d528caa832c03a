//! Laws that hold for every script of memory events.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proptest::prelude::*;

use super::testing::{HOUR, moment, preference, record, recorded, stream};
use super::*;
use crate::event::{
    Lifespan, MemoryKind, MemoryRecorded, MemoryReinforced, MemoryRetracted, MemorySuperseded, Payload,
};
use crate::ids::Micros;

#[derive(Clone, Debug)]
enum Op {
    Record(Box<MemoryRecorded>),
    Supersede(String, String),
    Reinforce(String, u8),
    Retract(String),
    Restore(u64),
    Close,
    /// To the op with this number of those so far, modulo their count.
    Rewind(usize),
}

fn id() -> impl Strategy<Value = String> {
    (0..8).prop_map(|number| format!("i{number}"))
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop::sample::select(vec![
        MemoryKind::Fact,
        MemoryKind::Preference,
        MemoryKind::Preference,
        MemoryKind::Decision,
    ]);
    let lifespan = prop::sample::select(vec![Lifespan::Session, Lifespan::Project]);
    let links = || prop::collection::vec(id(), 0..2);
    let recorded = (id(), kind, lifespan, 0..3u8, links(), links(), prop::option::of(0..20i64)).prop_map(
        |(id, kind, lifespan, value, replaces, superseded_by, created)| {
            let value = format!("v{value}");
            let plain = match kind {
                MemoryKind::Preference => preference(&id, if value == "v0" { "k" } else { "l" }, &value),
                _ => MemoryRecorded { subject: Some("s".into()), ..record(&id, kind, "context", &value) },
            };
            let created = created.map(|hours| Micros(hours * HOUR));
            Op::Record(Box::new(MemoryRecorded { lifespan, created, replaces, superseded_by, ..plain }))
        },
    );
    prop_oneof![
        6 => recorded,
        2 => (id(), id()).prop_map(|(old, new)| Op::Supersede(old, new)),
        1 => (id(), 0..30u8).prop_map(|(id, amount)| Op::Reinforce(id, amount)),
        1 => id().prop_map(Op::Retract),
        2 => (1..30u64).prop_map(Op::Restore),
        1 => Just(Op::Close),
        1 => (0..30usize).prop_map(Op::Rewind),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..30)
}

fn apply(state: &mut MemoryState, seq: u64, op: &Op) {
    let id_of = Clone::clone;
    let payload: Payload = match op {
        Op::Record(record) => (**record).clone().into(),
        Op::Supersede(old, new) => MemorySuperseded { old: id_of(old), new: id_of(new), reason: None }.into(),
        Op::Reinforce(id, amount) => MemoryReinforced { id: id_of(id), amount: *amount, at: None }.into(),
        Op::Retract(id) => MemoryRetracted { id: id_of(id), ..MemoryRetracted::default() }.into(),
        Op::Restore(item) => return state.restored(Seq(seq), moment(seq), &[ItemId::first(Seq(*item))]),
        Op::Close => return state.closed(Seq(seq)),
        Op::Rewind(_) => return,
    };
    state.apply(&recorded(seq, stream(Lifespan::Session), payload));
}

/// Folds a script as a stream does: a rewind folds the active branch afresh.
fn fold(ops: &[Op]) -> MemoryState {
    let mut state = MemoryState::default();
    let mut active: Vec<(u64, &Op)> = Vec::new();
    for (seq, op) in (1..).zip(ops) {
        if let Op::Rewind(to) = op {
            active.truncate(if active.is_empty() { 0 } else { to % active.len() });
            let mut fresh = MemoryState::default();
            for (seq, op) in &active {
                apply(&mut fresh, *seq, op);
            }
            state.rewound(Seq(seq), fresh);
        } else {
            active.push((seq, op));
            apply(&mut state, seq, op);
        }
    }
    state
}

/// All that can be read at `at`.
fn dump(state: &MemoryState, at: Seq, now: Micros) -> String {
    let memory = state.at(at);
    let mut text = String::new();
    for item in memory.all() {
        writeln!(text, "{item:?}", item = item.facts()).unwrap();
        writeln!(text, "{} {} {:?}", item.standing(now), item.confidence(now), item.reinforced()).unwrap();
        let chain = memory.chain(&item);
        let members: Vec<_> =
            chain.members.iter().map(|member| (&member.id, member.item.map(|item| item.item()))).collect();
        writeln!(text, "{members:?} {:?}", chain.edges).unwrap();
    }
    for number in 0..8 {
        let found = memory.by_id(&format!("i{number}"));
        writeln!(text, "{:?}", found.map(|item| item.item())).unwrap();
    }
    let ids = |items: Vec<MemoryItem<'_>>| items.iter().map(MemoryItem::item).collect::<Vec<_>>();
    writeln!(text, "{:?}", ids(memory.current(now).collect())).unwrap();
    for lifespan in LIFESPANS_INNER_FIRST {
        for key in ["k", "l"] {
            let holder = memory.by_key(lifespan, "tooling", key, now);
            writeln!(text, "{:?}", holder.map(|item| item.item())).unwrap();
        }
        let subject = memory.on_subject(MemoryKind::Fact, lifespan, "context", " S", now);
        writeln!(text, "{:?}", ids(subject.collect())).unwrap();
    }
    for kind in [MemoryKind::Fact, MemoryKind::Preference, MemoryKind::Decision] {
        for category in ["tooling", "context"] {
            writeln!(text, "{:?}", ids(memory.in_category(kind, category, now).collect())).unwrap();
        }
    }
    writeln!(text, "{:?} {:?} {:?}", memory.edges(), memory.dangling(), memory.insights(now)).unwrap();
    text
}

proptest! {
    #[test]
    fn reading_at_a_seq_is_folding_the_prefix(ops in ops(), hours in 0..60i64) {
        let state = fold(&ops);
        let now = Micros(hours * HOUR);
        for count in 0..=ops.len() {
            let prefix = fold(&ops[..count]);
            let at = Seq(count as u64);
            prop_assert_eq!(dump(&state, at, now), dump(&prefix, Seq::MAX, now), "at {}", at);
        }
    }

    #[test]
    fn every_item_stands_in_one_place_and_indexes_agree(ops in ops(), hours in 0..60i64) {
        let state = fold(&ops);
        let now = Micros(hours * HOUR);
        let memory = state.at(Seq::MAX);
        let all = memory.all();
        let recorded = ops.iter().filter(|op| matches!(op, Op::Record(_))).count();
        prop_assert_eq!(all.len(), recorded);
        prop_assert_eq!(memory.counts(now).values().sum::<usize>(), recorded);
        let current: Vec<ItemId> = memory.current(now).map(|item| item.item()).collect();
        let standing: Vec<ItemId> = all
            .iter()
            .filter(|item| item.standing(now) == MemoryStatus::Current)
            .map(MemoryItem::item)
            .collect();
        prop_assert_eq!(&current, &standing);
        for item in memory.current(now) {
            let in_category = memory.in_category(item.kind(), item.category(), now);
            prop_assert!(in_category.map(|other| other.item()).any(|other| other == item.item()));
            prop_assert!(!memory.superseded_by(&item).iter().any(MemoryEdge::hides));
            if let Some(key) = item.key() {
                let holder = memory.by_key(item.lifespan(), item.category(), key, now);
                prop_assert!(holder.is_some_and(|holder| current.contains(&holder.item())));
            }
        }
        for item in all.iter().filter(|item| item.standing(now) == MemoryStatus::Superseded) {
            prop_assert!(memory.superseded_by(item).iter().any(MemoryEdge::hides));
        }
    }

    #[test]
    fn chains_run_one_way(ops in ops()) {
        let state = fold(&ops);
        let memory = state.at(Seq::MAX);
        for item in memory.all() {
            let chain = memory.chain(&item);
            // Members are named by id and item: one id can have several versions.
            let place: BTreeMap<_, usize> = chain
                .members
                .iter()
                .enumerate()
                .map(|(place, member)| ((member.id.as_str(), member.item.map(|item| item.item())), place))
                .collect();
            prop_assert_eq!(place.len(), chain.members.len());
            prop_assert!(place.contains_key(&(item.id(), Some(item.item()))));
            for edge in chain.edges.iter().filter(|edge| edge.hides()) {
                let old = place.get(&(edge.old.as_str(), edge.old_item));
                let new = place.get(&(edge.new.as_str(), edge.new_item));
                prop_assert!(old.is_some() && old < new, "{:?}", edge);
            }
        }
    }

    #[test]
    fn a_restore_undoes_a_supersession(ops in ops(), old in 0..8usize, new in 0..8usize) {
        let mut state = fold(&ops);
        let now = Micros(0);
        let current = |state: &MemoryState| -> BTreeSet<ItemId> {
            state.at(Seq::MAX).current(now).map(|item| item.item()).collect()
        };
        let before = current(&state);
        let ends = {
            let memory = state.at(Seq::MAX);
            // An event names ids, and an id stands for its newest version.
            let is_newest = |item: &MemoryItem<'_>| memory.by_id(item.id()).map(|item| item.item()) == Some(item.item());
            let items: Vec<_> = memory.current(now).filter(is_newest).collect();
            if items.is_empty() {
                return Ok(());
            }
            let pick = |number: usize| items[number % items.len()];
            (pick(old), pick(new)).into_ids()
        };
        let seq = ops.len() as u64;
        let link = MemorySuperseded { old: ends.0.0, new: ends.1.0, reason: None };
        state.apply(&recorded(seq + 1, stream(Lifespan::Session), link));
        let is_hidden = !current(&state).contains(&ends.0.1);
        prop_assert_eq!(is_hidden, ends.0.1 != ends.1.1);
        state.restored(Seq(seq + 2), moment(seq + 2), &[ends.0.1]);
        prop_assert_eq!(before, current(&state));
    }

    #[test]
    fn fading_never_rises_and_stops_at_the_floor(start in 0..=100u32, rate in 0..60_000u32, a in any::<i64>(), b in any::<i64>()) {
        let start = Confidence::from_hundredths(start);
        let (early, late) = (a.min(b), a.max(b));
        let (first, second) = (start.decayed(early, rate), start.decayed(late, rate));
        prop_assert!(second <= first && first <= start);
        prop_assert!(second >= start.min(Confidence::FLOOR));
    }
}

trait IntoIds {
    fn into_ids(self) -> ((String, ItemId), (String, ItemId));
}

impl IntoIds for (MemoryItem<'_>, MemoryItem<'_>) {
    fn into_ids(self) -> ((String, ItemId), (String, ItemId)) {
        let of = |item: MemoryItem<'_>| (item.id().to_owned(), item.item());
        (of(self.0), of(self.1))
    }
}
