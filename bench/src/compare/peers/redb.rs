//! redb for everything: events and three indices, one `Immediate` transaction a commit, 64 MB of cache.

use std::path::Path;

use redb::{Builder, Database, ReadableDatabase as _, TableDefinition};

use super::{body, key, number, value};
use crate::Outcome;
use crate::compare::engine::Engine;
use crate::compare::work::{Ask, Event, LAST_COUNT, Sink};

const EVENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("events");
const SESSIONS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("sessions");
const CHAINS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("chains");
const HASHES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("hashes");

struct Redb {
    database: Database,
    buffer: Vec<u8>,
}

pub(super) fn open(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let database = Builder::new().set_cache_size(64 << 20).create(folder.join("alone.redb"))?;
    let transaction = database.begin_write()?;
    transaction.open_table(EVENTS)?;
    for table in [SESSIONS, CHAINS, HASHES] {
        transaction.open_table(table)?;
    }
    transaction.commit()?;
    Ok(Box::new(Redb { database, buffer: Vec::new() }))
}

impl Engine for Redb {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        let transaction = self.database.begin_write()?;
        {
            let mut table = transaction.open_table(EVENTS)?;
            let mut sessions = transaction.open_table(SESSIONS)?;
            let mut chains = transaction.open_table(CHAINS)?;
            let mut hashes = transaction.open_table(HASHES)?;
            for event in events {
                value(event, &mut self.buffer);
                table.insert(event.number, self.buffer.as_slice())?;
                sessions.insert(key(&event.session.to_be_bytes(), event.number).as_slice(), ())?;
                chains.insert(key(&event.chain.to_be_bytes(), event.number).as_slice(), ())?;
                hashes.insert(key(&event.hash, event.number).as_slice(), ())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        let transaction = self.database.begin_read()?;
        let events = transaction.open_table(EVENTS)?;
        let (table, about, limit) = match ask {
            Ask::Get(number) => {
                sink.take(body(events.get(number)?.ok_or("no such event")?.value()));
                return Ok(true);
            }
            Ask::Digest(hash) => (HASHES, hash.to_vec(), 1),
            Ask::Last(session) => (SESSIONS, session.to_be_bytes().to_vec(), LAST_COUNT),
            Ask::Chain(chain) => (CHAINS, chain.to_be_bytes().to_vec(), usize::MAX),
        };
        let table = transaction.open_table(table)?;
        let (from, to) = (key(&about, 0), key(&about, u64::MAX));
        let mut numbers = Vec::new();
        for row in table.range(from.as_slice()..=to.as_slice())?.rev().take(limit) {
            numbers.push(number(row?.0.value()));
        }
        for number in numbers.into_iter().rev() {
            sink.take(body(events.get(number)?.ok_or("no such event")?.value()));
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        let events = self.database.begin_read()?.open_table(EVENTS)?;
        for row in events.range::<u64>(..)? {
            sink.take(body(row?.1.value()));
        }
        Ok(true)
    }
}
