use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::event::{Body, TaskFields};

#[derive(Clone, Debug)]
enum Step {
    /// id, status; asked for by a message.
    Change(Vec<(String, Option<TaskStatus>)>, Option<String>),
    Evict(String),
    /// Back to the state after this line.
    Rewind(u64),
}

fn apply(state: &mut TaskState, seq: Seq, step: &Step) {
    match step {
        Step::Change(tasks, message) => {
            let fields = |(id, status): &(String, Option<TaskStatus>)| TaskFields {
                id: id.clone(),
                status: *status,
                extra: status.is_none().then(Body::default),
                ..TaskFields::default()
            };
            let change = TaskChanged { tasks: tasks.iter().map(fields).collect(), message: message.clone() };
            let turn = Turn(u32::try_from(seq.get()).unwrap() * 10);
            state.changed(seq, turn, &change, seq);
        }
        Step::Evict(task) => {
            let summary = Some(Body { chunks: 1, ..Body::default() });
            state.evicted(seq, &TaskEvicted { task: task.clone(), summary, ..TaskEvicted::default() }, seq);
        }
        Step::Rewind(_) => panic!("needs the steps before it"),
    }
}

fn fold(steps: &[Step]) -> TaskState {
    let mut state = TaskState::default();
    let mut branch: Vec<(Seq, &Step)> = Vec::new();
    for (seq, step) in (1..).map(Seq).zip(steps) {
        if let Step::Rewind(to) = step {
            branch.retain(|(kept, _)| kept.get() <= *to);
            let mut fresh = TaskState::default();
            for (seq, step) in &branch {
                apply(&mut fresh, *seq, step);
            }
            state.rewound(seq, fresh);
        } else {
            apply(&mut state, seq, step);
            branch.push((seq, step));
        }
    }
    state
}

/// `ID=STATUS.. [by MESSAGE]`, `ID` alone for a change without a status, `evict ID`, `rewind SEQ`.
fn parse(script: &str) -> Vec<Step> {
    let status = |text: &str| match text {
        "pending" => TaskStatus::Pending,
        "in_progress" => TaskStatus::InProgress,
        "delegated" => TaskStatus::Delegated,
        "completed" => TaskStatus::Completed,
        other => panic!("{other}"),
    };
    let line = |line: &str| {
        let (tasks, message) = line.split_once(" by ").map_or((line, None), |(tasks, by)| (tasks, Some(by)));
        let words: Vec<&str> = tasks.split_whitespace().collect();
        match words[..] {
            ["evict", task] => Step::Evict(task.to_owned()),
            ["rewind", to] => Step::Rewind(to.parse().unwrap()),
            _ => Step::Change(
                words
                    .iter()
                    .map(|word| match word.split_once('=') {
                        Some((id, text)) => (id.to_owned(), Some(status(text))),
                        None => ((*word).to_owned(), None),
                    })
                    .collect(),
                message.map(str::to_owned),
            ),
        }
    };
    script.lines().map(str::trim).filter(|text| !text.is_empty()).map(line).collect()
}

fn show(state: &TaskState, at: Seq) -> String {
    let mut text = format!("active {}:", state.active(at).unwrap_or("-"));
    for task in state.tasks(at) {
        let _ = write!(text, " {}={:?}", task.id, task.status);
        if let Some(begun) = task.begun {
            let _ = write!(text, " begun {} {}", begun.seq, begun.message.as_deref().unwrap_or("?"));
        }
        if let Some(ended) = task.ended {
            let _ = write!(text, " ended {} {}", ended.seq, ended.message.as_deref().unwrap_or("?"));
        }
        if let Some(eviction) = task.eviction {
            let _ = write!(text, " evicted {}", eviction.seq);
        }
        if !task.extras.is_empty() {
            let _ = write!(text, " +{}", task.extras.len());
        }
        text.push(';');
    }
    text
}

#[track_caller]
fn check(script: &str, expected: &Expect) {
    let steps = parse(script);
    let state = fold(&steps);
    let shown: String =
        (1..=steps.len() as u64).fold(String::new(), |text, at| text + &show(&state, Seq(at)) + "\n");
    expected.assert_eq(&shown);
}

#[test]
fn work_begins_at_the_first_in_progress_since_the_last_completion() {
    check(
        "t=pending
         t=in_progress by m1
         t=pending
         t=in_progress by m2
         t=completed by m3
         evict t
         t=in_progress by m4
         t=in_progress by m5
         t=completed by m6
         t=pending
         t=completed by m7",
        &expect![[r#"
            active -: t=Pending;
            active t: t=InProgress begun #2 m1;
            active -: t=Pending begun #2 m1;
            active t: t=InProgress begun #2 m1;
            active -: t=Completed begun #2 m1 ended #5 m3;
            active -: t=Completed begun #2 m1 ended #5 m3 evicted #6;
            active t: t=InProgress begun #7 m4 evicted #6;
            active t: t=InProgress begun #7 m4 evicted #6;
            active -: t=Completed begun #7 m4 ended #9 m6 evicted #6;
            active -: t=Pending evicted #6;
            active -: t=Completed ended #11 m7 evicted #6;
        "#]],
    );
}

#[test]
fn facts_that_break_the_life_cycle_are_taken_as_they_come() {
    // Several in progress: the last to start is active, then the one before it. An eviction alone completes.
    check(
        "a=in_progress b=in_progress
         c=in_progress
         a=in_progress
         c=delegated
         evict b
         evict z
         a y
         rewind 2",
        &expect![[r#"
            active b: a=InProgress begun #1 ?; b=InProgress begun #1 ?;
            active c: a=InProgress begun #1 ?; b=InProgress begun #1 ?; c=InProgress begun #2 ?;
            active c: a=InProgress begun #1 ?; b=InProgress begun #1 ?; c=InProgress begun #2 ?;
            active b: a=InProgress begun #1 ?; b=InProgress begun #1 ?; c=Delegated begun #2 ?;
            active a: a=InProgress begun #1 ?; b=Completed begun #1 ? ended #5 ? evicted #5; c=Delegated begun #2 ?;
            active a: a=InProgress begun #1 ?; b=Completed begun #1 ? ended #5 ? evicted #5; c=Delegated begun #2 ?; z=Completed ended #6 ? evicted #6;
            active a: a=InProgress begun #1 ? +1; b=Completed begun #1 ? ended #5 ? evicted #5; c=Delegated begun #2 ?; z=Completed ended #6 ? evicted #6; y=Pending +1;
            active c: a=InProgress begun #1 ?; b=InProgress begun #1 ?; c=InProgress begun #2 ?;
        "#]],
    );
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let status = prop::option::of(prop::sample::select(vec![
        TaskStatus::Pending,
        TaskStatus::InProgress,
        TaskStatus::Delegated,
        TaskStatus::Completed,
    ]));
    let tasks = prop::collection::vec(("[a-d]", status), 1..4);
    let step = prop_oneof![
        6 => (tasks, prop::option::of("m[1-3]")).prop_map(|(tasks, message)| Step::Change(tasks, message)),
        2 => "[a-d]".prop_map(Step::Evict),
        1 => (0u64..20).prop_map(Step::Rewind),
    ];
    prop::collection::vec(step, 0..20)
}

proptest! {
    #[test]
    fn reading_at_a_seq_equals_folding_the_prefix(steps in steps()) {
        let whole = fold(&steps);
        for count in 0..=steps.len() {
            let (at, prefix) = (Seq(count as u64), fold(&steps[..count]));
            prop_assert_eq!(whole.active(at), prefix.active(Seq::MAX));
            prop_assert_eq!(
                whole.tasks(at).collect::<Vec<_>>(),
                prefix.tasks(Seq::MAX).collect::<Vec<_>>()
            );
        }
    }

    /// The active task is in progress, and one is active whenever one is in progress.
    #[test]
    fn the_active_task_is_in_progress(steps in steps()) {
        let state = fold(&steps);
        for at in (0..=steps.len() as u64).map(Seq) {
            let in_progress: Vec<&str> = state
                .tasks(at)
                .filter(|task| task.status == TaskStatus::InProgress)
                .map(|task| task.id)
                .collect();
            match state.active(at) {
                Some(active) => prop_assert!(in_progress.contains(&active)),
                None => prop_assert!(in_progress.is_empty()),
            }
            for id in in_progress {
                prop_assert!(state.task(id, at).unwrap().begun.is_some());
            }
        }
    }
}
