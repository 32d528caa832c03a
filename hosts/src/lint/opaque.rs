//! I4: what only the provider can read comes back byte for byte, on the part that it came with.
//!
//! Compared with the request before: a part that is in both, by its call id or its own words, bears the same opaque field
//! or none. Which parts must bear one is what A4, R4 and G3 ask.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Findings, text};
use crate::export::SKIPPED_SIGNATURE;

/// Fields that only the provider can read.
const OPAQUE: &[&str] = &["signature", "encrypted_content", "thoughtSignature"];
/// Nested values that are looked at; a request has five or six.
const DEPTH_MAX: usize = 12;

/// A part with an opaque field: where, which part, the field's name, its value.
struct Part<'v> {
    pointer: String,
    anchor: String,
    field: &'static str,
    value: &'v str,
}

pub(super) fn check(body: &Value, previous: &Value, out: &mut Findings) {
    let mut known: BTreeMap<(String, &str), BTreeSet<&str>> = BTreeMap::new();
    for part in parts(previous) {
        known.entry((part.anchor, part.field)).or_default().insert(part.value);
    }
    for Part { pointer, anchor, field, value } in parts(body) {
        let is_other = |values: &BTreeSet<&str>| !values.contains(value) && value != SKIPPED_SIGNATURE;
        if known.get(&(anchor, field)).is_some_and(is_other) {
            let says = match field {
                "signature" => "Invalid `signature` in `thinking` block",
                "thoughtSignature" => "Thought signature is not valid",
                _ => "The encrypted content could not be verified.",
            };
            let expected = "the bytes that the part came with";
            out.add("I4", format!("{pointer}/{field}"), expected, "others", says);
        }
    }
}

/// What tells a part from others: its call, or its own words.
fn anchor(value: &Value) -> Option<String> {
    let id = |value: &Value| ["call_id", "id"].iter().find_map(|name| text(value, name).map(str::to_owned));
    let call = value.get("functionCall").and_then(id);
    let words = ["thinking", "text"].iter().find_map(|name| text(value, name).filter(|it| !it.is_empty()));
    let summary = value.get("summary").filter(|it| it.as_array().is_some_and(|it| !it.is_empty()));
    call.or_else(|| id(value)).or_else(|| words.map(str::to_owned)).or_else(|| summary.map(Value::to_string))
}

fn parts(body: &Value) -> Vec<Part<'_>> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), body, 0)];
    while let Some((pointer, value, depth)) = open.pop() {
        if depth > DEPTH_MAX {
            continue;
        }
        match value {
            Value::Array(values) => {
                let inner = values.iter().enumerate();
                open.extend(inner.map(|(place, value)| (format!("{pointer}/{place}"), value, depth + 1)));
            }
            Value::Object(fields) => {
                for field in OPAQUE {
                    if let (Some(value), Some(anchor)) = (text(value, field), anchor(value)) {
                        found.push(Part { pointer: pointer.clone(), anchor, field, value });
                    }
                }
                // What a tool was given and what it gave is no part; the list of all items has the same name.
                let inner = fields.iter().filter(|(name, _)| {
                    depth == 0 || !matches!(name.as_str(), "input" | "args" | "response")
                });
                open.extend(inner.map(|(name, value)| (format!("{pointer}/{name}"), value, depth + 1)));
            }
            _ => {}
        }
    }
    found.sort_by(|one, other| one.pointer.cmp(&other.pointer));
    found
}
