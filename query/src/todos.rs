//! Todo lists with their texts.

use std::collections::HashMap;

use acpdb_engine::answers::Reminder;
use acpdb_engine::fold::todo::{TodoEntry, TodoSource, TodoView};
use acpdb_engine::ids::{BodyId, Seq, Turn};
use acpdb_engine::{Error, View};
use serde_json::{Map, Value, json};

/// An entry with its text.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its id, if the host gives one.
    pub id: Option<String>,
    /// Its text.
    pub content: String,
    /// Its status, in the host's words.
    pub status: String,
    /// Its priority.
    pub priority: Option<String>,
    /// Its place in the list, from 0.
    pub position: u32,
    /// The turn since which it is in progress.
    pub since: Option<Turn>,
    /// All fields as the host gave them.
    pub fields: Map<String, Value>,
}

impl Entry {
    /// The entry for programs: the host's fields, overlaid by the other fields of this entry.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut fields = self.fields.clone();
        if let Some(id) = &self.id {
            fields.insert("id".to_owned(), json!(id));
        }
        fields.insert("content".to_owned(), json!(self.content));
        fields.insert("status".to_owned(), json!(self.status));
        if let Some(priority) = &self.priority {
            fields.insert("priority".to_owned(), json!(priority));
        }
        fields.insert("position".to_owned(), json!(self.position));
        match self.since {
            Some(since) => fields.insert("inProgressSince".to_owned(), json!(since.get())),
            None => fields.remove("inProgressSince"),
        };
        Value::Object(fields)
    }

    /// Whether `name` is the entry's id or its content.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.id.as_deref() == Some(name) || self.content == name
    }
}

/// Reads the texts of entries; each body once.
#[derive(Debug)]
pub struct Texts<'v> {
    view: &'v View,
    lists: HashMap<BodyId, Vec<Value>>,
    /// Damaged texts are empty, as erased ones always are.
    skips_damage: bool,
}

impl<'v> Texts<'v> {
    /// Nothing was read yet.
    #[must_use]
    pub fn new(view: &'v View) -> Self {
        Self { view, lists: HashMap::new(), skips_damage: false }
    }

    /// As [`Self::new`], but damaged texts are empty.
    pub(crate) fn of_what_is_left(view: &'v View) -> Self {
        Self { skips_damage: true, ..Self::new(view) }
    }

    /// The entries of a list that were not deleted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn entries(&mut self, list: &TodoView) -> Result<Vec<Entry>, Error> {
        list.items.iter().filter(|item| !item.is_deleted()).map(|item| self.entry(item)).collect()
    }

    fn entry(&mut self, item: &TodoEntry) -> Result<Entry, Error> {
        let mut fields = Map::new();
        for source in &item.entry {
            let value = match source {
                TodoSource::List { body, index } => {
                    self.list(*body)?.get(*index as usize).cloned().unwrap_or_default()
                }
                TodoSource::Change { body } => self.read(*body)?,
            };
            if let Value::Object(more) = value {
                fields.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
            }
        }
        Ok(Entry {
            id: item.id.clone(),
            content: content(&fields).unwrap_or_default().to_owned(),
            status: item.status.clone(),
            priority: item.priority.clone(),
            position: item.position,
            since: item.in_progress_since,
            fields,
        })
    }

    fn list(&mut self, body: BodyId) -> Result<&[Value], Error> {
        if !self.lists.contains_key(&body) {
            let items = match self.read(body)? {
                Value::Array(items) => items,
                _ => Vec::new(),
            };
            self.lists.insert(body, items);
        }
        Ok(self.lists.get(&body).map(Vec::as_slice).unwrap_or_default())
    }

    /// The JSON of a body; null if the body was erased.
    fn read(&self, body: BodyId) -> Result<Value, Error> {
        match self.view.text(body) {
            Ok(text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
            Err(Error::Erased { .. }) => Ok(Value::Null),
            Err(Error::Corrupt { .. }) if self.skips_damage => Ok(Value::Null),
            Err(error) => Err(error),
        }
    }
}

/// The text of an entry: hosts call the field by different names.
pub(crate) fn content(fields: &Map<String, Value>) -> Option<&str> {
    let names = ["content", "step", "description", "subject", "title"];
    names.iter().find_map(|name| fields.get(*name).and_then(Value::as_str))
}

/// The list as of a view.
#[derive(Clone, Debug)]
pub struct List {
    /// The event that made it; `None` without a list.
    pub seq: Option<Seq>,
    /// The turn of that event.
    pub turn: Option<Turn>,
    /// Its entries, in order.
    pub entries: Vec<Entry>,
    /// The reminder, if the list was not touched for long.
    pub reminder_due: Option<Reminder>,
}

impl List {
    /// The list for programs.
    #[must_use]
    pub fn json(&self, session: &str) -> Value {
        json!({
            "session": session,
            "seq": self.seq,
            "turn": self.turn,
            "items": self.entries.iter().map(Entry::json).collect::<Vec<_>>(),
            "reminder_due": self.reminder_due,
        })
    }
}

/// The todo list as of a view.
///
/// # Errors
/// The store cannot be read.
pub fn list(view: &View) -> Result<List, Error> {
    let found = view.read().state().todos().list(view.at());
    let entries = found.as_ref().map(|list| Texts::new(view).entries(list)).transpose()?.unwrap_or_default();
    Ok(List {
        seq: found.as_ref().map(|list| list.seq),
        turn: found.as_ref().map(|list| list.turn),
        entries,
        reminder_due: view.reminder_due(),
    })
}
