//! The index and the log: frames for the indexer, and opening an index that agrees with a log.

use crate::codec::{FORMAT_VERSION, Frame};
use crate::ids::{Position, Seq};
use crate::log::Log;
use crate::secret::Secret;

use super::files::IndexOptions;
use super::owner::{Index, IndexState};
use super::{FrameSource, Identity, SourceFault, evidence};

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
            bytes = bytes.saturating_add(frame.header().spine_bytes as usize);
            if bytes > bytes_max && !read.is_empty() {
                break;
            }
            read.push(frame);
        }
        Ok(read)
    }
}

impl Index {
    /// Opens the index that lies beside `log`. An index that knows events which the log does not hold is evidence: of a store that was put
    /// back from a copy, or a log whose end was taken back and written over.
    pub fn open_for(log: &Log, options: IndexOptions) -> IndexState {
        let identity = Identity { store: log.store(), format: FORMAT_VERSION };
        Self::open_judged(log.storage(), identity, &|said| evidence::beside(log, identity, said), options)
    }

    /// Opens the index that lies beside `log` to look things up in it; changes nothing.
    pub fn open_reading_for(log: &Log, options: IndexOptions) -> IndexState {
        let identity = Identity { store: log.store(), format: FORMAT_VERSION };
        let judge = |said: &evidence::Testimony| evidence::beside(log, identity, said);
        Self::open_reading(log.storage(), identity, &judge, options)
    }
}
