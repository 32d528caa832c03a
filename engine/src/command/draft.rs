//! An event before it has a place in the log, and its bodies one on disk.

use super::bodies::Bodies;
use crate::entry::Bytes;
use crate::event::{Actor, Event, Payload, Stamp};
use crate::ids::{Origin, StreamId};
use crate::text::tokens;

/// An event that is not yet in the log, with the bytes of its bodies, one a row.
#[derive(Clone, PartialEq, Debug)]
pub struct EventDraft {
    /// The event.
    pub event: Event,
    /// Its bodies, in order of their rows.
    pub bodies: Vec<Bytes>,
    /// Rows whose bytes are gone, with how many there were.
    pub lost: Vec<(u32, u32)>,
}

impl EventDraft {
    /// An event with its bodies, none of them lost.
    pub fn new(event: Event, bodies: Bodies) -> Self {
        Self { event, bodies: bodies.into_rows(), lost: Vec::new() }
    }

    /// What a command wants recorded. A command knows neither stream nor actor: [`EventDraft::said_in`] sets both.
    pub fn of(payload: impl Into<Payload>, bodies: Bodies) -> Self {
        let stamp = Stamp { estimator: tokens::ESTIMATOR_VERSION, ..Stamp::default() };
        let (stream, origin, payload) = (StreamId::STORE, Origin::ZERO, payload.into());
        Self::new(Event { stream, origin, host_time: None, stamp, payload }, bodies)
    }

    /// The same event as one of `stream`, by `actor`.
    #[must_use]
    pub fn said_in(mut self, stream: StreamId, actor: Actor) -> Self {
        self.event.stream = stream;
        self.event.stamp.actor = actor;
        self
    }
}
