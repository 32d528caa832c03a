//! Gemini's contents: `{contents[{role, parts[..]}], systemInstruction, tools, generationConfig}`; the model is in the path.
//!
//! Names are spelled in either way, `functionCall` or `function_call`: the provider takes both.

use std::collections::BTreeSet;

use acpdb_engine::entry::{Bytes, PartEntry};
use acpdb_engine::event::{Outcome, PartKind, Report, Role, Usage};
use serde_json::{Value, json};

use crate::exchange::{
    Answered, UnnamedCall, Extent, RequestHead, ConversationState, BuiltAnswer, Message, MessageNames, Talk, canonical, count, note_unknown, params, text,
};
use crate::import::json::{elements, member, owned, pick};

/// Parameters that are recorded.
const PARAMS: &str = "
    generationConfig generation_config safetySettings safety_settings toolConfig tool_config";
const PASSED: &str = "contents model systemInstruction system_instruction tools";
const PART: &str = "
    text thought thoughtSignature thought_signature functionCall function_call functionResponse
    function_response inlineData inline_data fileData file_data executableCode codeExecutionResult";

/// The conversation of a request.
pub(super) fn request<'a>(body: &'a str, model: Option<&str>, _: Option<&ConversationState>) -> Option<Talk<'a>> {
    let [contents, system, snake, tools] =
        pick(body, ["contents", "systemInstruction", "system_instruction", "tools"])?;
    let contents = contents?;
    // One content alone stands for a list of one.
    let contents = elements(contents).unwrap_or_else(|| vec![contents]);
    let mut unknown = BTreeSet::new();
    let params = params(body, PARAMS, PASSED, &mut unknown);
    let system = system.or(snake).map(|system| system_text(system).join("\n\n"));
    let system = system.filter(|text| !text.is_empty());
    let head = RequestHead { model: model.map(str::to_owned), system, tools: tools.map(str::to_owned), params };
    let mut names = MessageNames::default();
    let mut messages = Vec::new();
    for content in contents {
        messages.push(message(content, &mut names, &mut unknown)?);
    }
    let extent = Extent::Whole;
    Some(Talk { head, messages, extent, after: None, unknown, names })
}

fn system_text(system: &str) -> Vec<String> {
    if let Some(text) = owned(Some(system)) {
        return vec![text];
    }
    let parts = member(Some(system), "parts").and_then(elements).unwrap_or_default();
    parts.into_iter().filter_map(|part| owned(member(Some(part), "text"))).collect()
}

/// A content; `None`: the JSON is no content.
pub(super) fn message<'a>(
    content: &'a str,
    names: &mut MessageNames,
    unknown: &mut BTreeSet<String>,
) -> Option<Message<'a>> {
    let [role, list] = pick(content, ["role", "parts"])?;
    let role = match owned(role).as_deref() {
        Some("model") => Role::Assistant,
        Some("system") => Role::System,
        _ => Role::User,
    };
    let list = list?;
    let (mut parts, mut calls, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for piece in elements(list).unwrap_or_else(|| vec![list]) {
        note_unknown(piece, PART, unknown);
        let [call, snake, response, response_snake] =
            pick(piece, ["functionCall", "function_call", "functionResponse", "function_response"])?;
        match (call.or(snake), response.or(response_snake)) {
            (Some(call), _) => calls.push(asked(piece, call)),
            (None, Some(response)) => results.push(response),
            (None, None) => said(piece, &mut parts),
        }
    }
    // Results answer calls that stand before this content.
    let results = results.into_iter().map(|response| answered(response, names)).collect();
    let message = names.message(role, parts, calls);
    Some(Message { results, ..message })
}

/// A part that is neither a call nor a result. Texts that follow each other are one: a stream cuts them anywhere.
fn said(piece: &str, parts: &mut Vec<PartEntry>) {
    let [text, thought, inline, inline_snake] =
        pick(piece, ["text", "thought", "inlineData", "inline_data"]).unwrap_or_default();
    let signature = signature(piece).map(|text| Bytes::from(text.as_bytes()));
    if let Some(text) = owned(text) {
        let kind = if thought == Some("true") { PartKind::Reasoning } else { PartKind::Text };
        if let Some(last) = parts.last_mut().filter(|last| last.kind == kind && last.signature.is_none()) {
            let joined = [&*last.bytes, text.as_bytes()].concat();
            (last.bytes, last.signature) = (joined.into(), signature);
        } else if !text.is_empty() || signature.is_some() {
            parts.push(PartEntry { signature, ..PartEntry::of(kind, text) });
        }
        return;
    }
    let inline = inline.or(inline_snake).and_then(|it| pick(it, ["mimeType", "mime_type", "data"]));
    let media = inline.and_then(|[kind, snake, data]| Some((owned(kind.or(snake)), owned(data)?)));
    parts.push(match media {
        Some((kind, data)) => PartEntry::media(data, kind),
        None => PartEntry::opaque(piece),
    });
}

fn signature(piece: &str) -> Option<String> {
    let [signature, snake] = pick(piece, ["thoughtSignature", "thought_signature"])?;
    owned(signature.or(snake)).filter(|text| !text.is_empty())
}

fn asked<'a>(piece: &str, call: &'a str) -> UnnamedCall<'a> {
    let [id, name, args] = pick(call, ["id", "name", "args"]).unwrap_or_default();
    UnnamedCall {
        id: owned(id),
        tool: owned(name).unwrap_or_default(),
        params: canonical(args.unwrap_or("{}")).into(),
        value: args.unwrap_or_default(),
        signature: signature(piece),
    }
}

fn answered<'a>(response: &'a str, names: &mut MessageNames) -> Answered<'a> {
    let [id, name, inner] = pick(response, ["id", "name", "response"]).unwrap_or_default();
    let [output, error] = inner.and_then(|it| pick(it, ["output", "error"])).unwrap_or_default();
    let failed = output.is_none() && error.is_some();
    let outcome = if failed { Outcome::Failed } else { Outcome::Completed };
    // The model reads the output; it reads a response of another form whole.
    let text =
        owned(output).or_else(|| owned(error)).or_else(|| inner.map(str::to_owned)).unwrap_or_default();
    let parts = vec![PartEntry::text(text)];
    names.result(owned(id), owned(name).as_deref(), outcome, parts, inner)
}

/// An answer, put together of its pieces.
pub(super) fn answer(pieces: &[Value]) -> Option<BuiltAnswer> {
    let mut parts: Vec<Value> = Vec::new();
    let mut report = Report::default();
    for piece in pieces {
        let own = |name: &str| text(piece, name).map(str::to_owned);
        report.model = own("modelVersion").or(report.model);
        report.request = own("responseId").or(report.request);
        if let Some(usage) = piece.get("usageMetadata") {
            report.usage = usage_of(usage);
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
    Some(BuiltAnswer { message: json!({"role": "model", "parts": parts}), report })
}

/// Adds a part; a text that continues the last text is added to that text, since a stream cuts texts into thousands.
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

fn usage_of(usage: &Value) -> Usage {
    let cached = count(usage, "/cachedContentTokenCount");
    let thoughts = count(usage, "/thoughtsTokenCount");
    Usage {
        // The prompt count includes cached tokens; thoughts are paid for as output, and are not in the count of candidates.
        input: count(usage, "/promptTokenCount").map(|all| all.saturating_sub(cached.unwrap_or(0))),
        output: count(usage, "/candidatesTokenCount").map(|all| all.saturating_add(thoughts.unwrap_or(0))),
        cache_read: cached,
        reasoning: thoughts,
        ..Usage::default()
    }
}
