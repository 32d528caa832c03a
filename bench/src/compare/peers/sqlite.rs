//! `SQLite` through rusqlite, its own copy built in: WAL and `synchronous=FULL`, plain and with a larger cache and a map.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::Outcome;
use crate::compare::engine::Engine;
use crate::compare::work::{Ask, Event, LAST_COUNT, Sink};

struct Sqlite(Connection);

const TABLE: &str = "
    create table if not exists ev (seq integer primary key, session integer not null, chain integer not null,
        hash blob not null, body blob not null);
    create index if not exists ev_session on ev (session, seq);
    create index if not exists ev_chain on ev (chain, seq);
    create index if not exists ev_hash on ev (hash, seq);";

pub(super) fn open_default(folder: &Path) -> Outcome<Box<dyn Engine>> {
    Ok(Box::new(Sqlite(open(folder, "default.sqlite", TABLE)?)))
}

pub(super) fn open_tuned(folder: &Path) -> Outcome<Box<dyn Engine>> {
    Ok(Box::new(Sqlite(tuned(folder, "tuned.sqlite", TABLE)?)))
}

/// A database with these tables, each commit durable.
fn open(folder: &Path, name: &str, tables: &str) -> Outcome<Connection> {
    let connection = Connection::open(folder.join(name))?;
    connection.execute_batch("pragma journal_mode = wal; pragma synchronous = full;")?;
    connection.execute_batch(tables)?;
    Ok(connection)
}

/// As [`open`], with a larger cache and a map.
pub(super) fn tuned(folder: &Path, name: &str, tables: &str) -> Outcome<Connection> {
    let connection = open(folder, name, tables)?;
    connection.execute_batch("pragma cache_size = -65536; pragma mmap_size = 8589934592;")?;
    Ok(connection)
}

fn insert(connection: &Connection, event: &Event<'_>) -> Outcome<()> {
    connection.prepare_cached("insert into ev values (?, ?, ?, ?, ?)")?.execute(params![
        event.number.cast_signed(),
        event.session,
        event.chain,
        event.hash,
        event.body.as_bytes()
    ])?;
    Ok(())
}

impl Engine for Sqlite {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        if let [event] = events {
            return insert(&self.0, event);
        }
        let transaction = self.0.transaction()?;
        events.iter().try_for_each(|event| insert(&transaction, event))?;
        Ok(transaction.commit()?)
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        let connection = &self.0;
        match ask {
            Ask::Get(number) => {
                let mut statement = connection.prepare_cached("select body from ev where seq = ?")?;
                statement.query_row([number.cast_signed()], |row| {
                    sink.take(row.get_ref(0)?.as_blob()?);
                    Ok(())
                })?;
            }
            Ask::Digest(hash) => {
                let sql = "select body from ev where hash = ? order by seq desc limit 1";
                connection.prepare_cached(sql)?.query_row([hash], |row| {
                    sink.take(row.get_ref(0)?.as_blob()?);
                    Ok(())
                })?;
            }
            Ask::Last(session) => {
                let sql =
                    "select body from (select seq, body from ev where session = ? order by seq desc limit ?)
                           order by seq";
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query(params![session, i64::try_from(LAST_COUNT)?])?;
                while let Some(row) = rows.next()? {
                    sink.take(row.get_ref(0)?.as_blob()?);
                }
            }
            Ask::Chain(chain) => {
                let mut statement =
                    connection.prepare_cached("select body from ev where chain = ? order by seq")?;
                let mut rows = statement.query([chain])?;
                while let Some(row) = rows.next()? {
                    sink.take(row.get_ref(0)?.as_blob()?);
                }
            }
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        let mut statement = self.0.prepare_cached("select body from ev order by seq")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            sink.take(row.get_ref(0)?.as_blob()?);
        }
        Ok(true)
    }
}
