//! `OpenAI`'s chat completions: `{model, messages[{role, content, tool_calls}], tools, ..}`.
//!
//! Other providers offer the same API, with reasoning as `reasoning_content` or `reasoning`.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::entry::PartEntry;
use acpdb_engine::event::{Outcome, Report, Role};
use serde_json::{Map, Value, json};

use crate::exchange::{
    self, UnnamedCall, Extent, RequestHead, ConversationState, BuiltAnswer, Message, MessageNames, Talk, add, canonical, note_unknown, params, text, texts,
    usage_of,
};
use crate::import::json::{elements, member, owned, pick};
use crate::import::picture;

/// Parameters that are recorded.
const PARAMS: &str = "
    frequency_penalty logit_bias max_completion_tokens max_tokens n parallel_tool_calls presence_penalty
    reasoning_effort response_format seed service_tier stop temperature tool_choice top_p verbosity";
/// Members that are recorded elsewhere, or are about the connection.
const PASSED: &str = "model messages tools stream stream_options store";
const MESSAGE: &str = "
    role content tool_calls tool_call_id name refusal annotations audio reasoning_content reasoning";

/// The conversation of a request.
pub(super) fn request<'a>(body: &'a str, _: Option<&str>, _: Option<&ConversationState>) -> Option<Talk<'a>> {
    let [model, messages, tools] = pick(body, ["model", "messages", "tools"])?;
    let messages = elements(messages?)?;
    let mut unknown = BTreeSet::new();
    let params = params(body, PARAMS, PASSED, &mut unknown);
    let is_system = |message: &&&str| matches!(role(message), Some("system" | "developer"));
    let leading = messages.iter().take_while(is_system).count();
    let (first, rest) = messages.split_at_checked(leading)?;
    let texts: Vec<String> =
        first.iter().flat_map(|message| texts(parts(member(Some(message), "content")))).collect();
    let system = (!texts.is_empty()).then(|| texts.join("\n\n"));
    let head = RequestHead { model: owned(model), system, tools: tools.map(str::to_owned), params };
    let mut names = MessageNames::default();
    let mut list = Vec::new();
    for text in rest {
        note_unknown(text, MESSAGE, &mut unknown);
        list.push(message(text, &mut names)?);
    }
    let extent = Extent::Whole;
    Some(Talk { head, messages: list, extent, after: None, unknown, names })
}

fn role(message: &str) -> Option<&'static str> {
    let role = owned(member(Some(message), "role"))?;
    ["system", "developer", "user", "assistant", "tool", "function"].into_iter().find(|known| *known == role)
}

/// A message; `None`: the JSON is no message.
pub(super) fn message<'a>(text: &'a str, names: &mut MessageNames) -> Option<Message<'a>> {
    let [content, calls, of, name, refusal] =
        pick(text, ["content", "tool_calls", "tool_call_id", "name", "refusal"])?;
    let role = match role(text)? {
        "assistant" => Role::Assistant,
        "user" => Role::User,
        "tool" | "function" => Role::Tool,
        _ => Role::System,
    };
    if role == Role::Tool {
        let parts = parts(content);
        // The API has no other sign of a failure.
        let failed = parts.first().is_some_and(|part| part.bytes.starts_with(b"Error"));
        let outcome = if failed { Outcome::Failed } else { Outcome::Completed };
        let result = names.result(owned(of), owned(name).as_deref(), outcome, parts, content);
        return Some(Message::of_result(result));
    }
    let mut all = Vec::new();
    if role == Role::Assistant {
        let thought = pick(text, ["reasoning_content", "reasoning"]).unwrap_or_default();
        let thought = thought.into_iter().find_map(owned).filter(|text| !text.is_empty());
        all.extend(thought.map(|text| PartEntry::reasoning(text, None)));
    }
    all.extend(parts(content));
    all.extend(owned(refusal).filter(|text| !text.is_empty()).map(PartEntry::text));
    let calls = calls.and_then(elements).unwrap_or_default();
    let calls = calls.into_iter().map(|call| {
        let [id, function] = pick(call, ["id", "function"]).unwrap_or_default();
        let [name, arguments] = function.and_then(|it| pick(it, ["name", "arguments"])).unwrap_or_default();
        let params = owned(arguments).filter(|text| !text.is_empty()).unwrap_or_else(|| "{}".to_owned());
        UnnamedCall {
            id: owned(id),
            tool: owned(name).unwrap_or_default(),
            params: canonical(&params).into(),
            value: arguments.unwrap_or_default(),
            signature: None,
        }
    });
    let calls = calls.collect();
    Some(names.message(role, all, calls))
}

/// The parts of a text, or of a list of texts, images and others. An empty text is no part.
fn parts(content: Option<&str>) -> Vec<PartEntry> {
    exchange::parts(content, |piece| {
        let image = member(Some(piece), "image_url");
        let url = owned(image).or_else(|| owned(member(image, "url")))?;
        Some(picture(url, None))
    })
}

/// An answer, put together of its pieces.
pub(super) fn answer(pieces: &[Value]) -> Option<BuiltAnswer> {
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
            report.usage = usage_of(usage, "prompt", "completion");
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
    Some(BuiltAnswer { message: message?, report })
}

/// Adds a piece of a call to its earlier pieces.
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
