use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::event::{Payload, Validation};
use crate::ids::Turn;

/// The tasks of one stream: accepted drafts, folded, with their bodies.
#[derive(Default)]
struct Tasks {
    state: TaskState,
    drafts: Vec<EventDraft>,
}

impl Tasks {
    fn read(&self, body: BodyId) -> Option<Vec<u8>> {
        let draft = self.drafts.get(usize::try_from(body.seq.get()).unwrap() - 1)?;
        if body.chunks == 0 {
            Some(Vec::new())
        } else {
            draft.bodies.get(body.first as usize).map(|it| it.to_vec())
        }
    }

    fn text(&self, body: Option<BodyId>) -> String {
        body.map_or(String::new(), |body| String::from_utf8(self.read(body).unwrap()).unwrap())
    }

    fn update(&mut self, json: &Value) -> Result<Vec<EventDraft>, TaskRejection> {
        let update = TaskUpdate::from_json(json.to_string().as_bytes())?;
        let drafts = accept(&self.state, Seq::MAX, &update, Some("m"), &|body| self.read(body))?;
        for draft in &drafts {
            self.drafts.push(draft.clone());
            let seq = Seq(self.drafts.len() as u64);
            match &draft.event.payload {
                Payload::TaskChanged(changed) => self.state.changed(seq, Turn(1), changed, seq),
                Payload::TaskEvicted(evicted) => self.state.evicted(seq, evicted, seq),
                other => panic!("{}", other.label()),
            }
        }
        Ok(drafts)
    }
}

/// `ID=STATUS[:SUMMARY]`, with `_` for spaces in the summary; `ID` alone names a task.
fn update(line: &str) -> Value {
    let task = |word: &str| {
        let (id, rest) = word.split_once('=').unwrap_or((word, ""));
        let (status, summary) = rest.split_once(':').map_or((rest, None), |(s, text)| (s, Some(text)));
        json!({
            "id": id,
            "status": (!status.is_empty()).then_some(status),
            "result_summary": summary.map(|text| text.replace('_', " ")),
        })
    };
    json!({"tasks": line.split_whitespace().map(task).collect::<Vec<_>>()})
}

/// Sends one update a line; shows the recorded events, or the reply to the agent.
#[track_caller]
fn check(script: &str, expected: &Expect) {
    let mut tasks = Tasks::default();
    let mut shown = String::new();
    for line in script.lines().map(str::trim) {
        let reply = match tasks.update(&update(line)) {
            Ok(drafts) => {
                let labels: Vec<_> = drafts.iter().map(|draft| draft.event.payload.label()).collect();
                format!("{}; active {}", labels.join(" "), tasks.state.active(Seq::MAX).unwrap_or("-"))
            }
            Err(rejection) => rejection.reply(),
        };
        shown = shown + &reply + "\n";
    }
    expected.assert_eq(&shown);
}

#[test]
fn one_task_at_a_time_from_start_to_summary() {
    check(
        "a b c
         a=in_progress
         b=pending
         a=completed:Found_the_bug_in_parser
         a=completed
         a=in_progress
         a=pending b=in_progress:notes
         b=completed:____short_one_______
         b=completed:exactly_15_char
         c=delegated",
        &expect![[r#"
            task_changed; active -
            task_changed; active a
            task_changed; active a
            task_changed task_evicted; active -
            task_changed; active -
            task_changed; active a
            Error updating task: complete task 'a' before starting 'b'
            Error updating task: task 'b' needs a result_summary of at least 15 characters; its logs will be evicted
            task_changed task_evicted; active a
            task_changed; active a
        "#]],
    );
}

#[test]
fn refusals_come_in_their_order() {
    check(
        "
         a=completed
         a=in_progress b=in_progress c=in_progress
         a=completed:short b=in_progress c=in_progress
         a=in_progress
         b
         b=in_progress
         a=pending b=in_progress
         a=completed:long_enough_a_summary b=in_progress
         a=completed:long_enough_a_summary b
         b=in_progress
         b=completed:long_enough_a_summary a=in_progress
         a=completed:long_enough_a_summary c=in_progress d",
        &expect![[r#"
            Error updating task: no tasks provided
            Error updating task: task 'a' needs a result_summary of at least 15 characters; its logs will be evicted
            Error updating task: only one task may be in progress, 3 were given; complete the active task first
            Error updating task: task 'a' needs a result_summary of at least 15 characters; its logs will be evicted
            task_changed; active a
            Error updating task: no new tasks while 'a' is in progress; complete it first
            Error updating task: complete task 'a' before starting 'b'
            Error updating task: complete task 'a' before starting 'b'
            Error updating task: complete 'a' in one update, then add and start new tasks in the next
            task_changed task_evicted; active -
            task_changed; active b
            task_changed task_evicted; active a
            Error updating task: complete 'a' in one update, then add and start new tasks in the next
        "#]],
    );
}

#[test]
fn a_summary_given_earlier_counts_and_the_judge_sees_the_merged_task() {
    let mut tasks = Tasks::default();
    let first = json!({"tasks": [{"id": "t", "content": "Fix it", "status": "in_progress", "note": null,
        "acceptance_criteria": ["tests pass"], "grounding": {"evidence_required": true}}]});
    tasks.update(&first).unwrap();
    tasks
        .update(&json!({"todos": [{"id": "t", "result_summary": "All tests green", "grounding_evidence":
        {"citations": [1], "grounding_confidence": "high"}, "acceptance_criteria": null}]}))
        .unwrap();
    let drafts = tasks.update(&update("t=completed")).unwrap();
    let Payload::TaskEvicted(evicted) = &drafts[1].event.payload else { panic!("{drafts:?}") };
    let validation = Validation { valid: true, score: 100, evidence_found: Some(true) };
    assert_eq!((evicted.validation.as_ref(), evicted.message.as_deref()), (Some(&validation), Some("m")));
    let task = tasks.state.task("t", Seq::MAX).unwrap();
    assert_eq!(tasks.text(task.content), "Fix it");
    assert_eq!(tasks.text(task.summary), "All tests green");
    expect![[r#"
        All tests green

        ✅ [Sigma Validation] All criteria met (Score: 1.00)"#]]
    .assert_eq(&tasks.text(task.eviction.unwrap().summary));
    // An unknown task is evicted with its summary as it is.
    tasks.update(&update("new=completed:done_without_being_asked")).unwrap();
    let eviction = tasks.state.task("new", Seq::MAX).unwrap().eviction.unwrap();
    assert_eq!(
        (eviction.validation.as_ref(), tasks.text(eviction.summary).as_str()),
        (None, "done without being asked")
    );
}

#[test]
fn extras_are_recorded_as_given() {
    let json = br#"{"tasks": [{"id": 7, "acceptance_criteria": ["a"], "weight": 1.50,   "status": "pending"}, {"id": "b"}]}"#;
    let update = TaskUpdate::from_json(json).unwrap();
    assert_eq!(update.tasks[0].id, "7");
    let extra = r#"{"id": 7, "acceptance_criteria": ["a"], "weight": 1.50,   "status": "pending"}"#;
    assert_eq!(update.tasks[0].extra.as_deref(), Some(extra));
    assert_eq!(update.tasks[1], TaskEntry { id: "b".to_owned(), ..TaskEntry::default() });
}

#[test]
fn entries_of_one_id_are_one_task() {
    let json = br#"{"tasks": [{"id": "a", "content": "x", "x": 1, "y": 1}, {"id": "a", "status": "in_progress", "y": 2}]}"#;
    let update = TaskUpdate::from_json(json).unwrap();
    assert_eq!(update.tasks.len(), 1);
    let task = &update.tasks[0];
    assert_eq!((task.content.as_deref(), task.status), (Some("x"), Some(TaskStatus::InProgress)));
    let extra: Value = serde_json::from_str(task.extra.as_deref().unwrap()).unwrap();
    assert_eq!((&extra["x"], &extra["y"]), (&json!(1), &json!(2)));
}

#[test]
fn what_is_no_update_is_refused_by_name() {
    let long = format!(r#"{{"tasks": [{{"id": "{}"}}]}}"#, "x".repeat(513));
    let many = format!(r#"{{"tasks": [{}]}}"#, vec![r#"{"id": "a"}"#; 1001].join(","));
    let shown: String = [
        "",
        "[]",
        r#"{"tasks": 1}"#,
        r#"{"tasks": [1]}"#,
        r#"{"tasks": [{"status": "pending"}]}"#,
        r#"{"tasks": [{"id": ""}]}"#,
        r#"{"tasks": [{"id": "a", "status": "done"}]}"#,
        r#"{"tasks": [{"id": "a", "content": 1}]}"#,
        &long,
        &many,
    ]
    .iter()
    .map(|json| TaskUpdate::from_json(json.as_bytes()).unwrap_err().reply() + "\n")
    .collect();
    expect![[r#"
        Error updating task: the update is not an object with a list `tasks`
        Error updating task: the update is not an object with a list `tasks`
        Error updating task: the update is not an object with a list `tasks`: invalid type: integer `1`, expected a sequence at line 1 column 11
        Error updating task: task 1 is not an object with an id
        Error updating task: task 1 is not an object with an id
        Error updating task: task 1 is not an object with an id
        Error updating task: task 'a' has the unknown status 'done'; use pending, in_progress, delegated or completed
        Error updating task: task 'a': content is not a text
        Error updating task: the id of task 1 is longer than 512 bytes
        Error updating task: the update names 1001 tasks, at most 1000 are allowed
    "#]].assert_eq(&shown);
    // The check, not the parser, refuses an update without tasks.
    for json in ["{}", r#"{"tasks": null}"#, r#"{"tasks": []}"#] {
        let update = TaskUpdate::from_json(json.as_bytes()).unwrap();
        let refused = accept(&TaskState::default(), Seq::MAX, &update, None, &|_| None).unwrap_err();
        assert_eq!(refused.reply(), "Error updating task: no tasks provided");
    }
}

proptest! {
    /// For any updates: never two tasks in progress, and each completed task has a summary that stands for it.
    #[test]
    fn accepted_updates_keep_the_life_cycle(
        updates in prop::collection::vec(
            prop::collection::vec(
                (
                    "[a-c]",
                    prop::option::of(prop::sample::select(vec!["pending", "in_progress", "delegated", "completed"])),
                    prop::option::of(prop::sample::select(vec!["short", "a summary of some length"])),
                ),
                0..4,
            ),
            0..12,
        ),
    ) {
        let mut tasks = Tasks::default();
        for entries in updates {
            let list: Vec<Value> = entries
                .iter()
                .map(|(id, status, summary)| json!({"id": id, "status": status, "result_summary": summary}))
                .collect();
            let before = tasks.state.clone();
            if tasks.update(&json!({"tasks": list})).is_err() {
                prop_assert_eq!(&tasks.state, &before);
                continue;
            }
            let in_progress = tasks.state.tasks(Seq::MAX).filter(|task| task.status == TaskStatus::InProgress);
            prop_assert!(in_progress.count() <= 1);
            for task in tasks.state.tasks(Seq::MAX).filter(|task| task.status == TaskStatus::Completed) {
                prop_assert!(tasks.text(task.eviction.unwrap().summary).trim().len() >= SUMMARY_CHARS_MIN);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60), json in r#"\{"tasks":\[\{"id":("a"|1|null),"status":("completed"|"x"|2)\}\]\}"#) {
        for bytes in [&bytes[..], json.as_bytes()] {
            if let Ok(update) = TaskUpdate::from_json(bytes) {
                prop_assert!(update.tasks.iter().all(|task| !task.id.is_empty()));
            }
        }
    }
}
