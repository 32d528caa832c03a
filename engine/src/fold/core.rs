//! The present of a stream, as the rules need it: who is ready, what can be found where, what is due when.
//!
//! Only the present stands here; each conclusion is handed to [`History`](super::history::History), which keeps it for ever.
//! What changes it is a [`Step`](super::step::Step). A rewind drops the present and folds the operations of the active branch
//! anew, with a history that is thrown away.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::claims::{Claims, Slot};
use super::facts::Facts;
use super::idle::Idle;
use super::memory::MemoryState;
use super::number::{Ix, Name, index};
use super::op::Marks;
use super::policy::Policy;
use super::protect::Lists;
use super::rows::{Later, flat, flat_enum};
use super::rules::quiet::Quiet;
use super::task::TaskState;
use super::todo::TodoState;
use crate::event::Outcome;
use crate::ids::Turn;

/// Where a call stands.
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

/// What holds of an item now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Live {
    pub(crate) status: Status,
    flags: u16,
}

flat_enum!(Status { Pending, Completed, Failed, Aborted });
flat!(Live { status: Status, flags: u16 });

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

impl Live {
    pub(crate) const fn is(self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    pub(crate) const fn failed(self) -> bool {
        matches!(self.status, Status::Failed | Status::Aborted)
    }
}

/// The sub-states of a stream.
#[derive(Clone, Default, Debug)]
pub(crate) struct Subs {
    pub(crate) todos: Later<TodoState>,
    pub(crate) tasks: TaskState,
    pub(crate) memory: MemoryState,
}

/// The present of a stream.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Core {
    #[rkyv(with = super::policy::AsJson)]
    pub(crate) policy: Arc<Policy>,
    /// The policy is the stream's own, not the store's.
    pub(crate) own_policy: bool,
    pub(crate) turn: Turn,
    #[rkyv(with = rkyv::with::Skip)]
    pub(super) live: Vec<Live>,
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) open: FxHashMap<Name, SmallVec<[Ix; 1]>>,
    #[rkyv(with = rkyv::with::Skip)]
    pub(super) claims: Claims,
    /// Names of steps that have begun.
    pub(super) steps: Marks,
    pub(crate) lists: Lists,
    /// Completed calls under turn protection, by the turn in which they become ready.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) protected: BTreeMap<u32, Vec<Ix>>,
    pub(super) quiet: Quiet,
    pub(super) idle: Idle,
    /// Per shortening rule, as far as any is on: items by the turn in which it acts on them.
    #[rkyv(with = rkyv::with::Map<rkyv::with::AsVec>)]
    pub(super) shorten: Vec<BTreeMap<u32, Vec<Ix>>>,
    pub(super) reminder: Option<Ix>,
    pub(super) reflection: Option<Ix>,
    pub(super) todo_latest: Option<(Turn, u32)>,
    pub(super) task: Option<Name>,
    /// Per task: the message from which on its words are evicted.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_begins: FxHashMap<Name, u32>,
    /// Per task: its outputs.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_outputs: FxHashMap<Name, Vec<Ix>>,
    /// Per evicted task: the eviction, as long as no work on it begins anew.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_ended: FxHashMap<Name, u32>,
    /// Calls that are open, with the task they began under.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) task_calls: FxHashMap<Ix, Name>,
    /// Of the active task: outputs that rolling prune has left.
    pub(super) task_recent: VecDeque<Ix>,
    #[rkyv(with = rkyv::with::Skip)]
    pub(super) found: Vec<(Ix, bool, u32, Slot)>,
}

impl Core {
    pub(crate) fn under(policy: Arc<Policy>) -> Self {
        // Field by field: a default one would make a policy, with all its patterns, that is replaced at once.
        Self {
            policy,
            own_policy: false,
            turn: Turn::default(),
            live: Vec::new(),
            open: FxHashMap::default(),
            claims: Claims::default(),
            steps: Marks::default(),
            lists: Lists::default(),
            protected: BTreeMap::new(),
            quiet: Quiet::default(),
            idle: Idle::default(),
            shorten: Vec::new(),
            reminder: None,
            reflection: None,
            todo_latest: None,
            task: None,
            task_begins: FxHashMap::default(),
            task_outputs: FxHashMap::default(),
            task_ended: FxHashMap::default(),
            task_calls: FxHashMap::default(),
            task_recent: VecDeque::new(),
            found: Vec::new(),
        }
    }

    pub(crate) fn live(&self, ix: Ix) -> Live {
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
            self.live.resize(ix.at().saturating_add(1), Live::default());
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
