//! Anthropic's messages: `{model, system, messages[{role, content}], tools, ..}`.

use std::collections::BTreeSet;

use acpdb_engine::entry::{Bytes, PartEntry};
use acpdb_engine::event::{Outcome, Role};

use super::talk::{Call, Extent, Head, Message, Names, Talk, canonical, note_unknown, params};
use crate::import::json::{elements, member, owned, pick};

/// Parameters that are recorded.
const PARAMS: &[&str] = &[
    "max_tokens",
    "output_config",
    "service_tier",
    "stop_sequences",
    "temperature",
    "thinking",
    "tool_choice",
    "top_k",
    "top_p",
];
/// What is recorded elsewhere, is about the connection, or names a user.
const PASSED: &[&str] = &["model", "messages", "system", "tools", "stream", "metadata", "cache_control"];

/// The conversation of a request.
pub(super) fn request(body: &str) -> Option<Talk<'_>> {
    let [model, messages, system, tools] = pick(body, ["model", "messages", "system", "tools"])?;
    let mut unknown = BTreeSet::new();
    let params = params(body, PARAMS, PASSED, &mut unknown);
    // Blocks stay blocks: marks of the cache are in them.
    let system = owned(system).or_else(|| system.map(str::to_owned));
    let head = Head { model: owned(model), system, tools: tools.map(str::to_owned), params };
    let mut names = Names::default();
    let mut list = Vec::new();
    for text in elements(messages?)? {
        note_unknown(text, &["role", "content"], &mut unknown);
        list.push(message(text, &mut names)?);
    }
    let extent = Extent::Whole;
    Some(Talk { head, messages: list, extent, unknown, names })
}

/// A message; `None`: it is none.
pub(super) fn message<'a>(text: &'a str, names: &mut Names) -> Option<Message<'a>> {
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
                calls.push(Call { id: owned(id), tool, params, value, signature: None });
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
