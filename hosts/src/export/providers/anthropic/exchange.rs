//! Anthropic's messages: `{model, system, messages[{role, content}], tools, ..}`.
//!
//! A provider may keep the conversation. A request that names the answer before it (`thread`, of type `continue`) has only the
//! new messages; it may leave out the system's text and the tools, which stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::entry::{Bytes, PartEntry};
use acpdb_engine::event::{Outcome, Report, Role, Usage};
use serde_json::{Map, Value, json};

use crate::exchange::{
    UnnamedCall, Extent, RequestHead, ConversationState, BuiltAnswer, Message, MessageNames, Talk, canonical, count, note_unknown, params, text,
};
use crate::import::json::{elements, member, owned, pick};

/// Parameters that are recorded.
const PARAMS: &str = "
    max_tokens output_config service_tier stop_sequences temperature thinking tool_choice top_k top_p";
/// Members that are recorded elsewhere, are about the connection, or name a user.
const PASSED: &str = "model messages system tools stream metadata cache_control thread";

/// The conversation of a request.
pub(super) fn request<'a>(body: &'a str, _: Option<&str>, known: Option<&ConversationState>) -> Option<Talk<'a>> {
    let [model, messages, system, tools, thread] =
        pick(body, ["model", "messages", "system", "tools", "thread"])?;
    let mut unknown = BTreeSet::new();
    let params = params(body, PARAMS, PASSED, &mut unknown);
    // Blocks stay blocks: marks of the cache are in them.
    let system = owned(system).or_else(|| system.map(str::to_owned));
    let head = RequestHead { model: owned(model), system, tools: tools.map(str::to_owned), params };
    let after = thread.and_then(continued);
    let mut names = after.as_deref().map_or_else(MessageNames::default, |answer| MessageNames::going_on(answer, known));
    let mut list = Vec::new();
    for text in elements(messages?)? {
        note_unknown(text, "role content", &mut unknown);
        list.push(message(text, &mut names)?);
    }
    let extent = if after.is_some() { Extent::Added } else { Extent::Whole };
    Some(Talk { head, messages: list, extent, after, unknown, names })
}

/// The answer that a thread goes on from.
fn continued(thread: &str) -> Option<String> {
    let [kind, answer] = pick(thread, ["type", "previous_message_id"])?;
    owned(answer).filter(|_| owned(kind).as_deref() == Some("continue"))
}

/// A message; `None`: the JSON is no message.
pub(super) fn message<'a>(text: &'a str, names: &mut MessageNames) -> Option<Message<'a>> {
    let [role, content] = pick(text, ["role", "content"])?;
    let role = match &*owned(role)? {
        "assistant" => Role::Assistant,
        "user" => Role::User,
        "system" => Role::System,
        _ => return None,
    };
    if let Some(said) = owned(content) {
        let parts = if said.is_empty() { Vec::new() } else { vec![PartEntry::text(said)] };
        return Some(names.message(role, parts, Vec::new()));
    }
    let (mut parts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for block in elements(content?)? {
        match &*owned(member(Some(block), "type")).unwrap_or_default() {
            "tool_use" => {
                let [id, name, input] = pick(block, ["id", "name", "input"])?;
                let params = canonical(input.unwrap_or("{}")).into();
                let value = input.unwrap_or_default();
                let tool = owned(name).unwrap_or_default();
                calls.push(UnnamedCall { id: owned(id), tool, params, value, signature: None });
            }
            "tool_result" => {
                let [of, content, failed] = pick(block, ["tool_use_id", "content", "is_error"])?;
                let outcome = if failed == Some("true") { Outcome::Failed } else { Outcome::Completed };
                let parts = match owned(content) {
                    Some(text) => vec![PartEntry::text(text)],
                    None => content.and_then(elements).unwrap_or_default().into_iter().map(part).collect(),
                };
                results.push(names.result(owned(of), None, outcome, parts, content));
            }
            _ => parts.push(part(block)),
        }
    }
    let message = names.message(role, parts, calls);
    Some(Message { results, ..message })
}

/// A block that is neither a call nor a result.
fn part(block: &str) -> PartEntry {
    let [kind, text, thinking, signature, source] =
        pick(block, ["type", "text", "thinking", "signature", "source"]).unwrap_or_default();
    let signature = owned(signature).filter(|text| !text.is_empty());
    match (&*owned(kind).unwrap_or_default(), owned(text), owned(thinking)) {
        ("text", Some(text), _) => PartEntry::text(text),
        ("thinking", _, Some(thought)) => {
            let signature = signature.map(|text| Bytes::from(text.as_bytes()));
            PartEntry { signature, ..PartEntry::reasoning(thought, None) }
        }
        ("image", ..) => {
            let [kind, data] = source.and_then(|it| pick(it, ["media_type", "data"])).unwrap_or_default();
            owned(data).map_or_else(|| PartEntry::opaque(block), |data| PartEntry::media(data, owned(kind)))
        }
        _ => PartEntry::opaque(block),
    }
}

/// An answer, put together of its pieces.
pub(super) fn answer(pieces: &[Value]) -> Option<BuiltAnswer> {
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
    report.usage = usage_of(&usage.into());
    let content: Vec<Value> = blocks.into_values().collect();
    Some(BuiltAnswer { message: json!({"role": "assistant", "content": content}), report })
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

fn usage_of(usage: &Value) -> Usage {
    Usage {
        input: count(usage, "/input_tokens"),
        output: count(usage, "/output_tokens"),
        cache_read: count(usage, "/cache_read_input_tokens"),
        cache_write: count(usage, "/cache_creation_input_tokens"),
        cache_write_long: count(usage, "/cache_creation/ephemeral_1h_input_tokens"),
        reasoning: count(usage, "/output_tokens_details/thinking_tokens"),
        searches: count(usage, "/server_tool_use/web_search_requests").filter(|count| *count > 0),
    }
}
