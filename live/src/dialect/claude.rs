//! Claude Code, and the chat of VS Code, which uses the same JSON.
//!
//! The model sees a read file with numbers in front of its lines, and the output of a command without the object around it. A
//! replacement has to be in the tool's own shape, or the host keeps the original.

use std::fmt::Write as _;
use std::path::PathBuf;

use acpdb_engine::event::Outcome;
use serde_json::{Value, json};

use super::{additional_context, claude_module, params, string};
use crate::told::{CallWithResult, HostEvent, HostEventKind, HostReply, SessionStart};

/// The event behind a name.
pub(super) fn event(name: &str, value: &Value) -> HostEventKind {
    match name {
        "SessionStart" => HostEventKind::SessionStarted { source: source(value) },
        "UserPromptSubmit" => HostEventKind::Prompted {
            id: string(value, &["prompt_id"]),
            text: string(value, &["prompt"]).unwrap_or_default(),
        },
        "PostToolUse" => HostEventKind::CallEnded(call(value, Outcome::Completed)),
        "PostToolUseFailure" => HostEventKind::CallEnded(call(value, Outcome::Failed)),
        "PostToolBatch" => HostEventKind::BatchEnded,
        "Stop" | "StopFailure" => HostEventKind::Stopped { said: string(value, &["last_assistant_message"]) },
        "SubagentStop" => HostEventKind::AgentStopped {
            transcript: string(value, &["agent_transcript_path"]).map(PathBuf::from),
        },
        "PreCompact" => HostEventKind::Compacting,
        "SessionEnd" => HostEventKind::SessionEnded,
        "session.start" => HostEventKind::Greeted,
        "session.append" => HostEventKind::RowAdded(claude_module::result(value)),
        "session.compact" => HostEventKind::FoldAsked(claude_module::asked(value)),
        _ => HostEventKind::Other,
    }
}

/// Why a session begins.
pub(super) fn source(value: &Value) -> SessionStart {
    match value.get("source").and_then(Value::as_str) {
        Some("resume") => SessionStart::Resumed,
        Some("compact") => SessionStart::Compacted,
        _ => SessionStart::New,
    }
}

fn call(value: &Value, outcome: Outcome) -> CallWithResult {
    let tool = string(value, &["tool_name"]).unwrap_or_default();
    let raw = value.get("tool_response").cloned().unwrap_or_default();
    let error = string(value, &["error"]);
    let (text, shown) = match (&*tool, &raw) {
        _ if outcome == Outcome::Failed => (error.clone(), error),
        (_, Value::String(text)) => (Some(text.clone()), Some(text.clone())),
        ("Read", raw) => read(raw),
        ("Bash", raw) => bash(raw),
        _ => (None, None),
    };
    CallWithResult {
        id: string(value, &["tool_use_id"]),
        tool,
        params: params(value.get("tool_input")),
        outcome,
        shown,
        text,
        raw,
    }
}

/// A file's content, and the same with the numbers of its lines.
fn read(raw: &Value) -> (Option<String>, Option<String>) {
    let file = raw.get("file");
    let content = file.and_then(|file| file.get("content")).and_then(Value::as_str);
    let (Some("text"), Some(content)) = (raw.get("type").and_then(Value::as_str), content) else {
        return (None, None);
    };
    let first = file.and_then(|file| file.get("startLine")).and_then(Value::as_u64).unwrap_or(1);
    let mut shown = String::with_capacity(content.len() + content.len() / 8);
    for (line, number) in content.split('\n').zip(first..) {
        if number > first {
            shown.push('\n');
        }
        let _ = write!(shown, "{number}\t{line}");
    }
    (Some(content.to_owned()), Some(shown))
}

/// The output of a command, if the model sees nothing else of it.
fn bash(raw: &Value) -> (Option<String>, Option<String>) {
    let out = raw.get("stdout").and_then(Value::as_str);
    // A long output is kept in a file, and the model sees its beginning.
    let is_plain = raw.get("persistedOutputPath").is_none()
        && raw.get("stderr").and_then(Value::as_str).unwrap_or_default().is_empty()
        && raw.get("interrupted").and_then(Value::as_bool) != Some(true)
        && raw.get("isImage").and_then(Value::as_bool) != Some(true);
    match out.filter(|out| is_plain && !out.is_empty()) {
        Some(out) => (Some(out.to_owned()), Some(out.to_owned())),
        None => (None, None),
    }
}

/// The answer to the host.
pub(super) fn render(told: &HostEvent, answer: &HostReply) -> Value {
    if let Some(answer) = claude_module::render(told, answer) {
        return answer;
    }
    if let (Some(text), HostEventKind::CallEnded(call)) = (&answer.replacement, &told.event)
        && let Some(output) = in_shape(call, text)
    {
        let hook = json!({"hookEventName": told.name, "updatedToolOutput": output});
        return json!({"hookSpecificOutput": hook});
    }
    match &answer.context {
        Some(text) => additional_context(&told.name, text),
        None => json!({}),
    }
}

/// A text in the shape of the tool's own result; `None` for shapes that are not known.
fn in_shape(call: &CallWithResult, text: &str) -> Option<Value> {
    let mut raw = call.raw.clone();
    match &*call.tool {
        "Read" => {
            let file = raw.get_mut("file")?.as_object_mut()?;
            file.insert("content".to_owned(), text.into());
            file.insert("numLines".to_owned(), 1.into());
        }
        "Bash" => {
            raw.as_object_mut()?.insert("stdout".to_owned(), text.into());
        }
        _ if raw.is_string() => raw = text.into(),
        _ => return None,
    }
    Some(raw)
}
