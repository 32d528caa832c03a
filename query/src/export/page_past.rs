//! The rest of a page: the todo list over time, memory, and the events between the items.

use std::collections::HashMap;

use acpdb_engine::event::Payload;
use acpdb_engine::fold::memory::{MemoryEdge, MemoryStatus, kind_label};
use acpdb_engine::fold::todo::TodoView;
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::store::MemoryScope;
use acpdb_engine::{Store, View};
use serde_json::Value;

use super::ExportError;
use super::page_data::{MemoryData, PageWords, TodoData};
use super::texts::TextWriter;
use crate::titles::beginning;
use crate::todos;

/// Longest text of a mark, in characters.
const MARK_LENGTH_MAX: usize = 160;

/// The versions of the todo list up to the view's seq.
pub(super) fn todo_data(
    view: &View,
    texts: &mut TextWriter<'_>,
    words: &mut PageWords,
) -> Result<TodoData, ExportError> {
    let versions: Vec<TodoView> = {
        let todos = view.state().todos();
        todos.history().filter(|list| list.seq <= view.at()).collect()
    };
    let mut data = TodoData::default();
    let mut said = todos::TodoTexts::of_what_is_left(view);
    let mut places: HashMap<(Option<String>, String), usize> = HashMap::new();
    for version in &versions {
        let mut row = Vec::new();
        for entry in said.entries(version)? {
            let content =
                todos::content(&entry.fields).or(entry.id.as_deref()).unwrap_or("[not there]").to_owned();
            let known = match entry.id {
                // An entry with an id stays the same entry when its text changes.
                Some(id) => (Some(id), String::new()),
                None => (None, content.clone()),
            };
            let place = if let Some(place) = places.get(&known) {
                *place
            } else {
                data.entries.push(texts.number(&content)?);
                places.insert(known, data.entries.len() - 1);
                data.entries.len() - 1
            };
            row.push((place, words.number(&entry.status)));
        }
        data.versions.push((version.seq.get(), version.turn.get(), row));
    }
    Ok(data)
}

/// All memory items that the session and its project ever had.
pub(super) fn memory(
    store: &Store,
    view: &View,
    now: Micros,
    texts: &mut TextWriter<'_>,
    words: &mut PageWords,
) -> Result<Vec<MemoryData>, ExportError> {
    struct PastReader {
        row: MemoryData,
        value: Option<String>,
        kind: &'static str,
        standing: &'static str,
    }
    let redaction = words.redaction().clone();
    let memory = store.memory(&MemoryScope::session(view.stream()), view.at())?;
    let read: Vec<PastReader> = memory.read(now, |memory| {
        let mut read = Vec::new();
        for (stream, item) in memory.all() {
            let layer = memory.stream(stream);
            let edges = layer.map(|(_, layer)| layer.superseded_by(&item)).unwrap_or_default();
            let edge = edges.into_iter().find(MemoryEdge::hides);
            let standing = match item.standing(now) {
                MemoryStatus::Current if memory.is_shadowed(&item) => "shadowed",
                standing => standing.label(),
            };
            let place = match item.key().or(item.subject()) {
                Some(key) => format!("{}/{key}", item.category()),
                None => item.category().to_owned(),
            };
            read.push(PastReader {
                row: MemoryData {
                    id: item.id().to_owned(),
                    seq: item.item().seq.get(),
                    kind: 0,
                    place: redaction.of(&place).into_owned(),
                    value: -1,
                    confidence: item.confidence(now).as_f64(),
                    standing: 0,
                    ended: edge.as_ref().map(|edge| edge.seq.get()),
                    by: edge.map(|edge| edge.new),
                },
                value: memory.text(&item),
                kind: kind_label(item.kind()),
                standing,
            });
        }
        read
    });
    read.into_iter()
        .map(|PastReader { row, value, kind, standing }| {
            let value = value.map(|value| texts.number(&value)).transpose()?;
            let value = super::page_data::place(value);
            Ok(MemoryData { value, kind: words.number(kind), standing: words.number(standing), ..row })
        })
        .collect()
}

/// The text of an event between the items; `None` if the items say it themselves, or readers do not need it.
pub(super) fn mark(payload: &Payload) -> Option<String> {
    let text = match payload {
        Payload::SessionChanged(changed) => {
            changed.title.clone().map(String::from).or_else(|| changed.cwd.clone())?
        }
        Payload::ContextReplaced(replaced) => {
            let before = replaced.tokens_before.map(|tokens| format!(", ~{tokens} tokens before"));
            let cause = word(&replaced.cause);
            format!("{cause}, {} items kept{}", replaced.order.len(), before.unwrap_or_default())
        }
        Payload::Forked(forked) if forked.at == Seq::ZERO => "a copy of another session".to_owned(),
        Payload::Forked(forked) => format!("at {}", forked.at),
        Payload::MemoryRecorded(memory) => {
            let key = memory.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
            format!("{} {}{key}", kind_label(memory.kind), memory.category)
        }
        Payload::Unknown { number, .. } => format!("kind {number}, which this acpdb does not understand"),
        Payload::SessionOpened(_)
        | Payload::TurnStarted(_)
        | Payload::HostRecorded(_)
        | Payload::MessageRecorded(_)
        | Payload::MessageContinued(_)
        | Payload::MessageFinished(_)
        | Payload::ItemRevised(_)
        | Payload::ToolCallStarted(_)
        | Payload::ToolCallFinished(_)
        | Payload::MemoryReinforced(_)
        | Payload::Injected(_)
        | Payload::ContextServed(_) => return None,
        payload => payload.in_words(),
    };
    Some(clip(&text))
}

/// At most [`MARK_LENGTH_MAX`] characters.
pub(super) fn clip(text: &str) -> String {
    beginning(text, MARK_LENGTH_MAX)
}

/// The name of a plain variant, as in JSON.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word.replace('_', " "),
        Ok(Value::Object(object)) => object.keys().next().cloned().unwrap_or_default().replace('_', " "),
        _ => String::new(),
    }
}
