use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::event::Body;
use crate::fold::todo::{ReflectionSettings, ReminderSettings};
use crate::ids::BodyId;

/// One line of a script. The seq is the line's number.
#[derive(Clone, Debug)]
enum Step {
    /// (position of the call, its turn, items as id, content, status)
    Write(Option<(u64, u32)>, Vec<(Option<String>, String, String)>),
    Change(String, Option<String>),
    Remind,
    Reflect,
    Automata,
    /// Back to the state after this line.
    Rewind(u64),
}

fn signature(content: &str) -> Signature {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(content.bytes()) {
        *to = from;
    }
    Signature(bytes)
}

fn apply(state: &mut TodoState, seq: u64, turn: u32, step: &Step) {
    let (seq, turn) = (Seq(seq), Turn(turn));
    match step {
        Step::Write(call, items) => {
            let items = items.iter().map(|(id, content, status)| TodoHead {
                id: id.clone(),
                content: signature(content),
                status: status.clone(),
                priority: None,
            });
            let list = TodoList { body: Body::default(), items: items.collect() };
            let call_turn = call.map_or(turn, |(_, turn)| Turn(turn));
            state.list_written(seq, turn, call.map(|(at, _)| ItemId::first(Seq(at))), call_turn, &list, seq);
        }
        Step::Change(id, status) => {
            let change = TodoChange { id: id.clone(), status: status.clone(), ..TodoChange::default() };
            state.changed(seq, turn, &change);
        }
        Step::Remind => state.reminded(seq, turn),
        Step::Reflect => state.reflected(seq, turn),
        Step::Automata => state.automata(seq, turn),
        Step::Rewind(_) => panic!("needs the steps before it"),
    }
}

/// Folds (turn, step) lines; a rewind folds the branch that remains afresh.
fn fold(steps: &[(u32, Step)]) -> TodoState {
    let mut state = TodoState::default();
    let mut branch: Vec<usize> = Vec::new();
    for (index, (turn, step)) in steps.iter().enumerate() {
        let seq = index as u64 + 1;
        if let Step::Rewind(to) = step {
            branch.retain(|kept| (*kept as u64) < *to);
            let mut fresh = TodoState::default();
            for kept in &branch {
                apply(&mut fresh, *kept as u64 + 1, steps[*kept].0, &steps[*kept].1);
            }
            state.rewound(Seq(seq), fresh);
        } else {
            apply(&mut state, seq, *turn, step);
            branch.push(index);
        }
    }
    state
}

/// `TURN write ITEM..`, `TURN write@CALL/CALLTURN ITEM..` with ITEM `[ID/]CONTENT=STATUS`, `TURN change ID STATUS`,
/// `TURN remind | reflect | automata`, `TURN rewind SEQ`.
fn parse(script: &str) -> Vec<(u32, Step)> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let turn = words.next().unwrap().parse().unwrap();
        let verb = words.next().unwrap();
        let rest: Vec<&str> = words.collect();
        let step = match verb.split_once('@').unwrap_or((verb, "")) {
            ("write", call) => Step::Write(
                call.split_once('/').map(|(at, turn)| (at.parse().unwrap(), turn.parse().unwrap())),
                rest.iter()
                    .map(|item| {
                        let (name, status) = item.split_once('=').unwrap();
                        let (id, content) = match name.split_once('/') {
                            Some((id, content)) => (Some(id.to_owned()), content),
                            None => (None, name),
                        };
                        (id, content.to_owned(), status.to_owned())
                    })
                    .collect(),
            ),
            ("change", _) => Step::Change(rest[0].to_owned(), rest.get(1).map(|s| (*s).to_owned())),
            ("remind", _) => Step::Remind,
            ("reflect", _) => Step::Reflect,
            ("automata", _) => Step::Automata,
            ("rewind", _) => Step::Rewind(rest[0].parse().unwrap()),
            other => panic!("{other:?}"),
        };
        (turn, step)
    };
    script.lines().map(str::trim).filter(|text| !text.is_empty()).map(line).collect()
}

fn name(item: &TodoEntry) -> String {
    let content: String =
        item.content_signature.0.iter().take_while(|b| **b != 0).map(|b| *b as char).collect();
    item.id.as_ref().map_or(content.clone(), |id| format!("{id}/{content}"))
}

fn show(view: Option<&TodoView>) -> String {
    let Some(view) = view else { return "none\n".to_owned() };
    let mut text = format!("{} {}:", view.seq, view.turn);
    for item in &view.items {
        let since = item.in_progress_since.map_or(String::new(), |turn| format!("@{turn}"));
        let _ = write!(text, " {}={}{since}", name(item), item.status);
    }
    text.push('\n');
    text
}

/// Shows the list after every line.
#[track_caller]
fn check(script: &str, expected: &Expect) {
    let steps = parse(script);
    let state = fold(&steps);
    let shown: String = (1..=steps.len() as u64).map(|seq| show(state.list(Seq(seq)).as_ref())).collect();
    expected.assert_eq(&shown);
}

#[test]
fn in_progress_since_is_kept_without_a_pause_and_starts_anew_after_one() {
    check(
        "1 write 1/a=pending
         3 write 1/a=in_progress
         5 write 1/a=in_progress
         7 write 1/a=blocked
         9 write 1/a=in_progress 2/b=in_progress",
        &expect![[r#"
            #1 t1: 1/a=pending
            #2 t3: 1/a=in_progress@t3
            #3 t5: 1/a=in_progress@t3
            #4 t7: 1/a=blocked
            #5 t9: 1/a=in_progress@t9 2/b=in_progress@t9
        "#]],
    );
}

#[test]
fn items_are_recognised_by_id_then_content_then_position() {
    // By id, though content and place changed.
    check(
        "1 write 1/a=in_progress 2/b=pending
         2 write 2/a=in_progress 1/c=in_progress",
        &expect![[r#"
            #1 t1: 1/a=in_progress@t1 2/b=pending
            #2 t2: 2/a=in_progress@t2 1/c=in_progress@t1
        "#]],
    );
    // By content, though the place changed; then by place, though the content changed.
    check(
        "1 write a=in_progress b=pending
         2 write b=pending a=in_progress
         3 write b=pending aa=in_progress",
        &expect![[r#"
            #1 t1: a=in_progress@t1 b=pending
            #2 t2: b=pending a=in_progress@t1
            #3 t3: b=pending aa=in_progress@t1
        "#]],
    );
    // Equal contents pair in order, each old item once.
    check(
        "1 write a=pending a=in_progress
         2 write a=in_progress a=in_progress a=in_progress",
        &expect![[r#"
            #1 t1: a=pending a=in_progress@t1
            #2 t2: a=in_progress@t2 a=in_progress@t1 a=in_progress@t2
        "#]],
    );
    // An id never matches another id, by content or by place; it may match an item without one.
    check(
        "1 write 1/a=in_progress
         2 write 2/a=in_progress
         3 write a=in_progress
         4 write 9/a=in_progress",
        &expect![[r#"
            #1 t1: 1/a=in_progress@t1
            #2 t2: 2/a=in_progress@t2
            #3 t3: a=in_progress@t2
            #4 t4: 9/a=in_progress@t2
        "#]],
    );
    // A place whose old item went elsewhere matches nothing.
    check(
        "1 write a=in_progress b=pending
         2 write x=in_progress a=in_progress",
        &expect![[r#"
            #1 t1: a=in_progress@t1 b=pending
            #2 t2: x=in_progress@t2 a=in_progress@t1
        "#]],
    );
}

#[test]
fn an_older_write_that_finishes_late_changes_nothing() {
    // Calls started in turns 2 and 3; the older one finishes last. Then two of one turn: position decides.
    check(
        "3 write@20/3 new=pending
         4 write@10/2 old=pending
         5 write@31/5 second=pending
         5 write@30/5 first=pending
         6 write@40/6",
        &expect![[r#"
            #1 t3: new=pending
            #1 t3: new=pending
            #3 t5: second=pending
            #3 t5: second=pending
            #5 t6:
        "#]],
    );
}

#[test]
fn changes_apply_to_one_item() {
    check(
        "1 change 1 pending
         2 change 2 in_progress
         3 change 1 in_progress
         4 change 2 in_progress
         5 change 2
         6 change 1 deleted
         7 change 3
         8 write 2/b=in_progress",
        &expect![[r#"
            #1 t1: 1/=pending
            #2 t2: 1/=pending 2/=in_progress@t2
            #3 t3: 1/=in_progress@t3 2/=in_progress@t2
            #4 t4: 1/=in_progress@t3 2/=in_progress@t2
            #5 t5: 1/=in_progress@t3 2/=in_progress@t2
            #6 t6: 1/=deleted 2/=in_progress@t2
            #7 t7: 1/=deleted 2/=in_progress@t2 3/=pending
            #8 t8: 2/b=in_progress@t2
        "#]],
    );
}

#[test]
fn the_text_of_a_changed_item_is_named_by_all_its_sources() {
    let mut state = fold(&parse("1 write 1/a=pending 2/b=pending"));
    let entry = Some(Body { first: 0, chunks: 1, ..Body::default() });
    let change = TodoChange { id: "2".to_owned(), entry, ..TodoChange::default() };
    state.changed(Seq(2), Turn(2), &change);
    let list = state.list(Seq::MAX).unwrap();
    let first = BodyId { seq: Seq(1), first: 0, chunks: 0 };
    let second = BodyId { seq: Seq(2), first: 0, chunks: 1 };
    assert_eq!(
        list.items[1].entry,
        [TodoSource::List { body: first, index: 1 }, TodoSource::Change { body: second }]
    );
    // Views of the past keep their items.
    assert_eq!(state.list(Seq(1)).unwrap().items[1].entry, [TodoSource::List { body: first, index: 1 }]);
}

#[test]
fn a_rewind_brings_the_list_back_and_reads_below_it_stay() {
    check(
        "1 write a=in_progress
         2 write a=completed
         3 rewind 1
         4 write a=in_progress
         5 rewind 4
         6 rewind 0
         7 write b=in_progress",
        &expect![[r#"
            #1 t1: a=in_progress@t1
            #2 t2: a=completed
            #1 t1: a=in_progress@t1
            #4 t4: a=in_progress@t1
            #4 t4: a=in_progress@t1
            none
            #7 t7: b=in_progress@t7
        "#]],
    );
    let state = fold(&parse("1 write a=pending\n2 write b=pending\n3 rewind 1\n4 write c=pending"));
    let history: String = state.history().map(|view| show(Some(&view))).collect();
    expect![[r#"
        #1 t1: a=pending
        #2 t2: b=pending
        #4 t4: c=pending
    "#]]
    .assert_eq(&history);
}

/// Asks at every turn up to `last`, and records each reminder and reflection that is due; shows turn, turns since update, longest stuck.
#[track_caller]
fn check_reminders(script: &str, last: u32, settings: ReminderSettings, expected: &Expect) {
    let mut lines = parse(script).into_iter().peekable();
    let mut steps: Vec<(u32, Step)> = Vec::new();
    let mut shown = String::new();
    for turn in 1..=last {
        while let Some(line) = lines.next_if(|(at, _)| *at <= turn) {
            steps.push(line);
        }
        let state = fold(&steps);
        if let Some(due) = state.reminder_due(Seq::MAX, Turn(turn), &settings) {
            let _ = writeln!(shown, "{} {} {:?}", due.turn, due.turns_since_update, due.stuck_turns);
            steps.push((turn, Step::Remind));
        }
        if state.is_reflection_due(Seq::MAX, Turn(turn), &ReflectionSettings::default()) {
            let _ = writeln!(shown, "t{turn} reflection");
            steps.push((turn, Step::Reflect));
        }
    }
    expected.assert_eq(&shown);
}

#[test]
fn reminders_come_when_they_are_due() {
    let usual = ReminderSettings::default();
    let cases = [
        (
            "1 write a=pending",
            20,
            usual,
            expect![[r#"
            t9 8 None
            t13 12 None
            t17 16 None
        "#]],
        ),
        (
            "3 write a=in_progress\n5 write a=in_progress",
            22,
            usual,
            expect![[r#"
            t13 8 None
            t17 12 Some(14)
            t21 16 Some(18)
        "#]],
        ),
        // An update restarts the cycle: the reminder of turn 9 counts no more.
        (
            "1 write a=pending\n10 write a=pending",
            19,
            usual,
            expect![[r#"
            t9 8 None
            t18 8 None
        "#]],
        ),
        // A change is an update, too.
        (
            "1 write 1/a=pending\n8 change 1 in_progress",
            17,
            usual,
            expect![[r#"
            t16 8 None
        "#]],
        ),
        ("1 write a=completed b=cancelled c=blocked d=deleted", 30, usual, expect![""]),
        ("1 write", 30, usual, expect![""]),
        ("1 remind", 30, usual, expect![""]),
        ("1 write a=pending", 30, ReminderSettings { enabled: false, ..usual }, expect![""]),
        (
            "1 write a=in_progress",
            4,
            ReminderSettings { initial_turns: 0, repeat_turns: 0, stuck_task_turns: 2, enabled: true },
            expect![[r#"
            t1 0 None
            t2 1 None
            t3 2 Some(2)
            t4 3 Some(3)
        "#]],
        ),
    ];
    for (script, last, settings, expected) in cases {
        check_reminders(script, last, settings, &expected);
    }
}

#[test]
fn reflections_come_in_automata_mode_only() {
    let off = ReminderSettings { enabled: false, ..ReminderSettings::default() };
    check_reminders("1 write a=pending", 30, off, &expect![""]);
    check_reminders(
        "3 automata\n5 automata\n12 write a=pending",
        20,
        off,
        &expect![[r#"
            t11 reflection
            t19 reflection
        "#]],
    );
    let disabled = ReflectionSettings { enabled: false, ..ReflectionSettings::default() };
    let state = fold(&parse("1 automata"));
    assert!(state.is_automata(Seq::MAX) && !state.is_automata(Seq::ZERO));
    assert!(!state.is_reflection_due(Seq::MAX, Turn(99), &disabled));
}

#[test]
fn a_rewind_undoes_reminders_and_automata_mode() {
    let usual = ReminderSettings::default();
    let state = fold(&parse("1 write a=pending\n9 remind\n9 automata\n10 rewind 1"));
    assert!(state.reminder_due(Seq(3), Turn(10), &usual).is_none());
    assert!(state.reminder_due(Seq(4), Turn(10), &usual).is_some());
    assert!(state.is_automata(Seq(3)) && !state.is_automata(Seq(4)));
}

fn statuses() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["pending", "in_progress", "completed", "deleted"]).prop_map(str::to_owned)
}

fn items() -> impl Strategy<Value = Vec<(Option<String>, String, String)>> {
    let item = (prop::option::of("[1-3]"), "[a-c]", statuses());
    prop::collection::vec(item, 0..5)
}

fn steps() -> impl Strategy<Value = Vec<(u32, Step)>> {
    let step = prop_oneof![
        5 => (prop::option::of((0u64..30, 0u32..4)), items()).prop_map(|(call, items)| (call, items)).prop_map(|(call, items)| Step::Write(call, items)),
        3 => ("[1-3]", prop::option::of(statuses())).prop_map(|(id, status)| Step::Change(id, status)),
        1 => Just(Step::Remind),
        1 => Just(Step::Reflect),
        1 => Just(Step::Automata),
        1 => (0u64..20).prop_map(Step::Rewind),
    ];
    prop::collection::vec((0u32..4, step), 0..20).prop_map(|lines| {
        let mut turn = 0;
        lines
            .into_iter()
            .map(|(more, step)| {
                turn += more;
                let step = match step {
                    // A call starts before it finishes.
                    Step::Write(Some((at, before)), items) => {
                        Step::Write(Some((at, turn.saturating_sub(before))), items)
                    }
                    other => other,
                };
                (turn, step)
            })
            .collect()
    })
}

proptest! {
    /// Reading at a seq equals folding the prefix, over rewinds, for everything that can be read.
    #[test]
    fn reading_at_a_seq_equals_folding_the_prefix(steps in steps()) {
        let whole = fold(&steps);
        let quick = ReminderSettings { initial_turns: 2, repeat_turns: 1, stuck_task_turns: 2, enabled: true };
        let reflections = ReflectionSettings { initial_turns: 2, enabled: true };
        for count in 0..=steps.len() {
            let (at, prefix) = (Seq(count as u64), fold(&steps[..count]));
            let now = Turn(steps.get(count).map_or(99, |(turn, _)| *turn));
            prop_assert_eq!(whole.list(at), prefix.list(Seq::MAX));
            prop_assert_eq!(whole.reminder_due(at, now, &quick), prefix.reminder_due(Seq::MAX, now, &quick));
            prop_assert_eq!(
                whole.is_reflection_due(at, now, &reflections),
                prefix.is_reflection_due(Seq::MAX, now, &reflections)
            );
        }
    }

    /// Each version of the history is the list that is read at its seq.
    #[test]
    fn the_history_is_what_was_there_at_each_version(steps in steps()) {
        let whole = fold(&steps);
        for view in whole.history() {
            prop_assert_eq!(whole.list(view.seq), Some(view));
        }
    }

    /// After a rewind the list is the one of the branch that remains, folded alone.
    #[test]
    fn a_rewind_equals_never_having_been_there(steps in steps(), to in 0usize..20) {
        let steps: Vec<_> = steps.into_iter().filter(|(_, step)| !matches!(step, Step::Rewind(_))).collect();
        let to = to.min(steps.len());
        let mut rewound = steps.clone();
        rewound.push((99, Step::Rewind(to as u64)));
        let alone = fold(&steps[..to]);
        let rewound = fold(&rewound);
        prop_assert_eq!(rewound.list(Seq::MAX), alone.list(Seq::MAX));
        prop_assert_eq!(rewound.is_automata(Seq::MAX), alone.is_automata(Seq::MAX));
    }

    /// `in_progress_since` is set exactly for items in progress, and never later than the list; positions count up.
    #[test]
    fn in_progress_since_goes_with_the_status(steps in steps()) {
        for view in fold(&steps).history() {
            for (index, item) in view.items.iter().enumerate() {
                prop_assert_eq!(item.in_progress_since.is_some(), item.status == IN_PROGRESS);
                prop_assert!(item.in_progress_since.is_none_or(|since| since <= view.turn));
                prop_assert_eq!(item.position as usize, index);
            }
        }
    }

    /// With an id on every item: in progress since the first write of the unbroken run that ends here.
    #[test]
    fn with_ids_the_unbroken_run_decides(
        lists in prop::collection::vec((1u32..3, prop::collection::btree_map("[1-4]", ("[a-c]", statuses()), 0..4)), 1..10),
    ) {
        let mut turn = 0;
        let mut steps = Vec::new();
        for (more, list) in &lists {
            turn += more;
            let items = list.iter().map(|(id, (text, status))| (Some(id.clone()), text.clone(), status.clone()));
            steps.push((turn, Step::Write(None, items.collect())));
        }
        let state = fold(&steps);
        let last = state.list(Seq::MAX).unwrap();
        for item in last.items.iter().filter(|item| item.status == IN_PROGRESS) {
            let id = item.id.as_ref().unwrap();
            let run = lists.iter().rev().take_while(|(_, list)| list.get(id).is_some_and(|(_, s)| s == IN_PROGRESS));
            let began = steps[lists.len() - run.count()].0;
            prop_assert_eq!(item.in_progress_since, Some(Turn(began)));
        }
    }

    /// Without ids, another order changes nothing where contents differ.
    #[test]
    fn order_does_not_matter_where_contents_differ(
        (first, second) in prop::sample::subsequence(vec!["a", "b", "c", "d"], 0..=4)
            .prop_flat_map(|names| {
                let count = names.len();
                (Just(names.clone()), prop::collection::vec(statuses(), count), Just(names).prop_shuffle())
            })
            .prop_map(|(names, statuses, shuffled)| {
                let first: Vec<_> = names.into_iter().map(str::to_owned).zip(statuses).collect();
                (first, shuffled)
            })
    ) {
        let before = first.iter().map(|(name, status)| (None, name.clone(), status.clone())).collect();
        let after = second.iter().map(|name| (None, (*name).to_owned(), IN_PROGRESS.to_owned())).collect();
        let state = fold(&[(1, Step::Write(None, before)), (2, Step::Write(None, after))]);
        for item in &state.list(Seq::MAX).unwrap().items {
            let was = &first.iter().find(|(content, _)| *content == name(item)).unwrap().1;
            let since = if was == IN_PROGRESS { 1 } else { 2 };
            prop_assert_eq!(item.in_progress_since, Some(Turn(since)));
        }
    }
}
