//! An answer, whole or in pieces: as the messages that the next request makes of it, and what it cost.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::entry::{Entry, Fact};
use acpdb_engine::event::{Report, Usage};
use serde_json::{Map, Value, json};

use super::{Api, Talk, chat, gemini, messages, responses};
use crate::import::json::elements;

/// What an answer says.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The messages, their calls, and what they cost.
    pub entries: Vec<Entry>,
    /// The names of the messages, in order; at least one.
    pub keys: Vec<String>,
}

/// What an answer to a request says. `None`: it is an error, no end of it came, there are several to choose from, or its calls have
/// no ids; then the next request tells what the program made of it.
///
/// Cost: one pass over both.
pub fn answer(api: Api, body: &str, talk: &Talk<'_>) -> Option<Answer> {
    let (pieces, is_whole) = pieces(body)?;
    let Made { message, report } = match api {
        Api::Chat => of_chat(&pieces)?,
        Api::Gemini => of_gemini(&pieces)?,
        Api::Messages => of_messages(&pieces)?,
        Api::Responses => of_responses(&pieces)?,
    };
    if !is_whole && report.stop_reason.is_none() {
        return None;
    }
    let text = message.to_string();
    let mut names = talk.names.clone();
    let mut unknown = BTreeSet::new();
    let messages = match api {
        Api::Chat => vec![chat::message(&text, &mut names)?],
        Api::Messages => vec![messages::message(&text, &mut names)?],
        Api::Gemini => vec![gemini::message(&text, &mut names, &mut unknown)?],
        Api::Responses => responses::messages(&elements(&text)?, &mut names, &mut unknown)?,
    };
    if messages.iter().any(|message| message.calls.iter().any(|call| call.id.starts_with(&message.key))) {
        return None;
    }
    let mut entries = Vec::new();
    for message in &messages {
        message.entries(&mut entries);
    }
    // What it cost is told of the message that the step begins with.
    let key = messages.first()?.key.clone();
    let origin = format!("msg:{key}:finish");
    entries.push(Entry::from(Fact::MessageFinished { key, report }).origin(origin));
    Some(Answer { entries, keys: messages.into_iter().map(|message| message.key).collect() })
}

struct Made {
    /// As the next request says it: a message, or a list of items.
    message: Value,
    report: Report,
}

/// The objects of an answer (one, a list of them, or the data of a stream's events), and whether its end is among them. `None`:
/// it breaks off in the middle of one.
fn pieces(body: &str) -> Option<(Vec<Value>, bool)> {
    let trimmed = body.trim_start();
    if trimmed.starts_with('{') {
        // What breaks off in the middle is no answer, as the function says; so below.
        return Some((vec![serde_json::from_str(trimmed).ok()?], true));
    }
    if trimmed.starts_with('[') {
        // As above.
        return Some((serde_json::from_str(trimmed).ok()?, true));
    }
    let (mut pieces, mut is_whole) = (Vec::new(), false);
    let mut data = String::new();
    let mut lines = body.lines();
    loop {
        let line = lines.next();
        match line {
            Some(line) if line.starts_with("data:") => {
                data.push_str(line.strip_prefix("data:").unwrap_or(line));
                data.push('\n');
            }
            Some(line) if !line.is_empty() => {}
            _ => {
                let event = std::mem::take(&mut data);
                let event = event.trim();
                if event == "[DONE]" {
                    is_whole = true;
                } else if !event.is_empty() {
                    // As above.
                    pieces.push(serde_json::from_str(event).ok()?);
                }
                if line.is_none() {
                    return Some((pieces, is_whole));
                }
            }
        }
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn count(value: &Value, place: &str) -> Option<u64> {
    value.pointer(place).and_then(Value::as_u64)
}

/// A text that comes in pieces.
fn add(texts: &mut BTreeMap<&'static str, String>, name: &'static str, piece: &Value) {
    if let Some(piece) = text(piece, name) {
        texts.entry(name).or_default().push_str(piece);
    }
}

fn of_chat(pieces: &[Value]) -> Option<Made> {
    let mut texts = BTreeMap::new();
    let mut calls: BTreeMap<u64, Value> = BTreeMap::new();
    let mut report = Report::default();
    let mut whole = None;
    for piece in pieces {
        let own = |name: &str| text(piece, name).map(str::to_owned);
        report.model = own("model").filter(|model| !model.is_empty()).or(report.model);
        report.request = own("id").or(report.request);
        report.service_tier = own("service_tier").or(report.service_tier);
        if let Some(usage) = piece.get("usage").filter(|usage| usage.is_object()) {
            report.usage = chat_usage(usage);
        }
        for choice in piece.get("choices").and_then(Value::as_array).into_iter().flatten() {
            if choice.get("index").and_then(Value::as_u64).is_some_and(|index| index > 0) {
                return None;
            }
            report.stop_reason = text(choice, "finish_reason").map(str::to_owned).or(report.stop_reason);
            if let Some(message) = choice.get("message") {
                whole = Some(message.clone());
            }
            let Some(delta) = choice.get("delta") else { continue };
            for name in ["content", "refusal", "reasoning_content", "reasoning"] {
                add(&mut texts, name, delta);
            }
            for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                // Some providers send whole calls, without a number.
                let place = call.get("index").and_then(Value::as_u64).unwrap_or(calls.len() as u64);
                let empty = || json!({"id": "", "function": {"name": "", "arguments": ""}});
                call_piece(calls.entry(place).or_insert_with(empty), call);
            }
        }
    }
    let message = whole.or_else(|| {
        let mut message = Map::new();
        if texts.is_empty() && calls.is_empty() {
            return None;
        }
        message.insert("role".to_owned(), "assistant".into());
        message.extend(texts.into_iter().map(|(name, text)| (name.to_owned(), text.into())));
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), calls.into_values().collect());
        }
        Some(message.into())
    });
    Some(Made { message: message?, report })
}

/// Adds a piece of a call to what came of it before.
fn call_piece(call: &mut Value, piece: &Value) {
    if let (Some(place), Some(id)) = (call.get_mut("id"), text(piece, "id").filter(|id| !id.is_empty())) {
        *place = id.into();
    }
    for name in ["name", "arguments"] {
        let more = piece.pointer(&format!("/function/{name}")).and_then(Value::as_str);
        let place = call.pointer_mut(&format!("/function/{name}"));
        if let (Some(Value::String(text)), Some(more)) = (place, more) {
            text.push_str(more);
        }
    }
}

fn chat_usage(usage: &Value) -> Usage {
    let cached = count(usage, "/prompt_tokens_details/cached_tokens");
    Usage {
        // The provider's count of the prompt includes what came from the cache.
        input: count(usage, "/prompt_tokens").map(|all| all.saturating_sub(cached.unwrap_or(0))),
        output: count(usage, "/completion_tokens"),
        cache_read: cached,
        reasoning: count(usage, "/completion_tokens_details/reasoning_tokens"),
        ..Usage::default()
    }
}

fn of_gemini(pieces: &[Value]) -> Option<Made> {
    let mut parts: Vec<Value> = Vec::new();
    let mut report = Report::default();
    for piece in pieces {
        let own = |name: &str| text(piece, name).map(str::to_owned);
        report.model = own("modelVersion").or(report.model);
        report.request = own("responseId").or(report.request);
        if let Some(usage) = piece.get("usageMetadata") {
            report.usage = gemini_usage(usage);
        }
        let candidates = piece.get("candidates").and_then(Value::as_array);
        for candidate in candidates.into_iter().flatten() {
            if candidate.get("index").and_then(Value::as_u64).is_some_and(|index| index > 0) {
                return None;
            }
            report.stop_reason = text(candidate, "finishReason").map(str::to_owned).or(report.stop_reason);
            let more = candidate.pointer("/content/parts").and_then(Value::as_array);
            more.into_iter().flatten().for_each(|part| add_part(&mut parts, part));
        }
    }
    if parts.is_empty() {
        return None;
    }
    Some(Made { message: json!({"role": "model", "parts": parts}), report })
}

/// Adds a part; a text that goes on with a text is added to it, since a stream cuts them into thousands.
fn add_part(parts: &mut Vec<Value>, part: &Value) {
    fn plain(part: &Value) -> Option<bool> {
        let members = part.as_object()?;
        let is_known = members.keys().all(|name| name == "text" || name == "thought");
        is_known.then(|| members.get("thought") == Some(&Value::Bool(true)))
    }
    let goes_on = parts.last().and_then(plain).is_some_and(|thought| plain(part) == Some(thought));
    match (parts.last_mut().and_then(|last| last.get_mut("text")), text(part, "text")) {
        (Some(Value::String(before)), Some(more)) if goes_on => before.push_str(more),
        _ => parts.push(part.clone()),
    }
}

fn gemini_usage(usage: &Value) -> Usage {
    let cached = count(usage, "/cachedContentTokenCount");
    let thoughts = count(usage, "/thoughtsTokenCount");
    Usage {
        // As above; thoughts are paid for as output, and are not in the count of candidates.
        input: count(usage, "/promptTokenCount").map(|all| all.saturating_sub(cached.unwrap_or(0))),
        output: count(usage, "/candidatesTokenCount").map(|all| all.saturating_add(thoughts.unwrap_or(0))),
        cache_read: cached,
        reasoning: thoughts,
        ..Usage::default()
    }
}

fn of_messages(pieces: &[Value]) -> Option<Made> {
    let mut blocks: BTreeMap<u64, Value> = BTreeMap::new();
    let mut report = Report::default();
    let mut usage = Map::new();
    for piece in pieces {
        // A whole answer is a message; a stream begins with one that has no content yet.
        let message = if text(piece, "type") == Some("message") { Some(piece) } else { piece.get("message") };
        if let Some(message) = message {
            report.model = text(message, "model").map(str::to_owned);
            report.request = text(message, "id").map(str::to_owned);
            report.stop_reason = text(message, "stop_reason").map(str::to_owned);
            let content = message.get("content").and_then(Value::as_array);
            blocks.extend((0..).zip(content.into_iter().flatten().cloned()));
        }
        for told in
            [message.and_then(|message| message.get("usage")), piece.get("usage")].into_iter().flatten()
        {
            usage.extend(
                told.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())),
            );
        }
        let index = piece.get("index").and_then(Value::as_u64);
        match (text(piece, "type"), index) {
            (Some("content_block_start"), Some(index)) => {
                blocks.insert(index, piece.get("content_block").cloned().unwrap_or_default());
            }
            (Some("content_block_delta"), Some(index)) => {
                block_piece(blocks.get_mut(&index)?, piece.get("delta")?);
            }
            (Some("message_delta"), _) => {
                let reason = piece.pointer("/delta/stop_reason").and_then(Value::as_str);
                report.stop_reason = reason.map(str::to_owned).or(report.stop_reason);
            }
            (Some("error"), _) => return None,
            _ => {}
        }
    }
    // A stream that says no reason to stop broke off.
    report.stop_reason.as_ref()?;
    for block in blocks.values_mut() {
        whole_input(block);
    }
    report.usage = messages_usage(&usage.into());
    let content: Vec<Value> = blocks.into_values().collect();
    Some(Made { message: json!({"role": "assistant", "content": content}), report })
}

/// Adds a piece to a block: a text to the text of the same name, parameters to a text that is read at the end.
fn block_piece(block: &mut Value, delta: &Value) {
    for (piece, whole) in
        [("text", "text"), ("thinking", "thinking"), ("signature", "signature"), ("partial_json", "partial")]
    {
        let (Some(more), Some(block)) = (text(delta, piece), block.as_object_mut()) else { continue };
        match block.get_mut(whole) {
            Some(Value::String(before)) => before.push_str(more),
            _ => {
                block.insert(whole.to_owned(), more.into());
            }
        }
    }
}

/// Parameters that came in pieces, as one value.
fn whole_input(block: &mut Value) {
    let Some(block) = block.as_object_mut() else { return };
    if let Some(Value::String(partial)) = block.remove("partial")
        && let Ok(input) = serde_json::from_str(&partial)
    {
        block.insert("input".to_owned(), input);
    }
}

fn messages_usage(usage: &Value) -> Usage {
    Usage {
        input: count(usage, "/input_tokens"),
        output: count(usage, "/output_tokens"),
        cache_read: count(usage, "/cache_read_input_tokens"),
        cache_write: count(usage, "/cache_creation_input_tokens"),
        cache_write_long: count(usage, "/cache_creation/ephemeral_1h_input_tokens"),
        reasoning: count(usage, "/output_tokens_details/thinking_tokens"),
    }
}

fn of_responses(pieces: &[Value]) -> Option<Made> {
    let mut items: BTreeMap<u64, Value> = BTreeMap::new();
    let mut whole = None;
    for piece in pieces {
        match text(piece, "type") {
            Some("response.output_item.done") => {
                let place = piece.get("output_index").and_then(Value::as_u64).unwrap_or(items.len() as u64);
                items.insert(place, piece.get("item")?.clone());
            }
            Some("response.completed" | "response.incomplete") => whole = piece.get("response"),
            Some("response.failed" | "error") => return None,
            None if text(piece, "object") == Some("response") => whole = Some(piece),
            _ => {}
        }
    }
    let whole = whole?;
    let status = text(whole, "status").filter(|status| matches!(*status, "completed" | "incomplete"))?;
    let reason = whole.pointer("/incomplete_details/reason").and_then(Value::as_str).unwrap_or(status);
    let mut report = Report { stop_reason: Some(reason.to_owned()), ..Report::default() };
    report.model = text(whole, "model").map(str::to_owned);
    report.request = text(whole, "id").map(str::to_owned);
    report.service_tier = text(whole, "service_tier").map(str::to_owned);
    if let Some(usage) = whole.get("usage").filter(|usage| usage.is_object()) {
        report.usage = responses_usage(usage);
    }
    // Some providers tell the items in the stream only.
    let output = whole.get("output").and_then(Value::as_array).filter(|output| !output.is_empty());
    let items = output.cloned().unwrap_or_else(|| items.into_values().collect());
    Some(Made { message: items.into(), report })
}

fn responses_usage(usage: &Value) -> Usage {
    let cached = count(usage, "/input_tokens_details/cached_tokens");
    Usage {
        // The provider's count of the input includes what came from the cache.
        input: count(usage, "/input_tokens").map(|all| all.saturating_sub(cached.unwrap_or(0))),
        output: count(usage, "/output_tokens"),
        cache_read: cached,
        reasoning: count(usage, "/output_tokens_details/reasoning_tokens"),
        ..Usage::default()
    }
}
