//! Todo lists, changes to them, and tasks with their life-cycle.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::Body;
use super::cbor::{CborFault, CborField, CborReader, numbers, part, put_map, put_unsigned, record};
use super::kind::{EventKind, NamedBody};
use crate::ids::Signature;
use crate::text::words::count;

/// One entry of a list, as far as the fold needs it; its texts are in the list's body.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TodoHead {
    /// The host's id, if there is one.
    pub id: Option<String>,
    /// Signature of the content, trimmed and with white space collapsed.
    pub content: Signature,
    /// Status as given: `pending`, `in_progress`, `completed`, `cancelled`, `blocked`, `deleted` or another.
    pub status: String,
    /// Priority as given.
    pub priority: Option<String>,
}

part!(TodoHead { 0 id, 1 content, 2 status, 3 priority });

/// A whole list.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TodoList {
    /// A JSON array with one object an entry: `content`, `status`, and the host's other fields, in its order.
    pub body: Body,
    /// Its entries, in order.
    pub items: Vec<TodoHead>,
}

part!(TodoList { 0 body, 1 items });

/// A change to one entry. Absent fields keep their value.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TodoChange {
    /// The host's id of the entry; an unknown one makes a new entry.
    pub id: String,
    /// New status.
    pub status: Option<String>,
    /// New content, one JSON object like an entry of a list.
    pub entry: Option<Body>,
    /// Signature of the new content.
    pub content: Option<Signature>,
}

part!(TodoChange { 0 id, 1 status, 2 entry, 3 content });

/// A call's change to the list.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
#[serde(rename_all = "snake_case")]
pub enum TodoUpdate {
    /// Replaced the list.
    List(TodoList),
    /// Changed one entry.
    Change(TodoChange),
}

/// A map with one key: 0 and the list, or 1 and the change.
impl CborField for TodoUpdate {
    fn blank() -> Self {
        Self::List(TodoList::default())
    }

    fn put_default(&mut self) -> Result<(), CborFault> {
        Err(CborFault::Malformed("a field is missing"))
    }

    fn is_default(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_map(out, 1);
        match self {
            Self::List(list) => {
                put_unsigned(out, 0);
                list.write(out);
            }
            Self::Change(change) => {
                put_unsigned(out, 1);
                change.write(out);
            }
        }
    }

    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        from.map_of_one()?;
        match from.unsigned()? {
            0 => {
                let mut list = TodoList::default();
                list.read(from)?;
                *self = Self::List(list);
            }
            1 => {
                let mut change = TodoChange::default();
                change.read(from)?;
                *self = Self::Change(change);
            }
            _ => return Err(CborFault::Newer),
        }
        from.array_end();
        Ok(())
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        "TodoUpdate".to_owned()
    }
}

/// The list was replaced, and no call shows it.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TodosReplaced {
    /// The new list.
    pub list: TodoList,
}

record!(TodosReplaced { 4 list });

impl EventKind for TodosReplaced {
    fn in_words(&self) -> String {
        count(self.list.items.len() as u64, "todo")
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::list;

        Self { list: list() }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        vec![NamedBody::telling("list", self.list.body)]
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        each(&mut self.list.body);
    }
}

/// One entry changed, and no call shows it.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TodoChanged {
    /// The change.
    pub change: TodoChange,
}

record!(TodoChanged { 4 change });

impl EventKind for TodoChanged {
    fn in_words(&self) -> String {
        format!("{} {}", self.change.id, self.change.status.as_deref().unwrap_or_default())
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::change;

        Self { change: change() }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        self.change.entry.map(|body| NamedBody::beside("entry", body)).into_iter().collect()
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        self.change.entry.iter_mut().for_each(each);
    }
}

numbers! {
    /// The status of a task.
    #[derive(Default)]
    pub enum TaskStatus {
        /// Not begun.
        #[default]
        Pending = 0,
        /// The active task.
        InProgress = 1,
        /// Given to a subagent.
        Delegated = 2,
        /// Done.
        Completed = 3,
    }
}

/// One task of an accepted update. Absent fields keep their value.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TaskFields {
    /// Id of the task.
    pub id: String,
    /// The work to be done.
    pub content: Option<Body>,
    /// Its status.
    pub status: Option<TaskStatus>,
    /// The task as JSON: criteria, grounding and evidence, as given.
    pub extra: Option<Body>,
    /// Summary of the result.
    pub summary: Option<Body>,
}

part!(TaskFields { 0 id, 1 content, 2 status, 3 extra, 4 summary });

impl TaskFields {
    pub(super) fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        [&mut self.content, &mut self.extra, &mut self.summary].into_iter().flatten().for_each(each);
    }
}

/// Tasks changed, as an accepted update said.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TaskChanged {
    /// The tasks it named, in its order.
    pub tasks: Vec<TaskFields>,
    /// Key of the message that asked for it, if known: the range of an eviction begins there.
    pub message: Option<String>,
}

record!(TaskChanged { 4 tasks, 5 message });

impl EventKind for TaskChanged {
    fn in_words(&self) -> String {
        let ids: Vec<&str> = self.tasks.iter().map(|task| task.id.as_str()).collect();
        ids.join(" ")
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, text};

        Self {
            tasks: vec![TaskFields {
                id: "t1".to_owned(),
                content: Some(body(0, 4)),
                status: Some(TaskStatus::InProgress),
                extra: Some(body(1, 4)),
                summary: Some(body(2, 4)),
            }],
            message: text("msg_1"),
        }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        let mut all = Vec::new();
        for TaskFields { id, content, extra, summary, .. } in &self.tasks {
            for (what, body) in [("content", content), ("extra", extra), ("summary", summary)] {
                all.extend(body.map(|body| NamedBody::beside(format!("{what} of {id}"), body)));
            }
        }
        all
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        self.tasks.iter_mut().for_each(|task| task.bodies_mut(each));
    }
}

/// The verdict on a task's summary.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Validation {
    /// Whether the summary is good enough.
    pub valid: bool,
    /// Criteria met, in hundredths.
    pub score: u16,
    /// Whether the evidence check held; absent if nothing was checked.
    pub evidence_found: Option<bool>,
}

part!(Validation { 0 valid, 1 score, 2 evidence_found });

/// A task was completed: its outputs and the assistant's words about it are hidden behind its summary.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TaskEvicted {
    /// Id of the task.
    pub task: String,
    /// The annotated summary.
    pub summary: Option<Body>,
    /// The verdict on it, if there is one.
    pub validation: Option<Validation>,
    /// Key of the message that completed it, if known: the last of the range.
    pub message: Option<String>,
}

record!(TaskEvicted { 4 task, 5 summary, 6 validation, 7 message });

impl EventKind for TaskEvicted {
    fn in_words(&self) -> String {
        self.task.clone()
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{body, text};

        Self {
            task: "t1".to_owned(),
            summary: Some(body(0, 20)),
            validation: Some(Validation { valid: true, score: 70, evidence_found: Some(false) }),
            message: text("msg_9"),
        }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        self.summary.map(|body| NamedBody::telling("summary", body)).into_iter().collect()
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        self.summary.iter_mut().for_each(each);
    }
}
