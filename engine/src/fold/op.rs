//! Operations: events, as far as a stream's state depends on them. What a rewind and a fork fold again.

use std::sync::Arc;

use super::facts::Ix;
use super::memory::MemoryEvent;
use super::policy::Policy;
use crate::event::{TaskChanged, TodoChange, TodoList};
use crate::ids::{ItemId, Seq, Turn};

/// One event, as far as the stream's state depends on it.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) enum Op {
    Start(Ix),
    Finish(u32),
    Parts {
        first: Ix,
        count: u32,
    },
    /// The name of its key, or [`NONE`].
    Turn {
        key: u32,
        number: Option<u32>,
    },
    Prompt,
    Policy {
        #[rkyv(with = super::saved::AsJson)]
        policy: Arc<Policy>,
        own: bool,
    },
    Replace(#[rkyv(with = super::saved::Apart)] Arc<Vec<ItemId>>),
    Clear(u32),
    Rewound(#[rkyv(with = super::saved::Apart)] Arc<Rewind>),
    /// Index of the key.
    FileChanged(u32),
    Abandon(u32),
    Revise(u32),
    Hide(u32),
    Restore(#[rkyv(with = super::saved::Apart)] Arc<Vec<ItemId>>),
    Pin(#[rkyv(with = super::saved::Apart)] Arc<Vec<ItemId>>),
    Unpin(#[rkyv(with = super::saved::Apart)] Arc<Vec<ItemId>>),
    Closed,
    Injected(Ix),
    TodosReplaced(#[rkyv(with = super::saved::Apart)] Arc<TodoList>),
    TodoChanged(#[rkyv(with = super::saved::Apart)] Arc<TodoChange>),
    TaskChanged(#[rkyv(with = super::saved::Apart)] Arc<TaskChanged>),
    TaskEvicted {
        #[rkyv(with = super::saved::Apart)]
        event: Arc<crate::event::TaskEvicted>,
        eviction: u32,
    },
    Memory(#[rkyv(with = super::saved::Apart)] Arc<MemoryEvent>),
}

/// There is one of these for each event.
const _: () = assert!(size_of::<Op>() <= 16);

/// A rewind, with what outlasts it.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Rewind {
    pub(crate) to: Seq,
    pub(crate) turn: Turn,
    #[rkyv(with = super::saved::AsJson)]
    pub(crate) policy: Arc<Policy>,
    pub(crate) own: bool,
}

/// A set of names, a bit each.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct Marks(Vec<u64>);

impl Marks {
    /// True if the name was not in it.
    pub(super) fn insert(&mut self, name: u32) -> bool {
        let (word, bit) = (name as usize / 64, 1_u64 << (name % 64));
        if self.0.len() <= word {
            self.0.resize(word.saturating_add(1), 0);
        }
        let Some(word) = self.0.get_mut(word) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}
