//! A schema from seen values: types, fields, and which of them are always there.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// The remark of a schema for a value that was null whenever it was seen. It has no type, so it allows all.
const NULL_SO_FAR: &str = "no value but null was seen here: any may come";

fn null_so_far() -> Value {
    json!({"$comment": NULL_SO_FAR})
}

/// Whether a schema stands for a value that was null whenever it was seen.
pub(crate) fn is_null_so_far(schema: &Value) -> bool {
    schema["$comment"] == NULL_SO_FAR || types(schema) == ["null"]
}

/// The shape of one value. A field that is null may be anything: nothing was seen of it.
pub(crate) fn shape(value: &Value) -> Value {
    match value {
        Value::Null => null_so_far(),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) if number.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(list) => {
            let items = list.iter().map(shape).fold(Value::Null, |all, one| merged(all, &one));
            let items = if items.is_null() { json!({}) } else { items };
            json!({"type": "array", "items": items})
        }
        Value::Object(fields) => {
            let properties: Map<String, Value> =
                fields.iter().map(|(name, value)| (name.clone(), shape(value))).collect();
            let required: Vec<&String> = fields.keys().collect();
            json!({"type": "object", "properties": properties, "required": required})
        }
    }
}

fn types(schema: &Value) -> Vec<String> {
    match &schema["type"] {
        Value::String(name) => vec![name.clone()],
        Value::Array(names) => names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
        _ => Vec::new(),
    }
}

/// The schema that also allows null. One without a type allows it as it is.
fn or_null(mut schema: Value) -> Value {
    let mut all = types(&schema);
    if !all.is_empty() && !all.iter().any(|name| name == "null") {
        all.push("null".to_owned());
        all.sort();
        schema["type"] = json!(all);
    }
    schema
}

/// A schema that allows all that either allows. An empty one allows all.
///
/// A value that was null so far gets the type of the first other value, and stays null or that.
pub(crate) fn merged(known: Value, seen: &Value) -> Value {
    let Value::Object(mut schema) = known else { return seen.clone() };
    if schema.is_empty() {
        // An array of which no item was seen; then this value alone gives the schema.
        return seen.clone();
    }
    let is_null_before = schema.get("type").is_some_and(|name| name == "null")
        || schema.get("$comment").is_some_and(|remark| remark == NULL_SO_FAR);
    match (is_null_before, is_null_so_far(seen)) {
        (true, true) => return null_so_far(),
        (true, false) => return or_null(seen.clone()),
        (false, true) => return or_null(Value::Object(schema)),
        (false, false) => {}
    }
    if schema.contains_key("const") || schema.contains_key("enum") || !schema.contains_key("type") {
        return Value::Object(schema);
    }
    let known = Value::Object(schema.clone());
    let mut all = types(&known);
    for name in types(seen) {
        let is_covered = name == "integer" && all.iter().any(|known| known == "number");
        if !is_covered && !all.contains(&name) {
            all.push(name);
        }
    }
    if all.iter().any(|name| name == "number") {
        all.retain(|name| name != "integer");
    }
    all.sort();
    let of_type = if let [one] = all.as_slice() { json!(one) } else { json!(all) };
    schema.insert("type".to_owned(), of_type);
    match (schema.get("items").cloned(), seen.get("items")) {
        (Some(own), Some(other)) if other.as_object().is_some_and(|other| !other.is_empty()) => {
            schema.insert("items".to_owned(), merged(own, other));
        }
        (None, Some(other)) => {
            schema.insert("items".to_owned(), other.clone());
        }
        _ => {}
    }
    if let Some(other) = seen.get("properties").and_then(Value::as_object) {
        // A map by name has no fields of its own.
        if schema.contains_key("additionalProperties") {
            return Value::Object(schema);
        }
        let is_first = !schema.contains_key("properties");
        let own = schema.entry("properties").or_insert_with(|| json!({}));
        for (name, shape) in other {
            let before = own.get(name).cloned().unwrap_or(Value::Null);
            own[name] = merged(before, shape);
        }
        let here = seen["required"].as_array().cloned().unwrap_or_default();
        let required = match schema.get("required").and_then(Value::as_array) {
            _ if is_first => here,
            Some(known) => known.iter().filter(|name| here.contains(name)).cloned().collect(),
            None => Vec::new(),
        };
        schema.insert("required".to_owned(), Value::Array(required));
    }
    Value::Object(schema)
}

/// The fields below a schema, a line each, as `cli/src/shapes.txt` has them.
pub(crate) fn lines(schema: &Value, depth: usize, text: &mut String) {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        for below in ["items", "additionalProperties"].iter().filter_map(|below| schema.get(below)) {
            lines(below, depth, text);
        }
        return;
    };
    let required = schema["required"].as_array().unwrap();
    let fields: BTreeMap<&String, &Value> = fields.iter().collect();
    for (name, below) in fields {
        if depth == 1 && name == "schema" {
            continue;
        }
        let mark = if required.iter().any(|known| known == name) { "" } else { "?" };
        writeln!(text, "{}{name}{mark} {}", "  ".repeat(depth), kind(below)).unwrap();
        lines(below, depth + 1, text);
    }
}

/// The types of a schema in a word.
fn kind(schema: &Value) -> String {
    if is_null_so_far(schema) {
        return "null".to_owned();
    }
    let inside =
        |name: &str| schema.get(name).filter(|below| !types(below).is_empty()).map(kind).unwrap_or_default();
    let word = |name: String| match name.as_str() {
        "array" => format!("[{}]", inside("items")),
        "object" if schema.get("additionalProperties").is_some() => {
            format!("{{{}}}", inside("additionalProperties"))
        }
        _ => name,
    };
    let words: Vec<String> = types(schema).into_iter().map(word).collect();
    if words.is_empty() { "any".to_owned() } else { words.join("|") }
}
