//! An event of every kind as `log` and `show` print it, with each optional field both there and not there.
//!
//! No store of a test has them all. So the payloads are samples, and the program prints the same types.

use acpdb_engine::event::{Body, Payload, TodoUpdate, samples};
use serde_json::{Value, json};

use crate::Answers;

const BODY: Body = Body { first: 0, chunks: 1, bytes: 4, tokens: 1, lines: 1 };

/// Adds the answers. Events get the frame of one that the program printed.
pub(crate) fn keep(answers: &mut Answers) {
    let frame = |name: &str| answers[name][0].1.clone();
    let frames = [("acpdb.event/1", "log"), ("acpdb.show/1", "show")].map(|(name, verb)| (frame(name), verb));
    // A kind that a newer program wrote is listed, too.
    let unknown = Payload::Unknown { number: 999, version: 1, bytes: vec![1] };
    for payload in all().iter().chain([&unknown]) {
        for (frame, verb) in &frames {
            let mut answer = frame.clone();
            answer["kind"] = json!(payload.label());
            answer["payload"] = json!(payload);
            add(answers, verb, payload, answer);
        }
    }
}

fn add(answers: &mut Answers, verb: &str, payload: &Payload, answer: Value) {
    let name = answer["schema"].as_str().unwrap().to_owned();
    answers.entry(name).or_default().push((format!("{verb} (a sample of {})", payload.label()), answer));
}

/// A payload of every kind, in all its forms.
fn all() -> Vec<Payload> {
    let whole = samples::payloads();
    let list = whole.iter().find_map(|payload| match payload {
        Payload::TodosReplaced(replaced) => Some(replaced.list.clone()),
        _ => None,
    });
    // An enum is a sample in one of its variants.
    let mut lists = whole.clone();
    lists.retain_mut(|payload| match payload {
        Payload::ToolCallFinished(finished) => {
            finished.todos = list.clone().map(TodoUpdate::List);
            true
        }
        _ => false,
    });
    assert_eq!(lists.len(), 1);
    whole.iter().chain(&lists).flat_map(forms).collect()
}

/// A payload, and the same with one value changed, each in turn: an optional value is left out, or is there; a list is empty.
fn forms(payload: &Payload) -> Vec<Payload> {
    let fields = samples::fields(payload);
    let mut paths = Vec::new();
    places(&fields, "", &mut paths);
    let mut forms = vec![payload.clone()];
    for path in paths {
        let others = match fields.pointer(&path).unwrap() {
            Value::Null => vec![json!("a"), json!(1), json!(BODY)],
            Value::Array(_) => vec![Value::Null, json!([])],
            _ => vec![Value::Null],
        };
        for other in others {
            let mut fields = fields.clone();
            *fields.pointer_mut(&path).unwrap() = other;
            // The type decides which of these values may stand there.
            forms.extend(samples::with_fields(payload, fields));
        }
    }
    forms
}

/// The places of all values below one.
fn places(value: &Value, at: &str, paths: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (name, value) in below {
        let path = format!("{at}/{name}");
        places(value, &path, paths);
        paths.push(path);
    }
}
