//! The writers of a handle: one a stream, and what each must make durable before it may rest on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;
use crate::ids::StreamId;

use super::Inner;
use super::stream_writer::StreamWriter;

impl Inner {
    /// Makes durable what is known of a stream.
    pub(super) fn settle_known(&self, writer: &mut StreamWriter) -> Result<(), Error> {
        if let Some(placed) = &writer.placed {
            self.settle(placed)?;
            // Not before: if it failed, nobody is told of it again as of something known.
            writer.placed = None;
        }
        Ok(())
    }

    /// The writers of these streams, to be locked in the order of the map.
    pub(super) fn writers_of(
        &self,
        streams: impl Iterator<Item = StreamId>,
    ) -> BTreeMap<StreamId, Arc<Mutex<StreamWriter>>> {
        let mut all = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        streams.map(|id| (id, Arc::clone(all.entry(id).or_default()))).collect()
    }
}
