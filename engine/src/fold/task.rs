//! Tasks of a stream: the status of each, the active one, the beginning of its work, the eviction of its logs.
//!
//! ```text
//! pending --> in_progress --> completed --(TaskEvicted)--> its outputs and the words about it stand behind its summary
//!                 ^    |
//!                 |    +--> pending, delegated: `begun` stays, for the range of an eviction begins at the *first*
//!                 +------- in_progress after completion: a new beginning
//! ```
//!
//! Append-only versions a task, each stamped with its seq; a read at w takes the last one with seq <= w. A rewind
//! appends an *era*: reads from its seq on see the tasks of the branch that remains. Texts stay in bodies.
//!
//! Facts are taken as they come: the life-cycle (one active task, a summary on completion) is checked where commands
//! are accepted. `fold/step/tasks.rs` decides which faces an eviction hides.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::stamped::last_until;
use crate::event::{TaskChanged, TaskEvicted, TaskStatus, Validation};
use crate::ids::{BodyId, Seq, Turn};

/// The point where work on a task began or ended.
#[derive(Serialize, Clone, PartialEq, Eq, Hash, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct TaskPoint {
    /// The event that recorded it.
    pub seq: Seq,
    /// Key of the message that asked for it, if known.
    pub message: Option<String>,
}

/// The record of a task's completion.
#[derive(Serialize, Clone, PartialEq, Eq, Hash, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct Eviction {
    /// The event.
    pub seq: Seq,
    /// The annotated summary.
    pub summary: Option<BodyId>,
    /// The judgement on the summary, if there is one.
    pub validation: Option<Validation>,
}

/// One task as of some seq.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskView<'a> {
    /// The task's id.
    pub id: &'a str,
    /// The event of its newest change.
    pub seq: Seq,
    /// Its status.
    pub status: TaskStatus,
    /// The work to be done.
    pub content: Option<BodyId>,
    /// Its JSON objects as given, oldest first: later ones overlay earlier ones, nulls change nothing.
    pub extras: &'a [BodyId],
    /// Summary of the result, as given.
    pub summary: Option<BodyId>,
    /// Turn of its newest change.
    pub turn: Turn,
    /// Point where it was first put in progress since its last completion: the range of an eviction begins there.
    pub begun: Option<&'a TaskPoint>,
    /// Point where it was completed, unless work began anew: the range of an eviction ends there.
    pub ended: Option<&'a TaskPoint>,
    /// Its newest eviction.
    pub eviction: Option<&'a Eviction>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct TaskVersion {
    seq: Seq,
    status: TaskStatus,
    content: Option<BodyId>,
    extra_count: usize,
    summary: Option<BodyId>,
    turn: Turn,
    #[rkyv(with = rkyv::with::Map<rkyv::with::Unshare>)]
    begun: Option<Arc<TaskPoint>>,
    #[rkyv(with = rkyv::with::Map<rkyv::with::Unshare>)]
    ended: Option<Arc<TaskPoint>>,
    #[rkyv(with = rkyv::with::Map<rkyv::with::Unshare>)]
    eviction: Option<Arc<Eviction>>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct Task {
    id: String,
    extras: Vec<BodyId>,
    versions: Vec<TaskVersion>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct TaskEra {
    since: Seq,
    /// In order of first mention.
    tasks: Vec<Task>,
    #[rkyv(with = rkyv::with::AsVec)]
    by_id: BTreeMap<String, usize>,
    /// The active task (its index) from each seq on.
    active: Vec<(Seq, Option<usize>)>,
    /// Tasks in progress, the one that started last at the end. Only the newest state; no read needs an older one.
    in_progress: Vec<usize>,
}

/// The tasks of one stream, at every seq.
#[derive(Clone, PartialEq, Eq, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct TaskState {
    first: TaskEra,
    later: Vec<TaskEra>,
}

impl TaskState {
    /// Takes in an accepted update, or one that a host reported. `turn`: the event's; `task_seq`: the event that names bodies.
    ///
    /// If the update puts several tasks in progress, the last one is active.
    pub fn changed(&mut self, seq: Seq, turn: Turn, change: &TaskChanged, task_seq: Seq) {
        let era = self.newest_mut();
        for fields in &change.tasks {
            let index = era.index(&fields.id);
            let Some((task, mut version)) = era.next_version(index, seq) else { continue };
            if let Some(content) = &fields.content {
                version.content = Some(content.id(task_seq));
            }
            if let Some(summary) = &fields.summary {
                version.summary = Some(summary.id(task_seq));
            }
            if let Some(extra) = &fields.extra {
                task.extras.push(extra.id(task_seq));
                version.extra_count = task.extras.len();
            }
            version.turn = turn;
            if let Some(status) = fields.status {
                let here = || Some(Arc::new(TaskPoint { seq, message: change.message.clone() }));
                if version.status == TaskStatus::Completed && status != TaskStatus::Completed {
                    version.begun = None;
                    version.ended = None;
                }
                if status == TaskStatus::InProgress && version.begun.is_none() {
                    version.begun = here();
                } else if status == TaskStatus::Completed && version.ended.is_none() {
                    version.ended = here();
                }
                version.status = status;
            }
            let status = version.status;
            task.versions.push(version);
            era.stands(index, status);
        }
        era.note_active(seq);
    }

    /// A task's logs were evicted: it is completed, whether or not a change said so. `task_seq`: the event that names bodies.
    pub fn evicted(&mut self, seq: Seq, evicted: &TaskEvicted, task_seq: Seq) {
        let era = self.newest_mut();
        let index = era.index(&evicted.task);
        let Some((task, mut version)) = era.next_version(index, seq) else { return };
        version.status = TaskStatus::Completed;
        version.eviction = Some(Arc::new(Eviction {
            seq,
            summary: evicted.summary.as_ref().map(|body| body.id(task_seq)),
            validation: evicted.validation.clone(),
        }));
        let ended = version.ended.take().filter(|ended| ended.message.is_some() || evicted.message.is_none());
        let here = || Arc::new(TaskPoint { seq, message: evicted.message.clone() });
        version.ended = Some(ended.unwrap_or_else(here));
        task.versions.push(version);
        era.stands(index, TaskStatus::Completed);
        era.note_active(seq);
    }

    /// A rewind, recorded at `seq`: reads from `seq` on see the newest state of `fresh`, the fold of the branch that
    /// remains. Reads below `seq` are as before.
    pub fn rewound(&mut self, seq: Seq, fresh: Self) {
        let mut era = fresh.later.into_iter().next_back().unwrap_or(fresh.first);
        era.since = seq;
        for task in &mut era.tasks {
            // The last version stays, if there is one; so does the last active task below.
            task.versions.drain(..task.versions.len().saturating_sub(1));
        }
        // As above.
        era.active.drain(..era.active.len().saturating_sub(1));
        self.later.push(era);
    }

    /// Id of the active task as of `at`.
    pub fn active(&self, at: Seq) -> Option<&str> {
        let era = self.era(at);
        let (_, index) = last_until(&era.active, at, |(seq, _)| *seq)?;
        era.tasks.get((*index)?).map(|task| task.id.as_str())
    }

    /// The tasks as of `at`, in order of first mention.
    pub fn tasks(&self, at: Seq) -> impl Iterator<Item = TaskView<'_>> {
        self.era(at).tasks.iter().filter_map(move |task| task.view(at))
    }

    /// One task as of `at`.
    pub fn task(&self, id: &str, at: Seq) -> Option<TaskView<'_>> {
        let era = self.era(at);
        era.tasks.get(*era.by_id.get(id)?)?.view(at)
    }

    fn era(&self, at: Seq) -> &TaskEra {
        self.later.iter().rev().find(|era| era.since <= at).unwrap_or(&self.first)
    }

    fn newest_mut(&mut self) -> &mut TaskEra {
        self.later.last_mut().unwrap_or(&mut self.first)
    }
}

impl TaskEra {
    /// Index of the task `id`, which is made if it is not there.
    fn index(&mut self, id: &str) -> usize {
        if let Some(index) = self.by_id.get(id) {
            return *index;
        }
        let index = self.tasks.len();
        self.tasks.push(Task { id: id.to_owned(), ..Task::default() });
        self.by_id.insert(id.to_owned(), index);
        index
    }

    /// The task and a copy of its newest version, stamped `seq`.
    fn next_version(&mut self, index: usize, seq: Seq) -> Option<(&mut Task, TaskVersion)> {
        let task = self.tasks.get_mut(index)?;
        let version = TaskVersion { seq, ..task.versions.last().cloned().unwrap_or_default() };
        Some((task, version))
    }

    fn stands(&mut self, index: usize, status: TaskStatus) {
        let listed = self.in_progress.contains(&index);
        if status == TaskStatus::InProgress {
            if !listed {
                self.in_progress.push(index);
            }
        } else if listed {
            self.in_progress.retain(|other| *other != index);
        }
    }

    fn note_active(&mut self, seq: Seq) {
        let active = self.in_progress.last().copied();
        if self.active.last().and_then(|(_, index)| *index) != active {
            self.active.push((seq, active));
        }
    }
}

impl Task {
    fn view(&self, at: Seq) -> Option<TaskView<'_>> {
        let version = last_until(&self.versions, at, |version| version.seq)?;
        Some(TaskView {
            id: &self.id,
            seq: version.seq,
            status: version.status,
            content: version.content,
            extras: self.extras.get(..version.extra_count).unwrap_or_default(),
            summary: version.summary,
            turn: version.turn,
            begun: version.begun.as_deref(),
            ended: version.ended.as_deref(),
            eviction: version.eviction.as_deref(),
        })
    }
}

#[cfg(test)]
mod tests;
