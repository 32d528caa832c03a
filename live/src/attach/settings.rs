//! The hooks of acpdb in a host's settings: put in, found, taken out. Pure: texts in, texts out.
//!
//! ```text
//! { "hooks": { "Stop": [ {their group}, {our group} ] }, .. }
//! ```
//!
//! Everything else in the file stays byte for byte: no value of others is read into a number or a text and written again.
//! Members that were made only to hold our groups go with them. Gemini CLI takes comments, so its settings are read with blanks
//! in their places, and written with them.

mod text;

use std::borrow::Cow;
use std::path::Path;

use acpdb_hosts::import::json::{elements, members, pick, string};
use serde_json::{Value, json};
use text::SettingsText;

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
    /// They begin with a mark that is no part of JSON.
    #[error("a byte order mark stands before the JSON; save the file without it")]
    Mark,
    /// Comments stand between the hooks, or in one of acpdb's, where they would be lost.
    #[error("comments stand between its hooks; move them out of `hooks`, or into a hook that is not acpdb's")]
    Comments,
    /// They are JSON, and no object.
    #[error("it holds JSON, and not an object: the host wants `{{..}}`")]
    NoObject,
    /// They are JSON of another shape.
    #[error("`{0}` is not what the host wants there")]
    Shape(&'static str),
}

/// The command that a host runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostCommandLine {
    /// The program and its options, quoted for a shell, without the name of the event.
    pub words: String,
    /// The host whose hook it is.
    pub host: Host,
}

impl HostCommandLine {
    /// The command for an event. It ends well even if the program fails: an error could stop the host.
    fn line(&self, event: &str) -> String {
        // Only Copilot CLI leaves the event's name out of its JSON.
        let event = if self.host == Host::CopilotCli { format!(" --event {event}") } else { String::new() };
        format!("{}{event} 2>/dev/null || true", self.words)
    }
}

/// Whether a hook's command is one of ours for this host: exactly as `attach` writes it, with a program of any name, or as a person changed
/// it. The program's name, `hook` and the host make it ours then.
fn is_ours(host: Host, command: &str) -> bool {
    // A line that a shell does not understand runs nothing.
    let words = shlex::split(command).unwrap_or_default();
    let words_as_text: Vec<&str> = words.iter().map(String::as_str).collect();
    let [_, options @ ..] = words_as_text.as_slice() else { return false };
    let rest = if let ["--db", _, rest @ ..] = options { rest } else { options };
    let rest = rest.strip_suffix(&["2>/dev/null", "||", "true"]);
    if let Some(["hook", name, "--mode", mode, end @ ..]) = rest
        && *name == host.name()
        && crate::AttachMode::from_name(mode).is_some()
        && matches!(end, [] | ["--event", _])
    {
        return true;
    }
    let is_program = |word: &String| Path::new(word).file_stem().is_some_and(|name| name == "acpdb");
    let rest: Vec<&String> = words.iter().skip_while(|word| !is_program(word)).collect();
    let is_of_host = |name: &str| Host::from_name(name) == Some(host);
    rest.windows(2).any(|pair| matches!(pair, [verb, name] if *verb == "hook" && is_of_host(name)))
}

/// Events that each host tells acpdb.
fn events(host: Host) -> impl Iterator<Item = &'static str> {
    let names = match host {
        // Not `PreCompact`: Claude Code shows the model the command of a hook that ran before a compaction.
        Host::ClaudeCode => {
            "SessionStart UserPromptSubmit PostToolUse PostToolBatch Stop SubagentStop SessionEnd"
        }
        Host::Codex => "SessionStart UserPromptSubmit PostToolUse PreCompact Stop SubagentStop SessionEnd",
        Host::GeminiCli => "SessionStart BeforeAgent AfterAgent SessionEnd",
        Host::CopilotCli => "sessionStart userPromptSubmitted postToolUse agentStop subagentStop sessionEnd",
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
    // Codex takes no longer time for this one, and tells its user of an error.
    let is_short = host == Host::Codex && event == "SessionEnd";
    let seconds = if is_short { 3 } else { TIMEOUT_SECONDS };
    let is_tool = matches!(event, "PostToolUse" | "PostToolBatch");
    match host {
        Host::ClaudeCode | Host::Codex => {
            let hook = json!({"type": "command", "command": command, "timeout": seconds});
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

/// Commands of a group of any form.
fn commands(group: &str) -> Vec<Cow<'_, str>> {
    let [command, bash, hooks] = pick(group, ["command", "bash", "hooks"]).unwrap_or_default();
    let inner = hooks.and_then(elements).unwrap_or_default().into_iter().filter_map(command_of);
    string(command).into_iter().chain(string(bash)).chain(inner).collect()
}

fn command_of(hook: &str) -> Option<Cow<'_, str>> {
    let [command] = pick(hook, ["command"])?;
    string(command)
}

/// JSON that is written: as it stood, or made here.
enum JsonNode<'a> {
    Kept(&'a str),
    Made(Value),
    List(Vec<JsonNode<'a>>),
    Object(Vec<(String, JsonNode<'a>)>),
}

/// Lists of groups by events, as the member `hooks` has them.
fn lists(hooks: &str) -> Option<Vec<(String, JsonNode<'_>)>> {
    let list = |value| match elements(value) {
        Some(groups) => JsonNode::List(groups.into_iter().map(JsonNode::Kept).collect()),
        None => JsonNode::Kept(value),
    };
    Some(members(hooks)?.into_iter().map(|(event, value)| (event, list(value))).collect())
}

/// Settings with the hooks of `command` in them, without older hooks of ours. `text` is empty if there is no file.
///
/// # Errors
/// If the text is no JSON object, or its hooks are of another shape.
pub fn attached(text: &str, command: &HostCommandLine) -> Result<String, SettingsError> {
    let host = command.host;
    let mut text = if text.trim().is_empty() { "{}\n" } else { text }.to_owned();
    if matches!(host, Host::Cursor | Host::CopilotCli)
        && SettingsText::of(&text, host)?.value("version")?.is_none()
    {
        text = SettingsText::of(&text, host)?.put("version", &JsonNode::Made(1.into()))?;
    }
    let settings = SettingsText::of(&text, host)?;
    let value = settings.value("hooks")?.unwrap_or("{}");
    let mut hooks = lists(value).ok_or(SettingsError::Shape("hooks"))?;
    let emptied = take_out(&mut hooks, host);
    if settings.loses(value, &hooks) {
        return Err(SettingsError::Comments);
    }
    for event in events(host) {
        let group = JsonNode::Made(group(host, event, &command.line(event)));
        match hooks.iter_mut().rev().find(|(name, _)| name == event) {
            Some((_, JsonNode::List(list))) => list.push(group),
            Some(_) => return Err(SettingsError::Shape("hooks")),
            None => hooks.push((event.to_owned(), JsonNode::List(vec![group]))),
        }
    }
    hooks.retain(|(event, _)| !emptied.contains(event) || events(host).any(|known| known == event));
    settings.put("hooks", &JsonNode::Object(hooks))
}

/// Takes our hooks out of the lists of events. Returns the events whose lists are empty now.
fn take_out(hooks: &mut [(String, JsonNode<'_>)], host: Host) -> Vec<String> {
    let mut emptied = Vec::new();
    for (event, list) in hooks {
        let JsonNode::List(list) = list else { continue };
        let before = list.len();
        let groups = std::mem::take(list).into_iter();
        list.extend(groups.filter_map(|group| match group {
            JsonNode::Kept(group) => without_ours(group, host),
            made => Some(made),
        }));
        if list.is_empty() && before > 0 {
            emptied.push(event.clone());
        }
    }
    emptied
}

/// A group without our hooks; `None` if nothing else is in it. A group may hold hooks of others, too.
fn without_ours(group: &str, host: Host) -> Option<JsonNode<'_>> {
    let has_ours = |part: &str| commands(part).iter().any(|command| is_ours(host, command));
    if !has_ours(group) {
        return Some(JsonNode::Kept(group));
    }
    let is_theirs = |hook: &&str| !command_of(hook).is_some_and(|command| is_ours(host, &command));
    let mut theirs = 0_usize;
    let parts = members(group).unwrap_or_default().into_iter().map(|(name, value)| {
        let hooks = elements(value).filter(|_| name == "hooks");
        let node = hooks.map_or(JsonNode::Kept(value), |hooks| {
            let left: Vec<JsonNode<'_>> = hooks.into_iter().filter(is_theirs).map(JsonNode::Kept).collect();
            theirs = left.len();
            JsonNode::List(left)
        });
        (name, node)
    });
    let parts = parts.collect();
    let [command, bash] = pick(group, ["command", "bash"]).unwrap_or_default();
    let is_our_own = [command, bash].into_iter().filter_map(string).any(|command| is_ours(host, &command));
    (theirs > 0 && !is_our_own).then_some(JsonNode::Object(parts))
}

/// Settings without any hooks of ours. Empty if nothing else was in them.
///
/// # Errors
/// As [`attached`].
pub fn detached(text: &str, host: Host) -> Result<String, SettingsError> {
    if found(text, host)?.is_empty() {
        return Ok(text.to_owned());
    }
    let settings = SettingsText::of(text, host)?;
    let Some(value) = settings.value("hooks")? else { return Ok(text.to_owned()) };
    let mut hooks = lists(value).ok_or(SettingsError::Shape("hooks"))?;
    let emptied = take_out(&mut hooks, host);
    if settings.loses(value, &hooks) {
        return Err(SettingsError::Comments);
    }
    hooks.retain(|(event, _)| !emptied.contains(event));
    let is_bare = settings.members()?.iter().all(|(name, _)| name == "hooks" || name == "version");
    match hooks.is_empty() {
        true if is_bare && !settings.has_comments() => Ok(String::new()),
        true => settings.without("hooks"),
        false => settings.put("hooks", &JsonNode::Object(hooks)),
    }
}

/// Our commands in settings, each once, in the order in which they stand.
///
/// # Errors
/// If the text is no JSON object.
pub fn found(text: &str, host: Host) -> Result<Vec<String>, SettingsError> {
    let mut all: Vec<String> = Vec::new();
    if text.trim().is_empty() {
        return Ok(all);
    }
    let settings = SettingsText::of(text, host)?;
    let hooks = settings.value("hooks")?.and_then(members);
    for group in hooks.iter().flatten().filter_map(|(_, list)| elements(list)).flatten() {
        for command in commands(group).into_iter().filter(|command| is_ours(host, command)) {
            if !all.iter().any(|known| *known == command) {
                all.push(command.into_owned());
            }
        }
    }
    Ok(all)
}

/// The member that names Claude Code's status line.
const STATUS_LINE: &str = "statusLine";

/// Settings with a status line that runs `command`; `None`: there is one of the user's, and it stays.
///
/// # Errors
/// As [`attached`].
pub fn with_status_line(text: &str, command: &str) -> Result<Option<String>, SettingsError> {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let settings = SettingsText::of(text, Host::ClaudeCode)?;
    if settings.value(STATUS_LINE)?.is_some_and(|value| !is_our_line(value)) {
        return Ok(None);
    }
    let value = json!({"type": "command", "command": command});
    settings.put(STATUS_LINE, &JsonNode::Made(value)).map(Some)
}

/// Settings without a status line of ours.
///
/// # Errors
/// As [`attached`].
pub fn without_status_line(text: &str) -> Result<String, SettingsError> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let settings = SettingsText::of(text, Host::ClaudeCode)?;
    let is_there = settings.value(STATUS_LINE)?.is_some_and(is_our_line);
    if is_there { settings.without(STATUS_LINE) } else { Ok(text.to_owned()) }
}

/// Whether a status line runs a program called acpdb, with or without a store.
fn is_our_line(value: &str) -> bool {
    // A line that a shell does not understand runs nothing.
    let words = command_of(value).and_then(|command| shlex::split(&command)).unwrap_or_default();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_program = |word: &str| Path::new(word).file_stem().is_some_and(|name| name == "acpdb");
    match words.as_slice() {
        [program, "--db", _, "statusline", ..] | [program, "statusline", ..] => is_program(program),
        _ => false,
    }
}
