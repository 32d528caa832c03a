//! Copilot CLI. Its JSON does not name the event: the command of each hook does.

use acpdb_engine::event::Outcome;
use serde_json::{Value, json};

use super::{claude, ended, string};
use crate::told::{Answer, Call, Event};

/// The event behind a name.
pub(super) fn event(name: &str, value: &Value) -> Event {
    match name {
        "sessionStart" => Event::SessionStarted { source: claude::source(value) },
        "userPromptSubmitted" => {
            Event::Prompted { id: None, text: string(value, &["prompt"]).unwrap_or_default() }
        }
        "postToolUse" => Event::CallEnded(call(value)),
        "agentStop" => Event::Stopped { said: None },
        "subagentStop" => Event::AgentStopped { transcript: None },
        "preCompact" => Event::Compacting,
        "sessionEnd" => Event::SessionEnded,
        _ => Event::Other,
    }
}

fn call(value: &Value) -> Call {
    let raw = value.get("toolResult").cloned().unwrap_or_default();
    let text = raw.get("textResultForLlm").and_then(Value::as_str).map(str::to_owned);
    let outcome = match raw.get("resultType").and_then(Value::as_str) {
        Some("success") | None => Outcome::Completed,
        Some(_) => Outcome::Failed,
    };
    ended(value, raw, text, outcome)
}

/// The answer to the host.
pub(super) fn render(answer: &Answer) -> Value {
    match &answer.context {
        Some(text) => json!({"additionalContext": text}),
        None => json!({}),
    }
}
