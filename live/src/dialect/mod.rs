//! The JSON that each host gives to a hook, and the JSON that it takes as an answer. Pure.
//!
//! ```text
//! JSON of the host --parse--> Told          Answer --render--> JSON of the host
//! ```
//!
//! | dialect | hosts | event's name in | result in |
//! |---|---|---|---|
//! | `claude` | Claude Code, VS Code | `hook_event_name`, `hookEventName` | `tool_response`, in the tool's own shape |
//! | `claude_module` | Claude Code's modules in its process | `hook_event_name` | the row's own blocks |
//! | `codex` | Codex | `hook_event_name` | `tool_response`, a text |
//! | `gemini` | Gemini CLI | `hook_event_name` | `tool_response.llmContent` |
//! | `copilot` | Copilot CLI | none: the command names it | `toolResult.textResultForLlm` |
//! | `cursor` | Cursor | `hook_event_name` | `tool_output`, `output`, `result_json` |
//!
//! A field that is missing or of another type costs its own content, never the event. Half a character costs itself.

mod claude;
mod claude_module;
mod codex;
mod copilot;
mod cursor;
mod gemini;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use acpdb_engine::event::Outcome;
use serde_json::{Value, json};

use crate::host::Host;
use crate::told::{CallWithResult, HostEvent, HostEventKind, HostReply};
use acpdb_hosts::surrogates::without_halves;

/// Why a text is no event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialectError {
    /// It is no JSON object.
    #[error("what the host said is no JSON object")]
    NoObject,
    /// It names no session.
    #[error("what the host said names no session")]
    NoSession,
    /// It names no event.
    #[error("what the host said names no event")]
    NoEvent,
}

/// Reads the JSON of `host`. `event` names the event if the JSON does not.
///
/// # Errors
/// If it is no JSON object, or names no session or event.
pub fn parse(host: Host, text: &str, event: Option<&str>) -> Result<HostEvent, DialectError> {
    let value: Value = serde_json::from_str(&without_halves(text)).map_err(|_| DialectError::NoObject)?;
    if !value.is_object() {
        return Err(DialectError::NoObject);
    }
    let session = string(&value, &["session_id", "sessionId", "conversation_id", "conversationId"]);
    let session = session.filter(|session| !session.is_empty()).ok_or(DialectError::NoSession)?;
    let name = string(&value, &["hook_event_name", "hookEventName", "hookName"]).or(event.map(str::to_owned));
    let name = name.ok_or(DialectError::NoEvent)?;
    let roots = value.get("workspace_roots").and_then(|roots| roots.get(0)).and_then(Value::as_str);
    let cwd = string(&value, &["cwd"]).or(roots.map(str::to_owned)).map(PathBuf::from);
    let transcript = string(&value, &["transcript_path", "transcriptPath"]).map(PathBuf::from);
    let event = match host {
        Host::ClaudeCode | Host::VsCode => claude::event(&name, &value),
        Host::Codex => codex::event(&name, &value),
        Host::GeminiCli => gemini::event(&name, &value),
        Host::CopilotCli => copilot::event(&name, &value),
        Host::Cursor => cursor::event(&name, &value),
        Host::Opencode | Host::Pi => HostEventKind::Other,
    };
    let agent = string(&value, &["agent_id"]).filter(|agent| is_name(agent));
    Ok(HostEvent { session, name, cwd, transcript, agent, event })
}

/// The answer of acpdb to `told`, as JSON for `host`. An empty answer is `{}` for all hosts.
pub fn render(host: Host, told: &HostEvent, answer: &HostReply) -> Value {
    if answer.is_empty() {
        return json!({});
    }
    match host {
        Host::ClaudeCode | Host::VsCode => claude::render(told, answer),
        Host::Codex => codex::render(told, answer),
        Host::GeminiCli => gemini::render(told, answer),
        Host::CopilotCli => copilot::render(answer),
        Host::Cursor => cursor::render(answer),
        Host::Opencode | Host::Pi => json!({}),
    }
}

/// Whether a text can be a part of a file's name.
fn is_name(text: &str) -> bool {
    let is_fine = |char: char| char.is_ascii_alphanumeric() || char == '-' || char == '_';
    !text.is_empty() && text.chars().all(is_fine)
}

/// The first of these fields that is a text.
fn string(value: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| value.get(name).and_then(Value::as_str)).map(str::to_owned)
}

/// A call that ended, by the names that hosts give its fields. The model saw its text.
fn ended(value: &Value, raw: Value, text: Option<String>, outcome: Outcome) -> CallWithResult {
    CallWithResult {
        id: string(value, &["tool_use_id", "toolCallId"]),
        tool: string(value, &["tool_name", "toolName"]).unwrap_or_default(),
        params: params(value.get("tool_input").or_else(|| value.get("toolArgs"))),
        outcome,
        shown: text.clone(),
        text,
        raw,
    }
}

/// Parameters of a call as JSON; a text that is JSON already stays as it is.
fn params(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) if serde_json::from_str::<Value>(&without_halves(text)).is_ok() => {
            text.clone()
        }
        Some(value) if !value.is_null() => value.to_string(),
        _ => "{}".to_owned(),
    }
}

/// A text for the model, as the hosts of Claude Code's manner take it.
fn additional_context(event: &str, text: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
}
