//! Events that a command wants recorded, before they have a stream, a place in the log or bodies on disk.

use super::bodies::line_count;
use crate::event::{Body, Payload};
use crate::text::tokens;

/// A payload and the bytes of the bodies it names.
#[derive(Clone, PartialEq, Debug)]
pub struct EventDraft {
    /// What happened. Its bodies name rows of `bodies`.
    pub payload: Payload,
    /// One row each.
    pub bodies: Vec<Vec<u8>>,
}

/// Adds a row for `bytes` to `bodies` and describes it. An empty body has no row.
pub fn push_body(bodies: &mut Vec<Vec<u8>>, bytes: &[u8]) -> Body {
    if bytes.is_empty() {
        return Body::default();
    }
    let first = u32::try_from(bodies.len()).unwrap_or(u32::MAX);
    bodies.push(bytes.to_vec());
    Body {
        first,
        chunks: 1,
        bytes: bytes.len() as u64,
        tokens: tokens::estimate(bytes),
        lines: line_count(bytes),
    }
}
