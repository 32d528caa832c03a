//! O1 to O4.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::lint::{Findings, kind_of, list, text};

pub(super) fn check(body: &Value, _: Option<&Value>, _: Option<&str>, out: &mut Findings) {
    let Some((base, messages)) = out.messages(body, "messages") else { return };
    let mut open: Vec<&str> = Vec::new();
    let mut answered: BTreeSet<&str> = BTreeSet::new();
    let mut open_at = String::new();
    for (number, message) in messages.iter().enumerate() {
        let at = format!("{base}/{number}");
        let role = text(message, "role").unwrap_or_default();
        if !matches!(role, "system" | "developer" | "user" | "assistant" | "tool" | "function") {
            let says = "Invalid value for 'role'";
            out.add("shape", format!("{at}/role"), "a role", format!("{role:?}"), says);
        }
        let calls = list(message, "tool_calls");
        content(message, role, calls.is_empty(), &at, out);
        if role == "tool" {
            let id = text(message, "tool_call_id").unwrap_or_default();
            if let Some(place) = open.iter().position(|call| *call == id) {
                open.remove(place);
                answered.insert(id);
            } else {
                let says =
                    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
                let found = if answered.contains(id) { "a second result" } else { "a result without call" };
                let expected = "an open call of that id";
                out.add("O2", format!("{at}/tool_call_id"), expected, format!("{found}: {id:?}"), says);
            }
            continue;
        }
        unanswered(&mut open, &open_at, out);
        answered.clear();
        let mut ids = BTreeSet::new();
        for (place, call) in calls.iter().enumerate() {
            let at = format!("{at}/tool_calls/{place}");
            let id = text(call, "id").unwrap_or_default();
            if id.is_empty() || !ids.insert(id) {
                let says = "Duplicate value for 'tool_call_id'";
                out.add("O1", format!("{at}/id"), "an id of its own", format!("{id:?}"), says);
            }
            if id.len() > 40 {
                let says = "Invalid 'messages[N].tool_calls[N].id': string too long. Expected a string with maximum length 40";
                let expected = "an id of at most 40 bytes";
                out.add("O1", format!("{at}/id"), expected, format!("{} bytes", id.len()), says);
            }
            let arguments = call.get("function").and_then(|function| function.get("arguments"));
            if !arguments.is_some_and(Value::is_string) {
                let found = arguments.map_or("nothing", kind_of);
                let says =
                    "Invalid type for 'messages[N].tool_calls[N].function.arguments': expected a string";
                out.add("O3", format!("{at}/function/arguments"), "JSON in a string", found, says);
            }
            open.push(id);
        }
        open_at = at;
    }
    unanswered(&mut open, &open_at, out);
}

fn unanswered(open: &mut Vec<&str>, at: &str, out: &mut Findings) {
    for id in open.drain(..) {
        let says = format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {id}"
        );
        out.add("O1", at.to_owned(), format!("a tool message for {id} directly behind"), "none", says);
    }
}

fn content(message: &Value, role: &str, is_alone: bool, at: &str, out: &mut Findings) {
    match message.get("content") {
        Some(Value::String(_) | Value::Array(_)) => {}
        None | Some(Value::Null) if role == "assistant" && !is_alone => {}
        other => {
            let found = other.map_or("nothing", kind_of);
            let says = "Invalid value for 'content': expected a string, got null.";
            out.add("O4", format!("{at}/content"), "a text or a list of parts", found, says);
        }
    }
}
