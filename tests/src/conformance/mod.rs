//! Recorded behaviour: vectors of the originals, with what a correct engine gives instead where they err.
//!
//! A vector passes when every field of `expected`, overlaid by `sane`, equals what the engine gives. The judges here
//! turn a vector into calls of the engine and back; they know no vector by name.

pub mod memory;
pub mod sigma;
pub mod todos;

use std::path::PathBuf;

use serde_json::{Map, Value};

/// Fields that a vector gives for information only.
const INFORMATIVE: [&str; 2] = ["resuperseded", "stats"];

/// Reads the vectors of one file; `None`, said on standard output, if they are not on this machine.
///
/// They lie in `shared/conformance` beside the repository, or beside a folder that holds it.
pub fn vectors(file: &str) -> Option<Vec<Value>> {
    let crate_folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let found = crate_folder
        .ancestors()
        .map(|folder| folder.join("shared/conformance").join(file))
        .find_map(|path| std::fs::read(path).ok());
    let Some(bytes) = found else {
        println!("skipped: no shared/conformance/{file} beside the repository");
        return None;
    };
    serde_json::from_slice(&bytes).ok()
}

/// What a vector says a correct engine gives: `expected`, overlaid by `sane`.
pub fn expected(vector: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    for name in ["expected", "sane"] {
        let overlay = vector.get(name).and_then(Value::as_object).into_iter().flatten();
        fields.extend(overlay.map(|(name, value)| (name.clone(), value.clone())));
    }
    fields.retain(|name, _| !INFORMATIVE.contains(&name.as_str()));
    fields
}

/// Compares the fields of `names` (all, if empty): one line for each that differs.
pub fn differences(vector: &Value, given: &Value, names: &[&str]) -> Vec<String> {
    expected(vector)
        .iter()
        .filter(|(name, _)| names.is_empty() || names.contains(&name.as_str()))
        .filter(|(name, value)| !equal(given.get(name.as_str()).unwrap_or(&Value::Null), value))
        .map(|(name, value)| {
            let title = vector.get("name").and_then(Value::as_str).unwrap_or("?");
            let given = given.get(name.as_str()).unwrap_or(&Value::Null);
            format!("{title}: {name}\n  expected {value}\n  given    {given}")
        })
        .collect()
}

/// Judges every vector of `files` that has `profile`; prints the score and gives what differs.
pub fn judged(
    files: &[&str],
    profile: &str,
    names: &[&str],
    judge: impl Fn(&Value) -> Result<Value, String>,
) -> Vec<String> {
    let vectors: Vec<Value> = files.iter().filter_map(|file| vectors(file)).flatten().collect();
    let mut different = Vec::new();
    let (mut count, mut passed) = (0, 0);
    for vector in vectors.iter().filter(|vector| vector.get("profile") == Some(&Value::from(profile))) {
        let found =
            judge(vector).map_or_else(|error| vec![error], |given| differences(vector, &given, names));
        count += 1;
        passed += u32::from(found.is_empty());
        different.extend(found);
    }
    println!("{profile}: {passed} of {count} vectors");
    different
}

/// JSON equality by value: `1` and `1.0` are one number, the order of keys does not matter.
fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| equal(left, right)))
        }
        _ => left == right,
    }
}
