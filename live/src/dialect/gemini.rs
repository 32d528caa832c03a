//! Gemini CLI. Calls have no id, and a replaced result would be an error to the model: so nothing is replaced.

use acpdb_engine::event::Outcome;
use serde_json::{Value, json};

use super::{additional_context, claude, ended, string};
use crate::told::{CallWithResult, HostEvent, HostEventKind, HostReply};

/// The event behind a name.
pub(super) fn event(name: &str, value: &Value) -> HostEventKind {
    match name {
        "SessionStart" => HostEventKind::SessionStarted { source: claude::source(value) },
        "BeforeAgent" => {
            HostEventKind::Prompted { id: None, text: string(value, &["prompt"]).unwrap_or_default() }
        }
        "AfterTool" => HostEventKind::CallEnded(call(value)),
        "AfterAgent" => HostEventKind::Stopped { said: string(value, &["prompt_response"]) },
        "PreCompress" => HostEventKind::Compacting,
        "SessionEnd" => HostEventKind::SessionEnded,
        _ => HostEventKind::Other,
    }
}

fn call(value: &Value) -> CallWithResult {
    let raw = value.get("tool_response").cloned().unwrap_or_default();
    let text = raw.get("llmContent").and_then(Value::as_str).map(str::to_owned);
    let outcome = if raw.get("error").is_some_and(|error| !error.is_null()) {
        Outcome::Failed
    } else {
        Outcome::Completed
    };
    CallWithResult { id: None, ..ended(value, raw, text, outcome) }
}

/// The answer to the host.
pub(super) fn render(told: &HostEvent, answer: &HostReply) -> Value {
    match &answer.context {
        Some(text) => additional_context(&told.name, text),
        None => json!({}),
    }
}
