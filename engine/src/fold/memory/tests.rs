//! Tables: which items hold after a few events, and why the others do not.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::testing::{Bench, HOUR, moment, preference, record, recorded, signer, stream};
use super::*;
use crate::event::{
    Lifespan, MemoryKind, MemoryRecorded, MemoryReinforced, MemoryRetracted, MemorySuperseded, Payload,
};
use crate::ids::Micros;

const PROJECT: Lifespan = Lifespan::Project;

fn supersede(old: &str, new: &str) -> MemorySuperseded {
    MemorySuperseded { old: old.into(), new: new.into(), reason: None }
}

fn retract(id: &str) -> MemoryRetracted {
    MemoryRetracted { id: id.into(), ..MemoryRetracted::default() }
}

fn decision(id: &str, replaces: &[&str], superseded_by: &[&str]) -> MemoryRecorded {
    MemoryRecorded {
        replaces: replaces.iter().map(|id| (*id).to_owned()).collect(),
        superseded_by: superseded_by.iter().map(|id| (*id).to_owned()).collect(),
        ..record(id, MemoryKind::Decision, "process", id)
    }
}

/// Folds into a project's stream, one seq an event.
fn fold(events: Vec<Payload>) -> MemoryState {
    let mut state = MemoryState::default();
    for (seq, payload) in (1..).zip(events) {
        state.apply(&recorded(seq, stream(PROJECT), payload));
    }
    state
}

/// One line an item: its id, its standing, its edges.
fn dump(state: &MemoryState, at: Seq) -> String {
    let memory = state.at(at);
    let mut text = String::new();
    for item in memory.all() {
        write!(text, "{} {}", item.id(), item.standing(Micros(0))).unwrap();
        for edge in memory.superseded_by(&item) {
            write!(text, " ->{} ({})", edge.new, edge.rule.label()).unwrap();
            for (is, label) in [
                (edge.closes_cycle, " cycle"),
                (edge.released.is_some(), " released"),
                (edge.is_dangling(), " dangling"),
            ] {
                text.push_str(if is { label } else { "" });
            }
        }
        text.push('\n');
    }
    text
}

fn check(events: Vec<Payload>, expected: &Expect) -> MemoryState {
    let state = fold(events);
    expected.assert_eq(&dump(&state, Seq::MAX));
    state
}

fn chain(state: &MemoryState, id: &str) -> Vec<String> {
    let memory = state.at(Seq::MAX);
    let item = memory.by_id(id).unwrap();
    memory.chain(&item).members.into_iter().map(|member| member.id).collect()
}

#[test]
fn a_newer_preference_of_the_same_key_takes_over() {
    let state = check(
        vec![
            preference("p1", "package_manager", "npm").into(),
            preference("p2", "editor", "vim").into(),
            preference("p3", "package_manager", "pnpm").into(),
            MemoryRecorded { category: "style".into(), ..preference("p4", "package_manager", "bun") }.into(),
            MemoryRecorded { lifespan: Lifespan::Session, ..preference("p5", "package_manager", "yarn") }
                .into(),
            preference("p6", "package_manager", "bun").into(),
        ],
        &expect![[r#"
            p1 superseded ->p3 (key)
            p2 current
            p3 superseded ->p6 (key)
            p4 current
            p5 current
            p6 current
        "#]],
    );
    let memory = state.at(Seq::MAX);
    let holder = memory.by_key(PROJECT, "tooling", "package_manager", Micros(0)).unwrap();
    assert_eq!(holder.id(), "p6");
    let before = state.at(Seq(3)).by_key(PROJECT, "tooling", "package_manager", Micros(0)).unwrap();
    assert_eq!(before.id(), "p3");
    assert_eq!(chain(&state, "p3"), ["p1", "p3", "p6"]);
}

/// Two files of one project were imported, the newer one first: each older value led to the newest one, superseded at its own birth.
#[test]
fn values_have_their_order_and_times_whichever_is_told_first() {
    let at = |hours: i64| MemoryRecorded {
        created: Some(Micros(-hours * HOUR)),
        ..preference(&format!("p{hours}"), "editor", &format!("editor {hours}"))
    };
    for order in [[4, 3, 2, 1], [1, 2, 3, 4], [4, 1, 3, 2], [2, 3, 1, 4], [3, 1, 4, 2]] {
        let state = fold(order.map(|hours| at(hours).into()).to_vec());
        let memory = state.at(Seq::MAX);
        let current: Vec<&str> = memory.current(Micros(0)).map(|item| item.id()).collect();
        assert_eq!(
            (current, chain(&state, "p3")),
            (vec!["p1"], ["p4", "p3", "p2", "p1"].map(str::to_owned).to_vec())
        );
        for hours in [4, 3, 2] {
            let edges = memory.superseded_by(&memory.by_id(&format!("p{hours}")).unwrap());
            // An event that tells of the past is dated here by when it was recorded.
            assert!(edges.iter().any(|edge| edge.new == format!("p{}", hours - 1)), "{order:?}: {edges:?}");
        }
    }
}

#[test]
fn an_older_preference_that_arrives_later_is_superseded_at_once() {
    let created =
        |hours: i64, record: MemoryRecorded| MemoryRecorded { created: Some(Micros(hours * HOUR)), ..record };
    check(
        vec![
            preference("p1", "k", "a").into(),
            created(0, preference("p2", "k", "b")).into(),
            // A clock that runs ahead does not keep newer values out: nothing comes about after it is recorded.
            created(1_000_000, preference("p3", "k", "c")).into(),
            preference("p4", "k", "d").into(),
        ],
        &expect![[r#"
            p1 superseded ->p3 (key)
            p2 superseded ->p1 (key)
            p3 superseded ->p4 (key)
            p4 current
        "#]],
    );
}

#[test]
fn links_are_many_to_many_and_stated_from_either_end() {
    let state = check(
        vec![
            decision("d1", &[], &[]).into(),
            decision("d2", &[], &["d4"]).into(),
            decision("d3", &[], &[]).into(),
            decision("d4", &["d1", "d2", "d3"], &[]).into(),
            supersede("d1", "d4").into(),
            decision("d5", &[], &[]).into(),
            supersede("d4", "d5").into(),
            decision("d6", &["d4"], &[]).into(),
        ],
        &expect![[r#"
            d1 superseded ->d4 (link)
            d2 superseded ->d4 (link)
            d3 superseded ->d4 (link)
            d4 superseded ->d5 (link) ->d6 (link)
            d5 current
            d6 current
        "#]],
    );
    assert_eq!(chain(&state, "d2"), ["d2", "d4", "d5", "d6"]);
    assert_eq!(chain(&state, "d4"), ["d1", "d2", "d3", "d4", "d5", "d6"]);
    assert_eq!(state.at(Seq::MAX).edges().len(), 5);
}

#[test]
fn a_dangling_link_hides_and_connects_when_its_end_arrives() {
    let events = || {
        vec![
            decision("d1", &[], &["later"]).into(),
            decision("d2", &["never"], &[]).into(),
            decision("later", &[], &[]).into(),
        ]
    };
    let state = check(
        events(),
        &expect![[r#"
        d1 superseded ->later (link)
        d2 current
        later current
    "#]],
    );
    let dangling =
        |at| state.at(at).dangling().into_iter().map(|edge| (edge.old, edge.new)).collect::<Vec<_>>();
    assert_eq!(dangling(Seq(1)), [("d1".to_owned(), "later".to_owned())]);
    assert_eq!(dangling(Seq::MAX), [("never".to_owned(), "d2".to_owned())]);
    assert_eq!(chain(&state, "d1"), ["d1", "later"]);
    assert_eq!(chain(&state, "d2"), ["never", "d2"]);
}

#[test]
fn the_edge_that_closes_a_circle_hides_nothing() {
    check(
        vec![
            decision("d1", &[], &["d2"]).into(),
            decision("d2", &[], &["d3"]).into(),
            decision("d3", &[], &["d1"]).into(),
            decision("d4", &["d4"], &[]).into(),
        ],
        &expect![[r#"
            d1 superseded ->d2 (link)
            d2 superseded ->d3 (link)
            d3 current ->d1 (link) cycle
            d4 current ->d4 (link) cycle
        "#]],
    );
}

#[test]
fn what_was_retracted_has_no_successor() {
    let state = check(
        vec![
            preference("p1", "k", "a").into(),
            preference("p2", "k", "b").into(),
            retract("p2").into(),
            retract("p9").into(),
            preference("p9", "x", "a").into(),
        ],
        &expect![[r#"
            p1 superseded ->p2 (key)
            p2 retracted
            p9 retracted
        "#]],
    );
    assert!(state.at(Seq::MAX).by_key(PROJECT, "tooling", "k", Micros(0)).is_none());
    assert_eq!(state.at(Seq(2)).by_key(PROJECT, "tooling", "k", Micros(0)).unwrap().id(), "p2");
}

#[test]
fn a_restore_releases_edges_and_a_later_event_may_hide_again() {
    let mut state = fold(vec![preference("p1", "k", "a").into(), preference("p2", "k", "b").into()]);
    state.restored(
        Seq(3),
        moment(3),
        &[ItemId::first(Seq(1)), ItemId { seq: Seq(2), part: 2 }, ItemId::first(Seq(9))],
    );
    expect![[r#"
        p1 current ->p2 (key) released
        p2 current
    "#]]
    .assert_eq(&dump(&state, Seq::MAX));
    // The item that was shown last holds.
    assert_eq!(state.at(Seq::MAX).by_key(PROJECT, "tooling", "k", Micros(0)).unwrap().id(), "p1");
    state.apply(&recorded(4, stream(PROJECT), preference("p3", "k", "c")));
    expect![[r#"
        p1 superseded ->p2 (key) released ->p3 (key)
        p2 superseded ->p3 (key)
        p3 current
    "#]]
    .assert_eq(&dump(&state, Seq::MAX));
    expect![[r#"
        p1 superseded ->p2 (key)
        p2 current
    "#]]
    .assert_eq(&dump(&state, Seq(2)));
    state.apply(&recorded(5, stream(PROJECT), retract("p3")));
    state.restored(Seq(6), moment(6), &[ItemId::first(Seq(4))]);
    assert_eq!(state.at(Seq::MAX).by_key(PROJECT, "tooling", "k", Micros(0)).unwrap().id(), "p3");
}

/// Two stores say something of one item and take in each other's events: the later word holds in both.
#[test]
fn of_a_retraction_and_a_restore_the_later_holds_in_any_order() {
    let dated = |hour: i64| Moment { at: Micros(hour * HOUR), is_dated: true };
    let told = |seq: u64, hour: i64, payload: Payload| {
        let mut recorded = recorded(seq, stream(PROJECT), payload);
        recorded.event.host_time = Some(Micros(hour * HOUR));
        // A time after that of recording counts as that one.
        recorded.recorded_at = Micros(12 * HOUR);
        recorded
    };
    let superseded = || MemorySuperseded { old: "p1".into(), new: "p2".into(), reason: None };
    // The event that hides p1, its hour, the hour of p1's restore, whether p1 holds at the end.
    let cases: [(Payload, i64, i64, bool); 4] = [
        (retract("p1").into(), 10, 11, true),
        (retract("p1").into(), 11, 10, false),
        (superseded().into(), 10, 11, true),
        (superseded().into(), 11, 10, false),
    ];
    for (hides, said, restored, holds) in cases {
        for is_restored_first in [true, false] {
            let mut state =
                fold(vec![preference("p1", "k", "a").into(), preference("p2", "other", "b").into()]);
            let restore = |state: &mut MemoryState, seq| {
                state.restored(Seq(seq), dated(restored), &[ItemId::first(Seq(1))]);
            };
            if is_restored_first {
                restore(&mut state, 3);
            }
            state.apply(&told(4, said, hides.clone()));
            if !is_restored_first {
                restore(&mut state, 5);
            }
            let is_shown = state.at(Seq::MAX).by_key(PROJECT, "tooling", "k", Micros(0)).is_some();
            assert_eq!(
                is_shown, holds,
                "{hides:?} at {said}, restored at {restored}, first: {is_restored_first}"
            );
        }
    }
    // Without a time of its own the newest event of the log holds, whatever the clock says.
    let mut state = fold(vec![preference("p1", "k", "a").into()]);
    state.restored(Seq(9), moment(9), &[ItemId::first(Seq(1))]);
    state.apply(&recorded(2, stream(PROJECT), retract("p1")));
    assert!(state.at(Seq::MAX).by_key(PROJECT, "tooling", "k", Micros(0)).is_none());
}

#[test]
fn an_id_recorded_again_is_a_newer_version() {
    let state = check(
        vec![
            decision("d1", &[], &[]).into(),
            decision("d1", &[], &[]).into(),
            decision("", &["d1"], &[]).into(),
        ],
        &expect![[r#"
            d1 superseded ->d1 (revised)
            d1 superseded ->#3 (link)
            #3 current
        "#]],
    );
    assert_eq!(state.at(Seq(1)).by_id("d1").unwrap().item(), ItemId::first(Seq(1)));
    assert_eq!(state.at(Seq(2)).by_id("d1").unwrap().item(), ItemId::first(Seq(2)));
}

#[test]
fn session_items_end_with_their_session_and_others_do_not() {
    let fact = |id: &str, lifespan| MemoryRecorded { lifespan, ..record(id, MemoryKind::Fact, "other", id) };
    let mut state = fold(vec![
        fact("f1", Lifespan::Session).into(),
        fact("f2", Lifespan::Project).into(),
        fact("f3", Lifespan::Permanent).into(),
    ]);
    state.closed(Seq(4));
    state.apply(&recorded(5, stream(PROJECT), fact("f4", Lifespan::Session)));
    expect![[r#"
        f1 expired
        f2 current
        f3 current
        f4 current
    "#]]
    .assert_eq(&dump(&state, Seq::MAX));
    expect![[r#"
        f1 current
        f2 current
        f3 current
    "#]]
    .assert_eq(&dump(&state, Seq(3)));
    assert_eq!(state.at(Seq::MAX).current(Micros(0)).count(), 3);
}

#[test]
fn what_left_the_branch_stays_in_history() {
    let mut state = fold(vec![preference("p1", "k", "a").into(), preference("p2", "k", "b").into()]);
    let before = fold(vec![preference("p1", "k", "a").into()]);
    state.rewound(Seq(3), before.clone());
    // A branch without memory events costs nothing.
    state.rewound(Seq(4), before);
    assert_eq!(state.branches.len(), 2);
    expect![[r#"
        p1 current
        p2 off_branch
    "#]]
    .assert_eq(&dump(&state, Seq::MAX));
    expect![[r#"
        p1 superseded ->p2 (key)
        p2 current
    "#]]
    .assert_eq(&dump(&state, Seq(2)));
    let memory = state.at(Seq::MAX);
    assert!(memory.by_id("p2").is_none() && memory.by_item(ItemId::first(Seq(2))).is_none());
}

#[test]
fn confidence_fades_and_a_reinforcement_starts_anew() {
    let mut table = String::new();
    for (kind, category, lifespan, confidence) in [
        (MemoryKind::Preference, "tooling", PROJECT, 80),
        (MemoryKind::Fact, "other", PROJECT, 80),
        (MemoryKind::Fact, "context", Lifespan::Session, 80),
        (MemoryKind::Fact, "personal", PROJECT, 80),
        (MemoryKind::Preference, "tooling", Lifespan::Permanent, 80),
        (MemoryKind::Decision, "process", PROJECT, 80),
        (MemoryKind::Preference, "tooling", PROJECT, 5),
        (MemoryKind::Preference, "tooling", PROJECT, 200),
    ] {
        let record = MemoryRecorded { confidence, lifespan, ..record("i", kind, category, "v") };
        let mut state = fold(vec![record.into()]);
        let at = |state: &MemoryState, hours: i64| {
            let memory = state.at(Seq::MAX);
            let item = memory.by_id("i").unwrap();
            let now = Micros(hours * HOUR);
            format!("{} {}", item.confidence(now), item.standing(now))
        };
        let hours = [0, 1, 2, 13, 200].map(|hours| at(&state, hours));
        let reinforced = MemoryReinforced { id: "i".into(), amount: 10, at: None };
        state.apply(&recorded(11, stream(PROJECT), reinforced));
        let again = [11, 12].map(|hours| at(&state, hours));
        writeln!(table, "{kind:?} {category} {lifespan:?}: {} | {}", hours.join(", "), again.join(", "))
            .unwrap();
    }
    expect![[r#"
        Preference tooling Project: 0.80 current, 0.80 current, 0.79 current, 0.68 current, 0.10 current | 0.90 current, 0.89 current
        Fact other Project: 0.80 current, 0.80 current, 0.79 current, 0.74 current, 0.10 current | 0.90 current, 0.89 current
        Fact context Session: 0.80 current, 0.80 current, 0.75 current, 0.20 current, 0.10 expired | 0.90 current, 0.85 current
        Fact personal Project: 0.80 current, 0.80 current, 0.80 current, 0.80 current, 0.80 current | 0.90 current, 0.90 current
        Preference tooling Permanent: 0.80 current, 0.80 current, 0.80 current, 0.80 current, 0.80 current | 0.90 current, 0.90 current
        Decision process Project: 0.80 current, 0.80 current, 0.80 current, 0.80 current, 0.80 current | 0.90 current, 0.90 current
        Preference tooling Project: 0.05 current, 0.05 current, 0.05 current, 0.05 current, 0.05 current | 0.15 current, 0.14 current
        Preference tooling Project: 1.00 current, 1.00 current, 0.99 current, 0.88 current, 0.10 current | 1.00 current, 0.99 current
    "#]].assert_eq(&table);
}

#[test]
fn inner_scopes_shadow_outer_ones_without_an_edge() {
    let mut bench = Bench::default();
    for (id, lifespan, value) in
        [("u1", Lifespan::Permanent, "vim"), ("p1", PROJECT, "emacs"), ("s1", Lifespan::Session, "helix")]
    {
        bench.item(MemoryRecorded { lifespan, ..preference(id, "editor", "") }, value);
    }
    let holder = |bench: &Bench| {
        bench.view(|view| {
            let (_, item) = view.by_key("tooling", "editor").unwrap();
            let current: Vec<_> = view.current().into_iter().map(|(_, item)| item.id().to_owned()).collect();
            assert_eq!(current, [item.id()], "all others are shadowed");
            assert_eq!(view.all().len(), 3);
            assert!(view.streams().all(|(_, memory)| memory.edges().is_empty()));
            item.id().to_owned()
        })
    };
    assert_eq!(holder(&bench), "s1");
    bench.states[Lifespan::Session as usize].closed(Seq(4));
    assert_eq!(holder(&bench), "p1");
    bench.push(PROJECT, retract("p1"), &[]);
    assert_eq!(holder(&bench), "u1");
}

#[test]
fn insights_tell_what_wavers() {
    let fact = |id: &str, value: &str, replaces: &[&str]| MemoryRecorded {
        subject: Some("Name".into()),
        replaces: replaces.iter().map(|id| (*id).to_owned()).collect(),
        ..record(id, MemoryKind::Fact, "personal", value)
    };
    let state = fold(vec![
        preference("p1", "k", "A").into(),
        preference("p2", "k", "B").into(),
        preference("p3", "k", "a").into(),
        preference("p4", "other", "A").into(),
        preference("p5", "other", "a").into(),
        fact("f1", "Dana", &[]).into(),
        fact("f2", "Bob", &["f1"]).into(),
        decision("d1", &[], &[]).into(),
        decision("d2", &["d1"], &[]).into(),
        decision("d3", &["d2"], &[]).into(),
        decision("d4", &[], &["d5"]).into(),
        decision("d5", &[], &[]).into(),
        MemoryReinforced { id: "f2".into(), amount: 10, at: None }.into(),
    ]);
    let late = Micros(31 * 24 * HOUR);
    let insights = state.at(Seq::MAX).insights(late);
    expect![[r#"
        {
          "unstable": [
            {
              "lifespan": "project",
              "category": "tooling",
              "key": "k",
              "supersessions": 2,
              "items": [
                "p1",
                "p2",
                "p3"
              ]
            }
          ],
          "returned": [
            {
              "category": "tooling",
              "key": "k",
              "before": "p1",
              "again": "p3"
            }
          ],
          "reversed": [
            {
              "last": "d3",
              "supersessions": 2,
              "items": [
                "d1",
                "d2",
                "d3"
              ]
            }
          ],
          "contradicted": [
            {
              "category": "personal",
              "subject": "name",
              "supersessions": 1,
              "items": [
                "f1",
                "f2"
              ]
            }
          ],
          "unconfirmed": [
            "p3",
            "p5",
            "d3",
            "d5"
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&insights).unwrap());
    assert_eq!(state.at(Seq(1)).insights(Micros(HOUR)), MemoryInsights::default());
}

#[test]
fn many_items_fold_and_answer() {
    let mut state = MemoryState::default();
    let count: u64 = if std::env::var_os("ACPDB_TEST_SLOW").is_some() { 100_000 } else { 10_000 };
    for seq in 1..=count {
        // Half are preferences on 500 keys; half are one chain of decisions, told from its newest end.
        let payload = if seq % 2 == 0 {
            preference(&format!("p{seq}"), &format!("k{}", seq % 1000), &format!("v{seq}"))
        } else {
            let newer = if seq > 1 { vec![format!("d{}", seq - 2)] } else { Vec::new() };
            MemoryRecorded { superseded_by: newer, ..decision(&format!("d{seq}"), &[], &[]) }
        };
        state.apply(&recorded(seq, stream(PROJECT), payload));
    }
    let memory = state.at(Seq::MAX);
    assert_eq!(memory.current(Micros(0)).count(), 501);
    assert_eq!(memory.in_category(MemoryKind::Decision, "process", Micros(0)).count(), 1);
    let last = memory.by_id(&format!("d{}", count - 1)).unwrap();
    assert_eq!(memory.chain(&last).members.len() as u64, count / 2);
    let newest = count - 998;
    let holder = memory.by_key(PROJECT, "tooling", "k2", Micros(0)).unwrap();
    assert_eq!(holder.id(), format!("p{newest}"));
    let value = value_signature(&signer(), &format!("V{newest}"));
    assert_eq!(memory.with_value(value, Micros(0)).count(), 1);
}

/// A file that says only that a key was removed removed nothing that another file had brought, and a value that came behind its
/// removed successor held again.
#[test]
fn a_removed_key_ends_alike_in_whatever_order_its_values_arrive() {
    type Told = (i64, Payload);
    let value = |hour: i64, id: &str| -> Told { (hour, preference(id, "k", id).into()) };
    let cases: [(Vec<Told>, Option<&str>); 4] = [
        (vec![value(1, "p1"), (2, retract("tooling/k").into())], None),
        (vec![value(1, "p1"), (2, retract("tooling/k").into()), value(3, "p2")], Some("p2")),
        (vec![value(1, "p1"), value(2, "p2"), (3, retract("p2").into())], None),
        (vec![value(2, "p1"), (1, retract("tooling/k").into())], Some("p1")),
    ];
    for (told, holds) in cases {
        for turned in 0..told.len() {
            for is_backwards in [false, true] {
                let mut order: Vec<usize> = (0..told.len()).collect();
                order.rotate_left(turned);
                if is_backwards {
                    order.reverse();
                }
                let mut state = MemoryState::default();
                for (seq, number) in (1..).zip(&order) {
                    let (hour, payload) = told[*number].clone();
                    let mut recorded = recorded(seq, stream(PROJECT), payload);
                    recorded.event.host_time = Some(Micros(hour * HOUR));
                    recorded.recorded_at = Micros(12 * HOUR);
                    state.apply(&recorded);
                }
                let memory = state.at(Seq::MAX);
                let found = memory.by_key(PROJECT, "tooling", "k", Micros(0));
                assert_eq!(found.as_ref().map(MemoryItem::id), holds, "{told:?} in the order {order:?}");
            }
        }
    }
}
