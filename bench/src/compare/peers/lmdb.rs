//! LMDB through heed: default sync flags, a map of 16 GiB, big-endian keys, events appended at the end.

use std::ops::Bound::Included;
use std::path::Path;

use heed::types::{Bytes, U64, Unit};
use heed::{Database, Env, EnvOpenOptions, PutFlags, byteorder::BE};

use super::{body, key, number, value};
use crate::Outcome;
use crate::compare::engine::Engine;
use crate::compare::work::{Ask, Event, LAST_COUNT, Sink};

struct Lmdb {
    env: Env,
    events: Database<U64<BE>, Bytes>,
    sessions: Database<Bytes, Unit>,
    chains: Database<Bytes, Unit>,
    hashes: Database<Bytes, Unit>,
    buffer: Vec<u8>,
}

pub(super) fn open(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let folder = folder.join("lmdb");
    std::fs::create_dir_all(&folder)?;
    let mut options = EnvOpenOptions::new();
    options.map_size(16 << 30).max_dbs(4);
    // SAFETY: nothing else opens, cuts or changes the files of this folder while the map is in use.
    #[expect(unsafe_code, reason = "heed maps the file, and says so")]
    let env = unsafe { options.open(&folder)? };
    let mut transaction = env.write_txn()?;
    let events = env.create_database(&mut transaction, Some("events"))?;
    let sessions = env.create_database(&mut transaction, Some("sessions"))?;
    let chains = env.create_database(&mut transaction, Some("chains"))?;
    let hashes = env.create_database(&mut transaction, Some("hashes"))?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, events, sessions, chains, hashes, buffer: Vec::new() }))
}

impl Engine for Lmdb {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        let mut transaction = self.env.write_txn()?;
        for event in events {
            value(event, &mut self.buffer);
            self.events.put_with_flags(&mut transaction, PutFlags::APPEND, &event.number, &self.buffer)?;
            self.sessions.put(&mut transaction, &key(&event.session.to_be_bytes(), event.number), &())?;
            self.chains.put(&mut transaction, &key(&event.chain.to_be_bytes(), event.number), &())?;
            self.hashes.put(&mut transaction, &key(&event.hash, event.number), &())?;
        }
        Ok(transaction.commit()?)
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        let transaction = self.env.read_txn()?;
        let (table, about, limit) = match ask {
            Ask::Get(number) => {
                sink.take(body(self.events.get(&transaction, &number)?.ok_or("no such event")?));
                return Ok(true);
            }
            Ask::Digest(hash) => (&self.hashes, hash.to_vec(), 1),
            Ask::Last(session) => (&self.sessions, session.to_be_bytes().to_vec(), LAST_COUNT),
            Ask::Chain(chain) => (&self.chains, chain.to_be_bytes().to_vec(), usize::MAX),
        };
        let (from, to) = (key(&about, 0), key(&about, u64::MAX));
        let mut numbers = Vec::new();
        for row in
            table.rev_range(&transaction, &(Included(from.as_slice()), Included(to.as_slice())))?.take(limit)
        {
            numbers.push(number(row?.0));
        }
        for number in numbers.into_iter().rev() {
            sink.take(body(self.events.get(&transaction, &number)?.ok_or("no such event")?));
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        let transaction = self.env.read_txn()?;
        for row in self.events.iter(&transaction)? {
            sink.take(body(row?.1));
        }
        Ok(true)
    }
}
