//! Lines of Claude Code, made of the body of a request: a record for each message, each hanging on the one before.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{ResumeOptions, derived};

/// The version of the host that writes such lines: the newest that was looked at.
const VERSION: &str = "2.1.332";
/// The model that is named where none is known: the host takes no such message for one of its own.
const MODEL: &str = "claude-opus-5-5";

/// The path below the host's folder: the session's folder is named by its path, with other signs as dashes.
pub(super) fn place(resume: &ResumeOptions) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let folder: String = resume.folder.chars().map(plain).collect();
    format!("projects/{folder}/{}.jsonl", resume.id)
}

/// The body of a request. Contents stay as they are written, since each byte of the model's own JSON counts.
#[derive(Default, Deserialize)]
struct RequestBody {
    model: Option<String>,
    #[serde(default)]
    messages: Vec<ResumedText>,
}

#[derive(Deserialize)]
struct ResumedText {
    role: String,
    content: Box<RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResumedLine<'l> {
    parent_uuid: Option<&'l str>,
    is_sidechain: bool,
    user_type: &'static str,
    cwd: &'l str,
    session_id: &'l str,
    version: &'static str,
    #[serde(rename = "type")]
    kind: &'l str,
    message: ResumedMessage<'l>,
    uuid: &'l str,
    timestamp: &'l str,
}

#[derive(Serialize)]
struct ResumedMessage<'l> {
    role: &'l str,
    content: &'l RawValue,
    #[serde(flatten)]
    reply: Option<ResumedReply<'l>>,
}

/// The host's members of a model's message. It was paid for when it was first said: no usage is told again.
#[derive(Serialize)]
struct ResumedReply<'l> {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    model: &'l str,
    stop_reason: &'static str,
    stop_sequence: Option<&'static str>,
    usage: NoUsage,
}

#[derive(Default, Serialize)]
struct NoUsage {
    input_tokens: u64,
    output_tokens: u64,
}

pub(super) fn lines(body: &[u8], resume: &ResumeOptions) -> Vec<Vec<u8>> {
    let body: RequestBody = serde_json::from_slice(body).unwrap_or_default();
    let model = body.model.as_deref().unwrap_or(MODEL);
    let uuids: Vec<String> =
        (0..body.messages.len()).map(|number| derived(&[&resume.id, &number.to_string()])).collect();
    let mut parent: Option<&str> = None;
    let mut lines = Vec::with_capacity(uuids.len());
    for (message, uuid) in body.messages.iter().zip(&uuids) {
        let is_model = message.role == "assistant";
        let line = ResumedLine {
            parent_uuid: parent,
            is_sidechain: false,
            user_type: "external",
            cwd: &resume.folder,
            session_id: &resume.id,
            version: VERSION,
            kind: if is_model { "assistant" } else { "user" },
            message: ResumedMessage {
                role: &message.role,
                content: &message.content,
                reply: is_model.then(|| reply(&message.content, model, uuid)),
            },
            uuid,
            timestamp: &resume.time,
        };
        // Texts and numbers can always be written.
        lines.push(serde_json::to_vec(&line).unwrap_or_default());
        parent = Some(uuid);
    }
    lines
}

fn reply<'l>(content: &RawValue, model: &'l str, uuid: &str) -> ResumedReply<'l> {
    let blocks: Vec<Value> = serde_json::from_str(content.get()).unwrap_or_default();
    let has_calls = blocks.iter().any(|block| block.get("type").and_then(Value::as_str) == Some("tool_use"));
    ResumedReply {
        id: format!("msg_{}", uuid.replace('-', "")),
        kind: "message",
        model,
        stop_reason: if has_calls { "tool_use" } else { "end_turn" },
        stop_sequence: None,
        usage: NoUsage::default(),
    }
}
