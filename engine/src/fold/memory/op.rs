//! A memory event as the fold keeps it, for a rewind to fold again: without the rest of the record.

use std::sync::Arc;

use crate::event::{
    Actor, Lifespan, MemoryKind, MemoryRecorded, MemoryReinforced, MemoryRetracted, MemorySuperseded,
    Payload, Recorded,
};
use crate::ids::{Micros, Seq};

/// When something was said, and by which clock.
///
/// Within one store the order of its log decides: clocks may go back. An event that another store recorded, or that a host
/// dates, takes its place by its time, so that two stores that take in each other's events end alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct Moment {
    /// The time that came with the event, else that of recording.
    pub at: Micros,
    /// A time came with the event.
    pub is_dated: bool,
}

impl Moment {
    /// The moment of an event.
    pub fn of(recorded: &Recorded) -> Self {
        Self::new(recorded.event.host_time, recorded.recorded_at)
    }

    pub(super) fn new(host_time: Option<Micros>, recorded_at: Micros) -> Self {
        // A time in the future counts as that of recording: else an event that is dated later than all others has the last word.
        Self { at: host_time.map_or(recorded_at, |at| at.min(recorded_at)), is_dated: host_time.is_some() }
    }
}

/// A memory event.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct MemoryEvent {
    pub(super) seq: Seq,
    pub(super) recorded_at: Micros,
    pub(super) host_time: Option<Micros>,
    pub(super) actor: Actor,
    pub(super) what: MemoryWhat,
}

/// The content of a memory event.
#[derive(Clone, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) enum MemoryWhat {
    /// An item, never without an id.
    Recorded(#[rkyv(with = rkyv::with::Unshare)] Arc<MemoryRecorded>),
    Superseded(MemorySuperseded),
    Reinforced(MemoryReinforced),
    Retracted(MemoryRetracted),
}

impl MemoryEvent {
    pub(super) fn moment(&self) -> Moment {
        Moment::new(self.host_time, self.recorded_at)
    }

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

/// Who said something, for texts that a model reads; `None` if it was a person, or the program that runs the agent.
pub const fn said_by_label(actor: Actor) -> Option<&'static str> {
    match actor {
        Actor::Assistant => Some("said by a model"),
        Actor::Tool => Some("said by a tool"),
        Actor::User | Actor::Host | Actor::Policy => None,
    }
}

/// The name of a lifespan, as in JSON.
pub const fn lifespan_label(lifespan: Lifespan) -> &'static str {
    match lifespan {
        Lifespan::Session => "session",
        Lifespan::Project => "project",
        Lifespan::Permanent => "permanent",
    }
}

/// The name of a kind, as in JSON.
pub const fn kind_label(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Fact => "fact",
        MemoryKind::Preference => "preference",
        MemoryKind::Decision => "decision",
        MemoryKind::Note => "note",
    }
}

/// The lifespan of an item of this kind, unless its event names one.
pub const fn default_lifespan(kind: MemoryKind) -> Lifespan {
    match kind {
        MemoryKind::Fact => Lifespan::Session,
        MemoryKind::Preference | MemoryKind::Decision | MemoryKind::Note => Lifespan::Project,
    }
}

/// The category of an item of this kind, unless its event names one.
pub const fn default_category(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Decision => "implementation",
        MemoryKind::Fact | MemoryKind::Preference | MemoryKind::Note => "other",
    }
}
