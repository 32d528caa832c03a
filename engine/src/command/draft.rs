//! An event before it has a place: its payload and the bodies that the payload names.

use crate::event::{Body, Payload};
use crate::text::estimate;

/// What a command wants recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct EventDraft {
    /// What happened. Its [`Body`] rows count into `bodies`.
    pub payload: Payload,
    /// The bodies, in the order of their rows. None is empty.
    pub bodies: Vec<Vec<u8>>,
}

/// Collects the bodies of one event while its payload is put together.
#[derive(Debug, Default)]
pub struct BodyRows {
    bodies: Vec<Vec<u8>>,
}

impl BodyRows {
    /// Adds a body and says how the payload names it. An empty body takes no row.
    pub fn add(&mut self, bytes: impl Into<Vec<u8>>) -> Body {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Body::default();
        }
        let breaks = bytes.iter().filter(|byte| **byte == b'\n').count();
        let body = Body {
            first: u32::try_from(self.bodies.len()).unwrap_or(u32::MAX),
            chunks: 1,
            bytes: bytes.len() as u64,
            tokens: estimate(&bytes),
            lines: u32::try_from(breaks).unwrap_or(u32::MAX).saturating_add(1),
        };
        self.bodies.push(bytes);
        body
    }

    /// The draft of `payload` with the bodies collected.
    pub fn draft(self, payload: impl Into<Payload>) -> EventDraft {
        EventDraft { payload: payload.into(), bodies: self.bodies }
    }
}
