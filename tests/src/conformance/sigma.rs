//! Judges for tasks: how summaries are validated, and what an eviction leaves of a Gemini-shaped history.
//!
//! ```text
//! history --SigmaTaskUpdate calls--> TaskState --begun, ended--> range
//!    |                                                             |
//!    +--parts--> pieces ---------------------------------> evicted, rolled --stand-ins--> history
//! ```

use acpdb_engine::command::task::TaskUpdate;
use acpdb_engine::event::{TaskChanged, TaskEvicted, TaskFields};
use acpdb_engine::fold::eviction::{
    MessageRange, Piece, PieceKind, ROLLING_OUTPUTS_MAX, StandIn, evicted, output_text, rolled, rolling_text,
    task_tag, words_text,
};
use acpdb_engine::fold::task::TaskState;
use acpdb_engine::fold::validate::{Requirements, validate};
use acpdb_engine::ids::{Seq, Turn};
use serde_json::{Value, json};

/// The call by which a message changes tasks.
const UPDATE_CALL: &str = "SigmaTaskUpdate";

/// Judges a `sigma-validation` vector: what the engine makes of `task` and `summary`.
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
    let (places, pieces) = describe(&events);
    let rewritten: Vec<(Place, Option<Value>)> = match text("/op/method") {
        Some("prune") => {
            let summary = text("/op/summary");
            evicted(&pieces, task, range(&events, task)?)
                .into_iter()
                .filter_map(|(index, stand_in)| {
                    let place = *places.get(index)?;
                    Some((place, stand_in_part(&events, &places, place, stand_in, task, session, summary)))
                })
                .collect()
        }
        Some("rolling") => {
            let threshold = vector.pointer("/op/threshold").and_then(Value::as_u64);
            let outputs_max = threshold.map_or(Ok(ROLLING_OUTPUTS_MAX), usize::try_from);
            rolled(&pieces, task, outputs_max.map_err(|_| "threshold")?)
                .into_iter()
                .filter_map(|index| {
                    let place = *places.get(index)?;
                    Some((place, with_text(part(&events, place)?, &rolling_text(task, session))))
                })
                .collect()
        }
        other => return Err(format!("method {other:?}")),
    };
    // From the end, so that a part that is dropped does not move those still to be rewritten.
    for ((message, index), part) in rewritten.into_iter().rev() {
        let parts = events.get_mut(message).and_then(|event| event.pointer_mut("/content/parts"));
        let parts = parts.and_then(Value::as_array_mut).ok_or("no parts")?;
        match (part, parts.get_mut(index)) {
            (Some(part), Some(old)) => *old = part,
            (None, Some(_)) => drop(parts.remove(index)),
            (_, None) => return Err("a part is gone".to_owned()),
        }
    }
    Ok(json!({ "events": events }))
}

/// The parts of an event, or none.
fn parts(event: &Value) -> &[Value] {
    event.pointer("/content/parts").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn part(events: &[Value], (message, index): Place) -> Option<&Value> {
    parts(events.get(message)?).get(index)
}

/// Describes every part for the engine.
fn describe(events: &[Value]) -> (Vec<Place>, Vec<Piece<'_>>) {
    let mut places = Vec::new();
    let mut pieces = Vec::new();
    for ((message, number), event) in
        events.iter().enumerate().map(|(index, event)| ((index, index as u64), event))
    {
        let by_user = event.get("author").and_then(Value::as_str) == Some("user");
        for (index, part) in parts(event).iter().enumerate() {
            let output = part.pointer("/functionResponse/response/result").and_then(Value::as_str);
            let words = part.get("text").and_then(Value::as_str);
            let kind = match (output, words) {
                (Some(_), _) => PieceKind::Output,
                (None, Some(_)) if by_user => PieceKind::Text,
                (None, Some(_)) => PieceKind::Words,
                (None, None) => PieceKind::Other,
            };
            places.push((message, index));
            pieces.push(Piece {
                kind,
                message: number,
                task: output.or(words).and_then(task_tag),
                signed: part.get("thoughtSignature").is_some(),
            });
        }
    }
    (places, pieces)
}

/// The range of messages that work on `task` took, from the updates in the history.
fn range(events: &[Value], task: &str) -> Result<Option<MessageRange>, String> {
    let mut state = TaskState::default();
    for (message, event) in events.iter().enumerate() {
        for call in parts(event).iter().filter_map(|part| part.get("functionCall")) {
            if call.get("name").and_then(Value::as_str) != Some(UPDATE_CALL) {
                continue;
            }
            let arguments = call.get("args").unwrap_or(&Value::Null).to_string();
            let update = TaskUpdate::from_json(arguments.as_bytes()).map_err(|refused| refused.reply())?;
            let tasks = update.tasks.into_iter();
            let tasks =
                tasks.map(|entry| TaskFields { id: entry.id, status: entry.status, ..TaskFields::default() });
            let change = TaskChanged { tasks: tasks.collect(), message: Some(message.to_string()) };
            let seq = Seq(message as u64 + 1);
            state.changed(seq, Turn(1), &change, seq);
        }
    }
    let end = Seq(events.len() as u64 + 1);
    state.evicted(end, &TaskEvicted { task: task.to_owned(), ..TaskEvicted::default() });
    Ok(state.task(task, Seq::MAX).and_then(|task| MessageRange::of(&task, |key| key.parse().ok())))
}

/// The part that stands in for the one at `place`; `None`: it is dropped.
fn stand_in_part(
    events: &[Value],
    places: &[Place],
    place: Place,
    stand_in: StandIn,
    task: &str,
    session: &str,
    summary: Option<&str>,
) -> Option<Value> {
    match stand_in {
        StandIn::Output { summary: last } => {
            with_text(part(events, place)?, &output_text(task, session, summary.filter(|_| last)))
        }
        StandIn::Words { summary: last, signature } => {
            let mut tombstone = json!({"text": words_text(task, summary.filter(|_| last)), "thought": true});
            let signed = signature.and_then(|index| part(events, *places.get(index)?));
            if let (Some(signature), Some(fields)) =
                (signed.and_then(|part| part.get("thoughtSignature")), tombstone.as_object_mut())
            {
                fields.insert("thoughtSignature".to_owned(), signature.clone());
            }
            Some(tombstone)
        }
        StandIn::Dropped => None,
    }
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
