//! Claude Code's modules in its own process: rows before they are kept, and conversations that are made shorter.
//!
//! ```text
//! {"hook_event_name":"session.start", ..}                     -> {"module":1}
//! {"hook_event_name":"session.append","row":{..}, ..}         -> {} or {"text":".."}, in place of the row's result
//! {"hook_event_name":"session.compact","compact":{..}, ..}    -> {} or {"messages":[..]}
//! ```
//!
//! The host gives `row` and `compact` to its module. A row of a result shows the text that the model would see, for any tool,
//! so no shape has to be kept. The host writes the rows of a fold, and reads them when the session is resumed. Then it finds
//! siblings by the message's id, and the first result of a call wins. So three things hold for the rows that are given back:
//!
//! - only rows of a person bear the host's handle, since a handle brings along the texts that the host put behind the row;
//! - neighbours of one side are one message: else all results of parallel calls but the last would be lost;
//! - calls keep their ids, and stand before their results.

use acpdb_engine::event::Outcome;
use acpdb_engine::text::tokens::estimate;
use serde_json::{Map, Value, json};

use super::string;
use crate::told::{CallChange, CallWithResult, Folded, HostEvent, HostReply, PruneRequest};

/// Version of this protocol: a module of another version leaves all to the hooks.
const MODULE: u32 = 1;

/// The result in a row, if the row holds nothing else.
pub(super) fn result(value: &Value) -> Option<CallWithResult> {
    let row = value.get("row")?;
    let blocks = row.pointer("/message/content")?.as_array()?;
    let [block] = blocks.as_slice() else { return None };
    if block.get("type").and_then(Value::as_str) != Some("tool_result") {
        return None;
    }
    let text = block.get("content").and_then(text_of);
    let is_error = block.get("is_error").and_then(Value::as_bool) == Some(true);
    Some(CallWithResult {
        id: string(block, &["tool_use_id"]),
        tool: row.pointer("/origin/tool").and_then(Value::as_str).unwrap_or_default().to_owned(),
        params: "{}".to_owned(),
        outcome: if is_error { Outcome::Failed } else { Outcome::Completed },
        shown: text.clone(),
        text,
        raw: Value::Null,
    })
}

/// The text of a result, if the result holds nothing else.
fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let [block] = blocks.as_slice() else { return None };
            let is_text = block.get("type").and_then(Value::as_str) == Some("text");
            string(block, &["text"]).filter(|_| is_text)
        }
        _ => None,
    }
}

/// The conversation that is to be made shorter.
pub(super) fn asked(value: &Value) -> PruneRequest {
    let compact = value.get("compact");
    let raw = compact.and_then(|compact| compact.get("messages")).cloned().unwrap_or_default();
    let words = compact.and_then(|compact| string(compact, &["instructions"])).unwrap_or_default();
    let rows = raw.as_array().map_or(&[][..], Vec::as_slice);
    let tokens = rows.iter().map(tokens_of).sum();
    PruneRequest { tokens, has_words: !words.trim().is_empty(), raw }
}

/// Estimated tokens of a row: its text, parameters of calls, results.
fn tokens_of(row: &Value) -> u64 {
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => u64::from(estimate(text.as_bytes())),
        Some(Value::Null) | None => 0,
        Some(value) => u64::from(estimate(value.to_string().as_bytes())),
    };
    let inputs: u64 = list(row, "toolUses").iter().map(|call| text(call.get("input"))).sum();
    let results: u64 = list(row, "toolResults").iter().map(|result| text(result.get("text"))).sum();
    text(row.get("text")).saturating_add(inputs).saturating_add(results)
}

/// The answer to the module; `None` if no module asked.
pub(super) fn render(told: &HostEvent, answer: &HostReply) -> Option<Value> {
    match &*told.name {
        "session.start" => Some(json!({"module": MODULE})),
        "session.append" => Some(match &answer.replacement {
            Some(text) => json!({"text": text}),
            None => json!({}),
        }),
        "session.compact" => {
            let crate::told::HostEventKind::FoldAsked(asked) = &told.event else { return Some(json!({})) };
            let messages = answer.folded.as_ref().and_then(|folded| messages(&asked.raw, folded));
            Some(messages.map_or_else(|| json!({}), |messages| json!({"messages": messages})))
        }
        _ => None,
    }
}

/// The conversation as it is shown now; `None` if its shape is not understood.
fn messages(raw: &Value, folded: &Folded) -> Option<Vec<Value>> {
    let mut made: Vec<Map<String, Value>> = Vec::new();
    for row in raw.as_array()? {
        let row = row.as_object()?;
        let role = row.get("role")?.as_str()?;
        let results = row.get("toolResults").and_then(Value::as_array).filter(|results| !results.is_empty());
        if role == "user" && results.is_none() {
            made.push(row.clone());
            continue;
        }
        let shown = built(role, row, folded)?;
        match made.last_mut().filter(|last| joins(last, &shown)) {
            Some(last) => join(last, shown),
            None => made.push(shown),
        }
    }
    Some(made.into_iter().map(Value::Object).collect())
}

/// A row of the model, or of results, without its handle.
fn built(role: &str, row: &Map<String, Value>, folded: &Folded) -> Option<Map<String, Value>> {
    let text = row.get("text").and_then(Value::as_str).unwrap_or_default();
    let text = folded.texts.get(text).filter(|_| role == "assistant").map_or(text, String::as_str);
    let mut calls = Vec::new();
    for call in row.get("toolUses").and_then(Value::as_array).into_iter().flatten() {
        let id = call.get("tool_use_id")?.as_str()?;
        let input = folded.calls.get(id).and_then(|change| change.input.as_deref()).and_then(object);
        let input = input.or_else(|| call.get("input").cloned()).unwrap_or_else(|| json!({}));
        calls.push(json!({"tool_use_id": id, "tool": call.get("tool")?, "input": input}));
    }
    let mut results = Vec::new();
    for result in row.get("toolResults").and_then(Value::as_array).into_iter().flatten() {
        let id = result.get("tool_use_id")?.as_str()?;
        let CallChange { output, .. } = folded.calls.get(id).cloned().unwrap_or_default();
        let text = output.or_else(|| string(result, &["text"])).unwrap_or_default();
        let is_error = result.get("isError").and_then(Value::as_bool) == Some(true);
        results.push(json!({"tool_use_id": id, "text": text, "isError": is_error}));
    }
    let mut made = Map::new();
    made.insert("role".to_owned(), role.into());
    made.insert("text".to_owned(), text.into());
    made.insert("toolUses".to_owned(), calls.into());
    if !results.is_empty() {
        made.insert("toolResults".to_owned(), results.into());
    }
    Some(made)
}

/// Parameters are an object, and nothing else.
fn object(text: &str) -> Option<Value> {
    // A text that is no object is left to the host.
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// Whether a row is of one message with the row before it: both of the model, or both of results.
fn joins(last: &Map<String, Value>, row: &Map<String, Value>) -> bool {
    let is_of_results = |row: &Map<String, Value>| row.contains_key("toolResults");
    !last.contains_key("handle")
        && last.get("role") == row.get("role")
        && is_of_results(last) == is_of_results(row)
}

fn join(last: &mut Map<String, Value>, row: Map<String, Value>) {
    for (name, value) in row {
        match (name.as_str(), last.get_mut(&name), value) {
            ("text", Some(Value::String(text)), Value::String(more)) if !more.is_empty() => {
                if !text.is_empty() {
                    text.push_str("\n\n");
                }
                text.push_str(&more);
            }
            ("toolUses" | "toolResults", Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            _ => {}
        }
    }
}

fn list<'a>(row: &'a Value, name: &str) -> &'a [Value] {
    row.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
