//! I4: a field that only the provider can read comes back byte for byte, on the part that it came with.
//!
//! Compared with the request before: a part that is in both, by its call id or its own words, bears the same opaque field
//! or none. A4, R4 and G3 check which parts must bear one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Findings, text};
use crate::export::Format;

/// Deepest nesting that is read; a request has five or six levels.
const DEPTH_MAX: usize = 12;

/// A part with an opaque field: pointer, anchor, the field's name with its provider's words for a wrong value, and the
/// value.
struct OpaqueField<'v> {
    pointer: String,
    anchor: String,
    field: (&'static str, &'static str),
    value: &'v str,
}

pub(super) fn check(body: &Value, previous: &Value, out: &mut Findings) {
    let mut known: BTreeMap<(String, &str), BTreeSet<&str>> = BTreeMap::new();
    for part in parts(previous) {
        known.entry((part.anchor, part.field.0)).or_default().insert(part.value);
    }
    for OpaqueField { pointer, anchor, field: (field, says), value } in parts(body) {
        let is_skipped = Format::requests().any(|request| request.skips == Some(value));
        let is_other = |values: &BTreeSet<&str>| !values.contains(value) && !is_skipped;
        if known.get(&(anchor, field)).is_some_and(is_other) {
            let expected = "the bytes that the part came with";
            out.add("I4", format!("{pointer}/{field}"), expected, "others", says);
        }
    }
}

/// The mark that tells a part from others: its call, or its own words.
fn anchor(value: &Value) -> Option<String> {
    let id = |value: &Value| ["call_id", "id"].iter().find_map(|name| text(value, name).map(str::to_owned));
    let call = value.get("functionCall").and_then(id);
    let words = ["thinking", "text"].iter().find_map(|name| text(value, name).filter(|it| !it.is_empty()));
    let summary = value.get("summary").filter(|it| it.as_array().is_some_and(|it| !it.is_empty()));
    call.or_else(|| id(value)).or_else(|| words.map(str::to_owned)).or_else(|| summary.map(Value::to_string))
}

fn parts(body: &Value) -> Vec<OpaqueField<'_>> {
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
                for field in Format::requests().flat_map(|request| request.opaque) {
                    if let (Some(value), Some(anchor)) = (text(value, field.0), anchor(value)) {
                        found.push(OpaqueField { pointer: pointer.clone(), anchor, field: *field, value });
                    }
                }
                // Inputs and results of tools are no parts. The list of all items, at depth 0, may have the same name.
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
