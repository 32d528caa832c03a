//! Copilot CLI. Its JSON does not name the event, the command of each hook does; nor the call that a result is of.

use acpdb_engine::event::Outcome;
use serde_json::{Value, json};

use super::{claude, ended, string};
use crate::told::{CallWithResult, HostEventKind, HostReply};

/// The event behind a name.
pub(super) fn event(name: &str, value: &Value) -> HostEventKind {
    match name {
        "sessionStart" => HostEventKind::SessionStarted { source: claude::source(value) },
        "userPromptSubmitted" => {
            HostEventKind::Prompted { id: None, text: string(value, &["prompt"]).unwrap_or_default() }
        }
        "postToolUse" => HostEventKind::CallEnded(call(value)),
        "agentStop" => HostEventKind::Stopped { said: None },
        "subagentStop" => HostEventKind::AgentStopped { transcript: None },
        "preCompact" => HostEventKind::Compacting,
        "sessionEnd" => HostEventKind::SessionEnded,
        _ => HostEventKind::Other,
    }
}

fn call(value: &Value) -> CallWithResult {
    let raw = value.get("toolResult").cloned().unwrap_or_default();
    let text = raw.get("textResultForLlm").and_then(Value::as_str).map(str::to_owned);
    let outcome = match raw.get("resultType").and_then(Value::as_str) {
        Some("success") | None => Outcome::Completed,
        Some(_) => Outcome::Failed,
    };
    ended(value, raw, text, outcome)
}

/// The answer to the host.
pub(super) fn render(answer: &HostReply) -> Value {
    match answer {
        HostReply { replacement: Some(text), .. } => {
            json!({"modifiedResult": {"resultType": "success", "textResultForLlm": text}})
        }
        HostReply { context: Some(text), .. } => json!({"additionalContext": text}),
        _ => json!({}),
    }
}
