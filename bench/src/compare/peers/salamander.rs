//! salamander-db: a log with replay and forks. Each commit is an append and its `commit`; it finds by position and by stream, and
//! has no lookup by a digest or a chain unless the caller builds a view in memory.

use std::ops::Bound;
use std::path::Path;

use salamander::{RecordReader as _, ReplayEnd, ReplayPlan, Salamander};

use super::{body, value};
use crate::Outcome;
use crate::compare::engine::Engine;
use crate::compare::work::{Ask, Event, Sink};

struct Db {
    database: Salamander<Vec<u8>>,
    /// The position of each event.
    positions: Vec<u64>,
}

pub(super) fn open(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let database = Salamander::open(folder.join("salamander"))?;
    let mut db = Db { database, positions: Vec::new() };
    let mut positions = Vec::new();
    db.read(ReplayPlan::default(), |position, _| positions.push(position))?;
    db.positions = positions;
    Ok(Box::new(db))
}

impl Db {
    fn read(&self, plan: ReplayPlan, mut each: impl FnMut(u64, &[u8])) -> Outcome<()> {
        let mut reader = self.database.read(plan)?;
        while let Some(record) = reader.next()? {
            // The payload is a vector in bincode's form, with a length of 8 bytes before it.
            each(record.position, record.payload.get(8..).unwrap_or_default());
        }
        Ok(())
    }
}

impl Engine for Db {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        for event in events {
            let mut buffer = Vec::new();
            value(event, &mut buffer);
            self.positions.push(self.database.append(&format!("session-{}", event.session), buffer)?);
        }
        self.database.commit()?;
        Ok(())
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        let Ask::Get(number) = ask else { return Ok(false) };
        let position = *self.positions.get(usize::try_from(number - 1)?).ok_or("no such event")?;
        let plan = ReplayPlan {
            from: Bound::Included(position),
            until: ReplayEnd::At(position + 1),
            ..ReplayPlan::default()
        };
        self.read(plan, |_, bytes| sink.take(body(bytes)))?;
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        self.read(ReplayPlan::default(), |_, bytes| sink.take(body(bytes)))?;
        Ok(true)
    }
}
