//! The hooks of acpdb in a host's settings: put in, found, taken out. Pure: texts in, texts out.
//!
//! ```text
//! { "hooks": { "Stop": [ {their group}, {our group} ] }, .. }
//! ```
//!
//! Everything else in the file stays, in its order. What was made only to hold our groups goes with them.

use serde_json::{Map, Value, json};

use crate::host::Host;

/// Seconds that a host waits for a hook; acpdb ends itself before.
const TIMEOUT_SECONDS: u64 = 15;

/// Why settings cannot be changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// They are no JSON.
    #[error("not valid JSON: {0}")]
    NotJson(String),
    /// They are JSON of another shape.
    #[error("`{0}` is not what the host wants there")]
    Shape(&'static str),
}

/// The command that a host runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The program and its options, quoted for a shell, without the name of the event.
    pub words: String,
    /// The host whose hook it is.
    pub host: Host,
}

impl Command {
    /// The command for an event. It ends well whatever becomes of the program: an error could stop the host.
    fn line(&self, event: &str) -> String {
        // Only Copilot CLI leaves the event's name out of what it says.
        let event = if self.host == Host::CopilotCli { format!(" --event {event}") } else { String::new() };
        format!("{}{event} 2>/dev/null || true", self.words)
    }
}

/// Whether a hook's command is one of ours for this host.
fn is_ours(host: Host, command: &str) -> bool {
    command.contains(&format!(" hook {} ", host.name())) && command.ends_with("|| true")
}

/// Events that acpdb is told of by each host.
fn events(host: Host) -> impl Iterator<Item = &'static str> {
    let names = match host {
        Host::ClaudeCode => {
            "SessionStart UserPromptSubmit PostToolUse PostToolBatch PreCompact Stop SubagentStop SessionEnd"
        }
        Host::Codex => "SessionStart UserPromptSubmit PostToolUse PreCompact Stop SubagentStop SessionEnd",
        Host::GeminiCli => "SessionStart BeforeAgent AfterAgent SessionEnd",
        Host::CopilotCli => "sessionStart userPromptSubmitted agentStop subagentStop sessionEnd",
        Host::Cursor => {
            "sessionStart beforeSubmitPrompt postToolUse postToolUseFailure afterAgentResponse stop sessionEnd"
        }
        // They take a plug-in, in a file of its own.
        Host::Opencode | Host::Pi => "",
        Host::VsCode => "SessionStart UserPromptSubmit PostToolUse PreCompact Stop SubagentStop",
    };
    names.split_whitespace()
}

/// The group that stands in the list of an event.
fn group(host: Host, event: &str, command: &str) -> Value {
    let is_tool = matches!(event, "PostToolUse" | "PostToolBatch");
    match host {
        Host::ClaudeCode | Host::Codex => {
            let hook = json!({"type": "command", "command": command, "timeout": TIMEOUT_SECONDS});
            if is_tool && event == "PostToolUse" {
                json!({"matcher": "*", "hooks": [hook]})
            } else {
                json!({"hooks": [hook]})
            }
        }
        Host::GeminiCli => {
            let milliseconds = TIMEOUT_SECONDS * 1000;
            let hook =
                json!({"name": "acpdb", "type": "command", "command": command, "timeout": milliseconds});
            json!({"matcher": "*", "hooks": [hook]})
        }
        Host::CopilotCli => json!({"type": "command", "bash": command, "timeoutSec": TIMEOUT_SECONDS}),
        Host::Cursor => json!({"command": command, "timeout": TIMEOUT_SECONDS}),
        Host::VsCode | Host::Opencode | Host::Pi => {
            json!({"type": "command", "command": command, "timeout": TIMEOUT_SECONDS})
        }
    }
}

/// Commands of a group, whatever its form.
fn commands(group: &Value) -> Vec<&str> {
    let own = ["command", "bash"].into_iter().filter_map(|name| group.get(name).and_then(Value::as_str));
    let hooks = group.get("hooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let inner = hooks.iter().filter_map(|hook| hook.get("command").and_then(Value::as_str));
    own.chain(inner).collect()
}

/// Settings with the hooks of `command` in them, and no older ones of ours. `text` is empty if there is no file.
///
/// # Errors
/// If the text is no JSON object, or its hooks are of another shape.
pub fn attached(text: &str, command: &Command) -> Result<String, SettingsError> {
    let host = command.host;
    let mut settings = parse(text)?;
    if matches!(host, Host::Cursor | Host::CopilotCli) && !settings.contains_key("version") {
        settings.insert("version".to_owned(), 1.into());
    }
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    let hooks = hooks.as_object_mut().ok_or(SettingsError::Shape("hooks"))?;
    let emptied = take_out(hooks, host);
    for event in events(host) {
        let list = hooks.entry(event).or_insert_with(|| json!([]));
        let list = list.as_array_mut().ok_or(SettingsError::Shape("hooks"))?;
        list.push(group(host, event, &command.line(event)));
    }
    for event in emptied.iter().filter(|event| events(host).all(|known| known != *event)) {
        hooks.shift_remove(event);
    }
    Ok(print(&settings, text))
}

/// Takes our hooks out of the lists of events; the events of which nothing is left.
fn take_out(hooks: &mut Map<String, Value>, host: Host) -> Vec<String> {
    let mut emptied = Vec::new();
    for (event, list) in hooks.iter_mut() {
        let Some(list) = list.as_array_mut() else { continue };
        let before = list.len();
        for group in list.iter_mut() {
            // A group may hold hooks of others, too.
            if let Some(inner) = group.get_mut("hooks").and_then(Value::as_array_mut) {
                let theirs = |hook: &Value| {
                    !hook.get("command").and_then(Value::as_str).is_some_and(|text| is_ours(host, text))
                };
                if inner.iter().any(theirs) {
                    inner.retain(theirs);
                }
            }
        }
        list.retain(|group| !commands(group).iter().any(|command| is_ours(host, command)));
        if list.is_empty() && before > 0 {
            emptied.push(event.clone());
        }
    }
    emptied
}

/// Settings without any hooks of ours. Empty if nothing else was in them.
///
/// # Errors
/// As [`attached`].
pub fn detached(text: &str, host: Host) -> Result<String, SettingsError> {
    let mut settings = parse(text)?;
    if found(text, host)?.is_empty() {
        return Ok(text.to_owned());
    }
    if let Some(hooks) = settings.get_mut("hooks").and_then(Value::as_object_mut) {
        for event in take_out(hooks, host) {
            hooks.shift_remove(&event);
        }
        if hooks.is_empty() {
            settings.shift_remove("hooks");
        }
    }
    let is_bare = settings.is_empty() || (settings.len() == 1 && settings.contains_key("version"));
    Ok(if is_bare { String::new() } else { print(&settings, text) })
}

/// Our commands in settings, each once, in the order in which they stand.
///
/// # Errors
/// If the text is no JSON object.
pub fn found(text: &str, host: Host) -> Result<Vec<String>, SettingsError> {
    let settings = parse(text)?;
    let mut all: Vec<String> = Vec::new();
    let lists = settings.get("hooks").and_then(Value::as_object).into_iter().flatten();
    for group in lists.filter_map(|(_, list)| list.as_array()).flatten() {
        for command in commands(group).into_iter().filter(|command| is_ours(host, command)) {
            if !all.iter().any(|known| known == command) {
                all.push(command.to_owned());
            }
        }
    }
    Ok(all)
}

fn parse(text: &str) -> Result<Map<String, Value>, SettingsError> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(settings)) => Ok(settings),
        Ok(_) => Err(SettingsError::Shape("{")),
        Err(error) => Err(SettingsError::NotJson(error.to_string())),
    }
}

/// JSON as people write it, indented as `like` is.
fn print(settings: &Map<String, Value>, like: &str) -> String {
    let indented = like.lines().find_map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        (rest.len() < line.len() && rest.starts_with('"')).then(|| line.get(..line.len() - rest.len()))?
    });
    let indent = indented.unwrap_or("  ").as_bytes();
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(indent);
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    // Writing values into memory cannot fail.
    let _ = serde::Serialize::serialize(settings, &mut serializer);
    let mut text = String::from_utf8(out).unwrap_or_default();
    if like.is_empty() || like.ends_with('\n') {
        text.push('\n');
    }
    text
}
