//! Lines of Claude Code, made of the body of a request: a record for each message, each hanging on the one before.

use serde_json::{Value, json};

use super::{Resume, derived};

/// The version whose lines these are: the newest that was looked at.
const VERSION: &str = "2.1.330";
/// The model that is named where none is known: the host takes no such message for one of its own.
const MODEL: &str = "claude-opus-5-5";

/// Where it lies below the host's folder: a folder is named by its path, with other signs as dashes.
pub(super) fn place(resume: &Resume) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let folder: String = resume.folder.chars().map(plain).collect();
    format!("projects/{folder}/{}.jsonl", resume.id)
}

pub(super) fn lines(body: &Value, resume: &Resume) -> Vec<Value> {
    let model = body.get("model").and_then(Value::as_str).unwrap_or(MODEL);
    let messages = body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut lines = Vec::with_capacity(messages.len());
    let mut parent = Value::Null;
    for (number, message) in messages.iter().enumerate() {
        let uuid = derived(&[&resume.id, &number.to_string()]);
        let content = message.get("content").cloned().unwrap_or_default();
        let is_model = message.get("role").and_then(Value::as_str) == Some("assistant");
        let said = if is_model {
            reply(&content, model, &uuid)
        } else {
            json!({"role": "user", "content": content})
        };
        lines.push(json!({
            "parentUuid": parent,
            "isSidechain": false,
            "userType": "external",
            "cwd": resume.folder,
            "sessionId": resume.id,
            "version": VERSION,
            "type": if is_model { "assistant" } else { "user" },
            "message": said,
            "uuid": uuid,
            "timestamp": resume.time,
        }));
        parent = Value::String(uuid);
    }
    lines
}

/// What the model said. What it cost was paid when it was said first: no usage is told again.
fn reply(content: &Value, model: &str, uuid: &str) -> Value {
    let calls = |block: &Value| block.get("type").and_then(Value::as_str) == Some("tool_use");
    let has_calls = content.as_array().is_some_and(|blocks| blocks.iter().any(calls));
    json!({
        "id": format!("msg_{}", uuid.replace('-', "")),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": if has_calls { "tool_use" } else { "end_turn" },
        "stop_sequence": null,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    })
}
