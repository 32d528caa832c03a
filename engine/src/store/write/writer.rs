//! The writers of a handle, one a stream: what it knows of the stream to append to it, how that is brought up to date, and what must be
//! durable before a commit may rest on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::super::Inner;
use super::super::kept::StreamWriter;
use crate::error::Error;
use crate::event::{Payload, Recorded};
use crate::ids::{Seq, StreamId};
use crate::locks::steady;

impl Inner {
    /// Brings a stream's ingest state up to the durable head. It is sound then.
    pub(in crate::store) fn catch_up(
        &self,
        stream: StreamId,
        writer: &mut StreamWriter,
    ) -> Result<(), Error> {
        if !writer.ingest_state.is_sound() {
            self.start_over(writer)?;
        }
        if writer.watermark == Seq::ZERO && writer.ingest_state.head == Seq::ZERO {
            self.take_saved_ingest_state(stream, writer);
        }
        self.observe_new(stream, writer)?;
        if !writer.ingest_state.is_sound() {
            self.start_over(writer)?;
            self.observe_new(stream, writer)?;
        }
        self.save_if_overdue(stream, writer);
        if writer.signer.is_none()
            && let Some(key) = writer.ingest_state.key
        {
            let bytes = match self.body(key) {
                Ok(bytes) => bytes,
                // The key is lost: no process recognises a text that was recorded before, or will be from here on.
                Err(Error::Erased { .. }) => self.entropy.array::<32>().to_vec(),
                Err(error) => return Err(error),
            };
            let key: [u8; 32] = bytes.as_slice().try_into().map_err(|_| Error::Corrupt {
                detail: format!(
                    "the signature key of stream {stream} has {} bytes, expected 32",
                    bytes.len()
                ),
            })?;
            writer.signer = Some(self.signer_with(&key));
        }
        Ok(())
    }

    /// The key of a stream's signatures; `None` if it is lost.
    pub(in crate::store) fn key_of(&self, stream: StreamId) -> Result<Option<[u8; 32]>, Error> {
        let Some(recorded) = self.stream_opening(stream)? else { return Ok(None) };
        let Payload::SessionOpened(opened) = &recorded.event.payload else { return Ok(None) };
        match self.body(opened.key.id(recorded.seq)) {
            Ok(bytes) => Ok(bytes.as_slice().try_into().ok()),
            Err(Error::Erased { .. } | Error::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn stream_opening(&self, stream: StreamId) -> Result<Option<Recorded>, Error> {
        let (places, _) = self.frames_of(&[stream], Seq::ZERO)?;
        let Some(place) = places.first() else { return Ok(None) };
        let frame = self.first_part_of(place.position, stream)?;
        let event = frame.events().find(|event| event.envelope.stream == stream);
        event.map(|event| self.decode(&frame, &event)).transpose()
    }

    /// Takes note of the events of a stream that its ingest state does not know yet.
    fn observe_new(&self, stream: StreamId, writer: &mut StreamWriter) -> Result<(), Error> {
        self.observe_until(stream, writer, Seq::MAX)
    }

    /// As `observe_new`, up to a seq at which a commit ends.
    pub(in crate::store) fn observe_until(
        &self,
        stream: StreamId,
        writer: &mut StreamWriter,
        until: Seq,
    ) -> Result<(), Error> {
        let (mut places, watermark) = self.frames_of(&[stream], writer.watermark)?;
        places.retain(|place| place.last_seq <= until);
        for place in places {
            for frame in self.parts_of(place.position, &[stream], writer.ingest_state.head)? {
                for event in frame.events().filter(|event| event.envelope.stream == stream) {
                    if event.seq > writer.ingest_state.head {
                        writer.ingest_state.observe(&self.decode(&frame, &event)?);
                    }
                }
            }
        }
        writer.watermark = writer.watermark.max(watermark.min(until));
        Ok(())
    }
}

impl Inner {
    /// Makes durable what is known of a stream.
    pub(in crate::store) fn settle_known(&self, writer: &mut StreamWriter) -> Result<(), Error> {
        if let Some(placed) = &writer.placed {
            self.settle(placed)?;
            // Only now: were it cleared before a failed sync, the next caller would take the commit for durable.
            writer.placed = None;
        }
        Ok(())
    }

    /// The writers of these streams, to be locked in the order of the map.
    pub(in crate::store) fn writers_of(
        &self,
        streams: impl Iterator<Item = StreamId>,
    ) -> BTreeMap<StreamId, Arc<Mutex<StreamWriter>>> {
        streams.map(|id| (id, self.writer_of(id))).collect()
    }

    /// The writer of a stream. Others that were not used for long leave the memory, if they take too much.
    pub(in crate::store) fn writer_of(&self, stream: StreamId) -> Arc<Mutex<StreamWriter>> {
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
