//! Codex: Claude Code's JSON, with texts as results. A result is replaced by the reason for a block.

use acpdb_engine::event::Outcome;
use serde_json::{Value, json};

use super::{additional_context, claude, ended, string};
use crate::told::{CallWithResult, HostEvent, HostEventKind, HostReply};

/// The event behind a name.
pub(super) fn event(name: &str, value: &Value) -> HostEventKind {
    match name {
        "PostToolUse" => HostEventKind::CallEnded(call(value)),
        "UserPromptSubmit" => HostEventKind::Prompted {
            id: string(value, &["turn_id"]),
            text: string(value, &["prompt"]).unwrap_or_default(),
        },
        _ => claude::event(name, value),
    }
}

fn call(value: &Value) -> CallWithResult {
    let raw = value.get("tool_response").cloned().unwrap_or_default();
    let text = raw.as_str().map(str::to_owned);
    // The text that the model sees has a head that the hook is not told.
    CallWithResult { shown: None, ..ended(value, raw, text, Outcome::Completed) }
}

/// The answer to the host.
pub(super) fn render(told: &HostEvent, answer: &HostReply) -> Value {
    match answer {
        HostReply { replacement: Some(text), .. } => json!({"decision": "block", "reason": text}),
        HostReply { context: Some(text), .. } => additional_context(&told.name, text),
        _ => json!({}),
    }
}
