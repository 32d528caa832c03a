//! A request's messages as lines: one for each block, item or part. Only texts that the model reads are in them.

use acpdb_hosts::import::json;

/// A value as compact JSON with its members in order of their names: of the model's own JSON only the bytes count.
fn plain(value: &str) -> String {
    let mut value: serde_json::Value = serde_json::from_str(value).unwrap();
    value.sort_all_objects();
    value.to_string()
}

fn texts_of(content: Option<&str>) -> Vec<String> {
    let Some(content) = content else { return Vec::new() };
    match json::elements(content) {
        None => vec![content.to_owned()],
        Some(blocks) => blocks.into_iter().map(str::to_owned).collect(),
    }
}

/// A text in the form that JSON gives it, or the block as it is.
fn content(block: &str) -> String {
    if block.starts_with('"') {
        return format!("text {}", plain(block));
    }
    let [kind, text] = json::pick(block, ["type", "text"]).unwrap_or_default();
    match (json::owned(kind).as_deref(), text) {
        (Some("text" | "input_text" | "output_text"), Some(text)) => format!("text {}", plain(text)),
        _ => plain(block),
    }
}

fn joined(value: Option<&str>) -> String {
    texts_of(value).iter().map(|block| content(block)).collect::<Vec<_>>().join(" + ")
}

/// Anthropic's messages.
pub(super) fn anthropic(message: &str, out: &mut Vec<String>) {
    let [role, blocks] = json::pick(message, ["role", "content"]).unwrap();
    let role = json::owned(role).unwrap();
    for block in texts_of(blocks) {
        let names =
            ["type", "id", "name", "input", "tool_use_id", "content", "is_error", "thinking", "signature"];
        let [kind, id, name, input, call, inner, error, thinking, signature] =
            json::pick(&block, names).unwrap_or_default();
        let say = |value: Option<&str>| json::owned(value).unwrap_or_default();
        out.push(match say(kind).as_str() {
            // The input's bytes as they are.
            "tool_use" => format!("{role} call {} {} {}", say(id), say(name), input.unwrap_or_default()),
            "tool_result" => {
                let failed = if error == Some("true") { "failed " } else { "" };
                format!("{role} result {} {failed}{}", say(call), joined(inner))
            }
            "thinking" => {
                format!("{role} thinking {} {}", thinking.unwrap_or_default(), signature.unwrap_or_default())
            }
            _ => format!("{role} {}", content(&block)),
        });
    }
}

/// Items of responses. An item's own `id`, `status` and empty members are the provider's book-keeping.
pub(super) fn responses(item: &str, out: &mut Vec<String>) {
    let names = [
        "type",
        "role",
        "content",
        "call_id",
        "name",
        "namespace",
        "arguments",
        "input",
        "output",
        "summary",
        "encrypted_content",
        "tools",
    ];
    let [kind, role, said, call, name, space, arguments, input, output, summary, sealed, tools] =
        json::pick(item, names).unwrap();
    let say = |value: Option<&str>| json::owned(value).unwrap_or_default();
    let kind = json::owned(kind).unwrap_or_else(|| "message".to_owned());
    match kind.as_str() {
        "message" => {
            let role = say(role);
            out.extend(texts_of(said).iter().map(|block| format!("{role} {}", content(block))));
        }
        "reasoning" => {
            let texts: Vec<String> =
                texts_of(summary).iter().map(|it| say(json::member(Some(it), "text"))).collect();
            out.push(format!("reasoning {texts:?} {}", sealed.unwrap_or_default()));
        }
        _ => {
            let space = space.map(|space| format!("{}.", say(Some(space)))).unwrap_or_default();
            let rest = arguments.or(input).unwrap_or_default();
            let output = output.map(|it| joined(Some(it))).unwrap_or_default();
            let tools = tools.map(plain).unwrap_or_default();
            out.push(format!("{kind} {} {space}{} {rest}{output}{tools}", say(call), say(name)));
        }
    }
}

/// Chat messages.
pub(super) fn chat(message: &str, out: &mut Vec<String>) {
    let [role, said, call, calls, reasoning] =
        json::pick(message, ["role", "content", "tool_call_id", "tool_calls", "reasoning_content"]).unwrap();
    let say = |value: Option<&str>| json::owned(value).unwrap_or_default();
    let role = say(role);
    if let Some(reasoning) = reasoning {
        out.push(format!("{role} reasoning {}", plain(reasoning)));
    }
    if role == "tool" {
        out.push(format!("tool result {} {}", say(call), joined(said)));
    } else {
        let texts = texts_of(said).into_iter().filter(|text| text != "\"\"");
        out.extend(texts.map(|block| format!("{role} {}", content(&block))));
    }
    for call in calls.and_then(json::elements).unwrap_or_default() {
        let [id, function] = json::pick(call, ["id", "function"]).unwrap();
        let [name, arguments] = json::pick(function.unwrap(), ["name", "arguments"]).unwrap();
        out.push(format!("{role} call {} {} {}", say(id), say(name), say(arguments)));
    }
}

/// Gemini's contents. Signatures of calls are left out: the host records none, and sends one, or a mark in its place.
pub(super) fn gemini(message: &str, out: &mut Vec<String>) {
    let [role, parts] = json::pick(message, ["role", "parts"]).unwrap();
    let role = json::owned(role).unwrap_or_default();
    for part in parts.and_then(json::elements).unwrap_or_default() {
        let [text, call, response, thought] =
            json::pick(part, ["text", "functionCall", "functionResponse", "thought"]).unwrap();
        let say =
            |value: Option<&str>, name: &str| json::owned(json::member(value, name)).unwrap_or_default();
        if call.is_some() {
            let args = json::member(call, "args").unwrap_or("{}");
            out.push(format!("{role} call {} {} {args}", say(call, "id"), say(call, "name")));
        } else if response.is_some() {
            let body = json::member(response, "response").map(plain).unwrap_or_default();
            out.push(format!("{role} result {} {} {body}", say(response, "id"), say(response, "name")));
        } else if let Some(text) = text {
            let thought = if thought == Some("true") { "thought" } else { "text" };
            out.push(format!("{role} {thought} {}", plain(text)));
        } else {
            out.push(format!("{role} {}", plain(part)));
        }
    }
}
