//! The shapes that `--json` prints, each with a schema (`acpdb man --schemas`), checked against the output of every verb.
//!
//! `SCHEMAS=write cargo test -p acpdb-tests --test schemas`, twice, widens `cli/src/shapes.txt` by the seen values: fields and types
//! are added, never taken away; a field that is not always there stops being required. A field that was only seen as null
//! allows any value, and is to be listed below with a reason. Read the difference before you commit it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests: a failed step is a failed test"
)]

#[path = "schemas/infer.rs"]
mod infer;
#[path = "schemas/samples.rs"]
mod samples;
#[path = "schemas/verbs.rs"]
mod verbs;
#[path = "schemas/witness.rs"]
mod witness;
#[allow(dead_code, reason = "shared with the transcripts")]
#[path = "cli/world.rs"]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use acpdb_tests::binary::root;
use regex::Regex;
use serde_json::{Value, json};

/// Answers by the shape that they name, each with the command that gave it.
type Answers = BTreeMap<String, Vec<(String, Value)>>;

fn list() -> PathBuf {
    root().join("cli/src/shapes.txt")
}

fn published() -> BTreeMap<String, Value> {
    let printed = world::World::new().run(&["man", "--schemas"]).ok();
    let schemas = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    schemas.map(|schema| (schema["title"].as_str().unwrap().to_owned(), schema)).collect()
}

/// Forbids fields that a schema does not name, so that a new field shows up here before users find it.
fn strict(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        if object.contains_key("properties") && !object.contains_key("additionalProperties") {
            object.insert("additionalProperties".to_owned(), false.into());
        }
        object.values_mut().for_each(strict);
    } else if let Some(list) = schema.as_array_mut() {
        list.iter_mut().for_each(strict);
    }
}

/// Widens the list by what was seen.
fn write(answers: &Answers) {
    let text = std::fs::read_to_string(list()).unwrap();
    let heads = text.lines().filter(|line| line.starts_with("acpdb."));
    let mut heads: BTreeMap<String, String> =
        heads.map(|line| (line.split(' ').next().unwrap().to_owned(), line.to_owned())).collect();
    let mut schemas = published();
    for (name, given) in answers {
        let mut schema = schemas.remove(name).unwrap_or(Value::Null);
        for (_, answer) in given {
            schema = infer::merged(schema, &infer::shape(answer));
        }
        schemas.insert(name.clone(), schema);
        let command = given.iter().map(|(command, _)| command.as_str()).min_by_key(|command| command.len());
        heads.entry(name.clone()).or_insert_with(|| format!("{name} {}", command.unwrap_or_default()));
    }
    let mut text = String::new();
    for (name, schema) in &schemas {
        writeln!(text, "{}", heads[name]).unwrap();
        infer::lines(schema, 1, &mut text);
    }
    std::fs::write(list(), text).unwrap();
}

#[test]
fn every_answer_has_the_published_shape() {
    let answers = verbs::answers();
    if std::env::var("SCHEMAS").as_deref() == Ok("write") {
        write(&answers);
    }
    let published = published();
    let mut findings = Vec::new();
    for (name, given) in &answers {
        let Some(schema) = published.get(name) else {
            findings.push(format!("{name} is not published: {}", given[0].0));
            continue;
        };
        let mut schema = schema.clone();
        strict(&mut schema);
        let validator = jsonschema::validator_for(&schema).unwrap();
        for (command, answer) in given {
            findings.extend(
                validator
                    .iter_errors(answer)
                    .map(|error| format!("acpdb {command}: {name} at {}: {error}", error.instance_path())),
            );
        }
    }
    let missing = published.keys().filter(|name| !answers.contains_key(*name));
    findings.extend(missing.map(|name| format!("no verb here gives {name}")));
    findings.dedup();
    findings.truncate(40);
    assert!(
        findings.is_empty(),
        "\n{}\n\nTo mend: see the head of tests/tests/schemas.rs\n",
        findings.join("\n")
    );
}

/// A shape that the program names in its source is published.
#[test]
fn every_shape_in_the_source_is_published() {
    let pattern = Regex::new(r#""(acpdb\.[a-z_]+/\d+)""#).unwrap();
    let published = published();
    let mut todo = vec![root().join("cli/src"), root().join("engine/src"), root().join("query/src")];
    let mut unknown = BTreeSet::new();
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let names = pattern.captures_iter(&text).map(|found| found[1].to_owned());
            unknown.extend(names.filter(|name| !published.contains_key(name)));
        }
    }
    // The data inside a page is the page's own affair.
    for own in ["acpdb.page/1", "acpdb.html/2", "acpdb.index/1", "acpdb.ui_search/1"] {
        unknown.remove(own);
    }
    assert!(unknown.is_empty(), "not in cli/src/shapes.txt: {unknown:?}");
}

/// One name is one shape: rows of a list and the members of a chain were `items` in one answer and `members` in the other,
/// so that their schema could ask for nothing but its own name.
#[test]
fn every_schema_asks_for_more_than_its_name() {
    for (name, schema) in published() {
        let required = schema["required"].as_array().unwrap();
        assert!(required.len() > 1, "{name} requires {required:?}");
    }
}

/// Fields that are null in every answer here, each with the reason: schema, place, reason.
const NULL_SO_FAR: &[(&str, &str, &str)] = &[];

/// A reader refuses an answer for a type that is too narrow. Fields that were only seen as null were published as nothing but
/// null, so an answer with a value there was refused.
#[test]
fn no_field_is_nothing_but_null() {
    let mut found = BTreeSet::new();
    for (name, schema) in published() {
        let mut places = vec![(String::new(), &schema)];
        while let Some((place, at)) = places.pop() {
            assert_ne!(at["type"], "null", "{name} at {place}");
            if infer::is_null_so_far(at) {
                found.insert((name.clone(), place.clone()));
            }
            let fields = at["properties"].as_object().into_iter().flatten();
            places.extend(fields.map(|(field, below)| (format!("{place}/{field}"), below)));
            places.extend(at.get("items").map(|items| (format!("{place}/0"), items)));
            places.extend(at.get("additionalProperties").map(|below| (format!("{place}/*"), below)));
        }
    }
    let listed = NULL_SO_FAR.iter().map(|(name, place, _)| ((*name).to_owned(), (*place).to_owned()));
    assert_eq!(found, listed.collect(), "an answer in tests/tests/schemas/ should have a value there");
}

/// The schema of a field that was null may not refuse the first value that comes, and still takes null behind it.
#[test]
fn a_field_that_was_null_takes_any_value_until_one_is_seen() {
    let takes = |schema: &Value, value: Value| jsonschema::validator_for(schema).unwrap().is_valid(&value);
    let of =
        |seen: &[Value]| seen.iter().map(infer::shape).reduce(|all, one| infer::merged(all, &one)).unwrap();
    let null = of(&[json!({"at": null, "list": [null]})]);
    assert!(takes(&null, json!({"at": 1, "list": ["a", 2]})));
    // So is a field that was published as nothing but null.
    let published = json!({"type": "object", "properties": {"at": {"type": "null"}}, "required": ["at"]});
    let seen = infer::merged(published, &infer::shape(&json!({"at": null})));
    assert!(takes(&seen, json!({"at": 1})), "{seen}");
    for [first, second] in [[Value::Null, json!(1)], [json!(1), Value::Null]] {
        let schema = of(&[json!({"at": first, "list": [first]}), json!({"at": second, "list": [second]})]);
        assert!(takes(&schema, json!({"at": null, "list": [null, 1]})), "{schema}");
        assert!(takes(&schema, json!({"at": 1, "list": []})), "{schema}");
        assert!(!takes(&schema, json!({"at": "1", "list": []})), "{schema}");
        assert!(!takes(&schema, json!({"at": 1, "list": ["1"]})), "{schema}");
    }
    // A field that is sometimes absent is not asked for, in any order, and also if a schema asks for nothing.
    for seen in [[json!({"at": 1}), json!({})], [json!({}), json!({"at": 1})]] {
        assert!(takes(&of(&seen), json!({})), "{seen:?}");
    }
    let open = json!({"type": "object", "properties": {"at": {"type": "integer"}}});
    assert!(takes(&infer::merged(open, &infer::shape(&json!({"at": 1}))), json!({})));
}

/// The check can fail: an answer with a field too many, too few, or of another type is found.
#[test]
fn a_changed_answer_is_found() {
    let mut schema = infer::shape(&json!({"schema": "acpdb.x/1", "count": 1, "items": [{"id": "a"}]}));
    strict(&mut schema);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let good = json!({"schema": "acpdb.x/1", "count": 2, "items": []});
    assert!(validator.is_valid(&good));
    for (path, value) in
        [("/count", json!("2")), ("/items", json!([{}])), ("/items", json!([{"id": "a", "more": 1}]))]
    {
        let mut bad = good.clone();
        *bad.pointer_mut(path).unwrap() = value;
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}
