//! Where the index gets its frames from: the log, or a test's list.

use crate::codec::Frame;
use crate::ids::{Position, Seq};
use crate::log::Log;
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

impl FrameSource for Log {
    fn secret(&self) -> Secret {
        Log::secret(self).clone()
    }

    /// The head as this handle last saw it.
    fn durable_head(&self) -> (Seq, Position) {
        let head = self.head();
        (head.seq, head.position)
    }

    /// Stops before damage: only readers of the log itself get the frames behind it.
    fn frames_after(&self, end: Option<Position>, bytes_max: usize) -> Result<Vec<Frame>, SourceFault> {
        let (mut read, mut bytes) = (Vec::new(), 0_usize);
        // No end: from the beginning.
        for frame in self.frames(end.unwrap_or_default(), self.head()) {
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) if read.is_empty() => return Err(SourceFault { reason: error.to_string() }),
                Err(_) => break,
            };
            bytes = bytes.saturating_add(frame.content_bytes());
            if bytes > bytes_max && !read.is_empty() {
                break;
            }
            read.push(frame);
        }
        Ok(read)
    }
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
