//! Judge for todo lists and reminders: a vector's calls drive the todo state alone, without the rules about calls.
//!
//! ```text
//! todowrite, completed, output a list --> list_written        every turn that ends --> reminder_due? --> reminded
//! ```

use acpdb_engine::event::{Body, TodoHead, TodoList};
use acpdb_engine::fold::todo::ReminderSettings;
use acpdb_engine::fold::todo::{TodoSource, TodoState};
use acpdb_engine::ids::{ItemId, Seq, Turn};
use acpdb_engine::text::{Signer, collapse_space};
use serde_json::{Value, json};

/// A `todowrite` call that may finish later.
struct Call {
    id: String,
    item: ItemId,
    turn: Turn,
}

struct Run {
    state: TodoState,
    settings: Option<ReminderSettings>,
    reminders: Vec<Value>,
    /// Lists as written, by the seq of their event.
    lists: Vec<(Seq, Value)>,
    calls: Vec<Call>,
    seq: Seq,
    turn: Turn,
}

/// Judges a vector by its `todos` and `reminders`.
pub fn todos(vector: &Value) -> Value {
    let settings = vector.pointer("/config/todoReminder").map(|config| {
        let usual = ReminderSettings::default();
        let turns = |name, usual| {
            config
                .get(name)
                .and_then(Value::as_u64)
                .and_then(|turns| u32::try_from(turns).ok())
                .unwrap_or(usual)
        };
        ReminderSettings {
            enabled: true,
            initial_turns: turns("initialTurns", usual.initial_turns),
            repeat_turns: turns("repeatTurns", usual.repeat_turns),
            stuck_task_turns: turns("stuckTaskTurns", usual.stuck_task_turns),
        }
    });
    let mut run = Run {
        state: TodoState::default(),
        settings,
        reminders: Vec::new(),
        lists: Vec::new(),
        calls: Vec::new(),
        seq: Seq::ZERO,
        turn: Turn(0),
    };
    for event in vector.get("events").and_then(Value::as_array).into_iter().flatten() {
        run.event(event);
    }
    run.remind();
    json!({"reminders": run.reminders, "todos": run.todos()})
}

impl Run {
    fn event(&mut self, event: &Value) {
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
        if let Some(turn) =
            event.get("turn").and_then(Value::as_u64).and_then(|turn| u32::try_from(turn).ok())
        {
            self.pass_to(Turn(turn));
        }
        self.seq = self.seq.next();
        match text("type") {
            "call" if text("tool") == "todowrite" => {
                self.calls.push(Call {
                    id: text("id").to_owned(),
                    item: ItemId::first(self.seq),
                    turn: self.turn,
                });
                self.finish(text("id"), text("status"), text("output"));
            }
            "status" => self.finish(text("id"), text("status"), text("output")),
            "sync" | "compact" | "context" => self.remind(),
            _ => {}
        }
    }

    /// Ends every turn on the way to `turn`.
    fn pass_to(&mut self, turn: Turn) {
        while self.turn < turn {
            self.remind();
            self.turn = Turn(self.turn.get() + 1);
        }
    }

    fn finish(&mut self, id: &str, status: &str, output: &str) {
        let Some(call) = self.calls.iter().find(|call| call.id == id).filter(|_| status == "completed")
        else {
            return;
        };
        let Ok(list @ Value::Array(_)) = serde_json::from_str::<Value>(output) else { return };
        let signer = Signer::new([7; 32]);
        let items = list.as_array().into_iter().flatten().map(|item| {
            let field = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
            let content = collapse_space(&field("content").unwrap_or_default());
            TodoHead {
                id: field("id"),
                content: signer.text("todo", &content),
                status: field("status").unwrap_or_default(),
                priority: field("priority"),
            }
        });
        let written = TodoList { body: Body::default(), items: items.collect() };
        self.state.list_written(self.seq, self.turn, Some(call.item), call.turn, &written, self.seq);
        self.lists.push((self.seq, list));
    }

    /// Shows a reminder if one is due.
    fn remind(&mut self) {
        let Some(settings) = &self.settings else { return };
        if let Some(due) = self.state.reminder_due(Seq::MAX, self.turn, settings) {
            self.seq = self.seq.next();
            self.state.reminded(self.seq, self.turn);
            self.reminders.push(json!({
                "turn": due.turn,
                "turns_since_update": due.turns_since_update,
                "stuck_turns": due.stuck_turns,
            }));
        }
    }

    /// The final list, each item as written, with the turn since which it is in progress.
    fn todos(&self) -> Value {
        let Some(list) = self.state.list(Seq::MAX) else { return Value::Null };
        let item = |sources: &[TodoSource]| {
            let Some(TodoSource::List { body, index }) = sources.first() else { return Value::Null };
            let written = self.lists.iter().find(|(seq, _)| *seq == body.seq).map(|(_, list)| list);
            written.and_then(|list| list.get(*index as usize)).cloned().unwrap_or_default()
        };
        list.items
            .iter()
            .map(|entry| {
                let mut shown = item(&entry.entry);
                if let (Some(since), Some(fields)) = (entry.in_progress_since, shown.as_object_mut()) {
                    fields.insert("inProgressSince".to_owned(), json!(since));
                }
                shown
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::judged;
    use super::*;

    #[test]
    fn lists_and_reminders_are_as_recorded() {
        let files = ["todo.json", "reminder.json", "session.json", "protect.json"];
        let different = judged(&files, "acp-seed", &["todos", "reminders"], |vector| Ok(todos(vector)));
        assert!(different.is_empty(), "{}", different.join("\n"));
    }
}
