//! Cursor. It keeps no recording that is read here, so the words of its hooks are recorded.

use acpdb_engine::event::Outcome;
use serde_json::{Value, json};

use super::{claude, ended, string};
use crate::told::{CallWithResult, HostEventKind, HostReply};

/// The event behind a name.
pub(super) fn event(name: &str, value: &Value) -> HostEventKind {
    match name {
        "sessionStart" => HostEventKind::SessionStarted { source: claude::source(value) },
        "beforeSubmitPrompt" => HostEventKind::Prompted {
            id: string(value, &["generation_id"]),
            text: string(value, &["prompt"]).unwrap_or_default(),
        },
        "postToolUse" => HostEventKind::CallEnded(call(value, Outcome::Completed)),
        "postToolUseFailure" => HostEventKind::CallEnded(call(value, Outcome::Failed)),
        "afterAgentResponse" => HostEventKind::Stopped { said: string(value, &["text"]) },
        "stop" => HostEventKind::Stopped { said: None },
        "subagentStop" => HostEventKind::AgentStopped { transcript: None },
        "preCompact" => HostEventKind::Compacting,
        "sessionEnd" => HostEventKind::SessionEnded,
        _ => HostEventKind::Other,
    }
}

fn call(value: &Value, outcome: Outcome) -> CallWithResult {
    let names = ["tool_output", "error_message", "output", "result_json"];
    let raw = names.iter().find_map(|name| value.get(*name)).cloned().unwrap_or_default();
    let text = match &raw {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    };
    ended(value, raw, text, outcome)
}

/// The answer to the host.
pub(super) fn render(answer: &HostReply) -> Value {
    match &answer.context {
        Some(text) => json!({"additional_context": text}),
        None => json!({}),
    }
}
