//! A1 to A10.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::export::{BREAKPOINT_COUNT_MAX, preserves_thinking};
use crate::lint::{Findings, first_change, kind_of, list, text};

pub(super) fn check(body: &Value, previous: Option<&Value>, model: Option<&str>, out: &mut Findings) {
    let Some((base, messages)) = out.messages(body, "messages") else { return };
    let mut ids: BTreeMap<&str, String> = BTreeMap::new();
    let mut calls: BTreeSet<&str> = BTreeSet::new();
    let mut calls_at = String::new();
    let mut role_before = None;
    // The provider keeps the messages before these.
    let goes_on = body.get("thread").is_some_and(|thread| text(thread, "type") == Some("continue"));
    for (number, message) in messages.iter().enumerate() {
        let at = format!("{base}/{number}");
        let role = text(message, "role").unwrap_or_default();
        // Inside of a conversation the provider also takes messages of the system, as its own program sends them.
        let is_system = role == "system" && (number > 0 || goes_on);
        if !matches!(role, "user" | "assistant") && !is_system {
            let found = message.get("role").map_or("nothing".to_owned(), Value::to_string);
            let says = "messages.N.role: Input should be 'user' or 'assistant'";
            out.add("A3", format!("{at}/role"), "user or assistant", found, says);
        }
        if number == 0 && role == "assistant" {
            let says = "messages: first message must use the \"user\" role";
            out.add("A3", at.clone(), "a message of the user first", "one of the assistant", says);
        }
        // Neighbouring messages of the user are taken as one.
        if role_before == Some(role) && role == "assistant" {
            let says = "messages: roles must alternate between \"user\" and \"assistant\"";
            let expected = "neighbours of one role to be one message";
            out.add("A3", at.clone(), expected, format!("{role} twice"), says);
        }
        role_before = Some(role);
        let is_last = number + 1 == messages.len();
        // A message of the system's may hold nothing but settings.
        let may_be_empty =
            (is_last && role == "assistant") || (is_system && message.get("output_config").is_some());
        let blocks = content(message, &at, may_be_empty, out);
        let expected = match number {
            0 if goes_on => blocks.iter().filter_map(|block| text(block, "tool_use_id")).collect(),
            _ => std::mem::take(&mut calls),
        };
        results(blocks, &at, role, &expected, &calls_at, out);
        for (place, block) in blocks.iter().enumerate() {
            let at = format!("{at}/content/{place}");
            match text(block, "type") {
                Some("tool_use") => {
                    if role != "assistant" {
                        let says = "`tool_use` blocks can only be in `assistant` messages";
                        let expected = "calls in messages of the assistant";
                        out.add("A1", at.clone(), expected, role.to_owned(), says);
                    }
                    if let Some(id) = call(block, &at, &mut ids, out) {
                        calls.insert(id);
                    }
                }
                Some("thinking" | "redacted_thinking") => thinking(block, &at, role, out),
                Some("compaction") => compaction(block, &at, role, out),
                _ => {}
            }
        }
        if role == "assistant"
            && let Some(last) = blocks.last()
            && matches!(text(last, "type"), Some("thinking" | "redacted_thinking"))
        {
            let says = "messages.N: The final block in an assistant message cannot be `thinking`";
            let at = format!("{at}/content/{}", blocks.len() - 1);
            out.add("A4", at, "something after the reasoning", "the end of the message", says);
        }
        calls_at = at;
    }
    if !calls.is_empty() {
        unanswered(&calls, &calls_at, out);
    }
    present(body, &base, messages, out);
    marks(body, &base, messages, out);
    edits(body, out);
    if let Some(previous) = previous.filter(|_| !goes_on) {
        // Marks for the cache move from request to request; they are no change.
        let (mut body, mut previous) = (body.clone(), previous.clone());
        unmark(&mut body);
        unmark(&mut previous);
        let mut ignored = Findings::default();
        if let Some((_, messages)) = ignored.messages(&body, "messages") {
            bound(&body, &base, messages, &previous, model, out);
        }
    }
}

/// Marks for the cache: at most four, and none on reasoning.
fn marks(body: &Value, base: &str, messages: &[Value], out: &mut Findings) {
    let is_marked = |block: &&Value| block.get("cache_control").is_some_and(|mark| !mark.is_null());
    let head = ["tools", "system"].into_iter().flat_map(|name| list(body, name)).filter(is_marked).count();
    let mut count = head + usize::from(is_marked(&body));
    for (number, message) in messages.iter().enumerate() {
        for (place, block) in list(message, "content").iter().enumerate() {
            count += list(block, "content").iter().filter(is_marked).count();
            if !is_marked(&block) {
                continue;
            }
            count += 1;
            if is_thinking(block) {
                let says = "messages.N.content.N.thinking.cache_control: Extra inputs are not permitted";
                let at = format!("{base}/{number}/content/{place}/cache_control");
                out.add("A8", at, "no mark on reasoning", "one", says);
            }
        }
    }
    if count > BREAKPOINT_COUNT_MAX {
        let says = format!("A maximum of 4 blocks with cache_control may be provided. Found {count}.");
        out.add("A8", base.to_owned(), "at most four marks for the cache", count.to_string(), says);
    }
}

/// Kinds of edits, without the day of their version.
const EDITS: [&str; 3] = ["clear_thinking_", "clear_tool_uses_", "compact_"];

/// Edits that the provider is to make: of known kinds, that of reasoning first. Those that it made stand in answers.
fn edits(body: &Value, out: &mut Findings) {
    let Some(asked) = body.get("context_management") else { return };
    for (place, edit) in list(asked, "edits").iter().enumerate() {
        let at = format!("/context_management/edits/{place}");
        let kind = text(edit, "type").unwrap_or_default();
        if !EDITS.iter().any(|known| kind.starts_with(known)) {
            let says = "context_management.edits.N: Input tag found using 'type' does not match any of the expected tags";
            out.add("A10", format!("{at}/type"), "clear_thinking, clear_tool_uses or compact", kind.to_owned(), says);
        }
        if kind.starts_with("clear_thinking_") && place > 0 {
            let says = "context_management.edits: `clear_thinking_20251015` must be the first edit";
            out.add("A10", at, "the clearing of reasoning first", format!("place {place}"), says);
        }
    }
    if asked.get("applied_edits").is_some() {
        let says = "context_management.applied_edits: Extra inputs are not permitted";
        let at = "/context_management/applied_edits".to_owned();
        out.add("A10", at, "edits to be made", "edits that were made", says);
    }
}

/// Takes marks out of a body; a prompt or a content of one text is that text again.
fn unmark(body: &mut Value) {
    let Some(body) = body.as_object_mut() else { return };
    body.remove("cache_control");
    for name in ["tools", "system", "messages"] {
        for block in body.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(fields) = block.as_object_mut() {
                fields.remove("cache_control");
            }
            for inner in block.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(fields) = inner.as_object_mut() {
                    fields.remove("cache_control");
                }
            }
            if name == "messages" {
                as_text(block.get_mut("content"));
            }
        }
    }
    as_text(body.get_mut("system"));
}

/// One block that is nothing but a text is the same as the text.
fn as_text(content: Option<&mut Value>) {
    let Some(content) = content else { return };
    let alone = match content.as_array().map(Vec::as_slice) {
        Some([block]) if text(block, "type") == Some("text") => block.as_object(),
        _ => None,
    };
    if let Some(text) = alone.filter(|block| block.len() == 2).and_then(|block| block.get("text")).cloned() {
        *content = text;
    }
}

/// The blocks of a message; a text has none.
fn content<'v>(message: &'v Value, at: &str, is_prefill: bool, out: &mut Findings) -> &'v [Value] {
    let empty = "messages.N: all messages must have non-empty content except for the optional final assistant message";
    match message.get("content") {
        Some(Value::String(content)) => {
            if content.trim().is_empty() && !is_prefill {
                out.add("A3", format!("{at}/content"), "some text", "none", empty);
            }
            &[]
        }
        Some(Value::Array(blocks)) => {
            if blocks.is_empty() && !is_prefill {
                out.add("A3", format!("{at}/content"), "a block", "none", empty);
            }
            for (place, block) in blocks.iter().enumerate() {
                let at = format!("{at}/content/{place}");
                match block.get("type").and_then(Value::as_str) {
                    None => out.add(
                        "A3",
                        at,
                        "a block with a type",
                        kind_of(block),
                        "messages.N.content.N: Input tag not found",
                    ),
                    Some("text") if text(block, "text").is_none_or(|text| text.trim().is_empty()) => out.add(
                        "A3",
                        format!("{at}/text"),
                        "some text",
                        "none",
                        "messages: text content blocks must be non-empty",
                    ),
                    Some(_) => {}
                }
            }
            blocks
        }
        other => {
            let found = other.map_or("nothing", kind_of);
            let expected = "a text or a list of blocks";
            out.add("A3", format!("{at}/content"), expected, found, "content: Field required");
            &[]
        }
    }
}

fn call<'v>(
    block: &'v Value,
    at: &str,
    ids: &mut BTreeMap<&'v str, String>,
    out: &mut Findings,
) -> Option<&'v str> {
    match block.get("input") {
        Some(Value::Object(_)) => {}
        other => {
            let found = other.map_or("nothing", kind_of);
            let says = "messages.N.content.N.tool_use.input: Input should be a valid dictionary";
            out.add("A7", format!("{at}/input"), "an object", found, says);
        }
    }
    let id = text(block, "id").unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.is_empty() || !id.chars().all(fits) {
        let says = "messages.N.content.N.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'";
        out.add("A1", format!("{at}/id"), "letters, digits, _ and -", format!("{id:?}"), says);
    }
    let name = text(block, "name").unwrap_or_default();
    if name.is_empty() || name.len() > 128 || !name.chars().all(fits) {
        let says = "messages.N.content.N.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
        out.add("A1", format!("{at}/name"), "a name of letters, digits, _ and -", format!("{name:?}"), says);
    }
    if let Some(first) = ids.insert(id, at.to_owned()) {
        let says = "messages: `tool_use` ids must be unique";
        out.add("A1", format!("{at}/id"), "an id of its own", format!("{id}, as at {first}"), says);
        return None;
    }
    Some(id)
}

/// Checks results against the calls of the message before.
fn results(
    blocks: &[Value],
    at: &str,
    role: &str,
    expected: &BTreeSet<&str>,
    calls_at: &str,
    out: &mut Findings,
) {
    let mut left = expected.clone();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut other_at = None;
    for (place, block) in blocks.iter().enumerate() {
        if text(block, "type") != Some("tool_result") {
            other_at = other_at.or(Some(place));
            continue;
        }
        let at = format!("{at}/content/{place}");
        let id = text(block, "tool_use_id").unwrap_or_default();
        if role != "user" {
            let says = "`tool_result` blocks can only be in `user` messages";
            out.add("A1", at.clone(), "results in messages of the user", role.to_owned(), says);
        }
        if !left.remove(id) {
            let (found, says) = if seen.contains(id) {
                ("a second result", "each tool_use must have a single result")
            } else {
                (
                    "a result without call",
                    "unexpected `tool_use_id` found in `tool_result` blocks. Each `tool_result` block must have a corresponding `tool_use` block in the previous message",
                )
            };
            let expected = "a call of that id in the message before";
            out.add("A1", format!("{at}/tool_use_id"), expected, format!("{found}: {id:?}"), says);
        }
        seen.insert(id);
        if let Some(other) = other_at {
            let says = "`tool_use` ids were found without `tool_result` blocks immediately after";
            let expected = "results before anything else";
            out.add("A2", at.clone(), expected, format!("block {other} before it"), says);
        }
        result(block, &at, out);
    }
    if !left.is_empty() {
        unanswered(&left, calls_at, out);
    }
}

fn result(block: &Value, at: &str, out: &mut Findings) {
    if block.get("is_error").is_some_and(|flag| !flag.is_boolean()) {
        let says = "tool_result.is_error: Input should be a valid boolean";
        out.add("A6", format!("{at}/is_error"), "true or false", "something else", says);
    }
    match block.get("content") {
        None | Some(Value::String(_)) => {}
        Some(Value::Array(parts)) => {
            for (place, part) in parts.iter().enumerate() {
                let at = format!("{at}/content/{place}");
                let kind = text(part, "type");
                if kind == Some("text") && text(part, "text").is_none_or(|text| text.trim().is_empty()) {
                    let says = "messages: text content blocks must be non-empty";
                    out.add("A6", format!("{at}/text"), "some text", "none", says);
                }
                let fits = ["text", "image", "document", "search_result", "tool_reference"];
                if kind.is_none_or(|kind| !fits.contains(&kind)) {
                    let says = "tool_result.content.N: Input tag does not match any of the expected tags";
                    out.add("A6", at, "a block that a result may hold", format!("{kind:?}"), says);
                }
            }
        }
        Some(other) => {
            let says = "tool_result.content: Input should be a valid string or list";
            out.add("A6", format!("{at}/content"), "a text or a list of blocks", kind_of(other), says);
        }
    }
}

fn unanswered(ids: &BTreeSet<&str>, at: &str, out: &mut Findings) {
    for id in ids {
        let says = format!(
            "`tool_use` ids were found without `tool_result` blocks immediately after: {id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message"
        );
        out.add("A1", at.to_owned(), format!("a result of {id} in the next message"), "none", says);
    }
}

/// A compaction of the provider's own: it goes back in the model's message, with its summary. A compaction that failed has none.
fn compaction(block: &Value, at: &str, role: &str, out: &mut Findings) {
    if role != "assistant" {
        let says = "`compaction` blocks can only be in `assistant` messages";
        out.add("A9", at.to_owned(), "a compaction in a message of the assistant", role.to_owned(), says);
    }
    if !block.get("content").is_some_and(|content| content.is_string() || content.is_null()) {
        out.add("A9", at.to_owned(), "the summary of a compaction", "none", "compaction.content: Field required");
    }
}

fn thinking(block: &Value, at: &str, role: &str, out: &mut Findings) {
    if role != "assistant" {
        let says = "`thinking` blocks can only be in `assistant` messages";
        out.add("A4", at.to_owned(), "reasoning in messages of the assistant", role.to_owned(), says);
    }
    let name = if text(block, "type") == Some("thinking") { "signature" } else { "data" };
    if text(block, name).is_none_or(str::is_empty) {
        let says = format!("messages.N.content.N: Invalid `{name}` in `thinking` block");
        out.add("A4", format!("{at}/{name}"), "what the provider sent", "nothing", says);
    }
}

/// With thinking on, the last message with calls begins with it.
fn present(body: &Value, base: &str, messages: &[Value], out: &mut Findings) {
    let mode = body.get("thinking").and_then(|thinking| text(thinking, "type"));
    if !matches!(mode, Some("enabled")) {
        return;
    }
    let last =
        messages.iter().enumerate().rev().find(|(_, message)| text(message, "role") == Some("assistant"));
    let Some((number, message)) = last else { return };
    let blocks = list(message, "content");
    let has_calls = blocks.iter().any(|block| text(block, "type") == Some("tool_use"));
    let first = blocks.first().and_then(|block| text(block, "type"));
    if has_calls && !matches!(first, Some("thinking" | "redacted_thinking")) {
        let found = first.unwrap_or("nothing");
        let says = format!(
            "Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block"
        );
        let expected = "the reasoning that led to the calls";
        out.add("A4", format!("{base}/{number}/content/0"), expected, found, says);
    }
}

/// For models that bind reasoning: no earlier reasoning may stand behind a change.
fn bound(
    body: &Value,
    base: &str,
    messages: &[Value],
    previous: &Value,
    model: Option<&str>,
    out: &mut Findings,
) {
    let model = text(body, "model").or(model).unwrap_or_default();
    if !preserves_thinking(model) {
        return;
    }
    let mut ignored = Findings::default();
    let Some((_, before)) = ignored.messages(previous, "messages") else { return };
    let same = |name: &str| body.get(name) == previous.get(name);
    let head = same("system") && same("tools");
    let change = if head { first_change(before, messages) } else { Some(0) };
    let Some(change) = change else { return };
    // The user's last message may have grown.
    let grown = change + 1 == before.len()
        && before.get(change).zip(messages.get(change)).is_some_and(|(one, other)| {
            let (one, other) = (list(one, "content"), list(other, "content"));
            !one.is_empty() && other.starts_with(one)
        });
    if grown {
        return;
    }
    let sent = before.iter().flat_map(|message| list(message, "content")).filter(|block| is_thinking(block));
    let sent: Vec<&Value> = sent.collect();
    for (number, message) in messages.iter().enumerate().skip(change) {
        for (place, block) in
            list(message, "content").iter().enumerate().filter(|(_, block)| is_thinking(block))
        {
            // In the message of the change itself, only blocks behind the change count.
            let inside = number == change && head;
            let early = inside
                && before.get(change).is_some_and(|message| {
                    list(message, "content").get(..=place)
                        == list(messages.get(change).unwrap_or(&Value::Null), "content").get(..=place)
                });
            if sent.contains(&block) && !early {
                let says = "messages.N.content.N: thinking block is bound to a different conversation";
                let at = format!("{base}/{number}/content/{place}");
                let expected = format!("no earlier reasoning behind the change at {base}/{change}");
                out.add("A5", at, expected, "a block that was made before it", says);
            }
        }
    }
}

fn is_thinking(block: &Value) -> bool {
    matches!(text(block, "type"), Some("thinking" | "redacted_thinking"))
}
