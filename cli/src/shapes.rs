//! The shapes of answers for programs, as JSON Schemas.
//!
//! ```text
//! acpdb.act/1 undo --session s1       the name of the shape, and a command that prints it
//!   last_seq integer|null             a field, and its types
//!   event? string                     a field that is not always there
//!   items [object]                    a list of objects; their fields follow, two blanks further in
//!   kinds {object}                    objects by name
//! ```
//!
//! The list is the law: fields are added to it and never taken away. A test compares it with the answers of all verbs.

use std::iter::Peekable;

use serde_json::{Map, Value, json};

const SHAPES: &str = include_str!("shapes.txt");

/// The lines that are left, each with its depth.
type Lines<'a> = Peekable<Box<dyn Iterator<Item = (usize, &'a str)> + 'a>>;

/// A schema for each shape, in order of their names.
pub(crate) fn schemas() -> Vec<Value> {
    let lines = SHAPES.lines().map(|line| {
        let text = line.trim_start();
        ((line.len() - text.len()) / 2, text)
    });
    let mut lines: Lines<'_> = (Box::new(lines) as Box<dyn Iterator<Item = _>>).peekable();
    let mut found = Vec::new();
    while let Some((_, head)) = lines.next() {
        let (name, says) = head.split_once(' ').unwrap_or((head, ""));
        let (command, says) = says.split_once("  ").unwrap_or((says, ""));
        let mut schema = of("object", &fields(&mut lines, 1));
        for (key, value) in [
            ("$schema", json!("https://json-schema.org/draft/2020-12/schema")),
            ("title", json!(name)),
            ("description", json!(format!("`acpdb {command} --json` prints it. {says}").trim_end())),
        ] {
            put(&mut schema, key, value);
        }
        if let Some(properties) = schema.get_mut("properties") {
            put(properties, "schema", json!({"const": name}));
        }
        if let Some(Value::Array(required)) = schema.get_mut("required") {
            required.push(json!("schema"));
        }
        found.push(schema);
    }
    found
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

/// The fields of an object at this depth: their schemas, and the names of those that are always there.
fn fields(lines: &mut Lines<'_>, depth: usize) -> (Map<String, Value>, Vec<String>) {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    while let Some((_, line)) = lines.next_if(|(found, _)| *found == depth) {
        let (name, kind) = line.split_once(' ').unwrap_or((line, "any"));
        let always = name.strip_suffix('?');
        if always.is_none() {
            required.push(name.to_owned());
        }
        let below = fields(lines, depth + 1);
        properties.insert(always.unwrap_or(name).to_owned(), of(kind, &below));
    }
    (properties, required)
}

/// The schema of a kind, whose objects have the fields `below`.
fn of(kind: &str, below: &(Map<String, Value>, Vec<String>)) -> Value {
    // A reader refuses what is no null where nothing else was seen: such a field may have any value.
    match kind {
        "any" => return json!({"$comment": "any value"}),
        "null" => return json!({"$comment": "no value but null was seen here: any may come"}),
        _ => {}
    }
    let mut schema = json!({});
    let mut types = Vec::new();
    for part in parts(kind) {
        let inside = |open, close| part.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
        if let Some(item) = inside('[', ']') {
            types.push("array");
            put(&mut schema, "items", if item.is_empty() { json!({}) } else { of(item, below) });
        } else if let Some(item) = inside('{', '}') {
            types.push("object");
            put(
                &mut schema,
                "additionalProperties",
                if item.is_empty() { json!(true) } else { of(item, below) },
            );
        } else {
            types.push(part);
            if part == "object" {
                put(&mut schema, "properties", json!(below.0));
                put(&mut schema, "required", json!(below.1));
            }
        }
    }
    put(&mut schema, "type", if let [one] = types.as_slice() { json!(one) } else { json!(types) });
    schema
}

/// The alternatives of a kind: `[string|null]|null` has two.
fn parts(kind: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    kind.split(move |letter| {
        match letter {
            '[' | '{' => depth += 1,
            // The list closes what it opened.
            ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == '|' && depth == 0
    })
}
