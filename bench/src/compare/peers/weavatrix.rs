//! weavatrix-memory's event store: a framed file that is synced, and all events in memory, too. Reads use only the memory.

use std::path::Path;

use weavatrix_memory::{
    AgentId, Codec, Durability, EventId, EventStore as _, ExpectedVersion, FileEventStore, FileStoreOptions,
    MemoryError, NewEvent, SessionId, StoredEvent, StreamId, Timestamp,
};

use super::{body, value};
use crate::Outcome;
use crate::compare::engine::Engine;
use crate::compare::work::{Ask, Event, Sink};

/// Length-prefixed fields; the crate itself only has JSON.
struct Plain;

impl Codec<StoredEvent<Vec<u8>>> for Plain {
    fn encode(&self, stored: &StoredEvent<Vec<u8>>) -> Result<Vec<u8>, MemoryError> {
        let metadata = &stored.metadata;
        let mut bytes = Vec::with_capacity(stored.payload.len() + 96);
        bytes.extend_from_slice(&metadata.global_position.to_le_bytes());
        bytes.extend_from_slice(&metadata.stream_version.to_le_bytes());
        for text in [metadata.stream_id.as_str(), metadata.session_id.as_str(), metadata.id.as_str()] {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(&stored.payload);
        Ok(bytes)
    }

    fn decode(&self, _: &[u8]) -> Result<StoredEvent<Vec<u8>>, MemoryError> {
        Err(MemoryError::Codec { message: "this comparison never opens a store again".to_owned() })
    }
}

struct Weavatrix {
    store: FileEventStore<Vec<u8>, Plain>,
    /// The engine's number of the first event.
    first: u64,
}

pub(super) fn open(folder: &Path) -> Outcome<Box<dyn Engine>> {
    // As durable as the other engines: the bytes and the length are synced, not the times.
    let options = FileStoreOptions { durability: Durability::SyncData, ..FileStoreOptions::default() };
    let store = FileEventStore::open(folder.join("weavatrix.log"), Plain, options)?;
    Ok(Box::new(Weavatrix { store, first: 0 }))
}

fn stream(session: u32) -> Outcome<StreamId> {
    Ok(StreamId::new(format!("session-{session}"))?)
}

fn new(event: &Event<'_>) -> Outcome<NewEvent<Vec<u8>>> {
    let mut buffer = Vec::new();
    value(event, &mut buffer);
    let time = Timestamp::from_unix_micros(i64::try_from(event.number)?);
    let session = SessionId::new(format!("session-{}", event.session))?;
    let id = EventId::new(format!("event-{}", event.number))?;
    Ok(NewEvent::new(id, "call", time, time, AgentId::new("bench")?, session, buffer)?)
}

impl Engine for Weavatrix {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        // One batch is of one stream, so a commit over many sessions goes to one stream here.
        let first = events.first().map_or(0, |event| event.session);
        let batch = events.iter().map(new).collect::<Outcome<Vec<_>>>()?;
        self.store.append_owned_receipt(&stream(first)?, ExpectedVersion::Any, batch)?;
        if self.first == 0 {
            self.first =
                self.store.load_all(None, 1).first().map_or(0, |stored| stored.metadata.global_position);
        }
        Ok(())
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        let Ask::Get(number) = ask else { return Ok(false) };
        // The engine goes through all events in memory.
        let position = self.first + number - 1;
        let found = self.store.load_all(position.checked_sub(1), 1);
        for stored in &found {
            sink.take(body(&stored.payload));
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        let mut after = None;
        loop {
            let events = self.store.load_all(after, 1000);
            let Some(last) = events.last() else { return Ok(true) };
            after = Some(last.metadata.global_position);
            for stored in &events {
                sink.take(body(&stored.payload));
            }
        }
    }
}
