//! Single todos: `TaskCreate` and `TaskUpdate`, whose ids and effects stand partly in the params, partly in the result.

use acpdb_engine::entry::{Bytes, TodoChangeEntry};

use super::super::json;

/// The change that an open call makes to the list once it has completed.
pub(super) struct TodoCall {
    id: Option<String>,
    status: Option<String>,
    entry: Option<Bytes>,
}

/// The change that a finished call of Claude Code's task tools made to the todo list, for feeds that tell calls and no records;
/// `None` for other tools, and for a call that changed nothing.
pub fn todo_change(tool: &str, params: &str, output: &str) -> Option<TodoChangeEntry> {
    of_call(tool, params)?.finished(None, output.as_bytes())
}

/// The change that a call of `tool` asks for; `None` for other tools.
pub(super) fn of_call(tool: &str, params: &str) -> Option<TodoCall> {
    match tool {
        "TaskCreate" => Some(TodoCall { id: None, status: Some("pending".to_owned()), entry: entry(params) }),
        "TaskUpdate" => {
            let [id, status] = json::pick(params, ["taskId", "status"])?;
            Some(TodoCall { id: id.and_then(id_of), status: json::owned(status), entry: entry(params) })
        }
        _ => None,
    }
}

impl TodoCall {
    /// The change as it happened, given the structured result and the result's text.
    pub(super) fn finished(self, result: Option<&str>, text: &[u8]) -> Option<TodoChangeEntry> {
        let [task, task_id, success] =
            result.and_then(|result| json::pick(result, ["task", "taskId", "success"])).unwrap_or_default();
        if json::boolean(success) == Some(false) {
            return None;
        }
        let given = self.id.or_else(|| json::member(task, "id").or(task_id).and_then(id_of));
        let id = given.or_else(|| id_in_text(text))?;
        Some(TodoChangeEntry { id, status: self.status, entry: self.entry })
    }
}

/// An id written as a string or a number.
fn id_of(value: &str) -> Option<String> {
    json::owned(Some(value)).or_else(|| json::count(Some(value)).map(|number| number.to_string()))
}

/// The number in `Task #7 created successfully: ...`.
fn id_in_text(text: &[u8]) -> Option<String> {
    // Bytes that are no text do not begin with these words.
    let text = std::str::from_utf8(text).ok()?;
    let rest = text.strip_prefix("Task #")?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let id = rest.get(..end)?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// A todo as an entry of a list: its subject as `content`, and the other params about it.
fn entry(params: &str) -> Option<Bytes> {
    let members = json::members(params)?;
    let (_, subject) = members.iter().rev().find(|(name, _)| name == "subject")?;
    let mut out = b"{\"content\":".to_vec();
    out.extend_from_slice(subject.as_bytes());
    for (name, value) in &members {
        if !matches!(name.as_str(), "subject" | "taskId" | "status" | "content") {
            out.push(b',');
            json::quote(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
    }
    out.push(b'}');
    Some(Bytes::from(out))
}
