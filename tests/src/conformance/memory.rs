//! Vectors of the profiles copilot-memory and copilot-corrections: messages in, memory or corrections out.
//!
//! Each message goes through `propose`; every proposal is decided and folded, as a host that accepts them all would do.
//! Items live in three streams, by lifespan; the result numbers them `f1`, `p1`, `d1` in the order of recording.

use std::collections::BTreeMap;

use acpdb_engine::command::memory::decide;
use acpdb_engine::event::{Event, MemoryKind, Payload, Recorded, Role, Stamp};
use acpdb_engine::fold::memory::{
    LIFESPANS_INNER_FIRST, MemoryItem, MemoryLayer, MemoryState, MemoryStatus, MemoryView, lifespan_label,
};
use acpdb_engine::ids::{BodyId, ItemId, Micros, Origin, Seq, StreamId};
use acpdb_engine::text::Signer;
use acpdb_query::propose::{command, corrections, propose};
use serde_json::{Map, Value, json};

/// The outcome of one vector: an object with the fields that vectors of its profile expect.
pub fn run(vector: &Value) -> Value {
    match vector.get("profile").and_then(Value::as_str) {
        Some("copilot-corrections") => run_corrections(vector),
        _ => run_memory(vector),
    }
}

fn messages(vector: &Value) -> impl Iterator<Item = (Role, &str)> {
    let events = vector.get("events").and_then(Value::as_array);
    events.into_iter().flatten().filter_map(|event| {
        let role = match event.get("role")?.as_str()? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            _ => Role::Tool,
        };
        Some((role, event.get("text")?.as_str()?))
    })
}

fn run_corrections(vector: &Value) -> Value {
    let found = messages(vector).flat_map(|(_, text)| corrections(text)).map(|correction| {
        json!({
            "what": correction.what,
            "from": correction.from,
            "to": correction.to,
            "category": correction.category,
        })
    });
    json!({ "corrections": found.collect::<Vec<_>>() })
}

/// Three streams of memory and the bodies of their events.
#[derive(Default)]
struct Memory {
    states: [MemoryState; 3],
    bodies: BTreeMap<BodyId, String>,
    seq: u64,
}

/// The stream that items of a lifespan live in.
fn stream_of(index: usize) -> StreamId {
    let mut bytes = [0; 16];
    if let Some(first) = bytes.first_mut() {
        *first = u8::try_from(index).unwrap_or(u8::MAX).saturating_add(1);
    }
    StreamId(bytes)
}

impl Memory {
    /// Reads through `read`, with the view a session would have.
    fn with_view<T>(&self, read: impl FnOnce(&MemoryView<'_>) -> T) -> T {
        let texts = |body: BodyId| self.bodies.get(&body).cloned();
        let layers = (self.states.iter().zip(LIFESPANS_INNER_FIRST).enumerate())
            .map(|(index, (memory, records))| MemoryLayer {
                stream: stream_of(index),
                records,
                memory,
                signer: Signer::new([7; 32]),
                until: Seq::MAX,
            })
            .collect();
        read(&MemoryView::new(layers, Seq::MAX, self.now(), &texts))
    }

    fn now(&self) -> Micros {
        Micros(1_700_000_000_000_000 + i64::try_from(self.seq).unwrap_or(0) * 1_000_000)
    }

    fn record(&mut self, stream: StreamId, payload: Payload, bodies: Vec<Vec<u8>>) {
        self.seq += 1;
        let seq = Seq(self.seq);
        for (first, bytes) in (0..).zip(bodies) {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            self.bodies.insert(BodyId { seq, first, chunks: 1 }, text);
        }
        let event = Event { stream, origin: Origin::ZERO, host_time: None, stamp: Stamp::default(), payload };
        let recorded = Recorded { seq, recorded_at: self.now(), event };
        for (index, state) in self.states.iter_mut().enumerate() {
            if stream == stream_of(index) {
                state.apply(&recorded);
            }
        }
    }
}

fn run_memory(vector: &Value) -> Value {
    let mut memory = Memory::default();
    for (role, text) in messages(vector) {
        for proposal in memory.with_view(|view| propose(role, text, view)) {
            let command = command(&proposal, None);
            let Ok(decision) = memory.with_view(|view| decide(view, &command)) else { continue };
            for draft in decision.drafts {
                let bodies = draft.bodies.iter().map(|bytes| bytes.to_vec()).collect();
                memory.record(decision.stream, draft.event.payload, bodies);
            }
        }
    }
    memory.with_view(report)
}

const KINDS: [(MemoryKind, &str, char); 3] = [
    (MemoryKind::Fact, "facts", 'f'),
    (MemoryKind::Preference, "preferences", 'p'),
    (MemoryKind::Decision, "decisions", 'd'),
];

fn report(view: &MemoryView<'_>) -> Value {
    let all = view.all();
    let mut names: BTreeMap<ItemId, String> = BTreeMap::new();
    for (kind, _, letter) in KINDS {
        let items = all.iter().filter(|(_, item)| item.kind() == kind);
        names.extend((1..).zip(items).map(|(number, (_, item))| (item.item(), format!("{letter}{number}"))));
    }
    let mut result = Map::new();
    let mut current = Map::new();
    for (kind, field, _) in KINDS {
        let items: Vec<_> = all.iter().filter(|(_, item)| item.kind() == kind).collect();
        let rows = items.iter().map(|(stream, item)| row(view, *stream, item, &names)).collect();
        let holding = items.iter().filter(|(_, item)| item.standing(view.now()) == MemoryStatus::Current);
        let holding = holding.map(|(_, item)| json!(names.get(&item.item()))).collect();
        result.insert(field.to_owned(), Value::Array(rows));
        current.insert(field.to_owned(), Value::Array(holding));
    }
    result.insert("current".to_owned(), Value::Object(current));
    Value::Object(result)
}

fn row(
    view: &MemoryView<'_>,
    stream: StreamId,
    item: &MemoryItem<'_>,
    names: &BTreeMap<ItemId, String>,
) -> Value {
    let text = view.text(item);
    let edges = view.stream(stream).map(|(_, memory)| memory.superseded_by(item)).unwrap_or_default();
    let superseded_by = edges.iter().find(|edge| edge.hides()).and_then(|edge| names.get(&edge.new_item?));
    let mut row = Map::new();
    row.insert("id".to_owned(), json!(names.get(&item.item())));
    match item.kind() {
        MemoryKind::Fact => {
            row.insert("fact".to_owned(), json!(text));
            row.insert("lifespan".to_owned(), json!(lifespan_label(item.lifespan())));
        }
        MemoryKind::Preference => {
            row.insert("key".to_owned(), json!(item.key()));
            row.insert("value".to_owned(), json!(text));
        }
        MemoryKind::Decision | MemoryKind::Note => {
            row.insert("description".to_owned(), json!(text));
        }
    }
    row.insert("category".to_owned(), json!(item.category()));
    if item.kind() != MemoryKind::Decision {
        row.insert("confidence".to_owned(), hundredths(item.confirmed().hundredths()));
    }
    row.insert("superseded_by".to_owned(), json!(superseded_by));
    Value::Object(row)
}

/// A number of hundredths as JSON spells it: `1`, `0.9`.
fn hundredths(number: u32) -> Value {
    if number.is_multiple_of(100) { json!(number / 100) } else { json!(f64::from(number) / 100.0) }
}

#[cfg(test)]
mod tests {
    //! The vectors; and real recordings: decisions that replace each other, preferences that change over years.

    use std::collections::{BTreeMap, BTreeSet};

    use acpdb_engine::event::{Lifespan, MemoryKind, MemoryRecorded, MemoryRetracted};
    use acpdb_engine::fold::memory::{MemoryStatus, value_signature};
    use serde_json::Value;

    use super::super::{differences, judged};
    use super::{Memory, Signer, run, stream_of};

    const PROJECT: usize = 1;

    #[test]
    fn messages_are_remembered_as_recorded() {
        for (file, profile) in
            [("memory.json", "copilot-memory"), ("corrections.json", "copilot-corrections")]
        {
            let different = judged(&[file], profile, &[], |vector| Ok(run(vector)));
            assert!(different.is_empty(), "{}", different.join("\n"));
        }
    }

    /// A judge that cannot fail judges nothing.
    #[test]
    fn a_wrong_expectation_is_noticed() {
        let vector = serde_json::json!({"profile": "copilot-memory", "expected": {"decisions": [1]},
            "events": [{"type": "message", "role": "user", "text": "not npm, use pnpm"}]});
        assert_eq!(differences(&vector, &run(&vector), &[]).len(), 1);
    }

    fn records(file: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(crate::support::recordings().join("memory").join(file)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn strings(value: &Value) -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    fn record(id: String, kind: MemoryKind, value: &str) -> MemoryRecorded {
        MemoryRecorded {
            id,
            kind,
            category: "tooling".into(),
            value_signature: value_signature(&Signer::new([7; 32]), value),
            lifespan: Lifespan::Project,
            ..MemoryRecorded::default()
        }
    }

    #[test]
    #[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
    fn proposals_that_replace_each_other() {
        let records = records("decisions-peps.jsonl");
        let mut memory = Memory::default();
        let mut hidden = BTreeSet::new();
        for pep in &records {
            let id = pep["id"].as_str().unwrap().to_owned();
            let (replaces, superseded_by) = (strings(&pep["replaces"]), strings(&pep["superseded_by"]));
            hidden.extend(replaces.iter().cloned());
            if !superseded_by.is_empty() {
                hidden.insert(id.clone());
            }
            let title = pep["title"].as_str().unwrap();
            let decision =
                MemoryRecorded { replaces, superseded_by, ..record(id, MemoryKind::Decision, title) };
            memory.record(stream_of(PROJECT), decision.into(), Vec::new());
        }
        memory.with_view(|view| {
            let all = view.all();
            assert_eq!(all.len(), records.len());
            for (_, item) in &all {
                let is_hidden = item.standing(view.now()) == MemoryStatus::Superseded;
                assert_eq!(is_hidden, hidden.contains(item.id()), "{}", item.id());
            }
            let (_, memory) = view.stream(stream_of(PROJECT)).unwrap();
            let edges = |id: &str| memory.by_id(id).map(|item| memory.superseded_by(&item).len());
            assert_eq!(edges("pep-0563"), Some(2));
            assert_eq!(memory.by_id("pep-0443").map(|item| memory.supersedes(&item).len()), Some(3));
            assert!(memory.edges().iter().all(|edge| !edge.closes_cycle));
        });
    }

    #[test]
    #[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
    fn preferences_over_years() {
        for file in
            ["preferences-gemini-cli-package-json.jsonl", "preferences-gemini-cli-core-package-json.jsonl"]
        {
            let records = records(file);
            let mut memory = Memory::default();
            let mut held: BTreeMap<String, (String, String)> = BTreeMap::new();
            for (number, change) in records.iter().enumerate() {
                let key = change["key"].as_str().unwrap().to_owned();
                let previous = held.get(&key).map(|(_, value)| value.as_str());
                assert_eq!(change["previous"].as_str(), previous, "{file} {number}");
                if let Some(value) = change["value"].as_str() {
                    let id = format!("p{number}");
                    let wish = MemoryRecorded {
                        key: Some(key.as_str().into()),
                        ..record(id.clone(), MemoryKind::Preference, value)
                    };
                    memory.record(stream_of(PROJECT), wish.into(), Vec::new());
                    held.insert(key, (id, value.to_owned()));
                } else {
                    let (id, _) = held.remove(&key).unwrap();
                    let gone = MemoryRetracted { id, ..MemoryRetracted::default() };
                    memory.record(stream_of(PROJECT), gone.into(), Vec::new());
                }
            }
            memory.with_view(|view| {
                let current: BTreeSet<_> =
                    view.current().into_iter().map(|(_, item)| item.id().to_owned()).collect();
                assert_eq!(current, held.values().map(|(id, _)| id.clone()).collect());
                for (key, (id, _)) in &held {
                    assert_eq!(view.by_key("tooling", key).unwrap().1.id(), id);
                }
            });
        }
    }
}
