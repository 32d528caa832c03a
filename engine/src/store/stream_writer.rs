//! What one handle knows of a stream, to append to it.

use crate::command::ingest_state::IngestState;
use crate::ids::Seq;
use crate::log::Placed;
use crate::text::Signer;

/// What one handle knows of a stream, to append to it.
#[derive(Default)]
pub(super) struct StreamWriter {
    pub(super) ingest_state: IngestState,
    pub(super) signer: Option<Signer>,
    pub(super) watermark: Seq,
    /// The last commit of this handle to it, durable or not.
    pub(super) placed: Option<Placed>,
    /// How many of the ingest state's events a saved one holds.
    pub(super) saved_count: u64,
    /// Digest of the saved ingest state that was taken up last.
    pub(super) restored: Option<[u8; 32]>,
}

/// What an event takes in an ingest state, about.
const EVENT_BYTES: u64 = 120;

impl StreamWriter {
    /// What its events take in memory, about. Those that a file holds are read from there.
    pub(super) fn event_bytes(&self) -> u64 {
        let saved = if self.restored.is_some() { self.saved_count } else { 0 };
        // What was saved is a part of what is known.
        self.ingest_state.event_count.saturating_sub(saved).saturating_mul(EVENT_BYTES)
    }

    /// Calls that have not ended, oldest first.
    pub(super) fn open_calls(&self) -> Vec<crate::command::ingest_state::OpenCall> {
        self.ingest_state.open_calls().into_iter().cloned().collect()
    }
}
