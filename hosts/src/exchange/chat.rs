//! `OpenAI`'s chat completions: `{model, messages[{role, content, tool_calls}], tools, ..}`.
//!
//! Other providers offer the same API, with reasoning as `reasoning_content` or `reasoning`.

use std::collections::BTreeSet;

use acpdb_engine::entry::PartEntry;
use acpdb_engine::event::{Outcome, Role};

use super::talk::{Call, Extent, Head, Message, Names, Talk, canonical, note_unknown, params};
use crate::import::json::{elements, member, owned, pick};
use crate::import::media_type;

/// Parameters that are recorded.
const PARAMS: &[&str] = &[
    "frequency_penalty",
    "logit_bias",
    "max_completion_tokens",
    "max_tokens",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "service_tier",
    "stop",
    "temperature",
    "tool_choice",
    "top_p",
    "verbosity",
];
/// What is recorded elsewhere, or is about the connection.
const PASSED: &[&str] = &["model", "messages", "tools", "stream", "stream_options", "store"];
const MESSAGE: &[&str] = &[
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "name",
    "refusal",
    "annotations",
    "audio",
    "reasoning_content",
    "reasoning",
];

/// The conversation of a request.
pub(super) fn request(body: &str) -> Option<Talk<'_>> {
    let [model, messages, tools] = pick(body, ["model", "messages", "tools"])?;
    let messages = elements(messages?)?;
    let mut unknown = BTreeSet::new();
    let params = params(body, PARAMS, PASSED, &mut unknown);
    let is_system = |message: &&&str| matches!(role(message), Some("system" | "developer"));
    let leading = messages.iter().take_while(is_system).count();
    let (first, rest) = messages.split_at_checked(leading)?;
    let texts: Vec<String> =
        first.iter().flat_map(|message| texts(member(Some(message), "content"))).collect();
    let system = (!texts.is_empty()).then(|| texts.join("\n\n"));
    let head = Head { model: owned(model), system, tools: tools.map(str::to_owned), params };
    let mut names = Names::default();
    let mut list = Vec::new();
    for text in rest {
        note_unknown(text, MESSAGE, &mut unknown);
        list.push(message(text, &mut names)?);
    }
    let extent = Extent::Whole;
    Some(Talk { head, messages: list, extent, unknown, names })
}

fn role(message: &str) -> Option<&'static str> {
    let role = owned(member(Some(message), "role"))?;
    ["system", "developer", "user", "assistant", "tool", "function"].into_iter().find(|known| *known == role)
}

/// A message; `None`: it is none.
pub(super) fn message<'a>(text: &'a str, names: &mut Names) -> Option<Message<'a>> {
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
        Call {
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

/// A text, or a list of texts, images and whatever else. An empty text is no part.
fn parts(content: Option<&str>) -> Vec<PartEntry> {
    if let Some(text) = owned(content) {
        return if text.is_empty() { Vec::new() } else { vec![PartEntry::text(text)] };
    }
    let part = |piece: &str| {
        let [text, refusal, image] = pick(piece, ["text", "refusal", "image_url"]).unwrap_or_default();
        let url = owned(image).or_else(|| owned(member(image, "url")));
        match (owned(text).or_else(|| owned(refusal)), url) {
            (Some(text), _) => PartEntry::text(text),
            (None, Some(url)) => {
                let media = media_type(&url);
                PartEntry::media(url, media)
            }
            (None, None) => PartEntry::opaque(piece),
        }
    };
    content.and_then(elements).unwrap_or_default().into_iter().map(part).collect()
}

fn texts(content: Option<&str>) -> Vec<String> {
    let text = |part: PartEntry| String::from_utf8_lossy(&part.bytes).into_owned();
    parts(content).into_iter().map(text).collect()
}
