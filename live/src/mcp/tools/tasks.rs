//! The tools of tasks: a model starts a task, and completes it with the summary that stands in the place of its outputs.

use acpdb_engine::event::TaskStatus;
use serde_json::{Map, Value, json};

use super::{ToolError, ToolReply, Tools};

/// The rules for a model that works by tasks.
pub const RULES: &str = "Work by tasks, with the tool task_update:\n\
1. One task is in progress at a time. Start it before you work on it; add new tasks while none is in progress.\n\
2. Complete a task as soon as it is done, with a result_summary of at least 15 characters: what was found, decided and changed, with \
paths and names. The outputs of the task leave the context then, and the summary stands in their place.\n\
3. Complete one task in one update, and start the next one in the next.\n\
4. Before you complete a task, ask yourself: does the summary meet each acceptance criterion, in its own words, and could I go on from \
it alone? Missing criteria are named in the reply.";

impl Tools {
    pub(super) fn update_tasks(
        &self,
        session: Option<&str>,
        arguments: &Map<String, Value>,
    ) -> Result<ToolReply, ToolError> {
        let stream = self.session(session)?.id;
        let update = json!({"tasks": arguments.get("tasks")}).to_string();
        let reply = self.store().update_tasks(stream, update.as_bytes()).map_err(|error| match error {
            acpdb_engine::Error::Rejected(rejection) => {
                ToolError::Argument(format!("Error updating task: {rejection}"))
            }
            error => error.into(),
        })?;
        Ok(ToolReply { value: json!({"reply": reply.text}), text: reply.text })
    }

    pub(super) fn tasks(&self, session: Option<&str>) -> Result<ToolReply, ToolError> {
        let Some(stream) = self.here(session)? else {
            return Ok(ToolReply { text: self.not_yet(), value: json!({"tasks": []}) });
        };
        let view = self.store().view(stream.id)?;
        let mut rows = Vec::new();
        for task in view.state().tasks().tasks(view.at()) {
            let text = |body| acpdb_query::sound::or_lost(view.text(body));
            let content = task.content.map(text).transpose()?.and_then(Result::ok);
            let summary = task.eviction.and_then(|eviction| eviction.summary).or(task.summary);
            let summary = summary.map(text).transpose()?.and_then(Result::ok);
            rows.push(
                json!({"id": task.id, "status": label(task.status), "content": content, "result_summary": summary}),
            );
        }
        let line = |row: &Value| {
            let part = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
            let said =
                if part("result_summary").is_empty() { part("content") } else { part("result_summary") };
            format!("[{}] {}: {said}", part("status"), part("id"))
        };
        let said: Vec<String> = rows.iter().map(line).collect();
        let text = if said.is_empty() { "there are no tasks".to_owned() } else { said.join("\n") };
        Ok(ToolReply { text, value: json!({"tasks": rows}) })
    }
}

const fn label(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "pending",
        TaskStatus::InProgress => "in_progress",
        TaskStatus::Delegated => "delegated",
        TaskStatus::Completed => "completed",
    }
}
