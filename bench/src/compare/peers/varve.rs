//! varvedb: events in LMDB with a sequence per stream. It finds by number and by stream; a batch is of one stream, so a
//! commit over many sessions goes to one stream here.

use std::path::Path;

use varvedb::{GlobalSequence, Stream, StreamId, Varve, VarveConfig};

use super::{body, value};
use crate::Outcome;
use crate::compare::engine::Engine;
use crate::compare::work::{Ask, Event, Sink};

struct Db {
    store: Varve,
    stream: Stream<Vec<u8>, 131_072>,
}

pub(super) fn open(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let folder = folder.join("varve");
    std::fs::create_dir_all(&folder)?;
    let config = VarveConfig { map_size: 16 << 30, ..VarveConfig::default() };
    let mut store = Varve::with_config(folder, config)?;
    let stream = store.stream("events")?;
    Ok(Box::new(Db { store, stream }))
}

fn take(payload: &[u8], sink: &mut Sink) -> Outcome<()> {
    let mut aligned = rkyv::util::AlignedVec::<16>::with_capacity(payload.len());
    aligned.extend_from_slice(payload);
    let bytes = rkyv::access::<rkyv::vec::ArchivedVec<u8>, rkyv::rancor::Error>(&aligned)?;
    sink.take(body(bytes));
    Ok(())
}

impl Engine for Db {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        let mut values = Vec::with_capacity(events.len());
        for event in events {
            let mut buffer = Vec::new();
            value(event, &mut buffer);
            values.push(buffer);
        }
        match (events, values.as_slice()) {
            ([event], [only]) => drop(self.stream.append_alloc(StreamId(event.session.into()), only)?),
            _ => drop(self.stream.append_batch_alloc(StreamId(0), &values)?),
        }
        Ok(())
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        let Ask::Get(number) = ask else { return Ok(false) };
        // The engine's numbers begin with 0.
        let found = self.store.global_reader().get(GlobalSequence(number - 1))?.ok_or("no such event")?;
        take(&found.payload, sink)?;
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        let mut result = Ok(());
        self.store.global_reader().iter_from(GlobalSequence(0))?.for_each(|event| {
            if result.is_ok() {
                result = take(&event.payload, sink);
            }
        })?;
        result.map(|()| true)
    }
}
