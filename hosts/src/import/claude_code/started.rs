//! The call that started a subagent whose records lie in a file of their own.
//!
//! ```text
//! agent-<id>.meta.json     toolUseId                                      newer versions: the call by its id
//! <session>.jsonl          toolUseResult.agentId of a result              the call of that result
//!                          progress with data.agentId                     parentToolUseID
//!                          a result that names the workflow's folder      the call of that result
//!                          one call alone with the subagent's prompt      that call
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use memchr::memmem;

use super::super::Beside;
use super::super::ImportError;
use super::super::json::{elements, is_in, member, owned, pick, string};
use super::Importer;
use super::record::Record;

/// The name under which a reader of files beside a subagent's file is asked for what its host noted about the subagent.
pub const META: &str = "agent:meta";
/// The same for the file of the session that started it.
pub const SESSION: &str = "agent:session";
/// The same for the name of the folder of its workflow.
pub const WORKFLOW: &str = "agent:workflow";

/// The call that started the subagent; `prompt`: the text that it was given.
pub(super) fn call(beside: &Beside, agent: &str, prompt: Option<&str>) -> Option<String> {
    // Bytes that are no text say nothing about the call.
    let read = |name: &str| String::from_utf8((beside.0)(name, 0)?).ok();
    let named =
        read(META).and_then(|meta| owned(member(Some(meta.trim_start_matches('\u{feff}')), "toolUseId")));
    if let Some(call) = named.filter(|call| !call.is_empty()) {
        return Some(call);
    }
    let session = (beside.0)(SESSION, 0)?;
    let workflow = workflow(beside);
    let by_workflow =
        workflow.and_then(|name| records(&session, &name).find_map(|record| result_of(record, &name)));
    by_workflow
        .or_else(|| records(&session, agent).find_map(|record| call_of(record, agent)))
        .or_else(|| prompt.and_then(|prompt| by_prompt(&session, prompt)))
}

/// The name of the workflow that the subagent is of.
pub(super) fn workflow(beside: &Beside) -> Option<String> {
    // A name that is no text is none.
    String::from_utf8((beside.0)(WORKFLOW, 0)?).ok().filter(|name| !name.is_empty())
}

/// The lines of a session that hold a text.
fn records<'s>(session: &'s [u8], text: &'s str) -> impl Iterator<Item = &'s str> {
    let lines = session.split(|byte| *byte == b'\n');
    let holds = move |line: &&[u8]| memmem::find(line, text.as_bytes()).is_some();
    // A line that is no text is noted where the session is imported.
    lines.filter(holds).filter_map(|line| std::str::from_utf8(line).ok())
}

/// The call of a record that says which subagent its result or its progress is of.
fn call_of(record: &str, agent: &str) -> Option<String> {
    let [result, data, parent] = pick(record, ["toolUseResult", "data", "parentToolUseID"])?;
    let is_it = |holder: Option<&str>| string(member(holder, "agentId")).as_deref() == Some(agent);
    if is_it(data) {
        return owned(parent);
    }
    if is_it(result) { answered(member(Some(record), "message")) } else { None }
}

/// The call of a result in whose details a name stands.
fn result_of(record: &str, name: &str) -> Option<String> {
    let [result] = pick(record, ["toolUseResult"])?;
    if names(result?, name) { answered(member(Some(record), "message")) } else { None }
}

/// Whether a name stands in a text, and not as a part of a longer one.
fn names(text: &str, name: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(|it| it.is_alphanumeric() || "-_".contains(it));
    text.match_indices(name).any(|(at, _)| {
        let (before, behind) = (text.get(..at), text.get(at + name.len()..));
        !is_part(before.and_then(|it| it.chars().next_back()))
            && !is_part(behind.and_then(|it| it.chars().next()))
    })
}

/// The call whose result names a subagent, and the subagent.
pub(super) fn by_result(record: &Record<'_>) -> Option<(String, String)> {
    // Results are long, and few name one.
    let result = record.result.filter(|result| is_in(result, "agentId"));
    let agent = owned(member(result, "agentId")).filter(|agent| !agent.is_empty())?;
    Some((answered(record.message)?, agent))
}

/// The call that a message brings the result of.
fn answered(message: Option<&str>) -> Option<String> {
    let content = member(message, "content").and_then(elements)?;
    content.into_iter().find_map(|block| owned(member(Some(block), "tool_use_id")))
}

/// The only call of a session that gave a subagent this prompt.
fn by_prompt(session: &[u8], prompt: &str) -> Option<String> {
    let mut found = Vec::new();
    for record in records(session, "\"tool_use\"") {
        let calls = calls_with_prompts(member(Some(record), "message"));
        found.extend(calls.into_iter().filter(|(own, _)| own == prompt).map(|(_, call)| call));
    }
    found.dedup();
    found.pop().filter(|_| found.is_empty())
}

/// The calls of a message that gave a prompt, behind their prompts.
fn calls_with_prompts(message: Option<&str>) -> Vec<(String, String)> {
    // Most messages have no such call.
    let message = message.filter(|message| is_in(message, "prompt"));
    let content = member(message, "content").and_then(elements).unwrap_or_default();
    let call = |block: &str| {
        let [id, input] = pick(block, ["id", "input"])?;
        Some((owned(member(input, "prompt"))?, owned(id)?))
    };
    content.into_iter().filter_map(call).collect()
}

/// Notes the calls of a message by their prompts; `None`: several gave the same.
pub(super) fn note_prompts(message: Option<&str>, prompts: &mut HashMap<String, Option<String>>) {
    for (prompt, call) in calls_with_prompts(message) {
        let known = prompts.entry(prompt).or_insert_with(|| Some(call.clone()));
        known.take_if(|known| *known != call);
    }
}

/// The prompt of a record of the user's side.
pub(super) fn prompt_of(text: &str) -> Option<String> {
    prompt_in(member(Some(text), "message"))
}

pub(super) fn prompt_in(message: Option<&str>) -> Option<String> {
    let [role, content] = pick(message?, ["role", "content"])?;
    let text = |content: &str| elements(content)?.into_iter().find_map(|it| owned(member(Some(it), "text")));
    let said = owned(content).or_else(|| content.and_then(text));
    said.filter(|_| string(role).as_deref() == Some("user"))
}

impl Importer<'_, '_> {
    /// Tells the call whose result names a subagent. The subagent's file may have been read before.
    pub(super) fn starts(&mut self, line: usize, record: &Record<'_>) -> Result<(), ImportError> {
        let Some((call, agent)) = by_result(record).filter(|_| !self.is_child(line)) else {
            return Ok(());
        };
        let Some(state) = self.lines.get(line) else { return Ok(()) };
        let info = Arc::clone(state.info());
        self.context.starts(&info, &call, &format!("{}/{agent}", info.name))
    }
}
