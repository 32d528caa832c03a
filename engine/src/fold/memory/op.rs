//! A memory event as the fold keeps it: what a rewind folds again, without the rest of the record.

use std::sync::Arc;

use crate::event::{
    Actor, MemoryRecorded, MemoryReinforced, MemoryRetracted, MemorySuperseded, Payload, Recorded,
};
use crate::ids::{Micros, Seq};

/// A memory event.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct MemoryEvent {
    pub(super) seq: Seq,
    pub(super) recorded_at: Micros,
    pub(super) host_time: Option<Micros>,
    pub(super) actor: Actor,
    pub(super) what: MemoryWhat,
}

/// What it says.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) enum MemoryWhat {
    /// An item, never without an id.
    Recorded(#[rkyv(with = rkyv::with::Unshare)] Arc<MemoryRecorded>),
    Superseded(MemorySuperseded),
    Reinforced(MemoryReinforced),
    Retracted(MemoryRetracted),
}

impl MemoryEvent {
    /// The event, if it is about memory.
    pub(crate) fn of(recorded: &Recorded) -> Option<Self> {
        let what = match &recorded.event.payload {
            Payload::MemoryRecorded(record) => {
                let mut record = record.clone();
                if record.id.is_empty() {
                    record.id = recorded.seq.to_string();
                }
                MemoryWhat::Recorded(Arc::new(record))
            }
            Payload::MemorySuperseded(link) => MemoryWhat::Superseded(link.clone()),
            Payload::MemoryReinforced(event) => MemoryWhat::Reinforced(event.clone()),
            Payload::MemoryRetracted(event) => MemoryWhat::Retracted(event.clone()),
            _ => return None,
        };
        Some(Self {
            seq: recorded.seq,
            recorded_at: recorded.recorded_at,
            host_time: recorded.event.host_time,
            actor: recorded.event.stamp.actor,
            what,
        })
    }
}
