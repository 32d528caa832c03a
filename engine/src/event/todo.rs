//! Todo lists, changes to them, and tasks with their life-cycle.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::Body;
use crate::ids::Signature;

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

/// A whole list.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TodoList {
    /// A JSON array with one object an entry: `content`, `status`, and what else the host gave, in its order.
    pub body: Body,
    /// Its entries, in order.
    pub items: Vec<TodoHead>,
}

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

/// What a call did to the list.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
#[serde(rename_all = "snake_case")]
pub enum TodoUpdate {
    /// Replaced it.
    List(TodoList),
    /// Changed one entry.
    Change(TodoChange),
}

/// The list was replaced, and no call shows it.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TodosReplaced {
    /// The new list.
    pub list: TodoList,
}

/// One entry changed, and no call shows it.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TodoChanged {
    /// The change.
    pub change: TodoChange,
}

/// Where a task stands.
#[derive(
    Archive, Serialize, Deserialize, ToJson, FromJson, Clone, Copy, PartialEq, Eq, Hash, Debug, Default,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    #[default]
    Pending,
    /// The active task.
    InProgress,
    /// Given to a subagent.
    Delegated,
    /// Done.
    Completed,
}

/// What an accepted update says about one task. Absent fields keep their value.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TaskFields {
    /// Id of the task.
    pub id: String,
    /// What is to be done.
    pub content: Option<Body>,
    /// Where it stands.
    pub status: Option<TaskStatus>,
    /// The task as JSON: criteria, grounding and evidence, as given.
    pub extra: Option<Body>,
    /// Summary of the result.
    pub summary: Option<Body>,
}

/// Tasks changed, as an accepted update said.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TaskChanged {
    /// The tasks it named, in its order.
    pub tasks: Vec<TaskFields>,
    /// Key of the message that asked for it, if known: the range of an eviction begins there.
    pub message: Option<String>,
}

/// How a task's summary was judged.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Validation {
    /// Good enough.
    pub valid: bool,
    /// Criteria met, in hundredths.
    pub score: u16,
    /// Whether the evidence check held; absent if nothing was checked.
    pub evidence_found: Option<bool>,
}

/// A task was completed: its outputs and the assistant's words about it are hidden behind its summary.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TaskEvicted {
    /// Id of the task.
    pub task: String,
    /// The annotated summary.
    pub summary: Option<Body>,
    /// How it was judged, if it was.
    pub validation: Option<Validation>,
    /// Key of the message that completed it, if known: the last of the range.
    pub message: Option<String>,
}
