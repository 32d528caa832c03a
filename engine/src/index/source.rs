//! The index and the log: frames for the indexer, and opening an index that agrees with a log.

use crate::codec::{FORMAT_VERSION, Frame};
use crate::ids::{Position, Seq};
use crate::log::Log;
use crate::secret::Secret;

use super::owner::{Index, IndexOptions, IndexState};
use super::{FrameSource, Identity, Lookup as _, SourceFault};

impl FrameSource for Log {
    fn secret(&self) -> Secret {
        Log::secret(self).clone()
    }

    /// The head as this handle last saw it.
    fn durable_head(&self) -> (Seq, Position) {
        let head = self.head();
        (head.seq, head.position)
    }

    /// Stops before damage: what lies behind it is for those who read the log itself.
    fn frames_after(&self, end: Option<Position>, bytes_max: usize) -> Result<Vec<Frame>, SourceFault> {
        let (mut read, mut bytes) = (Vec::new(), 0_usize);
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
    /// Opens the index that lies beside `log`, and begins it anew if its newest frame is not the log's: a store that was
    /// restored from a copy, or a log whose end was lost and written over.
    pub fn open_for(log: &Log, options: IndexOptions) -> IndexState {
        let identity = Identity { store: log.store(), format: FORMAT_VERSION };
        let state = Self::open(log.storage(), identity, log.durable_head(), options);
        if let IndexState::Owner(index) = &state
            && !index.agrees_with(log)
        {
            index.put_aside("its newest frame is not the log's");
            // Dropped and so removed before the next opens.
            drop(state);
            return Self::open(log.storage(), identity, log.durable_head(), options);
        }
        state
    }

    /// Whether the newest frame it knows is the one in the log at that place. Cost: two reads.
    fn agrees_with(&self, log: &Log) -> bool {
        let watermark = self.watermark();
        if watermark.seq == Seq::ZERO {
            return true;
        }
        let Ok(Some(place)) = self.place_of(watermark.seq) else { return false };
        log.header_at(place.position).is_ok_and(|header| header.link() == watermark.link)
    }
}
