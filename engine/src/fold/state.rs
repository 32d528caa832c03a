//! The state of one stream: facts, present, history, and the operations that made them.
//!
//! The present is the state that rules need: the items that are ready, the keys under which calls are found, the faces that are due. Conclusions
//! do not stand here: they go to [`History`](super::history::History), which keeps them for ever. A [`Step`](super::step::Step) changes the
//! present. A rewind drops the present and folds the operations of the active branch anew, with a history that is thrown away.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::claims::Quiet;
use super::claims::{ClaimKey, ClaimTable};
use super::facts::Facts;
use super::history::History;
use super::memory::MemoryState;
use super::number::{Ix, Name, index};
use super::op::{NameSet, Op, Ops};
use super::policy::{Policy, SharedPolicy};
use super::rules::Lists;
use super::task::TaskState;
use super::todo::TodoState;
use crate::event::{Face, MessageFinished, Outcome, Parent, PromptSet, RebaseCause, Scope};
use crate::ids::{ItemId, Micros, Seq, StreamId, Turn};

/// The known facts about a stream itself.
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
    /// The place where a subagent was started.
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
    /// The cause.
    pub why: RebaseCause,
    /// Pending items that were applied; empty means all.
    pub items: Vec<ItemId>,
}

/// The folded state of one stream. Every read takes a watermark; `Seq::MAX` reads the newest state.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct State {
    pub(crate) id: StreamId,
    pub(crate) facts: Facts,
    pub(crate) core: Core,
    pub(crate) history: History,
    pub(super) subs: Subs,
    pub(super) ops: Ops,
    pub(crate) infos: Vec<(Seq, Arc<StreamFacts>)>,
    pub(crate) policies: Vec<(Seq, SharedPolicy)>,
    pub(crate) prompts: Vec<(Seq, PromptSet)>,
    pub(crate) finished: Vec<(Seq, MessageFinished)>,
    pub(crate) rebases: Vec<Rebase>,
    pub(crate) served: Vec<(Seq, crate::event::ContextServed)>,
    pub(crate) closed: Vec<Seq>,
    pub(crate) forks: Vec<(Seq, crate::event::Forked)>,
    pub(crate) rewinds: Vec<(Seq, Seq)>,
    pub(crate) not_understood: u64,
    pub(crate) first: Seq,
    pub(crate) head: Seq,
    pub(crate) times: Vec<(Seq, Micros)>,
    /// When the model was last heard: it began a step, spoke or called.
    pub(crate) heard_at: Option<Micros>,
}

impl State {
    /// Events whose kind, or a field of which, this program does not know.
    pub const fn not_understood(&self) -> u64 {
        self.not_understood
    }

    /// An empty stream under the store's policy.
    pub(crate) fn new(id: StreamId, policy: Arc<Policy>) -> Self {
        let policy = SharedPolicy(policy);
        Self {
            id,
            core: Core { policy: policy.clone(), ..Core::default() },
            ops: Ops::from_iter([(Seq::ZERO, Op::Policy { policy: policy.clone(), own: false })]),
            policies: vec![(Seq::ZERO, policy)],
            ..Self::default()
        }
    }

    /// The todo list.
    pub fn todos(&self) -> &TodoState {
        &self.subs.todos
    }

    /// The tasks.
    pub fn tasks(&self) -> &TaskState {
        &self.subs.tasks
    }

    /// The memory items of this stream.
    pub fn memory(&self) -> &MemoryState {
        &self.subs.memory
    }

    /// Whether the stream may have memory items.
    pub(crate) fn may_remember(&self) -> bool {
        !self.subs.memory.is_empty()
    }

    /// The facts about the stream itself that were known first.
    pub(crate) fn first_info(&self) -> Option<Arc<StreamFacts>> {
        self.infos.first().map(|(_, info)| Arc::clone(info))
    }
}

/// The status of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub enum Status {
    /// Not finished.
    #[default]
    Pending,
    /// Finished well.
    Completed,
    /// Finished with an error.
    Failed,
    /// Cancelled, refused or interrupted.
    Aborted,
}

impl From<Outcome> for Status {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Failed => Self::Failed,
            Outcome::Aborted => Self::Aborted,
        }
    }
}

/// The present state of an item.
#[derive(Clone, Copy, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct LiveItem {
    pub(crate) status: Status,
    flags: u16,
}

pub(crate) const BORN: u16 = 1;
pub(crate) const READY: u16 = 1 << 1;
pub(crate) const SUPERSEDED: u16 = 1 << 2;
pub(crate) const CLEARED: u16 = 1 << 3;
pub(crate) const LEFT: u16 = 1 << 4;
pub(crate) const PINNED: u16 = 1 << 5;
/// Shown again on request: not shortened any more.
pub(crate) const RESTORED: u16 = 1 << 6;
pub(crate) const SHORTENED: u16 = 1 << 7;
pub(crate) const EVICTED: u16 = 1 << 8;

impl LiveItem {
    pub(crate) const fn is(self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    pub(crate) const fn failed(self) -> bool {
        matches!(self.status, Status::Failed | Status::Aborted)
    }
}

/// The sub-states of a stream.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Subs {
    pub(crate) todos: Arc<TodoState>,
    pub(crate) tasks: Arc<TaskState>,
    pub(crate) memory: Arc<MemoryState>,
}

/// The present of a stream.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Core {
    pub(crate) policy: SharedPolicy,
    /// The policy is the stream's own, not the store's.
    pub(crate) own_policy: bool,
    pub(crate) turn: Turn,
    pub(super) live: Vec<LiveItem>,
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) open: FxHashMap<Name, SmallVec<[Ix; 1]>>,
    pub(super) claims: ClaimTable,
    /// Names of steps that have begun.
    pub(super) steps: NameSet,
    pub(crate) lists: Lists,
    /// Completed calls under turn protection, by the turn in which they become ready.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) protected: BTreeMap<u32, Vec<Ix>>,
    pub(super) quiet: Quiet,
    pub(super) idle: Idle,
    /// Per shortening rule, if any is on: items by the turn in which the rule acts on them.
    #[rkyv(with = rkyv::with::Map<rkyv::with::AsVec>)]
    pub(super) shorten: Vec<BTreeMap<u32, Vec<Ix>>>,
    pub(super) reminder: Option<Ix>,
    pub(super) reflection: Option<Ix>,
    pub(super) todo_latest: Option<(Turn, u32)>,
    pub(super) task: Option<Name>,
    /// Per task: the first message whose words are evicted.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_begins: FxHashMap<Name, u32>,
    /// Per task: its outputs.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_outputs: FxHashMap<Name, Vec<Ix>>,
    /// Per evicted task: the eviction, as long as no work on it begins anew.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_ended: FxHashMap<Name, u32>,
    /// Per eviction with a summary: the items that it hid.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) evicted: FxHashMap<u32, Vec<Ix>>,
    /// Calls that are open, with the task they began under.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_calls: FxHashMap<Ix, Name>,
    /// Outputs of the active task that rolling prune has left.
    pub(super) task_recent: VecDeque<Ix>,
    #[rkyv(with = rkyv::with::Skip)]
    pub(super) found: Vec<(Ix, bool, u32, ClaimKey)>,
}

impl Core {
    pub(crate) fn live(&self, ix: Ix) -> LiveItem {
        self.live.get(ix.at()).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, ix: Ix, flag: u16) {
        if let Some(live) = self.live.get_mut(ix.at()) {
            live.flags |= flag;
        }
    }

    pub(super) fn unset(&mut self, ix: Ix, flag: u16) {
        if let Some(live) = self.live.get_mut(ix.at()) {
            live.flags &= !flag;
        }
    }

    pub(super) fn born(&mut self, ix: Ix) {
        if self.live.len() <= ix.at() {
            self.live.resize(ix.at().saturating_add(1), LiveItem::default());
        }
        self.set(ix, BORN);
    }

    /// The newest finished call in the context with this host id.
    pub(crate) fn finished_call(&self, facts: &Facts, host_id: Name) -> Option<Ix> {
        facts.calls_of_host(host_id).find(|ix| {
            let live = self.live(*ix);
            live.is(BORN) && !live.is(LEFT) && live.status != Status::Pending
        })
    }

    pub(super) fn next_place(&self) -> u32 {
        index(self.live.len())
    }
}

/// Faces by the turn in which they are looked at.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Idle {
    /// Prompts on the branch.
    pub(super) prompts: u32,
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) due: BTreeMap<u32, Vec<(Ix, Face)>>,
    /// The same, for a turn that begins with a cold cache.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) due_when_cold: BTreeMap<u32, Vec<(Ix, Face)>>,
    /// Contents by the number of the prompt at which they go.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) due_at_prompt: BTreeMap<u32, Vec<(Ix, Face)>>,
}

impl Idle {
    /// The policy changed: everything is scheduled anew.
    pub(crate) fn clear(&mut self) {
        self.due.clear();
        self.due_when_cold.clear();
        self.due_at_prompt.clear();
    }
}
