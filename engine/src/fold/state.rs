//! The state of one stream: facts, present, history, and the operations that made them.

use std::sync::Arc;

use super::core::{Core, Subs};
use super::facts::Facts;
use super::history::History;
use super::memory::MemoryState;
use super::op::{Op, Ops};
use super::policy::Policy;
use super::task::TaskState;
use super::todo::TodoState;
use crate::event::{MessageFinished, Parent, PromptSet, RebaseCause, Scope};
use crate::ids::{ItemId, Micros, Seq, StreamId};

/// What is known about a stream itself.
#[derive(
    Clone, PartialEq, Eq, Debug, Default, serde::Serialize, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub struct StreamFacts {
    /// Session, project or user.
    pub scope: Scope,
    /// The host program.
    pub host: String,
    /// The host's id of the session, or the project's or user's name.
    pub name: String,
    /// The project's name.
    pub project: Option<String>,
    /// For a subagent: where it was started.
    pub parent: Option<Parent>,
    /// Working folder.
    pub cwd: Option<String>,
    /// A title for people.
    pub title: Option<String>,
    /// Version of the host program.
    pub host_version: Option<String>,
}

/// An epoch of the served context.
#[derive(
    Clone, PartialEq, Eq, Debug, serde::Serialize, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
pub struct Rebase {
    /// The event.
    pub seq: Seq,
    /// Number of the epoch.
    pub epoch: u32,
    /// Why.
    pub why: RebaseCause,
    /// Pending items that were applied; empty means all.
    pub items: Vec<ItemId>,
}

/// The folded state of one stream. Every read takes a watermark; `Seq::MAX` reads the newest state.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) id: StreamId,
    pub(crate) facts: Facts,
    pub(crate) core: Core,
    pub(crate) history: History,
    pub(super) subs: Subs,
    pub(super) ops: Ops,
    pub(crate) infos: Vec<(Seq, Arc<StreamFacts>)>,
    pub(crate) policies: Vec<(Seq, Arc<Policy>)>,
    pub(crate) prompts: Vec<(Seq, PromptSet)>,
    pub(crate) finished: Vec<(Seq, MessageFinished)>,
    pub(crate) rebases: Vec<Rebase>,
    pub(crate) served: Vec<(Seq, crate::event::ContextServed)>,
    pub(crate) closed: Vec<Seq>,
    pub(crate) forks: Vec<(Seq, crate::event::Forked)>,
    pub(crate) rewinds: Vec<(Seq, Seq)>,
    pub(crate) counts: Counts,
    pub(crate) first: Seq,
    pub(crate) head: Seq,
    pub(crate) times: Vec<(Seq, Micros)>,
    /// When the model was last heard: it began a step, spoke or called.
    pub(crate) heard_at: Option<Micros>,
}

/// What is only counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Counts {
    pub(crate) unknown: u64,
}

impl State {
    /// An empty stream under the store's policy.
    pub(crate) fn new(id: StreamId, policy: Arc<Policy>) -> Self {
        Self {
            id,
            facts: Facts::default(),
            core: Core::under(Arc::clone(&policy)),
            history: History::default(),
            subs: Subs::default(),
            ops: Ops::from_iter([(Seq::ZERO, Op::Policy { policy: Arc::clone(&policy), own: false })]),
            infos: Vec::new(),
            policies: vec![(Seq::ZERO, policy)],
            prompts: Vec::new(),
            finished: Vec::new(),
            rebases: Vec::new(),
            served: Vec::new(),
            closed: Vec::new(),
            forks: Vec::new(),
            rewinds: Vec::new(),
            counts: Counts::default(),
            first: Seq::ZERO,
            head: Seq::ZERO,
            times: Vec::new(),
            heard_at: None,
        }
    }

    /// The todo list.
    pub fn todos(&self) -> &TodoState {
        &self.subs.todos
    }

    /// The tasks.
    pub const fn tasks(&self) -> &TaskState {
        &self.subs.tasks
    }

    /// The memory items of this stream.
    pub const fn memory(&self) -> &MemoryState {
        &self.subs.memory
    }

    /// What was first known about the stream itself.
    pub(crate) fn first_info(&self) -> Option<Arc<StreamFacts>> {
        self.infos.first().map(|(_, info)| Arc::clone(info))
    }
}
