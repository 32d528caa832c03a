//! Lines of Codex, made of the body of a request: the session, then each item, and each prompt once more as the host shows it.

use serde_json::{Value, json};

use super::ResumeOptions;

/// The version of the host that writes such lines: the newest that was looked at.
const VERSION: &str = "0.171.0";

/// The path below the host's folder: by the session's day and time.
pub(super) fn place(resume: &ResumeOptions) -> String {
    let day = resume.time.get(..10).unwrap_or_default();
    let time = resume.time.get(..19).unwrap_or_default().replace(':', "-");
    format!("sessions/{}/rollout-{time}-{}.jsonl", day.replace('-', "/"), resume.id)
}

pub(super) fn lines(body: &[u8], resume: &ResumeOptions) -> Vec<Vec<u8>> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let line =
        |kind: &str, payload: Value| json!({"timestamp": resume.time, "type": kind, "payload": payload});
    let mut meta = json!({
        "id": resume.id,
        "session_id": resume.id,
        "timestamp": resume.time,
        "cwd": resume.folder,
        "originator": "codex_cli_rs",
        "cli_version": VERSION,
        "source": "cli",
    });
    if let (Some(meta), Some(text)) = (meta.as_object_mut(), body.get("instructions")) {
        meta.insert("base_instructions".to_owned(), json!({"text": text}));
    }
    let mut lines = vec![line("session_meta", meta)];
    let items = body.get("input").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for item in items {
        lines.push(line("response_item", whole(item)));
        if let Some(prompt) = prompt(item) {
            lines.push(line("event_msg", json!({"type": "user_message", "message": prompt, "images": []})));
        }
    }
    lines.into_iter().map(|line| line.to_string().into_bytes()).collect()
}

/// An item as the host keeps it: messages name their type, which a request may leave out.
fn whole(item: &Value) -> Value {
    let mut item = item.clone();
    let role = item.get("role").and_then(Value::as_str).map(str::to_owned);
    if let (Some(role), Some(fields)) = (role, item.as_object_mut()) {
        fields.entry("type").or_insert_with(|| json!("message"));
        if let Some(Value::String(text)) = fields.get("content") {
            let kind = if role == "assistant" { "output_text" } else { "input_text" };
            let parts = json!([{"type": kind, "text": text}]);
            fields.insert("content".to_owned(), parts);
        }
    }
    item
}

/// The text that a person wrote, if the item is a prompt.
fn prompt(item: &Value) -> Option<String> {
    if item.get("role").and_then(Value::as_str) != Some("user") {
        return None;
    }
    let text = match item.get("content")? {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    // A text that a host puts before the prompts stands in tags.
    (!text.is_empty() && !text.starts_with('<')).then_some(text)
}
