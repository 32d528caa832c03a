//! Todo lists with their texts.

use std::collections::HashMap;
use std::collections::hash_map;

use acpdb_engine::fold::todo::{TodoEntry, TodoSource, TodoView};
use acpdb_engine::ids::{BodyId, Seq, Turn};
use acpdb_engine::{Error, View};
use acpdb_serve::Reminder;
use serde_json::{Map, Value, json};

use crate::sound::or_lost;

/// An entry with its text.
#[derive(Clone, Debug)]
pub struct TodoWithText {
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
    /// The reason why some fields are not there: a text that was erased or is damaged.
    pub lost: Option<String>,
}

impl TodoWithText {
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
pub struct TodoTexts<'v> {
    view: &'v View,
    bodies: HashMap<BodyId, Result<Value, String>>,
    /// Damaged texts are lost, as erased ones always are.
    skips_damage: bool,
}

impl<'v> TodoTexts<'v> {
    /// Nothing was read yet.
    #[must_use]
    pub fn new(view: &'v View) -> Self {
        Self { view, bodies: HashMap::new(), skips_damage: false }
    }

    /// As [`Self::new`], but damaged texts are lost.
    #[must_use]
    pub fn of_what_is_left(view: &'v View) -> Self {
        Self { skips_damage: true, ..Self::new(view) }
    }

    /// The entries of a list that were not deleted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn entries(&mut self, list: &TodoView) -> Result<Vec<TodoWithText>, Error> {
        list.items.iter().filter(|item| !item.is_deleted()).map(|item| self.entry(item)).collect()
    }

    fn entry(&mut self, item: &TodoEntry) -> Result<TodoWithText, Error> {
        let (mut fields, mut lost) = (Map::new(), None);
        for source in &item.entry {
            let (TodoSource::List { body, .. } | TodoSource::Change { body }) = source;
            match (self.read(*body)?, source) {
                (Err(why), _) => lost = Some(why.clone()),
                (Ok(list), TodoSource::List { index, .. }) => overlay(&mut fields, list.get(*index as usize)),
                (Ok(change), TodoSource::Change { .. }) => overlay(&mut fields, Some(change)),
            }
        }
        Ok(TodoWithText {
            id: item.id.clone(),
            content: content(&fields).unwrap_or_default().to_owned(),
            status: item.status.clone(),
            priority: item.priority.clone(),
            position: item.position,
            since: item.in_progress_since,
            fields,
            lost,
        })
    }

    /// The JSON of a body; the inner error: why it is lost.
    fn read(&mut self, body: BodyId) -> Result<&Result<Value, String>, Error> {
        match self.bodies.entry(body) {
            hash_map::Entry::Occupied(known) => Ok(known.into_mut()),
            hash_map::Entry::Vacant(place) => {
                let text = match self.view.text(body) {
                    Err(error @ Error::Corrupt { .. }) if !self.skips_damage => return Err(error),
                    text => or_lost(text)?,
                };
                // The fold counted its todos, so it is JSON; a value without members would be a todo without a content.
                let value = text.map(|text| serde_json::from_str(&text).unwrap_or_default());
                Ok(place.insert(value.map_err(|lost| format!("[{lost}]"))))
            }
        }
    }
}

/// Puts the fields of an entry over those of before.
fn overlay(fields: &mut Map<String, Value>, more: Option<&Value>) {
    let more = more.and_then(Value::as_object).into_iter().flatten().filter(|(_, value)| !value.is_null());
    fields.extend(more.map(|(name, value)| (name.clone(), value.clone())));
}

/// The text of an entry: hosts call the field by different names.
pub(crate) fn content(fields: &Map<String, Value>) -> Option<&str> {
    let names = ["content", "step", "description", "subject", "title"];
    names.iter().find_map(|name| fields.get(*name).and_then(Value::as_str))
}

/// The list as of a view.
#[derive(Clone, Debug)]
pub struct TodoListView {
    /// The event that made it; `None` without a list.
    pub seq: Option<Seq>,
    /// The turn of that event.
    pub turn: Option<Turn>,
    /// Its entries, in order.
    pub entries: Vec<TodoWithText>,
    /// The reminder, if the list was not touched for long.
    pub reminder_due: Option<Reminder>,
}

impl TodoListView {
    /// The list for programs.
    #[must_use]
    pub fn json(&self, session: &str) -> Value {
        json!({
            "session": session,
            "seq": self.seq,
            "turn": self.turn,
            "items": self.entries.iter().map(TodoWithText::json).collect::<Vec<_>>(),
            "reminder_due": self.reminder_due,
        })
    }
}

/// The todo list as of a view.
///
/// # Errors
/// The store cannot be read.
pub fn list(view: &View) -> Result<TodoListView, Error> {
    let found = view.state().todos().list(view.at());
    let entries =
        found.as_ref().map(|list| TodoTexts::new(view).entries(list)).transpose()?.unwrap_or_default();
    Ok(TodoListView {
        seq: found.as_ref().map(|list| list.seq),
        turn: found.as_ref().map(|list| list.turn),
        entries,
        reminder_due: Reminder::due(view),
    })
}
