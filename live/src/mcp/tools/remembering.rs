//! The tools of memory: what a model remembers, what takes its place, and the versions of it.

use acpdb_engine::command::memory::{MemoryCommand, MemoryRef, parse_lifespan};
use acpdb_engine::entry::MemoryEntry;
use acpdb_engine::event::{Actor, MemoryKind};
use acpdb_engine::fold::memory::{MemoryNamed, kind_label, said_by_label};
use acpdb_engine::ids::Seq;
use acpdb_engine::text::words::entry;
use acpdb_engine::{Error, Memory};
use acpdb_query::memory::RememberedItem;
use serde_json::{Map, Value, json};

use super::{ToolError, ToolReply, Tools, text};

/// How an item of memory may be named where other items have names, too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// By its id alone.
    Id,
    /// By key or words.
    Words,
}

impl Tools {
    pub(super) fn remember(
        &self,
        session: Option<&str>,
        arguments: &Map<String, Value>,
    ) -> Result<ToolReply, ToolError> {
        let optional = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = match text(arguments, "kind")? {
            "decision" => MemoryKind::Decision,
            "preference" => MemoryKind::Preference,
            "fact" => MemoryKind::Fact,
            "note" => MemoryKind::Note,
            other => {
                let said = format!("there is no kind {other:?}; kinds: decision, preference, fact, note");
                return Err(ToolError::Argument(said));
            }
        };
        let lifespan = optional("lifespan").as_deref().map(parse_lifespan).transpose();
        let replaces = arguments.get("replaces").and_then(Value::as_array);
        let entry = MemoryEntry {
            kind,
            category: optional("category").unwrap_or_default(),
            key: optional("key"),
            subject: optional("subject"),
            value: text(arguments, "text")?.to_owned(),
            rationale: optional("rationale"),
            confidence: 80,
            lifespan: lifespan.map_err(|error| ToolError::Argument(error.to_string()))?,
            replaces: replaces.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            ..MemoryEntry::default()
        };
        if kind == MemoryKind::Preference && entry.key.is_none() {
            return Err(ToolError::Argument("a preference needs a key, such as style/indent".to_owned()));
        }
        let scope = self.scope(session)?;
        let entry = acpdb_query::memory::placed(self.store(), &scope, entry)?;
        let receipt = self.store().remember_as(&scope, &MemoryCommand::Add(entry), Actor::Assistant)?;
        let row = self.row(session, &receipt.id)?;
        let replaced = row.as_ref().map(|row| row.supersedes.clone()).unwrap_or_default();
        let place = row.map(|row| place(&row)).unwrap_or_default();
        let instead = if replaced.is_empty() {
            String::new()
        } else {
            format!(", in the place of {}", replaced.join(", "))
        };
        Ok(ToolReply {
            text: format!("remembered as {}{place}{instead}", receipt.id),
            value: json!({"id": receipt.id, "supersedes": replaced}),
        })
    }

    pub(super) fn supersede(
        &self,
        session: Option<&str>,
        arguments: &Map<String, Value>,
    ) -> Result<ToolReply, ToolError> {
        let [old, new] = [text(arguments, "old")?, text(arguments, "new")?].map(MemoryRef::from);
        let reason = arguments.get("reason").and_then(Value::as_str).map(str::to_owned);
        let command = MemoryCommand::Supersede { old, new, reason };
        let receipt = self.store().remember_as(&self.scope(session)?, &command, Actor::Assistant)?;
        let replaced = self.row(session, &receipt.id)?.map(|row| row.supersedes).unwrap_or_default();
        Ok(ToolReply {
            text: format!("{} holds now, in the place of {}", receipt.id, replaced.join(", ")),
            value: json!({"id": receipt.id, "supersedes": replaced}),
        })
    }

    pub(super) fn remembered(
        &self,
        session: Option<&str>,
        arguments: &Map<String, Value>,
    ) -> Result<ToolReply, ToolError> {
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let words: Vec<&str> = query.split_whitespace().collect();
        let Some(memory) = self.memory(session)? else {
            let text = "nothing is remembered yet".to_owned();
            return Ok(ToolReply { text, value: json!({"items": []}) });
        };
        let items: Vec<Value> = memory.read(self.store().now(), |view| {
            let rows = view.current().into_iter().filter_map(|(_, item)| {
                let text = view.text(&item)?;
                let kind = kind_label(item.kind());
                let subject = item.facts().record.subject.as_deref();
                let (key, words_of_it) = (item.key().unwrap_or_default(), subject.unwrap_or_default());
                let about = format!("{kind} {} {key} {words_of_it} {text}", item.category());
                let about = about.to_lowercase();
                words.iter().all(|word| about.contains(word)).then(|| {
                    json!({"id": item.id(), "kind": kind, "category": item.category(), "key": item.key(), "subject": subject, "text": text,
                        "said_by": said_by_label(item.said_by())})
                })
            });
            rows.collect()
        });
        let line = |item: &Value| {
            let part = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
            let by =
                item.get("said_by").and_then(Value::as_str).map(|by| format!(", {by}")).unwrap_or_default();
            let key = item.get("key").and_then(Value::as_str);
            let key = key.map(|key| format!(" {}/{key}", part("category"))).unwrap_or_default();
            entry(&format!("{} {}{key}{by}: {}", part("id"), part("kind"), part("text")))
        };
        let said: Vec<String> = items.iter().map(line).collect();
        let nothing =
            if words.is_empty() { "nothing is remembered yet" } else { "nothing is remembered of that" };
        let text = if said.is_empty() { nothing.to_owned() } else { said.join("\n") };
        Ok(ToolReply { text, value: json!({"items": items}) })
    }

    pub(super) fn forget(
        &self,
        session: Option<&str>,
        arguments: &Map<String, Value>,
    ) -> Result<ToolReply, ToolError> {
        let item = MemoryRef::from(text(arguments, "id")?);
        let reason = arguments.get("reason").and_then(Value::as_str).map(str::to_owned);
        let command = MemoryCommand::Retract { item, reason };
        let receipt = self.store().remember_as(&self.scope(session)?, &command, Actor::Assistant)?;
        Ok(ToolReply { text: format!("{} no longer holds", receipt.id), value: json!({"id": receipt.id}) })
    }

    /// The versions of a remembered item, oldest first; `None` if memory has no such item.
    pub(super) fn memory_chain(
        &self,
        session: Option<&str>,
        name: &str,
        by: NamedBy,
    ) -> Result<Option<ToolReply>, ToolError> {
        let Some(memory) = self.memory(session)? else { return Ok(None) };
        let texts = |body| acpdb_query::memory::text(self.store(), body);
        let rows = memory.read(self.store().now(), |view| {
            let (stream, item) = match (by, view.named(name)) {
                (NamedBy::Id, _) => view.by_id(name)?,
                (NamedBy::Words, MemoryNamed::One(stream, item)) => (stream, item),
                (NamedBy::Words, MemoryNamed::Many(_) | MemoryNamed::None) => return None,
            };
            let (_, memory) = view.stream(stream)?;
            let members = memory.chain(&item).members.into_iter().filter_map(|member| member.item);
            Some(members.map(|item| RememberedItem::new(view, stream, &item, &texts)).collect::<Vec<_>>())
        });
        Ok(rows.map(|rows| {
            let line = |row: &RememberedItem| {
                let stands = match row.superseded_by.as_slice() {
                    [] => row.standing.label().to_owned(),
                    by => format!("superseded by {}", by.join(", ")),
                };
                let value = row.value.as_deref().unwrap_or("[not readable]");
                format!("{}{}: {value} ({stands})", row.id, place(row))
            };
            let text = rows.iter().map(line).collect::<Vec<_>>().join("\n");
            ToolReply { text, value: json!({"chain": {"members": rows}}) }
        }))
    }

    /// The memory that a call is about; `None` if its project is new to the store.
    fn memory(&self, session: Option<&str>) -> Result<Option<Memory>, ToolError> {
        match self.scope(session).and_then(|scope| Ok(self.store().memory(&scope, Seq::MAX)?)) {
            Err(ToolError::NoSession | ToolError::Store(Error::NotFound { .. })) if session.is_none() => {
                Ok(None)
            }
            memory => memory.map(Some),
        }
    }

    /// The newest version of a remembered item.
    fn row(&self, session: Option<&str>, id: &str) -> Result<Option<RememberedItem>, ToolError> {
        let Some(memory) = self.memory(session)? else { return Ok(None) };
        let texts = |body| acpdb_query::memory::text(self.store(), body);
        Ok(memory.read(self.store().now(), |view| {
            let (stream, item) = view.by_id(id)?;
            Some(RememberedItem::new(view, stream, &item, &texts))
        }))
    }
}

/// Category and key of a preference, behind its id.
fn place(row: &RememberedItem) -> String {
    row.key.as_ref().map(|key| format!(" {}/{key}", row.category)).unwrap_or_default()
}
