//! fjall: events in a keyspace with key-value separation, three plain ones, one batch a commit with its journal synced.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use super::{body, key, number, value};
use crate::Outcome;
use crate::compare::engine::Engine;
use crate::compare::work::{Ask, Event, LAST_COUNT, Sink};

struct Fjall {
    database: Database,
    events: Keyspace,
    sessions: Keyspace,
    chains: Keyspace,
    hashes: Keyspace,
    buffer: Vec<u8>,
}

pub(super) fn open(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let database = Database::builder(folder.join("fjall")).cache_size(64 << 20).open()?;
    let separated =
        || KeyspaceCreateOptions::default().with_kv_separation(Some(KvSeparationOptions::default()));
    let events = database.keyspace("events", separated)?;
    let plain = |name| database.keyspace(name, KeyspaceCreateOptions::default);
    let (sessions, chains, hashes) = (plain("sessions")?, plain("chains")?, plain("hashes")?);
    Ok(Box::new(Fjall { database, events, sessions, chains, hashes, buffer: Vec::new() }))
}

impl Fjall {
    fn take(&self, number: u64, sink: &mut Sink) -> Outcome<()> {
        sink.take(body(&self.events.get(number.to_be_bytes())?.ok_or("no such event")?));
        Ok(())
    }
}

impl Engine for Fjall {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for event in events {
            value(event, &mut self.buffer);
            batch.insert(&self.events, event.number.to_be_bytes(), self.buffer.as_slice());
            batch.insert(&self.sessions, key(&event.session.to_be_bytes(), event.number), []);
            batch.insert(&self.chains, key(&event.chain.to_be_bytes(), event.number), []);
            batch.insert(&self.hashes, key(&event.hash, event.number), []);
        }
        Ok(batch.commit()?)
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        let (table, about, limit) = match ask {
            Ask::Get(number) => {
                self.take(number, sink)?;
                return Ok(true);
            }
            Ask::Digest(hash) => (&self.hashes, hash.to_vec(), 1),
            Ask::Last(session) => (&self.sessions, session.to_be_bytes().to_vec(), LAST_COUNT),
            Ask::Chain(chain) => (&self.chains, chain.to_be_bytes().to_vec(), usize::MAX),
        };
        let mut numbers = Vec::new();
        for row in table.prefix(&about).rev().take(limit) {
            numbers.push(number(&row.key()?));
        }
        for number in numbers.into_iter().rev() {
            self.take(number, sink)?;
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        for row in self.events.range::<&[u8], _>(..) {
            sink.take(body(&row.value()?));
        }
        Ok(true)
    }
}
