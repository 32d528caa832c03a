//! Recorded behaviour: vectors of the originals, with the results of a correct engine where the originals err.
//!
//! A vector passes when every field of `expected`, overlaid by `sane`, equals the engine's result. The judges here
//! turn a vector into calls of the engine and back; they know no vector by name.

pub mod calls;
pub mod memory;
pub mod sigma;
pub mod todos;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Fields that a vector gives for information only.
const INFORMATIVE: [&str; 2] = ["resuperseded", "stats"];

/// The folder of the vectors.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

/// Reads the vectors of one file.
///
/// # Panics
/// If it is not there, or holds none: a test without its vectors tests nothing.
pub fn vectors(file: &str) -> Vec<Value> {
    let path = folder().join(file);
    let bytes = std::fs::read(&path).unwrap_or_default();
    let all: Vec<Value> = serde_json::from_slice(&bytes).unwrap_or_default();
    assert!(!all.is_empty(), "no vectors in {}", path.display());
    all
}

/// The result that a vector wants of a correct engine: `expected`, overlaid by `sane`.
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

/// Judges every vector of `files` that has `profile`; prints the score and returns the differences.
pub fn judged(
    files: &[&str],
    profile: &str,
    names: &[&str],
    judge: impl Fn(&Value) -> Result<Value, String>,
) -> Vec<String> {
    let vectors: Vec<Value> = files.iter().flat_map(|file| vectors(file)).collect();
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

/// The outcome of one vector.
#[derive(Debug)]
pub struct Outcome {
    /// Its name.
    pub name: String,
    /// Its profile.
    pub profile: String,
    /// One entry for each field that differs; empty if it passed.
    pub differences: Vec<String>,
}

/// Runs a vector in the engine and returns its result, for the vectors of some profiles.
type Judge = fn(&Value) -> Result<Value, String>;

/// Which judge a profile has.
const JUDGES: &[(&str, Judge)] = &[
    ("acp-seed", calls::judge),
    ("acp-head", calls::judge),
    ("dcp", calls::judge),
    ("dcp-supersede-reads", calls::judge),
    ("copilot-memory", |vector| Ok(memory::run(vector))),
    ("copilot-corrections", |vector| Ok(memory::run(vector))),
    ("sigma-validation", |vector| Ok(sigma::validation(vector))),
    ("sigma-evict", sigma::evict),
];

/// Judges one vector. Its profile alone decides how; lists compare in order, but for `superseded` of the dcp profiles.
pub fn run(vector: &Value) -> Outcome {
    let text = |field: &str| vector.get(field).and_then(Value::as_str).unwrap_or("?").to_owned();
    let (name, profile) = (text("name"), text("profile"));
    let judge = JUDGES.iter().find(|(known, _)| *known == profile).map(|(_, judge)| judge);
    let differences = match judge.map(|judge| judge(vector)) {
        None => vec![format!("{name}: unknown profile `{profile}`")],
        Some(Err(error)) => vec![format!("{name}: {error}")],
        Some(Ok(given)) => {
            let mut vector = vector.clone();
            if profile.starts_with("dcp") {
                for part in ["expected", "sane"] {
                    let list =
                        vector.pointer_mut(&format!("/{part}/superseded")).and_then(Value::as_array_mut);
                    if let Some(list) = list {
                        list.sort_by_key(Value::to_string);
                    }
                }
            }
            differences(&vector, &given, &[])
        }
    };
    Outcome { name, profile, differences }
}

/// Judges every vector in the `*.json` files of a folder, of one profile or of all, in order of file and vector.
///
/// # Errors
/// Says which file cannot be read.
pub fn run_folder(folder: &std::path::Path, profile: Option<&str>) -> Result<Vec<Outcome>, String> {
    let listed =
        std::fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = listed.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let mut outcomes = Vec::new();
    for path in paths {
        let read =
            std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let vectors: Vec<Value> =
            serde_json::from_slice(&read).map_err(|error| format!("{}: {error}", path.display()))?;
        let wanted = |vector: &&Value| {
            profile.is_none_or(|profile| vector.get("profile").and_then(Value::as_str) == Some(profile))
        };
        outcomes.extend(vectors.iter().filter(wanted).map(run));
    }
    Ok(outcomes)
}
