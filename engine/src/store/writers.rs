//! The state that a handle needs of each stream to append to it: found, brought up to date, and made durable before a commit rests on it.
//!
//! Its ingest state is saved, so that the first commit of a process to a long session need not read the session: `saved`, `saving`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::StoreInner;
use super::kept::StreamWriter;
use super::saved::SavedName;
use crate::command::ingest_state::IngestState;
use crate::error::Error;
use crate::ids::{Seq, StreamId};
use crate::locks::steady;

impl StoreInner {
    /// Locks this handle's state of a stream. A panic while it was locked may have left it half done: then it is thrown away, and
    /// the log is asked again.
    pub(super) fn lock_writer<'w>(
        &self,
        writer: &'w Mutex<StreamWriter>,
    ) -> Result<MutexGuard<'w, StreamWriter>, Error> {
        match writer.lock() {
            Ok(guard) => Ok(guard),
            Err(poisoned) => {
                let mut guard = poisoned.into_inner();
                self.start_over(&mut guard)?;
                writer.clear_poison();
                Ok(guard)
            }
        }
    }

    /// Throws away what is known of a stream, which is to be read anew.
    pub(super) fn start_over(&self, writer: &mut StreamWriter) -> Result<(), Error> {
        // The log only tells of durable commits.
        self.settle_known(writer)?;
        *writer = StreamWriter::default();
        Ok(())
    }
}

impl StoreInner {
    /// Brings a stream's ingest state up to the durable head.
    pub(super) fn catch_up(&self, stream: StreamId, writer: &mut StreamWriter) -> Result<(), Error> {
        // The ingest state keeps titles and the like: a text in it may be erased since.
        let is_outdated = writer.watermark != Seq::ZERO && writer.watermark < self.newest_erasure()?;
        if is_outdated {
            self.start_over(writer)?;
        }
        if writer.watermark == Seq::ZERO && writer.ingest_state.head == Seq::ZERO {
            let name = SavedName::ingest_state(stream);
            if let Some((footing, ingest_state)) =
                self.saved(&name, |saved| IngestState::restore(saved.value()?))
            {
                writer.saved_count = ingest_state.event_count;
                writer.watermark = footing.seq;
                writer.ingest_state = ingest_state;
            }
        }
        self.observe_until(stream, writer, Seq::MAX)?;
        self.save_read(stream, writer);
        if writer.signer.is_none()
            && let Some(key) = writer.ingest_state.key
        {
            let bytes = match self.body(key) {
                Ok(bytes) => bytes,
                // The key is lost: no process recognises a text that was recorded before, or will be from here on.
                Err(Error::Erased { .. }) => self.entropy.array::<32>().to_vec(),
                Err(error) => return Err(error),
            };
            let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| {
                let found = bytes.len();
                let detail = format!("the signature key of stream {stream} has {found} bytes, expected 32");
                Error::damaged_event(key.seq, detail)
            })?;
            writer.signer = Some(self.signer_with(&key));
        }
        Ok(())
    }

    /// Takes note of the events of a stream that its ingest state does not know yet, up to a seq at which a commit ends.
    pub(super) fn observe_until(
        &self,
        stream: StreamId,
        writer: &mut StreamWriter,
        until: Seq,
    ) -> Result<(), Error> {
        let (mut places, watermark) = self.frames_of(&[stream], writer.watermark)?;
        places.retain(|place| place.last_seq <= until);
        for place in places {
            let frame = self.frame_at(place.position)?;
            for event in frame.events().filter(|event| event.envelope.stream == stream) {
                if event.seq > writer.ingest_state.head {
                    writer.ingest_state.observe(&self.decode(&frame, &event)?);
                }
            }
        }
        writer.watermark = writer.watermark.max(watermark.min(until));
        Ok(())
    }
}

impl StoreInner {
    /// Makes the last known commit to a stream durable.
    pub(super) fn settle_known(&self, writer: &mut StreamWriter) -> Result<(), Error> {
        if let Some(placed) = &writer.placed {
            self.settle(placed)?;
            // Only now: if it were cleared before a failed sync, the next caller would take the commit for durable.
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

    /// The writer of a stream. Writers that were unused for long leave the memory, if they take too much.
    pub(super) fn writer_of(&self, stream: StreamId) -> Arc<Mutex<StreamWriter>> {
        let (writer, surplus) = {
            let mut all = steady(&self.writers);
            let writer = all.of(stream, |_| true, Mutex::default);
            // A writer in use is weighed the next time.
            if let Ok(writer) = writer.try_lock() {
                all.weigh(stream, writer.event_bytes());
            }
            // A commit that is not durable yet is in no file: another writer of the stream would not know of it.
            let durable = self.log.head().seq;
            let is_durable = |writer: &Mutex<StreamWriter>| {
                writer.try_lock().is_ok_and(|writer| writer.placed.is_none() || writer.watermark <= durable)
            };
            let surplus = all.surplus(is_durable);
            (writer, surplus)
        };
        for (stream, writer) in surplus {
            self.save_leaving(stream, None, Some(&writer));
        }
        writer
    }
}
