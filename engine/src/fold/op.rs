//! Operations: events, as far as a stream's state depends on them. Rewinds and forks fold operations again.

use std::sync::Arc;

use super::memory::{MemoryEvent, Moment};
use super::number::{Ix, pushed};
use super::policy::SharedPolicy;
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
    /// The name of the step's key, or [`NONE`]; the turn's number, if the host gives one; seconds since the model was last heard.
    Turn {
        key: u32,
        number: Option<u32>,
        idle_seconds: u32,
    },
    Prompt,
    Policy {
        policy: SharedPolicy,
        own: bool,
    },
    Replace(Arc<Vec<ItemId>>),
    Clear(u32),
    /// With the turn and the policy that outlast it.
    Rewound {
        to: Seq,
        turn: Turn,
        policy: SharedPolicy,
        own: bool,
    },
    /// Index of the key.
    FileChanged(u32),
    Abandon(u32),
    Revise(u32),
    Hide(u32),
    Restore {
        items: Arc<Vec<ItemId>>,
        moment: Moment,
    },
    Pin(Arc<Vec<ItemId>>),
    Unpin(Arc<Vec<ItemId>>),
    Closed,
    Injected(Ix),
    TodosReplaced(Arc<TodoList>),
    TodoChanged(Arc<TodoChange>),
    TaskChanged(Arc<TaskChanged>),
    TaskEvicted {
        event: Arc<crate::event::TaskEvicted>,
        eviction: u32,
    },
    Memory(Arc<MemoryEvent>),
}

/// Operations in their order. There is one for each event, so those of frequent kinds are plain rows.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Ops {
    rows: Vec<OpRow>,
    rare: Vec<Op>,
}

#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
struct OpRow {
    seq: Seq,
    /// An item, a number or a name; for a rare operation its index in `rare`.
    value: u32,
    /// The kind in the low [`KIND_BITS`], and a second number above it.
    kind: u32,
}

const START: u32 = 0;
const FINISH: u32 = 1;
const PARTS: u32 = 2;
const TURN: u32 = 3;
const PROMPT: u32 = 4;
const INJECTED: u32 = 5;
const RARE: u32 = 255;
const KIND_BITS: u32 = 8;

impl Ops {
    pub(crate) const fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn push(&mut self, seq: Seq, op: Op) {
        let (kind, value) = match op {
            Op::Start(ix) => (START, ix.0),
            Op::Finish(finish) => (FINISH, finish),
            Op::Parts { first, count } if count < 1 << (32 - KIND_BITS) => {
                (PARTS | count << KIND_BITS, first.0)
            }
            Op::Turn { key, number: None, idle_seconds } => {
                (TURN | idle_seconds.min(u32::MAX >> KIND_BITS) << KIND_BITS, key)
            }
            Op::Prompt => (PROMPT, 0),
            Op::Injected(ix) => (INJECTED, ix.0),
            op => (RARE, pushed(&mut self.rare, op)),
        };
        self.rows.push(OpRow { seq, value, kind });
    }

    /// The seq of the operation at a place.
    pub(crate) fn seq(&self, place: usize) -> Option<Seq> {
        self.rows.get(place).map(|row| row.seq)
    }

    /// The operation at a place.
    pub(crate) fn get(&self, place: usize) -> Option<(Seq, Op)> {
        let row = self.rows.get(place)?;
        let op = match row.kind & ((1 << KIND_BITS) - 1) {
            START => Op::Start(Ix(row.value)),
            FINISH => Op::Finish(row.value),
            PARTS => Op::Parts { first: Ix(row.value), count: row.kind >> KIND_BITS },
            TURN => Op::Turn { key: row.value, number: None, idle_seconds: row.kind >> KIND_BITS },
            PROMPT => Op::Prompt,
            INJECTED => Op::Injected(Ix(row.value)),
            _ => self.rare.get(row.value as usize)?.clone(),
        };
        Some((row.seq, op))
    }

    /// The places of the rewinds, and the point to which each goes back.
    pub(crate) fn rewinds(&self) -> impl Iterator<Item = (usize, Seq)> {
        let rare = self.rows.iter().enumerate().filter(|(_, row)| row.kind == RARE);
        rare.filter_map(|(place, row)| match self.rare.get(row.value as usize)? {
            Op::Rewound { to, .. } => Some((place, *to)),
            _ => None,
        })
    }
}

impl FromIterator<(Seq, Op)> for Ops {
    fn from_iter<T: IntoIterator<Item = (Seq, Op)>>(ops: T) -> Self {
        let mut all = Self::default();
        for (seq, op) in ops {
            all.push(seq, op);
        }
        all
    }
}

/// A set of names, a bit each.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct NameSet(pub(super) Vec<u64>);

impl NameSet {
    /// True if the name is new.
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
