//! The command that changes tasks: the changes that an agent may make, and the events that record them.
//!
//! ```text
//! JSON {tasks: [{id, content?, status?, result_summary?, acceptance_criteria?, ..}]}
//!   --from_json--> TaskUpdate --accept--> TaskChanged, and for each task that is completed by it TaskEvicted
//!                                |
//!                                +------> TaskRejection: the agent reads its text
//! ```
//!
//! An update merges by id: absent and null fields keep their value. One task is in progress at a time. It is completed with a
//! summary of substance before another starts, for its logs are evicted then, and only the summary is left.
//!
//! Pure: earlier texts of a task come through a function that the caller gives. Facts that hosts report do not pass
//! here; they are recorded as they are.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::draft::{Bodies, EventDraft};
use super::validate::{Requirements, validate};
use crate::event::{TaskChanged, TaskEvicted, TaskFields, TaskStatus};
use crate::fold::task::{TaskState, TaskView};
use crate::ids::{BodyId, Seq};
use crate::text::likeness::kept_share;

/// Characters that the summary of a completed task has at least, without white space around it.
pub const SUMMARY_CHARS_MIN: usize = 15;
/// Bytes of a task's id, at most.
pub const TASK_ID_BYTES_MAX: usize = 512;
/// Tasks in an update, at most.
pub const TASKS_PER_UPDATE_MAX: usize = 1000;
/// Bytes of an update, at most.
pub const TASK_UPDATE_BYTES_MAX: usize = 8 << 20;

/// Fields of a task that have a place of their own; all others go into its JSON.
const OWN_FIELDS: [&str; 4] = ["id", "content", "status", "result_summary"];

/// Fields that the rules read, for the names that are nearly one of them.
const READ_FIELDS: [&str; 7] =
    ["id", "content", "status", "result_summary", "acceptance_criteria", "grounding", "grounding_evidence"];

/// Share of letters that a name has in common with the one that it may stand for: a slip or two of the pen.
const NEAR_SHARE_MIN: f64 = 0.8;

/// One task of an update. Absent fields keep their value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskEntry {
    /// Its id.
    pub id: String,
    /// The work to be done.
    pub content: Option<String>,
    /// The status from now on.
    pub status: Option<TaskStatus>,
    /// Summary of the result.
    pub result_summary: Option<String>,
    /// The task's JSON object as given, if it says more than the above: criteria, grounding, evidence.
    pub extra: Option<String>,
}

/// A change to tasks, as an agent asks for it. At most one entry a task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskUpdate {
    /// The tasks, in order of first mention.
    pub tasks: Vec<TaskEntry>,
}

/// Why an update is refused. The texts are for the agent, which reads [`TaskRejection::reply`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskRejection {
    /// The JSON is not an update.
    #[error("{0}")]
    Malformed(String),
    /// Nothing to do.
    #[error("no tasks provided")]
    NoTasks,
    /// Too little would be left of the task.
    #[error("task '{0}' needs a result_summary of at least 15 characters; its logs will be evicted")]
    SummaryTooShort(String),
    /// Two or more tasks in progress at once.
    #[error("only one task may be in progress, {0} were given; complete the active task first")]
    SeveralInProgress(usize),
    /// Another task is active.
    #[error("complete task '{active}' before starting '{started}'")]
    ActiveFirst {
        /// The active task.
        active: String,
        /// The task that was to start.
        started: String,
    },
    /// New tasks while a task is active.
    #[error("no new tasks while '{0}' is in progress; complete it first")]
    NewWhileActive(String),
    /// Completing, starting and adding at once.
    #[error("complete '{0}' in one update, then add and start new tasks in the next")]
    TooMuchAtOnce(String),
}

impl TaskRejection {
    /// The text that the agent reads.
    pub fn reply(&self) -> String {
        format!("Error updating task: {self}")
    }
}

/// The outer form; `todos` is the same under the name that older hosts use.
#[derive(Deserialize)]
struct UpdateForm<'a> {
    #[serde(borrow, default, alias = "todos")]
    tasks: Option<Vec<&'a RawValue>>,
}

impl TaskUpdate {
    /// Reads `{"tasks": [{"id": .., ..}, ..]}`. Entries of one id are merged, later fields over earlier ones.
    ///
    /// # Errors
    /// [`TaskRejection::Malformed`], naming the task and the field. An empty list is no error here.
    pub fn from_json(json: &[u8]) -> Result<Self, TaskRejection> {
        if json.len() > TASK_UPDATE_BYTES_MAX {
            let size = json.len();
            return Err(malformed(format!(
                "the update has {size} bytes, at most {TASK_UPDATE_BYTES_MAX} are allowed"
            )));
        }
        // A derived form takes an array of its fields, too; an update is an object.
        if !json.trim_ascii_start().starts_with(b"{") {
            return Err(malformed("the update is not an object with a list `tasks`".to_owned()));
        }
        let form: UpdateForm<'_> = serde_json::from_slice(json).map_err(|error| {
            malformed(format!("the update is not an object with a list `tasks`: {error}"))
        })?;
        let tasks = form.tasks.unwrap_or_default();
        if tasks.len() > TASKS_PER_UPDATE_MAX {
            let count = tasks.len();
            return Err(malformed(format!(
                "the update names {count} tasks, at most {TASKS_PER_UPDATE_MAX} are allowed"
            )));
        }
        let mut update = Self::default();
        for (raw, number) in tasks.into_iter().zip(1..) {
            update.merge(parse_task(raw.get(), number)?);
        }
        Ok(update)
    }

    /// Fields that no rule reads, and whose names are nearly those of fields that one does: task, given name, name that may be meant.
    ///
    /// A field may have any name, and is kept. One that was meant to be a criterion would pass unread.
    pub fn doubtful_fields(&self) -> Vec<(&str, String, &'static str)> {
        let mut found = Vec::new();
        for entry in &self.tasks {
            let Value::Object(fields) = merge_json(entry.extra.as_deref()) else { continue };
            for name in fields.keys().filter(|name| !READ_FIELDS.contains(&name.as_str())) {
                let is_near = |meant: &&str| kept_share(name, meant) >= NEAR_SHARE_MIN;
                let meant = READ_FIELDS.into_iter().find(is_near);
                found.extend(meant.map(|meant| (entry.id.as_str(), name.clone(), meant)));
            }
        }
        found
    }

    /// The tasks as events hold them, their texts among `bodies`.
    pub(super) fn fields(&self, bodies: &mut Bodies) -> Vec<TaskFields> {
        let mut body = |text: &Option<String>| text.as_ref().map(|text| bodies.add_copied(text));
        let fields = self.tasks.iter().map(|entry| TaskFields {
            id: entry.id.clone(),
            content: body(&entry.content),
            status: entry.status,
            extra: body(&entry.extra),
            summary: body(&entry.result_summary),
        });
        fields.collect()
    }

    fn merge(&mut self, entry: TaskEntry) {
        let Some(known) = self.tasks.iter_mut().find(|known| known.id == entry.id) else {
            self.tasks.push(entry);
            return;
        };
        known.content = entry.content.or(known.content.take());
        known.status = entry.status.or(known.status);
        known.result_summary = entry.result_summary.or(known.result_summary.take());
        known.extra = match (known.extra.take(), entry.extra) {
            (Some(earlier), Some(later)) => {
                Some(merge_json([earlier.as_bytes(), later.as_bytes()]).to_string())
            }
            (earlier, later) => later.or(earlier),
        };
    }
}

fn malformed(text: String) -> TaskRejection {
    TaskRejection::Malformed(text)
}

fn parse_task(raw: &str, number: usize) -> Result<TaskEntry, TaskRejection> {
    let not_a_task = || malformed(format!("task {number} is not an object with an id"));
    let value: Value = serde_json::from_str(raw).map_err(|_| not_a_task())?;
    let Value::Object(fields) = value else { return Err(not_a_task()) };
    let id = match fields.get("id") {
        Some(Value::String(id)) if !id.is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => return Err(not_a_task()),
    };
    if id.len() > TASK_ID_BYTES_MAX {
        return Err(malformed(format!("the id of task {number} is longer than {TASK_ID_BYTES_MAX} bytes")));
    }
    let text = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(malformed(format!("task '{id}': {name} is not a text"))),
    };
    let status = text("status")?.map(|status| parse_status(&id, &status)).transpose()?;
    let says_more =
        fields.iter().any(|(name, value)| !OWN_FIELDS.contains(&name.as_str()) && !value.is_null());
    Ok(TaskEntry {
        content: text("content")?,
        status,
        result_summary: text("result_summary")?,
        extra: says_more.then(|| raw.to_owned()),
        id,
    })
}

fn parse_status(id: &str, status: &str) -> Result<TaskStatus, TaskRejection> {
    match status {
        "pending" => Ok(TaskStatus::Pending),
        "in_progress" => Ok(TaskStatus::InProgress),
        "delegated" => Ok(TaskStatus::Delegated),
        "completed" => Ok(TaskStatus::Completed),
        _ => Err(malformed(format!(
            "task '{id}' has the unknown status '{status}'; use pending, in_progress, delegated or completed"
        ))),
    }
}

/// Lays JSON objects over each other, oldest first; nulls, and values that are not objects, change nothing.
pub fn merge_json<B: AsRef<[u8]>>(objects: impl IntoIterator<Item = B>) -> Value {
    let mut merged = serde_json::Map::new();
    for bytes in objects {
        // A value that is not an object adds no fields.
        if let Ok(Value::Object(fields)) = serde_json::from_slice(bytes.as_ref()) {
            merged.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
    }
    Value::Object(merged)
}

/// Decides whether `update` is allowed after the tasks of `state` at `at`, and gives the events that record it.
///
/// `message`: key of the message that asks, if known. `read`: gives a body's bytes; `None` if it was erased.
/// The first draft is a `TaskChanged`; a `TaskEvicted` follows for each task that becomes completed, its summary
/// judged (if the task was known) and annotated.
///
/// # Errors
/// The first refusal that holds, in the order of [`TaskRejection`]'s variants.
pub fn accept(
    state: &TaskState,
    at: Seq,
    update: &TaskUpdate,
    message: Option<&str>,
    read: &dyn Fn(BodyId) -> Option<Vec<u8>>,
) -> Result<Vec<EventDraft>, TaskRejection> {
    check(state, at, update, read)?;
    let mut drafts = vec![changed_draft(update, message)];
    for entry in &update.tasks {
        let known = state.task(&entry.id, at);
        if becomes_completed(entry, known.as_ref()) {
            drafts.push(evicted_draft(entry, known.as_ref(), message, read));
        }
    }
    Ok(drafts)
}

/// Decides whether `update` is allowed; see [`accept`].
pub fn check(
    state: &TaskState,
    at: Seq,
    update: &TaskUpdate,
    read: &dyn Fn(BodyId) -> Option<Vec<u8>>,
) -> Result<(), TaskRejection> {
    if update.tasks.is_empty() {
        return Err(TaskRejection::NoTasks);
    }
    for entry in update.tasks.iter().filter(|entry| entry.status == Some(TaskStatus::Completed)) {
        let known = state.task(&entry.id, at);
        // A task that is completed already may be named again without its summary: nothing is evicted.
        let asked = entry.result_summary.is_some() || becomes_completed(entry, known.as_ref());
        let summary = merged_summary(entry, known.as_ref(), read).unwrap_or_default();
        if asked && summary.trim().chars().count() < SUMMARY_CHARS_MIN {
            return Err(TaskRejection::SummaryTooShort(entry.id.clone()));
        }
    }
    let in_progress = |entry: &&TaskEntry| entry.status == Some(TaskStatus::InProgress);
    let count = update.tasks.iter().filter(in_progress).count();
    if count > 1 {
        return Err(TaskRejection::SeveralInProgress(count));
    }
    let Some(active) = state.active(at) else { return Ok(()) };
    let completes =
        update.tasks.iter().any(|entry| entry.id == active && entry.status == Some(TaskStatus::Completed));
    let started = update.tasks.iter().filter(in_progress).find(|entry| entry.id != active);
    let adds = update.tasks.iter().any(|entry| state.task(&entry.id, at).is_none());
    let active = active.to_owned();
    match (completes, started, adds) {
        (false, Some(started), _) => Err(TaskRejection::ActiveFirst { active, started: started.id.clone() }),
        (false, None, true) => Err(TaskRejection::NewWhileActive(active)),
        (true, Some(_), true) => Err(TaskRejection::TooMuchAtOnce(active)),
        (false, None, false) | (true, _, _) => Ok(()),
    }
}

fn becomes_completed(entry: &TaskEntry, known: Option<&TaskView<'_>>) -> bool {
    entry.status == Some(TaskStatus::Completed)
        && known.is_none_or(|known| known.status != TaskStatus::Completed)
}

fn merged_summary(
    entry: &TaskEntry,
    known: Option<&TaskView<'_>>,
    read: &dyn Fn(BodyId) -> Option<Vec<u8>>,
) -> Option<String> {
    let earlier = || {
        let bytes = read(known?.summary?)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    entry.result_summary.clone().or_else(earlier)
}

fn changed_draft(update: &TaskUpdate, message: Option<&str>) -> EventDraft {
    let mut bodies = Bodies::default();
    let tasks = update.fields(&mut bodies);
    EventDraft::of(TaskChanged { tasks, message: message.map(str::to_owned) }, bodies)
}

fn evicted_draft(
    entry: &TaskEntry,
    known: Option<&TaskView<'_>>,
    message: Option<&str>,
    read: &dyn Fn(BodyId) -> Option<Vec<u8>>,
) -> EventDraft {
    let summary = merged_summary(entry, known, read).unwrap_or_default();
    // An unknown task has asked for nothing, so its summary is not judged.
    let judged = known.map(|known| {
        let earlier = known.extras.iter().filter_map(|extra| read(*extra));
        let task = merge_json(earlier.chain(entry.extra.clone().map(String::into_bytes)));
        validate(&Requirements::of(&task), &summary)
    });
    let validation = judged.as_ref().map(super::validate::Validated::to_event);
    let annotated = judged.map_or(summary, |judged| judged.annotated_summary);
    let mut bodies = Bodies::default();
    let summary = Some(bodies.add_copied(annotated));
    let message = message.map(str::to_owned);
    EventDraft::of(TaskEvicted { task: entry.id.clone(), summary, validation, message }, bodies)
}

#[cfg(test)]
mod tests;
