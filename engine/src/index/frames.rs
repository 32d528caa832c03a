//! Where the index gets its frames from, as a trait: the log, or a test's list.

use crate::codec::Frame;
use crate::ids::{Position, Seq};
use crate::secret::Secret;

use super::Bypassed;

/// Where frames come from: the log.
pub trait FrameSource: Send + Sync {
    /// The last durable seq, and the end of its frame.
    fn durable_head(&self) -> (Seq, Position);

    /// The store's secret.
    fn secret(&self) -> Secret;

    /// Durable frames in order: from the one that follows `end`, or the first of all. As many as fit into `bytes_max`,
    /// at least one if there is one.
    ///
    /// # Errors
    /// If a frame cannot be read; nothing past it is indexed.
    fn frames_after(&self, end: Option<Position>, bytes_max: usize) -> Result<Vec<Frame>, SourceFault>;
}

/// Frames could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SourceFault {
    /// Why, in one line.
    pub reason: String,
}

impl From<SourceFault> for Bypassed {
    fn from(fault: SourceFault) -> Self {
        Self { reason: fault.reason }
    }
}
