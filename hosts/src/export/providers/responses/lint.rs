//! R1 to R5.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::lint::{Findings, kind_of, text};

/// Fields that only answers have; sent back as null they are refused.
const OUTPUT_ONLY: &[&str] = &["status", "created_at", "error", "incomplete_details", "usage"];

pub(super) fn check(body: &Value, previous: Option<&Value>, _: Option<&str>, out: &mut Findings) {
    // A text for input is a message of the user.
    if text(body, "input").is_some() {
        return;
    }
    let Some((base, items)) = out.messages(body, "input") else { return };
    // The provider keeps the items before these, calls too.
    let goes_on =
        ["previous_response_id", "conversation"].iter().any(|it| body.get(it).is_some_and(|it| !it.is_null()));
    let stored = body.get("store").and_then(Value::as_bool) != Some(false);
    // By call id: where the call stands, whether it was answered, and its kind.
    let mut calls: BTreeMap<&str, (String, bool, &str)> = BTreeMap::new();
    for (number, item) in items.iter().enumerate() {
        let at = format!("{base}/{number}");
        let kind = text(item, "type").unwrap_or("message");
        for name in OUTPUT_ONLY.iter().filter(|name| item.get(**name).is_some_and(Value::is_null)) {
            let says =
                format!("Invalid type for 'input[N].{name}': expected one of .., but got null instead.");
            out.add("R5", format!("{at}/{name}"), "no such field", "null", says);
        }
        match kind {
            "reasoning" => reasoning(item, items.get(number + 1), stored, &at, out),
            "function_call" | "custom_tool_call" | "local_shell_call" | "computer_call" => {
                let id = text(item, "call_id").unwrap_or_default();
                if id.is_empty() || calls.contains_key(id) {
                    let says = "Duplicate item found with call_id";
                    out.add("R1", format!("{at}/call_id"), "an id of its own", format!("{id:?}"), says);
                } else {
                    calls.insert(id, (at.clone(), false, kind));
                }
                let name = if kind == "custom_tool_call" { "input" } else { "arguments" };
                if matches!(kind, "function_call" | "custom_tool_call") && text(item, name).is_none() {
                    let found = item.get(name).map_or("nothing", kind_of);
                    let says = format!("Invalid type for 'input[N].{name}': expected a string");
                    out.add("R1", format!("{at}/{name}"), "a string", found, says);
                }
            }
            _ if kind.ends_with("_call_output") => {
                let id = text(item, "call_id").unwrap_or_default();
                let wanted = kind.strip_suffix("_output").unwrap_or_default();
                match calls.get_mut(id) {
                    Some((_, answered @ false, kind)) if *kind == wanted => *answered = true,
                    None if goes_on => {}
                    other => {
                        let found = match other {
                            Some((_, true, _)) => "a second output",
                            Some(_) => "an output of another kind than the call",
                            None => "an output without call",
                        };
                        let says = format!("No tool call found for function call output with call_id {id}.");
                        let expected = "a call of that id before it";
                        out.add("R1", format!("{at}/call_id"), expected, format!("{found}: {id:?}"), says);
                    }
                }
            }
            _ => {}
        }
    }
    for (id, (at, _, _)) in calls.iter().filter(|(_, (_, answered, _))| !answered) {
        let says = format!("No tool output found for function call {id}.");
        out.add("R1", at.clone(), format!("an output for {id}"), "none", says);
    }
    if let Some(previous) = previous {
        units(&base, items, previous, out);
    }
}

fn reasoning(item: &Value, next: Option<&Value>, stored: bool, at: &str, out: &mut Findings) {
    if !stored && text(item, "encrypted_content").is_none_or(str::is_empty) {
        let says = "Item with id 'rs_..' not found. Items are not persisted when `store` is set to false.";
        out.add("R4", format!("{at}/encrypted_content"), "the encrypted content", "nothing", says);
    }
    let kind = next.map(|next| text(next, "type").unwrap_or("message"));
    let leads = match (kind, next) {
        (Some("message"), Some(next)) => text(next, "role") == Some("assistant"),
        (Some(kind), _) => kind == "reasoning" || kind.ends_with("_call") || kind.starts_with("compaction"),
        (None, _) => false,
    };
    if !leads {
        let says = "Item 'rs_..' of type 'reasoning' was provided without its required following item.";
        let found = kind.map_or("the end".to_owned(), str::to_owned);
        out.add("R2", at.to_owned(), "what the reasoning led to, directly behind it", found, says);
    }
}

/// A call that was made with reasoning needs it: compared with the request before.
fn units(base: &str, items: &[Value], previous: &Value, out: &mut Findings) {
    let mut ignored = Findings::default();
    let Some((_, before)) = ignored.messages(previous, "input") else { return };
    let is = |item: &Value, kind: &str| text(item, "type") == Some(kind);
    let id = |item: &Value| text(item, "call_id").map(str::to_owned);
    for pair in before.windows(2) {
        let [reasoning, made] = pair else { continue };
        if !is(reasoning, "reasoning") || !(is(made, "function_call") || is(made, "custom_tool_call")) {
            continue;
        }
        let now =
            items.iter().position(|item| id(item) == id(made) && text(item, "type") == text(made, "type"));
        let Some(now) = now else { continue };
        let kept =
            now.checked_sub(1).and_then(|place| items.get(place)).is_some_and(|item| item == reasoning);
        if !kept {
            let says = "Item 'fc_..' of type 'function_call' was provided without its required 'reasoning' item: 'rs_..'.";
            let expected = "the reasoning that the call was made with, directly before it";
            out.add("R3", format!("{base}/{now}"), expected, "the call alone", says);
        }
    }
}
