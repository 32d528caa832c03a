//! Gemini CLI. Calls have no id, and a replaced result would be an error to the model: so nothing is replaced.

use acpdb_engine::event::Outcome;
use serde_json::{Value, json};

use super::{additional_context, claude, ended, string};
use crate::told::{Answer, Call, Event, Told};

/// The event behind a name.
pub(super) fn event(name: &str, value: &Value) -> Event {
    match name {
        "SessionStart" => Event::SessionStarted { source: claude::source(value) },
        "BeforeAgent" => Event::Prompted { id: None, text: string(value, &["prompt"]).unwrap_or_default() },
        "AfterTool" => Event::CallEnded(call(value)),
        "AfterAgent" => Event::Stopped { said: string(value, &["prompt_response"]) },
        "PreCompress" => Event::Compacting,
        "SessionEnd" => Event::SessionEnded,
        _ => Event::Other,
    }
}

fn call(value: &Value) -> Call {
    let raw = value.get("tool_response").cloned().unwrap_or_default();
    let text = raw.get("llmContent").and_then(Value::as_str).map(str::to_owned);
    let outcome = if raw.get("error").is_some_and(|error| !error.is_null()) {
        Outcome::Failed
    } else {
        Outcome::Completed
    };
    Call { id: None, ..ended(value, raw, text, outcome) }
}

/// The answer to the host.
pub(super) fn render(told: &Told, answer: &Answer) -> Value {
    match &answer.context {
        Some(text) => additional_context(&told.name, text),
        None => json!({}),
    }
}
