//! Answers of several parts that the engine and `acpdb_query` give in pieces: todo lists, memory, hits of a search.

use std::collections::HashMap;

use acpdb_engine::command::memory::MemoryRef;
use acpdb_engine::event::{Body, Scope};
use acpdb_engine::fold::Ix;
use acpdb_engine::fold::memory::{MemoryEdge, MemoryItem, MemoryView};
use acpdb_engine::fold::todo::{TodoEntry, TodoSource};
use acpdb_engine::ids::{BodyId, Micros, Seq, StreamId};
use acpdb_engine::{Error, MemoryScope, Store, StreamName, View};
use acpdb_query::search::{Hit, SearchQuestion, search};
use acpdb_query::{FindError, Found, Scanned};
use serde_json::{Map, Value, json};

/// The item that a text names, in a view.
pub(crate) fn item(store: &Store, view: &View, stream: &StreamName, text: &str) -> Result<Ix, FindError> {
    let Found { ix, item, .. } = acpdb_query::find(store, text, Some(stream))?;
    let there = ix.filter(|ix| view.read().state().item(*ix, view.at()).is_some());
    there.ok_or_else(|| FindError::NotFound {
        text: format!("{text} ({item}, as of {})", view.at()),
        nearest: None,
    })
}

/// The todo list as of a view: what `acpdb todo list --json` prints.
pub(crate) fn todos(view: &View, session: &str) -> Result<Value, Error> {
    let found = view.read().state().todos().list(view.at()).cloned();
    let mut lists = HashMap::new();
    let mut items = Vec::new();
    for item in found.iter().flat_map(|list| &list.items).filter(|item| !item.is_deleted()) {
        items.push(todo(view, &mut lists, item)?);
    }
    Ok(json!({
        "session": session,
        "seq": found.as_ref().map(|list| list.seq),
        "turn": found.as_ref().map(|list| list.turn),
        "items": items,
        "reminder_due": view.reminder_due(),
    }))
}

fn todo(view: &View, lists: &mut HashMap<BodyId, Value>, item: &TodoEntry) -> Result<Value, Error> {
    let mut fields = Map::new();
    for source in &item.entry {
        let value = match source {
            TodoSource::List { body, index } => {
                if !lists.contains_key(body) {
                    lists.insert(*body, parsed(view, *body)?);
                }
                lists.get(body).and_then(|list| list.get(*index as usize)).cloned().unwrap_or_default()
            }
            TodoSource::Change { body } => parsed(view, *body)?,
        };
        if let Value::Object(more) = value {
            fields.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
        }
    }
    // Hosts call it by different names.
    let names = ["content", "step", "description", "subject", "title"];
    let content = names.iter().find_map(|name| fields.get(*name).and_then(Value::as_str)).unwrap_or_default();
    let content = json!(content);
    fields.insert("content".to_owned(), content);
    if let Some(id) = &item.id {
        fields.insert("id".to_owned(), json!(id));
    }
    fields.insert("status".to_owned(), json!(item.status));
    if let Some(priority) = &item.priority {
        fields.insert("priority".to_owned(), json!(priority));
    }
    fields.insert("position".to_owned(), json!(item.position));
    match item.in_progress_since {
        Some(since) => fields.insert("inProgressSince".to_owned(), json!(since.get())),
        None => fields.remove("inProgressSince"),
    };
    Ok(Value::Object(fields))
}

/// A body's JSON; of what was erased nothing.
fn parsed(view: &View, body: BodyId) -> Result<Value, Error> {
    match view.text(body) {
        Err(Error::Erased { .. }) => Ok(Value::Null),
        text => Ok(serde_json::from_str(&text?).unwrap_or_default()),
    }
}

/// Everything that a scope ever remembered, in order; `at`: nothing after this seq. Fields as in `acpdb memory list --json`.
pub(crate) fn memory(store: &Store, scope: &MemoryScope, at: Seq, now: Micros) -> Result<Vec<Value>, Error> {
    let memory = match store.memory(scope, at) {
        // A project without memory is not there yet.
        Err(Error::NotFound { what: "project", .. }) => return Ok(Vec::new()),
        memory => memory?,
    };
    let text = |body: BodyId| {
        let bytes = store.body(body).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(memory.read(now, |view| {
        view.all().iter().map(|(stream, item)| memory_row(view, *stream, item, &text)).collect()
    }))
}

fn memory_row(
    view: &MemoryView<'_>,
    stream: StreamId,
    item: &MemoryItem<'_>,
    text: &dyn Fn(BodyId) -> Option<String>,
) -> Value {
    let record = &item.facts().record;
    let body = |body: Body| text(item.body(body));
    let (mut by, mut of) = (Vec::new(), Vec::new());
    if let Some((_, memory)) = view.stream(stream) {
        by.extend(memory.superseded_by(item).into_iter().filter(MemoryEdge::hides).map(|edge| edge.new));
        of.extend(memory.supersedes(item).into_iter().filter(MemoryEdge::hides).map(|edge| edge.old));
    }
    let extra = record.extra.and_then(body).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    json!({
        "id": item.id(),
        "item": item.item().to_string(),
        "stream": stream,
        "kind": item.kind(),
        "category": item.category(),
        "key": record.key.as_deref(),
        "subject": record.subject.as_deref(),
        "value": view.text(item),
        "rationale": record.rationale.and_then(body),
        "alternatives": record.alternatives.iter().filter_map(|text| body(*text)).collect::<Vec<_>>(),
        "related_files": record.related_files.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "confidence": item.confidence(view.now()).as_f64(),
        "confirmed": item.confirmed().as_f64(),
        "lifespan": item.lifespan(),
        "source": record.source.map(|source| source.item.to_string()),
        "standing": item.standing(view.now()),
        "shadowed": view.is_shadowed(item),
        "superseded_by": by,
        "supersedes": of,
        "status": record.status.as_deref(),
        "extra": extra,
    })
}

/// A memory item by its id or its `#seq`.
pub(crate) fn memory_ref(text: &str) -> MemoryRef {
    let item = text.strip_prefix('#').and_then(|_| text.parse().ok());
    item.map_or_else(|| MemoryRef::Id(text.to_owned()), MemoryRef::Item)
}

/// Hits in one session or in all, the newest sessions first; what `acpdb search --json` prints.
pub(crate) fn hits(
    store: &Store,
    only: Option<StreamName>,
    question: &SearchQuestion,
    limit: usize,
) -> Result<Value, Error> {
    let streams = if let Some(only) = only {
        vec![only]
    } else {
        let mut streams = store.stream_names()?;
        streams.retain(|name| {
            (name.scope == Scope::Session || question.filter.is_empty())
                && acpdb_query::may_hold(&question.filter, name)
        });
        streams.sort_by_key(|name| std::cmp::Reverse((name.began, name.head)));
        streams
    };
    let mut scanned = Scanned::default();
    let mut items: Vec<Hit> = Vec::new();
    for stream in &streams {
        if items.len() >= limit {
            break;
        }
        search(store, stream, question, &mut scanned, &mut |hit| {
            items.push(hit);
            items.len() < limit
        })?;
    }
    Ok(json!({"items": items, "scanned": scanned}))
}

/// The host's records on the active branch up to `at`, in order, each with its seq.
pub(crate) fn records(store: &Store, view: &View, after: Seq) -> Result<Vec<(u64, Vec<u8>)>, Error> {
    let rewinds = view.read().state().rewinds(view.at()).to_vec();
    let left = |seq: Seq| rewinds.iter().any(|(rewound, to)| *to < seq && seq < *rewound);
    let mut all = Vec::new();
    for recorded in store.stream_events(view.stream(), after.next(), view.at())? {
        let recorded = recorded?;
        if left(recorded.seq) {
            continue;
        }
        match store.record(&recorded) {
            Ok(Some(bytes)) => all.push((recorded.seq.get(), bytes)),
            Ok(None) | Err(Error::Erased { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}
