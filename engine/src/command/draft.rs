//! Events that a command wants recorded, before they have a stream, a place in the log or bodies on disk.

use crate::event::{Body, Payload};

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
    let first = u32::try_from(bodies.len()).unwrap_or(u32::MAX);
    if bytes.is_empty() {
        return Body { first, ..Body::default() };
    }
    bodies.push(bytes.to_vec());
    let line_feeds = bytes.iter().filter(|byte| **byte == b'\n').count();
    Body {
        first,
        chunks: 1,
        bytes: bytes.len() as u64,
        tokens: estimate(bytes),
        lines: u32::try_from(line_feeds).unwrap_or(u32::MAX).saturating_add(1),
    }
}

/// Stands in for the estimator.
fn estimate(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len().div_ceil(4)).unwrap_or(u32::MAX)
}
