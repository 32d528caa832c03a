//! Judges for tasks: how summaries are validated, and how an eviction changes a Gemini-shaped history.
//!
//! ```text
//! history --messages, calls, results; then the updates of tasks--> Tape --> State --faces, placeholders--> history
//! ```

use acpdb_engine::command::draft::{Bodies, EventDraft};
use acpdb_engine::command::task::TaskUpdate;
use acpdb_engine::command::validate::{Requirements, validate};
use acpdb_engine::entry::{Entry, PartEntry, fact};
use acpdb_engine::event::{
    Face, PartKind, PolicySet, Role, TaskChanged, TaskEvicted, TaskFields, TaskStatus,
};
use acpdb_engine::fold::{Policy, Render, render};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::testing::Tape;
use serde_json::{Value, json};

/// The host whose histories the vectors hold.
const HOST: &str = "gemini-cli";
/// The call by which a message changes tasks.
const UPDATE_CALL: &str = "SigmaTaskUpdate";

/// Judges a `sigma-validation` vector: the engine's verdict on `task` and `summary`.
pub fn validation(vector: &Value) -> Value {
    let summary = vector.get("summary").and_then(Value::as_str).unwrap_or_default();
    let judged = validate(&Requirements::of(vector.get("task").unwrap_or(&Value::Null)), summary);
    json!({
        "is_valid": judged.is_valid,
        "score": judged.score,
        "missing_criteria": judged.missing_criteria,
        "evidence_found": judged.evidence_found,
        "annotated_summary": judged.annotated_summary,
    })
}

/// Where a part stands in the history: message, then part.
type Place = (usize, usize);

/// Judges a `sigma-evict` vector: the history after its `op`.
///
/// # Errors
/// Says which part of the vector has another form than the README describes.
pub fn evict(vector: &Value) -> Result<Value, String> {
    let text = |pointer: &str| vector.pointer(pointer).and_then(Value::as_str);
    let session = text("/config/session_id").ok_or("no session_id")?;
    let task = text("/op/task").ok_or("no task")?;
    let mut events = vector.get("events").and_then(Value::as_array).cloned().ok_or("no events")?;
    let mut tape = Tape::new(HOST, session, acpdb_hosts::registry());
    // The host of these histories writes the archives that its tombstones name.
    let files = json!({"task.archive": "file"});
    let policy = Policy::from_json(&files.to_string()).map_err(|error| error.to_string())?;
    tape.payload(PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
    let items = record(&mut tape, &events);
    follow_tasks(&mut tape, &events)?;
    match text("/op/method") {
        Some("prune") => {
            // The tags of the history name the parts of the task; its end is the update that completed it.
            let known = tape.state().tasks().task(task, Seq::MAX);
            let message = known.and_then(|task| task.ended?.message.clone());
            let mut bodies = Bodies::default();
            let summary = text("/op/summary").map(|summary| bodies.add_copied(summary));
            let evicted = TaskEvicted { task: task.to_owned(), summary, message, validation: None };
            tape.drafted(EventDraft::of(evicted, bodies));
        }
        Some("rolling") => {
            let threshold = vector.pointer("/op/threshold").and_then(Value::as_u64);
            let mut keys = files;
            if let Some((count, keys)) = threshold.zip(keys.as_object_mut()) {
                keys.insert("task.outputs_max".to_owned(), json!(count));
            }
            let policy = Policy::from_json(&keys.to_string()).map_err(|error| error.to_string())?;
            tape.payload(PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
            let fields = TaskFields {
                id: task.to_owned(),
                status: Some(TaskStatus::InProgress),
                ..TaskFields::default()
            };
            tape.payload(TaskChanged { tasks: vec![fields], message: None }, Vec::new());
            tape.entry(Entry::step("next"));
        }
        other => return Err(format!("method {other:?}")),
    }
    // From the end, so that a part that is dropped does not move those still to be rewritten.
    for ((message, index), item) in items.into_iter().rev() {
        let parts = events.get_mut(message).and_then(|event| event.pointer_mut("/content/parts"));
        let parts = parts.and_then(Value::as_array_mut).ok_or("no parts")?;
        let place = parts.get_mut(index).ok_or("a part is gone")?;
        match shown(&tape, item, task, place) {
            Some(part) => *place = part,
            None => drop(parts.remove(index)),
        }
    }
    Ok(json!({ "events": events }))
}

/// The parts of an event, or none.
fn parts(event: &Value) -> &[Value] {
    event.pointer("/content/parts").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The key of a message.
fn key(message: usize) -> String {
    format!("message {message}")
}

/// Records a history as its host would have; gives the item of each text and each output, in order.
fn record(tape: &mut Tape, events: &[Value]) -> Vec<(Place, ItemId)> {
    let mut items = Vec::new();
    let mut waiting: Vec<(String, String, ItemId)> = Vec::new();
    for (message, event) in events.iter().enumerate() {
        let by_user = event.get("author").and_then(Value::as_str) == Some("user");
        let role = if by_user { Role::User } else { Role::Assistant };
        for (index, part) in parts(event).iter().enumerate() {
            let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
            let id = format!("call {message}.{index}");
            if let Some(words) = text("/text") {
                let signature = text("/thoughtSignature").map(str::as_bytes);
                let thought = part.get("thought") == Some(&Value::Bool(true));
                let kind = if thought { PartKind::Reasoning } else { PartKind::Text };
                let entry = PartEntry { signature: signature.map(Into::into), ..PartEntry::of(kind, words) };
                let seq = if index == 0 || by_user {
                    tape.entry(Entry::message_parts(key(message), role, vec![entry]))
                } else {
                    tape.entry(fact::MessageContinued { key: key(message), parts: vec![entry] })
                };
                items.push(((message, index), ItemId::first(seq)));
            } else if let Some(tool) = text("/functionCall/name") {
                let params = part.pointer("/functionCall/args").unwrap_or(&Value::Null).to_string();
                let entry = Entry::tool_started(id.as_str(), tool, params).in_message(key(message));
                let seq = tape.entry(entry);
                waiting.push((tool.to_owned(), id, ItemId::first(seq)));
            } else if let Some(output) = text("/functionResponse/response/result") {
                let tool = text("/functionResponse/name").unwrap_or_default();
                let called = waiting.iter().position(|(name, _, _)| name == tool);
                let called = called.map(|place| waiting.remove(place));
                let (id, item) = called.map_or((id, None), |(_, id, item)| (id, Some(item)));
                let seq = tape.entry(Entry::tool_completed(id, output));
                items.push(((message, index), item.unwrap_or_else(|| ItemId::first(seq))));
            }
        }
    }
    items
}

/// Records the updates of tasks in the history, each with the message that asked for it.
fn follow_tasks(tape: &mut Tape, events: &[Value]) -> Result<(), String> {
    for (message, event) in events.iter().enumerate() {
        for call in parts(event).iter().filter_map(|part| part.get("functionCall")) {
            if call.get("name").and_then(Value::as_str) != Some(UPDATE_CALL) {
                continue;
            }
            let arguments = call.get("args").unwrap_or(&Value::Null).to_string();
            let update = TaskUpdate::from_json(arguments.as_bytes()).map_err(|refused| refused.reply())?;
            let fields = update.tasks.into_iter();
            let fields = fields.map(|entry| TaskFields {
                id: entry.id,
                status: entry.status,
                ..TaskFields::default()
            });
            let change = TaskChanged { tasks: fields.collect(), message: Some(key(message)) };
            tape.payload(change, Vec::new());
        }
    }
    Ok(())
}

/// A part as the context shows it; `None`: nothing.
fn shown(tape: &Tape, item: ItemId, task: &str, part: &Value) -> Option<Value> {
    let state = tape.state();
    let Some((ix, placeholder)) =
        state.find(item).and_then(|ix| Some((ix, state.placeholder(ix, Face::Output, Seq::MAX)?)))
    else {
        return Some(part.clone());
    };
    if placeholder.render == Render::Nothing {
        return None;
    }
    let Some(text) = render(&placeholder, acpdb_hosts::registry().as_ref(), &|body| tape.body(body)) else {
        return Some(part.clone());
    };
    // An output, or a text that a tag gives to the task, keeps its form; words become a thought.
    let is_output = part.get("functionResponse").is_some();
    if is_output || state.item(ix, Seq::MAX).is_some_and(|item| item.task.as_deref() == Some(task)) {
        return with_text(part, &text);
    }
    let mut tombstone = json!({"text": text, "thought": true});
    let signature = placeholder.signature.and_then(|body| tape.text(body));
    if let (Some(signature), Some(fields)) = (signature, tombstone.as_object_mut()) {
        fields.insert("thoughtSignature".to_owned(), Value::from(signature));
    }
    Some(tombstone)
}

/// The same output or text part with another text.
fn with_text(part: &Value, text: &str) -> Option<Value> {
    let mut part = part.clone();
    let output = part.pointer("/functionResponse/response/result").is_some();
    let place = part.pointer_mut(if output { "/functionResponse/response/result" } else { "/text" })?;
    *place = Value::from(text);
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::super::{differences, judged};
    use super::*;

    #[test]
    fn summaries_are_validated_as_recorded() {
        let judge = |vector: &Value| Ok(validation(vector));
        let different = judged(&["sigma_validation.json"], "sigma-validation", &[], judge);
        assert!(different.is_empty(), "{}", different.join("\n"));
    }

    #[test]
    fn tasks_are_evicted_as_recorded() {
        let different = judged(&["sigma_evict.json"], "sigma-evict", &[], evict);
        assert!(different.is_empty(), "{}", different.join("\n"));
    }

    /// A judge that cannot fail judges nothing.
    #[test]
    fn a_wrong_expectation_is_noticed() {
        let vector = json!({"task": {"acceptance_criteria": ["alpha"]}, "summary": "beta",
            "expected": {"is_valid": true}, "sane": {"score": 1.0}});
        assert_eq!(differences(&vector, &validation(&vector), &[]).len(), 2);
    }
}
