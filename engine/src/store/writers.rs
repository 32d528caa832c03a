//! The writers of a handle: one a stream, and what each must make durable before it may rest on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::error::Error;
use crate::ids::StreamId;
use crate::locks::steady;

use super::Inner;
use super::stream_writer::StreamWriter;

impl Inner {
    /// Makes durable what is known of a stream.
    pub(super) fn settle_known(&self, writer: &mut StreamWriter) -> Result<(), Error> {
        if let Some(placed) = &writer.placed {
            self.settle(placed)?;
            // Only now: were it cleared before a failed sync, the next caller would take the commit for durable.
            writer.placed = None;
        }
        Ok(())
    }

    /// The writers of these streams, to be locked in the order of the map.
    pub(super) fn writers_of(
        &self,
        streams: impl Iterator<Item = StreamId>,
    ) -> BTreeMap<StreamId, Arc<Mutex<StreamWriter>>> {
        streams.map(|id| (id, self.writer_of(id))).collect()
    }

    /// The writer of a stream. Others that were not used for long leave the memory, if they take too much.
    pub(super) fn writer_of(&self, stream: StreamId) -> Arc<Mutex<StreamWriter>> {
        let (writer, surplus) = {
            let mut all = steady(&self.writers);
            let writer = all.of(stream, |_| true, Mutex::default);
            // One that is in use is weighed the next time.
            if let Ok(writer) = writer.try_lock() {
                all.weigh(stream, writer.event_bytes());
            }
            // What is not durable yet is in no file: another writer of the stream would not know of it.
            let durable = self.log.head().seq;
            let is_durable = |writer: &Mutex<StreamWriter>| {
                writer.try_lock().is_ok_and(|writer| writer.placed.is_none() || writer.watermark <= durable)
            };
            let surplus = all.surplus(is_durable);
            (writer, surplus)
        };
        for (stream, writer) in surplus {
            self.save_ingest_state_if_due(stream, &writer);
        }
        writer
    }
}
