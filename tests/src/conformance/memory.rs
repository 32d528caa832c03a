//! Vectors of the profiles copilot-memory and copilot-corrections: messages in, memory or corrections out.
//!
//! Each message goes through `propose`; every proposal is decided and folded, as a host that accepts them all would do.
//! Items live in three streams, by lifespan; the result numbers them `f1`, `p1`, `d1` in the order of recording.

use std::collections::BTreeMap;

use acpdb_engine::command::memory::{MemoryCommand, decide};
use acpdb_engine::event::{Event, MemoryKind, Payload, Recorded, Role, Stamp};
use acpdb_engine::fold::memory::{
    LIFESPANS_INNER_FIRST, MemoryItem, MemoryLayer, MemoryState, MemoryView, Standing, lifespan_label,
};
use acpdb_engine::ids::{BodyId, ItemId, Micros, Origin, Seq, StreamId};
use acpdb_engine::propose::{corrections, propose};
use acpdb_engine::text::Signer;
use serde_json::{Map, Value, json};

/// What one vector comes to: an object with the fields that vectors of its profile expect.
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
            let command = MemoryCommand::accept(&proposal, None);
            let Ok(decision) = memory.with_view(|view| decide(view, &command)) else { continue };
            for draft in decision.drafts {
                memory.record(decision.stream, draft.payload, draft.bodies);
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
        let holding = items.iter().filter(|(_, item)| item.standing(view.now()) == Standing::Current);
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
