//! Reminders and reflections: whether one is due, and its text.
//!
//! ```text
//! list update --initial turns--> reminder --repeat turns--> reminder --repeat turns--> ..      a list update restarts
//! automata    --initial turns--> reflection --initial turns--> reflection --> ..
//! ```
//!
//! Both are data that a host asks for. Nothing is shown by asking: a host that shows one records `Injected`, and only
//! then does the repeat clock run. So both are pure functions of a state, a seq and a turn, and asking twice gives the
//! same answer twice.

use serde::{Deserialize, Serialize};

use super::todo::TodoState;
use crate::ids::{Seq, Turn};

/// When to remind of the todo list. Turns are steps of the model.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct ReminderSettings {
    /// Remind at all.
    pub enabled: bool,
    /// Turns from the list's last update to the first reminder.
    pub initial_turns: u32,
    /// Turns from one reminder to the next.
    pub repeat_turns: u32,
    /// Turns in progress after which a task counts as stuck.
    pub stuck_task_turns: u32,
}

impl Default for ReminderSettings {
    fn default() -> Self {
        Self { enabled: true, initial_turns: 8, repeat_turns: 4, stuck_task_turns: 12 }
    }
}

/// When to reflect, in automata mode.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct ReflectionSettings {
    /// Reflect at all.
    pub enabled: bool,
    /// Turns from activation, or from one reflection, to the next.
    pub initial_turns: u32,
}

impl Default for ReflectionSettings {
    fn default() -> Self {
        Self { enabled: true, initial_turns: 8 }
    }
}

/// A reminder that is due.
#[derive(Serialize, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reminder {
    /// The turn it is due in.
    pub turn: Turn,
    /// Turns since the list was updated.
    pub turns_since_update: u32,
    /// Turns that the longest stuck task has been in progress, if one is stuck.
    pub stuck_turns: Option<u32>,
    /// What to show.
    pub text: String,
}

/// A reflection that is due.
#[derive(Serialize, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reflection {
    /// The turn it is due in.
    pub turn: Turn,
    /// What to show.
    pub text: String,
}

impl TodoState {
    /// The reminder that is due at turn `now`, read at `at`, if one is.
    ///
    /// Only lists with something pending or in progress are reminded of. Cost: O(items of the list).
    pub fn reminder_due(&self, at: Seq, now: Turn, settings: &ReminderSettings) -> Option<Reminder> {
        let list = self.list(at).filter(|_| settings.enabled)?;
        if !list.items.iter().any(|item| item.is_open()) {
            return None;
        }
        let turns_since_update = now.since(list.turn);
        // A reminder from before the update belongs to a cycle that is over.
        let due = match self.last_reminder(at).filter(|reminder| reminder.seq > list.seq) {
            Some(reminder) => now.since(reminder.turn) >= settings.repeat_turns,
            None => turns_since_update >= settings.initial_turns,
        };
        if !due {
            return None;
        }
        let stuck_turns = self.stuck(at, now, settings.stuck_task_turns).map(|stuck| stuck.turns).max();
        let text = reminder_text(turns_since_update, stuck_turns);
        Some(Reminder { turn: now, turns_since_update, stuck_turns, text })
    }

    /// The reflection that is due at turn `now`, read at `at`, if one is.
    pub fn reflection_due(&self, at: Seq, now: Turn, settings: &ReflectionSettings) -> Option<Reflection> {
        let begun = self.automata_since(at).filter(|_| settings.enabled)?;
        let last = self.last_reflection(at).filter(|last| last.seq > begun.seq).unwrap_or(begun);
        (now.since(last.turn) >= settings.initial_turns)
            .then(|| Reflection { turn: now, text: REFLECTION_TEXT.to_owned() })
    }

    /// Whether automata mode is on as of `at`.
    pub fn is_automata(&self, at: Seq) -> bool {
        self.automata_since(at).is_some()
    }
}

/// What a reflection says.
pub const REFLECTION_TEXT: &str = "---
🤖 **Reflection** (automata mode)
Compare progress with the plan, look for new goals, reorder the tasks, name what could be simpler.
---";

/// What a reminder says; the guidance is there if a task is stuck.
pub fn reminder_text(turns_since_update: u32, stuck_turns: Option<u32>) -> String {
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
