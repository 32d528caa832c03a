//! Texts that a host may show between turns: a reminder of the todo list, a reflection on the plan. The fold says when they are due.

use serde::Serialize;

use acpdb_engine::View;
use acpdb_engine::fold::todo::ReminderDue;
use acpdb_engine::ids::Turn;

/// A reminder that is due.
#[derive(Serialize, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reminder {
    /// The turn it is due in.
    pub turn: Turn,
    /// Turns since the list was updated.
    pub turns_since_update: u32,
    /// Turns that the longest stuck task has been in progress, if one is stuck.
    pub stuck_turns: Option<u32>,
    /// The text to show.
    pub text: String,
}

impl Reminder {
    /// The reminder of the todo list that is due at a view's watermark, if one is. A host that shows it records it as injected.
    pub fn due(view: &View) -> Option<Self> {
        let state = view.state();
        let settings = state.policy(view.at()).reminder;
        state.todos().reminder_due(view.at(), state.turn(view.at()), &settings).map(Self::from)
    }
}

impl From<ReminderDue> for Reminder {
    fn from(due: ReminderDue) -> Self {
        let ReminderDue { turn, turns_since_update, stuck_turns } = due;
        Self { turn, turns_since_update, stuck_turns, text: reminder_text(turns_since_update, stuck_turns) }
    }
}

/// A reflection that is due.
#[derive(Serialize, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reflection {
    /// The turn it is due in.
    pub turn: Turn,
    /// The text to show.
    pub text: String,
}

impl Reflection {
    /// The reflection that is due at a view's watermark, if automata mode is on and one is.
    pub fn due(view: &View) -> Option<Self> {
        let state = view.state();
        let settings = state.policy(view.at()).automata;
        let (at, turn) = (view.at(), state.turn(view.at()));
        let is_due = state.todos().is_reflection_due(at, turn, &settings);
        is_due.then(|| Self { turn, text: REFLECTION_TEXT.to_owned() })
    }
}

/// The text of a reflection.
const REFLECTION_TEXT: &str = "---
🤖 **Reflection** (automata mode)
Compare progress with the plan, look for new goals, reorder the tasks, name what could be simpler.
---";

/// The text of a reminder; the guidance is there if a task is stuck.
fn reminder_text(turns_since_update: u32, stuck_turns: Option<u32>) -> String {
    let guidance = stuck_turns.map_or_else(String::new, |turns| {
        format!(
            "
⚠️ **Task Breakdown Suggestion**
A task has been in progress for {turns} turns. If you're finding it difficult to complete, consider:
- Breaking it into smaller, more specific subtasks
- Identifying blockers or dependencies that need resolution first
- Marking it as blocked and moving to another task

Use `todowrite` to split the task or update its status.
"
        )
    });
    format!(
        "---
📋 **Todo reminder** (list not updated for {turns_since_update} turns)
Bring the list up to date with `todowrite` before the next task.
{guidance}---"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn reminder_texts() {
        let texts = [reminder_text(8, None), reminder_text(16, Some(19)), REFLECTION_TEXT.to_owned()];
        expect![[r#"
            ---
            📋 **Todo reminder** (list not updated for 8 turns)
            Bring the list up to date with `todowrite` before the next task.
            ---
            ==========
            ---
            📋 **Todo reminder** (list not updated for 16 turns)
            Bring the list up to date with `todowrite` before the next task.

            ⚠️ **Task Breakdown Suggestion**
            A task has been in progress for 19 turns. If you're finding it difficult to complete, consider:
            - Breaking it into smaller, more specific subtasks
            - Identifying blockers or dependencies that need resolution first
            - Marking it as blocked and moving to another task

            Use `todowrite` to split the task or update its status.
            ---
            ==========
            ---
            🤖 **Reflection** (automata mode)
            Compare progress with the plan, look for new goals, reorder the tasks, name what could be simpler.
            ---"#]]
        .assert_eq(&texts.join("\n==========\n"));
    }
}
