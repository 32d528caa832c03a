//! `OpenAI`'s responses: `{model, instructions, input[item, ..], tools, ..}`, where a message, a call and a result are items of one list.
//!
//! Every message and every call of the model is a message here, with the reasoning that stands before it: programs leave
//! reasoning out, put results between calls or behind them, and the names stay the same. Items of the model that follow one
//! another are one step.
//!
//! A provider may keep the conversation. A request that names the answer before it (`previous_response_id`) has only the
//! new items; its messages are named after that answer as well.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::entry::PartEntry;
use acpdb_engine::event::{Outcome, Report, Role};
use serde_json::Value;

use crate::exchange::{
    self, Answered, UnnamedCall, Extent, RequestHead, ConversationState, BuiltAnswer, Message, MessageNames, Talk, canonical, note_unknown, params, text,
    texts, usage_of,
};
use crate::import::json::{elements, member, owned, pick};
use crate::import::picture;

/// Parameters that are recorded.
const PARAMS: &str = "
    include max_output_tokens max_tool_calls parallel_tool_calls reasoning service_tier store
    temperature text tool_choice top_logprobs top_p truncation";
/// Members that are recorded elsewhere, are about the connection, or name a user.
const PASSED: &str = "
    background conversation input instructions metadata model previous_response_id prompt_cache_key
    prompt_cache_retention safety_identifier stream stream_options tools user";
/// Members of items, of those kinds that are taken apart.
const ITEM: &str = "
    arguments call_id content encrypted_content id input name namespace output role status summary type";

/// The conversation of a request.
pub(super) fn request<'a>(body: &'a str, _: Option<&str>, _: Option<&ConversationState>) -> Option<Talk<'a>> {
    let [model, instructions, input, tools, previous, conversation] =
        pick(body, ["model", "instructions", "input", "tools", "previous_response_id", "conversation"])?;
    let mut unknown = BTreeSet::new();
    let params = params(body, PARAMS, PASSED, &mut unknown);
    let previous = owned(previous).filter(|id| !id.is_empty());
    let is_kept = conversation.is_some_and(|it| it != "null");
    let mut names = MessageNames::after(previous.as_deref());
    let mut system: Vec<String> = owned(instructions).filter(|text| !text.is_empty()).into_iter().collect();
    let mut list = Vec::new();
    let mut refers = is_kept;
    if let Some(said) = owned(input) {
        list.push(names.message(Role::User, vec![PartEntry::text(said)], Vec::new()));
    } else {
        let items = elements(input?)?;
        // As with the other APIs, the system's first texts stand before the messages.
        let is_system = |item: &&&str| ItemRole::of(item) == Some(ItemRole::System);
        let leading = if system.is_empty() { items.iter().take_while(is_system).count() } else { 0 };
        let (first, rest) = items.split_at_checked(leading)?;
        system.extend(first.iter().flat_map(|item| texts(parts(member(Some(item), "content")))));
        refers |= rest.iter().any(|item| ItemRole::of(item) == Some(ItemRole::Reference));
        list = messages(rest, &mut names, &mut unknown)?;
    }
    let system = (!system.is_empty()).then(|| system.join("\n\n"));
    let head = RequestHead { model: owned(model), system, tools: tools.map(str::to_owned), params };
    let extent = match previous {
        _ if refers => Extent::Refers,
        Some(_) => Extent::Added,
        None => Extent::Whole,
    };
    Some(Talk { head, messages: list, extent, after: None, unknown, names })
}

/// The role of an item in the conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ItemRole {
    User,
    System,
    Assistant,
    Reasoning,
    Call,
    Result,
    /// Something of the model's that has no result of its own, such as a search of the provider's.
    Made,
    /// Stands for an item that the provider keeps.
    Reference,
}

impl ItemRole {
    /// `None`: it is no item.
    fn of(item: &str) -> Option<Self> {
        let [kind, role, call] = pick(item, ["type", "role", "call_id"])?;
        let kind = owned(kind);
        Some(match (kind.as_deref(), owned(role).as_deref()) {
            (None | Some("message"), Some("assistant")) => Self::Assistant,
            (None | Some("message"), Some("user")) => Self::User,
            (None | Some("message"), Some("system" | "developer")) => Self::System,
            (None | Some("message"), _) => return None,
            (Some("reasoning"), _) => Self::Reasoning,
            (Some("item_reference"), _) => Self::Reference,
            (Some(kind), _) if call.is_some() && kind.ends_with("_output") => Self::Result,
            (Some(kind), _) if call.is_some() && kind.ends_with("_call") => Self::Call,
            _ => Self::Made,
        })
    }

    const fn is_made(self) -> bool {
        matches!(self, Self::Assistant | Self::Reasoning | Self::Call | Self::Made)
    }
}

/// The messages of a list of items; `None`: one of them is no item.
pub(super) fn messages<'a>(
    items: &[&'a str],
    names: &mut MessageNames,
    unknown: &mut BTreeSet<String>,
) -> Option<Vec<Message<'a>>> {
    let mut out = Vec::new();
    let mut thoughts = Vec::new();
    let mut goes_on = false;
    for text in items {
        let kind = ItemRole::of(text)?;
        if !matches!(kind, ItemRole::Made | ItemRole::Reference) {
            note_unknown(text, ITEM, unknown);
        }
        // Reasoning that leads to nothing stands alone.
        if !kind.is_made() && !thoughts.is_empty() {
            out.push(made(names, std::mem::take(&mut thoughts), Vec::new(), goes_on));
        }
        let (parts, calls) = match kind {
            ItemRole::User | ItemRole::System => {
                let role = if kind == ItemRole::User { Role::User } else { Role::System };
                out.push(names.message(role, parts(member(Some(text), "content")), Vec::new()));
                goes_on = false;
                continue;
            }
            ItemRole::Result => {
                out.push(Message::of_result(result(text, names)?));
                goes_on = false;
                continue;
            }
            ItemRole::Reference => continue,
            ItemRole::Reasoning => {
                thoughts.extend(reasoning(text));
                continue;
            }
            ItemRole::Assistant => (parts(member(Some(text), "content")), Vec::new()),
            ItemRole::Call => (Vec::new(), vec![call(text)?]),
            ItemRole::Made => (vec![PartEntry::opaque(*text)], Vec::new()),
        };
        thoughts.extend(parts);
        out.push(made(names, std::mem::take(&mut thoughts), calls, goes_on));
        goes_on = true;
    }
    if !thoughts.is_empty() {
        out.push(made(names, thoughts, Vec::new(), goes_on));
    }
    Some(out)
}

/// A message of the model's; the first of a run begins a step.
fn made<'a>(names: &mut MessageNames, parts: Vec<PartEntry>, calls: Vec<UnnamedCall<'a>>, goes_on: bool) -> Message<'a> {
    let message = names.message(Role::Assistant, parts, calls);
    Message { goes_on, ..message }
}

/// Reasoning as far as it is told: a summary, the text, or the content encrypted.
fn reasoning(item: &str) -> Option<PartEntry> {
    let [summary, content, sealed] = pick(item, ["summary", "content", "encrypted_content"])?;
    let lists = [summary, content].into_iter().flatten().filter_map(elements).flatten();
    let texts: Vec<String> = lists.filter_map(|piece| owned(member(Some(piece), "text"))).collect();
    let sealed = owned(sealed).filter(|text| !text.is_empty());
    let part = PartEntry::reasoning(texts.join("\n\n"), sealed.as_deref().map(str::as_bytes));
    (!part.bytes.is_empty() || part.signature.is_some()).then_some(part)
}

fn call(item: &str) -> Option<UnnamedCall<'_>> {
    let [kind, id, name, space, arguments, input, action] =
        pick(item, ["type", "call_id", "name", "namespace", "arguments", "input", "action"])?;
    let kind = owned(kind).unwrap_or_default();
    let name = owned(name).unwrap_or_else(|| kind.strip_suffix("_call").unwrap_or(&kind).to_owned());
    let tool = match owned(space).filter(|space| !space.is_empty()) {
        Some(space) => format!("{space}__{name}"),
        None => name,
    };
    // `arguments` is JSON inside a string; `input` is a plain text, and as a JSON string it is the parameters.
    let params = match owned(arguments) {
        Some(inner) if inner.is_empty() => "{}".to_owned(),
        Some(inner) => inner,
        None => arguments.or(input).or(action).unwrap_or("{}").to_owned(),
    };
    // Only an object in a string can give way to another.
    let value = arguments.filter(|text| text.starts_with('"')).unwrap_or_default();
    Some(UnnamedCall { id: owned(id), tool, params: canonical(&params).into(), value, signature: None })
}

fn result<'a>(item: &'a str, names: &mut MessageNames) -> Option<Answered<'a>> {
    let [kind, id, output] = pick(item, ["type", "call_id", "output"])?;
    let kind = owned(kind).unwrap_or_default();
    let is_plain = matches!(&*kind, "function_call_output" | "custom_tool_call_output");
    let said = if is_plain { parts(output) } else { vec![PartEntry::opaque(item)] };
    // The API has no other sign of a failure.
    let failed = said.first().is_some_and(|part| part.bytes.starts_with(b"Error"));
    let outcome = if failed { Outcome::Failed } else { Outcome::Completed };
    Some(names.result(owned(id), None, outcome, said, output.filter(|_| is_plain)))
}

/// The parts of a text, or of a list of texts, images and others. An empty text is no part.
fn parts(content: Option<&str>) -> Vec<PartEntry> {
    exchange::parts(content, |piece| {
        let [image, detail] = pick(piece, ["image_url", "detail"])?;
        Some(picture(owned(image)?, owned(detail)))
    })
}

/// An answer, put together of its pieces.
pub(super) fn answer(pieces: &[Value]) -> Option<BuiltAnswer> {
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
        report.usage = usage_of(usage, "input", "output");
    }
    // Some providers tell the items in the stream only.
    let output = whole.get("output").and_then(Value::as_array).filter(|output| !output.is_empty());
    let items = output.cloned().unwrap_or_else(|| items.into_values().collect());
    Some(BuiltAnswer { message: items.into(), report })
}
